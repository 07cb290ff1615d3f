"""Digits out of noise, the one that is asked for: denoising diffusion.

    python examples/diffusion_digits.py [--steps N] [--seed N] [--out diffusion_digits.png] [--device cpu]

It takes 32 s of processor time on two cores of an AMD EPYC.

Noise is added to real scans of 8 x 8 pixels, in 100 small steps, until nothing else is left, and a network learns to
tell the noise from the scan (Ho, Jain and Abbeel, "Denoising Diffusion Probabilistic Models", NeurIPS 2020,
algorithms 1 and 2), by the cosine schedule of Nichol and Dhariwal ("Improved Denoising Diffusion Probabilistic
Models", ICML 2021, equation 17). Then it goes the way back from pure noise. It is told which digit it is to be, or not
in a tenth of the cases, and what that changes is exaggerated (Ho and Salimans, "Classifier-Free Diffusion Guidance",
2022, equation 6). Checked: another network, which learnt to read from the real scans, reads the drawn digits as those
that were asked for, and they differ from each other as the real ones do.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time

import norch
import norch.nn.functional as F
from norch import nn, optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 90.0  # per cent of the drawn digits that are read as what was asked for
VARIED = (0.5, 1.5)  # the variance of their pixels within a digit, in that of the real scans
TIMES = 100  # steps from a scan to noise
ANY = 10  # stands for a digit that is not told
UNTOLD = 0.1  # how often
GUIDANCE = 1.0
WIDTH = 256


def schedule(device: str) -> norch.Tensor:
    """How much of a scan is left (TIMES + 1,), in variance: the ᾱ of the paper."""
    t = norch.arange(TIMES + 1, device=device) / TIMES
    left = ((t + 0.008) / 1.008 * (math.pi / 2)).cos().square()
    return (left / left[0]).clamp(min=1e-4)


class Block(nn.Module):
    """Hidden numbers (N, WIDTH) to the same, knowing the time and the digit (N, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.first, self.told, self.second = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: norch.Tensor, condition: norch.Tensor) -> norch.Tensor:
        return x + self.second(F.silu(self.first(self.norm(x)) + self.told(condition)))


class Denoiser(nn.Module):
    """Noisy pixels (N, 64), times (N,) and digits (N,), or ANY, to the noise (N, 64) in them."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.outside = nn.Linear(64, WIDTH), nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 64))
        self.time, self.digit = nn.Embedding(TIMES + 1, WIDTH), nn.Embedding(11, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        angles = norch.arange(TIMES + 1)[:, None] * norch.exp(norch.linspace(0, -4, WIDTH // 2))
        self.time.weight.data.copy_(norch.cat([angles.sin(), angles.cos()], 1))  # near times begin alike

    def forward(self, x: norch.Tensor, time: norch.Tensor, digit: norch.Tensor) -> norch.Tensor:
        condition, x = self.time(time) + self.digit(digit), self.inside(x)
        for block in self.blocks:
            x = block(x, condition)
        return self.outside(x)


def train(model: Denoiser, scans: norch.Tensor, digits: norch.Tensor, steps: int) -> list[float]:
    """The loss of each step, on 128 random scans (N, 64) from -1 to 1, each at a random time."""
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    decay = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    left = schedule(str(scans.device))

    @norch.capture
    def step(chosen: norch.Tensor, time: norch.Tensor) -> norch.Tensor:
        keep, noise = left[time][:, None], norch.randn(len(chosen), 64, device=scans.device)
        told = norch.where(norch.rand(len(chosen), device=scans.device) < UNTOLD, ANY, digits[chosen])
        loss = F.mse_loss(model(keep.sqrt() * scans[chosen] + (1 - keep).sqrt() * noise, time, told), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(steps):
        chosen = norch.randint(len(scans), (128,), device=scans.device)
        losses.append(step(chosen, norch.randint(1, TIMES + 1, (128,), device=scans.device)).item())
        decay.step()
    return losses


@norch.no_grad()
def sample(model: Denoiser, digits: norch.Tensor) -> norch.Tensor:
    """All steps (TIMES + 1, N, 64) from noise to drawings of digits (N,)."""
    left = schedule(str(digits.device))
    x = norch.randn(len(digits), 64, device=digits.device)
    film = [x]
    for t in range(TIMES, 0, -1):
        time = norch.full_like(digits, t)
        told, untold = model(x.repeat(2, 1), time.repeat(2), norch.cat([digits, norch.full_like(digits, ANY)])).chunk(2)
        noise = (1 + GUIDANCE) * told - GUIDANCE * untold
        now, before = left[t].item(), left[t - 1].item()
        beta = 1 - now / before
        scan = ((x - math.sqrt(1 - now) * noise) / math.sqrt(now)).clamp(-1, 1)  # what it would be without the noise
        x = (math.sqrt(before) * beta * scan + math.sqrt(1 - beta) * (1 - before) * x) / (1 - now)  # equation 7
        x = x + math.sqrt(beta * (1 - before) / (1 - now)) * norch.randn_like(x)
        film.append(x)
    return norch.stack(film)


def reader(scans: norch.Tensor, digits: norch.Tensor) -> nn.Module:
    """A network that reads scans (N, 64), trained on real ones."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(scans.device)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    @norch.capture
    def step(chosen: norch.Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(scans[chosen]), digits[chosen]).backward()
        optimizer.step()

    for _ in range(1000):
        step(norch.randint(len(scans), (128,), device=scans.device))
    return model


def variance(scans: norch.Tensor, digits: norch.Tensor) -> float:
    """The mean over digits and pixels of how much scans (N, 64) of one digit differ."""
    return sum(scans[digits == digit].var(0).mean().item() for digit in range(10)) / 10


def sheet(scans: norch.Tensor, columns: int) -> list[list[float]]:
    """Scans (N, 64) in rows of so many, with a line between them."""
    tiles = F.pad(scans.reshape(-1, columns, 8, 8), (1, 1, 1, 1), value=-1.0)
    return tiles.transpose(1, 2).reshape(-1, 10 * columns).tolist()


def draw(path: str, losses: list[float], film: norch.Tensor, real: norch.Tensor) -> None:
    """The loss, the film of one drawing of each digit, five more of each, and five real scans of each."""
    figure, (left, *others) = plt.subplots(
        1, 4, figsize=(15, 4.6), width_ratios=[1, 1.1, 0.55, 0.55], layout="constrained"
    )
    groups = [losses[i : i + 20] for i in range(0, len(losses), 20)]
    left.semilogy([20 * i for i in range(len(groups))], [sum(group) / len(group) for group in groups])
    left.set(xlabel="step", title="Mean squared error of the noise")
    times = [0, 20, 40, 60, 70, 80, 85, 90, 95, TIMES]
    parts = {
        "From noise to digits": (film[times, :10].transpose(0, 1), len(times)),
        "Others": (film[-1, 10:60].reshape(5, 10, 64).transpose(0, 1), 5),
        "Real ones": (real, 5),
    }
    for axis, (title, (scans, columns)) in zip(others, parts.items()):
        axis.imshow(sheet(scans.clamp(-1, 1), columns), cmap="gray_r", vmin=-1, vmax=1)
        axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Draws digits by denoising diffusion.")
    parser.add_argument("--steps", type=int, default=4000, help="of the optimizer (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, scans and noise (default: 0)")
    parser.add_argument(
        "--out", metavar="PNG", default="diffusion_digits.png", help="the picture (default: %(default)s)"
    )
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    norch.manual_seed(options.seed)
    try:
        model = Denoiser().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    data = load_digits()
    scans = norch.tensor(data.data / 8 - 1, dtype=norch.float32, device=options.device)
    digits = norch.tensor(data.target, dtype=norch.int64, device=options.device)
    began = time.perf_counter()
    losses = train(model, scans, digits, options.steps)
    print(f"trained in {time.perf_counter() - began:.1f} s, last losses {sum(losses[-100:]) / len(losses[-100:]):.3f}")

    asked = norch.arange(1000, device=options.device) % 10
    began = time.perf_counter()
    film = sample(model, asked)
    print(f"drew 1,000 digits in {time.perf_counter() - began:.1f} s")
    read = reader(scans[::2], digits[::2])
    with norch.no_grad():
        known = 100 * (read(scans[1::2]).argmax(1) == digits[1::2]).float().mean().item()
        right = 100 * (read(film[-1]).argmax(1) == asked).float().mean().item()
    varied = variance(film[-1], asked) / variance(scans, digits)
    draw(options.out, losses, film, norch.cat([scans[digits == digit][:5] for digit in range(10)]))
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"real scans that the reader had not seen, read rightly: {known:.1f}%")
    print(f"variance of the drawings of a digit: {varied:.2f} of that of real scans")
    print(f"drawings read as the digit that was asked for: {right:.1f}%")
    if right < REQUIRED or not VARIED[0] < varied < VARIED[1]:
        print(f"it should be at least {REQUIRED:.0f}%, and the variance {VARIED[0]} to {VARIED[1]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
