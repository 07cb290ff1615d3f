"""A table with most of its entries missing, filled in: matrix factorisation.

    python examples/matrix_factorization.py [--steps N] [--seed N] [--out matrix_factorization.png] [--device cpu]

It takes 5 s of processor time on two cores of an AMD EPYC.

A shop knows a few of the ratings that its customers would give, and guesses the others. Here the table is a real one
whose missing entries are known: its rows are 1,797 scans of handwritten digits, its columns 64 pixels, and its entries
the ink there, 0 to 16, of which half are hidden. Each row and each column has a vector and a bias, and the guess of an
entry is the mean of all + the two biases + the product of the two vectors (Koren, Bell and Volinsky, "Matrix
Factorization Techniques for Recommender Systems", IEEE Computer 42, 2009, equations 4 and 5). Nobody tells it which
pixels are neighbours. How much long vectors are penalised is chosen on a tenth of the known entries, which is kept
back for that. Checked: the error where entries are hidden, against that of the biases alone.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time

import norch
from norch import nn, optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 20.0  # per cent less error than the biases alone
HIDDEN = 0.5
RANK = 10
PENALTIES = (0.03, 0.1, 0.3, 1.0)  # of squared numbers, for each known entry that they serve; the best is taken


class Factors(nn.Module):
    """Rows (N,) and columns (N,) to guesses (N,) of the entries; with rank 0, by the biases alone."""

    def __init__(self, rows: int, columns: int, rank: int, mean: float) -> None:
        super().__init__()
        self.mean = mean
        self.row, self.column = nn.Embedding(rows, rank + 1), nn.Embedding(columns, rank + 1)  # the last is the bias
        for table in (self.row, self.column):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, row: norch.Tensor, column: norch.Tensor) -> tuple[norch.Tensor, norch.Tensor]:
        """The guesses (N,), and the squared length (N,) of what they were made of."""
        left, right = self.row(row), self.column(column)
        guess = self.mean + left[:, -1] + right[:, -1] + (left[:, :-1] * right[:, :-1]).sum(1)
        return guess, left.square().sum(1) + right.square().sum(1)


def train(model: Factors, known: tuple[norch.Tensor, ...], steps: int, penalty: float) -> list[float]:
    """The root of the mean squared error of every tenth step, on 1,024 of the known rows, columns, entries (N,)."""
    optimizer = optim.Adam(model.parameters(), lr=2e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    rows, columns, entries = known

    @norch.capture
    def step(chosen: norch.Tensor) -> norch.Tensor:
        guess, size = model(rows[chosen], columns[chosen])
        error = nn.functional.mse_loss(guess, entries[chosen])
        optimizer.zero_grad()
        (error + penalty * size.mean()).backward()
        optimizer.step()
        return error

    losses = []
    for number in range(steps):
        error = step(norch.randint(len(rows), (1024,), device=rows.device))
        schedule.step()
        if number % 10 == 0:
            losses.append(error.item() ** 0.5)
    return losses


def best_penalty(untrained: Factors, known: tuple[norch.Tensor, ...], steps: int) -> float:
    """The one of PENALTIES with which a model, trained on nine tenths of the known entries, guesses the others best."""
    kept_back = norch.rand(len(known[0]), device=known[0].device) < 0.1
    rows, columns, entries = (part[kept_back] for part in known)
    errors = {}
    for penalty in PENALTIES:
        model = copy.deepcopy(untrained)
        train(model, tuple(part[~kept_back] for part in known), steps, penalty)
        errors[penalty] = (fill(model)[rows, columns] - entries).square().mean().item()
    return min(errors, key=errors.__getitem__)


def fill(model: Factors) -> norch.Tensor:
    """The whole table of guesses (rows, columns)."""
    with norch.no_grad():
        row, column = model.row.weight, model.column.weight
        table = row[:, :-1] @ column[:, :-1].T + row[:, -1:] + column[:, -1] + model.mean
        return table.clamp(0, 16)


def draw(path: str, pictures: dict[str, norch.Tensor], losses: dict[str, list[float]], model: Factors) -> None:
    """The first 20 scans: complete, what was known of them, and how each model fills them in; the columns' vectors."""
    figure = plt.figure(figsize=(14, 5.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1.7, 1])
    for axis, (title, table) in zip(above.subplots(len(pictures), 1), pictures.items()):
        axis.imshow(
            nn.functional.pad(table[:20].reshape(20, 8, 8), (1, 1), value=float("nan"))
            .transpose(0, 1)
            .reshape(8, 200)
            .tolist(),
            cmap="gray_r",
            vmin=0,
            vmax=16,
        )
        axis.set_facecolor("#9ecae1")  # what is not a number, so not known
        axis.set(xticks=[], yticks=[])
        axis.set_ylabel(title, rotation=0, ha="right", va="center")
    left, *others = below.subplots(1, 7, width_ratios=[2, 1, 1, 1, 1, 1, 1])
    for name, values in losses.items():
        left.plot(range(0, 10 * len(values), 10), values, label=name, linewidth=0.8)
    left.set(xlabel="step", title="Error of the known entries")
    left.legend()
    for i, axis in enumerate(others):
        axis.imshow(model.column.weight[:, i].detach().reshape(8, 8).tolist(), cmap="PiYG")
        axis.set(xticks=[], yticks=[], title=f"Number {i + 1} of pixels")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains twice, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Fills in a table by matrix factorisation.")
    parser.add_argument("--steps", type=int, default=4000, help="of the optimizer (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what is hidden, and of vectors (default: 0)")
    parser.add_argument(
        "--out", metavar="PNG", default="matrix_factorization.png", help="the picture (default: %(default)s)"
    )
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    norch.manual_seed(options.seed)
    try:
        table = norch.tensor(load_digits().data, dtype=norch.float32, device=options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    hidden = norch.rand_like(table) < HIDDEN
    rows, columns = (~hidden).nonzero().unbind(1)
    known = (rows, columns, table[rows, columns])
    print(f"{len(rows):,} of {table.numel():,} entries are known")
    pictures = {"complete": table, "known": norch.where(hidden, float("nan"), table)}
    losses, errors = {}, []
    for name, rank in (("biases alone", 0), (f"{RANK} numbers each", RANK)):
        model = Factors(len(table), table.shape[1], rank, known[2].mean().item()).to(options.device)
        began = time.perf_counter()
        penalty = best_penalty(model, known, options.steps)
        losses[name] = train(model, known, options.steps, penalty)
        pictures[name] = fill(model)
        errors.append((pictures[name] - table)[hidden].square().mean().sqrt().item())
        seconds = time.perf_counter() - began
        print(f"{name}: penalty {penalty}, {seconds:.1f} s, error of hidden entries {errors[-1]:.3f}")
    draw(options.out, pictures, losses, model)
    less = 100 * (1 - errors[1] / errors[0])
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"less error than by biases alone: {less:.1f}%")
    if less < REQUIRED:
        print(f"it should be at least {REQUIRED:.0f}%", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
