"""Attention (Vaswani et al., "Attention Is All You Need", 2017), composed of products and a softmax."""

from __future__ import annotations

import math
from typing import Any

from ..._handle import Handle
from ..._lib import lib
from ...device import place
from ...dtype import bool_
from ...errors import ArgumentError, ShapeError
from ..matmul import product
from ..pointwise import where
from ..softmax import softmax
from .diagonal import triu


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query key^T scale + mask) value, over query (..., L, E), key (..., S, E) and value (..., S, V).

    attn_mask: broadcast to (..., L, S); bool (True takes part) or floats that are added. is_causal: position i sees
    positions up to i only. scale: 1 / sqrt(E) unless given. A row that sees nothing gives NaN. dropout_p must be 0.

    >>> x = norch.eye(2)
    >>> norch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[0]
    tensor([1., 0.])
    """
    name = "scaled_dot_product_attention"
    for what, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Handle):
            raise TypeError(f"{name}: expected a tensor as {what}, not {type(x).__name__}")
        if x.ndim < 2:
            raise ShapeError(f"{name}: expected {what} of 2 or more dimensions, got shape {tuple(x.shape)}")  # type: ignore[attr-defined]
    if dropout_p != 0.0:
        raise ArgumentError(f"{name}: dropout_p {dropout_p} is not supported, only 0")
    if is_causal and attn_mask is not None:
        raise ArgumentError(f"{name}: give attn_mask or is_causal, not both")
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    size = query.shape[-1]
    factor = (1 / math.sqrt(size) if size else math.inf) if scale is None else scale
    scores = product(query * factor, key, False, True)
    if is_causal:
        ahead = lib.norch_full(scores.shape[-2:], scores.dtype.code, -math.inf, 0, place(scores.device))
        scores = scores + triu(ahead, 1)
    elif attn_mask is not None:
        scores = where(attn_mask, scores, -math.inf) if attn_mask.dtype is bool_ else scores + attn_mask
    return product(softmax(scores, -1), value)
