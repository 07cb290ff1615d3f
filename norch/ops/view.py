"""Views: tensors of other shapes and strides that share elements (csrc/ops/view.c), with their derivatives.

Autograd can apply each again, to another base or to a gradient (autograd/view_history.py). Its gradient function may
name x_meta, the meta tensor of the input, and arguments, those of the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._binding.library import lib
from .._binding.numbers import int64
from .._package.typing import Any, Tensor
from .._tensor.handle import Handle, version_counter_of
from ..autograd import view_history
from ..autograd.broadcast import Expand
from ..autograd.derivative import view_derivative
from ..autograd.grad_mode import mode
from ..autograd.levels import BatchedBase, zeros_of
from ..autograd.record import gradient_edge, record_view
from ..autograd.view_history import base_of, contains, reach
from ..dtype import dtype as DType
from ..dtype import dtype_named
from ..errors import BoundsError, Error, ShapeError
from ._inplace_methods import inplace_view
from ._operand import tensor_of
from .op import METHODS, method
from .values import iota

__all__ = [
    "as_strided", "broadcast_to", "diagonal", "flatten", "narrow", "permute", "reshape", "select", "squeeze", "t",
    "transpose", "unsqueeze",
]  # fmt: skip


Shape = Sequence[int]
Axes = Any  # an int or a sequence of them
END = (1 << 63) - 1  # as a bound of a slice, the end of any axis


def sizes(shape: tuple[Any, ...], keyword: Any = None) -> Any:
    """Sizes given one by one, as one sequence or by keyword: f(2, 3), f((2, 3)) and f(size=(2, 3)) mean the same."""
    if keyword is not None:
        if shape:
            raise TypeError(f"sizes are given once, not as {shape!r} and as {keyword!r}")
        shape = (keyword,)
    if len(shape) == 1:
        if type(first := shape[0]) is tuple:
            return first
        if not hasattr(first, "__index__") and hasattr(first, "__iter__"):
            return tuple(first)
    return shape  # C looks at what they are, and names the call


# ---- shapes ---------------------------------------------------------------------------------------------------------


@method
def view(x: Tensor, *shape: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
    """A view of x in another shape with the same number of elements. One size may be -1. ShapeError if the strides
    would need a copy.

    view(dtype) is a view of the bytes as another dtype, outside any graph. If its elements are smaller or larger, the
    last size grows or shrinks.

    >>> norch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if dtype is not None or (len(shape) == 1 and (isinstance(shape[0], DType) or type(shape[0]) is type)):
        out = lib.norch_view_dtype(x, dtype_named(shape[0] if dtype is None else dtype).code)
        out._version_counter = version_counter_of(x)
        return out
    wanted = shape if len(shape) > 1 and size is None else sizes(shape, size)
    return record_view(Reshape, lib.norch_view(x, wanted), x, view, (wanted,))


@method
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """view(other.shape).

    >>> norch.arange(4).view_as(norch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(self, tuple(tensor_of(other, "view_as").shape))


@method
def reshape(input: Tensor, *sizes_: Any, shape: Any = None) -> Tensor:
    """input in another shape with the same number of elements: a view if the strides allow, else a copy. One size may
    be -1.

    >>> norch.reshape(norch.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    wanted = sizes(sizes_, shape)
    return _reshaped(lib.norch_reshape(input, wanted), input, reshape, (wanted,))


def _reshaped(out: Tensor, x: Tensor, view_fn: Any, arguments: tuple[Any, ...]) -> Tensor:
    return record_view(Reshape, out, x, view_fn, arguments, lib.norch_shares_storage(out, x))


def reshape_to(x: Tensor, meta: Handle) -> Tensor:
    """x in the shape of meta."""
    return _reshaped(lib.norch_reshape_as(x, meta), x, reshape_to, (meta,))


# view_fn and arguments are saved as they say what the operation was called (compat/nodes.py).
Reshape = view_derivative("reshape", grad=lambda g, x_meta, view_fn, arguments: reshape_to(g, x_meta))


@method
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """reshape(other.shape).

    >>> norch.arange(4).reshape_as(norch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(self, tuple(tensor_of(other, "reshape_as").shape))


@method
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """A view without axes of size 1: without all of them, or without those in dim. NumPy calls dim axis.

    >>> norch.squeeze(norch.zeros(1, 2, 1)).shape
    norch.Size([2])
    """
    dim = _either(dim, axis, "squeeze")
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    return record_view(Reshape, lib.norch_squeeze(input, dims), input, squeeze, (dim,))


@method
def unsqueeze(input: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """A view with a new axis of size 1 at dim. NumPy calls dim axis.

    >>> norch.unsqueeze(norch.zeros(2, 3), 1).shape
    norch.Size([2, 1, 3])
    """
    at = _either(dim, axis, "unsqueeze")
    return record_view(Reshape, lib.norch_unsqueeze(input, at), input, unsqueeze, (at,))


def _either(dim: Any, axis: Any, name: str) -> Any:
    """dim, or axis, which is NumPy's name of it."""
    if axis is None:
        return dim
    if dim is not None:
        raise TypeError(f"{name}: give dim, or axis, its name in NumPy, not both")
    return axis


@method
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """input with the axes from start_dim to end_dim joined to one: a view if the strides allow, else a copy.

    >>> norch.flatten(norch.zeros(2, 3, 4), 1).shape
    norch.Size([2, 12])
    """
    out = lib.norch_flatten(tensor_of(input, "flatten"), start_dim, end_dim)
    if input.ndim == 1:
        return input
    return _reshaped(out, input, flatten, (start_dim, end_dim))


# ---- axes permuted and expanded -------------------------------------------------------------------------------------


@method
def permute(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """A view with the axes in the order dims.

    >>> norch.permute(norch.zeros(2, 3, 4), (2, 0, 1)).shape
    norch.Size([4, 2, 3])
    """
    wanted = sizes(dims_, dims)
    return record_view(Permute, lib.norch_permute(input, wanted), input, permute, (wanted,))


def _inverse(order: Sequence[int]) -> list[int]:
    """The order of axes that undoes another one."""
    back = [0] * len(order)
    for i, axis in enumerate(order):
        back[axis % len(order)] = i
    return back


Permute = view_derivative("permute", grad=lambda g, arguments: permute(g, _inverse(arguments[0])))


@method
def transpose(input: Tensor, dim0: Any, dim1: int | None = None) -> Tensor:
    """A view with two axes exchanged, or, as in NumPy, with all axes in the order of the sequence dim0.

    >>> norch.transpose(norch.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    if dim1 is None and isinstance(dim0, (tuple, list)):
        return permute(input, dim0)
    return record_view(_Transpose, lib.norch_transpose(input, dim0, dim1), input, transpose, (dim0, dim1))


_Transpose = view_derivative("transpose", grad=lambda g, arguments: transpose(g, *arguments))


def reversed_axes(x: Tensor) -> Tensor:
    """The axes in reverse order.

    >>> norch.tensor([[1, 2, 3], [4, 5, 6]]).T
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    return record_view(_Reversed, lib.norch_reverse_axes(x), x, reversed_axes, ())


_Reversed = view_derivative("permute", grad=lambda g: reversed_axes(g))


@method(moves=True)
def t(input: Tensor) -> Tensor:
    """A view of a matrix, transposed; vectors and numbers are returned unchanged.

    >>> norch.t(norch.tensor([[1, 2, 3], [4, 5, 6]]))
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    out = lib.norch_reverse_axes(input)
    if out.ndim > 2:
        raise ShapeError(f"t: expected at most 2 dimensions, got shape {tuple(out.shape)[::-1]}; use transpose() or mT")
    return record_view(_T, out, input, t, ())


_T = view_derivative("t", grad=lambda g: t(g))


@method
def expand(x: Tensor, *shape: Any, size: Any = None) -> Tensor:
    """A view that broadcasts axes of size 1, and new leading axes, to shape by strides of 0. -1 keeps a size.

    >>> norch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    wanted = sizes(shape, size)
    return record_view(Expand, lib.norch_expand(x, wanted), x, expand, (wanted,))


@method(moves=True)
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """x broadcast to the shape of other.

    >>> norch.tensor([[1], [2]]).expand_as(norch.zeros(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expand(x, tuple(tensor_of(other, "expand_as").shape))


@method(moves=True)
def broadcast_to(input: Tensor, *sizes_: Any, size: Any = None) -> Tensor:
    """A view of input that broadcasts to the shape size. NumPy has this name; input.expand(size) is the same.

    >>> norch.broadcast_to(norch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, *sizes_, size=size)


# ---- parts ----------------------------------------------------------------------------------------------------------


def axis(dim: int, n: int, name: str) -> int:
    """dim of n, a negative one counted from the end; IndexError when out of range."""
    n = n or 1
    if type(dim) is not int or not -n <= dim < n:
        dim = int64(dim, f"{name}: dimension")
        if not -n <= dim < n:
            raise BoundsError(f"{name}: dimension {dim} is out of range [{-n}, {n - 1}]")
    return dim % n


def axes(dims: Axes, ndim: int, name: str) -> list[int]:
    """dims as axes counted from the front. Each axis may occur once."""
    positions = []
    for dim in dims if type(dims) is tuple else listed(dims):
        positions.append(dim % ndim if type(dim) is int and -ndim <= dim < ndim else axis(dim, ndim, name))
    if len(positions) > 1 and len(set(positions)) != len(positions):
        raise ShapeError(f"{name}: an axis appears twice in {listed(dims)}")
    return positions


def listed(numbers: Any) -> tuple[Any, ...]:
    """Numbers as a tuple. One number, also a 0-d tensor or array, becomes a tuple of one."""
    return tuple(numbers) if hasattr(numbers, "__iter__") and getattr(numbers, "ndim", True) else (numbers,)


def is_plain(dims: Axes) -> bool:
    """Whether dims is an int or a tuple of ints, which a cache may have as keys: numbers of other types may change."""
    return type(dims) is int or (type(dims) is tuple and {*map(type, dims)} == _INT)


_INT = {int}


def _region_grad(g: Tensor, x_meta: Handle, view_fn: Any, arguments: Any) -> Tensor:
    whole = zeros_of(x_meta, g)
    view_fn(whole, *arguments).copy_(g)
    return whole


# Some elements of x, each once: the gradient of the others is 0.
Region = view_derivative(
    "region", grad=_region_grad, add_to=lambda whole, g, view_fn, arguments: view_fn(whole, *arguments).add_(g)
)


@method
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of the part at one index of an axis, without that axis. IndexError if the index is out of range.

    >>> norch.select(norch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return record_view(Region, lib.norch_select(input, dim, index), input, select, (dim, index))


def slice_(x: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
    """A view x[start:stop:step] along dim. The bounds follow Python's rules; a negative step gives a flipped view."""
    out = lib.norch_slice(x, dim, start, stop, step)
    node_class = _Flip if step == -1 and out.shape == x.shape else Region
    return record_view(node_class, out, x, slice_, (dim, start, stop, step))


# Of a whole axis in reverse order: that of its gradient, in place of zeros with the gradient in them.
_Flip = view_derivative("flip", grad=lambda g, arguments: slice_(g, *arguments))


@method
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of length elements along dim, from start on. BoundsError beyond the end.

    >>> norch.narrow(norch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    start, length = int64(start, "narrow: start"), int64(length, "narrow: length")
    return record_view(Region, lib.norch_narrow(input, dim, start, length), input, narrow, (dim, start, length))


@method
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view with the diagonal of two axes as the last axis. A positive offset is above the main diagonal, a negative
    one below.

    >>> norch.diagonal(norch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    out = lib.norch_diagonal(input, offset, dim1, dim2)
    return record_view(Region, out, input, diagonal, (offset, dim1, dim2))


@method
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view with windows of size elements along an axis, step apart, as a new last axis.

    >>> norch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    return record_view(_Unfold, lib.norch_unfold(x, dimension, size, step), x, unfold, (dimension, size, step))


def _unfold_grad(g: Tensor, x_meta: Handle, arguments: Any) -> Tensor:
    """Windows may share elements, so they are added one position at a time."""
    whole = zeros_of(x_meta, g)
    dim, size, step = arguments
    if whole.ndim == 0:
        return g.sum()
    dim %= whole.ndim
    windows = g.shape[dim]
    for i in range(size if windows else 0):
        slice_(whole, dim, i, i + (windows - 1) * step + 1, step).add_(select(g, -1, i))
    return whole


_Unfold = view_derivative("unfold", grad=_unfold_grad)


# ---- any strides ----------------------------------------------------------------------------------------------------


@method(moves=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage of input in any shape and strides (in elements). ArgumentError if it leaves the storage.
    Where gradients are recorded, no two elements of input, or of the tensor that it is a view of, may be the same.

    >>> norch.arange(5).as_strided((3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    tensor_of(input, "as_strided")
    shift = 0 if storage_offset is None else int64(storage_offset, "storage_offset") - input.storage_offset()
    base: Any = base_of(input)
    recorded = mode.enabled and gradient_edge(input) is not None
    if recorded and (lib.norch_overlaps_itself(input) or (base is not None and lib.norch_overlaps_itself(base))):
        raise Error("as_strided: elements that overlap have no gradient by strides; clone() the tensor first")
    if base is None or base._dtype != input._dtype or hasattr(input, "_physical") or not base._numel:
        base = input
    elif recorded and base is not input:  # whose gradient is that of the base only where it reads beyond input
        out = lib.norch_as_strided(input, tuple(size), tuple(stride), shift)
        if gradient_edge(base) is None or contains(input, out):
            base = input
    shift += input._offset - base._offset
    return _strided(base, tuple(size), tuple(stride), shift, lib.norch_strides(base))


def _strided(x: Tensor, size: Shape, stride: Shape, shift: int, x_stride: Shape) -> Tensor:
    """as_strided from the first element of x on; x_stride: the strides of x, for the gradient."""
    present = lib.norch_strides(x)
    if present != x_stride:
        longer = [i for i, count in enumerate(lib.norch_shape(x)) if count > 1]  # of one element a stride means nothing
        if len(present) != len(x_stride) or any(present[i] != x_stride[i] for i in longer):
            raise Error(f"as_strided: the strides of the base were {x_stride} and are {present}")
    out = lib.norch_as_strided(x, size, stride, shift)
    return record_view(_AsStrided, out, x, _strided, (size, stride, shift, x_stride))


def _as_strided_grad(g: Tensor, x_meta: Handle, arguments: Any) -> Tensor:
    """Gradients are summed into memory of the layout of x, and read from there with the strides of x."""
    size, stride, shift, x_stride = arguments
    shape = tuple(x_meta.shape)
    if 0 in shape or 0 in size:
        return zeros_of(x_meta, g)
    low, high = zip(reach(shape, x_stride), reach(size, stride, shift))
    first, count = min(low), max(high) - min(low) + 1
    memory = g.new_zeros(count)
    places = lib.norch_as_strided(memory, size, stride, shift - first)
    if mode.enabled or isinstance(g, BatchedBase) or lib.norch_overlaps_itself(places):
        positions = _strided(iota(count, g), size, stride, shift - first, (1,)).reshape(-1)
        memory = memory.index_add(0, positions, g.reshape(-1))
    else:
        lib.norch_copy(places, g)
    return _strided(memory, shape, x_stride, -first, (1,)).clone()


_AsStrided = view_derivative("as_strided", grad=_as_strided_grad)


# ---- the same elements ----------------------------------------------------------------------------------------------


def alias_of(x: Tensor) -> Tensor:
    """The same elements as another tensor."""
    return record_view(_Alias, lib.norch_alias(x), x, alias_of, ())


def connect(x: Tensor) -> Tensor:
    """x, with a gradient that is recorded as a function of x even where its derivative by x is 0. Composed functions
    that are one operation in PyTorch begin with it, so that second gradients exist where PyTorch has them."""
    if not mode.enabled or gradient_edge(x) is None:
        return x
    return record_view(_Connect, lib.norch_alias(x), x, connect, ())


view_history.place = _strided
_Alias = view_derivative("alias", grad=lambda g: g)
_Connect = view_derivative("connect", grad=lambda g: g, depends_on=1)
METHODS.update({f"{f.__name__}_": inplace_view(f) for f in (squeeze, unsqueeze, transpose, t, as_strided)})
