"""Helpers: clipping of gradients between backward() and step(); all parameters as one vector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce

from ..autograd import no_grad
from ..create import tensor
from ..dtype import float32, promote_types
from ..errors import ShapeError
from ..ops.copy import cat, stack
from ..tensor import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [param.grad.detach() for param in parameters if param.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scales all gradients in place so that their common norm is at most max_norm; gives the norm before.

    norm_type: 2, inf, or any other p >= 1. With error_if_nonfinite a norm of NaN or inf raises a RuntimeError
    and changes nothing.

    >>> p = norch.nn.Parameter(norch.zeros(2))
    >>> (p * norch.tensor([3.0, 4.0])).sum().backward()
    >>> norch.nn.utils.clip_grad_norm_([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    with no_grad():
        grads = _gradients(parameters)
        if not grads:
            return tensor(0.0)
        wide = [grad.to(promote_types(grad.dtype, float32)) for grad in grads]  # squares of halves overflow
        if math.isinf(norm_type):
            total = stack([grad.abs().amax() for grad in wide]).amax()
        elif norm_type == 2:
            total = stack([grad.square().sum() for grad in wide]).sum().sqrt()
        else:
            total = stack([(grad.abs() ** norm_type).sum() for grad in wide]).sum() ** (1.0 / norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(f"the total norm of the gradients is {total.item()}; they were not clipped")
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(scale)
        return total.to(reduce(promote_types, [grad.dtype for grad in grads]))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamps every element of the gradients to [-clip_value, clip_value], in place."""
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in one row, recorded.

    >>> norch.nn.utils.parameters_to_vector(norch.nn.Linear(3, 2).parameters()).shape
    norch.Size([8])
    """
    return cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of what parameters_to_vector would give; ShapeError where vec is too short or long."""
    listed = list(parameters)
    counts = [param.numel() for param in listed]
    if tuple(vec.shape) != (sum(counts),):
        raise ShapeError(f"vector_to_parameters: {sum(counts)} elements from shape {tuple(vec.shape)}")
    for param, part in zip(listed, vec.split(counts), strict=True):
        param.data = part.detach().reshape(param.shape)
