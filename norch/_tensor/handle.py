"""Handle, the base class of Tensor: what C and autograd know of a tensor, its shape, dtype and device.

``Tensor`` (tensor.py) subclasses it and adds the operations. tensor.py passes that class to the library, which makes
the results of calls, so that modules below tensor.py need not import it.
"""

from __future__ import annotations

import itertools

from .._binding.library import TensorBase, constants, lib
from .._package.typing import TYPE_CHECKING, Any
from ..device import CPU, META, device_of
from ..device import device as Device
from ..dtype import DTYPES
from ..dtype import dtype as DType
from .size import Size as Size  # files of save() may name it here


class Handle(TensorBase):
    """A C tensor with its autograd state.

    _node             the node that computed it; the Leaf of a leaf that requires grad; or None
    _leaf             the Leaf, with its hooks, of a leaf that stopped requiring grad; else None
    _grad             the value of .grad (leaves, and others after retain_grad())
    _view             for a view, its base and how it was taken (autograd/view_history.py)
    _version_counter  [sequence number of the last in-place write], shared by all tensors over one storage, with True
                      behind it once one of them has got another shape in place; None until needed
    """

    __slots__ = ("__weakref__",)

    def _bump(self) -> None:
        """Updates the version counter after an in-place write."""
        lib.norch_bump(self)

    # ---- what it is ------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @property
        def shape(self) -> Size: ...
        @property
        def dtype(self) -> DType: ...
        @property
        def device(self) -> Device: ...

    else:
        shape = property(lib.norch_size_of, doc="The size of each axis.")
        dtype = property(lib.norch_dtype_of, doc="The dtype of the elements.")
        device = property(lib.norch_device_of, doc="The device of the elements.")

    def dim(self) -> int:
        """The number of axes.

        >>> norch.zeros(2, 3).dim()
        2
        """
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements, an int.

        >>> norch.zeros(2, 3).numel()
        6
        """
        return self._numel

    nelement = numel

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device.

        >>> norch.ones(2).is_cuda
        False
        """
        return self._device_type == constants["CUDA"]

    @property
    def is_meta(self) -> bool:
        """Whether it is on the device "meta", and so has no elements.

        >>> norch.ones(2, device="meta").is_meta
        True
        """
        return self._device_type == META.code


lib.norch_set_attributes(Size, tuple(DTYPES), CPU, device_of)

# Sequence numbers. Nodes and in-place writes share them, so that "written after this node was made" is a comparison.
counter = itertools.count(1)
next_seq = counter.__next__


# The class of results; tensor.py puts Tensor here and passes it to the library.
result_class: Any = Handle


def version_counter_of(x: Any) -> list[int]:
    """The version counter of x, made at the first call; all tensors over one storage share it."""
    version = x._version_counter
    if version is None:
        version = x._version_counter = [0]
    return version


def alias(x: Any) -> Any:
    """Another Tensor over the elements of x, without history but with the same version counter.

    A node saves an alias of its result: the result itself refers to the node, which would be a cycle.
    """
    out = lib.norch_alias(x)
    out._version_counter = version_counter_of(x)
    return out


def meta_of(x: Handle) -> Handle:
    """The meta tensor of x: its shape, dtype and device without memory, for nodes that do not need the elements."""
    return lib.norch_meta(x)


def full_of(meta: Handle, value: float) -> Any:
    """A tensor full of value, of the shape, dtype and device of meta."""
    return lib.norch_full_like(meta, -1, value, int(value))
