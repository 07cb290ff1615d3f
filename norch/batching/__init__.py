"""norch.vmap: a function of one sample runs once for all samples of a batch.

level.py has batched tensors, which stand for one sample and hold all of them. A call of the library that gets one runs
its rule instead, which makes the same call for the whole batch. There is a rule for each call, not for each operation:
what operations are composed of is calls. The other files hold the rules, family by family. It is imported when it is
first needed.
"""

from __future__ import annotations

from . import attention, conv, copy, index, layers, losses, pointwise, products, random, scan, view  # noqa: F401
from .level import Batched, Draws, batch, call_rows, unbatch, with_leading_axis

__all__ = ["Batched", "Draws", "batch", "call_rows", "unbatch", "with_leading_axis"]
