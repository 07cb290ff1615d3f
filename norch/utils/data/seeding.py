"""Seeds of batches. A batch depends on its epoch's seed and on its number, not on the process that makes it: the global
streams of norch, random and NumPy are seeded from both before it is made. In the program's own process they are
restored afterwards, so that the program's draws do not depend on the loader."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...random import default_generator

_MASK = (1 << 64) - 1


def mixed(seed: int, number: int) -> int:
    """63 bits, which fit int64, from a seed and a number: SplitMix64 (Steele, Lea and Flood 2014, figure 16)."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return (z ^ (z >> 31)) >> 1


def seed_all(seed: int) -> None:
    """Seeds the global streams of norch, random and, if the program uses it, NumPy."""
    default_generator._state[0], default_generator._state[1] = seed, 0
    random.seed(seed)
    if "numpy" in sys.modules:
        import numpy.random  # NumPy imports it lazily

        numpy.random.seed(seed & 0xFFFFFFFF)


@contextmanager
def streams_kept() -> Iterator[None]:
    """A context that restores the global streams at its end."""
    state, python = default_generator.__getstate__(), random.getstate()
    numpy = sys.modules.get("numpy.random")
    back = numpy and _exchanged(numpy)
    try:
        yield
    finally:
        default_generator._state[0], default_generator._state[1] = state
        random.setstate(python)
        if back:
            back()


_spare: Any = None  # a bit generator for NumPy to draw from in the meantime
_without_normal: tuple[Any, ...] = ()  # NumPy's position when it last had no cached normal number


def _exchanged(numpy: Any) -> Callable[[], None]:
    """Makes NumPy's global functions draw from a spare bit generator; calling the returned function undoes it.

    Reading and writing the whole state takes longer than making a small batch. But the exchange loses the cached second
    number of a pair of normal numbers, which only the state contains. So the state is read if the stream has moved
    since it last had no cached number.
    """
    global _spare, _without_normal
    if not hasattr(numpy, "set_bit_generator"):  # before NumPy 1.24
        state = numpy.get_state()
        return lambda: numpy.set_state(state)
    generator = numpy.get_bit_generator()
    place = _place(numpy, generator)
    waits = None
    if place is None or place != _without_normal:
        waits = numpy.get_state(legacy=False)
        if not waits["has_gauss"]:
            waits, _without_normal = None, place or ()
    _spare = _spare or numpy.MT19937()
    numpy.set_bit_generator(_spare)

    def back() -> None:
        numpy.set_bit_generator(generator)
        if waits is not None:
            numpy.set_state(waits)

    return back


def _place(numpy: Any, generator: Any) -> tuple[Any, ...] | None:
    """The position of a Mersenne twister: the words of its state that every draw or seed changes. None for other
    generators."""
    if type(generator) is not numpy.MT19937:
        return None
    words = (ctypes.c_uint32 * 625).from_address(generator.ctypes.state_address)
    return generator, words[624], words[0], words[623]
