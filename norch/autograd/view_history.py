"""The history of views, and how writing through one changes it.

A view keeps its base and its view functions, the calls that lead from the base to it. A write through a view changes
the base, whose history becomes "the old base with this region replaced" (a ViewWrite node). The histories of all other
views of that base are then outdated, and each is rebuilt when its gradient edge is next read (refresh).

The view functions are also applied to the gradient of the base, and must give a view of it, or a write through that
view would be lost. So a ViewWrite gives the gradient the base's strides, on which alone it depends whether reshape() is
a view.

t_() and similar methods change the shape of a base in place. The view functions of an older view would then lead to
other elements, so settle() replaces them by one: the view's strides within the memory of the base.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .._binding.library import lib
from .._package.typing import TYPE_CHECKING, Any
from .._tensor.handle import alias
from ..errors import Error, OutOfMemoryError
from .grad_mode import enable_grad, mode, no_grad
from .hooks import retaining
from .levels import zeros_of
from .node import Leaf, Node

# (earlier ViewFns or None, function, arguments, length): a linked list, so a view of a view takes constant time.
ViewFns = tuple[Any, Callable[..., Any], tuple[Any, ...], int]
MOST_VIEW_FNS = 32  # of a view; beyond that, one replaces as many as possible, to bound memory

# place(x, size, stride, shift, x_stride): a view function that replaces others, taking a view with these strides of
# a tensor with strides x_stride. ops/view.py sets it.
place: Any = None


if TYPE_CHECKING:

    class View:
        """The base of a view and the view functions that lead to it."""

        base: Any
        view_fns: ViewFns | None  # None for SEVERED and UNRECORDED
        node: Any  # the node of the base when the history of the view was made
else:
    View = lib.norch_view_class()


class _Nowhere:
    _node = None


# The _view of a view taken under no_grad() from a tensor that requires grad, and of an input that a Function returned.
# A write through it could not be recorded, and raises.
SEVERED = View()
# The _view of other views taken under no_grad(). A recorded write through one raises, as it would leave the base
# without history. The result of a function that computes under no_grad() may have it too, besides a node; it is then
# not a view.
UNRECORDED = View()
for _view in (SEVERED, UNRECORDED):
    _view.base, _view.view_fns, _view.node = _Nowhere(), None, None


def base_of(x: Any) -> Any:
    """The tensor that x is a recorded view of, or None."""
    return None if x._view is None or type(x._view.base) is _Nowhere else x._view.base


def apply_view_fns(x: Any, view_fns: ViewFns | None) -> Any:
    """Applies the view functions of a view to x, its base or a gradient of the base."""
    path = []
    while view_fns is not None:
        view_fns, view_fn, arguments, _ = view_fns
        path.append((view_fn, arguments))
    for view_fn, arguments in reversed(path):
        x = view_fn(x, *arguments)
    return x


def view_of(x: Any, view_fn: Callable[..., Any], arguments: tuple[Any, ...]) -> View:
    """The View of view_fn(x, *arguments), x being a view; csrc/python/view_history.c makes those of other tensors."""
    through, view = x._view, View()
    view_fns: Any = through.view_fns
    if view_fns is None:
        if through is SEVERED or x._node is None:
            return through
        view.base, view.view_fns, view.node = x, (None, view_fn, arguments, 1), x._node
        return view
    count = view_fns[3]
    if count >= MOST_VIEW_FNS:
        view_fns = _shortened(x, through)
        count = view_fns[3]
    view.base = base = through.base
    view.view_fns = (view_fns, view_fn, arguments, count + 1)
    view.node = base._node
    return view


def _shortened(x: Any, view: View) -> ViewFns:
    """A short list of view functions that leads to x, or the view functions of view if there is none."""
    view_fns: Any = view.view_fns
    return _placed(x, view) or view_fns


def _placed(x: Any, view: View) -> ViewFns | None:
    """The view functions to x by its strides within the base, or within a view of the base that has x's dtype (real
    numbers within complex ones). None if the base overlaps itself or its memory was replaced, and for batched
    tensors."""
    base = view.base
    if hasattr(x, "_physical") or lib.norch_overlaps_itself(base) or not lib.norch_shares_storage(base, x):
        return None
    path: list[ViewFns] = []
    rest: Any = view.view_fns
    while rest is not None:
        path.append(rest)
        rest = rest[0]
    with no_grad():
        whole, view_fns = _seen_in(x._dtype, alias(base), path)
        if whole._dtype != x._dtype or (is_moved(x) and not contains(whole, x)):
            return None
    shift = x._offset - whole._offset if x._numel else 0
    strides = lib.norch_shape(x), lib.norch_strides(x), shift, lib.norch_strides(whole)
    return (view_fns, place, strides, 1 if view_fns is None else view_fns[3] + 1)


def _seen_in(dtype: int, whole: Any, path: list[ViewFns]) -> tuple[Any, ViewFns | None]:
    """The first view of whole with this dtype, and the view functions to it, which are the end of path."""
    view_fns: ViewFns | None = None
    while whole._dtype != dtype and path:
        _, view_fn, arguments, _ = path.pop()
        viewed = _applied(whole, (None, view_fn, arguments, 1))
        if viewed is not None and lib.norch_shares_storage(viewed, whole):
            whole, view_fns = viewed, (view_fns, view_fn, arguments, 1 if view_fns is None else view_fns[3] + 1)
    return whole, view_fns


def _applied(x: Any, view_fns: ViewFns | None) -> Any:
    """apply_view_fns(), or None if x does not allow the view functions."""
    try:
        return apply_view_fns(x, view_fns)
    except OutOfMemoryError:
        raise
    except Error:
        return None


def reach(shape: Sequence[int], stride: Sequence[int], shift: int = 0) -> tuple[int, int]:
    """The lowest and highest element that strides reach from the element at shift."""
    ends = [(count - 1) * step for count, step in zip(shape, stride)]
    return shift + sum(end for end in ends if end < 0), shift + sum(end for end in ends if end > 0)


def contains(whole: Any, x: Any) -> bool:
    """Whether all elements of x are elements of whole, a tensor of the same storage without overlap."""
    if not x._numel or not whole._numel:
        return not x._numel
    shift = x._offset - whole._offset
    low, high = reach(lib.norch_shape(whole), lib.norch_strides(whole))
    first, last = reach(lib.norch_shape(x), lib.norch_strides(x), shift)
    if first < low or last > high:
        return False
    if high - low + 1 == whole._numel:
        return True
    marks = whole.new_zeros(high - low + 1)
    place(marks, lib.norch_shape(whole), lib.norch_strides(whole), -low, (1,)).fill_(1)
    return bool((place(marks, lib.norch_shape(x), lib.norch_strides(x), shift - low, (1,)) != 0).all())


def is_moved(x: Any) -> bool:
    """Whether the view functions of view x may lead to other elements, because a tensor with these elements changed its
    shape in place or the base's memory was replaced."""
    version = x._version_counter
    return version is not x._view.base._version_counter or (version is not None and len(version) > 1)


def settle(x: Any) -> None:
    """Makes the view functions of view x lead to it from its base's current shape, for a write. Error if that is
    impossible."""
    view = x._view
    with no_grad():
        again = _applied(view.base, view.view_fns)
    if again is None or not lib.norch_is_same(again, x):
        view_fns = _placed(x, view)
        if view_fns is None:
            raise Error(_LOST)
        view.view_fns = view_fns


_LOST = "a view of a tensor whose shape or memory was changed in place has lost its history: take it again"


def same_history(a: Any, b: Any) -> bool:
    """Whether views a and b of the same elements have the same base, so that writing b into a changes nothing. x[i] +=
    1 ends with such a write (ops/getitem.py)."""
    if a._view is None or b._view is None or a._view is SEVERED:
        return not mode.enabled
    return a._view.base is b._view.base


def refresh(x: Any) -> None:
    """Takes view x again from its base, whose history has changed."""
    view = x._view
    base_node = view.base._node
    if base_node is not None and type(base_node) is not Leaf:
        with enable_grad():
            again = _applied(view.base, view.view_fns)
            if (again is None or not lib.norch_is_same(again, x)) and (view_fns := _placed(x, view)) is not None:
                view.view_fns = view_fns
                again = apply_view_fns(view.base, view_fns)
        if again is None or not lib.norch_is_same(again, x):
            if _is_reshaped(base_node, view.node):
                return  # nothing was written, so x keeps its history
            raise Error(_LOST)
        if x._node is not None and x._node.hooks is not None:
            _move_kept(x, again._node)
        x._node = again._node
    view.node = base_node


def _is_reshaped(node: Node | None, former: Node | None) -> bool:
    """Whether a tensor with this history has only changed its shape in place since it had the former one."""
    while node is not former:
        if node is None or not node.of_view:
            return False
        node = node.edges[0]
    return True


def rebase_history(x: Any, node: Node) -> None:
    """Makes node the history of x after a write; if x is a view, the history of its base."""
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
    """Moves the hook of retain_grad() to the new node, where the gradient of x's current value arrives."""
    hooks = x._node.hooks
    retaining_hooks = retaining(hooks, x)
    if retaining_hooks:
        x._node.hooks = [hook for hook in hooks if hook not in retaining_hooks] or None
        node.hooks = [*(node.hooks or ()), *retaining_hooks]


class Constant(Node):
    """A constant written over an older value, whose gradient is therefore 0."""

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (zeros_of(g),)


class ViewWrite(Node):
    """A base after the region of a view was replaced."""

    __slots__ = ("view_fns", "strides")

    def __init__(self, view: View, node: Node):
        super().__init__(view.base._node, node)
        self.view_fns = view.view_fns
        self.strides = None if view.base.is_contiguous() else lib.norch_strides(view.base)

    def propagate(self, g: Any) -> tuple[Any, ...]:
        g = self._laid_out(g)
        outside = None
        if self.edges[0] is not None:
            outside = self._laid_out(g, copied=True)
            self._part(outside).zero_()
        return outside, self._part(g)

    def _part(self, g: Any) -> Any:
        """The region of the gradient g, as a view of it."""
        part = apply_view_fns(g, self.view_fns)
        if not lib.norch_shares_storage(part, g):
            raise Error("the region of a write is not a view of the gradient, which has other strides than the base")
        return part

    def _laid_out(self, g: Any, copied: bool = False) -> Any:
        """g with the strides of the base; a copy if its strides differ or if a copy is requested."""
        if self.strides is None:
            return g.clone() if copied else g.contiguous()
        shape, stride = lib.norch_shape(g), self.strides
        if (orders := _order_of_axes(shape, stride)) is not None:
            g = g.permute(orders[0])
            return (g.clone() if copied else g.contiguous()).permute(orders[1])
        low, high = reach(shape, stride)
        return place(g.new_zeros(high - low + 1), shape, stride, -low, (1,)).copy_(g)


@functools.lru_cache(256)
def _order_of_axes(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[list[int], list[int]] | None:
    """The order of axes in which a tensor with these strides is contiguous, and the inverse order; None if there is
    none."""
    order = sorted(range(len(shape)), key=lambda i: -stride[i])
    count = 1
    for i in reversed(order):
        if shape[i] != 1 and stride[i] != count:
            return None
        count *= shape[i]
    return order, [order.index(i) for i in range(len(order))]
