"""Tensor: the operations mixed into one handle, and what looks inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from . import _handle, _left_out, _repr
from ._handle import alias
from ._lib import buffer, lib
from .autograd import engine
from .autograd.inplace import SEVERED, Keep, edge
from .autograd.node import Accumulated, Leaf, RemovableHandle, hook_onto
from .device import CPU, device_of, place
from .device import device as Device  # noqa: N812
from .dtype import DTYPES
from .dtype import dtype as DType  # noqa: N812
from .errors import ArgumentError, DTypeError, Error
from .ops._operand import tensor_of
from .ops.composed.distance import DistanceMethods
from .ops.composed.order import OrderMethods
from .ops.composed.pointwise import CompositeMethods
from .ops.composed.portable import PortableMethods
from .ops.composed.products import ProductMethods
from .ops.composed.shape import ShapeMethods
from .ops.composed.statistics import StatisticsMethods
from .ops.conv import ConvMethods
from .ops.copy import CopyMethods, copy_
from .ops.getitem import ItemMethods
from .ops.index import IndexMethods
from .ops.matmul import MatmulMethods
from .ops.nll import NllMethods
from .ops.norm import NormMethods
from .ops.pointwise import PointwiseMethods
from .ops.pool import PoolMethods
from .ops.reduce import ReduceMethods
from .ops.scan import ScanMethods
from .ops.softmax import SoftmaxMethods
from .ops.sort import SortMethods
from .ops.view import ViewMethods, axis
from .random import RandomMethods
from .storage import Memory, Storage, storage_of


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


class Tensor(
    PointwiseMethods,
    CompositeMethods,
    ReduceMethods,
    MatmulMethods,
    ViewMethods,
    ShapeMethods,
    CopyMethods,
    IndexMethods,
    ItemMethods,
    ProductMethods,
    ConvMethods,
    PoolMethods,
    RandomMethods,
    NormMethods,
    ScanMethods,
    SoftmaxMethods,
    NllMethods,
    SortMethods,
    OrderMethods,
    StatisticsMethods,
    DistanceMethods,
    PortableMethods,
):
    """An N-dimensional array of one dtype, with a memory of how it was computed.

    ``Tensor([[1, 2], [3, 4]])`` takes values and ``Tensor(2, 3)`` takes sizes (its elements are then undefined); both
    are of the default float dtype. ``norch.tensor(values)`` keeps the dtype of the values.

    >>> norch.Tensor([[1, 2], [3, 4]], requires_grad=True).sum()
    tensor(10., grad_fn=<SumBackward>)
    """

    __slots__ = ()
    __array_priority__ = 1000  # NumPy arrays on the left leave the operation to us

    def __new__(cls, *data: Any, requires_grad: bool = False) -> Tensor:
        from . import create

        made = create.legacy_tensor(data)
        return adopt(cls, made).requires_grad_(requires_grad)

    # ---- what it is ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each axis."""
        return Size(lib.norch_shape(self))

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[axis(dim, self.ndim, "size")]

    def stride(self, dim: int | None = None) -> Any:
        """How many elements of memory lie between neighbours along each axis, or along one."""
        strides = lib.norch_strides(self)
        return strides if dim is None else strides[axis(dim, self.ndim, "stride")]

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
        return self._data

    def untyped_storage(self) -> Storage:
        """The bytes that it shares with its views, as an object: storages are the same where memory is shared."""
        return storage_of(self)

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
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

    # ---- autograd --------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded. Set it on leaves."""
        return edge(self) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Begins (or ends) collecting a gradient in .grad; floats only. TypeError for what is no bool."""
        if requires_grad is not True and requires_grad is not False:
            raise TypeError(f"requires_grad_: requires_grad must be a bool, not {type(requires_grad).__name__}")
        node = edge(self)
        if not requires_grad:
            if node is not None and type(node) is not Leaf:
                raise Error("requires_grad: only a leaf can stop requiring grad; use detach() on a computed tensor")
            self._node = None
        elif node is None:
            if not self.dtype.is_floating_point:
                raise DTypeError(f"requires_grad: only floating tensors have gradients, not {self.dtype.name}")
            self._node = Leaf(self)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than computed in a graph."""
        node = edge(self)
        return node is None or type(node) is Leaf

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of; None where it is none, or nobody noted it."""
        return None if self._view is None or self._view is SEVERED else self._view.base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def grad_fn(self) -> Any:
        """The node that made it; None for leaves."""
        node = edge(self)
        return None if type(node) is Leaf else node

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Adds the derivative of this tensor to the .grad of every leaf that it was computed from.

        A tensor of more than one element needs gradient, of its shape: the derivative is weighted by it. See
        norch.autograd.backward for the rest.
        """
        engine.backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same elements outside any graph."""
        return alias(self)

    def detach_(self) -> Tensor:
        """Leaves the graph that it was computed in."""
        if self._view is not None and self._node is not None:
            raise Error("detach_: a view cannot leave the graph of its base; use detach()")
        self._node = None
        return self

    @property
    def data(self) -> Tensor:
        """The same elements outside any graph; writes to them are not noticed by autograd."""
        return lib.norch_alias(self)

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Tensor):
            raise TypeError(f"data: expected a tensor, not {type(other).__name__}")
        if other.dtype is not self.dtype and self._node is not None and not other.dtype.is_floating_point:
            raise DTypeError(f"data: a tensor that requires grad cannot become {other.dtype.name}")
        lib.norch_set_data(self, other)
        self._cell = self._view = None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward() collected; None before."""
        return self._grad

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        if g is not None:
            if not isinstance(g, Tensor):
                raise TypeError(f"grad: a gradient is a tensor or None, not {type(g).__name__}")
            if g is self:
                raise Error("grad: a tensor cannot be its own gradient")
            if g._dtype != self._dtype or g.shape != self.shape or g.device != self.device:
                raise Error(
                    f"grad: a gradient of {g.dtype} and shape {tuple(g.shape)} on {g.device} "
                    f"for a tensor of {self.dtype} and shape {tuple(self.shape)} on {self.device}"
                )
        self._grad = g

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def retain_grad(self) -> None:
        """Lets backward() leave the gradient in .grad, also where this is no leaf."""
        node = self._hookable("retain_grad")
        if type(node) is not Leaf:
            hooks = node.hooks or []
            if not any(isinstance(hook, Keep) and hook.tensor() is self for hook in hooks):
                node.hooks = [*hooks, Keep(self)]

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Calls hook(gradient) when the gradient of this tensor is known; what it returns replaces it."""
        if not callable(hook):
            raise TypeError(f"register_hook: expected a function of the gradient, not {type(hook).__name__}")
        return hook_onto(self._hookable("register_hook"), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Calls hook(tensor) when backward() has added to the .grad of this tensor, a leaf.

        >>> w = norch.ones(2, requires_grad=True)
        >>> handle = w.register_post_accumulate_grad_hook(lambda w: print(w.grad))
        >>> (w * 3).sum().backward()
        tensor([3., 3.])
        """
        node = self._hookable("register_post_accumulate_grad_hook")
        if type(node) is not Leaf:
            raise Error("register_post_accumulate_grad_hook: only a leaf collects a gradient")
        return hook_onto(node, Accumulated(hook))

    def _hookable(self, name: str) -> Any:
        node = edge(self)
        if node is None:
            raise Error(f"{name}: this tensor does not require grad")
        return node

    @property
    def _version(self) -> int:
        """When it was last written to in place, on the clock that counts nodes too; 0 for never."""
        return self._cell[0] if self._cell else 0

    # ---- elements as Python sees them -------------------------------------------------------------------------

    def item(self) -> Any:
        """The only element as a Python number; ValueError when there is not exactly one."""
        return lib.norch_item(self)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for 0-d."""
        values = self._values()
        for size in reversed(self.shape[1:]):
            if size == 0:
                return _repr.empty_lists(self.shape)
            values = [values[i : i + size] for i in range(0, len(values), size)]
        return values if self.ndim else values[0]

    def _values(self) -> list[Any]:
        """All elements in C order."""
        if not self.dtype.format:
            return self.detach().float()._values()
        count = self.nbytes
        memory = buffer(count)
        lib.norch_to_bytes(self, memory, count)
        view: Any = memoryview(memory).cast("B")[:count]
        return view.cast(self.dtype.format).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory; writes go both ways. Needs NumPy. force: detach and move first."""
        x = self.detach().cpu() if force else self
        if x.requires_grad and not force:
            raise Error("numpy: this tensor requires grad; use .detach().numpy()")
        if x.is_cuda:
            raise TypeError(
                f"numpy: can't convert a tensor on {x.device} to numpy; use .cpu() to copy it to the memory of the host"
            )
        if x.dtype.name == "bfloat16":
            raise DTypeError(f"numpy: NumPy has no {x.dtype.name}; cast first, as with .float()")
        import numpy

        return numpy.asarray(Memory(x))

    def pin_memory(self, device: Any = None) -> Tensor:
        """A copy in page-locked memory of the host, which a CUDA device reads by itself: to(device, non_blocking=True)
        returns while it does. This tensor itself where it lies there already, or where there is no CUDA device.
        DeviceError for a tensor that is not on the CPU."""
        from . import cuda

        if not self.is_cpu or (not self.is_pinned() and cuda.is_available()):
            return lib.norch_pin(self, place(device or "cuda"))
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether its memory is that of pin_memory()."""
        return bool(lib.norch_is_pinned(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentError(f"__array__: from {array.dtype} to {dtype} takes a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What NumPy's elementwise functions make of a result: a tensor again, where its dtype is one of norch."""
        from . import create

        try:
            return create.as_tensor(array)
        except DTypeError:
            return array

    def apply_(self: T, callable: Callable[[Any], Any]) -> T:
        """Replaces each element by what callable gives for it: slow, and outside any graph."""
        return self.map_(self, lambda x, _: callable(x))

    def map_(self: T, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> T:
        """Replaces each element by callable(element, element of tensor, broadcast): slow, and outside any graph."""
        if self.requires_grad or tensor_of(tensor, "map_").requires_grad:
            raise Error("map_: Python functions have no derivatives; detach() the tensors first")
        from . import create

        pairs = zip(self._values(), tensor.expand(self.shape)._values())
        values = create.tensor([callable(a, b) for a, b in pairs], dtype=self.dtype, device=self.device)
        return copy_(self, values.view(self.shape))

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero."""
        return bool(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.ndim else self

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ArgumentError(
                f"the truth of a tensor of shape {tuple(self.shape)} is ambiguous; use .any() or .all()"
                if self.numel()
                else "the truth of an empty tensor is ambiguous"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.dtype.kind == "b" or self.numel() != 1:
            raise TypeError("only a single integer can stand where an integer is wanted")
        return int(self.item())

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, (Tensor, int, float)):
            raise TypeError(f"in: a tensor holds numbers, not {type(value).__name__}")
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else repr(self)

    def __repr__(self) -> str:
        return _repr.text(self)

    # ---- more of the kind ---------------------------------------------------------------------------------------

    def new(self, *data: Any) -> Tensor:
        """Tensor(*data), which takes sizes or values, in this dtype and on this device: the older new_tensor()."""
        from . import create

        return create.legacy_tensor(data, self.dtype).to(self.device)

    def new_tensor(self, data: Any, **more: Any) -> Tensor:
        """The values in data, in this dtype and on this device; see norch.tensor."""
        from . import create

        return create.tensor(data, **self._like(more))

    def new_empty(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Undefined elements in the given shape, in this dtype and on this device unless given."""
        from . import create

        return create.empty(*shape, size=size, **self._like(more))

    def new_zeros(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Zeros in the given shape, in this dtype and on this device unless given."""
        from . import create

        return create.zeros(*shape, size=size, **self._like(more))

    def new_ones(self, *shape: Any, size: Any = None, **more: Any) -> Tensor:
        """Ones in the given shape, in this dtype and on this device unless given."""
        from . import create

        return create.ones(*shape, size=size, **self._like(more))

    def new_full(self, size: Any, fill_value: Any, **more: Any) -> Tensor:
        """fill_value in the given shape, in this dtype and on this device unless given."""
        from . import create

        return create.full(size, fill_value, **self._like(more))

    def new_empty_strided(self, size: Any, stride: Any, **more: Any) -> Tensor:
        """Undefined elements in the given shape and strides, in this dtype and on this device unless given."""
        from . import create

        return create.empty_strided(size, stride, **self._like(more))

    def _like(self, more: dict[str, Any]) -> dict[str, Any]:
        dtype, device = more.get("dtype"), more.get("device")
        return {**more, "dtype": dtype or self.dtype, "device": self.device if device is None else device}

    def __dir__(self) -> list[str]:
        lacking = {name for name, value in vars(Tensor).items() if type(value) is _left_out.Missing}
        return [name for name in object.__dir__(self) if name not in lacking]

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        if not self.is_leaf:
            raise Error("deepcopy: only leaves can be copied; detach() this tensor first")
        from copy import deepcopy

        storage = deepcopy(self.untyped_storage(), memo)
        rebuild, (_, *rest), attributes = self.__reduce__()
        memo[id(self)] = copied = rebuild(storage, *rest)
        copied.grad = deepcopy(self.grad, memo)
        if attributes is not None:
            copied.__dict__.update(deepcopy(attributes, memo))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: a leaf over the same storage, which is pickled once however many tensors see it."""
        how = (self.dtype, tuple(self.shape), self.stride(), self._offset, type(self), self.requires_grad)
        return rebuilt, (self.untyped_storage(), *how), vars(self) or None


T = TypeVar("T", bound=Tensor)


def adopt(cls: type[T], tensor: Tensor) -> T:
    """An instance of cls, a Tensor class, over the elements of tensor and outside any graph."""
    if cls is Tensor and type(tensor) is Tensor and tensor._node is None:
        return tensor  # type: ignore[return-value]
    out = lib.norch_adopt(cls, tensor)
    out._cell = _handle.cell_of(tensor)
    return out


def rebuilt(
    storage: Storage,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    cls: type[Tensor],
    requires_grad: bool,
) -> Tensor:
    """What Tensor.__reduce__ took apart."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"{cls!r} is no class of tensors")
    return adopt(cls, storage.seen_as(dtype, shape, strides, offset)).requires_grad_(requires_grad)


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return tensor_of(input, "numel").numel()


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero; ValueError where there is not exactly one."""
    return bool(tensor_of(input, "is_nonzero"))


for _base in Tensor.__mro__[1:-1]:  # Python's own errors name methods by the class that users know
    for _method in vars(_base).values():
        if isinstance(_method, FunctionType) and _method.__qualname__.startswith(f"{_base.__name__}."):
            _method.__qualname__ = f"Tensor.{_method.__name__}"
_left_out.mark(Tensor)
_handle.result_class = Tensor
lib.norch_set_class(id(Tensor))
