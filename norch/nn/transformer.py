"""Transformer, its encoder and decoder, and their layers (Vaswani et al., "Attention Is All You Need", 2017, section
3), composed of MultiheadAttention, Linear, LayerNorm and Dropout.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

from .._package.typing import DeviceLike
from ..dtype import dtype as DType
from ..errors import ArgumentError, ShapeError
from ..ops._arguments import tensors_of
from ..ops._checks import check_count
from ..ops.create import full
from ..tensor import Tensor
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .norm import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Tensor], Tensor]


def _causal_mask(sz: int, device: Any = None, dtype: DType | None = None) -> Tensor:
    """(sz, sz): -inf above the diagonal, 0 elsewhere; for bool True above the diagonal."""
    return full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


def _is_causal(mask: Tensor | None, is_causal: bool | None) -> bool:
    """is_causal, or for None whether mask is the causal mask."""
    if is_causal is not None or mask is None or mask.dtype.kind not in "fb":
        return bool(is_causal)
    rows = mask.shape[0]
    if mask.is_meta:
        return False
    return tuple(mask.shape) == (rows, rows) and bool((mask == _causal_mask(rows, mask.device, mask.dtype)).all())


class _TransformerLayer(Module):
    """Base of the layers: attentions and a feed-forward network, each with a residual connection and a normalization,
    which comes before it with norm_first and after it otherwise (Xiong et al. 2020, figure 1)."""

    _attentions: ClassVar[tuple[str, ...]]  # their names
    self_attn: Any
    multihead_attn: Any
    dropout1: Any
    dropout2: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise ArgumentError(f"{self._get_name()}: activation is 'relu', 'gelu' or a function, not {activation!r}")
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options)
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        for kind in ("norm", "dropout"):
            for number in range(1, len(self._attentions) + 2):
                layer = LayerNorm(d_model, layer_norm_eps, bias=bias, **options) if kind == "norm" else Dropout(dropout)
                self.add_module(f"{kind}{number}", layer)
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def _add(self, x: Tensor, number: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x + part(x), with the normalization of that number."""
        norm = getattr(self, f"norm{number}")
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    # The parts, each with its dropout. Subclasses in programs call and override them.

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """Self-attention."""
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        """The feed-forward network."""
        last = getattr(self, f"dropout{len(self._attentions) + 1}")
        out: Tensor = last(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return out


class TransformerEncoderLayer(_TransformerLayer):
    """x = norm1(src + self_attn(src)), then norm2(x + linear2(activation(linear1(x)))) (Vaswani et al. 2017, section
    3.1). With norm_first, x = src + self_attn(norm1(src)), and likewise for the second part. Dropout follows each
    attention, linear layer and activation.

    d_model          the number of features of a position
    nhead            the number of heads, a divisor of d_model
    dim_feedforward  the number of features between linear1 and linear2
    activation       "relu", "gelu", or a function or module of one tensor; ArgumentError for another name
    layer_norm_eps   the eps of the norms
    bias             whether linear layers and norms have a bias

    src: (L, N, d_model), (N, L, d_model) with batch_first, or (L, d_model) without a batch; the result has the same
    shape. src_mask: (L, L) or (N * nhead, L, L); src_key_padding_mask: (N, L); both as in MultiheadAttention.
    is_causal: src_mask is the causal mask of Transformer.generate_square_subsequent_mask(). Then, and without
    src_key_padding_mask, the attention skips hidden positions.

    >>> layer = norch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(norch.ones(3, 5, 8)).shape
    norch.Size([3, 5, 8])
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        return self._add(self._add(src, 1, attend), 2, self._ff_block)


class TransformerDecoderLayer(_TransformerLayer):
    """TransformerEncoderLayer with a second attention, multihead_attn, after the first: from tgt, the decoded sequence,
    to memory, the encoder's result (Vaswani et al. 2017, section 3.1).

    tgt: (T, N, d_model); memory: (S, N, d_model); with batch_first, N comes first; or both without N. The result has
    the shape of tgt. tgt_mask: (T, T); memory_mask: (T, S); tgt_key_padding_mask: (N, T); memory_key_padding_mask: (N,
    S); all as in MultiheadAttention. Other parameters as in TransformerEncoderLayer.

    >>> layer = norch.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(norch.ones(4, 3, 8), norch.ones(5, 3, 8)).shape
    norch.Size([4, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_to_memory(x: Tensor) -> Tensor:
            return self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)

        return self._add(self._add(self._add(tgt, 1, attend), 2, attend_to_memory), 3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """Attention from x to mem."""
        options = key_padding_mask, False, attn_mask
        return self.dropout2(self.multihead_attn(x, mem, mem, *options, is_causal=is_causal)[0])


class _Stack(Module):
    """num_layers deep copies of a layer, and a final normalization or None."""

    norm: Module | None

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        check_count(num_layers, f"{type(self).__name__}: num_layers", 1 << 16)
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers copies of encoder_layer in sequence (Vaswani et al. 2017), followed by norm unless it is None.

    src, mask and src_key_padding_mask as in TransformerEncoderLayer. is_causal: whether mask is the causal mask of
    Transformer.generate_square_subsequent_mask(); None compares them. enable_nested_tensor and mask_check are accepted
    for compatibility with PyTorch and have no effect.

    >>> layer = norch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16)
    >>> norch.nn.TransformerEncoder(layer, num_layers=2)(norch.ones(5, 3, 8)).shape
    norch.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return self._normed(src)


class TransformerDecoder(_Stack):
    """num_layers copies of decoder_layer in sequence (Vaswani et al. 2017), followed by norm unless it is None.

    Arguments as in TransformerDecoderLayer. tgt_is_causal: whether tgt_mask is the causal mask of
    Transformer.generate_square_subsequent_mask(); None compares them.

    >>> decoder = norch.nn.TransformerDecoder(norch.nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
    >>> decoder(norch.ones(4, 3, 8), norch.ones(5, 3, 8)).shape
    norch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        masks = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": _is_causal(tgt_mask, tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **masks)
        return self._normed(tgt)


class Transformer(Module):
    """decoder(tgt, encoder(src)) (Vaswani et al. 2017, figure 1), without embeddings, positional encoding and the final
    projection.

    src: (S, N, d_model); tgt: (T, N, d_model); with batch_first, N comes first; or both without N. The result has the
    shape of tgt. src_mask: (S, S); src_key_padding_mask: (N, S); other masks as in TransformerDecoderLayer. ShapeError
    for other shapes.

    The encoder and the decoder have num_encoder_layers and num_decoder_layers layers, and a norm at the end;
    custom_encoder and custom_decoder replace them. Matrices are initialized by xavier_uniform_. Other parameters as in
    TransformerEncoderLayer.

    >>> model = norch.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(norch.ones(5, 3, 8), norch.ones(4, 3, 8), tgt_mask=model.generate_square_subsequent_mask(4)).shape
    norch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        layer: Any = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
        layer += bias, device, dtype

        def norm() -> Module:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer), num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer), num_decoder_layers, norm())
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.ndim > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        src, tgt = tensors_of((src, tgt), "Transformer")
        if (
            src.ndim != tgt.ndim
            or src.shape[-1] != self.d_model
            or tgt.shape[-1] != self.d_model
            or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch])
        ):
            shapes = f"{tuple(src.shape)} and {tuple(tgt.shape)}"
            raise ShapeError(f"Transformer: expected src and tgt of one batch, the last {self.d_model}, got {shapes}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: DeviceLike = None, dtype: DType | None = None) -> Tensor:
        """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.

        >>> norch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)
