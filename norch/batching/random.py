"""Batching rules of random operations, which follow vmap's option randomness=."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from ..autograd.levels import Level, within
from ..errors import Error
from ..ops.op import OPCODES
from .level import Draws, become, fresh, is_here, rule, sample, samples

_MUL, _LT = OPCODES["mul"], OPCODES["lt"]


def _differ(level: Level) -> bool:
    """Whether samples get different numbers; Error for randomness="error"."""
    if level.randomness == "error":
        raise Error(
            "vmap: a random operation was called, and randomness is 'error'; pass 'different' to draw for each sample, "
            "or 'same' to draw once for all"
        )
    return level.randomness == "different"


def _outside(state: Any, level: Level) -> Any:
    """The generator state for a call outside the level: an address, or Draws for the next level."""
    if not isinstance(state, Draws):
        return state
    outer = [outer_level for outer_level in within.levels if outer_level.start < level.start]
    return Draws(state.address, outer[-1]) if outer else state.address


def _drawn(name: str) -> None:
    """Defines the rule of a call that draws numbers of a given shape."""
    call = getattr(lib, f"norch_{name}")

    def draw(level: Level, state: Any, shape: Any, *rest: Any) -> Any:
        state_outside = _outside(state, level)
        if not _differ(level):
            return call(state_outside, shape, *rest)
        return sample(call(state_outside, (level.size, *shape), *rest), level)

    rule(name)(draw)


for _name in ("rand", "randn", "randint"):
    _drawn(_name)


@rule("randperm")
def _randperm(level: Level, state: Any, n: int, device: Any) -> Any:
    state = _outside(state, level)
    if not _differ(level):
        return lib.norch_randperm(state, n, device)
    rows = [lib.norch_randperm(state, n, device) for _ in range(level.size)]
    return sample(lib.norch_stack(rows, 0), level)


@rule("bernoulli")
def _bernoulli(level: Level, state: Any, p: Any) -> Any:
    state = _outside(state, level)
    if _differ(level):
        return sample(lib.norch_bernoulli(state, samples(p, level)), level)
    if not is_here(p, level):
        return lib.norch_bernoulli(state, p)
    u = lib.norch_rand(state, lib.norch_shape(p), p._dtype, (p._device_type, p._device_index))
    return sample(lib.norch_cast(lib.norch_binary(_LT, u, p._physical), p._dtype), level)


@rule("dropout")
def _dropout(level: Level, state: Any, x: Any, p: float, scale: float, mask: Any) -> Any:
    state = _outside(state, level)
    if _differ(level):
        kept = fresh(mask, level)
        out = lib.norch_dropout(state, samples(x, level), p, scale, kept)
        become(mask, kept, level)
        return sample(out, level)
    if not is_here(x, level):
        return lib.norch_dropout(state, x, p, scale, mask)
    ones = lib.norch_full(lib.norch_shape(x), x._dtype, 1.0, 1, (x._device_type, x._device_index))
    factors = lib.norch_dropout(state, ones, p, scale, mask)
    return sample(lib.norch_binary(_MUL, x._physical, factors), level)
