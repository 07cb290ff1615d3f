"""How autocast casts. A function whose declaration has a column `autocast` casts its arguments by that policy, and runs
with autocast off, so that a composed operation is cast as one.

    @composed(autocast="lower")      for wrappers that exist anyway
    @autocast("float32 -")           for a function without one

The column has a policy for the CPU and one for CUDA, or one for both. The policies are PyTorch 2.13's, for CUDA in
aten/src/ATen/autocast_mode.h, for the CPU in autocast_mode.cpp.

    lower     casts to autocast's dtype
    float32   casts to float32
    widest    casts to float32 if an argument has it, else to autocast's dtype
    refused   raises an Error
    off       casts nothing, nor do the steps of the function
    -         no policy: each step of the function has its policy or none

While no thread casts, a function only tests `mode.casting`. Functions of rows of csrc/ops.def test in C
(csrc/python/calls.c) whether their thread casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._binding.library import constants
from .._package.typing import Any, TypeVar
from .._tensor.handle import Handle
from ..autograd.autocast import Setting, modes_of
from ..autograd.grad_mode import mode
from ..autograd.node import Leaf
from ..dtype import DTYPES
from ..dtype import dtype as DType
from ..errors import DTypeError, Error
from ._cast import cast
from ._instead import wraps

F = TypeVar("F", bound=Callable[..., Any])
# Codes of the dtypes that are cast; float64 and complex ones stay.
_FLOAT32 = constants["FLOAT32"]
_FLOATS = (constants["FLOAT16"], constants["BFLOAT16"], _FLOAT32)


# ---- declarations --------------------------------------------------------------------------------------------------


def policy(columns: str) -> Callable[[F], F]:
    """Decorates a function that calls in_autocast() itself, with its policy."""

    def decorate(function: Any) -> Any:
        if columns:
            function.autocast, function.casts = _names(columns), casts_of(columns)
        return function

    return decorate


def _names(columns: str) -> tuple[str, str]:
    """The policies on the CPU and on CUDA."""
    names = columns.split()
    return names[0], names[-1]


def casts_of(columns: str) -> int:
    """The modes of a thread (csrc/python/modes.h) for which there is a policy."""
    return modes_of(name != "-" for name in _names(columns)) if columns else 0


def autocast(columns: str) -> Callable[[F], F]:
    """Decorates a function with its policy."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def cast_first(*arguments: Any, **named: Any) -> Any:
            if mode.casting and (out := in_autocast(cast_first, *arguments, **named)) is not None:
                return out
            return function(*arguments, **named)

        return policy(columns)(cast_first)

    return decorate


def in_autocast(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """Calls a function with arguments that are cast by its policy, and returns the result. Returns None if this thread
    or the device does not cast; the function then continues with its arguments.
    """
    setting = mode.autocast
    if setting is None or not setting.modes & getattr(function, "casts", 0):
        return None
    tensors = _tensors((*arguments, *named.values()) if named else arguments)
    device = max([x._device_type for x in tensors], default=len(setting.enabled))  # on "meta" nothing is cast
    if device >= len(setting.enabled) or not setting.enabled[device] or (name := function.autocast[device]) == "-":
        return None
    to = _POLICIES[name](function.__name__.strip("_"), setting.dtypes[device], tensors)
    if to is not None:
        arguments = tuple([_cast(value, to, device, setting) for value in arguments])
        named = {key: _cast(value, to, device, setting) for key, value in named.items()}
    try:
        mode.autocast = setting.off
        return function(*arguments, **named)
    finally:
        mode.autocast = setting


# ---- which dtype ---------------------------------------------------------------------------------------------------


def _tensors(values: Iterable[Any]) -> list[Any]:
    """The tensors among arguments, and in lists and tuples of them."""
    tensors = []
    for value in values:
        if isinstance(value, Handle):
            tensors.append(value)
        elif type(value) in (list, tuple):
            tensors += [x for x in value if isinstance(x, Handle)]
    return tensors


def _float32(name: str, dtype: DType, tensors: list[Any]) -> DType:
    return DTYPES[_FLOAT32]


def _widest(name: str, dtype: DType, tensors: list[Any]) -> DType:
    """float32 if one of the tensors has it, else dtype. Another half float is refused, as by PyTorch."""
    codes = {x._dtype for x in tensors}
    if _FLOAT32 in codes:
        return _float32(name, dtype, tensors)
    for code in codes.intersection(_FLOATS):
        if code != dtype.code:
            raise DTypeError(f"{name}: autocast to {dtype.name} does not promote {DTYPES[code].name}")
    return dtype


def _refused(name: str, dtype: DType, tensors: list[Any]) -> DType:
    raise Error(
        f"{name}: its logarithms overflow in half precision, so autocast refuses it; leave out the sigmoid before it "
        "and use binary_cross_entropy_with_logits or BCEWithLogitsLoss, which autocast computes in float32"
    )


# For each policy a function of the operation, autocast's dtype and the tensors: the dtype to cast to, or None.
_POLICIES: dict[str, Callable[[str, DType, list[Any]], DType | None]] = {
    "off": lambda name, dtype, tensors: None,
    "lower": lambda name, dtype, tensors: dtype,
    "float32": _float32,
    "widest": _widest,
    "refused": _refused,
}


# ---- casts -----------------------------------------------------------------------------------------------------------


def _cast(value: Any, to: DType, device: int, setting: Setting) -> Any:
    """An argument, its tensors on devices of type device cast to a dtype."""
    if isinstance(value, Handle):
        x: Any = value
        if x._dtype == to.code or x._dtype not in _FLOATS or x._device_type != device:
            return value
        is_weight = x._view is None and type(x._node) is Leaf and x._dtype == _FLOAT32
        if is_weight and setting.caching and setting.cache is not None:
            return _cached_cast(x, to, setting.cache)
        return cast(x, to)
    if type(value) in (list, tuple):
        return type(value)([_cast(part, to, device, setting) for part in value])
    return value


def _cached_cast(x: Any, to: DType, cache: dict[Any, Any]) -> Any:
    """The cast of a weight, cached until the weight is written to or replaced."""
    key = id(x), to.code, mode.enabled  # without a graph it has no history
    count = x._version_counter
    state = x._node, x._address, 0 if count is None else count[0]
    cached = cache.get(key)
    if cached is None or cached[0] != state or cached[1] is not x:
        cached = cache[key] = (state, x, cast(x, to))
    return cached[2]
