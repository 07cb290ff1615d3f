"""Activations that are functions of tensors, too, and take more than tensors: rows of ops/activation.py."""

from __future__ import annotations

import math

from ..._package.typing import Tensor
from ...dtype import check_numbers
from ...errors import ArgumentError, DTypeError, ShapeError
from .. import activation
from .._checks import floats_of, numbers_of
from .._entry import rename_errors
from .._operand import as_operand
from ..op import method
from ..view import connect

__all__ = ["hardshrink", "prelu", "threshold"]


@rename_errors
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """input where it is above the threshold or NaN, and value elsewhere.

    >>> norch.threshold(norch.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
    """
    input, threshold, value = operands_of_threshold(input, threshold, value)
    return activation.threshold(connect(input), threshold, value)


def operands_of_threshold(input: Tensor, threshold: float, value: float) -> tuple[Tensor, float, float]:
    """The operands of the row. TypeError or DTypeError for arguments that threshold() refuses."""
    check_numbers("threshold", threshold=threshold, value=value)
    input = numbers_of(as_operand(input, "threshold"), "threshold")
    if input.dtype.is_floating_point:
        return input, threshold, float(value)
    if not math.isfinite(threshold + value):
        raise ArgumentError(f"threshold: {threshold} and a value of {value} for dtype {input.dtype.name}")
    return input, math.floor(threshold), int(value)  # a fraction would make the result float


@method(out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input, but 0 where |input| <= lambd. Floats only.

    >>> norch.hardshrink(norch.tensor([-1.0, 0.2, 0.7]))
    tensor([-1.0000,  0.0000,  0.7000])
    """
    check_numbers("hardshrink", lambd=lambd)
    return activation.hardshrink(floats_of(input, "hardshrink"), lambd)


@method(composed=True, autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where it is positive, weight times input where it is negative (He et al. 2015). weight is one number, or
    one for each channel (dimension 1). Floats only.

    >>> norch.prelu(norch.tensor([-2.0, 3.0]), norch.tensor([0.25]))
    tensor([-0.5000,  3.0000])
    """
    input, weight = floats_of(input, "prelu"), floats_of(weight, "prelu")
    if input.dtype is not weight.dtype:
        raise DTypeError(f"prelu: input is {input.dtype.name} but weight is {weight.dtype.name}")
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ShapeError(f"prelu: weight of shape {tuple(weight.shape)} for {channels} channels; needs 1 or {channels}")
    if weight.ndim == 1:
        if input.ndim != 2:  # where it broadcasts as it is
            weight = weight.reshape(()) if input.ndim < 2 else weight.reshape(-1, *(1,) * (input.ndim - 2))
    return activation.leaky_relu(input, weight)
