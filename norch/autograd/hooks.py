"""Hooks on nodes, modules and optimizers, and the handles that remove them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence

from .._package.typing import Any
from .._tensor import handle as _handle
from .._tensor.handle import Handle
from ..errors import DeviceError, Error, ShapeError


class RemovableHandle:
    """Returned by register_..._hook(). remove(), or leaving a `with` block, removes the hook. A program may create a
    handle for its OrderedDict of hooks, and store a hook there under the handle's id.

    extra_dict: a dict, or a list of dicts, with the options of hooks under the same ids.
    """

    __slots__ = ("extra_dict_ref", "hooks_dict_ref", "id")
    next_id = 0  # a handle removes no later hook, since no number is used twice

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.hooks_dict_ref: Any = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(options) for options in extra)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *extra = state
        references = [weakref.ref(OrderedDict() if kept is None else kept) for kept in (hooks, *(extra or ((),))[0])]
        self.hooks_dict_ref, self.extra_dict_ref = references[0], tuple(references[1:])
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class CallbackHandle(RemovableHandle):
    """The handle of a hook that is in no dict: remove() calls a function, once."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], None]):
        super().__init__(RemovableHandle)
        self._take: Callable[[], None] | None = take

    def remove(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            take()


def add_hook(
    hooks: OrderedDict[int, Any], hook: Any, first: bool = False, options: Sequence[tuple[Any, bool]] = ()
) -> RemovableHandle:
    """Adds a hook to the hooks of a module or an optimizer, which are called in order; first: before the others.
    options: for each option, (the dict of the hooks that have it, whether this hook has it)."""
    handle = RemovableHandle(hooks, extra_dict=[with_it for with_it, _ in options])
    while handle.id in hooks:  # hooks of a loaded module have numbers of another process
        handle = RemovableHandle(hooks, extra_dict=[with_it for with_it, _ in options])
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    for with_it, has_it in options:
        with_it.pop(handle.id, None)
        if has_it:
            with_it[handle.id] = True
    return handle


def add_node_hook(node: Any, hook: Any) -> RemovableHandle:
    """Adds a hook to those of node, in front of those of retain_grad(), which see the gradient after all others. The
    handle keeps no graph alive."""
    hooks = node.hooks or []
    last = [other for other in hooks if isinstance(other, RetainGradHook)]
    node.hooks = [*(other for other in hooks if other not in last), hook, *last] if last else [*hooks, hook]
    reference = weakref.ref(node)

    def take() -> None:
        node = reference()
        hooks = [] if node is None else list(node.hooks or ())
        at = next((i for i, other in enumerate(hooks) if other is hook), None)
        if node is not None and at is not None:
            node.hooks = [*hooks[:at], *hooks[at + 1 :]] or None

    return CallbackHandle(take)


class UserHook:
    """A user's hook that does not take the arriving gradient."""

    def __init__(self, hook: Callable[..., Any]):
        self.hook = hook

    def __call__(self, g: Any) -> Any:
        pass


class BeforeNode(UserHook):
    """A hook of Node.register_prehook(), which takes the result's gradient in a tuple."""


class AfterNode(UserHook):
    """A hook of Node.register_hook(), which takes the gradients of the inputs and of the result."""


def call_before(hooks: list[Any], g: Any) -> Any:
    """g, possibly None, after the hooks of Node.register_prehook(), which may return None."""
    for hook in tuple(hooks):
        if type(hook) is BeforeNode:
            (changed,) = _returned(hook.hook((g,)), (g,), "register_prehook")
            g = changed if changed is None or changed is g else plain(changed).to(g)
    return g


def call_after(hooks: list[Any], grad_inputs: Any, g: Any) -> tuple[Any, ...]:
    """The gradients of the inputs after the hooks of Node.register_hook()."""
    gradients = tuple(grad_inputs)
    for hook in tuple(hooks):
        if type(hook) is AfterNode:
            gradients = _returned(hook.hook(gradients, (g,)), gradients, "register_hook")
    return gradients


def _returned(changed: Any, gradients: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """The gradients after a hook of a node."""
    if changed is None:
        return gradients
    if not isinstance(changed, tuple):
        raise TypeError(f"{name}: a hook must return None or a tuple of gradients, not {type(changed).__name__}")
    if len(changed) != len(gradients):
        raise Error(f"{name}: a hook returned {len(changed)} gradients, not {len(gradients)}")
    for new, old in zip(changed, gradients):
        if new is not None:
            if old is None:
                raise Error(f"{name}: a hook returned a gradient in place of None")
            check_gradient(new, old, name)
    return changed


class PostAccumulateHook(UserHook):
    """A hook of a Leaf that takes the tensor after its .grad was updated."""


class RetainGradHook:
    """The hook of retain_grad(): adds the gradient to .grad of a non-leaf tensor."""

    def __init__(self, tensor: Any):
        self.tensor = weakref.ref(tensor)

    def __call__(self, g: Any) -> None:
        tensor = self.tensor()
        if tensor is not None:
            add_to_grad(tensor, g)


def retaining(hooks: list[Any] | None, tensor: Any) -> list[Any]:
    """The hooks that retain_grad() of this tensor added."""
    return [hook for hook in hooks or () if isinstance(hook, RetainGradHook) and hook.tensor() is tensor]


def add_to_grad(tensor: Any, g: Any) -> None:
    """Adds g to .grad of a non-leaf tensor; .grad never shares memory with g, which others may use."""
    tensor._grad = g.clone() if tensor._grad is None else tensor._grad + g


# ---- for the engine ----------------------------------------------------------------------------------------------


def call_hooks(hooks: list[Any], g: Any) -> Any:
    """g after all hooks; each hook gets the result of the previous hook."""
    for hook in tuple(hooks):
        changed = hook(g)
        if changed is not None:
            changed = plain(changed)
            check_gradient(changed, g, "hook")
            g = changed.to(g)
    return g


def call_post_hooks(leaf: Any, g: Any) -> None:
    """Calls a leaf's hooks that follow the update of its .grad by g."""
    tensor = leaf.tensor()
    for hook in tuple(leaf.hooks or ()):
        if type(hook) is PostAccumulateHook and tensor is not None and hook.hook(tensor) is not None:
            raise Error("register_post_accumulate_grad_hook: a hook must return None; it may change .grad itself")
    call_after(leaf.hooks or [], (), g)


def plain(gradient: Any) -> Any:
    """The program's gradient as a plain Tensor with its history, so that the walk calls no methods of
    subclasses."""
    # a sparse tensor's elements are in Python
    if not getattr(gradient, "_overrides", False) or gradient._in_coordinates:
        return gradient
    return _handle.result_class.as_subclass(gradient, _handle.result_class)


def check_gradient(gradient: Any, of: Any, name: str) -> None:
    """Raises an exception unless gradient is a tensor of the shape and on the device of `of`."""
    if not isinstance(gradient, Handle):
        raise TypeError(f"{name}: a gradient must be a tensor, not {type(gradient).__name__}")
    shape = gradient.shape
    if shape != of.shape:
        raise ShapeError(f"{name}: a gradient of shape {tuple(shape)} for a tensor of shape {tuple(of.shape)}")
    elsewhere = gradient._device_type != of._device_type or gradient._device_index != of._device_index
    if elsewhere and shape and gradient.device != of.device:  # a single number is moved; a sparse tensor's type is meta
        raise DeviceError(f"{name}: a gradient on {gradient.device} for a tensor on {of.device}")
