"""Parts of losses whose own derivative is simpler, or more exact, than that of the composed operations."""

from __future__ import annotations

from .._typing import Tensor
from ..autograd.differentiable import differentiable
from .activation import logsigmoid
from .pointwise import log, log1p


@differentiable(
    "binary_cross_entropy_with_logits",
    broadcast=True,
    grad_x=lambda g, x, target: g * ((1 - target) - (-x).sigmoid()),
    grad_target=lambda g, x: g * -x,
)
def logit_cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """-(target log(sigmoid(x)) + (1 - target) log(1 - sigmoid(x))) for each element."""
    return (1 - target) * x - logsigmoid(x)


@differentiable(
    "binary_cross_entropy",
    broadcast=True,
    grad_x=lambda g, x, target: g * (x - target) / ((1 - x) * x).clamp(min=1e-12),
    grad_target=lambda g, x: g * ((-x).log1p() - x.log()),
)
def probability_cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """-(target log(x) + (1 - target) log(1 - x)) for each element, with each log clamped to at least -100."""
    return (target - 1) * log1p(-x).clamp(min=-100.0) - target * log(x).clamp(min=-100.0)
