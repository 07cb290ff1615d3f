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
COMPUTES_NAMES = frozenset(
    "vars dir __dict__ __getattribute__ attrgetter methodcaller dump dumps eval exec locals __getstate__ __reduce__ "
    "__reduce_ex__ format format_map".split()
)
# Functions that do so unless the name is a constant.
TAKES_NAME = frozenset(("getattr", "hasattr"))
# Functions that read variables whose names do not stand in the code as such.
_VARIABLES_BY_TEXT = frozenset(("eval", "exec", "globals", "f_globals", "__globals__"))
# Dicts of global variables, where only constants may be looked up.
_GLOBALS = frozenset(("globals", "f_globals", "__globals__"))
# Functions that find modules by names which do not stand in the code.
_MODULES_BY_TEXT = frozenset(("modules", "import_module", "__import__"))

_ATTRIBUTE_BY_TEXT = TAKES_NAME | {"setattr", "delattr"}

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
    key: Any = None  # of a["key"].append(b)


@dataclass
class Reads:
    """variables          loads of variables
    attributes            {name of an attribute that is read: line}
    appended              {name of an attribute that is read only to call one of WRITES: line}
    texts                 constants that are names of attributes, or of variables
    computes_names        whether it reads attributes whose names it computes
    variables_by_text     whether texts can be names of variables
    modules_by_text       whether it finds modules by names that it computes
    computes_variable     line that looks up a global variable by a computed name; 0: none does
    """

    variables: list[Read] = field(default_factory=list)
    attributes: dict[str, int] = field(default_factory=dict)
    appended: dict[str, int] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    computes_names: bool = False
    variables_by_text: bool = False
    modules_by_text: bool = False
    computes_variable: int = 0


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
        if one.opname in _VARIABLE or one.opname in _ATTRIBUTE:
            found.variables_by_text |= name in _VARIABLES_BY_TEXT
            found.computes_names |= name in COMPUTES_NAMES
            if name in _GLOBALS and not _is_constant_lookup(instructions, i):
                found.computes_variable = line
        if one.opname in _VARIABLE:
            found.computes_names |= _computes_name(instructions, i)
            if _only_counts(instructions, i):
                continue
            found.variables.append(
                Read(_VARIABLE[one.opname], name, attributes := [], line, _appended_key(instructions, i))
            )
            continue
        elif one.opname in _ATTRIBUTE:
            found.computes_names |= name in TAKES_NAME  # builtins.getattr
            if attributes is not None:
                attributes.append(name)
            if i + 1 < len(instructions) and _appends(instructions[i + 1]):
                found.appended.setdefault(name, line)
            elif not _only_counts(instructions, i):
                found.attributes.setdefault(name, line)
            continue
        attributes = None
        if one.opname == "MATCH_CLASS":
            by_text = True
            if one.arg:  # as many positional patterns: their names stand in the class
                found.attributes.setdefault("__match_args__", line)
    if not {"locals", "eval", "exec"}.isdisjoint(code.co_names):
        found.variables += [Read("cell", name, [], code.co_firstlineno) for name in code.co_freevars]
    found.modules_by_text = not _MODULES_BY_TEXT.isdisjoint(code.co_names)
    texts = set(_texts(code.co_consts))
    found.computes_names = found.computes_names or not COMPUTES_NAMES.isdisjoint(texts)
    if by_text or found.computes_names or found.variables_by_text or not _ATTRIBUTE_BY_TEXT.isdisjoint(code.co_names):
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


def _appends(one: Any) -> bool:
    return one.opname in ("LOAD_ATTR", "LOAD_METHOD") and one.argval in WRITES


def _appended_key(instructions: list[Any], i: int) -> Any:
    """The constant key in a["key"].append(b), where the load is that of a; None: it is something else."""
    shape = instructions[i + 1 : i + 4]
    if len(shape) < 3 or shape[0].opname != "LOAD_CONST" or type(shape[0].argval) is not str:
        return None
    subscript = shape[1].opname == "BINARY_SUBSCR" or (shape[1].opname, shape[1].argrepr) == ("BINARY_OP", "[]")
    return shape[0].argval if subscript and _appends(shape[2]) else None


def _only_counts(instructions: list[Any], i: int) -> bool:
    """Whether a load only counts, as in n += 1: the value goes nowhere else. In Python 3.11

    LOAD_GLOBAL n, LOAD_CONST 1, BINARY_OP +=, STORE_GLOBAL n
    LOAD_ATTR n, LOAD_CONST 1, BINARY_OP +=, SWAP, STORE_ATTR n
    """
    name, shape = instructions[i].argval, [one.opname for one in instructions[i + 1 : i + 5]]
    if len(shape) < 3 or shape[0] not in _CONSTANT or not shape[1].startswith(("BINARY", "INPLACE")):
        return False
    at = i + 4 if shape[2] in ("SWAP", "ROT_TWO") else i + 3
    return instructions[at].opname.startswith("STORE") and instructions[at].argval == name


def _computes_name(instructions: list[Any], i: int) -> bool:
    """Whether a load is that of getattr or hasattr, and the call's second argument is no constant. In Python 3.11

    LOAD_GLOBAL getattr, LOAD_FAST a, LOAD_CONST "k", PRECALL, CALL     a constant
    LOAD_GLOBAL getattr, LOAD_FAST a, LOAD_FAST name, PRECALL, CALL     computed
    """
    if instructions[i].argval not in TAKES_NAME:
        return False
    names = [one.opname for one in instructions[i + 1 :]]
    at = next((k for k, name in enumerate(names) if k and name not in _ATTRIBUTE), len(names))
    if not names or names[0] not in _LOADS or names[at : at + 1] != ["LOAD_CONST"]:
        return True
    after = names[at + 1 : at + 3]
    if after[:1] and (after[0] in _LOADS or after[0] in _CONSTANT):  # the default
        after = after[1:]
    return not after or not after[0].startswith(("CALL", "PRECALL"))


def _is_constant_lookup(instructions: list[Any], i: int) -> bool:
    """Whether a load is that of a dict of global variables, and what follows looks up a constant in it, as in
    globals()["k"], globals().get("k") or "k" in globals()."""
    after = instructions[i + 1 :]
    while after and after[0].opname in ("PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION"):
        after = after[1:]
    if after and i and after[0].opname == "CONTAINS_OP":
        before = next(one for one in reversed(instructions[:i]) if one.opname != "PUSH_NULL")
        return before.opname == "LOAD_CONST"
    if after and after[0].opname in ("LOAD_ATTR", "LOAD_METHOD") and after[0].argval == "get":
        after = after[1:]
    constant = after[:1] and after[0].opname == "LOAD_CONST" and type(after[0].argval) is str
    return bool(constant) and after[1].opname.startswith(("BINARY", "STORE", "DELETE", "LOAD_CONST", "PRECALL", "CALL"))
