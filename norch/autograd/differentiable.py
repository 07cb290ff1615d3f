"""@differentiable: declares a function as an operation with a derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .._package.typing import Any
from .derivative import derivative
from .grad_mode import mode
from .record import gradient_edge, is_recorded, record


def differentiable(name: str = "", **declared: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function of positional arguments, the forward computation, with its derivative. The function runs
    without recording. Takes the options of derivative(), and:

    inputs      the names of the parameters that have a gradient. Default: those with a grad_...=; with grad= or
                backward= the first one. Gradient functions may name the other parameters too
    broadcast   as for record(): the gradients are summed and cast back to the shapes and dtypes of the inputs

    >>> from norch.autograd.differentiable import differentiable
    >>> @differentiable(grad=lambda g, factor: g * factor)
    ... def scaled(x, factor):
    ...     return x.detach() * factor
    >>> scaled(norch.ones(2, requires_grad=True), 3.0)
    tensor([3., 3.], grad_fn=<ScaledBackward>)
    """
    broadcast = declared.pop("broadcast", False)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        inputs = declared.pop("inputs", None) or tuple(
            parameter for parameter in parameters if f"grad_{parameter}" in declared
        )
        inputs = inputs or parameters[:1]
        others = tuple(parameter for parameter in parameters if parameter not in inputs)
        node_class = derivative(name or function.__name__.strip("_"), inputs, others=others, **declared)
        count, leading = len(inputs), inputs == parameters[: len(inputs)]
        single = leading and count == 1
        positions, other_positions = ([parameters.index(name) for name in names] for names in (inputs, others))

        @functools.wraps(function)
        def recorded(*arguments: Any) -> Any:
            if single:  # often without a graph
                x = arguments[0]
                if (x._node if x._view is None else gradient_edge(x)) is None:
                    return function(*arguments)
            if not mode.enabled:
                return function(*arguments)
            tensors = arguments[:count] if leading else tuple([arguments[i] for i in positions])
            if not is_recorded(tensors):
                return function(*arguments)
            try:
                mode.enabled = False
                out = function(*arguments)
            finally:
                mode.enabled = True
            saved = arguments[count:] if leading else tuple([arguments[i] for i in other_positions])
            return record(node_class, out, tensors, saved, broadcast)

        recorded.node_class = node_class  # type: ignore[attr-defined]
        return recorded

    return decorate
