"""Frames: which code of Python runs while a function is recorded, and what of it cannot be repeated.

Code is of one of these kinds, by its file:

    quiet    norch's own, NumPy's, and that of modules that only report: what it reads is not looked at
    layers   norch's modules, schedules and other objects that programs hold: its names are those of their attributes
    library  Python's own: as quiet if norch or quiet code calls it, else as the user's
    user     everything else
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, MethodType, ModuleType
from typing import Any

from .._handle import Device, DType, Handle, Size
from ..errors import PACKAGE
from ..nn.module import Module
from .bytecode import Reads, reads_of

QUIET, LAYERS, LIBRARY, USER = range(4)

_STANDARD = os.path.dirname(os.__file__) + os.sep
_NAMES_OF_LAYERS = tuple(PACKAGE + one for one in "nn/ amp/ distributions/ utils/ optim/lr_ optim/sched".split())
_REPORT = tuple(
    _STANDARD + one
    for one in "warnings.py typing.py traceback.py linecache.py tokenize.py importlib logging abc.py".split()
)
_PACKAGES = tuple(
    f"{os.sep}site-packages{os.sep}{one}" for one in "numpy scipy _pytest pluggy coverage hypothesis".split()
)

# Python's own modules in C whose functions give the same for the same arguments, or which are looked into (guards.py).
_SAME = frozenset(
    "builtins math cmath operator _operator itertools _functools _collections _struct _json unicodedata _bisect _heapq "
    "_weakref _abc _thread zlib binascii _hashlib _md5 _sha1 _sha2 _sha256 _sha512 _blake2 _sre _string _stat marshal "
    "_warnings _pickle _codecs _imp array _typing _ast _io io _csv _statistics errno atexit types".split()
)
_ALSO_SAME = frozenset("intern getsizeof exc_info exception setprofile settrace audit getfilesystemencoding".split())
_NOT_SAME = frozenset("_io.open io.open builtins.input _thread.get_ident _thread._count".split())
# Recordings are for one of the first two; the others say whether a function is recorded.
_MODES = ("is_grad_enabled", "get_default_dtype", "is_compiling", "is_dynamo_compiling", "is_exporting", "is_tracing")
_ONLY_WRITE = frozenset("fspath write mkdir fsync close isatty get_terminal_size sleep".split())


@lru_cache(maxsize=4096)
def kind_of(file: str) -> int:
    """The kind of code of a file."""
    if file.startswith(PACKAGE):
        return LAYERS if file.startswith(_NAMES_OF_LAYERS) else QUIET
    if file.startswith("<frozen"):
        return QUIET if file.startswith(("<frozen importlib", "<frozen zipimport", "<frozen abc")) else LIBRARY
    if any(one in file for one in _PACKAGES):
        return QUIET
    if file.startswith(_STANDARD) and "site-packages" not in file:
        return QUIET if file.startswith(_REPORT) else LIBRARY
    return USER


class Frames:
    """codes     {(id of the code, id of its globals): (code, globals, builtins, kind)} of all code that ran
    settings  {function of norch that was called without arguments: its result}
    refusal   (text, file, line) of the first call that cannot be repeated; None: there was none
    """

    def __init__(self) -> None:
        self.codes: dict[tuple[int, int], tuple[CodeType, dict[str, Any], dict[str, Any], int]] = {}
        self.refusal: tuple[str, str, int] | None = None
        self.settings: dict[Any, Any] = {}
        self._before: Any = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """For the run of the function: the code of this thread is noted."""
        before = self._before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before if callable(before) else None)
            if before is not None and not callable(before) and hasattr(before, "enable"):  # cProfile
                before.enable()

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        if self._before is not None and callable(self._before):
            self._before(frame, event, argument)
        code = frame.f_code
        if event == "call":
            key = (id(code), id(frame.f_globals))
            if key not in self.codes:
                kind = _kind_here(frame)
                if kind != QUIET and not (gc.callbacks and _collects_garbage(frame)):
                    self.codes[key] = (code, frame.f_globals, frame.f_builtins, kind)
        elif event == "return":
            if argument is not None and frame.f_back is not None and kind_of(code.co_filename) < LIBRARY:
                self._note_setting(frame, code, argument)
        elif event == "c_call" and self.refusal is None and kind_of(code.co_filename) >= LIBRARY:
            what = _reads(argument)
            if what is not None and _kind_here(frame) >= LIBRARY and not _collects_garbage(frame):
                while kind_of(frame.f_code.co_filename) == LIBRARY and frame.f_back is not None:
                    frame = frame.f_back
                self.refusal = (what, frame.f_code.co_filename, frame.f_lineno)

    def _note_setting(self, frame: Any, code: CodeType, result: Any) -> None:
        """Notes a function of norch, or a method of one of its objects, that code outside it has called without
        arguments, and that gave a number or a text."""
        if (
            not isinstance(result, (bool, int, float, str, DType, Device))
            or not code.co_filename.startswith(PACKAGE)
            or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR)
            or code.co_argcount + code.co_kwonlyargcount > 1
            or kind_of(frame.f_back.f_code.co_filename) < LIBRARY
        ):
            return
        function: Any = frame.f_globals.get(code.co_name)
        if code.co_varnames[:1] == ("self",):
            owner = frame.f_locals.get("self")
            if isinstance(owner, (Handle, Module, Size, DType, Device)) or owner is None:
                return
            function = getattr(type(owner), code.co_name, None)
            if getattr(function, "__code__", None) is code:
                self.settings[MethodType(function, owner)] = result
        elif not code.co_argcount and getattr(function, "__code__", None) is code and code.co_name not in _MODES:
            self.settings[function] = result

    def reads(self) -> Iterator[tuple[Reads, CodeType, dict[str, Any], dict[str, Any], int]]:
        for code, variables, builtins, kind in self.codes.values():
            yield reads_of(code), code, variables, builtins, kind


def _kind_here(frame: Any) -> int:
    kind = kind_of(frame.f_code.co_filename)
    while kind == LIBRARY:
        frame = frame.f_back
        if frame is None:
            return LIBRARY
        caller = kind_of(frame.f_code.co_filename)
        if caller != LIBRARY:
            return LIBRARY if caller == USER else QUIET
    return kind


def _collects_garbage(frame: Any) -> bool:
    """Whether a frame is that of one of gc.callbacks, or called by it."""
    codes = [getattr(one, "__code__", None) for one in gc.callbacks]
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None


def _reads(function: Any) -> str | None:
    """What a builtin function reads that no guard can compare; None: nothing."""
    owner, name = getattr(function, "__self__", None), function.__name__
    if isinstance(owner, ModuleType):
        module = owner.__name__
        same = module in _SAME or module not in sys.stdlib_module_names or name in _ONLY_WRITE or name in _ALSO_SAME
        return (
            None if same and (module, name) not in _NOT_SAME else f"it calls {module}.{name}, whose result may change"
        )
    randoms = sys.modules.get("_random")
    if randoms is not None and isinstance(owner, randoms.Random):
        return f"it draws random numbers of Python's ({name})"
    if isinstance(owner, type):
        return f"it reads the clock ({name})" if name in ("now", "utcnow", "today") else None
    if type(owner).__module__ == "_io" and name.startswith(("read", "get")):
        return f"it reads a file ({name})"
    return None
