"""Products that are composed of matmul.py and einsum.py: addmm and related functions, tensordot, kron, cross, chains
and powers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._binding.library import constants, lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Tensor
from ..._tensor.handle import Handle
from ...autograd.derivative import derivative
from ...autograd.differentiable import differentiable
from ...autograd.grad_mode import mode
from ...autograd.levels import zeros_of
from ...autograd.record import record
from ...dtype import DTYPES
from ...errors import ArgumentError, BoundsError, DeviceError, DTypeError, ShapeError
from .._autocast import autocast, in_autocast, policy
from .._checks import on_one_device
from .._entry import composed
from .._operand import as_operand
from ..create import eye
from ..index import on_common_device
from ..matmul import bmm, dot, linear, matmul, mm, mv
from ..op import OPCODES, method
from ..pointwise import where
from ..reduce import sum as sum_
from ..sums import older_form
from ..view import axis, broadcast_to, expand, reshape, t, unsqueeze
from .einsum import contract

__all__ = [
    *("addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "chain_matmul", "cross"),
    *("ger", "inner", "kron", "matrix_power", "outer", "tensordot"),
]

# ---- input * beta + product * alpha -----------------------------------------------------------------------------


def _in_one_pass(node_class: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any, ranks: tuple[int, int]) -> Any:
    """beta * x + alpha * (a @ b), of vectors the outer product, for a and b of these ranks, by one call; or None where
    that takes several, or an error is to be raised."""
    if not (isinstance(x, Handle) and isinstance(a, Handle) and isinstance(b, Handle)) or (a.ndim, b.ndim) != ranks:
        return None
    if not (x._dtype == a._dtype == b._dtype in _FLOATS and type(beta) in _NUMBERS and type(alpha) in _NUMBERS):
        return None
    if not alpha or (not beta and a.is_cuda) or (ranks == (3, 3) and a.shape[0] != b.shape[0]):
        return None
    try:
        if beta == alpha == 1 and x.ndim == 1 and ranks == (2, 2) and x.shape[0] == b.shape[1]:
            return linear(a, t(b), x)  # type: ignore[arg-type]
        return record(node_class, lib.norch_addmm(x, a, b, beta, alpha), (x, a, b), (beta, alpha), True)
    except (ShapeError, DTypeError, OverflowError):
        return None
    except DeviceError:
        if x.device == a.device == b.device:  # a kernel failed: it is not run again
            raise
        return None


@composed
def _scaled_matmul(a: Any, b: Any, alpha: float) -> Any:
    return matmul(a, b) * alpha


def _product_grad(a: Any, b: Any, alpha: float) -> Any:
    return matmul(a, b) if alpha == 1 else _scaled_matmul(a, b, alpha)


def _derivative(name: str, grad_a: Any, grad_b: Any) -> Any:
    return derivative(name, ("x", "a", "b"), grad_x=lambda g, beta: g * beta, grad_a=grad_a, grad_b=grad_b)


_NUMBERS = {int, float}
_FLOATS = tuple(constants[name] for name in ("FLOAT32", "FLOAT64", "FLOAT16", "BFLOAT16"))
_Addmm, _Baddbmm = (
    _derivative(
        name,
        lambda g, b, alpha: _product_grad(g, b.mT, alpha),
        lambda g, a, alpha: _product_grad(a.mT, g, alpha),
    )
    for name in ("addmm", "baddbmm")
)
_Addmv = _derivative(
    "addmv",
    lambda g, b, alpha: _product_grad(g.unsqueeze(1), b.unsqueeze(0), alpha),
    lambda g, a, alpha: _product_grad(a.mT, g, alpha),
)
_Addr = _derivative(
    "addr",
    lambda g, b, alpha: _product_grad(g, b, alpha),
    lambda g, a, alpha: _product_grad(g.mT, a, alpha),
)


@method(inplace=True, out=True)
@policy("lower")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *older: Tensor, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2). input broadcasts to the product. An operand whose factor is 0 is not read,
    so NaNs in it do not reach the result; baddbmm() and addr() do this for beta only. addmm(beta, input, alpha, mat1,
    mat2) and input.addmm(beta, alpha, mat1, mat2) are older forms.

    >>> norch.addmm(norch.ones(2), norch.eye(2), norch.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    if older:
        input, mat1, mat2, beta, alpha = older_form("addmm", (input, mat1, mat2, *older), beta, alpha)
    if mode.casting and (out := in_autocast(addmm, input, mat1, mat2, beta=beta, alpha=alpha)) is not None:
        return out
    out = _in_one_pass(_Addmm, input, mat1, mat2, beta, alpha, (2, 2))
    return _addmm(input, mat1, mat2, beta, alpha) if out is None else out


@composed(name="addmm")
def _addmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return _added(x, _blas(mm(a, b), alpha), beta, alpha, "addmm")


@method(inplace=True, out=True)
@policy("off lower")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *older: Tensor, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec), with the rules of addmm().

    >>> norch.addmv(norch.ones(2), norch.tensor([[1.0, 2.0], [3.0, 4.0]]), norch.tensor([1.0, 1.0]))
    tensor([4., 8.])
    """
    if older:
        input, mat, vec, beta, alpha = older_form("addmv", (input, mat, vec, *older), beta, alpha)
    if mode.casting and (out := in_autocast(addmv, input, mat, vec, beta=beta, alpha=alpha)) is not None:
        return out
    out = _in_one_pass(_Addmv, input, mat, vec, beta, alpha, (2, 1))
    return _addmv(input, mat, vec, beta, alpha) if out is None else out


@composed(name="addmv")
def _addmv(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return _added(x, _blas(mv(a, b), alpha), beta, alpha, "addmv")


@method(inplace=True, out=True)
@policy("lower")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *older: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2) for batches of matrices (B, N, M) and (B, M, P), with the rules of
    addmm().

    >>> norch.baddbmm(norch.zeros(5, 2, 4), norch.ones(5, 2, 3), norch.ones(5, 3, 4)).shape
    norch.Size([5, 2, 4])
    """
    if older:
        input, batch1, batch2, beta, alpha = older_form("baddbmm", (input, batch1, batch2, *older), beta, alpha)
    if mode.casting and (out := in_autocast(baddbmm, input, batch1, batch2, beta=beta, alpha=alpha)) is not None:
        return out
    out = _in_one_pass(_Baddbmm, input, batch1, batch2, beta, alpha, (3, 3))
    return _baddbmm(input, batch1, batch2, beta, alpha) if out is None else out


@composed(name="baddbmm")
def _baddbmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return _added(x, bmm(a, b), beta, alpha, "baddbmm")


@method(inplace=True, out=True)
@composed(autocast="lower")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *older: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * input + alpha * the sum of the products of all pairs of matrices, with the rules of addmm().

    >>> norch.addbmm(norch.zeros(2, 2), norch.ones(5, 2, 3), norch.ones(5, 3, 2))
    tensor([[15., 15.],
            [15., 15.]])
    """
    if older:
        input, batch1, batch2, beta, alpha = older_form("addbmm", (input, batch1, batch2, *older), beta, alpha)
    products = bmm(batch1, batch2)
    return _added(input, _blas(sum_(products, 0, dtype=products.dtype), alpha), beta, alpha, "addbmm")


@method(inplace=True, out=True)
@policy("off lower")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *older: Tensor, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2), with the rules of addmm(). Dtypes are promoted.

    >>> norch.addr(norch.zeros(2, 2), norch.tensor([1.0, 2.0]), norch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    if older:
        input, vec1, vec2, beta, alpha = older_form("addr", (input, vec1, vec2, *older), beta, alpha)
    if mode.casting and (out := in_autocast(addr, input, vec1, vec2, beta=beta, alpha=alpha)) is not None:
        return out
    out = _in_one_pass(_Addr, input, vec1, vec2, beta, alpha, (1, 1))
    return _addr(input, vec1, vec2, beta, alpha) if out is None else out


@composed(name="addr")
def _addr(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    operands = [as_operand(x, "addr") for x in (input, vec1, vec2)]
    dtype = DTYPES[lib.norch_result_type(operands)]
    for factor in (beta, alpha):
        if isinstance(factor, (float, complex)) and dtype.kind not in "fc":
            raise DTypeError(f"addr: a factor of integers is an integer, not {factor}")
    input, vec1, vec2 = (x if x.dtype is dtype else x.to(dtype) for x in operands)
    return _added(input, outer(vec1, vec2), beta, alpha, "addr")


def _added(x: Tensor, product: Tensor, beta: complex, alpha: complex, name: str) -> Tensor:
    x = as_operand(x, name)
    if x.dtype is not product.dtype:
        raise DTypeError(f"{name}: expected one dtype, got an input of {x.dtype.name} and {product.dtype.name}")
    try:
        x = x if lib.norch_shape(x) == lib.norch_shape(product) else expand(x, tuple(product.shape))
    except ShapeError as error:
        shapes = f"an input of shape {tuple(x.shape)} does not broadcast to the product's {tuple(product.shape)}"
        raise ShapeError(f"{name}: {shapes}") from error
    product = _scaled(product, alpha, name)
    if beta != 0:
        return _scaled(x, beta, name) + product
    on_one_device(name, x, product)
    return product if not x.requires_grad else _instead_of(x, product)


def _blas(product: Tensor, alpha: complex) -> Tensor:
    """product, or zeros where alpha is 0: as in BLAS, NaNs in the factors do not count then."""
    return product if alpha != 0 else _instead_of(product, zeros_of(product))


def _instead_of(x: Tensor, value: Tensor) -> Tensor:
    """value, with a gradient 0 for x."""
    return where(value.new_zeros((), dtype=bool), x, value)


def _scaled(x: Tensor, factor: Any, name: str) -> Tensor:
    if factor == 1:
        return x
    if type(factor) is float and x.dtype.is_floating_point:
        return x * factor
    if x.dtype.kind == "b":
        raise DTypeError(f"{name}: a factor of {factor} for dtype bool; only 1 is allowed")
    if isinstance(factor, complex) and not x.is_complex():
        raise DTypeError(f"{name}: a factor of {factor} for dtype {x.dtype.name}")
    if x.dtype.kind not in "fc":
        if not math.isfinite(factor):
            raise ArgumentError(f"{name}: a factor of {factor} for dtype {x.dtype.name}")
        factor = int(factor)
    return x * factor


# ---- contractions -----------------------------------------------------------------------------------------------


@method(aliases=("ger",), moves=True, out=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """out[i][j] = input[i] * vec2[j] for two vectors.

    >>> norch.outer(norch.tensor([1, 2]), norch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    a, b = as_operand(input, "outer"), as_operand(vec2, "outer")
    if not a.ndim == b.ndim == 1:
        raise ShapeError(f"outer: expected 1 dimension, got shapes {tuple(a.shape)} and {tuple(b.shape)}")
    return unsqueeze(a, 1) * b


ger = outer


@method(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last axis of both: shapes (..., K) and (...', K) give (..., ...'). If one is a
    number or 0-d tensor, the product.

    >>> norch.inner(norch.tensor([1, 2]), norch.tensor([3, 4]))
    tensor(11)
    """
    a, b = as_operand(input, "inner"), as_operand(other, "inner")
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"inner: the last dimensions differ: {tuple(a.shape)} and {tuple(b.shape)}")
    on_one_device("inner", a, b)
    if a.ndim <= 2 and b.ndim <= 2 and a._dtype == b._dtype:
        return dot(a, b) if a.ndim == b.ndim == 1 else matmul(a, t(b))
    return _over(a, b, [a.ndim - 1], [b.ndim - 1], "inner")


@composed(autocast="- widest", out=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, axes: Any = None) -> Tensor:
    """The sum of products over some axes of a and as many axes of b. The result has the other axes, first a's, then
    b's. dims is a number, of the last axes of a and the first of b, or two lists of axes; axes is NumPy's name for it.
    ShapeError if sizes differ.

    >>> norch.tensordot(norch.ones(2, 3, 4), norch.ones(4, 3, 5), ([1, 2], [1, 0])).shape
    norch.Size([2, 5])
    """
    a, b = as_operand(a, "tensordot"), as_operand(b, "tensordot")
    dims = dims if axes is None else axes
    if isinstance(dims, Handle):
        dims = dims.tolist()  # type: ignore[attr-defined]
    if isinstance(dims, (list, tuple)) and len(dims) == 2:
        of_a, of_b = ([side] if hasattr(side, "__index__") else list(side) for side in dims)
    elif hasattr(dims, "__index__"):
        count = dims.__index__()
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ArgumentError(f"tensordot: dims={count} for tensors of {a.ndim} and {b.ndim} dimensions")
        if count == 1 and a.ndim <= 2 and b.ndim <= 2 and a._dtype == b._dtype and a.shape[-1] == b.shape[0]:
            return matmul(a, b)
        of_a, of_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        raise TypeError(f"tensordot: dims is a number or two lists of axes, not {dims!r}")
    if len(of_a) != len(of_b):
        raise ArgumentError(f"tensordot: {len(of_a)} axes of a and {len(of_b)} of b; dims needs as many of both")
    of_a, of_b = (_axes(x, axes, "tensordot") for x, axes in ((a, of_a), (b, of_b)))
    for i, j in zip(of_a, of_b, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ShapeError(
                f"tensordot: size {a.shape[i]} of dimension {i} of a and {b.shape[j]} of dimension {j} of b do not "
                f"match: {tuple(a.shape)} and {tuple(b.shape)}"
            )
    return _over(a, b, of_a, of_b, "tensordot")


def _axes(x: Tensor, axes: Sequence[Any], name: str) -> list[int]:
    """Axes as numbers from 0 on, each but once."""
    result = []
    for dim in axes:
        if not -x.ndim <= (number := int64(dim, f"{name}: dimension")) < x.ndim:
            raise BoundsError(f"{name}: dimension {number} is out of range for shape {tuple(x.shape)}")
        result.append(number % x.ndim)
    if len(set(result)) != len(result):
        raise ArgumentError(f"{name}: a dimension appears twice in {list(axes)}")
    return result


def _over(a: Tensor, b: Tensor, of_a: list[int], of_b: list[int], name: str) -> Tensor:
    """The contraction over axes of_a of a and of_b of b."""
    labels_a = tuple(range(a.ndim))
    common = dict(zip(of_b, of_a, strict=True))
    labels_b = tuple(common.get(axis, a.ndim + axis) for axis in range(b.ndim))
    result_labels = [label for axis, label in enumerate(labels_a) if axis not in of_a]
    result_labels += [label for axis, label in enumerate(labels_b) if axis not in of_b]
    return (_in_part if result_labels else _in_whole)(name, (a, b), (labels_a, labels_b), tuple(result_labels))


# Over some axes: a matrix product. Over all of them: dot().
_in_part, _in_whole = autocast("- widest")(contract), autocast("off widest")(contract)


@composed(autocast="off widest")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out[..., o] = sum of input1[..., i] * weight[o, i, j] * input2[..., j], plus bias[o].

    Shapes (..., I), (..., J), (O, I, J) and (O) give (..., O).

    >>> norch.bilinear(norch.tensor([1.0, 2.0]), norch.tensor([3.0, 4.0]), norch.ones(1, 2, 2))
    tensor([21.])
    """
    a, b, weight = (
        as_operand(input1, "bilinear"),
        as_operand(input2, "bilinear"),
        as_operand(weight, "bilinear"),
    )
    shapes = f"{tuple(a.shape)}, {tuple(b.shape)} and a weight of {tuple(weight.shape)}"
    if a.ndim != b.ndim or a.ndim == 0 or a.shape[:-1] != b.shape[:-1] or weight.ndim != 3:
        raise ShapeError(f"bilinear: expected (..., I), (..., J) and (O, I, J), got {shapes}")
    if a.shape[-1] != weight.shape[1] or b.shape[-1] != weight.shape[2]:
        raise ShapeError(f"bilinear: inner sizes do not match: {shapes}")
    out = _bilinear(a, b, weight)
    return out if bias is None else out + as_operand(bias, "bilinear")


@differentiable(
    broadcast=True,
    grad_a=lambda g, b, weight: _bilinear(g, b, weight.permute(1, 0, 2)),
    grad_b=lambda g, a, weight: _bilinear(g, a, weight.permute(2, 0, 1)),
    grad_weight=lambda g, a, b: _bilinear_weight(g, a, b),
)
def _bilinear(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    batch, (o, i, j) = tuple(range(a.ndim - 1)), range(a.ndim, a.ndim + 3)
    return contract("bilinear", (a, b, weight), ((*batch, i), (*batch, j), (o, i, j)), (*batch, o))


def _bilinear_weight(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The sum of g[..., o] a[..., i] b[..., j] as (O, I, J)."""
    batch, (o, i, j) = tuple(range(a.ndim - 1)), range(a.ndim, a.ndim + 3)
    return contract("bilinear", (g, a, b), ((*batch, o), (*batch, i), (*batch, j)), (o, i, j))


@composed(autocast="lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of products along an axis, with x conjugated. The other axes broadcast.

    >>> norch.linalg.vecdot(norch.tensor([1.0, 2.0]), norch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    x, y = as_operand(x, "vecdot"), as_operand(y, "vecdot")
    if x.dtype.kind not in "fc" or x.dtype is not y.dtype:
        raise DTypeError(
            f"vecdot: expected two tensors of one floating or complex dtype, got {x.dtype.name} and {y.dtype.name}"
        )
    return sum_((x.conj() if x.is_complex() else x) * y, dim)


@method(composed=True, out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of input times all of other, block by block along each axis.

    >>> norch.kron(norch.eye(2), norch.ones(1, 2))
    tensor([[1., 1., 0., 0.],
            [0., 0., 1., 1.]])
    """
    a, b = on_common_device(as_operand(input, "kron"), as_operand(other, "kron"))
    ndim = max(a.ndim, b.ndim)
    of_a, of_b = ((1,) * (ndim - x.ndim) + lib.norch_shape(x) for x in (a, b))
    apart, within = [1] * (2 * ndim), [1] * (2 * ndim)  # the places of blocks, and within one
    apart[::2], within[1::2] = of_a, of_b
    blocks = reshape(a, tuple(apart)) * reshape(b, tuple(within))
    return reshape(blocks, tuple(map(int.__mul__, of_a, of_b)))


_MUL, _SUB = OPCODES["mul"], OPCODES["sub"]


@method(composed=True, autocast="off widest", out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of three elements along dim (default: the first axis of size 3).

    >>> norch.cross(norch.tensor([1, 0, 0]), norch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    a, b = as_operand(input, "cross"), as_operand(other, "cross")
    if dim is None:
        dim = next((k for k, size in enumerate(a.shape) if size == 3), None)
        if dim is None:
            raise ShapeError(f"cross: no dimension of size 3 in shape {tuple(a.shape)}")
    return _checked_cross(a, b, dim)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along dim; the other axes broadcast.

    >>> norch.linalg.cross(norch.tensor([1, 0, 0]), norch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return _checked_cross(as_operand(input, "cross"), as_operand(other, "cross"), dim)


def _checked_cross(a: Tensor, b: Tensor, dim: int) -> Tensor:
    on_one_device("cross", a, b)
    shape, other = lib.norch_shape(a), lib.norch_shape(b)
    if len(shape) != len(other):
        raise ShapeError(f"cross: {a.ndim} and {b.ndim} dimensions: {shape} and {other}")
    if not shape:
        raise BoundsError(f"cross: dimension {dim} is out of range for shape {shape}")
    dim = axis(dim, len(shape), "cross")
    if shape[dim] != 3 or other[dim] != 3:
        raise ShapeError(f"cross: expected size 3 along dimension {dim}, got {shape} and {other}")
    return _cross(a, b, dim)


@differentiable(
    "linalg_cross",
    broadcast=True,
    grad_a=lambda g, b, dim: _cross(b, g, dim),
    grad_b=lambda g, a, dim: _cross(g, a, dim),
)
def _cross(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """a[i + 1] b[i + 2] - a[i + 2] b[i + 1] along dim, where 3 stands for 0 and 4 for 1: the elements, moved up by one,
    of a[i] b[i + 1] - a[i + 1] b[i]."""
    before, behind = lib.norch_binary(_MUL, a, _moved_up(b, dim)), lib.norch_binary(_MUL, _moved_up(a, dim), b)
    return _moved_up(lib.norch_binary(_SUB, before, behind), dim)


def _moved_up(x: Tensor, dim: int) -> Tensor:
    """The elements 1, 2, 0 along dim."""
    return lib.norch_cat((lib.norch_slice(x, dim, 1, 3, 1), lib.norch_slice(x, dim, 0, 1, 1)), dim)


linalg_cross.__name__ = "cross"  # that of norch.linalg, which errors name
linalg_cross = composed(linalg_cross)


# ---- many factors -----------------------------------------------------------------------------------------------


@composed(autocast="- lower", out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, multiplied in the order that costs least.

    >>> norch.chain_matmul(norch.ones(2, 30), norch.ones(30, 4), norch.ones(4, 5)).shape
    norch.Size([2, 5])
    """
    if not matrices:
        raise ArgumentError("chain_matmul: needs at least one matrix")
    listed = [as_operand(x, "chain_matmul") for x in matrices]
    for k, x in enumerate(listed):
        if x.ndim != 2:
            raise ShapeError(f"chain_matmul: matrix {k} has shape {tuple(x.shape)}, expected 2 dimensions")
    if len(listed) == 1:
        return as_operand(matrices[0], "chain_matmul")
    return _chain(listed, "chain_matmul")


@composed(autocast="- lower")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, multiplied in the order that costs least; the first and the last may be vectors.

    The order is found by dynamic programming (Cormen et al. 2009, Introduction to Algorithms, 15.2).

    >>> norch.linalg.multi_dot([norch.ones(3), norch.eye(3), norch.ones(3)])
    tensor(3.)
    """
    listed = [as_operand(x, "multi_dot") for x in tensors]
    if len(listed) < 2:
        raise ArgumentError(f"multi_dot: expected at least 2 tensors, got {len(listed)}")
    for k, x in enumerate(listed):
        if x.ndim != 2 and not (x.ndim == 1 and k in (0, len(listed) - 1)):
            raise ShapeError(f"multi_dot: tensor {k} has shape {tuple(x.shape)}, expected a matrix")
    return _chain(listed, "multi_dot")


def _chain(factors: list[Any], name: str) -> Tensor:
    """The product of factors[first..last]. The best place to cut it follows from those of its parts (Cormen et al.,
    15.2).
    """
    sizes = [1 if factors[0].ndim == 1 else factors[0].shape[0], *(x.shape[0] for x in factors[1:])]
    sizes.append(1 if factors[-1].ndim == 1 else factors[-1].shape[-1])
    for k, (x, y) in enumerate(zip(factors, factors[1:], strict=False)):
        if x.shape[-1] != y.shape[0]:
            raise ShapeError(f"{name}: tensors {k} and {k + 1} do not match: {tuple(x.shape)} and {tuple(y.shape)}")
    n = len(factors)
    if n == 3:
        a, b, c, d = sizes
        first, second, third = factors
        if b * d * (a + c) <= a * c * (b + d):
            return matmul(first, matmul(second, third))
        return matmul(matmul(first, second), third)
    cost = {(k, k): 0 for k in range(n)}
    cut = {}
    for length in range(1, n):
        for first in range(n - length):
            last = first + length
            cost[first, last], cut[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            )
    return _between(factors, cut, 0, n - 1)


def _between(factors: list[Any], cut: dict[tuple[int, int], int], first: int, last: int) -> Any:
    """The product of factors[first..last], cut where cut says."""
    if first == last:
        return factors[first]
    k = cut[first, last]
    return matmul(_between(factors, cut, first, k), _between(factors, cut, k + 1, last))


@method(composed=True, out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power of square matrices (..., M, M): the identity for n = 0, a power of the inverse for negative n. It
    is computed by repeated squaring (Knuth 1997, The Art of Computer Programming 2, 4.6.3). LinAlgError if there is no
    inverse, ShapeError if a matrix is not square.

    >>> norch.linalg.matrix_power(norch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    x = input = as_operand(input, "matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: expected square matrices, got shape {tuple(x.shape)}")
    if (power := int64(n, "matrix_power: n")) < 0:
        from ..linalg.solve import inv  # lazy: NumPy's

        x, power = inv(x), -power
    if power == 0:
        identity = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        out = identity if x.ndim == 2 else broadcast_to(identity, tuple(x.shape)).clone()
        return _instead_of(x, out) if x.requires_grad else out
    result: Any = None
    while True:
        if power & 1:
            result = x if result is None else matmul(result, x)
        power >>= 1
        if not power:
            return result.clone() if result is input else result
        x = matmul(x, x)
