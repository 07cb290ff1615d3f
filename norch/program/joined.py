"""The nodes of compiled functions: each call of one is a single node of the graph.

A function whose results require grad is recorded in two parts: its forward calls, and the calls of its gradient when
backward() first reaches it. Trial is the node of a call that is being recorded; it walks the graph that the function
made. Replayed is the node of a replayed call; it keeps the arguments, and the memory through which the first part
passes values to the second. If that is not enough (a derivative of the derivative, a second walk, gradients of other
results than before), it calls the function again, as a checkpoint does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .._handle import Handle, next_seq, version_counter_of, zeros_of
from .._lib import lib
from .._recording import here
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import enable_grad, mode, no_grad
from ..autograd.node import Node, freed
from ..autograd.record import gradient_edge
from ..autograd.region import region, walk_apart
from ..autograd.view_history import SEVERED
from ..errors import Error
from .tape import Tape
from .tree import flatten, is_tensor, rebuild

_new: Any = object.__new__


class Call:
    """Shared by the calls of one function whose arguments have the same structure, shapes and dtypes.

    takes, gives     the structure of arguments and results (tree.py)
    outputs          positions of the results that get gradients; metas: their meta tensors
    edges            where gradients of the arguments go: the position of an argument, or a node shared by all calls
    draws            by how much a call advances each generator of random numbers
    reached          for each output, the edges that its gradient reaches
    """

    def __init__(
        self, function: Callable[..., Any], takes: Any, tape: Tape, widen: Callable[[Any, set[int]], set[int]]
    ):
        self.function, self.takes, self.tape, self.widen = function, takes, tape, widen
        self.outputs: tuple[int, ...] = ()
        self.metas: dict[int, Any] = {}
        self.edges: tuple[int | Node, ...] = ()
        self.reached: dict[int, frozenset[int]] = {}
        self.draws: list[tuple[Any, int]] = []

    def again(self, node: Any, given: dict[int, Any], start: list[tuple[Any, int, int]]) -> tuple[Any, ...]:
        """The gradients, by calling the function again with the same random numbers, which began at start."""
        args, kwargs = rebuild(self.takes, iter(node.leaves))
        with enable_grad(), _at(start), _undone(self.tape):
            out = self.function(*args, **kwargs)
        outs: list[Any] = []
        flatten(out, outs, is_tensor)
        create_graph = mode.enabled
        node.edges = tuple(dict.fromkeys(node.edges))
        roots = [(gradient_edge(outs[i]), g) for i, g in given.items()]
        return self.handed(node, *walk_apart(node.edges, roots, create_graph, create_graph), given)

    def handed(self, node: Any, places: list[int], gradients: list[Any], given: dict[int, Any]) -> tuple[Any, ...]:
        """The gradients, for edges that node has from now on: places are the numbers of those that it had. None for
        edges that the given outputs do not come to, as in a walk."""
        edges = node.edges
        node.edges = tuple([edges[i] for i in places])
        if len(given) == len(self.outputs):
            return tuple(gradients)
        reached = frozenset().union(*(self.reached[i] for i in given))
        return tuple(g if i in reached else None for i, g in zip(places, gradients, strict=True))


@contextmanager
def _at(start: list[tuple[Any, int, int]]) -> Iterator[None]:
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
def _undone(tape: Tape) -> Iterator[None]:
    """Restores the buffers of the modules that were called, such as running statistics, afterwards."""
    buffers = {id(b): b for module in tape.modules() for b in module._buffers.values() if b is not None}
    with no_grad():
        kept = [(b, b.clone(), version_counter_of(b)[0]) for b in buffers.values()]
    try:
        yield
    finally:
        with no_grad():
            for b, value, version in kept:
                if version_counter_of(b)[0] != version:
                    b.copy_(value)


class _CallNode(Node):
    """The node of a call. leaves: its arguments, flat."""

    __slots__ = ("call", "leaves")
    call: Any
    edges: Any
    leaves: tuple[Any, ...]

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def _given(g: Any, call: Call) -> dict[int, Any]:
    """The gradients that arrive, by the number of the result."""
    return {call.outputs[i]: one for i, one in g.items()} if isinstance(g, Outputs) else {call.outputs[0]: g}


def _join(node: Node, outs: list[Any], call: Call) -> None:
    """Makes node the history of the results."""
    if len(call.outputs) == 1:
        outs[call.outputs[0]]._node = node
    else:
        for k, i in enumerate(call.outputs):
            outs[i]._node = Output(node, k)


# ---- a call that is recorded ---------------------------------------------------------------------------------------


class Trial(_CallNode):
    """The node of a call that is recorded.

    outs       its results, in the graph that it made; None: freed
    start      of its generators, where their random numbers began
    ended      called with this node and its gradients when both parts are recorded
    """

    __slots__ = ("ended", "gradients", "outs", "pattern", "places", "recording", "start", "tangents")
    recording: Any
    outs: Any
    start: list[tuple[Any, int, int]]
    ended: Any
    pattern: tuple[int, ...]
    tangents: tuple[Any, ...]
    places: list[int]
    gradients: list[Any] | None

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.outs is None:
            raise freed(self)
        call, given = self.call, _given(g, self.call)
        if mode.enabled:  # a graph of its own, up to the arguments
            return call.again(self, given, self.start)
        given = {i: one.contiguous() for i, one in given.items()}
        if self.gradients is None:
            self.pattern = tuple(sorted(call.widen(call.takes, set(given)) & set(call.outputs)))
            given |= {i: zeros_of(call.metas[i]) for i in self.pattern if i not in given}
        resumed = self.gradients is None and lib.norch_record_resume(self.recording)
        around = here.tape
        here.tape = call.tape if resumed else around
        try:
            roots = [(gradient_edge(self.outs[i]), one) for i, one in given.items()]
            frontier = self.edges
            places, gradients = walk_apart(frontier, roots, True, False)
        except BaseException as error:
            self.ended = None  # half a gradient is not recorded
            asked = _given(g, call)
            if not isinstance(error, Error) or len(asked) == len(given):
                raise
            resumed, roots = self._suspend(resumed), [(gradient_edge(self.outs[i]), one) for i, one in asked.items()]
            places, gradients = walk_apart(frontier, roots, True, False)  # what was asked for has one, perhaps
        finally:
            here.tape = around
            if resumed:
                lib.norch_record_suspend(self.recording)
        if resumed:
            self.places, self.gradients = places, gradients
            self.tangents = tuple(given[i] for i in self.pattern)
        return call.handed(self, places, gradients, _given(g, call))

    def _suspend(self, resumed: bool) -> bool:
        if resumed:
            lib.norch_record_suspend(self.recording)
        return False

    def release(self) -> None:
        """Frees the graph, and all memory that only the gradient needs."""
        outs, ended, self.outs, self.ended = self.outs, self.ended, None, None
        if outs is None:
            return
        for i in self.call.outputs:
            outs[i] = lib.norch_alias(outs[i])
        if ended is not None:
            before, mode.enabled = mode.enabled, True  # as when the function was called
            try:
                ended(self, outs)
            finally:
                mode.enabled = before
        self.leaves, self.gradients, self.tangents = (), [], ()

    def __del__(self) -> None:
        with suppress(Exception):  # a user's thread, or the end of the interpreter
            self.release()


def recorded(
    call: Call, recording: Any, given: tuple[Any, ...], results: list[Any], before: list[Any], start: int, ended: Any
) -> list[Any] | str | None:
    """The results of a function with a Trial as their history, where they have a graph; a text: why that cannot be;
    None: they have none. before: the nodes of the arguments, start: the time before the call."""
    nodes = [gradient_edge(x) for x in results]
    inside, frontier = region([node for node in nodes if node is not None], start)
    if not inside:
        return None
    hooked = [m for m in call.tape.modules() if m._backward_hooks or m._backward_pre_hooks]
    if hooked or any(node.hooks for node in inside):
        return "it has hooks that gradients of its own tensors go through"
    if [gradient_edge(x) if isinstance(x, Handle) else None for x in given] != before:
        return "it writes into an argument that requires a gradient"
    call.outputs = tuple(i for i, node in enumerate(nodes) if node in inside)
    call.metas = {i: lib.norch_meta(results[i]) for i in call.outputs}
    places = {node: i for i, node in enumerate(before) if node is not None}
    call.edges = tuple(places.get(node, node) for node in frontier)
    for i in call.outputs:
        _, reached = region([node for node in nodes[i : i + 1] if node is not None], start)
        call.reached[i] = frozenset(k for k, node in enumerate(frontier) if node in reached)
    node = Trial(*frontier)
    node.call, node.leaves, node.recording, node.ended = call, given, recording, ended
    node.gradients, node.places, node.tangents, node.pattern = None, [], (), ()
    node.start = call.tape.drawn
    call.draws = [(state, state[1] - counter) for state, _, counter in node.start]
    node.outs = list(results)
    outs = list(results)
    for i in call.outputs:
        x = results[i]
        outs[i] = lib.norch_alias(x)
        outs[i]._version_counter = version_counter_of(x)
        if any(isinstance(one, Handle) and lib.norch_shares_storage(one, x) for one in given):
            outs[i]._view = SEVERED
    _join(node, outs, call)
    return outs


# ---- a call that is replayed -----------------------------------------------------------------------------------------


class Replayed(_CallNode):
    """The node of a call that was replayed. slab: the memory of the first part; used: a gradient has overwritten it."""

    __slots__ = ("slab", "start", "used")
    slab: Any
    start: list[tuple[Any, int, int]]
    used: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.call is None:
            raise freed(self)
        return self.call.gradients(self, _given(g, self.call.call))

    def release(self) -> None:
        self.call = self.slab = None
        self.leaves = ()


class _Fresh(Replayed):
    """The gradients are in memory of their own."""

    __slots__ = ()
    shares_grad = False


class Joined:
    """What replays of a recording in two parts do beside its calls.

    pattern    the results whose gradients the second part takes
    places     of each gradient the number of its edge; gives: its number among those that the part gives, or None
    """

    def __init__(self, call: Call, recording: Any, trial: Trial, outs: list[Any]):
        self.call, self.recording = call, recording
        self.pattern = trial.pattern
        count = 0
        self.places = trial.places
        self.gives: list[int | None] = []
        for g in trial.gradients or ():
            self.gives.append(None if g is None else count)
            count += g is not None
        places = [lib.norch_result_of(recording, i) for i in range(len(outs) + count)]
        self.node_class = _Fresh if all(place == -1 for place in places[len(outs) :]) else Replayed
        self.views = [(i, place) for i, place in enumerate(places[: len(outs)]) if place >= 0 and i in call.metas]

    def join(self, outs: Any, leaves: tuple[Any, ...]) -> None:
        """Gives results, and the slab behind them, their history."""
        node = _new(self.node_class)
        node.edges = tuple([gradient_edge(leaves[to]) if type(to) is int else to for to in self.call.edges])
        node.seq = next_seq()
        node.hooks = None
        node.call, node.leaves, node.slab, node.used = self, leaves, outs[-1], False
        node.start = [(state, state[0], state[1] - count) for state, count in self.call.draws]
        for i, place in self.views:
            outs[i]._version_counter, outs[i]._view = version_counter_of(leaves[place]), SEVERED
        _join(node, outs, self.call)

    def gradients(self, node: Any, given: dict[int, Any]) -> tuple[Any, ...]:
        if not mode.enabled and not node.used:
            pattern, call = self.pattern, self.call
            if len(given) <= len(pattern) and all(i in pattern for i in given):
                tangents = [given[i].contiguous() if i in given else zeros_of(call.metas[i]) for i in pattern]
                out = lib.norch_replay_gradient(self.recording, (*node.leaves, *tangents), node.seq, node.slab)
                if type(out) is tuple:
                    node.used = True
                    gradients = [None if k is None else out[k] for k in self.gives]
                    return call.handed(node, self.places, gradients, given)
                if out is not NotImplemented:
                    raise Error(
                        f"{node.name()}: a tensor of shape {tuple(out.shape)} that it needs for its gradient was "
                        "changed in place after it was used; change a clone() instead"
                    )
            else:
                call.widen(call.takes, set(given))
        return self.call.again(node, given, node.start)
