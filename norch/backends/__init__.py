"""``norch.backends``: settings of torch.backends that scripts read or set. Only one has an effect,
``cuda.matmul.fp32_precision``: the precision of float32 products on CUDA devices.

norch computes with its own kernels on the CPU and on CUDA, and gives the same results in every run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from .._binding.library import lib
from .._package.exports import publish
from ..compat.sdpa import SDPAParams, sdpa_kernel

__all__ = [
    "are_deterministic_algorithms_enabled", "cpu", "cuda", "cudnn", "get_float32_matmul_precision", "mkl", "mkldnn",
    "mps", "openmp", "opt_einsum", "set_float32_matmul_precision", "use_deterministic_algorithms",
]  # fmt: skip


def _false(*args: Any, **kwargs: Any) -> bool:
    return False


def _module(name: str, **settings: Any) -> SimpleNamespace:
    """Settings that can be imported like a module. They are no module, since captures look for changes in a
    SimpleNamespace, and not in modules of norch."""
    return SimpleNamespace(__name__=f"norch.backends.{name}", __spec__=None, **settings)


def _library(name: str, **settings: Any) -> SimpleNamespace:
    return _module(name, is_available=_false, **settings)


def _get_cpu_capability() -> str:
    """The instruction set of the CPU's kernels: "DEFAULT", "AVX2" or "AVX512"."""
    return {"avx2": "AVX2", "avx512": "AVX512"}.get(lib.norch_isa().decode(), "DEFAULT")


cpu = _module("cpu", get_cpu_capability=_get_cpu_capability)
mps = _library("mps", is_built=_false, is_macos_or_newer=_false, is_macos13_or_newer=_false)
mkl, mkldnn, openmp = _library("mkl"), _library("mkldnn"), _library("openmp")
opt_einsum = _library("opt_einsum", enabled=False, strategy=None, get_opt_einsum=lambda: None)
fp32_precision = "none"
cudnn = _library("cudnn", enabled=False, benchmark=False, benchmark_limit=None, deterministic=True, allow_tf32=False)
cudnn.version = mkldnn.version = lambda: None
mkldnn.__dict__.update(enabled=False, deterministic=True, allow_tf32=False)


def _flags_of(library: SimpleNamespace, defaults: dict[str, Any]) -> Any:
    @contextmanager
    def flags(*values: Any, **named: Any) -> Iterator[None]:
        """Sets the flags of the library, which have no effect, and restores them at the end of the `with`."""
        settings = dict(zip(defaults, values, strict=False))
        if unknown := named.keys() - defaults.keys() | named.keys() & settings.keys():
            raise TypeError(f"flags: got {', '.join(sorted(unknown))!r} twice, or there is no such flag")
        before = dict(vars(library))
        vars(library).update(defaults, **settings, **named)
        try:
            yield
        finally:
            vars(library).clear()
            vars(library).update(before)

    return flags


_mkldnn_flags = {"enabled": False, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"}
mkldnn.flags = _flags_of(mkldnn, _mkldnn_flags)
cudnn.flags = _flags_of(
    cudnn,
    {"enabled": False, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True}
    | {"fp32_precision": "none", "depthwise_kernel": "auto"},
)


_PRECISIONS = ("none", "ieee", "tf32")  # in the order of norch_set_float32_precision's numbers


class _Products:
    """``norch.backends.cuda.matmul``: how CUDA devices compute products of float32.

    fp32_precision: "none", the default: as precise as in float32, by tensor cores where that is faster (3xTF32);
    "ieee": in the arithmetic of float32 alone; "tf32": factors are rounded to 10 bits, sums are float32. Another value
    gives a RuntimeError. allow_tf32, a bool, is the older name: True is "tf32", False "none". Products that
    norch.capture has recorded keep the precision of their recording.

    >>> norch.backends.cuda.matmul.fp32_precision
    'none'
    """

    __slots__ = ("allow_bf16_reduced_precision_reduction", "allow_fp16_reduced_precision_reduction")

    def __init__(self) -> None:
        self.allow_bf16_reduced_precision_reduction = self.allow_fp16_reduced_precision_reduction = False

    @property
    def fp32_precision(self) -> str:
        return _PRECISIONS[lib.norch_float32_precision()]

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in _PRECISIONS:
            raise RuntimeError(f"fp32_precision: 'none', 'ieee' or 'tf32', not {precision!r}")
        lib.norch_set_float32_precision(_PRECISIONS.index(precision))

    @property
    def allow_tf32(self) -> bool:
        return self.fp32_precision == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        if not isinstance(allow, bool):
            raise RuntimeError(f"allow_tf32: expected a bool, not {type(allow).__name__}")
        self.fp32_precision = "tf32" if allow else "none"


def _choice(kernel: str) -> dict[str, Any]:
    """The switch of a kernel of attention, which is kept and has no effect, as there is one for each case."""
    chosen = {kernel: True}

    def enable(enabled: bool) -> None:
        chosen[kernel] = bool(enabled)

    return {f"enable_{kernel}_sdp": enable, f"{kernel}_sdp_enabled": lambda: chosen[kernel]}


def _library_of(backend: Any = None) -> Any:
    """Keeps nothing: kernels are norch's own."""


cuda = _module(
    "cuda", matmul=_Products(), is_built=_false, sdp_kernel=sdpa_kernel, is_flash_attention_available=_false,
    can_use_flash_attention=_false, can_use_efficient_attention=_false, can_use_cudnn_attention=_false,
    preferred_linalg_library=_library_of, preferred_blas_library=_library_of,
    fp16_bf16_reduction_math_sdp_allowed=_false,
    allow_fp16_bf16_reduction_math_sdp=_library_of, SDPAParams=SDPAParams,
)  # fmt: skip
for _kernel in ("flash", "math", "mem_efficient", "cudnn"):
    vars(cuda).update(_choice(_kernel))
sys.modules["norch.backends.cudnn"] = cudnn  # type: ignore[assignment]  # for `import norch.backends.cudnn as cudnn`

_settings = SimpleNamespace(deterministic=False, warn_only=False)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Stores mode for are_deterministic_algorithms_enabled(). All algorithms are deterministic anyway.

    >>> norch.use_deterministic_algorithms(False)
    >>> norch.are_deterministic_algorithms_enabled()
    False
    """
    _settings.deterministic, _settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """The last argument of use_deterministic_algorithms().

    >>> norch.use_deterministic_algorithms(False)
    >>> norch.are_deterministic_algorithms_enabled()
    False
    """
    return _settings.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how CUDA devices compute products of float32: "highest" with the precision of float32, "high" and "medium"
    with the precision of TF32. ValueError for other names. Sets cuda.matmul.allow_tf32; the CPU always computes in
    float32.

    >>> norch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: 'highest', 'high' or 'medium', not {precision!r}")
    cuda.matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """What products of float32 may be computed in: "high" (TF32) or "highest".

    >>> norch.get_float32_matmul_precision()
    'highest'
    """
    return "high" if cuda.matmul.allow_tf32 else "highest"


publish(globals())
