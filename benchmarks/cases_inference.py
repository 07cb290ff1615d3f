"""Convolutional networks on one picture by norch.capture, beside PyTorch and ONNX Runtime: the group "inference"."""

from __future__ import annotations

import math
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from . import models
from .library import Case, Library, Marks, Run


def _unit(nn: Any, before: int, width: int, kernel: int, stride: int, groups: int, act: Any) -> list[Any]:
    """A convolution, its batch normalisation, and an activation, or None."""
    conv = nn.Conv2d(before, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(width), *([act(inplace=True)] if act else [])]


def _around(nn: Any, body: Any, beside: Any = None, act: Any = None) -> Any:
    """body(x) + beside(x), where `beside` may be x itself, and then an activation."""

    class Around(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.beside, self.act = body, beside or nn.Identity(), act or nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.act(self.body(x) + self.beside(x))

    return Around()


def _squeeze(nn: Any, width: int, inner: int) -> Any:
    """Squeeze and excitation: channels are scaled by what two layers compute of their means."""

    class Squeeze(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layers = [nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.SiLU(), nn.Conv2d(inner, width, 1)]
            self.scale = nn.Sequential(*layers, nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            return self.scale(x) * x

    return Squeeze()


def _head(nn: Any, width: int) -> list[Any]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)]


def resnet18(nn: Any) -> Any:
    """He et al., "Deep Residual Learning for Image Recognition" (2016)."""
    layers, before = [*_unit(nn, 3, 64, 7, 2, 1, nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width in (64, 128, 256, 512):
        for stride in (2 if width > 64 else 1, 1):
            body = [*_unit(nn, before, width, 3, stride, 1, nn.ReLU), *_unit(nn, width, width, 3, 1, 1, None)]
            beside = nn.Sequential(*_unit(nn, before, width, 1, stride, 1, None)) if before != width else None
            layers.append(_around(nn, nn.Sequential(*body), beside, nn.ReLU(inplace=True)))
            before = width
    return nn.Sequential(*layers, *_head(nn, 512))


def _inverted(nn: Any, table: Any, kernels: Any, act: Any, squeezes: bool) -> Any:
    """Blocks that widen, convolve each channel, and narrow. table: (widening, width, blocks, stride) of each stage."""
    layers, before = _unit(nn, 3, 32, 3, 2, 1, act), 32
    for (times, width, count, stride), kernel in zip(table, kernels, strict=True):
        for at in range(count):
            inner, step = before * times, 1 if at else stride
            body = _unit(nn, before, inner, 1, 1, 1, act) if times > 1 else []
            body += _unit(nn, inner, inner, kernel, step, inner, act)
            body += [_squeeze(nn, inner, before // 4)] if squeezes else []
            block = nn.Sequential(*body, *_unit(nn, inner, width, 1, 1, 1, None))
            layers.append(_around(nn, block) if step == 1 and before == width else block)
            before = width
    return nn.Sequential(*layers, *_unit(nn, before, 1280, 1, 1, 1, act), *_head(nn, 1280))


def mobilenet_v2(nn: Any) -> Any:
    """Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018)."""
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    return _inverted(nn, table, [3] * 7, nn.ReLU6, False)


def efficientnet_b0(nn: Any) -> Any:
    """Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks" (2019)."""
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 40, 2, 2), (6, 80, 3, 2), (6, 112, 3, 1), (6, 192, 4, 2), (6, 320, 1, 1))
    return _inverted(nn, table, [3, 3, 5, 3, 5, 5, 3], nn.SiLU, True)


def session(lib: Library, model: Any, *given: Any, quantized: bool = False) -> Run:
    """The model in ONNX Runtime, on one thread. quantized: weights of 8 bits, activations too as they come."""
    import onnxruntime  # type: ignore[import-not-found]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        file, small = Path(folder, "model.onnx"), Path(folder, "quantized.onnx")
        lib.module.onnx.export(model, given, file)
        if quantized:
            from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-not-found]

            quantize_dynamic(file, small, weight_type=QuantType.QInt8)
            file = small
        runs = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feeds = {found.name: x.numpy() for found, x in zip(runs.get_inputs(), given, strict=True)}
    return lambda: runs.run(None, feeds)


def run(lib: Library, model: Any, *given: Any, dtype: str | None = None, activations: str | None = None) -> Run:
    """The model under no_grad, captured where the library is norch. dtype: norch and ONNX Runtime quantize it."""
    if lib.variant == "onnxruntime":
        return session(lib, model, *given, quantized=dtype is not None)
    if lib.variant in ("norch", "weights") and dtype:
        lib.module.quantize(model, dtype, activations=activations if lib.variant == "norch" else None)

    def function(*given: Any) -> Any:
        with lib.module.no_grad():
            return model(*given)

    function = lib.captured(function)
    for _ in range(models.WARM):
        function(*given)
    return lambda: function(*given)


def classify(network: Any, lib: Library, **quantized: Any) -> Run:
    """The scores of one picture of 224 x 224."""
    model = network(lib.module.nn)
    for p in model.parameters():
        if p.ndim > 1:
            bound = math.sqrt(6 / math.prod(p.shape[1:]))
            p.data = lib.random(*p.shape, low=-bound, high=bound)
        elif p.shape[0] == 1000 or not bool((p == 1).all()):
            p.data = lib.random(*p.shape, low=-0.1, high=0.1)
    x = lib.random(1, 3, 224, 224)
    return run(lib, model.eval(), x, **quantized)


def _case(name: str, network: Any, marks: Marks) -> Case:
    setup = partial(classify, network)
    return Case("inference", name, setup, None, marks, tolerance=1e-3, variants=("eager", "onnxruntime"))


CASES = [
    _case("ResNet-18, batch 1", resnet18, Marks(2.0, 2.5)),
    _case("MobileNetV2, batch 1", mobilenet_v2, Marks(2.5, 3.5)),
    _case("EfficientNet-B0, batch 1", efficientnet_b0, Marks(2.5, 3.5)),
]
