"""What annotations name: names of `typing`, and stand-ins for the types that type checkers read in
_package/typing.pyi, as these are made of the modules that import this one.
"""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TypeVar, cast, overload  # noqa: F401

Tensor = Operand = Operation = DeviceLike = DTypeLike = Index = Array = Self = Any
