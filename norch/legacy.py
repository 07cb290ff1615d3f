"""What older scripts say: FloatTensor(...) and its kin, Variable. norch and norch.autograd hand them out when asked."""

from __future__ import annotations

from typing import Any

from .create import legacy_tensor
from .dtype import BY_NAME
from .dtype import dtype as DType
from .ops.composed.portable import TYPES
from .tensor import Tensor, adopt


class _Kind(type):
    """A name that makes tensors of one dtype (None: any) and knows them, but is the class of none."""

    dtype: DType | None

    def __call__(cls, *data: Any, **options: Any) -> Tensor:
        if cls.dtype is None:
            return _variable(*data, **options)
        return legacy_tensor(data, cls.dtype, **options)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and cls.dtype in (None, x.dtype)


def _variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    return adopt(Tensor, data.detach()).requires_grad_(requires_grad)


for _dtype, _kind in TYPES.items():
    _name = f"{_kind}Tensor"
    globals()[_name] = _Kind(_name, (), {"dtype": BY_NAME[_dtype], "__doc__": f"Tensor(...) of {_dtype}."})
Variable = _Kind(
    "Variable", (), {"dtype": None, "__doc__": "A leaf over the elements of a tensor; every tensor is one."}
)
