"""What is timed: one `Case` a row, one function a library.

A case is set up from a `Library` and gives a callable, of which one call is timed. norch and PyTorch share their face,
and so one function here; NumPy has its own where the comparison means something. All draw their inputs from the
library's `random`, in the same order: the same seed gives the same numbers everywhere, and the outputs of the first
call are compared before anything is timed.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple

from . import models

Run = Callable[[], Any]


class Library:
    """One of the libraries, on one thread, and the inputs that it draws."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "norch":
            import norch as module

            self._make = module.tensor
        elif name == "torch":
            import torch as module

            self._make = lambda values: module.frombuffer(values, dtype=module.float32).clone()
        else:
            import numpy as module

            self._make = lambda values: module.array(values, dtype=module.float32)
        if name != "numpy":
            module.set_num_threads(1)
        self.module: Any = module
        self.version: str = module.__version__
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Starts the stream of inputs anew."""
        self._uniform = random.Random(seed).uniform

    def random(self, *shape: int, grad: bool = False, low: float = -1.0, high: float = 1.0) -> Any:
        """Numbers from low to high as a float32 tensor or array of this library."""
        uniform = self._uniform
        values = array("f", [uniform(low, high) for _ in range(math.prod(shape))])
        made = self._make(values).reshape(shape)
        return made.requires_grad_() if grad else made

    def integers(self, count: int, below: int) -> Any:
        """count random class numbers as int64."""
        values = [int(self._uniform(0, below)) for _ in range(count)]
        return self.module.array(values) if self.name == "numpy" else self.module.tensor(values)


class Case(NamedTuple):
    """A row of the table: tensors sets it up for norch and PyTorch, arrays for NumPy (None: it has none)."""

    group: str
    name: str
    tensors: Callable[[Library], Run]
    arrays: Callable[[Library], Run] | None
    mark: float | None = None  # what PyTorch's time / norch's time should at least be


# ---- overhead: what a call costs when there is next to nothing to compute -----------------------------------


def add_recorded(lib: Library) -> Run:
    a, b = lib.random(10, grad=True), lib.random(10, grad=True)
    return lambda: a + b


def add(lib: Library) -> Run:
    a, b = lib.random(10), lib.random(10)
    return lambda: a + b


def add_scalar(lib: Library) -> Run:
    a = lib.random(10)
    return lambda: a + 1.5


def forward_backward(lib: Library) -> Run:
    x, b, a = (lib.random(10, grad=True) for _ in range(3))

    def run() -> Any:
        x.grad = b.grad = a.grad = None
        (x * b + a).sum().backward()
        return x.grad, b.grad, a.grad

    return run


def forward_backward_arrays(lib: Library) -> Run:
    x, b, a = (lib.random(10) for _ in range(3))
    ones_like = lib.module.ones_like

    def run() -> Any:
        y = x * b + a
        y.sum()
        g = ones_like(y)
        return g * b, g * x, g

    return run


def small_matmul(lib: Library) -> Run:
    a, b = lib.random(8, 8), lib.random(8, 8)
    return lambda: a @ b


def view(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.view(6, 4)


def view_arrays(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.reshape(6, 4)


def transpose(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.T


def take_slice(lib: Library) -> Run:
    x = lib.random(8, 8)
    return lambda: x[1:7:2]


def sgd_step(lib: Library) -> Run:
    parameters = [lib.random(16, grad=True) for _ in range(20)]
    for p in parameters:
        p.grad = lib.random(16)
    step = lib.module.optim.SGD(parameters, lr=1e-3).step

    def run() -> Any:
        step()
        return parameters

    return run


def sgd_step_arrays(lib: Library) -> Run:
    parameters = [lib.random(16) for _ in range(20)]
    grads = [lib.random(16) for _ in range(20)]

    def run() -> Any:
        for p, g in zip(parameters, grads):
            p -= 1e-3 * g
        return parameters

    return run


# ---- training -----------------------------------------------------------------------------------------------


def parameters(lib: Library, *widths: int) -> list[Any]:
    """Weights and biases of a chain of linear layers, in the order of a Sequential's parameters()."""
    made = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        bound = 1 / math.sqrt(fan_in)
        made += [lib.random(fan_out, fan_in, low=-bound, high=bound), lib.random(fan_out, low=-bound, high=bound)]
    return made


def article_step(lib: Library) -> Run:
    """One step of examples/norch_article.py: batch size 1, ten hidden units."""
    nn = lib.module.nn
    model = nn.Sequential(nn.Linear(1, 10), nn.Sigmoid(), nn.Linear(10, 1))
    for p, drawn in zip(model.parameters(), parameters(lib, 1, 10, 1)):
        p.data = drawn
    criterion = nn.MSELoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.001)
    samples = cycle([(lib.random(1, 1, high=20), lib.random(1, 1)) for _ in range(51)])

    def run() -> Any:
        x, target = next(samples)
        loss = criterion(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return run


def article_step_arrays(lib: Library) -> Run:
    """The same with its derivatives written out by hand."""
    np, lr = lib.module, 0.001
    w1, b1, w2, b2 = parameters(lib, 1, 10, 1)
    samples = cycle([(lib.random(1, 1, high=20), lib.random(1, 1)) for _ in range(51)])

    def run() -> Any:
        nonlocal w1, b1, w2, b2
        x, target = next(samples)
        h = 1 / (1 + np.exp(-(x @ w1.T + b1)))
        error = h @ w2.T + b2 - target
        loss = (error * error).mean()
        g2 = 2 * error
        g1 = g2 @ w2 * h * (1 - h)
        w2 -= lr * (g2.T @ h)
        b2 -= lr * g2.sum(0)
        w1 -= lr * (g1.T @ x)
        b1 -= lr * g1.sum(0)
        return loss

    return run


def mlp_step(lib: Library) -> Run:
    """One step of a 784-128-64-10 perceptron at batch size 64: cross-entropy, SGD with momentum."""
    nn = lib.module.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    for p, drawn in zip(model.parameters(), parameters(lib, 784, 128, 64, 10)):
        p.data = drawn
    criterion = nn.CrossEntropyLoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, target = lib.random(64, 784), lib.integers(64, 10)

    def run() -> Any:
        loss = criterion(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return run


def mlp_step_arrays(lib: Library) -> Run:
    """The same with its derivatives written out by hand."""
    np, lr, momentum = lib.module, 0.01, 0.9
    weights = parameters(lib, 784, 128, 64, 10)
    w1, b1, w2, b2, w3, b3 = weights
    velocities = [np.zeros_like(w) for w in weights]
    x, target = lib.random(64, 784), lib.integers(64, 10)
    rows = np.arange(64)

    def run() -> Any:
        h1 = np.maximum(x @ w1.T + b1, 0)
        h2 = np.maximum(h1 @ w2.T + b2, 0)
        logits = h2 @ w3.T + b3
        logits -= logits.max(1, keepdims=True)
        e = np.exp(logits)
        total = e.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - logits[rows, target]).mean()
        g3 = e / total
        g3[rows, target] -= 1
        g3 /= 64
        g2 = (g3 @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        grads = g1.T @ x, g1.sum(0), g2.T @ h1, g2.sum(0), g3.T @ h2, g3.sum(0)
        for w, v, g in zip(weights, velocities, grads):
            v *= momentum
            v += g
            w -= lr * v
        return loss

    return run


# ---- kernels: what is left when the call no longer matters --------------------------------------------------


def matmul(size: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        a, b = lib.random(size, size), lib.random(size, size)
        return lambda: a @ b

    return setup


def binary_add(count: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        a, b = lib.random(count), lib.random(count)
        return lambda: a + b

    return setup


def unary(name: str, count: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        function, x = getattr(lib.module, name), lib.random(count, low=-4, high=4)
        return lambda: function(x)

    return setup


def total(count: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        x = lib.random(count)
        return lambda: x.sum()

    return setup


def column_sums(lib: Library) -> Run:
    x = lib.random(1000, 1000)
    return lambda: x.sum(0)


def softmax(rows: int, columns: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        x = lib.random(rows, columns, low=-4, high=4)
        return lambda: x.softmax(1)

    return setup


def softmax_arrays(rows: int, columns: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        exp, x = lib.module.exp, lib.random(rows, columns, low=-4, high=4)

        def run() -> Any:
            e = exp(x - x.max(1, keepdims=True))
            e /= e.sum(1, keepdims=True)
            return e

        return run

    return setup


def running_sum(dim: int) -> Callable[[Library], Run]:
    def setup(lib: Library) -> Run:
        x = lib.random(256, 1000)
        return lambda: x.cumsum(dim)

    return setup


# ---- the table ----------------------------------------------------------------------------------------------


def _same(group: str, name: str, setup: Callable[[Library], Run]) -> Case:
    """A case whose setup serves all three libraries."""
    return Case(group, name, setup, setup)


CASES = [
    Case("overhead", "a + b, 10 elements, recorded", add_recorded, None, mark=1.5),
    _same("overhead", "a + b, 10 elements", add),
    _same("overhead", "a + 1.5, 10 elements", add_scalar),
    Case("overhead", "(x*b + a).sum(), backward", forward_backward, forward_backward_arrays, mark=3.0),
    _same("overhead", "8x8 @ 8x8", small_matmul),
    Case("overhead", "x.view(6, 4)", view, view_arrays),
    _same("overhead", "x.T", transpose),
    _same("overhead", "x[1:7:2]", take_slice),
    Case("overhead", "SGD step, 20 tensors of 16", sgd_step, sgd_step_arrays),
    Case("training", "the article's step, batch 1", article_step, article_step_arrays, mark=5.0),
    Case("training", "MLP 784-128-64-10, batch 64", mlp_step, mlp_step_arrays, mark=1.0),
    Case("training", "CNN 28x28, batch 64", models.cnn_step, None, mark=1.5),
    Case("training", "GPT of 2 layers, batch 16", models.gpt_step, None, mark=1.5),
    *[_same("kernels", f"matmul {n}x{n}x{n}", matmul(n)) for n in (64, 256, 512)],
    *[_same("kernels", f"add, {n:,}", binary_add(n)) for n in (1000, 100_000, 1_000_000)],
    *[_same("kernels", f"{f}, {n:,}", unary(f, n)) for f in ("exp", "tanh") for n in (1000, 100_000, 1_000_000)],
    *[_same("kernels", f"sum, {n:,}", total(n)) for n in (1000, 100_000, 1_000_000)],
    _same("kernels", "sum over rows, 1000x1000", column_sums),
    *[Case("kernels", f"softmax, {m}x{n}", softmax(m, n), softmax_arrays(m, n)) for m, n in ((8, 128), (256, 1000))],
    *[_same("kernels", f"cumsum, 256x1000, axis {dim}", running_sum(dim)) for dim in (0, 1)],
]
