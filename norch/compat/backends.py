"""``norch.backends``: settings of torch.backends that scripts read or set. They have no effect here.

norch runs on the CPU and on CUDA with kernels of its own, computes float32 in float32, and gives the same results in
every run.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any


def _false() -> bool:
    return False


def _library(**settings: Any) -> SimpleNamespace:
    return SimpleNamespace(is_available=_false, **settings)


mps = _library(is_built=_false)
mkl, mkldnn, openmp, opt_einsum = _library(), _library(), _library(), _library()
cudnn = _library(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False))
sys.modules["norch.backends.cudnn"] = cudnn  # type: ignore[assignment]  # for `import norch.backends.cudnn as cudnn`

_settings = SimpleNamespace(deterministic=False)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Stores mode for are_deterministic_algorithms_enabled(). All algorithms are deterministic anyway.

    >>> norch.use_deterministic_algorithms(False)
    >>> norch.are_deterministic_algorithms_enabled()
    False
    """
    _settings.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """The last argument of use_deterministic_algorithms()."""
    return _settings.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """Has no effect: products of float32 are computed in float32, which is "highest". ValueError for other names."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', not {precision!r}")


def get_float32_matmul_precision() -> str:
    """ "highest" """
    return "highest"
