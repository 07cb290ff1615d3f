"""The bare tensor: what C and autograd know about it, and what it says of itself.

``Tensor`` (tensor.py) is this class with the operations mixed in. The calls of the library make its instances without
this package knowing that class, so that imports run one way only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from ._lib import TensorBase, lib
from .device import CPU, device_of
from .device import device as Device  # noqa: N812
from .dtype import DTYPES, check_format
from .dtype import dtype as DType  # noqa: N812


class Size(tuple[int, ...]):
    """A shape: a tuple that knows its number of elements."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the sizes."""
        count = 1
        for size in self:
            count *= size
        return count

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if type(found) is tuple else found

    def __add__(self, other: Any) -> Any:
        both = tuple.__add__(self, other)
        return both if both is NotImplemented else Size(both)

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"norch.Size({list(self)})"


class Handle(TensorBase):
    """A tensor of C, and what autograd knows about it.

    _node   where gradients go: the node that made this tensor, a Leaf for one that collects a gradient, or None
    _grad   the gradient collected so far (leaves, and others after retain_grad())
    _cell   [time of the last in-place write], shared by all tensors over one storage; None until needed
    _view   for a view, its base and how it was taken (autograd/inplace.py)
    """

    __slots__ = ("__weakref__",)

    def _bump(self) -> None:
        """Notes an in-place write done behind autograd's back, by a C call or through shared memory."""
        cell = self._cell
        if cell is None:
            self._cell = [tick()]
        else:
            cell[0] = tick()

    # ---- what it is ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each axis."""
        return Size(lib.norch_shape(self))

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._numel

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return DTYPES[self._dtype]

    @property
    def device(self) -> Device:
        """Where the elements live."""
        return device_of(self)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements live on a CUDA device."""
        return self._device_type != CPU.code

    @property
    def is_cpu(self) -> bool:
        """Whether the elements live on the CPU."""
        return self._device_type == CPU.code

    def get_device(self) -> int:
        """The number of the CUDA device that it lives on; -1 for the CPU."""
        return self._device_index if self.is_cuda else -1

    def storage_offset(self) -> int:
        """Where in its storage the first element lies, counted in elements."""
        return self._offset

    def data_ptr(self) -> int:
        """The address of the first element."""
        lib.norch_note_unseen("Python reads the address of a tensor")
        return self._data

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in C order without gaps."""
        check_format(memory_format, "is_contiguous")
        return bool(self._contiguous)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.element_size()

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype.is_floating_point


# Counts nodes and in-place writes on one scale: "written after this node was made" is then a comparison.
tick = itertools.count(1).__next__


def bump_all(tensors: Iterable[Any]) -> None:
    """Notes that a C call wrote to all of these at once."""
    time = tick()
    for x in tensors:
        cell = x._cell
        if cell is None:
            x._cell = [time]
        else:
            cell[0] = time


# The class of results; tensor.py puts Tensor here and tells the library.
result_class: Any = Handle


def cell_of(x: Any) -> list[int]:
    """The cell that all tensors over the storage of x share, made when first asked for."""
    cell = x._cell
    if cell is None:
        cell = x._cell = [0]
    return cell


def alias(x: Any) -> Any:
    """Another Tensor over the elements of x, outside any graph but sharing its time of writing.

    It is what a node saves of its own result: the result itself, with its place in the graph, would be a cycle.
    """
    out = lib.norch_alias(x)
    out._cell = cell_of(x)
    return out
