"""Indexing by tensors of indices (csrc/ops/index.c). Every index is checked before anything is read or written.

Reads and writes come in two shapes: Places, for index tensors that are broadcast together (what ``x[...]`` makes,
getitem.py), and an index for each element along one dimension (gather, scatter). The rest is made of them. A
function ``f_`` writes into its first argument; ``f`` gives a copy.
"""

from __future__ import annotations

import math
from typing import Any

from .._handle import Handle, alias
from .._lib import constants, flag, lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, edge, meta_of, written
from ..dtype import check_fits
from ..dtype import int64 as int64_
from ..errors import ArgumentError, DTypeError, Error, ShapeError, rename_error
from ._forms import OPS
from ._inplace import in_place
from ._operand import as_operand, kernel_operand, named_function, on_one_device, rename_errors
from .copy import cast, copy_, to
from .pointwise import where
from .view import axis as dim_of

KINDS = {name[6:]: number for name, number in constants.items() if name.startswith("INDEX_")}
_IN_BRACKETS = (KINDS["GET"], KINDS["PUT"], KINDS["PUT_ADD"])


def _indices(index: Any, name: str) -> Any:
    if not isinstance(index, Handle):
        raise TypeError(f"{name}: the index must be a tensor, not {type(index).__name__}")
    return index


def as_values(value: Any, x: Any, name: str) -> Any:
    """What is written into x, in its dtype; numbers must fit it."""
    if isinstance(value, (int, float)):
        check_fits(value, x.dtype, name)
    return to_device_of(cast(as_operand(value, name), x.dtype), x)


def to_device_of(value: Any, x: Any) -> Any:
    """value, on the device of x if it is a number on the CPU."""
    return to(value, x.device) if x._device_type and value.ndim == 0 and value.is_cpu else value


def on_common_device(a: Any, b: Any) -> tuple[Any, Any]:
    """Both, where one is a number on the CPU on the device of the other: for what reshapes before it computes."""
    return to_device_of(a, b), to_device_of(b, a)


def _source(src: Any, x: Any, name: str) -> Any:
    """The same, but a tensor keeps its dtype, which must be that of x."""
    return to_device_of(src, x) if isinstance(src, Handle) else as_values(src, x, name)


# ---- index tensors that are broadcast together ----------------------------------------------------------------------


class Places:
    """Elements of a tensor: one index tensor for each of some axes.

    The dimensions that the indices are broadcast to stand after the first `lead` of those that no index takes. An axis
    carries, times 256, the number that messages give it.
    """

    __slots__ = ("axes", "indices", "lead")

    def __init__(self, indices: tuple[Any, ...], axes: tuple[int, ...], lead: int):
        self.indices, self.axes, self.lead = indices, axes, lead

    def on(self, x: Any, kind: int) -> tuple[Any, ...]:
        """The indices on the device of x: those on the CPU go with any in ``x[...]``, as PyTorch has it."""
        if not x._device_type or kind not in _IN_BRACKETS:
            return self.indices
        return tuple(to(index, x.device) if index.is_cpu else index for index in self.indices)

    def ndim(self, x: Any) -> int:
        """The dimensions of what they hold of x."""
        return x.ndim - len(self.indices) + max(index.ndim for index in self.indices)

    def kept(self) -> tuple[Any, ...]:
        """The tensors that say where the places are."""
        return self.indices


FIRST_AXES = tuple(axis * 257 for axis in range(64))  # as Places has them, and messages count them


class Masked(Places):
    """Where a mask holds, for a tensor of its shape: the mask is kept, and read again for each use."""

    __slots__ = ("mask",)

    def __init__(self, mask: Any):
        self.mask, self.axes, self.lead = mask, FIRST_AXES[: mask.ndim], 0

    @property
    def indices(self) -> tuple[Any, ...]:  # type: ignore[override]
        """An index tensor for each axis."""
        return nonzero(self.mask, as_tuple=True)

    def kept(self) -> tuple[Any, ...]:
        """The mask."""
        return (self.mask,)


def _read(x: Any, places: Places, kind: int) -> Any:
    return lib.norch_index_get(x, kind, places.on(x, kind), places.axes, places.lead)


def get_at(x: Any, places: Places, kind: int = KINDS["GET"]) -> Any:
    """The elements of x at these places, as a new tensor."""
    out = _read(x, places, kind)
    if mode.enabled and (to_x := edge(x)) is not None:
        node = d.IndexGet(to_x)
        node.places, node.like = places, meta_of(x)
        out._node = node
    return out


def put_at(
    x: Any, places: Places, values: Any, kind: int = KINDS["PUT"], add: bool = False, in_place: bool = True
) -> Any:
    """Writes values, broadcast, to these places of x, or of a copy; with add they are added."""
    if add:
        kind = KINDS["PUT_ADD"] if kind == KINDS["PUT"] else kind
    if in_place:
        check_writable(x, "index_put_")
    to_x, to_values = _edges(x, values)
    out = lib.norch_index_put(x, kind, places.on(x, kind), places.axes, places.lead, values, in_place)
    node = None
    if to_x is not None or to_values is not None:
        node = (d.IndexFill if kind == KINDS["FILL"] else d.IndexPut)(to_x, to_values)
        node.places, node.like, node.adds = places, meta_of(values), add
    return _written(out, node, in_place)


def _edges(x: Any, values: Any) -> tuple[Any, Any]:
    """Where the gradients of x and of what is written into it go."""
    return (edge(x), edge(values)) if mode.enabled and x.dtype.is_floating_point else (None, None)


def _written(out: Any, node: Any, in_place: bool) -> Any:
    """What comes out of a write, noted."""
    if in_place:
        written(out, node)
    else:
        out._node = node
    return out


def _along(x: Any, dim: Any, index: Any, name: str) -> tuple[Any, Places]:
    """x, of at least one dimension, and the places of a 1-d index along dim."""
    index = _indices(index, name)
    axis = dim_of(dim, x.ndim, name)
    if index.ndim > 1:
        raise ShapeError(f"{name}: the index must have at most one dimension, not {index.ndim}")
    if x.ndim == 0 and index.numel() != 1:
        raise ShapeError(f"{name}: {index.numel()} indices into a 0-d tensor; only one is possible")
    return x if x.ndim else x.view(1), Places((index if index.ndim else index.view(1),), (axis * 257,), axis)


def _shaped(out: Any, x: Any) -> Any:
    """What _along() led to: of a number a number again."""
    return out if x.ndim else out.view(())


def index_select(input: Any, dim: int, index: Any) -> Any:
    """The parts of x at the given indices (1-d) of an axis, in their order.

    >>> norch.index_select(norch.arange(4), 0, norch.tensor([2, 0]))
    tensor([2, 0])
    """
    x = as_operand(input, "index_select")
    whole, places = _along(x, dim, index, "index_select")
    out = get_at(whole, places, KINDS["SELECT"])
    return _shaped(out, x)


def _put_along(name: str, kind: int, add: bool, about: str) -> tuple[Any, Any]:
    """index_add, index_copy and their forms in place: source lies along dim as the index does."""

    def along(x: Any, dim: Any, index: Any, source: Any, in_place: bool) -> Any:
        source = _source(source, x, name)
        whole, places = _along(x, dim, index, name)
        shape, axis = list(whole.shape), places.lead
        shape[axis] = index.numel()
        if source.ndim == 0:
            source = source.view(1)
        if list(source.shape) != shape:
            raise ShapeError(
                f"{name}: source has shape {tuple(source.shape)}; {index.numel()} indices at dimension {axis} of "
                f"shape {tuple(x.shape)} take {tuple(shape)}"
            )
        out = put_at(whole, places, source, kind, add, in_place)
        return x if in_place else _shaped(out, x)

    def function(input: Any, dim: int, index: Any, source: Any) -> Any:
        return along(as_operand(input, name), dim, index, source, False)

    def function_(x: Any, dim: int, index: Any, source: Any) -> Any:
        return along(x, dim, index, source, True)

    return named_function(function, name, about), named_function(function_, name + "_", f"{name}() in place.")


index_copy, index_copy_ = _put_along(
    "index_copy", KINDS["COPY"], False, "A copy of x whose parts at the given indices (1-d) of an axis are source's."
)
_index_add, _index_add_ = _put_along("index_add", KINDS["ADD"], True, "")


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """A copy of x to whose parts at the given indices (1-d) of an axis alpha times those of source are added."""
    return _index_add(input, dim, index, _scaled(source, alpha))


def index_add_(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """index_add() in place."""
    return _index_add_(x, dim, index, _scaled(source, alpha))


def _scaled(source: Any, alpha: Any) -> Any:
    return source if isinstance(alpha, int) and alpha == 1 else as_operand(source, "index_add") * alpha


def _fill(x: Any, dim: int, index: Any, value: Any, in_place: bool) -> Any:
    value = _one("index_fill", value, x)
    whole, places = _along(x, dim, index, "index_fill")
    out = put_at(whole, places, value, KINDS["FILL"], in_place=in_place)
    return x if in_place else _shaped(out, x)


def _one(name: str, value: Any, x: Any) -> Any:
    """A number or a 0-d tensor, in the dtype of x."""
    value = as_values(value, x, name)
    if value.ndim:
        raise ShapeError(f"{name}: the value must be a number or a 0-d tensor, not of shape {tuple(value.shape)}")
    return value


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """A copy of x whose parts at the given indices (1-d) of an axis are value, a number or a 0-d tensor.

    >>> norch.index_fill(norch.zeros(3), 0, norch.tensor([0, -1]), 5)
    tensor([5., 0., 5.])
    """
    return _fill(as_operand(input, "index_fill"), dim, index, value, False)


def index_fill_(x: Any, dim: int, index: Any, value: Any) -> Any:
    """index_fill() in place."""
    return _fill(x, dim, index, value, True)


@rename_errors
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """A copy of x into whose parts at the given indices (1-d) of an axis those of source are reduced: by "prod",
    "mean", "amax" or "amin", together with what is there, or without it."""
    x, source = as_operand(input, "index_reduce"), as_operand(source, "index_reduce")
    flag(include_self, "index_reduce: include_self")
    if reduce == "sum":
        raise ArgumentError("index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin'; index_add() sums")
    whole, places = _along(x, dim, index, "index_reduce")
    shape = [1] * whole.ndim
    shape[places.lead] = -1
    at = index.reshape(shape).expand(source.shape if source.ndim else (1,))
    source = source if source.ndim else source.view(1)
    out = scatter_reduce(whole, places.lead, at, source, reduce, include_self=include_self)
    return _shaped(out, x)


def take(input: Any, index: Any) -> Any:
    """The elements of x, as if it had one axis, at the given indices; the shape of index.

    >>> norch.take(norch.tensor([[1, 2], [3, 4]]), norch.tensor([0, -1]))
    tensor([1, 4])
    """
    x, index = as_operand(input, "take"), _indices(index, "take")
    return get_at(x.reshape(-1), Places((index,), (0,), 0), KINDS["TAKE"])


@rename_errors
def put_(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Writes source into x, as if it had one axis, at the given indices; with accumulate it is added there."""
    index, source = _indices(index, "put_"), _source(source, x, "put_")
    flag(accumulate, "put_: accumulate")
    if index.numel() != source.numel():
        raise ShapeError(f"put_: {index.numel()} indices and {source.numel()} values")
    on_one_device("put_", x, index)
    places = Places((index.reshape(-1),), (0,), 0)
    if x.is_contiguous():
        put_at(x.view(-1), places, source.reshape(-1), add=accumulate)
        return x
    check_writable(x, "put_")
    return copy_(x, put_at(x.reshape(-1), places, source.reshape(-1), add=accumulate, in_place=False).view(x.shape))


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """put_() into a copy."""
    return put_(as_operand(input, "put").clone(), index, source, accumulate)


# ---- an index for each element --------------------------------------------------------------------------------------


def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """out[i][j] = x[index[i][j]][j] for dim 0, and so on; the shape of index (integers)."""
    x = as_operand(input, "gather")
    out = lib.norch_gather(x, dim, _indices(index, "gather"))
    if mode.enabled and (to_x := edge(x)) is not None:
        node = d.Gather(to_x)
        node.dim, node.index, node.like = dim, index, meta_of(x)
        out._node = node
    return out


@rename_errors
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """gather() whose other axes are broadcast, and whose indices may be negative; without dim of x as one axis."""
    x, indices = as_operand(input, "take_along_dim"), _indices(indices, "take_along_dim")
    if indices.dtype is not int64_:
        raise DTypeError(f"take_along_dim: indices must be int64, not {indices.dtype.name}")
    if dim is None:
        x, indices, dim = x.reshape(-1), indices.reshape(-1), 0
    if x.ndim != indices.ndim:
        raise ShapeError(f"take_along_dim: indices of {indices.ndim} dimensions for a tensor of {x.ndim}")
    axis = dim_of(dim, x.ndim, "take_along_dim")
    size = x.shape[axis] if x.ndim else 1
    pairs = zip(x.shape, indices.shape, strict=True)
    common = [a if i == axis or b == 1 else b for i, (a, b) in enumerate(pairs)]
    indices = where(indices < 0, indices + size, indices)
    common[axis] = indices.shape[axis]
    indices = indices.expand(common)
    common[axis] = size
    return gather(x.expand(common), dim, indices)


def _scatter(x: Any, dim: Any, index: Any, src: Any, kind: str, in_place: bool, name: str) -> Any:
    src = _source(src, x, name)
    adds = kind == "SCATTER_ADD"
    if in_place:
        check_writable(x, name + "_")
    to_x, to_src = _edges(x, src)
    out = lib.norch_scatter(x, KINDS[kind], dim, _indices(index, name), src, in_place)
    node = None
    if to_x is not None or to_src is not None:
        node = d.Scatter(to_x, to_src)
        node.dim, node.index, node.like, node.adds = dim, index, meta_of(src), adds
    return _written(out, node, in_place)


def _scatter_by(x: Any, dim: Any, index: Any, src: Any, value: Any, reduce: Any, in_place: bool) -> Any:
    if (src is None) == (value is None):
        raise TypeError("scatter: give src, a tensor, or value, a number")
    given = value if src is None else src
    if reduce is None or reduce == "add":
        return _scatter(x, dim, index, given, "SCATTER_ADD" if reduce else "SCATTER", in_place, "scatter")
    if reduce != "multiply":
        raise ArgumentError(f"scatter: reduce is None, 'add' or 'multiply', not {reduce!r}")
    given = _source(given, x, "scatter")
    given = given if given.ndim else given.expand(index.shape)
    return (scatter_reduce_ if in_place else scatter_reduce)(x, dim, index, given, "prod")


def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """A copy of x with out[index[i][j]][j] = src[i][j] for dim 0, and so on; the last of several stays.

    src is a tensor of the dtype of x, or a number (also as value). reduce: "add" or "multiply" instead of setting.

    >>> norch.scatter(norch.zeros(3), 0, norch.tensor([2, 0]), norch.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    return _scatter_by(as_operand(input, "scatter"), dim, index, src, value, reduce, False)


def scatter_(x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """scatter() in place."""
    return _scatter_by(x, dim, index, src, value, reduce, True)


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, and so on."""
    return _scatter(as_operand(input, "scatter_add"), dim, index, src, "SCATTER_ADD", False, "scatter_add")


def scatter_add_(x: Any, dim: int, index: Any, src: Any) -> Any:
    """scatter_add() in place."""
    return _scatter(x, dim, index, src, "SCATTER_ADD", True, "scatter_add")


def _combined(x: Any, dim: Any, index: Any, src: Any, kind: str) -> Any:
    out = lib.norch_scatter(x, KINDS[kind], dim, index, src, False)
    if mode.enabled and ((to_x := edge(x)) is not None) | ((to_src := edge(src)) is not None):
        node = (d.ScatterProd if kind == "SCATTER_PROD" else d.ScatterExtreme)(to_x, to_src)
        node.dim, node.index, node._a, node._b, node.likes = dim, index, x, src, None
        out._node = node
        node._out = alias(out)
    return out


@rename_errors
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """A copy of x into which src[i][j] is reduced at index[i][j] of dim 0, and so on: by "sum", "prod", "mean", "amax"
    or "amin", together with what is there or, without include_self, instead of it.

    >>> norch.scatter_reduce(norch.zeros(2), 0, norch.tensor([0, 0]), norch.tensor([3.0, 5.0]), "amax")
    tensor([5., 0.])
    """
    x, index, src = (
        as_operand(input, "scatter_reduce"),
        _indices(index, "scatter_reduce"),
        as_operand(src, "scatter_reduce"),
    )
    flag(include_self, "scatter_reduce: include_self")
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}.get(reduce)
    if neutral is None:
        raise ArgumentError(f"scatter_reduce: reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    start = x
    if not include_self:
        if reduce[0] == "a" and not x.dtype.is_floating_point:  # whatever lies there now, one of src is as good
            start = scatter(x, dim, index, src)
        else:
            start = scatter(x, dim, index, neutral)
    if reduce[0] == "a":
        return _combined(start, dim, index, src, f"SCATTER_{reduce.upper()}")
    if reduce == "prod":
        return _combined(start, dim, index, src, "SCATTER_PROD")
    total = scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    counts = x.detach().new_full(x.shape, int(include_self))
    counts = scatter_add(counts, dim, index, 1).clamp(1)
    return total / counts if x.dtype.is_floating_point else cast(total // counts, x.dtype)


# ---- masks ----------------------------------------------------------------------------------------------------------


def _mask(mask: Any, name: str) -> Any:
    mask = _indices(mask, name)
    if mask.dtype.kind != "b":
        raise DTypeError(f"{name}: the mask must be bool, not {mask.dtype.name}")
    return mask


@rename_errors
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """value, a number or a 0-d tensor, where mask (bool) holds, x elsewhere; x and mask broadcast."""
    x = as_operand(input, "masked_fill")
    return where(_mask(mask, "masked_fill"), _filling("masked_fill", value, x), x)


def _filling(name: str, value: Any, x: Any) -> Any:
    """The same as _one(); but among floats a number needs no cast, as where() knows it for one."""
    if type(value) is float and x.dtype.is_floating_point:
        return kernel_operand(value, name)
    return _one(name, value, x)


def masked_fill_(x: Any, mask: Any, value: Any) -> Any:
    """Sets x to value, a number or a 0-d tensor, where mask (bool, broadcast to x) holds."""
    mask, value = _mask(mask, "masked_fill_"), _filling("masked_fill_", value, x)
    check_writable(x, "masked_fill_")
    to_x, to_value = _edges(x, value)
    node = None
    if to_x is not None or to_value is not None:
        node = d.Where(None, to_value, to_x)
        node.likes = (meta_of(mask), meta_of(value), meta_of(x))
        node._a, node._b, node._c, node._out = mask, None, None, None
    try:
        lib.norch_ternary_into(x, OPS["where"], mask, value, x)
    except Error as error:
        rename_error(error, "masked_fill_")
        raise
    written(x, node)
    return x


def masked_select(input: Any, mask: Any) -> Any:
    """The elements of x where mask (bool) holds, in one axis; x and mask broadcast."""
    x, mask = as_operand(input, "masked_select"), _mask(mask, "masked_select")
    on_one_device("masked_select", x, mask)
    if x.shape != mask.shape:
        whole = mask.logical_not() | x.new_ones((), dtype=mask.dtype).expand(x.shape)
        x, mask = x.expand(whole.shape), mask.expand(whole.shape)
    return get_at(x, Masked(mask)) if x.ndim else x.view(1)[mask.view(1)]


def places_of(mask: Any) -> Places:
    """Where a mask holds, for a tensor of its shape."""
    return Places(nonzero(mask, as_tuple=True), FIRST_AXES[: mask.ndim], 0)


@rename_errors
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """A copy of x (broadcast with mask) in which the first elements of source stand where mask (bool) holds."""
    x, mask = as_operand(input, "masked_scatter"), _mask(mask, "masked_scatter")
    whole = where(mask, x, x)
    return masked_scatter_(whole, mask, source)


def masked_scatter_(x: Any, mask: Any, source: Any) -> Any:
    """Writes the first elements of source where mask (bool, broadcast to x) holds, in order."""
    mask, source = _mask(mask, "masked_scatter_").expand(x.shape), as_operand(source, "masked_scatter_")
    if x.ndim == 0:
        masked_scatter_(x.view(1), mask.view(1), source)
        return x
    count = int(mask.sum().item())
    if source.numel() < count:
        raise ShapeError(f"masked_scatter_: {count} elements are to be set, source has {source.numel()}")
    return put_at(x, Masked(mask), source.reshape(-1)[:count])


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The indices of all elements that are not 0, in C order: a row each, or with as_tuple a tensor for each dimension.

    >>> norch.nonzero(norch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    x = as_operand(input, "nonzero")
    if not flag(as_tuple, "nonzero: as_tuple"):
        return lib.norch_nonzero(x, False)
    rows = lib.norch_nonzero(x if x.ndim else x.view(1), True)
    return tuple(lib.norch_select(rows, 0, i) for i in range(max(x.ndim, 1)))


def argwhere(input: Any) -> Any:
    """The indices of all elements that are not 0, a row each."""
    return nonzero(input)


def embedding_rows(table: Any, index: Any, padding: int | None, by_frequency: bool) -> Any:
    """Rows of a table (rows, columns) by integers of any shape; nn.functional.embedding says the rest."""
    places = Places((index,), (0,), 0)
    out = _read(table, places, KINDS["EMBEDDING"])
    if mode.enabled and (to_table := edge(table)) is not None:
        node = d.Embedding(to_table)
        node.places, node.like, node.padding, node.by_frequency = places, meta_of(table), padding, by_frequency
        out._node = node
    return out


scatter_reduce_, index_reduce_ = in_place(scatter_reduce, index_reduce)


class IndexMethods(Handle):
    """The indexing of Tensor by tensors."""

    __slots__ = ()

    gather, take, take_along_dim, put_, put = gather, take, take_along_dim, put_, put
    scatter, scatter_add, scatter_reduce = scatter, scatter_add, scatter_reduce
    scatter_, scatter_add_, scatter_reduce_ = scatter_, scatter_add_, scatter_reduce_
    index_select, index_add, index_copy, index_fill = index_select, index_add, index_copy, index_fill
    index_add_, index_copy_, index_fill_ = index_add_, index_copy_, index_fill_
    index_reduce, index_reduce_ = index_reduce, index_reduce_
    masked_fill, masked_select, masked_scatter = masked_fill, masked_select, masked_scatter
    masked_fill_, masked_scatter_ = masked_fill_, masked_scatter_
    nonzero, argwhere = nonzero, argwhere
    _get_at, _put_at = get_at, put_at

    def _scatter_prod(self, dim: int, index: Any, src: Any) -> Any:
        return _combined(self, dim, index, src, "SCATTER_PROD")
