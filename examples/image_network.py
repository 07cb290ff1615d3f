"""A photograph kept in a network: position in, colour out.

    python examples/image_network.py [--steps N] [--seed N] [--out image_network.png] [--device cpu]

It takes 22 s of processor time on two cores of an AMD EPYC.

A network is trained to give the colour (3 numbers) of a pixel for its position (2 numbers). On the bare position it
learns a blur: networks like slow functions best. If the position is first turned into sines and cosines of random
frequencies, it learns the petals too (Tancik et al., "Fourier Features Let Networks Learn High Frequency Functions in
Low Dimensional Domains", NeurIPS 2020, section 5). Every second pixel of the photograph is for training, and what
lies between is checked: the peak signal-to-noise ratio there, in decibels. The training step is captured.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time

import norch
from norch import nn, optim

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_sample_image
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 24.0  # decibels between the training pixels
SIDE = 160  # pixels of the square that is cut out of the photograph, at half its resolution
FREQUENCIES = 96
SPREAD = 8.0  # standard deviation of the frequencies, in waves across the picture


def photograph() -> norch.Tensor:
    """Colours (SIDE, SIDE, 3) from 0 to 1, of a flower."""
    whole = norch.tensor(load_sample_image("flower.jpg")[40 : 40 + 2 * SIDE, 200 : 200 + 2 * SIDE] / 255.0)
    return whole.float().reshape(SIDE, 2, SIDE, 2, 3).mean((1, 3))


class Picture(nn.Module):
    """Positions (N, 2) from -1 to 1 to colours (N, 3)."""

    frequencies: norch.Tensor

    def __init__(self, fourier: bool) -> None:
        super().__init__()
        self.register_buffer("frequencies", norch.randn(2, FREQUENCIES) * SPREAD * math.pi if fourier else None)
        inputs = 2 * FREQUENCIES if fourier else 2
        self.body = nn.Sequential(
            *(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3), nn.Sigmoid()),
        )

    def forward(self, at: norch.Tensor) -> norch.Tensor:
        if self.frequencies is not None:
            waves = at @ self.frequencies
            at = norch.cat([waves.sin(), waves.cos()], 1)
        return self.body(at)


def train(model: Picture, at: norch.Tensor, colours: norch.Tensor, steps: int) -> list[float]:
    """The signal-to-noise ratio of every tenth step, on random pixels of those to train on."""
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    @norch.capture
    def step(chosen: norch.Tensor) -> norch.Tensor:
        loss = nn.functional.mse_loss(model(at[chosen]), colours[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for number in range(steps):
        loss = step(norch.randint(len(at), (2048,), device=at.device))
        schedule.step()
        if number % 10 == 0:
            losses.append(decibels(loss.item()))
    return losses


def decibels(error: float) -> float:
    """The peak signal-to-noise ratio of colours from 0 to 1 with a mean squared error."""
    return -10 * math.log10(error)


def draw(path: str, pictures: dict[str, norch.Tensor], losses: dict[str, list[float]]) -> None:
    figure, axes = plt.subplots(1, len(pictures) + 1, figsize=(14, 3.8), layout="constrained")
    for (name, picture), axis in zip(pictures.items(), axes):
        axis.imshow(picture.clamp(0, 1).tolist())
        axis.set(title=name, xticks=[], yticks=[])
    for name, values in losses.items():
        axes[-1].plot(range(0, 10 * len(values), 10), values, label=name)
    axes[-1].set(xlabel="step", title="decibels of the pixels that it is trained on")
    axes[-1].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains twice, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Keeps a photograph in a network.")
    parser.add_argument("--steps", type=int, default=1500, help="of the optimizer (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and pixels (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="image_network.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    norch.manual_seed(options.seed)
    try:
        photo = photograph().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    line = norch.linspace(-1, 1, SIDE, device=options.device)
    places = norch.stack(norch.meshgrid(line, line, indexing="ij"), -1)
    known = norch.zeros(SIDE, SIDE, dtype=norch.bool, device=options.device)
    known[::2, ::2] = known[1::2, 1::2] = True  # the black squares of a chessboard
    pictures, losses, found = {f"the photograph, {SIDE} x {SIDE}": photo}, {}, 0.0
    for name, fourier in (("bare position", False), ("waves of the position", True)):
        model = Picture(fourier).to(options.device)
        began = time.perf_counter()
        losses[name] = train(model, places[known], photo[known], options.steps)
        with norch.no_grad():
            pictures[name] = model(places.reshape(-1, 2)).reshape(SIDE, SIDE, 3)
        found = decibels((pictures[name] - photo)[~known].square().mean().item())
        print(f"{name}: trained in {time.perf_counter() - began:.1f} s, {found:.1f} dB between the pixels")
    draw(options.out, pictures, losses)
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"with waves: {found:.1f} dB")
    if found < REQUIRED:
        print(f"it should be at least {REQUIRED:.0f} dB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
