"""Products of float16 on the CPU: those of float32 of the same numbers, rounded once, whatever block is widened."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from product_operands import operands_at_odd_places, operands_of_layouts

import norch
from norch.nn import functional as F

pytestmark = [pytest.mark.host, pytest.mark.kernel]

# m, k, n: each algorithm of float32 and its edges; more rows, columns and terms than a block has
SIZES = [
    (1, 1, 1),
    (1, 64, 1),
    (5, 64, 1),
    (1, 5, 7),
    (7, 5, 1),
    (1, 1100, 70),  # dot products, or a sum of rows
    (3, 2050, 37),
    (5, 1040, 1030),  # sums of rows of a large B
    (33, 47, 65),
    (130, 333, 100),
    (140, 1, 90),
    (200, 3, 2100),
    (700, 64, 9),
    (40, 0, 5),
    (300, 400, 330),  # blocks, packed
    (401, 1100, 333),
]


def halves(rng: Any, *shape: int) -> Any:
    return norch.tensor(rng.normal(size=shape)).half()


def check(found: Any, a: Any, b: Any) -> None:
    assert found.dtype is norch.float16
    assert norch.equal(found, (a.float() @ b.float()).half())


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    m, k, n = sizes
    for a, b in operands_of_layouts(partial(halves, rng), m, k, n):
        check(a @ b, a, b)
    x, weight, bias = halves(rng, m, k), halves(rng, n, k), halves(rng, n)
    assert norch.equal(F.linear(x, weight, bias), F.linear(x.float(), weight.float(), bias.float()).half())


def test_operands_at_odd_places_and_strides() -> None:
    rng = np.random.default_rng(0)
    a, b, row = halves(rng, 40, 101), halves(rng, 101, 90), halves(rng, 202)[::2]
    for left, right in operands_at_odd_places(a, b, row):
        check(left @ right, left, right)
    check(a @ row[:, None].expand(101, 70), a, row[:, None].expand(101, 70))
    check(a[0, 0].expand(40, 101) @ b, a[0, 0].expand(40, 101), b)
    column = halves(rng, 30, 1)
    for one in (b[:1, :1].expand(1, 70), b[:, :1].T, b[::2, 3:4].T):  # one row, whose numbers lie apart
        check(column @ one, column, one)
    two = halves(rng, 2, 1, 30, 40).expand(2, 3, 30, 40)
    check(two @ b[:40], two, b[:40])


def test_a_sum_that_float16_cannot_hold_on_the_way() -> None:
    a = norch.tensor([[60000.0, 60000.0, -60000.0, -60000.0, 1.0]]).half()
    assert (a @ norch.ones(5, 1).half()).item() == 1.0
    assert (a[:, :2] @ norch.ones(2, 1).half()).isinf().all()
    assert norch.isnan(norch.full((2, 3), norch.inf).half() @ norch.zeros(3, 40).half()).all()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    a, b, before = halves(rng, 200, 300), halves(rng, 300, 500), norch.get_num_threads()
    large = halves(rng, 450, 400), halves(rng, 400, 420)
    found = []
    try:
        for count in (1, 2, 5):
            norch.set_num_threads(count)
            found.append((a @ b, a[:4] @ b, a[:1] @ b.T.contiguous().T, b.T @ a.T, large[0] @ large[1]))
    finally:
        norch.set_num_threads(before)
    for others in found[1:]:
        assert all(norch.equal(x, y) for x, y in zip(found[0], others, strict=True))


def test_a_recorded_product_is_one_call() -> None:
    """Nothing is widened as a whole."""
    rng = np.random.default_rng(0)
    x, weight, bias = halves(rng, 5, 64), halves(rng, 70, 64), halves(rng, 70)
    step = norch.capture(lambda x: F.relu(F.linear(x, weight, bias)))
    for _ in range(4):
        out = step(x)
    assert norch.equal(out, F.relu(F.linear(x, weight, bias)))
    assert not any(name == "copy" for name, *_ in step.program.calls())
