"""Functions of layers that PyTorch has in C, such as torch.batch_norm and torch._VF.lstm, in their argument order."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..func import functional_call
from ..nn import functional as F
from ..nn.extras.embedding_bag import _bags
from ..nn.utils.rnn import PackedSequence
from ..ops.create import arange
from ..tensor import Tensor
from .aten_kernels import KERNELS

convolution, native_batch_norm = KERNELS["convolution"], KERNELS["native_batch_norm"]
native_group_norm, native_layer_norm = KERNELS["native_group_norm"], KERNELS["native_layer_norm"]


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """F.embedding()."""
    return KERNELS["embedding"](weight, indices, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(F.embedding_bag(), the bag of each index, the sizes of the bags, the index of each maximum or again the sizes);
    mode 0 is "sum", 1 "mean", 2 "max". For sums PyTorch omits or zeroes the values that it does not need."""
    out = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    bag, count = _bags(indices, offsets, include_last_offset)
    index, counted = indices[: bag.shape[0]], bag
    if padding_idx is not None:
        kept = index != padding_idx % weight.shape[0]
        index, counted = index[kept], bag[kept]
    sizes = bag.new_zeros(count).index_add(0, counted, counted.new_ones(counted.shape))
    if mode < 2:
        return out, bag, sizes, sizes
    rows = weight.detach()[index]
    holds = rows == out.detach()[counted]
    first = arange(len(counted), device=bag.device).unsqueeze(1).where(holds, len(counted))
    order = counted.unsqueeze(1).expand_as(first)
    first = bag.new_zeros(count, rows.shape[1]).scatter_reduce(0, order, first, "amin", include_self=False)
    largest = index.new_zeros(first.shape) if not len(index) else index[first].where(sizes.unsqueeze(1) > 0, 0)
    return out, bag, sizes, largest


def batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """F.batch_norm()."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """F.instance_norm()."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _of_given_weights(cls: Any) -> Any:
    """A class of layers that get their weights at each call. They draw no initial weights, not even on the device meta,
    because an export and vmap notice draws."""
    return type(cls.__name__, (cls,), {"reset_parameters": lambda self: None})


_RNNBase = _of_given_weights(nn.RNNBase)


def _layers(mode: str) -> Any:
    def layers(input: Tensor, *arguments: Any) -> tuple[Any, ...]:
        """Takes (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or for a
        PackedSequence (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)."""
        packed = not isinstance(arguments[2], bool)
        sizes, arguments = (arguments[0], (*arguments[1:], False)) if packed else (None, arguments)
        hx, params, bias, count, dropout, train, both, batch_first = arguments
        size = params[1].shape[1]  # of h
        hidden = params[0].shape[0] // 4 if mode == "LSTM" else size
        options = {"bias": bias, "dropout": dropout if count > 1 else 0.0, "bidirectional": both}
        options |= {"batch_first": batch_first, "proj_size": size if size < hidden else 0, "device": "meta"}
        layer: Any = _RNNBase(mode, params[0].shape[1], hidden, count, **options).train(train)
        kinds = [*_KINDS[: 4 if bias else 2], *["weight_hr"] * (size < hidden)]
        names = [f"{kind}{suffix}" for suffix in layer._suffixes() for kind in kinds]
        x = input if sizes is None else PackedSequence(input, sizes)
        out, last = functional_call(layer, dict(zip(names, params, strict=True)), (x, hx))
        return (out if sizes is None else out.data, *(last if mode == "LSTM" else (last,)))

    return _named(layers, mode.lower())


def _cell(cls: Any, *kind: str) -> Any:
    factory = _of_given_weights(cls)

    def cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Any:
        layer = factory(w_ih.shape[1], w_hh.shape[1], b_ih is not None, *(k[4:] for k in kind), device="meta")
        weights = {name: w for name, w in zip(_KINDS, (w_ih, w_hh, b_ih, b_hh)) if w is not None}
        return functional_call(layer, weights, (input, hx))

    return _named(cell, f"{kind[0] if kind else cls.__name__[:-4].lower()}_cell")


def _named(function: Any, name: str) -> Any:
    """function with its name in torch, which overrides get."""
    function.__name__ = function.__qualname__ = name
    return function


_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
lstm, gru, rnn_tanh, rnn_relu = map(_layers, ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"))
lstm_cell, gru_cell = _cell(nn.LSTMCell), _cell(nn.GRUCell)
rnn_tanh_cell, rnn_relu_cell = _cell(nn.RNNCell, "rnn_tanh"), _cell(nn.RNNCell, "rnn_relu")
