"""Stand-ins for the names in annotations of modules that `import norch` loads: importing `typing`, with `re` and
`enum`, would take a tenth of that time. Type checkers read _package/typing.pyi, which has the real types.
"""

from __future__ import annotations

import sys
from operator import itemgetter

TYPE_CHECKING = False


class Any:
    """Stands for any type."""


def TypeVar(name, **_):
    """Stands for a type variable, which is read by type checkers only."""
    return Any


def cast(_, value):
    """The value: type checkers take it for one of the type named."""
    return value


def overload(function):
    """Marks a signature of the function that follows, for type checkers."""
    return function


Tensor = Operand = Operation = DeviceLike = DTypeLike = Index = Array = Self = SupportsIndex = Any


class Literal:
    """Stands for what takes one of the values named."""

    def __class_getitem__(cls, _):
        return Any


class _Record(tuple):
    __slots__ = ()

    def __new__(cls, *values):
        return tuple.__new__(cls, values)

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in zip(self._fields, self))})"


def NamedTuple(name, fields):
    """A class of named tuples, made in a tenth of the time that typing's takes: without _replace() and the like."""
    names = tuple(field for field, _ in fields)
    module = sys._getframe(1).f_globals["__name__"]
    properties = {field: property(itemgetter(i)) for i, field in enumerate(names)}
    return type(name, (_Record,), {"__slots__": (), "__module__": module, "_fields": names, **properties})
