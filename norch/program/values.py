"""Questions about single values, for guards.py: who has defined one, what code does with it."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
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
from .conditions import absent
from .containers import Place
from .fields import is_a
from .frames import USER, kind_of

IN_C = (
    BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
    type(dict.__dict__["fromkeys"]),
)  # fmt: skip

# Names in the dict of a class that say nothing about its instances.
NOT_READ = frozenset(
    "__module__ __doc__ __dict__ __weakref__ __annotations__ __qualname__ __slots__ __parameters__ __orig_bases__ "
    "__abstractmethods__ __firstlineno__ __static_attributes__ __annotate__ __annotate_func__ __annotations_cache__ "
    "__match_args__ __dataclass_params__ __dataclass_fields__".split()
)

_DICTS, _NUMBERS, _WRITTEN = (dict, defaultdict, Counter), (int, float, complex), (list, set, deque, dict)


def is_only_counted(value: Any, uses: Iterable[Use]) -> bool:
    """Whether value is only replaced by what is added to it."""
    counted = all(one.kind == "counted" and one.key is None for one in uses)
    return counted and value is not absent and is_only_used(value, uses)


def is_only_used(value: Any, uses: Iterable[Use]) -> bool:
    """Whether the values of code need nothing of value, as it is only written to."""
    for use in uses:
        held = value
        if use.key is not None:
            if type(value) not in _DICTS:
                return False
            held = value.get(use.key, absent)
        if use.kind == "counted":
            if held is not absent and type(held) not in _NUMBERS and not is_a(held, Handle):
                return False
        elif type(held) not in (_WRITTEN if use.kind == "appended" else (dict, list)):
            return False
    return True


def is_defined_by_user(value: Any) -> bool:
    """Whether a value in a module or a class of a library is not one of that library's definitions."""
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


def levels(logger: Any) -> tuple[Any, ...]:
    """What decides whether a logger reports."""
    found = [logger.manager.disable]
    while logger is not None:
        found += [logger.level, logger.disabled, logger.propagate, *logger.handlers, *logger.filters]
        logger = logger.parent
    return tuple(found)


def place_of_function(function: Any) -> Place | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None) if not is_a(function, dict) else None
    return (code.co_filename, code.co_firstlineno) if type(code) is CodeType else None


def reads_of_cell(code: CodeType, name: str, ran: set[int]) -> Iterator[Read]:
    """The loads of a variable of an outer function in code, and in functions within it that ran."""
    yield from (one for one in reads_of(code).variables if one.kind == "cell" and one.name == name)
    for constant in code.co_consts:
        if is_a(constant, CodeType) and id(constant) in ran and name in constant.co_freevars:
            yield from reads_of_cell(constant, name, ran)


def note_inner(code: CodeType, found: set[int]) -> None:
    for constant in code.co_consts:
        if is_a(constant, CodeType):
            found.add(id(constant))
            note_inner(constant, found)
