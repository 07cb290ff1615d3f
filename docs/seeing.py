"""Draws the pictures of docs/seeing.md: the graphs of three small models, docs/seeing_*.svg. `make docs` runs it."""

from pathlib import Path

import norch
from norch import nn
from norch.utils import draw_graph

DOCS = Path(__file__).resolve().parent


class Transformer(nn.Module):
    """Two layers over an embedding, and the scores of the next token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2)
        self.head = nn.Linear(16, 10)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


def pictures():
    """{name of the file: its text}."""
    norch.manual_seed(0)
    labels = norch.tensor([0, 1, 2, 0, 1])
    cross_entropy = nn.functional.cross_entropy
    mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    cnn = nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(96, 3)),
    )
    gpt, tokens = Transformer(), norch.randint(0, 10, (2, 6))
    rows, images = norch.randn(5, 4), norch.randn(5, 1, 8, 8)
    losses = {
        "mlp": (mlp, lambda: cross_entropy(mlp(rows), labels)),
        "cnn": (cnn, lambda: cross_entropy(cnn(images), labels)),
        "transformer": (gpt, lambda: cross_entropy(gpt(tokens).flatten(0, 1), tokens.flatten())),
    }
    return {f"seeing_{name}.svg": draw_graph(loss, model, engine="own").svg for name, (model, loss) in losses.items()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (DOCS / name).write_text(text, encoding="utf-8")
