"""The ONNX operators of rows, casts, copies, views and products.

Layers and losses are in _layers.py, scans, sorting and indexing in _indices.py.
"""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import constants
from ._entry import ENTRIES, entry, merged
from ._rows import binary, reduction, ternary, unary

_INT64 = constants["INT64"]

# ---- rows, casts, copies ---------------------------------------------------------------------------------------------

ENTRIES.update(unary=unary, binary=binary, ternary=ternary, reduce=reduction)
ENTRIES["unary_into"] = lambda g, out, into, op, x: _into(g, out, into, unary(g, out, op, x))
ENTRIES["binary_into"] = lambda g, out, into, op, a, b: _into(g, out, into, binary(g, out, op, a, b))
ENTRIES["ternary_into"] = lambda g, out, into, op, a, b, c: _into(g, out, into, ternary(g, out, op, a, b, c))


def _into(g: Any, out: Any, into: Any, name: str) -> str:
    """The result of an in-place operation, in the shape of its target; `out` has the target's dtype."""
    return g.node("Expand", name, g.ints(into.shape)) if into.ndim else name


@entry("copy")
def _copy(g: Any, out: Any, into: Any, source: Any) -> str:
    return _into(g, out, into, g.cast(source, into.dtype))


@entry("cast")
def _cast(g: Any, out: Any, x: Any, dtype: int) -> str:
    return g.cast(x, out[0].dtype)


@entry("clone", "contiguous", "alias", "to_device")
def _same(g: Any, out: Any, x: Any, *rest: Any) -> str:
    return x.name


@entry("full_like")
def _full_like(g: Any, out: Any, x: Any, dtype: int, value: float, integer: int) -> str:
    kind = out[0].kind
    number = bool(integer or value) if kind == "b" else integer if kind in "iu" else value
    return g.node("Expand", g.scalar(number, out[0].dtype), g.ints(out[0].shape))


@entry("empty_like")
def _empty_like(g: Any, out: Any, x: Any, last: int) -> str:
    return g.node("Expand", g.scalar(0, out[0].dtype), g.ints(out[0].shape))


@entry("cat")
def _cat(g: Any, out: Any, xs: Any, dim: int) -> str:
    kept = [x for x in xs if not (x.ndim == 1 and x.shape[0] == 0 and out[0].ndim > 1)]
    return g.node("Concat", *(g.cast(x, out[0].dtype) for x in kept), axis=dim)


@entry("pad")
def _pad(g: Any, out: Any, x: Any, before: Any, after: Any, mode: int, value: Any) -> str:
    lead, name = [0] * (x.ndim - len(before)), x.name
    if mode != constants["PAD_CIRCULAR"]:
        names = {constants[f"PAD_{ours}"]: theirs for ours, theirs in _PADDINGS.items()}
        return g.node("Pad", name, g.ints([*lead, *before, *lead, *after]), g.cast(value, x.dtype), mode=names[mode])
    for axis, (first, last) in enumerate(zip(before, after), len(lead)):
        parts = [name]
        if first:
            parts.insert(0, g.part(name, axis, tuple(-n for n in first) if type(first) is tuple else -first, None, 1))
        if last:
            parts.append(g.part(name, axis, None, last, 1))
        name = g.node("Concat", *parts, axis=axis) if len(parts) > 1 else name
    return name


_PADDINGS = {"CONSTANT": "constant", "REFLECT": "reflect", "REPLICATE": "edge"}


@entry("stack")
def _stack(g: Any, out: Any, xs: Any, dim: int) -> str:
    axis = g.number_list([dim % out[0].ndim])
    return g.node("Concat", *(g.node("Unsqueeze", g.cast(x, out[0].dtype), axis) for x in xs), axis=dim)


# ---- views -----------------------------------------------------------------------------------------------------------


@entry("view", "reshape", "flatten", "reshape_as")
def _reshape(g: Any, out: Any, x: Any, *rest: Any) -> str:
    name = x.name if x.shape == out[0].shape else g.reshape(x, out[0].shape)
    if x.name in g.factors and x.shape[-1:] == out[0].shape[-1:]:
        g.factors[name] = g.factors[x.name]
    return name


@entry("positions")
def _positions(g: Any, out: Any, x: Any) -> str:
    """The index of each element, in the shape of x."""
    counts = [math.prod(sizes) for sizes in zip(*(g.each(size) for size in x.shape))] if x.ndim else [1]
    return g.reshape(g.arange(merged(counts)), x.shape)


@entry("put")
def _put(g: Any, out: Any, x: Any, at: Any, values: Any) -> str:
    """x with values at these indices."""
    minus_one = g.number_list([-1])
    flat, places, cast_values = (g.node("Reshape", each, minus_one) for each in (x, at, g.cast(values, x.dtype)))
    return g.reshape(g.node("ScatterElements", flat, places, cast_values, axis=0), x.shape)


@entry("permute")
def _permute(g: Any, out: Any, x: Any, axes: Any) -> str:
    return g.node("Transpose", x, perm=[axis % x.ndim for axis in axes])


@entry("transpose")
def _transpose(g: Any, out: Any, x: Any, dim0: int, dim1: int) -> str:
    order = list(range(x.ndim))
    if not order:
        return x.name
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.node("Transpose", x, perm=order)


@entry("reverse_axes")
def _reverse_axes(g: Any, out: Any, x: Any) -> str:
    return g.node("Transpose", x, perm=list(range(x.ndim))[::-1])


@entry("expand", "expand_as")
def _expand(g: Any, out: Any, x: Any, *rest: Any) -> str:
    return g.node("Expand", x, g.ints(out[0].shape))


@entry("expand_reduced")
def _expand_reduced(g: Any, out: Any, x: Any, like: Any, dims: Any, keepdim: bool) -> str:
    name = x.name
    if like.ndim and (not keepdim or x.ndim != like.ndim):
        axes = sorted(dim % like.ndim for dim in dims) if dims else list(range(like.ndim))
        name = g.node("Unsqueeze", x, g.number_list(axes))
    return g.node("Expand", name, g.ints(out[0].shape))


@entry("squeeze")
def _squeeze(g: Any, out: Any, x: Any, dims: Any) -> str:
    axes = [i for i, size in enumerate(x.shape) if size == 1]
    if dims is not None:
        axes = [axis for axis in axes if axis in [dim % max(x.ndim, 1) for dim in dims]]
    return g.node("Squeeze", x, g.number_list(axes)) if axes else x.name


@entry("unsqueeze")
def _unsqueeze(g: Any, out: Any, x: Any, dim: int) -> str:
    return g.node("Unsqueeze", x, g.number_list([dim % out[0].ndim]))


@entry("select")
def _select(g: Any, out: Any, x: Any, dim: int, index: Any) -> str:
    return g.node("Gather", x, g.scalar_of(index), axis=dim % x.ndim)


@entry("slice")
def _slice(g: Any, out: Any, x: Any, dim: int, start: Any, stop: Any, step: int) -> str:
    return g.part(x, dim % x.ndim, start, stop, step)


@entry("narrow")
def _narrow(g: Any, out: Any, x: Any, dim: int, start: Any, length: Any) -> str:
    starts, lengths, sizes = (g.each(number) for number in (start, length, x.shape[dim]))
    stops = [(a if a >= 0 else a + n) + b for a, b, n in zip(starts, lengths, sizes)]
    return g.part(x, dim % x.ndim, start, None if stops == sizes else merged(stops), 1)


@entry("region")
def _region(g: Any, out: Any, x: Any, index: Any) -> str:
    """Slices, then removes axes, then adds some."""
    parts = [list(part) for part in zip(*g.indices())]
    skipped = x.ndim - sum(1 for part in parts if part[0] is not None and part[0] is not Ellipsis)
    if not any(part[0] is Ellipsis for part in parts):
        parts.append([Ellipsis])
    name, axis, removed, added = x.name, 0, [], []
    place = 0  # axis of the result
    for part in parts:
        first = part[0]
        if first is Ellipsis:
            axis, place, skipped = axis + skipped, place + skipped, 0
        elif first is None:
            added.append(place)
            place += 1
        elif isinstance(first, slice):
            bounds = [merged([getattr(item, which) for item in part]) for which in ("start", "stop")]
            name = g.part(name, axis, bounds[0], bounds[1], 1 if first.step is None else int(first.step))
            axis, place = axis + 1, place + 1
        else:
            if x.ndim:
                removed.append((axis, merged([int(item) for item in part])))
            axis += 1
    for axis, number in reversed(removed):
        name = g.node("Gather", name, g.scalar_of(number), axis=axis)
    return g.node("Unsqueeze", name, g.number_list(added)) if added else name


def _moved(g: Any, name: Any, ndim: int, start: int, end: int) -> str:
    """Moves one axis."""
    order = list(range(ndim))
    order.insert(end, order.pop(start))
    return name if order == sorted(order) else g.node("Transpose", name, perm=order)


@entry("unfold")
def _unfold(g: Any, out: Any, x: Any, dim: int, size: int, step: int) -> str:
    axis = dim % x.ndim
    count = out[0].shape[axis]
    starts = g.node("Mul", g.arange(count), g.scalar(step, _INT64))
    starts = g.node("Unsqueeze", starts, g.number_list([1]))
    windows = g.node("Gather", x, g.node("Add", starts, g.arange(size)), axis=axis)
    return _moved(g, windows, x.ndim + 1, axis + 1, x.ndim)


@entry("diagonal")
def _diagonal(g: Any, out: Any, x: Any, offset: int, dim0: int, dim1: int) -> str:
    a, b, n = dim0 % x.ndim, dim1 % x.ndim, x.ndim
    order = [axis for axis in range(n) if axis not in (a, b)]
    last = g.node("Transpose", x, perm=[*order, a, b])
    count, high, wide = out[0].shape[-1], x.shape[a], x.shape[b]
    if type(high) is not int or type(wide) is not int:
        g.refuse("takes a diagonal of dynamic sizes, for which there is no ONNX operator")
    flat = g.reshape(last, [*(x.shape[axis] for axis in order), high * wide])
    start = offset if offset >= 0 else -offset * wide
    return g.node("Gather", flat, g.number_list([start + i * (wide + 1) for i in range(count)]), axis=n - 2)


# ---- products --------------------------------------------------------------------------------------------------------


def _flipped(g: Any, x: Any, wanted: bool = True) -> Any:
    """The last two axes transposed."""
    if not wanted or x.ndim < 2:
        return x
    order = list(range(x.ndim))
    return g.node("Transpose", x, perm=[*order[:-2], order[-1], order[-2]])


@entry("matmul")
def _matmul(g: Any, out: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> str:
    return g.node("MatMul", _flipped(g, a, transpose_a), _flipped(g, b, transpose_b))


@entry("product")
def _product(g: Any, out: Any, kind: int, a: Any, b: Any) -> str:
    return g.node("MatMul", a, b)


@entry("linear")
def _linear(g: Any, out: Any, x: Any, weight: Any, bias: Any, epilogue: int) -> str:
    if x.ndim == 2 and weight.ndim == 2:
        name = g.node("Gemm", x, weight, *([] if bias is None else [bias]), transB=1)
    else:
        name = g.node("MatMul", x, _flipped(g, weight))
        name = name if bias is None else g.node("Add", name, bias)
    if epilogue == -1:
        g.factors[name] = x, weight, bias
    return name if epilogue == -1 else unary(g, out, epilogue, _named(out[0], name))


def _named(like: Any, name: str) -> Any:
    """The Ref of another value with the same shape and dtype."""
    result = object.__new__(type(like))
    for slot in type(like).__slots__:
        setattr(result, slot, getattr(like, slot))
    result.name = name
    return result


@entry("addmm")
def _addmm(g: Any, out: Any, residual: Any, a: Any, b: Any, beta: float, alpha: float) -> str:
    dtype = out[0].dtype
    product = g.node("MatMul", a, b) if a.ndim > 1 else g.node("Mul", g.node("Unsqueeze", a, g.number_list([1])), b)
    product = g.node("Mul", product, g.scalar(alpha, dtype))
    return g.node("Add", product, g.node("Mul", residual, g.scalar(beta, dtype))) if beta else product


@entry("attention")
def _attention(
    g: Any, out: Any, q: Any, k: Any, v: Any, mask: Any, seed: Any, scale: float, causal: bool, dropout: float
) -> str:
    if type(scale) is tuple:
        g.refuse("scales by a dynamic size, for which there is no entry; pass scale=")
    scores = g.node("MatMul", g.node("Mul", q, g.scalar(scale, q.dtype)), _flipped(g, k))
    if causal:
        row = g.node("Unsqueeze", g.arange(q.shape[-2]), g.number_list([1]))
        seen = g.node("LessOrEqual", g.arange(k.shape[-2]), row)
        scores = g.node("Where", seen, scores, g.scalar(-math.inf, q.dtype))
    if mask is None:
        return g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    hidden, last = g.scalar(-math.inf, q.dtype), g.number_list([-1])
    added = g.node("Where", mask, g.scalar(0, q.dtype), hidden) if mask.kind == "b" else mask.name
    blind = g.node("Equal", g.node("ReduceMax", added, last, keepdims=1), hidden)  # a row without visible keys gives 0
    scores = g.node("Add", scores, g.node("Where", blind, g.scalar(0, q.dtype), added))
    seen = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    return g.node("Where", blind, g.scalar(0, q.dtype), seen)
