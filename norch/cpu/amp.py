"""``norch.cpu.amp``: the names that norch.amp has for the CPU in older programs."""

from __future__ import annotations

from .. import amp
from .._package.exports import publish
from ..dtype import bfloat16
from ..dtype import dtype as DType

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):  # noqa: N801  (PyTorch's name)
    """norch.amp.autocast("cpu", ...)."""

    def __init__(self, enabled: bool = True, dtype: DType = bfloat16, cache_enabled: bool = True):
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """norch.amp.GradScaler("cpu", ...)."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


publish(globals())
