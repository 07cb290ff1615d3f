"""Convolutions of the shapes that networks have: forward, and the gradients of the input and of the weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .library import Case, Library, Run, Setup


class Shape(NamedTuple):
    """x (batch, fan_in, *size) and a kernel of the same number of axes; padded so that a stride of 1 keeps an odd
    kernel's size."""

    fan_in: int
    fan_out: int
    size: tuple[int, ...]
    kernel: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    batch: int = 1

    def __str__(self) -> str:
        kernel = "x".join([str(self.kernel)] * len(self.size))
        kind = "depthwise " if self.groups == self.fan_in > 1 else f"{self.groups} groups " if self.groups > 1 else ""
        more = [f" /{self.stride}"] * (self.stride > 1) + [f" dilated {self.dilation}"] * (self.dilation > 1)
        batch = f", {self.batch} images" if self.batch > 1 else ""
        return f"{kind}{kernel} {self.fan_in}>{self.fan_out} @ {self.size[-1]}{''.join(more)}{batch}"


def _square(fan_in: int, fan_out: int, side: int, kernel: int, stride: int = 1, groups: int = 1, **more: Any) -> Shape:
    return Shape(fan_in, fan_out, (side, side), kernel, stride, groups, **more)


NETWORKS = {
    "ResNet": [
        _square(3, 64, 224, 7, 2),
        _square(64, 64, 56, 3),
        _square(64, 128, 56, 3, 2),
        _square(64, 128, 56, 1, 2),
        _square(128, 128, 28, 3),
        _square(256, 256, 14, 3),
        _square(256, 512, 14, 3, 2),
        _square(512, 512, 7, 3),
        _square(64, 256, 56, 1),
        _square(1024, 256, 14, 1),
        _square(1024, 2048, 14, 1, 2),
        _square(64, 64, 16, 3, batch=4),
        _square(512, 512, 2, 3, batch=4),
        _square(512, 512, 7, 3, batch=16),
        _square(256, 256, 8, 3, batch=32),
        _square(512, 512, 4, 3, batch=64),
        _square(512, 512, 2, 3, batch=64),
    ],
    "MobileNetV2": [
        _square(3, 32, 224, 3, 2),
        _square(32, 32, 112, 3, 1, 32),
        _square(96, 96, 112, 3, 2, 96),
        _square(96, 24, 56, 1),
        _square(24, 144, 56, 1),
        _square(144, 144, 56, 3, 1, 144),
        _square(384, 384, 14, 3, 1, 384),
        _square(576, 96, 14, 1),
        _square(960, 960, 7, 3, 1, 960),
        _square(960, 160, 7, 1),
        _square(320, 1280, 7, 1),
        _square(144, 144, 24, 3, 2, 144, batch=4),
        _square(384, 64, 6, 1, batch=4),
    ],
    "EfficientNet": [
        _square(144, 144, 56, 5, 2, 144),
        _square(240, 240, 28, 5, 1, 240),
        _square(1152, 1152, 7, 5, 1, 1152),
        _square(1152, 192, 7, 1),
    ],
    "VGG": [_square(64, 64, 224, 3), _square(256, 256, 56, 3), _square(512, 512, 14, 3)],
    "DenseNet": [_square(128, 32, 56, 3), _square(128, 32, 14, 3), _square(512, 128, 28, 1)],
    "U-Net": [_square(32, 32, 128, 3), _square(256, 128, 32, 3)],
    "audio": [
        Shape(512, 512, (800,), 3, 2),
        Shape(256, 256, (400,), 3, batch=2),
        Shape(64, 64, (800,), 2, dilation=8),
        Shape(512, 512, (400,), 3, groups=512, dilation=4, batch=2),
    ],
}
DIRECTIONS = ("forward", "input", "weight")


def convolution(shape: Shape, direction: str) -> Setup:
    """One call: the result, or the gradient of one input of a graph that stays."""

    def setup(lib: Library) -> Run:
        x = lib.random(shape.batch, shape.fan_in, *shape.size, grad=direction == "input")
        w = lib.random(
            shape.fan_out, shape.fan_in // shape.groups, *[shape.kernel] * len(shape.size), grad=direction == "weight"
        )
        padding = shape.kernel // 2 * shape.dilation
        function: Callable[..., Any] = getattr(lib.module.nn.functional, f"conv{len(shape.size)}d")

        def forward() -> Any:
            return function(x, w, None, shape.stride, padding, shape.dilation, shape.groups)

        if direction == "forward":
            return forward
        y = forward()
        g = lib.random(*y.shape)
        leaf = x if direction == "input" else w
        return lambda: lib.module.autograd.grad(y, leaf, g, retain_graph=True)[0]

    return setup


CASES = [
    Case("conv", f"{direction}, {shape} ({network})", convolution(shape, direction), None)
    for network, shapes in NETWORKS.items()
    for shape in shapes
    for direction in DIRECTIONS
]
