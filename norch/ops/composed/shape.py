"""Shapes, composed of views and copies: joining, flipping, rolling.

If strides can express the result, it is a chain of views (view.py), and writes through it reach the input. Otherwise
one copy follows (copy.py). No function here has a kernel or a derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..._binding.library import lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Tensor
from ..._tensor.handle import Handle, Size
from ...autograd.broadcast import Expand, sum_to
from ...autograd.differentiable import differentiable
from ...autograd.record import record_view
from ...dtype import DTYPES
from ...dtype import int64 as int64_
from ...errors import ArgumentError, BoundsError, ShapeError
from .._arguments import named_function, tensors_of
from .._checks import at_least
from .._entry import rename_errors
from .._inplace_methods import inplace_view
from .._operand import as_operand, tensor_of
from ..copy import cast, cat, clone, clone_for, padded, stack
from ..create import zeros
from ..op import METHODS, method
from ..view import (
    END,
    Axes,
    Permute,
    Reshape,
    alias_of,
    as_strided,
    axes,
    axis,
    diagonal,
    expand,
    is_plain,
    listed,
    permute,
    reshape,
    reversed_axes,
    select,
    sizes,
    slice_,
    transpose,
    unsqueeze,
    view,
)

swapdims = method(name="swapdims")(transpose)
concat = concatenate = cat


# What counts axes first, or makes several views, reads an alias: see split.py.

# ---- other views ----------------------------------------------------------------------------------------------------


@method
def ravel(input: Tensor) -> Tensor:
    """All elements in one axis: a view of a contiguous tensor, else a copy.

    >>> norch.ravel(norch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    if not tensor_of(input, "ravel")._contiguous:
        input = clone(input)
    return record_view(Reshape, lib.norch_view(input, _ONE_AXIS), input, view, (_ONE_AXIS,))


_ONE_AXIS = (-1,)


@method(moves=True, numpy=True, out=False)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with one axis divided into several, of these sizes. One of the sizes may be -1.

    >>> norch.arange(6).unflatten(0, (2, -1)).shape
    norch.Size([2, 3])
    """
    shape = lib.norch_shape(tensor_of(input, "unflatten"))
    shape = (_unflattened if is_plain(dim) and is_plain(sizes) else _unflattened.__wrapped__)(shape, dim, sizes)
    return record_view(Reshape, lib.norch_view(input, shape), input, view, (shape,))


@lru_cache(256)
def _unflattened(shape: tuple[int, ...], dim: int, sizes: Sequence[int]) -> tuple[int, ...]:
    at = axis(dim, len(shape), "unflatten")
    wanted = [size if type(size) is int else int64(size, "unflatten: size") for size in sizes]
    if not shape or not wanted:
        raise ShapeError(f"unflatten: sizes {tuple(wanted)} for dimension {dim} of shape {shape}")
    product = 1
    for size in wanted:
        product *= size if size != -1 else 1
    if -1 in wanted and product > 0 and shape[at] % product == 0:
        wanted[wanted.index(-1)] = shape[at] // product
        product = shape[at]
    if product != shape[at] or min(wanted) < 0:
        raise ShapeError(f"unflatten: sizes {tuple(sizes)} do not multiply to {shape[at]}, the size of dimension {dim}")
    return (*shape[:at], *wanted, *shape[at + 1 :])


@method(moves=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """A view with two axes exchanged. NumPy has this name; transpose() is the same.

    >>> norch.swapaxes(norch.zeros(2, 3, 4), 0, 2).shape
    norch.Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


@method(aliases=("moveaxis",))
def movedim(input: Tensor, source: Axes, destination: Axes) -> Tensor:
    """A view with the axes of source at the positions of destination. The other axes keep their order.

    >>> norch.zeros(2, 3, 4).movedim(0, -1).shape
    norch.Size([3, 4, 2])
    """
    moved = _moved if is_plain(source) and is_plain(destination) else _moved.__wrapped__
    order = moved(tensor_of(input, "movedim").ndim, source, destination)
    return record_view(Permute, lib.norch_permute(input, order), input, permute, (order,))


@lru_cache(256)
def _moved(ndim: int, source: Axes, destination: Axes) -> tuple[int, ...]:
    """The order of axes in which those of source are at the positions of destination."""
    sources, positions = axes(source, ndim, "movedim"), axes(destination, ndim, "movedim")
    if len(sources) != len(positions):
        raise ShapeError(f"movedim: {len(sources)} axes to {len(positions)} positions")
    order = [dim for dim in range(ndim) if dim not in sources]
    for position, dim in sorted(zip(positions, sources)) if ndim else ():
        order.insert(position, dim)
    return tuple(order)


moveaxis = movedim


@method
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes, as mH. For real numbers it is a view, as mT.

    >>> norch.adjoint(norch.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    return _last_two(tensor_of(input, "adjoint")).conj()


def _last_two(x: Tensor) -> Tensor:
    """The last two axes exchanged; a 0-d tensor stays as it is.

    >>> norch.zeros(2, 3, 4).mT.shape
    norch.Size([2, 4, 3])
    """
    try:
        return transpose(x, -2, -1)
    except BoundsError:
        x = alias_of(x)
        return x if x.ndim == 0 else transpose(at_least(2, x, "adjoint"), -2, -1)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; ShapeError where they do not.

    >>> norch.broadcast_shapes((2, 1), (3,), 1)
    norch.Size([2, 3])
    """
    listed = [tuple(shape) if hasattr(shape, "__iter__") else (shape,) for shape in shapes]
    out = [1] * max(map(len, listed), default=0)
    for shape in listed:
        for at in range(1, len(shape) + 1):
            size = shape[-at]
            if type(size) is not int:
                size = int64(size, "broadcast_shapes: size")
            if size < 0 or (size != 1 and out[-at] not in (1, size)):
                raise ShapeError(f"broadcast_shapes: shapes {', '.join(map(str, listed))} do not broadcast")
            out[-at] = size if size != 1 else out[-at]
    return Size(out)


common_shape = lru_cache(256)(broadcast_shapes)


@rename_errors
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of the tensors, all broadcast to one shape. ShapeError if their shapes do not broadcast.

    >>> norch.broadcast_tensors(norch.tensor([1, 2]), norch.tensor([[0], [0]]))
    (tensor([[1, 2],
            [1, 2]]), tensor([[0, 0],
            [0, 0]]))
    """
    inputs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    listed = tensors_of(inputs, "broadcast_tensors")
    shape = common_shape(*map(lib.norch_shape, listed))
    return tuple([record_view(Expand, lib.norch_expand(x, shape), x, expand, (shape,)) for x in listed])


def _at_least(ndim: int, name: str, function: Any) -> Any:
    def at_least(*tensors: Tensor | Sequence[Tensor]) -> Any:
        if len(tensors) != 1 or not isinstance(tensors[0], Handle):
            listed = tensors[0] if len(tensors) == 1 else tensors
            return tuple(map(at_least, tensors_of(listed, name)))
        return function(tensors[0], tensors[0].ndim)

    about = f"Views with at least {ndim} axes: of one tensor, or a tuple of those of several."
    about += f"\n\n>>> norch.{name}(norch.zeros(2)).shape\nnorch.Size([{('2', '1, 2', '1, 2, 1')[ndim - 1]}])\n"
    return named_function(at_least, name, about)


atleast_1d = _at_least(1, "atleast_1d", lambda x, n: unsqueeze(x, 0) if n == 0 else x)
atleast_2d = _at_least(2, "atleast_2d", lambda x, n: unsqueeze(atleast_1d(x), 0) if n < 2 else x)
atleast_3d = _at_least(3, "atleast_3d", lambda x, n: unsqueeze(atleast_2d(x), -1) if n < 3 else x)


# ---- joins ----------------------------------------------------------------------------------------------------------


_NUMBERS, _VECTORS, _FLAT = {0}, {1}, {0, 1}  # numbers of dimensions


def _joined(tensors: Any, name: str) -> tuple[Sequence[Tensor], set[int]]:
    """The tensors, which C checks, and the numbers of dimensions that they have."""
    listed = tensors if type(tensors) in (list, tuple) else tensors_of(tensors, name)
    try:
        return listed, {x.ndim for x in listed}
    except AttributeError:  # which names what is no tensor
        return tensors_of(listed, name), set()


@rename_errors(out=True)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the second axis (vectors: along the first).

    >>> norch.hstack((norch.tensor([1, 2]), norch.tensor([3])))
    tensor([1, 2, 3])
    """
    listed, ndims = _joined(tensors, "hstack")
    if 0 in ndims:
        listed = [x if x.ndim else atleast_1d(x) for x in listed]
    return cat(listed, 1 if listed and listed[0].ndim > 1 else 0)


@rename_errors(out=True)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the first axis; vectors count as rows.

    >>> norch.vstack((norch.tensor([1, 2]), norch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    listed, ndims = _joined(tensors, "vstack")
    if ndims == _VECTORS:
        return stack(listed, 0)
    if not ndims.isdisjoint(_FLAT):
        listed = [atleast_2d(x) for x in listed]
    return cat(listed, 0)


row_stack = vstack


@rename_errors(out=True)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the third axis, of size 1 where there is none.

    >>> norch.dstack((norch.tensor([1, 2]), norch.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([atleast_3d(x) for x in _joined(tensors, "dstack")[0]], 2)


@rename_errors(out=True)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the second axis; vectors count as columns.

    >>> norch.column_stack((norch.tensor([1, 2]), norch.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    listed, ndims = _joined(tensors, "column_stack")
    if ndims == _VECTORS:
        return stack(listed, 1)
    if ndims == _NUMBERS:
        return unsqueeze(stack(listed, 0), 0)
    if not ndims.isdisjoint(_FLAT):
        listed = [reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in listed]
    return cat(listed, 1)


@rename_errors
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with these matrices along its diagonal and zeros elsewhere; vectors count as rows.

    >>> norch.block_diag(norch.ones(1, 2), norch.tensor([[5.0]]))
    tensor([[1., 1., 0.],
            [0., 0., 5.]])
    """
    inputs = tensors_of(tensors, "block_diag")
    listed = [atleast_2d(x) for x in inputs]
    if any(x.ndim > 2 for x in listed):
        raise ShapeError(
            f"block_diag: takes at most 2 dimensions, got {', '.join(str(tuple(x.shape)) for x in listed)}"
        )
    if not listed:
        return zeros(1, 0)
    dtype = lib.norch_result_type(tuple(inputs))  # where numbers, tensors of no axis, count less
    width, before, rows = sum(x.shape[1] for x in listed), 0, []
    for x in listed:
        rows.append(padded(cast(x, DTYPES[dtype]), [before], [width - before - x.shape[1]], 0))
        before += x.shape[1]
    return cat(rows, 0)


# ---- flips -----------------------------------------------------------------------------------------------------------


@method(moves=True)
def flip(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """A copy with the order along these axes reversed; x[::-1] is the view.

    >>> norch.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    if not dims_ and dims is None:
        raise TypeError("flip: give the axes, as in flip(x, 0)")
    ndim = tensor_of(input, "flip").ndim
    return _flipped(input, axes(sizes(dims_, dims), ndim, "flip"))


def _flipped_view(g: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in dims if g.ndim else ():
        g = slice_(g, dim, END, -END, -1)
    return g


@differentiable("flip", grad=_flipped_view, shares_grad=True)
def _flipped(x: Tensor, dims: Sequence[int]) -> Tensor:
    if x.ndim:
        for dim in dims:
            x = lib.norch_slice(x, dim, END, -END, -1)
    return lib.norch_clone(x)


@method
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in the opposite order: flip(input, 1).

    >>> norch.fliplr(norch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    return flip(at_least(2, tensor_of(input, "fliplr"), "fliplr"), 1)


@method
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in the opposite order: flip(input, 0).

    >>> norch.flipud(norch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    return flip(at_least(1, tensor_of(input, "flipud"), "flipud"), 0)


@method(moves=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy rotated k times by 90 degrees in the plane of two axes, from the first towards the second.

    >>> norch.rot90(norch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if not hasattr(dims, "__len__"):
        raise TypeError(f"rot90: expected two axes, not {type(dims).__name__}")
    input = tensor_of(input, "rot90")
    if len(dims) != 2 or input.ndim < 2:
        raise ShapeError(f"rot90: takes two axes of at least 2 dimensions, not {tuple(dims)} of {input.ndim}")
    a, b = axes(dims, input.ndim, "rot90")
    rotations = (k if type(k) is int else int64(k, "rot90: k")) % 4
    flipped = _flipped(input, ((), (b,), (a, b), (a,))[rotations])
    return transpose(flipped, a, b) if rotations % 2 else flipped  # with strides as PyTorch's


@method(moves=True)
def roll(input: Tensor, shifts: Axes, dims: Axes = None) -> Tensor:
    """A copy whose elements are moved by shifts along dims, from the end back to the front; without dims in the
    flattened tensor.

    >>> norch.arange(4).roll(1)
    tensor([3, 0, 1, 2])
    """
    input = tensor_of(input, "roll")
    steps: Any = listed(shifts)
    along = () if dims is None else listed(dims)
    if not along:
        if len(steps) != 1:
            raise ShapeError(f"roll: shifts {steps} need as many dims")
        return _rolled(input, [int64(steps[0], "roll: shift")], None)
    if len(steps) != len(along):
        raise ShapeError(f"roll: shifts {steps} and dims {along} are not as many")
    if input.ndim == 0:
        raise BoundsError(f"roll: a 0-d tensor has no dimensions {along}")
    steps = [int64(step, "roll: shift") for step in steps]
    return _rolled(input, steps, [axis(dim, input.ndim, "roll") for dim in along])


@differentiable("roll", grad=lambda g, steps, dims: _rolled(g, [-step for step in steps], dims))
def _rolled(x: Tensor, steps: list[int], dims: list[int] | None) -> Tensor:
    """x moved on by steps along dims; None: by one step in its elements as a row."""
    out = x if dims is not None else lib.norch_reshape(x, (-1,))
    shape = lib.norch_shape(out)
    for step, dim in zip(steps, dims or (0,)):
        size = shape[dim]
        cut = -step % size if size else 0
        if cut:
            out = lib.norch_cat((lib.norch_slice(out, dim, cut, size, 1), lib.norch_slice(out, dim, 0, cut, 1)), dim)
    if lib.norch_shares_storage(out, x):
        return lib.norch_clone(x)
    return out if dims is not None else lib.norch_reshape(out, lib.norch_shape(x))


# ---- copies with a part replaced ------------------------------------------------------------------------------------


def _replaced(input: Tensor, src: Tensor, name: str, take: Any) -> Tensor:
    out, src = clone_for(tensor_of(input, name), src), tensor_of(src, name)
    part = take(out)
    if src.shape != part.shape:
        raise ShapeError(f"{name}: src has shape {tuple(src.shape)}, the part of input {tuple(part.shape)}")
    part.copy_(src)
    return out


@method(moves=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of input whose part select(dim, index) is src.

    >>> norch.select_scatter(norch.zeros(2, 2), norch.ones(2), dim=0, index=1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _replaced(input, src, "select_scatter", lambda x: select(x, dim, index))


@method(moves=True, out=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of input whose part start:end:step along dim is src.

    >>> norch.slice_scatter(norch.zeros(4), norch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    bounds = 0 if start is None else int64(start, "start"), END if end is None else int64(end, "end")
    if int64(step, "step") < 1:
        raise ArgumentError(f"slice_scatter: the step must be positive, not {step}")
    return _replaced(input, src, "slice_scatter", lambda x: slice_(x, int64(dim, "dim"), *bounds, step))


@method(moves=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of input whose diagonal(offset, dim1, dim2) is src.

    >>> norch.diagonal_scatter(norch.zeros(2, 2), norch.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return _replaced(input, src, "diagonal_scatter", lambda x: diagonal(x, offset, dim1, dim2))


@method(moves=True)
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of input whose elements that as_strided(size, stride, storage_offset) would show are those of src.

    >>> norch.as_strided_scatter(norch.zeros(4), norch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    out = clone_for(as_operand(input, "as_strided_scatter"), src)
    as_strided(out, size, stride, storage_offset).copy_(src)
    return out


# ---- what Tensor alone has ------------------------------------------------------------------------------------------


@method
def sum_to_size(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """The tensor summed to a shape that broadcasts to its own.

    >>> norch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    sizes = sizes if size is None else (size,)
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes
    shape, dtype = lib.norch_shape(self), self.dtype
    keeps_dtype = dtype.kind in "fc" or (shape == tuple(sizes) and shape)
    summed = cast(self, dtype if keeps_dtype else int64_)  # integers add up in int64
    target = lib.norch_empty(sizes, summed._dtype, (summed._device_type, summed._device_index))
    try:
        lib.norch_expand(target, shape)
    except ShapeError:
        raise ShapeError(f"sum_to_size: {tuple(sizes)} does not broadcast to shape {shape}") from None
    return sum_to(summed, target)


def _hermitian(x: Tensor) -> Tensor:
    """A matrix transposed, and conjugated.

    >>> norch.tensor([[1 + 2j, 3j]]).H
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    out = reversed_axes(x)
    if out.ndim not in (0, 2):
        raise ShapeError(f"H: takes a matrix, got {out.ndim} dimensions")
    return out.conj()


METHODS.update(T=property(reversed_axes), H=property(_hermitian), mT=property(_last_two), mH=property(adjoint))
METHODS.update(swapaxes_=inplace_view(swapaxes), swapdims_=inplace_view(swapdims))
__all__ = [
    "adjoint", "as_strided_scatter", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "column_stack", "concat", "concatenate", "diagonal_scatter", "dstack", "flip", "fliplr",
    "flipud", "hstack", "moveaxis", "movedim", "ravel", "roll", "rot90", "row_stack", "select_scatter", "slice_scatter",
    "swapaxes", "swapdims", "unflatten", "vstack",
]  # fmt: skip
