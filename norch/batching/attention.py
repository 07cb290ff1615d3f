"""Rules of attention: the samples become a further leading axis."""

from __future__ import annotations

from typing import Any

from .._lib import lib
from ..autograd.levels import Level
from .level import become_all, fresh, rule, sample, samples


@rule("attention")
def _attention(level: Level, q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    return sample(lib.norch_attention(*(samples(x, level) for x in (q, k, v)), scale, causal), level)


@rule("attention_backward")
def _attention_backward(level: Level, g: Any, q: Any, k: Any, v: Any, scale: float, causal: bool, grads: Any) -> None:
    found = [fresh(x, level) for x in grads]
    lib.norch_attention_backward(*(samples(x, level) for x in (g, q, k, v)), scale, causal, found)
    become_all(grads, found, level)


@rule("attention_fuses")
def _attention_fuses(level: Level, q: Any, k: Any, v: Any) -> bool:
    return False  # the other kernel takes leading axes of any number
