"""Derivatives of the operations behind layers: convolution, pooling, attention, normalisation."""

from __future__ import annotations

from typing import Any

from ..._handle import alias
from ..._lib import lib
from ..forms import Binary, Ternary
from ..grad_mode import mode
from ..inplace import zeros_of
from .pointwise import Add, Mul, Sigmoid, Tanh

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off

# ---- recurrent layers ----------------------------------------------------------------------------------------------


class Lstm(Binary):  # h' and c' of the gates (a) and c (b); kept: the gates' values and tanh(c')
    __slots__ = ("kept",)
    kept: Any

    def propagate(self, g: Any) -> tuple[Any, ...]:
        c = self.b
        i, f, n, o, t = self._recorded(c) if mode.enabled else self.kept
        g_h, g_c = g.get(0), g.get(1)  # Outputs: of h' and c', or of one of them
        if g_h is None:
            g_h = zeros_of(g_c)
        by_h = (g_h * o)._tanh_backward(t)
        g_c = by_h if g_c is None else g_c + by_h
        parts = (
            (g_c * n)._sigmoid_backward(i), (g_c * c)._sigmoid_backward(f),
            (g_c * i)._tanh_backward(n), (g_h * t)._sigmoid_backward(o),
        )
        return g_c._cat_of(parts, -1), None if self.edges[1] is None else g_c * f

    def _recorded(self, c: Any) -> tuple[Any, ...]:
        """The gates' values with their history, in which nobody asks for what the gates were before."""
        size, found = c.shape[-1], []
        gates = c.new_empty((*c.shape[:-1], 4 * size))
        gates._node = self.edges[0]
        for k, value in enumerate(self.kept[:4]):
            node = (Tanh if k == 2 else Sigmoid)(gates._slice(-1, k * size, (k + 1) * size, 1)._node)
            node._x, node._out, node.likes = None, value, None
            found.append(alias(value))
            found[k]._node = node
        i, f, n, o = found
        return i, f, n, o, (f * c + i * n).tanh()

    def release(self) -> None:
        super().release()
        self.kept = None


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
