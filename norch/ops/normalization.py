"""Normalization of rows of the last axes and of channels, with the arguments of torch.nn.functional. Rows, and groups
of channels, are one call (csrc/ops/normalize.c), for halves too. batch_norm.py has batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._binding.library import constants, lib
from .._binding.numbers import int64
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients, placeholder
from ..autograd.grad_mode import mode, no_grad
from ..autograd.outlive import outlive_writes
from ..autograd.record import record
from ..dtype import finfo, float32
from ..errors import REFUSALS, ArgumentError, DTypeError, Error, ShapeError
from ._autocast import in_autocast, policy
from ._entry import composed, rename_errors
from ._operand import tensor_of
from .batch_norm import affine, batch_norm, channels, update
from .copy import result_type

_FLOAT32, _EPS = constants["FLOAT32"], finfo(float32).eps

# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _normalize_backward(
    g: Tensor,
    x: Tensor,
    weight: Any,
    bias_meta: Handle | None,
    axes: int,
    eps: float,
    centered: bool,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Any, ...]:
    """With f = g weight: scale (f - mean(f) - h mean(f h)), where h is x normalised. weight is a meta tensor where the
    gradient of x is not wanted."""
    if mode.enabled:
        weight = weight if needs_input_grad[0] else placeholder(weight, needs_input_grad[1])
        inputs = x, weight, placeholder(bias_meta, needs_input_grad[2])
        return formula_gradients(_normalize_formula, g, inputs, needs_input_grad, axes, eps, centered)
    to_x, to_weight, to_bias = needs_input_grad
    dtype, device = x._dtype, (x._device_type, x._device_index)
    shape = lib.norch_shape(x)
    grad_x = lib.norch_empty(shape, dtype, device)
    if not (to_weight or to_bias):
        lib.norch_normalize_backward(g, x, weight, axes, eps, centered, (grad_x,))
        return grad_x, None, None
    mixed = (weight is not None and weight._dtype != dtype) or (bias_meta is not None and bias_meta._dtype != dtype)
    sums = lib.norch_empty(  # for weight and bias; beside halves either may be of another dtype
        (2, *(shape[1:2] if axes < 0 else shape[-axes:])), _FLOAT32 if mixed else dtype, device
    )
    lib.norch_normalize_backward(g, x, weight if to_x else None, axes, eps, centered, (grad_x, sums))
    grad_weight = sums.select(0, 0) if to_weight else None
    grad_bias = sums.select(0, 1) if to_bias else None
    if mixed and grad_weight is not None:
        grad_weight = grad_weight.to(weight.dtype)
    if mixed and bias_meta is not None and grad_bias is not None:
        grad_bias = grad_bias.to(bias_meta.dtype)
    return grad_x if to_x else None, grad_weight, grad_bias


@composed(mixed=True)
def _normalize_formula(x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool) -> Any:
    """normalized(), composed of recorded operations."""
    shape, dims = x.shape, tuple(range(-axes, 0))
    if axes < 0:  # (N, groups, channels, elements)
        x, dims = x.reshape(shape[0], -axes, shape[1] // -axes, -1), (2, 3)
        weight, bias = (None if t is None else t.reshape(-axes, -1, 1) for t in (weight, bias))
    if centered:
        x = x - x.mean(dims, True)
    out = x * (x.square().mean(dims, True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return (out if bias is None else out + bias).reshape(shape)


_Normalize = derivative(
    "normalize",
    ("x", "weight", "bias"),
    backward=_normalize_backward,
    unread={"weight": ("weight",), "bias": ("weight",)},
    depends_on=2,
)


def normalized(x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: int, eps: float, centered: bool) -> Tensor:
    """The last axes of x, or -axes groups of its channels, normalised, times weight, plus bias (or None each)."""
    out = lib.norch_normalize(x, weight, bias, axes, eps, centered)
    return record(_Normalize, out, (x, weight, bias), (axes, eps, centered))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _axes(normalized_shape: Any) -> tuple[int, ...]:
    return tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)


def _check_end(name: str, x: Tensor, wanted: tuple[int, ...]) -> None:
    """ShapeError unless the shape of x ends like that."""
    shape = lib.norch_shape(x)
    if not wanted or shape[-len(wanted) :] != wanted:
        raise ShapeError(f"{name}: normalized_shape {wanted} is not how shape {shape} ends")


@rename_errors(autocast="- float32")
def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes the last axes of input, whose sizes are normalized_shape, to mean 0 and variance 1, then multiplies by
    weight and adds bias, both of normalized_shape (Ba et al. 2016). Floats only; ShapeError if the sizes differ.

    >>> norch.nn.functional.layer_norm(norch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    wanted = _axes(normalized_shape)
    try:
        out = normalized(tensor_of(input, "layer_norm"), weight, bias, len(wanted), eps, True)
    except Error:
        _check_end("layer_norm", input, wanted)
        raise
    _check_end("layer_norm", out, wanted)  # which has the shape of input, read once
    return out


@rename_errors(autocast="- float32")
def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides the last axes of input, whose sizes are normalized_shape, by the root of their mean square plus eps, then
    multiplies by weight (Zhang and Sennrich 2019). eps is the epsilon of the dtype by default. The result has the dtype
    of input, a float; weight may have another.

    >>> norch.nn.functional.rms_norm(norch.tensor([3.0, -3.0]), (2,), eps=0.0)
    tensor([ 1., -1.])
    """
    input, wanted = tensor_of(input, "rms_norm"), _axes(normalized_shape)
    _check_end("rms_norm", input, wanted)
    if eps is None:
        eps = min(finfo(input.dtype).eps, _EPS)  # halves are computed in float32
    try:
        out = normalized(input, weight, None, len(wanted), eps, False)
        return outlive_writes(out, input)  # PyTorch's gradient of weight reads the rows that were scaled
    except DTypeError:
        if not isinstance(weight, Handle) or not input.is_floating_point() or weight.dtype is input.dtype:
            raise
    wide = result_type(input, weight)  # floats of two dtypes, or integers beside them
    return normalized(input.to(wide), weight.to(wide), None, len(wanted), eps, False).to(input.dtype)


# ---- channels --------------------------------------------------------------------------------------------------------


@rename_errors(autocast="- float32")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalizes the channels of each group of input (N, C, ...) to mean 0 and variance 1, then multiplies by weight
    (C) and adds bias (C) (Wu and He 2018).

    >>> norch.nn.functional.group_norm(norch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    if type(num_groups) is int and num_groups > 0:
        try:
            out = normalized(input, weight, bias, -num_groups, eps, True)
        except REFUSALS:
            pass  # below, an error that names the arguments
        else:
            if out._numel > num_groups:
                return out
    input = tensor_of(input, "group_norm")
    shape = channels("group_norm", input, 2, weight=weight, bias=bias)
    if int64(num_groups, "group_norm: num_groups") < 1 or shape[1] % num_groups:
        raise ArgumentError(f"group_norm: {shape[1]} channels do not fall into {num_groups} groups")
    if input._numel == 0:
        return affine(input * 1.0, weight, bias).to(input.dtype)
    if input._numel == num_groups:
        raise ArgumentError(f"group_norm: expected more than 1 value per group, got input size {shape}")
    return normalized(input, weight, bias, -num_groups, eps, True)


@policy("- off")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of each sample of input (N, C, L...) to mean 0 and variance 1, then multiplies by weight
    (C) and adds bias (C) (Ulyanov et al. 2016). running_mean and running_var, unless None, move towards the means of
    the samples' statistics. Without use_input_stats they replace the statistics of the samples.

    >>> norch.nn.functional.instance_norm(norch.tensor([[[1.0, 3.0], [10.0, 20.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if mode.casting:
        options = running_mean, running_var, weight, bias, use_input_stats, momentum, eps
        if (out := in_autocast(instance_norm, input, *options)) is not None:
            return out
    optional = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    shape = channels("instance_norm", input, 3, **optional)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = input.numel() // max(shape[0] * shape[1], 1)
    if count == 1:
        raise ArgumentError(f"instance_norm: expected more than 1 element per channel in training, got {shape}")
    if count and shape[0] and (running_mean is not None or running_var is not None):
        with no_grad():
            dims = tuple(range(2, len(shape)))
            update(running_mean, input.mean(dims).mean(0), momentum)
            update(running_var, input.var(dims).mean(0), momentum)
    if not shape[1]:
        return input * 1.0
    return outlive_writes(group_norm(input, shape[1], weight, bias, eps), weight)  # PyTorch repeats it
