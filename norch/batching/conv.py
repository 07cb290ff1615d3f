"""Batching rules of convolutions. Samples of the input join the batch axis; samples of the weight become groups."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level
from ..errors import ShapeError
from ..ops.op import OPCODES
from .level import aligned, become, folded, folded_second, is_here, rule, sample, sum_over, unfolded, unfolded_second

_ADD = OPCODES["add"]
Geometry = Any  # the geometry argument of norch_conv; its last number is groups


def _in_groups(geometry: Geometry, level: Level) -> tuple[int, ...]:
    *rest, groups = geometry
    return (*rest, groups * level.size)


def _with_bias(out: Any, bias: Any, level: Level) -> Any:
    """out (samples, N, C, H, W) plus a bias (C)."""
    if bias is None:
        return out
    channels = lib.norch_shape(out)[2]
    if lib.norch_shape(bias) != (channels,):
        raise ShapeError(f"conv: a bias of shape {lib.norch_shape(bias)} for {channels} channels")
    column = lib.norch_unsqueeze(lib.norch_unsqueeze(aligned(bias, level, 2), -1), -1)
    return lib.norch_binary(_ADD, out, column)


def _convolved(level: Level, call: Any, x: Any, weight: Any, bias: Any, geometry: Geometry, *size: Any) -> Any:
    """norch_conv and norch_conv_input, which are batched in the same way."""
    if not is_here(weight, level):
        if is_here(x, level):
            plain = None if is_here(bias, level) else bias
            out = unfolded(call(folded(x._physical), weight, plain, geometry, *size), level)
            return sample(out if plain is bias else _with_bias(out, bias, level), level)
        out = lib.norch_unsqueeze(call(x, weight, None, geometry, *size), 0)
        return sample(_with_bias(out, bias, level), level)
    if not is_here(x, level) and geometry[-1] == 1 and call is lib.norch_conv:  # one input: more output channels
        out = call(x, folded(weight._physical), None, geometry)
    else:
        out = call(folded_second(x, level), folded(weight._physical), None, _in_groups(geometry, level), *size)
    return sample(_with_bias(unfolded_second(out, level), bias, level), level)


@rule("conv")
def _conv(level: Level, x: Any, weight: Any, bias: Any, geometry: Geometry) -> Any:
    return _convolved(level, lib.norch_conv, x, weight, bias, geometry)


@rule("conv_input")
def _conv_input(level: Level, y: Any, weight: Any, bias: Any, geometry: Geometry, size: Any) -> Any:
    return _convolved(level, lib.norch_conv_input, y, weight, bias, geometry, size)


@rule("conv_weight")
def _conv_weight(level: Level, x: Any, y: Any, geometry: Geometry, kernel: Any, sums: Any) -> Any:
    if sums is not None:
        if is_here(y, level):
            become(sums, sum_over(y._physical, (1, 3, 4)), level)
        else:
            lib.norch_copy(sums, sum_over(y, (0, 2, 3)))
    if not is_here(x, level) and geometry[-1] == 1:  # one input: more output channels
        out = lib.norch_conv_weight(x, folded_second(y, level), geometry, kernel, None)
    else:
        both = folded_second(x, level), folded_second(y, level)
        out = lib.norch_conv_weight(*both, _in_groups(geometry, level), kernel, None)
    return sample(unfolded(out, level), level)
