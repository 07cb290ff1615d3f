"""Transformer, its encoder and decoder and their layers (Vaswani et al., "Attention Is All You Need", 2017, section 3),
composed of attention, linear layers and normalisations.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..dtype import dtype as DType
from ..errors import ArgumentError, ShapeError
from ..ops._operand import tensors_of
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

Activation = str | Callable[[Tensor], Tensor]


def _subsequent_mask(sz: int, device: Any = None, dtype: DType | None = None) -> Tensor:
    """(sz, sz): -inf above the diagonal, 0 elsewhere; bools: True above it."""
    return full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


def _is_subsequent(mask: Tensor | None, told: bool | None) -> bool:
    """Whether mask hides what is ahead and nothing else, unless the caller has told."""
    if told is not None or mask is None or mask.dtype.kind not in "fb":
        return bool(told)
    rows = mask.shape[0]
    return tuple(mask.shape) == (rows, rows) and bool((mask == _subsequent_mask(rows, mask.device, mask.dtype)).all())


class _Layer(Module):
    """What the layers of encoder and decoder share: attentions and a perceptron, each beside what it adds to, before a
    normalisation or, with norm_first, behind one (Xiong et al. 2020, figure 1)."""

    attentions: tuple[str, ...]  # the names of those that a layer has
    self_attn: Any
    multihead_attn: Any

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
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self.attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **where)
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **where)
        self.norm_first = norm_first
        for kind in ("norm", "dropout"):
            for number in range(1, len(self.attentions) + 2):
                made = LayerNorm(d_model, layer_norm_eps, bias=bias, **where) if kind == "norm" else Dropout(dropout)
                self.register_module(f"{kind}{number}", made)
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def _add(self, x: Tensor, number: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what part makes of it, with the dropout and the normalisation of that number."""
        norm, drop = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + drop(part(norm(x))) if self.norm_first else norm(x + drop(part(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """x = norm1(x + self_attn(x)), then norm2(x + linear2(activation(linear1(x)))); with norm_first x +
    self_attn(norm1(x)), and so on. A dropout stands behind each attention, linear layer and activation.

    src (L, N, d_model), with batch_first (N, L, d_model), or (L, d_model) without a batch; the result is shaped as it.
    Masks as MultiheadAttention takes them: src_mask (L, L) or (N nhead, L, L), src_key_padding_mask (N, L), True where
    nothing shall be looked at, or floats that are added. is_causal says that src_mask is that of
    Transformer.generate_square_subsequent_mask(), and lets one kernel do the attention where there is no dropout.
    activation: 'relu', 'gelu', or a function or module of one tensor. Vaswani et al. 2017, section 3.1.

    >>> layer = norch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(norch.ones(3, 5, 8)).shape
    norch.Size([3, 5, 8])
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._add(self._add(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """TransformerEncoderLayer with a second attention, multihead_attn, of tgt to memory, before the perceptron.

    tgt (T, N, d_model) and memory (S, N, d_model), with batch_first N before T and S, or both without N; the result is
    shaped as tgt. tgt_mask (T, T), memory_mask (T, S), tgt_key_padding_mask (N, T) and memory_key_padding_mask (N, S)
    as MultiheadAttention takes them. Vaswani et al. 2017, section 3.1.

    >>> layer = norch.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(norch.ones(4, 3, 8), norch.ones(5, 3, 8)).shape
    norch.Size([4, 3, 8])
    """

    attentions = ("self_attn", "multihead_attn")

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
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def attend_to_memory(x: Tensor) -> Tensor:
            masks = memory_key_padding_mask, False, memory_mask
            return self.multihead_attn(x, memory, memory, *masks, is_causal=memory_is_causal)[0]

        return self._add(self._add(self._add(tgt, 1, attend), 2, attend_to_memory), 3, self._feed_forward)


class _Stack(Module):
    """num_layers copies of a layer, with the same values at first, and a normalisation behind them or None."""

    norm: Module | None

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.register_module("norm", norm)

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers copies of encoder_layer one after another, and norm behind them unless it is None.

    src, mask and src_key_padding_mask as TransformerEncoderLayer takes them. is_causal None looks whether mask is that
    of Transformer.generate_square_subsequent_mask(). enable_nested_tensor and mask_check are there for PyTorch's sake:
    there are no nested tensors, and padded places are computed as the others are.

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
        causal = _is_subsequent(mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return self._normed(src)


class TransformerDecoder(_Stack):
    """num_layers copies of decoder_layer one after another, and norm behind them unless it is None.

    Arguments as TransformerDecoderLayer takes them; tgt_is_causal None looks whether tgt_mask is that of
    Transformer.generate_square_subsequent_mask().

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
            "tgt_is_causal": _is_subsequent(tgt_mask, tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **masks)
        return self._normed(tgt)


class Transformer(Module):
    """An encoder of src and a decoder of tgt that looks at what the encoder gives (Vaswani et al. 2017, figure 1).

    src (S, N, d_model) and tgt (T, N, d_model), with batch_first N before S and T, or both without N, give
    (T, N, d_model). Embeddings, positions and the projection onto words are the caller's. Masks as in
    TransformerDecoderLayer, and src_mask (S, S), src_key_padding_mask (N, S). custom_encoder and custom_decoder stand
    in the place of norch's. Matrices are drawn by xavier_uniform_.

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
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: DType | None = None) -> Tensor:
        """A mask (sz, sz) that hides what is ahead: -inf above the diagonal, 0 elsewhere.

        >>> norch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _subsequent_mask(sz, device, dtype)
