"""Handwritten digits again, by a convolutional network: what its first layer looks for, and what it sees.

    python examples/cnn_digits.py [--epochs N] [--seed N] [--out cnn_digits.png] [--device cpu]

It takes 4 s of processor time on two cores of an AMD EPYC.

A fifth of the 1,797 scans of 8 x 8 pixels is held out. The picture shows the loss, the sixteen 3 x 3 kernels that the
first layer has learnt, and what they make of one held-out digit. Checked: under 98 % of the held-out digits the script
fails.
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
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 98.0  # per cent of the held-out digits
SPLIT_SEED = 0  # the same fifth is held out whatever --seed says


def load() -> tuple[TensorDataset, TensorDataset]:
    """Four fifths to train on and one to be tested by: pixels (N, 1, 8, 8) from 0 to 1, and digits (N,)."""
    scans = load_digits()
    parts = train_test_split(
        scans.images[:, None] / 16, scans.target, test_size=0.2, stratify=scans.target, random_state=SPLIT_SEED
    )
    train_x, test_x = (norch.tensor(part, dtype=norch.float32) for part in parts[:2])
    train_y, test_y = (norch.tensor(part, dtype=norch.int64) for part in parts[2:])
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def make_model() -> nn.Sequential:
    """(N, 1, 8, 8) pixels in, one score for each of ten digits out."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),  # 4 x 4
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(64 * 2 * 2, 10),
    )


def train(model: nn.Module, data: TensorDataset, epochs: int, seed: int, device: str) -> list[float]:
    """Trains the model, its rate falling to nothing along a cosine; the loss of each epoch."""
    loader = DataLoader(data, batch_size=32, shuffle=True, generator=seed)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    losses: list[float] = []
    model.train()  # batch statistics and dropout
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        losses.append(total / len(loader))
        print(f"epoch {epoch + 1:2d}, loss {losses[-1]:.3f}")
    return losses


def draw(path: str, losses: list[float], model: nn.Sequential, digit: norch.Tensor) -> None:
    """The loss curve; below it the digit, the kernels of the first layer, and what each of them makes of the digit."""
    with norch.no_grad():
        kernels = model[0].weight.squeeze(1).tolist()
        maps = model[:3](digit.unsqueeze(0)).squeeze(0).tolist()
    figure = plt.figure(figsize=(11, 8), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.6])
    left, right = top.subplots(1, 2, width_ratios=[3, 1])
    left.plot(range(1, len(losses) + 1), losses, color="#1f77b4", linewidth=2)
    left.set(xlabel="epoch", ylabel="cross-entropy", title="Training loss", ylim=(0, None))
    left.grid(alpha=0.25)
    right.imshow(digit.squeeze(0).tolist(), cmap="gray_r")
    right.set(title="A held-out digit", xticks=[], yticks=[])
    bottom.suptitle("What the first layer looks for (red adds, blue takes away), and where it finds it")
    axes = bottom.subplots(4, 8)
    for i, (kernel, seen) in enumerate(zip(kernels, maps, strict=True)):
        row, column = i // 8 * 2, i % 8
        reach = max(abs(number) for line in kernel for number in line)
        axes[row][column].imshow(kernel, cmap="RdBu_r", vmin=-reach, vmax=reach)
        axes[row + 1][column].imshow(seen, cmap="gray_r")
    for one in axes.flat:
        one.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, tests, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Trains a convolutional network on real handwritten digits.")
    parser.add_argument("--epochs", type=int, default=15, help="times through the training digits (default: 15)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, shuffling and dropout (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="cnn_digits.png", help="the picture (default: %(default)s)")
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
    began = time.perf_counter()
    losses = train(model, training, options.epochs, options.seed, options.device)
    print(f"trained in {time.perf_counter() - began:.1f} s")

    x, y = (part.to(options.device) for part in test.tensors)
    model.eval()  # running statistics, no dropout
    with norch.no_grad():
        read = model(x).argmax(1)
    accuracy = 100 * (read == y).sum().item() / len(y)
    draw(options.out, losses, model, x[0])
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"test accuracy: {accuracy:.1f}%")
    if accuracy < REQUIRED:
        print(f"that is less than the {REQUIRED:.0f}% that this network should reach", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
