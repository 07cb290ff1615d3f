"""Reductions over axes: sum, mean, max ... (csrc/ops/reduce.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._handle import Handle, alias
from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.forms import Reduction
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge, like_of
from ..dtype import dtype as DType  # noqa: N812
from ..dtype import dtype_named, float32, get_default_dtype
from ._forms import OPS
from ._operand import must
from .copy import cast
from .pointwise import sub, true_divide

Dims = int | Sequence[int] | None


def _axes(dim: Dims) -> Any:
    """dim as C takes it: a sequence of axes, None for all."""
    return dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)


def _reduction(
    x: Any,
    name: str,
    node_class: type[Reduction] | None,
    axes: Any,
    keepdim: Any,
    dtype: int = -1,
    param: float = 0.0,
) -> Any:
    """One REDUCE row over x, recorded when node_class is given."""
    out = lib.norch_reduce(OPS[name], x, axes, keepdim, dtype, param)
    to_x = x._node if x._view is None else edge(x)
    if to_x is not None and mode.enabled and node_class is not None:
        node = node_class(to_x)
        node.like = like_of(x)
        node.axes, node.keepdim = axes, keepdim
        node.param = param
        node._x = x if "x" in node_class.saves[0] else None
        node._out = alias(out) if node_class.saves_out else None
        out._node = node
    return out


def _elements(x: Any, out: Any) -> float:
    """How many elements of x went into one of out."""
    outputs = out.numel()
    return x.numel() / outputs if outputs else 0.0


def sum(x: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:  # noqa: A001
    """The sum over all elements, or over the axes dim. Integers and bool add up in int64.

    >>> norch.sum(norch.ones(2, 3), dim=1)
    tensor([3., 3.])
    """
    x = must(x, "sum")
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
        return _reduction(x, "sum", d.Sum, _axes(dim), keepdim, code)
    return _reduction(x, "sum", d.Sum, _axes(dim), keepdim)


def _in_dtype(x: Any, dtype: Any) -> tuple[Any, int]:
    wanted = dtype_named(dtype)
    return x.to(wanted), wanted.code


def mean(x: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
    """The mean over all elements, or over the axes dim. Floats only; NaN over no elements.

    >>> norch.mean(norch.tensor([1.0, 2.0]))
    tensor(1.5000)
    """
    x = must(x, "mean")
    if dtype is not None:
        x = x.to(dtype)
    out = _reduction(x, "mean", d.Mean, _axes(dim), keepdim)
    if out._node is not None:
        out._node.param = _elements(x, out)
    return out


def _mean_square(x: Any) -> Any:
    """The mean of the squares of all elements, in one pass. Floats only."""
    x = must(x, "mean_square")
    out = _reduction(x, "mean_square", d.MeanSquare, None, False)
    if out._node is not None:
        out._node.param = x._numel
    return out


def prod(x: Any, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
    """The product over all elements, or over the axis dim. Integers and bool multiply in int64."""
    x = must(x, "prod")
    code = -1
    if dtype is not None:
        x, code = _in_dtype(x, dtype)
    return _reduction(x, "prod", d.Prod, _axes(dim), keepdim, code)


def amax(x: Any, dim: Dims = (), keepdim: bool = False) -> Any:
    """The largest element, over all or the axes dim; NaN wins. Equal ones share the gradient."""
    return _reduction(must(x, "amax"), "amax", d.Amax, _axes(dim), keepdim)


def amin(x: Any, dim: Dims = (), keepdim: bool = False) -> Any:
    """The smallest element, over all or the axes dim; NaN wins. Equal ones share the gradient."""
    return _reduction(must(x, "amin"), "amin", d.Amin, _axes(dim), keepdim)


def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index (int64) of the largest element along dim, or in the flattened tensor; the first of equals."""
    return _reduction(must(x, "argmax"), "argmax", None, _axes(dim), keepdim)


def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index (int64) of the smallest element along dim, or in the flattened tensor; the first of equals."""
    return _reduction(must(x, "argmin"), "argmin", None, _axes(dim), keepdim)


class max_result(NamedTuple):  # noqa: N801  (as PyTorch's prints)
    values: Any
    indices: Any


class min_result(NamedTuple):  # noqa: N801
    values: Any
    indices: Any


def max(x: Any, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A001
    """The largest element; with dim, (values, indices) along it; with a tensor in place of dim, maximum().

    >>> norch.max(norch.tensor([[1.0, 3.0], [2.0, 0.0]]), dim=1).indices
    tensor([1, 0])
    """
    return _extreme(x, dim, keepdim, amax, argmax, "maximum", max_result)


def min(x: Any, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A001
    """The smallest element; with dim, (values, indices) along it; with a tensor in place of dim, minimum()."""
    return _extreme(x, dim, keepdim, amin, argmin, "minimum", min_result)


def _extreme(x: Any, dim: Any, keepdim: bool, value: Any, index: Any, pair: str, result: Any) -> Any:
    if isinstance(dim, Handle):
        return getattr(x, pair)(dim)
    if dim is None:
        return value(x)
    indices = index(x, dim, True)
    if x.ndim == 0:
        values = x.clone()
        return result(values, indices)
    values = x.gather(dim, indices)
    return result(values, indices) if keepdim else result(values.squeeze(dim), indices.squeeze(dim))


def any(x: Any, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A001
    """Whether one element is non-zero, over all or the axes dim."""
    return _reduction(must(x, "any"), "any", None, _axes(dim), keepdim)


def all(x: Any, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A001
    """Whether every element is non-zero, over all or the axes dim."""
    return _reduction(must(x, "all"), "all", None, _axes(dim), keepdim)


def var(
    x: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    """The variance over all elements, or over the axes dim: squared deviations summed, over n - correction."""
    return _spread_of(x, "var", d.Var, dim, unbiased, keepdim, correction)


def std(
    x: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    """The standard deviation: the square root of var()."""
    return _spread_of(x, "std", d.Std, dim, unbiased, keepdim, correction)


def _spread_of(x: Any, name: str, node: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    x = must(x, name)
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif unbiased is not None:
        raise ValueError(f"{name}: give unbiased or correction, not both")
    out = _reduction(x, name, node, _axes(dim), keepdim, -1, float(correction))
    if out._node is not None:
        out._node.param = _elements(x, out) - correction
    return out


def logsumexp(x: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats."""
    return _reduction(must(x, "logsumexp"), "logsumexp", d.Logsumexp, _axes(dim), keepdim)


def log_softmax(x: Any, dim: int, dtype: DType | None = None) -> Any:
    """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too.

    Integers become floats.
    """
    shifted, dtype = _shifted(x, dim, dtype, "log_softmax")
    return cast(sub(shifted, logsumexp(shifted, dim, True)), dtype)


def _shifted(x: Any, dim: int, dtype: DType | None, name: str) -> tuple[Any, DType]:
    """x less its largest element along dim, which changes no softmax and needs no gradient; and the result's dtype.

    Halves become float32, so that only the result is rounded.
    """
    x = must(x, name) if dtype is None else x.to(dtype)
    if not x.dtype.is_floating_point:
        x = x.to(get_default_dtype())
    dtype = x.dtype
    if dtype.itemsize < float32.itemsize:
        x = cast(x, float32)
    return sub(x, amax(x.detach(), dim, True)) if x.numel() else x, dtype


def softmax(x: Any, dim: int, dtype: DType | None = None) -> Any:
    """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats.

    >>> norch.softmax(norch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    shifted, dtype = _shifted(x, dim, dtype, "softmax")
    powers = shifted.exp()
    return cast(true_divide(powers, sum(powers, dim, True)), dtype)


def _sum_to(x: Any, like: Handle) -> Any:
    """x summed over the axes that broadcasting added, and cast, to the shape and dtype of like."""
    out = lib.norch_sum_to(x, like)
    if out is not x and mode.enabled and (to_x := edge(x)) is not None:
        node = d.SumTo(to_x)
        node.like = like_of(x)
        out._node = node
    return out


class ReduceMethods(Handle):
    """The reductions of Tensor."""

    __slots__ = ()

    mean, prod, amax, amin, argmax, argmin = mean, prod, amax, amin, argmax, argmin
    max, min, any, all, var, std, logsumexp = max, min, any, all, var, std, logsumexp
    softmax, log_softmax = softmax, log_softmax
    _mean_square = _mean_square
    _sum_to = _sum_to

    def sum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
        """The sum over all elements, or over the axes dim."""
        if dim is None and dtype is None:
            return _reduction(self, "sum", d.Sum, None, keepdim)
        return sum(self, dim, keepdim, dtype=dtype)

    def _reduced(self, name: str, axes: Any, keepdim: Any) -> Any:
        """A recorded reduction over axes (None: all), for derivatives."""
        if name == "mean":
            out = _reduction(self, "mean", d.Mean, axes, keepdim)
            if out._node is not None:
                out._node.param = _elements(self, out)
            return out
        node_class: Callable[..., Any] = {"sum": d.Sum, "prod": d.Prod}[name]
        return _reduction(self, name, node_class, axes, keepdim)  # type: ignore[arg-type]


# As in pointwise.py.
__all__ = [  # noqa: PLE0605
    name
    for name, thing in list(globals().items())
    if getattr(thing, "__module__", "") == __name__ and name[0] != "_" and not isinstance(thing, type)
]
