"""The ONNX operators of scans, sorting and indexing, for _calls.py."""

from __future__ import annotations

from typing import Any

from .._binding.library import constants

_INT64 = constants["INT64"]


def scan(g: Any, out: Any, kind: int, x: Any, dim: int, reverse: bool) -> str:
    if kind != constants["SCAN_SUM"]:
        g.refuse("is a running product or extreme, for which there is no ONNX operator")
    return g.node("CumSum", g.cast(x, out[0].dtype), g.scalar(dim % max(x.ndim, 1), _INT64), reverse=int(reverse))


def _top(g: Any, x: Any, dim: int, k: Any, descending: bool) -> Any:
    axis = dim % max(x.ndim, 1)
    count = x.shape[axis] if k == -1 else k
    return g.node("TopK", x, g.ints([count]), outputs=2, axis=axis, largest=int(descending), sorted=1)


def argsort(g: Any, out: Any, x: Any, dim: int, k: Any, descending: bool, values: Any) -> list[str]:
    return _top(g, x, dim, k, descending)[::-1]


def sorted_(g: Any, out: Any, x: Any, dim: int, descending: bool) -> str:
    return _top(g, x, dim, -1, descending)[0]


def gather(g: Any, out: Any, x: Any, dim: int, index: Any) -> str:
    return g.node("GatherElements", x, g.cast(index, _INT64), axis=dim)


_REDUCTIONS = {"SCATTER": "none", "SCATTER_ADD": "add", "SCATTER_PROD": "mul", "SCATTER_AMAX": "max",
               "SCATTER_AMIN": "min", "PUT": "none", "PUT_ADD": "add", "FILL": "none", "COPY": "none",
               "ADD": "add"}  # fmt: skip
_OF_KIND = {constants["INDEX_" + name]: how for name, how in _REDUCTIONS.items()}


def scatter(g: Any, out: Any, x: Any, kind: int, dim: int, index: Any, src: Any, in_place: bool) -> str:
    values = g.cast(src, x.dtype)
    if src.ndim != index.ndim:
        values = g.node("Expand", values, g.ints(index.shape))
    elif src.shape != index.shape:
        whole = list(range(src.ndim))
        values = g.node("Slice", values, g.number_list([0] * src.ndim), g.ints(index.shape), g.number_list(whole))
    return g.node("ScatterElements", x, g.cast(index, _INT64), values, axis=dim, reduction=_OF_KIND[kind])


def _at(g: Any, x: Any, indices: Any, axes: Any) -> tuple[Any, list[int], str, int]:
    """x with the indexed axes first, that order, the indices for ONNX's *ND operators, and their number of axes."""
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


def index_get(g: Any, out: Any, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int) -> str:
    if len(indices) == 1 and axes[0] == lead:
        return g.node("Gather", x, g.cast(indices[0], _INT64), axis=lead)
    source, _, at, ndim = _at(g, x, indices, axes)
    found = g.node("GatherND", source, at)
    order = list(range(ndim, ndim + lead)) + list(range(ndim)) + list(range(ndim + lead, out[0].ndim))
    return found if lead == 0 else g.node("Transpose", found, perm=order)


def index_put(
    g: Any, out: Any, x: Any, kind: int, indices: Any, axes: Any, named: Any, lead: int, values: Any, in_place: bool
) -> str:
    source, order, at, ndim = _at(g, x, indices, axes)
    rest = order[len(indices) :]
    counts = [size for i in range(ndim) for size in [_index_size(indices, i, ndim)]]
    shape = [*(x.shape[axis] for axis in rest[:lead]), *counts, *(x.shape[axis] for axis in rest[lead:])]
    given = g.cast(values, x.dtype)
    given = g.node("Expand", given, g.ints(shape)) if shape else given
    if lead:
        perm = [*range(lead, lead + ndim), *range(lead), *range(lead + ndim, len(shape))]
        given = g.node("Transpose", given, perm=perm)
    found = g.node("ScatterND", source, at, given, reduction=_OF_KIND[kind])
    back = [order.index(i) for i in range(x.ndim)]
    return found if order == list(range(x.ndim)) else g.node("Transpose", found, perm=back)


def _index_size(indices: Any, i: int, ndim: int) -> Any:
    each = [index.shape[i - ndim + index.ndim] for index in indices if i - ndim + index.ndim >= 0]
    return next((size for size in each if size != 1), 1)
