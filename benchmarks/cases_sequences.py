"""Networks of products in inference, by norch.capture: two transformers, an LSTM, a perceptron; in the group
"inference".
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .cases_inference import run
from .library import Case, Library, Marks, Run
from .transformers import decoder, encoder

SMALL = 0.02  # the bound of drawn weights of transformers


def drawn(lib: Library, model: Any, bound: float | None = None) -> Any:
    """The model for inference, with drawn weights and biases."""
    for p in model.parameters():
        if p.ndim > 1:
            high = bound or 1 / math.sqrt(p.shape[1])
            p.data = lib.random(*p.shape, low=-high, high=high)
        elif not bool((p == 1).all()):
            p.data = lib.random(*p.shape, low=-0.02, high=0.02)
    return model.eval()


def embed(lib: Library, length: int = 128, **quantized: Any) -> Run:
    """The embedding of a text of so many tokens."""
    model = drawn(lib, encoder(lib.module.nn), SMALL)
    tokens = lib.integers(length, 30522).reshape(1, length)
    return run(lib, model, tokens, lib.module.ones(1, length), **quantized)


def decode(lib: Library, cached: int = 256, count: int = 1, **quantized: Any) -> Run:
    """The tokens after `count` ones that follow so many."""
    model = drawn(lib, decoder(lib.module), SMALL)
    tokens = lib.integers(count, 50257).reshape(1, count)
    places = lib.module.arange(cached, cached + count).reshape(1, count)
    past = (lib.random(1, 12, cached, 64) if cached else lib.module.zeros(1, 12, 0, 64) for _ in range(24))
    return run(lib, model, tokens, places, *past, **quantized)


def recur(kind: str, lib: Library, steps: int = 64, batch: int = 1, size: int = 256) -> Run:
    """A sequence through a recurrent layer."""
    nn = lib.module.nn

    class Last(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = getattr(nn, kind)(size // 2, size), nn.Linear(size, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][-1])

    return run(lib, drawn(lib, Last()), lib.random(steps, batch, size // 2))


def perceive(lib: Library, widths: tuple[int, ...] = (64, 128, 128, 10), batch: int = 1, **quantized: Any) -> Run:
    """A perceptron with ReLU."""
    nn, layers = lib.module.nn, []
    for before, width in zip(widths, widths[1:]):
        layers += [nn.Linear(before, width), nn.ReLU()]
    return run(lib, drawn(lib, nn.Sequential(*layers[:-1])), lib.random(batch, widths[0]), **quantized)


def _case(name: str, setup: Any, marks: Marks) -> Case:
    return Case("inference", name, setup, None, marks, tolerance=1e-3, variants=("eager", "onnxruntime"))


CASES = [
    _case("MiniLM-L6, 128 tokens", embed, Marks(1.1, 1.3)),
    _case("GPT-2 small, a token after 256", decode, Marks(1.1, 1.2)),
    _case("LSTM 128-256, 64 steps", partial(recur, "LSTM"), Marks(1.5, 2.0)),
    _case("GRU 128-256, 64 steps", partial(recur, "GRU"), Marks(1.5, 2.0)),
    _case("MLP 64-128-128-10, batch 1", perceive, Marks(5.0, 10.0)),
    _case("MLP 784-512-512-10, batch 32", partial(perceive, widths=(784, 512, 512, 10), batch=32), Marks(1.0, 1.2)),
]
