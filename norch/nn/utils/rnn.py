"""Sequences of different lengths as one tensor, padded or packed, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..._left_out import nothing_more
from ...dtype import dtype as DType
from ...dtype import float16, float32, float64, int8, int16, int32, int64, uint8
from ...errors import ArgumentError, ShapeError
from ...ops._operand import named_function, rename_errors, tensor_of, tensors_of
from ...ops.composed.pad import pad
from ...ops.copy import stack
from ...ops.create import arange
from ...ops.values import as_tensor
from ...tensor import Tensor


@rename_errors
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


@rename_errors
def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """What pad_sequence() was given: the sequences without what filled them up behind; lengths is theirs, (B).

    >>> norch.nn.utils.rnn.unpad_sequence(norch.tensor([[1, 2], [3, 0]]), norch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    if tuple(lengths.shape) != (rows.shape[0],):
        raise ShapeError(f"unpad_sequence: lengths {tuple(lengths.shape)} for {rows.shape[0]} sequences")
    return [row[:length] for row, length in zip(rows.unbind(), lengths.tolist(), strict=True)]


# ---- packed: step by step, without what fills up --------------------------------------------------------------------


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _cast(name: str, kind: DType) -> Any:
    def method(self: PackedSequence) -> PackedSequence:
        return self.to(kind)

    return named_function(method, name, f"The same in {kind.name}.")


class PackedSequence(_Packed):
    """Sequences without padding, as recurrent layers take them: what pack_padded_sequence() and pack_sequence() make.

    data: (sum of lengths, ...), first the first elements of all sequences, the longest sequence first, then the second
    elements of those that have one. batch_sizes: on the CPU, how many have a first, a second ... element.
    sorted_indices: which sequence is the longest, the next ..., and unsorted_indices the way back, or both None where
    the order is that of the caller. to(), cpu(), cuda(), pin_memory(), and double(), float(), half(), long(), int(),
    short(), char(), byte(), as of tensors, act on data.

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
            raise ArgumentError(f"PackedSequence: batch_sizes lie on the CPU, not on {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data.to(...), and the indices on its device."""
        data = self.data.to(*args, **kwargs)
        order = None if self.sorted_indices is None else self.sorted_indices.to(data.device)
        return PackedSequence(data, self.batch_sizes, order)

    def cpu(self) -> PackedSequence:
        """The same on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """The same on a CUDA device, the current one unless another is named."""
        return self.to("cuda" if device is None else device)

    def pin_memory(self) -> PackedSequence:
        """The same with data in memory that a CUDA device reads at once."""
        order, back = (None if x is None else x.pin_memory() for x in self[2:])
        return PackedSequence(self.data.pin_memory(), self.batch_sizes, order, back)

    def is_pinned(self) -> bool:
        """Whether data lies in the memory of pin_memory()."""
        return bool(self.data.is_pinned())

    double, float, half = _cast("double", float64), _cast("float", float32), _cast("half", float16)
    long, int, short = _cast("long", int64), _cast("int", int32), _cast("short", int16)
    char, byte = _cast("char", int8), _cast("byte", uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether data lies on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The indices that undo x[permutation]; None for None.

    >>> norch.nn.utils.rnn.invert_permutation(norch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else tensor_of(permutation, "invert_permutation").argsort()


def steps_of(sequence: Any, name: str) -> list[int]:
    """The batch_sizes of a PackedSequence: they must be positive, not rise, and sum to the rows of data."""
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{name}: expected a PackedSequence, not {type(sequence).__name__}")
    sizes, rows = sequence.batch_sizes, tensor_of(sequence.data, name).shape[:1]
    told: Any = sizes.tolist()
    if (
        sizes.dtype.kind not in "iu"
        or sizes.ndim != 1
        or not told
        or (sum(told),) != rows
        or told[-1] < 1
        or told != sorted(told, reverse=True)
    ):
        wanted = "integers above 0 that do not rise and sum to its rows"
        raise ArgumentError(f"{name}: batch_sizes {told} for data of shape {tuple(sequence.data.shape)}: {wanted}")
    return told


def _places(there: Tensor, x: Tensor) -> Tensor:
    """Where in (T * B) a packed tensor's elements stand, of there (T, B), True where a sequence has an element."""
    return there.flatten().nonzero().squeeze(1).to(x.device)


@rename_errors
def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """input (T, B, ...), or with batch_first (B, T, ...), without what lies behind the first lengths[b] elements of
    sequence b. lengths: B integers from 1 to T, falling unless enforce_sorted is False: then the sequences are sorted.

    >>> x = norch.tensor([[1, 0, 0], [2, 3, 4]])
    >>> norch.nn.utils.rnn.pack_padded_sequence(x, [1, 3], batch_first=True, enforce_sorted=False).data
    tensor([2, 1, 3, 4])
    """
    x = tensor_of(input, "pack_padded_sequence")
    count = as_tensor(lengths, dtype=int64, device="cpu")
    rows, steps = ((0, 1) if batch_first else (1, 0)) if x.ndim > 1 else (0, 0)
    if x.ndim < 2 or tuple(count.shape) != (x.shape[rows],):
        raise ShapeError(f"pack_padded_sequence: {tuple(count.shape)} lengths for input of shape {tuple(x.shape)}")
    told = count.tolist()
    if not told or min(told) < 1 or max(told) > x.shape[steps]:
        raise ArgumentError(f"pack_padded_sequence: lengths lie in 1 ... {x.shape[steps]}, not {told}")
    order = None
    if not enforce_sorted:
        count, order = count.sort(descending=True)
        order = order.to(x.device)
        x = x.index_select(rows, order)
    elif told != sorted(told, reverse=True):
        raise ArgumentError(f"pack_padded_sequence: lengths {told} do not fall; enforce_sorted=False sorts them")
    x = x.transpose(0, 1) if batch_first else x
    there = arange(max(told), device="cpu").unsqueeze(1) < count
    data = x[: max(told)].flatten(0, 1).index_select(0, _places(there, x))
    return PackedSequence(data, there.sum(1), order)


@rename_errors
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """What pack_padded_sequence() was given: (T, B, ...), or with batch_first (B, T, ...), with padding_value behind
    each sequence, and the lengths (B). T is the longest length, or total_length, which is no less.

    >>> packed = norch.nn.utils.rnn.pack_sequence([norch.tensor([1, 2]), norch.tensor([3])])
    >>> norch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    told = steps_of(sequence, "pad_packed_sequence")
    data, batch_sizes, _, back = sequence
    longest, rows = len(told), told[0]
    steps = longest if total_length is None else total_length
    if steps < longest:
        raise ArgumentError(f"pad_packed_sequence: total_length {total_length} for sequences of up to {longest}")
    there = arange(rows, device="cpu") < batch_sizes.unsqueeze(1)
    out = data.new_full((steps * rows, *data.shape[1:]), padding_value).index_copy(0, _places(there, data), data)
    out, lengths = out.unflatten(0, (steps, rows)), there.sum(0)
    if back is not None:
        out, lengths = out.index_select(1, back), lengths[back.cpu()]
    return out.transpose(0, 1) if batch_first else out, lengths


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """pack_padded_sequence() of sequences (L, ...) of different lengths, which fall unless enforce_sorted is False.

    >>> norch.nn.utils.rnn.pack_sequence([norch.ones(3, 2), norch.ones(1, 2)]).batch_sizes
    tensor([2, 1, 1])
    """
    listed = tensors_of(sequences, "pack_sequence")
    padded = pad_sequence(listed)
    return pack_padded_sequence(padded, [x.shape[0] for x in listed], enforce_sorted=enforce_sorted)


@rename_errors
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that pack_sequence() was given.

    >>> norch.nn.utils.rnn.unpack_sequence(norch.nn.utils.rnn.pack_sequence([norch.ones(2), norch.zeros(1)]))
    [tensor([1., 1.]), tensor([0.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__getattr__ = nothing_more(__name__)
