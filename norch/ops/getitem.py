"""``x[index]`` and ``x[index] = value``.

Integers, slices, ``...`` and None make one view for the whole expression. Tensors, lists, arrays and bools become an
AdvancedIndex into that view (index.py); masks are converted by nonzero(). The rules are NumPy's, except that integers
are applied first, as in PyTorch.

Python runs ``x[0] += 1`` as three calls:

- ``view = x[0]``: getitem()
- ``view += 1``: binary_() in _rows.py; its finish_write() adds the write to the history of x (autograd/inplace.py)
- ``x[0] = view``: setitem(), which does nothing, as view is x[0] already. If index holds tensors, x[index] is a copy,
  and setitem() writes it back
"""

from __future__ import annotations

import math
import warnings

from .._binding.library import lib
from .._binding.numbers import flag
from .._package.typing import Any, Index, Operand, Tensor
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.halves import HALVES
from ..autograd.levels import BatchedBase
from ..autograd.record import record_view
from ..autograd.view_history import same_history
from ..dtype import FITS_FLOATS, bool_, fits
from ..dtype import int64 as int64_
from ..errors import BoundsError, Error, rename_error, stacklevel_of_user
from ._autocast import in_autocast, policy
from ._operand import as_operand
from .copy import check_scalar, clone_for, copy_, fill_
from .index import (
    FIRST_AXES,
    PUT,
    PUT_ADD,
    AdvancedIndex,
    index_of_mask,
    index_read,
    index_write,
    mask_read,
    masked_fill_,
    nonzero,
    to_device_of,
    values_for,
)
from .op import METHODS, method
from .values import tensor
from .view import Region

_ALL = slice(None)
_BOOL, _INT64 = bool_.code, int64_.code
_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def getitem(x: Tensor, index: Index) -> Tensor:
    """x[index]: a view if index has only integers, slices, ... and None, else a new tensor. Raises BoundsError."""
    view = lib.norch_region(x, index)
    if view is not None:
        return record_view(Region, view, x, region, (index,))
    if type(index) is list:
        index = _unlisted(index)
        if type(index) is tuple:
            return getitem(x, index)
        index = _part(index)
    if isinstance(index, Handle):
        if index._dtype == _BOOL and index.shape == x.shape and x.ndim and index._device_type == x._device_type:
            return mask_read(x, index)
        at = _index_of_one(x, index)
    else:
        at = _index_of_several(x, index)
    if at is not None:
        return index_read(x, at)
    view, at = _resolve(x, index)
    return view if at is None else index_read(view, at)


def region(x: Tensor, index: Any) -> Tensor:
    """x[index] for integers, slices, ... and None: a view (csrc/python/getitem.c)."""
    return record_view(Region, lib.norch_region(x, index), x, region, (index,))


def setitem(x: Tensor, index: Index, value: Operand) -> None:
    """x[index] = value. value is broadcast and cast. Raises BoundsError, ShapeError."""
    if x._dtype in HALVES and isinstance(value, (int, float)) and not -FITS_FLOATS <= value <= FITS_FLOATS:
        value = value if fits(value, x.dtype) else math.inf if value > 0 else -math.inf  # as in PyTorch
    if type(index) is list:
        index = _unlisted(index)
    view = lib.norch_region(x, index)
    if view is not None:
        return _write(record_view(Region, view, x, region, (index,)), value)
    parts: Any = index if type(index) is tuple else (index,)
    alone = _part(parts[0]) if len(parts) == 1 else None
    if isinstance(alone, Handle):
        if alone._dtype == _BOOL and not getattr(value, "ndim", 0) and alone._device_type == x._device_type:
            return _fill_where(x, alone, value)
        parts = (alone,)
        if (at := _index_of_one(x, alone)) is not None:
            return _put(x, at, value)
    view, at = _resolve(x, parts)
    return _write(view, value) if at is None else _put(view, at, value)


def _write(view: Any, value: Any) -> None:
    """Writes value over all of a view."""
    if isinstance(value, (int, float)):
        fill_(view, value)
    elif not isinstance(value, Handle):
        copy_(view, _without_ones(as_operand(value, "setitem"), view.ndim))
    elif not (lib.norch_is_same(view, value) and same_history(view, value)):  # x[i] += 1 has written already
        check_scalar(value, view, "setitem")
        copy_(view, _without_ones(value, view.ndim))


def _put(x: Any, at: AdvancedIndex, value: Any) -> None:
    """Writes value to the elements of x at an index."""
    index_write(x, at, _without_ones(values_for(x, value, "setitem"), at.ndim(x)))


def _fill_where(x: Any, mask: Any, value: Any) -> None:
    """Writes a number where mask, over the first axes of x, is True."""
    _check_mask(x, mask, 0)
    more = x.ndim - mask.ndim
    try:
        masked_fill_(x, mask.view(*mask.shape, *[1] * more) if more else mask, value)
    except Error as error:
        rename_error(error, "setitem")
        raise


def _unlisted(index: list[Any]) -> Any:
    """A list that contains slices, None, ... or tensors with axes means a tuple, as in PyTorch."""
    if any(type(part) in _BASIC and type(part) is not int or getattr(part, "ndim", 0) for part in index):
        return tuple(index)
    return index


def _check_mask(x: Any, mask: Any, axis: int) -> None:
    """BoundsError unless a mask has the sizes of x from this axis on."""
    if mask.shape != x.shape[axis : axis + mask.ndim]:
        raise BoundsError(
            f"a mask of shape {tuple(mask.shape)} does not match shape {tuple(x.shape)} at dimension {axis}"
        )


def _index_of_one(x: Tensor, index: Any) -> AdvancedIndex | None:
    """The AdvancedIndex of one index tensor; None for the cases that only _resolve() handles."""
    if index.ndim and x.ndim:
        if index._dtype == _INT64:
            return AdvancedIndex((index,), (0,), 0)
        if index._dtype == _BOOL:
            _check_mask(x, index, 0)
            return index_of_mask(index)
    return None


def _index_of_several(x: Tensor, index: Any) -> AdvancedIndex | None:
    """The AdvancedIndex of a tuple that holds only int64 tensors; None for other indices."""
    if type(index) is not tuple or len(index) > x.ndim:
        return None
    for part in index:
        if not isinstance(part, Handle) or part._dtype != _INT64 or not part.ndim:
            return None
    return AdvancedIndex(index, FIRST_AXES[: len(index)], 0)


def _without_ones(value: Any, ndim: int) -> Tensor:
    """value without the leading axes of size 1 beyond ndim."""
    extra = value.ndim - ndim
    return value.reshape(value.shape[extra:]) if extra > 0 and value.shape[:extra] == (1,) * extra else value


# ---- tensors of indices ---------------------------------------------------------------------------------------------


def _part(part: Any) -> Any:
    """One part of an index as an integer, a slice, None, ..., a bool, or a tensor of integers or bools."""
    if type(part) in _BASIC or type(part) is bool:
        return part
    if not isinstance(part, Handle):
        name = type(part).__name__
        if name == "bool_" or name == "bool" and hasattr(part, "item"):
            return bool(part)
        if hasattr(part, "__index__") and not hasattr(part, "__array__"):
            return part.__index__()
        part = _listed(part)
    x: Any = part
    if x._dtype == _INT64 and x.ndim:  # as most are
        return x
    kind = x.dtype.kind
    if kind in "fc":
        raise BoundsError(f"tensors that are indices must be integers or bool, not {x.dtype.name}")
    if x.dtype.name == "uint8":
        warnings.warn("indexing with a uint8 tensor: it is taken for a mask; use bool", stacklevel=stacklevel_of_user())
        x = x != 0
        kind = "b"
    if x.ndim == 0 and not isinstance(x, BatchedBase):
        return bool(x.item()) if kind == "b" else int(x.item())
    return x


def _listed(part: Any) -> Tensor:
    """A list, an array or another sequence as a CPU tensor, which may index tensors of any device."""
    if hasattr(part, "__array__"):
        part = part.__array__()
        if part.dtype.kind in "iu":
            part = part.astype("int64")
    elif not hasattr(part, "__len__") or isinstance(part, (str, bytes, dict, set)):
        raise BoundsError(
            "an index is made of integers, slices, ..., None, and tensors, arrays or lists of integers or bools, "
            f"not of {type(part).__name__}"
        )
    index = tensor(part, device="cpu")
    return index.to(int64_) if index.numel() == 0 and index.dtype.is_floating_point else index


def _axes_of(part: Any) -> int:
    """How many axes of x a part consumes."""
    if part is None or part is Ellipsis or type(part) is bool:
        return 0
    return part.ndim if isinstance(part, Handle) and part._dtype == _BOOL else 1


def _resolve(x: Tensor, index: Any) -> tuple[Any, AdvancedIndex | None]:
    """(a view of x by the basic parts of index, the AdvancedIndex into that view by the other parts, or None).

    The dimensions to which the index tensors broadcast replace the axes that they take, if these are adjacent in the
    view; otherwise they come first. Integers are not index tensors here, as in PyTorch; in NumPy they are.
    """
    parts = [_part(part) for part in (index if type(index) is tuple else (index,))]
    wide = [_axes_of(part) for part in parts]
    missing = x.ndim - sum(wide)
    if missing < 0:
        raise BoundsError(f"too many indices: {x.ndim - missing} for a tensor of {x.ndim} dimensions")
    basic: list[Any] = []
    indices: list[Any] = []
    axes: list[int] = []
    named: list[int] = []
    axis = x_axis = dots = 0  # the next axis of the view; that of x
    for part, taken in zip(parts, wide):
        if taken and missing and dots > 1:
            raise BoundsError("only one ellipsis (...) can precede the index of an axis")
        if type(part) in _BASIC:
            if part is Ellipsis:
                taken = 0 if dots else missing
                dots += 1
            basic.append(part)
            if type(part) is not int:
                axis += 1 if part is None else taken
            x_axis += taken
            continue
        for index_tensor in _index_tensors(x, part, x_axis):
            basic.append(_ALL if taken else None)
            indices.append(index_tensor)
            axes.append(axis)
            named.append(x_axis)
            axis += 1
            x_axis += 1 if taken else 0
    whole = all(part == _ALL if type(part) is slice else part is Ellipsis for part in basic)
    view = x if whole else region(x, tuple(basic))
    if not indices:
        return view, None
    adjacent = axes[-1] - axes[0] < len(axes)
    return view, AdvancedIndex(tuple(indices), tuple(axes), axes[0] if adjacent else 0, tuple(named))


def _index_tensors(x: Tensor, part: Any, axis: int) -> tuple[Any, ...]:
    """The int64 index tensors of a part of an index, one for each axis of x that it takes, beginning with this axis. A
    bool takes one or no element of an axis of size 1, which the view has for it.
    """
    if type(part) is bool:
        return (_listed([0] * part),)
    if part._dtype != _BOOL:
        return (part,)
    _check_mask(x, part, axis)
    return nonzero(part, as_tuple=True)


@method
def index_put_(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """x[indices] = values, or += with accumulate, where equal indices add up. indices is a tuple of tensors or None."""
    view, at = _places(x, indices)
    values = to_device_of(as_operand(values, "index_put_"), x)
    index_write(view, at, values, PUT_ADD if flag(accumulate, "index_put_: accumulate") else PUT)
    return x


def _places(x: Tensor, indices: Any) -> tuple[Any, Any]:
    """A view of x, and the elements of it that indices name."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_: indices are a tuple of tensors, not {type(indices).__name__}")
    view, at = _resolve(x, tuple([_ALL if part is None else part for part in indices]))
    return (view, at) if at is not None else _resolve(x, (True, *indices))


@method
@policy("- widest")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of input with values at these indices: index_put_() into a copy.

    >>> norch.index_put(norch.zeros(3), (norch.tensor([0, 2]),), norch.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    if mode.casting and (out := in_autocast(index_put, input, indices, values, accumulate)) is not None:
        return out
    x = as_operand(input, "index_put")
    view, at = _places(x, indices)
    if view is not x:
        return index_put_(clone_for(x, values, *indices), indices, values, accumulate)
    values = to_device_of(as_operand(values, "index_put"), x)
    return index_write(x, at, values, PUT_ADD if flag(accumulate, "index_put: accumulate") else PUT, in_place=False)


METHODS.update(__getitem__=getitem, __setitem__=setitem)
