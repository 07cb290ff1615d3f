"""Copies with repeated elements, or with axes divided, exchanged and joined. Each is one operation of a few C calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..._binding.library import lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Operand, Tensor
from ..._tensor.handle import Handle
from ...autograd.differentiable import differentiable
from ...dtype import float64
from ...dtype import int64 as int64_
from ...errors import ArgumentError, DTypeError, ShapeError
from .._operand import tensor_of
from ..copy import clone
from ..index import KINDS, index_select
from ..op import OPCODES, method
from ..reduce import sum_over
from ..scan import cumsum
from ..values import tensor
from ..view import permute, reshape, reshape_to, sizes
from .shape import ravel
from .split import axis_and_size

_AMIN, _SUM = OPCODES["amin"], OPCODES["sum"]

__all__ = ["rearranged", "repeat_interleave", "tile"]


@differentiable(
    "rearrange",
    grad=lambda g, x_meta, split, order: reshape_to(
        permute(reshape(g, [split[axis] for axis in order]), sorted(range(len(order)), key=order.__getitem__)), x_meta
    ),
    shares_grad=True,
)
def rearranged(x: Tensor, split: Sequence[int], order: Sequence[int], out: Sequence[int]) -> Tensor:
    """A copy of x in the shape split, its axes in this order, in the shape out."""
    return lib.norch_reshape(lib.norch_clone(lib.norch_permute(lib.norch_reshape(x, split), order)), out)


@method(moves=True)
def repeat(input: Tensor, *repeats_: Any, repeats: Any = None) -> Tensor:
    """A copy with the tensor repeated along each axis; more numbers than axes add new axes in front.

    >>> norch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = [count if type(count) is int else int64(count, "repeat: count") for count in sizes(repeats_, repeats)]
    shape = lib.norch_shape(tensor_of(input, "repeat"))
    lead = len(counts) - len(shape)
    if not lead and set(counts) <= {1}:
        return clone(input)
    if lead < 0 or min(counts, default=0) < 0:
        raise ShapeError(f"repeat: counts {tuple(counts)} for shape {shape}")
    once: list[int] = []
    often: list[int] = []
    for count, size in zip(counts, (*[1] * lead, *shape)):
        if count != 1:  # a new axis only where there is something to repeat, as the number of axes is limited
            once.append(1)
            often.append(count)
        once.append(size)
        often.append(size)
    return _repeated_along(input, once, often, [count * size for count, size in zip(counts, (*[1] * lead, *shape))])


def _summed_repeats(g: Tensor, x_meta: Handle, once: Sequence[int], often: Sequence[int]) -> Tensor:
    axes = [axis for axis, (size, repeated) in enumerate(zip(once, often)) if size != repeated]
    g = reshape(g, often)
    return reshape_to(sum_over(g, axes, True) if axes else g, x_meta)


@differentiable("repeat", grad=_summed_repeats, shares_grad=True)
def _repeated_along(x: Tensor, once: Sequence[int], often: Sequence[int], out: Sequence[int]) -> Tensor:
    """x in the shape `once`. Its axes of size 1 are repeated to `often`; the result has the shape out."""
    return lib.norch_reshape(lib.norch_clone(lib.norch_expand(lib.norch_reshape(x, once), often)), out)


@method(moves=True)
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """repeat(), with 1 for numbers that are missing in front.

    >>> norch.ones(2, 2).tile(3).shape
    norch.Size([2, 6])
    """
    repeats, input = tuple(sizes(counts, dims)), tensor_of(input, "tile")
    return repeat(input, (*[1] * (input.ndim - len(repeats)), *repeats))


@method(numpy=True, out=False)
def repeat_interleave(
    input: Tensor | None = None,
    repeats: Operand | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Repeats each element along dim, or without dim each element of the flattened tensor. repeats is one number, or
    one for each element. repeat_interleave(repeats) alone repeats the indices 0 ... n - 1.

    >>> norch.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    >>> norch.repeat_interleave(norch.tensor([2, 0, 1]))
    tensor([0, 0, 2])
    """
    if repeats is None or input is None:
        counts: Any = repeats if input is None else input
        return _repeated(_counts(tensor_of(counts, "repeat_interleave"), counts))
    if dim is None:
        return repeat_interleave(ravel(tensor_of(input, "repeat_interleave")), repeats, 0, output_size=output_size)
    input = tensor_of(input, "repeat_interleave")
    at, size = axis_and_size(input, dim, "repeat_interleave")
    if isinstance(repeats, Handle) or not hasattr(repeats, "__index__"):
        repeats = _counts(repeats, input)
        if repeats.numel() == 1:
            repeats = repeats.item()
    if not isinstance(repeats, Handle):
        count = int64(repeats, "repeat_interleave: repeats")
        if count < 0:
            raise ArgumentError(f"repeat_interleave: {count} times")
        shape = lib.norch_shape(input)
        before, behind = shape[: at + 1], shape[at + 1 :]
        once, often = (*before, 1, *behind), (*before, count, *behind)
        out = _repeated_along(input, once, often, (*shape[:at], size * count, *behind))
    elif repeats.numel() != size:
        raise ShapeError(f"repeat_interleave: {repeats.numel()} repeats for dimension {dim} of size {size}")
    else:
        out = index_select(input, at, _repeated(repeats).to(input.device))
    if output_size is not None and output_size != out.shape[at]:
        raise ArgumentError(f"repeat_interleave: output_size {output_size}, but the repeats add up to {out.shape[at]}")
    return out


def _counts(repeats: Any, x: Tensor) -> Tensor:
    """repeats as a vector of int64 on the device of x, none of them negative."""
    if not isinstance(repeats, Handle):
        repeats = tensor([int64(count, "repeat_interleave: repeats") for count in repeats], dtype=int64_)
    repeats = tensor_of(repeats, "repeat_interleave")
    if repeats.dtype.kind not in "iu" or repeats.ndim > 1:
        shape = tuple(repeats.shape)
        raise DTypeError(f"repeat_interleave: repeats are integers (n), not {repeats.dtype.name} {shape}")
    counts = ravel(repeats).to(None if x.is_meta else x.device, int64_)  # a shape of meta tensors may depend on it
    if counts._numel and (least := lib.norch_item(lib.norch_reduce(_AMIN, counts, None, False, -1, 0.0))) < 0:
        raise ArgumentError(f"repeat_interleave: {least} times")
    return counts


def _repeated(counts: Tensor) -> Tensor:
    """The indices 0 ... n - 1, index i repeated repeats[i] times."""
    # A sum in float64 is exact as far as fits memory.
    total = lib.norch_item(lib.norch_reduce(_SUM, counts, None, False, float64.code, 0.0))
    if total >= 2.0**62:
        raise ArgumentError("repeat_interleave: the repeats add up to more than 2**62")
    ends, size = cumsum(counts, 0), int(total)
    if not counts._numel:
        return ends
    # At each place, the number of indices whose repetitions end there or before.
    device = (counts._device_type, counts._device_index)
    ending, one = (
        lib.norch_full((size + 1,), int64_.code, 0.0, 0, device),
        lib.norch_full((), int64_.code, 1.0, 1, device),
    )
    ending = lib.norch_scatter(ending, KINDS["SCATTER_ADD"], 0, ends, one, True)
    return cumsum(lib.norch_slice(ending, 0, 0, size, 1), 0)
