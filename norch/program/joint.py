"""The nodes of compiled functions: each call of one is a single node of the graph.

A function whose results require grad is recorded in two parts: forward, the calls that the function makes, and
backward, the calls of its gradient when backward() first reaches it. TracedNode is the node of the call that is
recorded; it walks the graph that the function made. ReplayedNode is the node of a replayed call; it keeps the
arguments, and the memory through which the forward part passes values to the backward part. If that is not enough (a
derivative of the derivative, a second walk, gradients of other results than before), it calls the function again, as a
checkpoint does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .._handle import Handle, next_seq, version_counter_of
from .._lib import lib
from .._recording import here
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import enable_grad, mode, no_grad
from ..autograd.levels import zeros_of
from ..autograd.node import Node
from ..autograd.record import gradient_edge
from ..autograd.region import region, walk_apart
from ..autograd.saved import changed, freed
from ..autograd.view_history import SEVERED
from ..errors import Error
from .trace import Trace
from .tree import flatten, is_tensor, rebuild

_new: Any = object.__new__


class TracedFunction:
    """A function, and what its trace found: shared by the node of the traced call and the nodes of its replays.

    in_tree     the structure of the arguments (tree.py)
    outputs     positions of the results that get gradients; metas: their meta tensors
    edges       where gradients of the arguments go: the position of an argument, or a node shared by all calls
    reached     for each output, the edges that its gradient reaches
    draws       by how much a call advances each generator of random numbers
    """

    def __init__(
        self, function: Callable[..., Any], in_tree: Any, trace: Trace, widen: Callable[[Any, set[int]], set[int]]
    ):
        self.function, self.in_tree, self.trace, self.widen = function, in_tree, trace, widen
        self.outputs: tuple[int, ...] = ()
        self.metas: dict[int, Any] = {}
        self.edges: tuple[int | Node, ...] = ()
        self.reached: dict[int, frozenset[int]] = {}
        self.draws: list[tuple[Any, int]] = []

    def as_one_node(
        self, recording: Any, leaves: tuple[Any, ...], results: list[Any], edges: list[Any], start: int, finish: Any
    ) -> list[Any] | str | None:
        """The results of the traced call with a TracedNode in place of the graph that it made; a text: why that cannot
        be; None: it made none. edges: those of the arguments before the call; start: the sequence number then."""
        nodes = [gradient_edge(x) for x in results]
        inside, frontier = region([node for node in nodes if node is not None], start)
        if not inside:
            return None
        hooked = [m for m in self.trace.modules.values() if m._backward_hooks or m._backward_pre_hooks]
        if hooked or any(node.hooks for node in inside):
            return "it has hooks that gradients of its own tensors go through"
        if [gradient_edge(x) if isinstance(x, Handle) else None for x in leaves] != edges:
            return "it writes into an argument that requires a gradient"
        self.outputs = tuple(i for i, node in enumerate(nodes) if node in inside)
        self.metas = {i: lib.norch_meta(results[i]) for i in self.outputs}
        positions = {node: i for i, node in enumerate(edges) if node is not None}
        self.edges = tuple(positions.get(node, node) for node in frontier)
        for i in self.outputs:
            _, reached = region([node for node in nodes[i : i + 1] if node is not None], start)
            self.reached[i] = frozenset(k for k, node in enumerate(frontier) if node in reached)
        self.draws = [(state, state[1] - counter) for state, _, counter in self.trace.generators]
        node = TracedNode(frontier, self, leaves, recording, list(results), finish)
        outs = list(results)
        for i in self.outputs:
            x = results[i]
            outs[i] = lib.norch_alias(x)
            outs[i]._version_counter = version_counter_of(x)
            if any(isinstance(one, Handle) and lib.norch_shares_storage(one, x) for one in leaves):
                outs[i]._view = SEVERED
        self.set_history(node, outs)
        return outs

    def by_output(self, g: Any) -> dict[int, Any]:
        """{position of a result: the gradient that has arrived}."""
        return {self.outputs[i]: one for i, one in g.items()} if isinstance(g, Outputs) else {self.outputs[0]: g}

    def recompute(self, node: Any, grads: dict[int, Any], generators: list[tuple[Any, int, int]]) -> tuple[Any, ...]:
        """The gradients, by calling the function again, with the random numbers that began at generators."""
        args, kwargs = rebuild(self.in_tree, iter(node.leaves))
        with enable_grad(), _generators_at(generators), _buffers_restored(self.trace):
            out = self.function(*args, **kwargs)
        outs: list[Any] = []
        flatten(out, outs, is_tensor)
        create_graph = mode.enabled
        node.edges = tuple(dict.fromkeys(node.edges))
        roots = [(gradient_edge(outs[i]), g) for i, g in grads.items()]
        return self.along_edges(node, *walk_apart(node.edges, roots, create_graph, create_graph), grads)

    def along_edges(
        self, node: Any, edge_numbers: list[int], gradients: list[Any], grads: dict[int, Any]
    ) -> tuple[Any, ...]:
        """Leaves node only the edges with these numbers, and returns their gradients in that order: None for an edge
        that the gradients of these outputs do not reach, as in a walk."""
        edges = node.edges
        node.edges = tuple([edges[i] for i in edge_numbers])
        if len(grads) == len(self.outputs):
            return tuple(gradients)
        reached = frozenset().union(*(self.reached[i] for i in grads))
        return tuple(g if i in reached else None for i, g in zip(edge_numbers, gradients, strict=True))

    def set_history(self, node: Node, outs: list[Any]) -> None:
        """Makes node the history of the results."""
        if len(self.outputs) == 1:
            outs[self.outputs[0]]._node = node
        else:
            for k, i in enumerate(self.outputs):
                outs[i]._node = Output(node, k)


@contextmanager
def _generators_at(start: list[tuple[Any, int, int]]) -> Iterator[None]:
    """Sets generators of random numbers to these positions, and restores them afterwards."""
    before = [(state, state[0], state[1]) for state, _, _ in start]
    try:
        for state, seed, counter in start:
            state[0], state[1] = seed, counter
        yield
    finally:
        for state, seed, counter in before:
            state[0], state[1] = seed, counter


@contextmanager
def _buffers_restored(trace: Trace) -> Iterator[None]:
    """Restores the buffers of the modules that were called, such as running statistics, afterwards."""
    buffers = {id(b): b for module in trace.modules.values() for b in module._buffers.values() if b is not None}
    with no_grad():
        kept = [(b, b.clone(), version_counter_of(b)[0]) for b in buffers.values()]
    try:
        yield
    finally:
        with no_grad():
            for b, value in [(b, value) for b, value, version in kept if version_counter_of(b)[0] != version]:
                b.copy_(value)


class _CallNode(Node):
    """The node of a call. leaves: its arguments, flat; generators: where its random numbers began."""

    __slots__ = ("generators", "leaves")
    edges: Any
    generators: list[tuple[Any, int, int]]
    leaves: tuple[Any, ...]

    def name(self) -> str:
        return "CompiledFunctionBackward"


# ---- a call that is recorded ---------------------------------------------------------------------------------------


class TracedNode(_CallNode):
    """The node of a call that is recorded.

    outs            its results, in the graph that it made; None: freed
    finish          called with this node and its results when both parts are recorded
    gradients       what the backward part gives; None: it is not recorded
    edge_numbers    of each of these, the number of its edge
    differentiated  the results whose gradients the backward part takes; grad_outputs: these gradients
    """

    __slots__ = ("differentiated", "edge_numbers", "finish", "grad_outputs", "gradients", "outs", "recording", "traced")

    def __init__(
        self,
        frontier: list[Node],
        traced: TracedFunction,
        leaves: tuple[Any, ...],
        recording: Any,
        outs: Any,
        finish: Any,
    ):
        super().__init__(*frontier)
        self.traced, self.leaves, self.recording, self.generators = traced, leaves, recording, traced.trace.generators
        self.outs, self.finish = outs, finish
        self.gradients: list[Any] | None = None
        self.edge_numbers: list[int] = []
        self.differentiated: tuple[int, ...] = ()
        self.grad_outputs: tuple[Any, ...] = ()

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.outs is None:
            raise freed(self)
        traced = self.traced
        arrived = traced.by_output(g)
        if mode.enabled:  # a graph of its own, up to the arguments
            return traced.recompute(self, arrived, self.generators)
        grads = {i: one.contiguous() for i, one in arrived.items()}
        if self.gradients is None:
            self.differentiated = tuple(sorted(traced.widen(traced.in_tree, set(grads)) & set(traced.outputs)))
            grads |= {i: zeros_of(traced.metas[i]) for i in self.differentiated if i not in grads}
        resumed = self.gradients is None and lib.norch_record_resume(self.recording)
        outer = here.trace
        here.trace = traced.trace if resumed else outer
        try:
            roots = [(gradient_edge(self.outs[i]), one) for i, one in grads.items()]
            frontier = self.edges
            edge_numbers, gradients = walk_apart(frontier, roots, True, False)
        except BaseException as error:
            self.finish = None  # half a gradient is not recorded
            if not isinstance(error, Error) or len(arrived) == len(grads):
                raise
            if resumed:
                lib.norch_record_suspend(self.recording)
            resumed, roots = False, [(gradient_edge(self.outs[i]), one) for i, one in arrived.items()]
            edge_numbers, gradients = walk_apart(frontier, roots, True, False)  # what was asked for has one, perhaps
        finally:
            here.trace = outer
            if resumed:
                lib.norch_record_suspend(self.recording)
        if resumed:
            self.edge_numbers, self.gradients = edge_numbers, gradients
            self.grad_outputs = tuple(grads[i] for i in self.differentiated)
        return traced.along_edges(self, edge_numbers, gradients, arrived)

    def release(self) -> None:
        """Frees the graph, and all memory that only the gradient needs."""
        outs, finish, self.outs, self.finish = self.outs, self.finish, None, None
        if outs is None:
            return
        for i in self.traced.outputs:
            outs[i] = lib.norch_alias(outs[i])
        if finish is not None:
            before, mode.enabled = mode.enabled, True  # as when the function was called
            try:
                finish(self, outs)
            finally:
                mode.enabled = before
        self.leaves, self.gradients, self.grad_outputs = (), [], ()

    def __del__(self) -> None:
        with suppress(Exception):  # a user's thread, or the end of the interpreter
            self.release()


# ---- a call that is replayed -----------------------------------------------------------------------------------------


class ReplayedNode(_CallNode):
    """The node of a call that was replayed. slab: the memory of the forward part; used: whether the backward part has
    overwritten it."""

    __slots__ = ("replay", "slab", "used")
    replay: Any
    slab: Any
    used: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.replay is None:
            raise freed(self)
        return self.replay.gradients(self, self.replay.traced.by_output(g))

    def release(self) -> None:
        self.replay = self.slab = None
        self.leaves = ()


class _FreshGradients(ReplayedNode):
    """The gradients are in memory of their own."""

    __slots__ = ()
    shares_grad = False


class JointReplay:
    """What replays of a recording in two parts do beside its calls.

    differentiated, edge_numbers  as in TracedNode
    returned   of each gradient, its number among those that the backward part returns, or None
    views      (result, argument) positions of results that are views of arguments
    """

    def __init__(self, traced: TracedFunction, recording: Any, node: TracedNode, outs: list[Any]):
        self.traced, self.recording = traced, recording
        self.differentiated, self.edge_numbers = node.differentiated, node.edge_numbers
        count = 0
        self.returned: list[int | None] = []
        for g in node.gradients or ():
            self.returned.append(None if g is None else count)
            count += g is not None
        viewed = [lib.norch_result_of(recording, i) for i in range(len(outs) + count)]
        self.node_class = _FreshGradients if all(at == -1 for at in viewed[len(outs) :]) else ReplayedNode
        self.views = [(i, at) for i, at in enumerate(viewed[: len(outs)]) if at >= 0 and i in traced.metas]

    def attach(self, outs: Any, leaves: tuple[Any, ...]) -> None:
        """Gives results, and the slab behind them, their history."""
        node = _new(self.node_class)
        node.edges = tuple([gradient_edge(leaves[to]) if type(to) is int else to for to in self.traced.edges])
        node.seq = next_seq()
        node.hooks = None
        node.replay, node.leaves, node.slab, node.used = self, leaves, outs[-1], False
        node.generators = [(state, state[0], state[1] - count) for state, count in self.traced.draws]
        for i, at in self.views:
            outs[i]._version_counter, outs[i]._view = version_counter_of(leaves[at]), SEVERED
        self.traced.set_history(node, outs)

    def gradients(self, node: Any, grads: dict[int, Any]) -> tuple[Any, ...]:
        """The gradients of a call, by a replay of the backward part if that is possible."""
        traced, taken = self.traced, self.differentiated
        if not mode.enabled and not node.used:
            if len(grads) <= len(taken) and all(i in taken for i in grads):
                given = [grads[i].contiguous() if i in grads else zeros_of(traced.metas[i]) for i in taken]
                out = lib.norch_replay_gradient(self.recording, (*node.leaves, *given), node.seq, node.slab)
                if type(out) is tuple:
                    node.used = True
                    gradients = [None if k is None else out[k] for k in self.returned]
                    return traced.along_edges(node, self.edge_numbers, gradients, grads)
                if out is not NotImplemented:
                    raise changed(node, out)
            else:
                traced.widen(traced.in_tree, set(grads))
        return traced.recompute(node, grads, node.generators)
