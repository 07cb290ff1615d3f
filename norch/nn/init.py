"""Initial values. Each function fills a tensor in place, unrecorded, and gives it back.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming).
"""

from __future__ import annotations

import math
import warnings

from ..autograd import no_grad
from ..create import eye
from ..errors import ShapeError
from ..ops._operand import own_errors
from ..tensor import Tensor


@own_errors
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform in [a, b).

    >>> bool((norch.nn.init.uniform_(norch.empty(100), 2, 3) >= 2).all())
    True
    """
    with no_grad():
        return tensor.uniform_(a, b)


@own_errors
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with the given mean and standard deviation."""
    with no_grad():
        return tensor.normal_(mean, std)


@own_errors
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal with the given mean and standard deviation, drawn again until it lies in [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("trunc_normal_: mean is more than 2 std from [a, b]", stacklevel=3)
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
    with no_grad():  # the inverse of the distribution, of uniform numbers
        return tensor.uniform_(low, high).erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)


@own_errors
def eye_(tensor: Tensor) -> Tensor:
    """The identity, for a matrix."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: a matrix is wanted, not shape {tuple(tensor.shape)}")
    with no_grad():
        return tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@own_errors
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Every element `val`."""
    with no_grad():
        return tensor.fill_(val)


@own_errors
def zeros_(tensor: Tensor) -> Tensor:
    """Every element 0."""
    return constant_(tensor, 0.0)


@own_errors
def ones_(tensor: Tensor) -> Tensor:
    """Every element 1."""
    return constant_(tensor, 1.0)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which the weights before `nonlinearity` grow to keep the variance; `param` is the
    negative slope of leaky_relu. An unknown name raises a ValueError.

    >>> norch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in ("linear", "identity", "conv1d", "conv2d", "conv3d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"unsupported nonlinearity {nonlinearity!r}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError("fan in and fan out can not be computed for a tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode {mode!r} not supported, please use one of 'fan_in', 'fan_out'")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@own_errors
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out)); the tensor needs at least 2 dimensions."""
    bound = gain * math.sqrt(6.0 / max(1, sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound)


@own_errors
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(1, sum(_calculate_fan_in_and_fan_out(tensor)))))


@own_errors
def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform in +-gain * sqrt(3 / fan), where `a` is the slope for leaky_relu's gain."""
    if tensor.numel() == 0:
        warnings.warn("initializing zero-element tensors is a no-op", stacklevel=3)
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fan(tensor, mode))
    return uniform_(tensor, -bound, bound)


@own_errors
def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with standard deviation gain / sqrt(fan)."""
    if tensor.numel() == 0:
        warnings.warn("initializing zero-element tensors is a no-op", stacklevel=3)
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))
