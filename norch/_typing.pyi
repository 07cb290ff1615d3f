"""What type checkers read in place of _typing.py: names of `typing`, and Tensor for the modules that it is made of."""

import builtins
from collections.abc import Sequence
from typing import Any as Any
from typing import Protocol, TypeAlias
from typing import TypeVar as TypeVar
from typing import cast as cast
from typing import overload as overload

from .device import device as _Device
from .tensor import Tensor as Tensor

TYPE_CHECKING: bool

class _Array(Protocol):
    def __array__(self) -> Any: ...

# What a tensor is computed with: a tensor, a number, an array of NumPy or of another library.
Operand: TypeAlias = Tensor | builtins.float | _Array

Dims: TypeAlias = builtins.int | Sequence[builtins.int] | None  # axes; None: all of them
DeviceLike: TypeAlias = _Device | builtins.str | builtins.int | None

class Operation(Protocol):
    """The function of a row of csrc/ops.def. The stubs that `make stubs` writes name its operands."""

    row: tuple[str, str, Any]
    __name__: str
    __module__: str
    def __call__(self, *operands: Any) -> Tensor: ...
