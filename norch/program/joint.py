"""Graph nodes of compiled functions: each call is a single node.

A function whose results require grad is recorded in two parts: the calls of the function, and the calls of its gradient
when backward() first reaches it. TracedNode is the node of the recorded call; it walks the graph that the function
made. ReplayedNode is the node of a replayed call; it keeps the arguments, and the memory through which the forward part
passes values to the backward part. If these do not suffice (for a second derivative, a second backward pass, or
gradients of other results than before), it calls the function again, as a checkpoint does, or raises if the result
would differ.

The node has an edge for each gradient that the function's own graph would pass to an earlier node, in the same order
(region()), so that gradients are accumulated and hooks called as in eager execution. If that does not suffice, the node
stands aside: its edges lead to the results of the function's own graph. It also does so before a backward pass that is
itself recorded, because the recorded pass goes through this graph; a later pass can go through the graph only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from .._binding.library import lib
from .._package.recording import here
from .._tensor.handle import next_seq, version_counter_of
from ..autograd.autocast import current, using
from ..autograd.derivative import OpNode
from ..autograd.function import Output, Outputs
from ..autograd.grad_mode import enable_grad, mode, no_grad
from ..autograd.levels import zeros_of
from ..autograd.node import Leaf, Node
from ..autograd.record import gradient_edge
from ..autograd.region import region, walk_apart
from ..autograd.saved import TensorHolder, changed, freed
from ..autograd.view_history import SEVERED, Constant, ViewWrite
from ..errors import Error
from ..tensor import Tensor
from .fields import is_a
from .trace import Trace
from .tree import flatten, is_tensor, rebuild

_new: Any = Node.__new__
_DIFFERENTIATED = "its gradient is differentiated (create_graph=True)"
_HOOKED = "a gradient of a result is asked for from which another result was computed"
_TWICE = "backward() goes through a call of it twice"
_HAS_HOOKS = (
    "it has hooks that gradients of its own tensors go through; register them on its parameters, arguments or results, "
    "or compile the modules before and after them"
)
_MOST_APART = 8  # edges of a non-leaf node beyond which its gradients are not passed separately
_AGAIN = "a gradient that is differentiated, or a second backward(), calls the function again, and it"
_KEEP = "do so before that changes, or call the function without compile"


class _Result(Output):
    """The Output of a result from which another result was computed. The gradients of the other result do not pass
    through this node, so hooks and walks to it use the function's own node."""

    __slots__ = ()

    def apart(self, x: Any) -> Node:
        parent: Any = self.edges[0]
        x._node = parent.node_of(self.index)
        return x._node


class TracedFunction:
    """A function and the results of its trace, which the nodes of the traced call and of its replays share.

    in_tree     the structure of the arguments (tree.py)
    widen       called with results whose gradients are wanted; returns all such results so far
    leave       called with a reason if its calls should not be recorded
    outputs     positions of results that get gradients; metas: meta tensors of these and of `needed`
    inner       those of them from which others were computed
    edges       where each gradient goes: the position of an argument, or a node shared by all calls
    reached     for each output, the indices of the edges that its gradient reaches
    needed      for each output, the positions of results that its gradient reads
    apart       for each output, those that may be differentiated after it, as their graphs share no node that it
                frees; empty if there are none
    twins       {position of a result: the first position of the same object}
    severed     positions of results that share memory with others, or with older tensors: a write to one would not
                change the history of the others
    draws       by how much a call advances each random generator
    casts       the autocast setting
    """

    def __init__(
        self,
        function: Callable[..., Any],
        in_tree: Any,
        trace: Trace,
        widen: Callable[[Any, set[int]], set[int]],
        leave: Callable[[str], None],
    ):
        self.function, self.in_tree, self.trace, self.widen, self.leave = function, in_tree, trace, widen, leave
        self.outputs: tuple[int, ...] = ()
        self.inner: set[int] = set()
        self.metas: dict[int, Any] = {}
        self.edges: tuple[int | Node, ...] = ()
        self.reached: dict[int, frozenset[int]] = {}
        self.needed: dict[int, frozenset[int]] = {}
        self.apart: dict[int, frozenset[int]] = {}
        self.twins: dict[int, int] = {}
        self.severed: list[int] = []
        self.draws: list[tuple[Any, int]] = []
        self.casts = current()

    def as_one_node(
        self, recording: Any, leaves: tuple[Any, ...], results: list[Any], edges: list[Any], start: int, finish: Any
    ) -> list[Any] | str | None:
        """The results of the traced call, with a TracedNode in place of their graph; a text if that is not possible,
        None if there is no graph. edges: the edges of the arguments before the call; start: the sequence number
        then."""
        nodes = [gradient_edge(x) for x in results]
        inside, leading = region([node for node in nodes if node is not None], start)
        if not inside:
            return None
        hooked = [m for m in self.trace.modules.values() if m._backward_hooks or m._backward_pre_hooks]
        hooks = [hook for m in hooked for hook in (*m._backward_hooks.values(), *m._backward_pre_hooks.values())]
        hooks += [hook for node in inside for hook in node.hooks or ()]
        if hooks:
            return f"{_HAS_HOOKS}{_defined(hooks[0])}"
        if any(x._version > node.seq for node in inside for x in _saved_by(node)):
            return "it writes into a tensor that a gradient needs; change a clone() instead"
        if [gradient_edge(x) if is_tensor(x) else None for x in leaves] != edges:
            return "it writes into an argument that requires a gradient"
        own_edges = _few_apart(leading)
        firsts = {id(x): i for i, x in reversed(list(enumerate(results)))}
        self.twins = {i: firsts[id(x)] for i, x in enumerate(results) if firsts[id(x)] < i}
        self.outputs = tuple(i for i, node in enumerate(nodes) if node in inside and i not in self.twins)
        self.metas = {i: lib.norch_meta(results[i]) for i in self.outputs}
        positions = {node: i for i, node in enumerate(edges) if node is not None}
        self.edges = tuple(positions.get(edge, edge) for _, edge in own_edges)
        freed_by: dict[int, set[Node]] = {}
        for i in self.outputs:
            behind, _ = region([node for node in nodes[i : i + 1] if node is not None], start)
            freed_by[i] = {node for node in behind if type(node).release is not Node.release}
            self.inner.update(k for k in self.outputs if k != i and nodes[k] in behind)
            saved = [x for node in behind for x in _saved_by(node)]
            self.needed[i] = frozenset(k for k, x in enumerate(results) if _shares_any(x, saved))
            self.metas.update((k, lib.norch_meta(results[k])) for k in self.needed[i])
            ends = {edge for node in behind for edge in node.edges}
            self.reached[i] = frozenset(
                k for k, (node, edge) in enumerate(own_edges) if (edge in ends if node is None else node in behind)
            )
        apart = {i: frozenset(k for k in self.outputs if not freed_by[i] & freed_by[k]) for i in self.outputs}
        self.apart = apart if any(apart.values()) else {}
        self.draws = [(state, state[1] - counter) for state, _, counter in self.trace.generators]
        node = TracedNode(own_edges, self, leaves, recording, list(results), finish)
        outs = list(results)
        for i in self.outputs:
            x = results[i]
            outs[i] = lib.norch_alias(x)
            outs[i]._version_counter = version_counter_of(x)
            shared = any(lib.norch_shares_storage(other, x) for other in results if other is not x)
            if shared or lib.norch_is_external(recording, x):
                outs[i]._view = SEVERED
                self.severed.append(i)
        self.set_history(node, outs)
        self.copy_twins(outs)
        return outs

    def copy_twins(self, outs: list[Any]) -> None:
        """Makes results that are the same object one object again."""
        for i, first in self.twins.items():
            outs[i] = outs[first]

    def by_output(self, g: Any) -> dict[int, Any]:
        """{position of a result: its gradient}."""
        return {self.outputs[i]: grad for i, grad in g.items()} if isinstance(g, Outputs) else {self.outputs[0]: g}

    def call_again(self, node: ReplayedNode) -> tuple[list[Any], set[Node]]:
        """The results of a replayed call, by calling the function with the same random numbers, and the nodes of their
        graph."""
        args, kwargs = rebuild(self.in_tree, iter(node.leaves))
        written, start = lib.norch_written_tensors(node.replay.recording), next_seq()
        with (
            enable_grad(),
            using(self.casts.changed(cache={})),
            _generators_at(node.generators),
            _restored(written, node.state),
        ):
            out = self.function(*args, **kwargs)
        outs: list[Any] = []
        flatten(out, outs, is_tensor)
        roots = [gradient_edge(outs[i]) for i in self.outputs]
        inside, leading = region([root for root in roots if root is not None], start)
        if None in roots or not {edge for _, edge in leading} <= set(node.edges):
            raise Error(f"{node.name()}: {_AGAIN} has a different graph than before; {_KEEP}")
        return outs, inside

    def only_reached(self, gradients: Sequence[Any], grads: dict[int, Any]) -> tuple[Any, ...]:
        """gradients, one for each edge, with None for edges that the gradients of these outputs do not reach."""
        if len(grads) == len(self.outputs):
            return tuple(gradients)
        reached = frozenset().union(*(self.reached[i] for i in grads))
        return tuple([g if i in reached else None for i, g in enumerate(gradients)])

    def set_history(self, node: Node, outs: list[Any]) -> None:
        """Makes node the history of the results."""
        if len(self.outputs) == 1:
            outs[self.outputs[0]]._node = node
        else:
            for k, i in enumerate(self.outputs):
                outs[i]._node = (_Result if i in self.inner else Output)(node, k)


def _defined(hook: Any) -> str:
    """The line where a hook is defined; empty if it is not a Python function."""
    code = getattr(getattr(hook, "__func__", hook), "__code__", None)
    return "" if code is None else f"\n  at {code.co_filename}:{code.co_firstlineno}"


def _saved_by(node: Node) -> Iterator[Tensor]:
    """The tensors saved by a node."""
    for value in getattr(node, "_saved", None) or ():
        for x in value.tensors() if is_a(value, TensorHolder) else (value,):
            if is_tensor(x):
                yield x


def _shares_any(x: Any, others: list[Tensor]) -> bool:
    return any(lib.norch_shares_storage(other, x) for other in others)


def _few_apart(leading: list[tuple[Node, Node]]) -> list[tuple[Node | None, Node]]:
    """The edges (region()), with a single one, of no node, for all edges to a non-leaf node with many, such as the
    slices of a sequence that is read step by step: separate gradients would each be as large as the whole."""
    counts = Counter(edge for _, edge in leading if type(edge) is not Leaf)
    few: list[tuple[Node | None, Node]] = [(node, edge) for node, edge in leading if counts[edge] <= _MOST_APART]
    return few + [(None, edge) for edge, count in counts.items() if count > _MOST_APART]


@contextmanager
def _generators_at(start: list[tuple[Any, int, int]]) -> Iterator[None]:
    """Sets random generators to these positions, and restores them at the end."""
    before = [(state, state[0], state[1]) for state, _, _ in start]
    try:
        for state, seed, counter in start:
            state[0], state[1] = seed, counter
        yield
    finally:
        for state, seed, counter in before:
            state[0], state[1] = seed, counter


class State:
    """Older tensors that a recording's calls read and write, such as a running average that a result depends on. keep()
    is called before each replay; values: (tensor, its value then)."""

    def __init__(self) -> None:
        self.tensors: tuple[Any, ...] = ()
        self.values: list[tuple[Any, Any]] = []

    def keep(self) -> bool:
        with no_grad():
            self.values = [(x, x.clone()) for x in self.tensors]
        return True


@contextmanager
def _restored(written: tuple[Any, ...], before: list[tuple[Any, Any]]) -> Iterator[None]:
    """Sets tensors to the values of `before`. At the end restores all tensors that are written to, such as running
    statistics."""
    with no_grad():
        kept = [(x, x.clone(), version_counter_of(x)[0]) for x in written]
        for x, value in before:
            x.copy_(value)
    try:
        yield
    finally:
        with no_grad():
            for x, value, version in kept:
                if version_counter_of(x)[0] == version:
                    continue
                if x.equal(value):  # the saved value is the value at the call
                    version_counter_of(x)[0] = version
                else:
                    x.copy_(value)


class _CallNode(Node):
    """The node of a call. leaves: its flat arguments; generators: the positions of the random generators before it;
    arrived: the outputs with gradients in the last pass; left: the outputs whose graphs no pass has freed, None for
    all."""

    __slots__ = ("arrived", "generators", "leaves", "left")
    is_whole = True
    arrived: tuple[int, ...]
    edges: Any
    generators: list[tuple[Any, int, int]]
    leaves: tuple[Any, ...]
    left: frozenset[int] | None

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def note(self, traced: TracedFunction, arrived: dict[int, Any]) -> None:
        """Notes a backward pass. Error for an output whose graph was freed."""
        if self.left is not None:
            if not self.left.issuperset(arrived):
                raise freed(self)
            traced.leave(_TWICE)
        self.arrived = tuple(arrived)

    def frees_all(self, traced: TracedFunction) -> bool:
        """Whether the pass that ends freed the last output's graph, as a pass through the function's own graph
        would."""
        arrived, self.arrived = self.arrived, ()
        if not traced.apart or not arrived:
            return True
        left = frozenset(traced.outputs) if self.left is None else self.left
        self.left = left.intersection(*[traced.apart[i] for i in arrived])
        return not self.left


# ---- a call that is recorded ---------------------------------------------------------------------------------------


class TracedNode(_CallNode):
    """The node of a call that is being recorded.

    sources         the node that each edge comes from in the function's graph
    outs            the results in the function's graph; None: freed
    aside           whether its edges lead to that graph
    finish          called with this node and its results when both parts are recorded
    gradients       the results of the backward part, one for each edge; None: not recorded
    differentiated  the results whose gradients the backward part takes; grad_outputs: these gradients
    """

    __slots__ = (
        "aside",
        "differentiated",
        "finish",
        "grad_outputs",
        "gradients",
        "outs",
        "recording",
        "sources",
        "traced",
    )

    def __init__(
        self,
        leading: list[tuple[Node | None, Node]],
        traced: TracedFunction,
        leaves: tuple[Any, ...],
        recording: Any,
        outs: Any,
        finish: Any,
    ):
        super().__init__(*[edge for _, edge in leading])
        self.sources = [source for source, _ in leading]
        self.traced, self.leaves, self.recording, self.generators = traced, leaves, recording, traced.trace.generators
        self.outs, self.finish, self.aside, self.arrived, self.left = outs, finish, False, (), None
        self.gradients: tuple[Any, ...] | None = None
        self.differentiated: tuple[int, ...] = ()
        self.grad_outputs: tuple[Any, ...] = ()

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.outs is None:
            raise freed(self)
        traced = self.traced
        arrived = traced.by_output(g)
        self.note(traced, arrived)
        if self.aside:
            return tuple([arrived.get(i) for i in traced.outputs])
        grads = {i: grad.contiguous() for i, grad in arrived.items()}
        if self.gradients is None:
            self.differentiated = tuple(sorted(traced.widen(traced.in_tree, set(grads)) & set(traced.outputs)))
            grads |= {i: zeros_of(traced.metas[i]) for i in self.differentiated if i not in grads}
        resumed = self.gradients is None and lib.norch_record_resume(self.recording)
        outer = here.trace
        if resumed:
            # modules called here are guarded in their current state
            here.trace, traced.trace.modules = traced.trace, {}
        try:
            roots = [(gradient_edge(self.outs[i]), grad) for i, grad in grads.items()]
            with traced.trace.frames.noted() if resumed else nullcontext():
                gradients = walk_apart(self.edges, roots, True, False, self.sources)
        except BaseException as error:
            self.finish = None  # do not record half a gradient
            if not isinstance(error, Error) or len(arrived) == len(grads):
                raise
            if resumed:
                lib.norch_record_suspend(self.recording)
            resumed, roots = False, [(gradient_edge(self.outs[i]), grad) for i, grad in arrived.items()]
            gradients = walk_apart(self.edges, roots, True, False, self.sources)  # a requested result may have one
        finally:
            here.trace = outer
            if resumed:
                lib.norch_record_suspend(self.recording)
        if self.gradients is not None:
            traced.leave(_TWICE)
        if resumed:
            if (why := traced.trace.add_backward_guards(self.recording)) is not None:
                traced.leave(why)
            self.gradients = gradients
            self.grad_outputs = tuple(grads[i] for i in self.differentiated)
        return traced.only_reached(gradients, arrived)

    def open(self) -> None:
        if self.outs is not None and not self.aside:
            self._stand_aside(_DIFFERENTIATED)

    def _stand_aside(self, why: str) -> None:
        self.edges = tuple([gradient_edge(self.outs[i]) for i in self.traced.outputs])
        self.aside, self.finish, self.sources = True, None, []
        self.traced.leave(why)

    def node_of(self, index: int) -> Node | None:
        """The function's own node of an output."""
        if self.outs is None:
            raise freed(self)
        if not self.aside:
            self._stand_aside(_HOOKED)
        return gradient_edge(self.outs[self.traced.outputs[index]])

    def release(self) -> None:
        """Frees the graph, and memory that only the gradient needs, when no result is left that can be
        differentiated."""
        if not self.frees_all(self.traced):
            return
        outs, finish, self.outs, self.finish, self.sources = self.outs, self.finish, None, None, []
        if outs is None:
            return
        for i in self.traced.outputs:
            outs[i] = lib.norch_alias(outs[i])
        self.traced.copy_twins(outs)
        if finish is not None:
            before, mode.enabled = mode.enabled, True  # as at the function's call
            try:
                finish(self, outs)
            finally:
                mode.enabled = before
        self.leaves, self.gradients, self.grad_outputs = (), (), ()

    def __del__(self) -> None:
        with suppress(Exception):  # in a thread of the user, or at interpreter exit
            self.arrived = ()
            self.release()


# ---- a call that is replayed -----------------------------------------------------------------------------------------


class ReplayedNode(_CallNode):
    """The node of a call that was replayed.

    arena    the memory of the forward part; used: whether the backward part has overwritten it
    outs    the results of calling the function again if the edges lead to their graph, else None
    state   the values of State before the call
    counts  {position of a result that a gradient reads: its version counter}
    """

    __slots__ = ("counts", "outs", "replay", "arena", "state", "used")
    counts: dict[int, Any]
    state: list[tuple[Any, Any]]
    outs: list[Any] | None
    replay: Any
    arena: Any
    used: bool

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.replay is None:
            raise freed(self)
        traced = self.replay.traced
        arrived = traced.by_output(g)
        if traced.apart:
            self.note(traced, arrived)
        for i, count in self.counts.items():
            if count[0] > self.seq and any(i in traced.needed[k] for k in arrived):
                raise changed(self, traced.metas[i])
        if self.outs is not None:
            return tuple([arrived.get(i) for i in traced.outputs])
        return self.replay.gradients(self, arrived)

    def open(self) -> None:
        if self.replay is None or self.outs is not None:
            return
        self.replay.traced.leave(_DIFFERENTIATED)
        with suppress(Error):  # propagate() raises it if the pass gets here
            self.stand_aside()

    def stand_aside(self) -> bool:
        """Calls the function again and redirects the edges to its graph. Its nodes get sequence numbers just before
        this node's, as if the call had created them. False if the graph has nodes for which this may be wrong."""
        start = next_seq()
        outs, inside = self.replay.call_again(self)
        count = next_seq() - start
        if not all(isinstance(node, (OpNode, ViewWrite, Constant, Output)) for node in inside):
            return False
        counters: dict[int, Any] = {}  # of saved tensors that the function made and wrote to
        written = {id(version_counter_of(x)) for x in lib.norch_written_tensors(self.replay.recording)}
        for node in inside:
            for x in _saved_by(node):
                if x._version > start and id(x._version_counter) not in written:
                    counters[id(x._version_counter)] = x._version_counter
        for counter in counters.values():
            counter[0] = self.seq - 1 + (counter[0] - start) / count
        for node in inside:
            node.seq = self.seq - 1 + (node.seq - start) / count
        self.outs, self.edges = outs, tuple([gradient_edge(outs[i]) for i in self.replay.traced.outputs])
        return True

    def node_of(self, index: int) -> Node | None:
        """The function's own node of an output."""
        if self.replay is None:
            raise freed(self)
        at = self.replay.traced.outputs[index]
        if self.outs is None:
            self.replay.traced.leave(_HOOKED)
            if not self.stand_aside():
                raise Error(
                    f"{self.name()}: result {at} has no separate gradient, as another result depends on it; "
                    "call the function without compile"
                )
        assert self.outs is not None
        return gradient_edge(self.outs[at])

    def release(self) -> None:
        if self.replay is not None and self.replay.traced.apart and not self.frees_all(self.replay.traced):
            self.arena, self.used = None, True  # later passes call the function again
            return
        self.replay = self.arena = self.outs = None
        self.leaves, self.state, self.counts = (), [], {}


class _FreshGradients(ReplayedNode):
    """A node whose gradients are in newly allocated memory."""

    __slots__ = ()
    shares_grad = False


class JointReplay:
    """The steps of replays of a two-part recording besides its calls.

    differentiated  as in TracedNode
    needed     positions of results that gradients read
    returned   for each gradient, its index among those that the backward part returns, or None
    """

    def __init__(self, traced: TracedFunction, recording: Any, node: TracedNode, outs: list[Any], state: State):
        self.traced, self.recording, self.state = traced, recording, state
        self.differentiated = node.differentiated
        self.needed = frozenset().union(*traced.needed.values())
        count = 0
        self.returned: list[int | None] = []
        for g in node.gradients or ():
            self.returned.append(None if g is None else count)
            count += g is not None
        places = [lib.norch_result_of(recording, len(outs) + i) for i in range(count)]
        self.node_class = _FreshGradients if all(isinstance(at, int) and at == -1 for at in places) else ReplayedNode

    def attach(self, outs: Any, leaves: tuple[Any, ...]) -> None:
        """Gives results, and the arena with their memory, a history."""
        node = _new(self.node_class)  # with a number, without hooks
        node.edges = tuple([gradient_edge(leaves[to]) if type(to) is int else to for to in self.traced.edges])
        node.replay, node.leaves, node.arena, node.used, node.outs = self, leaves, outs[-1], False, None
        node.arrived, node.left = (), None
        node.state, self.state.values = self.state.values, []
        node.generators = [(state, state[0], state[1] - count) for state, count in self.traced.draws]
        for i in self.traced.severed:
            outs[i]._view = SEVERED
        node.counts = {i: version_counter_of(outs[i]) for i in self.needed}
        self.traced.set_history(node, outs)

    def gradients(self, node: Any, grads: dict[int, Any]) -> tuple[Any, ...]:
        """The gradients of a call, by replaying the backward part if possible."""
        traced, differentiated = self.traced, self.differentiated
        if not mode.enabled and not node.used:
            if len(grads) <= len(differentiated) and all(i in differentiated for i in grads):
                inputs = [grads[i].contiguous() if i in grads else zeros_of(traced.metas[i]) for i in differentiated]
                out = lib.norch_replay_gradient(self.recording, (*node.leaves, *inputs), node.seq, node.arena)
                if type(out) is tuple:
                    node.used = True
                    return traced.only_reached([None if k is None else out[k] for k in self.returned], grads)
                if out is not NotImplemented:
                    raise changed(node, out)
            else:
                traced.widen(traced.in_tree, set(grads))
        outs, _ = self.call_again(node)
        return walk_apart(
            node.edges, [(gradient_edge(outs[i]), g) for i, g in grads.items()], mode.enabled, mode.enabled
        )

    def call_again(self, node: ReplayedNode) -> tuple[list[Any], set[Node]]:
        """TracedFunction.call_again(); Error if the function would compute another result now."""
        with enable_grad():  # as in the call
            answer = lib.norch_computes_again(self.recording, node.leaves, node.seq)
        if isinstance(answer, str):
            raise Error(f"{node.name()}: {_AGAIN} {answer}; {_KEEP}")
        if answer is not None:
            raise changed(node, answer)
        node.__class__ = ReplayedNode  # two edges may get one tensor
        return self.traced.call_again(node)
