"""The reverse walk: what happens inside ``loss.backward()``.

Nodes wait in a heap, youngest first. A node's inputs are older than the node. So when a node is taken out, all users of
its output have been visited and its gradient is complete. The node computes the gradients of its inputs, and each is
added to the gradient that waits at the end of its edge. If nothing else waits, as in a chain, the heap is skipped. A
leaf waits only if it is a target: otherwise each gradient is added to its .grad when it arrives, and the leaf's hooks
are called after the last one. There is no recursion, and no operation is known by name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from heapq import heappop, heappush

from .._binding.library import lib
from .._package.recording import here
from .._package.typing import Any
from .._tensor.handle import Handle, full_of
from ..dtype import complex64
from ..errors import DTypeError, Error, ShapeError
from .autocast import autocast_off, current
from .broadcast import unbroadcast
from .derivative import OpNode
from .grad_mode import mode, set_grad_enabled
from .halves import HALVES
from .halves import propagate as propagate_halves
from .hooks import call_after, call_before, call_hooks, call_post_hooks, check_gradient, plain
from .levels import batched_like, live_levels, sums_of_levels
from .node import GradientEdge, Leaf, Node
from .record import gradient_edge
from .targets import Targets, count_dependencies, nodes_of, reachable
from .transpose import walking

_COMPLEX = complex64.code  # the first number of a complex dtype
_dtypes_seen = lib.norch_dtypes_seen
_COMPLEX_SEEN, _HALVES_SEEN = 1 << _COMPLEX, sum(1 << dtype for dtype in HALVES)
Queue = list[tuple[int, Node]]  # a heap of (-seq, node), the youngest node first
# f(function, arguments, None): calls a function while subclasses of Tensor do not override operations, since a
# derivative is that of the elements. It is set when the first such class is defined (_package/override.py).
without_subclasses: Any = None


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradient of tensors (a tensor, graph.GradientEdge or iterable) to the .grad of the leaves that they were
    computed from.

    grad_tensors    the gradient of each tensor, of its shape; by default 1 for tensors of one element
    retain_graph    keeps the saved tensors of nodes, for another walk (default: create_graph)
    create_graph    records the walk itself, for derivatives of derivatives
    grad_variables  the older name of grad_tensors
    inputs          only these tensors get a .grad

    Raises Error if there is no graph or it was freed, ShapeError if a gradient has another shape than its tensor,
    DeviceError if it is on another device.

    >>> x = norch.tensor([1.0, 2.0], requires_grad=True)
    >>> norch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    targets = None
    if inputs is not None:
        input_tensors = tensors_in(inputs, "backward")
        nodes = nodes_of(input_tensors, "backward")
        if not nodes:
            raise Error("backward: inputs is empty; leave it out to reach every leaf")
        for x in input_tensors:
            if type(x) is not GradientEdge:
                x.retain_grad()
        targets = Targets(nodes)
    if grad_variables is not None:
        if grad_tensors is not None:
            raise Error("backward: give grad_tensors, or grad_variables, its older name, not both")
        grad_tensors = grad_variables
    roots = roots_of(tensors_in(tensors, "backward"), grad_tensors, create_graph)
    walk(roots, create_graph if retain_graph is None else retain_graph, create_graph, targets)
    if targets is not None:
        with set_grad_enabled(bool(create_graph)):
            _add_to_inputs(input_tensors, nodes, targets, create_graph)


def _add_to_inputs(inputs: list[Any], nodes: list[Node], targets: Targets, create_graph: bool) -> None:
    """Adds the gradients found by a walk to the .grad of leaves among the inputs; the others retain theirs."""
    for x, node in zip(inputs, nodes, strict=True):
        g, targets.found[node] = targets.found[node], None  # an input may be listed twice
        if g is not None and type(node) is Leaf:
            _arrive(node, g, create_graph)
        elif g is not None and type(x) is GradientEdge:
            raise Error(f"backward: inputs has an edge of {node.name()}, which has no .grad; grad() returns gradients")


def roots_of(tensors: list[Any], gradients: Any, create_graph: bool) -> list[tuple[Node, Any]]:
    """Where a walk from tensors begins: the node of each, and its gradient."""
    if gradients is None:
        return [_root(tensor, None, create_graph) for tensor in tensors]
    grads = [gradients] if isinstance(gradients, Handle) else list(gradients)
    if len(grads) != len(tensors):
        raise ShapeError(f"backward: {len(grads)} gradients for {len(tensors)} tensors")
    return [_root(tensor, g, create_graph) for tensor, g in zip(tensors, grads)]


def _root(output: Any, gradient: Any, create_graph: bool) -> tuple[Node, Any]:
    if type(output) is GradientEdge:
        return _root_of_edge(output, gradient, create_graph)
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
    gradient = plain(gradient)
    check_gradient(gradient, output, "backward")
    check_kind(gradient, output)
    gradient = gradient if create_graph else gradient.detach()
    if gradient._dtype != output._dtype or gradient._device_type != output._device_type or not gradient.ndim:
        gradient = gradient.to(output)
    return node, batched_like(gradient, output)


def _root_of_edge(edge: GradientEdge, gradient: Any, create_graph: bool) -> tuple[Node, Any]:
    node, like = edge.node_to_walk(), edge.ownership_token
    if gradient is None:
        if like is None or like._numel != 1 or like._dtype >= _COMPLEX:
            of = f"{node.name()}'s result" if like is None else f"{like.dtype.name}, shape {tuple(like.shape)}"
            raise ShapeError(f"backward: a gradient can be created implicitly only for a real scalar, not for {of}")
        return node, full_of(like, 1.0)
    gradient = plain(gradient)
    if like is not None:
        check_gradient(gradient, like, "backward")
        check_kind(gradient, like)
        gradient = gradient.to(like)
    return node, gradient if create_graph else gradient.detach()


def check_kind(gradient: Any, of: Any) -> None:
    """Raises DTypeError unless both or neither of a root's gradient and its tensor are complex."""
    if (gradient._dtype >= _COMPLEX) != (of._dtype >= _COMPLEX):
        raise DTypeError(f"backward: a gradient of dtype {gradient.dtype.name} for a tensor of dtype {of.dtype.name}")


def tensors_in(x: Any, name: str) -> list[Any]:
    """The tensors and edges of an iterable, as the parameters() of a module, or one alone, as a list."""
    is_one = isinstance(x, (Handle, GradientEdge)) or not hasattr(x, "__iter__")
    listed = [x] if is_one else list(x)
    for item in listed:
        if not isinstance(item, Handle) and type(item) is not GradientEdge:
            raise TypeError(f"{name}: expected a tensor, not {type(item).__name__}")
    return listed


# ---- the walk --------------------------------------------------------------------------------------------------


def walk(
    roots: Sequence[tuple[Node, Any]], retain_graph: bool, create_graph: bool, targets: Targets | None = None
) -> None:
    """Walks back from roots, (node, gradient) pairs, and adds to the .grad of the leaves that it reaches. With targets
    it collects their gradients instead, in targets.found, and no .grad of a leaf changes."""
    if mode.casting and current().active:
        with autocast_off():
            return walk(roots, retain_graph, create_graph, targets)
    if create_graph:
        reachable([root for root, _ in roots], opens=True)
    waiting: Queue = []
    gradients: dict[Node, Any] = {}
    needed: Any = None
    if targets is not None:
        targets.start([root for root, _ in roots])
        needed = targets.needed
    for root, g in roots:
        if needed is None or root in needed:
            _add(gradients, waiting, root, g)
        elif targets is not None and root in targets.one_by_one:
            targets.one_by_one[root].append((None, g))

    if here.trace is not None:
        ends = targets.found if targets is not None and targets.is_boundary else ()
        here.trace.note_backward([root for root, _ in roots], ends, not retain_graph)
    before = mode.enabled
    try:
        mode.enabled = create_graph
        if without_subclasses is None:
            visit(gradients, waiting, retain_graph, create_graph, targets)
        else:
            without_subclasses(visit, (gradients, waiting, retain_graph, create_graph, targets), None)
    finally:
        mode.enabled = before


def visit(
    gradients: dict[Node, Any], waiting: Queue, retain_graph: bool, create_graph: bool, targets: Targets | None
) -> None:
    """Visits the waiting nodes and those that they lead to. This is a separate function because in Python 3.13 a signal
    handler that raises at the start of a loop's next round skips the `finally` around that loop
    (tests/library/test_interrupts.py)."""
    needed: Any = None if targets is None else targets.needed
    owned: set[Node] = set()  # nodes whose waiting gradient only the walk refers to: it may be added to in place
    check = None if (anomaly := mode.anomaly) is None else anomaly.check
    if live_levels.data:
        check = sums_of_levels(check, targets is None)
    dtypes = _dtypes_seen()
    may_be_halves = dtypes & _HALVES_SEEN
    is_plain = check is None and not create_graph and dtypes < _COMPLEX_SEEN
    dependencies: dict[Leaf, int] | None = None  # for each leaf with hooks, the number of gradients yet to arrive
    node: Any = None  # the current node, younger than all that wait; its gradient is g
    grad_inputs: Sequence[Any]
    while node is not None or waiting:
        if node is None:
            node = heappop(waiting)[1]
            g = gradients.pop(node)
        if (hooks := node.hooks) is not None:
            if walking.exact or (targets is not None and not targets.has_hooks and node in targets.found):
                hooks = None
            else:
                g = call_hooks(hooks, g)
        if targets is not None and node in targets.found:
            targets.found[node] = g
            if targets.ends_at(node):
                node = None
                continue
        elif type(node) is Leaf:
            _arrive(node, g, create_graph)
            node = None
            continue
        if hooks is not None:
            g = call_before(hooks, g)
        if (
            node.partial
            and hooks is None
            and check is None
            and not create_graph
            and _added_in_place(node, g, gradients, owned, targets is None)
        ):
            if not retain_graph:
                node.release()
            node = None
            continue
        edges = node.edges  # read first, as propagate may replace them for later walks (program/joint.py)
        wanted = (targets.visited,) if targets is not None and isinstance(node, OpNode) else ()
        if is_plain and hooks is None:
            grad_inputs = propagate_halves(node, g, *wanted) if may_be_halves else node.propagate(g, *wanted)
            if node.metas is not None:
                grad_inputs = unbroadcast(grad_inputs, node.metas)
        else:
            grad_inputs = _gradients(node, g, wanted, hooks, create_graph)
            if check is not None:
                grad_inputs = check(node, grad_inputs)
        following = g = None
        for edge, grad_input in zip(edges, grad_inputs):  # propagate returns one per edge
            if edge is None or grad_input is None:
                continue
            if targets is not None and edge not in needed:
                if edge in targets.one_by_one:
                    targets.one_by_one[edge].append((node, grad_input))
                continue
            if type(edge) is Leaf:
                if edge.hooks is None and targets is None:  # no hook needs the sum first
                    _accumulate(edge, grad_input, not node.shares_grad and hooks is None, create_graph)
                    continue
                if targets is None and dependencies is None:
                    dependencies = count_dependencies([node, *(other for _, other in waiting)], gradients)
                if dependencies is not None and edge in dependencies:
                    _collect(dependencies, gradients, edge, grad_input, create_graph)
                else:
                    _add(gradients, waiting, edge, grad_input)  # keeps the order
                    if node.partial and hooks is None:
                        owned.add(edge)
            elif following is None and (not gradients or edge not in gradients):
                following, g = edge, grad_input
            elif following is edge:
                g = g + grad_input
            else:
                _add(gradients, waiting, edge, grad_input)
                if node.partial:  # it has one edge, so this is a sum
                    owned.add(edge)
        if not retain_graph:
            node.release()
        if following is not None and waiting:
            _add(gradients, waiting, following, g)
            if node.partial and hooks is None:  # a hook may have returned another tensor
                owned.add(following)
            following = None
        node = following
    if dependencies:
        for leaf in [leaf for leaf in dependencies if leaf in gradients]:  # some gradients were None
            _finish(leaf, gradients.pop(leaf), create_graph)


def _add(gradients: dict[Node, Any], waiting: Queue, node: Node, g: Any) -> None:
    """Adds g to the gradient that waits at node."""
    earlier = gradients.get(node)
    if earlier is None:
        gradients[node] = g
        heappush(waiting, (-node.seq, node))
    else:
        gradients[node] = earlier + g


def _added_in_place(node: Node, g: Any, gradients: dict[Node, Any], owned: set[Node], to_leaves: bool) -> bool:
    """Adds the region of a partial node to the gradient that its input already has; False if it has none. So n slices
    of a tensor do not allocate n gradients of its full size."""
    (edge,) = node.edges
    if edge in owned:
        node.add_to(gradients[edge], g)
        return True
    if type(edge) is not Leaf or edge.hooks is not None or not to_leaves:
        return False
    tensor: Any = edge.tensor()
    return tensor is not None and lib.norch_call_locked(_adding, _added_to_grad, (tensor, node, g))


def _added_to_grad(arguments: tuple[Any, Node, Any]) -> bool:
    tensor, node, g = arguments
    if tensor._grad is None or tensor._grad.is_sparse or gradient_edge(tensor) is None:
        return False
    node.add_to(tensor._grad, g)
    return True


def _gradients(node: Node, g: Any, wanted: tuple[Any, ...], hooks: Any, create_graph: bool) -> Sequence[Any]:
    """The gradients of a node's inputs: with hooks, create_graph and complex numbers."""
    if g is None:
        grad_inputs = node._without_gradient()
    else:
        grad_inputs = _conjugated(node, g, *wanted) if node.holomorphic else propagate_halves(node, g, *wanted)
    if node.metas is not None:
        grad_inputs = unbroadcast(grad_inputs, node.metas)
    if create_graph and node.depends_on:
        from .dependence import record_dependence

        grad_inputs = record_dependence(node, grad_inputs)
    return grad_inputs if hooks is None else call_after(hooks, grad_inputs, g)


def _conjugated(node: Node, g: Any, *needed: set[Node]) -> Sequence[Any]:
    """The gradients of a holomorphic node, in PyTorch's convention: the gradient of a real L by z = x + iy is
    dL/dx + i dL/dy. So for w = f(z), g is multiplied by the conjugate of f'(z)."""
    if getattr(g, "_dtype", 0) < _COMPLEX:  # Outputs has no dtype and needs no conjugate
        return propagate_halves(node, g, *needed)
    return [None if grad is None else grad.conj() for grad in node.propagate(g.conj(), *needed)]


# ---- leaves ----------------------------------------------------------------------------------------------------


# Concurrent walks may reach the same leaf. Reentrant, as a finalizer may start a walk. A forked child gets it unlocked.
_adding: Any = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_adding._at_fork_reinit)


def _accumulate(leaf: Leaf, g: Any, fresh: bool, create_graph: bool) -> None:
    """Adds g to the .grad of a leaf. fresh: g has no other owner, so it may become .grad itself."""
    tensor: Any = leaf.tensor()
    if tensor is None or gradient_edge(tensor) is None:  # freed, or frozen since it was used
        return
    try:  # in Python 3.14 `with` may be interrupted after it took the lock; norch_call_locked() is slower
        _adding.acquire()
        grad = tensor._grad
        if grad is None:
            tensor._grad = g if fresh else g.clone()
        elif grad._numel != g._numel:
            raise ShapeError(
                f"backward: a gradient of shape {tuple(g.shape)} cannot be added to the .grad of shape "
                f"{tuple(grad.shape)} which is older than the current .data; set .grad to None"
            )
        elif create_graph or grad.is_sparse:
            tensor._grad = g + grad if grad.is_sparse else grad + g
        else:
            grad += g
    except BaseException:
        if _adding._is_owned():
            _adding.release()
        raise
    _adding.release()


def _collect(dependencies: dict[Leaf, int], gradients: dict[Node, Any], leaf: Leaf, g: Any, create_graph: bool) -> None:
    """Adds g to the gradient that waits at a leaf with hooks; the last one calls the hooks."""
    earlier = gradients.pop(leaf, None)
    total = g if earlier is None else earlier + g
    dependencies[leaf] -= 1
    if dependencies[leaf] == 0:
        _finish(leaf, total, create_graph)
    else:
        gradients[leaf] = total


def _finish(leaf: Leaf, g: Any, create_graph: bool) -> None:
    """Calls the hooks of a leaf whose gradient is complete, and adds it to .grad."""
    _arrive(leaf, call_hooks(leaf.hooks or [], g), create_graph)


def _arrive(leaf: Leaf, g: Any, create_graph: bool) -> None:
    """Adds a gradient to the .grad of a leaf, between the hooks of its node."""
    if leaf.hooks is not None:
        g = call_before(leaf.hooks, g)
    if g is not None:
        _accumulate(leaf, g, False, create_graph)
    if leaf.hooks is not None:
        call_post_hooks(leaf, g)
