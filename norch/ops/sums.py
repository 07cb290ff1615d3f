"""Sums with a factor: add(), sub() and their in-place forms with alpha=, and helpers of addcmul() and similar
functions.

Rows of csrc/ops.def take no factor. The sum of floats is a row of three inputs; other sums multiply first.
"""

from __future__ import annotations

import builtins

from .._binding.library import lib
from .._package.typing import Any, Operand, Tensor
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.levels import BatchedBase
from ..dtype import DTYPES, check_fits, float32, float64, int64
from ..dtype import dtype as DType
from ..errors import DTypeError, Error, rename_error
from ._arguments import public
from ._inplace_methods import inplace_form
from ._operand import as_operand, operand
from ._rows import writes
from .op import OPCODES, method
from .pointwise import _add, _addcmul, _sub, mul

_add_, _sub_, _write_sum = inplace_form(_add), inplace_form(_sub), writes("ternary", "addcmul")


@method(out=True)
def add(input: Operand, other: Operand, second: Any = None, *, alpha: Any = 1) -> Tensor:
    """input + alpha * other; add(input, alpha, other) is an older form.

    >>> norch.add(norch.ones(2), 1)
    tensor([2., 2.])
    """
    if second is not None:
        alpha, other = older_factor("add", other, alpha), second
    return _add(input, other) if type(alpha) is int and alpha == 1 else with_factor(_add, "add", alpha, input, other)


@method(aliases=("subtract",), out=True)
def sub(input: Operand, other: Operand, second: Any = None, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other; sub(input, alpha, other) is an older form."""
    if second is not None:
        alpha, other = older_factor("sub", other, alpha), second
    return _sub(input, other) if type(alpha) is int and alpha == 1 else with_factor(_sub, "sub", alpha, input, other)


def older_factor(name: str, factor: Any, keyword: Any) -> Any:
    """The factor of an older form, which has it before the tensor that it multiplies. keyword is the factor that was
    passed by name.
    """
    if keyword != 1:
        raise TypeError(f"{name}: two factors, {factor} before the tensor and {keyword} by name")
    return factor


def older_form(name: str, arguments: tuple[Any, ...], beta: Any, alpha: Any) -> tuple[Any, ...]:
    """The three tensors, beta and alpha of a call in an older form, in which numbers precede the tensors that they
    multiply. A beta or alpha passed by name must be 1 then.
    """
    tensors = [x for x in arguments if isinstance(x, Handle)]
    factors = [x for x in arguments[:-2] if not isinstance(x, Handle)]
    if len(tensors) != 3 or len(factors) != len(arguments) - 3 or len(factors) > 2 or not beta == alpha == 1:
        raise TypeError(f"{name}: expected an input and two factors, got {len(arguments)} positional arguments")
    return (*tensors, *factors, 1)[:5]


def with_factor(function: Any, name: str, factor: float, input: Operand, *others: Any) -> Tensor:
    """function(input, *others), a sum with the first of others multiplied by factor, in the promoted dtype of all."""
    summand = input = as_operand(input, name)
    first = others[0]
    plain = scales(factor, first, input)
    if plain and len(others) == 1 and input.dtype.is_floating_point:
        try:
            return _addcmul(input, -factor if function is _sub else factor, first)  # a number there is not packed
        except Error as error:
            rename_error(error, name)
            raise
    if plain and input.dtype in (float32, float64):
        product, rest = mul(first, factor), others[1:]
        if not can_overwrite(product, input, *rest):
            return function(input, product, *rest)
        lib.norch_ternary_into(product, OPCODES[name], input, product, *rest)
        return product
    others, dtype = _times(name, factor, input, others)
    if dtype.is_floating_point and dtype.itemsize == 2:
        summand = input.float()
    out = function(summand, *others)
    return out if out.dtype is dtype else out.to(dtype)


_WORTH = 8192  # elements: what is asked below takes 0.5 us


def can_overwrite(out: Any, *others: Any) -> bool:
    """Whether a result computed from out, a new tensor, and others may be written into out, and is large enough for
    that to pay: it has their shape and dtype, and nothing is recorded. A pass over memory that is in the cache already
    takes half the time."""
    if out._numel < _WORTH or out._node is not None or isinstance(out, BatchedBase):
        return False
    shape, dtype = lib.norch_shape(out), out._dtype
    for x in others:
        if not isinstance(x, Handle) or isinstance(x, BatchedBase) or x._dtype != dtype or lib.norch_shape(x) != shape:
            return False
        if mode.enabled and (x._node is not None or x._view is not None):
            return False
    return True


def scales(factor: Any, first: Any, input: Any) -> bool:
    """Whether factor is a number, and first a tensor of the dtype of input."""
    return type(factor) in (int, float) and isinstance(first, Handle) and first.dtype is input.dtype


def _times(name: str, factor: float, input: Tensor, others: Any) -> tuple[Any, DType]:
    """others with the first one multiplied by factor, and the dtype of their sum with input. Halves become float32, and
    unsigned integers with a negative factor int64."""
    if isinstance(factor, Handle) and factor.ndim:
        raise TypeError(f"{name}: alpha must be a number, not a tensor of shape {tuple(factor.shape)}")
    others = [as_operand(x, name) for x in others]
    dtype = wide = DTYPES[lib.norch_result_type((input, *others))]
    if dtype.is_floating_point and dtype.itemsize == 2:
        wide = float32  # one rounding, at the end
        others = [x.float() for x in others]
    elif type(factor) is int:
        check_fits(factor if dtype.is_signed else builtins.abs(factor), dtype, name)
        wide = int64 if dtype.kind == "u" and factor < 0 else wide  # x - y is x + -1 * y
        factor = bool(factor) if dtype.kind == "b" else factor
    others[0] = mul(others[0].to(wide), as_operand(factor, name))
    if others[0].dtype.kind in "fc" and dtype.kind not in "fc":
        raise DTypeError(f"{name}: a factor of integers is an integer, not {factor}")
    return others, dtype


subtract = sub


# ---- in place ------------------------------------------------------------------------------------------------------


def _added(name: str, self: Tensor, other: Any, alpha: Any, sign: int) -> Any:
    """Adds sign * alpha * other to self in one pass; NotImplemented where a gradient or a cast needs the long way."""
    if (mode.enabled and self._node is not None) or self.dtype not in (float32, float64):
        return NotImplemented
    if not scales(alpha, other, self):
        return NotImplemented
    try:
        return _write_sum(self, operand(sign * alpha), other)
    except Error as error:
        rename_error(error, name)
        raise


@method
def add_(self: Tensor, other: Operand, second: Any = None, *, alpha: Any = 1) -> Tensor:
    """add() in place."""
    if second is not None:
        alpha, other = older_factor("add_", other, alpha), second
    if type(alpha) is int and alpha == 1:
        return _add_(self, other)
    out = _added("add_", self, other, alpha, 1)
    return out if out is not NotImplemented else _add_(self, _times("add_", alpha, self, (other,))[0][0])


@method(aliases=("subtract_",))
def sub_(self: Tensor, other: Operand, second: Any = None, *, alpha: Any = 1) -> Tensor:
    """sub() in place."""
    if second is not None:
        alpha, other = older_factor("sub_", other, alpha), second
    if type(alpha) is int and alpha == 1:
        return _sub_(self, other)
    out = _added("sub_", self, other, alpha, -1)
    return out if out is not NotImplemented else _sub_(self, _times("sub_", alpha, self, (other,))[0][0])


__all__ = public(globals(), "can_overwrite", "older_factor", "older_form", "scales", "with_factor")
