"""Layers of two inputs: a distance, a similarity, and a bilinear form."""

from __future__ import annotations

from typing import Any

from ..dtype import dtype as DType
from ..tensor import Tensor
from . import functional as F
from . import init
from ._layer import Layer, options
from .parameter import Parameter, add_parameters

__all__ = ["Bilinear", "CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Layer):
    """The p-norm of x1 - x2 + eps over the last axis: (N, D) and (N, D) to (N); other shapes broadcast. keepdim keeps
    the axis, with size 1. eps keeps the gradient finite where x1 = x2.

    >>> norch.nn.PairwiseDistance()(norch.zeros(1, 2), norch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@options
class CosineSimilarity(Layer, function=F.cosine_similarity):
    """The cosine of the angle between x1 and x2 along dim: x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)). Shapes
    broadcast, and dim is not in the result.

    >>> norch.nn.CosineSimilarity(dim=0)(norch.tensor([1.0, 0.0]), norch.tensor([0.0, 2.0]))
    tensor(0.)
    """

    dim: int = 1
    eps: float = 1e-8
    _inputs, _shown = "x1: Tensor, x2: Tensor", ()


class Bilinear(Layer):
    """y[k] = x1 @ weight[k] @ x2 + bias[k]: inputs (..., in1_features) and (..., in2_features) to (..., out_features).

    weight: (out_features, in1_features, in2_features); bias: (out_features), or None. Both are initialized uniformly
    in +-1/sqrt(in1_features).

    >>> norch.nn.Bilinear(2, 3, 4)(norch.ones(5, 2), norch.ones(5, 3)).shape
    norch.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None
    _shown = ("in1_features", "in2_features", "out_features", "bias")

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be > 0, got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        sizes = (out_features, in1_features, in2_features)
        add_parameters(self, device, dtype, weight=sizes, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes weight and bias."""
        bound = self.in1_features**-0.5
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)
