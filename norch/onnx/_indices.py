"""The ONNX operators of scans, sorting and indexing."""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from ._entry import entry

_INT64 = constants["INT64"]


@entry("scan")
def _scan(g: Any, out: Any, kind: int, x: Any, dim: int, reverse: bool) -> str:
    if not x.ndim or kind not in (constants["SCAN_SUM"], constants["SCAN_PROD"]):
        g.refuse("is of a number, or a running extreme or logsumexp, for which there is no ONNX operator")
    source, axis = g.cast(x, out[0].dtype), dim % x.ndim
    if kind == constants["SCAN_SUM"]:
        return g.node("CumSum", source, g.scalar(axis, _INT64), reverse=int(reverse))
    shape = [*x.shape[:axis], *x.shape[axis + 1 :]]
    unit = g.scalar(1, out[0].dtype)
    first = g.node("Expand", unit, g.ints(shape)) if shape else unit
    way = {"scan_input_axes": [axis], "scan_output_axes": [axis]}
    way.update({f"scan_{end}_directions": [int(reverse)] for end in ("input", "output")})
    body = g.step_of("Mul", out[0].dtype, len(shape))
    return g.node("Scan", first, source, outputs=2, num_scan_inputs=1, body=body, **way)[1]


def _top(g: Any, x: Any, dim: int, k: Any, descending: bool) -> Any:
    axis = dim % max(x.ndim, 1)
    count = x.shape[axis] if k == -1 else k
    return g.node("TopK", x, g.ints([count]), outputs=2, axis=axis, largest=int(descending), sorted=1)


@entry("argsort")
def _argsort(g: Any, out: Any, x: Any, dim: int, k: Any, descending: bool, values: Any) -> list[str]:
    return _top(g, x, dim, k, descending)[::-1]


@entry("sorted")
def _sorted(g: Any, out: Any, x: Any, dim: int, descending: bool) -> str:
    return _top(g, x, dim, -1, descending)[0]


@entry("order_index")
def _order_index(g: Any, out: Any, x: Any, dim: int, k: int) -> str:
    axis = dim % max(x.ndim, 1)
    if k == constants["NANMEDIAN"] or not x.ndim or type(x.shape[axis]) is not int:
        g.refuse("ranks elements but for NaN, or over an axis of a dynamic size, for which there is no ONNX operator")
    place = (x.shape[axis] - 1) // 2 if k == constants["MEDIAN"] else k
    return g.part(_top(g, x, dim, place + 1, False)[1], axis, place, place + 1)


@entry("searchsorted")
def _searchsorted(g: Any, out: Any, ordered: Any, values: Any, right: bool) -> str:
    """The number of elements before each value, by comparing with all."""
    wide = lib.norch_result_type([ordered.example, values.example])
    row = g.node("Unsqueeze", g.cast(ordered, wide), g.number_list([-2])) if ordered.ndim > 1 else g.cast(ordered, wide)
    each = g.node("Unsqueeze", g.cast(values, wide), g.number_list([-1]))
    before = g.node("LessOrEqual" if right else "Less", row, each)
    return g.node("ReduceSum", g.node("Cast", before, to=g.type_of(_INT64)), g.number_list([-1]), keepdims=0)


@entry("gather")
def _gather(g: Any, out: Any, x: Any, dim: int, index: Any) -> str:
    return g.node("GatherElements", x, g.cast(index, _INT64), axis=dim)


_REDUCTIONS = {"SCATTER": "none", "SCATTER_ADD": "add", "SCATTER_PROD": "mul", "SCATTER_AMAX": "max",
               "SCATTER_AMIN": "min", "PUT": "none", "PUT_ADD": "add", "FILL": "none", "COPY": "none",
               "ADD": "add"}  # fmt: skip
_OF_KIND = {constants["INDEX_" + name]: how for name, how in _REDUCTIONS.items()}


@entry("scatter")
def _scatter(g: Any, out: Any, x: Any, kind: int, dim: int, index: Any, src: Any, in_place: bool) -> str:
    values = g.cast(src, x.dtype)
    if src.ndim != index.ndim:
        values = g.node("Expand", values, g.ints(index.shape))
    elif src.shape != index.shape:
        whole = list(range(src.ndim))
        values = g.node("Slice", values, g.number_list([0] * src.ndim), g.ints(index.shape), g.number_list(whole))
    return g.node("ScatterElements", x, g.cast(index, _INT64), values, axis=dim, reduction=_OF_KIND[kind])


def _at(g: Any, x: Any, indices: Any, axes: Any) -> tuple[Any, list[int], str, int]:
    """x with the indexed axes first, the permutation, the indices for ONNX's *ND operators, and their number of
    axes."""
    first = list(axes)
    order = first + [axis for axis in range(x.ndim) if axis not in first]
    source = x if order == list(range(x.ndim)) else g.node("Transpose", x, perm=order)
    shapes = [index.shape for index in indices]
    ndim = max(map(len, shapes))
    names = [g.cast(index, _INT64) for index in indices]
    if len(indices) > 1 and any(shape != shapes[0] for shape in shapes):
        sizes = []
        for i in range(ndim):
            each = [shape[i - ndim + len(shape)] for shape in shapes if i - ndim + len(shape) >= 0]
            sizes.append(next((size for size in each if size != 1), 1))
        names = [g.node("Expand", name, g.ints(sizes)) for name in names]
    last = g.number_list([ndim])
    stacked = [g.node("Unsqueeze", name, last) for name in names]
    return source, order, stacked[0] if len(stacked) == 1 else g.node("Concat", *stacked, axis=ndim), ndim


@entry("index_get")
def _index_get(g: Any, out: Any, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int) -> str:
    if len(indices) == 1 and axes[0] == lead:
        return g.node("Gather", x, g.cast(indices[0], _INT64), axis=lead)
    source, _, at, ndim = _at(g, x, indices, axes)
    gathered = g.node("GatherND", source, at)
    order = list(range(ndim, ndim + lead)) + list(range(ndim)) + list(range(ndim + lead, out[0].ndim))
    return gathered if lead == 0 else g.node("Transpose", gathered, perm=order)


@entry("index_put")
def _index_put(
    g: Any, out: Any, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int, values: Any, in_place: bool
) -> str:
    source, order, at, ndim = _at(g, x, indices, axes)
    rest = order[len(indices) :]
    counts = [size for i in range(ndim) for size in [_index_size(indices, i, ndim)]]
    shape = [*(x.shape[axis] for axis in rest[:lead]), *counts, *(x.shape[axis] for axis in rest[lead:])]
    cast_values = g.cast(values, x.dtype)
    cast_values = g.node("Expand", cast_values, g.ints(shape)) if shape else cast_values
    if lead:
        perm = [*range(lead, lead + ndim), *range(lead), *range(lead + ndim, len(shape))]
        cast_values = g.node("Transpose", cast_values, perm=perm)
    scattered = g.node("ScatterND", source, at, cast_values, reduction=_OF_KIND[kind])
    back = [order.index(i) for i in range(x.ndim)]
    return scattered if order == list(range(x.ndim)) else g.node("Transpose", scattered, perm=back)


def _index_size(indices: Any, i: int, ndim: int) -> Any:
    each = [index.shape[i - ndim + index.ndim] for index in indices if i - ndim + index.ndim >= 0]
    return next((size for size in each if size != 1), 1)
