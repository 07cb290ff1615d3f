"""A ResNet-18 written with norch takes torchvision's weights, and computes what torchvision's computes.

    python examples/resnet_torchvision.py [--size N] [--seed N] [--out resnet_torchvision.png]

The modules have torchvision's names, so that the state dict, written by torch.save and read by norch.load, fits as it
stands (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016). The weights are random, as nothing is
downloaded, and the statistics of the batch norms are moved from 0 and 1. Compared are the scores in eval mode, and in
train mode the loss, the gradient of each parameter and each statistic after the step. Both compute in float32; what
both should find is computed by torchvision in float64. Where a number lies so close to 0 that rounding decides whether
a ReLU lets it pass, gradients before it are off by more than rounding, in either library. Checked: the median of
norch's errors is at most twice PyTorch's, and none is above 1 %.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile

import norch
import norch.nn.functional as F
from norch import nn

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
    import torch
    import torchvision
except ImportError as error:
    sys.exit(f"This example needs {error.name}, which is not installed: pip install torch torchvision matplotlib")
except RuntimeError as error:
    sys.exit(f"This example needs a torchvision that was built for the torch that is installed: {error}")

ALLOWED = 2.0  # times PyTorch's error, for the median
LARGEST = 0.01  # of all errors


class Block(nn.Module):
    """Two convolutions, and what came in added to what they make of it."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or before != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """Images (N, 3, H, W) to scores (N, 1000)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: norch.Tensor) -> norch.Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))


def results(model, images, labels, cross_entropy) -> dict[str, torch.Tensor]:
    """What a model, of norch or PyTorch, computes: scores, and from a training step loss, gradients and statistics."""
    model.eval()
    found = {"scores": model(images)}
    model.train()
    found["loss"] = cross_entropy(model(images), labels)
    found["loss"].backward()
    found |= {f"gradient of {name}": p.grad for name, p in model.named_parameters()}
    found |= {name: b for name, b in model.named_buffers() if name.endswith(("mean", "var"))}
    return {name: torch.tensor(x.detach().numpy()).double() for name, x in found.items()}


def errors(found: dict[str, torch.Tensor], true: dict[str, torch.Tensor]) -> dict[str, float]:
    """The norm of each difference, over that of what is right."""
    return {name: ((x - true[name]).norm() / true[name].norm()).item() for name, x in found.items()}


def draw(path: str, ours: dict[str, float], theirs: dict[str, float]) -> None:
    figure, axes = plt.subplots(figsize=(11, 4), layout="constrained")
    names = [name for name in ours if name.startswith("gradient") and name.endswith("weight")]
    places = range(len(names))
    axes.semilogy(places, [theirs[name] for name in names], "o", color="#d9822b", label="torchvision on PyTorch")
    axes.semilogy(places, [ours[name] for name in names], "x", color="#4269d0", label="ResNet18 on norch")
    axes.set_xticks(places, [name.split()[-1].removesuffix(".weight") for name in names], rotation=90, fontsize=7)
    axes.set(ylabel="relative error", title="Gradients of the weights in float32, from the input to the scores")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Loads, compares, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Compares a ResNet-18 with torchvision's, by its state dict.")
    parser.add_argument("--size", type=int, default=96, help="of the sides of the images (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, statistics and images (default: 0)")
    parser.add_argument(
        "--out", metavar="PNG", default="resnet_torchvision.png", help="the picture (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.size < 32:
        parser.error("--size must be at least 32")

    torch.manual_seed(options.seed)
    theirs = torchvision.models.resnet18(weights=None)
    for name, buffer in theirs.named_buffers():
        if name.endswith("mean"):
            buffer.normal_(0, 0.2)
        elif name.endswith("var"):
            buffer.uniform_(0.5, 2)
    images, labels = torch.randn(4, 3, options.size, options.size), torch.randint(1000, (4,))

    with tempfile.TemporaryDirectory() as folder:
        torch.save(theirs.state_dict(), os.path.join(folder, "resnet18.pt"))
        state = norch.load(os.path.join(folder, "resnet18.pt"))
    model = ResNet18()
    model.load_state_dict(state)
    print(f"{len(state)} tensors of torchvision {torchvision.__version__} loaded")

    found = results(model, norch.from_dlpack(images), norch.from_dlpack(labels), F.cross_entropy)
    cross_entropy = torch.nn.functional.cross_entropy
    reference = torchvision.models.resnet18(weights=None)
    reference.load_state_dict(theirs.state_dict())
    true = results(reference.double(), images.double(), labels, cross_entropy)
    ours, pytorchs = errors(found, true), errors(results(theirs, images, labels, cross_entropy), true)
    draw(options.out, ours, pytorchs)
    print(f"wrote {os.path.abspath(options.out)}")
    for name in ("scores", "loss"):
        print(f"{name}: error {ours[name]:.1e}, PyTorch's {pytorchs[name]:.1e}")
    middle, allowed = statistics.median(ours.values()), ALLOWED * statistics.median(pytorchs.values())
    worst = max(ours, key=ours.__getitem__)
    print(f"largest error: {ours[worst]:.1e} ({worst}), PyTorch's {max(pytorchs.values()):.1e}")
    print(f"median error of {len(ours)} results: {middle:.1e}, PyTorch's {allowed / ALLOWED:.1e}")
    if middle > allowed or ours[worst] > LARGEST:
        print(f"it should be at most {allowed:.1e}, and the largest {LARGEST}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
