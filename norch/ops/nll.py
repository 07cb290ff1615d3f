"""The negative log likelihood of class indices: one call (csrc/ops/cross_entropy.c), for nll_loss and cross_entropy.

Its gradient is written to the elements that were read. Both are linear, and each is the derivative of the other.
"""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.record import record
from ..autograd.saved import TensorHolder

_FLOAT32, _FLOAT64 = constants["FLOAT32"], constants["FLOAT64"]


class Targets(TensorHolder):
    """Class indices (N, ...) or (), int64, for an input (N, C, ...) or (C), and the reduction of their losses.

    ignored     the index that does not count
    weight      a number for each class, or None
    reduction   "mean", "sum" or "none"
    """

    __slots__ = ("ignored", "reduction", "target", "weight")

    def __init__(self, target: Any, ignored: int, weight: Any, reduction: str) -> None:
        self.target, self.ignored, self.weight, self.reduction = target, ignored, weight, reduction

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a node saves."""
        return (self.target,) if self.weight is None else (self.target, self.weight)


def count_for(x: Any, reduction: str) -> Any:
    """An empty 0-d tensor, to which norch_nll() and norch_cross_entropy() write the divisor of a mean; None for other
    reductions."""
    if reduction != "mean":
        return None
    return lib.norch_empty((), _FLOAT64 if x._dtype == _FLOAT64 else _FLOAT32, (x._device_type, x._device_index))


def nll(x: Tensor, targets: Targets) -> tuple[Tensor, Any]:
    """(loss, divisor): -x at the targets, times their weights, reduced to a 0-d tensor; with "none" (N, ...), 0 where a
    target is ignored. divisor is what a mean divides by.
    """
    t = targets
    count = count_for(x, t.reduction)
    out = lib.norch_nll(x, t.target, t.weight, count, t.ignored, t.reduction != "none")
    return record(_Nll, out, (x,), (targets, count)), count


def _nll_backward(g: Tensor, targets: Targets, count: Any, x_meta: Handle) -> Tensor:
    """The gradient of x, in the shape of x_meta, from the gradient of nll(x, targets)."""
    classes = x_meta.shape[min(x_meta.ndim - 1, 1)]
    out = lib.norch_nll_backward(g, targets.target, targets.weight, count, targets.ignored, classes)
    return record(_NllBackward, out, (g,), (targets,))


_Nll = derivative(
    "nll",
    tensors=("targets",),
    grad=lambda g, x_meta, targets, count: _nll_backward(g, targets, count, x_meta),
)
_NllBackward = derivative("nll_backward", ("g",), tensors=("targets",), grad=lambda g2, targets: nll(g2, targets)[0])
