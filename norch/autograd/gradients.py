"""grad(): gradients that are returned instead of being added to .grad."""

from __future__ import annotations

import functools

from .._typing import Any, Tensor
from ..errors import ArgumentError, Error, ShapeError
from . import engine
from .levels import batching
from .record import gradient_edge
from .wanted import nodes_of


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The derivatives of outputs (weighted by grad_outputs) by inputs, as a tuple; touches no .grad. only_inputs has
    no other meaning. With is_grads_batched grad_outputs have a first axis more, as have the results: one walk for all
    rows, which vmap batches.

    An input that outputs do not depend on raises Error, or gives None with allow_unused, zeros with materialize_grads.

    >>> x = norch.tensor(3.0, requires_grad=True)
    >>> (dx,) = norch.autograd.grad(x ** 3, x, create_graph=True)
    >>> norch.autograd.grad(dx, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError("grad: materialize_grads gives zeros for unused inputs, which allow_unused=False refuses")
    if is_grads_batched:
        batches = engine.tensors_in(grad_outputs, "grad")
        if not len(batches[0]):
            raise ShapeError("grad: is_grads_batched, and the batch is empty")
        options: Any = {"allow_unused": allow_unused, "materialize_grads": materialize_grads}
        walk = functools.partial(grad, outputs, inputs, retain_graph=retain_graph, create_graph=create_graph, **options)
        return tuple(batching().call_rows(lambda rows: walk(grad_outputs=rows), batches))
    listed = engine.tensors_in(inputs, "grad")
    if not listed:
        raise Error("grad: inputs is empty")
    wanted = nodes_of(listed)
    roots = engine.roots_of(engine.tensors_in(outputs, "grad"), grad_outputs, create_graph)
    caught = engine.run(
        roots, create_graph if retain_graph is None else retain_graph, create_graph, wanted, accumulate=False
    )
    result = []
    for x in listed:
        node = gradient_edge(x)
        assert node is not None
        g = caught[wanted[node]]
        if g is None and materialize_grads:
            g = x.new_zeros(x.shape)
        elif g is None and not allow_unused:
            raise Error("grad: an input was not used in the graph; pass allow_unused=True to get None for it")
        result.append(g)
    return tuple(result)
