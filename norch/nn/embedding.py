"""Embedding: a table of vectors, looked up by integers. The lookup is one recorded operation, `ops.index`."""

from __future__ import annotations

from typing import Any

from .._lib import int64
from ..autograd import no_grad
from ..dtype import dtype as DType
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops._operand import tensor_of
from ..ops.index import embedding_rows
from ..tensor import Tensor
from . import init
from .module import Module
from .parameter import Parameter, blank


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of weight (rows, columns) that input, integers of any shape, names: (*input.shape, columns).

    padding_idx: this row gets no gradient. max_norm: the rows that are read are first shortened to it, in place, by
    the norm of order norm_type. scale_grad_by_freq: the gradient of a row is divided by how often it was read. Sparse
    gradients do not exist here. An index outside [0, rows) raises IndexError.

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
    if sparse:
        raise NotImplementedError("embedding: there are no sparse gradients; leave sparse=False")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= int64(padding_idx, "embedding: padding_idx") < rows:
            raise ArgumentError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
        padding_idx %= rows
    if max_norm is not None:
        with no_grad():
            index = input.reshape(-1)
            read = embedding_rows(weight, index, None, False)
            length = (read.abs() ** norm_type).sum(1, keepdim=True) ** (1 / norm_type)
            weight[index] = (read * (max_norm / (length + 1e-7))).where(length > max_norm, read)
    return embedding_rows(weight, input, padding_idx, scale_grad_by_freq)


class Embedding(Module):
    """A table of num_embeddings vectors of embedding_dim numbers: input, integers of any shape, to (*, embedding_dim).

    weight: (num_embeddings, embedding_dim), normal at first; row padding_idx is 0 and gets no gradient. The rest as
    nn.functional.embedding.

    >>> norch.nn.Embedding(10, 3)(norch.tensor([[1, 2], [4, 5]])).shape
    norch.Size([2, 2, 3])
    """

    weight: Parameter
    # what extra_repr() tells only where it differs
    _usual: dict[str, Any] = {
        "padding_idx": None,
        "max_norm": None,
        "norm_type": 2,
        "scale_grad_by_freq": False,
        "sparse": False,
    }

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is out of range for {num_embeddings} rows")
        name, shape = self._get_name(), (num_embeddings, embedding_dim)
        if _weight is not None and tuple(tensor_of(_weight, f"{name}: _weight").shape) != shape:
            raise ShapeError(f"{name}: a weight of shape {tuple(_weight.shape)} for {shape}")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = blank(self, num_embeddings, embedding_dim, dtype=dtype, device=device)
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws the weight anew, row padding_idx apart."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        """The vectors of these integers."""
        return embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        told = [
            f"{name}={getattr(self, name)!r}" for name, value in self._usual.items() if getattr(self, name) != value
        ]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *told])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer over this table (rows, columns), which is not trained unless freeze is False."""
        if tensor_of(embeddings, "from_pretrained").ndim != 2:
            raise ShapeError(f"from_pretrained: expected 2 dimensions, not shape {tuple(embeddings.shape)}")
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )
