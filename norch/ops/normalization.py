"""Normalisation of rows of the last axes and of channels, with the arguments of torch.nn.functional. Rows, and groups
of channels, are one call (csrc/ops/normalize.c); batches are composed of reductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .._lib import flag, int64, lib
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients
from ..autograd.grad_mode import mode, no_grad
from ..autograd.record import record
from ..dtype import finfo
from ..errors import ArgumentError, ShapeError
from ._halves import rounded_once
from ._operand import rename_errors, tensor_of
from .op import function_op
from .pointwise import _addcmul

# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _normalize_backward(
    g: Any, x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool, needs_input_grad: tuple[bool, ...]
) -> tuple[Any, ...]:
    """With f = g weight: scale (f - mean(f) - h mean(f h)), where h is x normalised."""
    if mode.enabled:
        return formula_gradients(_normalize_formula, g, (x, weight, bias), needs_input_grad, axes, eps, centered)
    to_x, to_weight, to_bias = needs_input_grad
    place = (x._dtype, (x._device_type, x._device_index))
    shape = lib.norch_shape(x)
    grad_x = lib.norch_empty(shape, *place)
    if not (to_weight or to_bias):
        lib.norch_normalize_backward(g, x, weight, axes, eps, centered, (grad_x,))
        return grad_x, None, None
    sums = lib.norch_empty((2, *(shape[1:2] if axes < 0 else shape[-axes:])), *place)  # for weight and bias
    lib.norch_normalize_backward(g, x, weight, axes, eps, centered, (grad_x, sums))
    return grad_x if to_x else None, sums.select(0, 0) if to_weight else None, sums.select(0, 1) if to_bias else None


def _normalize_formula(x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool) -> Any:
    """normalized(), composed of recorded operations."""
    shape, dims = x.shape, tuple(range(-axes, 0))
    if axes < 0:  # (N, groups, channels, elements)
        x, dims = x.reshape(shape[0], -axes, shape[1] // -axes, -1), (2, 3)
        weight, bias = (None if one is None else one.reshape(-axes, -1, 1) for one in (weight, bias))
    if centered:
        x = x - x.mean(dims, True)
    out = x * (x.square().mean(dims, True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return (out if bias is None else out + bias).reshape(shape)


_Normalize = derivative("normalize", ("x", "weight", "bias"), backward=_normalize_backward, depends_on=2)


def normalized(x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool) -> Any:
    """The last axes of x, or -axes groups of its channels, normalised, times weight, plus bias (or None each)."""
    out = lib.norch_normalize(x, weight, bias, axes, eps, centered)
    return record(_Normalize, out, (x, weight, bias), (axes, eps, centered))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _rows(name: str, x: Any, normalized_shape: Any) -> int:
    """How many axes are normalised."""
    shape = lib.norch_shape(tensor_of(x, name))
    wanted = tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    if not wanted or shape[-len(wanted) :] != wanted:
        raise ShapeError(f"{name}: normalized_shape {wanted} is not how shape {shape} ends")
    return len(wanted)


@partial(rounded_once, mixed=True)
def layer_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """The last axes of input, whose sizes are normalized_shape, with mean 0 and variance 1; times weight, plus bias.

    weight and bias: of normalized_shape. Floats; ShapeError where the sizes differ.

    >>> norch.nn.functional.layer_norm(norch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    return normalized(input, weight, bias, _rows("layer_norm", input, normalized_shape), eps, True)


@partial(rounded_once, mixed=True)
def rms_norm(input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """The last axes of input over the root of their mean square (plus eps: the dtype's unless given); times weight.

    >>> norch.nn.functional.rms_norm(norch.tensor([3.0, -3.0]), (2,), eps=0.0)
    tensor([ 1., -1.])
    """
    axes = _rows("rms_norm", input, normalized_shape)
    return normalized(input, weight, None, axes, finfo(input.dtype).eps if eps is None else eps, False)


# ---- channels --------------------------------------------------------------------------------------------------------

# By a parameter, whose gradient PyTorch records as a function of what went in.
_scaled = function_op("scaled", row="mul", depends_on=2, grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)
_shifted = function_op("shifted", row="add", depends_on=2, shares_grad=True, grad_a=lambda g: g, grad_b=lambda g: g)


def _along_channels(x: Any, ndim: int) -> Any:
    """(C) as (C, 1, ...), which broadcasts with (N, C, ...)."""
    return x.reshape(-1, *(1,) * (ndim - 2))


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        x = _scaled(x, _along_channels(weight, x.ndim))
    return x if bias is None else _shifted(x, _along_channels(bias, x.ndim))


def _channels(name: str, x: Any, least: int, **tensors: Any) -> tuple[int, ...]:
    """The shape of x (N, C, ...); the other tensors are of shape (C), or None."""
    shape = lib.norch_shape(tensor_of(x, name))
    if len(shape) < least:
        raise ShapeError(f"{name}: expected {least} or more dimensions, got shape {shape}")
    for what, one in tensors.items():
        if one is not None and tuple(tensor_of(one, f"{name}: {what}").shape) != shape[1:2]:
            raise ShapeError(f"{name}: {what} of shape {tuple(one.shape)} for {shape[1]} channels")
    return shape


@partial(rounded_once, mixed=True)
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """input (N, C, ...): the channels of each group with mean 0 and variance 1; times weight (C), plus bias (C).

    >>> norch.nn.functional.group_norm(norch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    shape = _channels("group_norm", input, 2, weight=weight, bias=bias)
    if int64(num_groups, "group_norm: num_groups") < 1 or shape[1] % num_groups:
        raise ArgumentError(f"group_norm: {shape[1]} channels do not fall into {num_groups} groups")
    if input.numel() == 0:
        return _affine(input * 1.0, weight, bias)
    if input.numel() == num_groups:
        raise ArgumentError(f"group_norm: expected more than 1 value per group, got input size {shape}")
    return normalized(input, weight, bias, -num_groups, eps, True)


def _update(running: Any, value: Any, momentum: float) -> None:
    if running is not None:
        running.mul_(1 - momentum).add_(value.to(running.dtype) * momentum)


@rename_errors
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """input (N, C, ...): each channel with mean 0 and variance 1; times weight (C), plus bias (C).

    training: the statistics are those of the batch, and running_mean and running_var (unless None) move towards them
    by momentum, the variance being the unbiased one; else they are the running ones. ValueError when a channel has one
    element only in training.

    >>> norch.nn.functional.batch_norm(norch.tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0)
    tensor([[-1.],
            [ 1.]])
    """
    others = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    shape = _channels("batch_norm", input, 2, **others)
    if eps < 0:
        raise ArgumentError(f"batch_norm: eps must not be negative, got {eps}")
    if input.dtype.itemsize == 2 and input.dtype.is_floating_point:  # rounded_once would write to copies of running_*
        wide = input.float()
        return batch_norm(wide, running_mean, running_var, weight, bias, training, momentum, eps).to(input.dtype)
    if not flag(training, "batch_norm: training"):
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: running_mean and running_var are needed unless training")
        scale = (running_var + eps).rsqrt()
        if weight is not None:
            scale = _scaled(scale, weight)
        shift = -running_mean * scale if bias is None else bias - running_mean * scale
        if not (mode.enabled and any(x is not None and x.requires_grad for x in (input, *others.values()))):  # one pass
            return _addcmul(_along_channels(shift, input.ndim), input, _along_channels(scale, input.ndim))
        return _affine(input, scale, shift)
    count = input.numel() // shape[1] if shape[1] else 0
    if count == 1:
        raise ArgumentError(f"batch_norm: expected more than 1 value per channel when training, got input size {shape}")
    dims = (0, *range(2, len(shape)))
    mean = input.mean(dims, True)
    if not count:  # no statistics, but gradients of 0
        return _affine(input * 1.0, weight, bias)
    centred = input - mean
    variance = centred.square().mean(dims, True)
    with no_grad():
        _update(running_mean, mean.flatten(), momentum)
        _update(running_var, variance.flatten() * (count / (count - 1)), momentum)
    scale = (variance + eps).rsqrt()
    if weight is not None:
        scale = _scaled(scale, _along_channels(weight, len(shape)))
    return _affine(centred * scale, None, bias)


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """input (N, C, L...): each channel of each sample with mean 0 and variance 1; times weight (C), plus bias (C).

    The running statistics (unless None) move towards the mean of those of the samples; they serve instead of them
    unless use_input_stats.
    """
    others = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    shape = _channels("instance_norm", input, 3, **others)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = input.numel() // max(shape[0] * shape[1], 1)
    if count == 1:
        raise ArgumentError(f"instance_norm: expected more than 1 element per channel in training, got {shape}")
    if count and shape[0] and (running_mean is not None or running_var is not None):
        with no_grad():
            dims = tuple(range(2, len(shape)))
            _update(running_mean, input.mean(dims).mean(0), momentum)
            _update(running_var, input.var(dims).mean(0), momentum)
    return group_norm(input, shape[1], weight, bias, eps) if shape[1] else input * 1.0
