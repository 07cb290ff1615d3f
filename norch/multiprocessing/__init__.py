"""``norch.multiprocessing``: the module multiprocessing of Python, and spawn().

Once it is imported, tensors in shared memory (Tensor.share_memory_) go through queues and pipes, and to processes, as
descriptors, and both sides see one memory. Other tensors are copied: large ones, of 256 KiB and more, into shared
memory. A process has to live until the descriptors that it has sent are received.
"""

from __future__ import annotations

import multiprocessing as _python
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any

from .._files.shared_memory import send_tensors_by_sharing
from .._package.exports import publish
from ..errors import ArgumentError, Error

__all__ = [
    *_python.__all__, "ProcessContext", "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
    "spawn",
]  # fmt: skip

send_tensors_by_sharing()

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = _STRATEGIES[0]


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy() takes."""
    return set(_STRATEGIES)


def set_sharing_strategy(new_strategy: str) -> None:
    """Stores the name for get_sharing_strategy(): descriptors are sent in any case. ArgumentError for other names."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ArgumentError(f"set_sharing_strategy: one of {', '.join(_STRATEGIES)}, not {new_strategy!r}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """The last argument of set_sharing_strategy()."""
    return _strategy


class ProcessContext:
    """Processes that spawn() started."""

    def __init__(self, processes: list[Any]):
        self.processes = processes

    def pids(self) -> list[int]:
        """Their numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Waits until all have ended, or until one has failed or timeout seconds are over: whether all have ended.

        Where one failed, the others are terminated, and an Error says which; it has printed why.
        """
        from multiprocessing.connection import wait

        alive = [process.sentinel for process in self.processes if process.is_alive()]
        if alive:  # of none, wait() would wait forever
            wait(alive, timeout)
        codes = [process.exitcode for process in self.processes]  # read once: a process may end at any time
        for index, code in enumerate(codes):
            if code:
                for other in self.processes:
                    other.terminate()
                    other.join()
                raise Error(f"spawn: process {index} ended with exit code {code}")
        return None not in codes


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in a process for each i < nprocs, and waits for them, or with join=False returns them.

    fn must be importable, as each process is started afresh. Error where one fails.
    """
    context: Any = _python.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    started = ProcessContext(processes)
    if not join:
        return started
    while not started.join():
        pass
    return None


publish(globals())
