"""The named tuples that operations with two results give; the fields have the names that they have in PyTorch."""

from __future__ import annotations

from typing import Any, NamedTuple

# ruff: noqa: N801, D101  (PyTorch's names)


class ValuesAndIndices(NamedTuple):
    """Elements, and where they lie."""

    values: Any
    indices: Any


# Subclasses, as making a NamedTuple takes 100 us at import.
class max_result(ValuesAndIndices):
    __slots__ = ()


class min_result(ValuesAndIndices):
    __slots__ = ()


class cummax_result(ValuesAndIndices):
    __slots__ = ()


class cummin_result(ValuesAndIndices):
    __slots__ = ()


class sort_result(ValuesAndIndices):
    __slots__ = ()


class topk_result(ValuesAndIndices):
    __slots__ = ()


class median_result(ValuesAndIndices):
    __slots__ = ()


class nanmedian_result(ValuesAndIndices):
    __slots__ = ()


class mode_result(ValuesAndIndices):
    __slots__ = ()


class kthvalue_result(ValuesAndIndices):
    __slots__ = ()


class aminmax_result(NamedTuple):
    min: Any
    max: Any


class frexp_result(NamedTuple):
    mantissa: Any
    exponent: Any
