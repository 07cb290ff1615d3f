"""CUDA, as PyTorch's torch.cuda tells of it: which devices there are, what they hold, when their work is done.

An operation on a CUDA tensor returns when the device has taken it, not when it is done; what a program reads
(item(), tolist(), cpu()) waits. norch keeps one stream of work a device, so results are always in order; Stream
is there for programs that name streams. docs/cuda.md tells how a call gets to a device.

A device is named by a number, "cuda:1" or a norch.device; None is the current one. What needs a device raises a
DeviceError where there is none, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import random
from ._left_out import nothing_more
from ._lib import buffer, doubles, int64s, lib
from .device import cuda_device_count, current, device_code
from .device import device as Device  # noqa: N812
from .errors import ArgumentError, DeviceError, Error
from .errors import OutOfMemoryError as OutOfMemoryError


def is_available() -> bool:
    """Whether tensors can be put on a CUDA device. Finds out at the first call, and remembers.

    >>> device = "cuda" if norch.cuda.is_available() else "cpu"
    >>> norch.ones(2, device=device).sum().item()
    2.0
    """
    return device_count() > 0


def device_count() -> int:
    """The number of CUDA devices; 0 where none can be used (why_not() says why)."""
    return cuda_device_count()


def why_not() -> str | None:
    """Why there is no CUDA device to use, in a sentence; None where there is one."""
    try:
        init()
    except DeviceError as error:
        return str(error)
    return None


def is_initialized() -> bool:
    """Whether CUDA is in use: here it is as soon as the devices have been found."""
    return is_available()


def init() -> None:
    """Finds the devices now rather than at the first use; DeviceError where there are none."""
    lib.norch_device_count(1)


def current_device() -> int:
    """The number of the device that "cuda" stands for."""
    init()
    return current.cuda


def _place(device: Any) -> tuple[int, int]:
    found = device_code("cuda" if device is None else device)
    if found[0] != 1:
        raise ArgumentError(f"expected a CUDA device, not {device!r}")
    return found


def _exists(index: int) -> None:
    """DeviceError for a device that does not exist."""
    if not 0 <= index < lib.norch_device_count(1):
        lib.norch_device_synchronize(1, index)


def set_device(device: Any) -> None:
    """Makes a device the one that "cuda" stands for; DeviceError where it does not exist."""
    index = _place(device)[1]
    _exists(index)
    current.cuda = index


class device:  # noqa: N801  (PyTorch's name)
    """A context in which "cuda" stands for another device: ``with norch.cuda.device(1): ...``."""

    def __init__(self, device: Any):
        self.index = _place(device)[1]

    def __enter__(self) -> None:
        self.before = current.cuda
        set_device(self.index)

    def __exit__(self, *raised: object) -> None:
        current.cuda = self.before


class Properties:
    """What a device is: name, total_memory, major, minor, multi_processor_count, simulated, driver and runtime.

    simulated tells that no GPU is there: the kernels run on the CPU, for tests.
    """

    def __init__(self, index: int):
        name, values = buffer(256), int64s(*(0,) * 7)
        lib.norch_device_properties(1, index, name, 256, values)
        self.name: str = name.value.decode()
        self.total_memory, self.major, self.minor, self.multi_processor_count = values[:4]
        self.simulated = bool(values[4])
        self.driver, self.runtime = values[5:7]

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return (
            f"Properties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}{simulated})"
        )


def get_device_properties(device: Any = None) -> Properties:
    """What a device is."""
    return Properties(_place(device)[1])


def get_device_name(device: Any = None) -> str:
    """The name of a device; it says "simulated" where it is no GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, (8, 6) for example."""
    found = get_device_properties(device)
    return found.major, found.minor


def synchronize(device: Any = None) -> None:
    """Waits until a device has done all that it was given, and raises what went wrong in it."""
    lib.norch_device_synchronize(*_place(device))


# ---- memory -----------------------------------------------------------------------------------------------------


def _memory(device: Any) -> Any:
    values = int64s(*(0,) * 9)
    lib.norch_device_memory(*_place(device), values)
    return values


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold, each tensor's rounded up to what the pool hands out: 512 and more."""
    return _memory(device)[0]


def max_memory_allocated(device: Any = None) -> int:
    """The most that memory_allocated() has been since the start or reset_peak_memory_stats()."""
    return _memory(device)[1]


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the device: what tensors hold, and what waits for the next ones."""
    return _memory(device)[2]


def max_memory_reserved(device: Any = None) -> int:
    """The most that memory_reserved() has been."""
    return _memory(device)[3]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes free on the device, and in all."""
    values = _memory(device)
    return values[4], values[5]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets max_memory_allocated() begin anew."""
    lib.norch_device_reset_peak(*_place(device))


def host_memory_stats() -> dict[str, int]:
    """Memory of the host that is pinned: the bytes that tensors hold, those that wait for reuse as well, and how often
    CUDA was asked for some.

    >>> norch.cuda.host_memory_stats()["active_bytes.current"] if norch.cuda.is_available() else 0
    0
    """
    active, allocated, made = _memory(None)[6:9]
    return {"active_bytes.current": active, "allocated_bytes.current": allocated, "num_host_alloc": made}


def empty_cache() -> None:
    """Gives memory that waits for reuse back to the devices, and what was pinned for them back to the system."""
    for index in range(device_count()):
        lib.norch_device_empty_cache(1, index)


# ---- random numbers: CPU and CUDA draw from one stream, so the same seed gives both the same ------------------------


def manual_seed(seed: int) -> None:
    """norch.manual_seed(): seeds the stream of random numbers, which all devices share."""
    random.manual_seed(seed)


def seed() -> None:
    """norch.seed(): seeds the stream by chance."""
    random.seed()


def initial_seed() -> int:
    """norch.initial_seed(): what the stream was seeded with last."""
    return random.initial_seed()


def get_rng_state(device: Any = None) -> Any:
    """norch.get_rng_state(): where the stream stands."""
    return random.get_rng_state()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """norch.set_rng_state(): puts the stream back where it stood."""
    random.set_rng_state(new_state)


manual_seed_all, seed_all = manual_seed, seed


# ---- streams and events ---------------------------------------------------------------------------------------------


class Stream:
    """The stream of work of a device: it does what it is given one after the other.

    norch computes in one stream a device, so every Stream of a device is that one, and they are all equal. Programs
    that wait between streams run, and what they wait for has always been done; but nothing of what they give to two
    streams overlaps, copies neither. priority is accepted, and changes nothing.
    """

    def __init__(self, device: Any = None, priority: int = 0):
        index = _place(device)[1]
        _exists(index)
        self.device = Device("cuda", index)

    def __repr__(self) -> str:
        return f"<norch.cuda.Stream device={self.device}>"

    def synchronize(self) -> None:
        """Waits for all work of the stream."""
        synchronize(self.device)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        done = doubles(0.0)
        lib.norch_device_event(*_place(self.device), 3, int64s(0), None, done)
        return bool(done[0])

    def wait_stream(self, stream: Stream) -> None:
        """Lets later work wait for that of another stream: it does anyway."""

    def wait_event(self, event: Event) -> None:
        """Lets later work wait for an event: it does anyway."""

    def record_event(self, event: Event | None = None) -> Event:
        """Notes the present moment of the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)


def current_stream(device: Any = None) -> Stream:
    """The stream that operations go to."""
    return Stream(device)


default_stream = current_stream


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A context in which operations go to a stream: the only one there is."""
    yield


class Event:
    """A moment in the work of a device; with enable_timing two of them tell the time between.

    Its device is that of the first record(). blocking is accepted, and changes nothing; interprocess raises an
    ArgumentError, for events are known to their process only.

    >>> if norch.cuda.is_available():
    ...     start, end = norch.cuda.Event(enable_timing=True), norch.cuda.Event(enable_timing=True)
    ...     x = norch.ones(8, 8, device="cuda")
    ...     start.record()
    ...     y = x @ x
    ...     end.record()
    ...     end.synchronize()  # a device computes on its own: without this the end may be yet to come
    ...     milliseconds = start.elapsed_time(end)
    """

    _place: tuple[int, int] | None = None

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise ArgumentError("event: interprocess events are not there")
        self._timing = enable_timing
        self._event = int64s(0)

    def __repr__(self) -> str:
        state = f"recorded on cuda:{self._place[1]}" if self._place else "not recorded"
        return f"<norch.cuda.Event {state}>"

    def record(self, stream: Stream | None = None) -> None:
        """Notes the present moment of a stream, by default that of the current device; again, if it was noted before.
        Error where the event belongs to another device."""
        wanted = _place(None if stream is None else stream.device)
        if self._place not in (None, wanted):
            raise Error(f"event: made on cuda:{self._place[1] if self._place else 0}, recorded on cuda:{wanted[1]}")
        if self._place is None:
            lib.norch_device_event(*wanted, 0, self._event, None, None)
            self._place = wanted
        lib.norch_device_event(*wanted, 1, self._event, None, None)

    def wait(self, stream: Stream | None = None) -> None:
        """Lets later work wait for this moment: it does anyway."""

    def synchronize(self) -> None:
        """Waits until the device has passed this moment."""
        if self._place is not None:
            lib.norch_device_event(*self._place, 2, self._event, None, None)

    def query(self) -> bool:
        """Whether the device has passed this moment; True where none was noted."""
        if self._place is None:
            return True
        passed = doubles(0.0)
        lib.norch_device_event(*self._place, 3, self._event, None, passed)
        return bool(passed[0])

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this moment to that of end_event. ArgumentError without enable_timing; Error where they
        have not both been recorded, on one device; DeviceError where the device has not passed both."""
        if not (self._timing and end_event._timing):
            raise ArgumentError("elapsed_time: both events need enable_timing=True")
        if self._place is None or end_event._place != self._place:
            raise Error("elapsed_time: both events must have been recorded, on one device")
        time = doubles(0.0)
        lib.norch_device_event(*self._place, 4, self._event, end_event._event[0], time)
        return time[0]

    def __del__(self) -> None:
        if self._place is not None:
            lib.norch_device_event(*self._place, 5, self._event, None, None)


def __dir__() -> list[str]:
    """The public names, for completion: what this file defines, and the error."""
    here = [name for name, thing in globals().items() if getattr(thing, "__module__", "") == __name__]
    return [name for name in here if name[0] != "_"] + ["OutOfMemoryError"]


__getattr__ = nothing_more(__name__)
