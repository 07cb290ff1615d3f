"""The matrix products: squares, transposed operands, the shapes of small models, and a batch of strided ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .library import Library, Run, Setup, same

SQUARES = [64, 128, 256, 512, 1024, 2048]
MODELS = [(32, 784, 128), (128, 784, 256), (256, 256, 10), (1, 10, 1)]


def product(rows: int, inner: int, columns: int) -> Setup:
    def setup(lib: Library) -> Run:
        a, b = lib.random(rows, inner), lib.random(inner, columns)
        return lambda: a @ b

    return setup


def by_transposed(rows: int, inner: int, columns: int) -> Setup:
    """x @ W.T, as in the forward pass of a linear layer."""

    def setup(lib: Library) -> Run:
        x, w = lib.random(rows, inner), lib.random(columns, inner)
        return lambda: x @ w.T

    return setup


def of_transposed(rows: int, inner: int, columns: int) -> Setup:
    """A.T @ B, as for the gradient of a linear layer's weight."""

    def setup(lib: Library) -> Run:
        a, b = lib.random(inner, rows), lib.random(inner, columns)
        return lambda: a.T @ b

    return setup


def heads(lib: Library) -> Run:
    """The scores of attention: 3 texts, 4 heads, (3, 4, 64, 16) @ (3, 4, 16, 64), both views of (3, 64, 4 * 16)."""
    swapaxes = lib.module.swapaxes
    q, k = (swapaxes(lib.random(3, 64, 64).reshape(3, 64, 4, 16), 1, 2) for _ in range(2))
    k = swapaxes(k, 2, 3)
    return lambda: q @ k


def _cases(form: str, make: Callable[..., Setup], shapes: list[tuple[int, int, int]]) -> list[Any]:
    return [same("matmul", f"{form}{m} x {k} x {n}", make(m, k, n)) for m, k, n in shapes]


CASES = [
    *_cases("", product, [(n, n, n) for n in SQUARES] + MODELS),
    *_cases("x @ W.T, ", by_transposed, [(32, 784, 128), (512, 512, 512)]),
    *_cases("A.T @ B, ", of_transposed, [(128, 32, 784), (512, 512, 512)]),
    same("matmul", "12 x (64 x 16 x 64), strided", heads),
]
