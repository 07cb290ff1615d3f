"""Embedding: a table of vectors, read by integer indices."""

from __future__ import annotations

from typing import Any, ClassVar

from ..autograd import no_grad
from ..dtype import dtype as DType
from ..errors import ShapeError
from ..ops._checks import with_ndim
from ..ops._operand import tensor_of
from ..tensor import Tensor
from . import init
from ._layer import FUNCTIONS, changed_options, format_options
from .module import Module
from .parameter import Parameter, add_parameters

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of num_embeddings vectors of size embedding_dim: integers of any shape (*) give their rows, (*,
    embedding_dim).

    weight: (num_embeddings, embedding_dim), initialized from the standard normal distribution. Row padding_idx is 0,
    and gets no gradient. An index out of range raises IndexError, an input of floats DTypeError. Other arguments as in
    functional.embedding. _weight and _freeze: for from_pretrained().

    >>> norch.nn.Embedding(10, 3)(norch.tensor([[1, 2], [4, 5]])).shape
    norch.Size([2, 2, 3])
    """

    weight: Parameter
    # Options that extra_repr() shows if they differ from these.
    _defaults: ClassVar[dict[str, Any]] = {
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
            add_parameters(self, device, dtype, weight=shape)
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Initializes the weight; row padding_idx becomes 0."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        """Sets row padding_idx to 0. Subclasses in programs that define reset_parameters() call it."""
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["embedding"](
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        shown = {"rows": self.num_embeddings, "columns": self.embedding_dim} | changed_options(self, self._defaults)
        return format_options({name: repr(value) for name, value in shown.items()}, unnamed=2)

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
        """A layer with this table (rows, columns). It is not trained if freeze is True. ShapeError unless the table has
        2 dimensions.
        """
        rows, columns = with_ndim(embeddings, "from_pretrained", 2).shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)
