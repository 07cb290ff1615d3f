"""Views: other shapes over the same elements (csrc/ops/view.c). No element moves, and writes are seen by all.

Each is a step that autograd can take again: from another base, or from a gradient (autograd/inplace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._handle import Handle, cell_of, tick
from .._lib import int64, lib
from ..autograd import derivatives as d
from ..autograd.forms import ViewOf
from ..autograd.grad_mode import mode
from ..autograd.inplace import SEVERED, edge, view_of
from ..device import device_of
from ..dtype import dtype as DType  # noqa: N812
from ..dtype import dtype_named
from ..errors import BoundsError, Error, ShapeError
from ._operand import rename_errors, tensor_of

Shape = Sequence[int]
_END = (1 << 63) - 1  # a bound of a slice that is as good as the end
Axes = Any  # an int or a sequence of them
_new = object.__new__


def _made(out: Any, x: Any, node_class: type[ViewOf], step: Any, arguments: tuple[Any, ...], view: bool = True) -> Any:
    """out = step(x, *arguments), recorded."""
    if view:
        cell = x._cell
        if cell is None:
            cell = x._cell = [0]
        out._cell = cell
    if mode.enabled:
        to_x = x._node if x._view is None else edge(x)
        if to_x is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = tick()
            node.hooks = None
            node.like = lib.norch_meta(x)
            node.step = (step, arguments)
            out._node = node
        if view:
            out._view = view_of(x, step, arguments)
    elif view:
        through = x._view
        if through is SEVERED or (x._node if through is None else edge(x)) is not None:
            out._view = SEVERED
    return out


def sizes(shape: tuple[Any, ...], keyword: Any = None) -> Any:
    """Sizes given one by one, as one sequence or by keyword: f(2, 3), f((2, 3)) and f(size=(2, 3)) mean the same."""
    if keyword is not None:
        if shape:
            raise TypeError(f"sizes are given once, not as {shape!r} and as {keyword!r}")
        shape = (keyword,)
    if len(shape) == 1 and not hasattr(shape[0], "__index__") and hasattr(shape[0], "__iter__"):
        return tuple(shape[0])
    return shape  # C looks at what they are, and names the call


def view(x: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """x in another shape of as many elements, one size may be -1; ShapeError where the strides would need a copy.

    view(dtype) shows the bytes as another dtype, outside any graph; where its elements are smaller or larger, the last
    size grows or shrinks.

    >>> norch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if dtype is not None or (len(shape) == 1 and (isinstance(shape[0], DType) or type(shape[0]) is type)):
        out = lib.norch_view_dtype(x, dtype_named(shape[0] if dtype is None else dtype).code)
        out._cell = cell_of(x)
        return out
    wanted = shape if len(shape) > 1 and size is None else sizes(shape, size)
    return _made(lib.norch_view(x, wanted), x, d.Reshape, view, (wanted,))


def reshape(input: Any, *sizes_: Any, shape: Any = None) -> Any:
    """input in another shape of as many elements, one size may be -1: a view where the strides allow, else a copy."""
    wanted = sizes(sizes_, shape)
    return _reshaped(lib.norch_reshape(input, wanted), input, reshape, (wanted,))


def _reshaped(out: Any, x: Any, step: Any, arguments: tuple[Any, ...]) -> Any:
    return _made(out, x, d.Reshape, step, arguments, view=lib.norch_shares_storage(out, x))


def reshape_to(x: Any, like: Handle) -> Any:
    """x in the shape of like."""
    return _reshaped(lib.norch_reshape_as(x, like), x, reshape_to, (like,))


def expand_to(x: Any, like: Handle) -> Any:
    """x broadcast to the shape of like, on its device and in its dtype."""
    if (where := device_of(like)) is not device_of(x):
        x = x.to(where)
    out = _made(lib.norch_expand_as(x, like), x, d.Expand, expand_to, (like,))
    return out if out.dtype is like.dtype else out.to(like.dtype)


def spread(x: Any, like: Handle, axes: Any, keepdim: Any) -> Any:
    """x, reduced from the shape of like over axes (None: all), seen in that shape."""
    return _made(lib.norch_expand_reduced(x, like, axes, keepdim), x, d.Spread, spread, (like, axes, keepdim))


def permute(input: Any, *dims_: Any, dims: Any = None) -> Any:
    """The axes in another order."""
    wanted = sizes(dims_, dims)
    return _made(lib.norch_permute(input, wanted), input, d.Permute, permute, (wanted,))


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    return _made(lib.norch_transpose(input, dim0, dim1), input, d.Transpose, transpose, (dim0, dim1))


@rename_errors
def t(input: Any) -> Any:
    """A matrix transposed; vectors and numbers as they are."""
    if input.ndim > 2:
        raise ShapeError(f"t: expected at most 2 dimensions, got shape {tuple(input.shape)}; use transpose() or mT")
    return transpose(input, 0, 1) if input.ndim == 2 else alias_of(input)


def expand(x: Any, *shape: Any, size: Any = None) -> Any:
    """Sizes of 1 (and new leading axes) broadcast to shape, by stride 0; -1 keeps a size."""
    wanted = sizes(shape, size)
    return _made(lib.norch_expand(x, wanted), x, d.Expand, expand, (wanted,))


@rename_errors
def expand_as(x: Any, other: Any) -> Any:
    """x broadcast to the shape of other."""
    return expand(x, tuple(tensor_of(other, "expand_as").shape))


@rename_errors
def broadcast_to(input: Any, size: Any) -> Any:
    """input.expand(size)."""
    return expand(input, size)


def squeeze(input: Any, dim: Any = None) -> Any:
    """Without the axes of size 1: all of them, or those of dim that are."""
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    return _made(lib.norch_squeeze(input, dims), input, d.Reshape, squeeze, (dim,))


def unsqueeze(input: Any, dim: int) -> Any:
    """With a new axis of size 1 at dim."""
    return _made(lib.norch_unsqueeze(input, dim), input, d.Reshape, unsqueeze, (dim,))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from start_dim to end_dim as one."""
    out = lib.norch_flatten(tensor_of(input, "flatten"), start_dim, end_dim)
    if input.ndim == 1:
        return input
    return _reshaped(out, input, flatten, (start_dim, end_dim))


def axis(dim: int, n: int, name: str) -> int:
    """dim of n, a negative one counted from the end; IndexError when out of range."""
    n = n or 1
    if not -n <= int64(dim, f"{name}: dimension") < n:
        raise BoundsError(f"{name}: dimension {dim} is out of range [{-n}, {n - 1}]")
    return dim % n


def axes(dims: Axes, ndim: int, name: str) -> list[int]:
    """dims as axes from the front, each once."""
    found = [axis(dim, ndim, name) for dim in (dims if hasattr(dims, "__iter__") else (dims,))]
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: an axis appears twice in {tuple(dims)}")
    return found


def select(input: Any, dim: int, index: int) -> Any:
    """The part at one index of an axis, without that axis; IndexError when out of range."""
    return _made(lib.norch_select(input, dim, index), input, d.Region, select, (dim, index))


def slice_(x: Any, dim: int, start: int, stop: int, step: int) -> Any:
    """x[start:stop:step] along dim, its bounds as in Python; a negative step gives a flipped view."""
    return _made(lib.norch_slice(x, dim, start, stop, step), x, d.Region, slice_, (dim, start, stop, step))


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """length elements of an axis, from start on."""
    if tensor_of(input, "narrow").ndim == 0:
        raise ShapeError("narrow: a 0-d tensor has no dimension to narrow")
    size = input.shape[axis(dim, input.ndim, "narrow")]
    start, length = int64(start, "narrow: start"), int64(length, "narrow: length")
    begin = start + size if start < 0 else start
    if not 0 <= begin <= size or length < 0 or begin + length > size:
        raise BoundsError(f"narrow: {length} elements from {start} on do not lie in dimension {dim} of size {size}")
    return slice_(input, dim, begin, begin + length, 1)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis; offset above it (or, negative, below)."""
    return _made(lib.norch_diagonal(input, offset, dim1, dim2), input, d.Region, diagonal, (offset, dim1, dim2))


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows of size elements along an axis, step apart, as a new last axis."""
    return _made(lib.norch_unfold(x, dimension, size, step), x, d.Unfold, unfold, (dimension, size, step))


@rename_errors
def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """The storage of input in any shape and strides (in elements), which must stay inside it; ArgumentError otherwise.

    Where gradients are recorded, the tensor that input is a view of must be contiguous.

    >>> norch.arange(5).as_strided((3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    tensor_of(input, "as_strided")
    shift = 0 if storage_offset is None else int64(storage_offset, "storage_offset") - input.storage_offset()
    base = input if input._view is None or input._view is SEVERED else input._view.base
    if mode.enabled and edge(input) is not None and (not base.is_contiguous() or lib.norch_overlaps_itself(input)):
        raise Error(
            "as_strided: of what requires grad it needs a contiguous tensor, or a view of one; clone() it first"
        )
    return _strided(input, tuple(size), tuple(stride), shift, tuple(input.stride()))


def _strided(x: Any, size: Shape, stride: Shape, shift: int, own: Shape) -> Any:
    """as_strided from the first element of x on; own: the strides of x, for the gradient."""
    return _made(lib.norch_as_strided(x, size, stride, shift), x, d.Strided, _strided, (size, stride, shift, own))


def alias_of(x: Any) -> Any:
    """The same elements as another tensor."""
    return _made(lib.norch_alias(x), x, d.Alias, alias_of, ())


def tied(x: Any) -> Any:
    """x, but with gradients that count as functions of it (Node.flat)."""
    return _made(lib.norch_alias(x), x, d.Tied, tied, ()) if mode.enabled and edge(x) is not None else x


class ViewMethods(Handle):
    """The views of Tensor."""

    __slots__ = ()

    view, reshape, permute, transpose, t, expand, expand_as = view, reshape, permute, transpose, t, expand, expand_as
    broadcast_to, squeeze, unsqueeze, flatten = broadcast_to, squeeze, unsqueeze, flatten
    select, narrow, diagonal, unfold, as_strided = select, narrow, diagonal, unfold, as_strided
    _slice, _reshape_to, _expand_to, _spread, _strided = slice_, reshape_to, expand_to, spread, _strided

    def view_as(self, other: Any) -> Any:
        """view(other.shape)."""
        return view(self, tuple(tensor_of(other, "view_as").shape))

    def reshape_as(self, other: Any) -> Any:
        """reshape(other.shape)."""
        return reshape(self, tuple(tensor_of(other, "reshape_as").shape))
