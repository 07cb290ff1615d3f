"""MultiheadAttention: linear projections around scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.exports import publish
from ..dtype import bool_
from ..dtype import dtype as DType
from ..errors import ArgumentError, ShapeError
from ..ops._entry import composed
from ..ops._operand import tensor_of
from ..ops.attention import attention_mask
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import add_parameters

__all__ = ["MultiheadAttention"]


@composed
def attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout_p: float, average: bool
) -> tuple[Tensor, Tensor]:
    """What each query sees of v, and the weights with which it does, of each head or the mean of the heads."""
    scores = q @ k.mT * scale
    weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), dropout_p, True)
    return weights @ v, weights.mean(1) if average else weights


class MultiheadAttention(Module):
    """concat(head_1, ..., head_h) W_out, with head_i = softmax(Q_i K_i^T / sqrt(head_dim)) V_i and Q, K, V linear
    projections, with a bias if `bias`, of query, key and value (Vaswani et al. 2017, section 3.2.2).

    query: (L, N, embed_dim); key: (S, N, kdim); value: (S, N, vdim); with batch_first, N comes first; or all without
    N. Returns the output, of the shape of query, and the attention weights: (N, L, S), averaged over the heads, or (N,
    num_heads, L, S) without average_attn_weights, or None without need_weights, which allows one fused kernel if there
    is no mask and no dropout. attn_mask: (L, S) or (N * num_heads, L, S); key_padding_mask: (N, S); bools, True for
    positions to ignore, or floats that are added to the scores. is_causal: attn_mask is the causal mask and is not
    read. dropout applies to the weights. add_bias_kv: a further key and value, which are parameters; add_zero_attn:
    a further key and value of zeros. ShapeError for other shapes.

    >>> attention = norch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = norch.ones(3, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (norch.Size([3, 5, 8]), norch.Size([3, 5, 5]))
    """

    in_proj_weight: Any  # None if kdim or vdim differ from embed_dim; otherwise the next three are None
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any  # None without add_bias_kv
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = one = self.kdim == self.vdim == embed_dim
        inputs = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        add_parameters(self, device, dtype, **{name: None if one else (embed_dim, n) for name, n in inputs.items()})
        add_parameters(self, device, dtype, in_proj_weight=(3 * embed_dim, embed_dim) if one else None)
        add_parameters(self, device, dtype, in_proj_bias=3 * embed_dim if bias else None)
        further = (1, 1, embed_dim) if add_bias_kv else None
        add_parameters(self, device, dtype, bias_k=further, bias_v=further)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes the input projections by xavier_uniform_ and the biases to 0."""
        for weight in self._in_weights() if not self._qkv_same_embed_dim else [self.in_proj_weight]:
            init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for further in (self.bias_k, self.bias_v):
            if further is not None:
                init.xavier_normal_(further)

    _reset_parameters = reset_parameters  # PyTorch's name

    def _in_weights(self) -> Any:
        if self._qkv_same_embed_dim:
            return self.in_proj_weight.chunk(3)
        return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        shapes = ", ".join(str(tuple(tensor_of(x, "MultiheadAttention").shape)) for x in (query, key, value))
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ShapeError(f"MultiheadAttention: expected three tensors of two or of three dimensions, got {shapes}")
        if (query.shape[-1], key.shape[-1], value.shape[-1]) != (self.embed_dim, self.kdim, self.vdim):
            wanted = f"{self.embed_dim}, {self.kdim} and {self.vdim}"
            raise ShapeError(f"MultiheadAttention: expected last sizes of {wanted}, got {shapes}")
        for what, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
            if mask is not None:
                attention_mask(mask, f"MultiheadAttention: {what}")
        if is_causal and attn_mask is None:
            raise ArgumentError("MultiheadAttention: is_causal needs an attn_mask")
        if self.bias_k is not None or self.add_zero_attn:
            return self._with_further_keys(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        # Views: to (N, heads, length, head_dim), and back.
        swap = batched and not self.batch_first
        to_heads, to_input = ((1, 2, 0, 3), (2, 0, 1, 3)) if swap else ((0, 2, 1, 3), (0, 2, 1, 3))
        q, k, v = (
            (x if batched else x.unsqueeze(0)).unflatten(-1, (self.num_heads, self.head_dim)).permute(to_heads)
            for x in self._projected(query, key, value)
        )
        weights = None
        if need_weights:
            mask = self._mask(q, k, attn_mask, key_padding_mask)
            p = self.dropout if self.training else 0.0
            out, weights = attended(q, k, v, mask, self.head_dim**-0.5, p, average_attn_weights)
            weights = weights if batched else weights.squeeze(0)
        else:
            causal = is_causal and key_padding_mask is None
            mask = None if causal else self._mask(q, k, attn_mask, key_padding_mask)
            out = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0, causal)
        last = self.out_proj  # whose weights alone are read, as PyTorch does: it is not called
        out = F.linear(out.permute(to_input).flatten(2), last.weight, last.bias)
        return out if batched else out.squeeze(0), weights

    def _with_further_keys(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Any,
        need: bool,
        mask: Any,
        average: bool,
        causal: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The result with those of add_bias_kv and add_zero_attn."""
        swap = self.batch_first and query.ndim == 3
        query, key, value = (x.transpose(0, 1) for x in (query, key, value)) if swap else (query, key, value)
        separate = not self._qkv_same_embed_dim
        names = dict.fromkeys("qkv") if not separate else dict(zip("qkv", self._in_weights(), strict=True))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            padding, need, mask, separate, **{f"{name}_proj_weight": weight for name, weight in names.items()},
            average_attn_weights=average, is_causal=causal,
        )  # fmt: skip
        return out.transpose(0, 1) if swap else out, weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Iterable[Tensor]:
        """The projected query, key and value; one product if they are the same tensor."""
        if self._qkv_same_embed_dim and query is key is value:
            return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return map(F.linear, (query, key, value), self._in_weights(), biases)

    def _mask(self, q: Tensor, k: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """The sum of both masks as floats, of a shape that broadcasts to the scores (N, heads, L, S)."""
        (n, heads, length), other = q.shape[:3], k.shape[2]
        added: Tensor | None = None
        for one, shapes in (
            (mask, {(length, other): (length, other), (n * heads, length, other): (n, heads, length, other)}),
            (padding, {(n, other): (n, 1, 1, other), (other,): (1, 1, 1, other)}),
        ):
            if one is None:
                continue
            if tuple(one.shape) not in shapes:
                what = f"a mask of shape {tuple(one.shape)}, expected {' or '.join(map(str, shapes))}"
                raise ShapeError(f"MultiheadAttention: {what}")
            part = one.reshape(shapes[tuple(one.shape)])
            if part.dtype is bool_:
                part = q.new_zeros(part.shape).masked_fill_(part, float("-inf"))
            added = part if added is None else added + part
        return added


__path__: list[str] = []  # below it is flex_attention, of compat/
publish(globals(), {"...compat.sdpa": "SDPBackend sdpa_kernel"})
