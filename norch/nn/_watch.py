"""watching(): calls functions at every call of a module, while they are registered. Module.__call__ is another function
during that time, and Sequential fuses nothing (_epilogue.py), so that modules need no check otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._binding.library import lib
from ..autograd.hooks import RemovableHandle, add_hook
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


# ---- hooks of all modules ------------------------------------------------------------------------------------------

forward_pre_hooks: dict[int, Callable[..., Any]] = {}
forward_hooks: dict[int, Callable[..., Any]] = {}
forward_hooks_with_kwargs: dict[int, bool] = {}  # the numbers of such hooks
_bare: Any = Module.__call__


def _hooked(self: Module, *args: Any, **kwargs: Any) -> Any:
    for before in list(forward_pre_hooks.values()):
        if (changed := before(self, args)) is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    result = _bare(self, *args, **kwargs)
    for key, after in list(forward_hooks.items()):
        with_kwargs = key in forward_hooks_with_kwargs
        changed = after(self, args, kwargs, result) if with_kwargs else after(self, args, result)
        result = result if changed is None else changed
    return result


def _choose_call(_: None) -> None:
    """Calls of modules look for hooks of all modules only while there are some."""
    global _bare, _plain
    call = _plain if _watchers else Module.__call__
    if (call is _hooked) == bool(forward_pre_hooks or forward_hooks):
        return
    if call is _hooked:
        call = _bare
    else:
        _bare, call = call, _hooked
    if _watchers:
        _plain = call
    else:
        Module.__call__ = call  # type: ignore[method-assign]


def _add_hook(hooks: dict[int, Any], hook: Any, *options: tuple[dict[int, bool], bool]) -> RemovableHandle:
    handle = add_hook(hooks, hook, False, options)
    lib.norch_call_locked(_lock, _choose_call, None)

    def take() -> None:
        handle.remove()
        lib.norch_call_locked(_lock, _choose_call, None)

    return RemovableHandle(take)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, args) before each call of every module, before the module's own hooks; a result other than
    None replaces args. The handle's remove() removes the hook."""
    return _add_hook(forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls hook(module, args, output), or with_kwargs hook(module, args, kwargs, output), after each call of every
    module; a result other than None replaces the output. always_call, after exceptions too, is not supported."""
    if always_call:
        raise NotImplementedError("register_module_forward_hook: always_call is not supported for all modules")
    return _add_hook(forward_hooks, hook, (forward_hooks_with_kwargs, with_kwargs))
