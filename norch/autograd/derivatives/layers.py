"""Derivatives of the operations behind layers: convolution, pooling, attention, normalisation."""

from __future__ import annotations

from typing import Any

from ..._lib import lib
from ..forms import Ternary
from ..grad_mode import mode
from .pointwise import Add, Mul

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off

# ---- normalisation of the last axes, or of -axes groups of channels -------------------------------------------------


class Normalize(Ternary):  # of x (a), times weight (b), plus bias; likes: weight and bias, for their shapes
    connected = 2
    __slots__ = ("axes", "centered", "eps")
    axes: Any
    centered: bool
    eps: float
    likes: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        """With f = g weight: scale (f - mean(f) - h mean(f h)), where h is x normalised."""
        to_x, to_weight, to_bias = self.edges
        x, axes = self.a, self.axes
        weight = None if self._b is None else self.b
        if mode.enabled:
            return self._recorded(g, x, weight)
        place = (x._dtype, (x._device_type, x._device_index))
        grad_x = lib.norch_empty(x.shape, *place)
        sums: Any = None
        if to_weight is not None or to_bias is not None:
            sums = lib.norch_empty((2, *(x.shape[1:2] if axes < 0 else x.shape[-axes:])), *place)
        grads = (grad_x,) if sums is None else (grad_x, sums)
        lib.norch_normalize_backward(g, x, weight, axes, self.eps, self.centered, grads)
        return (
            None if to_x is None else grad_x,
            None if to_weight is None else sums.select(0, 0),
            None if to_bias is None else sums.select(0, 1),
        )

    def _recorded(self, g: Any, x: Any, weight: Any) -> tuple[Any, ...]:
        to_x, to_weight, to_bias = self.edges
        shape, dims, groups = x.shape, tuple(range(-self.axes, 0)), -self.axes
        if groups > 0:  # (N, groups, channels, elements)
            x, g = (one.reshape(shape[0], groups, shape[1] // groups, -1) for one in (x, g))
            weight, dims = None if weight is None else weight.reshape(groups, -1, 1), (2, 3)
        centred = x - x.mean(dims, True) if self.centered else x
        scale = (centred.square().mean(dims, True) + self.eps).rsqrt()
        h = centred * scale
        grad_x = None
        if to_x is not None:
            f = g if weight is None else g * weight
            grad_x = f - h * (f * h).mean(dims, True)
            grad_x = ((grad_x - f.mean(dims, True) if self.centered else grad_x) * scale).reshape(shape)
        return grad_x, to_weight and self._summed(g * h, 0), to_bias and self._summed(g, 1)

    def _summed(self, g: Any, which: int) -> Any:
        """As the gradient of weight (0) or bias (1)."""
        return g._reduced("sum", (0, 3), False).flatten() if self.axes < 0 else g._sum_to(self.likes[which])


class Scaled(Mul):  # by a parameter
    connected = 2


class Shifted(Add):  # by a parameter
    connected = 2
