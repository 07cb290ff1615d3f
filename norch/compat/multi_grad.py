"""Hooks on several tensors: ``torch.autograd.graph.register_multi_grad_hook``, and which backward() runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.engine import visit
from ..autograd.hooks import CallbackHandle, RemovableHandle
from ..autograd.record import gradient_edge
from ..autograd.targets import reachable
from ..errors import ArgumentError

_VISIT = visit.__code__


def walk() -> Any:
    """The frame of the backward pass that runs in this thread and calls this; None outside of backward()."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not _VISIT:
        frame = frame.f_back
    return frame


def _to_come(frame: Any) -> set[Any]:
    """The nodes that a backward pass has yet to visit."""
    names = frame.f_locals
    targets = names["targets"]
    starts = [names["node"], *(node for _, node in names["waiting"])]
    ends = targets.found if targets is not None and targets.is_boundary else ()
    nodes = reachable([node for node in starts if node is not None], ends)
    return nodes if targets is None else nodes & targets.needed


class _State:
    """For one backward pass: the gradients so far, and how many there will be."""

    def __init__(self, of: Any, count: int) -> None:
        self.of, self.gradients, self.left = of, [None] * count, 0


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Calls fn(gradients) when a backward() has computed the gradients of all tensors: a list with None for tensors
    that it does not reach. mode="any": fn(gradient) for the first only. fn must not change them.

    >>> a, b = (norch.ones(2, requires_grad=True) for _ in range(2))
    >>> handle = norch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(len(grads)))
    >>> (a * b).sum().backward()
    2
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode is 'all' or 'any', not {mode!r}")
    nodes = [gradient_edge(x) for x in tensors]
    states: dict[int, _State] = {}  # by thread: the state of the backward pass in it
    lock = threading.Lock()

    def came(i: int, grad: Any) -> None:
        frame, thread = walk(), threading.get_ident()
        of = None if frame is None else frame.f_locals["gradients"]  # identifies the pass: each has its own dict
        with lock:
            state = states.get(thread)
            if state is None or state.of is not of:
                state = states[thread] = _State(of, len(nodes))
                others = set() if frame is None else _to_come(frame)
                state.left = 1 + sum(node in others for k, node in enumerate(nodes) if k != i)
            state.gradients[i] = grad
            state.left -= 1
            first, last = sum(g is not None for g in state.gradients) == 1, state.left == 0
        if mode == "any" and first:
            fn(grad)
        elif mode == "all" and last:
            fn(state.gradients)

    handles = [x.register_hook(lambda grad, i=i: came(i, grad)) for i, x in enumerate(tensors)]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return CallbackHandle(remove)
