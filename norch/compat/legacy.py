"""Names of older scripts: FloatTensor(...) and its siblings, and Variable.

norch and norch.autograd import them at first use.
"""

from __future__ import annotations

from typing import Any

from ..dtype import BY_NAME
from ..dtype import dtype as DType
from ..ops.composed.type_properties import TYPES
from ..ops.create import legacy_tensor
from ..tensor import Tensor, adopt


class _TensorType(type):
    """A callable that makes tensors of one dtype (None: any). isinstance() tests a tensor's dtype."""

    dtype: DType | None

    def __call__(cls, *data: Any, **options: Any) -> Tensor:
        if cls.dtype is None:
            return _variable(*data, **options)
        return legacy_tensor(data, cls.dtype, **options)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and cls.dtype in (None, x.dtype)


def _variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    return adopt(Tensor, data.detach()).requires_grad_(requires_grad)


def _tensor_type(name: str, dtype: DType | None, about: str) -> _TensorType:
    return _TensorType(name, (), {"dtype": dtype, "__doc__": about})


globals().update(
    {
        f"{kind}Tensor": _tensor_type(f"{kind}Tensor", BY_NAME[dtype], f"Tensor(...) of {dtype}.")
        for dtype, kind in TYPES.items()
    }
)
Variable = _tensor_type("Variable", None, "A leaf over the elements of a tensor. Every tensor is a Variable.")
