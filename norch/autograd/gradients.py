"""grad(): gradients that are returned instead of being added to .grad."""

from __future__ import annotations

import functools

from .._package.typing import Any, Tensor
from ..errors import ArgumentError, Error, ShapeError
from .engine import roots_of, tensors_in, walk
from .levels import batching
from .node import GradientEdge
from .targets import Targets, nodes_of


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
    """The gradients of outputs with respect to inputs: a tuple of tensors, shaped as the inputs. No .grad changes.

    outputs, inputs    a tensor, a graph.GradientEdge, or an iterable of them
    grad_outputs       the gradient of each output, of its shape; default 1 for outputs of one element
    retain_graph       keeps what the nodes saved, for another walk (default: create_graph)
    create_graph       records the walk itself, for derivatives of derivatives
    only_inputs        has no effect
    allow_unused       an input that does not affect outputs gives None instead of an Error
    is_grads_batched   grad_outputs have another axis in front, and so have the results: vmap walks once for all rows
    materialize_grads  such an input gives zeros

    Raises Error if an input does not require grad or the graph was freed; ShapeError and DeviceError for grad_outputs
    that do not fit.

    >>> x = norch.tensor(3.0, requires_grad=True)
    >>> (dx,) = norch.autograd.grad(x ** 3, x, create_graph=True)
    >>> norch.autograd.grad(dx, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError("grad: materialize_grads gives zeros for unused inputs, which allow_unused=False refuses")
    if is_grads_batched:
        batches = tensors_in(grad_outputs, "grad")
        if not len(batches[0]):
            raise ShapeError("grad: is_grads_batched, and the batch is empty")
        options: Any = {"allow_unused": allow_unused, "materialize_grads": materialize_grads}
        row = functools.partial(grad, outputs, inputs, retain_graph=retain_graph, create_graph=create_graph, **options)
        return tuple(batching().call_rows(lambda rows: row(grad_outputs=rows), batches))
    listed = tensors_in(inputs, "grad")
    if not listed:
        raise Error("grad: inputs is empty")
    nodes = nodes_of(listed, "grad")
    targets = Targets(nodes)
    roots = roots_of(tensors_in(outputs, "grad"), grad_outputs, create_graph)
    walk(roots, create_graph if retain_graph is None else retain_graph, create_graph, targets)
    result = []
    for x, node in zip(listed, nodes):
        g = targets.found[node]
        if g is None and materialize_grads:
            g = zeros_for(x)
            g.requires_grad = create_graph  # for derivatives of derivatives
        elif g is None and not allow_unused:
            raise Error("grad: an input was not used in the graph; pass allow_unused=True to get None for it")
        result.append(g)
    return tuple(result)


def zeros_for(x: Any) -> Tensor:
    """Zeros of the shape of an input."""
    if type(x) is GradientEdge:
        if x.ownership_token is None:
            raise Error(
                "grad: materialize_grads needs a shape, and the edge of an unused input was not made from a tensor"
            )
        x = x.ownership_token
    return x.new_zeros(x.shape)
