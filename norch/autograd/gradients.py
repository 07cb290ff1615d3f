"""grad(): gradients that are returned instead of being added to .grad."""

from __future__ import annotations

from .._typing import Any, Tensor
from ..errors import ArgumentError, Error, ShapeError
from . import engine
from .record import gradient_edge
from .wanted import nodes_of


def _stacked(rows: tuple[Any, ...]) -> Any:
    """Tensors of one shape along a new first axis."""
    out = rows[0].new_empty((len(rows), *rows[0].shape))
    for i, row in enumerate(rows):
        out[i] = row
    return out


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
    no other meaning. With is_grads_batched grad_outputs have a first axis more, as have the results: a walk a row.

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
        last, rows = len(batches[0]) - 1, []
        if last < 0:
            raise ShapeError("grad: is_grads_batched, and the batch is empty")
        for i in range(last + 1):
            keep = True if i < last else retain_graph
            row = [None if batch is None else batch[i] for batch in batches]
            rows.append(
                grad(outputs, inputs, row, keep, create_graph, True, allow_unused, materialize_grads=materialize_grads)
            )
        return tuple(None if column[0] is None else _stacked(column) for column in zip(*rows, strict=True))  # type: ignore[misc]
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
