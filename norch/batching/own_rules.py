"""Batching rules that a program defines: vmap of an autograd.Function, and the rules of library.register_vmap()."""

from __future__ import annotations

import sys

from .._package.typing import Any, NamedTuple
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.levels import Level, within
from ..autograd.transforms import leaves, per_leaf, with_leaves
from ..errors import Error
from .level import batch, innermost, is_batched_at, spread, unbatch


class VmapInfo(NamedTuple):
    """The properties of the vmap that runs a rule."""

    batch_size: int
    randomness: str


def level_of(args: Any) -> Level | None:
    """The innermost level at which tensors in args are batched; None if none is."""
    level = innermost(leaves(args))
    return None if level is None or level.notes is not None else level


def by_rule(rule: Any, level: Level, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of rule(info, in_dims, *args, **named), which returns (results, out_dims): it gets the samples of a
    level along first axes, outside that level. Its operations are recorded."""
    tensors: list[Any] = leaves((args, named))
    if mode.enabled:  # samples have separate gradients by a tensor that they share
        tensors = [spread(x, level) if x.requires_grad and not is_batched_at(x, level) else x for x in tensors]
    args, named = with_leaves((args, named), tensors)
    whole = [unbatch(x, 0, level) if is_batched_at(x, level) else x for x in tensors]
    args_of_all, named_of_all = with_leaves((args, named), whole)
    levels = within.levels
    within.levels = tuple(other for other in levels if other is not level)
    try:
        info = VmapInfo(level.size, level.randomness)
        found = rule(info, _axes(args, level), *args_of_all, **named_of_all)
    finally:
        within.levels = levels
    if not isinstance(found, tuple) or len(found) != 2:
        raise Error("vmap: a rule must return two values, the results and the axes of their samples")
    result, out_dims = found
    outs = leaves(result)
    dims = per_leaf(out_dims, result, "out_dims")
    samples = (x if dim is None else batch(x, dim % x.ndim, level) for x, dim in zip(outs, dims, strict=True))
    return with_leaves(result, list(samples))


def _axes(x: Any, level: Level) -> Any:
    """The axis of the samples, 0, in place of each batched tensor of x, and None in place of other values."""
    if isinstance(x, dict):
        return {key: _axes(value, level) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        axes = [_axes(value, level) for value in x]
        return axes if isinstance(x, list) else tuple(axes)
    return 0 if isinstance(x, Handle) and is_batched_at(x, level) else None


Level.own_rules = sys.modules[__name__]
