"""Padding: elements added at the ends of axes, by copies within the result (csrc/ops/pad.c), or removed there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..._binding.library import constants, lib
from ..._binding.numbers import int64
from ..._package.typing import Any, Tensor
from ...autograd.derivative import derivative
from ...autograd.grad_mode import mode as threads
from ...autograd.halves import HALVES
from ...autograd.record import record
from ...dtype import check_fits
from ...errors import ArgumentError, ShapeError
from .._entry import composed, rename_errors
from .._operand import operand, tensor_of
from ..copy import padded
from ..create import number_of
from ..op import OPCODES
from ..view import is_plain

_MODES = {mode: constants[f"PAD_{mode.upper()}"] for mode in ("constant", "reflect", "replicate", "circular")}
_ZERO = operand(0)


@rename_errors
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A copy with more elements at the ends of its last axes. pad has two numbers for each axis, before and after, and
    begins with the last axis. Negative numbers remove elements.

    mode is "constant" (value, by default 0) for any axes, or for the last 1 to 3 axes of 2 to 5 "reflect" (mirrored at
    the outermost element), "replicate" (the outermost element) or "circular" (from the other end).

    >>> norch.nn.functional.pad(norch.tensor([[1, 2, 3]]), (1, 2), mode="reflect")
    tensor([[2, 1, 2, 3, 2, 1]])
    """
    if not hasattr(pad, "__iter__"):
        raise TypeError(f"pad: expected a sequence of sizes, not {type(pad).__name__}")
    input, pad = tensor_of(input, "pad"), tuple(pad)
    shape = lib.norch_shape(input)
    before, after, least = (_ends if is_plain(pad) else _ends.__wrapped__)(pad, len(shape), mode)
    if least < 0 or (mode != "constant" and 0 in shape):  # else the library refuses what does not fit
        _check_ends(shape, before, after, mode)
    if mode == "constant":
        if value is None:
            value = 0
        elif value != 0:
            check_fits(value := number_of(value, "pad"), input.dtype, "pad")
        return padded(input, before, after, value, least)
    if value:
        raise ArgumentError(f"pad: mode {mode!r} takes no value")
    if mode == "circular":
        grown = _grown if input._dtype not in HALVES else _wrapped_at_ends
    else:
        grown = _grown if input._dtype not in HALVES and not threads.casting else _mirrored_at_ends
    if least >= 0:
        return grown(input, before, after, mode)
    cuts = [min(n, 0) for n in before], [min(n, 0) for n in after]
    before, after = tuple([max(n, 0) for n in before]), tuple([max(n, 0) for n in after])
    if mode == "circular":  # what is left goes round
        return grown(padded(input, *cuts, 0, least), before, after, mode)
    return padded(grown(input, before, after, mode), *cuts, 0, least)


@lru_cache(256)  # networks ask for the same few
def _ends(pad: tuple[int, ...], ndim: int, mode: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """How many elements are added before and after the last axes, the last of them last, and the least number."""
    amounts = tuple([n if type(n) is int else int64(n, "pad: size") for n in pad])
    count, odd = divmod(len(amounts), 2)
    if odd or count > ndim:
        raise ShapeError(f"pad: sizes {amounts} are no pairs for {ndim} dimensions")
    if mode not in _MODES:
        raise NotImplementedError(f"pad: unknown mode {mode!r}")
    if mode != "constant" and (count not in (1, 2, 3) or ndim - count not in (1, 2)):
        raise NotImplementedError(
            f"pad: mode {mode!r} pads the last 1, 2 or 3 axes of 1 or 2 more, not {count} of {ndim}"
        )
    return amounts[-2::-2], amounts[::-2], min(amounts, default=0)


def _by_axis(shape: Sequence[int], before: Sequence[int], after: Sequence[int]) -> Iterable[tuple[int, int, int]]:
    """(axis, before, after) of the last axes of a shape."""
    return zip(range(len(shape) - len(before), len(shape)), before, after, strict=True)


def _check_ends(shape: Sequence[int], befores: Sequence[int], afters: Sequence[int], mode: str) -> None:
    """ShapeError where the sizes at the ends of the last axes of a shape do not fit."""
    for dim, before, after in reversed([*_by_axis(shape, befores, afters)]):
        size = shape[dim]
        if (before < 0 or after < 0) and (before + after + size < 0 or min(before, 0) + min(after, 0) + size < 0):
            raise ShapeError(f"pad: {before} and {after} leave a negative size of dimension {dim} of size {size}")
        if mode == "constant":
            continue
        if size == 0 if mode == "replicate" else max(before, after) > size - (mode == "reflect"):
            raise ShapeError(f"pad: {before} and {after} are more than {mode!r} has for dimension {dim} of size {size}")
        left = size + min(before, 0) + min(after, 0)
        if mode == "circular" and max(before, after) > left:
            raise ShapeError(f"pad: {before} and {after} exceed what is left of dimension {dim}")


def _grown(x: Tensor, before: Sequence[int], after: Sequence[int], mode: str) -> Tensor:
    """x with these numbers of elements at the ends of its last axes, copied as the mode says."""
    node_class = _Grown if mode == "circular" else _Mirrored
    return record(node_class, lib.norch_pad(x, before, after, _MODES[mode], _ZERO), (x,), (before, after, mode))


# An element that is copied gets the sum of several gradients.
_wrapped_at_ends = composed(autocast="off -")(_grown)
_mirrored_at_ends = composed(autocast="float32 -")(_grown)


def _folded(g: Tensor, before: Sequence[int], after: Sequence[int], mode: str) -> Tensor:
    """The transpose of _grown(): each copy is added to its origin, the last axis first."""
    whole = lib.norch_cast(g, g._dtype)
    ends = list(zip(range(g.ndim - 1, -1, -1), reversed(before), reversed(after)))
    *parts, middle = _regions(whole, ends)
    for end, part in zip(reversed(ends), parts):
        for added, source in reversed(_copied(part, end, mode)):
            if lib.norch_shape(source) != lib.norch_shape(added):  # of one element, repeated
                added = lib.norch_reduce(OPCODES["sum"], added, end[:1], True, -1, 0.0)
            lib.norch_binary_into(source, OPCODES["add"], source, added)
    return record(_Folded, lib.norch_contiguous(middle), (g,), (before, after, mode))


# A recorded gradient of a mirrored pad belongs to the graph of its input, as in PyTorch: the second has depends_on.
_Grown, _Mirrored = (
    derivative("pad", grad=lambda g, before, after, mode: _folded(g, before, after, mode), depends_on=count)
    for count in (0, 1)
)
_Folded = derivative("pad_backward", grad=lambda g, before, after, mode: _grown(g, before, after, mode))


def _regions(x: Tensor, ends: Any) -> list[Tensor]:
    """x, x without the elements that were added to the last axis of ends, and so on to x without any."""
    parts = [x]
    for dim, before, after in reversed(ends):
        parts.append(lib.norch_slice(parts[-1], dim, before, lib.norch_shape(x)[dim] - after, 1))
    return parts


def _copied(x: Tensor, ends: tuple[int, int, int], mode: str) -> list[tuple[Tensor, Tensor]]:
    """The parts of x, whole along the axis of these ends, that are copied, and where from."""
    dim, before, after = ends
    size = lib.norch_shape(x)[dim]
    end = size - after  # of what was there
    if mode == "reflect":
        low = end - 2 - after
        first, last = (2 * before, before, -1), (end - 2, low if low >= 0 else low - size, -1)
    elif mode == "replicate":
        first, last = (before, before + 1, 1), (end - 1, end, 1)
    else:
        first, last = (end - before, end, 1), (before, before + after, 1)
    cut, pairs = lib.norch_slice, []
    if before:
        pairs.append((cut(x, dim, 0, before, 1), cut(x, dim, *first)))
    if after:
        pairs.append((cut(x, dim, end, size, 1), cut(x, dim, *last)))
    return pairs


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """pad(input, pad, "constant", value).

    >>> norch.constant_pad_nd(norch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    return _pad(input, pad, "constant", value)


_pad = pad
