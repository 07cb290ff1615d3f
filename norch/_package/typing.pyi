"""What type checkers read in place of typing.py: names of `typing`, and Tensor for the modules that it is made of."""

import builtins
from collections.abc import Callable
from types import EllipsisType
from typing import Any as Any
from typing import Literal as Literal
from typing import NamedTuple as NamedTuple
from typing import Protocol, TypeAlias
from typing import SupportsIndex as SupportsIndex
from typing import TypeVar as TypeVar
from typing import cast as cast
from typing import overload as overload

import numpy
from typing_extensions import Self as Self

from ..device import device as _Device
from ..dtype import dtype as _DType
from ..tensor import Tensor as Tensor

TYPE_CHECKING: bool
Array: TypeAlias = numpy.ndarray[Any, Any]

class _Array(Protocol):
    def __array__(self) -> Any: ...

# What a tensor is computed with: a tensor, a number, an array of NumPy or of another library.
Operand: TypeAlias = Tensor | builtins.complex | _Array

DTypeLike: TypeAlias = _DType | type[Any] | builtins.str | None
DeviceLike: TypeAlias = _Device | builtins.str | builtins.int | None

# What stands between the brackets of x[...].
_Position: TypeAlias = SupportsIndex | slice | EllipsisType | list[Any] | range | Tensor | _Array | None
Index: TypeAlias = _Position | tuple[_Position | tuple[Any, ...], ...]

Operation: TypeAlias = Callable[..., Tensor]  # the function of a row of csrc/ops.def, whose operands the stubs name
