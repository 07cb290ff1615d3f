"""Which Python values a code object can read: variables, and names of attributes."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from .stack import JUMPS, effect, is_method, taken_by

# Methods that only write, so that a replay does not depend on the container's earlier entries.
WRITES = frozenset(("append", "appendleft", "extend", "extendleft", "add", "insert"))
# Functions that read attributes whose names are not in the code.
COMPUTES_NAMES = frozenset(
    "vars dir __dict__ __getattribute__ attrgetter methodcaller dump dumps eval exec locals __getstate__ __reduce__ "
    "__reduce_ex__ format format_map".split()
)
# Functions that do so unless the name is a constant.
TAKES_NAME = frozenset(("getattr", "hasattr"))
# Functions that write attributes: what they write is found as what is read is.
SETS_NAME = frozenset(("setattr", "delattr", "__setattr__", "__delattr__"))
# Functions that read variables whose names are not in the code.
_VARIABLES_BY_TEXT = frozenset(("eval", "exec", "globals", "f_globals", "__globals__"))
# Dicts of global variables; only lookups of constants in them are allowed.
_GLOBALS = frozenset(("globals", "f_globals", "__globals__"))
# Functions that find modules by names that are not in the code.
_MODULES_BY_TEXT = frozenset(("modules", "import_module", "__import__", "find_spec"))

_ATTRIBUTE_BY_TEXT = TAKES_NAME | SETS_NAME

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
_LOCALS = frozenset(("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"))
_LOADS = _LOCALS | _VARIABLE.keys()
_STORES = frozenset(("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF", "DELETE_ATTR"))
_CONSTANT = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))


class Use(NamedTuple):
    """The purpose of a load, if it is one of these; key: a constant, or None.

    called    a(...)
    appended  a.append(b), a["key"].append(b) and the other methods of WRITES
    counted   a += b or a = a + b, where a is used nowhere else, or a["key"] += b
    stored    a[b] = c
    """

    kind: str
    key: Any = None


CALLED = Use("called")


@dataclass
class Read:
    """One load of a variable. attributes: the names that follow, as in a.b.c; use: the use of the last one; dots: those
    before the name of a module, if it is relative to the package"""

    kind: str  # "global", "cell" or "module"
    name: str
    attributes: list[str]
    line: int
    use: Use | None = None
    dots: str = ""


@dataclass
class Reads:
    """variables          loads of variables
    attributes            {name of an attribute that is read: line}
    stored                {name of a bound attribute or variable, or of a deleted attribute: line}
    uses                  {name of an attribute: {its use, if not read: line}}
    of_locals             {local variable that is bound once: {attribute that is read from it: line}}
    of_others             names of attributes read from values other than variables
    compared              names of variables and attributes compared by `is` with anything but constants
    escaping              names of functions that are loaded but not called there
    texts                 constants that may be names of attributes or variables
    computes_names        whether the code computes the names of attributes
    variables_by_text     whether texts can be names of variables
    modules_by_text       whether it computes the names of modules
    modules               constants that may be such names
    matches_kinds         whether it matches patterns of sequences or mappings
    computes_variable     line that looks up a global variable by a computed name, or 0
    """

    variables: list[Read] = field(default_factory=list)
    attributes: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    uses: dict[str, dict[Use, int]] = field(default_factory=dict)
    of_locals: dict[str, dict[str, int]] = field(default_factory=dict)
    of_others: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    escaping: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    computes_names: bool = False
    variables_by_text: bool = False
    modules_by_text: bool = False
    modules: set[str] = field(default_factory=set)
    matches_kinds: bool = False
    computes_variable: int = 0


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads:
    """The names that a code object reads. Functions inside it are examined when they are called."""
    reads = Reads()
    instructions = [
        instruction
        for instruction in dis.get_instructions(code)
        if instruction.opname not in ("CACHE", "EXTENDED_ARG", "NOP")
    ]
    line, by_text = code.co_firstlineno, False
    last: Read | None = None  # the last load of a variable, while attributes follow
    once = _bound_once(code, instructions)
    for i, instruction in enumerate(instructions):
        line = _line(instruction) or line
        name = instruction.argval
        if instruction.opname in _VARIABLE or instruction.opname in _ATTRIBUTE:
            reads.variables_by_text |= name in _VARIABLES_BY_TEXT
            reads.computes_names |= name in COMPUTES_NAMES
            if name in _GLOBALS and not _is_constant_lookup(instructions, i):
                reads.computes_variable = line
            use = _use_of(instructions, i)
            if use != CALLED:
                reads.escaping.add(name)
            if _is_compared(instructions, i):
                reads.compared.add(name)
        if instruction.opname in _VARIABLE:
            reads.computes_names |= _computes_name(instructions, i)
            dots = "." * instructions[i - 2].argval if instruction.opname == "IMPORT_NAME" else ""
            last = Read(_VARIABLE[instruction.opname], name, [], line, use, dots)
            reads.variables.append(last)
            if use is not None:
                last = None
            continue
        elif instruction.opname in _ATTRIBUTE:
            reads.computes_names |= name in TAKES_NAME  # builtins.getattr
            if name in SETS_NAME and code.co_name not in SETS_NAME:  # the code that calls a __setattr__() has the name
                reads.computes_names |= _computes_name(instructions, i)
            if last is not None:
                last.attributes.append(name)
                last.use = use
                if use is not None:
                    last = None
            before = instructions[i - 1]
            if use is not None and use != CALLED:
                reads.uses.setdefault(name, {}).setdefault(use, line)
            elif before.opname in _LOCALS and before.argval in once:
                reads.of_locals.setdefault(before.argval, {}).setdefault(name, line)
            else:
                reads.attributes.setdefault(name, line)
                if before.opname not in _VARIABLE:
                    reads.of_others.add(name)
            continue
        last = None
        if instruction.opname in _STORES:
            reads.stored.setdefault(name, line)
        reads.matches_kinds |= instruction.opname in ("MATCH_SEQUENCE", "MATCH_MAPPING")
        if instruction.opname == "MATCH_CLASS":
            by_text = True
            if instruction.arg:  # class patterns by position: the attributes are named in the class
                reads.attributes.setdefault("__match_args__", line)
    if not {"locals", "eval", "exec"}.isdisjoint(code.co_names):
        reads.variables += [Read("cell", name, [], code.co_firstlineno) for name in code.co_freevars]
    if not _MODULES_BY_TEXT.isdisjoint(code.co_names):
        reads.modules_by_text, reads.modules = True, {text for text in code.co_consts if type(text) is str}
    texts = set(_texts(code.co_consts))
    reads.computes_names = reads.computes_names or not COMPUTES_NAMES.isdisjoint(texts)
    if by_text or reads.computes_names or reads.variables_by_text or not _ATTRIBUTE_BY_TEXT.isdisjoint(code.co_names):
        reads.texts = texts
    return reads


def _line(instruction: Any) -> int | None:
    positions = getattr(instruction, "positions", None)
    if positions is not None:
        return positions.lineno
    return instruction.starts_line if isinstance(instruction.starts_line, int) else None  # Python 3.10


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    for constant in constants:
        if type(constant) is str and constant.isidentifier():
            yield constant
        elif type(constant) in (tuple, frozenset):
            yield from _texts(tuple(constant))


def _use_of(instructions: list[Any], i: int) -> Use | None:
    """The use of a loaded value. In Python 3.11:

    LOAD_ATTR n, LOAD_FAST k, BINARY_OP +=, SWAP, STORE_ATTR n                                   a.n += k
    LOAD_ATTR d, LOAD_CONST "k", COPY, COPY, BINARY_SUBSCR, ..., BINARY_OP +=, ..., STORE_SUBSCR   a.d["k"] += ...
    """
    instruction, after = instructions[i], instructions[i + 1 :]
    if is_method(instruction) and instruction.opname != "LOAD_GLOBAL":
        return CALLED
    uses = taken_by(instructions, i)
    if uses is None:
        names = [instruction.opname for instruction in after[1:4]]
        at = i + 3 if names[:2] == ["DUP_TOP_TWO", "BINARY_SUBSCR"] else i + 4 if names[:2] == ["COPY", "COPY"] else 0
        if at and after[0].opname == "LOAD_CONST" and _is_subscript(instructions[at]):
            where = _stored_by(instructions, at)
            if where is not None and instructions[where].opname == "STORE_SUBSCR":
                return Use("counted", after[0].argval)
        return None
    at, depth = uses
    by = instructions[at]
    # LOAD_GLOBAL may also push a NULL, to call the result of a read from the variable: cfg["f"](x), or cfg.get(x) for
    # an imported cfg
    if by.opname.startswith("CALL") and depth == _popped(by) - is_method(instruction):
        return CALLED
    if by.opname == "STORE_SUBSCR" and depth == 2:
        return Use("stored")
    if _appends(by):
        return Use("appended")
    if _is_subscript(by) and depth == 2 and at == i + 2 and after[0].opname == "LOAD_CONST":
        return Use("appended", after[0].argval) if _appends(instructions[at + 1]) else None
    if _is_arithmetic(by) and (where := _stored_by(instructions, i)) is not None:
        to = instructions[where]
        if to.opname.startswith("STORE") and to.opname != "STORE_SUBSCR" and to.argval == instruction.argval:
            return Use("counted")
    return None


def _is_compared(instructions: list[Any], i: int) -> bool:
    """Whether `is` compares a loaded value with anything but a constant."""
    uses = taken_by(instructions, i)
    if uses is None or instructions[uses[0]].opname != "IS_OP":
        return False
    return instructions[uses[0] - 1].opname not in _CONSTANT and instructions[i - 1].opname not in _CONSTANT


def _stored_by(instructions: list[Any], i: int) -> int | None:
    """The instruction that stores the result of arithmetic on a value that instruction i pushed."""
    uses = taken_by(instructions, i)
    while uses is not None and _is_arithmetic(instructions[uses[0]]):
        uses = taken_by(instructions, uses[0])
    if uses is None:
        return None
    by = instructions[uses[0]]
    return uses[0] if by.opname.startswith("STORE") and uses[1] == _popped(by) else None


def _popped(instruction: Any) -> int:
    counts = effect(instruction)
    return counts[0] if counts else 0


def _appends(instruction: Any) -> bool:
    return instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval in WRITES


def _is_subscript(instruction: Any) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (instruction.opname, instruction.argrepr) == ("BINARY_OP", "[]")


def _is_arithmetic(instruction: Any) -> bool:
    return (
        instruction.opname.startswith(("BINARY", "INPLACE"))
        and instruction.opname != "BINARY_SLICE"
        and not _is_subscript(instruction)
    )


def _bound_once(code: CodeType, instructions: list[Any]) -> set[str]:
    """Local variables with one value in a call: arguments that are never rebound, and variables bound once, at a place
    that no jump leads back to."""
    bound: dict[str, int] = dict.fromkeys(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], 1)
    for instruction in instructions:
        if instruction.opname.startswith(("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND")):
            for name in instruction.argval if type(instruction.argval) is tuple else (instruction.argval,):
                bound[name] = bound.get(name, 0) + (2 if _is_in_loop(instructions, instruction.offset) else 1)
    return {name for name, times in bound.items() if times == 1}


def _is_in_loop(instructions: list[Any], offset: int) -> bool:
    return any(j.opcode in JUMPS and type(j.argval) is int and j.argval <= offset <= j.offset for j in instructions)


def _computes_name(instructions: list[Any], i: int) -> bool:
    """Whether a load is of getattr, setattr or the like, called with a name that is not a constant. In Python 3.11:

    LOAD_GLOBAL getattr, LOAD_FAST a, LOAD_CONST "k", PRECALL, CALL     a constant
    LOAD_GLOBAL getattr, LOAD_FAST a, LOAD_FAST name, PRECALL, CALL     computed
    """
    if instructions[i].argval not in _ATTRIBUTE_BY_TEXT:
        return False
    names = [instruction.opname for instruction in instructions[i + 1 :]]
    at = next((k for k, name in enumerate(names) if k and name not in _ATTRIBUTE), len(names))
    if not names or names[0] not in _LOADS or names[at : at + 1] != ["LOAD_CONST"]:
        return True
    if instructions[i].argval in SETS_NAME:
        return False
    after = names[at + 1 : at + 3]
    if after[:1] and (after[0] in _LOADS or after[0] in _CONSTANT):  # the default value
        after = after[1:]
    return not after or not after[0].startswith(("CALL", "PRECALL"))


def _is_constant_lookup(instructions: list[Any], i: int) -> bool:
    """Whether a load is of a dict of globals, followed by the lookup of a constant: globals()["k"],
    globals().get("k") or "k" in globals()."""
    after = instructions[i + 1 :]
    while after and after[0].opname in ("PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION"):
        after = after[1:]
    if after and i and after[0].opname == "CONTAINS_OP":
        before = next(instruction for instruction in reversed(instructions[:i]) if instruction.opname != "PUSH_NULL")
        return before.opname == "LOAD_CONST"
    if after and after[0].opname in ("LOAD_ATTR", "LOAD_METHOD") and after[0].argval == "get":
        after = after[1:]
    constant = after[:1] and after[0].opname == "LOAD_CONST" and type(after[0].argval) is str
    return bool(constant) and after[1].opname.startswith(("BINARY", "STORE", "DELETE", "LOAD_CONST", "PRECALL", "CALL"))
