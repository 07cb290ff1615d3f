"""Named tuples for operations with two results, as in PyTorch."""

from __future__ import annotations

from .._package.typing import NamedTuple, Tensor

max_result = NamedTuple("max_result", [("values", Tensor), ("indices", Tensor)])
min_result = NamedTuple("min_result", [("values", Tensor), ("indices", Tensor)])
cummax_result = NamedTuple("cummax_result", [("values", Tensor), ("indices", Tensor)])
cummin_result = NamedTuple("cummin_result", [("values", Tensor), ("indices", Tensor)])
sort_result = NamedTuple("sort_result", [("values", Tensor), ("indices", Tensor)])
topk_result = NamedTuple("topk_result", [("values", Tensor), ("indices", Tensor)])
kthvalue_result = NamedTuple("kthvalue_result", [("values", Tensor), ("indices", Tensor)])
median_result = NamedTuple("median_result", [("values", Tensor), ("indices", Tensor)])
nanmedian_result = NamedTuple("nanmedian_result", [("values", Tensor), ("indices", Tensor)])
mode_result = NamedTuple("mode_result", [("values", Tensor), ("indices", Tensor)])
aminmax_result = NamedTuple("aminmax_result", [("min", Tensor), ("max", Tensor)])
histogram_result = NamedTuple("histogram_result", [("hist", Tensor), ("bin_edges", Tensor)])
histogramdd_result = NamedTuple("histogramdd_result", [("hist", Tensor), ("bin_edges", tuple[Tensor, ...])])
frexp_result = NamedTuple("frexp_result", [("mantissa", Tensor), ("exponent", Tensor)])
