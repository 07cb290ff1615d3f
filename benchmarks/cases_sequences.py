"""Networks of products in inference, by norch.capture: two transformers, an LSTM, a perceptron; in the group
"inference".
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from . import cases_inference, models
from .library import Case, Library, Marks, Run

SMALL = 0.02  # the bound of drawn weights of transformers


def encoder(nn: Any, layers: int = 6, width: int = 384, heads: int = 12, words: int = 30522, length: int = 512) -> Any:
    """The embedding of a text by all-MiniLM-L6-v2: BERT (Devlin et al. 2019), and the mean over its tokens."""
    functional = nn.functional

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
            self.project, self.widen, self.narrow = (
                nn.Linear(width, width),
                nn.Linear(width, 4 * width),
                nn.Linear(4 * width, width),
            )
            self.attended, self.norm = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

        def forward(self, x: Any, mask: Any) -> Any:
            parts = (layer(x) for layer in (self.query, self.key, self.value))
            q, k, v = (part.view(*x.shape[:2], heads, width // heads).transpose(1, 2) for part in parts)
            seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.attended(self.project(seen.transpose(1, 2).reshape(x.shape)) + x)
            return self.norm(self.narrow(functional.gelu(self.widen(x))) + x)

    class Encoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place, self.kind = (nn.Embedding(n, width) for n in (words, length, 2))
            self.norm = nn.LayerNorm(width, eps=1e-12)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])

        def forward(self, tokens: Any, mask: Any) -> Any:
            """tokens (batch, length); mask (batch, length): 1 for a token, 0 for padding."""
            places = self.place.weight[: tokens.shape[1]]
            x = self.norm(self.word(tokens) + self.kind.weight[0] + places)
            hidden = ((1 - mask) * -1e9).view(mask.shape[0], 1, 1, mask.shape[1])
            for layer in self.layers:
                x = layer(x, hidden)
            weights = mask.unsqueeze(-1)
            return functional.normalize((x * weights).sum(1) / weights.sum(1), dim=1)

    return Encoder()


def decoder(
    module: Any, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, length: int = 1024
) -> Any:
    """One step of GPT-2 small (Radford et al. 2019): the scores of the next token, and the keys and values so far."""
    nn, functional = module.nn, module.nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, keys: Any, values: Any) -> Any:
            parts = self.attend(self.before_attention(x)).split(width, -1)
            q, k, v = (part.view(*x.shape[:2], heads, width // heads).transpose(1, 2) for part in parts)
            keys, values = module.cat((keys, k), 2), module.cat((values, v), 2)
            seen = functional.scaled_dot_product_attention(q, keys, values)
            x = x + self.project(seen.transpose(1, 2).reshape(x.shape))
            x = x + self.narrow(functional.gelu(self.widen(self.before_perceptron(x)), approximate="tanh"))
            return x, keys, values

    class Decoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            self.head.weight = self.word.weight

        def forward(self, token: Any, place: Any, *past: Any) -> Any:
            x, now = self.word(token) + self.place(place), []
            for block, keys, values in zip(self.blocks, past[::2], past[1::2]):
                x, keys, values = block(x, keys, values)
                now += [keys, values]
            return (self.head(self.norm(x)), *now)

    return Decoder()


def _drawn(lib: Library, model: Any, bound: float | None = None) -> Any:
    for p in model.parameters():
        if p.ndim > 1:
            high = bound or 1 / math.sqrt(p.shape[1])
            p.data = lib.random(*p.shape, low=-high, high=high)
        elif not bool((p == 1).all()):
            p.data = lib.random(*p.shape, low=-0.02, high=0.02)
    return model.eval()


def _run(lib: Library, model: Any, *given: Any) -> Run:
    """The model under no_grad, captured where the library is norch."""
    if lib.variant == "onnxruntime":
        return cases_inference.session(lib, model, *given)

    def function(*given: Any) -> Any:
        with lib.module.no_grad():
            return model(*given)

    function = lib.captured(function)
    for _ in range(models.WARM):
        function(*given)
    return lambda: function(*given)


def embed(lib: Library, length: int = 128) -> Run:
    """The embedding of a text of so many tokens."""
    model = _drawn(lib, encoder(lib.module.nn), SMALL)
    tokens = lib.integers(length, 30522).reshape(1, length)
    return _run(lib, model, tokens, lib.module.ones(1, length))


def decode(lib: Library, cached: int = 256) -> Run:
    """The next token after so many."""
    model = _drawn(lib, decoder(lib.module), SMALL)
    token, place = lib.integers(1, 50257).reshape(1, 1), lib.module.full((1, 1), cached)
    return _run(lib, model, token, place, *(lib.random(1, 12, cached, 64) for _ in range(24)))


def recur(kind: str, lib: Library, steps: int = 64, batch: int = 1, size: int = 256) -> Run:
    """A sequence through a recurrent layer."""
    nn = lib.module.nn

    class Last(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = getattr(nn, kind)(size // 2, size), nn.Linear(size, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][-1])

    return _run(lib, _drawn(lib, Last()), lib.random(steps, batch, size // 2))


def perceive(lib: Library, widths: tuple[int, ...] = (64, 128, 128, 10), batch: int = 1) -> Run:
    """A perceptron with ReLU."""
    nn, layers = lib.module.nn, []
    for before, width in zip(widths, widths[1:]):
        layers += [nn.Linear(before, width), nn.ReLU()]
    return _run(lib, _drawn(lib, nn.Sequential(*layers[:-1])), lib.random(batch, widths[0]))


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
