"""The classic first network: ten hidden units learn sin(x) squared, one sample at a time.

    python examples/norch_article.py [--plot fit.png] [--device cpu]

It takes 1 s of processor time on two cores of an AMD EPYC.

Its parameters start from Python's own random numbers and its samples always come in the same order, so that everybody
who runs it, with whatever framework, should see the same ten losses. The script compares its own with the known ones
and fails where they differ.
"""

from __future__ import annotations

import argparse
import math
import random
import sys

import norch
from norch import nn, optim

# The loss of the last sample of each epoch, as other implementations find it.
KNOWN_LOSSES = [1.7035, 0.7193, 0.3068, 0.1742, 0.1342, 0.1232, 0.1220, 0.1241, 0.1270, 0.1297]
TOLERANCE = 2e-4

XS = [0.4 * i for i in range(51)]  # 0, 0.4, ... 20
TARGETS = [math.sin(x) ** 2 for x in XS]


class Net(nn.Module):
    """1 number in, 10 sigmoid units, 1 number out."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(1, 10)
        self.sigmoid = nn.Sigmoid()
        self.fc2 = nn.Linear(10, 1)

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        return self.fc2(self.sigmoid(self.fc1(x)))


def start(model: nn.Module) -> None:
    """Overwrites all parameters with uniform numbers from -1 to 1, row by row."""
    random.seed(1)
    with norch.no_grad():  # a value put into a parameter is no step of a computation
        for p in model.parameters():  # fc1.weight, fc1.bias, fc2.weight, fc2.bias
            p.copy_(norch.tensor([random.uniform(-1, 1) for _ in range(p.numel())]).reshape(p.shape))


def train(epochs: int = 10, verbose: bool = False, device: str = "cpu") -> tuple[Net, list[float]]:
    """The trained network, and the loss of the last sample of each epoch."""
    model = Net()
    start(model)
    model.to(device)
    criterion = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    losses = []
    for epoch in range(epochs):
        for x, y in zip(XS, TARGETS):
            sample, target = norch.Tensor([[x]]), norch.Tensor([[y]])  # a batch of one row with one number
            loss = criterion(model(sample.to(device)), target.to(device))
            optimizer.zero_grad()  # gradients add up; a step wants only its own
            loss.backward()
            optimizer.step()
        if verbose:
            print(f"Epoch [{epoch + 1}/{epochs}], Loss: {loss[0]:.4f}")  # a 0-d tensor gives itself for [0]
        losses.append(loss.item())
    return model, losses


def plot(model: Net, path: str) -> None:
    """Draws the target and what the network makes of it."""
    try:
        import matplotlib
    except ImportError:
        sys.exit('The plot needs matplotlib: pip install ".[examples]"')
    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt

    fine = norch.linspace(0, 20, 401).reshape(-1, 1)
    with norch.no_grad():
        fit = model(fine.to(model.fc1.weight.device)).flatten()
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(XS, TARGETS, "o", markersize=4, color="#4c72b0", label="samples of sin²(x)")
    axes.plot(fine.flatten().tolist(), fit.tolist(), color="#c44e52", linewidth=2, label="the network")
    axes.set(xlabel="x", ylabel="y", title="Ten epochs: the mean is found, the waves are not yet")
    axes.legend(loc="upper right", ncols=2, frameon=False)
    axes.set_ylim(top=1.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main() -> int:
    """Trains, shows and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Fits sin(x) squared and checks ten known losses.")
    parser.add_argument("--plot", metavar="PNG", help="also draw the fit into this file (needs matplotlib)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()

    try:
        model, losses = train(verbose=True, device=options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    if options.plot:
        plot(model, options.plot)
    worst = max(abs(ours - known) for ours, known in zip(losses, KNOWN_LOSSES))
    good = worst <= TOLERANCE
    print(f"the ten losses {'agree with' if good else 'DIFFER from'} the known ones: at most {worst:.1e} apart")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
