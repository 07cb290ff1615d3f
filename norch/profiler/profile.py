"""profile and record_function, under PyTorch's names."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from functools import wraps
from typing import Any, TypeVar

from .._binding.library import lib
from ..cuda import is_available, synchronize
from ..errors import ArgumentError, Error
from .averages import Averages, averaged
from .chrome import write_trace
from .events import Event, events_of
from .session import DEVICE_TIME, MEMORY, SHAPES, Recorded, Session

F = TypeVar("F", bound=Callable[..., Any])


class ProfilerActivity(Enum):
    """What a profile records: the calls of the library (CPU), and their times on a CUDA device (CUDA)."""

    CPU = "cpu"
    CUDA = "cuda"


class ProfilerAction(Enum):
    """What a profile does at a step; a schedule returns it."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """CPU, and CUDA if there is a device.

    >>> norch.profiler.ProfilerActivity.CPU in norch.profiler.supported_activities()
    True
    """
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if is_available() else {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function from a step's number to its action: after skip_first steps, wait steps do nothing, warmup steps are
    discarded, active steps are recorded; this repeats `repeat` times, or forever for 0. ArgumentError for negative
    numbers or active=0.

    >>> plan = norch.profiler.schedule(wait=1, warmup=0, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ArgumentError(
            f"schedule: wait {wait}, warmup {warmup}, active {active}, repeat {repeat}, skip_first {skip_first}: "
            "none may be negative, and active starts at 1"
        )

    def action(step: int) -> ProfilerAction:
        cycle, at = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == wait + warmup + active - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An on_trace_ready that writes each trace to a folder, which it creates, under the names that TensorBoard's plugin
    expects."""

    def write(profiled: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiled.export_chrome_trace(os.path.join(dir_name, name))

    return write


def _records(action: ProfilerAction) -> bool:
    return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:  # PyTorch's name
    """Records each library call of all threads, from start() to stop() or in a `with`. Only one profile runs at a time.

    activities       ProfilerActivity.CPU, and CUDA for times from CUDA events; by default all available ones
    schedule         a function from the step to a ProfilerAction, such as schedule(...) returns; step() ends a step
    on_trace_ready   called with the profile at the end of each recorded interval
    record_shapes    records the shapes of the tensors that a call reads
    profile_memory   records when storages are allocated and released
    with_stack       records the line of the program; in backward, that of the forward call
    with_flops       counts two operations for each multiply-add of products, convolutions and attention
    with_modules     records the module, and its calls as ranges. Sequential then runs a Linear and the activation
                     after it separately; otherwise it fuses them

    After an exception the events so far remain, including the failed call. Functions of norch.capture run without
    replay. An event is a library call: a composed operation appears as its parts, and a view not at all, as it moves no
    bytes. Error if another profile runs; ArgumentError for unavailable activities.

    >>> from norch.profiler import profile, record_function
    >>> with profile(record_shapes=True) as prof:
    ...     with record_function("double"):
    ...         y = norch.ones(3) * 2
    >>> print(prof.key_averages().table(sort_by="count"))  # doctest: +SKIP
    >>> [(event.name, event.shapes) for event in prof.events() if event.name == "mul"]
    [('mul', ((3,), ()))]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ):
        wanted = supported_activities() if activities is None else set(activities)
        missing = wanted - supported_activities()
        if missing or not wanted:
            named = ", ".join(sorted(str(activity) for activity in missing)) or "none"
            raise ArgumentError(f"profile: unavailable activities: {named}")
        self._activities = {activity.value for activity in wanted}
        self._schedule, self._on_trace_ready = schedule, on_trace_ready
        self._flags = SHAPES * bool(record_shapes) | MEMORY * bool(profile_memory)
        self._flags |= DEVICE_TIME * ("cuda" in self._activities)
        self._with_stack, self._with_flops, self._with_modules = with_stack, with_flops, with_modules
        pairs = (("shapes", record_shapes), ("memory", profile_memory), ("stack", with_stack), ("flops", with_flops))
        self._columns = {name for name, on in (*pairs, ("module", with_modules)) if on}
        self._columns |= {"device"} if "cuda" in self._activities else set()
        self._session: Session | None = None
        self._recorded: Recorded | None = None
        self._events: list[Event] | None = None
        self.step_num, self._action, self._step_begin = 0, ProfilerAction.NONE, 0

    # ---- sessions ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts at step 0."""
        self.step_num = 0
        self._action = self._schedule(0) if self._schedule else ProfilerAction.RECORD
        if _records(self._action):
            self._begin()

    def stop(self) -> None:
        """Stops; does nothing if it is stopped."""
        action, self._action = self._action, ProfilerAction.NONE
        if _records(action):
            self._finish()

    def step(self) -> None:
        """Ends a step, whose range is named ProfilerStep#0 and so on."""
        before = self._action
        if self._session is not None:
            self._session.add(f"ProfilerStep#{self.step_num}", "range", self._step_begin)
        self.step_num += 1
        if self._schedule is None:
            self._step_begin = lib.norch_profile_time()
            return
        self._action = self._schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (_records(before) and not _records(self._action)):
            self._finish()
        if _records(self._action) and self._session is None:
            self._begin()
        self._step_begin = lib.norch_profile_time()

    def _begin(self) -> None:
        self._session = Session(self._flags, self._with_stack, self._with_modules)
        self._step_begin = self._session.begin

    def _finish(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        if "cuda" in self._activities:
            synchronize()
        self._recorded, self._events = session.stop(), None
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- results -------------------------------------------------------------------------------------------------

    def _noted(self, name: str) -> Recorded:
        if self._recorded is None:
            raise Error(f"{name}: no recording has ended yet")
        return self._recorded

    def events(self) -> list[Event]:
        """All events of the last recorded interval, by start. Error if there is none yet."""
        recorded = self._noted("events")
        if self._events is None:
            self._events = events_of(recorded, self._with_flops, self._activities)
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_module: bool = False
    ) -> Averages:
        """Adds up the events of one name: a list whose table() is text. group_by_...: events must also agree in shapes,
        line (for a number above 0) or module. Error if nothing was recorded yet."""
        recorded = self._noted("key_averages")
        rows = averaged(self.events(), group_by_input_shape, group_by_stack_n > 0, group_by_module)
        columns = self._columns - {
            *(() if group_by_input_shape else ("shapes",)),
            *(() if group_by_stack_n > 0 else ("stack",)),
            *(() if group_by_module else ("module",)),
        }
        return Averages(rows, recorded.end - recorded.begin, columns)

    @property
    def is_complete(self) -> bool:
        """Whether all calls were recorded; False if memory ran out."""
        return self._noted("is_complete").complete

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events as a file for chrome://tracing and ui.perfetto.dev, compressed if path ends in .gz. Error
        if nothing was recorded yet, OSError if the file cannot be written."""
        recorded = self._noted("export_chrome_trace")
        write_trace(path, self.events(), recorded)


class record_function:  # PyTorch's name
    """A named range in the running profile, as a `with` or decorator. Without a profile it does nothing.

    >>> @norch.profiler.record_function("twice")
    ... def twice(x):
    ...     return x + x
    >>> twice(norch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"record_function: the name must be a str, not {type(name).__name__}")
        self.name = name
        self._begun: list[tuple[Session | None, int]] = []

    def __enter__(self) -> record_function:
        running = Session.running
        self._begun.append((running, 0 if running is None else lib.norch_profile_time()))
        return self

    def __exit__(self, *_: object) -> None:
        session, begin = self._begun.pop()
        if session is not None and session is Session.running:
            session.add(self.name, "range", begin)

    def __call__(self, function: F) -> F:
        @wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]
