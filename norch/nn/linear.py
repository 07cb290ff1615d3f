"""Linear, the affine layer, and Identity. The product is one recorded operation, `ops.matmul.linear`."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import dtype as DType
from ..ops.matmul import linear
from ..tensor import Tensor
from . import init
from ._endings import can_end
from .module import Module
from .parameter import Parameter, blank


class Linear(Module):
    """y = x @ weight.T + bias: input (..., in_features) to output (..., out_features).

    weight: (out_features, in_features), uniform in +-1/sqrt(in_features) at first; bias: (out_features),
    likewise, or None. An input whose last size is not in_features raises a ShapeError.

    >>> norch.nn.Linear(3, 2)(norch.ones(5, 3)).shape
    norch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = blank(self, out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", blank(self, out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        if self.weight.numel() > 0:
            init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    @can_end
    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Identity(Module):
    """Gives its input back; arguments of the constructor are ignored, so that it fits any place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input
