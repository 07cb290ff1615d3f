"""Mixed precision on the CPU: products of bfloat16, and a training step in autocast."""

from __future__ import annotations

from typing import Any

from . import models
from .cases_training import parameters
from .library import Case, Library, Run, Setup

ROUNDED = 2e-2  # bfloat16 has 8 digits


def product(rows: int, inner: int, columns: int) -> Setup:
    def setup(lib: Library) -> Run:
        a, b = (lib.random(*shape).to(lib.module.bfloat16) for shape in ((rows, inner), (inner, columns)))
        return lambda: a @ b

    return setup


def layer(rows: int, inner: int, columns: int) -> Setup:
    def setup(lib: Library) -> Run:
        x, weight, bias = (
            lib.random(*s).to(lib.module.bfloat16) for s in ((rows, inner), (columns, inner), (columns,))
        )
        linear = lib.module.nn.functional.linear
        return lambda: linear(x, weight, bias)

    return setup


def autocast_step(lib: Library) -> Run:
    """A step of a 256-512-512-10 perceptron at batch size 128: cross-entropy, SGD."""
    nn, module = lib.module.nn, lib.module
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10))
    for p, drawn in zip(model.parameters(), parameters(lib, 256, 512, 512, 10)):
        p.data = drawn
    optimizer = module.optim.SGD(model.parameters(), lr=0.01)

    def loss_of(x: Any, target: Any) -> Any:
        with module.autocast("cpu", dtype=module.bfloat16):
            return nn.functional.cross_entropy(model(x), target)

    return models.training(lib, model, optimizer, loss_of, [(lib.random(128, 256), lib.integers(128, 10))])


def _case(name: str, setup: Setup) -> Case:
    return Case("mixed", name, setup, None, tolerance=ROUNDED)


CASES = [
    *[
        _case(f"{m} x {k} x {n}", product(m, k, n))
        for m, k, n in ((256,) * 3, (512,) * 3, (64, 256, 256), (1, 1024, 1024))
    ],
    *[_case(f"linear, {m} x {k} x {n}", layer(m, k, n)) for m, k, n in ((32, 1024, 1024), (1, 1024, 1024))],
    _case("MLP 256-512-512-10, batch 128, in autocast", autocast_step),
]
