"""Convolutions of bfloat16 on the CPU and their gradients, by AMX where the processor has it, beside float64."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from checks import refusals

import norch
from norch.nn import functional as F
from norch.ops.conv import _conv, _conv_input, _conv_weight, geometry_of

pytestmark = pytest.mark.kernel
LARGE = os.environ.get("NORCH_AMX") != "emulated"  # which takes seconds for them

# batch, groups, channels of a group of x and y, size, kernel, stride, padding before and after, dilation
SHAPES = [
    (1, 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), (1, 1)),
    (2, 1, (3, 20), (23, 30), (7, 7), (2, 2), (3, 3), (3, 3), (1, 1)),  # unfolded: few channels
    (1, 1, (64, 48), (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),  # few positions
    (3, 1, (32, 64), (5, 4), (2, 2), (2, 2), (0, 0), (0, 0), (1, 1)),  # taps that do not meet; the weight in place
    (2, 1, (17, 33), (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    (5, 1, (40, 16), (15, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),  # four phases
    (1, 1, (33, 70), (16, 28), (5, 3), (1, 2), (0, 2), (1, 0), (2, 1)),
    (2, 1, (16, 31), (12, 9), (1, 3), (2, 1), (1, 0), (0, 1), (1, 3)),
    (2, 1, (24, 144), (9, 9), (1, 1), (1, 1), (0, 0), (0, 0), (1, 1)),
    (2, 1, (70, 34), (8, 7), (1, 1), (2, 2), (0, 0), (0, 0), (1, 1)),  # positions that no tap meets
    (2, 3, (16, 17), (10, 11), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    (1, 8, (4, 4), (10, 11), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),  # in float32, as the next two
    (2, 40, (1, 1), (9, 9), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    (1, 1, (16, 16), (20, 20), (4, 4), (4, 4), (0, 0), (0, 0), (1, 1)),
    (1, 1, (2, 3), (60, 70), (9, 8), (1, 1), (4, 4), (4, 3), (1, 1)),  # more taps than a plan has
    (1, 1, (17, 18), (1, 5001), (1, 7), (1, 1), (0, 3), (0, 3), (1, 1)),  # parts of a row
    *([(3, 1, (32, 16), (90, 100), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))] if LARGE else []),  # parts of a sample
]


def halves(*shape: int) -> norch.Tensor:
    return norch.tensor(np.random.default_rng(sum(shape)).normal(size=shape)).bfloat16()


def check(found: norch.Tensor, wanted: norch.Tensor, size: norch.Tensor) -> None:
    """Sums in float32 whose terms add up to size at most, rounded once to bfloat16, of 8 digits."""
    assert found.dtype is norch.bfloat16
    wanted, error = wanted.numpy(), np.abs(found.double().numpy() - wanted.numpy())
    assert (error <= 2.0**-8 * np.abs(wanted) + 2.0**-19 * size.numpy()).all()


def results(x: Any, weight: Any, y: Any, biases: Any, geometry: Any) -> list[norch.Tensor]:
    size, kernel = tuple(x.shape[2:]), tuple(weight.shape[2:])
    return [
        _conv(x, weight, biases[0], geometry),
        _conv_input(y, weight, biases[1], geometry, size),
        _conv_weight(x, y, geometry, kernel),
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: re.sub(r"[ ()]", "", str(shape)).replace(",", "-"))
def test_values_beside_float64_and_any_number_of_threads(shape: Any) -> None:
    batch, groups, (n_in, n_out), size, kernel, stride, before, after, dilation = shape
    geometry = geometry_of(stride, before, after, dilation, groups)
    x, weight = halves(batch, groups * n_in, *size), halves(groups * n_out, n_in, *kernel)
    y = halves(*_conv(x.float(), weight.float(), None, geometry).shape)
    for biases in ((None, None), (halves(groups * n_out), halves(groups * n_in))):
        operands = (x, weight, y, biases)
        doubles = (x.double(), weight.double(), y.double(), [b if b is None else b.double() for b in biases])
        sizes = (*(v.abs() for v in doubles[:3]), [b if b is None else b.abs() for b in doubles[3]])
        alone = results(*operands, geometry)
        for found, wanted, most in zip(alone, results(*doubles, geometry), results(*sizes, geometry), strict=True):
            check(found, wanted, most)
        threads = norch.get_num_threads()
        try:
            for count in (1, 2, 3):
                norch.set_num_threads(count)
                assert all(map(norch.equal, results(*operands, geometry), alone))
        finally:
            norch.set_num_threads(threads)


def test_what_is_not_finite_is_that_of_float32() -> None:
    x, weight = halves(2, 16, 9, 9), halves(16, 16, 3, 3)
    x[0, 3, 4, 4] = float("inf")
    x[1, 2, 8, 8] = float("nan")
    operands = (x, weight, halves(2, 16, 9, 9), (None, None))
    geometry = geometry_of((1, 1), (1, 1), (1, 1), (1, 1), 1)
    wide = results(*(v.float() for v in operands[:3]), (None, None), geometry)
    for found, wanted in zip(results(*operands, geometry), wide, strict=True):
        a, b = found.float().numpy(), wanted.bfloat16().float().numpy()
        assert np.array_equal(np.isnan(a), np.isnan(b))
        assert np.array_equal(np.isinf(a), np.isinf(b))


@pytest.mark.parametrize("n_in", [3, 32])
def test_captured_training_equals_eager_training(n_in: int) -> None:
    def loss(x: norch.Tensor, weight: norch.Tensor, bias: norch.Tensor) -> Any:
        y = F.conv2d(x, weight, bias, stride=2, padding=1).relu()
        return norch.autograd.grad(y.float().square().sum(), (x, weight, bias))

    operands = [v.requires_grad_() for v in (halves(2, n_in, 12, 11), halves(40, n_in, 3, 3), halves(40))]
    captured = norch.capture(loss)
    for _ in range(3):
        assert all(map(norch.equal, captured(*operands), loss(*operands)))


@pytest.mark.host
def test_failing_allocations() -> None:
    operands = (halves(2, 32, 9, 9), halves(16, 32, 3, 3), halves(2, 16, 9, 9), (None, None))
    geometry = geometry_of((1, 1), (1, 1), (1, 1), (1, 1), 1)
    wanted = results(*operands, geometry)
    assert refusals(lambda: results(*operands, geometry)) >= 6
    assert all(map(norch.equal, results(*operands, geometry), wanted))
