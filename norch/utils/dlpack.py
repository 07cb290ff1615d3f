"""DLPack: shares tensors with other array libraries, without a copy.

>>> import norch
>>> x = norch.arange(4.0)
>>> y = norch.from_dlpack(x)  # or an array of NumPy, PyTorch, JAX, CuPy ...
>>> y[0] = 7.0
>>> x.tolist()
[7.0, 1.0, 2.0, 3.0]

The other direction is `numpy.from_dlpack(x)`, `torch.from_dlpack(x)` and so on. The protocol: dmlc.github.io/dlpack.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._binding.library import lib
from .._package.recording import unseen
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..device import device as Device  # noqa: N812
from ..errors import ArgumentError, stacklevel_of_user

_CPU, _CUDA = 1, 2


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array and keeps it alive.

    ext_tensor: an object with `__dlpack__` and `__dlpack_device__`, or an unused capsule. device: where to put the
    result; None: the array's device. copy: True always copies, False never does (ArgumentError if device requires it),
    None copies if necessary. A read-only array is shared too, with a warning: writing to the tensor is undefined.
    TypeError for other objects, DTypeError for dtypes that norch lacks, DeviceError for other devices.

    >>> x = norch.ones(2)
    >>> y = norch.from_dlpack(x).mul_(3)
    >>> x
    tensor([3., 3.])
    """
    if hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _capsule_of(ext_tensor)
    elif type(ext_tensor).__name__ != "PyCapsule":
        kind = type(ext_tensor).__name__
        raise TypeError(f"from_dlpack: expected an array that has __dlpack__, or a DLPack capsule, not {kind}")
    unseen("from_dlpack shares memory with another library")
    x, read_only = lib.norch_from_dlpack(ext_tensor)
    wanted = x.device if device is None else Device(device)
    if copy is False and wanted != x.device:
        raise ArgumentError(f"from_dlpack: copy=False, but the array is on {x.device}, not on {wanted}")
    if copy or wanted != x.device:
        return x.to(wanted, copy=True)
    if read_only:
        warnings.warn(
            "from_dlpack: this array is read-only, and a tensor is not; do not write to it",
            stacklevel=stacklevel_of_user(),
        )
    return x


def _capsule_of(array: Any) -> Any:
    options: dict[str, Any] = {}
    if array.__dlpack_device__()[0] == _CUDA:
        from ..cuda import current_stream

        options["stream"] = current_stream(Device("cuda", array.__dlpack_device__()[1])).cuda_stream
    try:
        return array.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer older than DLPack 1.0
        return array.__dlpack__(**options)


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule, in the form before DLPack 1.0, that shares a tensor's elements with one consumer.

    >>> norch.from_dlpack(norch.to_dlpack(norch.ones(2)))
    tensor([1., 1.])
    """
    if not isinstance(tensor, Handle):
        raise TypeError(f"to_dlpack: expected a tensor, not {type(tensor).__name__}")
    return __dlpack__(tensor)


def __dlpack__(  # noqa: N807
    self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule over the elements, by which array libraries share memory (norch.from_dlpack).

    The arguments are those of the array API standard (2023.12, `__dlpack__`). A CUDA tensor is complete when this
    returns, unless stream is -1. A tensor with a negative stride is exported as a copy, as PyTorch cannot read it.
    BufferError for tensors that require grad, and for copy=False if a copy is necessary.
    """
    x, here = self, __dlpack_device__(self)
    if x.requires_grad:
        raise BufferError("__dlpack__: this tensor requires grad; export x.detach()")
    if x.is_meta:
        raise BufferError("__dlpack__: a tensor on the device 'meta' has no elements to share")
    if dl_device is not None and tuple(dl_device) != here:
        if copy is False:
            raise BufferError(f"__dlpack__: copy=False, but the tensor is on {here}, not on {tuple(dl_device)}")
        if dl_device[0] not in (_CPU, _CUDA):
            raise BufferError(f"__dlpack__: norch has no device of DLPack's type {dl_device[0]}")
        x = x.to(Device("cpu") if dl_device[0] == _CPU else Device("cuda", dl_device[1]))
    backward = min(x.stride(), default=0) < 0
    if backward and copy is False:
        raise BufferError(f"__dlpack__: copy=False, but the strides {x.stride()} are not all positive")
    if backward or (copy and x is self):
        x = x.contiguous() if backward else x.clone()
    if x.is_cuda and stream != -1:
        from ..cuda import synchronize

        synchronize(x.device)
    unseen("__dlpack__ shares memory with another library")
    return lib.norch_to_dlpack(x, bool(max_version) and max_version[0] >= 1, x is not self)


def __dlpack_device__(self: Any) -> tuple[int, int]:  # noqa: N807
    """(device type, index) as DLPack numbers them: (1, 0) is the CPU, (2, i) is cuda:i."""
    return (_CUDA, self.device.index or 0) if self.is_cuda else (_CPU, 0)
