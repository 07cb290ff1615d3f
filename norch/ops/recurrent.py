"""LSTM and GRU over all steps of a sequence as one node: one call forward and one backward (csrc/ops/recurrent.c). The
products for the gradients of the weights are of all steps at once, and stand here.
"""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import mode
from ..autograd.record import edges_of, record
from .copy import cat, stack
from .matmul import linear

# ---- one step of recorded operations --------------------------------------------------------------------------------


def lstm_step(from_x: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    """c' = sigmoid(f) c + sigmoid(i) tanh(n), h' = sigmoid(o) tanh(c'), with the gates (i, f, n, o) = from_x + what h
    gives them (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)."""
    h, c = state
    i, f, n, o = (from_x + linear(h, weight, bias)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * n.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(from_x: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    """h' = (1 - z) n + z h, with r and z = sigmoid(from_x + what h gives them), n = tanh(from_x + r times what h gives
    it) (Cho et al. 2014)."""
    (h,) = state
    r, z, n = from_x.chunk(3, -1)
    h_r, h_z, h_n = linear(h, weight, bias).chunk(3, -1)
    n = (n + (r + h_r).sigmoid() * h_n).tanh()
    return (n.lerp(h, (z + h_z).sigmoid()),)


def _composed(from_x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool) -> Any:
    """All h, and of an LSTM the last c, as one tensor of one dimension, of recorded operations."""
    state, hs = ((h,) if c is None else (h, c)), []
    parts = from_x.unbind(0) if from_x.ndim > h.ndim else (from_x,)
    for part in reversed(parts) if reverse else parts:
        state = (gru_step if c is None else lstm_step)(part, state, weight, bias)
        hs.append(state[0])
    all_of = stack(hs[::-1] if reverse else hs).flatten()
    return all_of if c is None else cat([all_of, state[1].flatten()])


# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _empty(shape: tuple[int, ...], like: Any) -> Any:
    return lib.norch_empty(shape, like._dtype, (like._device_type, like._device_index))


def _as(x: Any, shape: tuple[int, ...]) -> Any:
    """x (or None) contiguous and of this shape, outside any graph."""
    return None if x is None else lib.norch_reshape(x if x._contiguous else lib.norch_clone(x), shape)


def _sizes(from_x: Any, h: Any) -> tuple[int, int, int, int]:
    """Steps, rows, gates * size and size; a step alone has the leading axes of its state."""
    shape, state = lib.norch_shape(from_x), lib.norch_shape(h)
    return shape[0] if len(shape) > len(state) else 1, h._numel // state[-1], shape[-1], state[-1]


def _backward(
    g: Any,
    from_x: Any,
    h: Any,
    c: Any,
    weight: Any,
    bias: Any,
    reverse: bool,
    hs: Any,
    kept: Any,
    cs: Any,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The gates' gradients, step by step from the last one; those of the weight and the bias from all of them."""
    g_hs, g_c = (g.get(0), g.get(1)) if isinstance(g, Outputs) else (g, None)
    steps, rows, gates, size = _sizes(from_x, h)
    if mode.enabled:
        parts = [h.new_zeros(steps * rows * size) if g_hs is None else g_hs.flatten()]
        if c is not None:
            parts.append(c.new_zeros(rows * size) if g_c is None else g_c.flatten())
        return formula_gradients(_composed, cat(parts), (from_x, h, c, weight, bias), needs_input_grad, reverse)
    _, to_h, to_c, to_weight, to_bias = needs_input_grad
    states = [_as(x, (rows, size)) for x in (g_c, h, c)]
    grad_x, grad_state = _empty((steps, rows, gates), h), _empty((rows, size), h)
    of_gates = grad_x if c is not None else _empty((steps, rows, gates), h)
    grad_h = lib.norch_recurrent_backward(
        _as(g_hs, (steps, rows, size)), *states, weight, reverse, hs, kept, cs, grad_x,
        None if c is not None else of_gates, grad_state,
    )  # fmt: skip
    grad_weight = grad_bias = None
    if to_weight:
        first, rest, before = (-1, slice(None, -1), slice(1, None)) if reverse else (0, slice(1, None), slice(None, -1))
        grad_weight = lib.norch_matmul(of_gates[first], states[1], True, False)
        if steps > 1:
            grad_weight += lib.norch_matmul(of_gates[rest].flatten(0, 1), hs[before].flatten(0, 1), True, False)
    if to_bias:
        grad_bias = of_gates.sum((0, 1))
    if c is None and to_h:
        grad_h += grad_state
    shape, state = lib.norch_shape(from_x), lib.norch_shape(h)
    of_state = (_as(grad_h, state) if to_h else None, _as(grad_state, state) if to_c else None)
    return _as(grad_x, shape), *of_state, grad_weight, grad_bias


_Recurrent = derivative(
    "recurrent", ("from_x", "h", "c", "weight", "bias"), backward=_backward, tensors=("hs", "kept", "cs")
)


def has_kernel(from_x: Any, *others: Any) -> bool:
    """Whether the kernel takes these: other dtypes are composed of recorded steps."""
    dtype = from_x._dtype
    return from_x.dtype.itemsize > 2 and all(x is None or x._dtype == dtype for x in others) and from_x._numel > 0


def recurrent(from_x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool = False) -> tuple[Any, ...]:
    """All h (steps, rows, size) and, of an LSTM, the last c, from what the input gives the gates (steps, rows, gates *
    size) and the first h and c (rows, size); without c a GRU. reverse: from the last step to the first. Or one step:
    the next h and c, from (..., gates * size) and (..., size)."""
    steps, rows, gates, size = _sizes(from_x, h)
    hs, kept = (_empty((steps, rows, count * size), h) for count in (1, 4))
    cs = None if c is None else _empty((steps, rows, size), h)
    states = [_as(x, (rows, size)) for x in (h, c)]
    lib.norch_recurrent(_as(from_x, (steps, rows, gates)), *states, weight, _as(bias, (gates,)), reverse, hs, kept, cs)
    inputs, out = (from_x, h, c, weight, bias), hs
    last = None if c is None else lib.norch_clone(lib.norch_select(cs, 0, 0 if reverse else -1))
    if steps == 1:  # what the gradients do not need
        hs = None
    elif mode.enabled and edges_of(inputs)[1]:  # the result may be written to
        out = lib.norch_clone(hs)
    if from_x.ndim == h.ndim:
        out, last = (_as(x, lib.norch_shape(h)) for x in (out, last))
    node = record(_Recurrent, out, inputs, (reverse, hs, kept, cs))._node
    if node is not None and c is not None:
        out._node, last._node = Output(node, 0), Output(node, 1)
    return out, last
