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
    return norch.tensor(np.ascontiguousarray(values.mT), device="cuda").mT


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def assert_near(found: norch.Tensor, a: np.ndarray, b: np.ndarray, within: float = 6e-7) -> None:
    """The error of each sum against float64, relative to that of its terms' absolute values."""
    exact, scale = a.astype(np.float64) @ b.astype(np.float64), np.abs(a) @ np.abs(b)
    assert np.max(np.abs(found.cpu().numpy() - exact) / scale) < within


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(120, 224, 320), (125, 67, 1027), (20, 228, 1856), (260, 28, 1188), (31, 255, 1091)], ids=str
)
def test_layouts_and_edges(layout: str, m: int, n: int, k: int) -> None:
    a, b = drawn(0, m, k), drawn(1, k, n)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout: str) -> None:
    a, b = drawn(0, 3, 60, 260), drawn(1, 2, 1, 260, 92)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


def test_rows_apart() -> None:
    a, b = drawn(0, 120, 300), drawn(1, 300, 240)
    for shift in (0, 1, 4):  # rows begin at addresses that 16 divides, or do not
        wide = norch.zeros(120, 320, device="cuda")
        wide[:, shift : shift + 300] = norch.tensor(a, device="cuda")
        assert_near(wide[:, shift : shift + 300] @ norch.tensor(b, device="cuda"), a, b)


# ---- with a vector --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["n", "t"])
@pytest.mark.parametrize(("rows", "columns"), [(36, 2112), (2111, 35), (1, 3000), (7, 5)], ids=str)
def test_vectors(rows: int, columns: int, layout: str, dtype: type) -> None:
    a, x = drawn(0, rows, columns).astype(dtype), drawn(1, columns).astype(dtype)
    matrix = laid_out(a, layout)
    every_third = norch.tensor(np.repeat(x, 3), device="cuda")[::3]
    bias = norch.tensor(drawn(2, rows).astype(dtype), device="cuda")
    within = 6e-7 if dtype == np.float32 else 1e-15
    for vector in (norch.tensor(x, device="cuda"), every_third):
        assert_near(matrix @ vector, a, x, within)
        assert_near(vector @ matrix.T, a, x, within)
        assert_near(norch.nn.functional.linear(vector, matrix, bias) - bias, a, x, 3 * within)
    assert_near(matrix @ laid_out(x[:, None], "n"), a, x[:, None], within)


@pytest.mark.parametrize("layout", ["n", "t"])
def test_batches_of_vectors(layout: str) -> None:
    a, x = drawn(0, 5, 2, 33, 140), drawn(1, 2, 140, 1)
    assert_near(laid_out(a, layout) @ norch.tensor(x, device="cuda"), a, x)
    assert_near(laid_out(x.mT, layout) @ laid_out(a, layout).mT, x.mT, a.mT)
