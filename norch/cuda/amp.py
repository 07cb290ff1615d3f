"""``norch.cuda.amp``: the names that norch.amp has for CUDA in older programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import amp
from .._package.exports import publish
from ..dtype import dtype as DType
from ..dtype import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):  # PyTorch's name
    """norch.amp.autocast("cuda", ...)."""

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """norch.amp.GradScaler("cuda", ...)."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: DType | None = None) -> Any:
    """norch.amp.custom_fwd(..., device_type="cuda")."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """norch.amp.custom_bwd(..., device_type="cuda")."""
    return amp.custom_bwd(bwd, device_type="cuda")


publish(globals())
