"""SparseTensor: the coordinates and the values of the elements that are stored. All other elements are 0.

In C it is a tensor of the device "meta", of the same shape and dtype: a call that does not go through calls.py finds no
elements there, and raises an exception. A gradient of a sparse tensor is sparse too. indices_and_values() leads from a
tensor to its values, and unchecked() back; operations on the values between them need no further derivatives.
Coordinates must not have duplicates for this, because each of several would get the whole gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import accumulate
from typing import Any

from .._binding.library import lib
from .._binding.numbers import flag
from .._package.recording import unseen
from .._tensor.copying import adopt, rebuilt_sparse
from .._tensor.representation import nested
from ..autograd.engine import backward
from ..autograd.grad_mode import mode
from ..autograd.node import Node
from ..autograd.record import gradient_edge
from ..dtype import bool_, get_default_dtype, int32, int64
from ..errors import BoundsError, DTypeError, Error, ShapeError
from ..ops._entry import rename_errors
from ..ops.copy import cat
from ..ops.create import arange, empty, ones, zeros
from ..ops.sort import searchsorted, sort
from ..ops.values import as_tensor
from ..tensor import Tensor

Layout = import_module("norch.compat.placeholders").Layout  # by name: mypy takes no such cycle
layout_named = import_module("norch.compat.placeholders").layout

call: Any = None  # call(func, args, kwargs) of calls.py, which sets it: what func gives of sparse tensors

# The operations, by the name of the function or method; calls.py and those that it imports declare them.
HANDLERS: dict[str, Callable[..., Any]] = {}


def implements(names: str) -> Callable[[Any], Any]:
    """Declares that the decorated function computes the functions, methods and attributes of these names."""

    def declare(function: Any) -> Any:
        HANDLERS.update(dict.fromkeys(names.split(), function))
        return function

    return declare


def refusal(operation: str) -> NotImplementedError:
    """The error of an operation that sparse tensors do not have."""
    return NotImplementedError(f"{operation}: norch does not compute it of sparse tensors; use to_dense() first")


class SparseTensor(Tensor):
    """A tensor of the layout norch.sparse_coo, which norch.sparse_coo_tensor() and to_sparse() make. calls.py has its
    operations, those of PyTorch; others raise NotImplementedError.

    _coordinates  the coordinates (sparse_dim, nnz), int64
    _stored       the values (nnz, *dense sizes), without history
    _sorted       whether the coordinates are known to ascend without duplicates, as is_coalesced() says
    _distinct     whether they are known to have no duplicates
    """

    __slots__ = ("_coordinates", "_distinct", "_sorted", "_stored")
    _coordinates: Tensor
    _stored: Tensor
    _sorted: bool
    _distinct: bool

    is_sparse = _in_coordinates = True
    # Those of Tensor would ask __torch_function__ here.
    shape = property(lib.norch_size_of)
    dtype = property(lib.norch_dtype_of)
    layout = property(lambda self: layout_named("sparse_coo"))
    device = property(lambda self: self._stored.device)
    is_cuda = property(lambda self: self._stored.is_cuda)
    is_cpu = property(lambda self: self._stored.is_cpu)
    is_meta = property(lambda self: self._stored.is_meta)

    def __new__(cls, *_: Any, **__: Any) -> Any:
        raise TypeError("SparseTensor: norch.sparse_coo_tensor() makes one")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call(func, args, kwargs or {})

    def sparse_dim(self) -> int:
        """The number of dimensions that have coordinates: the first ones."""
        return self._coordinates.shape[0]

    def dense_dim(self) -> int:
        """The number of dimensions of a value."""
        return self._stored.ndim - 1

    def _nnz(self) -> int:
        return self._coordinates.shape[1]

    def is_coalesced(self) -> bool:
        """Whether the coordinates are known to ascend without duplicates."""
        return self._sorted

    def _coalesced_(self, is_coalesced: bool) -> SparseTensor:
        self._sorted = (
            is_coalesced and checked(self._coordinates, self._stored, self.shape, True, "_coalesced_")._sorted
        )
        self._distinct = self._distinct or self._sorted
        return self

    def coalesce(self) -> Tensor:
        """The same tensor with ascending coordinates; the values of duplicates are added."""
        return coalesced(self)

    def _indices(self) -> Tensor:
        return self._coordinates

    def _values(self) -> Tensor:
        return self._stored.detach()

    def indices(self) -> Tensor:
        """The coordinates (sparse_dim, nnz) of a coalesced tensor."""
        return self._ready("indices")._coordinates

    def values(self) -> Tensor:
        """The values (nnz, *dense sizes) of a coalesced tensor, which they share. Gradients flow back through them."""
        return indices_and_values(self._ready("values"))[1]

    def _ready(self, name: str) -> SparseTensor:
        if not self._sorted:
            raise Error(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
        return self

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor. Its gradient arrives at the coordinates of this one, whatever masked_grad is."""
        at, values = indices_and_values(self)
        flat = zeros(flat_shape(self), dtype=_summed_in(self.dtype), device=self.device)
        out = flat.index_add(0, flat_indices(at, self.shape), values.to(flat.dtype)).view(self.shape)
        return out.to(self.dtype if dtype is None else dtype)

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """Tensor.backward() with a sparse gradient."""
        if not isinstance(gradient, SparseTensor):
            raise Error("backward: for a sparse tensor pass gradient=, a sparse one, or call to_dense() first")
        backward([self], [gradient], *args, **kwargs)

    def as_subclass(self, cls: Any) -> Any:
        raise refusal("as_subclass")

    def _parts(self) -> tuple[Any, ...]:
        """What rebuilt_sparse() makes the tensor of."""
        return self._coordinates, self._values(), self.shape, self._sorted

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt_sparse, (self._coordinates, self._stored, tuple(self.shape), self._sorted, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise Error("deepcopy: only leaves can be copied; detach() this tensor first")
        out = memo[id(self)] = like(self, self._coordinates.clone(), self._stored.clone())
        out.requires_grad_(self.requires_grad)
        out.grad = None if self.grad is None else self.grad.clone()
        return out

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        notes = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        if self.device.type != "cpu":
            notes.append(f"device='{self.device}'")
        if self.dtype not in (get_default_dtype(), get_default_dtype().to_complex(), int64, bool_):
            notes.append(f"dtype={self.dtype!r}")
        notes.append(f"layout={self.layout!r}")
        if (node := self.grad_fn) is not None:
            notes.append(f"grad_fn=<{node.name()}>")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        lines = (
            nested("tensor(indices=", self._coordinates),
            nested("       values=", self._stored),
            "       " + ", ".join(notes),
        )
        return ",\n".join(lines) + ")"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


OWN = dict(vars(SparseTensor))  # of the class, before override.py puts other methods of Tensor there


# ---- coordinates ---------------------------------------------------------------------------------------------------


def flat_indices(at: Tensor, shape: Any) -> Tensor:
    """The position of each coordinate (sparse_dim, nnz) among the elements of shape, in order: (nnz,)."""
    sizes = shape[: len(at)]
    if len(sizes) == 1:
        return at[0]
    steps = [*accumulate(reversed(sizes[1:]), int.__mul__, initial=1)][::-1]
    return (at * as_tensor(steps if sizes else [], dtype=int64, device=at.device).view(-1, 1)).sum(0)


def flat_shape(x: SparseTensor) -> tuple[int, ...]:
    """The shape of x with all sparse dimensions in one, where flat_indices() is the index."""
    n = x.sparse_dim()
    return math.prod(x.shape[:n]), *x.shape[n:]


def find(ascending: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Where each of wanted is in ascending keys, which are not empty, and which of them are there."""
    where = searchsorted(ascending, wanted).clamp(max=len(ascending) - 1)
    return where, ascending[where] == wanted


def equal_pairs(ascending: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs (i, j) with ascending[i] == wanted[j]."""
    first = searchsorted(ascending, wanted)
    counts = searchsorted(ascending, wanted, right=True) - first
    j = arange(len(wanted), device=wanted.device).repeat_interleave(counts)
    return arange(len(j), device=wanted.device) + (first - (counts.cumsum(0) - counts))[j], j


def groups(key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(order, starts, group) of keys: the permutation that sorts them; where in it those begin that differ from the one
    before; and the number of the group of each in it."""
    key, order = sort(key, stable=True)
    starts = cat([ones(min(len(key), 1), dtype=bool_, device=key.device), key[1:] != key[:-1]])
    return order, starts, starts.cumsum(0) - 1


# ---- from values to tensors, and back ------------------------------------------------------------------------------


def unchecked(
    at: Tensor, values: Tensor, shape: Any, is_sorted: bool = False, is_distinct: bool = False, cls: Any = SparseTensor
) -> SparseTensor:
    """A sparse tensor of coordinates, which are not checked, and values, whose history it continues."""
    unseen("a sparse tensor holds elements that a replay would not see")
    out: Any = adopt(cls, empty(shape, dtype=values.dtype, device="meta"))
    out._coordinates, out._stored, out._sorted, out._distinct = at, values.detach(), is_sorted, is_sorted or is_distinct
    if mode.enabled and (edge := gradient_edge(values)) is not None:
        out._node = SparseCooTensor(edge, at)
    return out


def like(x: SparseTensor, at: Tensor, values: Tensor, shape: Any = None) -> SparseTensor:
    """unchecked() of coordinates that are ordered and distinct as those of x are."""
    return unchecked(at, values, x.shape if shape is None else shape, x._sorted, x._distinct)


def indices_and_values(x: SparseTensor) -> tuple[Tensor, Tensor]:
    """(coordinates, values) whose sum is x. The values have the history of x."""
    unseen("a sparse tensor holds elements that a replay would not see")
    if not mode.enabled or gradient_edge(x) is None:
        return x._coordinates, x._stored
    if not x._distinct:
        x = coalesced(x)
    values = x._stored.detach()
    values._node = SparseValues(gradient_edge(x), x)
    return x._coordinates, values


class SparseCooTensor(Node):
    """The step from values to a tensor: the gradient of each value is that of its element."""

    __slots__ = ("at",)

    def __init__(self, edge: Node, at: Tensor):
        super().__init__(edge)
        self.at = at

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (values_at(g, self.at),)


class SparseValues(Node):
    """The step from a tensor to its values."""

    __slots__ = ("at", "is_sorted", "shape")

    def __init__(self, edge: Any, x: SparseTensor):
        super().__init__(edge)
        self.at, self.shape, self.is_sorted = x._coordinates, x.shape, x._sorted

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (unchecked(self.at, g, self.shape, self.is_sorted, True),)


class Coalesce(Node):
    """The step from a tensor to its coalesced form, which has the same elements."""

    __slots__ = ()

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g,)


def values_at(x: Any, at: Tensor) -> Tensor:
    """The elements of x, dense or sparse, at these coordinates: (nnz, *dense sizes)."""
    n = len(at)
    if not isinstance(x, SparseTensor):
        return x.reshape(math.prod(x.shape[:n]), *x.shape[n:]).index_select(0, flat_indices(at, x.shape))
    if x._distinct and x._coordinates is at:
        return indices_and_values(x)[1]
    if x.sparse_dim() != n:
        raise refusal(f"elements at coordinates of {n} dimensions, of one with {x.sparse_dim()} sparse dimensions")
    own_at, values = indices_and_values(coalesced(x))
    if not len(values):
        return values.sum(0, dtype=values.dtype).expand(at.shape[1], *values.shape[1:])  # zeros, with their history
    where, found = find(flat_indices(own_at, x.shape), flat_indices(at, x.shape))
    return values[where].where(found.view(-1, *[1] * x.dense_dim()), 0)  # a product would make NaN of an infinity


def _summed_in(dtype: Any) -> Any:
    """The dtype in which duplicates are added."""
    return int32 if dtype is bool_ else dtype


def coalesced(x: SparseTensor) -> SparseTensor:
    """x.coalesce()."""
    if x._sorted:
        return x
    key, at, values = flat_indices(x._coordinates, x.shape), x._coordinates, x._stored
    if not bool((key[1:] > key[:-1]).all()):
        order, starts, group = groups(key)
        at, values = at[:, order[starts]], values[order]
        if not x._distinct:
            sums = zeros(at.shape[1], *values.shape[1:], dtype=_summed_in(x.dtype), device=values.device)
            values = sums.index_add_(0, group, values.to(sums.dtype)).to(x.dtype)
    out = unchecked(at, values, x.shape, True)
    if mode.enabled and (edge := gradient_edge(x)) is not None:
        out._node = Coalesce(edge)
    return out


# ---- from arguments ------------------------------------------------------------------------------------------------


def checked(at: Any, values: Any, shape: Any, is_sorted: bool | None, name: str) -> SparseTensor:
    """unchecked() of coordinates and values of the caller. ShapeError if they do not fit, BoundsError for a coordinate
    outside shape.
    """
    at = at.to(int64)
    if values.ndim == 0:
        values = values.view(1)
    if at.ndim != 2:
        raise ShapeError(f"{name}: indices must be a matrix (sparse_dim, nnz), but have shape {tuple(at.shape)}")
    n, nnz = at.shape
    if nnz != values.shape[0]:
        raise ShapeError(f"{name}: indices and values must have same nnz, but they have {nnz} and {values.shape[0]}")
    if shape is None:
        largest = (at.amax(1) + 1).tolist() if at.numel() else [0] * n
        shape = (*largest, *values.shape[1:])
    shape = empty(shape, device="meta").shape
    if len(shape) != n + values.ndim - 1:
        raise ShapeError(
            f"{name}: a size of {len(shape)} dimensions for {n} sparse and {values.ndim - 1} dense dimensions"
        )
    if tuple(values.shape[1:]) != tuple(shape[n:]):
        raise ShapeError(f"{name}: values of shape {tuple(values.shape)} for dense sizes {tuple(shape[n:])}")
    if at.numel():
        low, high = at.amin(1).tolist(), at.amax(1).tolist()
        for dim, (least, most, size) in enumerate(zip(low, high, shape)):
            if least < 0 or most >= size:
                raise BoundsError(
                    f"{name}: indices of dimension {dim} must be in [0, {size}), but range from {least} to {most}"
                )
    out = unchecked(at, values, shape)
    if is_sorted:
        key = flat_indices(at, shape)
        if not bool((key[1:] > key[:-1]).all()):
            raise Error(f"{name}: is_coalesced of indices that do not ascend, or have duplicates")
        out._sorted = out._distinct = True
    return out


@rename_errors
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of the layout norch.sparse_coo from indices (sparse_dim, nnz) and values (nnz, *dense sizes). Elements
    at the same indices add up; all other elements are 0. size is the smallest that fits by default;
    sparse_coo_tensor((2, 3)) has a size alone, and no elements. Gradients flow to values, unless requires_grad makes
    the tensor a leaf.

    The indices are always checked, whatever check_invariants is: BoundsError for an index outside size, ShapeError for
    parts that do not fit, Error for is_coalesced=True if they do not ascend.

    >>> x = norch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    >>> x @ norch.ones(3, 1)
    tensor([[3.],
            [4.]])
    """
    name = "sparse_coo_tensor"
    requires_grad = flag(requires_grad, f"{name}: requires_grad")
    if values is None:
        if (size is None) == (indices is None):
            raise TypeError(f"{name}: expected indices and values, or a size alone")
        size = indices if size is None else size
        indices = zeros(len(size), 0, dtype=int64, device=device)
        values = zeros(0, dtype=dtype, device=device)
    elif indices is None:
        raise TypeError(f"{name}: values without indices")
    values = as_tensor(values, dtype=dtype, device=device)
    at = as_tensor(indices, device=values.device)
    if at.dtype.kind not in "iuf" or (at.numel() and at.dtype.kind == "f" and not bool((at == at.trunc()).all())):
        raise DTypeError(f"{name}: indices must be integers, not {at.dtype}")
    if requires_grad:
        values = values.detach()
    out = checked(at, values, size, is_coalesced, name)
    return out.requires_grad_() if requires_grad else out


def _from_dense(x: Tensor, sparse_dim: int) -> SparseTensor:
    """The elements of x that are not 0, of the first dimensions."""
    stored = x.detach() != 0
    at = (stored.flatten(sparse_dim).any(sparse_dim) if sparse_dim < x.ndim else stored).nonzero().T.contiguous()
    return unchecked(at, values_at(x, at), x.shape, True)


def to_sparse(
    self: Tensor, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Tensor:
    """The tensor in the layout norch.sparse_coo, which stores the elements that are not 0 by their indices. With
    sparse_dim only the first sparse_dim dimensions have indices; the others stay dense. NotImplementedError for other
    layouts.

    >>> norch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=norch.sparse_coo)
    """
    return _to_sparse(self, sparse_dim, layout, blocksize, dense_dim)


to_sparse_coo = to_sparse


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of the tensor, dense or sparse, at the indices of mask, a sparse tensor of its shape.

    >>> norch.arange(4.0).view(2, 2).sparse_mask(norch.eye(2).to_sparse()).values()
    tensor([0., 3.])
    """
    return _sparse_mask(self, mask)


# Functions of their own, as those that are methods may look for overrides first.
@implements("to_sparse to_sparse_coo")
def _to_sparse(
    self: Tensor, sparse_dim: Any = None, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Tensor:
    if isinstance(sparse_dim, Layout):
        sparse_dim, layout = None, sparse_dim
    name = "sparse_coo" if layout is None else str(layout).rpartition(".")[2]
    if name in ("sparse_csr", "sparse_csc") and sparse_dim is dense_dim is blocksize is None:
        return import_module("norch.sparse.compressed").to_compressed(self, name == "sparse_csc", "to_sparse")
    if name != "sparse_coo":
        raise NotImplementedError(f"to_sparse: norch has no tensors of {layout} with these options")
    if dense_dim is not None or blocksize is not None:
        raise NotImplementedError("to_sparse: dense_dim and blocksize belong to layouts that norch lacks")
    if isinstance(self, SparseTensor):
        if sparse_dim in (None, self.sparse_dim()):
            return self if self.is_sparse else like(self, *indices_and_values(self))
        raise refusal("to_sparse with another sparse_dim")
    n = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= n <= self.ndim:
        raise BoundsError(f"to_sparse: sparse_dim must be in [0, {self.ndim}], not {n}")
    return _from_dense(self, n)


@implements("sparse_mask")
def _sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    if not isinstance(mask, SparseTensor):
        raise TypeError(f"sparse_mask: mask must be a sparse tensor, not {type(mask).__name__}")
    if self.shape != mask.shape:
        raise ShapeError(f"sparse_mask: a mask of shape {tuple(mask.shape)} for {tuple(self.shape)}")
    mask = coalesced(mask)
    return like(mask, mask._coordinates, values_at(self, mask._coordinates))
