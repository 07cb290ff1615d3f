"""Batching rules of pointwise operations and reductions: one for each kind of row in csrc/ops.def."""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from ..dtype import DTYPES, float32, float64
from ..errors import ArgumentError
from ..ops.op import OPCODES
from .level import aligned, axis_of, is_here, one_sample, rule, sample, written

_MUL = OPCODES["mul"]

# ---- pointwise -------------------------------------------------------------------------------------------------------


@rule("unary")
def _unary(level: Level, op: int, x: Any) -> Any:
    return sample(lib.norch_unary(op, x._physical), level)


@rule("binary")
def _binary(level: Level, op: int, a: Any, b: Any) -> Any:
    if op == _MUL and is_here(a, level) and is_here(b, level) and _are_column_and_row(a, b):
        rows = aligned(b, level, 2)
        return sample(lib.norch_matmul(a._physical, rows, False, False), level, mixed=True)
    return sample(*_computed(lib.norch_binary, op, (a, b), level))


@rule("ternary")
def _ternary(level: Level, op: int, a: Any, b: Any, c: Any) -> Any:
    return sample(*_computed(lib.norch_ternary, op, (a, b, c), level))


def _are_column_and_row(a: Any, b: Any) -> bool:
    """Whether a * b is an outer product of floats for each sample; a matrix product computes these faster."""
    if a.ndim != 2 or a._dtype != b._dtype or b.ndim not in (1, 2) or a._numel * b._numel < 256:
        return False
    is_row = b.ndim == 1 or lib.norch_shape(b)[0] == 1
    return is_row and lib.norch_shape(a)[1] == 1 and a.dtype in (float32, float64)


def _computed(call: Any, op: int, inputs: tuple[Any, ...], level: Level) -> tuple[Any, Level, bool]:
    """The result for all samples, and whether an input differs from it in the sense of norch_tensor's `mixed`."""
    ndim = max([x.ndim for x in inputs])
    batched = [aligned(x, level, ndim) for x in inputs]
    dtypes = {x._dtype for x in inputs}
    narrow = None
    if len(dtypes) > 1:
        batched, narrow = _promoted(op, inputs, batched)
    out = call(op, *batched)
    if narrow is not None and DTYPES[out._dtype].kind in "iu":
        out = _narrowed(op, out, narrow)
    each = math.prod(lib.norch_shape(out)[1:])  # 0: the element count does not reveal broadcasting
    mixed = len(dtypes) > 1 or any(x._numel != each or x.ndim != ndim or not each for x in inputs)
    mixed = mixed or any(x._device_type != out._device_type for x in inputs)
    return out, level, mixed


_CONDITIONS = {OPCODES[name] for name in ("where", "masked_scale")}  # rows whose first input is a condition


def _promoted(op: int, inputs: tuple[Any, ...], elements: list[Any]) -> tuple[list[Any], int | None]:
    """(elements in the dtype that the samples promote to, dtype): a 0-d sample has less weight in promotion, but is not
    0-d in the batch. The second result is the result's dtype if a wider integer sample counts by its value, else
    None."""
    first = 1 if len(inputs) == 3 and op in _CONDITIONS else 0
    wanted, wide = lib.norch_result_type(inputs[first:]), lib.norch_result_type(elements[first:])
    if wide == wanted:
        return elements, None
    if op != _REMAINDER and DTYPES[wanted].kind in "iu" and DTYPES[wide].kind in "iu":
        return elements, wanted
    return elements[:first] + [x if x._weak else lib.norch_cast(x, wanted) for x in elements[first:]], None


# Rows whose result may be a 0-d operand itself, and the first row that wraps such operands (csrc/ops/numbers.c).
_GIVE_OPERANDS = {OPCODES[name] for name in "maximum minimum fmax fmin clamp_min clamp_max clamp where".split()}
_REMAINDER = OPCODES["remainder"]


def _narrowed(op: int, out: Any, dtype: int) -> Any:
    """Casts out to a narrower integer dtype. Arithmetic wraps; other rows refuse a sample that does not fit."""
    narrow = lib.norch_cast(out, dtype)
    if op in _GIVE_OPERANDS:
        lost = lib.norch_binary(OPCODES["ne"], lib.norch_cast(narrow, out._dtype), out)
        if lost.any().item():
            value, name = out[lost][0].item(), lib.norch_op_name(op).decode()
            raise ArgumentError(f"{name}: {value} does not fit {DTYPES[dtype].name}")
    return narrow


@rule("result_type")
def _result_type(level: Level, tensors: Any) -> int:
    return lib.norch_result_type([lib.norch_meta(x) if is_here(x, level) else x for x in tensors])


@rule("unary_into")
def _unary_into(level: Level, out: Any, op: int, x: Any) -> None:
    lib.norch_unary_into(written(lib.norch_op_name(op).decode() + "_", out, level), op, aligned(x, level, out.ndim))


@rule("binary_into")
def _binary_into(level: Level, out: Any, op: int, a: Any, b: Any) -> None:
    name, ndim = lib.norch_op_name(op).decode() + "_", max(out.ndim, a.ndim, b.ndim)
    into = written(name, out, level)
    if ndim > out.ndim:  # the call for one sample raises
        lib.norch_binary_into(lib.norch_select(into, 0, 0), op, one_sample(a, 0, level), one_sample(b, 0, level))
    lib.norch_binary_into(into, op, aligned(a, level, ndim), aligned(b, level, ndim))


@rule("ternary_into")
def _ternary_into(level: Level, out: Any, op: int, a: Any, b: Any, c: Any) -> None:
    into = written(lib.norch_op_name(op).decode() + "_", out, level)
    lib.norch_ternary_into(into, op, *(aligned(x, level, out.ndim) for x in (a, b, c)))


# ---- reductions ------------------------------------------------------------------------------------------------------

_PLACES = {OPCODES["argmax"], OPCODES["argmin"]}  # their results are positions


@rule("reduce")
def _reduce(level: Level, op: int, x: Any, dims: Any, keepdim: bool, dtype: int, param: float) -> Any:
    p, n = x._physical, x.ndim
    if dims is not None and (dims or n):
        axes = tuple([axis_of(x, dim, lib.norch_op_name(op).decode()) for dim in dims])
    if n == 0:  # a 0-d sample is reduced along an axis of size 1
        return sample(lib.norch_reduce(op, lib.norch_unsqueeze(p, 1), (1,), False, dtype, param), level)
    if not dims:
        axes = tuple(range(1, n + 1))
        if op in _PLACES and n > 1:
            out = lib.norch_reduce(op, lib.norch_flatten(p, 1, -1), (1,), keepdim, dtype, param)
            return sample(lib.norch_view(out, (level.size, *[1] * n)) if keepdim else out, level)
    return sample(lib.norch_reduce(op, p, axes, keepdim, dtype, param), level)


@rule("sum_to")
def _sum_to(level: Level, x: Any, like: Any) -> Any:
    if not is_here(x, level):
        return lib.norch_sum_to(x, lib.norch_meta(like))
    shape, wanted = lib.norch_shape(x), lib.norch_shape(like)
    out, extra = x._physical, len(shape) - len(wanted)
    if shape != wanted:
        kept = [i for i, size in enumerate(wanted) if size == 1 != shape[extra + i]]
        axes = [*range(1, extra + 1), *(extra + 1 + i for i in kept)]
        out = lib.norch_reduce(OPCODES["sum"], out, axes, True, -1, 0.0)
        out = lib.norch_squeeze(out, range(1, extra + 1)) if extra else out
    if out._dtype != like._dtype or out._device_type != like._device_type or out._device_index != like._device_index:
        place = like._device_type, like._device_index  # sum_to() casts and moves; nothing else differs
        out = lib.norch_sum_to(out, lib.norch_meta(lib.norch_empty((level.size, *wanted), like._dtype, place)))
    return x if out is x._physical else sample(out, level)


@rule("check")
def _check(level: Level, x: Any, condition: int) -> None:
    lib.norch_check(x._physical, condition)
