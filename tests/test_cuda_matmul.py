"""Products of float32 on tensor cores, layout by layout: their edges, parts and batches, how precise they are, and what
becomes of infinities. They run where there is a CUDA device: in make test-cudasim."""

from __future__ import annotations

import numpy as np
import pytest

import norch
from norch import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")

LAYOUTS = ["nn", "nt", "tn", "tt"]


def laid_out(values: np.ndarray, letter: str) -> norch.Tensor:
    """On the device, dense along rows ("n") or columns ("t")."""
    if letter == "n":
        return norch.tensor(np.ascontiguousarray(values), device="cuda")
    return norch.tensor(np.ascontiguousarray(values.swapaxes(-1, -2)), device="cuda").mT


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def assert_near(found: norch.Tensor, a: np.ndarray, b: np.ndarray, within: float = 6e-7) -> None:
    """The error of each sum against float64, relative to that of its terms' absolute values."""
    exact, scale = a.astype(np.float64) @ b.astype(np.float64), np.abs(a) @ np.abs(b)
    assert np.max(np.abs(found.cpu().numpy() - exact) / scale) < within


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(72, 136, 288), (67, 131, 259), (20, 140, 1032), (133, 36, 516), (9, 130, 1031)],
    ids=lambda size: str(size),
)
def test_layouts_and_edges(layout: str, m: int, n: int, k: int) -> None:
    a, b = drawn(0, m, k), drawn(1, k, n)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout: str) -> None:
    a, b = drawn(0, 3, 33, 260), drawn(1, 2, 1, 260, 40)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


def test_rows_apart() -> None:
    a, b = drawn(0, 40, 300), drawn(1, 300, 50)
    for shift in (0, 1, 4):  # rows begin at addresses that 16 divides, or do not
        wide = norch.zeros(40, 320, device="cuda")
        wide[:, shift : shift + 300] = norch.tensor(a, device="cuda")
        assert_near(wide[:, shift : shift + 300] @ norch.tensor(b, device="cuda"), a, b)
