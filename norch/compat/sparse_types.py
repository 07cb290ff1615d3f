"""torch.sparse's names of older scripts: FloatTensor(...) and its siblings, and a context for checks."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from ..dtype import BY_NAME
from ..ops.composed.type_properties import TYPES
from ..sparse.coo import sparse_coo_tensor
from ..tensor import Tensor


class _SparseType(type):
    """A callable that makes sparse tensors of one dtype, from indices, values and a size, or from sizes."""

    dtype: Any

    def __call__(cls, *data: Any) -> Tensor:
        if data and isinstance(data[0], Tensor):
            return sparse_coo_tensor(*data, dtype=cls.dtype)
        size = data[0] if data and not isinstance(data[0], int) else data or (0,)
        return sparse_coo_tensor(size, dtype=cls.dtype)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.is_sparse and x.dtype is cls.dtype


for _dtype, _kind in TYPES.items():
    _name = f"{_kind}Tensor"
    globals()[_name] = _SparseType(_name, (), {"dtype": BY_NAME[_dtype], "__doc__": f"Sparse tensors of {_dtype}."})


class check_sparse_tensor_invariants(ContextDecorator):  # noqa: N801
    """PyTorch's setting, stored only: norch always checks indices."""

    _is_enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable

    @classmethod
    def is_enabled(cls) -> bool:
        """The stored setting."""
        return cls._is_enabled

    @classmethod
    def enable(cls) -> None:
        """Sets True."""
        cls._is_enabled = True

    @classmethod
    def disable(cls) -> None:
        """Sets False."""
        cls._is_enabled = False

    def __enter__(self) -> None:
        self._before, type(self)._is_enabled = self._is_enabled, self._wanted

    def __exit__(self, *_: object) -> None:
        type(self)._is_enabled = self._before
