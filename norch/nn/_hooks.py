"""Calls of modules that have hooks. Global hooks, which all modules share, are called before the hooks of the
module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..autograd.hooks import RemovableHandle, add_hook
from ..errors import Error


class _GlobalHooks(OrderedDict[int, Any]):
    """Global hooks by id. Adding and removing one updates has_global_hooks, which Module.__call__ reads."""

    def __setitem__(self, key: int, hook: Any) -> None:
        super().__setitem__(key, hook)
        _update()

    def __delitem__(self, key: int) -> None:
        super().__delitem__(key)
        _update()


def _update() -> None:
    global has_global_hooks
    has_global_hooks = bool(watchers) or any(GLOBAL_HOOKS)


def watch(called: tuple[Callable[[Any], Any], ...]) -> None:
    """Replaces the watchers (_watch.py), which are called at every call of a module."""
    global watchers
    watchers = called
    _update()


forward_pre_hooks, forward_hooks = _GlobalHooks(), _GlobalHooks()
backward_pre_hooks, backward_hooks = _GlobalHooks(), _GlobalHooks()
forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()  # by the ids of global hooks
forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
# hook(module, name, value), before a parameter, buffer or submodule is registered
parameter_hooks: OrderedDict[int, Any] = OrderedDict()
buffer_hooks: OrderedDict[int, Any] = OrderedDict()
module_hooks: OrderedDict[int, Any] = OrderedDict()
_REGISTRATION_HOOKS = {"_parameters": parameter_hooks, "_buffers": buffer_hooks, "_modules": module_hooks}
GLOBAL_HOOKS = forward_pre_hooks, forward_hooks, backward_pre_hooks, backward_hooks
watchers: tuple[Callable[[Any], Any], ...] = ()
# Whether there are global hooks or watchers. Module.__call__ itself is not replaced: that would give Module and all its
# subclasses new versions, on which guards of recordings rely, and Python 3.13 gives a class at most 1000 of them.
has_global_hooks = False


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """module.forward(*args, **kwargs) with the hooks and the watchers before and after it."""
    ends = [end for enter in watchers if (end := enter(module)) is not None]
    try:
        if (
            module._forward_hooks
            or module._forward_pre_hooks
            or module._backward_hooks
            or module._backward_pre_hooks
            or any(GLOBAL_HOOKS)
        ):
            result = _call_hooked(module, args, kwargs)
        else:
            result = module.forward(*args, **kwargs)
    except BaseException:
        for end in reversed(ends):
            end(None, True)
        raise
    for end in reversed(ends):
        end(result, False)
    return result


def _call_hooked(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """module.forward(*args, **kwargs) with the hooks before and after it."""
    waiting, result = {**forward_hooks, **module._forward_hooks}, None
    with_kwargs = {**forward_hooks_with_kwargs, **module._forward_hooks_with_kwargs}
    try:
        for key, hook in [*forward_pre_hooks.items(), *module._forward_pre_hooks.items()]:
            if key in module._forward_pre_hooks_with_kwargs:
                if (changed := hook(module, args, kwargs)) is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise Error(f"a forward pre-hook with kwargs returns None or (args, kwargs), not {changed!r}")
                    args, kwargs = changed
            elif (changed := hook(module, args)) is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        around = _backward_hooks_around(module)
        if around is not None:
            args = around.at_inputs(args)
        result = module.forward(*args, **kwargs)
        for key in list(waiting):
            hook = waiting.pop(key)
            changed = hook(module, args, kwargs, result) if key in with_kwargs else hook(module, args, result)
            result = result if changed is None else changed
        return result if around is None else around.at_outputs(result)
    except Exception:
        always_called = {**forward_hooks_always_called, **module._forward_hooks_always_called}
        for key, hook in waiting.items():
            if key in always_called:
                with suppress(Exception):  # the first error is raised
                    hook(module, args, kwargs, result) if key in with_kwargs else hook(module, args, result)
        raise


def _backward_hooks_around(module: Any) -> Any:
    """The backward hooks of a call of module, or None if there are none."""
    before = [*backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    after = [*backward_hooks.values(), *module._backward_hooks.values()]
    if not before and not after:
        return None
    from ._backward_hooks import BackwardHooks

    return BackwardHooks(module, before, after)


def registered(module: Any, kind: str, name: str, value: Any) -> Any:
    """The value that is registered in place of value, after the hooks of registrations of its kind."""
    for hook in list(_REGISTRATION_HOOKS[kind].values()):
        if (changed := hook(module, name, value)) is not None:
            value = changed
    return value


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, args) before each call of every module, before the hooks of the module; a result other than
    None replaces args. The handle's remove() removes the hook."""
    return add_hook(forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls hook(module, args, output), or with_kwargs hook(module, args, kwargs, output), after each call of every
    module; a result other than None replaces the output. always_call: also if the call raises, with output None."""
    options = [(forward_hooks_with_kwargs, with_kwargs), (forward_hooks_always_called, always_call)]
    return add_hook(forward_hooks, hook, False, options)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, grad_input, grad_output) after the backward of every module, as
    Module.register_full_backward_hook() does for one."""
    return add_hook(backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, grad_output) before the backward of every module, as
    Module.register_full_backward_pre_hook() does for one."""
    return add_hook(backward_pre_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, parameter) when a parameter is registered; a result other than None replaces it."""
    return add_hook(parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, buffer) when a buffer is registered; a result other than None replaces it."""
    return add_hook(buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, submodule) when a submodule is registered; a result other than None replaces it."""
    return add_hook(module_hooks, hook)
