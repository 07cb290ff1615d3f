"""Backward hooks of modules: identity nodes before and after forward pass their gradients to the hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..autograd import Function
from ..autograd.transpose import walking
from ..errors import Error
from ..tensor import Tensor

Hook = Callable[..., Any]


class BackwardHookFunction(Function):
    """Returns its tensors; their gradients, as one tuple, go through the function `seen`."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tuple(x.detach() for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        changed = None if walking.exact else ctx.seen(grads)
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
    if not many:
        return listed[0]
    return type(values)(*listed) if hasattr(values, "_fields") else tuple(listed)


class BackwardHooks:
    """The backward hooks of one call of a module: its backward calls pre_hooks first and hooks last."""

    def __init__(self, module: Any, pre_hooks: list[Hook], hooks: list[Hook]):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.inputs, self.need_grad = 0, False
        self.grad_output: Any = None  # the gradients of the outputs, kept for the hooks

    def at_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of forward, whose gradients go through the hooks."""
        self.inputs, self.need_grad = len(args), any(isinstance(x, Tensor) and x.requires_grad for x in args)
        return _pass(args, self._after) if self.need_grad else args

    def at_outputs(self, result: Any) -> Any:
        """The result of forward, whose gradients go through the hooks."""
        if not isinstance(result, (Tensor, tuple)):
            kind = f"expected a tensor or a tuple of tensors as the output of a module, not {type(result).__name__}"
            warnings.warn(f"backward hooks are not called: {kind}", stacklevel=4)
        return _pass(result, self._before)

    def _before(self, grads: tuple[Any, ...]) -> Any:
        for hook in self.pre_hooks:
            if (changed := hook(self.module, grads)) is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        self.grad_output = grads
        if not self.need_grad:
            self._after((None,) * self.inputs)
        return grads

    def _after(self, grads: tuple[Any, ...]) -> Any:
        grad_output, self.grad_output = self.grad_output, None
        for hook in self.hooks if grad_output is not None else ():  # a second derivative may reach the inputs alone
            if (changed := hook(self.module, grads, grad_output)) is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        return grads
