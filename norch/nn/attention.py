"""MultiheadAttention: linear projections around scaled dot-product attention; F.multi_head_attention_forward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package.exports import publish
from ..autograd.grad_mode import mode
from ..dtype import bool_
from ..dtype import dtype as DType
from ..errors import ArgumentError, ShapeError
from ..ops._entry import composed
from ..ops._operand import tensor_of
from ..ops.attention import attention_mask, cast_mask
from ..ops.copy import cat
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import add_parameters

__all__ = ["MultiheadAttention"]


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
    """The function behind nn.MultiheadAttention, with the weights as arguments (Vaswani et al. 2017, section 3.2.2).

    query is (L, N, E), key and value are (S, N, E), or have other last sizes with use_separate_proj_weight; or all
    without N. in_proj_weight is (3 * E, E), or q_proj_weight, k_proj_weight and v_proj_weight replace it; in_proj_bias
    is (3 * E,). bias_k and bias_v (1, 1, E) are a further key and value, add_zero_attn adds a key and value of zeros.
    static_k and static_v (N * num_heads, S, E / num_heads) replace the projected key and value. Masks and results are
    those of MultiheadAttention with batch_first=False. ShapeError or ArgumentError for arguments that do not fit.

    >>> x, w = norch.ones(5, 3, 8), norch.ones(24, 8)
    >>> F = norch.nn.functional
    >>> out, weights = F.multi_head_attention_forward(
    ...     x, x, x, 8, 2, w, None, None, None, False, 0.0, norch.ones(8, 8), None)
    >>> out.shape, weights.shape
    (norch.Size([5, 3, 8]), norch.Size([3, 5, 5]))
    """
    return _attention(
        NAME, False, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
        add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask,
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None, static_k, static_v,
        average_attn_weights, is_causal,
    )  # fmt: skip


def _attention(
    name: str,
    batch_first: bool,
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
    training: bool,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    separate: tuple[Tensor | None, ...] | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    average_attn_weights: bool,
    is_causal: bool,
) -> tuple[Tensor, Tensor | None]:
    """multi_head_attention_forward, also for (N, L, E); errors begin with name. separate has the weights of query, key
    and value, or None if they are in in_proj_weight.
    """
    for x in (query, key, value):
        tensor_of(x, name)
    weights = in_proj_weight, in_proj_bias, bias_k, bias_v, *(separate or ())
    for optional in (*weights, static_k, static_v, key_padding_mask, attn_mask):
        if optional is not None:
            tensor_of(optional, name)
    qkv, batched = (query, key, value), query.ndim == 3
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(f"{name}: expected three tensors of two or of three dimensions, got {_shapes(qkv)}")
    axis = 0 if batch_first else 1
    if not batched:
        is_self = query is key is value
        query = query.unsqueeze(axis)
        key, value = (query, query) if is_self else (key.unsqueeze(axis), value.unsqueeze(axis))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, n, embed_dim = query.shape[1 - axis], query.shape[axis], query.shape[2]
    if embed_dim != embed_dim_to_check or num_heads < 1 or embed_dim % num_heads:
        raise ShapeError(f"{name}: {num_heads} heads of {embed_dim_to_check} in all do not fit {_shapes(qkv)}")
    if (bias_k is None) != (bias_v is None) or (bias_k is not None and not static_k is static_v is None):
        raise ArgumentError(f"{name}: bias_k and bias_v come together, and without static_k and static_v")
    if (static_k is None or static_v is None) and not (key.shape[:2] == value.shape[:2] and key.shape[axis] == n):
        raise ShapeError(f"{name}: as many keys as values, for each of {n} queries, are expected, got {_shapes(qkv)}")
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{name}: is_causal needs an attn_mask")
    for argument, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is not None:
            attention_mask(mask, f"{name}: {argument}")
    head = embed_dim // num_heads
    to_heads, to_input = ((0, 2, 1, 3), (0, 2, 1, 3)) if batch_first else ((1, 2, 0, 3), (2, 0, 1, 3))
    q, k, v = (
        x.unflatten(-1, (num_heads, head)).permute(to_heads)  # (N, heads, length, head), a view
        for x in _projected(query, key, value, separate or in_proj_weight, in_proj_bias, name)
    )
    k = k if static_k is None else _by_heads(static_k, n, num_heads, head, f"{name}: static_k")
    v = v if static_v is None else _by_heads(static_v, n, num_heads, head, f"{name}: static_v")
    other = k.shape[2]
    if bias_k is not None and bias_v is not None:
        k, v = (
            cat([x, b.reshape(1, num_heads, 1, head).expand(n, -1, -1, -1)], 2) for x, b in ((k, bias_k), (v, bias_v))
        )
    if add_zero_attn:
        zeros = k.new_zeros(n, num_heads, 1, head)
        k, v = cat([k, zeros], 2), cat([v, zeros], 2)
    further = k.shape[2] - other
    p = dropout_p if training else 0.0
    mask, causal = None, is_causal and key_padding_mask is None and not need_weights and not further
    if not causal:
        masks = {(length, other): (length, other), (n * num_heads, length, other): (n, num_heads, length, other)}
        mask = _added(q, attn_mask, masks, further, name)
        padding = _added(q, key_padding_mask, {(n, other): (n, 1, 1, other)}, further, name)
        mask = padding if mask is None else mask if padding is None else mask + padding
    seen: Tensor | None = None
    if need_weights:
        out, seen = _attended(q, k, v, mask, head**-0.5, p, average_attn_weights)
        seen = seen if batched else seen.squeeze(0)
    else:
        out = F.scaled_dot_product_attention(q, k, v, mask, p, causal)
    out = F.linear(out.permute(to_input).flatten(2), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(axis), seen


def _shapes(tensors: tuple[Tensor, ...]) -> str:
    return ", ".join(str(tuple(x.shape)) for x in tensors)


def _by_heads(x: Tensor, n: int, num_heads: int, head: int, name: str) -> Tensor:
    if x.ndim != 3 or x.shape[0] != n * num_heads or x.shape[2] != head:
        raise ShapeError(f"{name}: expected ({n * num_heads}, S, {head}), got {tuple(x.shape)}")
    return x.unflatten(0, (n, num_heads))


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None, name: str
) -> Iterable[Tensor]:
    """The projected query, key and value; one product if they are the same tensor. weights: three, or one of their
    rows."""
    if weights is None or (isinstance(weights, tuple) and any(w is None for w in weights)):
        raise ArgumentError(f"{name}: there are no weights of the projections")
    packed, rows = not isinstance(weights, tuple), query.shape[-1]
    parts = (weights,) if packed else weights
    if any(w.shape[:1] != (3 * rows if packed else rows,) for w in parts):
        raise ShapeError(f"{name}: weights of {_shapes(parts)} of the projections, with an embed_dim of {rows}")
    if bias is not None and bias.shape != (3 * rows,):
        raise ShapeError(f"{name}: in_proj_bias of {tuple(bias.shape)}, expected ({3 * rows},)")
    if query is key is value and packed:
        return F.linear(query, weights, bias).chunk(3, -1)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return map(F.linear, (query, key, value), weights.chunk(3) if packed else weights, biases)


@composed
def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout_p: float, average: bool
) -> tuple[Tensor, Tensor]:
    """The weighted values for each query, and the weights, of each head or the mean of the heads."""
    scores = q @ k.mT * scale
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p, True)
    return weights @ v, weights.mean(1) if average else weights


def _added(
    q: Tensor, mask: Tensor | None, shapes: dict[tuple[int, ...], tuple[int, ...]], further: int, name: str
) -> Tensor | None:
    """A mask as floats that are added to the scores, with 0 for further keys. shapes maps the shapes that it may have
    to the shapes that it gets.
    """
    if mask is None:
        return None
    if tuple(mask.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise ShapeError(f"{name}: a mask of shape {tuple(mask.shape)}, expected {expected}")
    mask = mask.reshape(shapes[tuple(mask.shape)])
    if mask.dtype is bool_:
        mask = q.new_zeros(mask.shape).masked_fill_(mask, float("-inf"))
    elif mask.dtype is not q.dtype:  # as in autocast, where weights of float32 would not be of q's dtype
        mask = cast_mask(mask, q.dtype)
    return F.pad(mask, (0, further)) if further else mask


class MultiheadAttention(Module):
    """concat(head_1, ..., head_h) W_out, with head_i = softmax(Q_i K_i^T / sqrt(head_dim)) V_i, and Q, K, V linear
    projections of query, key and value (Vaswani et al. 2017, section 3.2.2).

    layer(query, key, value) returns a pair: the output, of the shape of query, and the attention weights, (N, L, S),
    averaged over the heads. The shapes of the arguments, with N first if batch_first, or all without N, are

    query             (L, N, embed_dim)
    key, value        (S, N, kdim), (S, N, vdim); kdim and vdim are embed_dim by default
    attn_mask         (L, S) or (N * num_heads, L, S)
    key_padding_mask  (N, S)

    Masks are bools, True for positions to ignore, or floats that are added to the scores. is_causal: attn_mask is the
    causal mask, and is not read. The weights are (N, num_heads, L, S) without average_attn_weights, and None without
    need_weights: then functional.scaled_dot_product_attention() computes the output, which is faster.

    bias: whether the projections have a bias. dropout: its probability, for the weights. add_bias_kv: a further key and
    value, which are parameters. add_zero_attn: a further key and value of zeros. ShapeError for other shapes.

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
        self._qkv_same_embed_dim = same = self.kdim == self.vdim == embed_dim
        inputs = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        add_parameters(self, device, dtype, **{name: None if same else (embed_dim, n) for name, n in inputs.items()})
        add_parameters(self, device, dtype, in_proj_weight=(3 * embed_dim, embed_dim) if same else None)
        add_parameters(self, device, dtype, in_proj_bias=3 * embed_dim if bias else None)
        further = (1, 1, embed_dim) if add_bias_kv else None
        add_parameters(self, device, dtype, bias_k=further, bias_v=further)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Initializes the input projections by xavier_uniform_ and the biases to 0."""
        for weight in self._in_weights() if not self._qkv_same_embed_dim else [self.in_proj_weight]:
            init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for further in (self.bias_k, self.bias_v):
            if further is not None:
                init.xavier_normal_(further)

    def reset_parameters(self) -> None:
        """Initializes the parameters again. It calls _reset_parameters(), which is PyTorch's name."""
        self._reset_parameters()

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
        for x in (query, key, value):
            tensor_of(x, "MultiheadAttention")
        if query.ndim == key.ndim == value.ndim:  # others are refused below
            sizes = query.shape[-1], key.shape[-1], value.shape[-1]
            if sizes != (self.embed_dim, self.kdim, self.vdim):
                wanted = f"{self.embed_dim}, {self.kdim} and {self.vdim}"
                shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
                raise ShapeError(f"MultiheadAttention: expected last sizes of {wanted}, got {shapes}")
        last = self.out_proj  # only its weights are read, and it is not called, as in PyTorch
        separate = None if self._qkv_same_embed_dim else self._in_weights()
        unseen = not mode.overridden and type(query) is type(key) is type(value) is Tensor  # by a __torch_function__
        if unseen and F.multi_head_attention_forward is multi_head_attention_forward:
            return _attention(
                "MultiheadAttention", self.batch_first, query, key, value, self.embed_dim, self.num_heads,
                self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
                last.weight, last.bias, self.training, key_padding_mask, need_weights, attn_mask, separate, None, None,
                average_attn_weights, is_causal,
            )  # fmt: skip
        swap = self.batch_first and query.ndim == 3
        if swap:  # a function that a program has patched in takes (L, N, E), and may test whether key is query
            of = {i: x.transpose(0, 1) for i, x in {id(x): x for x in (query, key, value)}.items()}
            query, key, value = of[id(query)], of[id(key)], of[id(value)]
        options: Any = {}
        if separate:
            options = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), separate, strict=True))
            options["use_separate_proj_weight"] = True
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, last.weight, last.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **options,
        )  # fmt: skip
        return out.transpose(0, 1) if swap else out, weights


__path__: list[str] = []  # below it is flex_attention, of compat/
publish(globals(), {"...compat.sdpa": "SDPBackend sdpa_kernel"})
