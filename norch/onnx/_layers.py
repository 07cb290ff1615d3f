"""The ONNX operators of layers and losses."""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import constants
from ._entry import entry, merged

_INT64 = constants["INT64"]


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
    attributes = _geometry(weight, geometry)
    extra = []
    for i, wanted in enumerate(size):
        step, kernel, dilation = attributes["strides"][i], weight.shape[2 + i], attributes["dilations"][i]
        inner = [step * (n - 1) + dilation * (kernel - 1) + 1 for n in g.each(y.shape[2 + i])]
        padding = attributes["pads"][i] + attributes["pads"][2 + i]
        paddings = {a - b + padding for a, b in zip(g.each(wanted), inner)}
        if len(paddings) > 1:
            g.refuse("gives a size that no output_padding of ONNX's ConvTranspose gives")
        extra.append(paddings.pop())
    return g.node("ConvTranspose", y, weight, *([] if bias is None else [bias]), **attributes, output_padding=extra)


def _pooled(g: Any, x: Any, window: Any, op: str, outputs: int, **more: Any) -> Any:
    """A pooling node over the last two axes. If the floor formula gives too few windows, max pools are padded at the
    end; other pools, and those for which this varies with the size, use ceil_mode."""
    kernel, stride, before, dilation, result = (list(window[i : i + 2]) for i in range(0, 10, 2))
    ceil, after = 0, list(before)
    for i in range(2):
        sizes, counts = g.each(x.shape[x.ndim - 2 + i]), g.each(result[i])
        spans = [n + 2 * before[i] - dilation[i] * (kernel[i] - 1) - 1 for n in sizes]
        if [span // stride[i] + 1 for span in spans] == counts:
            continue
        needed = {max(0, (c - 1) * stride[i] - span) for c, span in zip(counts, spans)}
        if len(needed) == 1 and op == "MaxPool":
            after[i] += needed.pop()
        else:
            ceil = 1
    images = x.name if x.ndim == 4 else g.node("Reshape", x, g.ints([-1, 1, *x.shape[-2:]]))
    if dilation != [1, 1]:
        more["dilations"] = dilation
    pooled = g.node(op, images, kernel_shape=kernel, strides=stride, pads=[*before, *after], ceil_mode=ceil,
                   outputs=outputs, **more)  # fmt: skip
    if x.ndim == 4:
        return pooled
    shape = g.ints([*x.shape[:-2], *result])
    return g.node("Reshape", pooled, shape) if outputs == 1 else [g.node("Reshape", out, shape) for out in pooled]


def _divided(g: Any, x: Any, window: Any, op: str) -> Any:
    """Adaptive pooling over the last two axes. Returns the window and strides of a pooling node if all windows have one
    size; else the name of the result, in which windows are reduced one by one and joined."""
    sizes, parts = x.shape[-2:], list(window[8:])
    if any(type(number) is tuple for number in (*sizes, *parts)):
        g.refuse("divides axes of a dynamic size, for which there is no ONNX operator")
    if all(size % count == 0 for size, count in zip(sizes, parts)):
        kernel = [size // count for size, count in zip(sizes, parts)]
        return [*kernel, *kernel, 0, 0, 1, 1, *parts]
    name = x.name
    for axis, size, count in zip((x.ndim - 2, x.ndim - 1), sizes, parts):
        bounds = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        pieces = [g.node(op, g.part(name, axis, *pair), g.number_list([axis]), keepdims=1) for pair in bounds]
        name = g.node("Concat", *pieces, axis=axis)
    return name


@entry("pool_max")
def _pool_max(g: Any, out: Any, x: Any, window: Any, index: Any) -> list[str]:
    if window[2] == 0:
        window = _divided(g, x, window, "ReduceMax")
        if isinstance(window, str):
            return [window, ""]
    best, place = _pooled(g, x, window, "MaxPool", 2)
    plane = g.scalar_of(merged([a * b for a, b in zip(g.each(x.shape[-2]), g.each(x.shape[-1]))]))
    return [best, g.node("Cast", g.node("Mod", place, plane), to=g.type_of(out[1].dtype))]


@entry("pool_avg")
def _pool_avg(g: Any, out: Any, x: Any, window: Any, count_padding: bool, divisor: float) -> str:
    if window[2] == 0:
        window = _divided(g, x, window, "ReduceMean")
        if isinstance(window, str):
            return window
    kernel, before = list(window[:2]), list(window[4:6])
    if kernel == x.shape[-2:] and list(window[8:]) == [1, 1] and before == [0, 0] and not divisor:
        return g.node("ReduceMean", x, g.number_list([x.ndim - 2, x.ndim - 1]), keepdims=1)
    if any(type(number) is tuple for number in window[:8]):
        g.refuse("averages over windows of a dynamic size, for which there is no ONNX operator")
    name = _pooled(g, x, window, "AveragePool", 1, count_include_pad=int(count_padding or bool(divisor)))
    return g.node("Mul", name, g.scalar(math.prod(kernel) / divisor, x.dtype)) if divisor else name


@entry("cross_entropy")
def _cross_entropy(
    g: Any, out: Any, x: Any, target: Any, log_sums: Any, count: Any, ignored: int, reduced: bool, smoothing: float
) -> list[str]:
    rest = [""] * (len(out) - 1)
    how = "none" if not reduced else "mean" if len(out) == 3 else "sum"  # a mean also writes a count
    if x.ndim == 1:
        g.refuse("takes one row, for which there is no entry; give the input and the target an axis of size 1")
    target = g.cast(target, _INT64)
    if not smoothing:
        return [g.node("SoftmaxCrossEntropyLoss", x, target, reduction=how, ignore_index=ignored), *rest]
    hard = g.node("SoftmaxCrossEntropyLoss", x, target, reduction="none", ignore_index=ignored)
    uniform = g.node("Neg", g.node("ReduceMean", g.node("LogSoftmax", x, axis=1), g.number_list([1]), keepdims=0))
    valid = g.node("Cast", g.node("Not", g.node("Equal", target, g.scalar(ignored, _INT64))), to=g.type_of(x.dtype))
    uniform = g.node("Mul", uniform, g.node("Mul", valid, g.scalar(smoothing, x.dtype)))
    losses = g.node("Add", g.node("Mul", hard, g.scalar(1.0 - smoothing, x.dtype)), uniform)
    if reduced:
        losses = g.node("ReduceSum", losses, keepdims=0)
    return [losses if how != "mean" else g.node("Div", losses, g.node("ReduceSum", valid, keepdims=0)), *rest]


@entry("nll")
def _nll(g: Any, out: Any, x: Any, target: Any, weight: Any, count: Any, ignored: int, reduced: bool) -> list[str]:
    if x.ndim == 1:
        g.refuse("takes one row, for which there is no entry; give the input and the target an axis of size 1")
    how = "none" if not reduced else "mean" if len(out) == 2 else "sum"
    targets = [g.cast(target, _INT64), *([] if weight is None else [g.cast(weight, x.dtype)])]
    name, minus_one = "NegativeLogLikelihoodLoss", g.scalar(-1.0, x.dtype)
    loss = g.node(name, x, *targets, reduction=how, ignore_index=ignored)
    if how != "mean":
        return [loss]
    ones = g.node("Clip", x, minus_one, minus_one)  # the losses of these are the weights
    return [loss, g.node(name, ones, *targets, reduction="sum", ignore_index=ignored)]


@entry("resample")
def _resample(g: Any, out: Any, x: Any, dim: int, index: Any, weights: Any) -> str:
    shape, parts = g.ints([-1, *[1] * (x.ndim - 1 - dim % x.ndim)]), []
    for tap in range(index.shape[0]):  # index -1 has weight 0
        places, factors = (g.node("Gather", t, g.scalar(tap, _INT64), axis=0) for t in (index, weights))
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
    for op, operand in (("Mul", weight), ("Add", bias)):
        if operand is not None:
            name = g.node(op, name, operand if shape is None else g.reshape(operand, shape))
    return name


def _group_norm(g: Any, x: Any, weight: Any, bias: Any, groups: int, eps: float) -> str:
    """InstanceNormalization with a group's channels merged, since GroupNormalization is deprecated in opset 18."""
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
    """ONNX's LSTM and GRU multiply the input by its weight themselves: if from_x is such a product, its factors are
    passed, else from_x with an identity matrix. ONNX orders the gates differently, and returns only the last c."""
    size = h.shape[-1]
    order = [0, 3, 1, 2] if c is not None else [1, 0, 2]
    rows = g.number_list([gate * size + i for gate in order for i in range(size)])
    steps, count, width = from_x.shape
    x, w, b = from_x.name, None, None
    factors = g.factors.get(from_x.name)
    if factors is not None and factors[1].shape[0] == width and factors[0].dtype == from_x.dtype:
        source, w_ref, b = factors
        x, w = g.reshape(source, [steps, count, source.shape[-1]]), w_ref.name
    if w is None:
        eye = [float(i == j) for i in range(width) for j in range(width)]
        w = g._constant((width, width), eye, from_x.dtype)

    def ordered(bias_ref: str) -> str:
        return g.node("Unsqueeze", g.node("Gather", bias_ref, rows, axis=0), g.number_list([0]))

    zero = _ones(g, from_x, (width,), 0.0)
    biases = [g.node("Gather", bias_ref.name if bias_ref is not None else zero, rows, axis=0) for bias_ref in (b, bias)]
    both = g.node("Unsqueeze", g.node("Concat", *biases, axis=0), g.number_list([0]))
    states = [g.node("Unsqueeze", bias_ref, g.number_list([0])) for bias_ref in (h, c) if bias_ref is not None]
    attributes = {"hidden_size": size, "direction": "reverse" if reverse else "forward"}
    inputs = [x, ordered(w), ordered(weight.name), both, "", *states]
    if c is None:
        outputs = g.node("GRU", *inputs, outputs=2, linear_before_reset=1, **attributes)
    else:
        outputs = g.node("LSTM", *inputs, outputs=3, **attributes)
    hs = g.node("Squeeze", outputs[0], g.number_list([1]))
    return [hs, "", *outputs[2:]]
