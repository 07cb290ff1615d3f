"""Distributions and transforms of float16 and bfloat16 compute in float32 and round values and gradients once, as
ops/_halves.py does. Subclasses need no decorator: their base wraps the methods of WIDE that they define.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from .._binding.library import lib
from .._tensor.size import Size
from ..autograd import enable_grad
from ..autograd.halves import HALVES
from ..dtype import DTYPES, finfo, float32
from ..tensor import Tensor

# Methods and properties of distributions and transforms that compute in float32.
WIDE = (
    "log_prob", "cdf", "icdf", "entropy", "perplexity", "mean", "mode", "variance", "stddev", "probs", "logits",
    "log_survival_function", "_call", "_inverse", "log_abs_det_jacobian",
)  # fmt: skip


class ComputesWide:
    """The base of distributions and transforms: wraps the methods of a subclass that WIDE names."""

    _of_halves: bool | None = None  # whether a parameter is a float16 or bfloat16; None: not known
    _checks_in: Any = None  # the dtype whose rounding checks allow, in float32 copies
    _declared: ClassVar[Any]  # the class itself, or the base of a class of the user that norch declares

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith(f"{__package__}."):  # a class of the user sees the dtypes that it was given
            return
        cls._declared = cls  # as_torch() renames its module later
        for name in WIDE:
            method = cls.__dict__.get(name)
            if isinstance(method, property):
                setattr(cls, name, method.getter(_wide(method.fget)))
            elif isinstance(method, functools.cached_property):
                method.func = enable_grad()(_wide(method.func))  # the first caller may be sample(), under no_grad()
            elif callable(method):
                setattr(cls, name, _wide(method))

    def _inside(self, y: Tensor) -> Tensor:
        """y, rounded by _call() of a transform. Where rounding left the codomain, y is moved back into it."""
        return y


def _wide(function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def computed(self: Any, *arguments: Any, **named: Any) -> Any:
        of_halves = self._of_halves
        values = (*arguments, *named.values()) if of_halves is False else (self, *arguments, *named.values())
        if not (of_halves or holds_halves(values)) or holds_caches(self):
            return function(self, *arguments, **named)
        out = rounded_once(functools.partial(function, **named), self, *arguments)
        return self._inside(out) if function.__name__ == "_call" else out

    return computed


_PLAIN = frozenset((bool, float, int, str, Size, type(None)))


def holds_halves(values: Iterable[Any]) -> bool:
    """Whether value is or contains a float16 or bfloat16 tensor. value may be a distribution, transform, list or tuple
    of them.
    """
    for x in values:
        kind = type(x)
        if kind is Tensor:
            if x._dtype in HALVES:
                return True
        elif kind in _PLAIN:
            continue
        elif isinstance(x, Tensor):
            if x._dtype in HALVES:
                return True
        elif isinstance(x, ComputesWide):
            if holds_halves(x.__dict__.values()) if x._of_halves is None else x._of_halves:
                return True
        elif (kind is list or kind is tuple) and holds_halves(x):
            return True
    return False


def holds_caches(x: ComputesWide) -> bool:
    """Whether x consists of caching transforms. Each of these computes by itself, so that its cache is used."""
    parts = [item for value in x.__dict__.values() for item in (value if type(value) is list else [value])]
    return any(
        isinstance(item, ComputesWide) and (getattr(item, "_cache_size", 0) or holds_caches(item)) for item in parts
    )


def rounded_once(function: Any, *operands: Any, finite: bool = False) -> Any:
    """Calls function(*operands) with halves as float32. The result has the dtype that the operands promote to. finite
    replaces what would be rounded to infinity by the largest number.
    """
    copies: dict[int, tuple[Any, Any]] = {}
    wide = [_widened(x, copies) for x in operands]
    kind = DTYPES[lib.norch_result_type(tuple(x for x, _ in copies.values() if isinstance(x, Tensor)))]
    for _, copy in copies.values():
        if isinstance(copy, ComputesWide) and kind.itemsize == 2:
            copy._checks_in = kind
    out = function(*wide)
    if not isinstance(out, Tensor) or out.dtype is not float32:
        return out
    if finite and kind.itemsize == 2:
        out = out.clamp(-finfo(kind).max, finfo(kind).max)
    unchanged = next((x for x, copy in copies.values() if copy is out), None)
    return unchanged if unchanged is not None and unchanged.dtype is kind else out.to(kind)


def _widened(x: Any, copies: dict[int, tuple[Any, Any]]) -> Any:
    """A copy of x with 16-bit floats as float32. copies has the original and its copy, by id() of the original."""
    if id(x) in copies:
        return copies[id(x)][1]
    result = x
    if isinstance(x, Tensor):
        if x.dtype.is_floating_point:
            result = x.float() if x._dtype in HALVES else x
            copies[id(x)] = x, result
    elif isinstance(x, ComputesWide):
        result = object.__new__(type(x))
        copies[id(x)] = x, result
        names = x._parameter_names() if hasattr(x, "_parameter_names") else ()
        for name, value in x.__dict__.items():
            if name in names or not isinstance(getattr(type(x), name, None), functools.cached_property):
                result.__dict__[name] = _widened(value, copies)  # cached properties are computed again
        result._of_halves = False
    elif type(x) in (list, tuple):
        result = type(x)(_widened(item, copies) for item in x)
    return result
