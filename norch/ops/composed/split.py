"""Views of the parts of a tensor along an axis: split(), chunk(), unbind() and their kin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import sub

from ..._binding.library import lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Tensor
from ..._tensor import handle as _handle
from ..._tensor.handle import Handle
from ...autograd.record import record_view
from ...errors import ArgumentError, BoundsError, Error, ShapeError
from .._arguments import named_function
from .._checks import at_least, check_count
from .._entry import rename_errors
from .._operand import tensor_of
from ..op import method
from ..view import END, Region, axis, select, slice_

__all__ = ["chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "unbind", "vsplit"]


def _parts(x: Tensor, dim: int, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Views of x of the given sizes, one behind the other along dim."""
    if type(x) is _handle.result_class:
        return lib.norch_record_parts(Region, x, slice_, dim, sizes)
    ends = [*accumulate(sizes)]
    return _between(x, dim, zip([0, *ends], ends))


def _between(x: Tensor, dim: int, bounds: Iterable[tuple[int, int]]) -> tuple[Tensor, ...]:
    """Views of x from start to stop along dim, for each of bounds."""
    return tuple(
        [
            record_view(Region, lib.norch_slice(x, dim, start, stop, 1), x, slice_, (dim, start, stop, 1))
            for start, stop in bounds
        ]
    )


@method
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts of the same size along dim (the last may be smaller), or of the given sizes.

    >>> [part.tolist() for part in norch.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    wanted = split_size_or_sections if split_size is None else split_size
    if hasattr(wanted, "__iter__") and not isinstance(wanted, Handle):
        return split_with_sizes(tensor, wanted, dim)
    at, size = axis_and_size(tensor_of(tensor, "split"), dim, "split")
    step = int64(wanted, "split: size")
    if step < 0 or (step == 0 and size):
        raise ShapeError(f"split: parts of size {step} of dimension {dim}, whose size is {size}")
    check_count(-(-size // (step or 1)), "split: the number of parts")
    return _parts(tensor, at, _equal(size, step))


def _equal(size: int, step: int) -> tuple[int, ...]:
    """The sizes of equal parts, and of what is left; of nothing, one empty part."""
    if not size:
        return (0,)
    count, rest = divmod(size, step)
    return (*(step,) * count, rest) if rest else (step,) * count


def axis_and_size(x: Tensor, dim: int, name: str, error: type[Error] = ShapeError) -> tuple[int, int]:
    """dim from the front, and its size; error for a 0-d tensor."""
    shape = lib.norch_shape(x)
    if not shape:
        raise error(f"{name}: a 0-d tensor has no dimension to divide")
    at = axis(dim, len(shape), name)
    return at, shape[at]


@method(moves=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of the given sizes along dim; the sizes must add up to its own.

    >>> norch.split_with_sizes(norch.arange(5), [2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    at, size = axis_and_size(tensor_of(input, "split_with_sizes"), dim, "split_with_sizes")
    parts = [part if type(part) is int else int64(part, "split_with_sizes: size") for part in split_sizes]
    if sum(parts) != size or (parts and min(parts) < 0):
        raise ShapeError(f"split_with_sizes: sizes {parts} do not add up to {size}, the size of dimension {dim}")
    return _parts(input, at, tuple(parts))


@method(numpy=True, out=False)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of at most chunks parts along dim, all of one size but the last.

    >>> norch.chunk(norch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    at, size = axis_and_size(tensor_of(input, "chunk"), dim, "chunk")
    if (chunks := check_count(chunks, "chunk: chunks")) < 1:
        raise ArgumentError(f"chunk: into {chunks} chunks")
    parts = _parts(input, at, _equal(size, -(-size // chunks)))
    return parts if size else parts * chunks


@method(numpy=True, out=False)
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts along dim: cut before each of the given indices, or into that many parts, of which the first may
    be one longer.

    >>> [part.tolist() for part in norch.arange(5).tensor_split(2)]
    [[0, 1, 2], [3, 4]]
    """
    at, size = axis_and_size(tensor_of(input, "tensor_split"), dim, "tensor_split")
    return _cut(input, at, size, indices_or_sections, indices, sections)


def _cut(x: Tensor, dim: int, size: int, *arguments: Any) -> tuple[Tensor, ...]:
    """The parts of tensor_split(); arguments: the indices or the number of sections, and None."""
    cuts: Any = arguments[0]
    if cuts is None or not arguments[1] is arguments[2] is None:
        values = [cut for cut in arguments if cut is not None]
        if len(values) != 1:
            raise TypeError("tensor_split: give either indices or the number of sections")
        cuts = values[0]
    if isinstance(cuts, Handle):
        cuts = cuts.tolist()  # type: ignore[attr-defined]
    if not hasattr(cuts, "__iter__"):
        return _parts(x, dim, _sections(size, check_count(cuts, "tensor_split: sections")))
    cuts = [cut if type(cut) is int else int64(cut, "tensor_split: index") for cut in cuts]
    ends = [*cuts, size]
    parts = [*map(sub, ends, [0, *cuts])]
    if min(parts) >= 0 and min(ends) >= 0:  # no index counts from the end, and none cuts before the one before it
        return _parts(x, dim, tuple(parts))
    return _between(x, dim, zip([0, *cuts], [*cuts, END]))


def _sections(size: int, count: int) -> tuple[int, ...]:
    """The sizes of so many parts, the first ones longer by one."""
    if count < 1:
        raise ArgumentError(f"tensor_split: into {count} sections")
    least, longer = divmod(size, count)
    return (*(least + 1,) * longer, *(least,) * (count - longer)) if longer else (least,) * count


def _split_along(name: str, least: int, last: int, about: str) -> Any:
    def function(
        input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: int | None = None
    ) -> tuple[Tensor, ...]:
        x = at_least(least, input, name)
        shape = lib.norch_shape(x)
        dim = min(last, len(shape) - 1)
        count, size = indices_or_sections if sections is None else sections, shape[dim]
        if hasattr(count, "__index__") and size % (int(count) or 1):
            raise ShapeError(f"{name}: size {size} of dimension {dim} is no multiple of {count}")
        return _cut(x, dim, size, indices_or_sections, indices, sections)

    return method(rename_errors(named_function(function, name, about)))


hsplit = _split_along(
    "hsplit",
    1,
    1,
    """Views of parts along the second axis (the first of a vector), into equal sections or cut before indices.

    >>> norch.hsplit(norch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """,
)
vsplit = _split_along(
    "vsplit",
    2,
    0,
    """Views of parts along the first axis, into equal sections or cut before indices.

    >>> norch.vsplit(norch.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """,
)
dsplit = _split_along(
    "dsplit",
    3,
    2,
    """Views of parts along the third axis, into equal sections or cut before indices.

    >>> [x.shape for x in norch.dsplit(norch.zeros(2, 3, 4), [1])]
    [norch.Size([2, 3, 1]), norch.Size([2, 3, 3])]
    """,
)


@method(numpy=True, out=False)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the parts along an axis, without that axis.

    >>> norch.unbind(norch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    at, size = axis_and_size(tensor_of(input, "unbind"), dim, "unbind", BoundsError)
    check_count(size, "unbind: the number of parts")
    return tuple([record_view(Region, lib.norch_select(input, at, i), input, select, (at, i)) for i in range(size)])
