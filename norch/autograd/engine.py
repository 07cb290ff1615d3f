"""The reverse walk: what happens inside ``loss.backward()``.

Nodes wait in a heap, youngest first. A node's inputs are older than itself, so when it is taken out, every user
of its output has been there already and its gradient is complete. It turns that gradient into one for each input
and hands them along its edges, where they add up. Where nothing else waits, as in a chain, the next node is taken at
once. A leaf does not wait: what comes is added to its .grad, or, where a hook wants to see the sum, when the last part
has come. Nothing recurses, and the walk knows no operation.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from heapq import heappop, heappush

from .._handle import Handle, full_of
from .._lib import lib
from .._recording import here
from .._typing import Any
from ..dtype import complex64
from ..errors import DTypeError, Error, ShapeError
from . import anomaly
from .broadcast import unbroadcast
from .dependence import record_dependence
from .grad_mode import mode
from .hooks import check_gradient, parts_to_come, tell_accumulated, through_hooks
from .levels import batched_like, live_levels, sums_of_levels
from .node import Leaf, Node
from .record import gradient_edge
from .wanted import leading_to, nodes_of

_COMPLEX = complex64.code  # the first number of a complex dtype
_complex_seen = lib.norch_complex_seen


def run(
    roots: Sequence[tuple[Node, Any]],
    retain_graph: bool,
    create_graph: bool,
    wanted: dict[Node, int] | None = None,
    accumulate: bool = True,
    past: bool = True,
    parts: dict[Node, list[Any]] | None = None,
) -> list[Any]:
    """Walks back from roots, (node, gradient) pairs. Adds to the .grad of the leaves that it reaches; with wanted
    ({node: position}) only those nodes count, and their gradients are returned by position. past=False: stops at
    wanted nodes. parts: what comes to these wanted nodes is not added up, but appended to their lists."""
    caught: list[Any] = [None] * (len(wanted) if wanted else 0)
    useful: Any = None if wanted is None else leading_to(wanted, [node for node, _ in roots], past)
    waiting: list[tuple[int, Node]] = []
    gradients: dict[Node, Any] = {}
    owned: set[Node] = set()  # waiting with a gradient that was made here, so that regions are added to it in place
    for root, g in roots:
        if useful is None or root in useful:
            _add(gradients, waiting, root, g)

    if here.tape is not None and not retain_graph:
        here.tape.walk([root for root, _ in roots])
    check = sums_of_levels(anomaly.check, wanted is None) if live_levels.data else anomaly.check
    may_be_complex = _complex_seen()
    before = mode.enabled
    expected: dict[Leaf, int] | None = None  # how many parts are to come to each leaf with hooks
    node: Any = None  # the current one, with its gradient g; it is younger than all that wait
    inputs: Sequence[Any]  # the gradients that it gives
    try:
        mode.enabled = create_graph
        while node is not None or waiting:
            if node is None:
                node = heappop(waiting)[1]
                g = gradients.pop(node)
            if node.hooks is not None:
                g = through_hooks(node.hooks, g)
            if wanted is not None and node in wanted:
                caught[wanted[node]] = g
            if type(node) is Leaf:
                if accumulate and (wanted is None or node in wanted):
                    _accumulate(node, g, False, create_graph)
                    if node.hooks is not None:
                        tell_accumulated(node)
                node = None
                continue
            if wanted is not None and node in wanted and not (past and any(edge in useful for edge in node.edges)):
                node = None
                continue
            if (
                node.partial
                and check is None
                and not create_graph
                and _added_in_place(node, g, gradients, owned, wanted is None)
            ):
                if not retain_graph:
                    node.release()
                node = None
                continue
            inputs = _conjugated(node, g) if may_be_complex and node.holomorphic else node.propagate(g)
            if node.metas is not None:
                inputs = unbroadcast(inputs, node.metas)
            if create_graph and node.depends_on:
                inputs = record_dependence(node, inputs)
            if check is not None:
                inputs = check(node, inputs)
            following = g = None
            for edge, part in zip(node.edges, inputs):  # noqa: B905  (propagate gives one an edge)
                if edge is None or part is None or (useful is not None and not _counts(edge, part, useful, parts)):
                    continue
                if type(edge) is Leaf:
                    if edge.hooks is None and wanted is None:  # no hook needs the sum first
                        _accumulate(edge, part, not node.shares_grad, create_graph)
                        continue
                    if wanted is None and expected is None:
                        expected = parts_to_come([node, *(other for _, other in waiting)], gradients)
                    if expected is not None and edge in expected:
                        _collect(expected, gradients, edge, part, create_graph)
                    else:
                        _add(gradients, waiting, edge, part)  # in the same order
                elif following is None:
                    following, g = edge, part
                elif following is edge:
                    g = g + part
                else:
                    _add(gradients, waiting, edge, part)
            if not retain_graph:
                node.release()
            if following is not None and waiting:
                _add(gradients, waiting, following, g)
                if node.partial:
                    owned.add(following)
                following = None
            node = following
        if expected:
            for leaf in [leaf for leaf in expected if leaf in gradients]:  # to which some parts never came
                _finish(leaf, gradients.pop(leaf), create_graph)
    finally:
        mode.enabled = before
    return caught


def _counts(edge: Node, part: Any, useful: set[Node], parts: dict[Node, list[Any]] | None) -> bool:
    """Whether a gradient goes on along an edge; those that are kept apart do not."""
    if parts is not None and edge in parts:
        parts[edge].append(part)
        return False
    return edge in useful


def _conjugated(node: Node, g: Any) -> Sequence[Any]:
    """What a holomorphic node gives for a complex g by PyTorch's convention: the gradient of a real L by z = x + iy is
    dL/dx + i dL/dy, so that of w = f(z) is multiplied by the conjugate of f'(z)."""
    if getattr(g, "_dtype", 0) < _COMPLEX:  # the gradients of several results are as the node takes them
        return node.propagate(g)
    return [None if part is None else part.conj() for part in node.propagate(g.conj())]


def _collect(expected: dict[Leaf, int], gradients: dict[Node, Any], leaf: Leaf, part: Any, create_graph: bool) -> None:
    """Adds a part to the gradient of a leaf with hooks, which are called with the last one."""
    known = gradients.pop(leaf, None)
    g = part if known is None else known + part
    expected[leaf] -= 1
    if expected[leaf] == 0:
        _finish(leaf, g, create_graph)
    else:
        gradients[leaf] = g


def _finish(leaf: Leaf, g: Any, create_graph: bool) -> None:
    """The gradient of a leaf with hooks is complete."""
    _accumulate(leaf, through_hooks(leaf.hooks or [], g), False, create_graph)
    tell_accumulated(leaf)


def _add(gradients: dict[Node, Any], waiting: list[tuple[int, Node]], node: Node, g: Any) -> None:
    """Notes g as a part of the gradient that arrives at node."""
    known = gradients.get(node)
    if known is None:
        gradients[node] = g
        heappush(waiting, (-node.seq, node))
    else:
        gradients[node] = known + g


def _added_in_place(node: Node, g: Any, gradients: dict[Node, Any], owned: set[Node], to_leaves: bool) -> bool:
    """Adds the region that a partial node stands for to a gradient that is there already, so that taking a tensor apart
    costs no whole gradient for each part; False where there is none."""
    (edge,) = node.edges
    if edge in owned:
        node.add_to(gradients[edge], g)
        return True
    if type(edge) is not Leaf or edge.hooks is not None or not to_leaves:
        return False
    with _adding:
        tensor: Any = edge.tensor()
        if tensor is None or tensor._grad is None:
            return False
        node.add_to(tensor._grad, g)
    return True


# Threads that walk at once may meet at a leaf. Reentrant, as a finalizer may walk too; and no fork inherits it locked.
_adding: Any = threading.RLock()
os.register_at_fork(after_in_child=_adding._at_fork_reinit)


def _accumulate(leaf: Leaf, g: Any, fresh: bool, create_graph: bool) -> None:
    """Adds g to the .grad of a leaf. fresh: g has no other owner, so that it can become .grad itself."""
    tensor: Any = leaf.tensor()
    if tensor is None:
        return
    with _adding:
        if tensor._grad is None:
            tensor._grad = g if fresh else g.clone()
        elif tensor._grad._numel != g._numel:
            raise ShapeError(
                f"backward: a gradient of shape {tuple(g.shape)} cannot be added to the .grad of shape "
                f"{tuple(tensor._grad.shape)} that is from before .data was replaced; set .grad to None"
            )
        elif create_graph:
            tensor._grad = tensor._grad + g
        else:
            tensor._grad.add_(g)


# ---- what users call -------------------------------------------------------------------------------------------


def _root(output: Any, gradient: Any, create_graph: bool) -> tuple[Node, Any]:
    node = gradient_edge(output)
    if node is None:
        raise Error("backward: this tensor does not require grad and has no history; was it made under no_grad()?")
    if gradient is None:
        if output._dtype >= _COMPLEX:
            raise DTypeError(f"backward: of {output.dtype.name} pass gradient=, or take a real number of it, as .abs()")
        if output._numel != 1:
            raise ShapeError(
                f"backward: a gradient can be created implicitly only for a scalar, not for shape "
                f"{tuple(output.shape)}; reduce it (.sum(), .mean()) or pass gradient="
            )
        return node, full_of(output, 1.0)
    check_gradient(gradient, output, "backward")
    return node, batched_like((gradient if create_graph else gradient.detach()).to(output), output)


def tensors_in(x: Any, name: str) -> list[Any]:
    listed = list(x) if isinstance(x, (list, tuple)) else [x]
    for one in listed:
        if not isinstance(one, Handle):
            raise TypeError(f"{name}: expected a tensor, not {type(one).__name__}")
    return listed


def roots_of(tensors: list[Any], gradients: Any, create_graph: bool) -> list[tuple[Node, Any]]:
    given: list[Any] = [None] * len(tensors)
    if gradients is not None:
        given = list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]
    if len(given) != len(tensors):
        raise ShapeError(f"backward: {len(given)} gradients for {len(tensors)} tensors")
    return [_root(tensor, g, create_graph) for tensor, g in zip(tensors, given, strict=True)]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the derivative of tensors, weighted by grad_tensors (1 for single numbers), to .grad of the leaves.

    retain_graph keeps what was saved, for another walk (default: as create_graph); create_graph records the walk
    itself, for derivatives of derivatives; inputs limits the walk to these tensors. Raises Error where there is no
    graph, or it was freed; ShapeError where a gradient has another shape than its tensor, DeviceError where it is on
    another device.

    >>> x = norch.tensor([1.0, 2.0], requires_grad=True)
    >>> norch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    wanted = None
    if inputs is not None:
        listed = tensors_in(inputs, "backward")
        wanted = nodes_of(listed)
        if not wanted:
            raise Error("backward: inputs is empty; leave it out to reach every leaf")
    roots = roots_of(tensors_in(tensors, "backward"), grad_tensors, create_graph)
    caught = run(roots, create_graph if retain_graph is None else retain_graph, create_graph, wanted)
    for node, position in (wanted or {}).items():
        if type(node) is not Leaf and (g := caught[position]) is not None:
            x = next(x for x in listed if gradient_edge(x) is node)
            x._grad = g if x._grad is None else x._grad + g
