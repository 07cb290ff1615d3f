"""The activation layers, for floats of any shape. Each applies one function of nn.functional; the docstring of that
function names the source.

`epilogue` marks the layers that Sequential can fuse with the Linear before them (_epilogue.py).
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ops import create
from ..ops._checks import with_ndim
from ..ops.activation import gelu, gelu_tanh, silu
from ..ops.pointwise import relu, sigmoid, tanh
from ..tensor import Tensor
from . import functional as F
from ._epilogue import FUNCTIONS, epilogue
from ._layer import Layer, options
from .module import Module
from .parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


_RELU, _GELU, _SILU = F.relu, F.gelu, F.silu  # before a program patches them


@options
class _InPlace(Layer):
    """An activation that writes into its input if `inplace` is set."""

    inplace: bool = False


class ReLU(_InPlace):
    """max(0, x) (Nair and Hinton 2010), for numbers of any shape and real dtype. inplace: writes into the input.

    >>> norch.nn.ReLU()(norch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    @epilogue(lambda module: relu if FUNCTIONS["relu"] is _RELU else None)
    def forward(self, input: Tensor) -> Tensor:
        return relu(input) if FUNCTIONS["relu"] is _RELU and not self.inplace else F.relu(input, self.inplace)


class Sigmoid(Layer, function=sigmoid, epilogue=lambda module: sigmoid):
    """1 / (1 + exp(-x)), between 0 and 1, for any shape, without overflow.

    >>> norch.nn.Sigmoid()(norch.zeros(1))
    tensor([0.5000])
    """


class Tanh(Layer, function=tanh, epilogue=lambda module: tanh):
    """The hyperbolic tangent, (exp(x) - exp(-x)) / (exp(x) + exp(-x)), for any shape, without overflow.

    >>> norch.nn.Tanh()(norch.tensor([-1.0, 0.0]))
    tensor([-0.7616,  0.0000])
    """


_GELUS = {"none": gelu, "tanh": gelu_tanh}


@options
class GELU(
    Layer,
    function=F.gelu,
    epilogue=lambda module: _GELUS.get(str(module.approximate)) if FUNCTIONS["gelu"] is _GELU else None,
):
    """x * Phi(x), where Phi is the distribution function of the standard normal distribution (Hendrycks and Gimpel
    2016, section 2), for floats of any shape. approximate="tanh" approximates Phi by tanh. ArgumentError for a name
    other than "none" and "tanh".

    >>> norch.nn.GELU()(norch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """

    approximate: str = "none"

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LogSigmoid(Layer, function=F.logsigmoid):
    """log(sigmoid(x)), for any shape, without overflow.

    >>> norch.nn.LogSigmoid()(norch.tensor([0.0]))
    tensor([-0.6931])
    """


class SiLU(_InPlace, function=F.silu, epilogue=lambda module: silu if FUNCTIONS["silu"] is _SILU else None):
    """x * sigmoid(x) (Elfwing et al. 2017), also called swish, for floats of any shape. inplace: writes into the input.

    >>> norch.nn.SiLU()(norch.tensor([-1.0, 1.0]))
    tensor([-0.2689,  0.7311])
    """


class Mish(_InPlace, function=F.mish):
    """x * tanh(softplus(x)) (Misra 2019), for floats of any shape. inplace: writes into the input.

    >>> norch.nn.Mish()(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """


class SELU(_InPlace, function=F.selu):
    """scale * ELU(x), with two constants for which the mean 0 and the variance 1 of activations persist from layer to
    layer (Klambauer et al. 2017, equation 2). Use AlphaDropout with it. inplace: writes into the input.

    >>> norch.nn.SELU()(norch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """


class Hardsigmoid(_InPlace, function=F.hardsigmoid):
    """relu6(x + 3) / 6: Sigmoid approximated by three lines, for floats of any shape. inplace: writes into the input.

    >>> norch.nn.Hardsigmoid()(norch.tensor([-4.0, 0.0]))
    tensor([0.0000, 0.5000])
    """

    _shown = ()


class Hardswish(_InPlace, function=F.hardswish):
    """x * relu6(x + 3) / 6: SiLU approximated without exp (Howard et al. 2019, section 5.2), for floats of any shape.
    inplace: writes into the input.

    >>> norch.nn.Hardswish()(norch.tensor([-1.0, 3.0]))
    tensor([-0.3333,  3.0000])
    """

    _shown = ()


@options
class LeakyReLU(Layer, function=F.leaky_relu):
    """x if x > 0, else negative_slope * x (Maas et al. 2013), for floats of any shape. inplace: writes into the input.

    >>> norch.nn.LeakyReLU(0.1)(norch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False


@options
class ELU(Layer, function=F.elu):
    """x if x > 0, else alpha * (exp(x) - 1) (Clevert et al. 2015, section 3), for floats of any shape. inplace: writes
    into the input.

    >>> norch.nn.ELU()(norch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


@options
class CELU(Layer, function=F.celu):
    """x if x > 0, else alpha * (exp(x / alpha) - 1) (Barron 2017), for floats of any shape. Its derivative is
    continuous for every alpha, unlike the derivative of ELU. inplace: writes into the input.

    >>> norch.nn.CELU(alpha=2.0)(norch.tensor([-2.0, 2.0]))
    tensor([-1.2642,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


class Hardtanh(Layer):
    """min(max(min_val, x), max_val), for any shape. inplace: writes into the input.

    min_value and max_value are PyTorch's deprecated names. ArgumentError unless max_val > min_val.

    >>> norch.nn.Hardtanh(-2, 2)(norch.tensor([-3.0, 1.0]))
    tensor([-2.,  1.])
    """

    _shown: tuple[str, ...] | None = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.inplace = inplace
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if not self.max_val > self.min_val:
            raise ArgumentError(f"Hardtanh: max_val {self.max_val} must be greater than min_val {self.min_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(0, x), 6) (Krizhevsky 2010), for any shape; `inplace` writes into the input.

    >>> norch.nn.ReLU6()(norch.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


@options
class Threshold(Layer, function=F.threshold):
    """x if x > threshold, else value, for any shape. inplace: writes into the input.

    >>> norch.nn.Threshold(1.0, 9.0)(norch.tensor([0.5, 2.0]))
    tensor([9., 2.])
    """

    threshold: float
    value: float
    inplace: bool = False


@options
class RReLU(Layer, function=F.rrelu):
    """LeakyReLU with a random slope (Xu et al. 2015): in training the slope of each element is drawn uniformly from
    [lower, upper); in eval mode it is (lower + upper) / 2. inplace: writes into the input.

    >>> norch.nn.RReLU(0.2, 0.3).eval()(norch.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


class PReLU(Layer):
    """x if x > 0, else weight * x (He et al. 2015, section 2.1). weight is a parameter, initialized to init. It is one
    number, or with num_parameters = C one for each channel of (N, C, ...). ShapeError for an input with another number
    of channels.

    >>> norch.nn.PReLU()(norch.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(create.empty((num_parameters,), dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills the weight with `init`."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


@options
class Softplus(Layer, function=F.softplus):
    """log(1 + exp(beta * x)) / beta (Dugas et al. 2000): a smooth ReLU, for floats of any shape. It is x itself where
    beta * x > threshold.

    >>> norch.nn.Softplus()(norch.tensor([0.0, 50.0]))
    tensor([ 0.6931, 50.0000])
    """

    beta: float = 1.0
    threshold: float = 20.0


class Softsign(Layer, function=F.softsign):
    """x / (1 + |x|), between -1 and 1, for any shape.

    >>> norch.nn.Softsign()(norch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(Layer, function=F.tanhshrink):
    """x - tanh(x), for any shape.

    >>> norch.nn.Tanhshrink()(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """


@options
class _Shrink(Layer):
    lambd: float = 0.5
    _unnamed = 1


class Hardshrink(_Shrink, function=F.hardshrink):
    """x if |x| > lambd, else 0, for floats of any shape.

    >>> norch.nn.Hardshrink()(norch.tensor([0.25, 1.0]))
    tensor([0., 1.])
    """


class Softshrink(_Shrink, function=F.softshrink):
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0, for floats of any shape.

    >>> norch.nn.Softshrink()(norch.tensor([0.25, 1.0]))
    tensor([0.0000, 0.5000])
    """


@options
class GLU(Layer, function=F.glu):
    """a * sigmoid(b), where a and b are the halves of the input along `dim` (Dauphin et al. 2016, section 2). The
    result has half the size there. ShapeError for an odd size.

    >>> norch.nn.GLU()(norch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int = -1


@options
class _Softmax(Layer):
    dim: int | None = None


class Softmax(_Softmax, function=F.softmax):
    """exp(x) / sum(exp(x)) along `dim`: positive numbers with sum 1, for any shape, without overflow. With
    dim None, which is deprecated, the axis is guessed from the number of dimensions, with a warning.

    >>> norch.nn.Softmax(dim=0)(norch.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """


class LogSoftmax(_Softmax, function=F.log_softmax):
    """log(softmax(x)) along `dim`, more accurate than log of Softmax, and without overflow; otherwise as Softmax.

    >>> norch.nn.LogSoftmax(1)(norch.zeros(1, 2))
    tensor([[-0.6931, -0.6931]])
    """


class Softmin(_Softmax, function=F.softmin):
    """softmax(-x) along `dim`; otherwise as Softmax.

    >>> norch.nn.Softmin(dim=0)(norch.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """


class Softmax2d(Module):
    """Softmax over the channels of images (N, C, H, W) or (C, H, W); ShapeError for other numbers of dimensions.

    >>> norch.nn.Softmax2d()(norch.ones(4, 1, 2))[:, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(with_ndim(input, "Softmax2d", 3, 4), -3)
