"""Frames: the Python code that runs while a function is recorded, and calls in it that cannot be repeated.

Code is classified by its file:

    trusted  code of norch, of NumPy, and of modules that only report: its reads are not examined
    layers   norch's modules, schedules and other objects that programs hold: reads attributes of the same names
    library  Python's library: like trusted if norch or trusted code calls it, else like user
    user     everything else
"""

from __future__ import annotations

import _warnings
import dis
import gc
import os
import sys
from abc import ABCMeta, get_cache_token
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS, signature
from types import CodeType, ModuleType
from typing import Any

from .._tensor.handle import Device, DType, Handle, Size
from ..errors import PACKAGE
from ..nn.module import Module
from .bytecode import Reads, reads_of
from .fields import is_a
from .trusted import (
    CHANGING_TYPES,
    FROZEN_FILES,
    LAYERS_FILES,
    PACKAGE_FILES,
    PYTORCH,
    REPORTING_FILES,
    SAME_FUNCTIONS,
    SAME_MODULES,
    STANDARD,
    is_pytorch,
)

_FILE = "it reads a file; read it outside the function"
_THREAD = "it starts a thread, whose code is not seen; start it outside the function"
_IDENT = "it asks which thread it runs in; pass what depends on that as an argument"
_OUTSIDE = "call it outside the function, and pass what it gives as an argument"
_LOCK = "it asks whether a lock is free; ask outside the function, and pass the answer as an argument"
_UNPICKLES = "it unpickles, which finds classes and functions by their names; do so outside the function"
_PROFILE = "it sets a profile function, which hides code; profile the calls of the captured function"

_OF_SETTINGS = (bool, int, float, str, DType, Device)  # types of arguments and results
_THREADING, _LOGGING = STANDARD + "threading.py", os.path.join(STANDARD, "logging", "__init__.py")

TRUSTED, LAYERS, LIBRARY, USER = range(4)

# isinstance() with an abstract class calls these. They, and the patterns [...] and {...}, read what register() adds.
_OF_ABSTRACT = tuple(getattr(ABCMeta, f"__{name}check__").__code__ for name in ("instance", "subclass"))

_SIGNATURE = signature.__code__
# The attributes of functions, classes and objects that signature() reads.
_OF_SIGNATURE = frozenset(
    "__signature__ __wrapped__ __annotations__ __defaults__ __kwdefaults__ __call__ __init__ __new__".split()
)

_WARN = (_warnings.warn, _warnings.warn_explicit)
_EXCEPTION = (sys.exc_info, getattr(sys, "exception", sys.exc_info))

# A recording depends on the first two; the others reveal whether a function is recorded.
_MODES = ("is_grad_enabled", "get_default_dtype", "is_compiling", "is_dynamo_compiling", "is_exporting", "is_tracing")

# {function in C of an otherwise trusted module: why it is refused}
_REFUSED = {
    "io.open": _FILE, "_io.open": _FILE, "_io.open_code": _FILE, "numpy.fromfile": _FILE, "builtins.input": _FILE,
    "_pickle.load": _UNPICKLES, "_pickle.loads": _UNPICKLES,
    "_thread.start_new_thread": _THREAD, "_thread.start_joinable_thread": _THREAD,
    "sys.setprofile": _PROFILE, "sys._setprofileallthreads": _PROFILE,
    "_thread.get_ident": _IDENT, "_thread.get_native_id": _IDENT,
    "_thread.stack_size": "it reads a setting of threads; pass it as an argument",
    "atexit._ncallbacks": "it counts functions of atexit; pass what depends on that as an argument",
    **dict.fromkeys(("_weakref.getweakrefcount", "_weakref.getweakrefs"),
                    "it asks for the weak references to an object; pass what depends on that as an argument"),
    "_thread._count": "it counts threads; pass what depends on that as an argument",
}  # fmt: skip
# {file of trusted code: {function that reads more than its arguments: why it is refused}}
_REFUSED_FUNCTIONS = {
    f"{os.sep}numpy{os.sep}": dict.fromkeys(
        "geterr getbufsize geterrcall geterrobj get_printoptions array2string array_repr array_str "
        "_array_repr_implementation _array_str_implementation".split(),
        "it reads a setting of NumPy's; read it outside the function, and pass it as an argument",
    ),
    f"{os.sep}logging{os.sep}": dict.fromkeys(
        "getLevelName getLevelNamesMapping getHandlerByName getHandlerNames".split(),
        "it reads names of logging's; read them outside the function, and pass them as arguments",
    ),
    f"{os.sep}typing.py": {"get_type_hints": "it evaluates annotations; do so outside the function"},
    f"{os.sep}traceback.py": dict.fromkeys(
        "extract_stack format_stack walk_stack".split(),
        "it reads which functions call it; pass what depends on that as an argument",
    ),
    "<frozen importlib": {"get_data": _FILE},  # of a module's loader
    "linecache.py": dict.fromkeys("getline getlines updatecache".split(), _FILE),
}


@lru_cache(maxsize=4096)
def kind_of(file: str) -> int:
    """The class of the code in a file."""
    if file.startswith(PACKAGE):
        return LAYERS if file.startswith(LAYERS_FILES) else TRUSTED
    if file.startswith("<frozen"):
        return TRUSTED if file.startswith(FROZEN_FILES) else LIBRARY
    if any(part in file for part in PACKAGE_FILES):
        return TRUSTED
    if file.startswith(STANDARD) and "site-packages" not in file:
        return TRUSTED if file.startswith(REPORTING_FILES) else LIBRARY
    return USER


class Frames:
    """called_from  {id of code of Python's library: file and line of the user's code that called it}
    codes     {(id of the code, id of its globals): (code, globals, builtins, kind)} of all code that ran
    names     attributes that inspect.signature() reads, whose code is not examined
    loggers   those that the code calls or looks up
    warns     whether a warning is given; reads_exception: whether the code asks for the exception that the
              function's caller handles; asks_abstract: whether it compares classes with abstract ones
    settings  {the function and its arguments: function of norch that returned a number or text, with its arguments}
    refusal   (text, file, line) of the first call that cannot be repeated, or None
    """

    def __init__(self) -> None:
        self.codes: dict[tuple[int, int], tuple[CodeType, dict[str, Any], dict[str, Any], int]] = {}
        self.called_from: dict[int, tuple[str, int]] = {}
        self.refusal: tuple[str, str, int] | None = None
        self.settings: dict[Any, Any] = {}
        self._constants: dict[int, tuple[Any, ...]] = {}  # {id of a frame: the arguments of a function of norch}
        self.names: frozenset[str] = frozenset()
        self.loggers: set[Any] = set()
        self.warns = self.reads_exception = self.asks_abstract = False
        self._handled: Any = None
        self._before: Any = None
        self._tensors: set[tuple[int, str]] = set()  # code and local variables that were plain tensors
        self._not_tensors: set[tuple[int, str]] = set()  # code and local variables that were something else

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A context that records the code that this thread runs."""
        before = self._before = sys.getprofile()
        self._handled = sys.exc_info()[1]
        sys.setprofile(self._note)
        try:
            yield
        finally:
            self._handled = None
            if sys.getprofile() != self._note:
                self._refuse(_PROFILE, sys._getframe())
            sys.setprofile(before if callable(before) else None)
            if before is not None and not callable(before) and hasattr(before, "enable"):  # cProfile
                before.enable()

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        if callable(self._before):
            self._before(frame, event, argument)
        code = frame.f_code
        if event == "call":
            if code is _SIGNATURE:
                self.names |= _OF_SIGNATURE
            key = (id(code), id(frame.f_globals))
            if key not in self.codes:
                kind = _kind_here(frame)
                if kind != TRUSTED and not (gc.callbacks and _collects_garbage(frame)):
                    self.codes[key] = (code, frame.f_globals, frame.f_builtins, kind)
                    if kind == LIBRARY:
                        self.called_from[id(code)] = _user_line(frame)
            if key in self.codes:
                self._note_locals(frame, code)
                self.asks_abstract |= reads_of(code).matches_kinds
            self.asks_abstract |= code in _OF_ABSTRACT
            if self.refusal is None and frame.f_back is not None and kind_of(code.co_filename) == TRUSTED:
                refused = _refused_function(code)
                if refused is not None and _kind_here(frame.f_back) >= LIBRARY:
                    self._refuse(refused, frame.f_back)
            if frame.f_back is not None and code.co_filename.startswith(PACKAGE):
                self._note_constants(frame, code)
        elif event == "return":
            if (id(code), id(frame.f_globals)) in self.codes:
                self._note_locals(frame, code)
            constants = self._constants.pop(id(frame), None)
            if constants is not None and is_a(argument, _OF_SETTINGS):
                self._note_setting(frame, code, constants)
            if code.co_filename == _LOGGING and frame.f_back is not None:
                self._note_logger(frame, argument)
        elif event == "c_call" and self.refusal is None:
            self.warns |= argument in _WARN
            self.asks_abstract |= argument is get_cache_token
            self.reads_exception |= argument in _EXCEPTION and sys.exc_info()[1] is self._handled
            refused = what_is_read(argument)
            if argument.__name__ == "acquire" and _may_not_wait(argument, frame):
                refused = _LOCK
            if refused is None or _collects_garbage(frame):
                return
            if refused is _IDENT and _makes_thread(frame):
                refused = _THREAD
            if _kind_here(frame) >= LIBRARY or (refused is _FILE and _reads_for_user(frame)):
                self._refuse(refused, frame)

    def _refuse(self, reason: str, frame: Any) -> None:
        if self.refusal is None:
            self.refusal = (reason, *_user_line(frame))

    def _note_logger(self, frame: Any, result: Any) -> None:
        """Notes a logger that code outside logging calls, by a method, an adapter or a function of the module."""
        if kind_of(frame.f_back.f_code.co_filename) < LIBRARY:
            return
        logging = sys.modules["logging"]
        owner = frame.f_locals.get("self", None if frame.f_code.co_varnames[:1] == ("self",) else logging.root)
        while is_a(owner, logging.LoggerAdapter):
            owner = owner.logger
        self.loggers.update(logger for logger in (owner, result) if is_a(logger, logging.Logger))

    def _note_locals(self, frame: Any, code: CodeType) -> None:
        """Notes the types of local variables that are bound once."""
        names = reads_of(code).of_locals
        if names:
            values = frame.f_locals
            for name in names:
                if name in values:
                    is_tensor = _is_plain_tensor(values[name])
                    (self._tensors if is_tensor else self._not_tensors).add((id(code), name))

    def attributes_of_locals(self, code: CodeType) -> Iterator[tuple[bool, bool, str, int]]:
        """(whether of tensors, whether of other values, name, line) of attributes that are read from local
        variables."""
        for local, attributes in reads_of(code).of_locals.items():
            key = (id(code), local)
            for name, line in attributes.items():
                yield key in self._tensors, key in self._not_tensors, name, line

    def place_of(self, code: CodeType, line: int) -> tuple[str, int]:
        """The place where code reads something; for Python's library, the user's line that called it."""
        return self.called_from.get(id(code), (code.co_filename, line))

    def _note_constants(self, frame: Any, code: CodeType) -> None:
        """Notes the arguments of a function of norch that other code calls, if they are constants, or the object whose
        method without arguments or property it is. The function may assign other values to their names."""
        if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR) or code.co_name in _MODES:
            return
        if kind_of(frame.f_back.f_code.co_filename) < LIBRARY:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [frame.f_locals.get(name) for name in names]
        if names[:1] == ("self",):
            noted = len(names) == 1 and not is_a(values[0], (Handle, Module, Size, DType, Device, type(None)))
        else:
            noted = all(value is None or is_a(value, _OF_SETTINGS) for value in values)
        if noted:
            self._constants[id(frame)] = tuple(values)

    def _note_setting(self, frame: Any, code: CodeType, constants: tuple[Any, ...]) -> None:
        """Notes a function of norch, or a method or property of its objects, that returned a number or text."""
        function: Any = frame.f_globals.get(code.co_name)
        if code.co_varnames[:1] == ("self",):
            function = getattr(type(constants[0]), code.co_name, None)
            function = function.fget if type(function) is property else function
        if getattr(function, "__code__", None) is code:
            named = dict(zip(code.co_varnames[code.co_argcount : len(constants)], constants[code.co_argcount :]))
            key = (code, *((type(x), x if is_a(x, _OF_SETTINGS) else id(x)) for x in constants))
            self.settings[key] = partial(function, *constants[: code.co_argcount], **named)

    def reads(self) -> Iterator[tuple[Reads, CodeType, dict[str, Any], dict[str, Any], int]]:
        for code, variables, builtins, kind in self.codes.values():
            yield reads_of(code), code, variables, builtins, kind


def _kind_here(frame: Any) -> int:
    kind = kind_of(frame.f_code.co_filename)
    while kind == LIBRARY:
        if frame.f_code is _SIGNATURE:  # see Frames.names
            return TRUSTED
        frame = frame.f_back
        if frame is None:
            return LIBRARY
        caller = kind_of(frame.f_code.co_filename)
        if caller != LIBRARY:
            return LIBRARY if caller == USER else TRUSTED
    return kind


def _collects_garbage(frame: Any) -> bool:
    """Whether a frame belongs to gc.callbacks or is called by one."""
    codes = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None


def _user_line(frame: Any) -> tuple[str, int]:
    """File and line of the innermost caller in the user's code."""
    first = frame
    while frame is not None and kind_of(frame.f_code.co_filename) != USER:
        frame = frame.f_back
    frame = frame or first
    return frame.f_code.co_filename, frame.f_lineno


@lru_cache(maxsize=4096)
def _refused_function(code: CodeType) -> str | None:
    for file, functions in _REFUSED_FUNCTIONS.items():
        if file in code.co_filename and code.co_name in functions:
            return functions[code.co_name]
    return None


def _reads_for_user(frame: Any) -> bool:
    """Whether a file is read by a function whose purpose is loading: load() of norch or NumPy, linecache."""
    while frame is not None and (kind := kind_of(frame.f_code.co_filename)) < LIBRARY or kind == LIBRARY:
        if frame.f_code.co_filename.startswith(("<frozen importlib", *REPORTING_FILES)):
            return False
        frame = frame.f_back
    return frame is not None


def _is_plain_tensor(x: Any) -> bool:
    return is_a(x, Handle) and type(x).__module__.startswith("norch.")


def _makes_thread(frame: Any) -> bool:
    while frame is not None and frame.f_code.co_filename == _THREADING:
        if frame.f_code.co_name in ("__init__", "start"):
            return True
        frame = frame.f_back
    return False


def _may_not_wait(function: Any, frame: Any) -> bool:
    """Whether a lock's acquire() has arguments, so that it may return False."""
    if type(function.__self__).__module__ != "_thread" or frame.f_code.co_name == "_is_owned":
        return False  # Condition tests whether it holds its lock
    code, at = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[at]]
    return code[at + 1] > 0 if name in ("CALL", "CALL_FUNCTION", "CALL_METHOD") else name.startswith("CALL")


def what_is_read(function: Any) -> str | None:
    """A value that a builtin function reads and no guard can compare, or None."""
    owner, name = getattr(function, "__self__", None), function.__name__
    if is_a(owner, ModuleType) or owner is None:
        module = owner.__name__ if owner is not None else str(getattr(function, "__module__", ""))
        if module.startswith("numpy."):
            module = "numpy"
        if (refused := _REFUSED.get(f"{module}.{name}")) is not None:
            return refused
        if is_pytorch(module.partition(".")[0]):
            return f"{PYTORCH} ({name}); {_OUTSIDE}"
        if owner is None or module in SAME_MODULES or module not in sys.stdlib_module_names or name in SAME_FUNCTIONS:
            return None
        return f"it calls {module}.{name}, whose result may change; call it outside the function"
    kind = str(type(owner).__module__)
    if is_pytorch(kind.partition(".")[0]):
        return f"{PYTORCH} ({name}); {_OUTSIDE}"
    if kind == "datetime" or is_a(owner, type):
        if name in ("timestamp", "fromtimestamp", "astimezone"):
            return f"it reads the time zone ({name}); {_OUTSIDE}"
        if name == "strftime":
            return f"it reads the language of the process ({name}); {_OUTSIDE}"
    randoms = sys.modules.get("_random")
    if randoms is not None and is_a(owner, randoms.Random):
        return f"it draws random numbers of Python's ({name})"
    if is_a(owner, type):
        return f"it reads the clock ({name})" if name in ("now", "utcnow", "today") else None
    if kind == "_io" and name.startswith(("read", "get")):
        return _FILE
    modules = {str(cls.__module__) for cls in type(owner).__mro__}  # also cProfile.Profile and pickle.Unpickler
    if "_lsprof" in modules:
        return _PROFILE
    if "_pickle" in modules and name in ("load", "find_class"):
        return _UNPICKLES
    if not CHANGING_TYPES.isdisjoint(modules):
        return f"it calls {name} of a {type(owner).__name__}, whose result may change; {_OUTSIDE}"
    if kind == "_thread" and name == "locked":
        return "it asks whether a lock is held; ask outside the function, and pass the answer as an argument"
    return None
