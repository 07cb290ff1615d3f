"""Running sums, products and extremes along an axis (csrc/ops/scan.c)."""

from __future__ import annotations

from typing import Any

from .._handle import Handle, alias
from .._lib import constants, lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, edge, written
from ..dtype import dtype as DType  # noqa: N812
from ..dtype import dtype_named
from ..errors import DTypeError
from ._forms import before
from ._operand import as_operand, named_function, numpy_names, public, rename_errors
from ._results import cummax_result, cummin_result
from .copy import cat, stack

_KINDS: dict[str, tuple[int, Any]] = {
    "sum": (constants["SCAN_SUM"], d.Cumsum),
    "prod": (constants["SCAN_PROD"], d.Cumprod),
    "logsumexp": (constants["SCAN_LOGSUMEXP"], d.Logcumsumexp),
    "max": (constants["SCAN_MAX"], None),
    "min": (constants["SCAN_MIN"], None),
}


def _scan(x: Any, kind: str, dim: Any, reverse: bool = False) -> Any:
    """One scan, recorded; from the end when reverse."""
    code, node_class = _KINDS[kind]
    out = lib.norch_scan(code, x, dim, reverse)
    if node_class is not None and mode.enabled and (to_x := edge(x)) is not None:
        node = node_class(to_x)
        node.dim, node.reverse = dim, reverse
        node._x = x if "x" in node_class.saves[0] else None
        node._out = alias(out) if node_class.saves_out else None
        out._node = node
    return out


def _running(x: Any, kind: str, dim: Any, dtype: Any) -> Any:
    x = as_operand(x, "cum" + kind)
    if dtype is None:
        return _scan(x, kind, dim)
    wanted = dtype_named(dtype)
    return _scan(x.to(wanted), kind, dim).to(wanted)  # integers add up in int64, which wraps as any does


@numpy_names
def cumsum(input: Any, dim: int, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """The sums of all elements up to each along dim. Integers and bool add up in int64, or in dtype.

    >>> norch.cumsum(norch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    return _running(input, "sum", dim, dtype)


@numpy_names
def cumprod(input: Any, dim: int, *, dtype: DType | None = None) -> Any:  # noqa: A002
    """The products of all elements up to each along dim. Integers and bool multiply in int64, or in dtype."""
    return _running(input, "prod", dim, dtype)


@numpy_names
def logcumsumexp(input: Any, dim: int) -> Any:  # noqa: A002
    """log(cumsum(exp(x))) along dim, without overflow. Floats only."""
    return _scan(as_operand(input, "logcumsumexp"), "logsumexp", dim)


@numpy_names
def cummax(input: Any, dim: int) -> Any:  # noqa: A002
    """The largest element so far along dim, and its index (the last of equals): (values, indices). NaN wins.

    >>> norch.cummax(norch.tensor([1, 3, 2]), dim=0).values
    tensor([1, 3, 3])
    """
    x = as_operand(input, "cummax")
    indices = _scan(x, "max", dim)
    return cummax_result(x.gather(dim, indices), indices)


@numpy_names
def cummin(input: Any, dim: int) -> Any:  # noqa: A002
    """The smallest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
    x = as_operand(input, "cummin")
    indices = _scan(x, "min", dim)
    return cummin_result(x.gather(dim, indices), indices)


def _in_place(function: Any) -> Any:
    name = function.__name__ + "_"

    def method(self: Any, dim: int, *, dtype: DType | None = None) -> Any:
        check_writable(self, name)
        if dtype is not None and dtype_named(dtype) is not self.dtype:
            raise DTypeError(f"{name}: dtype {dtype} for a tensor of {self.dtype}")
        result = function(before(self) if mode.enabled else self, dim, dtype=self.dtype)
        lib.norch_copy(self, result)
        node = result._node
        if node is not None and node._out is not None:
            node._out = alias(self)
        written(self, node, True)
        return self

    return rename_errors(named_function(method, name, f"{function.__name__}() in place."))


class ScanMethods(Handle):
    """The scans of Tensor."""

    __slots__ = ()

    cumsum, cumprod, logcumsumexp, cummax, cummin = cumsum, cumprod, logcumsumexp, cummax, cummin
    cumsum_, cumprod_ = _in_place(cumsum), _in_place(cumprod)
    _scan = _scan
    _stack_of = staticmethod(stack)
    _cat_of = staticmethod(cat)

    def _products_of_others(self: Any, dim: int, reverse: bool = False) -> Any:
        """The product of all elements before each along dim, or behind it when reverse; 1 at the end."""
        size = self.shape[dim]
        ones = self.new_ones([1 if axis == dim % self.ndim else n for axis, n in enumerate(self.shape)])
        running = self.narrow(dim, 1 if reverse else 0, size - 1)._scan("prod", dim, reverse)
        return cat([running, ones] if reverse else [ones, running], dim)


__all__ = public(globals())
