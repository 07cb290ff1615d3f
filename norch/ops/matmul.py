"""Matrix products (csrc/ops/matmul.c)."""

from __future__ import annotations

from typing import Any

from .._handle import Handle, alias
from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge, like_of
from ..autograd.node import Leaf
from ..errors import DeviceError, DTypeError, ShapeError
from ._operand import as_operand, operand

_NO_ENDING = -1  # what norch_linear ends in: a row of csrc/ops.def, or this


def matmul(input: Any, other: Any) -> Any:  # noqa: A002  (PyTorch's name)
    """The matrix product by NumPy's rules: vectors, matrices, and batches that broadcast.

    Shapes (..., M, K) and (..., K, N) give (..., M, N); a vector stands for one row on the left, one column on the
    right. ShapeError when the inner sizes differ.

    >>> norch.ones(2, 3) @ norch.ones(3)
    tensor([3., 3.])
    """
    return product(as_operand(input, "matmul"), as_operand(other, "matmul"))


def product(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """a @ b, the last two axes of either exchanged first: without a copy, and without a view of its own."""
    out = lib.norch_matmul(a, b, transpose_a, transpose_b)
    to_a = a._node if a._view is None else edge(a)
    to_b = b._node if b._view is None else edge(b)
    if (to_a is not None or to_b is not None) and mode.enabled:
        a_ndim, b_ndim = a.ndim, b.ndim
        node = d.Matmul(to_a, to_b)
        node._a = a if to_b is not None else None
        node._b = b if to_a is not None else None
        node._out = None
        node.vectors = a_ndim == 1, b_ndim == 1
        node.transposed = transpose_a, transpose_b
        node.likes = (like_of(a), like_of(b)) if a_ndim > 2 or b_ndim > 2 else None
        out._node = node
    return out


def linear(input: Any, weight: Any, bias: Any = None) -> Any:  # noqa: A002
    """input @ weight.T + bias in one pass: input (..., K), weight (N, K), bias (N) give (..., N).

    A weight (K), with a bias (), gives (...). Other biases broadcast to the result.
    """
    x = input
    try:
        out = lib.norch_linear(x, weight, bias, _NO_ENDING)
    except ShapeError as error:
        return _linear_of_other_shapes(x, weight, bias, error)
    if mode.enabled:
        out._node = _linear_node(x, weight, bias)
    return out


def _linear_of_other_shapes(x: Any, weight: Any, bias: Any, refused: ShapeError) -> Any:
    """linear() with a vector for a weight, or a bias that broadcasts."""
    if weight.ndim != 1 and (bias is None or bias.shape == weight.shape[:1]):
        raise refused from None
    sums = product(x, weight) if weight.ndim == 1 else linear(x, weight)
    out = sums if bias is None else sums + bias
    if out.shape != sums.shape:
        raise refused from None
    return out


def linear_ending_in(function: Any, x: Any, weight: Any, bias: Any) -> Any:
    """function(linear(x, weight, bias)) for the function of a UNARY row with a derivative, in one pass.

    The graph is the same. So where a derivative may need what lies between, as gelu's does, there are two passes.
    """
    derivative = function.derivative
    if mode.enabled and "x" in derivative.saves[0]:
        return function(linear(x, weight, bias))
    try:
        out = lib.norch_linear(x, weight, bias, function.opcode)
    except ShapeError:
        return function(linear(x, weight, bias))  # which takes some more
    if mode.enabled and (inner := _linear_node(x, weight, bias)) is not None:
        node = derivative(inner)
        node.likes = None
        node._out = alias(out)
        out._node = node
    return out


def _linear_node(x: Any, weight: Any, bias: Any) -> d.Linear | None:
    """What linear() records, if any gradient is wanted."""
    to_x = x._node if x._view is None else edge(x)
    to_weight = weight._node if weight._view is None else edge(weight)
    to_bias = None if bias is None else edge(bias)
    if to_x is None and to_weight is None and to_bias is None:
        return None
    node = d.Linear(to_x, to_weight, to_bias)
    node._a = x if to_weight is not None else None
    node._b = weight if to_x is not None else None
    node._c = node._out = node.likes = None
    node.bias = bias if type(to_bias) is Leaf else to_bias and like_of(bias)  # a leaf lives anyway
    return node


def mm(input: Any, mat2: Any) -> Any:  # noqa: A002
    """The product of two matrices, (M, K) and (K, N)."""
    return _named(input, mat2, "mm", 2, 2)


def bmm(input: Any, mat2: Any) -> Any:  # noqa: A002
    """Products of matrices pair by pair, (B, M, K) and (B, K, N)."""
    a, b = as_operand(input, "bmm"), as_operand(mat2, "bmm")
    if a.ndim == b.ndim == 3 and a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm: batches of {a.shape[0]} and {b.shape[0]}: {tuple(a.shape)} and {tuple(b.shape)}")
    return _named(a, b, "bmm", 3, 3)


def mv(input: Any, vec: Any) -> Any:  # noqa: A002
    """A matrix (M, K) times a vector (K)."""
    return _named(input, vec, "mv", 2, 1)


def dot(input: Any, tensor: Any) -> Any:  # noqa: A002
    """The sum of products of two vectors of one size."""
    return _named(input, tensor, "dot", 1, 1)


def vdot(input: Any, other: Any) -> Any:  # noqa: A002
    """dot(), as numbers here are real."""
    return _named(input, other, "vdot", 1, 1)


def _named(a: Any, b: Any, name: str, a_rank: int, b_rank: int) -> Any:
    """matmul() for operands of given ranks, with errors that name what was called."""
    a, b = as_operand(a, name), as_operand(b, name)
    for x, rank in ((a, a_rank), (b, b_rank)):
        if x.ndim != rank:
            raise ShapeError(f"{name}: expected {rank} dimensions, got shape {tuple(x.shape)}")
    try:
        return product(a, b)
    except (ShapeError, DTypeError, DeviceError) as error:
        raise type(error)(str(error).replace("matmul", name, 1)) from None


class MatmulMethods(Handle):
    """The products of Tensor."""

    __slots__ = ()

    matmul, mm, bmm, mv, dot, vdot = matmul, mm, bmm, mv, dot, vdot
    _product = product

    def __matmul__(self, other: Any) -> Any:
        return NotImplemented if operand(other, "matmul") is NotImplemented else matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return NotImplemented if operand(other, "matmul") is NotImplemented else matmul(other, self)
