"""Products with weights of 8-bit or 4-bit integers (csrc/ops/quantized.c). csrc/families/quantized.h describes the
weights and their scales. The integers have no gradient.
"""

from __future__ import annotations

from math import inf

from .._binding.library import constants, lib
from .._package.typing import Tensor
from ..autograd.derivative import derivative
from ..autograd.record import record
from ..dtype import dtype as DType
from ..dtype import float32
from ._operand import as_operand
from .composed.pad import pad
from .create import full_like, ones_like
from .matmul import linear, product
from .pointwise import where
from .reduce import sum_over

BLOCK = 32  # columns that are stored together
RANGES = {8: (-127, 127), 4: (-8, 7)}  # of the integers, by their bits
SHARES = (1.0, 1.05, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)  # of scales that are tried for 4 bits
_FLOAT64 = constants["FLOAT64"]


def packed_weight(weight: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    """A weight (rows, columns) as integers and scales: (rows, bytes), int8 or uint8, and (rows, groups).

    An integer is the nearest to weight / scale. A scale, in the dtype of the weight, belongs to `group` columns. With 8
    bits it is their largest magnitude over 127. With 4 bits it maps the element of largest magnitude to -8, or is a
    smaller one that cuts the largest elements off: the one with the least sum of squared errors.
    """
    rows, columns = weight.shape
    group = min(group, max(BLOCK, -(-columns // BLOCK) * BLOCK))
    groups, blocks = max(1, -(-columns // group)), -(-columns // BLOCK)
    values = pad(weight.to(float32), (0, groups * group - columns)).reshape(rows, groups, group)
    if bits == 8:
        scale = (values.abs().amax(-1) / 127).to(weight.dtype)
    else:
        high, low = values.amax(-1), values.amin(-1)
        scale = _best_scale(values, where(high > -low, high, low) / -8, weight.dtype)
    integers = _nearest(values, scale, bits).reshape(rows, groups * group)[:, : blocks * BLOCK]
    if bits == 8:
        return integers.char(), scale
    lower, upper = (integers + 8).byte().reshape(rows, blocks, 2, BLOCK // 2).unbind(2)
    return (lower + upper * 16).reshape(rows, blocks * BLOCK // 2), scale


def _nearest(values: Tensor, scale: Tensor, bits: int) -> Tensor:
    """The integers, as floats, of values (rows, groups, group) with these scales (rows, groups)."""
    divisor = where(scale == 0, ones_like(scale), scale).to(float32).unsqueeze(-1)
    return (values / divisor).round().clamp(*RANGES[bits])


def _best_scale(values: Tensor, largest: Tensor, dtype: DType) -> Tensor:
    """The scale with the least squared error in 4 bits, among largest and some smaller scales."""
    best, least = largest.to(dtype), full_like(largest, inf)
    for share in SHARES:
        scale = (largest * share).to(dtype)
        error = (_nearest(values, scale, 4) * scale.to(float32).unsqueeze(-1) - values).square().sum(-1)
        best, least = where(error < least, scale, best), where(error < least, error, least)
    return best


def quantized_weight(packed: Tensor, scale: Tensor, columns: int) -> Tensor:
    """The weight (rows, columns) of these integers and scales, in the dtype of the scales."""
    return lib.norch_quantized_weight(packed, scale, columns).to(scale.dtype)


def quantized_linear(
    input: Tensor, packed: Tensor, scale: Tensor, bias: Tensor | None = None, dynamic: bool = False
) -> Tensor:
    """linear(input, quantized_weight(packed, scale, K), bias) of an input (..., K), in its dtype. float32, float16 and
    bfloat16 are computed in float32, and the weight is not stored as floats. ShapeError if the sizes do not fit.

    With dynamic each row of the input, also of float64, becomes 8-bit integers times a scale, which is its largest
    magnitude over 127. A row with elements that are not finite gives NaN. The gradient is that of the product of
    floats.
    """
    x = as_operand(input, "quantized_linear")
    if x._dtype == _FLOAT64:
        if dynamic:
            return quantized_linear(x.float(), packed, scale, bias, True).to(x.dtype)
        weight = quantized_weight(packed, scale, x.shape[-1]).to(x.dtype)
        return linear(x, weight, None if bias is None else bias.to(x.dtype))
    out = lib.norch_quantized_linear(x, packed, scale, bias, dynamic)
    return record(_QuantizedLinear, out, (x, bias), (packed, scale))


def _grad_x(g: Tensor, x_meta: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
    return product(g, quantized_weight(packed, scale, x_meta.shape[-1]).to(g.dtype))


def _grad_bias(g: Tensor) -> Tensor:
    return g.clone() if g.ndim == 1 else sum_over(g, range(g.ndim - 1))


_QuantizedLinear = derivative(
    "quantized_linear",
    ("x", "bias"),
    grad_x=_grad_x,
    grad_bias=_grad_bias,
    others=("packed", "scale"),
    tensors=("packed", "scale"),
)
