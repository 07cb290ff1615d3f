"""Finds the instruction that takes a value which another one pushes on the stack, if no jump comes between."""

from __future__ import annotations

import dis
import sys
from typing import Any

JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))

# {instruction: (values popped, values pushed)}
_EFFECTS = {
    **dict.fromkeys(
        "LOAD_CONST LOAD_SMALL_INT LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_NAME LOAD_DEREF LOAD_CLASSDEREF "
        "LOAD_CLOSURE PUSH_NULL".split(),
        (0, 1),
    ),
    **dict.fromkeys("LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW".split(), (0, 2)),
    **dict.fromkeys("RESUME PRECALL KW_NAMES NOP CACHE EXTENDED_ARG".split(), (0, 0)),
    **dict.fromkeys("BINARY_SUBSCR BINARY_OP COMPARE_OP IS_OP CONTAINS_OP".split(), (2, 1)),
    **dict.fromkeys("UNARY_NEGATIVE UNARY_NOT UNARY_INVERT UNARY_POSITIVE TO_BOOL GET_ITER".split(), (1, 1)),
    **dict.fromkeys("STORE_FAST STORE_GLOBAL STORE_DEREF STORE_NAME POP_TOP RETURN_VALUE".split(), (1, 0)),
    "LOAD_METHOD": (1, 2),
    "BINARY_SLICE": (3, 1),
    "STORE_ATTR": (2, 0),
    "STORE_SUBSCR": (3, 0),
    "STORE_FAST_LOAD_FAST": (1, 1),
    "STORE_FAST_STORE_FAST": (2, 0),
}
# {instruction: values popped besides the values that its argument counts}; it pushes one value.
_COUNTED = {
    "CALL": 2, "CALL_KW": 3, "CALL_FUNCTION": 1, "CALL_METHOD": 2, "CALL_FUNCTION_KW": 2,
    "BUILD_TUPLE": 0, "BUILD_LIST": 0, "BUILD_SLICE": 0, "BUILD_STRING": 0,
}  # fmt: skip
# {instruction: where it moves the values at depths 1, 2, 3}
_MOVES = {"ROT_TWO": (2, 1), "ROT_THREE": (3, 1, 2)}


def is_method(instruction: Any) -> bool:
    """Whether an instruction loads a method or a function to call it."""
    if instruction.opname in ("LOAD_METHOD", "LOAD_SUPER_METHOD"):
        return True
    if instruction.opname == "LOAD_GLOBAL":
        return sys.version_info >= (3, 11) and bool(instruction.arg & 1)
    return (
        instruction.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR")
        and sys.version_info >= (3, 12)
        and bool(instruction.arg & 1)
    )


def effect(instruction: Any) -> tuple[int, int] | None:
    """The numbers of values that an instruction pops and pushes; None if unknown."""
    if instruction.opname == "LOAD_GLOBAL":
        return 0, 1 + is_method(instruction)
    if instruction.opname == "LOAD_ATTR":
        return 1, 1 + is_method(instruction)
    if instruction.opname in _COUNTED:
        return _COUNTED[instruction.opname] + instruction.arg, 1
    if instruction.opname in _EFFECTS:
        return _EFFECTS[instruction.opname]
    return (2, 1) if instruction.opname.startswith(("BINARY_", "INPLACE_")) else None


def taken_by(instructions: list[Any], i: int) -> tuple[int, int] | None:
    """(the instruction that takes the value which instruction i leaves on top, the depth where it finds it, 1 for the
    top). None if a jump comes first, the value is copied, or an instruction is unknown."""
    depth = 1
    for at in range(i + 1, len(instructions)):
        op = instructions[at]
        if op.is_jump_target or op.opcode in JUMPS:
            return None
        if op.opname in ("SWAP", "COPY") or op.opname in _MOVES or op.opname.startswith("DUP_TOP"):
            moved = _moved(op, depth)
            if moved is None:
                return None
            depth = moved
            continue
        counts = effect(op)
        if counts is None:
            return None
        if counts[0] >= depth:
            return at, depth
        depth += counts[1] - counts[0]
    return None


def _moved(instruction: Any, depth: int) -> int | None:
    """The depth of a value after an instruction that moves or copies values; None if it was copied."""
    if instruction.opname == "SWAP":
        return {1: instruction.arg, instruction.arg: 1}.get(depth, depth)
    if instruction.opname == "COPY":
        return None if depth == instruction.arg else depth + 1
    if instruction.opname == "DUP_TOP":
        return None if depth == 1 else depth + 1
    if instruction.opname == "DUP_TOP_TWO":
        return None if depth <= 2 else depth + 2
    moves = _MOVES[instruction.opname]
    return moves[depth - 1] if depth <= len(moves) else depth
