"""For tests of captured inference: small networks of convolutions, and comparisons of their results."""

from __future__ import annotations

import norch
import norch.nn.functional as F
from norch import nn


def captured(function, *arguments):
    """The captured function, after calls enough for replays."""
    replayed = norch.capture(function)
    for _ in range(4):
        replayed(*arguments)
    assert replayed.recordings() == 1
    return replayed


def inference(model):
    def run(*arguments):
        with norch.no_grad():
            return model(*arguments)

    return run


def same_bits(a, b):
    a, b = a.contiguous(), b.contiguous()
    differ = (a.view(norch.int32) != b.view(norch.int32)) & ~(a.isnan() & b.isnan())
    return a.shape == b.shape and not bool(differ.any())


def drawn(model):
    """The model for inference, with statistics that are not those of a new one."""
    with norch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.3)
                part.running_var.uniform_(0.1, 1.5)
                if part.affine:
                    part.weight.normal_()
                    part.bias.normal_()
            elif isinstance(part, nn.Conv2d):
                part.weight.mul_(2)
    return model.eval()


class Residual(nn.Module):
    """Two convolutions beside a shortcut, which is computed first or last, and added from the left or the right."""

    def __init__(self, before, width, stride=1, shortcut_last=False, inplace=True):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.beside = nn.Sequential(nn.Conv2d(before, width, 1, stride), nn.BatchNorm2d(width))
        self.last = shortcut_last

    def forward(self, x):
        if self.last:
            y = self.body(x)
            y += self.beside(x)
            return F.relu(y, inplace=True)
        return F.relu(self.beside(x) + self.body(x))


class Squeezed(nn.Module):
    """A depthwise convolution whose channels are scaled by numbers computed of them (squeeze and excitation)."""

    def __init__(self, width):
        super().__init__()
        self.depth = nn.Sequential(
            nn.Conv2d(width, width, 5, 2, 2, groups=width, bias=False), nn.BatchNorm2d(width), nn.SiLU()
        )
        self.first, self.second = nn.Conv2d(width, 4, 1), nn.Conv2d(4, width, 1)

    def forward(self, x):
        x = self.depth(x)
        return norch.sigmoid(self.second(F.silu(self.first(F.adaptive_avg_pool2d(x, 1))))) * x


def network():
    return drawn(
        nn.Sequential(
            nn.Conv2d(3, 40, 7, 2, 3, bias=False),
            nn.BatchNorm2d(40),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            Residual(40, 24),
            Residual(24, 33, 2, shortcut_last=True),
            Squeezed(33),
            nn.Conv2d(33, 70, 1),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(70, 10),
        )
    )
