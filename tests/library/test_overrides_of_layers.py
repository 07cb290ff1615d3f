"""__torch_function__ where layers call functions: recurrent layers, norms, and tuples that are tensors of a program."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import norch
from norch import nn
from norch.nn.utils.rnn import PackedSequence, pack_padded_sequence

seen: list[str] = []


class Seen(norch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def tensors(result: Any) -> list[Any]:
    """The tensors of a layer's result, in order."""
    if isinstance(result, PackedSequence):
        return [result.data]
    return [x for part in result for x in tensors(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(
    "name, layer",
    [
        ("lstm", nn.LSTM(3, 4)),
        ("lstm", nn.LSTM(3, 4, 2, bias=False, batch_first=True, bidirectional=True, proj_size=2)),
        ("gru", nn.GRU(3, 4, batch_first=True)),
        ("rnn_tanh", nn.RNN(3, 4, 2)),
        ("rnn_relu", nn.RNN(3, 4, nonlinearity="relu")),
        ("lstm_cell", nn.LSTMCell(3, 4)),
        ("gru_cell", nn.GRUCell(3, 4)),
        ("rnn_relu_cell", nn.RNNCell(3, 4, nonlinearity="relu")),
    ],
)
def test_recurrent_layers_keep_the_class(name: str, layer: Any) -> None:
    """They call torch.lstm() and the like, whose results are of the class, and the same."""
    rows = norch.randn(2, 3)
    inputs = [rows, rows[0]] if name.endswith("cell") else [norch.randn(5, 2, 3), norch.randn(5, 3)]
    if not name.endswith("cell"):
        inputs.append(pack_padded_sequence(norch.randn(4, 2, 3), [2, 4], enforce_sorted=False))  # type: ignore[arg-type]
    for x in inputs:
        seen.clear()
        packed: Any = isinstance(x, PackedSequence)
        wrapped = x._replace(data=x.data.as_subclass(Seen)) if packed else x.as_subclass(Seen)
        found, wanted = tensors(layer(wrapped)), tensors(layer(x))
        assert seen.count(name) == 1 and [type(y) for y in found] == [Seen] * len(wanted)
        assert all(norch.equal(y.as_subclass(norch.Tensor), z) for y, z in zip(found, wanted, strict=True))


def test_gradients_flow_through_a_recurrent_layer_of_a_subclass() -> None:
    x, layer = norch.randn(5, 2, 3), nn.LSTM(3, 4)
    of = []
    for value in (x.clone().as_subclass(Seen), x.clone()):
        value.requires_grad_()
        layer.zero_grad()
        layer(value)[0].sum().backward()
        of.append([value.grad, *(p.grad for p in layer.parameters())])
    for a, b in zip(*of, strict=True):
        assert a is not None and b is not None and norch.equal(a.as_subclass(norch.Tensor), b)


class Scaled(NamedTuple):
    """As quantized tensors of programs: a tuple, whose parts are no operands."""

    value: norch.Tensor
    scale: norch.Tensor

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert types == (cls,)
        args = tuple(x.value * x.scale if isinstance(x, Scaled) else x for x in args)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "call",
    [
        nn.Conv2d(2, 3, 3, padding=1), nn.ConvTranspose2d(2, 3, 3), nn.Linear(4, 3), nn.BatchNorm2d(2),
        nn.InstanceNorm2d(2), nn.GroupNorm(1, 2), nn.LayerNorm(4), nn.MaxPool2d(2), nn.ReLU(),
        lambda x: norch.ones(2, 2, 4, 4) + x, norch.exp,
    ],
)  # fmt: skip
def test_tuples_that_override(call: Any) -> None:
    value, scale = norch.randn(2, 2, 4, 4), norch.tensor(0.5)
    for _ in range(2):  # at first the function refuses it, then it is looked for
        assert norch.equal(call(Scaled(value, scale)), call(value * scale))


def test_a_norm_of_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="BatchNorm2d: expected a tensor"):
        nn.BatchNorm2d(2)([1.0])  # type: ignore[arg-type]


def test_a_subclass_has_an_attribute_data_of_its_own() -> None:
    x = norch.ones(2).as_subclass(Seen)
    x._data = "own"  # type: ignore[attr-defined]
    assert x._data == "own" and x.data_ptr() == x.as_subclass(norch.Tensor).data_ptr()  # type: ignore[attr-defined]
