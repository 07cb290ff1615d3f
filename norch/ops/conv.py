"""Convolutions and their adjoints (csrc/ops/conv.c), with the arguments of torch.nn.functional.

C has convolutions over two axes, as three products: y from x and weight; x from y and weight (a transposed
convolution); weight from x and y. The derivatives of one product are the other two. A convolution over one axis adds an
axis of size 1; conv3d.py has those over three axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._binding.library import constants, lib
from .._binding.numbers import int64
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative
from ..autograd.differentiable import differentiable
from ..autograd.grad_mode import mode
from ..autograd.record import record
from ..errors import ArgumentError, DTypeError, ShapeError
from ._arguments import named_function
from ._entry import composed, rename_errors
from .complex import complex
from .copy import cat
from .reduce import sum_over

Sizes = int | Sequence[int]
Geometry = tuple[int, ...]  # what norch_conv takes
_LIMIT = 1 << 31
_COMPLEX = (constants["COMPLEX64"], constants["COMPLEX128"])


# ---- the three products, and their derivatives -------------------------------------------------------------------


def _conv(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """y (N, O, ...) from x (N, C, H, W), weight (O, C / groups, kernel) and bias (O) or None."""
    out = lib.norch_conv(x, weight, bias, geometry)
    record(_Conv, out, (x, weight, bias), (geometry,))
    return out


def _conv_backward(
    g: Tensor,
    x: Any,
    weight: Any,
    x_meta: Tensor,
    weight_meta: Tensor,
    geometry: Geometry,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    to_x, to_weight, to_bias = needs_input_grad
    grad_x = _conv_input(g, weight, None, geometry, plane_sizes(x_meta)) if to_x else None
    if to_weight and to_bias and not mode.enabled:  # one pass over g gives both
        grad_bias = lib.norch_empty(g.shape[1:2], g._dtype, (g._device_type, g._device_index))
        return grad_x, lib.norch_conv_weight(x, g, geometry, plane_sizes(weight_meta), grad_bias), grad_bias
    grad_weight = _conv_weight(x, g, geometry, plane_sizes(weight_meta)) if to_weight else None
    return grad_x, grad_weight, _bias_grad(g) if to_bias else None


def plane_sizes(x: Tensor) -> tuple[int, ...]:
    """The sizes of the last two axes; x may be a meta tensor."""
    return lib.norch_shape(x)[-2:]


def _bias_grad(g: Tensor) -> Tensor:
    return sum_over(g, (0, 2, 3))


_Conv = derivative(
    "conv",
    ("x", "weight", "bias"),
    backward=_conv_backward,
    depends_on=2,
)


def _conv_input(y: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, size: Sequence[int]) -> Tensor:
    """x (N, C, *size) from y and weight, plus bias (C) or None."""
    out = lib.norch_conv_input(y, weight, bias, geometry, size)
    record(_ConvInput, out, (y, weight, bias), (geometry,))
    return out


_ConvInput = derivative(
    "conv_input",
    ("y", "weight", "bias"),
    grad_y=lambda g, weight, geometry: _conv(g, weight, None, geometry),
    grad_weight=lambda g, y, weight_meta, geometry: _conv_weight(g, y, geometry, plane_sizes(weight_meta)),
    grad_bias=_bias_grad,
    depends_on=2,
)


@differentiable(
    grad_x=lambda g, y, x_meta, geometry: _conv_input(y, g, None, geometry, plane_sizes(x_meta)),
    grad_y=lambda g, x, geometry: _conv(x, g, None, geometry),
)
def _conv_weight(x: Tensor, y: Tensor, geometry: Geometry, kernel: Sequence[int]) -> Tensor:
    """weight (O, C / groups, *kernel) from x and y."""
    return lib.norch_conv_weight(x, y, geometry, kernel, None)


# ---- arguments, as PyTorch takes them ------------------------------------------------------------------------------


def per_axis(value: Any, axes: int, name: str, argument: str) -> tuple[int, ...]:
    """value, one number or one for each axis, as a tuple with one number for each axis. ArgumentError below 0."""
    if type(value) is int and 0 <= value < _LIMIT:  # as modules and most calls have it
        return (value,) * axes
    if type(value) is tuple and len(value) == axes == 2:
        first, second = value
        if type(first) is int and type(second) is int and 0 <= first < _LIMIT and 0 <= second < _LIMIT:
            return value
    listed = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(listed) == 1:
        listed *= axes
    if len(listed) != axes:
        raise ShapeError(f"{name}: {argument} takes 1 or {axes} numbers, not {value}")
    for item in listed:
        if not hasattr(item, "__index__") or isinstance(item, bool):
            raise TypeError(f"{name}: {argument} takes integers, not {value!r}")
    numbers = tuple(int64(item, f"{name}: {argument}") for item in listed)  # tensors of a narrow dtype would wrap
    if min(numbers, default=0) < 0:
        raise ArgumentError(f"{name}: negative {argument} {value}")
    return numbers


def check(name: str, axes: int, **tensors: Any) -> None:
    for argument, x in tensors.items():
        if x is None and argument == "bias":
            continue
        if not isinstance(x, Handle):
            raise TypeError(f"{name}: expected a tensor as {argument}, not {type(x).__name__}")
        ndim = x.ndim
        if ndim != axes + 2 if argument == "weight" else argument == "input" and ndim not in (axes + 1, axes + 2):
            wanted = axes + 2 if argument == "weight" else f"{axes + 1} (unbatched) or {axes + 2}"
            raise ShapeError(f"{name}: expected {argument} of {wanted} dimensions, got shape {tuple(x.shape)}")


def channels_fit(name: str, axes: int, x: Any, weight: Any, groups: int, wanted: int) -> None:
    """ShapeError unless x has as many channels as weight expects."""
    if (channels := x.shape[-axes - 1]) != wanted and groups >= 1:
        no_channels = x.ndim == axes + 1 and wanted == 1
        raise ShapeError(
            f"{name}: weight of shape {tuple(weight.shape)} with groups={groups} expects {wanted} input channels, got "
            f"{channels} in an input of shape {tuple(x.shape)}"
            + (
                f"; {axes + 1} dimensions are one sample: x.unsqueeze(1) adds a channel to a batch"
                if no_channels
                else ""
            )
        ) from None


def _two_axes(values: Sequence[int], first: int) -> tuple[int, ...]:
    return (first, *values) if len(values) == 1 else tuple(values)


def geometry_of(stride: Any, before: Any, after: Any, dilation: Any, groups: int) -> Geometry:
    two = (*_two_axes(stride, 1), *_two_axes(before, 0), *_two_axes(after, 0), *_two_axes(dilation, 1))
    return (*two, groups)


def _batched(x: Tensor, axes: int, alone: bool) -> Tensor:
    """(C, L), (N, C, L), (C, H, W) or (N, C, H, W) as (N, C, H, W). alone: without N."""
    if alone:
        x = x.unsqueeze(0)
    return x.unsqueeze(-2) if axes == 1 else x


def _unbatched(out: Tensor, axes: int, alone: bool) -> Tensor:
    """out without the axes that _batched() added."""
    if axes == 1:
        out = out.squeeze(-2)
    return out.squeeze(0) if alone else out


def paddings(name: str, padding: Any, weight: Tensor, stride: Any, dilation: Any, axes: int) -> Any:
    """Zeros before and after each axis."""
    if not isinstance(padding, str):
        both = per_axis(padding, axes, name, "padding")
        return both, both
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        raise ArgumentError(f"{name}: padding is a number, 'valid' or 'same', not {padding!r}")
    if any(s != 1 for s in stride):
        raise ArgumentError(f"{name}: padding='same' needs a stride of 1, not {tuple(stride)}")
    total = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=True)]
    return [n // 2 for n in total], [n - n // 2 for n in total]


def _of_parts(convolve: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """A convolution of complex numbers, by convolve(x, weight) of real ones: the parts of x as one batch, with each
    part of weight.
    """
    wide = x.unsqueeze(0) if x.ndim < weight.ndim else x
    both = cat((wide.real, wide.imag), 0)
    (re_re, im_re), (re_im, im_im) = (convolve(both, part).chunk(2) for part in (weight.real, weight.imag))
    out = complex(re_re - im_im, re_im + im_re)
    if bias is not None:
        out = out + bias.reshape((-1,) + (1,) * (weight.ndim - 2))
    return out.squeeze(0) if x.ndim < weight.ndim else out


def _all_complex(name: str, x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether x, weight and bias are complex. DTypeError if they are complex, but differ in dtype."""
    if x._dtype not in _COMPLEX or weight._dtype not in _COMPLEX:
        return False
    for other in (weight, bias):
        if other is not None and other.dtype is not x.dtype:
            raise DTypeError(f"{name}: expected one dtype, got {x.dtype.name} and {other.dtype.name}")
    return True


def _entry(axes: int) -> Callable[[Any], Any]:
    """The library rounds halves once; over three axes several calls of it are summed."""
    return composed(autocast="lower") if axes == 3 else rename_errors(autocast="lower")


def convolution(axes: int, run: Callable[..., Tensor], about: str) -> Any:
    """conv1d(), conv2d() or conv3d(). It calls run(name, axes, x, weight, bias, geometry), where geometry has the
    arguments of geometry_of().
    """
    name = f"conv{axes}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        check(name, axes, input=input, weight=weight, bias=bias)
        if _all_complex(name, input, weight, bias):
            rest = (None, stride, padding, dilation, groups)
            return _of_parts(lambda x, weight: function(x, weight, *rest), input, weight, bias)
        steps, dilations = per_axis(stride, axes, name, "stride"), per_axis(dilation, axes, name, "dilation")
        before, after = paddings(name, padding, weight, steps, dilations, axes)
        return run(name, axes, input, weight, bias, (steps, before, after, dilations, groups))

    return _entry(axes)(named_function(function, name, about))


def transposed_convolution(axes: int, run: Callable[..., Tensor], about: str) -> Any:
    """conv_transpose1d(), conv_transpose2d() or conv_transpose3d(). It calls run as convolution() does, with the sizes
    of the result as a further argument.
    """
    name = f"conv_transpose{axes}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        check(name, axes, input=input, weight=weight, bias=bias)
        if _all_complex(name, input, weight, bias):
            rest = (None, stride, padding, output_padding, groups, dilation)
            return _of_parts(lambda x, weight: function(x, weight, *rest), input, weight, bias)
        steps, dilations = per_axis(stride, axes, name, "stride"), per_axis(dilation, axes, name, "dilation")
        before = per_axis(padding, axes, name, "padding")
        size, after = _transposed_sizes(name, input, weight, steps, before, dilations, output_padding)
        return run(name, axes, input, weight, bias, (steps, before, after, dilations, groups), size)

    return _entry(axes)(named_function(function, name, about))


def _transposed_sizes(
    name: str, x: Any, weight: Any, steps: Any, before: Any, dilations: Any, output_padding: Any
) -> tuple[list[int], list[int]]:
    """The sizes of the result along the axes, and the padding of a convolution that would lead back."""
    axes = len(steps)
    extra_sizes = per_axis(output_padding, axes, name, "output_padding")
    for i in range(axes):
        if extra_sizes[i] >= max(steps[i], dilations[i]):
            raise ArgumentError(f"{name}: output_padding {extra_sizes[i]} must be smaller than stride or dilation")
    size = [
        (length - 1) * steps[i] - 2 * before[i] + dilations[i] * (weight.shape[2 + i] - 1) + extra_sizes[i] + 1
        for i, length in enumerate(x.shape[-axes:])
    ]
    if min(size) < 1:
        raise ShapeError(f"{name}: input of shape {tuple(x.shape)} would make an output of size {tuple(size)}")
    after = [p - extra if extra >= step else p for p, extra, step in zip(before, extra_sizes, steps, strict=True)]
    return size, after


# ---- over one and two axes -----------------------------------------------------------------------------------------


def _over_planes(
    name: str, axes: int, x: Tensor, weight: Tensor, bias: Any, geometry: Any, size: list[int] | None = None
) -> Tensor:
    """A convolution, or a transposed one if the sizes of its result are passed."""
    kernel, alone = weight.unsqueeze(-2) if axes == 1 else weight, x.ndim == axes + 1
    planes, plan = _batched(x, axes, alone), geometry_of(*geometry)
    try:
        if size is None:
            out = _conv(planes, kernel, bias, plan)
        else:
            out = _conv_input(planes, kernel, bias, plan, _two_axes(size, 1))
    except ShapeError:  # C knows neither the axes nor the shapes that were passed
        wanted = weight.shape[1] * geometry[-1] if size is None else weight.shape[0]
        channels_fit(name, axes, x, weight, geometry[-1], wanted)
        raise
    return _unbatched(out, axes, alone) if axes == 1 or alone else out


conv1d = convolution(
    1,
    _over_planes,
    """input (N, C, L) or (C, L) with weight (O, C / groups, K) and bias (O): (N, O, L') or (O, L').

    L' = (L + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down. padding may be "valid" (none) or, at
    stride 1, "same" (L' = L). Floats; ShapeError where channels, groups or sizes do not fit.

    >>> norch.nn.functional.conv1d(norch.tensor([[1.0, 2.0, 4.0]]), norch.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """,
)
conv2d = convolution(
    2,
    _over_planes,
    """input (N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW) and bias (O); otherwise as conv1d.

    >>> norch.nn.functional.conv2d(norch.ones(1, 4, 4), norch.ones(2, 1, 3, 3), padding=1).shape
    norch.Size([2, 4, 4])
    """,
)
conv_transpose1d = transposed_convolution(
    1,
    _over_planes,
    """The adjoint of conv1d: input (N, C, L) with weight (C, O / groups, K) and bias (O) gives (N, O, L').

    L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.

    >>> norch.nn.functional.conv_transpose1d(norch.tensor([[1.0, 2.0]]), norch.ones(1, 1, 2))
    tensor([[1., 3., 2.]])
    """,
)
conv_transpose2d = transposed_convolution(
    2,
    _over_planes,
    """The adjoint of conv2d: input (N, C, H, W) with weight (C, O / groups, KH, KW) and bias (O).

    >>> norch.nn.functional.conv_transpose2d(norch.ones(1, 1, 2, 2), norch.ones(1, 3, 2, 2), stride=2).shape
    norch.Size([1, 3, 4, 4])
    """,
)
