"""Running sums, products and extremes along an axis (csrc/ops/scan.c). The derivative of a scan is a scan from the
other end.
"""

from __future__ import annotations

import math
from itertools import accumulate

from .._binding.library import constants, lib
from .._package.typing import Any, NamedTuple, Tensor
from .._tensor.handle import alias
from ..autograd.autocast import autocast_off, current
from ..autograd.differentiable import differentiable
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.levels import occurs
from ..autograd.outlive import snapshot
from ..autograd.record import record
from ..dtype import dtype as DType
from ..dtype import dtype_named
from ..errors import DTypeError
from ._arguments import named_function, public
from ._entry import rename_errors
from ._operand import as_operand
from .complex import complex
from .copy import cat, stack
from .op import METHODS, method
from .scatter import gather_node

cummax_result = NamedTuple("cummax_result", [("values", Tensor), ("indices", Tensor)])
cummin_result = NamedTuple("cummin_result", [("values", Tensor), ("indices", Tensor)])


@differentiable("cumsum", grad=lambda g, dim, reverse: _cumsum(g, dim, not reverse), shares_grad=True)
def _cumsum(x: Tensor, dim: int, reverse: bool) -> Tensor:
    """Sums of all elements up to each, or from each on when reverse."""
    return lib.norch_scan(constants["SCAN_SUM"], x, dim, reverse)


def _cumprod_grad(g: Tensor, x: Tensor, out: Tensor, dim: int, reverse: bool) -> Tensor:
    """The sum of g * out from each element to the end, over x. Where an element is 0, no division is made."""
    if not x.ndim or x.shape[dim] < 2:
        return g.clone()
    has_zero = (x == 0).any()
    quotient = None
    if lib.norch_recording() or not occurs(has_zero):  # a replay may meet other elements
        quotient = _cumsum(g * out, dim, not reverse) / x
        if not lib.norch_recording():
            return quotient
    positions = range(x.shape[dim])[:: 1 if reverse else -1]
    parts: list[Any] = []  # what follows each position, as a factor of the product up to there
    for position, last in zip(positions, (None, *positions)):
        g_here = g.select(dim, position)
        parts.append(g_here if last is None else g_here + parts[-1] * x.select(dim, last))
    tails = stack(parts if reverse else parts[::-1], dim)
    product = tails * products_of_others(x, dim, reverse)
    return product if quotient is None else product.where(has_zero, quotient)


@differentiable("cumprod", grad=_cumprod_grad)
def _cumprod(x: Tensor, dim: int, reverse: bool) -> Tensor:
    return lib.norch_scan(constants["SCAN_PROD"], x, dim, reverse)


def products_of_others(x: Tensor, dim: int, reverse: bool = False) -> Tensor:
    """The product of all elements before each along dim, or behind it when reverse; 1 at the end."""
    size = x.shape[dim]
    if not size:
        return x
    ones = x.new_ones([1 if axis == dim % x.ndim else n for axis, n in enumerate(x.shape)])
    running = _cumprod(x.narrow(dim, 1 if reverse else 0, size - 1), dim, reverse)
    return cat([running, ones] if reverse else [ones, running], dim)


def _recurrence(terms: Any, links: Any, dim: int, from_end: bool) -> Any:
    """y[i] = terms[i] + links[i - 1] y[i - 1] along dim, or terms[i] + links[i] y[i + 1], in log2(size) steps."""
    size, step = terms.shape[dim], 1
    while step < size:  # links: here the products of as many as a step is long
        low, high = terms.narrow(dim, 0, size - step), terms.narrow(dim, step, size - step)
        if from_end:
            parts = [low + links * high, terms.narrow(dim, size - step, step)]
        else:
            parts = [terms.narrow(dim, 0, step), high + links * low]
        terms, rest = cat(parts, dim), max(size - 2 * step, 0)
        links = links.narrow(dim, 0, rest) * links.narrow(dim, size - step - rest, rest)
        step *= 2
    return terms


def _logcumsumexp_grad(g: Any, x: Any, dim: int) -> Any:
    """For each x[i] the sum of g[j] exp(x[i] - out[j]) over j >= i. Sums are relative to the largest element so far,
    because differences of large numbers lose digits. Equal infinities differ by 0.
    """
    if not x.ndim or not x.numel():
        return g.clone()
    size = x.shape[dim]
    top = cummax(x.real.detach(), dim).values
    before, after = top.narrow(dim, 0, size - 1), top.narrow(dim, 1, size - 1)
    falls = (before - after).where(before != after, 0).exp()
    terms = (x - top).where((x != top) | top.isfinite(), 0).exp()
    sums = _recurrence(terms, falls, dim, False)
    links = falls * sums.narrow(dim, 0, size - 1) / sums.narrow(dim, 1, size - 1)
    return terms / sums * _recurrence(g, links, dim, True)


@differentiable("logcumsumexp", grad=_logcumsumexp_grad)
def _logcumsumexp(x: Tensor, dim: int) -> Tensor:
    if x.is_complex() and x.numel():
        if not x.ndim:
            return complex(lib.norch_scan(constants["SCAN_LOGSUMEXP"], x.real, dim, False), x.imag)
        return stack([*accumulate(x.unbind(dim), _log_add_exp)], dim)
    return lib.norch_scan(constants["SCAN_LOGSUMEXP"], x, dim, False)


def _log_add_exp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) of complex numbers, from the one of the larger real part. Its imaginary part may leave
    (-pi, pi], as PyTorch's."""
    swap = a.real < b.real
    high, low = b.where(swap, a), a.where(swap, b)
    zero = low.real == -math.inf  # exp(low), also where both are so
    out = (low.where(~zero, 0) - high.where(~zero, 0)).exp().log1p().where(~zero, 0) + high
    whole = (a.exp() + b.exp()).log()
    return whole.where((low.real == math.inf) | a.isnan() | b.isnan(), out)


def _running(scan: Any, name: str, x: Tensor, dim: int, dtype: DType | None) -> Tensor:
    x = as_operand(x, name)
    if x.is_complex() and dtype is None:
        return _complex_running(scan, x, dim)
    if dtype is None:
        return scan(x, dim, False)
    wanted = dtype_named(dtype)
    if wanted.is_complex:
        return _complex_running(scan, x.to(wanted), dim)
    return scan(x.to(wanted), dim, False).to(wanted)  # integers add up in int64, which wraps as any does


def _complex_running(scan: Any, x: Any, dim: int) -> Any:
    """Running sums are those of the parts. Running products take log2(n) steps (Hillis and Steele, "Data parallel
    algorithms", 1986): step s multiplies each element by the one 2**s places before it.
    """
    if scan is _cumsum:
        return complex(scan(x.real, dim, False), scan(x.imag, dim, False))
    if x.ndim == 0:
        return complex(scan(x.real, dim, False), x.imag)
    size, apart = x.shape[dim], 1
    while apart < size:
        products = x.narrow(dim, apart, size - apart) * x.narrow(dim, 0, size - apart)
        x = cat((x.narrow(dim, 0, apart), products), dim)
        apart *= 2
    return x if apart > 1 else x.clone()


@method(numpy=True, autocast="- float32")
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running sums: each element is the sum of all elements up to it along dim. Integers and bool are summed in int64,
    or in dtype.

    >>> norch.cumsum(norch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    return _running(_cumsum, "cumsum", input, dim, dtype)


@method(numpy=True, composed=True, autocast="- float32")
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running products: each element is the product of all elements up to it along dim. Integers and bool are
    multiplied in int64, or in dtype.

    >>> norch.cumprod(norch.tensor([1, 2, 3, 4]), dim=0)
    tensor([ 1,  2,  6, 24])
    """
    return _running(_cumprod, "cumprod", input, dim, dtype)


@method(numpy=True, composed=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """log(cumsum(exp(x))) along dim, without overflow, for floats and complex numbers. For complex numbers each running
    sum takes several calls.

    >>> norch.logcumsumexp(norch.zeros(2), dim=0)
    tensor([0.0000, 0.6931])
    """
    return _logcumsumexp(as_operand(input, "logcumsumexp"), dim)


@method(numpy=True)
def cummax(input: Tensor, dim: int) -> cummax_result:
    """(values, indices): the largest element so far along dim, and its index, the last one of equal elements. After a
    NaN the result is NaN.

    >>> norch.cummax(norch.tensor([1, 3, 2]), dim=0).values
    tensor([1, 3, 3])
    """
    return cummax_result(*_extremes(as_operand(input, "cummax"), dim, False))


@method(numpy=True)
def cummin(input: Tensor, dim: int) -> cummin_result:
    """(values, indices): the smallest element so far along dim, and its index, the last one of equal elements. After a
    NaN the result is NaN.

    >>> values, indices = norch.cummin(norch.tensor([3, 1, 2]), dim=0)
    >>> values, indices
    (tensor([3, 1, 1]), tensor([0, 1, 1]))
    """
    return cummin_result(*_extremes(as_operand(input, "cummin"), dim, True))


def _extremes(x: Tensor, dim: int, least: bool) -> tuple[Tensor, Tensor]:
    values = lib.norch_empty(lib.norch_shape(x), x._dtype, (x._device_type, x._device_index))
    indices = lib.norch_scan_extreme(x, dim, least, values)
    return record(gather_node("cummin" if least else "cummax"), values, (x,), (indices, dim)), indices


def _inplace(function: Any) -> Any:
    name = function.__name__ + "_"

    def method(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        if mode.casting and current().active:
            with autocast_off():
                return method(self, dim, dtype=dtype)
        check_writable(self, name)
        if dtype is not None and dtype_named(dtype) is not self.dtype:
            raise DTypeError(f"{name}: dtype {dtype} for a tensor of {self.dtype}")
        options = {} if self.dtype.is_floating_point else {"dtype": self.dtype}  # integers would be added up in int64
        result = function(snapshot(self) if mode.enabled else self, dim, **options)
        lib.norch_copy(self, result)
        node = result._node
        if node is not None and node.save_plan.out:  # of what was written, not of the result that was copied
            at = node.save_plan.saves.index("out")
            node._saved = (*node._saved[:at], alias(self), *node._saved[at + 1 :])
        finish_write(self, node, True)
        return self

    return rename_errors(named_function(method, name, f"{function.__name__}() in place."))


METHODS.update(cumsum_=_inplace(cumsum), cumprod_=_inplace(cumprod))
__all__ = public(globals(), "products_of_others")
