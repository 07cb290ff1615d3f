"""Initialization. Each function fills a tensor in place, without recording, and returns it.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming); other docstrings name theirs.
"""

from __future__ import annotations

import math
import warnings

from .._package.exports import publish
from ..autograd import no_grad
from ..dtype import finfo, float32, promote_types
from ..errors import DTypeError, ShapeError, stacklevel_of_user
from ..ops._checks import at_least, with_ndim
from ..ops._entry import rename_errors
from ..ops.create import eye
from ..ops.random import randn, randperm
from ..random import Generator
from ..tensor import Tensor


@rename_errors
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in [a, b). generator, in all functions of this module, draws the numbers; None is the default generator.

    >>> bool((norch.nn.init.uniform_(norch.empty(100), 2, 3) >= 2).all())
    True
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@rename_errors
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with this mean and standard deviation.

    >>> x = norch.nn.init.normal_(norch.empty(10_000), mean=3.0, std=0.1)
    >>> bool((x.mean() - 3).abs() < 0.1)
    True
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@rename_errors
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal with this mean and standard deviation, truncated to [a, b]. DTypeError unless the tensor has floats.

    >>> x = norch.nn.init.trunc_normal_(norch.empty(100), std=5.0)
    >>> bool(x.abs().max() <= 2)
    True
    """
    if not tensor.is_floating_point():
        raise DTypeError(f"trunc_normal_: floats are needed, not {tensor.dtype.name}")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("trunc_normal_: mean is more than 2 std from [a, b]", stacklevel=stacklevel_of_user())
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
    wide = promote_types(tensor.dtype, float32)
    most = 1 - finfo(wide).eps  # erfinv(1) is infinite, and would give a or b, however many std away
    with no_grad():  # the inverse distribution function of uniform numbers
        drawn = tensor if wide is tensor.dtype else tensor.new_empty(tensor.shape, dtype=wide)
        uniform = drawn.uniform_(low, high, generator=generator).clamp_(-most, most)
        drawn = uniform.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)
        return tensor if drawn is tensor else tensor.copy_(drawn)


@rename_errors
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix; ShapeError unless the tensor has 2 dimensions.

    >>> norch.nn.init.eye_(norch.empty(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    with_ndim(tensor, "eye_", 2)
    with no_grad():
        return tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@rename_errors
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Sets every element to `val`.

    >>> norch.nn.init.constant_(norch.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


@rename_errors
def zeros_(tensor: Tensor) -> Tensor:
    """Sets every element to 0.

    >>> norch.nn.init.zeros_(norch.nn.Linear(2, 3).bias).tolist()
    [0.0, 0.0, 0.0]
    """
    return constant_(tensor, 0.0)


@rename_errors
def ones_(tensor: Tensor) -> Tensor:
    """Sets every element to 1.

    >>> norch.nn.init.ones_(norch.empty(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


@rename_errors
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The identity as a convolution's weight (out, in / groups, ...): in each group, 1 at the centre of the kernel from
    input channel i to output channel i, 0 elsewhere. ShapeError unless it has 3 to 5 dimensions.

    >>> norch.nn.init.dirac_(norch.empty(2, 2, 1)).flatten().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    shape = tuple(with_ndim(tensor, "dirac_", 3, 4, 5).shape)
    if shape[0] % groups:
        raise ShapeError(f"dirac_: {shape[0]} output channels are not divisible by {groups} groups")
    middle = tuple(size // 2 for size in shape[2:])
    if tensor.is_meta:
        return tensor
    with no_grad():
        tensor.zero_()
        for first in range(0, shape[0], shape[0] // groups):
            for channel in range(min(shape[0] // groups, shape[1])):
                tensor[(first + channel, channel, *middle)] = 1
    return tensor


@rename_errors
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """A matrix, normal with mean 0, with the fraction `sparsity` (rounded up) of each column set to 0 (Martens 2010).

    >>> (norch.nn.init.sparse_(norch.empty(4, 3), 0.5) == 0).sum(0).tolist()
    [2, 2, 2]
    """
    rows, columns = with_ndim(tensor, "sparse_", 2).shape
    zeros = math.ceil(sparsity * rows)
    if tensor.is_meta:
        return tensor
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows, generator=generator, device=tensor.device)[:zeros], column] = 0
    return tensor


@rename_errors
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """gain times an orthogonal matrix (Saxe et al. 2014); trailing axes are flattened. If it is not square, the shorter
    of its rows and columns are orthonormal. ShapeError for fewer than 2 dimensions.

    The matrix is the Q of the QR decomposition of a normal matrix, with a positive diagonal of R.

    >>> q = norch.nn.init.orthogonal_(norch.empty(2, 3, dtype=norch.float64))
    >>> norch.allclose(q @ q.T, norch.eye(2, dtype=norch.float64))
    True
    """
    if at_least(2, tensor, "orthogonal_").numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    shape = (rows, tensor.numel() // rows)
    with no_grad():
        wide = promote_types(tensor.dtype, float32)
        flat = randn(*shape, generator=generator, dtype=wide, device=tensor.device)
        q = _orthonormal(flat if rows >= shape[1] else flat.t())
        return tensor.copy_((q if rows >= shape[1] else q.t()).reshape(tensor.shape) * gain)


def _orthonormal(a: Tensor) -> Tensor:
    """The Q (M, N) of a (M, N), M >= N, with a positive diagonal of R, by the Gram-Schmidt method. Two passes over each
    column leave rounding errors only (Giraud et al. 2005).
    """
    q = a.new_zeros(a.shape)
    for k in range(a.shape[1]):
        v = a[:, k]
        for _ in range(2):
            v = v - q[:, :k] @ (v @ q[:, :k])
        q[:, k] = v / v.norm()
    return q


_GAINS = dict.fromkeys(("linear", "identity", "sigmoid"), 1.0)
_GAINS |= {f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)}
_GAINS |= {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor of the weights before `nonlinearity` that keeps the variance. param: the negative slope of leaky_relu.
    ValueError for an unknown name.

    >>> norch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    raise ValueError(f"unsupported nonlinearity {nonlinearity!r}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError("fan in and fan out can not be computed for a tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode {mode!r} not supported, please use one of 'fan_in', 'fan_out'")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@rename_errors
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out)); ValueError for fewer than 2 dimensions.

    >>> weight = norch.nn.init.xavier_uniform_(norch.empty(2, 4))
    >>> bool(weight.abs().max() <= 1)  # sqrt(6 / (4 + 2))
    True
    """
    bound = gain * math.sqrt(6.0 / max(1, sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound, generator)


@rename_errors
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    >>> weight = norch.nn.init.xavier_normal_(norch.empty(100, 100))
    >>> bool((weight.std() - 0.1).abs() < 0.02)
    True
    """
    std = gain * math.sqrt(2.0 / max(1, sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


@rename_errors
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in +-gain * sqrt(3 / fan). a: the negative slope of leaky_relu; mode: "fan_in" or "fan_out".

    >>> weight = norch.nn.init.kaiming_uniform_(norch.empty(5, 6), nonlinearity="relu")
    >>> bool(weight.abs().max() <= 1)  # sqrt(2) * sqrt(3 / 6)
    True
    """
    if tensor.numel() == 0:
        warnings.warn("initializing zero-element tensors is a no-op", stacklevel=stacklevel_of_user())
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


@rename_errors
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan); arguments as in kaiming_uniform_.

    >>> weight = norch.nn.init.kaiming_normal_(norch.empty(100, 200), nonlinearity="relu")
    >>> bool((weight.std() - 0.1).abs() < 0.02)
    True
    """
    if tensor.numel() == 0:
        warnings.warn("initializing zero-element tensors is a no-op", stacklevel=stacklevel_of_user())
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


publish(globals())
