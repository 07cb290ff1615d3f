"""Two transformers, written once for norch and PyTorch: the embedding of a text, and one step of a language model."""

from __future__ import annotations

from typing import Any


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
    """One step of GPT-2 small (Radford et al. 2019): the scores of the next token, and the keys and values so far.

    Several tokens may only be the first ones.
    """
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
            seen = functional.scaled_dot_product_attention(q, keys, values, is_causal=x.shape[1] > 1)
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
