"""One step of an LSTM as one node: what nn.LSTM and nn.LSTMCell take, which would else record a dozen of them."""

from __future__ import annotations

from typing import Any

from .._handle import alias, zeros_of
from .._lib import lib
from ..autograd.derivative import derivative
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import mode
from ..autograd.record import gradient_edge, record
from .copy import cat
from .op import OPCODES
from .pointwise import sigmoid, sigmoid_backward, tanh, tanh_backward

_SIGMOID, _TANH, _MUL, _ADDCMUL = (OPCODES[name] for name in ("sigmoid", "tanh", "mul", "addcmul"))


def _sigmoid(x: Any) -> Any:
    return lib.norch_unary(_SIGMOID, x)


def lstm(gates: Any, c: Any) -> Any:
    """(h', c'), from gates (..., 4 H) in the order i, f, n, o and the state c (..., H) of the same dtype:
    c' = sigmoid(f) c + sigmoid(i) tanh(n), h' = sigmoid(o) tanh(c').

    Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).
    """
    size = lib.norch_shape(c)[-1]
    i, f, n, o = [lib.norch_slice(gates, -1, k * size, (k + 1) * size, 1) for k in range(4)]
    i, f, n, o = _sigmoid(i), _sigmoid(f), lib.norch_unary(_TANH, n), _sigmoid(o)
    new_c = lib.norch_ternary(_ADDCMUL, lib.norch_binary(_MUL, i, n), f, c)
    t = lib.norch_unary(_TANH, new_c)
    new_h = lib.norch_binary(_MUL, o, t)
    if mode.enabled:
        node = record(_Lstm, new_h, (gates, c), ((i, f, n, o, t, gradient_edge(gates)),))._node
        if node is not None:
            new_h._node, new_c._node = Output(node, 0), Output(node, 1)
    return new_h, new_c


def _lstm_backward(g: Outputs, c: Any, kept: Any, needs_input_grad: tuple[bool, ...]) -> tuple[Any, Any]:
    """kept: the gates' values, tanh(c') and, instead of the gates, where their gradient goes."""
    i, f, n, o, t, to_gates = kept
    if mode.enabled:
        i, f, n, o = _with_history((i, f, n, o), to_gates)
        t = (f * c + i * n).tanh()
    g_c = g.get(1)  # g holds the gradients of h' and c', or of one of them
    g_h = g[0] if 0 in g else zeros_of(g[1])
    by_h = tanh_backward(g_h * o, t)
    g_c = by_h if g_c is None else g_c + by_h
    parts = (
        sigmoid_backward(g_c * n, i),
        sigmoid_backward(g_c * c, f),
        tanh_backward(g_c * i, n),
        sigmoid_backward(g_h * t, o),
    )
    return cat(parts, -1), g_c * f if needs_input_grad[1] else None


def _with_history(values: Any, to_gates: Any) -> list[Any]:
    """The values as functions of the gates, for second derivatives: those of sigmoid and tanh need the results only."""
    size = values[0].shape[-1]
    gates = values[0].new_empty((*values[0].shape[:-1], 4 * size))
    gates._node = to_gates
    functions: Any = (sigmoid, sigmoid, tanh, sigmoid)
    return [
        record(function.node_class, alias(value), (part,))
        for function, value, part in zip(functions, values, gates.chunk(4, -1))
    ]


_Lstm = derivative("lstm", ("gates", "c"), backward=_lstm_backward)
