"""Padding: elements added at the ends of axes, composed of joins and views."""

from __future__ import annotations

from collections.abc import Sequence

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
from ..copy import cat, clone, padded
from ..create import number_of
from ..op import OPCODES
from ..view import connect, expand, slice_

_MODES = {mode: constants[f"PAD_{mode.upper()}"] for mode in ("constant", "reflect", "replicate", "circular")}


@rename_errors
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A copy with more elements at the ends of its last axes: pad holds (before, after) of the last axis, then of the
    one before it, and so on; negative numbers remove elements.

    mode: "constant" (value, 0 unless given) for any axes; "reflect" (mirrored at the outermost element), "replicate"
    (the outermost element) and "circular" (from the other end) for the last 1 to 3 axes of 2 to 5.

    >>> norch.nn.functional.pad(norch.tensor([[1, 2, 3]]), (1, 2), mode="reflect")
    tensor([[2, 1, 2, 3, 2, 1]])
    """
    if not hasattr(pad, "__iter__"):
        raise TypeError(f"pad: expected a sequence of sizes, not {type(pad).__name__}")
    input = tensor_of(input, "pad")
    shape, amounts = lib.norch_shape(input), [n if type(n) is int else int64(n, "pad: size") for n in pad]
    ndim = len(shape)
    count = len(amounts) // 2
    if len(amounts) % 2 or count > ndim:
        raise ShapeError(f"pad: sizes {tuple(amounts)} are no pairs for {ndim} dimensions")
    if mode not in _MODES:
        raise NotImplementedError(f"pad: unknown mode {mode!r}")
    if mode != "constant" and value:
        raise ArgumentError(f"pad: mode {mode!r} takes no value")
    if mode != "constant" and (count not in (1, 2, 3) or ndim - count not in (1, 2)):
        raise NotImplementedError(
            f"pad: mode {mode!r} pads the last 1, 2 or 3 axes of 1 or 2 more, not {count} of {ndim}"
        )
    grows = min(amounts, default=0) >= 0
    in_c = grows and (mode == "constant" or 0 not in shape)  # which refuses what does not fit, too
    ends = () if in_c else [(ndim - 1 - i, *amounts[2 * i : 2 * i + 2]) for i in range(count)]
    for dim, before, after in ends:
        size = shape[dim]
        if (before < 0 or after < 0) and (before + after + size < 0 or min(before, 0) + min(after, 0) + size < 0):
            raise ShapeError(f"pad: {before} and {after} leave a negative size of dimension {dim} of size {size}")
        if mode == "constant":
            continue
        if size == 0 if mode == "replicate" else max(before, after) > size - (mode == "reflect"):
            raise ShapeError(f"pad: {before} and {after} are more than {mode!r} has for dimension {dim} of size {size}")
    if mode == "constant":
        if value is None:
            value = 0
        elif value != 0:
            check_fits(value := number_of(value, "pad"), input.dtype, "pad")
        return padded(input, amounts[-2::-2], amounts[::-2], value)
    if grows:
        if mode == "circular":
            grown = _grown if input._dtype not in HALVES else _wrapped_at_ends
        else:
            input = connect(input)
            grown = _grown if input._dtype not in HALVES and not threads.casting else _mirrored_at_ends
        return grown(input, amounts[-2::-2], amounts[::-2], mode)
    out = _wrapped(input, ends) if mode == "circular" else _mirrored(input, ends, mode)
    return clone(out) if lib.norch_shares_storage(out, input) else out


# ---- by copies within the result ------------------------------------------------------------------------------------


def _grown(x: Tensor, before: list[int], after: list[int], mode: str) -> Tensor:
    """x with so many elements at the ends of each of its last axes, copied from where the mode says."""
    return record(_Grown, lib.norch_pad(x, before, after, _MODES[mode], operand(0)), (x,), (before, after, mode))


# An element that is copied gets the sum of several gradients.
_wrapped_at_ends = composed(autocast="off -")(_grown)
_mirrored_at_ends = composed(autocast="float32 -")(_grown)


def _folded(g: Tensor, before: list[int], after: list[int], mode: str) -> Tensor:
    """The transpose of it: what was copied is added to where it came from, the last axis first."""
    whole = lib.norch_cast(g, g._dtype)
    ends = list(zip(range(g.ndim - 1, -1, -1), reversed(before), reversed(after)))
    *parts, middle = _regions(whole, ends)
    for end, part in zip(reversed(ends), parts):
        for added, source in reversed(_copied(part, end, mode)):
            if lib.norch_shape(source) != lib.norch_shape(added):  # of one element, repeated
                added = lib.norch_reduce(OPCODES["sum"], added, end[:1], True, -1, 0.0)
            lib.norch_binary_into(source, OPCODES["add"], source, added)
    return record(_Folded, lib.norch_contiguous(middle), (g,), (before, after, mode))


_Grown = derivative("pad", grad=lambda g, before, after, mode: _folded(g, before, after, mode))
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


# ---- by joins ------------------------------------------------------------------------------------------------------


@composed(autocast="off -")  # an element that is copied gets the sum of several gradients
def _wrapped(x: Tensor, ends: Sequence[Any]) -> Tensor:
    """x with elements from the other end; ends: (axis, before, after)."""
    for dim, before, after in ends:
        x = _cropped(x, dim, before, after)
        size = x.shape[dim]
        if max(before, after) > size:
            raise ShapeError(f"pad: {before} and {after} exceed what is left of dimension {dim}")
        last, first = slice_(x, dim, 0, max(after, 0), 1), slice_(x, dim, size - max(before, 0), size, 1)
        x = _joined(first, x, last, dim, before, after)
    return x


@composed(autocast="float32 -")
def _mirrored(x: Tensor, ends: Sequence[Any], mode: str) -> Tensor:
    """x with elements mirrored at its ends ("reflect"), or with copies of the outermost ones ("replicate")."""
    x = connect(x)
    for dim, before, after in ends:
        if mode == "reflect":
            first, last = slice_(x, dim, before, 0, -1), slice_(x, dim, -2, -2 - after, -1)
        else:
            first, last = _edge(x, dim, 0, before), _edge(x, dim, x.shape[dim] - 1, after)
        x = _cropped(_joined(first, x, last, dim, before, after), dim, before, after)
    return x


def _joined(first: Tensor, x: Tensor, last: Tensor, dim: int, before: int, after: int) -> Tensor:
    parts = [*[first] * (before > 0), x, *[last] * (after > 0)]
    return cat(parts, dim) if len(parts) > 1 else x


def _cropped(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    """x without the elements that negative numbers remove at its ends."""
    if before >= 0 and after >= 0:
        return x
    return slice_(x, dim, -min(before, 0), x.shape[dim] + min(after, 0), 1)


def _edge(x: Tensor, dim: int, index: int, count: int) -> Tensor:
    shape = list(x.shape)
    shape[dim] = max(count, 0)
    return expand(slice_(x, dim, index, index + 1, 1), shape)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """pad(input, pad, "constant", value).

    >>> norch.constant_pad_nd(norch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    return _pad(input, pad, "constant", value)


_pad = pad
