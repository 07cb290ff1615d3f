"""``norch.cuda``: devices, their memory, synchronization, streams and events, by the names of ``torch.cuda``.

An operation on a CUDA tensor returns when its kernel is launched, in the current stream. Functions that read elements
(item(), tolist(), cpu()) wait for it. A stream runs its kernels and copies in order. Kernels of several streams may
overlap; events order them. docs/cuda_inside.md follows a call to the device.

A device is an index, a text such as "cuda:1" or a norch.device; None is the current one. Functions that need a device
raise a DeviceError with the reason if there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._binding.buffers import buffer, doubles, int64s
from .._binding.library import lib
from .._binding.nvrtc import name_nvrtc
from .._package.exports import publish
from ..device import cuda_device_count, cuda_place, current
from ..device import device as Device
from ..errors import ArgumentError, DeviceError, Error
from ..errors import OutOfMemoryError as OutOfMemoryError
from . import _memory, _random
from ._memory import *  # noqa: F403
from ._random import *  # noqa: F403


def is_available() -> bool:
    """Whether there is a usable CUDA device. Later calls return the result of the first.

    >>> device = "cuda" if norch.cuda.is_available() else "cpu"
    >>> norch.ones(2, device=device).sum().item()
    2.0
    """
    return device_count() > 0


def device_count() -> int:
    """The number of CUDA devices. It is 0 if none can be used; why_not() has the reason.

    >>> devices = [f"cuda:{index}" for index in range(norch.cuda.device_count())]
    """
    return cuda_device_count()


def why_not() -> str | None:
    """The reason, in a sentence, why no CUDA device can be used; None if one can be used.

    >>> if not norch.cuda.is_available():
    ...     reason = norch.cuda.why_not()
    """
    try:
        init()
    except DeviceError as error:
        return str(error)
    return None


def is_initialized() -> bool:
    """Whether CUDA is initialized. This is is_available(), which finds the devices.

    >>> norch.cuda.is_initialized() == norch.cuda.is_available()
    True
    """
    return is_available()


def init() -> None:
    """Finds the devices now, and not at their first use. DeviceError if there are none.

    >>> norch.cuda.init()
    """
    lib.norch_device_count(1)


def current_device() -> int:
    """The index of the current device, which "cuda" means.

    >>> norch.cuda.current_device()
    0
    """
    init()
    return current.cuda


def _exists(index: int) -> None:
    """DeviceError for a device that does not exist."""
    if not 0 <= index < lib.norch_device_count(1):
        lib.norch_device_synchronize(1, index)


def set_device(device: Any) -> None:
    """Sets the current device, which "cuda" means; DeviceError if it does not exist.

    >>> norch.cuda.set_device(1)
    >>> norch.ones(2, device="cuda").device
    device(type='cuda', index=1)
    >>> norch.cuda.set_device("cuda:0")
    """
    index = cuda_place(device)[1]
    _exists(index)
    current.cuda = index


class device:  # PyTorch's name
    """A context in which a device is current: ``with norch.cuda.device(1): ...``.

    >>> with norch.cuda.device(1):
    ...     norch.ones(2, device="cuda").device
    device(type='cuda', index=1)
    """

    def __init__(self, device: Any):
        self.index = cuda_place(device)[1]

    def __enter__(self) -> None:
        self.before = current.cuda
        set_device(self.index)

    def __exit__(self, *raised: object) -> None:
        current.cuda = self.before


class Properties:
    """Properties of a device: name, total_memory, major, minor, multi_processor_count, simulated, driver and runtime.

    simulated: there is no GPU, and the kernels run on the CPU, for tests.

    >>> found = norch.cuda.get_device_properties()
    >>> found.total_memory > 0, found.multi_processor_count > 0
    (True, True)
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
    """The properties of a device.

    >>> norch.cuda.get_device_properties(0)
    Properties(name=..., major=..., minor=..., total_memory=...MB, multi_processor_count=...)
    """
    return Properties(cuda_place(device)[1])


def get_device_name(device: Any = None) -> str:
    """The name of a device. It contains "simulated" if there is no GPU.

    >>> norch.cuda.get_device_name() == norch.cuda.get_device_properties().name
    True
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, such as (8, 6).

    >>> norch.cuda.get_device_capability() >= (7, 5)
    True
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device that computes in bfloat16. Devices of compute capability 8.0 and higher do so natively.

    >>> dtype = norch.bfloat16 if norch.cuda.is_bf16_supported() else norch.float16
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def synchronize(device: Any = None) -> None:
    """Waits until all kernels of a device have finished, and raises the errors that they found.

    >>> y = norch.ones(1000, device="cuda").exp()  # returns when its kernel is launched
    >>> norch.cuda.synchronize()  # has run
    """
    lib.norch_device_synchronize(*cuda_place(device))


def chain_compiler() -> str:
    """The NVRTC that compiles chains of captured functions, and the number of chains that it has compiled, or the
    reason why there is none (docs/capture.md).

    >>> isinstance(norch.cuda.chain_compiler(), str)
    True
    """
    name_nvrtc()
    return _chain_text(-1) or ""


def chain_sources() -> list[str]:
    """The CUDA C++ sources of the kernels of this process's chains, compiled or from the cache.

    >>> all("__global__" in source for source in norch.cuda.chain_sources())
    True
    """
    sources: list[str] = []
    while (text := _chain_text(len(sources))) is not None:
        sources.append(text)
    return sources


def _chain_text(number: int) -> str | None:
    capacity = 1 << 16
    while True:
        text = buffer(capacity)
        length = lib.norch_device_chain(*cuda_place(None), number, text, capacity)
        if length < 0:
            return None
        if length < capacity:
            return text.value.decode()
        capacity = length + 1


# ---- streams and events ---------------------------------------------------------------------------------------------

# What norch_device_stream and norch_device_event do (csrc/norch_runtime.h).
_MAKE_STREAM, _CURRENT_STREAM, _USE_STREAM, _WAIT_FOR_STREAM, _QUERY_STREAM, _STREAM_HANDLE = range(6)
_MAKE, _RECORD, _WAIT, _QUERY, _TIME, _FREE, _HOLD = range(7)


class Stream:
    """A queue of kernels and copies on a device. Those of one stream run in order, those of two streams may overlap.

    ``with stream:`` (or ``with norch.cuda.stream(stream):``) makes it the current stream of the thread, in which
    operations run; each thread begins with the default stream. As in PyTorch, a stream must wait for another one, by
    wait_stream() or an event, before it uses a tensor that the other computes. If the tensor may be freed before this
    use is over, call Tensor.record_stream() too. backward() runs in the stream that is current when it is called. A
    device has 31 streams of each priority, which further objects share.

    A priority below 0 is high. ArgumentError for a device that is not CUDA's, DeviceError if it does not exist.

    >>> if norch.cuda.is_available():
    ...     batch, copies = norch.ones(1000).pin_memory(), norch.cuda.Stream()
    ...     with copies:  # beside what the current stream does
    ...         x = batch.to("cuda", non_blocking=True)
    ...     norch.cuda.current_stream().wait_stream(copies)
    ...     x.record_stream(norch.cuda.current_stream())
    ...     y = x * 2
    """

    def __init__(self, device: Any = None, priority: int = 0):
        self._place = cuda_place(device)
        _exists(self._place[1])
        number = int64s(0)
        lib.norch_device_stream(*self._place, _MAKE_STREAM, number, doubles(priority))
        self.stream_id: int = number[0]

    @property
    def device(self) -> Device:
        """The device of the stream."""
        return Device("cuda", self._place[1])

    def __repr__(self) -> str:
        return f"<norch.cuda.Stream device={self.device} stream_id={self.stream_id}>"

    @property
    def cuda_stream(self) -> int:
        """CUDA's own handle of the stream (cudaStream_t), for other libraries."""
        handle = int64s(self.stream_id)
        lib.norch_device_stream(*self._place, _STREAM_HANDLE, handle, None)
        return handle[0]

    def synchronize(self) -> None:
        """Waits until all work of the stream is done, and raises the errors that its kernels found."""
        lib.norch_device_stream(*self._place, _WAIT_FOR_STREAM, int64s(self.stream_id), None)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        done = doubles(0.0)
        lib.norch_device_stream(*self._place, _QUERY_STREAM, int64s(self.stream_id), done)
        return bool(done[0])

    def wait_stream(self, stream: Stream) -> None:
        """Makes work that this stream gets from now on wait for all work that the other stream has got."""
        if stream != self:
            self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """Makes work that this stream gets from now on wait for the last record() of an event."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, by default a new one, at the present point of the stream, and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        before = current_stream(self.device), current.cuda
        set_stream(self)
        _before.stack.append(before)
        return self

    def __exit__(self, *raised: object) -> None:
        before, current.cuda = _before.stack.pop()
        _use(before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other._place, other.stream_id) == (self._place, self.stream_id)

    def __hash__(self) -> int:
        return hash((self._place, self.stream_id))


class _Before(threading.local):
    """The current stream and device of this thread before each with statement that sets another stream."""

    def __init__(self) -> None:
        self.stack: list[tuple[Stream, int]] = []


_before = _Before()


def _stream(device: Any, number: int | None) -> Stream:
    """The stream with a number, or the current one of the thread for None."""
    stream = object.__new__(Stream)
    stream._place = cuda_place(device)
    _exists(stream._place[1])
    numbers = int64s(number or 0)
    if number is None:
        lib.norch_device_stream(*stream._place, _CURRENT_STREAM, numbers, None)
    stream.stream_id = numbers[0]
    return stream


def _use(stream: Stream) -> None:
    lib.norch_device_stream(*stream._place, _USE_STREAM, int64s(stream.stream_id), None)


def current_stream(device: Any = None) -> Stream:
    """The stream of a device in which the operations of this thread run.

    >>> with norch.cuda.Stream() as stream:
    ...     norch.cuda.current_stream() == stream
    True
    """
    return _stream(device, None)


def default_stream(device: Any = None) -> Stream:
    """The stream of a device with which each thread begins.

    >>> norch.cuda.current_stream() == norch.cuda.default_stream()
    True
    """
    return _stream(device, 0)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one of this thread, and its device the current device. None has no effect.

    >>> stream = norch.cuda.Stream()
    >>> norch.cuda.set_stream(stream)
    >>> x = norch.ones(2, device="cuda")  # is made there
    >>> norch.cuda.set_stream(norch.cuda.default_stream())
    """
    if stream is not None:
        _use(stream)
        current.cuda = stream._place[1]


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A context in which a stream is the current one of this thread, and its device the current device. None has no
    effect.

    >>> with norch.cuda.stream(norch.cuda.Stream()):
    ...     x = norch.ones(2, device="cuda")
    """
    if stream is None:
        yield
    else:
        with stream:
            yield


class Event:
    """A point in a stream, for which streams and the program can wait. With enable_timing, elapsed_time() is the time
    between two events. The first record() fixes the device of an event. blocking has no effect. ArgumentError for
    interprocess, which is not supported.

    >>> if norch.cuda.is_available():
    ...     start, end = norch.cuda.Event(enable_timing=True), norch.cuda.Event(enable_timing=True)
    ...     x = norch.ones(8, 8, device="cuda")
    ...     start.record()
    ...     y = x @ x
    ...     end.record()
    ...     end.synchronize()  # the device runs asynchronously, and may not have passed the end yet
    ...     milliseconds = start.elapsed_time(end)
    """

    _place: tuple[int, int] | None = None

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise ArgumentError("event: interprocess events are not supported")
        self._timing = enable_timing
        self._event = int64s(0)

    def __repr__(self) -> str:
        state = f"recorded on cuda:{self._place[1]}" if self._place else "not recorded"
        return f"<norch.cuda.Event {state}>"

    def record(self, stream: Stream | None = None) -> None:
        """Records the present point of a stream, by default of the current one. It replaces an earlier point. Error if
        the event belongs to another device.
        """
        wanted = cuda_place(None) if stream is None else stream._place
        if self._place not in (None, wanted):
            raise Error(f"event: made on cuda:{self._place[1] if self._place else 0}, recorded on cuda:{wanted[1]}")
        if self._place is None:
            lib.norch_device_event(*wanted, _MAKE, -1, self._event, None, doubles(self._timing))
            self._place = wanted
        number = -1 if stream is None else stream.stream_id
        lib.norch_device_event(*wanted, _RECORD, number, self._event, None, None)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes work that a stream, by default the current one, gets from now on wait for the last record(). Before the
        first record() it has no effect.
        """
        if self._place is not None:
            place, number = (cuda_place(None), -1) if stream is None else (stream._place, stream.stream_id)
            lib.norch_device_event(*place, _HOLD, number, self._event, None, None)

    def synchronize(self) -> None:
        """Waits until the device has passed the event."""
        if self._place is not None:
            lib.norch_device_event(*self._place, _WAIT, -1, self._event, None, None)

    def query(self) -> bool:
        """Whether the device has passed the event; True before record()."""
        if self._place is None:
            return True
        passed = doubles(0.0)
        lib.norch_device_event(*self._place, _QUERY, -1, self._event, None, passed)
        return bool(passed[0])

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to end_event. ArgumentError without enable_timing; Error unless both are
        recorded, on one device; DeviceError if the device has not passed both.
        """
        if not (self._timing and end_event._timing):
            raise ArgumentError("elapsed_time: both events need enable_timing=True")
        if self._place is None or end_event._place != self._place:
            raise Error("elapsed_time: both events must have been recorded, on one device")
        time = doubles(0.0)
        lib.norch_device_event(*self._place, _TIME, -1, self._event, end_event._event[0], time)
        return time[0]

    def __del__(self) -> None:
        if self._place is not None:
            lib.norch_device_event(*self._place, _FREE, -1, self._event, None, None)


def _missing(name: str) -> Any:
    if name == "_initialized":  # read by programs that keep random states
        return is_initialized()
    from .._package.left_out import lookup

    return lookup(__name__, name)


publish(globals(), {".": "amp"}, _missing, more=" ".join(["OutOfMemoryError", *_memory.__all__, *_random.__all__]))
