"""Parameters and buffers whose shape is not known yet: those of lazy layers before their first forward()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...dtype import dtype as DType
from ...errors import Error
from ...ops.create import empty
from ...tensor import Tensor, adopt, disabled_torch_function
from ..parameter import Parameter, is_lazy
from .buffer import as_buffer


class UninitializedTensorMixin(Tensor):
    """Base of UninitializedParameter and UninitializedBuffer. They have a dtype, a device and requires_grad, and can be
    moved and copied. `shape` raises an Error, and methods that compute raise a ValueError.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    cls_to_become: ClassVar[Any]  # the class afterwards

    def materialize(self, shape: int | Sequence[int], device: Any = None, dtype: DType | None = None) -> None:
        """Makes this object a Parameter or Tensor of a shape, with undefined elements. device and dtype are those of
        the object by default.
        """
        tensor = empty(shape, device=self.device if device is None else device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become
        self.data = tensor

    @property
    def shape(self) -> Any:
        raise Error(
            f"an {type(self).__name__} has no shape yet: call its module with a batch first; load_state_dict() takes "
            "it into lazy modules only"
        )

    def detach(self) -> Any:
        return self

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        """Takes the shape and the values of other, cast to the dtype of this tensor. Does nothing if other is
        uninitialized too.
        """
        if not is_lazy(other):
            self.materialize(other.shape)
            self.detach().copy_(other)
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.requires_grad, str(self.device), self.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = _rebuilt(type(self), self.requires_grad, self.device, self.dtype)
        return copied


def _rebuilt(cls: Any, requires_grad: bool, device: Any, dtype: DType) -> Any:
    return cls(requires_grad, device, dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter, of this device and dtype, whose shape a lazy layer sets at its first forward; optimizers may hold it
    before.

    >>> weight = norch.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape, type(weight) is norch.nn.Parameter
    (norch.Size([2, 3]), True)
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: DType | None = None
    ) -> UninitializedParameter:
        return adopt(cls, empty(0, device=device, dtype=dtype)).requires_grad_(requires_grad)


class UninitializedBuffer(UninitializedTensorMixin):
    """A Buffer whose shape a lazy layer sets at its first forward; requires_grad, device and dtype as in `empty()`.

    >>> buffer = norch.nn.UninitializedBuffer()
    >>> norch.nn.parameter.is_lazy(buffer)
    True
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: DType | None = None, persistent: bool = True
    ) -> UninitializedBuffer:
        buffer = adopt(cls, empty(0, device=device, dtype=dtype)).requires_grad_(requires_grad)
        return as_buffer(buffer, persistent)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"{name}: an {type(self).__name__} has no elements yet; call its module with a batch before it is used"
        )

    return refuse


def _converting(name: str) -> Callable[..., Any]:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = getattr(Tensor, name)(self, *args, **kwargs)
        return out if type(out) is not Tensor else adopt(type(self), out).requires_grad_(self.requires_grad)

    return convert


_CONVERTING = "to type half bfloat16 float double cpu cuda".split()
_ALLOWED = "is_complex is_floating_point get_device requires_grad_ register_hook untyped_storage".split()
for _name in _CONVERTING:
    setattr(UninitializedTensorMixin, _name, _converting(_name))
for _name in set(dir(Tensor)) - set(dir(object)) - {*_ALLOWED, *vars(UninitializedTensorMixin)}:
    _public = _name[0] != "_" or _name[:2] == _name[-2:] == "__"
    if _public and callable(getattr(Tensor, _name, None)):
        setattr(UninitializedTensorMixin, _name, _refusing(_name))
