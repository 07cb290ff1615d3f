"""``norch.func``: functions that take a function and give its derivatives, by the names of ``torch.func``.

They nest: grad(grad(f)) is the second derivative. The arguments that are derived by, and what comes out, may be tensors
or lists, tuples and dicts of them. The arithmetic is autograd/functional.py's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._handle import Handle
from ._left_out import nothing_more
from .autograd.functional import columns_of, pull, pulled_back, push, rows_of, variables
from .autograd.grad_mode import enable_grad, mode
from .autograd.inplace import edge
from .autograd.node import Leaf, Node
from .errors import ArgumentError, BoundsError, ShapeError
from .ops.copy import stack

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]
__dir__ = __all__.copy  # completion shows the public names only

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


# ---- trees of tensors -----------------------------------------------------------------------------------------------


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    """tree with function(tensor) for each tensor in it."""
    if isinstance(tree, Handle):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _map(function, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [_map(function, value) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    _map(found.append, tree)
    return found


def _in_place_of(tree: Any, values: Any) -> Any:
    """tree with its tensors exchanged for values, in order."""
    rest = iter(values)
    return _map(lambda _: next(rest), tree)


# ---- one run of a function ------------------------------------------------------------------------------------------


class _Run:
    """func(*args, **kwargs) recorded, with variables in the places argnums.

    inputs, outputs: the tensors derived by and given. goes_on: whether the outputs depend on what others may derive by
    (an enclosing transformation, leaves that func knows): then all that comes out stays in their graph.
    """

    def __init__(self, func: Function, argnums: Argnums, args: Any, kwargs: Any, has_aux: bool, name: str):
        places = argnums if isinstance(argnums, tuple) else (argnums,)
        for place in places:
            if not isinstance(place, int) or not -len(args) <= place < len(args):
                raise ValueError(f"{name}: argnums {argnums!r} for {len(args)} positional arguments")
        given = [args[place] for place in places]
        if not _leaves(given):
            raise TypeError(f"{name}: argument {places[0]} holds no tensor")
        recorded = mode.enabled
        with enable_grad():
            self.inputs = variables(_leaves(given), True)
            seen = _in_place_of(given, self.inputs)
            now = list(args)
            for place, value in zip(places, seen, strict=True):
                now[place] = value
            made = func(*now, **kwargs)
        self.aux = None
        if has_aux:
            if not isinstance(made, tuple) or len(made) != 2:
                raise TypeError(f"{name}: with has_aux the function gives a pair (output, aux)")
            made, self.aux = made
        self.name, self.argnums = name, argnums
        self.tree, self.given, self.outputs = made, given, _leaves(made)
        if not self.outputs:
            raise TypeError(f"{name}: the function gives {type(made).__name__}, which holds no tensor")
        self.goes_on = recorded and _leads_on(self.outputs, self.inputs)

    def result(self, tree: Any) -> Any:
        """tree as it is handed out: outside of the graph that was made here, unless that goes on."""
        return tree if self.goes_on else _map(lambda x: x.detach(), tree)

    def by_argument(self, values: Any) -> Any:
        """One value an input, arranged as the arguments."""
        arranged = _in_place_of(self.given, values)
        return tuple(arranged) if isinstance(self.argnums, tuple) else arranged[0]

    def with_aux(self, found: Any, has_aux: bool) -> Any:
        return (found, self.result(self.aux)) if has_aux else found


def _leads_on(outputs: list[Any], inputs: Any) -> bool:
    """Whether there are leaves behind outputs beside inputs."""
    own = {edge(x) for x in inputs if x.is_leaf}
    todo: list[Node | None] = [edge(out) for out in outputs]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node is None or node in own:
            continue
        if type(node) is Leaf:
            return True
        for further in node.edges:
            if further not in seen:
                seen.add(further)
                todo.append(further)
    return False


# ---- gradients ------------------------------------------------------------------------------------------------------


def _gradients(func: Function, argnums: Argnums, args: Any, kwargs: Any, has_aux: bool, name: str) -> tuple[Any, _Run]:
    run = _Run(func, argnums, args, kwargs, has_aux, name)
    out: Any = run.tree
    if not isinstance(out, Handle) or out.ndim:
        what = f"shape {tuple(run.tree.shape)}" if isinstance(out, Handle) else type(out).__name__
        raise ShapeError(f"{name}: the function must give a tensor of no dimension (a loss), not {what}")
    weight = run.tree.new_ones(())
    return run.by_argument(pull((out,), run.inputs, (weight,), run.goes_on)), run


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that gives the gradient of func, which gives one number, by its arguments argnums.

    argnums is a position or a tuple of them. With has_aux func gives (number, anything else), and its gradient
    (gradient, anything else).

    >>> norch.func.grad(norch.func.grad(norch.sin))(norch.tensor(0.5)).item() == -norch.sin(norch.tensor(0.5)).item()
    True
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, run = _gradients(func, argnums, args, kwargs, has_aux, "grad")
        return run.with_aux(found, has_aux)

    return gradient


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As grad(), with (gradient, value) or (gradient, (value, anything else))."""

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        found, run = _gradients(func, argnums, args, kwargs, has_aux, "grad_and_value")
        return found, run.with_aux(run.result(run.tree), has_aux)

    return both


def value_and_grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """grad_and_value() the other way round: (value, gradient) or ((value, anything else), gradient).

    >>> norch.func.value_and_grad(lambda w, x: (w * x).sum(), argnums=(0, 1))(norch.ones(1), norch.full((1,), 3.0))
    (tensor(3.), (tensor([3.]), tensor([1.])))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def turned(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[::-1]

    return turned


# ---- products with the Jacobian ------------------------------------------------------------------------------------


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), pull_back): pull_back(v), with v shaped as the output, gives the product of v with the Jacobian.

    It gives a tuple, one for each argument, and may be called many times. With has_aux there is a third value, as in
    grad().

    >>> out, pull_back = norch.func.vjp(norch.exp, norch.zeros(2))
    >>> pull_back(norch.tensor([1.0, 5.0]))
    (tensor([1., 5.]),)
    """
    run = _Run(func, tuple(range(len(primals))), primals, {}, has_aux, "vjp")

    def pull_back(*v: Any) -> Any:
        weights = _leaves(v)
        _check_shapes(weights, run.outputs, "vjp: a cotangent", "an output")
        goes_on = mode.enabled and (run.goes_on or any(w.requires_grad for w in weights))
        with enable_grad():
            return run.by_argument(pull(run.outputs, run.inputs, weights, goes_on))

    found = run.result(run.tree), pull_back
    return (*found, run.result(run.aux)) if has_aux else found


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(func(*primals), how it changes along tangents), which are shaped as primals; both are tuples.

    >>> norch.func.jvp(norch.square, (norch.tensor(3.0),), (norch.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents):
        raise TypeError("jvp: primals and tangents are tuples of the same length")
    run = _Run(func, tuple(range(len(primals))), primals, {}, has_aux, "jvp")
    along = _leaves(tangents)
    _check_shapes(along, list(run.inputs), "jvp: a tangent", "a primal")
    goes_on = run.goes_on or (mode.enabled and any(t.requires_grad for t in along))
    with enable_grad():
        through = pulled_back(run.outputs, run.inputs, "jvp" if strict else "")
        found = _in_place_of(run.tree, push(run.outputs, through, along, goes_on))
    return (run.result(run.tree), found, run.result(run.aux)) if has_aux else (run.result(run.tree), found)


def _check_shapes(given: list[Any], wanted: list[Any], what: str, of: str) -> None:
    if len(given) != len(wanted):
        raise ShapeError(f"{what} is needed for each of {len(wanted)}, but there are {len(given)}")
    for x, y in zip(given, wanted, strict=True):
        if x.shape != y.shape:
            raise ShapeError(f"{what} has shape {tuple(x.shape)} for {of} of shape {tuple(y.shape)}")


# ---- whole Jacobians -----------------------------------------------------------------------------------------------


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False) -> Function:
    """The function that gives the Jacobian of func by its arguments argnums, with a reverse walk an output element.

    Of shape (*output.shape, *argument.shape), in a tuple over argnums when that is one, in place of each output.

    >>> norch.func.jacrev(norch.exp)(norch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        run = _Run(func, argnums, args, kwargs, has_aux, "jacrev")
        with enable_grad():
            blocks = [run.by_argument(rows_of(out, run.inputs, run.goes_on)) for out in run.outputs]
        return run.with_aux(_in_place_of(run.tree, blocks), has_aux)

    return jacobian


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """jacrev() by columns, with a double-vjp an input element: for functions of few numbers that give many."""

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        run = _Run(func, argnums, args, kwargs, has_aux, "jacfwd")
        with enable_grad():
            found = columns_of(tuple(run.outputs), run.inputs, run.goes_on)
        blocks = [run.by_argument(one) for one in found]
        return run.with_aux(_in_place_of(run.tree, blocks), has_aux)

    return jacobian


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """The function that gives the second derivatives of func: jacfwd() of jacrev().

    >>> norch.func.hessian(lambda x: (x**3).sum())(norch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# ---- maps over a batch axis ----------------------------------------------------------------------------------------


def _per_leaf(dims: Any, tree: Any, name: str) -> list[Any]:
    """The axis of each tensor in tree: dims is one for all of them, None for none, or arranged as tree."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(_leaves(tree))
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return [dim for key, part in tree.items() for dim in _per_leaf(dims[key], part, name)]
    if isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        return [dim for d, part in zip(dims, tree, strict=True) for dim in _per_leaf(d, part, name)]
    raise ArgumentError(f"vmap: {name} {dims!r} does not fit a {type(tree).__name__}, which it is for")


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """The function that runs func on each slice of its arguments along in_dims and stacks what it gives along out_dims.

    in_dims and out_dims are an axis, or one for each argument and output, arranged as they are; None in in_dims hands
    an argument on whole. Keyword arguments are cut along axis 0. It is a loop: operations that take batches themselves
    are faster. Random numbers differ from slice to slice (randomness "error" does not refuse them; there is no "same");
    chunk_size has no meaning.
    Raises ValueError where axes do not fit the arguments or their sizes differ.

    >>> per_sample = norch.vmap(norch.func.grad(lambda w, x: (w * x).sum()), in_dims=(None, 0))
    >>> per_sample(norch.ones(2), norch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if randomness not in ("error", "different"):
        raise ArgumentError(f"vmap: the only randomness is 'different', not {randomness!r}")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        given = (args, kwargs)
        leaves = _leaves(given)
        dims = [*_per_leaf(in_dims, args, "in_dims"), *_per_leaf(0, kwargs, "in_dims")]
        cut = [(x, dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
        for x, dim in cut:
            if not -x.ndim <= dim < x.ndim:
                raise BoundsError(f"vmap: in_dims {dim} for a tensor of shape {tuple(x.shape)}")
        sizes = {x.shape[dim] for x, dim in cut}
        if len(sizes) != 1 or 0 in sizes:
            raise ArgumentError(f"vmap: expected one size along in_dims, of 1 or more, got {sorted(sizes)}")
        made, rows = None, []
        for i in range(sizes.pop()):
            slices = (x if dim is None else x.select(dim, i) for x, dim in zip(leaves, dims, strict=True))
            now, named = _in_place_of(given, slices)
            made = func(*now, **named)
            rows.append(_leaves(made))
        if not rows[0]:
            raise ArgumentError(f"vmap: the function gives {type(made).__name__}, which holds no tensor")
        along = _per_leaf(out_dims, made, "out_dims")
        return _in_place_of(made, [stack(x, dim) for x, dim in zip(zip(*rows, strict=True), along, strict=True)])

    return mapped


# ---- modules as functions -------------------------------------------------------------------------------------------


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with other tensors in place of its parameters and buffers, which stay as they were.

    parameter_and_buffer_dicts maps dotted names to tensors, or is a sequence of such dicts. A tensor that the module
    holds under several names is replaced under all of them, unless tie_weights is False; strict asks for every name.

    >>> layer = norch.nn.Linear(2, 1, bias=False)
    >>> norch.func.functional_call(layer, {"weight": norch.tensor([[1.0, 2.0]])}, norch.tensor([3.0, 4.0]))
    tensor([11.])
    """
    if not hasattr(module, "named_parameters"):
        raise TypeError(f"functional_call: expected a module, not {type(module).__name__}")
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict) else parameter_and_buffer_dicts
    given = {name: value for one in dicts for name, value in one.items()}
    held = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    unknown, absent = sorted(given.keys() - held.keys()), sorted(held.keys() - given.keys())
    if unknown or (strict and absent):
        raise KeyError(
            f"functional_call: the module has no {', '.join(unknown) or 'tensor'}; absent: {', '.join(absent)}"
        )
    replaced = dict(given)
    for name, value in given.items() if tie_weights else ():
        replaced.update({other: value for other, x in held.items() if x is held[name] and other not in given})
    places = []
    for name, value in replaced.items():
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        places.append((owner, last, value, owner._registry_of(last)))
    before = [(registry[last], owner.__dict__[last]) for owner, last, _, registry in places]
    try:
        for owner, last, value, registry in places:
            registry[last] = owner.__dict__[last] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for (owner, last, _, registry), (old, seen) in zip(places, before, strict=True):
            registry[last], owner.__dict__[last] = old, seen


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of models of one kind by name, each stacked along a new first axis: what vmap() of
    functional_call() runs an ensemble with.

    >>> parameters, buffers = norch.func.stack_module_state([norch.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    norch.Size([4, 3, 2])
    """
    models = list(models)
    if not models or len({type(model) for model in models}) != 1:
        raise ArgumentError("stack_module_state: expected models, all of one class")

    def stacked(kind: str) -> dict[str, Any]:
        columns = [dict(getattr(model, kind)()) for model in models]
        return {name: stack([one[name] for one in columns]).detach() for name in columns[0]}

    parameters = {name: x.requires_grad_() for name, x in stacked("named_parameters").items()}
    return parameters, stacked("named_buffers")


__getattr__ = nothing_more(__name__)
