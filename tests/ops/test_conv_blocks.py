"""Convolutions of many channels in float32, and their adjoints, which run in blocks of channels with a weight packed in
each call: against float64, whose kernels are others; their threads, their memory, and what is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import check_recorded_layer, refusals

import norch
import norch.nn.functional as F
from norch.testing import assert_close

pytestmark = [pytest.mark.host, pytest.mark.kernel]

# batch, channels in and out, size, kernel, stride, padding, dilation
SHAPES = [
    (1, 64, 64, (14, 15), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 57, 75, (12, 13), (3, 3), (1, 1), (0, 2), (1, 1)),
    (1, 61, 67, (23, 12), (5, 2), (1, 1), (2, 0), (1, 3)),
    (1, 128, 130, (1, 330), (1, 4), (1, 1), (0, 2), (1, 1)),
    (1, 256, 260, (1, 501), (1, 4), (1, 2), (0, 1), (1, 1)),
    (1, 515, 513, (1, 460), (1, 3), (1, 2), (0, 2), (1, 1)),
    (1, 130, 120, (29, 30), (4, 5), (2, 2), (1, 2), (1, 1)),
    (1, 150, 140, (27, 33), (4, 4), (2, 1), (3, 3), (1, 2)),
    (1, 132, 136, (30, 26), (4, 4), (2, 2), (4, 5), (3, 3)),
    (5, 64, 70, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),  # rows that would leave lanes idle
    (6, 66, 70, (14, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    # some images at a time: one is left for the last part, and 8 are left of those that share Winograd's products
    (36, 512, 64, (13, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    (160, 32, 512, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 64, 64, (122, 120), (3, 3), (1, 1), (1, 1), (1, 1)),  # of two images at a time
    (1, 64, 64, (14, 15), (2, 2), (1, 1), "same", (1, 1)),  # more zeros behind an axis than before it
    (2, 70, 66, (13, 12), (3, 4), (1, 1), "same", (2, 1)),
]


def drawn(seed: int, *shape: int) -> Any:
    return norch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def inputs(shape: Any) -> tuple[list[Any], dict[str, Any]]:
    """x, the weight and a bias, and the options of conv2d."""
    batch, fan_in, fan_out, size, kernel, stride, padding, dilation = shape
    given = [drawn(0, batch, fan_in, *size), drawn(1, fan_out, fan_in, *kernel), drawn(2, fan_out)]
    return given, {"stride": stride, "padding": padding, "dilation": dilation}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_those_of_float64(shape: Any) -> None:
    given, options = inputs(shape)
    found, wanted = [], []
    for result, dtype in ((found, norch.float32), (wanted, norch.float64)):
        x, w, b = (one.to(dtype) for one in given)
        x.requires_grad_()
        y = F.conv2d(x, w, b, **options)
        result += [y, *norch.autograd.grad(y, x, drawn(3, *y.shape).to(dtype))]
    for mine, exact in zip(found, wanted, strict=True):
        assert_close(mine.double(), exact, rtol=2e-5, atol=2e-5 * float(exact.detach().abs().amax()))


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[5], SHAPES[6]], ids=str)
def test_transposed_ones_add_a_bias(shape: Any) -> None:
    (x, w, _), options = inputs(shape)
    y, bias = F.conv2d(x, w, **options), drawn(4, w.shape[1])
    plain = F.conv_transpose2d(y, w, None, **options)
    assert_close(F.conv_transpose2d(y, w, bias, **options), plain + bias.reshape(-1, 1, 1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[4], SHAPES[6]], ids=str)
def test_infinite_weights_reach_no_further_than_the_gradient(shape: Any) -> None:
    """What lies outside y takes no part in x: an infinite weight makes infinities, and NaN of zeros of y alone."""
    (x, w, _), options = inputs(shape)
    g = F.conv2d(x, w, **options).abs() + 1
    w = w.abs()
    w[0, 0, -1, -1] = norch.inf
    found = F.conv_transpose2d(g, w, **options)
    assert not found.isnan().any() and found[0, 0].isinf().any() and not found[0, 1:].isinf().any()


@pytest.mark.host  # these are the host's threads
@pytest.mark.parametrize("shape", SHAPES[:13], ids=str)
def test_threads_change_nothing(shape: Any) -> None:
    (x, w, b), options = inputs(shape)
    x.requires_grad_()
    before, found = norch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            norch.set_num_threads(threads)
            y = F.conv2d(x, w, b, **options)
            found.append((y.tolist(), norch.autograd.grad(y, x, drawn(3, *y.shape))[0].tolist()))
    finally:
        norch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("shape", SHAPES[:13], ids=str)
def test_layers_of_recordings_have_the_same_bits(shape: Any) -> None:
    (x, w, b), options = inputs(shape)

    check_recorded_layer(x, w, b, **options)


def test_refused_memory_changes_nothing() -> None:
    (x, w, b), options = inputs(SHAPES[6])
    x.requires_grad_()

    def unchanged() -> None:
        assert x.grad is None

    assert refusals(lambda: F.conv2d(x, w, b, **options).sum().backward(), unchanged)
