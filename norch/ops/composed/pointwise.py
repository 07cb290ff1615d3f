"""Elementwise operations that are composed of rows: of those in pointwise.py, and of some that only they use."""

from __future__ import annotations

import math

from ..._binding.library import lib
from ..._binding.numbers import int64
from ..._package.typing import Any, NamedTuple, Operand, Tensor
from ..._tensor.handle import Handle
from ...autograd.differentiable import differentiable
from ...autograd.grad_mode import mode
from ...autograd.record import gradient_edge
from ...dtype import bool_, check_numbers, complex128, finfo, fits, float32, float64, get_default_dtype, int32
from ...errors import ArgumentError, DTypeError
from .. import pointwise as rows
from .. import sums
from .._arguments import named_function, public
from .._checks import check_count, floats_of, real_of
from .._entry import composed, rename_errors
from .._inplace_methods import inplace_form
from .._operand import as_operand, operand
from .._out import takes_out
from .._rows import writes
from ..complex import complex
from ..copy import clone, fill_, result_type
from ..create import full_like
from ..norm import vector_norm
from ..op import METHODS, OPCODES, backward_op, function_op, method, op
from ..reduce import all_over
from ..transcendental import digamma, lgamma

frexp_result = NamedTuple("frexp_result", [("mantissa", Tensor), ("exponent", Tensor)])

# ---- one input ----------------------------------------------------------------------------------------------------


_round = function_op("round", grad=rows.flat)
_round_decimals = function_op("round_decimals", grad_a=rows.flat)  # b: a power of 10
_round_tens = function_op("round_tens", grad_a=rows.flat)


@method(inplace=True, composed=True, out=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """input rounded to `decimals` decimals, halves to the even digit. Negative decimals round to tens, hundreds, and so
    on.

    >>> norch.round(norch.tensor([0.5, 1.5, 2.375])), norch.round(norch.tensor([2.375]), decimals=1)
    (tensor([0., 2., 2.]), tensor([2.4000]))
    """
    if int64(decimals, "round: decimals") == 0:
        return _round(input)
    input = floats_of(input, "round")
    power = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf  # the result is NaN, as in PyTorch
    return (_round_decimals if decimals > 0 else _round_tens)(input, power)


_frac = op(  # x without its whole part
    "frac", grad=lambda g: g, is_method=False, shares_grad=True
)


@method(inplace=True, out=True)
def frac(input: Tensor) -> Tensor:
    """input - trunc(input). Floats only.

    >>> norch.frac(norch.tensor([-1.25, 2.5]))
    tensor([-0.2500,  0.5000])
    """
    return _frac(floats_of(input, "frac"))


@method(inplace=True, out=True)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians. Integers become floats.

    >>> norch.deg2rad(norch.tensor([90.0, 180.0]))
    tensor([1.5708, 3.1416])
    """
    return rows.mul(real_of(input, "deg2rad"), math.pi / 180)


@method(inplace=True, out=True)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees. Integers become floats.

    >>> norch.rad2deg(norch.tensor([norch.pi]))
    tensor([180.])
    """
    return rows.mul(real_of(input, "rad2deg"), 180 / math.pi)


_logit = function_op(  # NaN outside [0, 1], infinite at its ends, as are the derivatives of its gradient
    "logit", grad=lambda g, x: _logit_gradient(g, x)
)


def _logit_gradient(g: Tensor, x: Tensor) -> Tensor:
    if mode.enabled:
        return (g * (1 / x + 1 / (1 - x))).where((x >= 0) & (x <= 1), math.nan)
    slope = (1 - x) * x  # negative outside
    return (g / slope).where(slope >= 0, math.nan)


@method(inplace=True, composed=True, out=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps].

    >>> norch.logit(norch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    if eps is not None:
        check_numbers("logit", eps=eps)
        input = as_operand(input, "logit")
        if input.dtype.is_floating_point and 0 <= eps <= 0.5 and not (mode.enabled and gradient_edge(input)):
            limited = rows._clamp(input, float(eps), 1.0 - eps)
            if not sums.can_overwrite(limited):
                return _logit(limited)
            lib.norch_unary_into(limited, OPCODES["logit"], limited)
            return limited
        input = rows.where(input < eps, eps, rows.where(input > 1 - eps, 1 - eps, input))
    return _logit(input)


nan_to_num_backward: Any = backward_op("nan_to_num_backward")
_nan_to_num = function_op(  # b for NaN, c and -c for infinities
    "nan_to_num", grad_a=lambda g, a: g.where(rows.isfinite(a), 0) if mode.enabled else nan_to_num_backward(g, a)
)


@method(inplace=True, moves=True, out=True)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """input with NaN and infinities replaced by numbers: by default 0, and the dtype's largest and smallest number.

    >>> norch.nan_to_num(norch.tensor([norch.nan, norch.inf]), posinf=9.0)
    tensor([0., 9.])
    """
    input, nan = as_operand(input, "nan_to_num"), 0.0 if nan is None else nan
    if input.is_complex():
        return complex(*(nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag)))
    if not input.dtype.is_floating_point:
        return input.clone()
    _, high, low, _ = input.dtype.limits()
    high, low = high if posinf is None else posinf, low if neginf is None else neginf
    check_numbers("nan_to_num", nan=nan, posinf=high, neginf=low)
    out = _nan_to_num(input, float(nan or 0.0), float(high))
    if low == -high:
        return out
    low = low if fits(low, input.dtype) else math.copysign(math.inf, low)
    least = rows.eq(input, -math.inf)
    if not sums.can_overwrite(out, input):
        return rows.where(least, float(low), out)
    lib.norch_ternary_into(out, OPCODES["where"], least, operand(float(low)), out)
    return out


@method(out=True)
def isposinf(input: Tensor) -> Tensor:
    """Where input is +inf.

    >>> norch.isposinf(norch.tensor([norch.inf, -norch.inf]))
    tensor([ True, False])
    """
    return rows.eq(real_of(input, "isposinf"), math.inf)


@method(out=True)
def isneginf(input: Tensor) -> Tensor:
    """Where input is -inf.

    >>> norch.isneginf(norch.tensor([norch.inf, -norch.inf]))
    tensor([False,  True])
    """
    return rows.eq(real_of(input, "isneginf"), -math.inf)


@method
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0: everywhere in a real tensor.

    >>> norch.isreal(norch.tensor([1 + 0j, 1 + 1j]))
    tensor([ True, False])
    """
    input = as_operand(input, "isreal")
    if input.is_complex():
        return rows.eq(input.imag, 0)
    return lib.norch_full_like(input, bool_.code, 1.0, 1)


@takes_out
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma: (-1)**(n + 1) n! sum((input + k)**-(n + 1)). Integers become floats.

    >>> norch.polygamma(1, norch.tensor([1.0]))
    tensor([1.6449])
    """
    n = int64(n, "polygamma: n")
    if n < 0:
        raise ArgumentError(f"polygamma: n is an integer from 0 on, not {n}")
    if n == 0:
        return digamma(input)
    from ..special import zeta  # when it is called, for the time of `import norch`

    factor = float(math.factorial(n)) if n < 171 else math.inf
    return zeta(n + 1, input) * (factor if n % 2 else -factor)


@method(inplace=True, composed=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p. Integers become floats.

    >>> norch.mvlgamma(norch.tensor([3.0]), p=2)
    tensor([1.5502])
    """
    if check_count(p, "mvlgamma: p", 1 << 16) < 1:
        raise ArgumentError(f"mvlgamma: p must be at least 1, got {p}")
    x = as_operand(input, "mvlgamma")
    x = x if x.dtype.is_floating_point else x.to(get_default_dtype())
    return _mvlgamma(x, p)


def _mvlgamma_grad(g: Tensor, x: Tensor, p: int) -> Tensor:
    slope = digamma(x)
    for k in range(1, p):
        slope = slope + digamma(x - k / 2)
    return g * slope


@differentiable(grad=_mvlgamma_grad)
def _mvlgamma(x: Tensor, p: int) -> Tensor:
    out = lgamma(x)
    for k in range(1, p):
        out = out + lgamma(rows._sub(x, k / 2))
    return out + p * (p - 1) / 4 * math.log(math.pi)


_significand, _exponent = function_op("significand"), function_op("exponent")  # of frexp(), which has the derivative


@method(moves=True, out=True)
def frexp(input: Tensor) -> frexp_result:
    """(mantissa, exponent) with input = mantissa * 2**exponent and 0.5 <= |mantissa| < 1. For 0, inf and NaN the
    mantissa is input. Floats only.

    >>> norch.frexp(norch.tensor([3.0, -0.25]))
    frexp_result(mantissa=tensor([ 0.7500, -0.5000]), exponent=tensor([ 2, -1], dtype=norch.int32))
    """
    input = floats_of(input, "frexp")
    x = input.detach()
    exponent = lib.norch_cast(_exponent(x), int32.code)
    return frexp_result(_mantissa(input, _significand(x), exponent), exponent)


# 2**exponent can be infinite, but half of it cannot.
@differentiable(
    "frexp", tensors=("exponent",), grad_x=lambda g, exponent: g * 0.5 / rows.exp2((exponent - 1).to(g.dtype))
)
def _mantissa(x: Tensor, mantissa: Tensor, exponent: Tensor) -> Tensor:
    return mantissa


@differentiable("ldexp", broadcast=True, tensors=("power",), grad_x=lambda g, power: _scaled(g, power))
def _scaled(x: Tensor, power: Tensor) -> Tensor:
    """x * 2**power, for integers, in three factors that are numbers of x's dtype also where 2**power is none."""
    factors, most = [], math.frexp(finfo(x.dtype).max)[1] - 1
    power = power.long()
    for _ in range(3):
        part = rows.clamp(power, 1 - most, most)
        factors.append(rows.exp2(part.to(x.dtype)))
        power = rows._sub(power, part)
    for factor in reversed(factors):  # the largest comes last: only there a result is rounded
        x = rows.mul(x, factor)
    return x


def fill(input: Tensor, value: Any) -> Tensor:
    """A copy of input with every element set to value, a number or a 0-d tensor.

    >>> norch.fill(norch.zeros(2), 7)
    tensor([7., 7.])
    """
    input = as_operand(input, "fill")
    if type(value) in (int, float) and gradient_edge(input) is None:
        return full_like(input, value)
    return fill_(clone(input), value)


# ---- two and more -------------------------------------------------------------------------------------------------


@composed
def rsub(input: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input: sub() with its operands exchanged.

    >>> norch.rsub(norch.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    if type(alpha) is int and alpha == 1:
        return rows._sub(other, input)
    return sums.with_factor(rows._sub, "rsub", alpha, other, input)


@method(composed=True, out=True)
def float_power(input: Tensor, exponent: Operand) -> Tensor:
    """input ** exponent in float64, or complex128.

    >>> norch.float_power(norch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=norch.float64)
    """
    a, b = as_operand(input, "float_power"), as_operand(exponent, "float_power")
    wide = complex128 if a.is_complex() or b.is_complex() else float64
    is_real = type(exponent) is int or type(exponent) is float  # of which pow() knows some powers
    return rows.pow(a.to(wide), exponent if is_real else b.to(wide))


@method(inplace=True, composed=True, out=True)
def ldexp(input: Tensor, other: Operand) -> Tensor:
    """input * 2**other. Integers in input become floats; if other has integers, the result has the dtype of input.

    >>> norch.ldexp(norch.tensor([1.0, 3.0]), norch.tensor([2, 3]))
    tensor([ 4., 24.])
    """
    x, power = as_operand(input, "ldexp"), as_operand(other, "ldexp")
    if power.dtype.is_floating_point:
        kind = result_type(x, power)  # which the power of 2 must not be rounded below, as a 0-d one of halves would be
        return _ldexp(x, power.to(kind) if kind.itemsize > power.dtype.itemsize else power)
    return _scaled(x if x.dtype.kind in "fc" else x.to(get_default_dtype()), power)


@differentiable(
    broadcast=True, grad_x=lambda g, power: g * rows.exp2(power), grad_power=lambda g, out: g * (out * math.log(2))
)
def _ldexp(x: Tensor, power: Tensor) -> Tensor:
    return rows.mul(x, rows.exp2(power))


@method(composed=True, autocast="- widest", out=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = None, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2. addcmul(input, value, tensor1, tensor2) is an older form.

    >>> norch.addcmul(norch.ones(2), norch.tensor([2.0, 3.0]), norch.tensor([4.0, 5.0]), value=10)
    tensor([ 81., 151.])
    """
    if third is not None:
        value, tensor1, tensor2 = sums.older_factor("addcmul", tensor1, value), tensor2, third
    if value == 1:
        return rows._addcmul(input, tensor1, tensor2)
    return sums.with_factor(rows._addcmul, "addcmul", value, input, tensor1, tensor2)


_addcdiv = function_op(
    "addcdiv",
    grad_a=lambda g: g,
    grad_b=lambda g, c: g / c,
    grad_c=lambda g, b, c: -g * (b / (c * c)),
    shares_grad=True,
)


@method(composed=True, autocast="- widest", out=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = None, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2, for floats. addcdiv(input, value, tensor1, tensor2) is an older form.

    >>> norch.addcdiv(norch.ones(2), norch.tensor([4.0, 6.0]), norch.tensor([2.0, 3.0]), value=10)
    tensor([21., 21.])
    """
    if third is not None:
        value, tensor1, tensor2 = sums.older_factor("addcdiv", tensor1, value), tensor2, third
    if value == 1:
        return _addcdiv(input, tensor1, tensor2)
    return sums.with_factor(_addcdiv, "addcdiv", value, input, tensor1, tensor2)


def _scaled_in_place(function: Any) -> Any:
    """The in-place form of addcmul() or addcdiv(): one pass, or two with a factor, where nothing has a history."""
    name, general, write = function.__name__ + "_", inplace_form(function), writes("ternary", function.__name__)

    def function_(self: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = None, *, value: Any = 1) -> Tensor:
        if third is None and not mode.casting and sums.scales(value, tensor1, self):
            if self.dtype in (float32, float64):
                out = write(self, tensor1 if value == 1 else rows.mul(tensor1, value), tensor2)
                if out is not NotImplemented:
                    return out
        return general(self, tensor1, tensor2, third, value=value)

    function_.__wrapped__ = function  # type: ignore[attr-defined]  # its signature
    return rename_errors(named_function(function_, name, f"{function.__name__}() in place."))


METHODS |= {"addcmul_": _scaled_in_place(addcmul), "addcdiv_": _scaled_in_place(addcdiv)}


@method(composed=True, autocast="- float32")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other as a 0-d tensor: sum(|input - other|**p)**(1/p). Floats and complex numbers only.

    >>> norch.dist(norch.tensor([0.0, 0.0]), norch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    difference = rows._sub(input, other)
    return vector_norm(difference if difference.is_complex() else floats_of(difference, "dist"), p)


@method
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape and the same elements. A NaN is not equal to anything.

    >>> norch.equal(norch.ones(2), norch.tensor([1.0, 1.0]))
    True
    """
    if not (isinstance(input, Handle) and isinstance(other, Handle)):
        wrong = other if isinstance(input, Handle) else input
        raise TypeError(f"equal: expected two tensors, got {type(wrong).__name__}")
    shape = lib.norch_shape(input)
    if shape != lib.norch_shape(other):
        return False
    if input._numel > _FEW and shape[0] > 1:  # what differs mostly does so soon
        first = max(1, shape[0] * _FEW // (2 * input._numel))
        parts = lib.norch_slice(input, 0, 0, first, 1), lib.norch_slice(other, 0, 0, first, 1)
        if not lib.norch_item(all_over(rows.eq(*parts))):
            return False
    return lib.norch_item(all_over(rows.eq(input, other)))


_FEW = 1024  # elements that are compared first


_polygamma = method(
    named_function(
        lambda self, n: polygamma(n, self),
        "polygamma",
        "The n-th derivative of digamma at self.\n\n>>> norch.tensor([1.0]).polygamma(1)\ntensor([1.6449])\n",
    )
)
_polygamma_, _float_power_ = inplace_form(_polygamma), inplace_form(float_power)


@method
def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma() in place."""
    return _polygamma_(self, n)


@method
def float_power_(self: Tensor, exponent: float) -> Tensor:
    """float_power() in place, for float64 and complex128 only."""
    if self.dtype not in (float64, complex128):
        raise DTypeError(f"float_power_: the result is float64 or complex128, the tensor {self.dtype.name}")
    return _float_power_(self, exponent)


__all__ = public(globals())
