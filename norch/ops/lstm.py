"""One step of an LSTM as one node: what nn.LSTM and nn.LSTMCell take, which would else record a dozen of them."""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.function import Output
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge
from ._forms import OPS

_SIGMOID, _TANH, _MUL, _ADDCMUL = (OPS[name] for name in ("sigmoid", "tanh", "mul", "addcmul"))


def _sigmoid(x: Any) -> Any:
    return lib.norch_unary(_SIGMOID, x)


def lstm(gates: Any, c: Any) -> Any:
    """(h', c'), from gates (..., 4 H) in the order i, f, g, o and the state c (..., H) of the same dtype:
    c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').

    Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).
    """
    size = c.shape[-1]
    i, f, n, o = [lib.norch_slice(gates, -1, k * size, (k + 1) * size, 1) for k in range(4)]
    i, f, n, o = _sigmoid(i), _sigmoid(f), lib.norch_unary(_TANH, n), _sigmoid(o)
    new_c = lib.norch_ternary(_ADDCMUL, lib.norch_binary(_MUL, i, n), f, c)
    t = lib.norch_unary(_TANH, new_c)
    new_h = lib.norch_binary(_MUL, o, t)
    if mode.enabled:
        to_gates, to_c = edge(gates), edge(c)
        if to_gates is not None or to_c is not None:
            node = d.Lstm(to_gates, to_c)
            node._a, node._b, node._out, node.likes = None, c, None, None
            node.kept = i, f, n, o, t
            new_h._node, new_c._node = Output(node, 0), Output(node, 1)
    return new_h, new_c
