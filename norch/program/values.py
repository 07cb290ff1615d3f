"""Properties of single values, for guards.py: where a value was defined, how code uses it."""

from __future__ import annotations

import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from .._tensor.handle import Handle
from .bytecode import Read, Use, reads_of
from .conditions import Place, absent
from .fields import is_a, is_made_by_class_statement
from .frames import USER, kind_of
from .trusted import INERT_MODULES, INERT_TYPES, is_own

IN_C = (
    BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
    type(dict.__dict__["fromkeys"]), type(re.compile("").search),
)  # fmt: skip

# Names in a class's dict that do not concern its instances.
NOT_READ = frozenset(
    "__doc__ __dict__ __weakref__ __annotations__ __qualname__ __slots__ __parameters__ __orig_bases__ "
    "__abstractmethods__ __firstlineno__ __static_attributes__ __annotate__ __annotate_func__ __annotations_cache__ "
    "__match_args__ __dataclass_params__ __dataclass_fields__".split()
)

_DICTS, _NUMBERS, _WRITTEN = (dict, defaultdict, Counter), (int, float, complex), (list, set, deque, dict)
_ASSIGNED = (dict, defaultdict, OrderedDict, list)


def is_only_counted(value: Any, uses: Iterable[Use]) -> bool:
    """Whether code only increments value."""
    counted = all(use.kind == "counted" and use.key is None for use in uses)
    return counted and value is not absent and is_only_used(value, uses)


def is_only_used(value: Any, uses: Iterable[Use]) -> bool:
    """Whether code only writes to value, so that it does not depend on it."""
    for use in uses:
        held = value
        if use.key is not None:
            if type(value) not in _DICTS:
                return False
            held = value.get(use.key, absent)
        if use.kind == "counted":
            if held is not absent and type(held) not in _NUMBERS and not is_a(held, Handle):
                return False
        elif type(held) not in (_WRITTEN if use.kind == "appended" else _ASSIGNED):
            return False
    return True


def _has_file_of_library(module: Any) -> bool:
    """Whether a module is not the program's: built in, frozen, or from a library's file."""
    if not is_a(module, ModuleType):
        return False
    variables = ModuleType.__getattribute__(module, "__dict__")
    file, spec = variables.get("__file__"), variables.get("__spec__")
    if type(file) is str:
        return kind_of(file) != USER
    return getattr(spec, "origin", None) in ("built-in", "frozen") and variables.get("__name__") == spec.name


def _has_name_of_library(module: Any) -> bool:
    top = str(module).partition(".")[0]
    return is_own(top) or top in ("numpy", "builtins") or (top in sys.stdlib_module_names and top != "__main__")


def is_module_of_library(module: ModuleType) -> bool:
    """Whether a module belongs to norch, NumPy or Python, and is not a module of the program with such a name."""
    name = ModuleType.__getattribute__(module, "__dict__").get("__name__")
    return _has_name_of_library(name) and _has_file_of_library(module)


def is_class_of_library(cls: type) -> bool:
    """Whether a class is defined in such a module. Classes in C name their module. A class statement may claim any
    module, so the module must contain the class, or the first method must come from a library's file."""
    name = type.__getattribute__(cls, "__module__")
    if is_own(str(name)) or not is_made_by_class_statement(cls):
        return _has_name_of_library(name)
    return _has_name_of_library(name) and _is_found_in_its_module(cls, name)


def _is_found_in_its_module(cls: type, name: str) -> bool:
    if not _has_file_of_library(sys.modules.get(name)):
        return False
    value: Any = sys.modules[name]
    for part in str(type.__getattribute__(cls, "__qualname__")).split("."):
        value = (value.__dict__ if is_a(value, (ModuleType, type)) else {}).get(part)
    functions = (attribute for attribute in cls.__dict__.values() if type(attribute) is FunctionType)
    return value is cls or any(kind_of(attribute.__code__.co_filename) != USER for attribute in functions)


def is_inert(cls: type) -> bool:
    """Whether instances of a class are not compared (trusted.py)."""
    module = str(type.__getattribute__(cls, "__module__"))
    named = cls.__name__ in INERT_TYPES.get(module, ()) or f"{module}.".startswith(INERT_MODULES)
    return named and (not is_made_by_class_statement(cls) or _is_found_in_its_module(cls, module))


def is_defined_by_user(value: Any) -> bool:
    """Whether the program has put a value into a module or class of a library."""
    function = value.fget if type(value) is property else getattr(value, "__func__", value)
    if type(function) is FunctionType:
        return kind_of(function.__code__.co_filename) == USER
    if is_a(function, (type, ModuleType)) or type(function) in (
        *IN_C,
        MemberDescriptorType,
        GetSetDescriptorType,
    ):
        return False
    return function is not absent


def place_of_function(function: Any) -> Place | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None) if not is_a(function, dict) else None
    return (code.co_filename, code.co_firstlineno) if type(code) is CodeType else None


def reads_of_cell(code: CodeType, name: str, ran: set[int]) -> Iterator[Read]:
    """The loads of an outer function's variable in code, and in inner functions that ran."""
    yield from (variable for variable in reads_of(code).variables if variable.kind == "cell" and variable.name == name)
    for constant in code.co_consts:
        if is_a(constant, CodeType) and id(constant) in ran and name in constant.co_freevars:
            yield from reads_of_cell(constant, name, ran)


def note_inner(code: CodeType, ids: set[int]) -> None:
    for constant in code.co_consts:
        if is_a(constant, CodeType):
            ids.add(id(constant))
            note_inner(constant, ids)
