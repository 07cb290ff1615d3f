"""What scripts set in torch.backends before they begin, so that they need no change: there is nothing here to be set.

norch knows no device but the CPU and CUDA, has its own kernels, and computes float32 in float32; results are the same
in every run, on CUDA as well.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any


def _absent() -> bool:
    return False


def _library(**settings: Any) -> SimpleNamespace:
    return SimpleNamespace(is_available=_absent, **settings)


mps = _library(is_built=_absent)
mkl, mkldnn, openmp, opt_einsum = _library(), _library(), _library(), _library()
cudnn = _library(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False))
sys.modules[f"{__name__}.cudnn"] = cudnn  # type: ignore[assignment]  # for `import norch.backends.cudnn as cudnn`


_asked_for = SimpleNamespace(deterministic=False)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing: see above. are_deterministic_algorithms_enabled() gives mode back.

    >>> norch.use_deterministic_algorithms(False)
    >>> norch.are_deterministic_algorithms_enabled()
    False
    """
    _asked_for.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms() was told last; the results do not depend on it."""
    return _asked_for.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products of float32 are float32 throughout, which is "highest"."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', not {precision!r}")


def get_float32_matmul_precision() -> str:
    """ "highest" """
    return "highest"
