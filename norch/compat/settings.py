"""Settings, queries and checks by PyTorch's names. Settings that would change no result are only stored."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import norch

from .. import backends
from ..autograd.grad_mode import INFERENCE, mode
from ..ops.composed.type_properties import TYPES
from ..storage import Storage
from .typed_storage import TypedStorage

_values = {"interop": 1, "warn_always": False, "warn_only": False}

# ---- threads, warnings, determinism --------------------------------------------------------------------------------


def get_num_interop_threads() -> int:
    """The number last set, or 1: norch runs one operation at a time."""
    return _values["interop"]


def set_num_interop_threads(num: int) -> None:
    """Has no effect; get_num_interop_threads() returns it."""
    if not isinstance(num, int) or num < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number, got {num!r}")
    _values["interop"] = num


def set_warn_always(b: bool) -> None:
    """Has no effect; Python's filters decide how often warnings are shown."""
    _values["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    return bool(_values["warn_always"])


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: norch always computes with denormal numbers."""
    return False


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms(): 0 or "default" for False, 1 ("warn") and 2 ("error") for True."""
    names = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: 0 to 2, 'default', 'warn' or 'error', not {debug_mode!r}")
    norch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, or 2 after use_deterministic_algorithms(True), or 1 with warn_only."""
    if not norch.are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The warn_only last passed to use_deterministic_algorithms()."""
    return bool(backends._settings.warn_only)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is within norch.inference_mode(). It marks no tensors: Tensor.is_inference() stays False."""
    return bool(mode.grad_mode & INFERENCE)


def set_default_tensor_type(t: Any, /) -> None:
    """Sets the default dtype by a tensor type such as norch.DoubleTensor or "torch.DoubleTensor"."""
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    kinds = {f"{kind}Tensor": dtype for dtype, kind in TYPES.items()}
    if (short := name.rpartition(".")[2]) not in kinds:
        raise TypeError(f"set_default_tensor_type: {t!r} is not a tensor type")
    norch.set_default_dtype(getattr(norch, kinds[short]))


def is_storage(obj: Any, /) -> bool:
    """Whether obj came from Tensor.storage() or Tensor.untyped_storage()."""
    return isinstance(obj, (Storage, TypedStorage))


def get_device_module(device: Any = None) -> ModuleType:
    """norch.cpu or norch.cuda for a device, by default for this machine's accelerator."""
    if device is None:
        device = norch.accelerator.current_accelerator() or "cpu"
    return getattr(norch, norch.device(device).type)


# ---- older names of autocast ---------------------------------------------------------------------------------------


def _autocast(kind: str) -> tuple[Callable[..., Any], ...]:
    return (
        lambda: norch.get_autocast_dtype(kind),
        lambda dtype: norch.set_autocast_dtype(kind, dtype),
        lambda enabled: norch.set_autocast_enabled(kind, enabled),
        lambda: norch.is_autocast_enabled(kind),
    )


get_autocast_cpu_dtype, set_autocast_cpu_dtype, set_autocast_cpu_enabled, is_autocast_cpu_enabled = _autocast("cpu")
get_autocast_gpu_dtype, set_autocast_gpu_dtype, _, _ = _autocast("cuda")

# ---- numbers: PyTorch has symbols for sizes, norch has numbers alone -----------------------------------------------

sym_int, sym_float, sym_sqrt = builtins.int, builtins.float, math.sqrt


def sym_max(a: Any, b: Any) -> Any:
    """The larger, a float if one of them is."""
    return max(a, b) if type(a) is type(b) else max(float(a), float(b))


def sym_min(a: Any, b: Any) -> Any:
    """The smaller, a float if one of them is."""
    return min(a, b) if type(a) is type(b) else min(float(a), float(b))


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_sum(args: Any) -> Any:
    """sum(args)."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f."""
    return t if b else f


# ---- checks --------------------------------------------------------------------------------------------------------


def _checking(error: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Callable[[], str] | None = None) -> None:
        if not isinstance(cond, bool):
            raise TypeError(f"_check: expected a bool, got {type(cond).__name__}")
        if not cond:
            raise error("Expected cond to be True, but got False." if message is None else str(message()))

    check.__doc__ = f"Raises {error.__name__} with message() unless cond is True."
    return check


_check, _check_index, _check_value, _check_type, _check_not_implemented = map(
    _checking, (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)
)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None) -> None:
    """Raises error_type with message() unless cond is True."""
    _checking(error_type)(cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raises error_type with message() unless all elements of the bool tensor cond are True."""
    if not isinstance(cond, norch.Tensor) or cond.dtype is not norch.bool:
        raise TypeError(f"_check_tensor_all: expected a tensor of bools, got {getattr(cond, 'dtype', type(cond))}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """_check() on all elements."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:  # noqa: A002
    """Raises RuntimeError unless 0 <= i, and i <= max."""
    _check(i >= 0 and (max is None or i <= max), message)


def _assert_async(input: Any, assert_msg: str = "") -> None:  # noqa: A002
    """Raises RuntimeError if a one-element tensor is 0."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input: Any) -> Any:  # noqa: A002
    """The sizes of a tensor as an int64 tensor."""
    return norch.tensor(list(input.shape), dtype=norch.int64)


def _has_compatible_shallow_copy_type(input: Any, other: Any) -> bool:  # noqa: A002
    """Whether both are tensors with memory."""
    return input.device.type == other.device.type
