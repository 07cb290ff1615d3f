"""Rules of the cross-entropy of logits: the losses of all rows of all samples, then a reduction for each sample."""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd.levels import Level
from ..ops._operand import operand
from ..ops.op import OPCODES
from .level import become, folded, rule, sample, samples, sum_over

_DIV, _NE = OPCODES["div"], OPCODES["ne"]


def _rows(x: Any, level: Level, ndim: int) -> Any:
    """(samples * N, ...) of samples (N, ...) of ndim axes, or, where they have one less, of one row."""
    p = samples(x, level)
    return lib.norch_contiguous(p if x.ndim < ndim else folded(p))


@rule("cross_entropy")
def _cross_entropy(
    level: Level, x: Any, target: Any, log_sums: Any, count: Any, ignored: int, reduced: bool, smoothing: float
) -> Any:
    shape = (level.size, *lib.norch_shape(target))
    rows, targets = _rows(x, level, 2), _rows(target, level, 1)
    kept = lib.norch_empty((lib.norch_shape(rows)[0], 2), log_sums._dtype, (x._device_type, x._device_index))
    losses = lib.norch_cross_entropy(rows, targets, kept, None, ignored, False, smoothing)
    become(log_sums, lib.norch_view(kept, (level.size, -1, 2)), level)
    out = lib.norch_view(losses, shape)
    if not reduced:
        return sample(out, level)
    if target.ndim:
        out = sum_over(out, (1,))
    if count is not None:
        valid = lib.norch_binary(_NE, samples(target, level), operand(ignored))
        number = sum_over(valid, (1,)) if target.ndim else valid
        become(count, lib.norch_cast(number, count._dtype), level)
        out = lib.norch_binary(_DIV, out, lib.norch_cast(number, out._dtype))
    return sample(out, level)


@rule("cross_entropy_backward")
def _cross_entropy_backward(
    level: Level, g: Any, x: Any, target: Any, log_sums: Any, count: Any, ignored: int, smoothing: float
) -> Any:
    slope, shape = samples(g, level), lib.norch_shape(target)
    if count is not None:
        number = samples(count, level)
        slope = lib.norch_binary(_DIV, slope, lib.norch_cast(number, slope._dtype))
    if shape and not g.ndim:
        slope = lib.norch_expand(lib.norch_unsqueeze(slope, 1), (level.size, *shape))
    slope = lib.norch_contiguous(lib.norch_flatten(slope, 0, -1))
    sums = lib.norch_contiguous(folded(samples(log_sums, level)))
    out = lib.norch_cross_entropy_backward(
        slope, _rows(x, level, 2), _rows(target, level, 1), sums, None, ignored, smoothing
    )
    return sample(lib.norch_view(out, (level.size, *lib.norch_shape(x))), level)
