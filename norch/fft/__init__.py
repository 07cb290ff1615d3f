"""``norch.fft``: discrete Fourier transforms under the names of ``torch.fft``.

SciPy's pocketfft computes them, or NumPy's if there is no SciPy: ``pip install 'norch-dl[linalg]'`` installs both. They
are imported when a function is called. Tensors of a CUDA device are copied to the host, and the result back.

    forward  X[k] = s sum over j of x[j] e^(-2 pi i j k / n)
    inverse  x[j] = s sum over k of X[k] e^(2 pi i j k / n)

norm chooses where the factor 1 / n is: "backward" (None, the default) in the inverse, "forward" in the forward
transform, "ortho" 1 / sqrt(n) in both. The matrix of a transform is symmetric, so the gradient is a transform again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._binding.library import lib
from .._binding.numbers import int64
from .._package.exports import publish
from ..autograd.differentiable import differentiable
from ..dtype import get_default_dtype
from ..errors import ArgumentError, BoundsError, DTypeError
from ..ops._arguments import named_function
from ..ops._autocast import autocast
from ..ops._operand import tensor_of
from ..ops._out import makes
from ..ops._public import publish_operations
from ..ops.composed.pad import constant_pad_nd
from ..ops.composed.shape import roll
from ..ops.copy import cat
from ..ops.create import dtype_or_default, zeros
from ..ops.linalg.lapack import call
from ..ops.values import iota, on_device
from ..ops.view import listed
from ..tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


_Transforms = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


@functools.cache
def _pocketfft() -> _Transforms:
    """Functions of an array: (array, axes, inverse, norm) to complex numbers; (array, axes, norm), real to half along
    the last of axes; (array, axes, n, norm), half to real. ImportError where there is neither library."""
    try:
        import scipy.fft as found  # type: ignore[import-untyped]
    except ImportError:
        try:
            import numpy.fft as found
        except ImportError as error:
            raise ImportError(
                "norch.fft needs SciPy or NumPy, whose transforms it calls; pip install 'norch-dl[linalg]' brings both"
            ) from error
    inner = getattr(getattr(found, "_pocketfft", None), "pypocketfft", None)
    return _by_functions(found) if inner is None else _by_pocketfft(inner)


def _by_pocketfft(inner: Any) -> _Transforms:
    """The functions that scipy.fft calls, without the checks of scipy.fft, which take longer than a short transform.
    The number after the direction selects the factor of the results: 1, 1 / sqrt(n) or 1 / n.
    """
    c2c, r2c, c2r = inner.c2c, inner.r2c, inner.c2r
    forward, back = {"backward": 0, "ortho": 1, "forward": 2}, {"backward": 2, "ortho": 1, "forward": 0}
    return (
        lambda a, axes, inverse, norm: c2c(a, axes, not inverse, (back if inverse else forward)[norm]),
        lambda a, axes, norm: r2c(a, axes, True, forward[norm]),
        lambda a, axes, n, norm: c2r(a, axes, n, False, back[norm]),
    )


def _by_functions(found: Any) -> _Transforms:
    """The functions of scipy.fft or numpy.fft, in the precision of the array. NumPy before 2 computes in float64
    only.
    """

    def alike(a: Any, out: Any) -> Any:
        bytes_of_part = a.real.dtype.itemsize
        return out.astype(f"c{2 * bytes_of_part}" if out.dtype.kind == "c" else f"f{bytes_of_part}", copy=False)

    return (
        lambda a, axes, inverse, norm: alike(a, (found.ifftn if inverse else found.fftn)(a, axes=axes, norm=norm)),
        lambda a, axes, norm: alike(a, found.rfftn(a, axes=axes, norm=norm)),
        lambda a, axes, n, norm: alike(
            a, found.irfftn(a, [*(a.shape[axis] for axis in axes[:-1]), n], axes=axes, norm=norm)
        ),
    )


# ---- transforms, and their derivatives -------------------------------------------------------------------------------


@differentiable("fft", grad=lambda g, dims, inverse, norm: _complex(g, dims, inverse, norm))
def _complex(x: Tensor, dims: Any, inverse: Any, norm: Any) -> Tensor:
    """Complex numbers to complex numbers."""
    return _whole(x, dims, inverse, norm)


def _whole(x: Tensor, dims: Any, inverse: Any, norm: Any) -> Tensor:
    transform, axes = _pocketfft()[0], [dim - x.ndim for dim in dims]
    return call("fft", lambda a: transform(a, axes, inverse, norm), x, quiet=True)[0]


@differentiable("fft", grad=lambda g, dims, inverse, norm: _complex(g, dims, inverse, norm).real)
def _of_real(x: Tensor, dims: Any, inverse: Any, norm: Any) -> Tensor:
    """Real numbers to complex numbers."""
    return _whole(x, dims, inverse, norm)


@differentiable(
    "rfft",
    grad=lambda g, x_meta, dims, norm: _complex(_fitted(g, dims[-1], x_meta.shape[dims[-1]]), dims, False, norm).real,
)
def _half(x: Tensor, dims: Any, norm: Any) -> Tensor:
    """Real numbers (..., n) to their transform, its n // 2 + 1 first numbers along the last of dims."""
    transform, axes = _pocketfft()[1], [dim - x.ndim for dim in dims]
    return call("rfft", lambda a: transform(a, axes, norm), x, quiet=True)[0]


def _real_grad(g: Tensor, dims: Any, n: int, norm: str) -> Tensor:
    """The gradient of the numbers of a real transform. Each but the first, and for an even n the last, along the last
    of dims represents two conjugate numbers.
    """
    grad = _half(g, dims, _SWAPPED[norm])
    count = n // 2 + 1
    twice = [1.0] + [2.0] * (count - 1)
    if n % 2 == 0:
        twice[-1] = 1.0
    weights = grad.real.new_tensor(twice).reshape([count if axis == dims[-1] else 1 for axis in range(grad.ndim)])
    return grad * weights


@differentiable("irfft", grad=_real_grad, holomorphic=False)
def _real(x: Tensor, dims: Any, n: Any, norm: Any) -> Tensor:
    """The real numbers, n along the last of dims, whose transform begins with these n // 2 + 1 numbers there."""
    transform, axes = _pocketfft()[2], [dim - x.ndim for dim in dims]
    return call("irfft", lambda a: transform(a, axes, n, norm), x, quiet=True)[0]


# ---- arguments -------------------------------------------------------------------------------------------------------


def _input(x: Tensor, name: str, to: str) -> Tensor:
    """x as floats or complex numbers, with `to` "f" or "c" as these; DTypeError for others."""
    x = tensor_of(x, name)
    dtype = x.dtype
    if dtype.kind in "biu":
        x = x.to(get_default_dtype())
    elif dtype.itemsize == 2 or (to == "f" and dtype.is_complex):
        raise DTypeError(f"{name}: {dtype.name} is not supported")
    return x.to(x.dtype.to_complex()) if to == "c" and not dtype.is_complex else x


def _fitted(x: Tensor, dim: int, n: int) -> Tensor:
    """x cut, or padded with zeros at the end, to n elements along dim."""
    size = x.shape[dim]
    if size >= n:
        return x.narrow(dim, 0, n)
    return constant_pad_nd(x, (0, 0) * (x.ndim - 1 - dim) + (0, n - size))


def _checked(x: Tensor, name: str, s: Any, dim: Any, norm: Any) -> tuple[list[int], list[int], str]:
    """The axes, not negative, the sizes of the transform along them (-1: as they are), and norm."""
    norm = "backward" if norm is None else norm
    if norm not in _SWAPPED:
        raise ArgumentError(f"{name}: norm is 'forward', 'backward' or 'ortho', not {norm!r}")
    sizes = None if s is None else [int64(n, f"{name}: a size") for n in listed(s)]
    if dim is None:
        dims: Sequence[int] = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    else:
        dims = listed(dim)
    axes, ndim = [], x.ndim
    for axis in dims:
        axis = axis if type(axis) is int else int64(axis, f"{name}: dim")
        if not -ndim <= axis < ndim:
            raise BoundsError(f"{name}: dimension {axis} is out of range for shape {tuple(x.shape)}")
        axes.append(axis % ndim)
    if len(set(axes)) < len(axes):
        raise ArgumentError(f"{name}: a dimension appears twice in {tuple(dims)}")
    sizes = [-1] * len(axes) if sizes is None else sizes
    if len(sizes) != len(axes):
        raise ArgumentError(f"{name}: {len(sizes)} sizes for {len(axes)} dimensions")
    return axes, sizes, norm


def _sized(x: Tensor, name: str, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    shape = lib.norch_shape(x)
    for axis, n in zip(axes, sizes):
        if n < -1 or n == 0 or (n == -1 and shape[axis] == 0):
            raise ArgumentError(f"{name}: a transform of {max(n, 0)} numbers, shape {tuple(x.shape)}")
        x = x if n in (-1, shape[axis]) else _fitted(x, axis, n)
    return x


# ---- all forms -------------------------------------------------------------------------------------------------------


def _to_complex(name: str, x: Tensor, axes: list[int], sizes: list[int], norm: str, inverse: bool) -> Tensor:
    x = _sized(x, name, axes, sizes)
    if not axes:
        return x.to(x.dtype.to_complex(), copy=True)
    return (_complex if x.dtype.is_complex else _of_real)(x, tuple(axes), inverse, norm)


def _from_real(name: str, x: Tensor, axes: list[int], sizes: list[int], norm: str, inverse: bool) -> Tensor:
    """rfft() and its variants; inverse: ihfft() and its variants, the conjugates with norm the other way."""
    x = _sized(x, name, axes, sizes)
    half = _half(x, tuple(axes), _SWAPPED[norm] if inverse else norm)
    return half.conj() if inverse else half


def _to_real(name: str, x: Tensor, axes: list[int], sizes: list[int], norm: str, inverse: bool) -> Tensor:
    """irfft() and its variants; not inverse: hfft() and its variants."""
    last = axes[-1]
    n = sizes[-1] if sizes[-1] != -1 else 2 * (x.shape[last] - 1)
    if n < 1:
        raise ArgumentError(f"{name}: a transform of {n} numbers, shape {tuple(x.shape)}")
    x = _sized(x, name, axes, [*sizes[:-1], n // 2 + 1])
    return _real(x if inverse else x.conj(), tuple(axes), n, norm if inverse else _SWAPPED[norm])


def _forms(
    name: str, one: str, many: str, way: Callable[..., Tensor], inverse: bool
) -> tuple[Callable[..., Tensor], Callable[..., Tensor], Callable[..., Tensor]]:
    """The transform along one dimension, along two, and along any number."""

    kind = {_to_complex: "fc", _from_real: "f", _to_real: "c"}[way]

    def transform(name: str, x: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
        x = _input(x, name, kind)
        axes, sizes, norm = _checked(x, name, s, dim, norm)
        if way is not _to_complex and not axes:
            raise ArgumentError(f"{name}: at least one dimension is transformed")
        return way(name, x, axes, sizes, norm, inverse)

    def along_one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        if n is not None and int64(n, f"{name}: n") < 1:  # -1 is the size that is there in lists alone
            raise ArgumentError(f"{name}: a transform of {n} numbers")
        return transform(name, input, None if n is None else (n,), (int64(dim, f"{name}: dim"),), norm)

    def along_two(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        return transform(f"{name}2", input, s, dim, norm)

    def along_all(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return transform(f"{name}n", input, s, dim, norm)

    last = {_to_complex: 6, _from_real: 4, _to_real: 10}[way]
    example = f"\n\n>>> norch.fft.{name}%s(norch.ones(4, 6)).shape\nnorch.Size([4, {last}])\n"
    about_all = f"{many}, along the dimensions dim: by default all, or the last len(s)."
    forms = (
        named_function(along_one, name, one),
        named_function(along_two, f"{name}2", f"{many}, along two dimensions." + example % 2),
        named_function(along_all, f"{name}n", about_all + example % "n"),
    )
    first, second, third = map(autocast("float32 -"), forms)
    return first, second, third


fft, fft2, fftn = _forms(
    "fft",
    """The discrete Fourier transform along dim, X[k] = sum over j of x[j] e^(-2 pi i j k / n).

    n is the size along dim unless given: then the input is cut, or padded with zeros behind. norm: "backward" (None)
    has the factor 1 / n in ifft(), "forward" in fft(), "ortho" 1 / sqrt(n) in both. By pocketfft (Cooley and Tukey
    1965; for large prime factors Bluestein 1970).

    >>> norch.fft.fft(norch.tensor([1.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.])
    """,
    "fft() with sizes s",
    _to_complex,
    False,
)
ifft, ifft2, ifftn = _forms(
    "ifft",
    """The inverse discrete Fourier transform along dim: the inverse of fft(), with a factor 1 / n by default.

    >>> norch.fft.ifft(norch.tensor([4.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.])
    """,
    "ifft() with sizes s",
    _to_complex,
    True,
)
rfft, rfft2, rfftn = _forms(
    "rfft",
    """The first n // 2 + 1 numbers of fft() of real numbers, of which the others are conjugates.

    >>> norch.fft.rfft(norch.ones(4)).abs()
    tensor([4., 0., 0.])
    """,
    "rfft(), then fft() along the other dimensions, with sizes s",
    _from_real,
    False,
)
irfft, irfft2, irfftn = _forms(
    "irfft",
    """The inverse of rfft(): n real numbers, by default 2 (m - 1) from m complex ones.

    >>> norch.fft.irfft(norch.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """,
    "The inverse of rfftn() with sizes s",
    _to_real,
    True,
)
hfft, hfft2, hfftn = _forms(
    "hfft",
    """fft() of the Hermitian signal whose first n // 2 + 1 numbers are input: n real numbers.

    >>> norch.fft.hfft(norch.tensor([1.0, 1.0, 1.0]))
    tensor([4., 0., 0., 0.])
    """,
    "fft() along the other dimensions, then hfft(), with sizes s",
    _to_real,
    False,
)
ihfft, ihfft2, ihfftn = _forms(
    "ihfft",
    """The inverse of hfft(): the first n // 2 + 1 numbers of ifft() of real numbers.

    >>> norch.fft.ihfft(norch.ones(4)).real
    tensor([1., 0., 0.])
    """,
    "The inverse of hfftn() with sizes s",
    _from_real,
    True,
)

# ---- frequencies -----------------------------------------------------------------------------------------------------


def _size(name: str, n: Any) -> int:
    if (count := int64(n, f"{name}: n")) < 1:
        raise ArgumentError(f"{name}: {count} numbers")
    return count


@makes
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of fft(), in cycles per unit, for samples d apart. The negative ones come last.

    >>> norch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    count, wanted, like = _size("fftfreq", n), dtype_or_default(dtype), zeros(0, device="cpu")
    positive = (count + 1) // 2
    steps = cat((iota(positive, like), iota(count // 2, like, first=-(count // 2))))
    return on_device(steps.to(wanted) / (count * d), device)


@makes
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the n // 2 + 1 results of rfft(), for samples d apart.

    >>> norch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    count = _size("rfftfreq", n)
    steps = iota(count // 2 + 1, zeros(0, device="cpu"))
    return on_device(steps.to(dtype_or_default(dtype)) / (count * d), device)


def _shifted(name: str, x: Tensor, dim: Any, back: bool) -> Tensor:
    x = tensor_of(x, name)
    axes, _, _ = _checked(x, name, None, dim, None)
    shifts = [-(x.shape[axis] // 2) if back else x.shape[axis] // 2 for axis in axes]
    return roll(x, shifts, axes) if axes else x.clone()


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The results of fft() with the frequency 0 in the middle, along dim (by default all dimensions).

    >>> norch.fft.fftshift(norch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, False)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift().

    >>> norch.fft.ifftshift(norch.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _shifted("ifftshift", input, dim, True)


publish_operations(globals(), __all__, without_out=("fftshift", "ifftshift"))
publish(globals())
