"""Makes recorded gradients depend on inputs by which their derivative is 0, if Node.depends_on requires it."""

from __future__ import annotations

from collections.abc import Sequence

from .._package.typing import Any
from .._tensor.handle import alias, meta_of
from .levels import zeros_of
from .node import Node
from .record import gradient_edge


class ZeroDerivative(Node):
    """A gradient as a function of the inputs of its operation, with the derivative 0."""

    __slots__ = ("input_metas",)
    input_metas: tuple[Any, ...]

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g, *(None if meta is None else zeros_of(meta) for meta in self.input_metas))


def record_dependence(node: Node, grads: Sequence[Any]) -> list[Any]:
    """Records the gradients from node as functions of its first depends_on inputs too."""
    metas = tuple(None if grad is None else meta_of(grad) for grad in grads[: node.depends_on])
    outs = []
    for grad in grads:
        out = None
        if grad is not None:
            dependence = ZeroDerivative(gradient_edge(grad), *node.edges[: node.depends_on])
            dependence.input_metas = metas
            out = alias(grad)
            out._node = dependence
        outs.append(out)
    return outs
