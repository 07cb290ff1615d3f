"""Less common numeric functions: gcd and lcm, nextafter, heaviside, gradient and others."""

from __future__ import annotations

from ..._binding.library import lib
from ..._package.typing import Any, Tensor
from ...autograd.differentiable import differentiable
from ...dtype import DTYPES, check_fits, int16
from ...errors import ArgumentError, DTypeError, ShapeError
from .._checks import floats_of, numbers_of
from .._entry import composed
from .._operand import as_operand
from ..copy import cast, cat
from ..op import function_op, method
from ..pointwise import copysign, flat, isnan, refused, where
from ..view import axes, narrow
from .shape import broadcast_tensors, movedim
from .statistics import as_float

__all__ = ["gcd", "gradient", "heaviside", "lcm", "nextafter"]


def _common(input: Any, other: Any, name: str) -> tuple[Any, Any, Any]:
    """Both values as tensors, and their common dtype. An integer must fit into it."""
    x, y = as_operand(input, name), as_operand(other, name)
    dtype = DTYPES[lib.norch_result_type((x, y))]
    for number in (input, other):
        if type(number) is int:
            check_fits(number, dtype, name)
    return x, y, dtype


_gcd: Any = function_op("gcd")
_lcm: Any = function_op("lcm")


def _integers(input: Any, other: Any, name: str) -> tuple[Any, Any]:
    pair = _common(input, other, name)[:2]
    for x in pair:
        if x.dtype.kind not in "iu":
            raise DTypeError(f"{name}: not defined for dtype {x.dtype.name}")
    return pair[0], pair[1]


@method(inplace=True, moves=True, out=True)
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisors of integers, by Euclid's algorithm. They are not negative; gcd(0, 0) is 0.

    >>> norch.gcd(norch.tensor([12, 0, -4]), norch.tensor([18, 5, 6]))
    tensor([6, 5, 2])
    """
    return _gcd(*_integers(input, other, "gcd"))


@method(inplace=True, moves=True, out=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiples of integers. They are not negative, and 0 where an input is 0.

    >>> norch.lcm(norch.tensor([4, 0]), norch.tensor([6, 5]))
    tensor([12,  0])
    """
    return _lcm(*_integers(input, other, "lcm"))


@method(inplace=True, composed=True, out=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where input is negative or NaN, 1 where it is positive, and values where it is 0, as in PyTorch. values has a
    gradient, which PyTorch lacks. A gradient of input raises an error, as in PyTorch.

    >>> norch.heaviside(norch.tensor([-1.5, 0.0, 2.0]), norch.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    x, values, dtype = _common(input, values, "heaviside")
    return _step(x, where(x == 0, cast(values, dtype), cast(x > 0, dtype)))


# The result, with a node whose gradient by the input raises.
@differentiable("heaviside", grad_x=refused("heaviside: the derivative by the first argument"), grad_out=lambda g: g)
def _step(x: Tensor, out: Tensor) -> Tensor:
    return out.detach()


_nextafter = function_op(  # the gradient is that of PyTorch
    "nextafter", grad_a=lambda g, a, b: where(a != b, g, 0), grad_b=flat
)


@method(inplace=True, moves=True, out=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The number of the dtype that follows input in the direction of other. Floats of one dtype. As in PyTorch, the
    gradient of input is the gradient of the result, but 0 where both are equal, and other has the gradient 0.

    >>> norch.nextafter(norch.tensor([1.0]), norch.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """
    a, b = floats_of(input, "nextafter"), floats_of(other, "nextafter")
    if a.dtype != b.dtype:
        raise DTypeError(f"nextafter: dtypes {a.dtype.name} and {b.dtype.name} differ")
    return _nextafter(a, b) if a.dtype.itemsize > 2 else _next_half(*broadcast_tensors(a, b))


@differentiable("nextafter", grad_a=lambda g, a, b: where(a != b, g, 0), grad_b=flat)
def _next_half(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.detach().contiguous(), b.detach().contiguous()
    # As integers floats of one sign are in the order of their magnitudes.
    grows = (b > a) == (a > 0)
    stepped = (a.view(int16) + (grows.to(int16) * 2 - 1)).view(a.dtype)
    least = copysign(a.new_ones((), dtype=int16).view(a.dtype), b)
    return where(isnan(a), a, where((a == b) | isnan(b), b, where(a == 0, least, stepped)))


@composed
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """The derivatives of samples along each axis of dim (by default all), one tensor for each axis, by differences of
    neighbours.

    spacing is the distance of the samples, or one distance or vector of coordinates for each axis. Inside, the error is
    of second order in the distances, also where these differ (Fornberg 1988). At the edges it is of the order
    edge_order, 1 or 2. Integers become floats; coordinates of a wider dtype give results of that dtype.

    >>> norch.gradient(norch.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    """
    x = as_float(numbers_of(input, "gradient"), "gradient")
    listed = range(x.ndim) if dim is None else axes(dim, x.ndim, "gradient")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(listed)
    if len(spacings) != len(listed):
        raise ArgumentError(f"gradient: {len(spacings)} spacings for {len(listed)} axes")
    return tuple(
        _slope(movedim(x, axis, -1), step, edge_order, axis) for axis, step in zip(listed, spacings, strict=True)
    )


def _slope(x: Any, spacing: Any, edge_order: int, axis: int) -> Any:
    """The derivative along the last axis, which goes back to its place."""
    n = x.shape[-1]
    if n <= edge_order:
        raise ShapeError(f"gradient: {n} samples along axis {axis} are not more than edge_order, {edge_order}")
    steps = _steps(spacing, n, axis, x)
    slopes = (x[..., 1:] - x[..., :-1]) / steps  # between neighbours
    if getattr(spacing, "ndim", 0) == 0:  # the sample itself has no part in it
        inside = (x[..., 2:] - x[..., :-2]) / (steps[1:] * 2)
    else:
        left, right = steps[:-1], steps[1:]
        inside = (slopes[..., :-1] * right + slopes[..., 1:] * left) / (left + right)
    first, last = narrow(slopes, -1, 0, 1), narrow(slopes, -1, n - 2, 1)
    if edge_order == 2:  # the parabola through three samples
        first = first - (narrow(inside, -1, 0, 1) - first)
        last = last + (last - narrow(inside, -1, n - 3, 1))
    return movedim(cat([first, inside, last], -1), -1, axis)


def _steps(spacing: Any, n: int, axis: int, like: Any) -> Any:
    """The distances between n samples, (n - 1,)."""
    if getattr(spacing, "ndim", 0) == 0:
        return like.new_ones(n - 1) * spacing
    if tuple(spacing.shape) != (n,):
        raise ShapeError(f"gradient: coordinates of shape {tuple(spacing.shape)} for {n} samples along axis {axis}")
    places = spacing
    if not (places.is_floating_point() or places.is_complex()):
        places = places.to(like.dtype)
    return places[1:] - places[:-1]
