"""Predicates of tensors and dtypes in PyTorch's API, such as is_floating_point(), and the names of tensor types."""

from __future__ import annotations

from ..._binding.library import lib
from ..._package.typing import Any, Tensor, overload
from ..._tensor.handle import Handle
from ...autograd.hooks import retaining
from ...dtype import dtype as DType
from ...dtype import dtype_named, float32, get_default_dtype
from ...errors import Error
from .._arguments import named_function
from .._operand import as_operand
from ..op import METHODS, method

__all__ = ["is_same_size", "is_signed", "typename"]

# PyTorch's old names of the types, by dtype.
TYPES = dict(
    zip(
        "float32 float64 float16 bfloat16 bool uint8 int8 int16 int32 int64 complex64 complex128".split(),
        "Float Double Half BFloat16 Bool Byte Char Short Int Long ComplexFloat ComplexDouble".split(),
        strict=True,
    )
)


@method
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> norch.is_same_size(norch.ones(2, 3), norch.zeros(2, 3))
    True
    """
    a, b = as_operand(input, "is_same_size"), as_operand(other, "is_same_size")
    return lib.norch_shape(a) == lib.norch_shape(b)


@method
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> norch.is_signed(norch.tensor([1], dtype=norch.uint8))
    False
    """
    return as_operand(input, "is_signed").dtype.is_signed


def typename(obj: Any) -> str:
    """The name of the type of anything, with its module's.

    >>> norch.typename(norch.ones(2))
    'norch.Tensor'
    """
    kind = type(obj)
    return f"norch.{kind.__name__}" if isinstance(obj, Handle) else f"{kind.__module__}.{kind.__qualname__}"


# ---- methods only -------------------------------------------------------------------------------------------------


@method(aliases=("is_neg", "is_inference"))
def is_conj(self: Tensor) -> bool:
    """False for every tensor, because conj() computes the conjugate at once.

    >>> norch.tensor([1j]).conj().is_conj()
    False
    """
    return False


@method(aliases=("resolve_neg",))
def resolve_conj(self: Tensor) -> Tensor:
    """The tensor, unchanged: conj() leaves no conjugate to compute later.

    >>> norch.tensor([1j]).conj().resolve_conj()
    tensor([0.-1.j])
    """
    return self


@method
def to_dense(self: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """A sparse tensor with all its elements. A dense tensor is returned unchanged, or cast to dtype. The gradient of a
    sparse tensor has the indices of that tensor, whatever masked_grad is.

    >>> norch.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


@method
def dequantize(self: Tensor) -> Tensor:
    """The tensor in float32, because tensors of norch are not quantized.

    >>> norch.ones(2, dtype=norch.float16).dequantize().dtype
    norch.float32
    """
    return self.to(float32)


@method
def sparse_dim(self: Tensor) -> int:
    """The number of dimensions whose indices a sparse tensor stores; 0 for a dense tensor.

    >>> norch.ones(2, 3).sparse_dim(), norch.ones(2, 3).to_sparse().sparse_dim()
    (0, 2)
    """
    return 0


@method
def dense_dim(self: Tensor) -> int:
    """The number of dimensions of each value of a sparse tensor; all dimensions for a dense tensor.

    >>> norch.ones(2, 3).dense_dim(), norch.ones(2, 3).to_sparse(1).dense_dim()
    (2, 1)
    """
    return self.ndim


def _of_sparse(name: str, about: str, then: str, gives: str) -> Any:
    layout = {"cr": "sparse_csr", "co": "sparse_csr", "cc": "sparse_csc", "ro": "sparse_csc"}.get(
        name[:2], "sparse_coo"
    )
    layout = "sparse_coo" if name == "coalesce" else layout

    def refuse(self: Tensor) -> Any:
        raise Error(f"{name}: expected a tensor of the layout {layout}, not a dense one")

    example = "norch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))" + ".coalesce()" * (name in ("indices", "values"))
    if layout != "sparse_coo":
        example = f"norch.eye(2).to_{layout}()"
    call = f"{example}.{name}()" + (f".{then}" if then else "")
    return named_function(refuse, name, f"{about}. Error for a dense tensor.\n\n    >>> {call}\n    {gives}\n    ")


def _retains_grad(self: Tensor) -> bool:
    """Whether backward() leaves the gradient of this computed tensor in .grad.

    >>> y = norch.ones(1, requires_grad=True) * 2
    >>> y.retain_grad()
    >>> y.retains_grad
    True
    """
    return bool(retaining(getattr(self.grad_fn, "hooks", None), self))


@overload
def _type(self: Tensor, dtype: None = ..., non_blocking: bool = ...) -> str: ...
@overload
def _type(self: Tensor, dtype: DType | str | type[Any], non_blocking: bool = ...) -> Tensor: ...
def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype; without one the name of its type, as "norch.FloatTensor".

    >>> norch.ones(2).type(), norch.ones(2).type(norch.int64)
    ('norch.FloatTensor', tensor([1, 1]))
    """
    if dtype is None:
        return f"norch.{TYPES[self.dtype.name]}Tensor"
    text = (dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")).rpartition(".")[2]
    if text == "Tensor":  # the class itself
        dtype = get_default_dtype()
    elif text.endswith("Tensor"):
        wanted = text.removesuffix("Tensor")
        dtype = next((name for name, kind in TYPES.items() if kind == wanted), dtype)
    return self.to(dtype_named(dtype))


_SPARSE = {  # what each gives of norch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)), coalesced where that is needed
    "coalesce": ("A sparse tensor with ascending indices, the values of duplicates added", "_nnz()", "1"),
    "is_coalesced": ("Whether the indices of a sparse tensor are known to ascend without duplicates", "", "False"),
    "indices": ("The indices (sparse_dim, nnz) of a coalesced sparse tensor", "tolist()", "[[1]]"),
    "values": (
        "The values (nnz, *dense sizes) of a coalesced sparse tensor; gradients flow through",
        "tolist()",
        "[5.0]",
    ),
    "_indices": ("The indices of a sparse tensor as they are", "tolist()", "[[1, 1]]"),
    "_values": ("The values of a sparse tensor as they are, without history", "tolist()", "[2.0, 3.0]"),
    "crow_indices": (
        "Where the elements of each row of a matrix of the layout sparse_csr begin, and the end",
        "tolist()",
        "[0, 1, 2]",
    ),
    "col_indices": ("The column of each stored element of a matrix of the layout sparse_csr", "tolist()", "[0, 1]"),
    "ccol_indices": (
        "Where the elements of each column of a matrix of the layout sparse_csc begin, and the end",
        "tolist()",
        "[0, 1, 2]",
    ),
    "row_indices": ("The row of each stored element of a matrix of the layout sparse_csc", "tolist()", "[0, 1]"),
    "_nnz": ("The number of stored elements of a sparse tensor", "", "2"),
}
METHODS.update({name: _of_sparse(name, *shown) for name, shown in _SPARSE.items()})
METHODS.update(
    type=named_function(_type, "type", _type.__doc__ or ""),
    retains_grad=property(_retains_grad),
)
