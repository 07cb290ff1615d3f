"""``norch.futures``: results that threads of this process wait for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures as _python
from typing import Any

from .._package.exports import publish

__all__ = ["Future", "collect_all", "wait_all"]
publish(globals(), name="norch.futures")


class Future:
    """A result that one thread sets and others wait for.

    >>> future = norch.futures.Future()
    >>> double = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> double.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: _python.Future[Any] = _python.Future()

    def __class_getitem__(cls, kind: Any) -> Any:
        return cls

    def done(self) -> bool:
        """Whether a result or an exception was set."""
        return self._future.done()

    def wait(self) -> Any:
        """Waits for the result and returns it, or raises the exception that was set."""
        return self._future.result()

    def value(self) -> Any:
        """The result; RuntimeError if it was not set yet."""
        if not self.done():
            raise RuntimeError("Future.value: the result is not set yet; wait() blocks until it is")
        return self._future.result()

    def set_result(self, result: Any) -> None:
        """Sets the result; RuntimeError if it was set before."""
        if self.done():
            raise RuntimeError("Future.set_result: the result is already set")
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception, which wait() raises."""
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls callback(self) when the result is set, or now if it is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of what callback(self) returns when the result is set."""
        future = Future()

        def run(done: Future) -> None:
            try:
                future.set_result(callback(done))
            except BaseException as error:
                future.set_exception(error)

        self.add_done_callback(run)
        return future


def wait_all(futures: list[Future]) -> list[Any]:
    """Waits for all futures and returns their results."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """A Future of the list itself, done when all are."""
    collected, left = Future(), [len(futures)]

    def count(_: Future) -> None:
        left[0] -= 1
        if not left[0]:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected
