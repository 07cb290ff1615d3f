"""Parts of losses that have a derivative which is simpler, or more exact, than that of composed operations."""

from __future__ import annotations

from .._package.typing import Tensor
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


def _spread(x: Tensor) -> Tensor:
    return ((1 - x) * x).clamp(min=1e-12)


@differentiable(
    "binary_cross_entropy_backward",
    broadcast=True,
    grad_x=lambda g, x, target: g * (x * x - 2 * x * target + target) / _spread(x) / _spread(x),
    grad_target=lambda g, x: -g / _spread(x),
)
def _slope_of_probability(x: Tensor, target: Tensor) -> Tensor:
    """(x - target) / (x (1 - x)), with the product clamped. As in PyTorch, its derivative is that of the quotient
    without the clamp.
    """
    return (x - target) / _spread(x)


@differentiable(
    "binary_cross_entropy",
    broadcast=True,
    grad_x=lambda g, x, target: g * _slope_of_probability(x, target),
    grad_target=lambda g, x: g * ((-x).log1p() - x.log()),
)
def probability_cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """-(target log(x) + (1 - target) log(1 - x)) for each element, with each log clamped to at least -100."""
    return (target - 1) * log1p(-x).clamp(min=-100.0) - target * log(x).clamp(min=-100.0)
