"""norch.vmap: a function of one sample runs once for all samples of a batch.

level.py has batched tensors, which represent one sample and hold all samples. A library call with a batched tensor runs
its batching rule instead, which makes the same call for the whole batch. There is a rule for each library call, not for
each operation, as all operations consist of library calls. The other files hold the rules, family by family. The
package is imported when it is first needed.
"""

from __future__ import annotations

from . import conv, copy, index, layers, pointwise, products, random, scan, view  # noqa: F401
from .level import Batched, Draws, batch, call_rows, unbatch, with_leading_axis

__all__ = ["Batched", "Draws", "batch", "call_rows", "unbatch", "with_leading_axis"]
