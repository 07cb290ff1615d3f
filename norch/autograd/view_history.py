"""The history of views, and how a write through one changes it.

A view keeps its base and the steps by which it was taken. A write through a view changes the base, whose history
becomes "the old base, with this region replaced" (a ViewWrite node). The history of every other view of that base is
then outdated. It is rebuilt when its gradient edge is next asked for (refresh).
"""

from __future__ import annotations

from collections.abc import Callable

from .._handle import alias
from .._lib import lib
from .._typing import Any
from ..errors import Error, OutOfMemoryError
from .grad_mode import enable_grad, mode, no_grad
from .hooks import retaining
from .levels import zeros_of
from .node import Leaf, Node

# (earlier steps or None, function, arguments, number of steps): a linked list, so a view of a view takes constant time.
Steps = tuple[Any, Callable[..., Any], tuple[Any, ...], int]
MOST_STEPS = 32  # of a view; of more, one step stands for those that it can, so that memory is constant too

# place(x, size, stride, shift, x_stride): the step that stands for others, the view of these strides of a tensor with
# the strides x_stride. ops/view.py puts its own here.
place: Any = None


class View:
    """The base of a view and the steps that lead to it."""

    __slots__ = ("base", "node", "steps")

    base: Any
    steps: Steps | None  # None of SEVERED and UNRECORDED
    node: Any  # the node of the base when the history of the view was made


class _Nowhere:
    _node = None


# The _view of a view taken under no_grad() from a tensor that requires grad, and of an input that a Function returned.
# A write through it could not be recorded, and raises.
SEVERED = View()
# That of other views taken under no_grad(). A recorded write through it would leave its base without history, and
# raises. A result of a function that computes under no_grad() may have it beside a node of its own, and is no view.
UNRECORDED = View()
for _view in (SEVERED, UNRECORDED):
    _view.base, _view.steps, _view.node = _Nowhere(), None, None


def base_of(x: Any) -> Any:
    """The tensor that x is a recorded view of; None where there is none."""
    return None if x._view is None or type(x._view.base) is _Nowhere else x._view.base


def apply_steps(x: Any, steps: Steps | None) -> Any:
    """Applies the steps of a view to x, its base or a gradient of the base."""
    path = []
    while steps is not None:
        steps, step, arguments, _ = steps
        path.append((step, arguments))
    for step, arguments in reversed(path):
        x = step(x, *arguments)
    return x


def view_of(x: Any, step: Callable[..., Any], arguments: tuple[Any, ...]) -> View:
    """The View of step(x, *arguments)."""
    through = x._view
    view = View()  # filled from here: a view is taken often, and an __init__ would cost as much again
    if through is None:
        view.base = x
        view.steps = (None, step, arguments, 1)
        view.node = x._node
        return view
    steps: Any = through.steps
    if steps is None:
        if through is SEVERED or x._node is None:
            return through
        view.base, view.steps, view.node = x, (None, step, arguments, 1), x._node
        return view
    count = steps[3]
    if count >= MOST_STEPS:
        steps = _shortened(x, through)
        count = steps[3]
    view.base = base = through.base
    view.steps = (steps, step, arguments, count + 1)
    view.node = base._node
    return view


def _shortened(x: Any, view: View) -> Steps:
    """Few steps that lead to x: its strides within the base, or within the first view of the base that has its dtype,
    as the real numbers of complex ones. The steps of view where the base overlaps itself, or has other memory by now,
    and those of batched tensors."""
    path: list[Steps] = []
    steps: Any = view.steps
    while steps is not None:
        path.append(steps)
        steps = steps[0]
    if hasattr(x, "_physical") or lib.norch_overlaps_itself(view.base) or not lib.norch_shares_storage(view.base, x):
        return path[0]
    whole = view.base
    with no_grad():
        while whole._dtype != x._dtype:
            steps = path.pop()
            whole = steps[1](alias(whole), *steps[2])
    shift = x._offset - whole._offset if x._numel else 0
    arguments = (lib.norch_shape(x), lib.norch_strides(x), shift, lib.norch_strides(whole))
    return (steps, place, arguments, 1 if steps is None else steps[3] + 1)


def _layout_of(view: View) -> tuple[int, ...] | None:
    """The strides of the base of a view, if they are not those of a contiguous tensor and a step depends on them."""
    steps = view.steps
    while steps is not None and steps[1] is not place:
        steps = steps[0]
    return None if steps is None or view.base.is_contiguous() else lib.norch_strides(view.base)


def same_history(a: Any, b: Any) -> bool:
    """Whether a and b, views of the same elements, have the same base, so that writing b into a changes nothing.
    x[i] += 1 ends with such a write (ops/getitem.py)."""
    if a._view is None or b._view is None or a._view is SEVERED:
        return not mode.enabled
    return a._view.base is b._view.base


def refresh(x: Any) -> None:
    """Takes the view x again from its base, whose history has changed."""
    view = x._view
    base_node = view.base._node
    if base_node is not None and type(base_node) is not Leaf:
        try:
            with enable_grad():
                again = apply_steps(view.base, view.steps)
        except OutOfMemoryError:
            raise
        except Error:  # the base has changed so that the steps fail
            again = None
        if again is None or not lib.norch_is_same(again, x):
            raise Error(
                "a view of a tensor whose shape or memory was changed in place has lost its history: take it again"
            )
        if x._node is not None and x._node.hooks is not None:
            _move_kept(x, again._node)
        x._node = again._node
    view.node = base_node


def rebase_history(x: Any, node: Node) -> None:
    """Makes node the history of x after a write; if x is a view, that of its base changes."""
    view, whole = x._view, x
    if view is UNRECORDED:
        view = None
    if view is not None:
        whole = view.base
        node = ViewWrite(view, node)
    if whole._node is not None and whole._node.hooks is not None:
        _move_kept(whole, node)
    whole._node = node
    if view is not None and x._node is not None and x._node.hooks is not None:
        refresh(x)


def _move_kept(x: Any, node: Node) -> None:
    """Moves the hook of retain_grad() to the new node, as it is to see the gradient of the present value of x."""
    hooks = x._node.hooks
    kept = retaining(hooks, x)
    if kept:
        x._node.hooks = [hook for hook in hooks if hook not in kept] or None
        node.hooks = [*(node.hooks or ()), *kept]


class Constant(Node):
    """A constant written over a former value, whose gradient is therefore 0."""

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (zeros_of(g),)


class ViewWrite(Node):
    """A base in which the region of a view was replaced."""

    __slots__ = ("layout", "steps")

    def __init__(self, view: View, node: Node):
        super().__init__(view.base._node, node)
        self.steps = view.steps
        self.layout = _layout_of(view)

    def propagate(self, g: Any) -> tuple[Any, ...]:
        g = g.contiguous()
        kept = None
        if self.edges[0] is not None:
            kept = g.clone() if self.layout is None else _laid_out(g, self.layout)
            apply_steps(kept, self.steps).zero_()
        return kept, apply_steps(g if self.layout is None else _laid_out(g, self.layout), self.steps)


def _laid_out(g: Any, stride: tuple[int, ...]) -> Any:
    """A copy of g with these strides."""
    shape = tuple(g.shape)
    ends = [(count - 1) * step for count, step in zip(shape, stride)]
    first = sum(end for end in ends if end < 0)
    memory = g.new_zeros(sum(map(abs, ends)) + 1 if g.numel() else 0)
    return place(memory, shape, stride, -first, (1,)).copy_(g)
