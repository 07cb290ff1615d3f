"""``norch.cuda.amp``: the names that norch.amp has for CUDA in older programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import amp, cuda
from .._package.exports import publish
from ..dtype import dtype as DType
from ..dtype import float16

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):  # PyTorch's name
    """norch.amp.autocast("cuda", ...).

    >>> a = norch.ones(2, 2, device="cuda")
    >>> with norch.cuda.amp.autocast():
    ...     (a @ a).dtype
    norch.float16
    """

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """norch.amp.GradScaler("cuda", ...).

    >>> norch.cuda.amp.GradScaler(init_scale=8.0).get_scale()
    8.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device.

    >>> norch.cuda.amp.amp_definitely_not_available() == (not norch.cuda.is_available())
    True
    """
    return not cuda.is_available()


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: DType | None = None) -> Any:
    """norch.amp.custom_fwd(..., device_type="cuda").

    >>> class Double(norch.autograd.Function):
    ...     @staticmethod
    ...     @norch.cuda.amp.custom_fwd(cast_inputs=norch.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @norch.cuda.amp.custom_bwd
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> with norch.cuda.amp.autocast():
    ...     Double.apply(norch.ones(1, dtype=norch.float16, device="cuda")).dtype
    norch.float32
    """
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """norch.amp.custom_bwd(..., device_type="cuda").

    >>> backward = norch.cuda.amp.custom_bwd(lambda ctx, grad: grad * 2)  # custom_fwd() has an example of both
    """
    return amp.custom_bwd(bwd, device_type="cuda")


publish(globals())
