"""Code and objects that recordings trust, so that they are not compared, each with the reason.

Code is recognised by its file, functions and types in C by the name of their module.
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
    """Whether a module of this name is PyTorch's, and not norch's by norch.as_torch()."""
    if top != "torch":
        return False
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and not issubclass(tensor, Handle)


def is_own(module: str) -> bool:
    """Whether a module of norch's classes has this name."""
    top = module.partition(".")[0]
    return top == "norch" or (top == "torch" and not is_pytorch(top))


# ---- code, by its file (frames.py) -----------------------------------------------------------------------------------

STANDARD = os.path.dirname(os.__file__) + os.sep
# norch's modules, schedules and other objects that programs hold: the names in it are those of their attributes.
LAYERS_FILES = tuple(
    PACKAGE + one.replace("/", os.sep) for one in "nn/ amp/ distributions/ utils/ optim/lr_ optim/sched".split()
)
# They report, or make types and imports; what they read has no effect on numbers.
REPORTING_FILES = tuple(
    STANDARD + one.replace("/", os.sep)
    for one in (
        "warnings.py typing.py traceback.py linecache.py tokenize.py logging/ abc.py "
        "importlib/__init__.py importlib/_boot importlib/abc.py importlib/machinery.py importlib/util.py"
    ).split()
)
# Compute from their arguments (NumPy, SciPy), or watch the program (the others).
PACKAGE_FILES = tuple(
    f"{os.sep}site-packages{os.sep}{one}{os.sep}" for one in "numpy scipy _pytest pluggy coverage hypothesis".split()
)
FROZEN_FILES = ("<frozen importlib", "<frozen zipimport", "<frozen abc")  # as REPORTING_FILES

# ---- functions in C (frames.py) --------------------------------------------------------------------------------------

# Modules whose functions give the same for the same arguments, or whose arguments are looked into (guards.py).
SAME_MODULES = frozenset(
    "builtins math cmath operator _operator itertools _functools _collections _struct _json unicodedata _bisect _heapq "
    "_weakref _abc _thread zlib binascii _hashlib _md5 _sha1 _sha2 _sha256 _sha512 _blake2 _sre _string _stat marshal "
    "_warnings _pickle _codecs _imp array _typing _ast _io io _statistics errno atexit types".split()
)
# Functions of other modules that do so too, or that only write.
SAME_FUNCTIONS = frozenset(
    "intern exc_info exception settrace audit getfilesystemencoding "
    "fspath write mkdir fsync close isatty get_terminal_size sleep".split()
)

# Modules of types in C whose methods read what is outside the process, or what other threads change.
CHANGING_TYPES = frozenset("_socket mmap select sqlite3 _ssl _asyncio posix nt _multiprocessing _queue".split())

# ---- objects, by their type (walk.py) --------------------------------------------------------------------------------

# Types whose instances hold nothing that can change.
CONSTANT: tuple[Any, ...] = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, CodeType, Size, Device,
    DType, type(getattr(typing, "NoDefault", None)),  # which type variables of Python 3.13 hold
)  # fmt: skip
# Instances do not change; what they hold may. So it is with the types of C that follow.
HOLDERS = (slice, GenericAlias, type(int | str))

# The module and the name of the type. Instances do not change, or programs read nothing of them that does; frames.py
# sees the calls that do.
INERT_TYPES = {
    "re": ("Pattern", "Match"),
    "decimal": ("Decimal",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone", "tzinfo"),
    "zoneinfo": ("ZoneInfo",),
    "_thread": ("lock", "RLock"),  # lock.locked() is refused
    "operator": ("itemgetter", "attrgetter", "methodcaller"),
    "_json": ("Scanner", "Encoder"),  # of functions that run in Python, if they are the program's
    "_abc": ("_abc_data",),  # what register() adds is guarded by abc.get_cache_token()
    "functools": ("_lru_list_elem",),
    "_collections": ("_tuplegetter",),
    "collections": ("_tuplegetter",),
}
# They report.
INERT_MODULES = ("warnings.", "_pytest.", "unittest.case.", "unittest.runner.")
# They describe types; those in C do not change.
TYPING = ("typing", "_typing")
# NumPy's types in C whose instances hold numbers that do not change, or describe types, or are functions.
NUMPY_TYPES = frozenset(("generic", "dtype", "ufunc", "_ArrayFunctionDispatcher"))
