"""Convolutions of one tap, and their gradients: against sums of NumPy in float64; their threads and their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import check_recorded_layer, refusals

import norch
import norch.nn.functional as F
from norch.ops.conv import _conv, _conv_input, _conv_weight, geometry_of
from norch.testing import assert_close

pytestmark = [pytest.mark.host, pytest.mark.kernel]

# batch, groups, channels in and out of a group, size of the result, stride
SHAPES = [
    (1, 1, 24, 40, (8, 16), 1),  # images are read where they lie: of whole vectors
    (1, 1, 300, 90, (6, 16), 1),  # in parts of the sums
    (1, 1, 70, 50, (16, 64), 1),  # rows of images meet in the same lines of a cache
    (1, 1, 256, 30, (9, 11), 1),  # rows of the weight do
    (1, 1, 33, 47, (10, 11), 1),
    (1, 1, 600, 70, (7, 7), 1),  # few positions: the product is turned
    (1, 1, 70, 601, (4, 4), 1),
    (3, 1, 40, 36, (5, 7), 1),  # panels of two images, and of three
    (5, 1, 300, 20, (3, 3), 1),
    (9, 1, 34, 3, (1, 2), 1),
    (2, 3, 20, 18, (6, 7), 1),
    (1, 2, 40, 72, (7, 7), 1),
    (2, 2, 17, 33, (7, 5), 2),
    (3, 1, 1, 1, (5, 5), 3),
]


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def inputs(shape: Any) -> tuple[list[Any], Any, dict[str, int]]:
    """x, the weight and the bias, a gradient of y, and the options of conv2d."""
    batch, groups, fan_in, fan_out, size, stride = shape
    x = drawn(0, batch, groups * fan_in, *[(n - 1) * stride + 1 for n in size])
    given = [x, drawn(1, groups * fan_out, fan_in, 1, 1), drawn(2, groups * fan_out)]
    return given, drawn(3, batch, groups * fan_out, *size), {"stride": stride, "groups": groups}


def expected(shape: Any) -> list[Any]:
    """y, and the gradients of x, the weight and the bias."""
    batch, groups, fan_in, fan_out, size, stride = shape
    (x, w, b), g, _ = inputs(shape)
    seen = x[:, :, ::stride, ::stride].reshape(batch, groups, fan_in, *size)
    w, g = w.reshape(groups, fan_out, fan_in), g.reshape(batch, groups, fan_out, *size)
    spread = np.zeros_like(x)
    spread[:, :, ::stride, ::stride] = np.einsum("goi,ngohw->ngihw", w, g).reshape(batch, groups * fan_in, *size)
    y = np.einsum("goi,ngihw->ngohw", w, seen).reshape(batch, groups * fan_out, *size) + b[:, None, None]
    return [
        y,
        spread,
        np.einsum("ngohw,ngihw->goi", g, seen)[..., None, None].reshape(-1, fan_in, 1, 1),
        g.sum((0, 3, 4)),
    ]


def found(shape: Any, dtype: Any) -> list[Any]:
    given, g, options = inputs(shape)
    x, w, b = (norch.tensor(one).to(dtype).requires_grad_() for one in given)
    y = F.conv2d(x, w, b, **options)
    return [y.detach(), *norch.autograd.grad(y, [x, w, b], norch.tensor(g).to(dtype))]


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_those_of_numpy(shape: Any, dtype: Any) -> None:
    for mine, exact in zip(found(shape, dtype), expected(shape), strict=True):
        tolerance = (2e-5 if dtype == norch.float32 else 1e-13) * float(np.abs(exact).max())
        assert_close(mine.double(), norch.tensor(exact).reshape(mine.shape), rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "shape", [(1, 1, 128, 130, (28, 28), 1), (6, 1, 130, 128, (6, 6), 1), (1, 1, 600, 900, (7, 7), 1)]
)
def test_threads_change_nothing(shape: Any) -> None:
    before = norch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            norch.set_num_threads(threads)
            results.append(found(shape, norch.float32))
    finally:
        norch.set_num_threads(before)
    for other in results[1:]:
        assert all(norch.equal(one, two) for one, two in zip(results[0], other, strict=True))


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[5], SHAPES[7], SHAPES[12]], ids=str)
def test_an_infinity_reaches_its_positions_only(shape: Any) -> None:
    (x, w, _), _, options = inputs(shape)
    x[0, 0, 0, 0] = np.inf
    y = F.conv2d(norch.tensor(x).float(), norch.tensor(w).float(), **options)
    wild = ~norch.isfinite(y)
    assert bool(wild[0, : shape[3], 0, 0].all()) and int(wild.sum()) == shape[3]


@pytest.mark.parametrize("shape", [SHAPES[3], SHAPES[5], SHAPES[8], SHAPES[12]], ids=str)
def test_memory_that_is_refused(shape: Any) -> None:
    given, _, options = inputs(shape)
    x, w, b = (norch.tensor(one).float() for one in given)
    wanted = F.conv2d(x, w, b, **options)
    assert refusals(lambda: F.conv2d(x, w, b, **options))
    assert norch.equal(F.conv2d(x, w, b, **options), wanted)


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.bfloat16], ids=str)
@pytest.mark.parametrize("after", [(2, 5), (0, 1), (-1, -2), (3, -6)], ids=str)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)], ids=str)
def test_padding_behind_x_is_zeros_and_negative_padding_crops(stride: Any, after: Any, dtype: Any) -> None:
    x, w = norch.tensor(drawn(0, 2, 32, 7, 9)).to(dtype), norch.tensor(drawn(1, 16, 32, 1, 1)).to(dtype)
    behind, none = (geometry_of(stride, (0, 0), n, (1, 1), 1) for n in (after, (0, 0)))
    padded = F.pad(x, (0, after[1], 0, after[0]))
    y = _conv(padded, w, None, none)
    g = norch.tensor(drawn(2, *y.shape)).to(dtype)
    spread = F.pad(_conv_input(g, w, None, none, tuple(padded.shape[2:])), (0, -after[1], 0, -after[0]))
    tolerance = {norch.float32: 1e-4, norch.float64: 1e-12, norch.bfloat16: 0.5}[dtype]
    for mine, wanted in (
        (_conv(x, w, None, behind), y),
        (_conv_input(g, w, None, behind, (7, 9)), spread),
        (_conv_weight(x, g, behind, (1, 1)), _conv_weight(padded, g, none, (1, 1))),
    ):
        assert_close(mine, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("after", [(2, 5), (-1, -2)], ids=str)
def test_a_layer_of_a_recording_crops(after: Any) -> None:
    shapes = [(4, 32, 11, 13), (48, 32, 1, 1), (32, 32, 3, 3), (48,)]
    x, w, first, b = (norch.tensor(drawn(i, *shape)).float() for i, shape in enumerate(shapes))
    geometry = geometry_of((1, 1), (0, 0), after, (1, 1), 1)

    def run(x: Any) -> Any:
        with norch.inference_mode():
            return _conv(F.conv2d(x, first, padding=1).relu(), w, b, geometry).relu()

    captured = norch.capture(run)
    for _ in range(4):
        assert norch.equal(captured(x), run(x))


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[5], SHAPES[7], SHAPES[12]], ids=str)
def test_layers_of_recordings_have_the_same_bits(shape: Any) -> None:
    given, _, options = inputs(shape)
    x, w, b = (norch.tensor(one).float() for one in given)

    check_recorded_layer(x, w, b, **options)
