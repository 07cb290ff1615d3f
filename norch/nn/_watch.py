"""watching(): calls functions at every call of a module, while they are registered. Meanwhile Module.__call__ is
another function, and Sequential fuses nothing (_epilogue.py), so modules need no check at other times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._binding.library import lib
from .._package.recording import here
from .module import Module

# Called with a module before its call. Returns None, or a function to be called afterwards: with the result and False,
# or with None and True if the call raised.
Watcher = Callable[[Module], Callable[[Any, bool], None] | None]

_lock = threading.Lock()
_watchers: tuple[Watcher, ...] = ()
_plain: Any = Module.__call__


def _watched(self: Module, *args: Any, **kwargs: Any) -> Any:
    ends = [end for enter in _watchers if (end := enter(self)) is not None]
    try:
        result = _plain(self, *args, **kwargs)
    except BaseException:
        for end in reversed(ends):
            end(None, True)
        raise
    for end in reversed(ends):
        end(result, False)
    return result


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """watcher(module) is called before each call of a module by any thread, and the function
    that it returns after the call."""
    lib.norch_call_locked(_lock, _add, watcher)
    try:
        yield
    finally:
        lib.norch_call_locked(_lock, _remove, watcher)


def _add(watcher: Watcher) -> None:
    global _plain, _watchers
    if not _watchers:
        _plain = Module.__call__
        Module.__call__ = _watched  # type: ignore[method-assign]
    _watchers = (*_watchers, watcher)


def _remove(watcher: Watcher) -> None:
    global _watchers
    at = _watchers.index(watcher)
    _watchers = _watchers[:at] + _watchers[at + 1 :]
    if not _watchers:
        Module.__call__ = _plain  # type: ignore[method-assign]


def note_traced(module: Module) -> None:
    """The watcher of norch.capture: notes the call of a module, if this thread traces."""
    if here.trace is not None:
        here.trace.modules[id(module)] = module


def untraced(call: Any) -> Any:
    """The Module.__call__ that would apply if no thread traced: other threads do not see the change for a recording."""
    return _plain if call is _watched and all(watcher is note_traced for watcher in _watchers) else call
