"""Backward hooks of modules: identity nodes before and after forward pass their gradients to the hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import Function
from ..errors import Error
from ..tensor import Tensor

Hook = Callable[[Any, Any, Any], Any]


class BackwardHookFunction(Function):
    """Returns its tensors; their gradients, as one tuple, go through the function `seen`."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tuple(x.detach() for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        changed = ctx.seen(grads)
        return None, *(grads if changed is None else changed)


def _pass(values: Any, seen: Callable[..., Any]) -> Any:
    """values, a tensor or a tuple; those that require gradients are passed through BackwardHookFunction."""
    many = isinstance(values, tuple)
    listed = list(values) if many else [values]
    indices = [i for i, x in enumerate(listed) if isinstance(x, Tensor) and x.requires_grad]

    def on_gradients(grads: tuple[Any, ...]) -> Any:
        """Calls the hook with one gradient, or None, for each of values; its result has the same form."""
        full: list[Any] = [None] * len(listed)
        for i, g in zip(indices, grads, strict=True):
            full[i] = g
        changed = seen(tuple(full))
        if changed is None:
            return None
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != len(listed):
            raise Error(f"backward hook: returned {len(changed)} gradients, expected {len(listed)}")
        return tuple(changed[i] for i in indices)

    if indices:
        for i, x in zip(indices, BackwardHookFunction.apply(on_gradients, *(listed[i] for i in indices)), strict=True):
            listed[i] = x
    return tuple(listed) if many else listed[0]


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], pre_hooks: list[Any], hooks: list[Hook]) -> Any:
    """module.forward(*args, **kwargs); its backward calls pre_hooks first and hooks last."""
    needs_grad = any(isinstance(x, Tensor) and x.requires_grad for x in args)
    kept: list[Any] = [None]  # the gradients of the outputs, kept for the hooks

    def at_outputs(grads: tuple[Any, ...]) -> Any:
        for hook in pre_hooks:
            changed = hook(module, grads)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        kept[0] = grads
        if not needs_grad:
            at_inputs((None,) * len(args))
        return grads

    def at_inputs(grads: tuple[Any, ...]) -> Any:
        gradients, kept[0] = kept[0], None
        for hook in hooks if gradients is not None else ():  # a second derivative may reach the inputs alone
            changed = hook(module, grads, gradients)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        return grads

    if needs_grad:
        args = _pass(args, at_inputs)
    return _pass(module.forward(*args, **kwargs), at_outputs)
