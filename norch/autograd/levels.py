"""Levels of vmap, as far as reverse walks know them (norch/batching has the rest).

History is recorded above the batch: a batched tensor stands for one sample, and its node knows nothing of the others.
So a walk that is made within vmap gives a gradient for each sample. A walk that is made outside comes to the nodes of a
level through its results, and leaves it where an edge leads to what was made before the level began: what all samples
share gets the sum of their gradients there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence

from .._handle import Handle, next_seq
from .._typing import Any
from ..errors import Error
from .node import Leaf, Node

live_levels: Any = weakref.WeakSet()  # that a tensor or a node knows: without one, walks do not look


class _Within(threading.local):
    levels: tuple[Level, ...] = ()


within = _Within()  # the levels that run in this thread, the innermost last


class Level:
    """A run of vmap: a `with` while its function runs.

    size         how many samples
    randomness   "error", "different" or "same"
    start        when it began, a sequence number: what is recorded within has a higher one, as have levels within
    """

    __slots__ = ("__weakref__", "randomness", "size", "start")

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness, self.start = size, randomness, next_seq()
        live_levels.add(self)

    def __enter__(self) -> Level:
        within.levels = (*within.levels, self)
        return self

    def __exit__(self, *_: object) -> None:
        within.levels = within.levels[:-1]


class BatchedBase:
    """Of batched tensors what a walk needs."""

    __slots__ = ()

    def levels(self) -> list[Level]:
        """The levels that it is batched at, the innermost first."""
        raise NotImplementedError

    def batched(self, x: Any) -> Any:
        """x, batched at each level that this tensor is batched at."""
        raise NotImplementedError

    def all_samples(self) -> Any:
        """The tensor of all samples of all levels."""
        raise NotImplementedError

    def sum_of_samples(self, level: Level) -> Any:
        """The sum over the samples of a level, recorded."""
        raise NotImplementedError


def sums_of_levels(check: Callable[[Node, Sequence[Any]], Sequence[Any]] | None, collects: bool) -> Any:
    """A function of a node and the gradients that it gives, for a walk that may meet batched ones: sums them where they
    leave a level. check: what else is to be looked at. collects: whether the walk adds to .grad."""

    def review(node: Node, inputs: Sequence[Any]) -> Sequence[Any]:
        pairs = zip(node.edges, inputs)  # noqa: B905  (propagate gives one an edge)
        inputs = [_left(edge, g, collects) if isinstance(g, BatchedBase) and edge else g for edge, g in pairs]
        if check is not None:
            check(node, [g.all_samples() if isinstance(g, BatchedBase) else g for g in inputs])
        return inputs

    return review


def _left(edge: Node, g: Any, collects: bool) -> Any:
    for level in g.levels():
        if edge.seq < level.start and level not in within.levels:
            g = g.sum_of_samples(level)
    if collects and type(edge) is Leaf and isinstance(g, BatchedBase):
        x: Any = edge.tensor()
        if x is not None and not isinstance(x, BatchedBase):
            raise Error(
                "backward: within vmap a leaf that is not batched would collect a gradient of each sample; take the "
                "gradients with norch.func.grad() or autograd.grad() instead"
            )
    return g


def batched_like(g: Any, output: Handle) -> Any:
    """A gradient of output, for each of the samples that output is batched over."""
    return output.batched(g) if isinstance(output, BatchedBase) else g


def batching() -> Any:
    """The package that batches calls, which is imported when it is first needed."""
    from importlib import import_module

    return import_module("norch.batching")
