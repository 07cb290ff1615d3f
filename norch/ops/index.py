"""Indexing by tensors of indices (csrc/ops/index.c). Every index is checked before anything is read or written.

Index tensors, broadcast together, form an AdvancedIndex; the functions here read and write the elements at it.
scatter.py has one index per element along one axis, getitem.py ``x[...]``. A function ``f_`` writes into its first
argument; ``f`` returns a copy.
"""

from __future__ import annotations

from collections.abc import Callable

from .._binding.library import constants, lib
from .._binding.numbers import flag
from .._package.typing import Any, Literal, Operand, Tensor, overload
from .._tensor.handle import Handle
from ..autograd.derivative import derivative, write_derivative
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.levels import BatchedBase, zeros_of
from ..autograd.record import record, record_write
from ..autograd.saved import TensorHolder
from ..autograd.transpose import walking
from ..dtype import bool_, check_fits, int64
from ..errors import DTypeError, Error, ShapeError, rename_error
from ._arguments import named_function
from ._autocast import in_autocast, policy
from ._checks import on_one_device
from ._operand import as_operand, kernel_operand
from .copy import cast, check_scalar, clone_for, copy_, once_along, shared_axes, to
from .create import arange
from .op import OPCODES, method
from .pointwise import where
from .view import axis as axis_of
from .view import reshape, slice_

__all__ = [
    "argwhere", "index_add", "index_copy", "index_fill", "index_select", "masked_fill", "masked_scatter",
    "masked_select", "nonzero", "put", "take",
]  # fmt: skip


KINDS = {name[6:]: number for name, number in constants.items() if name.startswith("INDEX_")}
_GET, _SELECT, _TAKE, _FILL = (KINDS[name] for name in ("GET", "SELECT", "TAKE", "FILL"))
PUT, PUT_ADD = KINDS["PUT"], KINDS["PUT_ADD"]
_IN_BRACKETS = (_GET, PUT, PUT_ADD)


def check_index(index: Tensor, name: str) -> Tensor:
    """index. TypeError unless it is a tensor."""
    if not isinstance(index, Handle):
        raise TypeError(f"{name}: the index must be a tensor, not {type(index).__name__}")
    return index


def values_for(x: Tensor, value: Operand, name: str) -> Tensor:
    """The values of a write into x, in the dtype of x. Numbers must fit that dtype."""
    values = kernel_operand(value, name)
    check_scalar(values, x, name)
    return to_device_of(cast(values, x.dtype), x)


def source_for(x: Tensor, src: Operand, name: str) -> Tensor:
    """values_for(). DTypeError for a tensor of another dtype than x."""
    return to_device_of(src, x) if isinstance(src, Handle) else values_for(x, src, name)


def to_device_of(value: Tensor, x: Tensor) -> Tensor:
    """value, on the device of x if it is a number on the CPU."""
    return to(value, x.device) if x._device_type and value.ndim == 0 and value.is_cpu else value


def on_common_device(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both values; a number on the CPU is moved to the device of the other. Functions call this that reshape before
    they compute.
    """
    return to_device_of(a, b), to_device_of(b, a)


# ---- index tensors that are broadcast together ----------------------------------------------------------------------


class AdvancedIndex(TensorHolder):
    """Elements of a tensor, named by one index tensor for each of some axes.

    The result has first `lead` axes that no index takes, then the dimensions to which the indices broadcast, then the
    other axes. named is axes as error messages call them, if that differs.
    """

    __slots__ = ("axes", "indices", "lead", "named")
    gradient_kind = PUT_ADD  # elements that are named twice have two gradients

    def __init__(
        self, indices: tuple[Any, ...], axes: tuple[int, ...], lead: int, named: tuple[int, ...] | None = None
    ):
        self.indices, self.axes, self.lead = indices, axes, lead
        self.named = axes if named is None else named

    def on_device_of(self, x: Tensor, kind: int) -> tuple[Tensor, ...]:
        """The index with its tensors on the device of x: as in PyTorch, index tensors on the CPU can index any
        tensor.
        """
        if not x._device_type or kind not in _IN_BRACKETS:
            return self.indices
        return tuple(to(index, x.device) if index.is_cpu else index for index in self.indices)

    def ndim(self, x: Tensor) -> int:
        """The dimensions of the elements of x that it names."""
        return x.ndim - len(self.indices) + max(index.ndim for index in self.indices)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a node saves."""
        return self.indices


FIRST_AXES = tuple(range(64))


class MaskIndex(AdvancedIndex):
    """The elements of a tensor where a mask of the same shape is True. It stores the mask, and computes indices at each
    use.
    """

    __slots__ = ("mask",)
    gradient_kind = PUT

    def __init__(self, mask: Any):
        self.mask, self.lead = mask, 0
        self.axes = self.named = FIRST_AXES[: mask.ndim]

    @property
    def indices(self) -> tuple[Tensor, ...]:  # type: ignore[override]
        """An index tensor for each axis."""
        return nonzero(self.mask, as_tuple=True)

    def tensors(self) -> tuple[Any, ...]:
        """The mask."""
        return (self.mask,)

    def takes(self, x: Tensor, values: Tensor) -> bool:
        """Whether values lie side by side for the elements of x, which is contiguous."""
        is_alike = values._dtype == x._dtype and values._device_type == self.mask._device_type == x._device_type
        return is_alike and values.ndim == 1 and x.is_contiguous()


def _read(x: Tensor, index: AdvancedIndex, kind: int) -> Tensor:
    indices = index.on_device_of(x, kind) if x._device_type else index.indices
    return lib.norch_index_get(x, kind, indices, index.axes, index.named, index.lead)


def index_read(x: Tensor, index: AdvancedIndex, kind: int = _GET) -> Tensor:
    """The elements of x that index names, as a new tensor."""
    return record(_IndexGet, _read(x, index, kind), (x,), (index,))


def mask_read(x: Tensor, mask: Any) -> Tensor:
    """The elements of x where a mask of its shape is True; the node saves their indices."""
    out = lib.norch_mask_get(x, mask)
    return record(_IndexGet, out, (x,), (index_of_mask(mask),)) if x.requires_grad else out


_IndexGet = derivative(
    "index_get",
    tensors=("index",),
    grad=lambda g, x_meta, index: index_write(zeros_of(x_meta, g, *index.tensors()), index, g, index.gradient_kind),
)


def index_write(x: Tensor, index: AdvancedIndex, values: Tensor, kind: int = PUT, in_place: bool = True) -> Tensor:
    """Writes values, broadcast, to the elements of x that index names, or of a copy. Some kinds add them."""
    if in_place:
        check_writable(x, "index_put_", values)
    node = record_write(_WRITES.get(kind, _IndexPut), x, values, index)
    if type(index) is MaskIndex and kind == PUT and in_place and index.takes(x, values):
        lib.norch_mask_put(x, index.mask, values)
        finish_write(x, node)
        return x
    indices = index.on_device_of(x, kind)
    try:
        out = lib.norch_index_put(x, kind, indices, index.axes, index.named, index.lead, values, in_place)
    except Error:
        is_number = values._numel == 1 and values._dtype == x._dtype
        if not in_place or not is_number or kind not in (PUT, _FILL) or not shared_axes(x):
            raise
        written = x.new_zeros(x.shape, dtype=bool_)
        index_write(written, index, values.new_ones(values.shape, dtype=bool_), kind)
        return masked_fill_(x, written, values.reshape(()))
    return result_of_write(out, node, in_place)


def result_of_write(out: Tensor, node: Any, in_place: bool) -> Tensor:
    """out, which was written to in place or is a new tensor, with node as its history."""
    if in_place:
        finish_write(out, node)
    else:
        out._node = node
    return out


def _index_fill_grad(g: Any, needs_input_grad: tuple[bool, bool], index: AdvancedIndex) -> tuple[Any, Any]:
    """The gradient of the value that index_fill() writes. An element counts once, however often it is named."""
    if not needs_input_grad[1]:
        return index_write(g, index, g.new_zeros(()), _FILL, in_place=False), None
    filled = index_write(g.new_zeros(g.shape, dtype=bool_), index, g.new_ones((), dtype=bool_))
    return g.masked_fill(filled, 0) if needs_input_grad[0] else None, g.where(filled, 0).sum()


def of_last_writes(g: Any, read_back: Callable[[Any], Any]) -> Any:
    """The gradient g of written values, with 0 for each value that a later one has replaced. read_back(numbers) writes
    numbers in the places of the values and reads these places."""
    numbers = arange(g.numel(), device=g.device).view(g.shape)
    return g.where(read_back(numbers) == numbers, 0)


def _written_grad(g: Any, index: AdvancedIndex) -> Any:
    """The gradient of the values that index_put() writes. As in PyTorch, values that a later one has replaced have the
    gradient of that one, except where the walk must be exact."""
    at_index = index_read(g, index)
    if not walking.exact or index.gradient_kind == PUT:
        return at_index
    zeros = zeros_of(g, *index.tensors(), g).to(int64)
    return of_last_writes(at_index, lambda numbers: index_read(index_write(zeros, index, numbers), index))


_IndexPut = write_derivative(
    "index_put",
    ("index",),
    tensors=("index",),
    grad_x=lambda g, index: index_write(g.clone(), index, g.new_zeros(())),
    grad_values=_written_grad,
)
_IndexAdd = write_derivative(
    "index_add",
    ("index",),
    tensors=("index",),
    grad_x=lambda g: g,
    grad_values=lambda g, index: index_read(g, index),
    shares_grad=True,
)
_IndexFill = write_derivative("index_fill", ("index",), tensors=("index",), backward=_index_fill_grad)
_WRITES = {PUT_ADD: _IndexAdd, KINDS["ADD"]: _IndexAdd, _FILL: _IndexFill}


# ---- an index along one axis ----------------------------------------------------------------------------------------


def along_axis(x: Tensor, dim: Any, index: Tensor, name: str) -> tuple[Any, AdvancedIndex]:
    """x, of at least one dimension, and its elements at a 1-d index along dim."""
    if not isinstance(index, Handle):
        check_index(index, name)
    axis = axis_of(dim, x.ndim, name)
    if index.ndim != 1 or not x.ndim:
        if index.ndim > 1:
            raise ShapeError(f"{name}: the index must have at most one dimension, not {index.ndim}")
        if x.ndim == 0 and index.numel() != 1:
            raise ShapeError(f"{name}: {index.numel()} indices into a 0-d tensor; only one is possible")
        x, index = x if x.ndim else x.view(1), index if index.ndim else index.view(1)
    return x, AdvancedIndex((index,), (axis,), axis)


def without_axis(out: Tensor, x: Tensor) -> Tensor:
    """A result for the x of along_axis(); a number if x was one."""
    return out if x.ndim else out.view(())


@method(numpy=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of x along dim at these indices (1-d), in their order.

    >>> norch.index_select(norch.arange(4), 0, norch.tensor([2, 0]))
    tensor([2, 0])
    """
    x = as_operand(input, "index_select")
    if not x.requires_grad and isinstance(index, Handle) and index.ndim == 1 and x.ndim:
        axis = axis_of(dim, x.ndim, "index_select")
        return lib.norch_index_get(x, _SELECT, (index,), (axis,), (axis,), axis)
    whole, at = along_axis(x, dim, index, "index_select")
    return without_axis(index_read(whole, at, _SELECT), x)


def _write_along(name: str, kind: int, about: str) -> tuple[Any, Any]:
    """index_add or index_copy, and its form in place: source has the size of the index along dim."""

    def write(x: Tensor, dim: int, index: Tensor, source: Tensor, in_place: bool) -> Tensor:
        source = source_for(x, source, name)
        index = check_index(index, name)
        whole, at = along_axis(x, dim, index, name)
        shape, axis = lib.norch_shape(whole), at.lead
        shape = (*shape[:axis], index._numel, *shape[axis + 1 :])
        if source.ndim == 0:
            source = source.view(1)
        if lib.norch_shape(source) != shape:
            raise ShapeError(
                f"{name}: source has shape {tuple(source.shape)}; {index.numel()} indices at dimension {axis} of "
                f"shape {tuple(x.shape)} take {shape}"
            )
        out = index_write(whole, at, source, kind, in_place)
        return x if in_place else without_axis(out, x)

    def function(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        if mode.casting and (out := in_autocast(function, input, dim, index, source)) is not None:
            return out
        return write(as_operand(input, name), dim, index, source, False)

    def function_(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
        return write(x, dim, index, source, True)

    return named_function(function, name, about), named_function(function_, name + "_", f"{name}() in place.")


index_copy, index_copy_ = _write_along(
    "index_copy",
    KINDS["COPY"],
    """A copy of x with the parts at the indices (1-d) of an axis replaced by those of source.

    >>> norch.index_copy(norch.zeros(3), 0, norch.tensor([2, 0]), norch.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """,
)
index_copy, index_copy_ = method(out=True)(policy("widest -")(index_copy)), method(index_copy_)
_index_add, _index_add_ = _write_along("index_add", KINDS["ADD"], "")


@method(out=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of x in which alpha times the parts of source are added to the parts along dim at these indices (1-d).

    >>> norch.index_add(norch.zeros(3), 0, norch.tensor([1, 1]), norch.tensor([5.0, 6.0]))
    tensor([ 0., 11.,  0.])
    """
    return _index_add(input, dim, index, _scaled(source, alpha))


@method
def index_add_(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """index_add() in place."""
    return _index_add_(x, dim, index, _scaled(source, alpha))


def _scaled(source: Tensor, alpha: int) -> Tensor:
    return source if isinstance(alpha, int) and alpha == 1 else as_operand(source, "index_add") * alpha


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Operand, in_place: bool) -> Tensor:
    value = _scalar_of(value, x, "index_fill")
    whole, at = along_axis(x, dim, check_index(index, "index_fill"), "index_fill")
    out = index_write(whole, at, value, _FILL, in_place)
    return x if in_place else without_axis(out, x)


def _scalar_of(value: Operand, x: Tensor, name: str) -> Tensor:
    """A number or a 0-d tensor, in the dtype of x."""
    value = values_for(x, value, name)
    if value.ndim:
        raise ShapeError(f"{name}: the value must be a number or a 0-d tensor, not of shape {tuple(value.shape)}")
    return value


@method
def index_fill(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """A copy of x in which the parts along dim at these indices (1-d) are value, a number or a 0-d tensor.

    >>> norch.index_fill(norch.zeros(3), 0, norch.tensor([0, -1]), 5)
    tensor([5., 0., 5.])
    """
    return _index_fill(as_operand(input, "index_fill"), dim, index, value, False)


@method
def index_fill_(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """index_fill() in place."""
    return _index_fill(x, dim, index, value, True)


# ---- indices of the flattened tensor --------------------------------------------------------------------------------


@method(out=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of the flattened x at these indices, in the shape of index.

    >>> norch.take(norch.tensor([[1, 2], [3, 4]]), norch.tensor([0, -1]))
    tensor([1, 4])
    """
    x, index = as_operand(input, "take"), check_index(index, "take")
    return index_read(_flat(x), AdvancedIndex((index,), (0,), 0), _TAKE)


@method(moves=True)
def put_(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes source into the flattened x at these indices, or with accumulate adds it there."""
    return _put(x, index, source, accumulate, True)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool, in_place: bool) -> Tensor:
    index, source = check_index(index, "put_"), source_for(x, source, "put_")
    flag(accumulate, "put_: accumulate")
    if index._numel != source._numel:
        raise ShapeError(f"put_: {index.numel()} indices and {source.numel()} values")
    on_one_device("put_", x, index)
    index, source = index if index.ndim == 1 else lib.norch_reshape(index, (-1,)), _flat(source)
    at, kind = AdvancedIndex((index,), (0,), 0), PUT_ADD if accumulate else PUT
    if in_place and x.is_contiguous():
        index_write(x if x.ndim == 1 else x.view(-1), at, source, kind)
        return x
    if in_place:
        check_writable(x, "put_", source)
    out = index_write(_flat(x), at, source, kind, in_place=False)
    out = out if x.ndim == 1 else reshape(out, lib.norch_shape(x))
    return copy_(x, out) if in_place else out


def _flat(x: Tensor) -> Tensor:
    """x in one axis."""
    if x.ndim == 1:
        return x
    return reshape(x, (-1,)) if x.requires_grad else lib.norch_reshape(x, (-1,))


@method(moves=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of input with source at the flat indices index: put_() into a copy.

    >>> norch.put(norch.zeros(2, 2), norch.tensor([3]), norch.tensor([5.0]))
    tensor([[0., 0.],
            [0., 5.]])
    """
    return _put(as_operand(input, "put"), index, as_operand(source, "put"), accumulate, False)


# ---- masks ----------------------------------------------------------------------------------------------------------


def _mask(mask: Tensor, name: str) -> Tensor:
    mask = check_index(mask, name)
    if mask.dtype.kind != "b":
        raise DTypeError(f"{name}: the mask must be bool, not {mask.dtype.name}")
    return mask


@method(moves=True)
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """value, a number or a 0-d tensor, where mask (bool) is True, and x elsewhere. x and mask broadcast.

    >>> norch.masked_fill(norch.tensor([1, 2, 3]), norch.tensor([False, True, False]), 0)
    tensor([1, 0, 3])
    """
    x = as_operand(input, "masked_fill")
    return where(_mask(mask, "masked_fill"), _fill_value(value, x, "masked_fill"), x)


def _fill_value(value: Operand, x: Tensor, name: str) -> Tensor:
    """_scalar_of(). A Python float among floats is not cast, because where() promotes it as a number."""
    if type(value) is float and x.dtype.is_floating_point:
        check_fits(value, x.dtype, name)
        return kernel_operand(value, name)
    return _scalar_of(value, x, name)


@method
def masked_fill_(x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """Sets x to value, a number or a 0-d tensor, where mask is True. mask is bool and broadcasts to x."""
    mask, value = _mask(mask, "masked_fill_"), _fill_value(value, x, "masked_fill_")
    check_writable(x, "masked_fill_", value)
    node = record_write(_MaskedFill, x, value, mask)
    try:
        lib.norch_ternary_into(x, OPCODES["where"], mask, value, x)
    except Error as error:
        if not _fill_shared(x, mask, value):
            rename_error(error, "masked_fill_")
            raise
    finish_write(x, node)
    return x


def _fill_shared(x: Any, mask: Any, value: Any) -> bool:
    """masked_fill_() of an expanded tensor, which has several elements in one place: the value is written if the mask
    is True for one of them. False if x is no such tensor, or the mask does not fit."""
    shared = shared_axes(x)
    if not shared or mask.ndim > x.ndim or any(m not in (1, n) for m, n in zip(mask.shape[::-1], x.shape[::-1])):
        return False
    for axis in shared:
        if x.ndim - axis <= mask.ndim:
            mask = mask.any(axis - x.ndim, True)
    places = once_along(x, shared)
    lib.norch_ternary_into(places, OPCODES["where"], mask, value, places)
    return True


_MaskedFill = write_derivative(
    "masked_fill",
    ("mask",),
    tensors=("mask",),
    grad_x=lambda g, mask: g.masked_fill(mask, 0),
    grad_values=lambda g, mask: g.where(mask, 0),
)


@method(moves=True, out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where mask (bool) is True, as a vector. x and mask broadcast.

    >>> x = norch.tensor([1, 2, 3])
    >>> norch.masked_select(x, x > 1)
    tensor([2, 3])
    """
    x, mask = as_operand(input, "masked_select"), _mask(mask, "masked_select")
    on_one_device("masked_select", x, mask)
    if x.shape != mask.shape:
        whole = mask.logical_not() | x.new_ones((), dtype=mask.dtype).expand(x.shape)
        x, mask = x.expand(whole.shape), mask.expand(whole.shape)
    if not x.ndim:
        x, mask = x.view(1), mask.view(1)
    return record(_IndexGet, lib.norch_mask_get(x, mask), (x,), (MaskIndex(mask),))


def index_of_mask(mask: Any) -> AdvancedIndex:
    """The elements where a mask of the first axes holds."""
    return AdvancedIndex(nonzero(mask, as_tuple=True), FIRST_AXES[: mask.ndim], 0)


@method(moves=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of x in which the first elements of source replace, in order, the elements where mask (bool) is True. x
    broadcasts with mask.

    >>> mask = norch.tensor([True, False, True])
    >>> norch.masked_scatter(norch.zeros(3), mask, norch.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    x, mask = as_operand(input, "masked_scatter"), _mask(mask, "masked_scatter")
    on_one_device("masked_scatter", x, mask)
    whole = x if lib.norch_shape(x) == lib.norch_shape(mask) else where(mask, x, x)
    return masked_scatter_(clone_for(whole, mask, source), mask, source)


@method
def masked_scatter_(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the first elements of source, in order, where mask is True. mask is bool and broadcasts to x."""
    mask, source = _mask(mask, "masked_scatter_"), as_operand(source, "masked_scatter_")
    if lib.norch_shape(mask) != lib.norch_shape(x):
        mask = mask.expand(x.shape)
    if x.ndim == 0:
        masked_scatter_(x.view(1), mask.view(1), source)
        return x
    if isinstance(mask, BatchedBase):  # each sample takes as many as it needs
        places = mask.flatten().cumsum(0).view(mask.shape) - 1
        return copy_(x, where(mask, source.reshape(-1)[where(mask, places, 0)].to(x.dtype), x))
    if x.is_meta:
        return copy_(x, where(mask, source.sum().to(x.dtype), x))  # for the graph
    count = lib.norch_item(lib.norch_reduce(OPCODES["sum"], mask, None, False, -1, 0.0))
    if source._numel < count:
        raise ShapeError(f"masked_scatter_: {count} elements are to be set, source has {source.numel()}")
    source = _flat(source)
    return index_write(x, MaskIndex(mask), source if source._numel == count else slice_(source, 0, 0, count, 1))


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@method(out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of all elements that are not 0, in C order: a matrix with a row for each element, or with as_tuple a
    vector for each dimension.

    >>> norch.nonzero(norch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    x = as_operand(input, "nonzero")
    if not flag(as_tuple, "nonzero: as_tuple"):
        return lib.norch_nonzero(x, False)
    rows = lib.norch_nonzero(x if x.ndim else x.view(1), True)
    return tuple(lib.norch_select(rows, 0, i) for i in range(max(x.ndim, 1)))


@method
def argwhere(input: Tensor) -> Tensor:
    """The indices of all elements that are not 0, one row for each.

    >>> norch.argwhere(norch.tensor([[0, 5], [6, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)
