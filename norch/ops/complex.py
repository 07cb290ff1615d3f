"""Complex numbers and their parts: views as real numbers and back, conjugates, angles.

The gradient of a real L by z = x + iy is dL/dx + i dL/dy, as in PyTorch: twice the Wirtinger derivative by the
conjugate of z, the direction in which L grows fastest (Kreutz-Delgado, "The Complex Gradient Operator and the
CR-Calculus", 2009, section 4). For holomorphic functions, autograd/engine.py computes it from the complex derivative.
"""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Any, Tensor
from ..autograd.derivative import view_derivative
from ..autograd.grad_mode import mode
from ..autograd.record import record_view
from ..errors import DTypeError
from ._autocast import in_autocast, policy
from ._checks import floats_of
from ._entry import rename_errors
from ._operand import as_operand, tensor_of
from .copy import stack
from .op import METHODS, function_op, method
from .pointwise import eq, flat, mul
from .view import expand, select

__all__ = [
    "angle", "complex", "conj", "conj_physical", "imag", "is_complex", "polar", "real", "view_as_complex",
    "view_as_real",
]  # fmt: skip


@method
def is_complex(input: Tensor) -> bool:
    """Whether the dtype of a tensor is complex.

    >>> norch.is_complex(norch.tensor([1j]))
    True
    """
    return tensor_of(input, "is_complex").dtype.is_complex


# ---- views ----------------------------------------------------------------------------------------------------------


def view_as_real(input: Tensor) -> Tensor:
    """A view of complex numbers (...) as their real and imaginary parts (..., 2). DTypeError for real tensors.

    >>> norch.view_as_real(norch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return record_view(_AsReal, lib.norch_view_as_real(tensor_of(input, "view_as_real")), input, view_as_real, ())


@policy("float32 -")
def view_as_complex(input: Tensor) -> Tensor:
    """A view of pairs (..., 2) of float32 or float64 as complex numbers (...): the inverse of view_as_real().

    ShapeError where the last size is not 2, or the pairs do not lie side by side at even places of memory.

    >>> norch.view_as_complex(norch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1.+2.j, 3.+4.j])
    """
    if mode.casting and (out := in_autocast(view_as_complex, input)) is not None:
        return out
    x = tensor_of(input, "view_as_complex")
    return record_view(_AsComplex, lib.norch_view_as_complex(x), x, view_as_complex, ())


_AsReal = view_derivative("view_as_real", grad=lambda g: view_as_complex(_paired(g)), holomorphic=False)
_AsComplex = view_derivative("view_as_complex", grad=lambda g: view_as_real(g), holomorphic=False)


def _paired(parts: Tensor) -> Tensor:
    """parts (..., 2), which view_as_complex() takes."""
    return parts if parts.is_contiguous() and parts.storage_offset() % 2 == 0 else parts.clone()


def real(input: Tensor) -> Tensor:
    """The real parts, as a view. A real tensor is returned unchanged.

    >>> norch.real(norch.tensor([1 + 2j]))
    tensor([1.])
    """
    x = as_operand(input, "real")
    return select(view_as_real(x), -1, 0) if x.is_complex() else x


def imag(input: Tensor) -> Tensor:
    """The imaginary parts, as a view. DTypeError for a real tensor.

    >>> norch.imag(norch.tensor([1 + 2j]))
    tensor([2.])
    """
    x = tensor_of(input, "imag")
    if not x.is_complex():
        raise DTypeError(f"imag: expected complex numbers, not {x.dtype.name}")
    return select(view_as_real(x), -1, 1)


# ---- from parts -----------------------------------------------------------------------------------------------------


@rename_errors(out=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """real + i imag, of two tensors of one dtype, float32 or float64, which are broadcast.

    >>> norch.complex(norch.tensor([1.0]), norch.tensor([2.0]))
    tensor([1.+2.j])
    """
    re, im = floats_of(tensor_of(real, "complex"), "complex"), floats_of(tensor_of(imag, "complex"), "complex")
    if re.dtype is not im.dtype or re.dtype.itemsize < 4:
        raise DTypeError(f"complex: expected float32 or float64 twice, not {re.dtype.name} and {im.dtype.name}")
    if re.shape != im.shape:
        shape = eq(re, im).shape
        re, im = expand(re, shape), expand(im, shape)
    return view_as_complex(stack((re, im), -1))


@rename_errors(autocast="float32 -", out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers abs e**(i angle), from absolute values and angles in radians.

    >>> norch.polar(norch.tensor([2.0]), norch.tensor([0.0]))
    tensor([2.+0.j])
    """
    return complex(mul(abs, angle.cos()), mul(abs, angle.sin()))


# ---- functions ------------------------------------------------------------------------------------------------------

_angle_of_real: Any = function_op("angle", grad=flat)
_conj: Any = function_op("conj", grad=lambda g: _conj(g) if g.is_complex() else g, holomorphic=False)


@method
def conj(input: Tensor) -> Tensor:
    """The complex conjugates, as a new tensor. A real tensor is returned unchanged.

    >>> norch.conj(norch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = tensor_of(input, "conj")
    return _conj(x) if x.is_complex() else x


@method(inplace=True, out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugates, as a new tensor. A real tensor is returned unchanged. conj() is the same function.

    >>> norch.conj_physical(norch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conj(input)


@method(out=True)
def angle(input: Tensor) -> Tensor:
    """The angle in radians, in (-pi, pi]: atan2 of the imaginary and the real part. A real number has the angle 0 or
    pi, NaN has NaN.

    >>> norch.angle(norch.tensor([1.0, -1.0, 1j]))
    tensor([0.0000, 3.1416, 1.5708])
    """
    x = as_operand(input, "angle")
    if x.is_complex():
        return imag(x).atan2(real(x))
    return _angle_of_real(x if x.dtype.is_floating_point else x.float())


def _set_real(x: Tensor, value: Tensor) -> None:
    real(x).copy_(value)


def _set_imag(x: Tensor, value: Tensor) -> None:
    imag(x).copy_(value)


METHODS.update(
    real=property(real, _set_real, doc=real.__doc__),
    imag=property(imag, _set_imag, doc=imag.__doc__),
)
