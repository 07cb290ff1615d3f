"""How autocast casts: while it is on in any thread, the functions of lists.py run an *entry* first.

_package/entries.py explains entries. One reads the setting of its thread. If autocast is off there, it runs the
original code. Otherwise it casts the arguments by the policy of the operation and runs the original code with autocast
off, so that a composed operation is cast as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from operator import and_, attrgetter
from types import FunctionType
from typing import Any

from .._binding.library import lib
from .._package.entries import entry_of
from .._package.guard import Guard
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.node import Leaf
from ..dtype import DTYPES, bfloat16, float16, float32
from ..dtype import dtype as DType
from ..errors import DTypeError, Error
from ..ops._out import Signed
from ..ops.copy import cast
from . import lists
from .state import DEVICE_TYPES, Setting, state, within

_FLOATS = (float16.code, bfloat16.code, float32.code)  # the dtypes that are cast; float64 and complex ones stay


# ---- which dtype ---------------------------------------------------------------------------------------------------


def _tensors(values: Iterable[Any]) -> list[Any]:
    """The tensors among arguments, and in lists and tuples of them."""
    found = []
    for value in values:
        if isinstance(value, Handle):
            found.append(value)
        elif type(value) in (list, tuple):
            found += [x for x in value if isinstance(x, Handle)]
    return found


def _widest(name: str, dtype: DType, tensors: list[Any]) -> DType:
    """float32 if one of the tensors has it, else dtype. Another half float is refused, as by PyTorch."""
    codes = {x._dtype for x in tensors}
    if float32.code in codes:
        return float32
    for code in codes.intersection(_FLOATS):
        if code != dtype.code:
            raise DTypeError(f"{name}: autocast to {dtype.name} does not promote {DTYPES[code].name}")
    return dtype


def _refused(name: str, dtype: DType, tensors: list[Any]) -> DType:
    raise Error(
        f"{name}: its logarithms overflow in half precision, so autocast refuses it; leave out the sigmoid before it "
        "and use binary_cross_entropy_with_logits or BCEWithLogitsLoss, which autocast computes in float32"
    )


# Of a policy of lists.py the dtype to cast to, or None: by the operation, autocast's dtype and the tensors.
_POLICIES: dict[str, Callable[[str, DType, list[Any]], DType | None]] = {
    "given": lambda name, dtype, tensors: None,
    "lower": lambda name, dtype, tensors: dtype,
    "float32": lambda name, dtype, tensors: float32,
    "widest": _widest,
    "refused": _refused,
}


# ---- casts -----------------------------------------------------------------------------------------------------------


def _cast(value: Any, to: DType, device: int, setting: Setting) -> Any:
    """An argument, its tensors on devices of type device cast to a dtype."""
    if isinstance(value, Handle):
        x: Any = value
        if x._dtype == to.code or x._dtype not in _FLOATS or x._device_type != device:
            return value
        is_weight = x._view is None and type(x._node) is Leaf and x._dtype == float32.code
        if is_weight and setting.caching and setting.cache is not None:
            return _kept_cast(x, to, setting.cache)
        return cast(x, to)
    if type(value) in (list, tuple):
        return type(value)([_cast(part, to, device, setting) for part in value])
    return value


def _kept_cast(x: Any, to: DType, kept: dict[Any, Any]) -> Any:
    """The cast of a weight, cached until the weight is written to or replaced."""
    key = id(x), to.code, mode.enabled  # without a graph it has no history
    count = x._version_counter
    now = (x, x._node, x._address, 0 if count is None else count[0])
    known = kept.get(key)
    if known is None or known[0] != now[1:] or known[1] is not x:
        known = kept[key] = (now[1:], x, cast(x, to))
    return known[2]


# ---- entries ---------------------------------------------------------------------------------------------------------


class _Entry:
    """A function, and how it begins while autocast is on for one of devices."""

    def __init__(self, function: FunctionType, *devices: bool):
        self.function, self.entry, self.devices = function, entry_of(function), devices
        self.original = self.entry.original

    def exchange(self, begin: bool) -> None:
        """Makes the function begin here, or as it did."""
        self.entry.change(cast=self.run if begin else None)

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of the function through its entry."""
        raise NotImplementedError


class _Operation(_Entry):
    """Casts the arguments by the policy of the operation."""

    def __init__(self, function: FunctionType, *policies: lists.Policy):
        super().__init__(function, *(policy is not None for policy in policies))
        self.name = function.__name__.strip("_")
        self.policies = [None if policy is None else _POLICIES[policy] for policy in policies]

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        setting = state.setting
        if setting.active and (tensors := _tensors((*arguments, *named.values()))):
            device = max([x._device_type for x in tensors])
            cast_here = device < len(setting.enabled) and setting.enabled[device]  # on "meta" nothing is cast
            policy = self.policies[device] if cast_here else None
            if policy is not None:
                to = policy(self.name, setting.dtypes[device], tensors)
                if to is not None:
                    arguments = tuple([_cast(value, to, device, setting) for value in arguments])
                    named = {key: _cast(value, to, device, setting) for key, value in named.items()}
                with within(setting.off):
                    return self.original(*arguments, **named)
        return self.original(*arguments, **named)


class _Uncast(_Entry):
    """Runs with autocast off."""

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        with within(state.setting.off):
            return self.original(*arguments, **named)


class _CapturedFunctions:
    """Calls of what norch.capture and norch.compile made: in autocast, of recordings for its setting, which make their
    casts."""

    devices = (True, True)

    def exchange(self, begin: bool) -> None:
        lib.norch_captured_slow_path(begin)


@cache
def _entries() -> dict[tuple[bool, ...], list[_Entry | _CapturedFunctions]]:
    """All of them, by the devices for which they are needed; made when autocast is first switched on."""
    found: list[_Entry | _CapturedFunctions] = []
    for module, names, *policies in lists.OPERATIONS:
        found += [_Operation(_function(module, name), *policies) for name in names.split()]
    for module, names, *devices in lists.UNCAST:
        found += [_Uncast(_function(module, name), *devices) for name in names.split()]
    found.append(_CapturedFunctions())
    return {devices: [one for one in found if one.devices == devices] for devices in {one.devices for one in found}}


def _function(module: str, name: str) -> FunctionType:
    """A function, without what gives it out= and NumPy's names: methods and functions of several modules share it."""
    found = attrgetter(name)(import_module(f"norch.{module}"))
    while hasattr(found, "has_out") or hasattr(found, "takes_out"):
        found = found.__wrapped__
        found = found.__wrapped__ if isinstance(found, Signed) else found
    return found


# ---- switching -------------------------------------------------------------------------------------------------------

_NOWHERE = (False,) * len(DEVICE_TYPES)
_lock = threading.Lock()
_threads: dict[int, tuple[bool, ...]] = {}  # of each thread that needs entries: for which devices
_exchanged: tuple[bool, ...] | None = _NOWHERE  # for which devices functions begin at their entries; None: for some


def switch(setting: Setting, needed: tuple[bool, ...]) -> None:
    """Makes setting that of this thread, which needs entries for these devices. Functions begin elsewhere if it is the
    first to need it, or was the last."""
    if not setting.active:
        state.setting = setting
    lib.norch_call_locked(_lock, _exchange, needed)
    state.setting = setting  # the last: an exception between two bytecodes leaves what was there


def _exchange(needed: tuple[bool, ...]) -> None:
    """Notes what this thread needs, and lets the functions begin where the threads now need it."""
    global _exchanged
    _threads[threading.get_ident()] = needed
    if needed == _NOWHERE:
        del _threads[threading.get_ident()]
    before, on = _exchanged, _either(_NOWHERE, *_threads.values())
    if before == on:
        return
    _exchanged = None
    for devices, entries in _entries().items():
        begin = any(map(and_, devices, on))
        if before is None or begin is not any(map(and_, devices, before)):
            for entry in entries:
                entry.exchange(begin)
    _exchanged = on


def _either(*of_devices: tuple[bool, ...]) -> tuple[bool, ...]:
    return tuple(map(any, zip(*of_devices, strict=True)))


def change(setting: Setting) -> None:
    """Makes setting that of this thread, until the end of the autocast around it."""
    needed = setting.enabled
    if setting.cache is not None:  # what is around it, and may be off at the moment, needs its entries
        needed = _either(needed, _threads.get(threading.get_ident(), _NOWHERE))
    switch(setting, needed)


class using(Guard):  # noqa: N801  (as no_grad)
    """A setting within a `with`. One object may be entered many times, also nested."""

    def __init__(self, setting: Setting):
        self._setting = setting
        self._restores: list[Callable[[], Any]] = []

    def __enter__(self) -> Any:
        return self._enter(self._setting)

    def _enter(self, setting: Setting) -> Any:
        around = _threads.get(threading.get_ident(), _NOWHERE)
        self._restores.append(partial(switch, state.setting, around))
        switch(setting, _either(around, setting.enabled))
        return self
