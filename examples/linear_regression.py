"""A line through noisy points: the smallest model there is, and one whose answer is known beforehand.

    python examples/linear_regression.py [--out line.png] [--device cpu]

It takes 1 s of processor time on two cores of an AMD EPYC.

Gradient descent looks for the slope and the intercept that make the squared error smallest. For a line, schoolbook
algebra finds the same two numbers in closed form, so the script can check what training came to, and fails
where they differ.
"""

from __future__ import annotations

import argparse
import sys

import norch
from norch import nn, optim

TRUE_SLOPE, TRUE_INTERCEPT, NOISE = 2.5, -1.0, 0.8
TOLERANCE = 1e-3


def make_points(count: int = 100, seed: int = 0) -> tuple[norch.Tensor, norch.Tensor]:
    """x from -3 to 3 and y = slope x + intercept + noise, both of shape (count, 1)."""
    norch.manual_seed(seed)
    x = norch.rand(count, 1) * 6 - 3
    y = TRUE_SLOPE * x + TRUE_INTERCEPT + NOISE * norch.randn(count, 1)
    return x, y


def fit(x: norch.Tensor, y: norch.Tensor, steps: int = 100) -> tuple[float, float, list[float]]:
    """Slope, intercept and the loss of each step, found by gradient descent."""
    model = nn.Linear(1, 1).to(x.device)  # y = weight x + bias
    criterion = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model.weight.item(), model.bias.item(), losses


def closed_form(x: norch.Tensor, y: norch.Tensor) -> tuple[float, float]:
    """The same by algebra: covariance over variance, and a line through the point of means."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).sum() / (dx * dx).sum()
    intercept = y.mean() - slope * x.mean()
    return slope.item(), intercept.item()


def plot(x: norch.Tensor, y: norch.Tensor, slope: float, intercept: float, losses: list[float], path: str) -> None:
    """Draws the points with the line, and how the loss fell."""
    try:
        import matplotlib
    except ImportError:
        sys.exit('The plot needs matplotlib: pip install ".[examples]"')
    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(x.flatten().tolist(), y.flatten().tolist(), "o", markersize=4, color="#4c72b0", label="points")
    ends = [-3.0, 3.0]
    label = f"y = {slope:.2f} x {'-' if intercept < 0 else '+'} {abs(intercept):.2f}"
    left.plot(ends, [slope * end + intercept for end in ends], color="#c44e52", linewidth=2, label=label)
    left.set(xlabel="x", ylabel="y", title="The line that was found")
    left.legend(loc="upper left")
    right.semilogy(range(1, len(losses) + 1), losses, color="#c44e52", linewidth=2)
    right.axhline(NOISE**2, color="gray", linestyle=":", label="variance of the noise")
    right.set(xlabel="step", ylabel="mean squared error", title="Training")
    right.legend(loc="upper right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main() -> int:
    """Fits, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Fits a line to noisy points and checks it by algebra.")
    parser.add_argument("--out", metavar="PNG", default="linear_regression.png", help="the plot (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the points and of the first guess (default: 0)")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    options = parser.parse_args()

    try:
        x, y = (part.to(options.device) for part in make_points(seed=options.seed))
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    slope, intercept, losses = fit(x, y)
    wanted_slope, wanted_intercept = closed_form(x, y)
    print(f"slope      {slope:8.4f}   closed form {wanted_slope:8.4f}   the points came from {TRUE_SLOPE}")
    print(f"intercept  {intercept:8.4f}   closed form {wanted_intercept:8.4f}   the points came from {TRUE_INTERCEPT}")
    plot(x, y, slope, intercept, losses, options.out)
    if max(abs(slope - wanted_slope), abs(intercept - wanted_intercept)) > TOLERANCE:
        print(f"training and algebra differ by more than {TOLERANCE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
