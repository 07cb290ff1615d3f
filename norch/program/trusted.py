"""Code and objects that recordings trust and do not compare, each with the reason.

Code is recognized by its file; functions and types in C by their module.
"""

from __future__ import annotations

import os
import sys
import typing
from types import CodeType, GenericAlias
from typing import Any

from .._tensor.handle import Device, DType, Handle, Size
from ..errors import PACKAGE

PYTORCH = "it reads a tensor or a setting of PyTorch's, which cannot be compared"


def is_pytorch(top: str) -> bool:
    """Whether a module of this name is PyTorch's, and not norch's under norch.as_torch()."""
    if top != "torch":
        return False
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and not issubclass(tensor, Handle)


def is_own(module: str) -> bool:
    """Whether a module of this name is one of norch's."""
    top = module.partition(".")[0]
    return top == "norch" or (top == "torch" and not is_pytorch(top))


# ---- code, by its file (frames.py) -----------------------------------------------------------------------------------

STANDARD = os.path.dirname(os.__file__) + os.sep
# norch's modules, schedules and other objects that programs hold: they read attributes by their own names.
LAYERS_FILES = tuple(
    PACKAGE + one.replace("/", os.sep) for one in "nn/ amp/ distributions/ utils/ optim/lr_ optim/sched".split()
)
# They report, or create types and imports; their reads do not affect results.
REPORTING_FILES = tuple(
    STANDARD + one.replace("/", os.sep)
    for one in (
        "warnings.py typing.py traceback.py linecache.py tokenize.py logging/ abc.py "
        "importlib/__init__.py importlib/_boot importlib/abc.py importlib/machinery.py importlib/util.py"
    ).split()
)
# Compute from their arguments (NumPy, SciPy), or observe the program (the others).
PACKAGE_FILES = tuple(
    f"{os.sep}site-packages{os.sep}{one}{os.sep}" for one in "numpy scipy _pytest pluggy coverage hypothesis".split()
)
FROZEN_FILES = ("<frozen importlib", "<frozen zipimport", "<frozen abc")  # like REPORTING_FILES

# ---- functions in C (frames.py) --------------------------------------------------------------------------------------

# Modules whose functions are pure, or whose arguments guards.py examines.
SAME_MODULES = frozenset(
    "builtins math cmath operator _operator itertools _functools _collections _struct _json unicodedata _bisect _heapq "
    "_weakref _abc _thread zlib binascii _hashlib _md5 _sha1 _sha2 _sha256 _sha512 _blake2 _sre _string _stat marshal "
    "_warnings _pickle _codecs _imp array _typing _ast _io io _statistics errno atexit types".split()
)
# Functions of other modules that are pure or only write.
SAME_FUNCTIONS = frozenset(
    "intern exc_info exception settrace audit getfilesystemencoding "
    "fspath write mkdir fsync close isatty get_terminal_size sleep".split()
)

# Modules of types in C whose methods read data from outside the process, or that other threads change.
CHANGING_TYPES = frozenset("_socket mmap select sqlite3 _ssl _asyncio posix nt _multiprocessing _queue".split())

# ---- objects, by their type (walk.py) --------------------------------------------------------------------------------

# Types with immutable instances that hold nothing mutable.
CONSTANT: tuple[Any, ...] = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, CodeType, Size, Device,
    DType, type(getattr(typing, "NoDefault", None)),  # type variables of Python 3.13 hold it
)  # fmt: skip
# Immutable types whose instances may hold mutable values. So do the types in C that follow.
HOLDERS = (slice, GenericAlias, type(int | str))

# {module: types}. Instances are immutable, or programs read nothing mutable from them; frames.py sees the calls that
# do.
INERT_TYPES = {
    "re": ("Pattern", "Match"),
    "decimal": ("Decimal",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone", "tzinfo"),
    "zoneinfo": ("ZoneInfo",),
    "_thread": ("lock", "RLock"),  # lock.locked() is refused
    "operator": ("itemgetter", "attrgetter", "methodcaller"),
    "_json": ("Scanner", "Encoder"),  # their functions in Python are code of the program
    "_abc": ("_abc_data",),  # register() is guarded by abc.get_cache_token()
    "functools": ("_lru_list_elem",),
    "_collections": ("_tuplegetter",),
    "collections": ("_tuplegetter",),
}
# These only report.
INERT_MODULES = ("warnings.", "_pytest.", "unittest.case.", "unittest.runner.")
# They describe types; those in C are immutable.
TYPING = ("typing", "_typing")
# NumPy's types in C whose instances are immutable numbers, type descriptions or functions.
NUMPY_TYPES = frozenset(("generic", "dtype", "ufunc", "_ArrayFunctionDispatcher"))
