"""The dropout functions of nn.functional."""

from __future__ import annotations

from typing import Any

from ..._binding.numbers import flag
from ...dtype import check_numbers, float32, promote_types
from ...errors import ArgumentError
from ...ops._arguments import named_function
from ...ops._checks import at_least
from ...ops._entry import rename_errors
from ...ops._operand import tensor_of
from ...ops.create import ones_like
from ...ops.dropout import dropped
from ...ops.pointwise import where
from ...ops.random import rand_like
from ...tensor import Tensor
from ._activation import is_true

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_SELU_LIMIT = -1.7580993408473766  # selu(x) as x goes to -inf


def _probability(name: str, p: float, training: bool) -> float:
    """The probability with which dropout drops an element: 0 outside of training. ArgumentError for a p outside [0,
    1].
    """
    if type(p) is not float:
        check_numbers(name, p=p)
        p = float(p)
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p!r}")
    return p if flag(training, f"{name}: training") else 0.0


@rename_errors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes each element with probability p and multiplies the others by 1 / (1 - p); otherwise
    returns its input (Srivastava et al. 2014).

    >>> norch.nn.functional.dropout(norch.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    tensor_of(input, "dropout")
    if not (p := _probability("dropout", p, training)):
        return input
    result = input * 0.0 if p == 1 else dropped(input, p)
    return input.copy_(result) if is_true(inplace, "dropout: inplace") else result


def _kept(x: Tensor, p: float) -> Tensor:
    """Whether each element of x is kept. A dtype of 16 bits would round p to one of few probabilities."""
    return rand_like(x, dtype=promote_types(x.dtype, float32)) >= p


def _dropout_channels(axes: int, shape: str) -> Any:
    name = f"dropout{axes}d"

    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        at_least(2, input, name)
        if not (p := _probability(name, p, training)):
            return input
        lead = 1 if axes == 1 and input.ndim == 2 else 2  # (C, L), or (N, C, ...)
        channels = input.detach()[(..., *(slice(0, 1),) * (input.ndim - lead))]
        ones = ones_like(channels, dtype=None if channels.dtype.is_floating_point else float32)
        result = input * (0.0 if p == 1 else dropped(ones, p))
        return input.copy_(result) if is_true(inplace, f"{name}: inplace") else result

    about = f"dropout() of whole channels of input {shape} (Tompson et al. 2015)."
    sizes = ", ".join("4" * (axes + 2))
    about += f"\n\n>>> norch.nn.functional.{name}(norch.ones({sizes})).shape\nnorch.Size([{sizes}])\n"
    return named_function(function, name, about)


dropout1d = _dropout_channels(1, "(N, C, L) or (C, L)")
dropout2d = _dropout_channels(2, "(N, C, H, W)")
dropout3d = _dropout_channels(3, "(N, C, D, H, W)")


def _alpha_dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool, noise: Any) -> Tensor:
    if not (p := _probability(name, p, training)):
        return input
    scale = ((1 - p) * (1 + p * _SELU_LIMIT * _SELU_LIMIT)) ** -0.5 if p < 1 else 0.0
    result = where(_kept(noise, p), input * scale, _SELU_LIMIT * scale) - p * _SELU_LIMIT * scale
    return input.copy_(result) if is_true(inplace, f"{name}: inplace") else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 of the output of selu(): dropped elements take the limit of selu() at
    -inf, and the result is scaled and shifted (Klambauer et al. 2017).

    >>> norch.nn.functional.alpha_dropout(norch.ones(3), training=True).shape
    norch.Size([3])
    """
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, tensor_of(input, "alpha_dropout"))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout() of whole channels of input (N, C, ...).

    >>> norch.nn.functional.feature_alpha_dropout(norch.ones(2, 3), training=True).shape
    norch.Size([2, 3])
    """
    name = "feature_alpha_dropout"
    channels = at_least(2, input, name)[(..., *(slice(0, 1),) * (input.ndim - 2))]
    return _alpha_dropout(name, input, p, training, inplace, channels)
