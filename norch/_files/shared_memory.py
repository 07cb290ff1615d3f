"""Shared memory: blocks of bytes that several processes map, storages in them, and how these are sent.

A block is a section (section.py): a file without a name (memfd_create; where that is missing a temporary file that is
unlinked at once), on Windows a file mapping. It goes with the last process that maps it, however that ended: nothing is
left behind in /dev/shm, and the size of /dev/shm, which containers keep small, is no limit.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from .._binding.buffers import over_memory
from .._binding.library import lib
from .._binding.numbers import ints
from .._package.recording import unseen
from .._package.typing import Any
from ..autograd.view_history import base_of
from ..dtype import uint8
from ..errors import Error
from ..storage import Storage
from . import section


class Block:
    """size bytes of shared memory at an address of this process, unmapped with the last reference to the object. handle
    is that of a block of another process, and then belongs to this one; by default the block is new, and zero.
    """

    __slots__ = ("__weakref__", "_close", "_forget", "address", "handle", "identity", "size")

    def __init__(self, size: int, handle: int | None = None):
        self.size = max(size, 1)
        self.address: Any = None
        self.identity: Any = None
        # At the end of the interpreter the module may be gone before the block.
        self._forget, self._close = section.forget, section.close
        self.handle = section.create(self.size) if handle is None else handle
        self.address = section.view(self.handle, self.size)

    def __del__(self) -> None:
        if self.address is not None:
            self._forget(self.address, self.size)
        self.close()

    def close(self) -> None:
        """Releases the handle. The block stays mapped, and cannot be sent any more."""
        handle, self.handle = getattr(self, "handle", -1), -1
        if handle >= 0:
            self._close(handle)

    def write(self, offset: int, source: Any) -> None:
        """Copies a storage, or bytes, to offset."""
        if isinstance(source, Storage):
            elements = source.elements.cpu()
            ctypes.memmove(self.address + offset, elements._data_pointer, elements._numel)
        else:
            ctypes.memmove(self.address + offset, source, len(source))

    def read(self, count: int) -> bytes:
        """The first count bytes."""
        return ctypes.string_at(self.address, count)

    def storage(self, offset: int, count: int, owner: Any) -> Storage:
        """The storage of count bytes at offset, which keeps owner alive; owner holds this block, or is it."""
        return Storage(over_memory(self.address + offset, (count,), ints((1,)), uint8.code, owner))


# ---- tensors in shared memory ----------------------------------------------------------------------------------------

_shared: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()  # that hold one storage, by address
_by_identity: weakref.WeakValueDictionary[Any, Block] = weakref.WeakValueDictionary()  # the same, by identity


def _noted(block: Block, identity: Any) -> Block:
    block.identity = identity
    _by_identity[identity] = _shared[block.address] = block
    return block


def is_shared(self: Any) -> bool:
    """Whether the elements are in memory that other processes may see: after share_memory_(), or received from one.

    >>> norch.ones(2).is_shared()
    False
    """
    return self.is_cpu and lib.norch_view_storage(self)._address in _shared


def _references_of_two_owners() -> int:
    """What sys.getrefcount(x) gives if a container and the variable x refer to an object: 3, from Python 3.14 on 2."""
    container = [object()]
    x = container[0]
    return sys.getrefcount(x)


def share_memory_(self: Any) -> Any:
    """Moves the elements to shared memory. Processes that receive the tensor, or are forked later, see each other's
    writes. Does nothing to tensors of other devices, and to tensors that are shared already. Error if other tensors use
    the same memory, because they would keep the old one.

    >>> x = norch.ones(3).share_memory_()
    >>> x.is_shared(), x[1:].is_shared()
    (True, True)
    """
    if not self.is_cpu or is_shared(self):
        return self
    unseen("share_memory_ moves a tensor")
    whole = lib.norch_view_storage(self)
    views = lib.norch_storage_references(whole) - 2
    base = base_of(self)
    if base is not None and sys.getrefcount(base) == _references_of_two_owners():  # the view and this variable
        views -= 1
    if views:
        raise Error(
            f"share_memory_: {views} other tensor{'s see' if views > 1 else ' sees'} the memory of this one, which "
            "cannot be moved then; share it before views of it are taken"
        )
    block = _copied(Storage(whole))
    moved = block.storage(0, whole._numel, block)
    lib.norch_set_data(self, moved.seen_as(self.dtype, tuple(self.shape), self.stride(), self._offset))
    self._version_counter = self._view = None
    return self


def _copied(storage: Storage) -> Block:
    block = Block(storage.nbytes())
    block.write(0, storage)
    return _noted(block, section.identity(block.handle))


# ---- sending ---------------------------------------------------------------------------------------------------------

LARGE = 256 << 10  # bytes from which on a copy is a block: to pass a descriptor takes longer than to copy fewer

_copies: dict[Storage, Block] | None = None  # of what is sent to several processes at once


@contextmanager
def one_copy() -> Iterator[None]:
    """A context in which a tensor sent to several processes is copied into shared memory only once."""
    global _copies
    before, _copies = _copies, {}
    try:
        yield
    finally:
        _copies = before


def reduce_storage(storage: Storage) -> tuple[Any, ...]:
    """How multiprocessing pickles a storage: as the handle of its block. A storage that is not shared is copied, into a
    block or, if it is small, into the pickle.
    """
    from multiprocessing.context import get_spawning_popen

    block = _shared.get(storage.data_ptr()) or (_copies or {}).get(storage)
    if block is None:
        if storage.nbytes() < LARGE or storage.device.type != "cpu":
            return storage.__reduce_ex__(4)
        block = _copied(storage)
        if _copies is not None:
            _copies[storage] = block
    popen: Any = get_spawning_popen()
    if popen is not None:  # which passes the handle on after all has been pickled
        popen.norch_blocks = [*getattr(popen, "norch_blocks", ()), block]
    return received, (section.sendable(block.handle), storage.nbytes(), block.identity)


def received(sent: Any, count: int, identity: Any) -> Storage:
    """The storage whose block another process has sent; the same block is mapped once."""
    handle = sent.detach()
    block = _by_identity.get(identity)
    if block is None:
        block = _noted(Block(count, handle), identity)
    elif block.handle != handle:
        section.close(handle)
    return block.storage(0, count, block)


def send_tensors_by_sharing() -> None:
    """From now on queues, pipes and processes of multiprocessing send tensors through shared memory."""
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.register(Storage, reduce_storage)
