"""What the functions of the array API share: promotion, and axes as the standard has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import dtype as DType
from ..dtype import get_default_dtype, int64, promote_types
from ..tensor import Tensor

KINDS = "b", "ui", "f", "c"  # of dtypes, from the lowest to the highest


def _rank(kind: str) -> int:
    return next(rank for rank, kinds in enumerate(KINDS) if kind in kinds)


def result_type(*arrays_and_dtypes: Tensor | DType | complex) -> DType:
    """The dtype that all of these promote to, 0-d arrays as others. A Python number takes part by its kind only."""
    dtypes: list[DType] = []
    kinds: list[str] = []
    for each in arrays_and_dtypes:
        if isinstance(each, DType):
            dtypes.append(each)
        elif isinstance(each, Tensor):
            dtypes.append(each.dtype)
        else:
            kinds.append(_kind_of(each))
    if not dtypes:
        raise ValueError("result_type: expected an array or a dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote_types(result, dtype)
    highest = max(kinds, key=_rank, default="b")
    if _rank(highest) > _rank(result.kind):
        if highest == "i" or result.kind != "f":
            result = promote_types(result, int64 if highest == "i" else get_default_dtype())
        result = result.to_complex() if highest == "c" else result
    return result


def _kind_of(number: Any) -> str:
    for kind, cls in zip("bifc", (bool, int, float, complex)):
        if isinstance(number, cls):
            return kind
    raise TypeError(f"result_type: {type(number).__name__} is no array, dtype or Python number")


def promoted(*values: Any) -> list[Any]:
    """The values, with 0-d arrays cast as the standard promotes them: norch has them give way, as PyTorch does."""
    arrays = [x for x in values if isinstance(x, Tensor)]
    if len({x.dtype for x in arrays}) < 2 or len({x.ndim == 0 for x in arrays}) < 2:
        return list(values)
    wanted = result_type(*values)
    return [x.to(wanted) if isinstance(x, Tensor) else x for x in values]


def of_one_dtype(*arrays: Tensor) -> list[Tensor]:
    """The arrays, cast to the dtype that they promote to."""
    dtype = result_type(*arrays)
    return [x.to(dtype) for x in arrays]


def axes_of(x: Tensor, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes to reduce: all of them for None."""
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def reduced(function: Callable[..., Any], x: Tensor, axis: Any, keepdims: bool, **options: Any) -> Any:
    """function(x, axes). norch reduces all axes if axes is (); the standard reduces none, so this reduces a new axis of
    size 1.
    """
    axes = axes_of(x, axis)
    return function(x, axes, keepdims, **options) if axes else function(x.unsqueeze(0), 0, False, **options)


def sum_dtype(x: Tensor, dtype: DType | None) -> DType | None:
    """The dtype of a sum or product: at least int64 for integers."""
    return int64 if dtype is None and x.dtype.kind in "ui" else dtype
