"""Handwritten digits: a small network learns to read 1,797 real scans of 8 x 8 pixels.

    python examples/digits.py [--epochs N] [--seed N] [--out digits.png] [--device cpu]

It takes 4 s of processor time on two cores of an AMD EPYC.

A fifth of the scans is held out: the network never trains on them, and what it makes of them is the
result. It is drawn into a picture, with the mistakes in red, and checked: under 97 % the script fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import norch
from norch import nn, optim
from norch.utils.data import DataLoader, TensorDataset

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 97.0  # per cent of the held-out digits
SPLIT_SEED = 0  # the same fifth is held out whatever --seed says
GREEN, RED, BLUE = "#2e7d32", "#c62828", "#1f77b4"


def load() -> tuple[TensorDataset, TensorDataset]:
    """Four fifths to train on and one to be tested by: pixels (N, 64) from 0 to 1, and the digits (N,) they show.

    The split is random but always the same, and each digit has its share in both parts.
    """
    scans = load_digits()
    parts = train_test_split(
        scans.data / 16, scans.target, test_size=0.2, stratify=scans.target, random_state=SPLIT_SEED
    )
    train_x, test_x = (norch.tensor(part, dtype=norch.float32) for part in parts[:2])
    train_y, test_y = (norch.tensor(part, dtype=norch.int64) for part in parts[2:])
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def make_model() -> nn.Module:
    """64 pixels in, two hidden layers, one score for each of ten digits out.

    Widths and rates were chosen by cross-validation within the training digits.
    """
    return nn.Sequential(
        nn.Linear(64, 512),
        nn.ReLU(),
        nn.Dropout(0.2),  # forgets a fifth of the units at each step, so that none is relied upon
        nn.Linear(512, 256),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(256, 10),
    )


def train(model: nn.Module, data: TensorDataset, epochs: int, seed: int, device: str) -> list[float]:
    """Trains the model; the loss of each step."""
    loader = DataLoader(data, batch_size=32, shuffle=True, generator=seed)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)  # never be more than 95 % sure: some scans are hard
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)

    def step(x: norch.Tensor, y: norch.Tensor) -> tuple[norch.Tensor, norch.Tensor]:
        scores = model(x)
        loss = criterion(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, (scores.argmax(1) == y).sum()

    if device == "cpu":
        step = norch.capture(step)  # recorded twice, then replayed: docs/capture.md
    losses: list[float] = []
    model.train()  # Dropout acts in training only
    with tqdm(total=epochs * len(loader), unit="step", desc="training") as bar:
        for epoch in range(epochs):
            right = seen = 0
            for x, y in loader:
                loss, correct = step(x.to(device), y.to(device))
                losses.append(loss.item())
                right += int(correct)
                seen += len(y)
                bar.update()
            mean = sum(losses[-len(loader) :]) / len(loader)
            bar.set_postfix_str(f"epoch {epoch + 1}, loss {mean:.3f}, accuracy {100 * right / seen:.1f}%")
    return losses


def predict(model: nn.Module, x: norch.Tensor) -> norch.Tensor:
    """The digit that the model reads in each row: the one with the highest score."""
    model.eval()  # Dropout rests
    with norch.no_grad():  # nothing to be learnt here, so nothing need be remembered
        return model(x).argmax(1)


def smooth(losses: list[float], window: int) -> list[float]:
    """The mean of each loss with the window - 1 before it."""
    return [sum(losses[max(0, i + 1 - window) : i + 1]) / min(window, i + 1) for i in range(len(losses))]


def draw(path: str, losses: list[float], test: TensorDataset, read: list[int], steps_in_epoch: int) -> None:
    """The loss curve above a sheet of test digits: all mistakes first, then others."""
    pixels, truth = test.tensors[0].reshape(-1, 8, 8).tolist(), test.tensors[1].tolist()
    wrong = [i for i in range(len(truth)) if read[i] != truth[i]]
    rows, columns = 5, 12
    shown = (wrong + [i for i in range(len(truth)) if read[i] == truth[i]])[: rows * columns]

    figure = plt.figure(figsize=(11, 9.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.75], hspace=0.04)
    axes = top.subplots()
    epochs = [(step + 1) / steps_in_epoch for step in range(len(losses))]
    axes.plot(epochs, losses, color=BLUE, alpha=0.3, linewidth=0.8, label="each step")
    axes.plot(epochs, smooth(losses, 20), color=BLUE, linewidth=2, label="mean of 20 steps")
    axes.set_title("Training loss", fontsize=14)
    axes.set(xlabel="epoch", ylabel="cross-entropy", xlim=(0, epochs[-1]), ylim=(0, None))
    axes.legend(loc="upper right", frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)

    right = len(truth) - len(wrong)
    percent = 100 * right / len(truth)
    bottom.suptitle(f"Held-out digits: {right} of {len(truth)} read correctly ({percent:.1f}%)", fontsize=14)
    for axes, i in zip(bottom.subplots(rows, columns).flat, shown):
        good = read[i] == truth[i]
        axes.imshow(pixels[i], cmap="gray_r", vmin=0, vmax=1)
        label = str(read[i]) if good else f"{read[i]} (is {truth[i]})"
        axes.set_title(label, color=GREEN if good else RED, fontsize=12, fontweight="normal" if good else "bold", pad=3)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(edgecolor="#bbbbbb" if good else RED, linewidth=0.8 if good else 2.5)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, tests, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Trains a network on real handwritten digits and draws what it reads.")
    parser.add_argument("--epochs", type=int, default=30, help="times through the training digits (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, shuffling and dropout (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="digits.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    norch.manual_seed(options.seed)
    training, test = load()
    try:
        model = make_model().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    print(model)
    print(f"{len(training)} digits to learn from, {len(test)} held out")

    began = time.perf_counter()
    losses = train(model, training, options.epochs, options.seed, options.device)
    print(f"trained in {time.perf_counter() - began:.1f} s")

    x, y = (part.to(options.device) for part in test.tensors)
    digit = predict(model, x)
    accuracy = 100 * (digit == y).sum().item() / len(y)
    draw(options.out, losses, test, digit.tolist(), len(losses) // options.epochs)
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"test accuracy: {accuracy:.1f}%")
    if accuracy < REQUIRED:
        print(f"that is less than the {REQUIRED:.0f}% that this network should reach", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
