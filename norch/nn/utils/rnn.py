"""Sequences of different lengths as one tensor, padded or packed, and the inverse functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..._package.exports import publish
from ...dtype import dtype as DType
from ...dtype import float16, float32, float64, int8, int16, int32, int64, uint8
from ...errors import ArgumentError, ShapeError, one_of
from ...ops._arguments import named_function, tensors_of
from ...ops._entry import rename_errors
from ...ops._operand import tensor_of
from ...ops.composed.pad import pad
from ...ops.copy import stack
from ...ops.create import arange
from ...ops.values import as_tensor
from ...tensor import Tensor

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip


@rename_errors
def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (L, ...) of different lengths as one tensor (max L, B, ...), or (B, max L, ...) with batch_first.

    Shorter ones are filled with padding_value at the end, or at the start with padding_side "left". ShapeError if they
    differ in another size than the first.

    >>> norch.nn.utils.rnn.pad_sequence([norch.tensor([1, 2]), norch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    listed = tensors_of(sequences.unbind() if isinstance(sequences, Tensor) else sequences, "pad_sequence")
    if not listed or any(x.ndim == 0 for x in listed):
        raise ShapeError(f"pad_sequence: expected one or more sequences, got {[tuple(x.shape) for x in listed]}")
    one_of("pad_sequence: padding_side", padding_side, ("left", "right"))
    longest = max(x.shape[0] for x in listed)

    def padded(x: Tensor) -> Tensor:
        missing = longest - x.shape[0]
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        return pad(x, (0, 0) * (x.ndim - 1) + ends, value=padding_value) if missing else x

    return stack([padded(x) for x in listed], 0 if batch_first else 1)


@rename_errors
def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The inverse of pad_sequence(): the sequences without padding. lengths: (B), ShapeError otherwise.

    >>> norch.nn.utils.rnn.unpad_sequence(norch.tensor([[1, 2], [3, 0]]), norch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    if tuple(lengths.shape) != (rows.shape[0],):
        raise ShapeError(f"unpad_sequence: lengths {tuple(lengths.shape)} for {rows.shape[0]} sequences")
    return [row[:length] for row, length in zip(rows.unbind(), lengths.tolist(), strict=True)]


# ---- packed sequences: in order of time, without padding ------------------------------------------------------------


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _cast(name: str, kind: DType) -> Any:
    def method(self: PackedSequence) -> PackedSequence:
        return self.to(kind)

    return named_function(method, name, f"The sequences converted to {kind.name}.")


class PackedSequence(_Packed):
    """Sequences without padding, the input of recurrent layers; pack_padded_sequence() and pack_sequence() create them.

    data: (sum of lengths, ...), the first elements of all sequences, from the longest sequence to the shortest, then
    the second elements, and so on. batch_sizes: the number of sequences at each time step, on the CPU. sorted_indices:
    the permutation that sorts the sequences by length; unsorted_indices: its inverse; both None if they were sorted.
    to(), cpu(), cuda(), pin_memory(), double(), float(), half(), long(), int(), short(), char() and byte() convert data
    as in Tensor.

    >>> norch.nn.utils.rnn.pack_sequence([norch.tensor([1, 2, 3]), norch.tensor([4, 5])])[:2]
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if tensor_of(batch_sizes, "PackedSequence").device.type != "cpu":
            raise ArgumentError(f"PackedSequence: batch_sizes must be on the CPU, not on {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """data.to(...), with the indices on its device."""
        data = self.data.to(*args, **kwargs)
        indices = None if self.sorted_indices is None else self.sorted_indices.to(data.device)
        return PackedSequence(data, self.batch_sizes, indices)

    def cpu(self) -> PackedSequence:
        """The sequences on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """The sequences on a CUDA device, by default the current one."""
        return self.to("cuda" if device is None else device)

    def pin_memory(self) -> PackedSequence:
        """The sequences in page-locked memory."""
        indices = (None if x is None else x.pin_memory() for x in self[2:])
        return PackedSequence(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self) -> bool:
        """Whether data is in page-locked memory."""
        return bool(self.data.is_pinned())

    double, float, half = _cast("double", float64), _cast("float", float32), _cast("half", float16)
    long, int, short = _cast("long", int64), _cast("int", int32), _cast("short", int16)
    char, byte = _cast("char", int8), _cast("byte", uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether data is on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse permutation; None for None.

    >>> norch.nn.utils.rnn.invert_permutation(norch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else tensor_of(permutation, "invert_permutation").argsort()


def steps_of(sequence: Any, name: str) -> list[int]:
    """The batch_sizes of a PackedSequence: positive, not rising, with the rows of data as their sum; ArgumentError
    otherwise."""
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{name}: expected a PackedSequence, not {type(sequence).__name__}")
    sizes, rows = sequence.batch_sizes, tensor_of(sequence.data, name).shape[:1]
    counts: Any = sizes.tolist()
    if (
        sizes.dtype.kind not in "iu"
        or sizes.ndim != 1
        or not counts
        or (sum(counts),) != rows
        or counts[-1] < 1
        or counts != sorted(counts, reverse=True)
    ):
        wanted = "integers above 0 that do not rise and sum to its rows"
        raise ArgumentError(f"{name}: batch_sizes {counts} for data of shape {tuple(sequence.data.shape)}: {wanted}")
    return counts


def _padded_indices(valid: Tensor, x: Tensor) -> Tensor:
    """The indices in (T * B) of the elements of a packed tensor. valid (T, B): where a sequence has an element."""
    return valid.flatten().nonzero().squeeze(1).to(x.device)


@rename_errors
def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs the first lengths[b] elements of each sequence b of input (T, B, ...), or (B, T, ...) with batch_first.

    lengths: B integers from 1 to T, in descending order; without enforce_sorted the sequences are sorted here.
    ShapeError or ArgumentError otherwise.

    >>> x = norch.tensor([[1, 0, 0], [2, 3, 4]])
    >>> norch.nn.utils.rnn.pack_padded_sequence(x, [1, 3], batch_first=True, enforce_sorted=False).data
    tensor([2, 1, 3, 4])
    """
    x = tensor_of(input, "pack_padded_sequence")
    count = as_tensor(lengths, dtype=int64, device="cpu")
    rows, steps = ((0, 1) if batch_first else (1, 0)) if x.ndim > 1 else (0, 0)
    if x.ndim < 2 or tuple(count.shape) != (x.shape[rows],):
        raise ShapeError(f"pack_padded_sequence: {tuple(count.shape)} lengths for input of shape {tuple(x.shape)}")
    listed = count.tolist()
    if not listed or min(listed) < 1 or max(listed) > x.shape[steps]:
        raise ArgumentError(f"pack_padded_sequence: lengths lie in 1 ... {x.shape[steps]}, not {listed}")
    order = None
    if not enforce_sorted:
        count, order = count.sort(descending=True)
        order = order.to(x.device)
        x = x.index_select(rows, order)
    elif listed != sorted(listed, reverse=True):
        raise ArgumentError(f"pack_padded_sequence: lengths {listed} are not sorted; enforce_sorted=False sorts them")
    x = x.transpose(0, 1) if batch_first else x
    valid = arange(max(listed), device="cpu").unsqueeze(1) < count
    data = x[: max(listed)].flatten(0, 1).index_select(0, _padded_indices(valid, x))
    return PackedSequence(data, valid.sum(1), order)


@rename_errors
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The inverse of pack_padded_sequence(): (T, B, ...), or (B, T, ...) with batch_first, and the lengths (B).

    Sequences are filled with padding_value at the end. T is the maximum length, or total_length, which must not be
    smaller: ArgumentError otherwise.

    >>> packed = norch.nn.utils.rnn.pack_sequence([norch.tensor([1, 2]), norch.tensor([3])])
    >>> norch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    counts = steps_of(sequence, "pad_packed_sequence")
    data, batch_sizes, _, inverse = sequence
    longest, rows = len(counts), counts[0]
    steps = longest if total_length is None else total_length
    if steps < longest:
        raise ArgumentError(f"pad_packed_sequence: total_length {total_length} for sequences of up to {longest}")
    valid = arange(rows, device="cpu") < batch_sizes.unsqueeze(1)
    out = data.new_full((steps * rows, *data.shape[1:]), padding_value)
    out = out.index_copy(0, _padded_indices(valid, data), data)
    out, lengths = out.unflatten(0, (steps, rows)), valid.sum(0)
    if inverse is not None:
        out, lengths = out.index_select(1, inverse), lengths[inverse.cpu()]
    return out.transpose(0, 1) if batch_first else out, lengths


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """pack_padded_sequence() of sequences (L, ...), in descending order of length unless enforce_sorted is False.

    >>> norch.nn.utils.rnn.pack_sequence([norch.ones(3, 2), norch.ones(1, 2)]).batch_sizes
    tensor([2, 1, 1])
    """
    listed = tensors_of(sequences, "pack_sequence")
    padded = pad_sequence(listed)
    return pack_padded_sequence(padded, [x.shape[0] for x in listed], enforce_sorted=enforce_sorted)


@rename_errors
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of pack_sequence(): a list of sequences.

    >>> norch.nn.utils.rnn.unpack_sequence(norch.nn.utils.rnn.pack_sequence([norch.ones(2), norch.zeros(1)]))
    [tensor([1., 1.]), tensor([0.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


publish(globals())
