"""derivative() makes an operation's node class from its gradient functions, one for each input. The names of their
parameters say what the node saves; it keeps nothing else alive:

    g                  the gradient of the result (the first parameter)
    x, weight ...      an input, by its name
    out                the result
    x_meta             shape, dtype and device of the input x, without its elements
    needs_input_grad   for each input whether its gradient is wanted (not saved)
    dim, scale ...     other values passed to record(), in the order in which they are first named

    derivative("mul", ("a", "b"), grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)

These functions ignore broadcasting and promotion: the engine sums and casts the gradients (broadcast.py).
"""

from __future__ import annotations

from collections.abc import Callable

from .._binding.library import lib
from .._package.typing import Any
from .node import Node
from .saved import SavePlan, check_saved
from .saved_names import add_saved_names, pytorch_names

Gradient = Callable[..., Any]


class OpNode(Node):
    """The node of a declared operation; derivative() makes the subclasses.

    _saved     the values that the gradient functions need, as save_plan says; None after they were freed.
               Private: it may hold the cached tensors of Python numbers, which all calls share (ops/_operand.py)
    """

    __slots__ = ()

    shares_grad = False
    save_plan: SavePlan
    selections: list[str | None]  # those of save_plan

    def __dir__(self) -> list[str]:
        names = [name for name in super().__dir__() if name[:7] != "_saved_"]
        return names + [f"_saved_{name}" for name in pytorch_names(type(self))]


add_saved_names(OpNode)


# ---- node classes --------------------------------------------------------------------------------------------------


def derivative(
    name: str,
    inputs: tuple[str, ...] = ("x",),
    *,
    backward: Gradient | None = None,
    unread: dict[str, tuple[str, ...]] | None = None,
    saves: tuple[str, ...] = (),
    others: tuple[str, ...] | None = None,
    tensors: tuple[str, ...] = (),
    add_to: Gradient | None = None,
    shares_grad: bool = False,
    depends_on: int = 0,
    holomorphic: bool = True,
    rounds_once: bool = False,
    saves_numbers: bool = False,
    **grads: Gradient | None,
) -> type[OpNode]:
    """The node class of an operation. grad_x=, grad_weight= ... compute the gradient of each of up to three inputs
    (None: no gradient), grad= the gradient of the first input; or backward= computes all as a tuple.

    unread        for backward=, {input: the inputs whose elements its gradient does not read}. If no wanted gradient
                  reads an input, backward gets its meta tensor, and the input may be written to
    saves         the names of the values in _saved; by default those that a gradient needs, the inputs first
    others        the names of the other values that record() takes; by default those that the functions name
    tensors       which of these are tensors, or TensorHolders
    add_to        add_to(whole, g, ...) adds the gradient, which is 0 outside a region, to whole in place
    shares_grad   a gradient may be g itself or a view of it, so the engine must not write to it
    depends_on    see Node.depends_on
    holomorphic   see Node.holomorphic
    rounds_once   the gradient functions handle 16-bit floats as halves.py requires: one kernel computes a gradient, or
                  elements are only moved. Otherwise halves.py makes composite functions compute in float32
    saves_numbers a walk frees a number beside tensors as if it were one, as PyTorch's products and quotients do
    """
    functions = _by_input(name, inputs, grads)
    parameters = [_parameters(name, function) for function in ([backward] if backward else functions)]
    needed = parameters
    if backward is not None:
        needed = [tuple(key for key in parameters[0] if key != "needs_input_grad")]
        if unread is not None:
            needed = [tuple(key for key in needed[0] if key not in unread.get(name, ())) for name in inputs]
    plan = SavePlan(inputs, needed, saves, others, tensors, unread or {})
    declaration = backward, functions, parameters, needed, plan
    propagate = _propagate(*declaration)
    attributes = {
        "__slots__": (),
        "__module__": __name__,
        "save_plan": plan,
        "selections": plan.selections,
        "shares_grad": shares_grad,
        "depends_on": depends_on,
        "holomorphic": holomorphic,
        "propagate": propagate if backward else Node._propagate,
        "_gradients": None if backward else propagate,
        "declaration": None if rounds_once else declaration,
    }
    if plan.frees:
        attributes["release"] = Node._free if saves_numbers else Node._free_tensors
    if add_to is not None:
        read = plan.reader(_parameters("add_to", add_to)[1:])
        attributes.update(partial=True, add_to=lambda node, whole, g: add_to(whole, g, *read(node)))
    return type("".join(part.capitalize() for part in name.split("_")), (OpNode,), attributes)


def propagate_by(wrap: Callable[[Gradient], Gradient], node_class: Any) -> Any:
    """propagate() with gradient functions changed by wrap(). None if they handle 16-bit floats themselves, or if they
    name meta tensors, since such a function writes the gradient in the input's dtype."""
    declaration = node_class.declaration
    if declaration is None or any(name[-4:] in ("meta", "etas") for listed in declaration[2] for name in listed):
        return None
    backward, functions, *others = declaration
    wrapped = [function if function is None else wrap(function) for function in functions]
    return _propagate(backward if backward is None else wrap(backward), wrapped, *others)


def view_derivative(name: str, **declared: Any) -> type[OpNode]:
    """derivative() of a view, for record_view(). Gradient functions may name x_meta, view_fn and arguments."""
    node_class = derivative(name, others=("view_fn", "arguments"), shares_grad=True, rounds_once=True, **declared)
    node_class.of_view = True
    return node_class


def write_derivative(name: str, others: tuple[str, ...] = (), **declared: Any) -> type[OpNode]:
    """derivative() of a write of values into x, for record_write()."""
    return derivative(name, ("x", "values"), others=others, rounds_once=True, **declared)


def _by_input(name: str, inputs: tuple[str, ...], grads: dict[str, Gradient | None]) -> list[Gradient | None]:
    if "grad" in grads:
        grads = {f"grad_{inputs[0]}": grads["grad"]}
    unknown = grads.keys() - {f"grad_{name}" for name in inputs}
    if unknown:
        raise TypeError(f"{name}: {', '.join(sorted(unknown))} for inputs {inputs}")
    return [grads.get(f"grad_{input_name}") for input_name in inputs]


def _parameters(name: str, function: Gradient | None) -> tuple[str, ...]:
    """The names of the function's parameters after g."""
    if function is None:
        return ()
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(
            f"{name}: a gradient is a function written with def or lambda, whose parameters say what is saved, "
            f"not {type(function).__name__}"
        )
    return code.co_varnames[1 : code.co_argcount]


def _propagate(
    backward: Gradient | None, functions: Any, parameters: Any, needed: Any, plan: SavePlan
) -> Callable[[OpNode, Any], tuple[Any, ...]]:
    """A function of the node and g, and of the needed nodes if not all are needed, that computes the gradients of all
    inputs."""
    if backward is not None:
        return _all_at_once(backward, parameters[0], plan)
    codes = tuple("".join(chr(plan.code_of(name)) for name in listed) for listed in needed)
    return lib.norch_gradients(tuple(functions), codes, check_saved if plan.frees else None)


def _all_at_once(backward: Gradient, parameters: tuple[str, ...], plan: SavePlan) -> Any:
    """backward(g, ...), which computes the gradients of all inputs, made a function of the node and g."""
    asks = parameters.index("needs_input_grad") if "needs_input_grad" in parameters else -1
    read = plan.reader(tuple(name for name in parameters if name != "needs_input_grad"))

    def propagate(node: OpNode, g: Any, needed: Any = None) -> tuple[Any, ...]:
        wanted = tuple([to is not None and (needed is None or to in needed) for to in node.edges])
        values = read(node)
        if asks >= 0:  # it skips unwanted gradients itself
            return backward(g, *values[:asks], wanted, *values[asks:])
        return tuple([grad if want else None for grad, want in zip(backward(g, *values), wanted)])

    return propagate
