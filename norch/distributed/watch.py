"""Watch: a thread that monitors calls waiting for other ranks, and ends the program if one waits too long."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread, get_ident
from time import monotonic
from typing import Any, TypeVar

from ..errors import ArgumentError, Error
from ..tensor import Tensor

T = TypeVar("T")

DEFAULT_TIMEOUT = 1800.0  # seconds, as PyTorch's


def seconds_of(timeout: timedelta | float | None, name: str, otherwise: float = DEFAULT_TIMEOUT) -> float:
    """A timeout in seconds. ArgumentError unless it is positive, TypeError unless it is one."""
    if timeout is not None and not isinstance(timeout, (timedelta, int, float)):
        raise TypeError(f"{name}: timeout is a number of seconds or a timedelta, not {type(timeout).__name__}")
    seconds = float(
        timeout.total_seconds() if isinstance(timeout, timedelta) else otherwise if timeout is None else timeout
    )
    if not seconds > 0:
        raise ArgumentError(f"{name}: timeout is {seconds} s, and must be positive")
    return seconds


class Note(str):
    """What else distinguishes a call."""


def described(operation: tuple[Any, ...]) -> str:
    """A call by its name and arguments, "all_reduce of (4,) norch.float32 by sum". True is async, a number a rank."""
    words = [operation[0]]
    for x in operation[1:]:
        if isinstance(x, Tensor):
            words.append(f"of {tuple(x.shape)} {x.dtype}")
        elif isinstance(x, bool):
            words.extend(["async"] * x)
        elif isinstance(x, Note):
            words.append(x)
        elif x is not None:
            words.append(f"{'rank' if isinstance(x, int) else 'by' if isinstance(x, str) else 'of'} {x}")
    return " ".join(words)


class Watch:
    """Ends all ranks if a call waits for others for more than `timeout` seconds.

    MPI's calls block without a limit, and an exception cannot reach a thread inside one, so another thread polls. ends:
    the function that ends the processes, with a message; renames: exceptions that become an Error with the name of the
    call. checks: functions that are called with the time at every poll, and return a message where something has
    failed, as on a device.
    """

    def __init__(
        self, timeout: float, rank: int, ends: Callable[[str], None], renames: type[Exception] | tuple[()] = ()
    ) -> None:
        self.timeout, self.rank, self.ends, self.renames = timeout, rank, ends, renames
        self.calls: dict[int, tuple[tuple[Any, ...], int]] = {}  # by thread: the waiting call, the poll when it began
        self.checks: list[Callable[[float], str | None]] = []
        self.interval = min(timeout / 4, 1)  # seconds between two polls
        self.looks = 0  # polls so far: a call notes this number when it begins, which is cheaper than a clock
        self._ended = Event()
        Thread(target=self._look, name="norch.distributed", daemon=True).start()

    def run(self, operation: tuple[Any, ...], call: Callable[..., T], *arguments: Any) -> T:
        """Runs call(*arguments), which waits for other ranks. operation: its name and arguments, for described()."""
        thread = get_ident()
        self.calls[thread] = operation, self.looks
        try:
            return call(*arguments)
        except self.renames as error:
            raise Error(f"{operation[0]}: MPI: {error}") from error
        finally:
            self.calls.pop(thread, None)

    def with_timeout(self, timeout: float) -> Watch:
        """A watch of the same kind with another timeout; itself, if that is its own."""
        return self if timeout == self.timeout else Watch(timeout, self.rank, self.ends, self.renames)

    @contextmanager
    def ends_on_failure(self) -> Iterator[None]:
        """A context in which an exception ends the watch, as no call was started that it could watch."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Ends the thread."""
        self._ended.set()

    def late(self, operation: str, seconds: float) -> str:
        """The message for a call that waits too long."""
        return f"rank {self.rank}: {operation} has waited for other ranks for {seconds:.1f} s; ending all"

    def _look(self) -> None:
        while not self._ended.wait(self.interval):
            self.looks += 1
            for call, since in list(self.calls.values()):
                seconds = (self.looks - since - 1) * self.interval  # or up to an interval more
                if seconds >= self.timeout:
                    self.ends(self.late(described(call), seconds))
            now = monotonic()
            for check in list(self.checks):
                if (message := check(now)) is not None:
                    self.ends(message)


def tell(message: str) -> None:
    """Prints a message to stderr."""
    print(f"norch.distributed: {message}", file=sys.stderr, flush=True)


def end_this(message: str) -> None:
    """Prints message and ends this process, where no launcher ends the others: they wait until their timeout."""
    tell(message)
    os._exit(1)


def end_all_on_failure(size: int, rank: int, ends: Callable[[str], None]) -> None:
    """From now on an exception that nobody catches ends all ranks: the others would wait for this one."""
    if size == 1 or getattr(sys.excepthook, "ends_all_ranks", False):
        return
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        ends(f"rank {rank} failed with {kind.__name__}; ending all")

    hook.ends_all_ranks = True  # type: ignore[attr-defined]
    sys.excepthook = hook
