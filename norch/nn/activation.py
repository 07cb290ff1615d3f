"""The activation layers: each is one function of functional.py, or one method of Tensor, as a Module.

`@ending` marks those that the product of a Linear before them can end in (_endings.py).
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError
from ..ops import create
from ..ops._operand import tensor_of
from ..ops.activation import gelu, gelu_tanh, silu
from ..ops.pointwise import relu, sigmoid, tanh
from ..tensor import Tensor
from . import functional as F
from ._endings import ending
from .module import Module
from .parameter import Parameter


class _Writing(Module):
    """A function of F with an `inplace` argument."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Writing):
    """max(0, x), of any shape; `inplace` writes into the input.

    >>> norch.nn.ReLU()(norch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    @ending(lambda module: relu)
    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, True) if self.inplace else relu(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), of any shape."""

    @ending(lambda module: sigmoid)
    def forward(self, input: Tensor) -> Tensor:
        return sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent, of any shape."""

    @ending(lambda module: tanh)
    def forward(self, input: Tensor) -> Tensor:
        return tanh(input)


class GELU(Module):
    """x times the normal distribution function at x; `approximate="tanh"` takes the classic approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    @ending(lambda module: {"none": gelu, "tanh": gelu_tanh}.get(str(module.approximate)))
    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LogSigmoid(Module):
    """log(sigmoid(x)), of any shape, without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class SiLU(_Writing):
    """x * sigmoid(x), of any shape; `inplace` writes into the input."""

    @ending(lambda module: silu)
    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Writing):
    """x * tanh(softplus(x)), of any shape; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class ReLU6(_Writing):
    """min(max(0, x), 6), of any shape; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SELU(_Writing):
    """A multiple of ELU under which zero mean and unit variance stay; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_Writing):
    """relu6(x + 3) / 6, of any shape; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Writing):
    """x * relu6(x + 3) / 6, of any shape; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class LeakyReLU(_Writing):
    """x for positive x, negative_slope * x for others; `inplace` writes into the input."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + _in_place(self)


class ELU(_Writing):
    """x for positive x, alpha * (exp(x) - 1) for others; `inplace` writes into the input."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + _in_place(self)


class CELU(ELU):
    """x for positive x, alpha * (exp(x / alpha) - 1) for others; `inplace` writes into the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(_Writing):
    """min(max(min_val, x), max_val), of any shape; `inplace` writes into the input.

    >>> norch.nn.Hardtanh(-2, 2)(norch.tensor([-3.0, 1.0]))
    tensor([-2.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if not self.max_val > self.min_val:
            raise ArgumentError(f"Hardtanh: max_val {self.max_val} must be greater than min_val {self.min_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + _in_place(self)


class Threshold(_Writing):
    """x where it is above the threshold, value elsewhere; `inplace` writes into the input."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + _in_place(self)


class RReLU(_Writing):
    """LeakyReLU with slopes drawn from [lower, upper) while training, and their mean otherwise."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + _in_place(self)


def _in_place(module: _Writing) -> str:
    return ", inplace=True" if module.inplace else ""


class PReLU(Module):
    """x for positive x, weight * x for others; weight is learned, one for all or one a channel (dimension 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(create.full((num_parameters,), float(init), dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Sets every weight to what it was in the beginning."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, of any shape; x itself where beta * x is above threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + |x|), of any shape."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x), of any shape."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Hardshrink(Module):
    """x, but 0 where |x| <= lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x less lambd for x above it, x plus lambd for x below -lambd, 0 between."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class GLU(Module):
    """a * sigmoid(b), a and b the halves of the input along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`: the entries there are positive and sum to 1.

    >>> norch.nn.Softmax(dim=0)(norch.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax along `dim`, without overflow."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Softmax):
    """softmax(-x) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """softmax over the channels of images: (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if tensor_of(input, "Softmax2d").ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: expected 3 or 4 dimensions, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)
