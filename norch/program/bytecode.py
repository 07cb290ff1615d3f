"""What a code object can read of Python's values: its variables, and the names of attributes."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

# Methods of lists, sets, deques and dicts that only write, and so need not find the container as it was.
WRITES = frozenset(("append", "appendleft", "extend", "extendleft", "add", "insert"))
# Functions that read attributes whose names do not stand in the code.
_ANY = frozenset(
    "vars dir __dict__ __getattribute__ attrgetter methodcaller dumps eval exec locals __getstate__ __reduce__ "
    "__reduce_ex__ format format_map".split()
)
# Functions that read variables whose names do not stand in the code as such.
_ANY_VARIABLE = frozenset(("eval", "exec", "globals", "f_globals", "__globals__"))
# Functions that find modules by names which do not stand in the code.
_ANY_MODULE = frozenset(("modules", "import_module", "__import__"))

_BY_TEXT = frozenset(("getattr", "hasattr", "setattr", "delattr"))

_VARIABLE = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_FROM_DICT_OR_GLOBALS": "global",
    "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell",
    "LOAD_FROM_DICT_OR_DEREF": "cell",
    "IMPORT_NAME": "module",
}
_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "IMPORT_FROM"))
_LOADS = frozenset(("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", *_VARIABLE))
_CONSTANT = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))


@dataclass
class Read:
    """One load of a variable. attributes: the names that follow it, as in a.b.c"""

    kind: str  # "global", "cell" or "module"
    name: str
    attributes: list[str]
    line: int


@dataclass
class Reads:
    """variables   loads of variables
    attributes     {name of an attribute that is read: line}
    written        names of attributes that are read only to call one of WRITES
    texts          constants that are names of attributes, or of variables
    any            whether it reads attributes whose names it computes
    any_variable   whether texts can be names of variables
    any_module     whether it finds modules by names that it computes
    """

    variables: list[Read] = field(default_factory=list)
    attributes: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    any: bool = False
    any_variable: bool = False
    any_module: bool = False


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads:
    """What a code object reads; that of functions within it, when they are called, is theirs."""
    found = Reads()
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    line, by_text = code.co_firstlineno, False
    attributes: list[str] | None = None  # of the last load, while they follow it
    for i, one in enumerate(instructions):
        line = _line(one) or line
        name = one.argval
        if one.opname in _VARIABLE:
            if name in _ANY_VARIABLE:
                found.any_variable = True
            if name in _ANY or _computes_name(instructions, i):
                found.any = True
            if _counts(instructions, i):
                continue
            found.variables.append(Read(_VARIABLE[one.opname], name, attributes := [], line))
            continue
        elif one.opname in _ATTRIBUTE:
            if name in _ANY:
                found.any = True
            if name in _ANY_VARIABLE:
                found.any_variable = True
            if attributes is not None:
                attributes.append(name)
            if i + 1 < len(instructions) and _is_write(instructions[i + 1]):
                found.written.setdefault(name, line)
            elif not _counts(instructions, i):
                found.attributes.setdefault(name, line)
            continue
        attributes = None
        if one.opname == "MATCH_CLASS":
            by_text = True
    found.any_module = not _ANY_MODULE.isdisjoint(code.co_names)
    texts = set(_texts(code.co_consts))
    found.any = found.any or not _ANY.isdisjoint(texts)
    if by_text or found.any or found.any_variable or not _BY_TEXT.isdisjoint(code.co_names):
        found.texts = texts
    return found


def _line(one: Any) -> int | None:
    positions = getattr(one, "positions", None)
    if positions is not None:
        return positions.lineno
    return one.starts_line if isinstance(one.starts_line, int) else None  # Python 3.10


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    for one in constants:
        if type(one) is str and one.isidentifier():
            yield one
        elif type(one) in (tuple, frozenset):
            yield from _texts(tuple(one))


def _is_write(one: Any) -> bool:
    return one.opname in ("LOAD_ATTR", "LOAD_METHOD") and one.argval in WRITES


def _counts(instructions: list[Any], i: int) -> bool:
    """Whether a load only counts, as in n += 1: the value goes nowhere else."""
    name, shape = instructions[i].argval, [one.opname for one in instructions[i + 1 : i + 5]]
    if len(shape) < 3 or shape[0] not in _CONSTANT or not shape[1].startswith(("BINARY", "INPLACE")):
        return False
    at = i + 4 if shape[2] in ("SWAP", "ROT_TWO") else i + 3
    return instructions[at].opname.startswith("STORE") and instructions[at].argval == name


def _computes_name(instructions: list[Any], i: int) -> bool:
    """Whether a load is that of getattr or hasattr, and the call's second argument is no constant."""
    if instructions[i].argval not in ("getattr", "hasattr"):
        return False
    names = [one.opname for one in instructions[i + 1 :]]
    at = next((k for k, name in enumerate(names) if k and name not in _ATTRIBUTE), len(names))
    if not names or names[0] not in _LOADS or names[at : at + 1] != ["LOAD_CONST"]:
        return True
    after = names[at + 1 : at + 3]
    if after[:1] and (after[0] in _LOADS or after[0] in _CONSTANT):  # the default
        after = after[1:]
    return not after or not after[0].startswith(("CALL", "PRECALL"))
