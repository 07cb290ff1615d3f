"""Matrices of the layouts sparse_csr and sparse_csc: SparseTensors whose coordinates are ordered row by row, or column
by column. Their operations are those of calls.py that PyTorch has for these layouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._binding.numbers import flag
from .._tensor.copying import rebuilt_compressed
from .._tensor.representation import nested
from ..dtype import int32, int64
from ..errors import BoundsError, DTypeError, Error, ShapeError
from ..ops._entry import rename_errors
from ..ops.copy import cat, stack
from ..ops.create import arange
from ..ops.sort import sort
from ..ops.values import as_tensor
from ..tensor import Tensor
from . import calls
from .coo import (
    SparseTensor,
    _from_dense,
    checked,
    coalesced,
    implements,
    indices_and_values,
    layout_named,
    like,
    refusal,
    unchecked,
)  # fmt: skip

LAYOUTS = ("sparse_csr", "sparse_csc")

# The operations that keep the layout, those that exchange the two, and those that give another one.
_KEEPING = frozenset(
    "abs absolute add angle arcsin arcsinh arctan arctanh asin asinh atan atanh bfloat16 bool byte cdouble ceil cfloat "
    "char clone conj conj_physical cpu cuda deg2rad detach data div divide double erf erfinv expm1 fix float floor "
    "frac half int isinf isnan long matmul mm mul multiply neg negative rad2deg relu round sgn short sign signbit sin "
    "sinh sparse_mask sqrt square sub subtract tan tanh to true_divide trunc type_as zeros_like".split()
)
_TRANSPOSING = frozenset("t T H mT transpose swapaxes swapdims adjoint mH".split())
_LEAVING = frozenset("mv addmm linear sum norm grad to_sparse to_sparse_coo to_sparse_csr to_sparse_csc type".split())
_SELECTING = frozenset(("__getitem__", "select"))  # a row, a column or an element
_WITHOUT_ELEMENTS = calls.AS_THEY_ARE.union(calls.SHAPES, calls.REFUSALS)


class CompressedTensor(SparseTensor):
    """A matrix of the layout norch.sparse_csr or norch.sparse_csc, as sparse_csr_tensor() and to_sparse_csr() make it.

    _axis  the compressed axis: 0, with coordinates in the order of rows, or 1, in that of columns
    """

    __slots__ = ("_axis",)
    _axis: int

    is_sparse = False
    is_sparse_csr = property(lambda self: self._axis == 0)
    layout = property(lambda self: layout_named(LAYOUTS[self._axis]))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(func, args, kwargs or {})

    def _pointers(self, axis: int, name: str) -> Tensor:
        """Where the elements of each row, or column, begin, and the end of the last."""
        if axis != self._axis:
            raise Error(f"{name}: expected a tensor of the layout {LAYOUTS[axis]}, not {LAYOUTS[self._axis]}")
        counts = self._coordinates[axis].bincount(minlength=self.shape[axis])
        return cat([counts.new_zeros(1), counts.cumsum(0)])

    def crow_indices(self) -> Tensor:
        """Where the elements of each row begin, and the end."""
        return self._pointers(0, "crow_indices")

    def ccol_indices(self) -> Tensor:
        """Where the elements of each column begin, and the end."""
        return self._pointers(1, "ccol_indices")

    def col_indices(self) -> Tensor:
        """The column of each element."""
        self._pointers(0, "col_indices")
        return self._coordinates[1]

    def row_indices(self) -> Tensor:
        """The row of each element."""
        self._pointers(1, "row_indices")
        return self._coordinates[0]

    def values(self) -> Tensor:
        """The values of the elements, in the order of the layout, which they share. Gradients flow through them."""
        return indices_and_values(self)[1]

    def _refuse(self, *_: Any) -> Any:
        raise Error(f"expected a tensor of the layout sparse_coo, not {LAYOUTS[self._axis]}; to_sparse_coo() gives it")

    coalesce = is_coalesced = indices = _indices = _refuse

    def _parts(self) -> tuple[Any, ...]:
        """What rebuilt_compressed() makes the tensor of, but for the axis."""
        axis = self._axis
        return self._pointers(axis, ""), self._coordinates[1 - axis].clone(), self._values(), self.shape

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt_compressed, (*self._parts()[:3], tuple(self.shape), self._axis, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise Error("deepcopy: only leaves can be copied; detach() this tensor first")
        out = memo[id(self)] = compressed(like(self, self._coordinates.clone(), self._stored.clone()), self._axis)
        out.requires_grad_(self.requires_grad)
        return out

    if not TYPE_CHECKING:  # as in _tensor/protocols.py

        def __repr__(self, *, tensor_contents: Any = None) -> str:
            notes = SparseTensor.__repr__(self).rpartition("       size=")[2].partition(", layout=")
            first, second = (("crow", "col"), ("ccol", "row"))[self._axis]
            lines = (
                nested(f"tensor({first}_indices=", self._pointers(self._axis, "")),
                nested(f"       {second}_indices=", self._coordinates[1 - self._axis]),
                f"{nested('       values=', self._stored)}, size={notes[0]}",
                f"       layout={notes[2]}",
            )
            return ",\n".join(lines)

        __str__ = __repr__


def _called(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of func for arguments with a compressed tensor among them."""
    name = func.__name__
    if name in ("__get__", "__set__"):
        name = calls._name_of(func.__self__)
    operands = [x for x in (*args, *kwargs.values()) if isinstance(x, CompressedTensor)]
    if name in _SELECTING and (name == "select" or _are_integers(args[1])):
        return calls.call(func, (args[0].to_sparse_coo(), *args[1:]), kwargs)
    implemented = _KEEPING | _TRANSPOSING | _LEAVING | _WITHOUT_ELEMENTS
    if not operands or not (name in implemented or name in vars(CompressedTensor)):
        raise NotImplementedError(
            f"{name}: norch does not compute it of sparse_csr and sparse_csc; use to_sparse_coo()"
        )
    out = calls.call(func, args, kwargs)
    if isinstance(out, SparseTensor) and name in _KEEPING | _TRANSPOSING:
        if not out._distinct and all(x._distinct for x in operands):  # a sum
            out = coalesced(out)
        return compressed(out, operands[0]._axis ^ (name in _TRANSPOSING))
    return out


def _are_integers(index: Any) -> bool:
    return all(
        hasattr(i, "__index__") and type(i) is not bool for i in (index if isinstance(index, tuple) else (index,))
    )


def compressed(x: SparseTensor, axis: int) -> CompressedTensor:
    """The matrix x with its coordinates in the order of rows (axis 0) or columns (axis 1)."""
    if isinstance(x, CompressedTensor) and x._axis == axis:
        return x
    if x.ndim != 2 or x.sparse_dim() != 2:
        raise refusal(f"{LAYOUTS[axis]} of other than a matrix of numbers")
    at, values = indices_and_values(x)
    if not bool((at[axis][1:] >= at[axis][:-1]).all()):
        x = coalesced(unchecked(x._coordinates, x._stored, x.shape, False, x._distinct) if x.grad_fn is None else x)
        at, values = indices_and_values(x)
        order = sort(at[axis], stable=True)[1]
        at, values = at[:, order], values[order]
    out: Any = unchecked(at, values, x.shape, x._sorted and axis == 0, x._distinct, CompressedTensor)
    out._axis = axis
    return out


def to_compressed(x: Tensor, axis: int, name: str) -> Tensor:
    """A matrix, dense or sparse, in the layout."""
    if not isinstance(x, SparseTensor):
        if x.ndim != 2:
            raise ShapeError(f"{name}: expected a matrix, not shape {tuple(x.shape)}")
        x = _from_dense(x, 2)
    return compressed(x if isinstance(x, CompressedTensor) else coalesced(x), int(axis))


def checked_compressed(pointers: Any, indices: Any, values: Any, size: Any, axis: int, name: str) -> CompressedTensor:
    """A matrix of pointers, (rows or columns + 1), and for each value its index on the other axis."""
    pointers, indices = pointers.to(int64), indices.to(int64)
    if pointers.ndim != 1 or indices.ndim != 1 or values.ndim != 1 or not len(pointers):
        raise ShapeError(f"{name}: expected three vectors, as batches and blocks are not supported")
    counts = pointers.diff()
    if int(pointers[0]) or bool((counts < 0).any()) or int(pointers[-1]) != len(indices):
        raise BoundsError(f"{name}: the first indices must rise from 0 to {len(indices)}, the number of second ones")
    if size is None:
        other = int(indices.max()) + 1 if len(indices) else 0
        size = (len(counts), other) if axis == 0 else (other, len(counts))
    if len(size) != 2 or size[axis] != len(counts):
        raise ShapeError(f"{name}: {len(pointers)} first indices for a size of {tuple(size)}")
    across = arange(len(counts), device=indices.device).repeat_interleave(counts)
    x = checked(stack([indices, across] if axis else [across, indices]), values, tuple(size), None, name)
    key = across * size[1 - axis] + indices
    x._distinct = bool((key[1:] > key[:-1]).all())
    x._sorted = x._distinct and axis == 0
    return compressed(x, axis)


def _from_parts(
    pointers: Any,
    indices: Any,
    values: Any,
    size: Any,
    axis: int,
    dtype: Any,
    device: Any,
    requires_grad: Any,
    name: str,
) -> Tensor:
    requires_grad = flag(requires_grad, f"{name}: requires_grad")
    values = as_tensor(values, dtype=dtype, device=device)
    pointers, indices = (as_tensor(part, device=values.device) for part in (pointers, indices))
    if not {pointers.dtype, indices.dtype} <= {int32, int64}:
        raise DTypeError(f"{name}: indices must be int32 or int64, not {pointers.dtype} and {indices.dtype}")
    out = checked_compressed(pointers, indices, values.detach() if requires_grad else values, size, axis, name)
    return out.requires_grad_() if requires_grad else out


@rename_errors
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A matrix of the layout norch.sparse_csr, row by row: the elements of row i are values[crow_indices[i] :
    crow_indices[i + 1]], in the columns col_indices; all others are 0. Gradients flow to values, unless requires_grad
    makes the tensor a leaf. The indices are always checked: BoundsError, ShapeError.

    >>> x = norch.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3))
    >>> x @ norch.ones(3)
    tensor([3., 9.])
    """
    of = dtype, device, requires_grad
    return _from_parts(crow_indices, col_indices, values, size, 0, *of, "sparse_csr_tensor")


@rename_errors
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """sparse_csr_tensor() column by column, of the layout norch.sparse_csc.

    >>> norch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    of = dtype, device, requires_grad
    return _from_parts(ccol_indices, row_indices, values, size, 1, *of, "sparse_csc_tensor")


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix in the layout norch.sparse_csr, which stores its elements that are not 0 row by row.

    >>> norch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 1])
    """
    return _to(self, 0, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix in the layout norch.sparse_csc, which stores its elements that are not 0 column by column.

    >>> norch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse_csc().ccol_indices()
    tensor([0, 0, 1])
    """
    return _to(self, 1, dense_dim)


def _to(x: Tensor, axis: int, dense_dim: int | None) -> Tensor:
    name = f"to_{LAYOUTS[axis]}"
    if dense_dim is not None:
        raise NotImplementedError(f"{name}: dense_dim is not supported")
    return to_compressed(x, axis, name)


implements("to_sparse_csr")(lambda self, dense_dim=None: _to(self, 0, dense_dim))
implements("to_sparse_csc")(lambda self, dense_dim=None: _to(self, 1, dense_dim))
