"""Matrix products (csrc/ops/matmul.c) and their derivatives, which are matrix products."""

from __future__ import annotations

from .._binding.library import constants, lib
from .._package.typing import Any, Operand, Tensor
from .._tensor.handle import alias
from ..autograd.derivative import derivative
from ..autograd.grad_mode import mode
from ..autograd.outlive import outlive_writes
from ..autograd.record import is_recorded, record
from ..errors import ShapeError
from ._autocast import in_autocast, policy
from ._instead import instead
from ._operand import as_operand, operand
from .op import METHODS, method
from .reduce import sum_over

_MM, _BMM, _MV, _DOT, _VDOT = (constants[f"PRODUCT_{name}"] for name in ("MM", "BMM", "MV", "DOT", "VDOT"))
_NO_EPILOGUE = -1  # what norch_linear applies to the product: the opcode of a UNARY row, or this


@method(out=True)
def matmul(input: Operand, other: Operand) -> Tensor:  # PyTorch's name
    """The matrix product by NumPy's rules for vectors, matrices and batches. Shapes (..., M, K) and (..., K, N) give
    (..., M, N), and the batches broadcast. A vector counts as one row on the left, one column on the right. ShapeError
    if the inner sizes differ.

    >>> norch.ones(2, 3) @ norch.ones(3)
    tensor([3., 3.])
    """
    return product(as_operand(input, "matmul"), as_operand(other, "matmul"))


@policy("lower")
def product(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """a @ b, with the last two axes of a or b exchanged first, without a copy or a view."""
    if mode.casting and (out := in_autocast(product, a, b, transpose_a, transpose_b)) is not None:
        return out
    out = lib.norch_matmul(a, b, transpose_a, transpose_b)
    if a._node is b._node is None and a._view is b._view is None:  # no history, as the call of record() would find too
        return out
    transposed = transpose_a or transpose_b
    a_ndim, b_ndim = a.ndim, b.ndim
    if a_ndim == b_ndim == 2 and not transposed:
        return record(_Matmul, out, (a, b))
    if not is_recorded((a, b)):
        return out
    if a_ndim == 1 or b_ndim == 1:
        kind, broadcast = (_TransposedVectorMatmul if transposed else _VectorMatmul), a_ndim > 2 or b_ndim > 2
    elif a_ndim == b_ndim == 2 or lib.norch_shape(a)[:-2] == lib.norch_shape(b)[:-2]:
        kind, broadcast = (_TransposedMatmul if transposed else _Matmul), False
    elif b_ndim == 2:
        kind, broadcast = (_TransposedByMatrix if transposed else _ByMatrix), False
    else:
        kind, broadcast = (_TransposedBroadcastMatmul if transposed else _BroadcastMatmul), True
    record(kind, out, (a, b), (transpose_a, transpose_b) if transposed else (), broadcast)
    return outlive_writes(out, a, b) if broadcast else out  # PyTorch repeats what broadcasts


def _transposed_grad_a(g: Tensor, b: Tensor, ta: bool, tb: bool) -> Tensor:
    return product(b, g, tb, True) if ta else product(g, b, False, not tb)


def _transposed_grad_b(g: Tensor, a: Tensor, ta: bool, tb: bool) -> Tensor:
    return product(g, a, True, ta) if tb else product(a, g, not ta, False)


def _grad_of_matrix(g: Tensor, a: Tensor, ta: bool = False, tb: bool = False) -> Tensor:
    """The gradient of the matrix b by which a batch was multiplied: one product over all rows of the batch."""
    a, g = (a.mT if ta else a).flatten(0, -2), g.flatten(0, -2)
    return product(g, a, True) if tb else product(a, g, True)


_PRODUCT: dict[str, Any] = {
    "grad_a": lambda g, b: product(g, b, False, True),
    "grad_b": lambda g, a: product(a, g, True, False),
}
_TRANSPOSED: dict[str, Any] = {"grad_a": _transposed_grad_a, "grad_b": _transposed_grad_b}
_Matmul = derivative("matmul", ("a", "b"), rounds_once=True, **_PRODUCT)
_TransposedMatmul = derivative("matmul", ("a", "b"), rounds_once=True, **_TRANSPOSED)
_ByMatrix = derivative(
    "matmul", ("a", "b"), rounds_once=True, grad_a=_PRODUCT["grad_a"], grad_b=lambda g, a: _grad_of_matrix(g, a)
)
_TransposedByMatrix = derivative(
    "matmul", ("a", "b"), rounds_once=True, grad_a=_transposed_grad_a, grad_b=_grad_of_matrix
)
# The gradients are summed over the axes that broadcasting repeats.
_BroadcastMatmul = derivative("matmul", ("a", "b"), **_PRODUCT)
_TransposedBroadcastMatmul = derivative("matmul", ("a", "b"), **_TRANSPOSED)


# Of a @ b where a counts as a matrix of one row, b as one of one column, or both.
_VectorMatmul = derivative(
    "matmul",
    ("a", "b"),
    grad_a=lambda g, b: _grad_of_left(g, b, False, False),
    grad_b=lambda g, a: _grad_of_right(g, a, False, False),
)


def _grad_of_left(g: Tensor, b: Tensor, ta: bool, tb: bool) -> Tensor:
    if b.ndim > 1:  # (K) @ (..., K, N)
        return product(g.unsqueeze(-2), b, False, not tb).squeeze(-2)
    if g.ndim == 0:
        return g * b
    return (g.unsqueeze(-2) * b.unsqueeze(-1)) if ta else (g.unsqueeze(-1) * b)  # an outer product


def _grad_of_right(g: Tensor, a: Tensor, ta: bool, tb: bool) -> Tensor:
    if a.ndim > 1:  # (..., M, K) @ (K)
        return product(a, g.unsqueeze(-1), not ta, False).squeeze(-1)
    if g.ndim == 0:
        return g * a
    return (g.unsqueeze(-1) * a) if tb else (a.unsqueeze(-1) * g.unsqueeze(-2))


_TransposedVectorMatmul = derivative("matmul", ("a", "b"), grad_a=_grad_of_left, grad_b=_grad_of_right)


@policy("lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias in one pass: input (..., K), weight (N, K) and bias (N) give (..., N). A weight (K), with
    a bias (), gives (...). Other biases broadcast to the result. ShapeError for other shapes.

    >>> norch.nn.functional.linear(norch.ones(2, 3), norch.ones(4, 3)).shape
    norch.Size([2, 4])
    """
    if mode.casting and (out := in_autocast(linear, input, weight, bias)) is not None:
        return out
    x = input
    try:
        out = lib.norch_linear(x, weight, bias, _NO_EPILOGUE)
    except ShapeError:
        if (other := _linear_of_other_shapes(x, weight, bias)) is None:
            raise
        return other
    except TypeError as error:
        return instead(linear, (input, weight) if bias is None else (input, weight, bias), {}, error)
    return record(_Linear, out, (x, weight, bias))


def _linear_of_other_shapes(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """linear() with a vector as weight, or a bias that broadcasts; None for other shapes."""
    if weight.ndim != 1 and (bias is None or bias.shape == weight.shape[:1]):
        return None
    sums = product(x, weight) if weight.ndim == 1 else linear(x, weight)
    out = sums if bias is None else sums + bias
    return out if out.shape == sums.shape else None


@policy("lower")
def linear_with_epilogue(function: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """function(linear(x, weight, bias)) for the function of a UNARY row with a derivative, in one pass.

    The graph is the same. If the derivative of function needs the product itself, as gelu's does, there are two passes.
    """
    if mode.casting and (out := in_autocast(linear_with_epilogue, function, x, weight, bias)) is not None:
        return out
    node_class = function.node_class()
    if mode.enabled and "x" in node_class.save_plan.needed[0]:
        return function(linear(x, weight, bias))
    try:
        out = lib.norch_linear(x, weight, bias, function.opcode)
    except ShapeError:
        return function(linear(x, weight, bias))  # which takes some more
    if record(_Linear, out, (x, weight, bias))._node is None:
        return out
    between = alias(out)
    between._node = out._node
    return record(node_class, out, (between,))


def _weight_grad(g: Tensor, x: Tensor) -> Tensor:
    """g^T x, over all but the last axes of both."""
    ndim = g.ndim
    if ndim == 2:
        return product(g, x, True)
    if ndim == 1:
        return g.unsqueeze(-1) * x
    if mode.enabled:
        return product(g.flatten(0, -2), x.flatten(0, -2), True)
    return lib.norch_matmul(lib.norch_flatten(g, 0, -2), lib.norch_flatten(x, 0, -2), True, False)


def _bias_grad(g: Tensor) -> Tensor:
    return g.clone() if g.ndim == 1 else sum_over(g, range(g.ndim - 1))


_Linear = derivative(
    "linear",
    ("x", "weight", "bias"),
    grad_x=lambda g, weight: product(g, weight),
    grad_weight=_weight_grad,
    grad_bias=_bias_grad,
    rounds_once=True,
)


@method(out=True)
@policy("lower")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, (M, K) and (K, N) to (M, N). ShapeError for other shapes.

    >>> norch.mm(norch.tensor([[1, 2], [3, 4]]), norch.tensor([[1], [1]]))
    tensor([[3],
            [7]])
    """
    if mode.casting and (out := in_autocast(mm, input, mat2)) is not None:
        return out
    a, b = as_operand(input, "mm"), as_operand(mat2, "mm")
    return record(_Matmul, lib.norch_product(_MM, a, b), (a, b))


@method(out=True)
@policy("lower")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of matrices pair by pair, (B, M, K) and (B, K, N) to (B, M, N). ShapeError for other shapes.

    >>> norch.bmm(norch.ones(5, 2, 3), norch.ones(5, 3, 4)).shape
    norch.Size([5, 2, 4])
    """
    if mode.casting and (out := in_autocast(bmm, input, mat2)) is not None:
        return out
    a, b = as_operand(input, "bmm"), as_operand(mat2, "bmm")
    return record(_Matmul, lib.norch_product(_BMM, a, b), (a, b))


@method(out=True)
@policy("off lower")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix (M, K) and a vector (K): a vector (M). ShapeError for other shapes.

    >>> norch.mv(norch.tensor([[1, 2], [3, 4]]), norch.tensor([1, 1]))
    tensor([3, 7])
    """
    if mode.casting and (out := in_autocast(mv, input, vec)) is not None:
        return out
    return _with_vector(_MV, as_operand(input, "mv"), as_operand(vec, "mv"))


@method(out=True)
@policy("off widest")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors, as a 0-d tensor. ShapeError if their sizes differ.

    >>> norch.dot(norch.tensor([1, 2]), norch.tensor([3, 4]))
    tensor(11)
    """
    if mode.casting and (out := in_autocast(dot, input, tensor)) is not None:
        return out
    return _with_vector(_DOT, as_operand(input, "dot"), as_operand(tensor, "dot"))


@method(out=True)
@policy("off widest")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of conj(input) * other over two vectors, as a 0-d tensor. ShapeError if their sizes differ.

    >>> norch.vdot(norch.tensor([1j]), norch.tensor([1j]))
    tensor(1.+0.j)
    """
    if mode.casting and (out := in_autocast(vdot, input, other)) is not None:
        return out
    a, b = as_operand(input, "vdot"), as_operand(other, "vdot")
    return _with_vector(_VDOT, a.conj() if a.is_complex() else a, b)


def _with_vector(kind: int, a: Tensor, b: Tensor) -> Tensor:
    out = lib.norch_product(kind, a, b)
    return record(_VectorMatmul, out, (a, b))


def _matmul_operator(self: Tensor, other: Operand) -> Tensor:
    return NotImplemented if operand(other, "matmul") is NotImplemented else matmul(self, other)


def _reflected_matmul(self: Tensor, other: Any) -> Tensor:
    return NotImplemented if operand(other, "matmul") is NotImplemented else matmul(other, self)


METHODS.update(__matmul__=_matmul_operator, __rmatmul__=_reflected_matmul)
