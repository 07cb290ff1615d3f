"""Gradient clipping, between backward() and step(). `foreach` is accepted and has no effect."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

from ..._package.exports import publish
from ...autograd import no_grad
from ...dtype import check_numbers, float32, promote_types
from ...dtype import dtype as DType
from ...ops._arguments import tensors_of
from ...ops._operand import tensor_of
from ...ops.copy import stack
from ...ops.values import tensor
from ...tensor import Tensor


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    grads: list[Any] = [param.grad for param in parameters if param.grad is not None]
    return [grad if grad.is_sparse else grad.detach() for grad in grads]  # writes to a sparse one stay its own


def _listed(tensors: Tensor | Iterable[Tensor], name: str) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else tensors_of(tensors, name)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of the tensors together, on the device of the first.

    norm_type: any that norm() takes. error_if_nonfinite: RuntimeError for a norm of NaN or inf.

    >>> norch.nn.utils.get_total_norm([norch.tensor([3.0]), norch.tensor([4.0])])
    tensor(5.)
    """
    with no_grad():
        total, dtype = _norm(_listed(tensors, "get_total_norm"), _order(norm_type), error_if_nonfinite)
        return total.to(dtype)


def _order(norm_type: Any) -> Any:
    """norm_type as a number; it may be a str such as "inf"."""
    return float(norm_type) if isinstance(norm_type, str) else norm_type


def _norm(tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool) -> tuple[Tensor, DType]:
    """The norm, in at least float32 because squares overflow in float16, and the common dtype of the tensors."""
    if not tensors:
        return tensor(0.0), float32
    device, wide = tensors[0].device, [x.to(promote_types(x.dtype, float32)) for x in tensors]
    total = stack([x.norm(norm_type).to(device) for x in wide]).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"the total norm of the gradients is {total.item()}; they were not clipped")
    return total, reduce(promote_types, [x.dtype for x in tensors])


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies all gradients in place by min(1, max_norm / total_norm).

    >>> p = norch.nn.Parameter(norch.zeros(2))
    >>> p.grad = norch.tensor([3.0, 4.0])
    >>> norch.nn.utils.clip_grads_with_norm_([p], 1.0, norch.nn.utils.get_total_norm([p.grad]))
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    _scale(_listed(parameters, "clip_grads_with_norm_"), max_norm, tensor_of(total_norm, "clip_grads_with_norm_"))


def _scale(parameters: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _gradients(parameters):
            grad.mul_(scale.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients in place so that their total norm is at most max_norm. Returns the norm before.

    norm_type: any that norm() takes. error_if_nonfinite: RuntimeError for a norm of NaN or inf, before any change.

    >>> p = norch.nn.Parameter(norch.zeros(2))
    >>> (p * norch.tensor([3.0, 4.0])).sum().backward()
    >>> norch.nn.utils.clip_grad_norm_([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    listed = _listed(parameters, "clip_grad_norm_")
    with no_grad():
        max_norm = max_norm.detach() if isinstance(max_norm, Tensor) else max_norm
        order = _order(norm_type)
        check_numbers("clip_grad_norm_", max_norm=max_norm, norm_type=order)
        total, dtype = _norm(_gradients(listed), order, error_if_nonfinite)
        _scale(listed, max_norm, total)
        return total.to(dtype)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamps the elements of all gradients to [-clip_value, clip_value], in place. foreach has no effect.

    >>> p = norch.nn.Parameter(norch.zeros(2))
    >>> p.grad = norch.tensor([-3.0, 0.5])
    >>> norch.nn.utils.clip_grad_value_([p], 1.0)
    >>> p.grad
    tensor([-1.0000,  0.5000])
    """
    listed = _listed(parameters, "clip_grad_value_")
    check_numbers("clip_grad_value_", clip_value=clip_value)
    with no_grad():
        for grad in _gradients(listed):
            grad.clamp_(-clip_value, clip_value)


publish(globals())
