"""Objects that are no tensors and have __torch_function__: a function notices them where it refuses them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from .._package.typing import Any
from .._tensor.handle import Handle
from ..errors import PACKAGE

_FILES = ("ops", os.path.join("nn", "functional"), "fft", "linalg.py", "special.py")
_FUNCTIONS = tuple(PACKAGE + path for path in _FILES)


def instead(public: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Any:
    """What the arguments of a refused call of public make of it by __torch_function__; else raises error. A call within
    another function leaves it to that function."""
    if any(hasattr(type(x), "__torch_function__") for x in others((*arguments, *named.values()))):
        caller = sys._getframe(1)
        while caller.f_code.co_name in ("refused", "instead") or caller.f_code is getattr(public, "__code__", None):
            caller = caller.f_back  # type: ignore[assignment]
        if not caller.f_code.co_filename.startswith(_FUNCTIONS):
            from importlib import import_module

            return import_module("norch._package.override").instead(public, arguments, named, error)
    raise error from error.__cause__


def others(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and those in lists and tuples among them, but for tensors."""
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from (one for one in x if not isinstance(one, Handle))
        elif not isinstance(x, Handle):
            yield x


def wraps(function: Any) -> Any:
    """functools.wraps() in a third of its time: of 140 functions that is a percent of `import norch`."""

    def decorate(wrapper: Any) -> Any:
        wrapper.__module__, wrapper.__name__, wrapper.__qualname__ = (
            function.__module__,
            function.__name__,
            function.__qualname__,
        )
        wrapper.__doc__, wrapper.__annotations__ = function.__doc__, function.__annotations__
        wrapper.__dict__.update(function.__dict__)
        wrapper.__wrapped__ = function
        return wrapper

    return decorate
