"""The negative log likelihood of class indices as one node, for nll_loss and cross_entropy.

The gradient is written to the elements that were read. Both are linear, and each is the derivative of the other.
"""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.levels import zeros_of
from ..autograd.record import record
from ..autograd.saved import TensorHolder
from ._operand import operand
from .index import KINDS
from .op import OPCODES

_NE, _NEG, _DIV, _WHERE, _SUM = (OPCODES[name] for name in ("ne", "neg", "div", "where", "sum"))


class Targets(TensorHolder):
    """Where class indices (N, ...) point along the axis `dim` of (N, C, ...), and how their losses are reduced.

    index, valid   with that axis at size 1; what is ignored points at class 0
    reduction      "mean" over the `count` that are valid, "sum" or "none"
    """

    __slots__ = ("count", "dim", "index", "reduction", "valid")

    def __init__(self, target: Any, dim: int, ignore_index: int, reduction: str) -> None:
        index = lib.norch_unsqueeze(target, dim)
        self.dim = dim
        self.reduction = reduction
        self.valid = lib.norch_binary(_NE, index, operand(ignore_index))
        self.index = lib.norch_ternary(_WHERE, self.valid, index, operand(0))
        self.count: Any = _sum(self.valid) if reduction == "mean" else None

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The tensors that a node saves."""
        return self.index, self.valid


def _sum(x: Tensor) -> Tensor:
    return lib.norch_reduce(_SUM, x, None, False, -1, 0.0)


def nll(x: Tensor, targets: Targets) -> Tensor:
    """-x at the targets, reduced: 0-d, or for "none" (N, ...), 0 where a target is ignored."""
    picked = lib.norch_unary(_NEG, lib.norch_gather(x, targets.dim, targets.index))
    loss = lib.norch_ternary(_WHERE, targets.valid, picked, operand(0.0))
    if targets.reduction == "none":
        out = lib.norch_squeeze(loss, (targets.dim,))
    else:
        out = _sum(loss)
        if targets.count is not None:
            out = lib.norch_binary(_DIV, out, targets.count)
    return record(_Nll, out, (x,), (targets,))


def _nll_backward(g: Tensor, targets: Targets, x_meta: Handle) -> Tensor:
    """The gradient of x, of the shape of x_meta, from that of nll(x, targets)."""
    share = lib.norch_unsqueeze(g, targets.dim) if targets.reduction == "none" else g
    if targets.count is not None:
        share = lib.norch_binary(_DIV, share, targets.count)
    part = lib.norch_ternary(_WHERE, targets.valid, lib.norch_unary(_NEG, share), operand(0.0))
    out = lib.norch_scatter(zeros_of(x_meta, g), KINDS["SCATTER"], targets.dim, targets.index, part, True)
    return record(_NllBackward, out, (g,), (targets,))


_Nll = derivative(
    "nll",
    tensors=("targets",),
    grad=lambda g, x_meta, targets: _nll_backward(g, targets, x_meta),
)
_NllBackward = derivative("nll_backward", ("g",), tensors=("targets",), grad=lambda g2, targets: nll(g2, targets))
