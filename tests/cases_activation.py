"""The cases of activations: the rows of norch/ops/activation.py, and what is composed of them. See case.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from case import ALL_NAMES, FLOAT_NAMES, NUMBER_NAMES, Array, wide
from cases_pointwise import UNARY_SHAPES, also, backward_row, erf, sigmoid, unary

from norch.ops.activation import huber

# ---- rows -----------------------------------------------------------------------------------------------------------

unary(
    "silu",
    lambda x: x / (1 + np.exp(-x)),
    call=lambda m, x: m.nn.functional.silu(x),
    dtypes=FLOAT_NAMES,
    grad=2,
    slack=2,
)
unary(
    "gelu",
    lambda x: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
    call=lambda m, x: m.nn.functional.gelu(x),
    dtypes=FLOAT_NAMES,
    grad=2,
    slack=200,  # 1 + erf(x) cancels for negative x, in PyTorch
    torch_edges="its value at infinity is NaN where it computes in vectors of AVX-512",
)


def _silu_slope(x: Array) -> Array:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def _gelu_slope(x: Array) -> Array:
    return 0.5 * (1 + erf(x * math.sqrt(0.5))) + x / math.sqrt(2 * math.pi) * np.exp(-0.5 * x * x)


backward_row(
    "silu",
    lambda a, b: a * _silu_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.silu_backward(a, b),
    scaled=True,
    edges=False,  # norch gives the limits 0 and 1 at infinity
)
backward_row(
    "gelu",
    lambda a, b: a * _gelu_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.gelu_backward(a, b),
    scaled=True,
    torch_edges="its derivative at infinity is NaN, here the limit 0",
)


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_tanh_slope(x: Array) -> Array:
    bend = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * bend


def _softplus(x: Array, beta: float = 1, threshold: float = 20) -> Array:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 700))) / beta)


def _mish_slope(x: Array) -> Array:
    t = np.tanh(_softplus(x))
    return t + x * sigmoid(x) * (1 - t * t)


backward_row(
    "gelu_tanh",
    lambda a, b: a * _gelu_tanh_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.gelu_backward(a, b, approximate="tanh"),
    scaled=True,
    edges=False,  # norch gives the limits 0 and 1 where a square overflows
)
backward_row(
    "mish",
    lambda a, b: a * _mish_slope(b),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.mish_backward(a, b),
    scaled=True,
    edges=False,  # norch gives the limit 1 at infinity
)


backward_row(
    "hardswish",
    lambda a, b: np.where(b <= -3, 0, np.where(b < 3, a * (b / 3 + 0.5), a)),
    grad=2,
    torch=lambda t, a, b: t.ops.aten.hardswish_backward(a, b),
    scaled=True,
    torch_edges="its slope at NaN depends on where the element lies",
)

_SELU, _SELU_BELOW = 1.0507009873554805, 1.7580993408473766
backward_row("hardsigmoid", lambda a, b: np.where(np.abs(b) < 3, a / 6, 0), grad=2, inputs=(0,))
backward_row("relu6", lambda a, b: np.where((b <= 0) | (b >= 6), 0, a), grad=2, inputs=(0,))
backward_row("selu", lambda a, b: a * np.where(b <= 0, _SELU_BELOW * np.exp(np.minimum(b, 0)), _SELU), grad=2)
backward_row("softsign", lambda a, b: a / (1 + np.abs(b)) / (1 + np.abs(b)), grad=2)
backward_row("logsigmoid", lambda a, b: a * sigmoid(-b), grad=2, slack=2)
backward_row("tanhshrink", lambda a, b: a * np.tanh(b) ** 2, grad=2, slack=4, edges=False)
backward_row("hardtanh", lambda a, b, c: np.where(np.abs(b) >= c, 0, a), grad=2, inputs=(0,))
backward_row("shrink", lambda a, b, c: np.where(np.abs(b) <= c, 0, a), grad=2, inputs=(0,))
backward_row("threshold", lambda a, b, c: np.where(b <= c, 0, a), grad=2, inputs=(0,))
backward_row("leaky_relu", lambda a, b, c: np.where(b > 0, a, a * c), grad=2, inputs=(0, 2))
backward_row(  # exp() underflows, as in the next one
    "elu",
    lambda a, b, c: np.where(b > 0, a, a * (c * np.exp(np.minimum(b, 0)))),
    grad=2,
    inputs=(0, 1),
    edges=False,
)
backward_row(
    "celu", lambda a, b, c: np.where(b > 0, a, a * np.exp(np.minimum(b, 0) / c)), grad=2, inputs=(0, 1), edges=False
)
backward_row("softplus", lambda a, b, c: np.where(b > c, a, a * sigmoid(b)), grad=2, inputs=(0, 1), slack=2)
backward_row("huber", lambda a, b, c: a * np.clip(b, -c, c), grad=2, inputs=(0, 1))


# PyTorch picks the slope at NaN by whether the element is computed alone or in a vector.
AT_NAN = {"torch_edges": "its slope at NaN depends on where the element lies"}


def activation(name: str, reference: Any, *arguments: Any, row: str = "", label: str = "", **more: Any) -> None:
    """A function of nn.functional of one tensor, and arguments that follow it."""
    method = more.pop("call", lambda m, x: getattr(m.nn.functional, name)(x, *arguments))
    more.setdefault("dtypes", FLOAT_NAMES)
    more.setdefault("grad", 2)
    more.setdefault("shapes", UNARY_SHAPES)
    also(label or name, row, method, reference, **more)


def _elu(x: Array, alpha: float, scale: float = 1, inside: float = 1) -> Array:
    return scale * np.where(x > 0, x, alpha * np.expm1(inside * np.minimum(x, 0)))


activation(
    "gelu",
    _gelu_tanh,
    label="gelu tanh",
    row="gelu_tanh",
    slack=200,
    call=lambda m, x: m.nn.functional.gelu(x, approximate="tanh"),
    torch_edges="its slope is NaN where a square overflows",
)
activation("mish", lambda x: x * np.tanh(_softplus(x)), row="mish", slack=4, torch_edges="its slope at infinity is NaN")
activation("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, row="hardswish", domains=wide(-5.0, 5.0), **AT_NAN)
activation(
    "softsign",
    lambda x: x / (1 + np.abs(x)),
    row="softsign",
    torch_edges="its slope at infinity is NaN",
    dtypes=ALL_NAMES,
    result="float",
)
activation("logsigmoid", lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), row="logsigmoid")
activation("elu", lambda x: _elu(x, 1), row="elu", **AT_NAN)
activation("elu", lambda x: _elu(x, 0.3), 0.3, label="elu 0.3", **AT_NAN)
activation("celu", lambda x: _elu(x, 1.5, 1, 1 / 1.5), 1.5, row="celu", **AT_NAN)
activation("selu", lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805), row="selu", **AT_NAN)
activation("softplus", _softplus, row="softplus", slack=2)
activation("softplus", lambda x: _softplus(x, 2, 3), 2, 3, label="softplus 2 3", slack=2)
activation("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), row="leaky_relu")
activation("leaky_relu", lambda x: np.where(x > 0, x, 0.3 * x), 0.3, label="leaky_relu 0.3")
activation("rrelu", lambda x: np.where(x > 0, x, x * 11 / 48), row="rrelu")
activation("relu6", lambda x: np.clip(x, 0, 6), dtypes=NUMBER_NAMES, domains=wide(-9.0, 9.0), **AT_NAN)
activation("hardtanh", lambda x: np.clip(x, -1, 1), dtypes=[name for name in NUMBER_NAMES if name != "uint8"], **AT_NAN)
activation("hardtanh", lambda x: np.clip(x, -2, 1), -2, 1, label="hardtanh -2 1", **AT_NAN)
activation(
    "hardsigmoid",
    lambda x: np.clip(x + 3, 0, 6) / 6,
    row="hardsigmoid",
    domains=wide(-5.0, 5.0),
    torch=lambda t, x: t.nn.functional.hardtanh(x + 3, 0, 6) / 6,  # whose own slope is 1/6 in float32
    **AT_NAN,
)
activation("tanhshrink", lambda x: x - np.tanh(x), row="tanhshrink", scaled=True, dtypes=ALL_NAMES, result="float")
activation("hardshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), row="hardshrink", **AT_NAN)
activation("hardshrink", lambda x: np.where(np.abs(x) <= 2, 0, x), 2.0, label="hardshrink 2", **AT_NAN)
activation("softshrink", lambda x: x - np.clip(x, -0.5, 0.5), row="softshrink", scaled=True, **AT_NAN)
activation(
    "huber",
    lambda x: np.where(np.abs(x) < 1.5, 0.5 * x * x, 1.5 * np.abs(x) - 1.125),
    row="huber",
    call=lambda m, x: huber(x, x.new_full((), 1.5)),
    torch=lambda t, x: t.nn.functional.huber_loss(x, t.zeros_like(x), reduction="none", delta=1.5),
    domains=wide(-5.0, 5.0),
    **AT_NAN,
)
activation("softshrink", lambda x: x - np.clip(x, -2, 2), 2.0, label="softshrink 2", scaled=True, **AT_NAN)
activation("threshold", lambda x: np.where(x <= 1, 2, x), 1, 2, row="threshold", dtypes=NUMBER_NAMES)
activation("glu", lambda x: x[..., :2] * sigmoid(x[..., 2:]), shapes=(((3, 4),), ((2, 0, 4),), ((4,),)), edges=False)
activation("glu", lambda x: x[:1] * sigmoid(x[1:]), 0, label="glu 0", shapes=(((2, 3),), ((2,),)), edges=False)
activation(
    "softmin",
    lambda x: np.exp(-x) / np.exp(-x).sum(-1, keepdims=True),
    -1,
    shapes=(((3, 5),), ((7,),)),
    edges=False,
    slack=4,
)
also(
    "prelu",
    "prelu",
    lambda m, x, w: m.nn.functional.prelu(x, w),
    lambda x, w: np.where(x > 0, x, x * w.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 1 else x * w),
    domains=((-3.0, 3.0), (0.1, 0.5)),
    shapes=(((2, 3, 4), (3,)), ((4, 3), (3,)), ((4, 3), (1,)), ((5,), (1,)), ((), ()), ((2, 0, 3), (1,))),
    dtypes=FLOAT_NAMES,
    grad=2,
    edges=False,
)
