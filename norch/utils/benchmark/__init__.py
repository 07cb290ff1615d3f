"""``norch.utils.benchmark``: Timer, which times a statement, and its Measurement."""

from __future__ import annotations

import statistics
import sys
import timeit
from typing import Any

from ..._binding.threads import get_num_threads, set_num_threads
from ..._package.exports import publish

__all__ = ["Measurement", "Timer"]
publish(globals())


class Measurement:
    """raw_times: the seconds of blocks of number_per_run runs; times: of a run."""

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: str) -> None:
        self.number_per_run, self.raw_times, self.task_spec = number_per_run, raw_times, task_spec
        self.times = [seconds / number_per_run for seconds in raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def __repr__(self) -> str:
        return f"{self.task_spec}\n  {self.median * 1e6:.2f} us, {len(self.times)} times {self.number_per_run} runs"


class Timer:
    """Times a Python statement with num_threads threads of the library."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Any = timeit.default_timer, globals: dict[str, Any] | None = None,  # noqa: A002
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if "py" not in f"{language}".lower():
            raise NotImplementedError(f"utils.benchmark.Timer: norch times Python, not {language}")
        self._task = ", ".join(text for text in (label or stmt, sub_label, description, env) if text)
        variables = {"torch": sys.modules["norch"], **(globals or {})}
        self._threads, self._timer = num_threads, timeit.Timer(stmt, setup, timer, variables)

    def _seconds(self, number: int) -> float:
        before = get_num_threads()
        set_num_threads(self._threads)
        try:
            return self._timer.timeit(number)
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        self._seconds(max(number // 100, 2))
        return Measurement(number, [self._seconds(number)], self._task)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks of runs, each of a hundredth of min_run_time, until they took that many seconds."""
        number = 1
        while (seconds := self._seconds(number)) < min_run_time / 100:
            number *= 2 if seconds > min_run_time / 1000 else 10
        times = [seconds]
        while sum(times) < min_run_time:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task)
