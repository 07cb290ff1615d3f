"""Levels of vmap, as far as reverse walks need them (norch/batching has the rest).

A batched tensor represents one sample, and its node does not know the batch. So a walk within vmap computes a gradient
for each sample. A walk outside enters a level through its results, and leaves it along an edge to a node older than the
level. All samples share that node, so their gradients are summed there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence

from .._binding.library import lib
from .._package.typing import Any
from .._tensor.handle import Handle, full_of, next_seq
from ..errors import Error
from .node import Leaf, Node

live_levels: Any = weakref.WeakSet()  # levels that a tensor or a node refers to; if empty, walks skip the sums


class _Within(threading.local):
    levels: tuple[Level, ...] = ()


within = _Within()  # the levels that run in this thread, the innermost last


class Level:
    """A run of vmap: a `with` while its function runs.

    size         the number of samples
    randomness   "error", "different" or "same"
    start        its first sequence number; nodes and levels inside have higher ones
    notes        a method of subclasses that runs library calls instead of the batching rules, or None
    """

    notes: Any = None
    own_rules: Any = None  # norch/batching/own_rules.py, which sets it; levels exist only when that package is imported
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
    """The interface of batched tensors to walks."""

    __slots__ = ()

    def levels(self) -> list[Level]:
        """The levels at which it is batched, the innermost first."""
        raise NotImplementedError

    def batched(self, x: Any) -> Any:
        """x, batched at every level at which this tensor is."""
        raise NotImplementedError

    def all_samples(self) -> Any:
        """The tensor of all samples of all levels."""
        raise NotImplementedError

    def sum_of_samples(self, level: Level) -> Any:
        """The sum over the samples of a level, recorded."""
        raise NotImplementedError


def sums_of_levels(check: Callable[[Node, Sequence[Any]], Sequence[Any]] | None, collects: bool) -> Any:
    """The check of a walk that may meet batched gradients: a function of a node and its gradients that sums those which
    leave a level. check: another check, called first. collects: whether the walk adds to .grad."""

    def sum_and_check(node: Node, grad_inputs: Sequence[Any]) -> Sequence[Any]:
        pairs = zip(node.edges, grad_inputs)  # propagate returns one per edge
        sums = [_sum_of_left(edge, g, collects) if isinstance(g, BatchedBase) and edge else g for edge, g in pairs]
        if check is not None:
            check(node, [g.all_samples() if isinstance(g, BatchedBase) else g for g in sums])
        return sums

    return sum_and_check


def _sum_of_left(edge: Node, g: Any, collects: bool) -> Any:
    """g, summed over each level that the edge leaves."""
    for level in g.levels():
        if edge.seq < level.start and level not in within.levels:
            g = g.sum_of_samples(level)
    if collects and type(edge) is Leaf and isinstance(g, BatchedBase):
        x: Any = edge.tensor()
        if x is not None and not isinstance(x, BatchedBase):
            raise Error(
                "backward: within vmap a leaf that is not batched would collect the gradients of all samples; take the "
                "gradients with norch.func.grad() or autograd.grad() instead"
            )
    return g


def batched_like(g: Any, output: Handle) -> Any:
    """g, a gradient of output, batched at the levels of output."""
    return output.batched(g) if isinstance(output, BatchedBase) else g


def all_samples(x: Any) -> Any:
    """The tensor of all samples if x is a batched tensor of vmap, else x."""
    return x.all_samples() if isinstance(x, BatchedBase) else x


def holds(condition: Any) -> bool:
    """Whether a tensor of bools holds everywhere, in all samples of vmap; True on the device "meta"."""
    whole = all_samples(condition)
    return whole.is_meta or bool(whole.all())


def occurs(condition: Any) -> bool:
    """Whether a tensor of bools holds anywhere, in any sample of vmap; False on the device "meta"."""
    whole = all_samples(condition)
    return not whole.is_meta and bool(whole.any())


def zeros_of(meta: Handle, *values: Any) -> Any:
    """Zeros of the shape, dtype and device of meta. values: tensors that will be written to the result, or index it; if
    vmap batches them, the result is batched too."""
    like: Any = None
    batched: list[Any] = [x for x in values if isinstance(x, BatchedBase)]
    for x in batched:
        like = x if like is None or like.levels() == x.levels() else like.new_zeros(()) + x.new_zeros(())
    return full_of(meta, 0.0) if like is None else like.new_zeros(lib.norch_shape(meta), dtype=meta.dtype)


def batching() -> Any:
    """The package that batches calls, imported at first use."""
    from importlib import import_module

    return import_module("norch.batching")
