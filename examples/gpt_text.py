"""A small GPT learns to write like Python's documentation, a character at a time.

    python examples/gpt_text.py [--steps N] [--seed N] [--out gpt_text.png] [--device cpu]

It takes 92 s of processor time on two cores of an AMD EPYC.

The text is what `help("if")` and the like print: `pydoc_data.topics`, half a megabyte that Python ships. Tables are
left out, and paragraphs that it repeats taken once; the last tenth is held out. The network is that of tiny_gpt.py
(Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, with layer norms in front),
wider; a training step, the draw of its batch included, is captured, and so is the draw of a character. Checked: the
bits that the held-out text takes for each character. Tables of how often a character comes (none known before it),
follows another (one known) or two others, counted in the same text, are drawn beside it.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from pydoc_data.topics import topics

from tiny_gpt import GPT

import norch
import norch.nn.functional as F
from norch import optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 1.2  # bits a character below the table of pairs
LENGTH, BATCH = 64, 16  # characters that the model sees, and texts in a step
WIDTH, HEADS, LAYERS = 128, 4, 3
WARM_UP = 50  # steps
TEMPERATURE = 0.7  # of samples: below 1, what is likely gets likelier


def read() -> str:
    """The documentation, each paragraph once, without its tables."""
    paragraphs = "\n\n".join(topics[name] for name in sorted(topics)).split("\n\n")
    return "\n\n".join(dict.fromkeys(p for p in paragraphs if not re.search("^[|+]", p, re.MULTILINE)))


def table(known: int, train: norch.Tensor, test: norch.Tensor, characters: int) -> float:
    """Bits a character of `test` by counts in `train` of what follows `known` characters, each count a tenth more."""

    def places(text: norch.Tensor) -> norch.Tensor:
        runs = text.unfold(0, known + 1, 1)
        return (runs * norch.tensor([characters ** (known - i) for i in range(known + 1)])).sum(1)

    counts = norch.bincount(places(train), minlength=characters ** (known + 1)).reshape(-1, characters) + 0.1
    chances = counts / counts.sum(1, keepdim=True)
    return -chances.flatten()[places(test)].log2().mean().item()


def train(model: GPT, text: norch.Tensor, steps: int) -> list[float]:
    """The losses, in bits a character."""
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / WARM_UP, 0.02 + 0.49 * (1 + math.cos(math.pi * n / steps)))
    )
    window = norch.arange(LENGTH + 1, device=text.device)
    last = len(text) - LENGTH

    @norch.capture
    def step() -> norch.Tensor:
        batch = text[norch.randint(0, last, (BATCH, 1), device=text.device) + window]
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach() / math.log(2)

    losses = []
    for number in range(1, steps + 1):
        losses.append(step().item())
        schedule.step()
        if number % 100 == 0:
            print(f"step {number:4d}, {sum(losses[-100:]) / 100:.3f} bits a character", flush=True)
    return losses


def bits(model: GPT, text: norch.Tensor) -> float:
    """Bits a character of a text, of which each is guessed from half a window at least."""
    half, total, count = LENGTH // 2, 0.0, 0
    with norch.no_grad():
        for batch in text.unfold(0, LENGTH + 1, half).split(BATCH):
            scores = model(batch[:, :-1])[:, half:].flatten(0, 1)
            total += F.cross_entropy(scores, batch[:, half + 1 :].flatten(), reduction="sum").item()
            count += len(scores)
    return total / count / math.log(2)


def write(model: GPT, start: norch.Tensor, count: int) -> list[int]:
    """`count` characters that the model draws after `start` (LENGTH,), one after the other, by the Gumbel-max trick."""

    @norch.capture
    def draw(window: norch.Tensor) -> norch.Tensor:
        with norch.no_grad():
            scores = model(window)[:, -1] / TEMPERATURE
            drawn = (scores - (-norch.rand_like(scores).log()).log()).argmax(-1, keepdim=True)
            return norch.cat([window[:, 1:], drawn], 1)

    window, written = start[None], []
    for _ in range(count):
        window = draw(window)
        written.append(window[0, -1])
    return norch.stack(written).tolist()


def picture(path: str, losses: list[float], tables: list[float], found: float, sample: str) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained", width_ratios=(1, 1.1))
    left.plot(losses, color="#1f77b4", linewidth=0.5, alpha=0.6, label="training")
    for known, value in enumerate(tables):
        left.axhline(value, color="black", linestyle=":", linewidth=1)
        words = f"counted, {('nothing', 'a character', 'two characters')[known]} known"
        left.text(len(losses), value, words, ha="right", va="bottom", fontsize=8)
    left.axhline(found, color="#d62728", label="held-out text, at the end")
    left.set(xlabel="step", ylabel="bits a character", title="What a character costs", ylim=(0, 6))
    left.legend()
    right.axis("off")
    right.set_title("What it writes", loc="left")
    right.text(0, 1, sample, va="top", family="monospace", fontsize=7.5, transform=right.transAxes, parse_math=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, writes, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Trains a small GPT on Python's documentation.")
    parser.add_argument("--steps", type=int, default=1600, help=f"of {BATCH} x {LENGTH} characters (default: 1600)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and samples (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="gpt_text.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    norch.manual_seed(options.seed)
    text = read()
    alphabet = sorted(set(text))
    place = {c: i for i, c in enumerate(alphabet)}
    codes = norch.tensor([place[c] for c in text])
    learnt, held_out = codes.split([len(codes) * 9 // 10, len(codes) - len(codes) * 9 // 10])
    tables = [table(known, learnt, held_out, len(alphabet)) for known in range(3)]
    try:
        model = GPT(len(alphabet), LENGTH, WIDTH, HEADS, LAYERS).to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    print(f"{len(text):,} characters, {sum(p.numel() for p in model.parameters()):,} parameters")

    began = time.perf_counter()
    losses = train(model, learnt.to(options.device), options.steps)
    print(f"trained in {time.perf_counter() - began:.1f} s")
    found = bits(model, held_out.to(options.device))
    sample = "".join(alphabet[i] for i in write(model, held_out[:LENGTH].to(options.device), 1000))
    print(f"it writes:\n{sample}\n")
    picture(options.out, losses, tables, found, sample)
    print(f"wrote {os.path.abspath(options.out)}")
    print("held-out text by tables of 0, 1, 2 characters known: " + ", ".join(f"{value:.2f}" for value in tables))
    print(f"held-out text by the network: {found:.2f} bits a character")
    if found > tables[1] - REQUIRED:
        print(f"it should be at most {tables[1] - REQUIRED:.2f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
