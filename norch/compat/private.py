"""Names that libraries import from PyTorch's private modules and norch has an equivalent for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

import norch

from ..autograd.levels import within
from ..ops import copy

timeout = timedelta(minutes=30)
TensorMeta = type(norch.Tensor)


def itself(x: Any, *rest: Any) -> Any:
    """x."""
    return x


def tqdm(iterable: Any = None, **options: Any) -> Any:
    """tqdm.tqdm() if the package is installed."""
    return import_module("tqdm").tqdm(iterable, **options)


@contextmanager
def nvtx_range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for NVIDIA's profilers, which norch does not mark: a context or decorator without effect."""
    yield


def logger(name: str, *more: str) -> logging.Logger:
    """logging.getLogger(name)."""
    return logging.getLogger(name)


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Any:
    """A function that calls if_true or if_false, depending on its argument arg_name or the one at arg_index."""

    def dispatched(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatched.__name__, dispatched.__module__ = func_name, module_name
    return dispatched


def group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> dict[Any, Any]:
    """{(device, dtype) of a tensor in the first list: (lists of the tensors at the same positions, the positions)}."""
    places: dict[Any, list[int]] = {}
    for place, x in enumerate(tensorlistlist[0]):
        places.setdefault((x.device, x.dtype), []).append(place)
    return {
        key: ([[each[i] for i in columns] if each else [] for each in tensorlistlist], columns if with_indices else [])
        for key, columns in places.items()
    }


class Backend(str):
    """The lower-case name of a backend of norch.distributed."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi"]

    def __new__(cls, name: str) -> Backend:
        return str.__new__(cls, name.lower())


class DispatchKeySet(frozenset[Any]):
    """A set of keys. norch has no dispatch keys, so nothing reads it."""

    def __new__(cls, *keys: Any) -> DispatchKeySet:
        return frozenset.__new__(cls, keys)


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Parses the arguments of Tensor.to(): device, dtype, non_blocking, memory format."""
    dtype, device, non_blocking, _ = copy.parse_to(*args, **kwargs)
    return None if device is None else norch.device(device), dtype, non_blocking, kwargs.get("memory_format")


def accelerator() -> Any:
    """The device that computes on this machine: CUDA or the CPU."""
    return norch.accelerator.current_accelerator() or norch.device("cpu")


def default_device() -> str:
    """The type of the default device."""
    return norch.get_default_device().type


def in_transform() -> bool:
    """Whether this thread runs inside vmap()."""
    return bool(within.levels)


def data_address(x: Any) -> int:
    """The address of a tensor's first element."""
    return x.data_ptr()


def is_alias_of(x: Any, other: Any) -> bool:
    """Whether two tensors share a storage."""
    return x.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
