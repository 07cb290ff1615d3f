"""Random tensors from one counter-based stream (Philox 4x32-10; Salmon et al. 2011).

A draw depends on the seed and on how many were made before, not on threads or devices. What is neither uniform nor
normal is composed of what is, by inverting its distribution function.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._handle import Handle
from ._lib import address, int64, ints, lib, uint64s
from .autograd.inplace import check_writable
from .device import device as Device  # noqa: N812
from .device import place
from .dtype import (
    check_format,
    check_numbers,
    contiguous_format,
    dtype_named,
    float32,
    float64,
    get_default_dtype,
    promote_types,
)
from .dtype import int64 as norch_int64
from .dtype import uint8 as norch_uint8
from .errors import ArgumentError, DTypeError
from .ops._operand import tensor_of
from .ops.composed.shape import broadcast_shapes
from .ops.copy import cast, copy_
from .ops.pointwise import where
from .ops.sort import searchsorted
from .ops.view import expand, narrow, sizes

if TYPE_CHECKING:
    from .tensor import Tensor


# ---- streams --------------------------------------------------------------------------------------------------------


class Generator:
    """A stream of random numbers of its own.

    >>> a = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> b = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> bool((a == b).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device("cpu" if device is None else device)
        self.__setstate__((int.from_bytes(os.urandom(8), "little"), 0))

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of this seed (64 bits; negative ones wrap) from its beginning."""
        if not hasattr(seed, "__index__"):
            raise TypeError(f"manual_seed: the seed must be an integer, not {type(seed).__name__}")
        seed = seed.__index__()
        if not -(1 << 63) <= seed < 1 << 64:
            raise OverflowError(f"manual_seed: {seed} does not fit 64 bits")
        self._state[0], self._state[1] = seed % (1 << 64), 0
        return self

    def seed(self) -> int:
        """Starts a stream that nobody has seen, and gives its seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._state[0]

    def get_state(self) -> Tensor:
        """Seed and position as a tensor of bytes, for set_state()."""
        return lib.norch_from_bytes(bytes(self._state), 16, 1, ints((16,)), norch_uint8.code)

    def set_state(self, new_state: Tensor) -> None:
        """Goes on from where get_state() was called."""
        if tensor_of(new_state, "set_state").dtype is not norch_uint8 or tuple(new_state.shape) != (16,):
            raise ArgumentError(f"set_state: expected 16 bytes as get_state() gives them, got {new_state!r}")
        data = bytes(new_state.tolist())
        self._state[0], self._state[1] = (int.from_bytes(part, "little") for part in (data[:8], data[8:]))

    def __getstate__(self) -> tuple[int, int]:
        return self._state[0], self._state[1]

    def __setstate__(self, state: tuple[int, int]) -> None:
        # {seed, counter}, read and advanced by C at every draw
        self._state = uint64s(*state)
        self._at = address(self._state)
        self.device = Device("cpu")


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the stream that is used when no generator is given."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Gives the default stream a seed that nobody has seen, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Where the default stream is, for set_rng_state().

    >>> state = norch.get_rng_state()
    >>> a = norch.rand(3)
    >>> norch.set_rng_state(state)
    >>> bool((norch.rand(3) == a).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Lets the default stream go on from where get_rng_state() was called."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside leaves the default stream as it was."""
    state = default_generator.__getstate__()
    try:
        yield
    finally:
        if enabled:
            default_generator._state[0], default_generator._state[1] = state


def _at(generator: Generator | None) -> int:
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"generator must be a Generator, not {type(generator).__name__}")
    return (default_generator if generator is None else generator)._at


# ---- tensors of one distribution ------------------------------------------------------------------------------------


def _draw(function: Any, shape: Any, size: Any, generator: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    out = function(_at(generator), sizes(shape, size), wanted.code, place(device))
    return out.requires_grad_(requires_grad) if requires_grad else out


def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn uniformly from [0, 1)."""
    return _draw(lib.norch_rand, shape, size, generator, dtype, device, requires_grad)


def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn from the normal distribution of mean 0 and variance 1."""
    return _draw(lib.norch_randn, shape, size, generator, dtype, device, requires_grad)


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """rand() in the shape and dtype of input."""
    check_format(memory_format, "rand_like")
    shape, dtype, device = tensor_of(input, "rand_like").shape, dtype or input.dtype, device or input.device
    out = _draw(lib.norch_rand, shape, None, generator, dtype, device, requires_grad)
    return _laid_as(input, out, memory_format)


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """randn() in the shape and dtype of input."""
    check_format(memory_format, "randn_like")
    shape, dtype, device = tensor_of(input, "randn_like").shape, dtype or input.dtype, device or input.device
    out = _draw(lib.norch_randn, shape, None, generator, dtype, device, requires_grad)
    return _laid_as(input, out, memory_format)


def _laid_as(x: Any, out: Any, memory_format: Any) -> Tensor:
    """out, or a copy of it that lies in memory as x does, where x is dense and no other order is asked for."""
    if x.is_contiguous() or memory_format is contiguous_format:
        return out
    laid: Any = lib.norch_full_like(x, -1, 0, 0).to(out.device, out.dtype)
    return copy_(laid, out.detach()).requires_grad_(out.requires_grad)


def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers from [low, high), all as likely: randint(low, high, size) or randint(high, size). int64 unless given."""
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
    out = lib.norch_randint(_at(generator), sizes((size,)), low, high, wanted.code, place(device))
    return out.requires_grad_(requires_grad) if requires_grad else out


def randint_like(input: Tensor, low: Any = None, high: Any = None, memory_format: Any = None, **more: Any) -> Tensor:
    """randint() in the shape and dtype of input: randint_like(input, low, high) or randint_like(input, high)."""
    check_format(memory_format, "randint_like")
    shape = tuple(tensor_of(input, "randint_like").shape)
    if low is None and high is None:
        raise TypeError("randint_like: give a bound, as in randint_like(input, 10)")
    low, high = (0, low) if high is None else (low, high)
    out = randint(low, high, shape, **{"device": input.device, **more, "dtype": more.get("dtype") or input.dtype})
    return _laid_as(input, out, memory_format)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers 0 ... n - 1 in random order; int64 unless given."""
    out: Any = lib.norch_randperm(_at(generator), n, place(device))
    out = out if dtype is None else cast(out, dtype_named(dtype))
    return out.requires_grad_(requires_grad) if requires_grad else out


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of the given means and deviations: tensors, broadcast together, or two numbers and a size.

    >>> norch.normal(norch.zeros(2), norch.ones(3, 1)).shape
    norch.Size([3, 2])
    """
    check_numbers("normal", mean=mean, std=std)
    tensors: list[Any] = [x for x in (mean, std) if isinstance(x, Handle)]
    mean, std = (x.detach() if isinstance(x, Handle) else x for x in (mean, std))  # type: ignore[attr-defined]
    if (size is None) is (not tensors):
        raise TypeError("normal: takes a tensor of means or deviations, or else a size")
    if tensors:
        size = broadcast_shapes(*(x.shape for x in tensors))
        dtype = tensors[0].dtype if len(tensors) == 1 else promote_types(tensors[0].dtype, tensors[1].dtype)
        device = device or next((x.device for x in tensors if x.is_cuda), tensors[0].device)
    if not bool((std >= 0).all() if isinstance(std, Handle) else std >= 0):  # type: ignore[attr-defined, operator]
        raise ArgumentError(f"normal: deviations must not be negative, got {std}")
    out = randn(size=size, generator=generator, dtype=dtype, device=device) * std + mean
    return out.requires_grad_(requires_grad) if requires_grad else out


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that input holds, or with probability p in its shape; else 0."""
    if p is None:
        return lib.norch_bernoulli(_at(generator), tensor_of(input, "bernoulli"))
    return _ones("bernoulli", tensor_of(input, "bernoulli"), p, generator)


def _ones(name: str, x: Any, p: Any, generator: Generator | None) -> Any:
    """1 with probability p (a number, or a tensor that broadcasts) in the shape and dtype of x, else 0."""
    if isinstance(p, Handle):
        chances = expand(p.detach(), x.shape)  # type: ignore[attr-defined]
    else:
        check_numbers(name, p=p)
        wanted = x.dtype if x.dtype.is_floating_point else float32
        chances = lib.norch_full_like(x, wanted.code, p, 0)
        if not 0 <= p <= 1:
            raise ArgumentError(f"{name}: probability {p:g} is not in [0, 1]")
    return cast(lib.norch_bernoulli(_at(generator), chances), x.dtype)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Categories (int64), num_samples from each row of weights, which are not negative and need not sum to 1.

    Shape (K) gives (num_samples), (N, K) gives (N, num_samples). Without replacement no category comes twice.

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
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        raise ArgumentError("multinomial: a weight is infinite, NaN or negative")
    enough = (weights > 0).sum(-1) >= (1 if replacement else count)
    if not bool(enough.all()):
        raise ArgumentError(f"multinomial: too few weights that are not 0 for {count} samples")
    if not replacement:  # an exponential race: the first to arrive is i with probability weight[i] / sum
        arrivals = -(1 - rand_like(weights, generator=generator)).log() / weights
        return where(weights > 0, arrivals, math.inf).topk(count, -1, largest=False).indices
    sums = weights.cumsum(-1)
    total = narrow(sums, -1, categories - 1, 1)
    draws = rand_like(expand(total, (*weights.shape[:-1], count)), generator=generator) * total
    return searchsorted(sums, draws, right=True).minimum(searchsorted(sums, total))  # a draw may round up to the total


_LARGE = 1e7  # rates from which a Poisson distribution is taken as normal


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the Poisson distributions whose rates input holds, in its shape and dtype.

    By inversion: a uniform number is used up by the chances of the outcomes in turn, from the likeliest outwards. Rates
    above 10 million take rounded normal numbers.
    """
    dtype = tensor_of(input, "poisson").dtype
    given: Any = cast(input.detach(), float64)
    if not dtype.is_floating_point:
        raise DTypeError(f"poisson: rates must be floats, not {dtype.name}")
    if not bool(((given >= 0) & (given < math.inf)).all()):
        raise ArgumentError("poisson: rates must be finite and not negative")
    rate = where(given < _LARGE, given, 0.0)
    found = up = down = rate.floor()
    above = below = where(rate > 0, (down * rate.log() - rate - _log_factorial(down)).exp(), 1.0)
    left = rand_like(rate, generator=generator) - above
    searching = left >= 0
    while bool(searching.any()):
        for upwards in (True, False):
            if upwards:
                up = up + 1
                chance = above = above * (rate / up)
            else:
                chance = below = below * (down / rate)
                down = down - 1
            left = left - chance
            hit = searching & (left < 0)
            found = where(hit, up if upwards else down, found)
            searching = searching & ~hit
        searching = searching & ((above > 0) | (below > 0))  # what rounding has left over stays at the likeliest
    if bool((given >= _LARGE).any()):
        normals = randn_like(given, generator=generator) * given.sqrt() + given
        found = where(given < _LARGE, found, normals.round())
    return cast(found, dtype)


def _log_factorial(n: Any) -> Any:
    """log(n!) by Stirling's series, ten further on, where four terms are exact to 1e-14."""
    z, product = n + 11, n + 1
    for k in range(2, 11):
        product = product * (n + k)
    inverse = 1.0 / (z * z)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680)))) / z
    return (z - 0.5) * z.log() - z + (0.5 * math.log(2 * math.pi) + series) - product.log()


# ---- fills ----------------------------------------------------------------------------------------------------------


def _filled(x: Any, name: str, floats: bool, good: Any, about: str, draw: Callable[[], Any]) -> Any:
    """x with draw() written into it, after the checks."""
    if floats and not x.dtype.is_floating_point:
        raise DTypeError(f"{name}: the dtype must be a float, not {x.dtype.name}")
    if not good:
        raise ArgumentError(f"{name}: {about}")
    check_writable(x, name)
    return copy_(x, draw())


def _of(x: Any, function: Any, generator: Generator | None) -> Any:
    """A draw in the shape and dtype of x."""
    return function(_at(generator), x.shape, x.dtype.code, place(x.device))


def _uniform(x: Any, generator: Generator | None) -> Any:
    """Uniform numbers from (0, 1] in the shape of x, in double precision where its dtype is no float32."""
    wanted = float32 if x.dtype is float32 else float64
    return 1.0 - rand(x.shape, dtype=wanted, device=x.device, generator=generator)


class RandomMethods(Handle):
    """The random fills of Tensor."""

    __slots__ = ()

    def uniform_(self, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Any:
        """Fills with numbers drawn uniformly from [from_, to)."""
        check_numbers("uniform_", from_=from_, to=to)
        return _filled(
            self, "uniform_", True, from_ <= to, f"[{from_}, {to}) is no interval",
            lambda: _of(self, lib.norch_rand, generator) * (to - from_) + from_,
        )  # fmt: skip

    def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Any:
        """Fills with numbers drawn from a normal distribution."""
        check_numbers("normal_", mean=mean, std=std)
        return _filled(
            self, "normal_", True, std >= 0, f"the deviation must not be negative, got {std}",
            lambda: _of(self, lib.norch_randn, generator) * std + mean,
        )  # fmt: skip

    def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Any:
        """Fills with numbers whose logarithms are normal, of the given mean and deviation."""
        check_numbers("log_normal_", mean=mean, std=std)
        return _filled(
            self, "log_normal_", True, std > 0, f"the deviation must be positive, got {std}",
            lambda: (_of(self, lib.norch_randn, generator) * std + mean).exp(),
        )  # fmt: skip

    def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Any:
        """Fills with numbers drawn from a Cauchy distribution."""
        check_numbers("cauchy_", median=median, sigma=sigma)
        return _filled(
            self, "cauchy_", True, sigma > 0, f"sigma must be positive, got {sigma}",
            lambda: ((_uniform(self, generator) - 0.5) * math.pi).tan() * sigma + median,
        )  # fmt: skip

    def exponential_(self, lambd: float = 1.0, *, generator: Generator | None = None) -> Any:
        """Fills with numbers of density lambd * exp(-lambd * x)."""
        check_numbers("exponential_", lambd=lambd)
        return _filled(
            self, "exponential_", True, lambd > 0, f"lambd must be positive, got {lambd}",
            lambda: _uniform(self, generator).log() * (-1.0 / lambd),
        )  # fmt: skip

    def geometric_(self, p: float, *, generator: Generator | None = None) -> Any:
        """Fills with how many trials it takes to the first success, each of which has probability p."""
        check_numbers("geometric_", p=p)
        return _filled(
            self, "geometric_", False, 0 < p < 1, f"p must lie in (0, 1), got {p}",
            lambda: (_uniform(self, generator).log() * (1.0 / math.log1p(-p))).ceil().clamp(1),
        )  # fmt: skip

    def bernoulli(self, p: float | None = None, *, generator: Generator | None = None) -> Any:
        """1 with the probability that the element holds, or with probability p; else 0."""
        return bernoulli(self, p, generator=generator)  # type: ignore[arg-type]

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Any:
        """Categories drawn by the weights in each row; see norch.multinomial."""
        return multinomial(self, num_samples, replacement, generator=generator)  # type: ignore[arg-type]

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Any:
        """Fills with 1 with probability p (a number, or a tensor that broadcasts), else 0."""
        return _filled(self, "bernoulli_", False, True, "", lambda: _ones("bernoulli_", self, p, generator))

    def random_(self, from_: int | None = None, to: Any = ..., *, generator: Generator | None = None) -> Any:
        """Fills with integers from [from_, to), or [0, from_); from from_ to the most that the dtype holds where to is
        None, or else from 0 to that."""
        low, high = (0, from_) if to is ... else (from_ or 0, to)
        dtype = self.dtype
        if high is None:
            high = min((1 << dtype.digits) + dtype.is_floating_point, (1 << 63) - 1)
        low, high = int64(low, "random_: from"), int64(high, "random_: to")
        return _filled(
            self, "random_", False, low < high, f"from {low} is not below to {high}",
            lambda: randint(low, high, self.shape, dtype=dtype, device=self.device, generator=generator),
        )  # fmt: skip
