"""Training steps: forward, backward and update. Where NumPy has one, its derivatives are written out by hand."""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

from . import models
from .library import Case, Library, Marks, Run


def parameters(lib: Library, *widths: int) -> list[Any]:
    """Weights and biases of a chain of linear layers, in the order of a Sequential's parameters()."""
    made = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        bound = 1 / math.sqrt(fan_in)
        made += [lib.random(fan_out, fan_in, low=-bound, high=bound), lib.random(fan_out, low=-bound, high=bound)]
    return made


def article_step(lib: Library, captured: bool = False) -> Run:
    """One step of examples/norch_article.py: batch size 1, ten hidden units."""
    nn = lib.module.nn
    model = nn.Sequential(nn.Linear(1, 10), nn.Sigmoid(), nn.Linear(10, 1))
    for p, drawn in zip(model.parameters(), parameters(lib, 1, 10, 1)):
        p.data = drawn
    criterion = nn.MSELoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.001)
    samples = [(lib.random(1, 1, high=20), lib.random(1, 1)) for _ in range(51)]
    return models.training(lib, model, optimizer, lambda x, target: criterion(model(x), target), samples, captured)


def article_step_arrays(lib: Library) -> Run:
    """The same with its derivatives written out by hand."""
    np, lr = lib.module, 0.001
    weights = w1, b1, w2, b2 = parameters(lib, 1, 10, 1)
    starts = [w.copy() for w in weights]
    samples = cycle([(lib.random(1, 1, high=20), lib.random(1, 1)) for _ in range(51)])

    def run() -> Any:
        x, target = next(samples)
        h = 1 / (1 + np.exp(-(x @ w1.T + b1)))
        error = h @ w2.T + b2 - target
        loss = (error * error).mean()
        g2 = 2 * error
        g1 = g2 @ w2 * h * (1 - h)
        grads = g1.T @ x, g1.sum(0), g2.T @ h, g2.sum(0)
        for w, g in zip(weights, grads):
            w -= lr * g
        return loss, grads, lambda: models.how_far(weights, starts, lr)

    return run


def mlp_step(lib: Library, batch: int = 64, captured: bool = False) -> Run:
    """One step of a 784-128-64-10 perceptron, at batch size 64 unless given: cross-entropy, SGD with momentum."""
    nn = lib.module.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    for p, drawn in zip(model.parameters(), parameters(lib, 784, 128, 64, 10)):
        p.data = drawn
    criterion = nn.CrossEntropyLoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(lib.random(batch, 784), lib.integers(batch, 10))]
    return models.training(lib, model, optimizer, lambda x, target: criterion(model(x), target), batches, captured)


def mlp_step_arrays(lib: Library) -> Run:
    """The same with its derivatives written out by hand."""
    np, lr, momentum = lib.module, 0.01, 0.9
    weights = parameters(lib, 784, 128, 64, 10)
    w1, b1, w2, b2, w3, b3 = weights
    starts = [w.copy() for w in weights]
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
        return loss, grads, lambda: models.how_far(weights, starts, lr)

    return run


# A rounding may turn a relu on, and the sign in which Adam moves what has no gradient but noise.
ROUGHLY = 1e-2

CASES = [
    Case("training", "the article's step, batch 1", article_step, article_step_arrays, Marks(8.0, 12.0)),
    Case("training", "MLP 784-128-64-10, batch 64", mlp_step, mlp_step_arrays, Marks(1.9, 2.2), tolerance=ROUGHLY),
    Case("training", "CNN 28x28, batch 64", models.cnn_step, None, Marks(1.5, 2.0), tolerance=ROUGHLY),
    Case("training", "GPT of 2 layers, batch 16", models.gpt_step, None, Marks(1.5, 2.0), tolerance=ROUGHLY),
]
