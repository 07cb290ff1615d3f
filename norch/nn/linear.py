"""Linear, the affine layer, and Identity. The product is one recorded operation, `ops.matmul.linear`."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import dtype as DType
from ..tensor import Tensor
from . import init
from ._epilogue import FUNCTIONS, takes_epilogue
from ._layer import Layer
from .module import Module
from .parameter import Parameter, add_parameters

__all__ = ["Identity", "Linear"]


def reset_bias(layer: Any, fan_in: int) -> None:
    """Initializes the bias of a linear or convolutional layer, uniformly in +-1/sqrt(fan_in)."""
    if layer.bias is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(layer.bias, -bound, bound)


class Linear(Layer):
    """y = x @ weight.T + bias: input (..., in_features) to output (..., out_features).

    weight: (out_features, in_features); bias: (out_features), or None. Both are initialized uniformly in
    +-1/sqrt(in_features). ShapeError if the last size of the input is not in_features.

    >>> norch.nn.Linear(3, 2)(norch.ones(5, 3)).shape
    norch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None
    _shown = ("in_features", "out_features", "bias")

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        shapes = {"weight": (out_features, in_features), "bias": out_features if bias else None}
        add_parameters(self, device, dtype, **shapes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes weight and bias."""
        if self.weight.numel() > 0:
            init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        reset_bias(self, self.in_features)

    @takes_epilogue
    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["linear"](input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """The last projection of MultiheadAttention: a Linear with the name that PyTorch's files and programs use."""


class Identity(Module):
    """Returns its input. The constructor ignores its arguments, so that Identity can replace any layer.

    >>> norch.nn.Identity()(norch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input
