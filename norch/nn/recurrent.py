"""The recurrent layers RNN, LSTM and GRU, and their cells, composed of recorded operations.

A step is a function of the input's contribution to the gates, W_ih x + b_ih, the state, and W_hh and b_hh. One product
computes the contributions of all time steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .._binding.numbers import flag
from ..dtype import dtype as DType
from ..dtype import promote_types
from ..errors import ArgumentError, ShapeError, one_of
from ..ops._autocast import autocast
from ..ops._checks import check_count, with_ndim
from ..ops.copy import cat, stack
from ..ops.matmul import linear
from ..ops.recurrent import gru_step, has_kernel, lstm_step, recurrent
from ..tensor import Tensor
from . import init
from ._layer import changed_options, format_options
from .functional import dropout as dropout_
from .module import Module
from .parameter import add_parameters
from .utils.rnn import PackedSequence, steps_of

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]  # (h,), or (h, c) of an LSTM
Step = Callable[[Tensor, State, Tensor, Tensor | None], State]


@autocast("- lower")
def _tanh(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return ((gates + linear(state[0], weight, bias)).tanh(),)


@autocast("- lower")
def _relu(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return ((gates + linear(state[0], weight, bias)).relu(),)


@autocast("- lower")
def _lstm(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return _fused(gates, state[0], state[1], weight, bias) or lstm_step(gates, state, weight, bias)


@autocast("- lower")
def _gru(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return _fused(gates, state[0], None, weight, bias) or gru_step(gates, state, weight, bias)


def _fused(gates: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, bias: Tensor | None) -> State:
    """A step as one node; () if there is no kernel for it."""
    if not has_kernel(gates, h, c, weight, bias):
        return ()
    new_h, new_c = recurrent(gates, h, c, weight, bias)
    return (new_h,) if c is None else (new_h, new_c)


def _projected(weight_hr: Tensor) -> Step:
    """The step of an LSTM with proj_size: its h is multiplied by weight_hr."""

    @autocast("- lower")
    def step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
        h, c = lstm_step(gates, state, weight, bias)
        return linear(h, weight_hr), c

    return step


# mode: (step, number of gates, number of tensors in the state)
_MODES: dict[str, tuple[Step, int, int]] = {
    "RNN_TANH": (_tanh, 1, 1),
    "RNN_RELU": (_relu, 1, 1),
    "LSTM": (_lstm, 4, 2),
    "GRU": (_gru, 3, 1),
}


def _mode_of(nonlinearity: str, name: str) -> str:
    one_of(f"{name}: nonlinearity", nonlinearity, ("tanh", "relu"))
    return f"RNN_{nonlinearity.upper()}"


def _overrides(*tensors: Tensor) -> Any:
    """The module norch.overrides if the class of one of these tensors overrides operations, else None."""
    if all(type(x) is Tensor for x in tensors):
        return None
    overrides = import_module("norch.overrides")
    return overrides if overrides.has_torch_function(tensors) else None


class _Recurrent(Module):
    """Base of layers and cells: the mode and its weights, initialized uniformly in +-1/sqrt(hidden_size)."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.bias = mode, input_size, hidden_size, bias

    def _add_weights(self, inputs: int, suffix: str, device: Any, dtype: DType | None, projected: int = 0) -> None:
        rows = _MODES[self.mode][1] * self.hidden_size
        bias: Any = rows if self.bias else None
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, projected or self.hidden_size)}
        shapes |= {"bias_ih": bias, "bias_hh": bias}
        if projected:
            shapes["weight_hr"] = projected, self.hidden_size
        add_parameters(self, device, dtype, **{name + suffix: shape for name, shape in shapes.items()})

    def _weights(self, suffix: str) -> list[Any]:
        """The weights of a step. Of a layer without biases, PyTorch's files have no parameters of these names."""
        weights = [getattr(self, name + suffix) for name in ("weight_ih", "weight_hh")]
        return weights + [getattr(self, name + suffix) if self.bias else None for name in ("bias_ih", "bias_hh")]

    def reset_parameters(self) -> None:
        """Initializes all weights."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _function(self) -> Any:
        """torch.lstm(), or the function of this layer's mode, which classes of the input may override."""
        cell = "_cell" if isinstance(self, RNNCellBase) else ""
        return getattr(import_module("norch.compat.layer_functions"), self.mode.lower() + cell)

    def _check_input(self, input: Tensor, *ndims: int) -> None:
        if not isinstance(input, Tensor):
            raise TypeError(f"{self._get_name()}: expected a tensor, not {type(input).__name__}")
        if input.ndim not in ndims or input.shape[-1] != self.input_size:
            wanted = f"{ndims[0]} or {ndims[1]} dimensions, the last of {self.input_size}"
            raise ShapeError(f"{self._get_name()}: expected an input of {wanted}, got shape {tuple(input.shape)}")

    def _state(self, hx: Any, shape: tuple[int, ...], input: Tensor) -> State:
        """hx as a checked tuple; zeros for None. shape: of each of its tensors, except the size of a projected h."""
        count, projected = _MODES[self.mode][2], getattr(self, "proj_size", 0)
        shapes = [(*shape[:-1], projected) if projected else shape, shape][:count]
        if hx is None:
            return tuple(map(input.new_zeros, shapes)) if projected else (input.new_zeros(shape),) * count
        state = hx if count > 1 else (hx,)
        if not isinstance(state, (tuple, list)) or len(state) != count or not all(isinstance(x, Tensor) for x in state):
            wanted = "a tensor" if count == 1 else "a tuple of two tensors"
            raise TypeError(f"{self._get_name()}: hx must be {wanted}")
        for x, of_state in zip(state, shapes, strict=True):
            if tuple(x.shape) != of_state:
                raise ShapeError(f"{self._get_name()}: expected a state of shape {of_state}, got {tuple(x.shape)}")
        return tuple(state)


class RNNBase(_Recurrent):
    """Base of RNN, LSTM and GRU: num_layers stacked layers, in one direction or, with bidirectional, in both.

    mode           "RNN_TANH", "RNN_RELU", "LSTM" or "GRU"
    input_size     the number of features of an element of the sequence
    hidden_size    the number of features of the state h
    bias           whether there are biases
    batch_first    the batch is the first axis of input and output, not the second
    dropout        the probability of dropout between layers
    proj_size      of an LSTM alone: at each step h is multiplied by a parameter weight_hr_lk (proj_size, hidden_size)
                   (Sak et al. 2014), so that h in the result, in hx and in weight_hh_lk has this size, which is less
                   than hidden_size; 0, the default, leaves h as it is

    Parameters of layer k: weight_ih_lk (gates * hidden_size, inputs), weight_hh_lk (gates * hidden_size, hidden_size),
    bias_ih_lk and bias_hh_lk (gates * hidden_size), with 1 gate in RNN, 4 in LSTM and 3 in GRU; with bidirectional also
    those with the suffix _reverse. All are initialized uniformly in +-1/sqrt(hidden_size).

    A PackedSequence (nn.utils.rnn) as input gives a PackedSequence, and the last state of each sequence.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        name = self._get_name()
        super().__init__(mode, input_size, hidden_size, flag(bias, f"{name}: bias"))
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: dropout is a probability, not {dropout}")
        if min(input_size, hidden_size, check_count(num_layers, f"{name}: num_layers", 1 << 16)) < 1:
            sizes = f"{input_size}, {hidden_size} and {num_layers}"
            raise ArgumentError(f"{name}: input_size, hidden_size and num_layers are positive, not {sizes}")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: proj_size is 0 or more, and less than hidden_size, not {proj_size}")
        if proj_size and mode != "LSTM":
            raise ArgumentError(f"{name}: proj_size is an option of LSTM alone")
        if dropout and num_layers == 1:
            warnings.warn(f"{name}: dropout applies between layers, but there is one layer", stacklevel=3)
        self.num_layers, self.dropout = num_layers, float(dropout)
        self.batch_first = flag(batch_first, f"{name}: batch_first")
        self.bidirectional, self.proj_size = bidirectional, proj_size
        for suffix in self._suffixes():
            inputs = input_size if suffix.startswith("_l0") else (proj_size or hidden_size) * (1 + bidirectional)
            self._add_weights(inputs, suffix, device, dtype, proj_size)
        self.reset_parameters()

    def _suffixes(self) -> Iterator[str]:
        for layer in range(self.num_layers):
            yield f"_l{layer}"
            if self.bidirectional:
                yield f"_l{layer}_reverse"

    @property
    def all_weights(self) -> list[list[Any]]:
        """A list of the parameters of each layer and direction."""
        lists = [[*self._weights(suffix), getattr(self, f"weight_hr{suffix}", None)] for suffix in self._suffixes()]
        return [[w for w in weights if w is not None] for weights in lists]

    def flatten_parameters(self) -> None:
        """Does nothing; PyTorch compacts the memory of the weights here."""

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_input(input, 2, 3)
        batched = input.ndim == 3
        x = input.unsqueeze(1) if not batched else input.transpose(0, 1) if self.batch_first else input
        steps, rows = x.shape[:2]
        if not steps:
            raise ShapeError(f"{self._get_name()}: expected a non-empty sequence, got shape {tuple(input.shape)}")
        state = self._state(hx, (self._num_runs(), *(rows,) * batched, self.hidden_size), x)
        state = state if batched else tuple(s.unsqueeze(1) for s in state)
        if (overrides := _overrides(x, *state)) is not None:
            x, last = self._overridden(overrides, x, state, False)
        else:
            x, last = self._layers(x, [rows] * steps, state)
        if not batched:
            x, last = x.squeeze(1), tuple(s.squeeze(1) for s in last)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, last if len(last) > 1 else last[0]

    def _forward_packed(self, input: PackedSequence, hx: Any) -> Any:
        sizes = steps_of(input, self._get_name())
        x, batch_sizes, order, inverse = input
        with_ndim(x, f"{self._get_name()}: packed data", 2)
        self._check_input(x, 2, 3)
        state = self._state(hx, (self._num_runs(), sizes[0], self.hidden_size), x)
        if order is not None and hx is not None:
            state = tuple(s.index_select(1, order) for s in state)
        if (overrides := _overrides(x, *state)) is not None:
            x, last = self._overridden(overrides, x, batch_sizes, state)
        else:
            x, last = self._layers(x, sizes, state)
        last = last if inverse is None else tuple(s.index_select(1, inverse) for s in last)
        return PackedSequence(x, batch_sizes, order, inverse), last if len(last) > 1 else last[0]

    def _overridden(self, overrides: Any, x: Tensor, *arguments: Any) -> tuple[Tensor, State]:
        """_layers() as the class of x overrides it. arguments: the state and False, or batch_sizes and the state."""
        packed = not isinstance(arguments[-1], bool)
        state = arguments[-1] if packed else arguments[0]
        hx = state if len(state) > 1 else state[0]
        weights = [w for weights in self.all_weights for w in weights]
        options = weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        passed = (arguments[0], hx, *options) if packed else (hx, *options, False)
        out, *last = overrides.handle_torch_function(self._function(), (x, *state), x, *passed)
        return out, tuple(last)

    def _num_runs(self) -> int:
        """The number of passes over the sequence: one per layer and direction."""
        return self.num_layers * (1 + self.bidirectional)

    def _layers(self, x: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """The output of the last layer and the final state of all, for x (T, B, inputs), or packed (sum of sizes,
        inputs), and the state (runs, B, its size)."""
        starts = zip(*(s.unbind(0) for s in state), strict=True)
        ends: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropout_(x, self.dropout, self.training)
            outs = []
            for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
                out, end = self._run(x, sizes, next(starts), f"_l{layer}{suffix}")
                outs.append(out)
                ends.append(end)
            x = cat(outs, -1) if self.bidirectional else outs[0]
        return x, tuple(stack(parts) for parts in zip(*ends, strict=True))

    def _run(self, x: Tensor, sizes: list[int], state: State, suffix: str) -> tuple[Tensor, State]:
        """One layer in one direction: x (T, B, inputs) to (T, B, size of h), or both packed, and the final state.
        sizes: the number of sequences at each time step, which does not rise."""
        step = _projected(getattr(self, f"weight_hr{suffix}")) if self.proj_size else _MODES[self.mode][0]
        weight_ih, weight_hh, bias_ih, bias_hh = self._weights(suffix)
        packed, reverse = x.ndim == 2, suffix.endswith("_reverse")
        gates = linear(x, weight_ih, bias_ih)
        if not packed and self.mode in ("LSTM", "GRU") and not self.proj_size:
            h, c = state if len(state) > 1 else (state[0], None)
            arguments: list[Any] = [gates, h, c, weight_hh, bias_hh, reverse]
            dtype = gates.dtype
            if dtype.itemsize == 2:  # computed in float32, rounded once
                arguments = [x.float() if isinstance(x, Tensor) else x for x in arguments]
                if c is None and not gates.is_cuda:  # a GRU adds its state
                    dtype = promote_types(dtype, h.dtype)
            if has_kernel(*arguments[:-1]):
                hs, c = recurrent(*arguments)
                hs, c = hs.to(dtype), None if c is None else c.to(dtype)
                end = hs[0 if reverse else -1]
                return hs, (end,) if c is None else (end, c)
        steps = list(zip(gates.split(sizes) if packed else gates.unbind(0), sizes, strict=True))
        if reverse:
            steps.reverse()
        initial, rows = state, steps[0][1]
        if rows < sizes[0]:  # in reverse: shorter sequences start later
            state = tuple(s[:rows] for s in initial)
        outs, finished = [], []
        for part, size in steps:
            if size < rows:
                finished.append(tuple(s[size:] for s in state))
                state = tuple(s[:size] for s in state)
            elif size > rows:
                state = tuple(cat([s, b[rows:size]]) for s, b in zip(state, initial, strict=True))
            rows = size
            state = step(part, state, weight_hh, bias_hh)
            outs.append(state[0])
        if finished:
            state = tuple(cat(parts) for parts in zip(state, *reversed(finished), strict=True))
        return (cat if packed else stack)(outs[::-1] if reverse else outs), state

    def extra_repr(self) -> str:
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        defaults["bidirectional"] = False
        shown = {"input_size": self.input_size, "hidden_size": self.hidden_size}
        return format_options(shown | changed_options(self, defaults), unnamed=2)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence, or relu instead of tanh (Elman 1990).

    input: (T, B, input_size), (B, T, input_size) with batch_first, or (T, input_size) without a batch. hx, the initial
    h of each layer and direction: (num_layers * directions, B, hidden_size), zeros by default. Returns the pair of the
    h of the last layer at each time step, (T, B, directions * hidden_size), and the final h of all layers, of the shape
    of hx. nonlinearity: "tanh" or "relu". ShapeError for other shapes. Other parameters: RNNBase.

    >>> norch.nn.RNN(3, 4)(norch.ones(5, 2, 3))[0].shape
    norch.Size([5, 2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        mode, both = _mode_of(nonlinearity, "RNN"), bidirectional
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, both, 0, device, dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """c' = sigmoid(f) c + sigmoid(i) tanh(g) and h' = sigmoid(o) tanh(c') over a sequence, with the gates (i, f, g, o)
    = W_ih x + b_ih + W_hh h + b_hh (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    The state is the pair (h, c), each of the shape of hx in RNN; other shapes as there. Returns output, (h, c).
    Parameters: RNNBase.

    >>> out, (h, c) = norch.nn.LSTM(3, 4, num_layers=2, bidirectional=True)(norch.ones(5, 2, 3))
    >>> out.shape, c.shape
    (norch.Size([5, 2, 8]), norch.Size([4, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """h' = (1 - z) n + z h over a sequence, with (r, z) = sigmoid(W_ih x + b_ih + W_hh h + b_hh) and n = tanh(W_in x +
    b_in + r (W_hn h + b_hn)) (Cho et al. 2014, section 2.3).

    As in PyTorch, r multiplies the product with h; in the paper it multiplies h. Shapes as in RNN; parameters: RNNBase.

    >>> norch.nn.GRU(3, 4, batch_first=True)(norch.ones(2, 5, 3))[1].shape
    norch.Size([1, 2, 4])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


# ---- cells: one time step -------------------------------------------------------------------------------------------


class RNNCellBase(_Recurrent):
    """Base of the cells; mode and bias as in RNNBase. Parameters: weight_ih (gates * hidden_size, input_size),
    weight_hh (gates * hidden_size, hidden_size), bias_ih and bias_hh (gates * hidden_size)."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: DType | None
    ) -> None:
        super().__init__(mode, input_size, hidden_size, bias)
        self._add_weights(input_size, "", device, dtype)
        self.reset_parameters()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "mode" not in state:  # of PyTorch's file
            kind = "LSTM" if isinstance(self, LSTMCell) else "GRU" if isinstance(self, GRUCell) else ""
            self.mode = kind or _mode_of(state["nonlinearity"], "RNN")

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        self._check_input(input, 1, 2)
        step = _MODES[self.mode][0]
        weight_ih, weight_hh, bias_ih, bias_hh = self._weights("")
        state = self._state(hx, (*input.shape[:-1], self.hidden_size), input)
        if (overrides := _overrides(input, *state)) is not None:
            passed = input, state if len(state) > 1 else state[0], weight_ih, weight_hh, bias_ih, bias_hh
            return overrides.handle_torch_function(self._function(), (input, *state), *passed)
        out = step(linear(input, weight_ih, bias_ih), state, weight_hh, bias_hh)
        return out if len(out) > 1 else out[0]

    def extra_repr(self) -> str:
        shown = ["bias=False"] * (not self.bias) + ["nonlinearity=relu"] * (self.mode == "RNN_RELU")
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])


class RNNCell(RNNCellBase):
    """One step of RNN (Elman 1990): from x, (B, input_size) or (input_size), and h, (B, hidden_size) or (hidden_size),
    zeros by default, to h'. bias: whether there are biases; nonlinearity: "tanh" or "relu". ShapeError for other
    shapes.

    >>> norch.nn.RNNCell(3, 4)(norch.ones(2, 3)).shape
    norch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(_mode_of(nonlinearity, "RNNCell"), input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """One step of LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000): from x and (h, c), zeros by default, to
    (h', c'). Shapes as in RNNCell.

    >>> h, c = norch.nn.LSTMCell(3, 4)(norch.ones(2, 3))
    >>> h.shape, c.shape
    (norch.Size([2, 4]), norch.Size([2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__("LSTM", input_size, hidden_size, bias, device, dtype)


class GRUCell(RNNCellBase):
    """One step of GRU (Cho et al. 2014): from x and h, zeros by default, to h'. Shapes as in RNNCell.

    >>> norch.nn.GRUCell(3, 4)(norch.ones(3)).shape
    norch.Size([4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__("GRU", input_size, hidden_size, bias, device, dtype)
