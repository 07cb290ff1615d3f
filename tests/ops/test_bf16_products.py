"""Products of bfloat16 on the CPU, by AVX512-BF16 where the processor has it, beside those of float64."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from product_operands import operands_at_odd_places, operands_of_layouts

import norch
from norch.nn import functional as F

pytestmark = pytest.mark.kernel

# m, k, n: single rows and columns, odd sizes, dot products of few rows, edges of tiles and panels, blocks of rows
SIZES = [
    *(
        (1, 1, 1),
        (1, 64, 1),
        (3, 5, 7),
        (14, 2, 32),
        (15, 33, 33),
        (16, 31, 17),
        (1, 100, 50),
        (100, 64, 1),
        (8, 64, 9),
    ),
    *(
        (9, 64, 9),
        (7, 65, 13),
        (64, 300, 70),
        (33, 0, 5),
        (29, 1000, 47),
        (130, 515, 65),
        (1, 2000, 3),
        (1, 35, 1100),
        (2, 40, 130),
        (40, 1100, 150),
        (70, 64, 200),
        (90, 96, 40),
        (50, 100, 130),  # rows of the left operand that are no lines of the cache
        pytest.param((150, 9000, 40), marks=pytest.mark.host),  # blocks of the CPU; simulated in 16 s
    ),
]


def halves(rng: Any, *shape: int) -> Any:
    return norch.tensor(rng.normal(size=shape)).bfloat16()


def check(found: Any, a: Any, b: Any, more: Any = 0.0) -> None:
    """found is a @ b + more, summed in float32 and rounded once to bfloat16, of 8 digits."""
    assert found.dtype is norch.bfloat16
    a, b = a.double().numpy(), b.double().numpy()
    wanted, size = a @ b + more, np.abs(a) @ np.abs(b) + np.abs(more)
    error = np.abs(found.double().numpy() - wanted)
    assert (error <= 2.0**-8 * np.abs(wanted) + 2.0**-22 * max(1.0, math.sqrt(a.shape[-1])) * size).all()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    m, k, n = sizes
    for a, b in operands_of_layouts(partial(halves, rng), m, k, n):
        check(a @ b, a, b)
    a, weight, bias = halves(rng, m, k), halves(rng, n, k), halves(rng, n)
    check(F.linear(a, weight, bias), a, weight.T, bias.double().numpy())


def test_operands_at_odd_places_and_strides() -> None:
    rng = np.random.default_rng(0)
    a, b, row = halves(rng, 40, 101), halves(rng, 101, 90), halves(rng, 202)[::2]
    for left, right in operands_at_odd_places(a, b, row):
        check(left @ right, left, right)
    check(a[:3, 1:] @ b.T.contiguous()[:, 1:].T, a[:3, 1:], b[1:])


def test_infinities_and_nan_come_through() -> None:
    for n, of_b in itertools.product((3, 40), (False, True)):
        a, b = norch.ones(5, 70), norch.ones(70, n)
        a[0, 69], a[1, 0], b[3, 1] = math.inf, math.nan, -math.inf
        a, b = a.bfloat16(), b.T.bfloat16().contiguous().T if of_b else b.bfloat16()
        np.testing.assert_array_equal((a @ b).float().numpy(), (a.float() @ b.float()).numpy())
    huge = norch.full((2, 64), 3e38).bfloat16()
    assert (huge @ huge.T).isinf().all()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    a, b, before = halves(rng, 200, 300), halves(rng, 300, 500), norch.get_num_threads()
    weight, x = halves(rng, 700, 650), halves(rng, 40, 650)  # few rows, whose product is turned
    found = []
    try:
        for count in (1, 2, 5):
            norch.set_num_threads(count)
            found.append((a @ b, a[:4] @ b.T.contiguous().T, x @ weight.T, x[:1] @ weight.T, x[:1, :300] @ b))
    finally:
        norch.set_num_threads(before)
    for others in found[1:]:
        assert all(norch.equal(x, y) for x, y in zip(found[0], others, strict=True))


def test_a_row_is_the_same_alone_as_among_others_of_its_tile() -> None:
    rng = np.random.default_rng(0)
    a, b = halves(rng, 64, 200), halves(rng, 200, 64)
    assert norch.equal((a @ b)[16:48], a[16:48] @ b)


def test_more_lanes_of_a_short_sum_than_are_packed_at_once() -> None:
    """By AMX 8192 rows of A, or columns of a B that is contiguous along k, are multiplied before the next ones."""
    rng = np.random.default_rng(0)
    many, few = halves(rng, 16000, 33), halves(rng, 33, 64)
    check(many @ few, many, few)
    check(few.T @ many.T, few.T, many.T)
