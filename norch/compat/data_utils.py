"""PyTorch's modules utils.data._utils.collate, .worker and .pin_memory.

default_collate(), and so DataLoader, uses what a library adds to default_collate_fn_map.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import norch

from .._package.exports import publish
from ..utils.data import collate as collating
from ..utils.data import worker as own_worker
from ..utils.data.collate import default_collate as default_collate
from ..utils.data.collate import default_convert as default_convert
from ..utils.data.collate import pinned
from ..utils.data.worker import WorkerInfo as WorkerInfo
from ..utils.data.worker import get_worker_info as get_worker_info

MP_STATUS_CHECK_INTERVAL = own_worker.PATIENCE
np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
CollateMap = Mapping[Any, Callable[..., Any]]


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stacks tensors."""
    return collating.stacked(batch)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stacks NumPy arrays or numbers to a tensor."""
    return collating.of_numpy(batch)


collate_numpy_scalar_fn = collate_numpy_array_fn


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """A tensor of float64."""
    return norch.tensor(list(batch), dtype=norch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """A tensor of integers or bools."""
    return norch.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The batch itself."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    norch.Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn,
    bytes: collate_str_fn,
}  # fmt: skip
_OWN = dict(default_collate_fn_map)


def _function_of(sample: Any, functions: CollateMap) -> Callable[..., Any] | None:
    """The function for the class of a sample, or for the first class in the map that it is an instance of."""
    if type(sample) in functions:
        return functions[type(sample)]
    return next((function for cls, function in functions.items() if isinstance(sample, cls)), None)


def _registered(batch: Any) -> Any:
    """Collates a batch by a function that was added to default_collate_fn_map; NotImplemented if there is none."""
    if default_collate_fn_map == _OWN:
        return NotImplemented
    function = _function_of(batch[0], default_collate_fn_map)
    if function is None or function in _OWN.values():
        return NotImplemented
    return function(batch, collate_fn_map=default_collate_fn_map)


collating.registered = _registered


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collates samples with the function of collate_fn_map for the class of the first sample, which gets the samples
    and the map. Mappings and sequences are collated entry by entry. TypeError for other classes, RuntimeError for
    unequal lengths."""
    first = batch[0]
    if collate_fn_map is not None and (function := _function_of(first, collate_fn_map)) is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def column(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return collating.remade(first, {key: column([sample[key] for sample in batch]) for key in first})
    if not isinstance(first, Sequence):
        raise TypeError(default_collate_err_msg_format.format(type(first)))
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return collating.remade(first, [column(samples) for samples in zip(*batch)])


def pin_memory(data: Any, device: Any = None) -> Any:
    """Copies the tensors of a batch to pinned memory."""
    return pinned(data)


class KeyErrorMessage(str):
    """The text of a KeyError, printed as it is."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception and its traceback as text, to be raised in another process. exc_info: as from sys.exc_info(), which
    is the default."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind: Any
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self) -> None:
        """Raises an exception of the same class whose text is the traceback."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:  # its class takes other arguments
            raise RuntimeError(text) from None
        try:
            raise error
        finally:
            del error  # its traceback has this frame


publish(globals(), name="norch.utils.data._utils")
