"""Views: other shapes over the same elements (csrc/ops/view.c). No element moves, and writes are seen by all.

Each is a step that autograd can take again: from another base, or from a gradient (autograd/inplace.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from .._handle import Handle, cell_of
from .._lib import int64, lib
from ..autograd import derivatives as d
from ..autograd.forms import ViewOf
from ..autograd.grad_mode import mode
from ..autograd.inplace import SEVERED, edge, like_of, view_of
from ..errors import ShapeError

Shape = Sequence[int]


def _made(out: Any, x: Any, node_class: type[ViewOf], step: Any, arguments: tuple[Any, ...], view: bool = True) -> Any:
    """out = step(x, *arguments), recorded."""
    if view:
        out._cell = cell_of(x)
    if mode.enabled:
        to_x = x._node if x._view is None else edge(x)
        if to_x is not None:
            node = node_class(to_x)
            node.like = like_of(x)
            node.step = (step, arguments)
            out._node = node
        if view:
            out._view = view_of(x, step, arguments)
    elif view and (x._view is SEVERED or edge(x) is not None):
        out._view = SEVERED
    return out


def sizes(shape: tuple[Any, ...]) -> Any:
    """Sizes given one by one or as one sequence: f(2, 3) and f((2, 3)) mean the same."""
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        if not hasattr(shape[0], "__iter__"):
            raise TypeError(f"sizes are integers, or one sequence of them, not {shape[0]!r}")
        return tuple(shape[0])
    return shape


def view(x: Any, *shape: Any) -> Any:
    """x in another shape of as many elements, one size may be -1; ShapeError where the strides would need a copy.

    >>> norch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = sizes(shape)
    return _made(lib.norch_view(x, wanted), x, d.Reshape, view, (wanted,))


def reshape(x: Any, *shape: Any) -> Any:
    """x in another shape of as many elements, one size may be -1: a view where the strides allow, else a copy."""
    wanted = sizes(shape)
    return _reshaped(lib.norch_reshape(x, wanted), x, reshape, (wanted,))


def _reshaped(out: Any, x: Any, step: Any, arguments: tuple[Any, ...]) -> Any:
    return _made(out, x, d.Reshape, step, arguments, view=lib.norch_shares_storage(out, x))


def reshape_to(x: Any, like: Handle) -> Any:
    """x in the shape of like."""
    return _reshaped(lib.norch_reshape_as(x, like), x, reshape_to, (like,))


def expand_to(x: Any, like: Handle) -> Any:
    """x broadcast to the shape of like, and cast to its dtype."""
    out = _made(lib.norch_expand_as(x, like), x, d.Expand, expand_to, (like,))
    return out if out.dtype is like.dtype else out.to(like.dtype)  # type: ignore[attr-defined]


def spread(x: Any, like: Handle, axes: Any, keepdim: Any) -> Any:
    """x, reduced from the shape of like over axes (None: all), seen in that shape."""
    return _made(lib.norch_spread(x, like, axes, keepdim), x, d.Spread, spread, (like, axes, keepdim))


def permute(x: Any, *dims: Any) -> Any:
    """The axes in another order."""
    axes = sizes(dims)
    return _made(lib.norch_permute(x, axes), x, d.Permute, permute, (axes,))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    return _made(lib.norch_transpose(x, dim0, dim1), x, d.Transpose, transpose, (dim0, dim1))


def t(x: Any) -> Any:
    """A matrix transposed; vectors and numbers as they are."""
    if x.ndim > 2:
        raise ShapeError(f"t: expected at most 2 dimensions, got shape {tuple(x.shape)}; use transpose() or mT")
    return transpose(x, 0, 1) if x.ndim == 2 else alias_of(x)


def expand(x: Any, *shape: Any) -> Any:
    """Sizes of 1 (and new leading axes) broadcast to shape, by stride 0; -1 keeps a size."""
    wanted = sizes(shape)
    return _made(lib.norch_expand(x, wanted), x, d.Expand, expand, (wanted,))


def expand_as(x: Any, other: Any) -> Any:
    """x broadcast to the shape of other."""
    return expand(x, tuple(other.shape))


broadcast_to = expand


def squeeze(x: Any, dim: Any = None) -> Any:
    """Without the axes of size 1: all of them, or those of dim that are."""
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    return _made(lib.norch_squeeze(x, dims), x, d.Reshape, squeeze, (dim,))


def unsqueeze(x: Any, dim: int) -> Any:
    """With a new axis of size 1 at dim."""
    return _made(lib.norch_unsqueeze(x, dim), x, d.Reshape, unsqueeze, (dim,))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from start_dim to end_dim as one."""
    shape = tuple(x.shape)
    n = builtins.max(len(shape), 1)
    start, end = _axis(start_dim, n, "flatten"), _axis(end_dim, n, "flatten")
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    if not shape:
        return reshape(x, 1)
    product = 1
    for size in shape[start : end + 1]:
        product *= size
    return reshape(x, (*shape[:start], product, *shape[end + 1 :]))


def _axis(dim: int, n: int, name: str) -> int:
    if not -n <= dim < n:
        raise IndexError(f"{name}: dimension {dim} is out of range [{-n}, {n - 1}]")
    return dim % n


def select(x: Any, dim: int, index: int) -> Any:
    """The part at one index of an axis, without that axis; IndexError when out of range."""
    return _made(lib.norch_select(x, dim, index), x, d.Region, select, (dim, index))


def slice_(x: Any, dim: int, start: int, stop: int, step: int) -> Any:
    """x[start:stop:step] along dim, its bounds as in Python; a negative step gives a flipped view."""
    return _made(lib.norch_slice(x, dim, start, stop, step), x, d.Region, slice_, (dim, start, stop, step))


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """length elements of an axis, from start on."""
    size = x.shape[dim]
    begin = start + size if start < 0 else start
    if not 0 <= begin <= size or length < 0 or begin + length > size:
        raise IndexError(f"narrow: {length} elements from {start} on do not lie in dimension {dim} of size {size}")
    return slice_(x, dim, begin, begin + length, 1)


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis; offset above it (or, negative, below)."""
    return _made(lib.norch_diagonal(x, offset, dim1, dim2), x, d.Region, diagonal, (offset, dim1, dim2))


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows of size elements along an axis, step apart, as a new last axis."""
    return _made(lib.norch_unfold(x, dimension, size, step), x, d.Unfold, unfold, (dimension, size, step))


def alias_of(x: Any) -> Any:
    """The same elements as another tensor."""
    return _made(lib.norch_alias(x), x, d.Alias, alias_of, ())


_END = (1 << 63) - 1


def _bound(value: Any, default: int) -> int:
    """A bound of a slice; beyond 64 bits is as good as the end."""
    if value is None:
        return default
    try:
        return builtins.min(builtins.max(value.__index__(), -_END), _END)
    except AttributeError:
        raise TypeError(f"slice bounds are integers or None, not {type(value).__name__}") from None


def _take(x: Any, dim: int, part: Any) -> Any:
    """x[part] along dim, part a slice or an integer."""
    if type(part) is slice:
        step = 1 if part.step is None else int64(part.step, "slice step")
        first, last = (0, _END) if step > 0 else (_END, -_END)
        return slice_(x, dim, _bound(part.start, first), _bound(part.stop, last), step)
    if not hasattr(part, "__index__") or isinstance(part, bool):
        raise TypeError(f"an index is an integer, a slice, None or ..., not {type(part).__name__}")
    return select(x, dim, part.__index__())


def take_index(x: Any, index: Any) -> Any:
    """x[index] for integers, slices, ... and None: a chain of views."""
    kind = type(index)
    if kind is slice:
        return _take(x, 0, index)
    if kind is int:
        # unlike PyTorch: loss[0] of a 0-d loss is the loss
        return alias_of(x) if index == 0 and x.ndim == 0 else select(x, 0, index)
    parts = index if kind is tuple else (index,)
    ndim = x.ndim
    axes = builtins.sum(1 for part in parts if part is not None and part is not Ellipsis)
    if builtins.sum(1 for part in parts if part is Ellipsis) > 1:
        raise IndexError("an index can hold only one ellipsis (...)")
    if axes > ndim:
        raise IndexError(f"{axes} indices for a tensor of {ndim} dimensions")
    dim, out = 0, x
    for part in parts:
        if part is None:
            out = unsqueeze(out, dim)
            dim += 1
        elif part is Ellipsis:
            dim += ndim - axes
        else:
            out = _take(out, dim, part)
            dim += type(part) is slice
    return alias_of(x) if out is x else out


class ViewMethods(Handle):
    """The views of Tensor."""

    __slots__ = ()

    view, reshape, permute, transpose, t, expand, expand_as = view, reshape, permute, transpose, t, expand, expand_as
    broadcast_to, squeeze, unsqueeze, flatten, select, narrow = (
        broadcast_to,
        squeeze,
        unsqueeze,
        flatten,
        select,
        narrow,
    )
    swapaxes = swapdims = transpose
    diagonal, unfold = diagonal, unfold
    _slice, _reshape_to, _expand_to, _spread = slice_, reshape_to, expand_to, spread

    def ravel(self) -> Any:
        """All elements in one axis."""
        return reshape(self, -1)

    def view_as(self, other: Any) -> Any:
        """view(other.shape)."""
        return view(self, tuple(other.shape))

    def reshape_as(self, other: Any) -> Any:
        """reshape(other.shape)."""
        return reshape(self, tuple(other.shape))

    @property
    def T(self) -> Any:  # noqa: N802
        """The axes reversed."""
        ndim = self.ndim
        return transpose(self, 0, 1) if ndim == 2 else permute(self, tuple(range(ndim - 1, -1, -1)))

    @property
    def mT(self) -> Any:  # noqa: N802
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ShapeError(f"mT: needs at least 2 dimensions, got {self.ndim}")
        return transpose(self, -2, -1)
