"""How a Tensor is stored in memory: its strides, bytes, addresses and storage."""

from __future__ import annotations

from functools import cache

from .._binding.library import lib
from .._package.typing import Any, Tensor, overload
from ..device import CPU, META
from ..dtype import channels_last, channels_last_3d, check_format
from ..ops._deferred import DeferredMethod
from ..ops._operand import tensor_of
from ..ops.view import axis
from ..storage import Storage, storage_of
from .handle import Handle
from .size import Size

_HOSTS = (CPU.code, META.code)


@cache
def _strided() -> Any:
    from ..compat.placeholders import strided  # lazy: few programs ask for it

    return strided


class MetadataMethods(Handle):
    """These methods of Tensor."""

    __slots__ = ()
    # what no dense tensor is
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_mps = is_xpu = is_xla = is_vulkan = False
    is_ipu = is_maia = is_mtia = False
    _in_coordinates = False  # whether its elements are coordinates and values in Python: sparse/coo.py

    @overload
    def size(self, dim: None = ...) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis.

        >>> norch.zeros(2, 3).size(), norch.zeros(2, 3).size(1)
        (norch.Size([2, 3]), 3)
        """
        return self.shape if dim is None else lib.norch_shape(self)[axis(dim, self.ndim, "size")]

    @overload
    def stride(self, dim: None = ...) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> Any:
        """How many elements of memory lie between neighbours along each axis, or along one.

        >>> norch.zeros(2, 3).stride(), norch.zeros(2, 3).stride(0)
        ((3, 1), 3)
        """
        strides = lib.norch_strides(self)
        return strides if dim is None else strides[axis(dim, self.ndim, "stride")]

    def untyped_storage(self) -> Storage:
        """The bytes that it shares with its views, as an object: storages are the same where memory is shared.

        >>> x = norch.zeros(4)
        >>> x[1:].untyped_storage() is x.untyped_storage()
        True
        """
        return storage_of(self)

    @property
    def is_cpu(self) -> bool:
        """Whether the elements are on the CPU.

        >>> norch.ones(2).is_cpu
        True
        """
        return self._device_type == CPU.code

    def get_device(self) -> int:
        """The index of its CUDA device; -1 for the CPU.

        >>> norch.ones(2).get_device()
        -1
        """
        return self._device_index if self._device_type not in _HOSTS else -1

    def storage(self: Any) -> Any:
        """A TypedStorage of all elements behind the tensor, in the order in memory.

        >>> norch.tensor([[1, 2], [3, 4]]).T.storage().tolist()
        [1, 2, 3, 4]
        """
        from ..compat.typed_storage import TypedStorage

        return TypedStorage(self)

    is_shared = DeferredMethod("norch._files.shared_memory", "is_shared")
    share_memory_ = DeferredMethod("norch._files.shared_memory", "share_memory_")

    @property
    def layout(self) -> Any:
        """norch.strided, the layout of every tensor.

        >>> norch.ones(2).layout
        norch.strided
        """
        return _strided()

    def storage_offset(self) -> int:
        """The position of the first element in the storage, counted in elements.

        >>> norch.zeros(5)[2:].storage_offset()
        2
        """
        return self._offset

    def is_set_to(self, tensor: Any) -> bool:
        """Whether both tensors have the same storage, offset, shape and strides.

        >>> x = norch.zeros(2, 3)
        >>> x.is_set_to(x.view(2, 3)), x.is_set_to(x.T)
        (True, False)
        """
        if not isinstance(tensor, Handle):
            raise TypeError(f"is_set_to: expected a tensor, not {type(tensor).__name__}")
        is_same_place = self.untyped_storage() is tensor.untyped_storage() and self._offset == tensor._offset  # type: ignore[attr-defined]
        return is_same_place and tuple(self.shape) == tuple(tensor.shape) and self.stride() == tensor.stride()  # type: ignore[attr-defined]

    def data_ptr(self) -> int:
        """The address of the first element; 0 for a tensor without elements.

        >>> x = norch.zeros(5)
        >>> x[2:].data_ptr() - x.data_ptr()
        8
        """
        lib.norch_note_unseen("Python reads the address of a tensor")
        return self._data_pointer if self._numel and self._device_type != META.code else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements are in C order without gaps, or with memory_format=channels_last in the order of (N, H,
        W, C).

        >>> x = norch.zeros(2, 3)
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
        if memory_format is None:
            return self._contiguous == 1
        check_format(memory_format, "is_contiguous")
        if memory_format in (channels_last, channels_last_3d):
            x: Any = self
            return x.ndim == 4 + (memory_format is channels_last_3d) and x.movedim(1, -1).is_contiguous()
        return bool(self._contiguous)

    def element_size(self) -> int:
        """Bytes of one element.

        >>> norch.ones(3).element_size()
        4
        """
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        >>> norch.ones(3).itemsize
        4
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        >>> norch.ones(3).nbytes
        12
        """
        return self._numel * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one.

        >>> norch.ones(2).is_floating_point()
        True
        """
        return self.dtype.is_floating_point


def numel(input: Tensor) -> int:
    """The number of elements of input, an int.

    >>> norch.numel(norch.zeros(2, 3))
    6
    """
    return tensor_of(input, "numel").numel()
