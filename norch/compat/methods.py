"""Private members of PyTorch's classes that programs call. The door (door.py) adds the functions of each class here to
norch's class of the same name: as methods or, with an @ in methods.txt, as computed attributes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from .. import nn
from ..autograd.inplace import check_writable
from ..tensor import Tensor as _Tensor
from ..utils.data import DataLoader as _DataLoader
from .typed_storage import TypedStorage


class Module:
    def _call_impl(self: Any, *args: Any, **kwargs: Any) -> Any:
        return nn.Module.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    def _slow_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def _is_full_backward_hook(self: Any) -> bool | None:
        return True if self._backward_hooks else None


class _List:
    def _get_item_by_idx(self: Any, iterator: Iterator[Any], idx: Any) -> Any:
        return next(itertools.islice(iterator, int(self._get_abs_string_index(idx)), None))

    def _get_abs_string_index(self: Any, idx: Any) -> str:
        size = len(self)
        if not -size <= idx < size:
            raise IndexError(f"index {idx} is out of range")
        return str(idx % size)


class _Conv:
    def _reversed_padding_repeated_twice(self: Any) -> tuple[int, ...]:
        return tuple(self._pairs_of_padding())


class MultiheadAttention:
    def merge_masks(self: Any, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, int | None]:
        """(the combined mask or None, its kind: 1 a key mask (N, L), 2 (N, heads, L, L))."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        count, length, _ = query.shape
        mask = attn_mask.view(count if attn_mask.ndim == 3 else 1, -1, length, length)
        merged = mask.expand(count, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(count, 1, 1, length)
        return merged, 2


class RNNBase:
    def _all_weights(self: Any) -> list[list[str]]:
        kinds = ["weight_ih", "weight_hh", *["bias_ih", "bias_hh"] * self.bias, *["weight_hr"] * bool(self.proj_size)]
        return [[kind + suffix for kind in kinds] for suffix in self._suffixes()]

    def _flat_weights_names(self: Any) -> list[str]:
        return [name for names in RNNBase._all_weights(self) for name in names]

    def _flat_weights(self: Any) -> list[Any]:
        return [getattr(self, name, None) for name in RNNBase._flat_weights_names(self)]

    def check_input(self: Any, input: Any, batch_sizes: Any) -> None:
        ndim = 3 if batch_sizes is None else 2
        if input.ndim != ndim:
            raise RuntimeError(f"input must have {ndim} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self: Any, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        return *LSTM.get_expected_cell_size(self, input, batch_sizes)[:2], self.proj_size or self.hidden_size

    def check_hidden_size(
        self: Any, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self: Any, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if isinstance(hidden, (tuple, list)):
            of_cell = LSTM.get_expected_cell_size(self, input, batch_sizes)
            self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
            self.check_hidden_size(hidden[1], of_cell, "Expected hidden[1] size {}, got {}")
        else:
            self.check_hidden_size(hidden, expected)

    def permute_hidden(self: Any, hx: Any, permutation: Any) -> Any:
        if permutation is None:
            return hx
        if isinstance(hx, (tuple, list)):
            return tuple([x.index_select(1, permutation) for x in hx])
        return hx.index_select(1, permutation)


class LSTM:
    def get_expected_cell_size(self: Any, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        rows = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self.num_layers * (1 + self.bidirectional), rows, self.hidden_size


class ReduceLROnPlateau:
    def mode_worse(self: Any) -> float:
        return float("inf") if self.mode == "min" else -float("inf")

    def _reset(self: Any) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = ReduceLROnPlateau.mode_worse(self), 0, 0


class GradScaler:
    def _found_inf_per_device(self: Any, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_inf_per_device(self: Any, optimizer: Any) -> dict[Any, Any]:
        from ..amp.grad_scaler import _found_inf

        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        by_device: dict[Any, list[Any]] = {}
        for grad in grads:
            by_device.setdefault(grad.device, []).append(grad)
        found = {device: _found_inf(grads) for device, grads in by_device.items()}
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _get_scale_async(self: Any) -> Any:
        return self._scale


class DataLoader:
    def _get_iterator(self: Any) -> Iterator[Any]:
        return _DataLoader.__iter__(self)


class Categorical:
    def _num_events(self: Any) -> int:
        return self._classes


class Tensor:
    def _is_any_true(self: Any) -> Any:
        return self.any()

    def _is_all_true(self: Any) -> Any:
        return self.all()

    def _conj(self: Any) -> Any:
        return self.conj()

    def _neg_view(self: Any) -> Any:
        return -self

    def _typed_storage(self: Any) -> Any:
        return self.storage()

    def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
        """Reshapes to the first elements of the storage. A storage that is too small is replaced by a larger one; other
        tensors that share it keep the old one."""
        shape = size if len(size) != 1 or hasattr(size[0], "__index__") else tuple(size[0])
        if min(shape, default=0) < 0:
            raise RuntimeError(f"resize_: sizes must not be negative, but are {shape}")
        if self.requires_grad:
            raise RuntimeError("cannot resize variables that require grad")
        if tuple(self.shape) == shape:
            return self
        elements, start = _elements(self), self.storage_offset()
        end = start + math.prod(shape)
        if end > elements.numel():
            grown = elements.new_empty(end)
            grown[: elements.numel()] = elements
            elements = grown
        self.data = elements[start:end].view(shape)
        self._bump()
        return self

    def resize_as_(self: Any, the_template: Any, memory_format: Any = None) -> Any:
        return Tensor.resize_(self, tuple(the_template.shape))

    def set_(self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
        """Makes this a view of source, a tensor or storage; without source, an empty tensor."""
        check_writable(self, "set_")
        if source is None:
            self.data = self.new_empty(0)
            return self
        elements = source.detach() if isinstance(source, _Tensor) else _elements_of(source, self.dtype)
        if elements.dtype != self.dtype:
            raise RuntimeError(f"Could not set tensor of type {elements.dtype} to a tensor of type {self.dtype}")
        if size is not None or not isinstance(source, _Tensor):
            whole = _elements(elements)
            size = (whole.numel() - storage_offset,) if size is None else tuple(size)
            ones = [math.prod(size[i + 1 :]) for i in range(len(size))]
            elements = whole.as_strided(size, ones if stride is None else tuple(stride), storage_offset)
        self.data = elements
        return self


def _elements(x: Any) -> Any:
    """All elements of the storage of a tensor."""
    return _elements_of(x.untyped_storage(), x.dtype)


def _elements_of(storage: Any, dtype: Any) -> Any:
    """All elements of a storage; those of a TypedStorage have its dtype."""
    if isinstance(storage, TypedStorage):
        return storage._elements
    size = storage.nbytes() // dtype.itemsize
    return storage.elements[: size * dtype.itemsize].view(dtype)
