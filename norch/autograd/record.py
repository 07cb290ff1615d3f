"""record(): where history is written. An operation that was computed becomes a node of the graph.

``derivative()`` makes the node class of an operation from its gradient functions, one for each input. The names of
their parameters say what the node saves, and nothing else is kept alive:

    g                  the gradient of the result (first, always given)
    x, weight ...      an input, by its name
    out                the result
    x_meta             shape, dtype and device of the input x, without its elements
    needs_input_grad   for each input whether its gradient is wanted (not saved)
    dim, scale ...     what record() was given under that name

    derivative("mul", ("a", "b"), grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)

Gradients of broadcast or cast inputs are not these functions' concern: the engine sums and casts them (broadcast.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from .._handle import Handle, alias, tick
from .grad_mode import mode
from .inplace import SEVERED, edge, meta_of, view_of
from .node import Node, freed, saved_intact

Gradient = Callable[..., Any]
_new = object.__new__


class TensorHolder:
    """A saved object that holds tensors: they are checked and freed as saved inputs are."""

    __slots__ = ()

    def tensors(self) -> tuple[Any, ...]:
        """What it holds."""
        raise NotImplementedError


_CHECKED = (Handle, TensorHolder)


class OpNode(Node):
    """The node of a declared operation; derivative() makes its classes.

    _saved  what the gradient functions need, in the order of saved_names; None once it was freed. Private, as numbers
            that are kept for all calls may be among it
    metas   for each input its shape and dtype, where broadcasting or promotion made the result differ; else None
    """

    __slots__ = ("_saved", "metas")

    shares_grad = False
    inputs: tuple[str, ...] = ()
    saved_names: tuple[str, ...] = ()
    # For each input the names of what its gradient needs.
    needs: tuple[frozenset[str], ...] = ()
    saves_out = False
    saves_meta = False  # of the first input
    # Whether it saves tensors, which backward() frees; shapes, axes and numbers are kept for another walk.
    frees = False
    # What record() has to be told, by name; and for each set of wanted gradients, as bits, what it saves where.
    other_names: tuple[str, ...] = ()
    plans: dict[int, Any] = {}

    _saved: tuple[Any, ...] | None
    metas: tuple[Any, ...] | None

    def release(self) -> None:
        if self.frees:
            self._saved = None


# ---- node classes --------------------------------------------------------------------------------------------------


def derivative(
    name: str,
    inputs: tuple[str, ...] = ("x",),
    *,
    backward: Gradient | None = None,
    layout: tuple[str, ...] = (),
    tensors: tuple[str, ...] = (),
    add_to: Gradient | None = None,
    shares_grad: bool = False,
    connected: int = 0,
    **grads: Gradient | None,
) -> type[OpNode]:
    """The node class of the operation name: grad_x=, grad_weight= ... give the gradient of each input (None: it has
    none), grad= that of the only one, for three inputs at most; backward= gives those of all at once, as a tuple.

    layout        what is saved, in this order, where another function than record() does it
    tensors       which of the other names are tensors, or TensorHolders
    add_to        add_to(whole, g, ...) adds the gradient, which is 0 but for a region, to another one in place
    shares_grad   a gradient may be g itself or a view of it, so that the engine must not write into it
    connected     of how many of the first inputs recorded gradients are functions, also where their derivative is 0
    """
    functions = _by_input(inputs, grads)
    parameters = [_parameters(function) for function in ([backward] if backward else functions)]
    used = tuple(dict.fromkeys(name for listed in parameters for name in listed if name != "needs_input_grad"))
    names = layout or used
    frees = not {*inputs, "out", *tensors}.isdisjoint(used)
    needs = [frozenset(listed) for listed in parameters] * (len(inputs) if backward else 1)
    if backward is not None:
        propagate = _joint(backward, parameters[0], names, frees)
    else:
        each = [
            _no_gradient if function is None else _gradient(function, listed, names, inputs, frees)
            for function, listed in zip(functions, parameters, strict=True)
        ]
        propagate = (_one, _two, _three)[len(each) - 1](*each)
    attributes = {
        "__slots__": (),
        "__module__": __name__,
        "inputs": inputs,
        "saved_names": names,
        "needs": tuple(needs),
        "saves_out": "out" in used,
        "saves_meta": f"{inputs[0]}_meta" in used if inputs else False,
        "frees": frees,
        "other_names": tuple(name for name in used if name != "out" and name.removesuffix("_meta") not in inputs),
        "plans": {},
        "shares_grad": shares_grad,
        "connected": connected,
        "propagate": propagate,
    }
    if add_to is not None:
        attributes.update(partial=True, add_to=_adding(add_to, names, frees))
    return type("".join(part.capitalize() for part in name.split("_")), (OpNode,), attributes)


def _by_input(inputs: tuple[str, ...], grads: dict[str, Gradient | None]) -> list[Gradient | None]:
    if "grad" in grads:
        grads = {f"grad_{inputs[0]}": grads["grad"]}
    unknown = grads.keys() - {f"grad_{name}" for name in inputs}
    if unknown:
        raise TypeError(f"derivative: {', '.join(sorted(unknown))} for inputs {inputs}")
    return [grads.get(f"grad_{name}") for name in inputs]


def _parameters(function: Gradient | None) -> tuple[str, ...]:
    """The names of its parameters after g."""
    if function is None:
        return ()
    code = function.__code__
    return code.co_varnames[1 : code.co_argcount]


def _gradient(
    function: Gradient, parameters: tuple[str, ...], names: tuple[str, ...], inputs: tuple[str, ...], frees: bool
) -> Any:
    """function(g, ...) as a function of the node and g."""
    if not parameters:
        return lambda node, g: function(g)
    if len(parameters) == 1:
        position = names.index(parameters[0])
        if parameters[0] in inputs:
            return _of_one_input(function, position)
        if not frees:
            return lambda node, g: function(g, node._saved[position])
    read = _reader(parameters, names, frees)
    return lambda node, g: function(g, *read(node))


def _of_one_input(function: Gradient, position: int) -> Any:
    def gradient(node: OpNode, g: Any) -> Any:
        saved = node._saved
        if saved is None:
            raise freed(node)
        x = saved[position]
        if x._cell is not None:
            saved_intact(node, x)
        return function(g, x)

    return gradient


def _reader(parameters: tuple[str, ...], names: tuple[str, ...], frees: bool) -> Any:
    """A function of a node: the saved values of these names, which nobody freed or wrote to since; the result with its
    history. Without frees no tensor is among them, so that there is nothing to check."""
    positions = [names.index(name) for name in parameters]
    count = len(positions)
    in_order = count > 1 and positions == [*range(len(names))]
    pick: Any = itemgetter(*positions) if count > 1 else lambda saved: tuple([saved[i] for i in positions])
    out_at = parameters.index("out") if "out" in parameters else -1
    if not frees:
        return lambda node: pick(node._saved)

    def read(node: OpNode) -> tuple[Any, ...]:
        saved = node._saved
        if saved is None:
            raise freed(node)
        values = saved if in_order else pick(saved)
        for x in values:
            if isinstance(x, _CHECKED):
                for held in x.tensors() if isinstance(x, TensorHolder) else (x,):
                    if held._cell is not None:
                        saved_intact(node, held)
        if out_at >= 0 and mode.enabled:
            out = alias(values[out_at])
            out._node = node
            values = (*values[:out_at], out, *values[out_at + 1 :])
        return values

    return read


def _adding(function: Gradient, names: tuple[str, ...], frees: bool) -> Any:
    """function(whole, g, ...) as a method of the node."""
    read = _reader(_parameters(function)[1:], names, frees)
    return lambda node, whole, g: function(whole, g, *read(node))


def _no_gradient(node: OpNode, g: Any) -> None:
    return None


def _one(gradient: Any) -> Any:
    return lambda node, g: (gradient(node, g),)


def _two(grad_a: Any, grad_b: Any) -> Any:
    def propagate(node: OpNode, g: Any) -> tuple[Any, ...]:
        to_a, to_b = node.edges
        return None if to_a is None else grad_a(node, g), None if to_b is None else grad_b(node, g)

    return propagate


def _three(grad_a: Any, grad_b: Any, grad_c: Any) -> Any:
    def propagate(node: OpNode, g: Any) -> tuple[Any, ...]:
        to_a, to_b, to_c = node.edges
        return (
            None if to_a is None else grad_a(node, g),
            None if to_b is None else grad_b(node, g),
            None if to_c is None else grad_c(node, g),
        )

    return propagate


def _joint(backward: Gradient, parameters: tuple[str, ...], names: tuple[str, ...], frees: bool) -> Any:
    asks = parameters.index("needs_input_grad") if "needs_input_grad" in parameters else -1
    read = _reader(tuple(name for name in parameters if name != "needs_input_grad"), names, frees)

    def propagate(node: OpNode, g: Any) -> tuple[Any, ...]:
        wanted = tuple([to is not None for to in node.edges])
        values = read(node)
        if asks >= 0:  # it leaves out itself what nobody wants
            return backward(g, *values[:asks], wanted, *values[asks:])
        return tuple([grad if want else None for grad, want in zip(backward(g, *values), wanted)])

    return propagate


# ---- recording -----------------------------------------------------------------------------------------------------


def record(node_class: type[OpNode], out: Any, inputs: tuple[Any, ...], broadcast: bool = False, **others: Any) -> Any:
    """out, computed from inputs (tensors, or None), with its history where a gradient is wanted.

    broadcast: the gradients are those of the broadcast, promoted inputs, and are summed and cast back to their shapes
    and dtypes. others: what the gradient functions call by other names than those of the inputs.
    """
    if mode.enabled:
        edges, wanted = _edges(inputs)
        if wanted:
            named = tuple([others[name] for name in node_class.other_names]) if others else ()
            out._node = _make_node(node_class, inputs, edges, wanted, broadcast, named, out)
    return out


def record_one(node_class: type[OpNode], out: Any, x: Any, *saved: Any, casts: bool = False) -> Any:
    """record() where x alone has a gradient, for what runs often. saved: the names of the layout behind x_meta and out.
    casts: the gradient is cast back to the dtype and the device of x."""
    if mode.enabled:
        to_x = x._node if x._view is None else edge(x)
        if to_x is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = tick()
            node.hooks = None
            node.metas = (meta_of(x),) if casts else None
            if node_class.saves_out:
                saved = (alias(out), *saved)
            node._saved = (meta_of(x), *saved) if node_class.saves_meta else saved
            out._node = node
    return out


def record_write(node_class: type[OpNode], x: Any, values: Any, *saved: Any) -> OpNode | None:
    """The node of a write of values, which are broadcast, into x, made before the write (inplace.written() notes it) or
    for a changed copy; None where no gradient is wanted. saved: the names of the layout behind values_meta.

    x may be None, for a view: what becomes of its former elements is for the history of its base to say.
    """
    if not mode.enabled:
        return None
    to_x = None if x is None else edge(x)
    to_values = edge(values)
    if to_x is None and to_values is None:
        return None
    node = _new(node_class)
    node.edges = (to_x, to_values)
    node.seq = tick()
    node.hooks = None
    meta = meta_of(values)
    node.metas = (None, meta)
    node._saved = (meta, *saved)
    return node


def record_sequence(node_class: type[OpNode], out: Any, tensors: Sequence[Any], dim: int) -> Any:
    """record() for a function of any number of tensors: saves their meta tensors and dim, and casts the gradients."""
    if mode.enabled:
        edges = tuple([x._node if x._view is None else edge(x) for x in tensors])
        if edges.count(None) < len(edges):
            node = _new(node_class)
            node.edges = edges
            node.seq = tick()
            node.hooks = None
            node.metas = tuple([meta_of(x) for x in tensors])
            node._saved = (node.metas, dim)
            out._node = node
    return out


def _edges(inputs: tuple[Any, ...]) -> tuple[list[Any], int]:
    """Where the gradients of inputs go, and which of them are wanted, as bits, the first input's the highest."""
    edges = []
    wanted = 0
    for x in inputs:
        to = None if x is None else x._node if x._view is None else edge(x)
        edges.append(to)
        wanted += wanted + (to is not None)
    return edges, wanted


def _make_node(
    node_class: type[OpNode],
    inputs: tuple[Any, ...],
    edges: list[Any],
    wanted: int,
    broadcast: bool,
    others: tuple[Any, ...],
    out: Any = None,
) -> OpNode:
    """A node with what the wanted gradients need; others: the values of its other_names."""
    node = _new(node_class)
    node.edges = tuple(edges)
    node.seq = tick()
    node.hooks = None
    node.metas = tuple([None if x is None else meta_of(x) for x in inputs]) if broadcast else None
    plan = node_class.plans.get(wanted)
    if plan is None:
        plan = node_class.plans[wanted] = _plan(node_class, [to is not None for to in edges])
    pick, of_out, of_metas = plan
    if pick is None:
        node._saved = inputs + others
        return node
    values = [None, *inputs, *others]
    if of_out:
        values.append(alias(out))
    for i in of_metas:
        values.append(None if inputs[i] is None else meta_of(inputs[i]))
    node._saved = pick(values)
    return node


def record_product(node_class: type[OpNode], out: Any, a: Any, b: Any, broadcast: bool = False) -> Any:
    """record() for a product of two inputs, the gradient of each of which needs the other one: matmul runs often.

    What is saved is in the order of their gradients: b, for that of a, then a."""
    if mode.enabled:
        to_a = a._node if a._view is None else edge(a)
        to_b = b._node if b._view is None else edge(b)
        if to_a is not None or to_b is not None:
            node = _new(node_class)
            node.edges = (to_a, to_b)
            node.seq = tick()
            node.hooks = None
            node.metas = (meta_of(a), meta_of(b)) if broadcast else None
            node._saved = (b if to_a is not None else None, a if to_b is not None else None)
            out._node = node
    return out


def record_affine(
    node_class: type[OpNode], out: Any, x: Any, weight: Any, bias: Any, others: tuple[Any, ...] = ()
) -> Any:
    """record_product() of x and weight, plus a bias or None. others: what else the node saves, after weight and x."""
    if mode.enabled:
        to_x = x._node if x._view is None else edge(x)
        to_weight = weight._node if weight._view is None else edge(weight)
        to_bias = None if bias is None else edge(bias)
        if to_x is not None or to_weight is not None or to_bias is not None:
            node = _new(node_class)
            node.edges = (to_x, to_weight, to_bias)
            node.seq = tick()
            node.hooks = node.metas = None
            node._saved = (weight if to_x is not None else None, x if to_weight is not None else None) + others
            out._node = node
    return out


def _plan(node_class: type[OpNode], wanted: list[bool]) -> tuple[Any, bool, list[int]]:
    """What a node saves: its choice among None, the inputs, what record() is told, the result and meta tensors (None:
    it saves all inputs and what record() is told); whether the result is among them, and which inputs' meta tensors."""
    needed = {name for want, names in zip(wanted, node_class.needs, strict=True) if want for name in names}
    of_out, names = "out" in needed, [*node_class.inputs, *node_class.other_names]
    names += ["out"] if of_out else []
    of_metas = [i for i, name in enumerate(node_class.inputs) if f"{name}_meta" in needed]
    names += [f"{node_class.inputs[i]}_meta" for i in of_metas]
    indices = [names.index(name) + 1 if name in needed else 0 for name in node_class.saved_names]
    if indices == [*range(1, 1 + len(node_class.inputs) + len(node_class.other_names))]:
        return None, False, []
    indices += [0] * (2 - len(indices))  # of fewer, itemgetter gives no tuple
    return itemgetter(*indices), of_out, of_metas


def differentiable(name: str = "", **declared: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates the computation of an operation, a function of positional arguments, with its derivative: the inputs
    are the parameters for which a grad_...= is given (or the first, with grad=; or inputs=), the others are arguments
    that gradient functions may name too. The function runs without recording.

    >>> from norch.autograd.record import differentiable
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
        node_class = derivative(name or function.__name__.strip("_"), inputs, **declared)
        count, leading = len(inputs), inputs == parameters[: len(inputs)]
        node_class.other_names = tuple(parameter for parameter in parameters if parameter not in inputs)
        positions, other_positions = (
            [parameters.index(name) for name in names] for names in (inputs, node_class.other_names)
        )

        @functools.wraps(function)
        def recorded(*arguments: Any) -> Any:
            if not mode.enabled:
                return function(*arguments)
            tensors = arguments[:count] if leading else tuple([arguments[i] for i in positions])
            edges, wanted = _edges(tensors)
            if not wanted:
                return function(*arguments)
            try:
                mode.enabled = False
                out = function(*arguments)
            finally:
                mode.enabled = True
            others = arguments[count:] if leading else tuple([arguments[i] for i in other_positions])
            out._node = _make_node(node_class, tensors, edges, wanted, broadcast, others, out)
            return out

        recorded.node_class = node_class  # type: ignore[attr-defined]
        return recorded

    return decorate


# ---- views ---------------------------------------------------------------------------------------------------------


def record_view(
    node_class: type[OpNode], out: Any, x: Any, step: Any, arguments: tuple[Any, ...], is_view: bool = True
) -> Any:
    """out = step(x, *arguments), a view, with its history: x_meta, step and arguments are saved. is_view: whether out
    shares the elements of x."""
    if is_view:
        cell = x._cell
        if cell is None:
            cell = x._cell = [0]
        out._cell = cell
    if mode.enabled:
        to_x = x._node if x._view is None else edge(x)
        if to_x is not None:
            node = _new(node_class)
            node.edges = (to_x,)
            node.seq = tick()
            node.hooks = node.metas = None
            node._saved = (meta_of(x), step, arguments)
            out._node = node
        if is_view:
            out._view = view_of(x, step, arguments)
    elif is_view:
        through = x._view
        if through is SEVERED or (x._node if through is None else edge(x)) is not None:
            out._view = SEVERED
    return out


def view_derivative(name: str, **declared: Any) -> type[OpNode]:
    """derivative() of a view, whose functions may name x_meta, the step and its arguments."""
    return derivative(name, layout=("x_meta", "step", "arguments"), shares_grad=True, **declared)


def write_derivative(name: str, layout: tuple[str, ...] = (), **declared: Any) -> type[OpNode]:
    """derivative() of a write of values into x, for record_write()."""
    return derivative(name, ("x", "values"), layout=("values_meta", *layout), **declared)
