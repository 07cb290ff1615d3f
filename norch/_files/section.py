"""Sections: shared memory without a name, as the system has it. A section goes with the last process that uses it.

    create(size)          a handle of a new one, of zeros
    view(handle, size)    maps it: the address;  forget(address, size) undoes that
    close(handle)         what is mapped stays
    identity(handle)      distinguishes it from others, in each process that it is sent to
    sendable(handle)      an object that multiprocessing sends; its detach() gives the receiver a handle

On POSIX's systems a section is a file, and the handle its descriptor; on Windows it is a file mapping.
"""

from __future__ import annotations

import ctypes
import os
import sys

from .._package.typing import Any
from ..errors import OutOfMemoryError


def _refusal(size: int, why: str) -> OutOfMemoryError:
    return OutOfMemoryError(f"out of memory for {size} bytes of shared memory ({why})")


if sys.platform == "win32":
    _system = ctypes.WinDLL("kernel32", use_last_error=True)
    _DWORD, _HANDLE, _ADDRESS = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p
    _create, _map, forget_view, _close = (
        _system[name] for name in ("CreateFileMappingW", "MapViewOfFile", "UnmapViewOfFile", "CloseHandle")
    )
    _create.argtypes = [_HANDLE, ctypes.c_void_p, _DWORD, _DWORD, _DWORD, ctypes.c_wchar_p]
    _map.argtypes = [_HANDLE, _DWORD, _DWORD, _DWORD, ctypes.c_size_t]
    _create.restype = _map.restype = ctypes.c_void_p
    forget_view.argtypes = [_ADDRESS]
    _close.argtypes = [_HANDLE]
    _NO_FILE = ctypes.c_void_p(-1)
    _READ_WRITE = 4  # PAGE_READWRITE
    _ALL = 0xF001F  # FILE_MAP_ALL_ACCESS

    def create(size: int) -> int:
        handle = _create(_NO_FILE, None, _READ_WRITE, size >> 32, size & 0xFFFFFFFF, None)
        if not handle:
            raise _refusal(size, ctypes.FormatError(ctypes.get_last_error()))
        return handle

    def view(handle: int, size: int) -> int:
        address = _map(handle, _ALL, 0, 0, size)
        if not address:
            raise _refusal(size, ctypes.FormatError(ctypes.get_last_error()))
        return address

    def forget(address: int, size: int, forget_view: Any = forget_view) -> None:
        forget_view(address)

    def close(handle: int) -> None:
        _close(handle)

    def identity(handle: int) -> Any:
        return os.urandom(16)  # which is sent along: the system has no name for a section

    def sendable(handle: int) -> Any:
        from multiprocessing.reduction import DupHandle

        return DupHandle(handle, _ALL)
else:
    import mmap

    _libc = ctypes.CDLL(None, use_errno=True)
    _map, forget = _libc.mmap, _libc.munmap
    _map.restype = ctypes.c_void_p
    _map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    forget.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _FAILED = ctypes.c_void_p(-1).value

    def create(size: int) -> int:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("norch", os.MFD_CLOEXEC)
        else:
            import tempfile

            fd, path = tempfile.mkstemp(prefix="norch-")
            os.unlink(path)
        try:
            os.ftruncate(fd, size)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def view(handle: int, size: int) -> int:
        address = _map(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, handle, 0)
        if address == _FAILED:
            raise _refusal(size, os.strerror(ctypes.get_errno()))
        return address

    close = os.close

    def identity(handle: int) -> Any:
        about = os.fstat(handle)
        return about.st_dev, about.st_ino

    def sendable(handle: int) -> Any:
        from multiprocessing.reduction import DupFd

        return DupFd(handle)
