"""Convolutions and their adjoints: against sums over taps written out in NumPy, against PyTorch where it is installed,
and their derivatives against differences."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib
from norch.ops.conv import _conv_weight
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel


def drawn(seed: int, *shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def composed(x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """The convolution over two axes, a tap at a time, in float64."""
    (rows, columns), (high, wide) = stride, w.shape[2:]
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    height = (x.shape[3] - dilation[0] * (high - 1) - 1) // rows + 1
    width = (x.shape[4] - dilation[1] * (wide - 1) - 1) // columns + 1
    y = np.zeros((x.shape[0], groups, w.shape[1], height, width))
    for r in range(high):
        for c in range(wide):
            top, left = r * dilation[0], c * dilation[1]
            seen = x[
                :, :, :, top : top + rows * (height - 1) + 1 : rows, left : left + columns * (width - 1) + 1 : columns
            ]
            y += np.einsum("ngchw,goc->ngohw", seen, w[:, :, :, r, c])
    y = y.reshape(y.shape[0], y.shape[1] * y.shape[2], height, width)
    return y if b is None else y + b.astype(np.float64).reshape(-1, 1, 1)


def close(found: Any, wanted: Any, dtype: str) -> None:
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    found = found.detach().numpy()
    assert found.dtype.name == dtype
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * (1 + np.abs(wanted).max(initial=0)))


# batch, groups, channels in and out of a group, size, kernel, stride, padding, dilation
SHAPES = [
    (2, 1, 1, 1, (4, 4), (3, 3), (1, 1), (0, 0), (1, 1)),
    (3, 1, 3, 5, (7, 9), (3, 2), (1, 2), (1, 0), (1, 1)),
    (2, 2, 3, 4, (9, 6), (3, 3), (2, 3), (1, 1), (2, 1)),
    (1, 5, 1, 1, (8, 33), (5, 1), (1, 1), (2, 0), (1, 1)),
    (2, 1, 50, 17, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 2, 40, (20, 19), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 1, 3, 6, (40, 40), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 1, 3, 2, (2, 2), (4, 4), (5, 5), (2, 2), (1, 1)),
    (0, 1, 3, 2, (5, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 2, 3, (1, 70), (1, 33), (1, 3), (0, 8), (1, 2)),
    (1, 1, 1, 2, (24, 24), (23, 23), (1, 1), (0, 0), (1, 1)),
    (1, 1, 70, 33, (9, 15), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 2, 33, 70, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    # what CUDA's kernels for tensor cores tell apart
    (1, 1, 64, 33, (8, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 32, 16, (16, 17), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 2, 32, 40, (15, 15), (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 1, 40, 33, (17, 16), (3, 2), (1, 2), (2, 1), (2, 1)),
    (2, 1, 70, 64, (12, 12), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 1, 3, 16, (40, 41), (4, 4), (2, 2), (1, 1), (1, 1)),
    (1, 1, 30, 3, (21, 21), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 2, 16, (8, 12), (4, 4), (4, 4), (0, 0), (1, 1)),
    # few channels, by runs of positions
    (3, 5, 1, 1, (8, 12), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 3, 1, 2, (13, 10), (5, 5), (1, 1), (2, 1), (1, 1)),
    (2, 2, 3, 2, (19, 13), (7, 7), (2, 2), (3, 3), (1, 1)),
    # depthwise, in blocks of channels: whole and part blocks, bands of rows, phases of a stride, sums over images
    (2, 16, 1, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (9, 37, 1, 1, (6, 5), (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 20, 1, 1, (90, 71), (3, 5), (1, 2), (1, 2), (1, 1)),
    (3, 33, 1, 1, (40, 37), (5, 5), (2, 3), (2, 1), (2, 1)),
    (2, 19, 1, 1, (1, 300), (1, 7), (1, 1), (0, 6), (1, 2)),
    (1, 18, 1, 1, (3, 2), (2, 2), (4, 3), (3, 2), (1, 1)),
    (2, 24, 1, 1, (9, 9), (1, 1), (3, 3), (0, 0), (1, 1)),
    (1, 17, 1, 1, (12, 300), (7, 7), (1, 1), (3, 3), (1, 1)),
    # one tap, as products: pieces of some images of which the last is not full, several rounds, strides, groups
    (7, 1, 20, 24, (6, 6), (1, 1), (1, 1), (0, 0), (1, 1)),
    pytest.param((9, 1, 64, 64, (64, 64), (1, 1), (1, 1), (0, 0), (1, 1)), marks=pytest.mark.host),  # simulated in 30 s
    (3, 2, 20, 24, (13, 12), (1, 1), (2, 3), (0, 0), (1, 1)),
    (40, 2, 5, 3, (17, 33), (1, 1), (1, 2), (0, 0), (1, 1)),
    # few positions, as products of unfolded taps
    (2, 2, 32, 33, (6, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 70, 40, (15, 15), (3, 3), (2, 2), (1, 1), (1, 1)),
    (3, 1, 128, 32, (9, 9), (2, 2), (2, 1), (1, 0), (3, 2)),
    # the same of many images: tiny ones, and with a large weight
    *(
        pytest.param(shape, marks=pytest.mark.host)  # simulated in minutes
        for shape in [
            (90, 1, 64, 130, (2, 2), (3, 3), (1, 1), (1, 1), (1, 1)),
            (33, 2, 40, 129, (4, 3), (3, 3), (2, 2), (1, 1), (1, 1)),
            (11, 1, 470, 250, (5, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
            (6, 1, 350, 340, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
        ]
    ),
    # no images: gradients of weights are zeros
    (0, 20, 1, 1, (5, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    (0, 1, 40, 40, (5, 5), (1, 1), (1, 1), (0, 0), (1, 1)),
    (0, 1, 40, 40, (5, 5), (3, 3), (1, 1), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_over_taps(shape: Any, dtype: str) -> None:
    batch, groups, fan_in, fan_out, size, kernel, stride, padding, dilation = shape
    x = drawn(1, batch, groups * fan_in, *size, dtype=dtype)
    w = drawn(2, groups * fan_out, fan_in, *kernel, dtype=dtype)
    b = drawn(3, groups * fan_out, dtype=dtype)
    wanted = composed(x, w, b, stride, padding, dilation, groups)
    inputs = [norch.tensor(one, requires_grad=True) for one in (x, w, b)]
    y = F.conv2d(*inputs, stride, padding, dilation, groups)
    close(y, wanted, dtype)
    close(F.conv2d(*inputs[:2], None, stride, padding, dilation, groups), wanted - b.reshape(-1, 1, 1), dtype)
    # it is linear in each input, so <g, conv(e)> is the gradient's inner product with any e
    g = drawn(4, *wanted.shape, dtype=dtype)
    y.backward(norch.tensor(g))
    zero = np.zeros_like(b)
    for position, leaf in enumerate(inputs):
        e = drawn(5 + position, *leaf.shape, dtype=dtype)
        parts = [x, w, zero] if position < 2 else [np.zeros_like(x), w, e]
        parts[position] = e
        change = composed(*parts, stride, padding, dilation, groups)
        assert leaf.grad is not None and leaf.grad.dtype is leaf.dtype
        slope = float((leaf.grad.numpy().astype(np.float64) * e).sum())
        scale = np.abs(g * change).sum() + 1
        assert slope == pytest.approx(float((g * change).sum()), abs=(1e-5 if dtype == "float32" else 1e-12) * scale)


@pytest.mark.parametrize("seed", range(8))
def test_everything_against_torch(torch: Any, seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(20):
        axes, groups = pick.choice([1, 2, 3]), pick.choice([1, 1, 2, 3])
        transposed = pick.random() < 0.4
        fan_in, fan_out = pick.choice([1, 2, 5]), pick.choice([1, 3, 19])
        kernel, size, stride, dilation, padding = (
            [pick.choice(of) for _ in range(axes)]
            for of in ([1, 2, 3], [5, 9, 16, 23] if axes < 3 else [5, 6, 9], [1, 1, 2, 3], [1, 1, 2], [0, 1, 2])
        )
        options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        inner, outer = (fan_in, fan_out) if transposed else (fan_out, fan_in)
        if transposed:
            options["output_padding"] = [pick.randrange(max(s, d)) for s, d in zip(stride, dilation)]
            if any(
                8 + 2 * p > s * (n - 1) + d * (k - 1) + 1
                for p, s, n, d, k in zip(padding, stride, size, dilation, kernel)
            ):
                continue
        dtype = pick.choice(
            ["float32", "float64"] if axes < 3 else ["float64"]
        )  # PyTorch's sums over volumes are rough
        arrays = [
            drawn(seed, pick.choice([1, 3]), groups * fan_in, *size, dtype=dtype),
            drawn(seed + 1, groups * inner, outer, *kernel, dtype=dtype),
            drawn(seed + 2, groups * fan_out, dtype=dtype),
        ]
        name = ("conv_transpose" if transposed else "conv") + f"{axes}d"
        ours = [norch.tensor(one, requires_grad=True) for one in arrays]
        theirs = [torch.tensor(one, requires_grad=True) for one in arrays]
        a, b = getattr(F, name)(*ours, **options), getattr(torch.nn.functional, name)(*theirs, **options)
        close(a, b.detach().numpy(), dtype)
        a.square().sum().backward()
        b.square().sum().backward()
        for mine, yours in zip(ours, theirs):
            assert mine.grad is not None
            close(mine.grad, yours.grad.numpy(), dtype)


def leaves(*shapes: Any) -> list[Any]:
    return [norch.tensor(drawn(i, *shape), requires_grad=True) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, w, b: F.conv2d(x, w, b, 2, 1), leaves((1, 2, 4, 3), (2, 2, 3, 2), (2,))),
        (lambda x, w: F.conv2d(x, w, None, 1, "same", 2, 2), leaves((1, 2, 3, 3), (2, 1, 2, 2))),
        (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2), leaves((2, 1, 7), (2, 1, 3), (2,))),
        (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), leaves((1, 2, 2, 2), (2, 1, 3, 2), (1,))),
        (lambda x, w: F.conv_transpose1d(x, w, None, 3), leaves((2, 4), (2, 2, 2))),
        (lambda x, w, b: F.conv3d(x, w, b, 2, 1, 1, 2), leaves((1, 2, 3, 2, 3), (2, 1, 2, 1, 2), (2,))),
        (lambda x, w: F.conv3d(x, w, None, 1, "same", (2, 1, 1)), leaves((1, 3, 2, 2), (1, 1, 2, 2, 1))),
        (
            lambda x, w, b: F.conv_transpose3d(x, w, b, (2, 1, 1), 1, (1, 0, 0), 2),
            leaves((2, 2, 2, 2), (2, 1, 3, 2, 2), (2,)),
        ),
    ],
    ids="conv2d same-dilated-grouped conv1d transpose2d transpose1d-unbatched conv3d same3d transpose3d".split(),
)
def test_derivatives(function: Any, inputs: list[Any]) -> None:
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_volumes() -> None:
    """Empty batches, halves, and results whose memory is in the order of their axes."""
    x, w = norch.randn(2, 3, 4, 5, 4), norch.randn(3, 2, 2, 2, 2)
    for call in (lambda x, w: F.conv3d(x, w.transpose(0, 1)), F.conv_transpose3d):
        y = call(x, w)
        assert y.is_contiguous()
        assert_close(call(x[0], w), y[0])
        assert call(x[:0], w).shape == (0, *y.shape[1:])
        half = call(x.bfloat16(), w.bfloat16())
        assert half.dtype is norch.bfloat16
        wide = call(x.bfloat16().float(), w.bfloat16().float())  # rounded once: not the sums in double, by a tie
        close(half.float(), wide.bfloat16().float().numpy(), "float32")


@pytest.mark.parametrize("where", ["x", "w", "y"])
def test_layouts(where: str) -> None:
    x, w = drawn(0, 2, 3, 6, 5), drawn(1, 4, 3, 3, 3)
    wanted = composed(x, w, None, (1, 1), (0, 0), (1, 1), 1)
    tensors = {"x": norch.tensor(x), "w": norch.tensor(w)}
    if where in tensors:
        turned = np.ascontiguousarray({"x": x, "w": w}[where].transpose(3, 2, 1, 0))
        tensors[where] = norch.tensor(turned).permute(3, 2, 1, 0)
    for one in tensors.values():
        one.requires_grad_()
    y = F.conv2d(tensors["x"], tensors["w"])
    close(y, wanted, "float64")
    y.sum().backward()  # a gradient that is one number seen everywhere
    ones = F.conv2d(norch.ones(1, 4, 8, 7).double(), norch.tensor(w).transpose(0, 1).contiguous().double().flip(2, 3))
    assert tensors["x"].grad is not None
    if where == "y":
        padded = np.pad(np.ones(wanted.shape), ((0, 0), (0, 0), (2, 2), (2, 2)))
        turned = np.ascontiguousarray(w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
        close(tensors["x"].grad, composed(padded, turned, None, (1, 1), (0, 0), (1, 1), 1), "float64")
    assert ones.shape == (1, 3, 6, 5)


def test_padding_by_name() -> None:
    x, w = norch.randn(1, 2, 7, 8), norch.randn(3, 2, 4, 3)
    assert F.conv2d(x, w, padding="same").shape == (1, 3, 7, 8)
    assert F.conv2d(x, w, padding="valid").shape == (1, 3, 4, 6)
    assert nn.Conv1d(2, 3, 5, padding="same", dilation=3)(norch.randn(2, 9)).shape == (3, 9)


def test_infinities_stay_where_they_are() -> None:
    x = np.zeros((1, 1, 20, 20))
    x[0, 0, 5, 0] = np.inf
    y = F.conv2d(norch.tensor(x), norch.ones(1, 1, 3, 3).double(), padding=1).numpy()[0, 0]
    assert np.isinf(y[4:7, :2]).all() and np.isfinite(y).sum() == 400 - 6
    w = norch.ones(1, 1, 3, 3).double().requires_grad_()
    g = np.zeros((1, 1, 20, 20))
    g[0, 0, 5, 0] = 1
    F.conv2d(norch.tensor(x), w, padding=1).backward(norch.tensor(g))
    assert w.grad is not None
    slopes = w.grad.numpy()[0, 0]  # taps of the last column never meet it, those of the others as 1 or 0 times infinity
    assert np.isinf(slopes[1, 1]) and np.isnan(slopes[:, :2]).sum() == 5 and (slopes[:, 2] == 0).all()


@pytest.mark.parametrize(
    ("fan_in", "fan_out", "size", "kernel", "stride"),
    [
        (32, 16, (16, 17), 3, 1),
        (40, 33, (9, 17), 3, 1),
        (70, 64, (12, 12), 1, 1),
        (3, 16, (40, 41), 3, 2),
        (80, 40, (10, 9), 3, 1),
    ],
)
def test_infinities_in_float32(fan_in: int, fan_out: int, size: Any, kernel: int, stride: int) -> None:
    """Infinities, NaN and the largest number do what IEEE 754 says, and only where they are met."""
    x, w = drawn(1, 2, fan_in, *size, dtype="float32"), drawn(2, fan_out, fan_in, kernel, kernel, dtype="float32") / 16
    options: Any = ((stride,) * 2, (kernel // 2,) * 2, (1, 1), 1)
    g = (
        drawn(3, *composed(x, w, None, *options).shape, dtype="float32") / 16
    )  # the largest number times a sixteenth stays finite
    x[0, 0, 3, 3], x[1, 2, 8, 8], x[1, 1, 0, 0] = np.inf, np.nan, np.finfo("float32").max
    w[5, 1, 0, 0], g[0, 3, 4, 4] = -np.inf, -np.inf
    plain = [norch.tensor(one.astype("float64"), device="cpu", requires_grad=True) for one in (x, w)]
    ours = [norch.tensor(one, requires_grad=True) for one in (x, w)]
    wanted, found = F.conv2d(*plain, None, *options), F.conv2d(*ours, None, *options)
    wanted.backward(norch.tensor(g.astype("float64"), device="cpu"))
    found.backward(norch.tensor(g))
    pairs = [(found, wanted), (ours[0].grad, plain[0].grad), (ours[1].grad, plain[1].grad)]
    for mine, theirs in pairs:
        assert mine is not None and theirs is not None
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("fan_in", "fan_out", "groups", "kernel", "stride", "dilation"),
    [
        (2, 3, 1, 3, 1, 1),
        (32, 40, 1, 3, 1, 1),
        (3, 16, 1, 7, 2, 1),
        (6, 6, 6, 3, 1, 1),
        (40, 40, 40, 3, 2, 1),
        (24, 24, 2, 3, 2, 2),
    ],
)
def test_infinite_weights_reach_no_further_than_the_gradient(
    fan_in: int, fan_out: int, groups: int, kernel: int, stride: int, dilation: int, dtype: str
) -> None:
    """Around the gradient of the output there is nothing: no zeros, which times infinity would be NaN."""
    torch = torch_or_skip()
    size, padding = (17, 18), kernel // 2 * dilation
    x, w = drawn(1, 2, fan_in, *size), drawn(2, fan_out, fan_in // groups, kernel, kernel)
    w[1, 0, 0, 0] = np.inf
    found = []
    for library in (norch, torch):
        given = [
            library.tensor(one, dtype=getattr(library, dtype if library is norch else "float64")) for one in (x, w)
        ]
        leaves = [one.requires_grad_() for one in given]
        y = library.nn.functional.conv2d(*leaves, None, stride, padding, dilation, groups)
        (grad,) = library.autograd.grad(y, leaves[:1], library.ones_like(y))
        up = library.nn.functional.conv_transpose2d(
            library.ones_like(y), leaves[1], None, stride, padding, 0, groups, dilation
        )
        found.append([one.detach().numpy() for one in (grad, up)])
    for ours, theirs in zip(*found):
        assert np.isinf(theirs).any() and not np.isnan(theirs[1:]).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("batch", "fan_in", "fan_out", "size", "padding"), [(1, 128, 128, (8, 8), 1), (2, 124, 130, (5, 7), 0)]
)
def test_weights_of_many_channels(batch: int, fan_in: int, fan_out: int, size: Any, padding: int) -> None:
    """3 x 3 kernels, which CUDA sums by tiles of 2 x 2: an infinity is met by some taps and not by others."""
    x = drawn(1, batch, fan_in, *size, dtype="float32")
    g = drawn(2, batch, fan_out, *(one + 2 * padding - 2 for one in size), dtype="float32")
    x[0, 3, 2, 2] = np.inf
    geometry = (1, 1, *(padding,) * 4, 1, 1, 1)
    found = _conv_weight(norch.tensor(x), norch.tensor(g), geometry, (3, 3)).numpy()
    exact = (norch.tensor(one.astype("float64"), device="cpu") for one in (x, g))
    wanted = _conv_weight(*exact, geometry, (3, 3)).numpy()
    assert np.isinf(wanted).any() and np.isfinite(wanted[:, 3]).sum() == wanted[:, 3].size - np.isinf(wanted).sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("groups", "fan_in", "fan_out"), [(1, 70, 3), (2, 3, 20), (1, 2, 40), (21, 1, 1), (1, 40, 40)])
def test_sums_beside_the_weight(groups: int, fan_in: int, fan_out: int) -> None:
    """The gradient of the bias comes with that of the weight; alone, it is a reduction."""
    g = drawn(1, 3, groups * fan_out, 9, 7)
    for needed in (True, False):
        x, w = norch.tensor(drawn(2, 3, groups * fan_in, 9, 7)), norch.tensor(drawn(3, groups * fan_out, fan_in, 3, 3))
        b = norch.zeros(groups * fan_out, dtype=norch.float64, requires_grad=True)
        F.conv2d(x, w.requires_grad_(needed), b, padding=1, groups=groups).backward(norch.tensor(g))
        assert b.grad is not None
        np.testing.assert_allclose(b.grad.numpy(), g.sum((0, 2, 3)), rtol=1e-12, atol=1e-12)
    with pytest.raises(norch.ShapeError, match="conv_weight: sums of shape"):
        lib.norch_conv_weight(x, norch.tensor(g), (1,) * 8 + (groups,), (3, 3), norch.zeros(1, dtype=norch.float64))


@pytest.mark.parametrize(
    ("groups", "fan_in", "fan_out", "size"),
    [
        (1, 1, 2, (1000, 1000)),
        (3, 1, 1, (1, 1000000)),
        (2, 2, 2, (2000, 500)),
        (1, 1, 9, (1, 1000000)),
        (9, 1, 1, (100, 10000)),
    ],
)
def test_sums_of_a_million(groups: int, fan_in: int, fan_out: int, size: tuple[int, int]) -> None:
    """Rounding does not add up along the positions."""
    x = np.random.default_rng(4).uniform(0, 1, (1, groups * fan_in, *size)).astype("float32")
    w = norch.zeros(groups * fan_out, fan_in, 1, 1, requires_grad=True)
    b = norch.zeros(groups * fan_out, requires_grad=True)
    F.conv2d(norch.tensor(x), w, b, groups=groups).backward(norch.full((1, groups * fan_out, *size), 0.1))
    tenth = float(np.float32(0.1))
    wanted = x.sum((2, 3), dtype=np.float64).reshape(groups, 1, fan_in).repeat(fan_out, 1) * tenth
    assert w.grad is not None and b.grad is not None
    np.testing.assert_allclose(w.grad.numpy().reshape(wanted.shape), wanted, rtol=4e-6)
    np.testing.assert_allclose(b.grad.numpy(), tenth * 1e6, rtol=4e-6)


@pytest.mark.host  # these are the host's threads
@pytest.mark.parametrize(("fan_in", "groups", "kernel"), [(16, 1, 3), (1, 40, 3), (40, 1, 1), (200, 1, 3)])
@pytest.mark.parametrize(("threads", "stride", "size"), [(2, 2, 20), (3, 1, 20), (3, 1, 7), (2, 2, 10)])
def test_threads_change_nothing(threads: int, stride: int, size: int, fan_in: int, groups: int, kernel: int) -> None:
    shapes = [(8, groups * fan_in, size, size), (40, fan_in, kernel, kernel)]
    inputs = [norch.tensor(drawn(i, *s, dtype="float32")) for i, s in enumerate(shapes)]

    def results() -> list[Any]:
        x, w = (one.clone().requires_grad_() for one in inputs)
        y = F.conv2d(x, w, stride=stride, padding=kernel // 2, groups=groups)
        y.square().sum().backward()
        return [one.detach().numpy() for one in (y, x.grad, w.grad)]

    norch.set_num_threads(1)
    alone = results()
    norch.set_num_threads(threads)
    for a, b in zip(alone, results()):
        np.testing.assert_array_equal(a, b)


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda x, w: F.conv2d(x, w.float()), norch.DTypeError, "float64 and float32"),
    (lambda x, w: F.conv2d(x.long(), w.long()), norch.DTypeError, "int64"),
    (
        lambda x, w: F.conv2d(x, w, groups=2),
        norch.ShapeError,
        "expects 6 input channels, got 3",
    ),
    (lambda x, w: F.conv2d(x, w, groups=0), norch.ShapeError, "groups"),
    (lambda x, w: F.conv2d(x, w, norch.zeros(3).double()), norch.ShapeError, "bias of size 3 for 4"),
    (lambda x, w: F.conv2d(x, w, stride=0), ValueError, "stride 0"),
    (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), norch.ShapeError, "stride takes 1 or 2"),
    (lambda x, w: F.conv2d(x, w, padding=-1), ValueError, "negative padding"),
    (lambda x, w: F.conv2d(x, w, padding="full"), ValueError, "'full'"),
    (lambda x, w: F.conv2d(x, w, padding="same", stride=2), ValueError, "stride of 1"),
    (lambda x, w: F.conv2d(x, w, dilation=9), norch.ShapeError, "spans 19 does not fit"),
    (lambda x, w: F.conv2d(x, w, stride=1.5), TypeError, "integers"),
    (lambda x, w: F.conv2d(x, w, stride=2**70), OverflowError, "64 bits"),
    (lambda x, w: F.conv2d(x, w, padding=2**40), ValueError, "padding"),
    (lambda x, w: F.conv2d(x[0, 0], w), norch.ShapeError, "3 \\(unbatched\\) or 4"),
    (lambda x, w: F.conv2d(x, w[0]), norch.ShapeError, "weight of 4 dimensions"),
    (lambda x, w: F.conv2d(None, w), TypeError, "input, not NoneType"),
    (lambda x, w: F.conv2d(x, w, "bias"), TypeError, "bias, not str"),
    (lambda x, w: F.conv_transpose2d(x, w), norch.ShapeError, "expects 4 input channels, got 3"),
    (lambda x, w: F.conv_transpose2d(x[:, :1], w[:1], output_padding=1), ValueError, "output_padding 1"),
    (lambda x, w: F.conv3d(x, w), norch.ShapeError, "weight of 5 dimensions"),
    (lambda x, w: F.conv3d(x, w[None]), norch.ShapeError, "conv3d: weight of shape .* expects 4 input channels, got 2"),
    (lambda x, w: F.conv3d(x[None], w[None], groups=0), norch.ShapeError, "conv3d: 0 groups"),
    (lambda x, w: F.conv3d(x[None], w[None], groups=1.5), TypeError, "conv3d: .*integer, not float"),
    (lambda x, w: F.conv3d(x[:, None, :2], w[:, :1, None].expand(4, 1, 3, 3, 3)), norch.ShapeError, "spans 3 does not"),
    (lambda x, w: F.conv3d(x[None], w[:, :2, None][:, :, :0]), ValueError, "conv3d: kernel size 0"),
    (lambda x, w: F.conv3d(x[None], w[None, :2], stride=(0, 1, 1)), ValueError, "conv3d: kernel .* stride 0"),
    (lambda x, w: F.conv3d(x[None], w[None, :2].float(), padding=2), norch.DTypeError, "float64 and float32"),
    (lambda x, w: F.conv_transpose3d(x[None], w[:, None]), norch.ShapeError, "expects 4 input channels, got 2"),
    (lambda x, w: F.conv_transpose3d(x[None], w[:1, None], padding=9), norch.ShapeError, "would make an output of"),
    (lambda x, w: F.conv_transpose3d(x[None], w[:2, None], stride=(0, 1, 1)), ValueError, "kernel .* stride 0"),
    (lambda x, w: nn.Conv2d(3, 4, 3, groups=2), ValueError, "divisible by groups 2"),
    (lambda x, w: nn.Conv2d(3, 4, 3, padding_mode="wrap"), ValueError, "padding_mode 'wrap'"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    x, w = norch.tensor(drawn(0, 2, 3, 6, 6)), norch.tensor(drawn(1, 4, 3, 3, 3))
    with pytest.raises(error, match=message):
        call(x, w)


def test_refused_memory_changes_nothing() -> None:
    from norch._binding.library import lib

    x, w = norch.randn(2, 3, 6, 6).requires_grad_(), norch.randn(4, 3, 3, 3).requires_grad_()
    lib.norch_fail_allocation(-1)
    y = F.conv2d(x, w)
    count = lib.norch_fail_allocation(-1)
    assert count >= 3
    for n in range(count):
        lib.norch_fail_allocation(n)
        try:
            with pytest.raises(MemoryError):
                F.conv2d(x, w)
        finally:
            lib.norch_fail_allocation(-1)
    y.sum().backward()
    assert x.grad is not None and w.grad is not None


MODULES = [
    ("Conv1d", (2, 4, 3), {}, (2, 2, 9)),
    ("Conv2d", (2, 4, (3, 2)), {"stride": 2, "padding": 1, "groups": 2, "bias": False}, (2, 2, 9, 8)),
    ("Conv2d", (2, 4, 3), {"padding": "same", "dilation": 2}, (2, 9, 8)),
    ("Conv2d", (2, 4, 3), {"padding": (1, 2), "padding_mode": "reflect"}, (2, 2, 9, 8)),
    ("Conv1d", (2, 4, 3), {"padding": "same", "padding_mode": "circular"}, (2, 2, 9)),
    ("Conv3d", (2, 4, (3, 2, 1)), {"stride": (1, 2, 1), "padding": 1, "groups": 2}, (2, 2, 5, 6, 4)),
    ("Conv3d", (2, 4, 3), {"padding": "same", "padding_mode": "replicate", "bias": False}, (2, 5, 6, 4)),
    ("ConvTranspose3d", (2, 4, 3), {"stride": (3, 2, 1), "output_padding": (2, 1, 0)}, (2, 2, 3, 4, 2)),
    ("ConvTranspose1d", (2, 4, 3), {"stride": 2, "output_padding": 1}, (2, 2, 9)),
    ("ConvTranspose2d", (4, 2, 2), {"stride": 2, "dilation": 3, "groups": 2}, (2, 4, 5, 6)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), MODULES, ids=str)
def test_modules_are_torchs(torch: Any, name: str, arguments: Any, options: Any, shape: Any) -> None:
    ours, theirs = getattr(nn, name)(*arguments, **options), getattr(torch.nn, name)(*arguments, **options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    with torch.no_grad():
        for key, value in ours.state_dict().items():
            theirs.state_dict()[key].copy_(torch.tensor(value.numpy()))
    x = drawn(0, *shape, dtype="float32")
    close(ours(norch.tensor(x)), theirs(torch.tensor(x)).detach().numpy(), "float32")
    bound = 1 / np.sqrt(np.prod(ours.weight.shape[1:]))
    assert ours.weight.abs().max().item() <= bound + 1e-7


def test_output_size_is_chosen() -> None:
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert layer(norch.zeros(1, 1, 4, 4), output_size=(10, 9)).shape == (1, 1, 10, 9)
    with pytest.raises(ValueError, match="out of reach"):
        layer(norch.zeros(1, 1, 4, 4), output_size=(12, 9))
