"""``norch.futures``: results that are waited for, of threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures as _python
from typing import Any

from .._package.exports import publish

__all__ = ["Future", "collect_all", "wait_all"]
publish(globals(), name="norch.futures")


class Future:
    """A result that a thread sets and others wait for.

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
        """Whether there is a result, or an exception."""
        return self._future.done()

    def wait(self) -> Any:
        """The result, once it is there; raises the exception that was set."""
        return self._future.result()

    def value(self) -> Any:
        """The result, which has to be there: RuntimeError if it is not."""
        if not self.done():
            raise RuntimeError("Future.value: there is no result yet; wait() waits for it")
        return self._future.result()

    def set_result(self, result: Any) -> None:
        """Sets the result, once: RuntimeError the second time."""
        if self.done():
            raise RuntimeError("Future.set_result: there is a result already")
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception that wait() raises."""
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls callback(self) once there is a result, or at once."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The Future of what callback(self) returns once there is a result."""
        future = Future()

        def run(done: Future) -> None:
            try:
                future.set_result(callback(done))
            except BaseException as error:
                future.set_exception(error)

        self.add_done_callback(run)
        return future


def wait_all(futures: list[Future]) -> list[Any]:
    """The results of all, once they are there."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """The Future of the list itself, once all have results."""
    made, left = Future(), [len(futures)]

    def count(_: Future) -> None:
        left[0] -= 1
        if not left[0]:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        made.set_result(futures)
    return made
