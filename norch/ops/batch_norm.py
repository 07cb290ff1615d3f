"""Normalization of channels over a batch (Ioffe and Szegedy, "Batch Normalization", 2015). It is one call if there is a
kernel for the arguments (csrc/ops/batch_norm.c), and a composition of reductions otherwise.
"""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from .._binding.numbers import flag
from .._package.typing import Operand, Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients, placeholder
from ..autograd.grad_mode import mode, no_grad
from ..autograd.record import record
from ..errors import ArgumentError, ShapeError
from ._entry import rename_errors
from ._operand import tensor_of
from .op import function_op

# ---- channels --------------------------------------------------------------------------------------------------------

# By a parameter, whose gradient PyTorch records as a function of what went in.
_scaled = function_op("scaled", row="mul", depends_on=2, grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)
_shifted = function_op("shifted", row="add", depends_on=2, shares_grad=True, grad_a=lambda g: g, grad_b=lambda g: g)


def _along_channels(x: Any, ndim: int) -> Any:
    """(C) as (C, 1, ...), which broadcasts with (N, C, ...)."""
    return x.reshape(-1, *(1,) * (ndim - 2))


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """x (N, C, ...) times weight (C), plus bias (C); either may be None."""
    if weight is not None:
        x = _scaled(x, _along_channels(weight, x.ndim))
    return x if bias is None else _shifted(x, _along_channels(bias, x.ndim))


def channels(name: str, x: Tensor, least: int, **tensors: Any) -> tuple[int, ...]:
    """The shape of x (N, C, ...); the other tensors are of shape (C), or None."""
    shape = lib.norch_shape(tensor_of(x, name))
    if len(shape) < least:
        raise ShapeError(f"{name}: expected {least} or more dimensions, got shape {shape}")
    for argument, tensor in tensors.items():
        if tensor is not None and tuple(tensor_of(tensor, f"{name}: {argument}").shape) != shape[1:2]:
            raise ShapeError(f"{name}: {argument} of shape {tuple(tensor.shape)} for {shape[1]} channels")
    return shape


def update(running: Any, value: Any, momentum: Any) -> None:
    """Moves running towards value by momentum, a number or a tensor of one element."""
    if running is not None:
        running.mul_(1 - momentum).add_(value.to(running.dtype) * momentum)


# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _moments(x: Any) -> tuple[Any, Any]:
    """The mean of each channel, and the biased variance, with axes of size 1."""
    dims = (0, *range(2, x.ndim))
    mean = x.mean(dims, True)
    return mean, (x - mean).square().mean(dims, True)


def _composed(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float, training: bool) -> Any:
    """Batch normalization as recorded operations. With training, mean and variance are computed from x."""
    if training:
        mean, variance = _moments(x)
    else:
        mean, variance = _along_channels(mean, x.ndim), _along_channels(variance, x.ndim)
    return affine((x - mean) * (variance + eps).rsqrt(), weight, bias)


def _backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_meta: Handle,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    training: bool,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """weight scale (g - mean(g) - h mean(g h)), where h is x normalised; the means only where they depend on x."""
    if mode.enabled:
        inputs = x, weight, placeholder(bias_meta, needs_input_grad[2])
        return formula_gradients(_composed, g, inputs, needs_input_grad, mean, variance, eps, training)
    place = (x._dtype, (x._device_type, x._device_index))
    shape = lib.norch_shape(x)
    grad_x, sums = lib.norch_empty(shape, *place), lib.norch_empty((2, shape[1]), *place)
    lib.norch_batch_norm_backward(g, x, mean, variance, weight, eps, training, (grad_x, sums))
    to_x, to_weight, to_bias = needs_input_grad
    return grad_x if to_x else None, sums.select(0, 0) if to_weight else None, sums.select(0, 1) if to_bias else None


_BatchNorm = derivative(
    "batch_norm", ("x", "weight", "bias"), backward=_backward, tensors=("mean", "variance"), depends_on=2
)


def _has_kernel(x: Tensor, *others: Tensor | None) -> bool:
    """Whether the kernel takes these tensors. The composed form promotes or refuses other dtypes and devices."""
    place = (x._dtype, x._device_type, x._device_index)
    return all(t is None or (t._contiguous and place == (t._dtype, t._device_type, t._device_index)) for t in others)


def _of_batch(
    x: Tensor,
    running: tuple[Any, Any],
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: Operand,
    eps: float,
    count: int,
) -> Tensor:
    """batch_norm() in training, of `count` elements a channel."""
    if not (x.is_floating_point() and _has_kernel(x, weight, bias)):
        mean, variance = _moments(x)
        with no_grad():
            update(running[0], mean.flatten(), momentum)
            update(running[1], variance.flatten() * (count / (count - 1)), momentum)
        return affine((x - mean) * (variance + eps).rsqrt(), weight, bias)
    place = (x._dtype, (x._device_type, x._device_index))
    mean, variance = (lib.norch_empty((lib.norch_shape(x)[1],), *place) for _ in range(2))
    if _has_kernel(x, *running) and not isinstance(momentum, Handle):
        out = lib.norch_batch_norm(x, mean, variance, *running, weight, bias, momentum, eps)
        for statistic in running:
            if statistic is not None:
                statistic._bump()
    else:
        out = lib.norch_batch_norm(x, mean, variance, None, None, weight, bias, 0.0, eps)
        with no_grad():
            update(running[0], mean, momentum)
            update(running[1], variance * (count / (count - 1)), momentum)
    return record(_BatchNorm, out, (x, weight, bias), (mean, variance, eps, True))


@rename_errors
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: Operand = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of input (N, C, ...) to mean 0 and variance 1, then multiplies it by weight (C) and adds
    bias (C) (Ioffe and Szegedy 2015).

    With training, mean and variance are computed from the batch, and running_mean and running_var, unless None, move
    towards them by momentum; running_var moves towards the unbiased variance. Without training, running_mean and
    running_var are used. ValueError when a channel has only one element in training.

    >>> norch.nn.functional.batch_norm(norch.tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0)
    tensor([[-1.],
            [ 1.]])
    """
    running = (running_mean, running_var)
    optional = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    shape = channels("batch_norm", input, 2, **optional)
    if eps < 0:
        raise ArgumentError(f"batch_norm: eps must not be negative, got {eps}")
    if input.dtype.itemsize == 2 and input.dtype.is_floating_point:  # @composed would write to copies of running_*
        wide = input.float()
        weight, bias = (x.float() if x is not None and x.dtype is input.dtype else x for x in (weight, bias))
        return batch_norm(wide, *running, weight, bias, training, momentum, eps).to(input.dtype)
    if not flag(training, "batch_norm: training"):
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: running_mean and running_var are needed unless training")
        recorded = mode.enabled and (running_mean.requires_grad or running_var.requires_grad)
        if recorded or not (input.is_floating_point() and _has_kernel(input, *optional.values())):
            return _composed(input, weight, bias, *running, eps, False)
        out = lib.norch_batch_norm(input, None, None, *running, weight, bias, 0.0, eps)
        return record(_BatchNorm, out, (input, weight, bias), (*running, eps, False))
    count = input.numel() // shape[1] if shape[1] else 0
    if count == 1:
        raise ArgumentError(f"batch_norm: expected more than 1 value per channel when training, got input size {shape}")
    if not count:  # no statistics, but gradients of 0
        return affine(input * 1.0, weight, bias)
    return _of_batch(input, running, weight, bias, momentum, eps, count)
