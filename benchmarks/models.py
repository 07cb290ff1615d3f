"""Two models whose training steps are timed, written once for norch and PyTorch: a small convolutional network and a
small GPT. Their weights are drawn by the library's `random`, so that both start from the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import Library

WARM = 4  # steps before a captured one is replayed
BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 16, 64, 64, 4, 65


def _draw(lib: Library, model: Any) -> Any:
    """Fills weights of two and more axes; the others keep what they start with, ones or, for these models, zeros."""
    for p in model.parameters():
        if p.ndim > 1:
            bound = 1 / math.sqrt(math.prod(p.shape[1:]))
            p.data = lib.random(*p.shape, low=-bound, high=bound)
        elif not bool((p == 1).all()):
            p.data = p.data * 0.0
    return model


def training(
    lib: Library, model: Any, optimizer: Any, loss_of: Callable[..., Any], batches: list[Any], captured: bool = False
) -> Callable[[], Any]:
    """A step, which gives its loss and a function that gives what it did: gradients, and how far it moved. captured:
    by norch.capture, where the library is norch, after as many steps as that takes; elsewhere as it is."""
    params = list(model.parameters())
    starts = [p.detach() + 0.0 for p in params]
    turn = cycle(batches)

    def step(*batch: Any) -> Any:
        loss = loss_of(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def done() -> Any:
        return [p.grad for p in params], how_far([p.detach() for p in params], starts, optimizer.param_groups[0]["lr"])

    if captured and lib.name == "norch":
        step = lib.module.capture(step)
    for _ in range(WARM if captured else 0):
        step(*next(turn))

    return lambda: (step(*next(turn)), done)


def how_far(params: list[Any], starts: list[Any], lr: float) -> list[Any]:
    """The mean move of each parameter, in learning rates. (Adam moves what has hardly a gradient either way.)"""
    return [abs(p - start).mean() / lr for p, start in zip(params, starts)]


def cnn_step(lib: Library, captured: bool = False) -> Callable[[], Any]:
    """One step on 64 pictures of 28 x 28: two convolutions with pooling, one linear layer, SGD with momentum."""
    nn = lib.module.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )
    _draw(lib, model)
    criterion = nn.CrossEntropyLoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, target = lib.random(64, 1, 28, 28), lib.integers(64, 10)
    batches = [(x, target)]
    return training(lib, model, optimizer, lambda x, target: criterion(model(x), target), batches, captured)


def _gpt(nn: Any) -> Any:
    """Two blocks of attention and a perceptron, each after a normalisation and beside what it adds to."""
    functional = nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_perceptron = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.attend(self.before_attention(x)).split(WIDTH, -1)
            q, k, v = (part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.narrow(functional.gelu(self.widen(self.before_perceptron(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(Block(), Block())
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any, places: Any) -> Any:
            return self.head(self.norm(self.blocks(self.token(tokens) + self.position(places))))

    return GPT()


def gpt_step(lib: Library, captured: bool = False) -> Callable[[], Any]:
    """One step of a GPT of 2 layers, width 64, 4 heads, on 16 texts of 64 characters: cross-entropy, AdamW."""
    module = lib.module
    model = _draw(lib, _gpt(module.nn))
    criterion = module.nn.CrossEntropyLoss()
    optimizer = module.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = lib.integers(BATCH * LENGTH, VOCABULARY).reshape(BATCH, LENGTH)
    target, places = lib.integers(BATCH * LENGTH, VOCABULARY), module.arange(LENGTH)

    def loss_of(tokens: Any, places: Any, target: Any) -> Any:
        return criterion(model(tokens, places).reshape(BATCH * LENGTH, VOCABULARY), target)

    return training(lib, model, optimizer, loss_of, [(tokens, places, target)], captured)
