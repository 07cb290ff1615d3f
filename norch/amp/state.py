"""The setting of autocast in each thread. autocast_mode.py changes it, entries.py reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from .._package.guard import Guard
from ..dtype import bfloat16, float16
from ..dtype import dtype as DType
from ..errors import DeviceError

DEVICE_TYPES = ("cpu", "cuda")  # in the order of their numbers in C
# Those of PyTorch alone, for which autocast is off, and to which dtype PyTorch casts there.
ELSEWHERE = {
    **dict.fromkeys(("ipu", "mps", "mtia", "privateuseone", "xpu"), float16),
    **dict.fromkeys(("hpu", "maia", "xla"), bfloat16),
}


class Setting:
    """An immutable setting of autocast.

    enabled, dtypes  whether something is cast on devices of each type, and to which dtype
    caching, cache   whether casts of weights are kept, and where; None outside any autocast
    """

    __slots__ = ("_off", "active", "cache", "caching", "dtypes", "enabled")
    _off: Setting | None

    def __init__(
        self,
        enabled: tuple[bool, ...] = (False, False),
        dtypes: tuple[DType, ...] = (bfloat16, float16),
        caching: bool = True,
        cache: dict[Any, Any] | None = None,
    ):
        self.enabled, self.dtypes, self.caching, self.cache = enabled, dtypes, caching, cache
        self.active = True in enabled
        self._off = None

    def changed(self, **changes: Any) -> Setting:
        """A copy of this setting with some attributes changed."""
        now: dict[str, Any] = {"enabled": self.enabled, "dtypes": self.dtypes, "caching": self.caching}
        return Setting(**(now | {"cache": self.cache} | changes))

    @property
    def off(self) -> Setting:
        """This setting with nothing enabled."""
        if not self.active:
            return self
        if self._off is None:
            self._off = self.changed(enabled=(False, False))
        return self._off

    @property
    def effect(self) -> tuple[Any, ...] | None:
        """(the dtype for each type of device or None, caching); None if nothing is cast."""
        if not self.active:
            return None
        return (*(dtype if on else None for on, dtype in zip(self.enabled, self.dtypes, strict=True)), self.caching)


class _State(threading.local):
    setting = Setting()


state = _State()


def position(device_type: str, name: str) -> int:
    """The index of a type of device in a Setting. ValueError if it is no str, DeviceError for an unknown type."""
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: device_type must be a str, not {type(device_type).__name__}")
    if device_type not in DEVICE_TYPES:
        raise DeviceError(f"{name}: there is no autocast for device_type {device_type!r}, only for 'cpu' and 'cuda'")
    return DEVICE_TYPES.index(device_type)


def fresh_cast_cache() -> within:
    """This thread's setting with no casts kept, for a `with` whose own casts go when it ends: a recording begins with
    none that were made before it, and leaves none behind, which nothing after it computes anew."""
    setting = state.setting
    return within(setting if setting.cache is None else setting.changed(cache={}))


class within(Guard):  # noqa: N801  (as no_grad)
    """Another setting within a `with`, where entries.py stays switched as it is."""

    def __init__(self, setting: Setting):
        self._setting = setting
        self._restores: list[Callable[[], Any]] = []

    def __enter__(self) -> None:
        self._restores.append(partial(setattr, state, "setting", state.setting))
        state.setting = self._setting
