"""watching(): calls functions at every call of a module, while they are registered. Meanwhile calls go through
_hooks.call(), and Sequential fuses nothing (_epilogue.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._binding.library import lib
from .._package.recording import here
from . import _hooks
from .module import Module

# Called with a module before its call. Returns None, or a function to be called afterwards: with the result and False,
# or with None and True if the call raised.
Watcher = Callable[[Module], Callable[[Any, bool], None] | None]

_lock = threading.Lock()


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
    _hooks.watch((*_hooks.watchers, watcher))


def _remove(watcher: Watcher) -> None:
    at = _hooks.watchers.index(watcher)
    _hooks.watch(_hooks.watchers[:at] + _hooks.watchers[at + 1 :])


def note_traced(module: Module) -> None:
    """The watcher of norch.capture: notes the call of a module, if this thread traces."""
    if here.trace is not None:
        here.trace.modules[id(module)] = module
