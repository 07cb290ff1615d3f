"""Attention in one call of the library (csrc/ops/attention.c); composed/attention.py says when, and what it means."""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge


def attention(query: Any, key: Any, value: Any, scale: float, causal: bool) -> Any:
    """softmax(query key^T scale) value, of float32 or float64 and with the same leading axes; causal: query i sees the
    keys up to i."""
    out = lib.norch_attention(query, key, value, scale, causal)
    if mode.enabled:
        edges = edge(query), edge(key), edge(value)
        if edges != (None, None, None):
            node = d.Attention(*edges)
            node._a, node._b, node._c, node._out, node.likes = query, key, value, None, None
            node.scale, node.causal = scale, causal
            out._node = node
    return out
