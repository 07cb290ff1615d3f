"""What a module with backward hooks puts around its forward, so that the gradients at its border can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import Function
from ..errors import Error
from ..tensor import Tensor

Hook = Callable[[Any, Any, Any], Any]


class _Border(Function):
    """Tensors pass unchanged; their gradients pass through a function of all of them."""

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
    """values, one or a tuple, with the tensors among them led through a border."""
    many = isinstance(values, tuple)
    listed = list(values) if many else [values]
    places = [i for i, x in enumerate(listed) if isinstance(x, Tensor) and x.requires_grad]

    def spread(grads: tuple[Any, ...]) -> Any:
        """The hook sees a gradient, or None, for each of values, and so may what it gives in their place."""
        full: list[Any] = [None] * len(listed)
        for i, g in zip(places, grads, strict=True):
            full[i] = g
        changed = seen(tuple(full))
        if changed is None:
            return None
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != len(listed):
            raise Error(f"backward hook: gave {len(changed)} gradients, but expected {len(listed)}")
        return tuple(changed[i] for i in places)

    if places:
        for i, x in zip(places, _Border.apply(spread, *(listed[i] for i in places)), strict=True):
            listed[i] = x
    return tuple(listed) if many else listed[0]


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], pre_hooks: list[Any], hooks: list[Hook]) -> Any:
    """module.forward(*args, **kwargs), whose backward calls pre_hooks before and hooks after."""
    wanted = any(isinstance(x, Tensor) and x.requires_grad for x in args)
    outside: list[Any] = [None]  # the gradients of the outputs, for the hooks at the inputs

    def leaving(grads: tuple[Any, ...]) -> Any:
        for hook in pre_hooks:
            changed = hook(module, grads)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        outside[0] = grads
        if not wanted:
            arriving((None,) * len(args))
        return grads

    def arriving(grads: tuple[Any, ...]) -> Any:
        given, outside[0] = outside[0], None
        for hook in hooks if given is not None else ():  # a second derivative may come past the inputs only
            changed = hook(module, grads, given)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        return grads

    if wanted:
        args = _pass(args, arriving)
    return _pass(module.forward(*args, **kwargs), leaving)
