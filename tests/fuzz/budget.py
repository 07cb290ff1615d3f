"""How much is tried, and from which seed.

An ordinary run tries the same few cases each time; where samples do, as in `make test`, a quarter of them.
`make fuzz SECONDS=3600` sets NORCH_FUZZ_SECONDS, and a seed of its own, which it prints: the tests that draw then go
on until their share of that time is over. A failure tells the number of its case, and `make fuzz SEED=...` repeats it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

SEED = os.environ.get("NORCH_FUZZ_SEED", "0")
PARTS = 1 if os.environ.get("NORCH_TEST_PART", "all") == "all" else 4
SECONDS = float(os.environ.get("NORCH_FUZZ_SECONDS", "0"))


def cases(count: int, share: float) -> Iterator[int]:
    """The numbers of so many cases, and of as many more as there is time for in this share of the seconds."""
    end, number = time.monotonic() + share * SECONDS, 0
    while number < count / PARTS or time.monotonic() < end:
        yield number
        number += 1
