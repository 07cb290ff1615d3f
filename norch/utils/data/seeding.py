"""Seeds of batches. A batch depends on the seed of its epoch and on its number in the epoch, not on the process that
makes it: before it is made, the global streams of norch, random and NumPy start from a mix of the two. In the program's
own process they are put back afterwards, so that what it draws itself does not depend on the loader."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ...random import Generator, default_generator

_MASK = (1 << 64) - 1


def mixed(seed: int, number: int) -> int:
    """64 bits out of a seed and a number: SplitMix64 (Steele, Lea and Flood 2014, figure 16)."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def drawn(generator: Generator | None) -> int:
    """The seed of an epoch: the next draw of a generator, or of the default one."""
    return mixed(*(generator or default_generator)._reserve(1).__getstate__())


def seed_all(seed: int) -> None:
    """Starts the global streams of norch, random and, where the program uses it, NumPy."""
    default_generator._state[0], default_generator._state[1] = seed, 0
    random.seed(seed)
    if "numpy" in sys.modules:
        import numpy.random  # which NumPy imports when it is first used

        numpy.random.seed(seed & 0xFFFFFFFF)


@contextmanager
def streams_kept() -> Iterator[None]:
    """A context that puts the global streams back where they were."""
    state, python = default_generator.__getstate__(), random.getstate()
    numpy = sys.modules.get("numpy.random")
    array = numpy and numpy.get_state()
    try:
        yield
    finally:
        default_generator._state[0], default_generator._state[1] = state
        random.setstate(python)
        if numpy:
            numpy.set_state(array)
