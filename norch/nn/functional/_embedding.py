"""embedding() and one_hot() of nn.functional. The lookup is one recorded operation, ops.embedding.embedding_rows."""

from __future__ import annotations

from ..._binding.library import constants, lib
from ..._binding.numbers import int64 as int_
from ...autograd import no_grad
from ...dtype import int64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops._entry import rename_errors
from ...ops._operand import tensor_of
from ...ops.embedding import embedding_rows
from ...ops.norm import vector_norm
from ...tensor import Tensor

__all__ = ["embedding", "one_hot"]


def padding_row(padding_idx: int, weight: Tensor, name: str) -> int:
    """The row of padding_idx, which may be negative. ArgumentError if there is no such row."""
    rows = weight.shape[0]
    if not -rows <= int_(padding_idx, f"{name}: padding_idx") < rows:
        raise ArgumentError(f"{name}: padding_idx {padding_idx} is out of range for {rows} rows")
    return padding_idx % rows


def shorten_rows(index: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Rescales the rows of weight that are read and longer than max_norm to max_norm, in place."""
    with no_grad():
        index = index.reshape(-1)
        read = embedding_rows(weight, index, None, False)
        length = vector_norm(read, norm_type, 1, True)
        weight[index] = (read * (max_norm / (length + 1e-7))).where(length > max_norm, read)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of weight (rows, columns) at the indices input, integers of any shape: (*input.shape, columns).

    Row padding_idx gets no gradient. With max_norm, rows that are read, and whose norm of order norm_type is larger,
    are first rescaled to max_norm, in place. With scale_grad_by_freq the gradient of a row is divided by its number of
    occurrences. With sparse the gradient of weight is a sparse tensor of the rows that were read (docs/sparse.md);
    NotImplementedError together with scale_grad_by_freq. An index outside [0, rows) raises IndexError.

    >>> norch.nn.functional.embedding(norch.tensor([2, 0]), norch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
    tensor([[4., 5.],
            [0., 1.]])
    """
    for name, x in (("input", input), ("weight", weight)):
        if not isinstance(x, Tensor):
            raise TypeError(f"embedding: {name} must be a tensor, not {type(x).__name__}")
    if input.dtype.kind not in "iu":
        raise DTypeError(f"embedding: input must be integers, not {input.dtype.name}")
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must have 2 dimensions, not shape {tuple(weight.shape)}")
    if sparse and scale_grad_by_freq:
        raise NotImplementedError("embedding: scale_grad_by_freq does not go with sparse gradients")
    if padding_idx is not None:
        padding_idx = padding_row(padding_idx, weight, "embedding")
    if max_norm is not None:
        shorten_rows(input, weight, max_norm, norm_type)
    if sparse:
        from ...sparse.embedding import rows_of  # lazy: few programs need it

        return rows_of(weight, input, padding_idx)
    return embedding_rows(weight, input, padding_idx, scale_grad_by_freq)


@rename_errors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (...) to int64 (..., num_classes): 1 at the class, 0 elsewhere. num_classes -1: the maximum + 1.

    DTypeError for other dtypes, ArgumentError for a class out of range.

    >>> norch.nn.functional.one_hot(norch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    num_classes = int_(num_classes, "one_hot: num_classes")
    if tensor_of(tensor, "one_hot").dtype.kind not in "iu":
        raise DTypeError(f"one_hot: expected integer classes, got {tensor.dtype.name}")
    if num_classes == -1:
        num_classes = int(tensor.amax().item()) + 1 if tensor.numel() else 0
    lib.norch_check((tensor >= 0) & (tensor < num_classes), constants["CHECK_CLASSES"])
    zeros = tensor.new_zeros((*tensor.shape, num_classes), dtype=int64)
    return zeros.scatter_(-1, tensor.to(int64).unsqueeze(-1), 1) if tensor.numel() else zeros
