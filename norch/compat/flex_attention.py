"""``norch.nn.attention.flex_attention``: attention with user-defined scores and masks (He et al., "FlexAttention",
2024). It computes whole matrices; the paper skips masked blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import norch

from .._package.exports import publish
from ..errors import ArgumentError, ShapeError
from ..tensor import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]
publish(globals(), name="norch.nn.attention.flex_attention")

_DEFAULT_SPARSE_BLOCK_SIZE = 128
Mod = Callable[..., Any]


class AuxRequest(NamedTuple):
    """Further results of flex_attention(): lse, the log-sum-exp of the scores; max_scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that AuxRequest named; None for the others."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A mask that hides nothing."""
    return norch.ones((), dtype=norch.bool)


def and_masks(*mask_mods: Mod) -> Mod:
    """The mask that allows a key only if all of these do."""

    def both(b: Any, h: Any, q: Any, kv: Any) -> Any:
        result = noop_mask(b, h, q, kv)
        for mod in mask_mods:
            result = result & mod(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods: Mod) -> Mod:
    """The mask that allows a key if one of these does."""

    def either(b: Any, h: Any, q: Any, kv: Any) -> Any:
        result = ~noop_mask(b, h, q, kv)
        for mod in mask_mods:
            result = result | mod(b, h, q, kv)
        return result

    return either


def _indices(sizes: Any, device: Any) -> list[Tensor]:
    """Indices of batch, head, query and key, each along its axis of (B, H, Q, K)."""
    return [
        norch.arange(n, device=device).reshape(*(n if i == j else 1 for j in range(4))) for i, n in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    **options: Any,  # noqa: N803
) -> Tensor:
    """Evaluates a mask (bool) or score function to (B, H, Q_LEN, KV_LEN)."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _indices(sizes, device)
    mask = mod_fn(*places) if mod_fn.__code__.co_argcount == 4 else mod_fn(norch.zeros(sizes, device=device), *places)
    return norch.as_tensor(mask, device=device).expand(sizes)


class BlockMask:
    """A mask function of (batch, head, query, key), with its sizes."""

    def __init__(
        self, seq_lengths: tuple[int, int], mask_mod: Mod, B: int, H: int, BLOCK_SIZE: tuple[int, int]
    ) -> None:  # noqa: N803
        self.seq_lengths, self.mask_mod, self.BLOCK_SIZE = seq_lengths, mask_mod, BLOCK_SIZE
        self.shape = (B, H, *seq_lengths)

    def dense(self, device: Any) -> Tensor:
        """The mask as (B, H, Q, K), True where a key is visible."""
        return create_mask(self.mask_mod, *self.shape, device=device)

    def to_dense(self) -> Tensor:
        """1 for each block with a visible key, else 0."""
        q, kv = self.BLOCK_SIZE
        mask = self.dense(None)
        mask = norch.nn.functional.pad(mask.int(), (0, -mask.shape[3] % kv, 0, -mask.shape[2] % q))
        return mask.unflatten(3, (-1, kv)).unflatten(2, (-1, q)).amax((3, 5))

    def sparsity(self) -> float:
        """The percentage of fully masked blocks."""
        return 100 * (1 - self.to_dense().float().mean().item())

    def to(self, device: Any) -> BlockMask:
        """Itself: the mask is a function."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, block_size={self.BLOCK_SIZE})"


def create_block_mask(
    mask_mod: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,  # noqa: N803
    BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False, **options: Any,  # noqa: N803
) -> BlockMask:  # fmt: skip
    """A BlockMask of mask_mod(batch, head, query, key). B or H None: the mask is the same for all."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask((Q_LEN, KV_LEN), mask_mod, B or 1, H or 1, size)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Mod | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None,
    *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key.T * scale)) @ value of query (B, H, Q, E), key (B, H, K, E) and value (B, H, K, F).

    score_mod(score, batch, head, query, key) gets all scores, and their indices as tensors that broadcast. block_mask
    hides keys; a query without visible keys gets zeros. enable_gqa: key and value have H / n heads. return_lse: also
    returns the log-sum-exp of the scores, (B, H, Q); return_aux: also returns an AuxOutput.

    >>> x = norch.ones(1, 1, 2, 4)
    >>> causal = norch.nn.attention.flex_attention.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    >>> norch.nn.attention.flex_attention.flex_attention(x, x, x, block_mask=causal).shape
    norch.Size([1, 1, 2, 4])
    """
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ShapeError(f"flex_attention: expected (B, H, L, E), got {tuple(query.shape)} and {tuple(key.shape)}")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa or query.shape[1] % key.shape[1]:
            raise ArgumentError(f"flex_attention: {query.shape[1]} heads of queries and {key.shape[1]} of keys")
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if block_mask is not None:
        if not isinstance(block_mask, BlockMask):
            raise TypeError(f"flex_attention: block_mask must be a BlockMask, not {type(block_mask).__name__}")
        if block_mask.seq_lengths != (query.shape[2], key.shape[2]):
            raise ArgumentError(
                f"flex_attention: block_mask was created for block_mask.shape={block_mask.shape} but got "
                f"q_len={query.shape[2]} and kv_len={key.shape[2]}"
            )
    wide = norch.float64 if query.dtype is norch.float64 else norch.float32
    scores = (query @ key.mT).to(wide) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_indices(scores.shape, query.device))
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.dense(query.device), -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1)).exp()
    out = (weights.to(value.dtype) @ value).to(query.dtype)
    if return_aux is not None:
        most = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, most)
    return (out, lse) if return_lse else out
