"""Dropout (Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014). One call
draws and multiplies (csrc/ops/random.c), another computes the gradient.
"""

from __future__ import annotations

from typing import Any

from .._binding.library import constants, lib
from .._package.typing import Tensor
from ..autograd.derivative import derivative
from ..autograd.record import record
from ..random import state_of
from .op import function_op

masked_scale: Any = function_op(
    "masked_scale",
    "b times c where the bool a is true, times 0 elsewhere: the gradient of dropout, and its own.",
    grad_b=lambda g, a, c: masked_scale(a, g, c),
)


def dropped(x: Tensor, p: float) -> Tensor:
    """x, of floats, with each element zeroed with probability p, and the others multiplied by 1 / (1 - p)."""
    scale = 1.0 / (1.0 - p)
    mask = lib.norch_empty(lib.norch_shape(x), constants["BOOL"], (x._device_type, x._device_index))
    out = lib.norch_dropout(state_of(None), x, p, scale, mask)
    return record(_Dropout, out, (x,), (mask, scale))


_Dropout = derivative("dropout", tensors=("mask",), grad=lambda g, mask, scale: masked_scale(mask, g, scale))
