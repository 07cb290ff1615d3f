"""Grids and combinations of coordinates, composed of views and joins."""

from __future__ import annotations

import itertools
import math
import warnings
from array import array
from collections.abc import Sequence

from ..._binding.library import lib
from ..._binding.numbers import flag, int64
from ..._package.typing import Any, Tensor
from ...autograd.broadcast import Expand
from ...autograd.levels import holds
from ...autograd.record import record_view
from ...dtype import int64 as int64_
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError, one_of, stacklevel_of_user
from .._arguments import tensors_of
from .._checks import on_one_device, with_ndim
from .._entry import composed, rename_errors
from .._operand import as_operand, tensor_of
from ..copy import cast, cat, stack
from ..create import empty, ones_like
from ..index import index_select
from ..scan import cumprod
from ..values import tensor
from ..view import Reshape, expand, reshape, transpose, unsqueeze, view
from .shape import flip


@rename_errors
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Views of vectors over the grid that they span. indexing is "ij" (rows first, the default) or "xy" (columns
    first).

    >>> rows, columns = norch.meshgrid(norch.arange(2), norch.arange(3), indexing="ij")
    >>> (rows * 10 + columns).tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    inputs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    listed = tensors_of(inputs, "meshgrid")
    if indexing is None:
        warnings.warn('meshgrid: say indexing="ij" or "xy"; without it, "ij" is taken', stacklevel=stacklevel_of_user())
    else:
        one_of("meshgrid: indexing", indexing, ("ij", "xy"))
    if not listed:
        raise ArgumentError("meshgrid: no tensors given")
    shape = [size for x in listed for size in lib.norch_shape(x) or (1,)]
    count = len(listed)
    if len(shape) != count:
        raise ShapeError(f"meshgrid: takes vectors, got shapes {', '.join(str(tuple(x.shape)) for x in listed)}")
    if len({x.dtype for x in listed}) > 1:
        raise DTypeError(f"meshgrid: takes one dtype, got {', '.join(x.dtype.name for x in listed)}")
    for x in listed[1:]:
        on_one_device("meshgrid", listed[0], x)
    order = [*range(count)]
    if indexing == "xy":
        order[:2] = order[1::-1]
    whole, grids = tuple([shape[i] for i in order]), []
    for i, x in enumerate(listed):
        along = (1,) * order.index(i) + (shape[i],) + (1,) * (count - 1 - order.index(i))
        column = record_view(Reshape, lib.norch_view(x, along), x, view, (along,))
        grids.append(record_view(Expand, lib.norch_expand(column, whole), column, expand, (whole,)))
    return tuple(grids)


@rename_errors
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """A matrix of all choices of one element of each vector, each choice in a row. A single vector is returned
    unchanged.

    >>> norch.cartesian_prod(norch.tensor([1, 2]), norch.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    listed = tensors_of(tensors, "cartesian_prod")
    if any(x.ndim != 1 for x in listed):
        raise ShapeError(f"cartesian_prod: takes vectors, got {', '.join(str(tuple(x.shape)) for x in listed)}")
    if len(listed) == 1:
        return listed[0]
    return reshape(stack(meshgrid(*listed, indexing="ij"), -1), math.prod(len(x) for x in listed), len(listed))


@rename_errors
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """A matrix of all choices of r elements of a vector, in their order, each choice in a row.

    >>> norch.combinations(norch.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    input = with_ndim(tensor_of(input, "combinations"), "combinations", 1)
    if int64(r, "combinations: r") < 0:
        raise ArgumentError(f"combinations: of {r} elements")
    if r == 0:
        return input.new_empty(0)
    n, repeats = len(input), flag(with_replacement, "combinations: with_replacement")
    choices = n + r - 1 if repeats else n
    if min(r, choices - r) >= 64 or (count := math.comb(max(choices, 0), r)) * r >= 1 << 62:
        raise ArgumentError(f"combinations: {r} of {n} elements are chosen in more than 2**62 ways")
    at = empty(count, r, dtype=int64_, device=input.device)  # fails before any work where the memory is not there
    if r == 2:
        pairs = lib.norch_triangle_indices(count, 0, n, 0 if repeats else 1, True)
        at = transpose(pairs, 0, 1).to(input.device)
    elif count:
        choose = itertools.combinations_with_replacement if repeats else itertools.combinations
        at = tensor(array("q", itertools.chain.from_iterable(choose(range(n), r))), device=input.device)
    return reshape(index_select(input, 0, reshape(at, -1)), count, r)


@composed
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 to 0 of a vector as columns, or 0 to N - 1 with increasing. N is the length of the vector by
    default.

    >>> norch.vander(norch.tensor([2, 3])).tolist()
    [[2, 1], [3, 1]]
    """
    columns = powers(with_ndim(tensor_of(x, "vander"), "vander", 1), N)
    return columns if flag(increasing, "vander: increasing") else flip(columns, 1)


def powers(x: Tensor, count: int | None) -> Tensor:
    """x^0 ... x^(count - 1) along a new last axis (..., n, count). count is n, the last size of x, by default."""
    count = x.shape[-1] if count is None else int64(count, "vander: N")
    if count < 0:
        raise ArgumentError(f"vander: {count} columns")
    wide = unsqueeze(x if x.dtype.kind in "fc" else cast(x, int64_), -1)
    factors = expand(wide, *x.shape, count)
    return cumprod(cat([ones_like(factors[..., :1]), factors[..., 1:]], -1), -1, dtype=wide.dtype)


@rename_errors
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Positions in the flattened shape as indices: one tensor for each axis.

    >>> norch.unravel_index(norch.tensor([5]), (2, 4))
    (tensor([1]), tensor([1]))
    """
    at = as_operand(indices, "unravel_index")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if at.dtype.is_floating_point or at.dtype.kind == "b":
        raise DTypeError(f"unravel_index: indices are integers, not {at.dtype.name}")
    if not holds((at >= 0) & (at < math.prod(sizes))):
        raise BoundsError(f"unravel_index: an index is out of range for shape {tuple(sizes)}")
    at, coordinates = at.to(int64_), []
    for size in reversed(sizes):
        coordinates.append(at % size)
        at = at // size
    return tuple(reversed(coordinates))


__all__ = ["cartesian_prod", "combinations", "meshgrid", "unravel_index", "vander"]
