"""Convolutions of float16 and bfloat16 on a CUDA device, against float64: two channels as a word on tensor cores, for
each tile and order of rows that a shape leads to, and what is widened. Run in make test-cudasim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch import cuda
from norch.ops.conv import _conv, _conv_input, _conv_weight, geometry_of
from norch.testing import assert_close

pytestmark = pytest.mark.skipif(
    not cuda.is_available() or cuda.get_device_capability() < (8, 0), reason="no CUDA device with tensor cores"
)

EPSILON = {norch.float16: 2.0**-11, norch.bfloat16: 2.0**-8}


def drawn(seed: int, dtype: Any, *shape: int) -> norch.Tensor:
    return norch.randn(shape, generator=norch.Generator().manual_seed(seed)).to(dtype)


def assert_rounded_once(found: Any, wanted: Any, terms: Any) -> None:
    """terms: the sums of the terms' absolute values, of which float32 sums may lose a little."""
    epsilon = EPSILON[found.dtype] * 1.001
    found, wanted, terms = (x.detach().cpu().double().numpy() for x in (found, wanted, terms))
    allowed = epsilon * np.abs(wanted) + 2e-6 * terms + 2.0**-24
    worst = np.abs(found - wanted) - allowed
    assert found.shape == wanted.shape and not (worst > 0).any(), worst.max()


def results(call: Any, x: Any, w: Any, b: Any, g: Any) -> list[Any]:
    """What call gives, and its gradients by all inputs for the slope g."""
    leaves = [one.detach().requires_grad_() for one in (x, w, b)]
    y = call(*leaves)
    y.backward(g[..., : y.shape[-2], : y.shape[-1]])
    return [y, *(leaf.grad for leaf in leaves)]


# (N, C, H, W), (O, C / groups, KH, KW), stride, padding, dilation, groups
SHAPES: Any = [
    ((2, 64, 9, 8), (40, 64, 3, 3), 1, 1, 1, 1),  # by tap, tiles of 64 rows; those of the gradient too
    ((4, 66, 8, 8), (20, 66, 3, 2), 1, 0, 1, 1),  # by table, of 32 rows
    ((8, 7, 20, 21), (9, 7, 3, 3), 1, 1, 1, 1),  # an odd channel beside zeros, of 16 rows, planes of odd sizes
    ((2, 128, 8, 8), (72, 128, 1, 1), 1, 0, 1, 1),  # one tap: four positions a copy
    ((2, 64, 13, 14), (24, 64, 3, 3), 2, 1, 1, 1),  # gradients by phases
    ((4, 16, 14, 14), (32, 16, 4, 4), 2, 1, 1, 1),
    ((2, 3, 20, 22), (64, 3, 7, 7), 2, 3, 1, 1),  # three channels: few rows of the gradient
    ((3, 40, 10, 10), (24, 20, 3, 3), 1, 2, 2, 2),  # groups, dilated
    ((1, 512, 8, 8), (16, 512, 3, 3), 1, 1, 1, 1),  # parts
    ((2, 40, 9, 9), (40, 1, 3, 3), 1, 1, 1, 40),  # depthwise: widened
    ((1, 5, 4, 4), (2, 5, 3, 3), 1, 0, 1, 1),  # too few of anything: widened
]


@pytest.mark.parametrize("dtype", list(EPSILON), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_way(shape: Any, dtype: Any) -> None:
    """Forward, and the gradients by input, weight and bias."""
    size, kernel, *options = shape
    stride, padding, dilation, groups = options
    given = [drawn(1, dtype, *size), drawn(2, dtype, *kernel) / 4, drawn(3, dtype, kernel[0])]
    rows, columns = ((size[2 + d] + 2 * padding - dilation * (kernel[2 + d] - 1) - 1) // stride + 1 for d in range(2))
    given.append(drawn(4, dtype, size[0], kernel[0], rows, columns))

    def call(x: Any, w: Any, b: Any) -> Any:
        return F.conv2d(x, w, b, stride, padding, dilation, groups)

    found = results(call, *(one.cuda() for one in given))
    wanted = results(call, *(one.double() for one in given))
    terms = results(call, *(one.double().abs() for one in given))
    for mine, theirs, scale in zip(found, wanted, terms, strict=True):
        assert mine.dtype is dtype
        assert_rounded_once(mine, theirs, scale)


@pytest.mark.parametrize("dtype", list(EPSILON), ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed(stride: int, dtype: Any) -> None:
    given = [drawn(1, dtype, 2, 36, 8, 9), drawn(2, dtype, 36, 20, 3, 3) / 4, drawn(3, dtype, 20)]
    given.append(drawn(4, dtype, 2, 20, 20, 20))

    def call(x: Any, w: Any, b: Any) -> Any:
        return F.conv_transpose2d(x, w, b, stride, 1)

    runs = [[one.cuda() for one in given], [one.double() for one in given], [one.double().abs() for one in given]]
    for mine, theirs, scale in zip(*(results(call, *run) for run in runs), strict=True):
        assert_rounded_once(mine, theirs, scale)


@pytest.mark.parametrize("dtype", list(EPSILON), ids=str)
def test_infinities_and_parts_of_tensors(dtype: Any) -> None:
    """They are met where a tap meets them; operands that lie apart, and from where 8 bytes do not begin."""
    x, w = drawn(1, dtype, 2, 65, 8, 9), drawn(2, dtype, 24, 65, 3, 3)
    x[0, 5, 3, 3], x[1, 64, 0, 0], w[3, 2, 0, 0] = float("inf"), float("nan"), float("-inf")
    wanted = F.conv2d(x.double(), w.double(), padding=1)
    found = F.conv2d(x.cuda(), w.cuda(), padding=1).cpu()
    assert norch.equal(found.isnan(), wanted.isnan()) and norch.equal(found.isposinf(), wanted.isposinf())
    apart = norch.cat([x.flatten()[:1], x.flatten()]).cuda()[1:].view(x.shape)
    assert norch.equal(F.conv2d(apart, w.cuda(), padding=1).cpu().nan_to_num(), found.nan_to_num())
    turned = x.cuda().transpose(2, 3).contiguous().transpose(2, 3)
    assert norch.equal(F.conv2d(turned, w.cuda(), padding=1).cpu().nan_to_num(), found.nan_to_num())


@pytest.mark.parametrize("size", [(4, 6), (6, 4)], ids=str)
def test_one_tap_onto_another_size_of_the_same_area(size: Any) -> None:
    """Padding behind x and cropping, as the entry points of the library have them: position k of y is not that of x."""
    x, w = drawn(1, norch.float32, 32, 96, *size), drawn(2, norch.float32, 72, 96, 1, 1)
    g = drawn(3, norch.float32, 32, 72, *reversed(size))
    geometry = geometry_of((1, 1), (0, 0), (size[1] - size[0], size[0] - size[1]), (1, 1), 1)
    runs: Any = (
        lambda x, w, g: _conv(x, w, None, geometry),
        lambda x, w, g: _conv_input(g, w, None, geometry, size),
        lambda x, w, g: _conv_weight(x, g, geometry, (1, 1)),
    )
    for run in runs:
        wanted = run(x.double(), w.double(), g.double())
        assert_close(run(x.cuda(), w.cuda(), g.cuda()).cpu().double(), wanted, rtol=0, atol=1e-2)


def test_no_copies_in_float32_are_saved() -> None:
    x, w = drawn(1, norch.float16, 2, 64, 16, 16).cuda(), drawn(2, norch.float16, 64, 64, 3, 3).cuda()
    before = cuda.memory_allocated()
    y = F.conv2d(x.requires_grad_(), w.requires_grad_(), padding=1)
    assert cuda.memory_allocated() - before == y.numel() * 2
