"""Named tuples for operations with two results, as in PyTorch.

They are plain classes, made at import: to make a NamedTuple takes ten times as long.
"""

from __future__ import annotations

from operator import itemgetter

from .._typing import Any, Tensor


def _elements(count: int) -> Any:
    return (property(itemgetter(i)) for i in range(count))


class _Named(tuple[Tensor, Tensor]):
    __slots__ = ()
    _fields: tuple[str, ...]

    def __new__(cls, first: Any, second: Any) -> Any:
        return tuple.__new__(cls, (first, second))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in zip(self._fields, self, strict=True))})"
        )


class _ValuesAndIndices(_Named):
    __slots__ = ()
    _fields = ("values", "indices")
    values: Tensor
    indices: Tensor
    values, indices = _elements(2)


class max_result(_ValuesAndIndices):
    __slots__ = ()


class min_result(_ValuesAndIndices):
    __slots__ = ()


class cummax_result(_ValuesAndIndices):
    __slots__ = ()


class cummin_result(_ValuesAndIndices):
    __slots__ = ()


class sort_result(_ValuesAndIndices):
    __slots__ = ()


class topk_result(_ValuesAndIndices):
    __slots__ = ()


class kthvalue_result(_ValuesAndIndices):
    __slots__ = ()


class median_result(_ValuesAndIndices):
    __slots__ = ()


class nanmedian_result(_ValuesAndIndices):
    __slots__ = ()


class mode_result(_ValuesAndIndices):
    __slots__ = ()


class aminmax_result(_Named):
    __slots__ = ()
    _fields = ("min", "max")
    min: Tensor
    max: Tensor
    min, max = _elements(2)


class histogram_result(_Named):
    __slots__ = ()
    _fields = ("hist", "bin_edges")
    hist, bin_edges = (property(itemgetter(i)) for i in range(2))


class frexp_result(_Named):
    __slots__ = ()
    _fields = ("mantissa", "exponent")
    mantissa: Tensor
    exponent: Tensor
    mantissa, exponent = _elements(2)
