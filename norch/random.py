"""Random tensors from one counter-based stream (Philox 4x32-10; Salmon et al. 2011).

A draw depends on the seed and on how many were made before, not on threads or devices.
"""

from __future__ import annotations

import os
from typing import Any

from ._lib import address, lib, uint64s
from .dtype import dtype_named, get_default_dtype
from .dtype import int64 as norch_int64
from .ops.view import sizes
from .tensor import Tensor


class Generator:
    """A stream of random numbers of its own.

    >>> a = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> b = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> bool((a == b).all())
    True
    """

    def __init__(self) -> None:
        # {seed, counter}, read and advanced by C at every draw
        self._state = uint64s(int.from_bytes(os.urandom(8), "little"), 0)
        self._at = address(self._state)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of this seed (64 bits; negative ones wrap) from its beginning."""
        if not -(1 << 63) <= seed < 1 << 64:
            raise OverflowError(f"manual_seed: {seed} does not fit 64 bits")
        self._state[0], self._state[1] = seed % (1 << 64), 0
        return self

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._state[0]

    def get_state(self) -> tuple[int, int]:
        """Seed and position, for set_state."""
        return self._state[0], self._state[1]

    def set_state(self, state: tuple[int, int]) -> None:
        """Goes on from where get_state was called."""
        self._state[0], self._state[1] = state


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the stream that is used when no generator is given."""
    return default_generator.manual_seed(seed)


seed = manual_seed


def _state(generator: Generator | None) -> int:
    return (default_generator if generator is None else generator)._at


def _draw(function: Any, size: tuple[Any, ...], generator: Any, dtype: Any, requires_grad: bool) -> Tensor:
    shape = sizes(size)
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    out = function(_state(generator), shape, wanted.code)
    return out.requires_grad_() if requires_grad else out


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers drawn uniformly from [0, 1)."""
    return _draw(lib.norch_rand, size, generator, dtype, requires_grad)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers drawn from the normal distribution of mean 0 and variance 1."""
    return _draw(lib.norch_randn, size, generator, dtype, requires_grad)


def rand_like(x: Tensor, *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """rand() in the shape and dtype of x."""
    return rand(x.shape, generator=generator, dtype=dtype or x.dtype)


def randn_like(x: Tensor, *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """randn() in the shape and dtype of x."""
    return randn(x.shape, generator=generator, dtype=dtype or x.dtype)


def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Integers from [low, high), all as likely: randint(low, high, size) or randint(high, size). int64 unless given."""
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise TypeError("randint: give a size, as in randint(0, 10, (3,))")
    shape = sizes((size,))
    wanted = norch_int64 if dtype is None else dtype_named(dtype)
    return lib.norch_randint(_state(generator), shape, low, high, wanted.code)


def randperm(n: int, *, generator: Generator | None = None) -> Tensor:
    """The integers 0 ... n - 1 in random order."""
    return lib.norch_randperm(_state(generator), n)


def bernoulli(p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that p holds, else 0, element by element."""
    return lib.norch_bernoulli(_state(generator), p)
