"""Rules of convolutions. Samples of the input become part of the batch axis; samples of the weight become groups."""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd.levels import Level
from ..ops.op import OPCODES
from .level import aligned, become, is_here, rule, sample, samples

_ADD, _SUM = OPCODES["add"], OPCODES["sum"]
Geometry = Any  # as norch_conv takes it: the last number is that of the groups


def _folded(p: Any) -> Any:
    """(samples, N, ...) as (samples * N, ...)."""
    return lib.norch_flatten(p, 0, 1)


def _unfolded(out: Any, level: Level) -> Any:
    """(samples * N, ...) as (samples, N, ...)."""
    shape = lib.norch_shape(out)
    return lib.norch_view(out, (level.size, shape[0] // (level.size or 1), *shape[1:]))


def _as_groups(x: Any, level: Level) -> Any:
    """(N, samples * C, H, W) of samples (N, C, H, W)."""
    p = lib.norch_transpose(samples(x, level), 0, 1)
    shape = lib.norch_shape(p)
    return lib.norch_reshape(p, (shape[0], shape[1] * shape[2], *shape[3:]))


def _from_groups(out: Any, level: Level) -> Any:
    """(samples, N, C, H, W) of (N, samples * C, H, W)."""
    shape = lib.norch_shape(out)
    parts = lib.norch_view(out, (shape[0], level.size, shape[1] // (level.size or 1), *shape[2:]))
    return lib.norch_transpose(parts, 0, 1)


def _in_groups(geometry: Geometry, level: Level) -> tuple[int, ...]:
    *rest, groups = geometry
    return (*rest, groups * level.size)


def _with_bias(out: Any, bias: Any, level: Level) -> Any:
    """out (samples, N, C, H, W) plus a bias (C)."""
    if bias is None:
        return out
    column = lib.norch_unsqueeze(lib.norch_unsqueeze(aligned(bias, level, 2), -1), -1)
    return lib.norch_binary(_ADD, out, column)


def _convolved(level: Level, call: Any, x: Any, weight: Any, bias: Any, geometry: Geometry, *size: Any) -> Any:
    """norch_conv and norch_conv_input, which are batched alike."""
    if not is_here(weight, level):
        if is_here(x, level):
            plain = None if is_here(bias, level) else bias
            out = _unfolded(call(_folded(x._physical), weight, plain, geometry, *size), level)
            return sample(out if plain is bias else _with_bias(out, bias, level), level)
        out = lib.norch_unsqueeze(call(x, weight, None, geometry, *size), 0)
        return sample(_with_bias(out, bias, level), level)
    if not is_here(x, level) and geometry[-1] == 1 and call is lib.norch_conv:  # one input: more output channels
        out = call(x, _folded(weight._physical), None, geometry)
    else:
        out = call(_as_groups(x, level), _folded(weight._physical), None, _in_groups(geometry, level), *size)
    return sample(_with_bias(_from_groups(out, level), bias, level), level)


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
            become(sums, lib.norch_reduce(_SUM, y._physical, (1, 3, 4), False, -1, 0.0), level)
        else:
            lib.norch_copy(sums, lib.norch_reduce(_SUM, y, (0, 2, 3), False, -1, 0.0))
    if not is_here(x, level) and geometry[-1] == 1:  # one input: more output channels
        out = lib.norch_conv_weight(x, _as_groups(y, level), geometry, kernel, None)
    else:
        out = lib.norch_conv_weight(
            _as_groups(x, level), _as_groups(y, level), _in_groups(geometry, level), kernel, None
        )
    return sample(_unfolded(out, level), level)
