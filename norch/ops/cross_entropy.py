"""The cross-entropy of logits (N, C) or (C) with class indices. One call (csrc/ops/cross_entropy.c) computes it, and
stores two numbers for each row instead of all log-probabilities; another computes its gradient.
"""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients
from ..autograd.grad_mode import mode
from ..autograd.outlive import outlive_writes
from ..autograd.record import record
from ..autograd.saved import TensorHolder
from .nll import Targets, count_for, nll
from .pointwise import where
from .softmax import log_softmax

_FLOAT32, _FLOAT64 = constants["FLOAT32"], constants["FLOAT64"]


class _Kept(TensorHolder):
    """What the gradient needs besides the logits.

    target     class indices (N) or (), int64
    ignored    the class index that does not count
    log_sums   (N, 2): the largest element x of each row, and the logarithm of the sum of exp(. - x)
    count      the number of rows that count if the reduction is "mean", else None
    """

    __slots__ = ("count", "ignored", "log_sums", "reduction", "smoothing", "target")

    def __init__(self, x: Any, target: Any, ignored: int, reduction: str, smoothing: float) -> None:
        place = (_FLOAT64 if x._dtype == _FLOAT64 else _FLOAT32, (x._device_type, x._device_index))
        self.target, self.ignored, self.reduction, self.smoothing = target, ignored, reduction, smoothing
        self.log_sums = lib.norch_empty((lib.norch_shape(x)[0] if x.ndim == 2 else 1, 2), *place)
        self.count = count_for(x, reduction)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The tensors that a node saves."""
        return self.target, self.log_sums


def cross_entropy(x: Tensor, target: Tensor, ignored: int, reduction: str, smoothing: float) -> Tensor:
    """The losses of the rows of x, floats (N, C) or (C), with targets (N) or (), int64, reduced."""
    kept = _Kept(x, target, ignored, reduction, smoothing)
    out = lib.norch_cross_entropy(x, target, kept.log_sums, kept.count, ignored, reduction != "none", smoothing)
    return outlive_writes(record(_CrossEntropy, out, (x,), (kept,)), x)  # PyTorch saves the logarithms of softmax


def _composed(x: Tensor, kept: _Kept) -> Tensor:
    """cross_entropy() as recorded operations."""
    log_probabilities = log_softmax(x, x.ndim - 1)
    hard, count = nll(log_probabilities, Targets(kept.target, kept.ignored, None, kept.reduction))
    if not kept.smoothing:
        return hard
    uniform = where(kept.target == kept.ignored, 0.0, -log_probabilities.sum(-1) / x.shape[-1])
    uniform = uniform if kept.reduction == "none" else uniform.sum()
    if count is not None:
        uniform = uniform / count
    return hard * (1.0 - kept.smoothing) + uniform * kept.smoothing


def _backward(g: Handle, x: Tensor, kept: _Kept) -> Tensor:
    """The gradient of x: (softmax(x) - the target as probabilities) g."""
    if mode.enabled:
        return formula_gradients(_composed, g, (x,), (True,), kept)[0]
    return lib.norch_cross_entropy_backward(g, x, kept.target, kept.log_sums, kept.count, kept.ignored, kept.smoothing)


_CrossEntropy = derivative("cross_entropy", ("x",), tensors=("kept",), grad=_backward)
