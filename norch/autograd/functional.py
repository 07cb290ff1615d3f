"""Derivatives of functions: the Jacobian and Hessian of what a function computes, and their products with vectors.

Everything is made of reverse walks. A Jacobian comes row by row, one walk an element of the output. Its product with a
vector on the right, J u, comes by the double-vjp way: the walk w -> w J is itself recorded and linear in w, so a
second walk through it, weighted by u, gives J u (J. Townsend, "A new trick for calculating Jacobian vector products",
2017). norch.func is the same for functions that take and give functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._handle import Handle
from .._left_out import nothing_more
from ..errors import Error, ShapeError
from . import engine
from .grad_mode import enable_grad
from .inplace import edge

Tensors = tuple[Any, ...]


# ---- tensors and tuples of them -----------------------------------------------------------------------------------


def listed(given: Any, what: str) -> tuple[bool, Tensors]:
    """Whether given is a sequence, and its tensors; TypeError where there is something else."""
    many = isinstance(given, (tuple, list))
    tensors = tuple(given) if many else (given,)
    for x in tensors:
        if not isinstance(x, Handle):
            raise TypeError(f"{what} must be a tensor or a tuple of tensors, not {type(x).__name__}")
    return many, tensors


def variables(tensors: Sequence[Any], connected: bool) -> Tensors:
    """The tensors as inputs to derive by: views of those that have a history, where it is to go on, else leaves."""
    return tuple(x.view_as(x) if connected and x.requires_grad else x.detach().requires_grad_() for x in tensors)


def pull(
    outputs: Sequence[Any], inputs: Tensors, weights: Sequence[Any], create_graph: bool, strict: str = ""
) -> Tensors:
    """The derivatives of outputs, weighted, by inputs; zeros where nothing depends on one, or Error when strict, the
    name of who asks. What was saved is kept."""
    pairs = [(out, w) for out, w in zip(outputs, weights, strict=True) if edge(out) is not None]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs:
        outs, ws = zip(*pairs, strict=True)
        found = engine.grad(outs, inputs, ws, retain_graph=True, create_graph=create_graph, allow_unused=True)
    if strict:
        for i, g in enumerate(found):
            if g is None:
                raise Error(f"{strict}: the output does not depend on input {i}, which strict=True forbids")
            if create_graph and edge(g) is None:
                raise Error(f"{strict}: the derivative by input {i} depends on no input, which strict=True forbids")
    return tuple(x.new_zeros(x.shape) if g is None else g for x, g in zip(inputs, found, strict=True))


def pulled_back(outputs: Sequence[Any], inputs: Tensors, strict: str = "") -> tuple[Tensors, Tensors]:
    """Weights of the outputs, and the derivatives by inputs as functions of them: what push() walks through."""
    weights = tuple(out.new_zeros(out.shape).requires_grad_() if edge(out) is not None else None for out in outputs)
    return weights, pull(outputs, inputs, weights, True, strict)


def push(
    outputs: Sequence[Any], through: tuple[Tensors, Tensors], tangents: Sequence[Any], create_graph: bool
) -> Tensors:
    """How outputs change along tangents of the inputs."""
    weights, back = through
    live = [w for w in weights if w is not None]
    found = iter(pull(back, tuple(live), tangents, create_graph)) if live else iter(())
    return tuple(
        out.new_zeros(out.shape) if w is None else next(found) for out, w in zip(outputs, weights, strict=True)
    )


def units(x: Any) -> Any:
    """Tensors like x that are 1 at one element, in order."""
    for k in range(x.numel()):
        unit = x.new_zeros(x.numel())
        unit[k] = 1
        yield unit.view(x.shape)


def rows_of(out: Any, inputs: Tensors, create_graph: bool, strict: str = "") -> Tensors:
    """The Jacobian of out by each input, of shape (*out.shape, *input.shape), row by row."""
    rows = [pull((out,), inputs, (unit,), create_graph, strict) for unit in units(out)]
    return tuple(_piled(rows, i, (*out.shape, *x.shape), x) for i, x in enumerate(inputs))


def columns_of(outputs: Tensors, inputs: Tensors, create_graph: bool) -> list[Tensors]:
    """The same for each output, column by column."""
    through = pulled_back(outputs, inputs)
    found: list[list[Any]] = [[] for _ in outputs]
    for i, x in enumerate(inputs):
        columns = []
        for unit in units(x):
            tangents = [unit if j == i else y.new_zeros(y.shape) for j, y in enumerate(inputs)]
            columns.append(push(outputs, through, tangents, create_graph))
        for k, out in enumerate(outputs):
            shape = (*out.shape, *x.shape)
            turned = _piled(columns, k, (x.numel(), out.numel()), out)
            found[k].append(turned.t().reshape(shape))
    return [tuple(one) for one in found]


def _piled(parts: Sequence[Tensors], i: int, shape: tuple[int, ...], like: Any) -> Any:
    from ..ops.copy import stack  # late, as it stands above

    return stack([part[i] for part in parts]).reshape(shape) if parts else like.new_zeros(shape)


# ---- what users call ----------------------------------------------------------------------------------------------


def _run(func: Callable[..., Any], inputs: Any, create_graph: bool, name: str) -> tuple[bool, Tensors, bool, Tensors]:
    """Whether there are many inputs, those as variables; whether there are many outputs, those."""
    many_in, given = listed(inputs, f"{name}: inputs")
    now = variables(given, create_graph)
    many_out, outputs = listed(func(*now), f"{name}: what the function gives")
    return many_in, now, many_out, outputs


def _weights(v: Any, tensors: Tensors, of: str, name: str) -> Tensors:
    """v checked, or 1 for a single number."""
    if v is None:
        if len(tensors) != 1 or tensors[0].numel() != 1:
            raise ShapeError(f"{name}: v may be left out for {of} of a single number only")
        return (tensors[0].new_ones(tensors[0].shape),)
    weights = listed(v, f"{name}: v")[1]
    if len(weights) != len(tensors):
        raise ShapeError(f"{name}: v holds {len(weights)} tensors for {of} of {len(tensors)}")
    for i, (w, x) in enumerate(zip(weights, tensors, strict=True)):
        if w.shape != x.shape:
            raise ShapeError(f"{name}: v has shape {tuple(w.shape)} for {of} {i} of shape {tuple(x.shape)}")
    return weights


def _given(tensors: Tensors, many: bool, create_graph: bool) -> Any:
    tensors = tensors if create_graph else tuple(x.detach() for x in tensors)
    return tensors if many else tensors[0]


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), and the product of v, shaped as that, with its Jacobian: one reverse walk.

    inputs, and what func gives, are a tensor or a tuple of them. create_graph lets the results be derived further; with
    strict an input that the output does not depend on raises Error, where it else gives zeros.

    >>> norch.autograd.functional.vjp(norch.exp, norch.zeros(2), norch.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    with enable_grad():
        many_in, now, many_out, outputs = _run(func, inputs, create_graph, "vjp")
        found = pull(outputs, now, _weights(v, outputs, "an output", "vjp"), create_graph, "vjp" if strict else "")
    return _given(outputs, many_out, create_graph), _given(found, many_in, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), and the product of its Jacobian with v, shaped as inputs: how the output changes along v.

    >>> norch.autograd.functional.jvp(norch.square, norch.tensor([1.0, 2.0]), norch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        _, now, many_out, outputs = _run(func, inputs, create_graph, "jvp")
        tangents = _weights(v, now, "an input", "jvp")
        found = push(outputs, pulled_back(outputs, now, "jvp" if strict else ""), tangents, create_graph)
    return _given(outputs, many_out, create_graph), _given(found, many_out, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of all elements of func(*inputs) by all of inputs, of shape (*output.shape, *input.shape).

    A tuple over the inputs when those are one, in a tuple over the outputs when those are one. strategy is
    "reverse-mode" (a walk for each element of the output) or "forward-mode" (for each of the input); vectorize changes
    nothing here.

    >>> norch.autograd.functional.jacobian(lambda x: x * x, norch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy is 'reverse-mode' or 'forward-mode', not {strategy!r}")
    with enable_grad():
        many_in, now, many_out, outputs = _run(func, inputs, create_graph, "jacobian")
        if strategy == "forward-mode":
            found = columns_of(outputs, now, create_graph)
        else:
            found = [rows_of(out, now, create_graph, "jacobian" if strict else "") for out in outputs]
    blocks = tuple(_given(row, many_in, create_graph) for row in found)
    return blocks if many_out else blocks[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a func that gives one number, by all pairs of elements of inputs.

    Of shape (*input.shape, *input.shape), or a tuple of tuples of such blocks when inputs is a tuple.

    >>> norch.autograd.functional.hessian(lambda x: (x**3).sum(), norch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many, _ = listed(inputs, "hessian: inputs")

    def first(*now: Any) -> Any:
        many_out, outputs = listed(func(*now), "hessian: what the function gives")
        if many_out or outputs[0].numel() != 1:
            raise ShapeError("hessian: the function must give a tensor of one number")
        found = pull(outputs, now, (outputs[0].new_ones(outputs[0].shape),), True, "hessian" if strict else "")
        return found if many else found[0]

    return jacobian(first, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), one number, and the product of v, shaped as inputs, with its Hessian."""
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), one number, and the product of its Hessian with v, shaped as inputs; vhp(), as it is symmetric.

    >>> norch.autograd.functional.hvp(lambda x: (x**3).sum(), norch.tensor([1.0, 2.0]), norch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")


def _hessian_product(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Any, Any]:
    who = name if strict else ""
    with enable_grad():
        many, now, many_out, outputs = _run(func, inputs, create_graph, name)
        if many_out or outputs[0].numel() != 1:
            raise ShapeError(f"{name}: the function must give a tensor of one number")
        first = pull(outputs, now, (outputs[0].new_ones(outputs[0].shape),), True, who)
        found = pull(first, now, _weights(v, now, "an input", name), create_graph, who)
    return _given(outputs, False, create_graph), _given(found, many, create_graph)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = __all__.copy  # completion shows the public names only


__getattr__ = nothing_more(__name__)
