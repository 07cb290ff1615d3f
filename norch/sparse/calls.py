"""The operations of sparse tensors, by the name of the function or method that is called with one.

They are those that PyTorch has for the layout sparse_coo. All others raise NotImplementedError: none gives a dense
tensor where PyTorch does not.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import chain
from typing import Any

from ..autograd.grad_mode import mode
from ..autograd.gradients import grad as dense_grad
from ..autograd.record import gradient_edge
from ..dtype import can_cast, int64
from ..errors import DTypeError, Error, ShapeError
from ..ops.copy import cat
from ..ops.create import zeros
from ..tensor import Tensor
from . import coo as _coo
from . import reductions as _reductions  # noqa: F401  (declares operations, as the next)
from . import shapes as _shapes  # noqa: F401
from .coo import (
    HANDLERS,
    OWN,
    SparseTensor,
    coalesced,
    find,
    flat_indices,
    implements,
    indices_and_values,
    like,
    refusal,
    unchecked,
    values_at,
)

HANDLERS.update(is_contiguous=lambda self, **_: False, is_pinned=lambda self: False)


override: Any = import_module("norch._package.override")  # by name: mypy takes no such cycle


def call(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of func for arguments with a sparse tensor among them."""
    name = func.__name__
    if name in ("__get__", "__set__"):
        attribute = _name_of(func.__self__)
        if attribute in AS_THEY_ARE:
            return override.in_c(func, args, kwargs)
        if name == "__set__" or attribute not in HANDLERS:
            raise refusal(attribute)
        return HANDLERS[attribute](args[0])
    handler = HANDLERS.get(name) or OWN.get(name)  # the latter by Tensor.coalesce(x), say
    if handler is None:
        raise REFUSALS.get(name, refusal)(name)
    if name == "norm" and func.__module__.endswith("linalg"):
        raise refusal("linalg.norm")
    if kwargs.get("out") is not None:
        raise refusal(f"{name} with out=")
    return handler(*args, **{key: value for key, value in kwargs.items() if key != "out"})


@implements("grad")
def grad(*args: Any, **kwargs: Any) -> Any:
    """autograd.grad(), whose walk adds and passes on gradients as other operations."""
    return override.entry_of(dense_grad).original(*args, **kwargs)


_coo.call = call


def _name_of(attribute: Any) -> str:
    names = chain.from_iterable(vars(base).items() for base in Tensor.__mro__)
    return next((name for name, value in names if value is attribute), "an attribute")


def _no_numpy(name: str) -> TypeError:
    return TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


REFUSALS: dict[str, Callable[[str], Exception]] = {
    "numpy": _no_numpy,
    "__array__": _no_numpy,
    "__setitem__": lambda name: TypeError("Cannot assign to a sparse tensor"),
}

# What they know without their elements.
AS_THEY_ARE = frozenset("requires_grad is_leaf grad_fn grad _base ndim names itemsize retains_grad _version".split())


def _as_it_is(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: override.in_c(getattr(Tensor, name), args, kwargs)


SHAPES = (  # methods that need no elements
    "size dim ndimension numel nelement element_size is_floating_point is_complex is_signed requires_grad_ detach_ "
    "retain_grad register_hook register_post_accumulate_grad_hook is_same_size get_device is_inference is_conj "
    "is_neg __len__"
).split()
HANDLERS.update((name, _as_it_is(name)) for name in SHAPES)


# ---- element by element --------------------------------------------------------------------------------------------

# Functions of each element that give 0 for 0; duplicates are added first. Of linear ones they may stay.
_OF_ZERO = (
    "abs absolute arcsin arcsinh arctan arctanh asin asinh atan atanh ceil deg2rad erf erfinv expm1 fix floor frac "
    "isinf isnan isneginf isposinf log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh "
    "trunc"
).split()
_LINEAR = "neg negative positive conj conj_physical resolve_conj resolve_neg real imag".split()


def _by_element(name: str, is_linear: bool) -> Callable[..., Any]:
    def compute(input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        x = input if is_linear else coalesced(input)
        at, values = indices_and_values(x)
        method = getattr(Tensor, name)
        return like(x, at, method.__get__(values) if isinstance(method, property) else method(values, *args, **kwargs))

    return compute


HANDLERS.update({name: _by_element(name, name in _LINEAR) for name in (*_OF_ZERO, *_LINEAR)})


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or (isinstance(x, Tensor) and not x._in_coordinates and x.ndim == 0)


def _check_both(a: SparseTensor, b: SparseTensor, name: str) -> None:
    if a.shape != b.shape:
        raise ShapeError(f"{name}: expected one size, got {tuple(a.shape)} and {tuple(b.shape)}")
    if a.sparse_dim() != b.sparse_dim():
        raise refusal(f"{name} of {a.sparse_dim()} and {b.sparse_dim()} sparse dimensions")


@implements("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
    """input + alpha * other: of two sparse tensors, or of a dense one and a sparse one."""
    if not isinstance(other, SparseTensor):
        raise NotImplementedError(
            "add: to a sparse tensor a sparse one can be added; use add(dense, sparse), or to_dense()"
        )
    if not isinstance(input, SparseTensor):
        if not isinstance(input, Tensor):
            raise refusal("add to a number")
        at, values = indices_and_values(other)
        dtype = (input.new_empty(1) + values.new_empty(1)).dtype
        return _added(input.to(dtype, copy=True), other, alpha)
    _check_both(input, other, "add")
    (at, values), (other_at, others) = indices_and_values(input), indices_and_values(other)
    others = others if alpha == 1 else others * alpha
    if at is other_at:
        return like(input, at, values + others)
    dtype = (values.new_empty(1) + others.new_empty(1)).dtype
    out = unchecked(cat([at, other_at], 1), cat([values.to(dtype), others.to(dtype)]), input.shape)
    return coalesced(out) if input._sorted and other._sorted else out


def _added(x: Tensor, other: SparseTensor, alpha: Any) -> Tensor:
    """Adds alpha times a sparse tensor to a dense one, in place."""
    if x.shape != other.shape:
        raise ShapeError(f"add: a sparse tensor of shape {tuple(other.shape)} and a dense one of {tuple(x.shape)}")
    at, values = indices_and_values(other)
    values = _fits(values if alpha == 1 else values * alpha, x, "add").to(x.dtype)
    if len(at) == 1:
        return x.index_add_(0, at[0], values)
    if not len(at):
        return x.add_(values.sum(0))
    return x.index_put_(tuple(at), values, accumulate=True)


@implements("sub subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
    """add() of the negative."""
    return add(input, other, alpha=-alpha)


@implements("mul multiply")
def mul(input: Any, other: Any) -> Any:  # noqa: A002
    """The product with a number, a dense tensor that broadcasts to this one, or a sparse one."""
    x, y = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if _is_number(y):
        at, values = indices_and_values(x)
        return like(x, at, values * y)
    if not isinstance(y, SparseTensor):
        if not isinstance(y, Tensor):
            raise TypeError(f"mul: expected a number or a tensor, not {type(y).__name__}")
        at, values = indices_and_values(x)
        return like(x, at, values * values_at(y.expand(x.shape), at))
    _check_both(x, y, "mul")
    x, y = coalesced(x), coalesced(y)
    (at, values), (other_at, others) = indices_and_values(x), indices_and_values(y)
    if at is other_at:
        return like(x, at, values * others)
    if not len(others):
        return like(x, at[:, :0], values[:0] * others)
    where, found = find(flat_indices(other_at, y.shape), flat_indices(at, x.shape))
    return like(x, at[:, found], values[found] * others[where[found]])


@implements("div divide true_divide")
def div(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:  # noqa: A002
    """The quotient by a number."""
    if not isinstance(input, SparseTensor) or not _is_number(other):
        raise Error("div: Sparse division requires a scalar or zero-dim dense tensor divisor")
    x = input if rounding_mode is None else coalesced(input)
    at, values = indices_and_values(x)
    return like(x, at, values.div(other, rounding_mode=rounding_mode))


@implements("floor_divide __floordiv__")
def floor_divide(input: Any, other: Any) -> Any:  # noqa: A002
    """div() rounded down."""
    return div(input, other, rounding_mode="floor")


@implements("pow")
def power(input: Any, exponent: Any) -> Any:  # noqa: A002
    """Each stored element to the power of a number other than 0."""
    if not isinstance(input, SparseTensor) or not isinstance(exponent, (int, float, complex)):
        raise refusal("pow with an exponent that is no number")
    if exponent == 0:
        raise Error("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    x = coalesced(input)
    at, values = indices_and_values(x)
    return like(x, at, values**exponent)


# ---- in place ------------------------------------------------------------------------------------------------------


def _writable(x: Any, name: str, *others: Any) -> None:
    if mode.enabled and any(isinstance(y, Tensor) and gradient_edge(y) is not None for y in (x, *others)):
        raise Error(f"{name}: a sparse tensor that is part of a graph is not written to in place")
    x._bump()


def _fits(y: Any, x: Any, name: str) -> Any:
    """y. DTypeError unless its elements can be written to x, as floats cannot to integers."""
    if not can_cast(y.dtype, x.dtype):
        raise DTypeError(f"{name}: a result of {y.dtype} cannot be written to a tensor of {x.dtype}")
    return y


def _become(x: SparseTensor, y: Any, name: str) -> SparseTensor:
    """Puts the elements of y into x."""
    _fits(y, x, name)
    x._coordinates, x._stored, x._sorted, x._distinct = y._coordinates, y._stored.to(x.dtype), y._sorted, y._distinct
    return x


@implements("add_")
def add_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """add() in place."""
    if not isinstance(self, SparseTensor):
        return _added(self, other, alpha)
    _writable(self, "add_", other)
    return _become(self, add(self, other, alpha=alpha), "add_")


@implements("sub_ subtract_")
def sub_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """sub() in place."""
    return add_(self, other, alpha=-alpha)


@implements("mul_ multiply_")
def mul_(self: Any, other: Any) -> Any:
    """mul() in place."""
    if not isinstance(self, SparseTensor):
        raise refusal("mul_ of a dense tensor by a sparse one")
    _writable(self, "mul_", other)
    return _become(self, mul(self, other), "mul_")


@implements("div_ divide_ true_divide_")
def div_(self: Any, other: Any) -> Any:
    """div() in place."""
    if not isinstance(self, SparseTensor):
        raise refusal("div_ of a dense tensor by a sparse one")
    _writable(self, "div_", other)
    return _become(self, div(self, other), "div_")


@implements("neg_ negative_")
def neg_(self: Any) -> Any:
    """neg() in place."""
    _writable(self, "neg_")
    return _become(self, like(self, self._coordinates, -self._stored), "neg_")


@implements("zero_")
def zero_(self: Any) -> Any:
    """Stores no element."""
    _writable(self, "zero_")
    return _become(self, empty_of(self), "zero_")


@implements("copy_")
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copies a sparse tensor into this one."""
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        raise refusal("copy_ between dense and sparse tensors")
    _writable(self, "copy_", src)
    _check_both(self, src, "copy_")
    return _become(self, to(clone(src), self.device, self.dtype), "copy_")


# ---- copies and conversions ----------------------------------------------------------------------------------------


@implements("clone")
def clone(input: Any, *, memory_format: Any = None) -> Any:  # noqa: A002
    """A copy."""
    at, values = indices_and_values(input)
    return like(input, at.clone(), values.clone())


@implements("detach data detach_copy")
def detach(self: Any) -> Any:
    """The same elements without history."""
    return like(self, self._coordinates, self._stored)


@implements("to")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor in another dtype, or on another device."""
    if not isinstance(self, SparseTensor):  # the dense tensor is to be as a sparse one
        other, *rest = args
        return self.to(other.device, other.dtype, *rest, **kwargs)
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    at, values = indices_and_values(self)
    converted = values.to(*args, **kwargs)
    return self if converted is values else like(self, at.to(converted.device), converted)


def _converted(name: str) -> Callable[..., Any]:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        at, values = indices_and_values(self)
        result = getattr(values, name)(*args, **kwargs)
        return self if result is values else like(self, at.to(result.device), result)

    return convert


HANDLERS.update(
    (name, _converted(name))
    for name in "bfloat16 bool byte cdouble cfloat char cpu cuda double float half int long short".split()
)


@implements("type")
def type_of(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of its type, or the tensor in another dtype."""
    if dtype is not None:
        return _converted("type")(self, dtype)
    return self._stored.type().replace(".", ".sparse.")


@implements("type_as")
def type_as(self: Any, other: Any) -> Any:
    """The tensor in the dtype of another one."""
    return self.to(other.device, other.dtype)


def empty_of(x: Any, size: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """A sparse tensor without elements, otherwise as x."""
    size = x.shape if size is None else size
    n = x.sparse_dim() if len(size) == x.ndim else len(size)
    device = x.device if device is None else device
    at = zeros(n, 0, dtype=int64, device=device)
    return unchecked(at, zeros(0, *size[n:], dtype=dtype or x.dtype, device=device), size, True)


@implements("zeros_like empty_like")
def zero_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **_: Any,  # noqa: A002
) -> Any:
    """A sparse tensor of this shape without elements; with layout=norch.strided, dense zeros."""
    if layout is not None and str(layout).endswith("strided"):
        return zeros(input.shape, dtype=dtype or input.dtype, device=device or input.device).requires_grad_(
            requires_grad
        )
    return empty_of(input, None, dtype, device).requires_grad_(requires_grad)


@implements("new_zeros new_empty")
def new_zeros(
    self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Any:
    """A sparse tensor of another size, without elements."""
    wanted = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return empty_of(self, tuple(wanted), dtype, device).requires_grad_(requires_grad)
