"""A map of handwritten digits, and digits that nobody wrote: a variational autoencoder with two latent numbers.

    python examples/vae_digits.py [--epochs N] [--seed N] [--out vae_digits.png] [--device cpu]

It takes 7 s of processor time on two cores of an AMD EPYC.

The encoder turns 8 x 8 pixels into a normal distribution over the plane, the decoder turns a point of the plane into
pixels. Both are trained to make the evidence of the scans large (Kingma and Welling, "Auto-Encoding Variational Bayes",
2014, equation 3), and are told nothing of which digit a scan shows. The picture shows where the held-out fifth of the
1,797 scans falls, coloured by digit, and what the decoder draws all over the plane. Checked: the bound of the held-out
scans, and that digits of a kind lie together.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import norch
from norch import nn, optim
from norch.distributions import Bernoulli, Independent, Normal, kl_divergence
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

ALLOWED = 25.0  # nats a held-out scan
REQUIRED = 70.0  # per cent of the held-out scans whose nearest neighbour on the map is the same digit
SPLIT_SEED = 0  # the same fifth is held out whatever --seed says


def load() -> tuple[TensorDataset, TensorDataset]:
    """Pixels (N, 64) from 0 to 1 to train on; pixels to be tested by, and which digits (N,) they show."""
    scans = load_digits()
    train_x, test_x, _, test_y = train_test_split(
        scans.data / 16, scans.target, test_size=0.2, stratify=scans.target, random_state=SPLIT_SEED
    )
    train_x, test_x = (norch.tensor(part, dtype=norch.float32) for part in (train_x, test_x))
    return TensorDataset(train_x), TensorDataset(test_x, norch.tensor(test_y, dtype=norch.int64))


class Autoencoder(nn.Module):
    """Pixels (N, 64) to distributions over the plane, and points (N, 2) of it to distributions over pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))

    def encode(self, x: norch.Tensor) -> Independent:
        mean, log_deviation = self.encoder(x).chunk(2, dim=1)
        return Independent(Normal(mean, log_deviation.exp()), 1)

    def decode(self, z: norch.Tensor) -> Independent:
        # A pixel is the chance of ink, so that shades of grey count as chances too.
        return Independent(Bernoulli(logits=self.decoder(z), validate_args=False), 1)

    def bound(self, x: norch.Tensor) -> norch.Tensor:
        """What a scan costs at most, in nats (N,): to say where it lies, and then what it looks like."""
        where = self.encode(x)
        prior = Independent(Normal(norch.zeros_like(where.mean), norch.ones_like(where.mean)), 1)
        return kl_divergence(where, prior) - self.decode(where.rsample()).log_prob(x)


def train(model: Autoencoder, data: TensorDataset, epochs: int, seed: int, device: str) -> list[float]:
    """The mean bound of each epoch."""
    loader = DataLoader(data, batch_size=64, shuffle=True, generator=seed)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    losses: list[float] = []
    for _ in (progress := tqdm(range(epochs), desc="training", unit="epoch")):
        total = 0.0
        for (batch,) in loader:
            loss = model.bound(batch.to(device)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        losses.append(total / len(loader))
        progress.set_postfix(bound=f"{losses[-1]:.2f}", refresh=False)
    return losses


def neighbours_agree(places: norch.Tensor, digits: norch.Tensor) -> float:
    """Per cent of the points (N, 2) whose nearest other point belongs to the same digit."""
    apart = norch.cdist(places, places).fill_diagonal_(float("inf"))
    return 100 * (digits[apart.argmin(1)] == digits).float().mean().item()


def draw(path: str, losses: list[float], model: Autoencoder, places: norch.Tensor, digits: norch.Tensor) -> None:
    """The bound, the map of the scans, and the digits that the decoder draws where a 12 x 12 grid lies on the plane."""
    quantile = statistics.NormalDist().inv_cdf
    line = norch.tensor([quantile((i + 0.5) / 12) for i in range(12)], device=places.device)
    across, up = norch.meshgrid(line, line.flip(0), indexing="xy")
    with norch.no_grad():
        drawn = model.decode(norch.stack([across, up], -1).reshape(-1, 2)).mean.view(12, 12, 8, 8)
    sheet = nn.functional.pad(drawn, (1, 1, 1, 1)).transpose(1, 2).reshape(120, 120).tolist()

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 5.2), layout="constrained")
    left.plot(range(1, len(losses) + 1), losses, color="#1f77b4", linewidth=2)
    left.set(xlabel="epoch", ylabel="nats a scan", title="Bound on the cost of a training scan")
    left.grid(alpha=0.25)
    seen = middle.scatter(*places.t().tolist(), c=digits.tolist(), cmap="tab10", vmin=-0.5, vmax=9.5, s=14)
    middle.set(title="Where the held-out scans fall", aspect="equal")
    figure.colorbar(seen, ax=middle, ticks=range(10), label="digit, which the network was not told")
    right.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    right.set(title="What the decoder draws over the plane", xticks=[], yticks=[])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Trains, tests, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Trains a variational autoencoder on real handwritten digits.")
    parser.add_argument("--epochs", type=int, default=200, help="times through the training digits (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, shuffling and noise (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="vae_digits.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to train (default: cpu)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    norch.manual_seed(options.seed)
    training, test = load()
    try:
        model = Autoencoder().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    began = time.perf_counter()
    losses = train(model, training, options.epochs, options.seed, options.device)
    print(f"trained in {time.perf_counter() - began:.1f} s")

    pixels, digits = (part.to(options.device) for part in test.tensors)
    with norch.no_grad():
        bound = model.bound(pixels).mean().item()
        places = model.encode(pixels).mean
    agreeing = neighbours_agree(places, digits)
    draw(options.out, losses, model, places, digits)
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"held-out bound: {bound:.2f} nats")
    print(f"nearest neighbours of one digit: {agreeing:.1f}%")
    if bound > ALLOWED or agreeing < REQUIRED:
        print(f"it should be at most {ALLOWED:.0f} nats, and at least {REQUIRED:.0f}%", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
