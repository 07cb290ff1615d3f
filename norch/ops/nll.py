"""The loss of class indices beside log-probabilities, as one node: what nll_loss and cross_entropy are made of.

Its reverse spreads a gradient to the places that were read; each is linear, and the other's derivative.
"""

from __future__ import annotations

from typing import Any

from .._handle import Handle
from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.inplace import meta_of, zeros_of
from ._forms import OPS, hang
from ._operand import operand
from .index import KINDS

_NE, _NEG, _DIV, _WHERE, _SUM = (OPS[name] for name in ("ne", "neg", "div", "where", "sum"))


class Targets:
    """Where class indices (N, ...) point along the axis `dim` of (N, C, ...), and how their losses are joined.

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
        self.count = _sum(self.valid) if reduction == "mean" else None


def _sum(x: Any) -> Any:
    return lib.norch_reduce(_SUM, x, None, False, -1, 0.0)


def nll(x: Any, at: Targets) -> Any:
    """-x at the targets, joined: 0-d, or for "none" (N, ...), 0 where a target is ignored."""
    picked = lib.norch_unary(_NEG, lib.norch_gather(x, at.dim, at.index))
    loss = lib.norch_ternary(_WHERE, at.valid, picked, operand(0.0))
    if at.reduction == "none":
        out = lib.norch_squeeze(loss, (at.dim,))
    else:
        out = _sum(loss)
        if at.count is not None:
            out = lib.norch_binary(_DIV, out, at.count)
    return hang(out, d.Nll, x, at=at, like=meta_of(x))


def nll_spread(g: Any, at: Targets, like: Handle) -> Any:
    """The gradient of x, in the shape of like, from that of nll(x, at)."""
    share = lib.norch_unsqueeze(g, at.dim) if at.reduction == "none" else g
    if at.count is not None:
        share = lib.norch_binary(_DIV, share, at.count)
    part = lib.norch_ternary(_WHERE, at.valid, lib.norch_unary(_NEG, share), operand(0.0))
    out = lib.norch_scatter(zeros_of(like), KINDS["SCATTER"], at.dim, at.index, part, True)
    return hang(out, d.NllSpread, g, at=at)


class NllMethods(Handle):
    """What the derivatives call."""

    __slots__ = ()

    _nll, _nll_spread = nll, nll_spread
