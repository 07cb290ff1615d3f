"""``norch.func``: transforms of functions (derivatives, vmap), by the names of ``torch.func``.

They nest: grad(grad(f)) is the second derivative. Arguments and outputs may be tensors, or lists, tuples and dicts of
tensors. autograd/transforms.py computes the derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._binding.numbers import int64
from ._package.exports import publish
from ._tensor.handle import Handle
from .autograd.grad_mode import mode
from .autograd.levels import Level
from .autograd.transforms import ENTERS, LEAVES, Linearized, check_nesting, check_shapes, leaves, per_leaf, with_leaves
from .errors import ArgumentError, BoundsError, DTypeError, Error, ShapeError
from .ops.copy import cat, stack
from .random import default_generator

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


class _Run(Linearized):
    """func at args, linearized in the arguments argnums. Results are detached unless they depend on other leaves."""

    def __init__(self, name: str, func: Function, argnums: Argnums, args: Any, kwargs: Any, has_aux: bool, **more: Any):
        positions = argnums if isinstance(argnums, tuple) else (argnums,)
        for i in positions:
            if not isinstance(i, int) or not -len(args) <= i < len(args):
                raise ArgumentError(f"{name}: argnums {argnums!r} for {len(args)} positional arguments")
        if not positions or len({i % len(args) for i in positions}) != len(positions):
            raise ArgumentError(f"{name}: argnums {argnums!r} must name an argument, and none twice")
        if not leaves([args[i] for i in positions]):
            raise TypeError(f"{name}: argument {positions[0]} holds no tensor")
        super().__init__(name, func, args, kwargs, positions, has_aux=has_aux, **more)
        if not isinstance(argnums, tuple):
            (self.input_tree,) = self.input_tree
        self.name, self.has_aux = name, has_aux

    def with_aux(self, found: Any) -> Any:
        """found, or (found, aux) with has_aux."""
        return (found, self.released(self.aux)) if self.has_aux else found

    def value(self) -> Any:
        """The output, with_aux()."""
        return self.with_aux(self.released(self.output_tree))

    def gradient(self) -> Any:
        """The gradient of the output, which must be one number."""
        out = self.output_tree
        if not isinstance(out, Handle) or out.ndim:
            described = f"shape {tuple(out.shape)}" if isinstance(out, Handle) else type(out).__name__
            raise ShapeError(f"{self.name}: the function must give a tensor of no dimension (a loss), not {described}")
        if out.dtype.is_complex:
            raise DTypeError(f"{self.name}: the function must give a real number (a loss), not {out.dtype.name}")
        return self.by_input(self.vjp((self.outputs[0].new_ones(()),)))

    def blocks(self, forward: bool, chunk_size: int | None = None) -> Any:
        """The Jacobian, nested as the output, then as the arguments; with_aux()."""
        return self.with_aux(self.by_output([self.by_input(row) for row in self.jacobian(forward, chunk_size)]))


def _check_chunk_size(name: str, chunk_size: Any) -> None:
    if chunk_size is not None and int64(chunk_size, f"{name}: chunk_size") < 1:
        raise ArgumentError(f"{name}: chunk_size is 1 or more, not {chunk_size}")


def _check_randomness(name: str, randomness: Any) -> None:
    if randomness not in ("error", "different", "same"):
        raise ArgumentError(f"{name}: randomness is 'error', 'different' or 'same', not {randomness!r}")


def _derived(name: str, func: Function, argnums: Argnums, has_aux: bool, result: Callable[[_Run], Any]) -> Function:
    """The function that computes result(run), with run the linearization of func at its arguments."""

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        return result(_Run(name, func, argnums, args, kwargs, has_aux))

    return derived


# ---- gradients ------------------------------------------------------------------------------------------------------


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Returns a function that computes the gradient of func with respect to its arguments argnums, shaped as these.

    func returns a 0-d tensor: ShapeError otherwise. argnums: a position, or a tuple of positions for a tuple of
    gradients. has_aux: func returns (output, aux), and the new function (gradient, aux).

    >>> norch.func.grad(norch.func.grad(norch.sin))(norch.tensor(0.5)).item() == -norch.sin(norch.tensor(0.5)).item()
    True
    """
    return _derived("grad", func, argnums, has_aux, lambda run: run.with_aux(run.gradient()))


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As grad(), but the function returns (gradient, value), or with has_aux (gradient, (value, aux)).

    >>> norch.func.grad_and_value(lambda x: x * x)(norch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    return _derived("grad_and_value", func, argnums, has_aux, lambda run: (run.gradient(), run.value()))


def value_and_grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As grad(), but the function returns (value, gradient), or with has_aux ((value, aux), gradient).

    >>> norch.func.value_and_grad(lambda w, x: (w * x).sum(), argnums=(0, 1))(norch.ones(1), norch.full((1,), 3.0))
    (tensor(3.), (tensor([3.]), tensor([1.])))
    """
    return _derived("value_and_grad", func, argnums, has_aux, lambda run: (run.gradient(), run.value())[::-1])


# ---- products with the Jacobian ------------------------------------------------------------------------------------


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Returns (func(*primals), vjp_fn). vjp_fn(v), with v shaped and nested as the output, is the vector-Jacobian
    product: a tuple with a tensor for each primal. vjp_fn may be called repeatedly. create_graph: whether its result
    is recorded (None: if it is differentiable otherwise).

    has_aux: func returns (output, aux), and vjp (output, vjp_fn, aux). ShapeError or ArgumentError if v does not fit
    the output.

    >>> out, vjp_fn = norch.func.vjp(norch.exp, norch.zeros(2))
    >>> vjp_fn(norch.tensor([1.0, 5.0]))
    (tensor([1., 5.]),)
    """
    run = _Run("vjp", func, tuple(range(len(primals))), primals, {}, has_aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        weights = leaves(cotangents)
        check_shapes("vjp: a cotangent", weights, "an output", run.outputs)
        check_nesting("vjp: cotangents", cotangents, "the output", run.output_tree)
        if create_graph is None:
            create_graph = mode.enabled and (run.create_graph or any(w.requires_grad for w in weights))
        return run.by_input(run.vjp(weights, create_graph))

    result = run.released(run.output_tree), vjp_fn
    return (*result, run.released(run.aux)) if has_aux else result


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Returns (func(*primals), the Jacobian-vector product with tangents), both shaped as the output. primals and
    tangents are tuples of the same shapes: TypeError or ShapeError otherwise. strict: Error if the output does not
    depend on a primal. has_aux: func returns (output, aux), and jvp a third value, aux.

    >>> norch.func.jvp(norch.square, (norch.tensor(3.0),), (norch.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents):
        raise TypeError("jvp: primals and tangents are tuples of the same length")
    run = _Run("jvp", func, tuple(range(len(primals))), primals, {}, has_aux, strict=strict)
    along = leaves(tangents)
    check_shapes("jvp: a tangent", along, "a primal", run.inputs)
    check_nesting("jvp: tangents", tangents, "the primals", primals)
    create_graph = run.create_graph or (mode.enabled and any(t.requires_grad for t in along))
    result = run.released(run.output_tree), run.by_output(run.jvp(along, create_graph))
    return (*result, run.released(run.aux)) if has_aux else result


# ---- whole Jacobians -----------------------------------------------------------------------------------------------


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """Returns a function that computes the Jacobian of func with respect to its arguments argnums, by rows: reverse
    walks, batched by vmap over chunk_size elements of an output at once (None: all).

    Shape: (*output.shape, *argument.shape) for each output; a tuple of them if argnums is a tuple. has_aux: as in
    grad().

    >>> norch.func.jacrev(norch.exp)(norch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    _check_chunk_size("jacrev", chunk_size)
    return _derived("jacrev", func, argnums, has_aux, lambda run: run.blocks(False, chunk_size))


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """As jacrev(), but by columns, batched over the elements of the arguments: faster for few inputs and many outputs.

    randomness has no effect: func runs once, so its random operations draw once, even with "error".

    >>> norch.func.jacfwd(lambda x: x * x)(norch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_randomness("jacfwd", randomness)
    return _derived("jacfwd", func, argnums, has_aux, lambda run: run.blocks(forward=True))


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """Returns a function that computes the second derivatives of func: jacrev(jacrev(func)). For an output of shape ()
    and an argument x the shape is (*x.shape, *x.shape).

    >>> norch.func.hessian(lambda x: (x**3).sum())(norch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


# ---- maps over a batch axis ----------------------------------------------------------------------------------------


def _batch_size(tensors: list[Any], dims: list[Any], args: tuple[Any, ...], in_dims: Any) -> int:
    """The size that all tensors of args have along their axes dims. ArgumentError if no tensor has an axis, or if sizes
    differ.
    """
    for x, dim in zip(tensors, dims, strict=True):
        if dim is not None and not -x.ndim <= dim < x.ndim:
            raise BoundsError(f"vmap: in_dims {dim} for a tensor of shape {tuple(x.shape)}")
    sizes = {x.shape[dim] for x, dim in zip(tensors, dims, strict=True) if dim is not None}
    if not sizes:
        kinds = ", ".join("a tensor" if isinstance(x, Handle) else type(x).__name__ for x in args) or "no argument"
        raise ArgumentError(f"vmap: no tensor to map over: got {kinds}, with in_dims={in_dims!r}")
    if len(sizes) != 1:
        raise ArgumentError(f"vmap: expected one size along in_dims, got {sorted(sizes)}")
    return sizes.pop()


def _sample(x: Any, dim: int, level: Level) -> Any:
    """The tensor that represents one sample of x, whose samples are along dim."""
    from .batching import batch

    if not isinstance(x, Handle):
        return getattr(x, ENTERS)(in_dim=dim % x.ndim, vmap_level=level)
    return batch(x, dim % x.ndim, level)


def _unbatched(x: Any, dim: int | None, level: Level) -> Any:
    """A result of vmap, with the samples along dim. None means one result for all samples."""
    from .batching.level import is_batched_at, unbatch

    if not isinstance(x, Handle) and dim is not None:
        return getattr(x, LEAVES)(vmap_level=level, batch_size=level.size, out_dim=dim % (x.ndim + 1))
    if dim is None:
        if is_batched_at(x, level):
            raise ArgumentError(
                "vmap: out_dims None is for results that are the same for all samples, which this is not"
            )
        return x
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise BoundsError(f"vmap: out_dims {dim} for a result of shape {tuple(x.shape)}")
    return unbatch(x, dim % (x.ndim + 1), level)


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """Returns a function that maps func over slices of its arguments along in_dims, and stacks the results along
    out_dims. func runs once, on tensors that represent one slice; each of its operations computes all slices at once.

    in_dims      an axis for all arguments, or one for each, nested as they are. None: the whole argument is passed to
                 every slice. Keyword arguments are never sliced
    out_dims     likewise for the outputs. None: the output must be the same for all slices
    randomness   random operations raise Error ("error"), draw for each slice ("different") or once ("same")
    chunk_size   how many slices are computed at once, for less memory

    Raises ArgumentError (a ValueError) if sizes differ or axes do not match the arguments, BoundsError (an IndexError)
    for an axis that does not exist, Error (a RuntimeError) for control flow that depends on elements. docs/vmap.md
    lists what cannot be batched.

    >>> per_sample = norch.vmap(norch.func.grad(lambda w, x: (w * x).sum()), in_dims=(None, 0))
    >>> per_sample(norch.ones(2), norch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    _check_randomness("vmap", randomness)
    _check_chunk_size("vmap", chunk_size)

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        tensors, dims = leaves(args, ENTERS), per_leaf(in_dims, args, "in_dims")
        size = _batch_size(tensors, dims, args, in_dims)
        result, parts = None, []
        state = default_generator.__getstate__() if randomness == "same" and size > (chunk_size or size) else None
        for start in range(0, max(size, 1), chunk_size or max(size, 1)):
            if state is not None:  # each chunk draws what the first one does
                default_generator._state[0], default_generator._state[1] = state
            count = min(chunk_size or size, size - start)
            level = Level(count, randomness)
            with level:
                chunk = (
                    tensors
                    if count == size
                    else [
                        x if dim is None else x.narrow(dim, start, count) for x, dim in zip(tensors, dims, strict=True)
                    ]
                )
                samples = [x if d is None else _sample(x, d, level) for x, d in zip(chunk, dims, strict=True)]
                result = func(*with_leaves(args, samples, ENTERS), **kwargs)
                tensors_out = leaves(result, ENTERS)
                if not tensors_out:
                    raise ArgumentError(f"vmap: the function gives {type(result).__name__}, which holds no tensor")
                alone = isinstance(result, Handle) and isinstance(out_dims, tuple) and len(out_dims) == 1
                along = per_leaf(out_dims[0] if alone else out_dims, result, "out_dims")
                parts.append([_unbatched(x, dim, level) for x, dim in zip(tensors_out, along, strict=True)])
        if len(parts) == 1:
            return with_leaves(result, parts[0], ENTERS)
        columns = zip(along, zip(*parts, strict=True), strict=True)
        return with_leaves(result, [pieces[0] if dim is None else cat(pieces, dim) for dim, pieces in columns], ENTERS)

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
    """Returns module(*args, **kwargs), computed with other tensors as its parameters and buffers. The module is not
    changed.

    parameter_and_buffer_dicts is {dotted name: tensor}, or a sequence of such dicts. With tie_weights a tensor that the
    module has under several names is replaced under all of them. A name that is neither a parameter nor a buffer sets
    an attribute during the call. With strict the names must be those of all parameters and buffers.

    Raises ArgumentError if two dicts have the same name, or two names of one tensor get different values;
    AttributeError for a name in a submodule that does not exist; with strict, Error for an unknown or missing name.

    >>> layer = norch.nn.Linear(2, 1, bias=False)
    >>> norch.func.functional_call(layer, {"weight": norch.tensor([[1.0, 2.0]])}, norch.tensor([3.0, 4.0]))
    tensor([11.])
    """
    with _replaced_tensors(module, parameter_and_buffer_dicts, tie_weights=tie_weights, strict=strict):
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))


@contextmanager
def _replaced_tensors(
    module: Any,
    parameters_and_buffers: Any,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A context in which other tensors are the parameters and buffers of a module, as in functional_call(). Values that
    the module assigns to them are in the dict at the end, and not in the module.
    """
    if not hasattr(module, "named_parameters"):
        raise TypeError(f"functional_call: expected a module, not {type(module).__name__}")
    is_one = isinstance(parameters_and_buffers, dict)
    tensors = parameters_and_buffers if is_one else _merged(parameters_and_buffers)
    held = {}
    if tie_weights or strict:  # modules that contain themselves have endless names
        held = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
    replaced = _with_tied(tensors, held) if tie_weights else dict(tensors)
    if strict and replaced.keys() != held.keys():
        unknown, absent = sorted(replaced.keys() - held.keys()), sorted(held.keys() - replaced.keys())
        raise Error(f"functional_call: unknown names: {', '.join(unknown)}; missing names: {', '.join(absent)}")
    entries = [(name, *_entry_of(module, name, value), value) for name, value in replaced.items()]
    before = []
    try:
        for _, owner, last, value in entries:
            before.append((owner, last, _exchange(owner, last, value)))
        yield
    finally:
        after = [_exchange(owner, last, old) for owner, last, old in reversed(before)][::-1]
        for (name, *_), new in zip(entries, after):
            if is_one and name in tensors and new is not _ABSENT:
                parameters_and_buffers[name] = new


_ABSENT: Any = object()


def _merged(dicts: Any) -> dict[str, Any]:
    """The entries of several dicts."""
    if not isinstance(dicts, (list, tuple)) or not all(isinstance(mapping, dict) for mapping in dicts):
        raise ArgumentError("functional_call: expected a dict of tensors, or a list or tuple of such dicts")
    merged: dict[str, Any] = {}
    for mapping in dicts:
        if twice := merged.keys() & mapping.keys():
            raise ArgumentError(f"functional_call: two of the dicts have {', '.join(sorted(twice))}")
        merged.update(mapping)
    return merged


def _with_tied(tensors: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
    """The tensors, also under the other names of the tensors that they replace."""
    replaced, values = dict(tensors), {id(held[name]): (name, value) for name, value in tensors.items() if name in held}
    for name, x in held.items():
        first, value = values.get(id(x), (name, _ABSENT))
        if tensors.get(name, value) is not value:
            raise ArgumentError(
                f"functional_call: {first} and {name} are one tensor of the module, but were given different values; "
                "pass tie_weights=False"
            )
        if value is not _ABSENT:
            replaced[name] = value
    return replaced


def _entry_of(module: Any, name: str, value: Any) -> tuple[Any, str]:
    """The module that has a dotted name, and the name in it."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    old = getattr(owner, last, None)
    if not last or not all(x is None or isinstance(x, Handle) for x in (value, old)):
        raise TypeError(f"functional_call: {name!r} is {type(value).__name__}, in place of {type(old).__name__}")
    return owner, last


def _exchange(owner: Any, last: str, value: Any) -> Any:
    """Sets a parameter, buffer or attribute of a module and returns the former value. _ABSENT means that there is
    none.
    """
    registry = owner._registry_of(last)
    if registry is not None and value is not _ABSENT:  # without what registration does to parameters
        old, registry[last] = registry[last], value
        owner.__dict__[last] = value
        return old
    old = getattr(owner, last, _ABSENT)
    if value is not _ABSENT:
        setattr(owner, last, value)
    elif old is not _ABSENT:
        delattr(owner, last)
    return old


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns (parameters, buffers) of models of one class: {name: tensor}, each stacked along a new first axis. vmap()
    of functional_call() runs such an ensemble. A stack requires grad if its parts do. ArgumentError if there is no
    model, or if the models differ in class or mode, or in which of their tensors require a gradient.

    >>> parameters, buffers = norch.func.stack_module_state([norch.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    norch.Size([4, 3, 2])
    """
    models = list(models)
    if not models or len({type(model) for model in models}) != 1:
        raise ArgumentError("stack_module_state: expected models, all of one class")
    if len({model.training for model in models}) != 1:
        raise ArgumentError("stack_module_state: some models are in training mode, others are not")

    def stacked(kind: str) -> dict[str, Any]:
        columns = [dict(getattr(model, kind)()) for model in models]
        return {name: _stacked_leaf(name, [state[name] for state in columns]) for name in columns[0]}

    return stacked("named_parameters"), stacked("named_buffers")


def _stacked_leaf(name: str, tensors: list[Any]) -> Any:
    requires_grad = tensors[0].requires_grad
    if any(x.requires_grad is not requires_grad for x in tensors):
        raise ArgumentError(f"stack_module_state: {name} requires grad in some of the models, not in others")
    return stack(tensors).detach().requires_grad_(requires_grad)


publish(globals())
