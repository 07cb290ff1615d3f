"""The ONNX operators of each library call: one entry a call, a function of the graph, the results (Refs) and the
arguments of the call (Refs, numbers, and Sizes), which gives the names of the results.

Rows of csrc/ops.def are in _rows.py, scans, sorting and indexing in _indices.py. A call without an entry is refused by
its name and the line of the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._binding.library import constants
from . import _indices
from ._rows import binary, reduction, ternary, unary

ENTRIES: dict[str, Callable[..., Any]] = {}
_INT64 = constants["INT64"]


def entry(*names: str) -> Callable[[Any], Any]:
    """Decorates the function of library calls."""

    def declare(function: Any) -> Any:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return declare


ENTRIES.update(
    scan=_indices.scan,
    argsort=_indices.argsort,
    sorted=_indices.sorted_,
    gather=_indices.gather,
    scatter=_indices.scatter,
    index_get=_indices.index_get,
    index_put=_indices.index_put,
)


# ---- rows, casts, copies ---------------------------------------------------------------------------------------------

ENTRIES.update(unary=unary, binary=binary, ternary=ternary, reduce=reduction)
ENTRIES["unary_into"] = lambda g, out, into, op, x: _into(g, out, into, unary(g, out, op, x))
ENTRIES["binary_into"] = lambda g, out, into, op, a, b: _into(g, out, into, binary(g, out, op, a, b))
ENTRIES["ternary_into"] = lambda g, out, into, op, a, b, c: _into(g, out, into, ternary(g, out, op, a, b, c))


def _into(g: Any, out: Any, into: Any, name: str) -> str:
    """What an in-place operation computes, in the shape of what it writes to, whose dtype `out` has."""
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
            parts.insert(0, _part(g, name, axis, tuple(-n for n in first) if type(first) is tuple else -first, None, 1))
        if last:
            parts.append(_part(g, name, axis, None, last, 1))
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
    """The numbers of elements, in the shape of x."""
    counts = [math.prod(sizes) for sizes in zip(*(_each(g, size) for size in x.shape))] if x.ndim else [1]
    return g.reshape(g.arange(_bound(counts)), x.shape)


@entry("put")
def _put(g: Any, out: Any, x: Any, at: Any, values: Any) -> str:
    """x with values at these positions."""
    one = g.number_list([-1])
    flat, places, given = (g.node("Reshape", each, one) for each in (x, at, g.cast(values, x.dtype)))
    return g.reshape(g.node("ScatterElements", flat, places, given, axis=0), x.shape)


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


def _scalar_of(g: Any, size: Any) -> str:
    """A Size as a 0-d tensor."""
    return g.scalar(size, _INT64) if type(size) is int else g.node("Squeeze", g.size(size), g.number_list([0]))


@entry("select")
def _select(g: Any, out: Any, x: Any, dim: int, index: Any) -> str:
    return g.node("Gather", x, _scalar_of(g, index), axis=dim % x.ndim)


def _part(g: Any, x: Any, axis: int, start: Any, stop: Any, step: int) -> str:
    """x[start:stop:step] along an axis; bounds are cut as Python cuts them, by ONNX too."""
    least = -(1 << 63) if step < 0 else 0
    first = start if start is not None else (1 << 62 if step < 0 else 0)
    last = stop if stop is not None else (least if step < 0 else 1 << 62)
    if (first, last, step) == (0, 1 << 62, 1):
        return x if isinstance(x, str) else x.name
    return g.node("Slice", x, g.ints([first]), g.ints([last]), g.number_list([axis]), g.number_list([step]))


@entry("slice")
def _slice(g: Any, out: Any, x: Any, dim: int, start: Any, stop: Any, step: int) -> str:
    return _part(g, x, dim % x.ndim, start, stop, step)


@entry("narrow")
def _narrow(g: Any, out: Any, x: Any, dim: int, start: Any, length: Any) -> str:
    starts, lengths, sizes = (_each(g, one) for one in (start, length, x.shape[dim]))
    stops = [(a if a >= 0 else a + n) + b for a, b, n in zip(starts, lengths, sizes)]
    return _part(g, x, dim % x.ndim, start, None if stops == sizes else _bound(stops), 1)


def _bound(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else tuple(values)


@entry("region")
def _region(g: Any, out: Any, x: Any, index: Any) -> str:
    """Slices, then what removes axes, then what adds some."""
    parts = [list(part) for part in zip(*g.indices())]
    used = sum(1 for part in parts if part[0] is not None and part[0] is not Ellipsis)
    if not any(part[0] is Ellipsis for part in parts):
        parts.append([Ellipsis])
    name, axis, removed, added = x.name, 0, [], []
    place = 0  # in the result
    for part in parts:
        first = part[0]
        if first is Ellipsis:
            axis, place = axis + x.ndim - used, place + x.ndim - used
        elif first is None:
            added.append(place)
            place += 1
        elif isinstance(first, slice):
            bounds = [_bound([getattr(one, which) for one in part]) for which in ("start", "stop")]
            name = _part(g, name, axis, bounds[0], bounds[1], 1 if first.step is None else int(first.step))
            axis, place = axis + 1, place + 1
        else:
            if x.ndim:
                removed.append((axis, _bound([int(one) for one in part])))
            axis += 1
    for axis, number in reversed(removed):
        name = g.node("Gather", name, _scalar_of(g, number), axis=axis)
    return g.node("Unsqueeze", name, g.number_list(added)) if added else name


def _moved(g: Any, name: Any, ndim: int, start: int, end: int) -> str:
    """One axis moved."""
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
    """The Ref of another value of the same shape and dtype."""
    found = object.__new__(type(like))
    for slot in type(like).__slots__:
        setattr(found, slot, getattr(like, slot))
    found.name = name
    return found


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
    blind = g.node("Equal", g.node("ReduceMax", added, last, keepdims=1), hidden)  # a row that sees nothing gives 0
    scores = g.node("Add", scores, g.node("Where", blind, g.scalar(0, q.dtype), added))
    seen = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    return g.node("Where", blind, g.scalar(0, q.dtype), seen)


# ---- layers ----------------------------------------------------------------------------------------------------------


@entry("softmax")
def _softmax(g: Any, out: Any, x: Any, dim: int, log: bool) -> str:
    if not x.ndim:
        return g.scalar(0 if log else 1, x.dtype)
    return g.node("LogSoftmax" if log else "Softmax", x, axis=dim)


@entry("conv")
def _conv(g: Any, out: Any, x: Any, weight: Any, bias: Any, geometry: Any) -> str:
    return g.node("Conv", x, weight, *([] if bias is None else [bias]), **_geometry(weight, geometry))


def _geometry(weight: Any, geometry: Any) -> dict[str, Any]:
    stride, before, after, dilation = (list(geometry[i : i + 2]) for i in (0, 2, 4, 6))
    pads, kernel = [*before, *after], weight.shape[2:]
    return {"strides": stride, "pads": pads, "dilations": dilation, "group": geometry[8], "kernel_shape": kernel}


@entry("conv_input")
def _conv_input(g: Any, out: Any, y: Any, weight: Any, bias: Any, geometry: Any, size: Any) -> str:
    given = _geometry(weight, geometry)
    extra = []
    for i, wanted in enumerate(size):
        step, kernel, dilation = given["strides"][i], weight.shape[2 + i], given["dilations"][i]
        inner = [step * (n - 1) + dilation * (kernel - 1) + 1 for n in _each(g, y.shape[2 + i])]
        padding = given["pads"][i] + given["pads"][2 + i]
        found = {a - b + padding for a, b in zip(_each(g, wanted), inner)}
        if len(found) > 1:
            g.refuse("gives a size that no output_padding of ONNX's ConvTranspose gives")
        extra.append(found.pop())
    return g.node("ConvTranspose", y, weight, *([] if bias is None else [bias]), **given, output_padding=extra)


def _each(g: Any, size: Any) -> list[int]:
    """A Size in each trace."""
    return list(size if type(size) is tuple else (size,) * len(g.traces))


def _pooled(g: Any, x: Any, window: Any, op: str, outputs: int, **more: Any) -> Any:
    """A pooling node. Padding after is what the number of windows needs, or ONNX's ceil_mode where that varies."""
    kernel, stride, before, dilation, result = (list(window[i : i + 2]) for i in range(0, 10, 2))
    ceil, after = 0, list(before)
    for i in range(2):
        sizes, counts = _each(g, x.shape[x.ndim - 2 + i]), _each(g, result[i])
        spans = [n + 2 * before[i] - dilation[i] * (kernel[i] - 1) - 1 for n in sizes]
        if [span // stride[i] + 1 for span in spans] == counts:
            continue
        needed = {max(0, (c - 1) * stride[i] - span) for c, span in zip(counts, spans)}
        if len(needed) == 1 and op == "MaxPool":
            after[i] += needed.pop()
        else:
            ceil = 1
    name = x.name if x.ndim == 4 else g.node("Unsqueeze", x, g.number_list([0]))
    if dilation != [1, 1]:
        more["dilations"] = dilation
    found = g.node(op, name, kernel_shape=kernel, strides=stride, pads=[*before, *after], ceil_mode=ceil,
                   outputs=outputs, **more)  # fmt: skip
    if x.ndim == 4:
        return found
    zero = g.number_list([0])
    return g.node("Squeeze", found, zero) if outputs == 1 else [g.node("Squeeze", one, zero) for one in found]


@entry("pool_max")
def _pool_max(g: Any, out: Any, x: Any, window: Any, index: Any) -> list[str]:
    best, place = _pooled(g, x, window, "MaxPool", 2)
    plane = _scalar_of(g, _bound([a * b for a, b in zip(_each(g, x.shape[-2]), _each(g, x.shape[-1]))]))
    return [best, g.node("Cast", g.node("Mod", place, plane), to=g.type_of(out[1].dtype))]


@entry("pool_avg")
def _pool_avg(g: Any, out: Any, x: Any, window: Any, count_padding: bool, divisor: float) -> str:
    kernel, before = list(window[:2]), list(window[4:6])
    if kernel == x.shape[-2:] and list(window[8:]) == [1, 1] and before == [0, 0] and not divisor:
        return g.node("ReduceMean", x, g.number_list([x.ndim - 2, x.ndim - 1]), keepdims=1)
    if any(type(number) is tuple for number in window[:8]):
        g.refuse("averages over windows of a dynamic size, for which there is no ONNX operator")
    name = _pooled(g, x, window, "AveragePool", 1, count_include_pad=int(count_padding or bool(divisor)))
    return g.node("Mul", name, g.scalar(math.prod(kernel) / divisor, x.dtype)) if divisor else name


@entry("resample")
def _resample(g: Any, out: Any, x: Any, dim: int, index: Any, weights: Any) -> str:
    shape, parts = g.ints([-1, *[1] * (x.ndim - 1 - dim % x.ndim)]), []
    for tap in range(index.shape[0]):  # an index of -1 has the weight 0
        places, factors = (g.node("Gather", one, g.scalar(tap, _INT64), axis=0) for one in (index, weights))
        parts.append(g.node("Mul", g.node("Gather", x, places, axis=dim % x.ndim), g.node("Reshape", factors, shape)))
    return g.node("Sum", *parts)


@entry("grid_sample")
def _grid_sample(g: Any, out: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> str:
    if x.ndim == 5 and g.opset < 20:
        g.refuse("samples volumes, for which there is an ONNX operator from opset_version=20 on")
    name = ("linear nearest cubic" if g.opset >= 20 else "bilinear nearest bicubic").split()[mode]
    outside = ("zeros", "border", "reflection")[padding]
    return g.node("GridSample", x, grid, mode=name, padding_mode=outside, align_corners=int(corners))


def _ones(g: Any, x: Any, shape: Any, value: float = 1.0) -> str:
    return g._constant(tuple(shape), [value] * math.prod(shape), x.dtype)


@entry("normalize")
def _normalize(g: Any, out: Any, x: Any, weight: Any, bias: Any, axes: int, eps: float, centered: bool) -> str:
    if axes < 0:
        return _group_norm(g, x, weight, bias, -axes, eps)
    inner = x.shape[x.ndim - axes :]
    if centered and all(type(size) is int for size in inner):
        scale = weight if weight is not None else _ones(g, x, inner)
        return g.node("LayerNormalization", x, scale, *([] if bias is None else [bias]), axis=-axes, epsilon=eps)
    over = g.number_list(list(range(x.ndim - axes, x.ndim)))
    name = g.node("Sub", x, g.node("ReduceMean", x, over)) if centered else x.name
    variance = g.node("ReduceMean", g.node("Mul", name, name), over)
    name = g.node("Div", name, g.node("Sqrt", g.node("Add", variance, g.scalar(eps, x.dtype))))
    return _affine(g, name, weight, bias, None)


def _affine(g: Any, name: str, weight: Any, bias: Any, shape: Any) -> str:
    for op, one in (("Mul", weight), ("Add", bias)):
        if one is not None:
            name = g.node(op, name, one if shape is None else g.reshape(one, shape))
    return name


def _group_norm(g: Any, x: Any, weight: Any, bias: Any, groups: int, eps: float) -> str:
    """InstanceNormalization with the channels of a group as one: GroupNormalization of opset 18 is deprecated."""
    rows = g.node("Reshape", x, g.number_list([0, groups, -1]))
    name = g.node("InstanceNormalization", rows, _ones(g, x, (groups,)), _ones(g, x, (groups,), 0.0), epsilon=eps)
    return _affine(g, g.reshape(name, x.shape), weight, bias, [-1, *[1] * (x.ndim - 2)])


@entry("batch_norm")
def _batch_norm(
    g: Any, out: Any, x: Any, mean: Any, variance: Any, running_mean: Any, running_variance: Any, weight: Any,
    bias: Any, momentum: float, eps: float,
) -> str:  # fmt: skip
    if mean is not None or running_mean is None:
        g.refuse("normalizes by the statistics of the batch, for which there is no entry; export in eval mode")
    channels = x.shape[1:2]
    scale = weight if weight is not None else _ones(g, x, channels)
    shift = bias if bias is not None else _ones(g, x, channels, 0.0)
    return g.node("BatchNormalization", x, scale, shift, running_mean, running_variance, epsilon=eps)


@entry("recurrent")
def _recurrent(
    g: Any, out: Any, from_x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool, *written: Any
) -> list[str]:
    """LSTM and GRU of ONNX multiply the input by its weight themselves: where from_x is such a product, its factors are
    passed; else from_x with an identity. Their gates come in another order. Of all c only the last is given."""
    size = h.shape[-1]
    order = [0, 3, 1, 2] if c is not None else [1, 0, 2]
    rows = g.number_list([gate * size + i for gate in order for i in range(size)])
    steps, count, width = from_x.shape
    x, w, b = from_x.name, None, None
    made = g.factors.get(from_x.name)
    if made is not None and made[1].shape[0] == width and made[0].dtype == from_x.dtype:
        source, w_ref, b = made
        x, w = g.reshape(source, [steps, count, source.shape[-1]]), w_ref.name
    if w is None:
        eye = [float(i == j) for i in range(width) for j in range(width)]
        w = g._constant((width, width), eye, from_x.dtype)

    def ordered(one: str) -> str:
        return g.node("Unsqueeze", g.node("Gather", one, rows, axis=0), g.number_list([0]))

    zero = _ones(g, from_x, (width,), 0.0)
    biases = [g.node("Gather", one.name if one is not None else zero, rows, axis=0) for one in (b, bias)]
    both = g.node("Unsqueeze", g.node("Concat", *biases, axis=0), g.number_list([0]))
    states = [g.node("Unsqueeze", one, g.number_list([0])) for one in (h, c) if one is not None]
    given = {"hidden_size": size, "direction": "reverse" if reverse else "forward"}
    inputs = [x, ordered(w), ordered(weight.name), both, "", *states]
    if c is None:
        found = g.node("GRU", *inputs, outputs=2, linear_before_reset=1, **given)
    else:
        found = g.node("LSTM", *inputs, outputs=3, **given)
    hs = g.node("Squeeze", found[0], g.number_list([1]))
    return [hs, "", *found[2:]]
