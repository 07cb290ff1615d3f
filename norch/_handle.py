"""Handle, the base class of Tensor: what C and autograd know of a tensor, its shape, dtype and device.

``Tensor`` (tensor.py) is this class with the operations mixed in. The calls of the library make its instances without
this package knowing that class, so that imports run one way only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from ._lib import TensorBase, lib
from ._size import Size as Size  # files of save() may name it here
from ._typing import Any
from .device import CPU, device_of
from .device import device as Device  # noqa: N812
from .dtype import DTYPES
from .dtype import dtype as DType  # noqa: N812


class Handle(TensorBase):
    """A tensor of C, and what autograd knows about it.

    _node   where gradients go: the node that made this tensor, a Leaf for one that collects a gradient, or None
    _grad   the gradient collected so far (leaves, and others after retain_grad())
    _view   for a view, its base and how it was taken (autograd/view_history.py)
    _version_counter  [when it was last written to in place], shared by all tensors over one storage; None until needed
    """

    __slots__ = ("__weakref__",)

    def _bump(self) -> None:
        """Notes an in-place write, by an operation, a C call or through shared memory."""
        version = self._version_counter
        if version is None:
            self._version_counter = [next_seq()]
        else:
            version[0] = next_seq()

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


# The next sequence number. Nodes and in-place writes are counted together: "written after this node was made" is then a
# comparison.
counter = itertools.count(1)
next_seq = counter.__next__


def bump_all(tensors: Iterable[Any]) -> None:
    """Notes that a C call wrote to all of these at once."""
    time = next_seq()
    for x in tensors:
        version = x._version_counter
        if version is None:
            x._version_counter = [time]
        else:
            version[0] = time


# The class of results; tensor.py puts Tensor here and passes it to the library.
result_class: Any = Handle


def version_counter_of(x: Any) -> list[int]:
    """The version counter that all tensors over the storage of x share, made when first asked for."""
    version = x._version_counter
    if version is None:
        version = x._version_counter = [0]
    return version


def alias(x: Any) -> Any:
    """Another Tensor over the elements of x, outside any graph but sharing its version counter.

    It is what a node saves of its own result: the result itself, with its place in the graph, would be a cycle.
    """
    out = lib.norch_alias(x)
    out._version_counter = version_counter_of(x)
    return out


def meta_of(x: Handle) -> Handle:
    """The meta tensor of x: its shape, dtype and device over no memory, for nodes that do not keep x itself."""
    return lib.norch_meta(x)


def full_of(meta: Handle, value: float) -> Any:
    """value everywhere, in the shape and dtype of meta."""
    return lib.norch_full_like(meta, -1, value, int(value))


def all_samples(x: Any) -> Any:
    """x, or of a tensor that stands for one sample of vmap that of all: for what is decided once for all."""
    return x.all_samples() if type(x) is not result_class and hasattr(x, "_level") else x


def zeros_of(meta: Handle, *values: Any) -> Any:
    """Zeros of the shape and dtype of meta. values: what is to be written there, or says where: zeros of each
    sample where vmap batches one of these."""
    for x in values:
        if type(x) is not result_class and hasattr(x, "_level"):
            return x.new_zeros(lib.norch_shape(meta), dtype=meta.dtype)
    return full_of(meta, 0.0)
