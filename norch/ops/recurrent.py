"""LSTM and GRU over all steps of a sequence as one node: one call forward and one backward (csrc/ops/recurrent.c). The
gradients of the weights are matrix products over all steps at once, made here.
"""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import lib
from .._package.typing import Tensor
from .._tensor.handle import alias
from ..autograd.derivative import derivative
from ..autograd.formula import formula_gradients
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import mode
from ..autograd.record import gradient_edge, is_recorded, record
from .copy import cat, stack
from .matmul import linear
from .pointwise import sigmoid, tanh

# ---- one step of recorded operations --------------------------------------------------------------------------------


def _gates(functions: tuple[Any, ...], xs: tuple[Any, ...], values: tuple[Any, ...] | None) -> list[Any]:
    """function(x) of each x. Where the value is known already, it is the result, with the history of function(x)."""
    if values is None:
        return [function(x) for function, x in zip(functions, xs)]
    return [record(f.node_class(), alias(value), (x,)) for f, x, value in zip(functions, xs, values)]


def lstm_step(from_x: Any, state: tuple[Any, ...], weight: Any, bias: Any, values: Any = None) -> tuple[Any, ...]:
    """c' = sigmoid(f) c + sigmoid(i) tanh(n), h' = sigmoid(o) tanh(c'), with the gates (i, f, n, o) = from_x + what h
    gives them (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)."""
    h, c = state
    gates = (from_x + linear(h, weight, bias)).chunk(4, -1)
    i, f, n, o = _gates((sigmoid, sigmoid, tanh, sigmoid), gates, values)
    c = f * c + i * n
    return o * c.tanh(), c


def gru_step(from_x: Any, state: tuple[Any, ...], weight: Any, bias: Any, values: Any = None) -> tuple[Any, ...]:
    """h' = (1 - z) n + z h, with r and z = sigmoid(from_x + what h gives them), n = tanh(from_x + r times what h gives
    it) (Cho et al. 2014)."""
    (h,) = state
    x_r, x_z, x_n = from_x.chunk(3, -1)
    h_r, h_z, h_n = linear(h, weight, bias).chunk(3, -1)
    r, z = _gates((sigmoid, sigmoid), (x_r + h_r, x_z + h_z), values)
    (n,) = _gates((tanh,), (x_n + r * h_n,), None if values is None else values[2:])
    return (n.lerp(h, z),)


def _composed(from_x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool, kept: Any) -> Any:
    """All h, and the last c of an LSTM, flattened and joined, of recorded operations. kept are the values of the gates:
    from_x need not have values then, because its derivative does not depend on them.
    """
    steps, rows, _, size = _sizes(from_x.shape, h.shape)
    state: Any = tuple(x.reshape(rows, size) for x in (h, c) if x is not None)
    hs: list[Any] = []
    parts = list(zip(from_x.reshape(steps, rows, -1).unbind(0), kept.unbind(0)))
    for x, values in reversed(parts) if reverse else parts:
        state = (gru_step if c is None else lstm_step)(x, state, weight, bias, values.chunk(4, -1))
        hs.append(state[0])
    all_of = stack(hs[::-1] if reverse else hs).flatten()
    return all_of if c is None else cat([all_of, state[1].flatten()])


# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _empty(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return lib.norch_empty(shape, like._dtype, (like._device_type, like._device_index))


def _as(x: Any, shape: tuple[int, ...]) -> Any:
    """x (or None) contiguous and of this shape, outside any graph."""
    return None if x is None else lib.norch_reshape(x if x._contiguous else lib.norch_clone(x), shape)


def _sizes(shape: tuple[int, ...], state: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The numbers of steps and rows, gates * size and size, from the gates' input and a state. A single step has the
    leading axes of its state.
    """
    return shape[0] if len(shape) > len(state) else 1, math.prod(state[:-1]), shape[-1], state[-1]


def _backward(
    g: Any,
    h: Any,
    c: Any,
    weight: Tensor,
    bias: Tensor,
    shape: tuple[int, ...],
    to_x: Any,
    reverse: bool,
    hs: Any,
    kept: Tensor,
    cs: Tensor | None,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The gates' gradients, step by step from the last one, and from all of them the gradients of the weight and the
    bias. from_x has this shape, and its gradient goes to to_x; its elements are not stored.
    """
    g_hs, g_c = (g.get(0), g.get(1)) if isinstance(g, Outputs) else (g, None)
    state = lib.norch_shape(h)
    steps, rows, gates, size = _sizes(shape, state)
    if mode.enabled:
        parts = [h.new_zeros(steps * rows * size) if g_hs is None else g_hs.flatten()]
        if c is not None:
            parts.append(c.new_zeros(rows * size) if g_c is None else g_c.flatten())
        from_x = h.new_zeros(shape)
        from_x._node = to_x
        inputs = from_x, h, c, weight, bias
        return formula_gradients(_composed, cat(parts), inputs, needs_input_grad, reverse, kept)
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
    of_state = (_as(grad_h, state) if to_h else None, _as(grad_state, state) if to_c else None)
    return _as(grad_x, shape), *of_state, grad_weight, grad_bias


_Recurrent = derivative(
    "recurrent", ("from_x", "h", "c", "weight", "bias"), backward=_backward, tensors=("hs", "kept", "cs")
)


def has_kernel(from_x: Tensor, *others: Any) -> bool:
    """Whether the kernel takes these tensors. Other dtypes are computed by recorded steps."""
    dtype = from_x._dtype
    return from_x.dtype.itemsize > 2 and all(x is None or x._dtype == dtype for x in others) and from_x._numel > 0


def recurrent(
    from_x: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, bias: Tensor | None, reverse: bool = False
) -> tuple[Any, ...]:
    """All h (steps, rows, size) and the last c of an LSTM. from_x (steps, rows, gates * size) is the input's part of
    the gates; the first h and c are (rows, size). Without c it is a GRU. reverse goes from the last step to the first.
    A from_x (..., gates * size) and states (..., size) are one step, which gives the next h and c.
    """
    shape, state = lib.norch_shape(from_x), lib.norch_shape(h)
    steps, rows, gates, size = _sizes(shape, state)
    inputs = from_x, h, c, weight, bias
    recorded = is_recorded(inputs)
    saved = steps if recorded else 1  # of what the gradients need, the last step alone
    hs: Any = _empty((steps, rows, size), h)
    kept, cs = _empty((saved, rows, 4 * size), h), None if c is None else _empty((saved, rows, size), h)
    first = [_as(x, (rows, size)) for x in (h, c)]
    lib.norch_recurrent(_as(from_x, (steps, rows, gates)), *first, weight, _as(bias, (gates,)), reverse, hs, kept, cs)
    out = hs
    last: Any = None if c is None else lib.norch_select(cs, 0, 0 if reverse else -1)
    if last is not None and recorded:
        last = lib.norch_clone(last)
    if steps == 1:  # what the gradients do not need
        hs = None
    elif recorded:  # the result may be written to
        out = lib.norch_clone(hs)
    if len(shape) == len(state):
        out, last = (_as(x, state) for x in (out, last))
    node: Any = record(_Recurrent, out, inputs, (shape, gradient_edge(from_x), reverse, hs, kept, cs))._node
    if node is not None and c is not None:
        out._node, last._node = Output(node, 0), Output(node, 1)
    return out, last
