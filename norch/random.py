"""``norch.random``: generators of random numbers, Philox 4x32-10 (a counter-based stream; Salmon et al. 2011).

A draw depends on the seed of its generator and on the number of earlier draws, not on threads or devices. ops/random.py
makes the tensors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ._binding.buffers import address, uint64s
from ._binding.library import lib
from ._binding.numbers import ints
from ._package.exports import publish
from ._package.recording import here, unseen
from ._package.typing import Any, Tensor
from ._tensor.handle import Handle
from .autograd.levels import batching, live_levels, within
from .device import device as Device
from .dtype import uint8
from .errors import ArgumentError

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


_MOVED = "the stream of random numbers is looked at or moved"


class Generator:
    """A stream of random numbers, independent of the default one.

    >>> a = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> b = norch.rand(3, generator=norch.Generator().manual_seed(7))
    >>> bool((a == b).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device("cpu" if device is None else device)
        self.__setstate__((int.from_bytes(os.urandom(8), "little"), 0))

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of a seed of 64 bits from its beginning; negative seeds wrap."""
        unseen(_MOVED)
        if not hasattr(seed, "__index__"):
            raise TypeError(f"manual_seed: the seed must be an integer, not {type(seed).__name__}")
        seed = seed.__index__()
        if not -(1 << 63) <= seed < 1 << 64:
            raise OverflowError(f"manual_seed: {seed} does not fit 64 bits")
        self._state[0], self._state[1] = seed % (1 << 64), 0
        return self

    def seed(self) -> int:
        """Starts the stream of a random seed, and returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._state[0]

    def get_state(self) -> Tensor:
        """Seed and position as a uint8 tensor, for set_state()."""
        unseen(_MOVED)
        return lib.norch_from_bytes(bytes(self._state), 16, 1, ints((16,)), uint8.code)

    def set_state(self, new_state: Any) -> None:
        """Returns to the position at which get_state() was called. ArgumentError for other tensors."""
        if not isinstance(new_state, Handle):
            raise TypeError(f"set_state: expected a tensor, not {type(new_state).__name__}")
        if new_state.dtype is not uint8 or tuple(new_state.shape) != (16,):
            raise ArgumentError(f"set_state: expected 16 bytes as get_state() gives them, got {new_state!r}")
        data = bytes(new_state.tolist())  # type: ignore[attr-defined]
        self._state[0], self._state[1] = (int.from_bytes(part, "little") for part in (data[:8], data[8:]))

    def _reserve(self, count: int) -> Generator:
        """A generator of the next count draws of int64 or float64. This one continues after them."""
        ahead = Generator()
        ahead.__setstate__(self.__getstate__())
        self._state[1] += (count + 1) // 2  # blocks of two
        return ahead

    def __getstate__(self) -> tuple[int, int]:
        unseen(_MOVED)
        return self._state[0], self._state[1]

    def __setstate__(self, state: tuple[int, int]) -> None:
        # {seed, counter}, read and advanced by C at every draw
        self._state = uint64s(*state)
        self._address = address(self._state)
        self.device = Device("cpu")


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and returns it. Functions without a generator draw from it.

    >>> generator = norch.manual_seed(0)
    >>> x = norch.rand(2)
    >>> generator = norch.manual_seed(0)
    >>> norch.equal(x, norch.rand(2))
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator with a random seed, and returns the seed.

    >>> norch.seed() == norch.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator.

    >>> generator = norch.manual_seed(7)
    >>> norch.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Seed and position of the default generator as a uint8 tensor, for set_rng_state().

    >>> state = norch.get_rng_state()
    >>> a = norch.rand(3)
    >>> norch.set_rng_state(state)
    >>> bool((norch.rand(3) == a).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Returns the default generator to the position at which get_rng_state() was called.

    >>> state = norch.get_rng_state()
    >>> x = norch.rand(2)
    >>> norch.set_rng_state(state)
    >>> norch.equal(x, norch.rand(2))
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A context that restores the default generator at its end, unless enabled is False. All devices share this
    generator, so the other arguments have no effect.

    >>> state = norch.get_rng_state()
    >>> with norch.random.fork_rng():
    ...     x = norch.rand(2)
    >>> norch.equal(norch.get_rng_state(), state)
    True
    """
    state = default_generator.__getstate__()
    try:
        yield
    finally:
        if enabled:
            default_generator._state[0], default_generator._state[1] = state


def state_of(generator: Generator | None) -> Any:
    """The address of {seed, counter} of a generator, or of the default one; C advances the counter."""
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"generator must be a Generator, not {type(generator).__name__}")
    found = default_generator if generator is None else generator
    if here.trace is not None:
        here.trace.note_generator(found._state)
    if live_levels.data and within.levels:  # vmap says who draws
        return batching().Draws(found._address, within.levels[-1])
    return found._address


publish(globals())
