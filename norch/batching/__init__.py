"""norch.vmap: a function of one sample runs once for a whole batch.

level.py has batched tensors, which look like one sample and hold all samples. A library call with a batched tensor runs
its batching rule instead, which makes the same call for the whole batch. Rules are written for library calls, not for
operations, since all operations consist of library calls. The other files hold the rules by family. The package is
imported at first use.
"""

from __future__ import annotations

from . import conv, copy, index, layers, own_rules, pointwise, products, random, scan, view  # noqa: F401
from .level import Batched, Draws, batch, call_rows, unbatch, with_leading_axis

__all__ = ["Batched", "Draws", "batch", "call_rows", "unbatch", "with_leading_axis"]
