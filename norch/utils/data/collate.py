"""default_collate: a batch from a list of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from importlib import import_module
from typing import Any

from ..._package.override import overrides
from ...dtype import float64
from ...errors import ArgumentError
from ...ops.copy import stack
from ...ops.values import as_tensor, from_numpy, tensor
from ...tensor import Tensor

LARGE_ARRAY = 16 << 10  # bytes: a larger array becomes a tensor first, so that its elements are copied only once

stack_samples: Callable[[Sequence[Any]], Tensor] = lambda samples: stack(list(samples), 0)  # noqa: E731
"""Stacks the samples of a batch: in a worker into shared memory (transport.py)."""

registered: Callable[[Any], Any] | None = None
"""The result of a function that a library has registered for a class of samples, else NotImplemented
(compat/data_utils.py)."""


def stacked(samples: Sequence[Any]) -> Any:
    """Stacks the samples along a new first axis. A subclass that overrides operations stacks its samples."""
    if any(map(overrides, {type(x) for x in samples})):
        return import_module("norch").stack(list(samples), 0)
    return stack_samples(samples)


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples. Tensors and NumPy arrays (...) are stacked to (len(batch), ...); numbers become a 1-d tensor
    (floats float64, integers int64, bools bool); strings and bytes stay a list. Mappings and sequences are collated
    entry by entry, and keep their class; a tuple becomes a list, unless it is a named tuple. TypeError for other types,
    RuntimeError for sequences of unequal lengths, ArgumentError for mappings with different keys.

    >>> norch.utils.data.default_collate([(norch.zeros(2), 1), (norch.ones(2), 2)])
    [tensor([[0., 0.],
            [1., 1.]]), tensor([1, 2])]
    """
    first = batch[0]
    if registered is not None and (collated := registered(batch)) is not NotImplemented:
        return collated
    if isinstance(first, Tensor):
        return stacked(batch)
    if isinstance(first, float) and type(first).__module__ != "numpy":
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    # NumPy is not imported here: before its import there are no arrays
    if type(first).__module__ == "numpy":
        return of_numpy(batch)
    if isinstance(first, Mapping):
        for i, sample in enumerate(batch):
            if not isinstance(sample, Mapping) or sample.keys() != first.keys():
                described = list(sample) if isinstance(sample, Mapping) else type(sample).__name__
                raise ArgumentError(
                    f"default_collate: the dicts of a batch must have the same keys; sample 0 has {list(first)}, "
                    f"sample {i} {described}"
                )
        return remade(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return remade(first, [default_collate(column) for column in zip(*batch, strict=True)])
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first).__name__}"
    )


def default_convert(data: Any) -> Any:
    """Converts a sample without batching: NumPy arrays become tensors, also inside mappings and sequences. Arrays of
    text or objects stay unchanged.

    >>> import numpy
    >>> norch.utils.data.default_convert({"x": numpy.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=norch.float64), 'name': 'a'}
    """
    if type(data).__module__ == "numpy":
        return data if data.dtype.kind in "OSU" else as_tensor(data)
    return _within(default_convert, data)


def pinned(data: Any) -> Any:
    """Copies the tensors of a batch, and objects with a pin_memory(), to pinned memory."""
    return data.pin_memory() if hasattr(data, "pin_memory") else _within(pinned, data)


def _within(change: Callable[[Any], Any], data: Any) -> Any:
    if isinstance(data, Mapping):
        return remade(data, {key: change(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return remade(data, [change(value) for value in data])
    return data


def remade(container: Any, entries: Any) -> Any:
    """A container of the same class with other entries, a dict or list. If the container is mutable: a copy of it with
    these entries, which keeps its other attributes. If not, or for a tuple: the dict or list itself."""
    if hasattr(container, "_fields"):
        return type(container)(*entries)
    if type(container) in (dict, list) or isinstance(container, tuple):
        return entries
    try:
        if not isinstance(container, (MutableMapping, MutableSequence)):
            return type(container)(entries)
        result: Any = copy.copy(container)
        if isinstance(result, MutableMapping):
            result.update(entries)
        else:
            for place, entry in enumerate(entries):
                result[place] = entry
        return result
    except TypeError:
        return entries


def of_numpy(batch: Sequence[Any]) -> Tensor:
    """Stacks NumPy arrays or numbers to a tensor."""
    import numpy

    arrays = [numpy.asarray(sample) for sample in batch]
    kind = arrays[0].dtype
    if arrays[0].nbytes >= LARGE_ARRAY and all(array.flags.writeable and array.dtype == kind for array in arrays):
        return stack_samples([from_numpy(array) for array in arrays])
    array = numpy.stack(arrays)
    if array.dtype.kind not in "buifc":
        raise TypeError(f"default_collate: batch must contain numbers; found an array of dtype {array.dtype}")
    return from_numpy(array)
