"""Sequences of different lengths as one tensor, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._left_out import nothing_more
from ...errors import ArgumentError, ShapeError
from ...ops._operand import own_errors, tensors_of
from ...ops.composed.pad import pad
from ...ops.copy import stack
from ...tensor import Tensor


@own_errors
def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (L, ...) of different lengths as one tensor (longest L, B, ...), or with batch_first (B, L, ...):
    the shorter ones filled up behind, or with padding_side "left" in front.

    ShapeError where they differ in another size than the first.

    >>> norch.nn.utils.rnn.pad_sequence([norch.tensor([1, 2]), norch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    listed = tensors_of(sequences.unbind() if isinstance(sequences, Tensor) else sequences, "pad_sequence")
    if not listed or any(x.ndim == 0 for x in listed):
        raise ShapeError(f"pad_sequence: takes one sequence or more, not {[tuple(x.shape) for x in listed]}")
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side is 'left' or 'right', not {padding_side!r}")
    longest = max(x.shape[0] for x in listed)

    def filled(x: Tensor) -> Tensor:
        lacking = longest - x.shape[0]
        both = (lacking, 0) if padding_side == "left" else (0, lacking)
        return pad(x, (0, 0) * (x.ndim - 1) + both, value=padding_value) if lacking else x

    return stack([filled(x) for x in listed], 0 if batch_first else 1)


@own_errors
def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """What pad_sequence() was given: the sequences without what filled them up behind; lengths is theirs, (B).

    >>> norch.nn.utils.rnn.unpad_sequence(norch.tensor([[1, 2], [3, 0]]), norch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    if tuple(lengths.shape) != (rows.shape[0],):
        raise ShapeError(f"unpad_sequence: lengths {tuple(lengths.shape)} for {rows.shape[0]} sequences")
    return [row[:length] for row, length in zip(rows.unbind(), lengths.tolist(), strict=True)]


__getattr__ = nothing_more(__name__)
