"""A pendulum that nobody measured: a network learns its swing from the equation of motion alone.

    python examples/pendulum.py [--steps N] [--seed N] [--out pendulum.png] [--device cpu]

It takes 3 s of processor time on two cores of an AMD EPYC.

The angle u(t) of a pendulum of length g obeys u'' + sin(u) = 0. A network stands for u, autograd gives its second
derivative, and what is left of the equation at random times is the loss: a physics-informed network (Raissi,
Perdikaris and Karniadakis, Journal of Computational Physics 378, 2019). u(0) and u'(0) are right by construction: the
output of the network is multiplied by what begins as t². Adam comes near a solution, L-BFGS makes it exact. Checked
against the exact solution by Jacobi's elliptic function sn: u(t) = 2 asin(k sn(K - t, k²)), with k = sin(u(0) / 2)
and K a quarter of the period.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import norch
from norch import nn, optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    import numpy as np
    from scipy.special import ellipj, ellipk
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

START = 2.0  # radians: far from the small angles for which the swing is a sine
END = 8.0  # about one period, which is 8.35
ALLOWED = 0.002  # radians between network and exact solution, anywhere


class Swing(nn.Module):
    """Times (N, 1) to angles (N, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, t: norch.Tensor) -> norch.Tensor:
        return START + (1 - norch.exp(-t * t)) * 3 * self.body(6 * t / END - 3)


def left_over(model: Swing, t: norch.Tensor) -> norch.Tensor:
    """u'' + sin(u) at times (N, 1), which is 0 for the true motion."""
    t = t.requires_grad_()
    u = model(t)
    (speed,) = norch.autograd.grad(u.sum(), t, create_graph=True)  # each u depends on its own t alone
    (acceleration,) = norch.autograd.grad(speed.sum(), t, create_graph=True)
    return acceleration + u.sin()


def train(model: Swing, steps: int, device: str) -> list[float]:
    """The loss of each step."""
    losses = []

    def note(t: norch.Tensor) -> norch.Tensor:
        optimizer.zero_grad()
        loss = left_over(model, t).square().mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer: optim.Optimizer = optim.Adam(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        reach = END * min(1.0, 0.15 + 1.4 * step / steps)  # early times first, as the later ones follow from them
        note(norch.rand(128, 1, device=device) * reach)
        optimizer.step()
        schedule.step()
    optimizer = optim.LBFGS(
        model.parameters(), max_iter=steps, history_size=50, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )
    times = norch.linspace(0, END, 200, device=device).reshape(-1, 1)
    optimizer.step(lambda: note(times.detach()))
    return losses


def exact(t: np.ndarray) -> np.ndarray:
    """The angle of the pendulum at times t."""
    k = np.sin(START / 2)
    return 2 * np.arcsin(k * ellipj(ellipk(k * k) - t, k * k)[0])


def draw(path: str, losses: list[float], t: np.ndarray, found: np.ndarray) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.plot(t, exact(t), color="black", linewidth=3, alpha=0.3, label="exact")
    left.plot(t, found, color="#d62728", linestyle="--", label="network")
    left.plot(t, START * np.cos(t), color="#7f7f7f", linestyle=":", label="a sine, as for small angles")
    left.set(xlabel="time", ylabel="angle", title="The swing")
    left.legend()
    right.semilogy(losses, color="#1f77b4", linewidth=0.8)
    right.set(xlabel="step", title="What is left of the equation, squared")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, compares, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Learns a pendulum's swing from its equation.")
    parser.add_argument("--steps", type=int, default=1000, help="of Adam, and then of L-BFGS (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and times (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="pendulum.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    norch.manual_seed(options.seed)
    try:
        model = Swing().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    began = time.perf_counter()
    losses = train(model, options.steps, options.device)
    print(f"trained in {time.perf_counter() - began:.1f} s")
    t = np.linspace(0, END, 201)
    with norch.no_grad():
        found = (
            model(norch.tensor(t, dtype=norch.float32, device=options.device).reshape(-1, 1)).flatten().cpu().numpy()
        )
    draw(options.out, losses, t, found)
    worst = float(np.abs(found - exact(t)).max())
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"largest error of the angle: {worst:.5f}")
    if worst > ALLOWED:
        print(f"it should be at most {ALLOWED}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
