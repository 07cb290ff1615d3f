"""Random tensors, drawn from the generators of norch/random.py.

C draws uniform and normal numbers, integers, bits and permutations. The other distributions are composed of these, by
inverting their distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from .._binding.library import lib
from .._binding.numbers import int64
from .._package.typing import Any, DeviceLike, Operand, Tensor
from .._tensor.handle import Handle
from ..autograd.differentiable import differentiable
from ..autograd.inplace import check_writable, finish_write
from ..autograd.levels import holds, occurs
from ..device import device_code
from ..dtype import bool_ as norch_bool
from ..dtype import (
    check_fits,
    check_numbers,
    contiguous_format,
    dtype_named,
    finfo,
    float32,
    float64,
    iinfo,
    promote_types,
)
from ..dtype import dtype as DType
from ..dtype import int64 as norch_int64
from ..errors import ArgumentError, DTypeError
from ..random import Generator, state_of
from ._arguments import named_function, public
from ._entry import rename_errors
from ._operand import tensor_of
from ._out import make_with_options, makes
from .complex import view_as_complex, view_as_real
from .composed.shape import broadcast_shapes
from .copy import cast, copy_
from .create import dtype_or_default, options_like
from .op import function_op, method
from .pointwise import clamp, flat, where
from .view import expand, narrow, sizes

# ---- tensors of one distribution ------------------------------------------------------------------------------------


def _drawn(call: Any, generator: Any, shape: Any, dtype: DType, device: Any) -> Tensor:
    """What norch_rand or norch_randn draws."""
    return call(state_of(generator), shape, dtype.code, device_code(device))


def _of_shape(name: str, about: str) -> Any:
    """rand() or randn()."""
    call = getattr(lib, f"norch_{name}")

    def draw(
        *shape: Any,
        size: Any = None,
        generator: Generator | None = None,
        dtype: DType | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        return _drawn(call, generator, sizes(shape, size), dtype_or_default(dtype), device)

    return makes(named_function(draw, name, about))


rand = _of_shape(
    "rand",
    """Random numbers, uniform in [0, 1), of the default dtype unless given.

    >>> x = norch.rand(2, 3)
    >>> x.shape, (x < 1).all()
    (norch.Size([2, 3]), tensor(True))
    """,
)
randn = _of_shape(
    "randn",
    """Numbers drawn from the normal distribution of mean 0 and variance 1.

    >>> norch.randn(2, 3).shape
    norch.Size([2, 3])
    """,
)


def _of_shape_of(name: str) -> Any:
    """rand_like() or randn_like()."""
    call = getattr(lib, f"norch_{name}")

    def draw_like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        device: DeviceLike = None,
        memory_format: Any = None,
    ) -> Tensor:
        dtype, device = options_like(f"{name}_like", input, dtype, device, memory_format)
        out = _drawn(call, generator, input.shape, dtype, device)
        return _strided_like(input, out, memory_format)

    about = f"{name}() in the shape and dtype of input, on its device."
    about += f"\n\n>>> norch.{name}_like(norch.ones(2, 3)).shape\nnorch.Size([2, 3])\n"
    return makes(out=False)(named_function(draw_like, f"{name}_like", about))


rand_like, randn_like = _of_shape_of("rand"), _of_shape_of("randn")


def _strided_like(x: Tensor, out: Tensor, memory_format: Any) -> Tensor:
    """out, or its copy with the strides of x where x is dense and memory_format does not ask for C order."""
    if x._contiguous or memory_format is contiguous_format:
        return out
    copy: Any = lib.norch_full_like(x, -1, 0, 0).to(out.device, out.dtype)
    return copy_(copy, out.detach()).requires_grad_(out.requires_grad)


@makes
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """Integers drawn uniformly from [low, high), by default int64: randint(low, high, size) or randint(high, size).

    >>> x = norch.randint(0, 10, (2, 3))
    >>> x.shape, x.dtype
    (norch.Size([2, 3]), norch.int64)
    """
    if size is None:
        if isinstance(high, int):
            raise TypeError(f"randint: the size is a sequence, as in randint(0, 10, (3,)), not {high}")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None or high is None:
        raise TypeError("randint: give a size, as in randint(0, 10, (3,))")
    wanted = norch_int64 if dtype is None else dtype_named(dtype)
    low = 0 if low is None else low
    least, most = _representable(low, high, wanted)
    out = lib.norch_randint(state_of(generator), sizes((size,)), low, high, wanted.code, device_code(device))
    if (least, most) != (low, high):  # some are rounded
        out = out.clamp_(least, most)
    return out


def _representable(low: Any, high: Any, dtype: DType) -> tuple[Any, Any]:
    """The bounds to which integers of [low, high), rounded to a float dtype, are clamped. They are low and high if
    these and all between are exact. ArgumentError if the dtype has no such number, or lacks the bounds.
    """
    low, high = int64(low, "randint:"), int64(high, "randint:")
    exact = 1 << dtype.digits
    if dtype.kind != "f" or low >= high or (-exact <= low and high <= exact + 1):
        return low, high
    for name_of, bound in (("low", low), ("high - 1", high - 1)):
        if abs(bound) > finfo(dtype).max:
            raise ArgumentError(f"randint: {name_of} = {bound} is out of range for {dtype.name}")
    least, most = _least_from(low, dtype), _most_up_to(high - 1, dtype)
    if least > most:
        raise ArgumentError(f"randint: {dtype.name} holds no integer of [{low}, {high})")
    return least, most


def _step_at(x: float, dtype: DType, toward_zero: bool) -> float:
    """The distance of numbers of a float dtype at x; toward_zero: of those between 0 and x."""
    limits = finfo(dtype)
    if x == 0:
        return limits.tiny * limits.eps
    exponent = abs(x).bit_length() if isinstance(x, int) else math.frexp(x)[1]
    at_power = toward_zero and abs(x) == math.ldexp(1.0, exponent - 1)
    return max(math.ldexp(1.0, exponent - dtype.digits - at_power), limits.tiny * limits.eps)


@lru_cache(64, typed=True)
def _most_up_to(x: float, dtype: DType) -> float:
    """The largest number of a float dtype that is not above x, an integer of any size or a float."""
    step = _step_at(x, dtype, x > 0)
    if isinstance(x, int):
        return x // int(step) * int(step) if step >= 1 else x
    return math.floor(x / step) * step


@lru_cache(64, typed=True)
def _least_from(x: float, dtype: DType) -> float:
    """The least number of a float dtype that is not below x; 0 is positive."""
    return -_most_up_to(-x, dtype) or type(x)(0)


@lru_cache(64, typed=True)
def _most_below(x: float, dtype: DType) -> float:
    """The largest number of a float dtype that is below x, and below what x is rounded to."""
    most = _most_up_to(x, dtype)
    is_nearest = x - most <= _step_at(x, dtype, x > 0) / 2
    return most - _step_at(most, dtype, most > 0) if is_nearest else most


@rename_errors
def randint_like(input: Tensor, low: Any = None, high: Any = None, memory_format: Any = None, **more: Any) -> Tensor:
    """randint() in the shape and dtype of input: randint_like(input, low, high) or randint_like(input, high).

    >>> norch.randint_like(norch.ones(2, 3), 10).shape
    norch.Size([2, 3])
    """
    more["dtype"], more["device"] = options_like(
        "randint_like", input, more.get("dtype"), more.get("device"), memory_format
    )
    if low is None and high is None:
        raise TypeError("randint_like: give a bound, as in randint_like(input, 10)")
    low, high = (0, low) if high is None else (low, high)
    return _strided_like(input, make_with_options(randint, low, high, tuple(input.shape), **more), memory_format)


@makes
def randperm(
    n: int, *, generator: Generator | None = None, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """The integers 0, 1, ... n - 1 in random order, by default as int64.

    >>> norch.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    wanted = norch_int64 if dtype is None else dtype_named(dtype)
    if wanted.is_complex or wanted is norch_bool:
        raise DTypeError(f"randperm: not defined for dtype {wanted.name}")
    if wanted.is_floating_point and n > (1 << wanted.digits) + 1:
        raise ArgumentError(f"randperm: {wanted.name} does not hold all integers below {n}")
    out: Any = lib.norch_randperm(state_of(generator), n, device_code(device))
    if n > 0:
        check_fits(n - 1, wanted, "randperm")
    return cast(out, wanted)


@makes
def normal(
    mean: Operand = 0.0,
    std: Operand = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """Numbers drawn from normal distributions. mean and std are tensors, which broadcast, or two numbers with a size;
    in a complex dtype these are as in normal_(). As in PyTorch, the gradients of mean and std are 0.

    TypeError for two numbers without a size, ArgumentError for a negative std.

    >>> norch.normal(norch.zeros(2), norch.ones(3, 1)).shape
    norch.Size([3, 2])
    """
    if size is not None:  # tensors of one element are numbers, as everywhere
        check_numbers("normal", mean=mean, std=std)
        mean, std = (x.item() if isinstance(x, Handle) and not x.ndim else x for x in (mean, std))
    check_numbers("normal", **{k: x for k, x in (("mean", mean), ("std", std)) if not isinstance(x, Handle)})
    tensors: list[Any] = [x for x in (mean, std) if isinstance(x, Handle)]
    if (size is None) is (not tensors):
        raise TypeError("normal: takes a tensor of means or deviations, or else a size")
    if tensors:
        size = broadcast_shapes(*(x.shape for x in tensors))
        dtype = tensors[0].dtype if len(tensors) == 1 else promote_types(tensors[0].dtype, tensors[1].dtype)
        device = device or next((x.device for x in tensors if not x.is_cpu), tensors[0].device)
    dtype, to = dtype_or_default(dtype), (size, generator, device)
    if not tensors:
        return _normal_of(mean, std, to, dtype, True)
    return _normal_of_tensors(*(x if isinstance(x, Handle) else None for x in (mean, std)), mean, std, to, dtype)


def _normal_of(mean: Any, std: Any, to: Any, dtype: Any, of_numbers: bool = False) -> Any:
    if not (holds(std >= 0) if isinstance(std, Handle) else std >= 0):  # type: ignore[operator]
        raise ArgumentError(f"normal: deviations must not be negative, got {std}")
    size, generator, device = to
    out = randn(size=size, generator=generator, dtype=_wide(dtype), device=device) * std
    return cast(out + (_in_parts(out, mean) if of_numbers else mean), dtype)


# Where PyTorch has a gradient of zeros, not None, which optimizers tell apart.
@differentiable("normal", inputs=("m", "s"), grad_m=flat, grad_s=flat, broadcast=True)
def _normal_of_tensors(m: Any, s: Any, mean: Any, std: Any, to: Any, dtype: Any) -> Any:
    return _normal_of(mean, std, to, dtype)


@differentiable("bernoulli", grad_x=flat)
def _bernoulli(x: Tensor, chances: Tensor, generator: Generator | None) -> Tensor:
    return cast(lib.norch_bernoulli(state_of(generator), chances), x.dtype)


@method(out=True)
def bernoulli(input: Tensor, p: float | Tensor | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draws 1 or 0 in the shape of input. The probability of 1 is the element of input, or p.

    >>> norch.bernoulli(norch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if p is None:
        return _bernoulli(tensor_of(input, "bernoulli"), input, generator)
    return _ones_with_probability("bernoulli", tensor_of(input, "bernoulli"), p, generator)


def _ones_with_probability(name: str, x: Tensor, p: Any, generator: Generator | None) -> Tensor:
    """1 with probability p (a number, or a tensor that broadcasts), else 0, in the shape and dtype of x."""
    if isinstance(p, Handle):
        chances = expand(p.detach(), x.shape)  # type: ignore[attr-defined]
    else:
        check_numbers(name, p=p)
        wanted = x.dtype if x.dtype.is_floating_point else float32
        chances = lib.norch_full_like(x, wanted.code, p, 0)
        if not 0 <= p <= 1:
            raise ArgumentError(f"{name}: probability {p:g} is not in [0, 1]")
    return _bernoulli(x.detach(), chances, generator)


@method(moves=True, out=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draws num_samples categories, int64, from each row of weights, which are not negative and need not sum to 1.
    input (K) gives (num_samples), (N, K) gives (N, num_samples). Without replacement no category is drawn twice.
    ArgumentError for other weights, and if there are fewer categories to draw than samples.

    >>> norch.multinomial(norch.tensor([0.0, 3.0, 0.0]), 4, replacement=True)
    tensor([1, 1, 1, 1])
    """
    weights: Any = tensor_of(input, "multinomial").detach()
    count = int64(num_samples, "multinomial: num_samples")
    if weights.ndim not in (1, 2) or not weights.dtype.is_floating_point:
        raise ArgumentError(
            f"multinomial: expected weights of a floating dtype in 1 or 2 dimensions, got {weights.dtype.name} "
            f"{tuple(weights.shape)}"
        )
    weights = weights.to(float64)
    categories = weights.shape[-1]
    if count <= 0 or (not replacement and count > categories):
        raise ArgumentError(f"multinomial: cannot draw {count} of {categories} categories, replacement={replacement}")
    if not holds((weights >= 0) & weights.isfinite()):
        raise ArgumentError("multinomial: a weight is infinite, NaN or negative")
    if not holds((weights > 0).sum(-1) >= (1 if replacement else count)):
        raise ArgumentError(f"multinomial: too few weights that are not 0 for {count} samples")
    if not replacement:  # an exponential race: the first to arrive is i with probability weight[i] / sum
        arrivals = -(1 - rand_like(weights, generator=generator)).log() / weights
        arrivals = arrivals.clamp(max=finfo(float64).max)  # of a weight near 0: before any of a weight of 0
        return where(weights > 0, arrivals, math.inf).topk(count, -1, largest=False).indices
    from .sort import searchsorted  # lazy, as few programs need it

    sums = weights.cumsum(-1)
    total = narrow(sums, -1, categories - 1, 1)
    draws = rand_like(expand(total, (*weights.shape[:-1], count)), generator=generator) * total
    return searchsorted(sums, draws, right=True).minimum(searchsorted(sums, total))  # a draw may round up to the total


_poisson_of = function_op("poisson")  # of rates and uniform numbers
_LARGE = 1e7  # rates from which a Poisson distribution is approximated by a normal one


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws from Poisson distributions. input has the rates; the result has its shape and dtype. The method is
    inversion: the probabilities of the outcomes are subtracted from a uniform number, from the likeliest outcome
    outwards, or for rates below 10 from 0, until it is negative. Rates above 10 million give rounded normal numbers.
    DTypeError for integers, ArgumentError for rates that are negative or not finite.

    >>> norch.poisson(norch.tensor([0.0, 5.0])).shape
    norch.Size([2])
    """
    return _poisson(tensor_of(input, "poisson"), generator)


@differentiable("poisson", grad_x=flat)
def _poisson(x: Tensor, generator: Generator | None) -> Tensor:
    dtype = x.dtype
    rates: Any = cast(x.detach(), float64)
    if not dtype.is_floating_point:
        raise DTypeError(f"poisson: rates must be floats, not {dtype.name}")
    if not holds(clamp(rates, 0.0, finfo(float64).max) == rates):
        raise ArgumentError("poisson: rates must be finite and not negative")
    counts = _poisson_of(where(rates < _LARGE, rates, 0.0), rand_like(rates, generator=generator))
    if occurs(rates >= _LARGE):
        normals = randn_like(rates, generator=generator) * rates.sqrt() + rates
        counts = where(rates < _LARGE, counts, normals.round())
    return cast(counts, dtype)


# ---- fills ----------------------------------------------------------------------------------------------------------


def _filled(
    x: Tensor, name: str, valid: bool, message: str, draw: Callable[[], Any], floats: bool = True, parts: bool = False
) -> Tensor:
    """x after draw() is written into it. DTypeError unless x has floats, or with parts complex numbers; ArgumentError
    unless valid.
    """
    if floats and not x.dtype.is_floating_point and not (parts and x.is_complex()):
        raise DTypeError(f"{name}: the dtype must be a float, not {x.dtype.name}")
    if not valid:
        raise ArgumentError(f"{name}: {message}")
    check_writable(x, name)
    lib.norch_copy(x, draw())
    finish_write(x, None)
    return x


def _normal(x: Tensor, generator: Generator | None) -> Tensor:
    """Standard normal numbers in the shape of x, in at least float32."""
    return _drawn(lib.norch_randn, generator, x.shape, _wide(x.dtype), x.device)


def _normal_around(x: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """_normal() times std, plus mean."""
    drawn: Any = _normal(x, generator)
    drawn = drawn if std == 1 else drawn.mul_(std)
    return drawn if mean == 0 else drawn.add_(_in_parts(x, mean))


def _wide(dtype: DType) -> DType:
    """The dtype in which draws for dtype are computed, to be rounded once."""
    return float32 if dtype.itemsize < 4 else dtype


def _finite(drawn: Tensor, x: Tensor, least: float | None = None) -> Tensor:
    """Draws for x as numbers of its dtype. The largest number of the dtype replaces an infinity, and its smallest one a
    0 that rounding would give where least is the smallest draw.
    """
    high: float
    low: float
    if x.dtype.kind in "ui":
        low, high = iinfo(x.dtype).min, iinfo(x.dtype).max
    else:
        _, high, low, _ = (x.dtype if x.dtype.kind == "f" else float64).limits()
    return drawn.clamp_(low if least is None else least, _most_up_to(high, drawn.dtype))  # of int64


def _in_parts(x: Tensor, number: float) -> Any:
    """number for both parts of a complex x, or number itself for a real x."""
    return number * (1 + 1j) if x.is_complex() else number


def _uniform(x: Tensor, generator: Generator | None) -> Tensor:
    """Uniform numbers from (0, 1] in the shape of x, in double precision unless its dtype is float32."""
    wanted = float32 if x.dtype is float32 else float64
    return 1.0 - _drawn(lib.norch_rand, generator, x.shape, wanted, x.device)


def standard_exponential(x: Tensor, generator: Generator | None = None) -> Tensor:
    """Exponential draws of rate 1 in the shape of x, in at least float32. As in PyTorch, a uniform number of 1 gives
    half of the result for the number before 1, so that no draw is 0.
    """
    u = _uniform(x, generator)
    return u.log_().neg_().clamp_(min=u.dtype.limits()[0] / 4)


@method
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers drawn uniformly from [from_, to). In a complex tensor both parts are drawn."""
    check_numbers("uniform_", from_=from_, to=to)
    return _filled(
        self, "uniform_", from_ <= to, f"[{from_}, {to}) is no interval",
        lambda: _uniform_between(self, from_, to, generator), parts=True,
    )  # fmt: skip


def _uniform_between(x: Tensor, low: float, high: float, generator: Generator | None) -> Tensor:
    """Uniform numbers of [low, high) in the shape of x. Rounding to its dtype never gives high."""
    if x.is_complex():
        return view_as_complex(_uniform_between(view_as_real(x), low, high, generator))
    low, high, largest = float(low), float(high), x.dtype.limits()[1]
    if not (abs(low) <= largest and abs(high) <= largest and high - low <= largest):
        raise ArgumentError(f"uniform_: [{low}, {high}) exceeds {x.dtype.name}, whose largest number is {largest:g}")
    drawn = _drawn(lib.norch_rand, generator, x.shape, x.dtype, x.device)
    if (low, high) == (0, 1):
        return drawn
    drawn = cast(cast(drawn, _wide(x.dtype)).mul_(high - low).add_(low), x.dtype)
    least, most = _least_from(low, x.dtype), _most_below(high, x.dtype)
    return drawn.clamp_(least, most) if least <= most else drawn


@method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers drawn from a normal distribution. As in PyTorch, each part of a complex number has the mean,
    and half of the variance.
    """
    check_numbers("normal_", mean=mean, std=std)
    return _filled(
        self, "normal_", std >= 0, f"the deviation must not be negative, got {std}",
        lambda: _normal_around(self, mean, std, generator), parts=True,
    )  # fmt: skip


@method
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with positive, finite numbers whose logarithms are normal, with this mean and standard deviation."""
    check_numbers("log_normal_", mean=mean, std=std)
    return _filled(
        self, "log_normal_", std > 0, f"the deviation must be positive, got {std}",
        lambda: _finite((_normal(self, generator) * std + mean).exp(), self, finfo(self.dtype).tiny),
    )  # fmt: skip


@method
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with finite numbers drawn from a Cauchy distribution."""
    check_numbers("cauchy_", median=median, sigma=sigma)
    return _filled(
        self, "cauchy_", sigma > 0, f"sigma must be positive, got {sigma}",
        lambda: _finite(((_uniform(self, generator) - 0.5) * math.pi).tan() * sigma + median, self),
    )  # fmt: skip


@method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with positive, finite numbers of the density lambd * exp(-lambd * x)."""
    check_numbers("exponential_", lambd=lambd)
    return _filled(
        self, "exponential_", lambd > 0, f"lambd must be positive, got {lambd}",
        lambda: _finite(standard_exponential(self, generator).mul_(1.0 / lambd), self, self.dtype.limits()[3]),
    )  # fmt: skip


@method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers of trials up to the first success, where each trial succeeds with probability p. The largest
    number of the dtype is the limit.
    """
    check_numbers("geometric_", p=p)
    return _filled(
        self, "geometric_", 0 < p < 1, f"p must lie in (0, 1), got {p}",
        lambda: _trials(self, p, generator), floats=False,
    )  # fmt: skip


def _trials(x: Tensor, p: float, generator: Generator | None) -> Tensor:
    u = _uniform(x, generator)
    return _finite(u.log_().mul_(max(1.0 / math.log1p(-p), -u.dtype.limits()[1])).ceil_(), x, 1)


@method
def bernoulli_(self: Tensor, p: Operand = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with 1 with probability p, else 0. p is a number, or a tensor that broadcasts."""
    draw: Any = lambda: _ones_with_probability("bernoulli_", self, p, generator)  # noqa: E731
    return _filled(self, "bernoulli_", True, "", draw, floats=False)


@method
def random_(self: Tensor, from_: int | None = None, to: Any = ..., *, generator: Generator | None = None) -> Tensor:
    """Fills with integers from [from_, to), or from [0, from_) without to. The default upper bound is the largest
    integer up to which the dtype has all integers.
    """
    low, high = (0, from_) if to is ... else (from_ or 0, to)
    dtype = self.dtype
    if high is None:  # one beyond the largest integer
        high = min((1 << dtype.digits) + dtype.is_floating_point, (1 << 63) - 1)
    low, high = int64(low, "random_: from"), int64(high, "random_: to")
    return _filled(
        self, "random_", low < high, f"from {low} is not below to {high}",
        lambda: randint(low, high, self.shape, dtype=dtype, device=self.device, generator=generator), floats=False,
    )  # fmt: skip


__all__ = public(globals(), "standard_exponential")
