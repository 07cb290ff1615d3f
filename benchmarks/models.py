"""Models whose training steps are timed, written once for norch and PyTorch: a small convolutional network, ResNet-18
and GPTs. Their weights are drawn by the library's `random`, so that both start from the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .library import Library

WARM = 4  # steps before a captured one is replayed


class Text(NamedTuple):
    """The sizes of a GPT and of its batch. tied: the last layer has the weights of the tokens' embedding."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    length: int = 64
    batch: int = 16
    vocabulary: int = 65
    tied: bool = False


TOY = Text()


def draw(lib: Library, model: Any) -> Any:
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
    by norch.capture, where the library is norch, after as many steps as that takes; elsewhere as Library says."""
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

    if not captured:
        return lambda: (step(*next(turn)), done)
    called = lib.captured(step)
    for _ in range(WARM):
        called(*next(turn))
    return lib.repeating(lambda: (called(*next(turn)), done), called, lambda: next(turn))


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
    draw(lib, model)
    criterion = nn.CrossEntropyLoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, target = lib.random(64, 1, 28, 28), lib.integers(64, 10)
    batches = [(x, target)]
    return training(lib, model, optimizer, lambda x, target: criterion(model(x), target), batches, captured)


def _gpt(nn: Any, size: Text) -> Any:
    """Blocks of attention and a perceptron, each after a normalisation and beside what it adds to."""
    functional, width, heads = nn.functional, size.width, size.heads

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
            # A bias of keys has no gradient but rounding, which Adam would turn into steps that nothing can be held to.
            self.attend, self.project = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.attend(self.before_attention(x)).split(width, -1)
            q, k, v = (part.reshape(*x.shape[:2], heads, width // heads).transpose(1, 2) for part in parts)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).reshape(x.shape))
            return x + self.narrow(functional.gelu(self.widen(self.before_perceptron(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(size.vocabulary, width), nn.Embedding(size.length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, size.vocabulary, bias=not size.tied)
            if size.tied:
                self.head.weight = self.token.weight

        def forward(self, tokens: Any, places: Any) -> Any:
            return self.head(self.norm(self.blocks(self.token(tokens) + self.position(places))))

    return GPT()


def gpt_step(
    lib: Library,
    captured: bool = False,
    size: Text = TOY,
    dtype: str = "float32",
    autocast: str = "",
) -> Callable[[], Any]:
    """One step of a GPT, by default of 2 layers of width 64, on 16 texts of 64 characters: cross-entropy, AdamW.
    autocast: the type of device on which it runs under autocast to bfloat16."""
    module = lib.module
    model = draw(lib, _gpt(module.nn, size)).to(getattr(module, dtype))
    criterion = module.nn.CrossEntropyLoss()
    optimizer = module.optim.AdamW(model.parameters(), lr=1e-3)
    count = size.batch * size.length
    tokens = lib.integers(count, size.vocabulary).reshape(size.batch, size.length)
    target, places = lib.integers(count, size.vocabulary), module.arange(size.length)

    def loss_of(tokens: Any, places: Any, target: Any) -> Any:
        with module.autocast(autocast, module.bfloat16) if autocast else nullcontext():
            return criterion(model(tokens, places).reshape(count, size.vocabulary), target)

    return training(lib, model, optimizer, loss_of, [(tokens, places, target)], captured)


def _resnet(nn: Any, widths: Sequence[int]) -> Any:
    """ResNet-18 as for pictures of 32 x 32: a first convolution of 3 x 3 without pooling, two blocks a width."""
    relu = nn.functional.relu

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
            self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
            self.beside = nn.Sequential()
            if stride > 1 or before != width:
                shortcut = nn.Conv2d(before, width, 1, stride=stride, bias=False)
                self.beside = nn.Sequential(shortcut, nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            inner = relu(self.norms[0](self.first(x)))
            return relu(self.norms[1](self.second(inner)) + self.beside(x))

    blocks, before = [], widths[0]
    for i, width in enumerate(widths):
        blocks += [Block(before, width, 2 if i else 1), Block(width, width, 1)]
        before = width
    first = [nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


def resnet_step(
    lib: Library, batch: int = 128, side: int = 32, widths: Sequence[int] = (64, 128, 256, 512)
) -> Callable[[], Any]:
    """One step of ResNet-18 (He et al. 2016) for small pictures: cross-entropy, SGD with momentum."""
    model = draw(lib, _resnet(lib.module.nn, widths))
    criterion = lib.module.nn.CrossEntropyLoss()
    optimizer = lib.module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(lib.random(batch, 3, side, side), lib.integers(batch, 10))]
    return training(lib, model, optimizer, lambda x, target: criterion(model(x), target), batches)
