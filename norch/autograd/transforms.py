"""The Jacobian of a function at a point, and products with it, computed by reverse walks.

norch.func and autograd/functional.py are its two interfaces. A vector-Jacobian product v J is one walk. A
Jacobian-vector product J u takes two: the first, w -> w J, is recorded; it is linear in w, so walking through it with
the gradient u gives J u (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). A Jacobian is one
of these products for each row of an identity matrix; vmap batches all rows in one walk.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._tensor.handle import Handle
from ..errors import ArgumentError, DTypeError, Error, ShapeError
from .grad_mode import enable_grad, mode
from .gradients import grad
from .node import Leaf
from .record import gradient_edge
from .targets import reachable
from .transpose import transposed

Tensors = Sequence[Any]

# PyTorch's names of what a container with a batch axis of its own, as a TensorDict, does at a level of vmap().
ENTERS, LEAVES = "_add_batch_dim", "_remove_batch_dim"


# ---- trees: tensors in lists, tuples and dicts ----------------------------------------------------------------------


# Further container classes: (flatten, unflatten, ...), the arguments of utils._pytree.register_pytree_node().
nodes: dict[Any, Any] = {}


def map_tree(function: Callable[[Any], Any], tree: Any, method: str = "") -> Any:
    """tree with function(tensor) in place of each tensor; other values stay. method: objects with a method of this name
    are leaves too."""
    if isinstance(tree, Handle) or (method and hasattr(type(tree), method)):
        return function(tree)
    if type(tree) in nodes:
        flatten, unflatten = nodes[type(tree)][:2]
        children, context = flatten(tree)
        return unflatten([map_tree(function, value, method) for value in children], context)
    if isinstance(tree, (list, tuple)):
        parts = [map_tree(function, value, method) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: map_tree(function, value, method) for key, value in tree.items()}
    return tree


def leaves(tree: Any, method: str = "") -> list[Any]:
    """The tensors of tree, in order."""
    if isinstance(tree, Handle):
        return [tree]
    tensors: list[Any] = []

    def note(x: Any) -> Any:
        tensors.append(x)
        return x

    map_tree(note, tree, method)
    return tensors


def with_leaves(tree: Any, values: Any, method: str = "") -> Any:
    """tree with values in place of its tensors, in order."""
    if isinstance(tree, Handle):
        return values[0]
    rest = iter(values)
    return map_tree(lambda _: next(rest), tree, method)


def per_leaf(dims: Any, tree: Any, name: str) -> list[Any]:
    """The axis of each tensor in tree. dims is one axis for all tensors, None for none, or nested as tree."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves(tree, ENTERS))
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return [dim for key, part in tree.items() for dim in per_leaf(dims[key], part, name)]
    if isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        return [dim for d, part in zip(dims, tree, strict=True) for dim in per_leaf(d, part, name)]
    if not isinstance(dims, (tuple, list, dict)):
        raise ArgumentError(f"vmap: {name} holds axes, which are integers or None, not {dims!r}")
    described = f"a {type(tree).__name__} of {len(tree)}" if isinstance(tree, (tuple, list, dict)) else "a tensor"
    raise ArgumentError(f"vmap: {name} {dims!r} does not fit {described}")


def _nesting(tree: Any) -> Any:
    """The containers around the values of tree. Lists and tuples are alike, and so are dicts of all classes, whether or
    not utils._pytree, which registers them, is imported."""
    if isinstance(tree, dict):
        return dict, list(tree), [_nesting(value) for value in tree.values()]
    if isinstance(tree, (list, tuple)):
        return [_nesting(value) for value in tree]
    if type(tree) in nodes:
        children, context = nodes[type(tree)][0](tree)
        return type(tree), context, [_nesting(value) for value in children]
    return None


def check_nesting(name: str, tree: Any, of: str, wanted: Any) -> None:
    """ArgumentError unless the values of tree and wanted are nested alike, in dicts of the same keys in one order."""
    if _nesting(tree) != _nesting(wanted):
        raise ArgumentError(f"{name} must be nested as {of}, with the keys of dicts in the same order")


def check_shapes(name: str, tensors: Tensors, of: str, wanted: Tensors) -> None:
    """ShapeError unless tensors and wanted agree in number and shapes."""
    if len(tensors) != len(wanted):
        raise ShapeError(f"{name} holds {len(tensors)} tensors for {of} of {len(wanted)}")
    for i, (x, y) in enumerate(zip(tensors, wanted, strict=True)):
        if x.shape != y.shape:
            raise ShapeError(f"{name} has shape {tuple(x.shape)} for {of} {i} of shape {tuple(y.shape)}")


# ---- reverse walks --------------------------------------------------------------------------------------------------


def pull(
    outputs: Tensors,
    inputs: Tensors,
    weights: Tensors,
    create_graph: bool,
    strict: str = "",
    batched: bool = False,
    chunk_size: int | None = None,
) -> list[Any]:
    """The gradients of inputs for the gradients weights of outputs; zeros for inputs that affect no output.

    batched: weights and results have another axis in front; a walk takes chunk_size rows at once (None: all). strict:
    the caller's name, for an Error instead of zeros. The graph is retained.
    """
    pairs = [(out, w) for out, w in zip(outputs, weights, strict=True) if gradient_edge(out) is not None]
    rows: tuple[int, ...] = (len(weights[0]),) if batched else ()
    grads: Sequence[Any] = [None] * len(inputs)
    if pairs and 0 not in rows:
        outs, ws = zip(*pairs, strict=True)
        walk = partial(grad, outs, inputs, retain_graph=True, create_graph=create_graph, allow_unused=True)
        grads = _by_chunks(walk, ws, min(chunk_size or rows[0], rows[0])) if batched else walk(ws)
    for i, g in enumerate(grads if strict and 0 not in rows else ()):
        if g is None:
            raise Error(f"{strict}: the output does not depend on input {i}, which strict=True forbids")
        if create_graph and gradient_edge(g) is None:
            raise Error(f"{strict}: the derivative by input {i} depends on no input, which strict=True forbids")
    return [x.new_zeros((*rows, *x.shape)) if g is None else g for x, g in zip(inputs, grads, strict=True)]


def _by_chunks(walk: Any, weights: Tensors, at_once: int) -> Sequence[Any]:
    """The results of walks with at_once rows of weights each; a walk with one row is not batched."""
    count = len(weights[0])
    if at_once == count > 1:
        return walk(weights, is_grads_batched=True)
    whole: list[Any] = []
    for start in range(0, count, at_once):
        if at_once == 1:
            grads = [None if g is None else g.unsqueeze(0) for g in walk([w[start] for w in weights])]
        else:
            grads = walk([w[start : start + at_once] for w in weights], is_grads_batched=True)
        if count <= at_once:
            return grads
        whole = whole or [None if g is None else g.new_empty((count, *g.shape[1:])) for g in grads]
        for into, g in zip(whole, grads, strict=True):
            if g is not None:
                into[start : start + at_once] = g
    return whole


def _identity(x: Any) -> Any:
    """The rows of an identity matrix in the shape of x, (x.numel(), *x.shape), as windows into one vector."""
    n = x.numel()
    if n == 0:
        return x.new_zeros((0, *x.shape))
    line = x.new_zeros(2 * n - 1)
    line[n - 1] = 1
    return line.unfold(0, n, 1)[::-1].view(n, *x.shape)


def _is_open(outputs: Tensors, inputs: Tensors) -> bool:
    """Whether outputs depend on leaves other than inputs, so that results must stay differentiable."""
    ends = {x._node for x in inputs if x.is_leaf}
    roots = [node for out in outputs if (node := gradient_edge(out)) is not None]
    return any(type(node) is Leaf and node not in _ended for node in reachable(roots, ends) - ends)


# The leaves of functions that have returned: results of an inner transform still lead to its variables, by which
# nothing is differentiated any more.
_ended: weakref.WeakSet[Leaf] = weakref.WeakSet()


class Linearized:
    """func(*args, **kwargs), recorded with new variables in place of the tensors in args[i], i in argnums.

    inputs, outputs    the variables; the tensors in the result of func
    input_tree         the nesting of results with one tensor for each input; output_tree: for each output
    create_graph       whether results stay in their graph. None: only if they depend on leaves other than the inputs
    strict             whether an input that affects no output, or an output that no input affects, is an Error
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Sequence[int],
        create_graph: bool | None = None,
        strict: bool = False,
        has_aux: bool = False,
    ):
        self.input_tree: Any = tuple(args[i] for i in argnums)
        recorded, connected = mode.enabled, create_graph is not False
        now, self.inputs = list(args), []
        with enable_grad():
            for i in argnums:
                # a view keeps an input's history, which results may extend; otherwise the variables are leaves
                variables = [
                    x.view_as(x) if connected and x.requires_grad else x.detach().requires_grad_()
                    for x in leaves(args[i])
                ]
                now[i] = with_leaves(args[i], variables)
                self.inputs += variables
            result = func(*now, **kwargs)
        _ended.update(x._node for x in self.inputs if type(x._node) is Leaf)
        self.aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"{name}: with has_aux the function gives a pair (output, aux)")
            result, self.aux = result
        self.output_tree, self.outputs = result, leaves(result)
        if not self.outputs:
            raise TypeError(f"{name}: the function gives {type(result).__name__}, which holds no tensor")
        if strict and not all(x.requires_grad for x in self.outputs):
            raise Error(f"{name}: an output depends on no input, which strict=True forbids")
        self.strict = name if strict else ""
        self.create_graph = recorded and _is_open(self.outputs, self.inputs) if create_graph is None else create_graph

    def released(self, tree: Any) -> Any:
        """A result for the user: detached unless create_graph."""
        return tree if self.create_graph else map_tree(lambda x: x.detach(), tree)

    def by_input(self, values: Tensors) -> Any:
        """values, one for each input, nested as the inputs."""
        return with_leaves(self.input_tree, values)

    def by_output(self, values: Sequence[Any]) -> Any:
        """values, one for each output, nested as the outputs."""
        return with_leaves(self.output_tree, values)

    def vjp(self, weights: Tensors, create_graph: bool | None = None) -> list[Any]:
        """The product of weights, shaped as the outputs, with the Jacobian: a tensor for each input."""
        create_graph = self.create_graph if create_graph is None else create_graph
        return pull(self.outputs, self.inputs, weights, create_graph, self.strict)

    def jvp(
        self, tangents: Tensors, create_graph: bool | None = None, batched: bool = False, chunk_size: int | None = None
    ) -> list[Any]:
        """The product of the Jacobian with tangents, shaped as the inputs: a tensor for each output."""
        create_graph = self.create_graph if create_graph is None else create_graph
        w = [
            out.new_zeros(out.shape).requires_grad_() if gradient_edge(out) is not None else None
            for out in self.outputs
        ]
        live = [x for x in w if x is not None]
        back = transposed(pull, self.outputs, self.inputs, w, True, self.strict)
        found = pull(back, live, tangents, create_graph, batched=batched, chunk_size=chunk_size)
        if self.strict and create_graph and not all(x.requires_grad for x in found):
            raise Error(f"{self.strict}: the derivative of an output depends on no input, which strict=True forbids")
        products = iter(found)
        rows = (len(tangents[0]),) if batched else ()
        return [o.new_zeros((*rows, *o.shape)) if x is None else next(products) for o, x in zip(self.outputs, w)]

    def jacobian(self, forward: bool = False, chunk_size: int | None = None) -> list[list[Any]]:
        """For each output, for each input: the derivatives of all elements, (*output.shape, *input.shape).

        By rows, a walk for chunk_size elements of an output at once (None: all); forward: by columns, for all elements
        of an input.
        """
        for x in (*self.inputs, *self.outputs):
            if x.dtype.is_complex:  # a function that is not holomorphic has two Jacobians
                raise DTypeError(f"jacobian: {x.dtype.name} is not supported")
        blocks: list[list[Any]] = [[] for _ in self.outputs]
        with enable_grad():  # records what joins the rows of a batch
            for out, row in zip(self.outputs, blocks if not forward else ()):
                of = (out,), self.inputs, (_identity(out),), self.create_graph, self.strict
                grads = pull(*of, batched=True, chunk_size=chunk_size)
                row += [g.reshape(*out.shape, *x.shape) for g, x in zip(grads, self.inputs)]
            for x in self.inputs if forward else ():
                n = x.numel()
                tangents = [_identity(y) if y is x else y.new_zeros(y.shape).expand(n, *y.shape) for y in self.inputs]
                for g, out, row in zip(self.jvp(tangents, batched=True, chunk_size=chunk_size), self.outputs, blocks):
                    row.append(g.reshape(n, out.numel()).t().reshape(*out.shape, *x.shape))
        return blocks
