"""Methods of Tensor that make tensors, by default with its dtype and on its device: new_zeros() and others."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Any
from .._tensor import handle as _handle
from ..dtype import check_fits
from ._arguments import named_function
from ._entry import rename_errors
from ._out import make_with_options
from .create import FAR, empty, empty_strided, full, legacy_tensor, ones, zeros
from .op import method
from .values import Tensor, tensor
from .view import sizes


def _options_of(x: Tensor, more: dict[str, Any]) -> dict[str, Any]:
    if not more:
        return {"dtype": x.dtype, "device": x.device}
    dtype, device = more.get("dtype"), more.get("device")
    return {**more, "dtype": dtype or x.dtype, "device": x.device if device is None else device}


@method
def new(self: Any, *data: Any, size: Any = ()) -> Tensor:
    """Tensor(*data), from sizes or values, in this dtype and on this device: an older form of new_tensor().

    >>> norch.ones(2).new([5, 6])
    tensor([5., 6.])
    """
    return legacy_tensor(data or tuple(size), self.dtype).to(self.device)


@method
def new_tensor(self: Tensor, data: Any, **more: Any) -> Tensor:
    """The values in data, in this dtype and on this device. See norch.tensor.

    >>> norch.ones(2).new_tensor([5, 6])
    tensor([5., 6.])
    """
    return tensor(data, **_options_of(self, more))


def _new(make: Any, contents: str, value: int | None) -> Any:
    """new_empty(), new_zeros() or new_ones()."""

    def new(self: Tensor, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        if more or type(self) is not _handle.result_class:
            return make_with_options(make, *shape, size=size, **_options_of(self, more))
        wanted, device = sizes(shape, size), (self._device_type, self._device_index)
        if value is None:
            return lib.norch_empty(wanted, self._dtype, device)
        return lib.norch_full(wanted, self._dtype, value, value, device)

    about = f"{contents} in the given shape, in this dtype and on this device unless given."
    about += f"\n\n>>> norch.tensor([5]).new_{make.__name__}(2, 3).shape\nnorch.Size([2, 3])\n"
    return method(rename_errors(named_function(new, f"new_{make.__name__}", about)))


new_empty = _new(empty, "Undefined elements", None)
new_zeros, new_ones = _new(zeros, "Zeros", 0), _new(ones, "Ones", 1)


@method(moves=True)
def new_full(self: Tensor, size: Any, fill_value: float, **more: Any) -> Tensor:
    """A tensor of this shape with all elements equal to fill_value, by default in this dtype and on this device.

    >>> norch.ones(2).new_full((3,), 7)
    tensor([7., 7., 7.])
    """
    plain = not more and type(self) is _handle.result_class and self.dtype.is_floating_point
    if plain and (type(fill_value) is float or (type(fill_value) is int and -FAR < fill_value < FAR)):
        check_fits(fill_value, self.dtype, "new_full")
        device = self._device_type, self._device_index
        return lib.norch_full(sizes((size,)), self._dtype, fill_value, 0, device)
    return make_with_options(full, size, fill_value, **_options_of(self, more))


@method
def new_empty_strided(self: Tensor, size: Any, stride: Any, **more: Any) -> Tensor:
    """A tensor of this shape and these strides with undefined elements, by default in this dtype and on this device.

    >>> norch.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return make_with_options(empty_strided, size, stride, **_options_of(self, more))
