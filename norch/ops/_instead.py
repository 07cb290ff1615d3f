"""Objects that are no tensors but have __torch_function__. It is called when a function refuses such an object."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from .._package.typing import Any
from .._tensor.handle import Handle
from ..errors import PACKAGE

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
ENTRIES: dict[int, Any] = {}  # _package/entries.py: by the id of the function, which the entry keeps
_FILES = ("ops", os.path.join("nn", "functional"), "fft", "linalg.py", "special.py")
_FUNCTIONS = tuple(PACKAGE + path for path in _FILES)


def instead(public: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Any:
    """The result of a refused call of public by __torch_function__ of its arguments. Raises error if no argument has
    it. A call within another function leaves this to that function. NumPy's names of arguments become PyTorch's.
    """
    try:
        if named and type(error) is TypeError and not NUMPY_NAMES.keys().isdisjoint(named):
            renamed = {NUMPY_NAMES.get(name, name): value for name, value in named.items()}
            if len(renamed) == len(named):
                return public(*arguments, **renamed)
        if any(hasattr(type(x), "__torch_function__") for x in others((*arguments, *named.values()))):
            caller = sys._getframe(1)
            while caller.f_code.co_name in ("refused", "instead") or caller.f_code is getattr(public, "__code__", None):
                caller = caller.f_back  # type: ignore[assignment]
            if not caller.f_code.co_filename.startswith(_FUNCTIONS):
                from importlib import import_module

                return import_module("norch._package.override").instead(public, arguments, named, error)
        raise error from error.__cause__
    finally:
        del error  # its traceback has this frame: the cycle would keep the tensors of the call


def code_of(function: Any) -> Any:
    """The code of a function without an entry."""
    entry = ENTRIES.get(id(function))
    return (function if entry is None else entry.original).__code__


def others(values: Iterable[Any]) -> Iterator[Any]:
    """The values that are no tensors, plain lists and tuples among them replaced by their items."""
    for x in values:
        if isinstance(x, (list, tuple)) and not hasattr(type(x), "__torch_function__"):
            yield from (item for item in x if not isinstance(item, Handle))
        elif not isinstance(x, Handle):
            yield x


def wraps(function: Any) -> Any:
    """functools.wraps() in a third of the time. For 140 functions this saves a percent of `import norch`."""

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
