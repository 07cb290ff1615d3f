"""``norch.autograd.graph``: the class Node, version counters and hooks on saved tensors, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._package.exports import publish
from .._tensor.handle import Handle
from ..errors import Error
from .node import GradientEdge, Node
from .record import gradient_edge
from .saved_hooks import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from .saved_hooks import save_on_cpu as save_on_cpu
from .saved_hooks import saved_tensors_hooks as saved_tensors_hooks

__all__ = [
    "GradientEdge", "Node", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge at which a tensor's gradient arrives. grad() and backward() take it in place of the tensor, so that the
    elements can be freed. Error if the tensor does not require grad.

    >>> x = norch.tensor(3.0, requires_grad=True)
    >>> edge = norch.autograd.graph.get_gradient_edge(x * x)
    >>> norch.autograd.grad(edge, x)
    (tensor(6.),)
    """
    if not isinstance(tensor, Handle):
        raise TypeError(f"get_gradient_edge: expected a tensor, not {type(tensor).__name__}")
    node = gradient_edge(tensor)
    if node is None:
        raise Error("get_gradient_edge: this tensor does not require grad")
    x: Any = tensor
    return GradientEdge(node.apart(x), 0, x.detach().new_zeros(()).expand(x.shape))


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Tells autograd that code outside it wrote to a tensor, or to an iterable of tensors. A node that saved one of
    them then raises Error in backward().

    >>> x = norch.ones(2)
    >>> norch.autograd.graph.increment_version(x)
    """
    for x in [tensor] if isinstance(tensor, Handle) else tensor:
        x._bump()


publish(globals(), {"...compat.multi_grad": "register_multi_grad_hook"})
if TYPE_CHECKING:
    from ..compat.multi_grad import register_multi_grad_hook as register_multi_grad_hook
