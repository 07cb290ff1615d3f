"""Stand-ins for the names in annotations of modules that `import norch` loads: importing `typing`, with `re` and
`enum`, would take a tenth of that time. Type checkers read _typing.pyi, which has the real types.
"""

from __future__ import annotations

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
