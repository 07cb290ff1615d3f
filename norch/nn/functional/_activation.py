"""The activation functions of nn.functional.

Functions with a row in csrc/ops.def come from ops/activation.py; the others are composed of recorded operations.
With `inplace=True` the result is written into the input. Formulas that the docstrings leave without a source are
definitions. "Floats only": any other dtype raises DTypeError.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..._binding.numbers import flag
from ..._tensor.handle import Handle
from ...autograd.grad_mode import mode
from ...autograd.inplace import check_writable
from ...autograd.outlive import outlive_writes
from ...dtype import check_numbers
from ...dtype import dtype as DType
from ...errors import (
    ArgumentError,
    DivisionError,
    DTypeError,
    Error,
    ShapeError,
    one_of,
    rename_error,
    stacklevel_of_user,
)
from ...ops import activation as _rows
from ...ops import softmax as _softmax
from ...ops._arguments import named_function
from ...ops._autocast import in_autocast, policy
from ...ops._checks import floats_of
from ...ops._entry import composed, rename_errors
from ...ops._inplace_methods import inplace_form
from ...ops._instead import instead
from ...ops._operand import as_operand, tensor_of
from ...ops._rows import writes
from ...ops.composed.activation import hardshrink as hardshrink
from ...ops.composed.activation import operands_of_threshold
from ...ops.composed.activation import prelu as prelu
from ...ops.composed.activation import threshold as _threshold
from ...ops.create import empty_like
from ...ops.pointwise import relu as _relu
from ...ops.pointwise import sigmoid as sigmoid
from ...ops.pointwise import tanh
from ...ops.random import standard_exponential, uniform_
from ...ops.sums import sub
from ...tensor import Tensor

# ruff: noqa: A002  (PyTorch's names)

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6",
    "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

logsigmoid = _rows.logsigmoid
softsign = _rows.softsign

_write_clamp, _write_threshold = writes("ternary", "clamp"), writes("ternary", "threshold")
_in_place: dict[Any, Any] = {}  # function: its in-place form, created at the first use


def is_true(value: Any, name: str) -> bool:
    """The truth value of a flag. TypeError for an object without one."""
    try:
        return bool(value)
    except (ValueError, RuntimeError):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}") from None


def _apply(name: str, function: Any, inplace: bool, input: Tensor, *arguments: Any) -> Tensor:
    """function(input, *arguments), written into input if inplace. name: the activation, for errors."""
    if inplace is False or not is_true(inplace, f"{name}: inplace"):
        return function(input, *arguments)
    in_place = _in_place.get(function)
    if in_place is None:
        in_place = _in_place[function] = inplace_form(function)
    return in_place(input, *arguments)


# ---- piecewise linear ---------------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x) (Nair and Hinton 2010); NaN stays NaN.

    >>> norch.nn.functional.relu(norch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    try:
        return _relu(input) if inplace is False or not is_true(inplace, "relu: inplace") else relu_(input)
    except TypeError as error:
        return instead(relu, (input,), {"inplace": inplace}, error)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6) (Krizhevsky 2010).

    >>> norch.nn.functional.relu6(norch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, is_true(inplace, "relu6: inplace"))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """min(max(min_val, x), max_val); the gradient is 0 at the bounds. ArgumentError if min_val > max_val.

    >>> norch.nn.functional.hardtanh(norch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    input = as_operand(input, "hardtanh")
    if type(min_val) is not float or type(max_val) is not float:
        check_numbers("hardtanh", min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    if input.dtype.is_floating_point:
        if inplace is True and (out := _write_clamp(input, min_val, max_val)) is not NotImplemented:
            return out
        row = _rows.hardtanh(min_val, max_val, inplace is not False and input.element_size() >= 4)
        return _apply("hardtanh", row, inplace, input, min_val, max_val)
    if min_val < 0 and not input.dtype.is_signed:
        raise DTypeError(f"hardtanh: dtype {input.dtype.name} cannot represent min_val {min_val}")
    try:
        low, high = int(min_val), int(max_val)
        return _apply("hardtanh", _rows.hardtanh(low, high, False), inplace, input, low, high)
    except Error as error:  # of "clamp"
        rename_error(error, "hardtanh")
        raise


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x if x > 0, else negative_slope * x (Maas et al. 2013). Floats only.

    >>> norch.nn.functional.leaky_relu(norch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _apply("leaky_relu", _rows.leaky_relu, inplace, floats_of(input, "leaky_relu"), negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu() with a random slope per element, uniform in [lower, upper), in training, and with the mean of both
    otherwise (Xu et al. 2015). Floats only.

    >>> norch.nn.functional.rrelu(norch.tensor([-1.0, 2.0]), lower=0.2, upper=0.3)
    tensor([-0.2500,  2.0000])
    """
    check_numbers("rrelu", lower=lower, upper=upper)
    if lower > upper:
        raise ArgumentError(f"rrelu: lower {lower} is above upper {upper}")
    input = floats_of(input, "rrelu")
    slope: Any = (lower + upper) / 2
    if flag(training, "rrelu: training"):
        slope = uniform_(empty_like(input.detach()), lower, upper)
    return _apply("rrelu", _rows.leaky_relu, inplace, input, slope)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x if x > threshold or x is NaN, else value.

    >>> norch.nn.functional.threshold(norch.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
    """
    if inplace is False or not is_true(inplace, "threshold: inplace"):
        return _threshold(input, threshold, value)
    check_writable(input, "threshold_")  # before a number becomes a tensor
    operands = operands_of_threshold(input, threshold, value)
    out = _write_threshold(*operands)
    return out if out is not NotImplemented else _apply("threshold", _rows.threshold, True, *operands)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0. Floats only; ArgumentError if lambd < 0.

    >>> norch.nn.functional.softshrink(norch.tensor([-2.0, 0.3, 2.0]))
    tensor([-1.5000,  0.0000,  1.5000])
    """
    check_numbers("softshrink", lambd=lambd)
    if not lambd >= 0:
        raise ArgumentError(f"softshrink: lambd must not be negative, got {lambd}")
    return _rows.softshrink(floats_of(input, "softshrink"), lambd)


# ---- exponential --------------------------------------------------------------------------------------------------


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x if x > 0, else alpha * (exp(x) - 1) (Clevert et al. 2015). Floats only.

    >>> norch.nn.functional.elu(norch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    if type(alpha) is not float:
        check_numbers("elu", alpha=alpha)
    return _apply("elu", _rows.elu, inplace, floats_of(input, "elu"), alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x if x > 0, else alpha * (exp(x / alpha) - 1) (Barron 2017). Floats only; DivisionError if alpha is 0.

    >>> norch.nn.functional.celu(norch.tensor([-2.0, 2.0]), alpha=2.0)
    tensor([-1.2642,  2.0000])
    """
    check_numbers("celu", alpha=alpha)
    if alpha == 0:
        raise DivisionError("celu: alpha cannot be 0")
    return _apply("celu", _rows.celu, inplace, floats_of(input, "celu"), alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(x, alpha), with constants that keep mean 0 and variance 1 (Klambauer et al. 2017). Floats only.

    >>> norch.nn.functional.selu(norch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """
    return _apply("selu", _rows.selu, inplace, floats_of(input, "selu"))


@policy("- float32")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold (Dugas et al. 2000). Floats only.

    >>> norch.nn.functional.softplus(norch.tensor([0.0, 100.0]))
    tensor([  0.6931, 100.0000])
    """
    if mode.casting and (out := in_autocast(softplus, input, beta, threshold)) is not None:
        return out
    if type(beta) is not float or type(threshold) is not float:
        check_numbers("softplus", beta=beta, threshold=threshold)
    return _rows.softplus(floats_of(input, "softplus"), beta, threshold)


# ---- gates: x times a function with values from 0 to 1 ------------------------------------------------------------


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), with Phi the normal distribution function (Hendrycks and Gimpel 2016). Floats only.

    approximate: "none", or "tanh" for the approximation of Phi by tanh. Other values raise ArgumentError.

    >>> norch.nn.functional.gelu(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    try:  # not guarded(): a call within a call would take a fifth of the time of ten elements
        if approximate == "none":
            return _rows.gelu(input)
        one_of("gelu: approximate", approximate, ("none", "tanh"))
        return _rows.gelu_tanh(input)
    except TypeError as error:
        return instead(gelu, (input, approximate), {}, error)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x) (Elfwing et al. 2017). Floats and complex numbers.

    >>> norch.nn.functional.silu(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _apply("silu", _rows.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra 2019). Floats only.

    >>> norch.nn.functional.mish(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return _apply("mish", _rows.mish, inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6. Floats only.

    >>> norch.nn.functional.hardsigmoid(norch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return _apply("hardsigmoid", _rows.hardsigmoid, inplace, floats_of(input, "hardsigmoid"))


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6 (Howard et al. 2019). Floats only.

    >>> norch.nn.functional.hardswish(norch.tensor([0.0, 1.5, 4.0]))
    tensor([0.0000, 1.1250, 4.0000])
    """
    return _apply("hardswish", _rows.hardswish, inplace, input)


@composed
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), with a and b the halves of the input along dim (Dauphin et al. 2016). Floats only.

    The size along dim must be even: ShapeError otherwise.

    >>> norch.nn.functional.glu(norch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    input = floats_of(as_operand(input, "glu"), "glu")
    if input.ndim == 0:
        raise ShapeError("glu: expected 1 or more dimensions, got a 0-d tensor")
    half, odd = divmod(input.size(dim), 2)
    if odd:
        raise ShapeError(f"glu: dimension {dim} must be even, but has size {2 * half + 1}")
    return _rows.glu(input, dim)


@composed
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> norch.nn.functional.tanhshrink(norch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    input = as_operand(input, "tanhshrink")
    if input.is_complex():
        return sub(input, tanh(input))
    return outlive_writes(_rows.tanhshrink(input), input)  # PyTorch saves the hyperbolic tangent


# ---- softmax ------------------------------------------------------------------------------------------------------


def _softmax_dim(name: str, input: Tensor, dim: int | None) -> int:
    """dim; for None PyTorch's choice by the number of dimensions, with its warning."""
    if dim is not None:
        return dim
    tensor_of(input, name)
    warnings.warn(f"{name}: implicit dimension choice is deprecated, pass dim=X", stacklevel=stacklevel_of_user())
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim. The maximum is subtracted first, so that exp() does not overflow.

    >>> norch.nn.functional.softmax(norch.tensor([1e4, 1e4]), 0)
    tensor([0.5000, 0.5000])
    """
    dim = _softmax_dim("softmax", input, dim)
    return _softmax.softmax(input, dim, dtype)


@rename_errors
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """softmax(-x) along dim.

    >>> norch.nn.functional.softmin(norch.tensor([1.0, 1.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax.softmax(-input, _softmax_dim("softmin", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along dim, computed as x - logsumexp(x): finite for finite x of any size.

    >>> norch.nn.functional.log_softmax(norch.tensor([1000.0, 1000.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    dim = _softmax_dim("log_softmax", input, dim)
    return _softmax.log_softmax(input, dim, dtype)


@composed
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample softmax((logits + noise) / tau) along dim, with Gumbel noise: differentiable in the logits.

    hard: the result is one-hot, with the gradient of the soft sample (Jang et al. 2016). eps is ignored.

    >>> norch.nn.functional.gumbel_softmax(norch.zeros(2, 3), dim=1).shape
    norch.Size([2, 3])
    """
    logits = floats_of(logits, "gumbel_softmax")
    if not isinstance(tau, Handle):  # a tensor has a gradient
        check_numbers("gumbel_softmax", tau=tau)
    noise = -standard_exponential(logits).log()
    soft = _softmax.softmax((logits + noise) / tau, dim).to(logits.dtype)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    hard_sample = soft.new_zeros(soft.shape).scatter_add(dim, index, soft.new_ones(index.shape))
    return hard_sample - soft.detach() + soft


def _in_place_form(function: Any, signed: Any = None) -> Any:
    """function(inplace=True), as a function with the signature of signed."""

    def function_(input: Tensor, *arguments: Any, **named: Any) -> Tensor:
        return function(input, *arguments, **named, inplace=True)

    function_.__wrapped__ = signed or function  # type: ignore[attr-defined]
    return rename_errors(named_function(function_, f"{function.__name__}_", f"{function.__name__}() in place."))


relu_ = inplace_form(_relu)
celu_, elu_, selu_, hardtanh_ = (_in_place_form(f) for f in (celu, elu, selu, hardtanh))
leaky_relu_, rrelu_ = _in_place_form(leaky_relu), _in_place_form(rrelu)
threshold_ = _in_place_form(threshold, _threshold)
