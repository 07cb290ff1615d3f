"""autocast, which sets the precision of operations, and functions that read the setting."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from .._package.exports import publish
from .._tensor.handle import Handle
from ..autograd.autocast import DEVICE_TYPES, Setting, current, set_current, using
from ..cuda import is_available
from ..dtype import bfloat16, float16, float64
from ..dtype import dtype as DType
from ..errors import DeviceError

F = TypeVar("F", bound=Callable[..., Any])
# Types of device of PyTorch alone, for which autocast is off, and to which dtype PyTorch casts there.
_ELSEWHERE = {
    **dict.fromkeys(("ipu", "mps", "mtia", "privateuseone", "xpu"), float16),
    **dict.fromkeys(("hpu", "maia", "xla"), bfloat16),
}

__all__ = [
    "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_dtype", "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype",
    "set_autocast_enabled",
]  # fmt: skip


def _position(device_type: str, name: str) -> int:
    """The index of a type of device in a Setting. ValueError if it is no str, DeviceError for an unknown type."""
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: device_type must be a str, not {type(device_type).__name__}")
    if device_type not in DEVICE_TYPES:
        raise DeviceError(f"{name}: there is no autocast for device_type {device_type!r}, only for 'cpu' and 'cuda'")
    return DEVICE_TYPES.index(device_type)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast takes this type of device: "cpu" and "cuda".

    >>> norch.amp.is_autocast_available("cpu")
    True
    """
    return device_type in DEVICE_TYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread, for this type of device; False for "mps" and others of PyTorch alone.

    >>> with norch.autocast("cpu"):
    ...     print(norch.is_autocast_enabled("cpu"))
    True
    """
    return device_type not in _ELSEWHERE and current().enabled[_position(device_type, "is_autocast_enabled")]


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype to which autocast casts on this type of device. The default is bfloat16 on the CPU and float16 on CUDA.

    >>> norch.get_autocast_dtype("cpu")
    norch.bfloat16
    """
    if device_type in _ELSEWHERE:
        return _ELSEWHERE[device_type]
    return current().dtypes[_position(device_type, "get_autocast_dtype")]


def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps the casts of weights.

    >>> norch.is_autocast_cache_enabled()
    True
    """
    return current().caching


def _with(values: tuple[Any, ...], i: int, value: Any) -> tuple[Any, ...]:
    return (*values[:i], value, *values[i + 1 :])


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turns autocast on or off in this thread, for this type of device. `with autocast(...)` does both by itself.

    >>> norch.set_autocast_enabled("cpu", True)
    >>> norch.is_autocast_enabled("cpu")
    True
    >>> norch.set_autocast_enabled("cpu", False)
    """
    i, setting = _position(device_type, "set_autocast_enabled"), current()
    set_current(setting.changed(enabled=_with(setting.enabled, i, bool(enabled))))


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Sets the dtype that autocast casts to in this thread, on this type of device.

    >>> norch.set_autocast_dtype("cpu", norch.bfloat16)
    """
    i, setting = _position(device_type, "set_autocast_dtype"), current()
    if not isinstance(dtype, DType):
        raise TypeError(f"set_autocast_dtype: dtype must be a norch.dtype, not {type(dtype).__name__}")
    set_current(setting.changed(dtypes=_with(setting.dtypes, i, dtype)))


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether autocast keeps the casts of weights in this thread.

    >>> norch.set_autocast_cache_enabled(True)
    """
    set_current(current().changed(caching=bool(enabled)))


def clear_autocast_cache() -> None:
    """Forgets the casts of weights that autocast keeps in this thread.

    >>> norch.clear_autocast_cache()
    """
    if (cache := current().cache) is not None:
        cache.clear()


class autocast(using):  # noqa: N801  (PyTorch's name)
    """Chooses the precision of the operations inside: products and convolutions compute in dtype, operations that would
    lose too much there in float32, and all others in the dtype of their arguments. docs/amp.md lists them.

    autocast is a context manager, and a decorator. device_type is "cpu" or "cuda"; operations on other devices do not
    change. dtype is bfloat16 or float16, by default get_autocast_dtype(). For another dtype, and for "cuda" without a
    CUDA device, there is a warning, and nothing is cast.

    enabled=False turns casts off inside a part. cache_enabled says whether a weight that is used several times is cast
    once; the casts are freed when the outermost autocast ends. The setting is that of one thread. Call backward() after
    the block; it computes in the dtypes of forward. ValueError for a device_type that is no str, DeviceError for an
    unknown one, TypeError if dtype is not a dtype.

    >>> w = norch.ones(2, 2, requires_grad=True)
    >>> with norch.autocast("cpu"):
    ...     y = norch.ones(2, 2) @ w
    >>> y.dtype
    norch.bfloat16
    >>> y.float().sum().backward()
    >>> w.grad.dtype
    norch.float32
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        self._position = _position(device_type, "autocast")
        self.device = device_type
        self.fast_dtype = current().dtypes[self._position] if dtype is None else dtype
        if not isinstance(self.fast_dtype, DType):
            raise TypeError(f"autocast: dtype must be a norch.dtype, not {type(dtype).__name__}")
        if enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                f"autocast: casts to bfloat16 and float16 only, not {self.fast_dtype}; it is off here", stacklevel=2
            )
            enabled = False
        elif enabled and device_type == "cuda" and not is_available():
            warnings.warn("autocast: there is no CUDA device; it is off here", stacklevel=2)
            enabled = False
        self._enabled = bool(enabled)
        self._caching = current().caching if cache_enabled is None else bool(cache_enabled)
        self._restores = []

    def _changed(self) -> Setting:
        """The thread's setting, changed by this object. The object does not store it: its casts are freed with the last
        `with` that uses it.
        """
        before, i = current(), self._position
        return before.changed(
            enabled=_with(before.enabled, i, self._enabled),
            dtypes=_with(before.dtypes, i, self.fast_dtype),
            caching=self._caching,
            cache={} if before.cache is None else before.cache,
        )

    def __enter__(self) -> Any:
        return self._enter(self._changed())

    def __call__(self, function: F) -> F:
        if not callable(function):
            raise TypeError(f"autocast: decorates functions, not {type(function).__name__}")

        @functools.wraps(function)
        def inside(*arguments: Any, **named: Any) -> Any:
            with using(self._changed()):  # an object for each call, as several threads may be inside
                return function(*arguments, **named)

        return inside  # type: ignore[return-value]


# ---- forward and backward of a norch.autograd.Function -------------------------------------------------------------


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """Floating tensors of a device in a dtype, also those in containers; float64 stays."""
    if isinstance(value, Handle):
        x: Any = value
        eligible = x.dtype.is_floating_point and x.device.type == device_type and x.dtype is not float64
        return x.to(dtype) if eligible else x
    if isinstance(value, (str, bytes)) or hasattr(value, "__array__"):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, dtype): _cast(part, device_type, dtype) for key, part in value.items()}
    if isinstance(value, Iterable):
        parts = (_cast(part, device_type, dtype) for part in value)
        return type(value)(parts) if isinstance(value, (list, tuple)) else parts
    return value


@overload
def custom_fwd(fwd: F, *, device_type: str, cast_inputs: DType | None = ...) -> F: ...
@overload
def custom_fwd(fwd: None = ..., *, device_type: str, cast_inputs: DType | None = ...) -> Callable[[F], F]: ...
def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """Decorates forward(ctx, ...) of a norch.autograd.Function, so that custom_bwd finds the setting of autocast.

    cast_inputs: where autocast is on, floating tensors of this type of device are cast to this dtype, and forward runs
    with autocast off. None: forward runs with autocast as it is.

    >>> class Product(norch.autograd.Function):
    ...     @staticmethod
    ...     @norch.amp.custom_fwd(device_type="cpu", cast_inputs=norch.float32)
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...     @staticmethod
    ...     @norch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         a, b = ctx.saved_tensors
    ...         return g @ b.T, a.T @ g
    >>> with norch.autocast("cpu"):
    ...     Product.apply(norch.ones(2, 2), norch.ones(2, 2)).dtype
    norch.float32
    """
    _position(device_type, "custom_fwd")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*arguments: Any, **named: Any) -> Any:
        on = is_autocast_enabled(device_type)
        if not isinstance(arguments[0], Handle):  # as it is where setup_context() gets ctx
            ctx = arguments[0]
            ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*arguments, **named)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(arguments, device_type, cast_inputs), **_cast(named, device_type, cast_inputs))

    return forward


@overload
def custom_bwd(bwd: F, *, device_type: str) -> F: ...
@overload
def custom_bwd(bwd: None = ..., *, device_type: str) -> Callable[[F], F]: ...
def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates backward(ctx, ...) of a norch.autograd.Function: it runs with autocast as forward did, which
    custom_fwd decorates."""
    _position(device_type, "custom_bwd")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *arguments: Any, **named: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *arguments, **named)

    return backward


publish(globals())
