"""The autocast setting of each thread. amp/autocast_mode.py changes it, ops/_autocast.py casts by it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from threading import get_ident

from .._package.typing import Any
from ..dtype import bfloat16, float16
from ..dtype import dtype as DType
from .grad_mode import Guard, mode

DEVICE_TYPES = ("cpu", "cuda")  # in the order of their numbers in C


def modes_of(devices: Iterable[Any]) -> int:
    """The mode bits of a thread that casts on these types of device, as defined in csrc/python/modes.h."""
    return sum(2 << i for i, casts in enumerate(devices) if casts)


_UNSET = (False, False), (bfloat16, float16), True
_SET = 32  # NR_CAST_SETTING of csrc/python/modes.h


class Setting:
    """An immutable setting of autocast.

    enabled, dtypes  for each device type, whether it casts, and to which dtype
    active           whether any is enabled
    caching, cache   whether casts of weights are cached, and where; None outside of any autocast
    read             what programs can read of it; None if nothing was set
    modes            enabled, and whether anything was set, as bits of csrc/python/modes.h
    """

    __slots__ = ("_off", "active", "cache", "caching", "dtypes", "enabled", "modes", "read")
    _off: Setting | None

    def __init__(
        self,
        enabled: tuple[bool, ...] = (False, False),
        dtypes: tuple[DType, ...] = (bfloat16, float16),
        caching: bool = True,
        cache: dict[Any, Any] | None = None,
    ):
        self.enabled, self.dtypes, self.caching, self.cache = enabled, dtypes, caching, cache
        self.active = any(enabled)
        read = (enabled, dtypes, caching)
        self.read = None if read == _UNSET else read
        self.modes = modes_of(enabled) | (_SET if self.read else 0)
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


_DEFAULT = Setting()


def current() -> Setting:
    """The setting of this thread."""
    return mode.autocast or _DEFAULT


class _Reset:
    """Resets the setting of a thread when the thread ends; otherwise mode.casting would stay True."""

    def __init__(self) -> None:
        self._thread = get_ident()

    # Defaults, because the module's globals may be gone when the interpreter exits.
    def __del__(self, mode: Any = mode, default: Setting = _DEFAULT, get_ident: Callable[[], int] = get_ident) -> None:
        if get_ident() == self._thread:  # not in a forked child, which has no other threads
            mode.autocast = default


_local = threading.local()


def set_current(setting: Setting) -> None:
    """Changes the setting of this thread, outside any `with`."""
    if not hasattr(_local, "reset"):
        _local.reset = _Reset()
    mode.autocast = setting


class using(Guard):  # noqa: N801  (as no_grad)
    """A setting within a `with`. One object may be entered many times, also nested."""

    def __init__(self, setting: Setting):
        self._setting = setting
        self._restores: list[Callable[[], Any]] = []

    def __enter__(self) -> Any:
        return self._enter(self._setting)

    def _enter(self, setting: Setting) -> Any:
        self._restores.append(partial(setattr, mode, "autocast", current()))
        mode.autocast = setting
        return self


def autocast_off() -> using:
    """A `with` without casts: backward() keeps the dtypes of forward, and in-place calls and out= those of their
    arguments."""
    return using(current().off)


def fresh_cast_cache() -> using:
    """A `with` with this thread's setting and an empty cache. A recording must not use earlier casts, which a replay
    would not make, and later code must not use its casts."""
    setting = current()
    return using(setting if setting.cache is None else setting.changed(cache={}))
