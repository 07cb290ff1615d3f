"""A curve through a few noisy points, with how sure one can be of it: a Gaussian process.

    python examples/gaussian_process.py [--seed N] [--out gaussian_process.png]

It takes 2 s of processor time on two cores of an AMD EPYC.

All functions are possible, smooth ones more so: the values at any points are jointly normal, and the kernel says how
much two of them have to do with each other. What is measured turns that into a curve with a band (Rasmussen and
Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1). The scale, the height and the noise are
those that make the measurements most probable, found by L-BFGS on derivatives through a Cholesky decomposition.
Checked: the band of 95 % holds about 95 % of new measurements, and the noise is found.
"""

from __future__ import annotations

import argparse
import math
import os
import sys

import norch
from norch import nn, optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    import scipy  # noqa: F401  (what norch.linalg calls)
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

NOISE = 0.15  # standard deviation of a measurement
GAP = (2.5, 4.5)  # where nothing was measured


def truth(x: norch.Tensor) -> norch.Tensor:
    """What is measured, at x (N,)."""
    return (1.5 * x).sin() + x / 4


def measure(count: int) -> tuple[norch.Tensor, norch.Tensor]:
    """x and y (count,), between 0 and 8 and outside the gap."""
    x = norch.rand(count) * (8 - GAP[1] + GAP[0])
    x = norch.where(x < GAP[0], x, x + GAP[1] - GAP[0])
    return x, truth(x) + NOISE * norch.randn(count)


class GaussianProcess(nn.Module):
    """With the squared-exponential kernel: the logarithms of length scale, height and noise are its parameters."""

    def __init__(self, x: norch.Tensor, y: norch.Tensor) -> None:
        super().__init__()
        self.x, self.y = x, y
        self.log_scale, self.log_height, self.log_noise = (nn.Parameter(norch.tensor(v)) for v in (0.0, 0.0, -1.0))

    def kernel(self, a: norch.Tensor, b: norch.Tensor) -> norch.Tensor:
        """Covariances (N, M) of the values at a (N,) and at b (M,)."""
        apart = (a[:, None] - b) / self.log_scale.exp()
        return (2 * self.log_height).exp() * norch.exp(-apart.square() / 2)

    def factor(self) -> norch.Tensor:
        """The lower triangle L (N, N) with L Lᵀ = the covariance of the measurements."""
        return norch.linalg.cholesky(self.kernel(self.x, self.x) + (2 * self.log_noise).exp() * norch.eye(len(self.x)))

    def cost(self) -> norch.Tensor:
        """The negative logarithm of the probability density of the measurements."""
        lower = self.factor()
        weights = norch.cholesky_solve(self.y[:, None], lower)[:, 0]
        return 0.5 * self.y @ weights + lower.diagonal().log().sum() + 0.5 * len(self.y) * math.log(2 * math.pi)

    def forward(self, at: norch.Tensor) -> tuple[norch.Tensor, norch.Tensor]:
        """Mean and standard deviation (M,) of a new measurement at each place of `at` (M,)."""
        lower, cross = self.factor(), self.kernel(self.x, at)
        mean = cross.T @ norch.cholesky_solve(self.y[:, None], lower)[:, 0]
        explained = norch.linalg.solve_triangular(lower, cross, upper=False).square().sum(0)
        variance = (2 * self.log_height).exp() - explained + (2 * self.log_noise).exp()
        return mean, variance.sqrt()


def fit(model: GaussianProcess) -> None:
    """Sets the parameters to those that make the measurements most probable."""
    optimizer = optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> norch.Tensor:
        optimizer.zero_grad()
        cost = model.cost()
        cost.backward()
        return cost

    optimizer.step(closure)


def draw(path: str, model: GaussianProcess) -> None:
    x = norch.linspace(-0.5, 9, 300)
    mean, deviation = model(x)
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    low, high = (mean - 1.96 * deviation).tolist(), (mean + 1.96 * deviation).tolist()
    axes.fill_between(x.tolist(), low, high, color="#1f77b4", alpha=0.2, label="95 % of new measurements")
    axes.plot(x.tolist(), mean.tolist(), color="#1f77b4", label="mean")
    axes.plot(x.tolist(), truth(x).tolist(), color="black", linestyle=":", label="what was measured")
    axes.plot(model.x.tolist(), model.y.tolist(), "k+", label="measurements")
    axes.legend(loc="upper right", ncols=2)
    axes.set(xlabel="x", title="Where nothing was measured, the band is wide")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Fits, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Fits a Gaussian process to noisy points.")
    parser.add_argument("--seed", type=int, default=0, help="of the measurements (default: 0)")
    parser.add_argument(
        "--out", metavar="PNG", default="gaussian_process.png", help="the picture (default: %(default)s)"
    )
    options = parser.parse_args()

    norch.manual_seed(options.seed)
    norch.set_default_dtype(norch.float64)
    model = GaussianProcess(*measure(100))
    fit(model)
    with norch.no_grad():
        draw(options.out, model)
        x, y = measure(1000)
        mean, deviation = model(x)
        inside = 100 * ((y - mean).abs() < 1.96 * deviation).double().mean().item()
    noise = model.log_noise.exp().item()
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"noise: {noise:.3f}, where {NOISE} is true")
    print(f"new measurements inside the band: {inside:.1f}%")
    if not (88 <= inside <= 99 and 0.6 * NOISE < noise < 1.6 * NOISE):
        print(f"it should be 88 to 99 %, and the noise near {NOISE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
