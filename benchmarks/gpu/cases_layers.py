"""Layers, forward alone (fwd, f) or with their gradients (f+b): attention, convolution, normalisation, losses, LSTM.

The name of a convolution is images x channels x height, then outputs, size of the kernel, stride.
"""

from __future__ import annotations

from typing import Any

from .. import models
from ..library import Run
from .library import OnDevice, both_ways, cases_of

CASES, add = cases_of("layers")


def _attention(
    backward: bool,
    dtype: str = "float32",
    masked: bool = False,
    sizes: tuple[int, int, int, int] = (8, 12, 1024, 64),
    group: int = 1,
) -> Any:
    """sizes: batch, heads of key, length, width; group: heads of query that share one of key."""

    def setup(lib: OnDevice) -> Run:
        batch, heads, length, width = map(lib.fit, sizes)
        inputs = [lib.random(batch, heads * n, length, width, grad=backward, dtype=dtype) for n in (group, 1, 1)]
        attend = lib.module.nn.functional.scaled_dot_product_attention
        mask = lib.random(length, length) if masked else None
        grouped = {"enable_gqa": True} if group > 1 else {}  # older versions of PyTorch lack it

        def call(q: Any, k: Any, v: Any) -> Any:
            return attend(q, k, v, attn_mask=mask, is_causal=not masked, **grouped)

        return both_ways(lib, call, *inputs) if backward else lambda: call(*inputs)

    return setup


def _convolution(
    images: int,
    channels: int,
    side: int,
    outputs: int,
    size: int,
    stride: int,
    backward: bool,
    groups: int = 1,
    dtype: str = "float32",
) -> Any:
    def setup(lib: OnDevice) -> Run:
        c, o, height = lib.fit(channels), lib.fit(outputs), lib.fit(side)
        x = lib.random(lib.fit(images), c, height, height, grad=backward, dtype=dtype)
        weight = lib.random(o, 1 if groups > 1 else c, size, size, grad=backward, dtype=dtype)
        conv2d = lib.module.nn.functional.conv2d

        def call(x: Any, weight: Any) -> Any:
            return conv2d(x, weight, stride=stride, padding=size // 2, groups=c if groups > 1 else 1)

        return both_ways(lib, call, x, weight) if backward else lambda: call(x, weight)

    return setup


# (images, channels, side, outputs, size, stride), marks of the forward pass alone, marks of both.
CONVOLUTIONS = [
    ((64, 3, 224, 64, 7, 2), (1.0, 1.2), (1.0, 1.2)),
    ((128, 3, 32, 64, 3, 1), (1.0, 1.2), (1.0, 1.2)),
    ((128, 64, 32, 64, 3, 1), (1.2, 1.5), (1.0, 1.3)),
    ((128, 128, 16, 128, 3, 1), (1.2, 1.5), (1.0, 1.3)),
    ((128, 256, 8, 256, 3, 1), (1.2, 1.5), (1.0, 1.3)),
    ((32, 64, 56, 128, 3, 2), (1.2, 1.5), (1.0, 1.3)),
    ((64, 256, 14, 1024, 1, 1), (0.8, 1.0), (0.8, 1.0)),
]


def _batch_norm(lib: OnDevice) -> Run:
    shape = lib.fit(128), lib.fit(64), lib.fit(32), lib.fit(32)
    x, weight, bias = lib.random(*shape, grad=True), lib.random(shape[1], grad=True), lib.random(shape[1], grad=True)
    mean, var = lib.random(shape[1]), lib.random(shape[1], low=1.0, high=2.0)
    norm = lib.module.nn.functional.batch_norm

    def call(x: Any, weight: Any, bias: Any) -> Any:
        return norm(x, mean, var, weight, bias, training=True)

    return both_ways(lib, call, x, weight, bias)


def _layer_norm(lib: OnDevice) -> Run:
    width = lib.fit(768)
    inputs = lib.random(lib.fit(8192), width, grad=True), lib.random(width, grad=True), lib.random(width, grad=True)
    norm = lib.module.nn.functional.layer_norm
    return both_ways(lib, lambda x, weight, bias: norm(x, (width,), weight, bias), *inputs)


def _group_norm(lib: OnDevice) -> Run:
    channels = lib.fit(64)
    x = lib.random(lib.fit(128), channels, lib.fit(32), lib.fit(32), grad=True)
    norm = lib.module.nn.functional.group_norm
    scale = lib.random(channels, grad=True), lib.random(channels, grad=True)
    return both_ways(lib, lambda x, weight, bias: norm(x, 8, weight, bias), x, *scale)


def _transposed(lib: OnDevice) -> Run:
    x = lib.random(lib.fit(32), lib.fit(128), lib.fit(28), lib.fit(28), grad=True)
    weight = lib.random(lib.fit(128), lib.fit(64), 4, 4, grad=True)
    convolve = lib.module.nn.functional.conv_transpose2d
    return both_ways(lib, lambda x, weight: convolve(x, weight, stride=2, padding=1), x, weight)


def _cross_entropy(lib: OnDevice) -> Run:
    rows, classes = lib.fit(8192), lib.fit(50257)
    x, target = lib.random(rows, classes, grad=True), lib.integers(rows, classes)
    module = lib.module

    def run() -> Any:
        loss = module.nn.functional.cross_entropy(x, target)
        return loss, module.autograd.grad(loss, x)

    return run


def _dropout(lib: OnDevice) -> Run:
    """The two draw other numbers: what is compared is what must hold of any."""
    module, p = lib.module, 0.5
    x = lib.random(lib.count(10_000_000), low=1.0, high=2.0, grad=True)
    given = lib.random(x.numel(), low=1.0, high=2.0)

    def run() -> Any:
        y = module.nn.functional.dropout(x, p)
        (grad,) = module.autograd.grad(y, x, given)
        y = y.detach()

        def told() -> Any:
            kept = (y != 0).float()
            off = (y - kept * x.detach() / (1 - p)).abs().sum() + (grad - kept * given / (1 - p)).abs().sum()
            share = float(kept.mean())
            within = abs(share - (1 - p)) < 6 * (p * (1 - p) / x.numel()) ** 0.5
            return float(off), float(within)

        return told

    return run


def _embedding(lib: OnDevice) -> Run:
    words, width = lib.fit(50257), lib.fit(768)
    index = lib.integers(lib.fit(8192), words)
    look_up = lib.module.nn.functional.embedding
    return both_ways(lib, lambda table: look_up(index, table), lib.random(words, width, grad=True))


def _over(name: str, count: int) -> Any:
    def setup(lib: OnDevice) -> Run:
        call = getattr(lib.module.nn.functional, name)
        return both_ways(lib, call, lib.random(lib.count(count), grad=True))

    return setup


def _softmax(lib: OnDevice) -> Run:
    return both_ways(lib, lambda x: x.softmax(1), lib.random(lib.fit(8192), lib.fit(1024), grad=True))


def _max_pool(lib: OnDevice) -> Run:
    pool = lib.module.nn.functional.max_pool2d
    x = lib.random(lib.fit(128), lib.fit(64), lib.fit(32), lib.fit(32), grad=True)
    return both_ways(lib, lambda x: pool(x, 2), x)


def _recurrent(name: str) -> Any:
    def setup(lib: OnDevice) -> Run:
        width = lib.fit(256)
        layers = models.draw(lib, getattr(lib.module.nn, name)(width, width, 2))
        layers.to(lib.device).flatten_parameters()
        x = lib.random(lib.fit(100), lib.fit(64), width, grad=True)
        return both_ways(lib, lambda x, *parameters: layers(x)[0], x, *layers.parameters())

    return setup


add("sdpa f 8x12x1024x64", _attention(False), 1.5, 1.8)
add("sdpa f+b 8x12x1024x64", _attention(True), 1.5, 1.8)
add("sdpa f+b bf16 8x12x1024x64", _attention(True, "bfloat16"), 0.7, 0.9, tolerance=1e-2)
for sizes, forward, both in CONVOLUTIONS:
    images, channels, side, outputs, size, stride = sizes
    work = 2.0 * images * outputs * (side // stride) ** 2 * channels * size**2
    name = f"{images}x{channels}x{side} {outputs}k{size}s{stride}"
    add(f"conv fwd {name}", _convolution(*sizes, backward=False), *forward, flops=work)
    add(f"conv f+b {name}", _convolution(*sizes, backward=True), *both, flops=3 * work)
add("depthwise f+b 64x192x28", _convolution(64, 192, 28, 192, 3, 1, backward=True, groups=192))
add("batch_norm f+b 128x64x32", _batch_norm, 1.0, 1.2)
add("layer_norm f+b 8192x768", _layer_norm, 1.0, 1.4)
add("softmax f+b 8192x1024", _softmax)
add("cross_entropy f+b 8192x50257", _cross_entropy, 1.0, 1.2)
add("dropout f+b 1e7", _dropout, 1.0, 1.2)
add("embedding f+b 50257x768, 8192", _embedding)
add("maxpool f+b 128x64x32", _max_pool)
add("relu f+b 1e7", _over("relu", 10_000_000))
add("gelu f+b 1e7", _over("gelu", 10_000_000))
add("LSTM f+b 2x256 T100 B64", _recurrent("LSTM"), 1.0, 1.2, tolerance=1e-4)
add("GRU f+b 2x256 T100 B64", _recurrent("GRU"), 1.0, 1.2, tolerance=1e-4, counted=False)
add("sdpa f+b mask 8x12x1024x64", _attention(True, masked=True), 1.5, 1.8, counted=False)
add("sdpa f+b 4x8x1024x256", _attention(True, sizes=(4, 8, 1024, 256)), counted=False)
shared = _attention(True, "bfloat16", sizes=(8, 3, 1000, 128), group=4)
add("sdpa f+b bf16 8x12/3x1000x128", shared, tolerance=1e-2, counted=False)
bf16 = _convolution(128, 64, 32, 64, 3, 1, backward=True, dtype="bfloat16")
add("conv f+b bf16 128x64x32 64k3s1", bf16, tolerance=1e-2, counted=False)
add("conv_transpose f+b 32x128x28 64k4s2", _transposed, counted=False)
add("group_norm f+b 128x64x32", _group_norm, 1.0, 1.2, counted=False)
