"""Products of matrices: float32 in all layouts and odd shapes, 16 bits, float64."""

from __future__ import annotations

from typing import Any

from ..library import Run
from .library import OnDevice, cases_of

CASES, add = cases_of("products")
# Errors of sums of thousands of products are about 1e-6 in float32, of products in TF32 3e-4.
TOLERANCES = {"float32": 1e-5, "float64": 1e-13, "float16": 1e-3, "bfloat16": 6e-3}


def _product(m: int, k: int, n: int, dtype: str = "float32", left: bool = False, right: bool = False) -> Any:
    """The setup of (m, k) @ (k, n); left, right: the operand is a transposed view."""

    def setup(lib: OnDevice) -> Run:
        rows, inner, columns = lib.fit(m), lib.fit(k), lib.fit(n)
        a = lib.random(inner, rows, dtype=dtype).T if left else lib.random(rows, inner, dtype=dtype)
        b = lib.random(columns, inner, dtype=dtype).T if right else lib.random(inner, columns, dtype=dtype)
        return lambda: a @ b

    return setup


def _add(name: str, m: int, k: int, n: int, reach: float, aim: float, dtype: str = "float32", **more: Any) -> None:
    layout = {side: more.pop(side) for side in ("left", "right") if side in more}
    setup = _product(m, k, n, dtype, **layout)
    add(name, setup, reach, aim, tolerance=TOLERANCES[dtype], flops=2.0 * m * k * n, **more)


def _batched(m: int, k: int, n: int, dtype: str = "float32") -> Any:
    def setup(lib: OnDevice) -> Run:
        batch, rows, inner, columns = map(lib.fit, (96, m, k, n))
        a, b = lib.random(batch, rows, inner, dtype=dtype), lib.random(batch, inner, columns, dtype=dtype)
        return lambda: a @ b

    return setup


def _addmm(lib: OnDevice) -> Run:
    a, b = lib.random(lib.fit(8192), lib.fit(768)), lib.random(lib.fit(768), lib.fit(3072))
    bias = lib.random(lib.fit(3072))
    return lambda: lib.module.addmm(bias, a, b)


def _tf32(lib: OnDevice) -> Run:
    """float32 by TF32, which both libraries do only where they are told to."""
    side, settings = lib.fit(4096), lib.module.backends.cuda.matmul
    a, b = lib.random(side, side), lib.random(side, side)

    def run() -> Any:
        settings.allow_tf32 = True
        try:
            return a @ b
        finally:
            settings.allow_tf32 = False

    return run


for side in (1024, 2048, 4096, 8192):
    _add(f"matmul {side}", side, side, side, 1.2, 1.4, counted=False)
_add("matmul 4096 .T@", 4096, 4096, 4096, 1.2, 1.4, left=True)
_add("matmul 4096 @.T", 4096, 4096, 4096, 1.2, 1.4, right=True)
_add("matmul 4097", 4097, 4097, 4097, 1.1, 1.4)
_add("matmul 256x65536@65536x256", 256, 65536, 256, 1.2, 1.4)
_add("matmul 16x8192@8192x8192", 16, 8192, 8192, 1.3, 1.5)
_add("matmul skinny 8192x8192@8192x1", 8192, 8192, 1, 1.0, 1.1)
add("bmm 96x(1024x1024@1024x64)", _batched(1024, 1024, 64), flops=2.0 * 96 * 1024 * 1024 * 64)
add("bmm 96x(1024x64@64x1024)", _batched(1024, 64, 1024), flops=2.0 * 96 * 1024 * 1024 * 64)
for kind, dtype in (("bf16", "bfloat16"), ("f64", "float64")):
    setup = _batched(1024, 1024, 64, dtype)
    add(f"bmm {kind} 96x(1024x1024@1024x64)", setup, tolerance=TOLERANCES[dtype], counted=False, flops=2.0 * 96 * 2**26)
add("addmm 8192x768x3072", _addmm, flops=2.0 * 8192 * 768 * 3072)
_add("matmul bf16 4096", 4096, 4096, 4096, 0.9, 0.95, "bfloat16")
_add("matmul f16 4096", 4096, 4096, 4096, 0.9, 0.95, "float16")
add("matmul tf32 4096", _tf32, 0.8, 0.9, tolerance=2e-3, counted=False, flops=2.0 * 4096**3)
_add("matmul f64 2048", 2048, 2048, 2048, 0.9, 0.95, "float64")
