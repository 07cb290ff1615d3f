"""Attention of several heads as a function of its weights: F.multi_head_attention_forward."""

from __future__ import annotations

from typing import Any

from ...dtype import bool_
from ...errors import ArgumentError, ShapeError
from ...ops._operand import tensor_of
from ...ops.attention import attention_mask
from ...ops.copy import cat
from ...tensor import Tensor
from .. import functional as F
from ..attention import attended

NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """nn.MultiheadAttention with its weights as arguments (Vaswani et al. 2017, section 3.2.2).

    query: (L, N, E); key, value: (S, N, E), or of other last sizes with use_separate_proj_weight; or all without N.
    in_proj_weight: (3 * E, E), or q_proj_weight, k_proj_weight and v_proj_weight; in_proj_bias: (3 * E,). bias_k and
    bias_v (1, 1, E) are a further key and value, add_zero_attn a further one of zeros. static_k and static_v (N *
    num_heads, S, E / num_heads) stand for the projected key and value. Masks and results are those of
    MultiheadAttention with batch_first=False. ShapeError and ArgumentError for what does not fit.

    >>> x, w = norch.ones(5, 3, 8), norch.ones(24, 8)
    >>> F = norch.nn.functional
    >>> out, weights = F.multi_head_attention_forward(
    ...     x, x, x, 8, 2, w, None, None, None, False, 0.0, norch.ones(8, 8), None)
    >>> out.shape, weights.shape
    (norch.Size([5, 3, 8]), norch.Size([3, 5, 5]))
    """
    shapes = ", ".join(str(tuple(tensor_of(x, NAME).shape)) for x in (query, key, value))
    of_weights = in_proj_weight, in_proj_bias, bias_k, bias_v, q_proj_weight, k_proj_weight, v_proj_weight
    for x in (*of_weights, static_k, static_v, key_padding_mask, attn_mask):
        if x is not None:
            tensor_of(x, NAME)
    batched = query.ndim == 3
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(f"{NAME}: expected three tensors of two or of three dimensions, got {shapes}")
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, n, embed_dim = query.shape
    if embed_dim != embed_dim_to_check or num_heads < 1 or embed_dim % num_heads:
        raise ShapeError(f"{NAME}: {num_heads} heads of {embed_dim_to_check} in all do not fit {shapes}")
    if (bias_k is None) != (bias_v is None) or (bias_k is not None and not static_k is static_v is None):
        raise ArgumentError(f"{NAME}: bias_k and bias_v come together, and without static_k and static_v")
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{NAME}: is_causal needs an attn_mask")
    for what, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is not None:
            attention_mask(mask, f"{NAME}: {what}")
    weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = (None,) * 3 if in_proj_weight is None else in_proj_weight.chunk(3)
    if any(w is None for w in weights):
        raise ArgumentError(f"{NAME}: there are no weights of the projections")
    biases: Any = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = map(F.linear, (query, key, value), weights, biases)
    if bias_k is not None and bias_v is not None:
        k, v = cat([k, bias_k.expand(1, n, -1)]), cat([v, bias_v.expand(1, n, -1)])
    head = embed_dim // num_heads
    q, k, v = (x.unflatten(-1, (num_heads, head)).permute(1, 2, 0, 3) for x in (q, k, v))  # (N, heads, length, head)
    k = k if static_k is None else static_k.reshape(n, num_heads, -1, head)
    v = v if static_v is None else static_v.reshape(n, num_heads, -1, head)
    if add_zero_attn:
        zeros = k.new_zeros(n, num_heads, 1, head)
        k, v = cat([k, zeros], 2), cat([v, zeros], 2)
    further = k.shape[2] - (key.shape[0] if static_k is None else static_k.shape[1])
    other = k.shape[2] - further
    masks = {(length, other): (length, other), (n * num_heads, length, other): (n, num_heads, length, other)}
    mask = _added(q, attn_mask, masks, further)
    padding = _added(q, key_padding_mask, {(n, other): (n, 1, 1, other)}, further)
    mask = padding if mask is None else mask if padding is None else mask + padding
    p = dropout_p if training else 0.0
    seen: Tensor | None = None
    if need_weights:
        out, seen = attended(q, k, v, mask, head**-0.5, p, average_attn_weights)
        seen = seen if batched else seen.squeeze(0)
    else:
        out = F.scaled_dot_product_attention(q, k, v, mask, p)
    out = F.linear(out.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), seen


def _added(
    q: Tensor, mask: Tensor | None, shapes: dict[tuple[int, ...], tuple[int, ...]], further: int
) -> Tensor | None:
    """A mask as floats that are added to the scores, 0 for further keys; shapes: those it may have, and what they
    become."""
    if mask is None:
        return None
    if tuple(mask.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise ShapeError(f"{NAME}: a mask of shape {tuple(mask.shape)}, expected {expected}")
    mask = mask.reshape(shapes[tuple(mask.shape)])
    if mask.dtype is bool_:
        mask = q.new_zeros(mask.shape).masked_fill_(mask, float("-inf"))
    return F.pad(mask, (0, further)) if further else mask
