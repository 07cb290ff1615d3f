"""Function: custom operations with a derivative. (Built-in ones are declared in ops/.)"""

from __future__ import annotations

import functools
from weakref import WeakValueDictionary

from .._binding.library import lib
from .._package.exports import publish
from .._package.typing import Any, cast
from .._tensor.handle import Handle, alias, meta_of, next_seq, version_counter_of
from ..errors import Error, ShapeError
from .broadcast import sum_to
from .grad_mode import F, mode, no_grad
from .inplace import check_writable
from .levels import Level, within, zeros_of
from .node import Node
from .record import gradient_edge
from .saved import freed, saved_intact
from .view_history import SEVERED, rebase_history

__all__ = ["Function", "once_differentiable"]


class Function(Node):
    """Base of custom operations. A subclass defines static forward and backward, and is called by `apply`. Its instance
    is both `ctx` and the node of the graph. backward raises Error if a saved tensor was changed in place or freed,
    ShapeError if a gradient does not fit its input.

    >>> class Cube(norch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> x = norch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    # No __slots__: users set attributes on ctx.

    generate_vmap_rule = False  # norch.vmap() maps forward and backward of a class without a vmap of its own

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "vjp" in cls.__dict__ and "backward" not in cls.__dict__:
            cls.backward = cls.vjp  # type: ignore[method-assign]

    def __init__(self) -> None:
        super().__init__()
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: tuple[Any, ...] = ()
        self._saved_outputs: dict[int, int] = {}
        self._released = False
        self._not_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._input_shapes: list[Any] = []
        self._output_shapes: list[Any] = []
        self._materialize = self._materialize_non_diff_grads = True

    @staticmethod
    def forward(ctx: Any, *arguments: Any, **named: Any) -> Any:
        """Computes the result: a tensor, or a tuple of them. Runs without recording."""
        raise NotImplementedError("a Function needs a static forward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """For a forward without ctx: saves what backward needs. inputs are the arguments of forward."""
        raise NotImplementedError("a Function whose forward takes no ctx needs a static setup_context(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any, **named: Any) -> Any:  # named: for type checkers
        """Returns one gradient for each argument of forward, None for those without. grads: one for each output."""
        raise NotImplementedError("a Function needs a static backward(ctx, ...)")

    vjp = backward  # an alias

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the outputs' tangents from the inputs'. norch never calls it: jvp() differentiates backward()
        instead."""
        raise NotImplementedError("a Function needs a static jvp(ctx, ...) for this")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        """norch.vmap() calls this instead of forward if a subclass defines it. in_dims: for each argument the axis of
        its samples (None: not batched); info has batch_size and randomness. Returns (results, out_dims); out_dims: the
        axes of the samples in the results. It usually calls apply()."""
        raise NotImplementedError("a Function needs a static vmap(info, in_dims, ...) for this")

    def save_for_backward(self, *tensors: Any) -> None:
        """Saves tensors (inputs, outputs, others or None) for backward, which reads them from ctx.saved_tensors."""
        for x in tensors:
            if x is not None and not isinstance(x, Handle):
                raise TypeError(f"save_for_backward: expected tensors, not {type(x).__name__}; set an attribute of ctx")
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for jvp(), as ctx.saved_for_forward."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Declares outputs without gradient."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """Declares that forward changes these inputs in place, and returns them."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """With False backward gets None, and not zeros, for outputs that were not used."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors passed to save_for_backward(), in order. Error if they were freed or changed in place."""
        if self._released:
            raise freed(self)
        tensors: list[Any] = []
        for position, saved in enumerate(self._saved):
            if saved is None:
                tensors.append(None)
                continue
            saved_intact(self, saved)
            index = self._saved_outputs.get(position)
            if index is not None:  # an output is saved without its history
                saved = alias(saved)
                saved._node = self if len(self._output_shapes) == 1 else output_of(self, index)
            tensors.append(saved)
        return tuple(tensors)

    @classmethod
    def apply(cls, *arguments: Any, **named: Any) -> Any:
        """Calls forward(ctx, *arguments, **named) and records the node."""
        with_setup = cls.setup_context is not Function.setup_context
        if with_setup and (named or getattr(cls.forward, "__defaults__", None)):
            arguments, named = _with_defaults(cls.forward, arguments, named)
        node = cls()
        inputs = [argument if isinstance(argument, Handle) else None for argument in arguments]
        edges = tuple(None if x is None else gradient_edge(x) for x in inputs)
        node.needs_input_grad = tuple(edge is not None for edge in edges)
        record = mode.enabled and any(node.needs_input_grad)
        by_own_rule = within.levels and cls.vmap is not Function.vmap
        if by_own_rule:
            result, by_own_rule = _mapped(cls, arguments, named)
            if by_own_rule and not (record and with_setup and not _requires_grad(result)):
                return result
        with no_grad():
            if with_setup:
                result = result if by_own_rule else cls.forward(*arguments, **named)
                cls.setup_context(node, arguments, result)
            else:
                result = cls.forward(node, *arguments, **named)
        if record:
            node.edges = edges
            node._input_shapes = [None if to is None else meta_of(cast(Handle, x)) for to, x in zip(edges, inputs)]
            outputs = node._record(result if isinstance(result, tuple) else (result,), inputs)
            result = outputs if isinstance(result, tuple) else outputs[0]
            node._dirty = node._not_differentiable = ()  # outputs may be among them, and outputs hold the node
        return result

    def _is_dirty(self, x: Any) -> bool:
        return any(x is dirty for dirty in self._dirty)

    def _record(self, outputs: tuple[Any, ...], inputs: list[Any]) -> tuple[Any, ...]:
        """Makes this node the history of outputs, and returns them. If an output is an input, an alias replaces it, so
        that the input keeps its history.
        """
        for x in self._dirty:
            if not any(x is out for out in outputs):  # x would keep the history of its former elements
                raise Error(f"{self.name()}: forward must return the inputs that it gave to mark_dirty()")
            for value in inputs:
                check_writable(x, self.name(), value)
            x._bump()
        self.seq = next_seq()  # forward may have recorded nodes and written in place
        self._output_shapes = [meta_of(out) if isinstance(out, Handle) else None for out in outputs]
        for position, saved in enumerate(self._saved):
            for index, out in enumerate(outputs):
                if saved is out and (self._is_dirty(out) or not any(saved is x for x in inputs)):
                    self._saved = (*self._saved[:position], alias(out), *self._saved[position + 1 :])
                    self._saved_outputs[position] = index
        results = list(outputs)
        for index, out in enumerate(outputs):
            if not isinstance(out, Handle):
                continue
            if any(out is tensor for tensor in self._not_differentiable) or cast(Any, out).dtype.kind not in "fc":
                if not self._materialize_non_diff_grads:
                    self._output_shapes[index] = None
                continue
            node = self if len(outputs) == 1 else output_of(self, index)
            if self._is_dirty(out):
                rebase_history(out, node)
                continue
            if any(out is x for x in inputs):
                results[index] = lib.norch_alias(out)
                results[index]._version_counter = version_counter_of(out)
                results[index]._view = SEVERED  # a write to it would bypass backward
            results[index]._node = node
        return tuple(results)

    def propagate(self, g: Any) -> tuple[Any, ...]:
        grads = [g.get(i) for i in range(len(self._output_shapes))] if isinstance(g, Outputs) else [g]
        if self._materialize:
            grads = [
                zeros_of(like) if grad is None and like is not None else grad
                for grad, like in zip(grads, self._output_shapes, strict=True)
            ]
        result = type(self).backward(self, *grads)
        listed = result if isinstance(result, tuple) else (result,)
        while len(listed) > len(self.edges) and listed[-1] is None:
            listed = listed[:-1]
        if len(listed) != len(self.edges):
            raise Error(
                f"{self.name()}: backward returned {len(listed)} gradients for {len(self.edges)} arguments of forward"
            )
        return tuple(map(self._fitting, listed, self._input_shapes))

    def _without_gradient(self) -> tuple[Any, ...]:
        return self.propagate(None)

    def _fitting(self, g: Any, like: Any) -> Any:
        """Sums and casts a gradient from the user's backward to the shape and dtype of its input."""
        if g is None or like is None:
            return None
        if not isinstance(g, Handle):
            raise TypeError(f"{self.name()}: backward must return tensors or None, not {type(g).__name__}")
        try:
            return sum_to(g, like)
        except Error:
            shapes = f"a gradient of shape {tuple(cast(Any, g).shape)} for an input of shape {lib.norch_shape(like)}"
            raise ShapeError(f"{self.name()}: backward returned {shapes}") from None

    def release(self) -> None:
        self._saved = ()
        self._released = True


FunctionCtx = Function  # the context of a Function is its instance


class Output(Node):
    """One result of a node with several results; propagate marks the gradient with the index of the result."""

    __slots__ = ("index",)

    def __init__(self, parent: Node, index: int):
        super().__init__(parent)
        self.index = index

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (Outputs({self.index: g}),)


_outputs: WeakValueDictionary[tuple[int, int], Output] = WeakValueDictionary()


def output_of(parent: Node, index: int) -> Output:
    """The history of one result of a node: the same Output, with its hooks, as long as it is referenced."""
    found = _outputs.get((id(parent), index))
    if found is None or found.edges[0] is not parent:
        found = _outputs[id(parent), index] = Output(parent, index)
    return found


class Outputs(dict[int, Any]):
    """{index of a result: its gradient}; adding two adds result by result."""

    def __add__(self, other: Outputs) -> Outputs:
        return Outputs(
            {
                i: self[i] + other[i] if i in self and i in other else self.get(i, other.get(i))
                for i in {**self, **other}
            }
        )


class DelayedError(Node):
    """The node of a gradient that cannot be differentiated again. A backward walk through it raises an Error."""

    __slots__ = ("message",)

    def __init__(self, message: str, edges: tuple[Node | None, ...]):
        super().__init__(*edges)
        self.message = message

    def propagate(self, g: Any) -> tuple[Any, ...]:
        raise Error(self.message)


def once_differentiable(function: F) -> F:
    """Decorates a backward() that cannot be differentiated: it runs without recording. If the gradients that it is
    called with require grad, differentiating its results raises an Error.
    """

    @functools.wraps(function)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = function(ctx, *grads)
        edges = tuple(gradient_edge(g) if isinstance(g, Handle) else None for g in grads)
        if not any(edges):  # without create_graph, gradients have none
            return results
        message = f"{ctx.name()}: going backward twice through a function that is marked with @once_differentiable"
        outputs = [
            alias(x) if isinstance(x, Handle) else x for x in (results if type(results) is tuple else (results,))
        ]
        for x in outputs:
            if isinstance(x, Handle):
                cast(Any, x)._node = DelayedError(message, edges)
        return tuple(outputs) if type(results) is tuple else outputs[0]

    return cast(F, backward)


def _mapped(cls: type[Function], arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, bool]:
    """(The result of the subclass's vmap(), True); (None, False) if no argument is batched."""
    level = Level.own_rules.level_of((arguments, named))
    if level is None:
        return None, False
    if cls.generate_vmap_rule:
        raise Error(f"{cls.__name__}: a Function with generate_vmap_rule=True has no vmap() of its own")
    return Level.own_rules.by_rule(cls.vmap, level, arguments, named), True


def _requires_grad(result: Any) -> bool:
    return any(cast(Any, x).requires_grad for x in (result if isinstance(result, tuple) else (result,)))


def _with_defaults(forward: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """(The arguments of forward by position, with defaults, for setup_context(); the keyword-only arguments)."""
    import inspect  # few Functions have defaults

    bound = inspect.signature(forward).bind(*arguments, **named)
    bound.apply_defaults()
    return bound.args, bound.kwargs


publish(globals())
