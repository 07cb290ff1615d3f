"""cast(): a tensor in another dtype. copy.py has what users call; _autocast.py casts with it, too."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Tensor
from ..autograd.derivative import derivative
from ..autograd.record import record
from ..dtype import dtype as DType

Cast = derivative("cast", grad=lambda g: g, shares_grad=True)  # to another dtype or device; the engine casts back


def cast(x: Tensor, dtype: DType) -> Tensor:
    """x in another dtype; x itself if it has it. Between floats and complex dtypes the gradient passes, cast back."""
    if x.dtype is dtype:
        return x
    out = lib.norch_cast(x, dtype.code)
    return record(Cast, out, (x,), (), True) if dtype.kind in "fc" else out
