"""Products of float32 on tensor cores, layout by layout: their edges, parts and batches, how precise they are, and what
becomes of infinities. They run where there is a CUDA device: in make test-cudasim."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from conftest import load_torch

import norch
from norch import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")

LAYOUTS = ["nn", "nt", "tn", "tt"]
# Tensor cores take products that are large for the device: sizes here are for the simulation's four multiprocessors.
SCALE = cuda.get_device_properties().multi_processor_count // 4 if cuda.is_available() else 1


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
    a, b = drawn(0, m, k * SCALE), drawn(1, k * SCALE, n)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout: str) -> None:
    a, b = drawn(0, 3, 60, 260 * SCALE), drawn(1, 2, 1, 260 * SCALE, 92)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


def test_rows_apart() -> None:
    k = 300 * SCALE
    a, b = drawn(0, 120, k), drawn(1, k, 240)
    for shift in (0, 1, 4):  # rows begin at addresses that 16 divides, or do not
        wide = norch.zeros(120, k + 20, device="cuda")
        wide[:, shift : shift + k] = norch.tensor(a, device="cuda")
        assert_near(wide[:, shift : shift + k] @ norch.tensor(b, device="cuda"), a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_infinities(layout: str) -> None:
    """They and NaN come out where sums of float32 have them, and change nothing elsewhere."""
    a, b = drawn(0, 130, 320 * SCALE), drawn(1, 320 * SCALE, 224)
    a[3, 7], a[100, 5], b[9, 11], b[300, 200] = np.inf, np.nan, -np.inf, 3.4028e38  # the last rounds to infinity
    a[50, 9], a[:, 300], b[7, 60:] = 0, 1e-30, 0
    a[60:70, 20], b[20, 100:120] = 1.1e38, np.linspace(-1e20, 1e20, 20)  # products that overflow
    a[70:, 20] = a[:60, 20] = 0
    with np.errstate(invalid="ignore", over="ignore"):
        exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    found = (laid_out(a, layout[0]) @ laid_out(b, layout[1])).cpu().numpy()
    finite = np.isfinite(exact)
    assert np.isnan(exact).sum() > 300 and np.isinf(exact).sum() > 150 and finite.sum() > 25000
    np.testing.assert_array_equal(found[~finite], exact[~finite])
    np.testing.assert_allclose(found[finite], exact[finite], atol=2e-5 * SCALE, rtol=1e-6)


# ---- how precise -----------------------------------------------------------------------------------------------------


def error_of(found: norch.Tensor, exact: np.ndarray) -> float:
    """The root of the mean square of errors, relative to that of the sums."""
    return float(np.sqrt(np.mean((found.cpu().numpy() - exact) ** 2) / np.mean(exact**2)))


@pytest.mark.parametrize("k", [1, 16, 100, 256, 1000, 4096, 16384, 65536])
def test_error_by_length(k: int) -> None:
    simulated = cuda.get_device_properties().simulated
    rows = max(16, 2 * round((2**23 * SCALE / k) ** 0.5 / 2)) if k >= 256 else 60
    a, b = drawn(0, rows, k), drawn(1, k, rows + 8)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    error = error_of(norch.tensor(a, device="cuda") @ norch.tensor(b, device="cuda"), exact)
    assert error < 4e-7 + 1e-11 * k
    torch = None if simulated else load_torch()
    if torch is not None and torch.cuda.is_available():  # by cuBLAS, in full float32
        torch.backends.cuda.matmul.allow_tf32 = False
        theirs = torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda()
        assert error <= 2 * error_of(theirs, exact)


def test_sums_do_not_drift() -> None:
    """Tensor cores cut their sums: of positive numbers all errors have one sign."""
    a, b = np.abs(drawn(0, 40 * SCALE, 4000)), np.abs(drawn(1, 4000, 60))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert error_of(norch.tensor(a, device="cuda") @ norch.tensor(b, device="cuda"), exact) < 1e-6


@pytest.mark.parametrize(("m", "n", "k"), [(120, 224, 320), (125, 67, 1027)], ids=str)
def test_precisions(m: int, n: int, k: int) -> None:
    a, b = drawn(0, m, k * SCALE), drawn(1, k * SCALE, n)
    a[5, 9], a[6, 10], a[7, 11] = np.nan, np.inf, -1e38
    rows = [i for i in range(m) if i not in (5, 6, 7)]
    exact = (a.astype(np.float64) @ b.astype(np.float64))[rows]
    settings = norch.backends.cuda.matmul
    bounds = {"none": (0, 1e-6), "ieee": (0, 1e-6), "tf32": (1e-4, 1e-3)}
    try:
        for precision, (least, most) in bounds.items():
            settings.fp32_precision = precision
            found = norch.tensor(a, device="cuda") @ norch.tensor(b, device="cuda")
            assert least <= error_of(found[rows], exact) <= most, precision
            special = found[5:8].cpu().numpy()
            assert np.isnan(special[0]).all() and np.isinf(special[1]).all() and np.isfinite(special[2]).all(), (
                precision
            )
    finally:
        settings.fp32_precision = "none"


# ---- as TF32 by wgmma ------------------------------------------------------------------------------------------------


@pytest.fixture
def tf32(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, int], None]]:
    """TF32, of which the simulation may be told the kernel and the number of parts."""
    norch.backends.cuda.matmul.fp32_precision = "tf32"
    yield lambda kernel, parts: monkeypatch.setenv("NORCH_MATMUL_16BIT", f"{kernel},{parts}")
    norch.backends.cuda.matmul.fp32_precision = "none"


def assert_tf32(found: norch.Tensor, a: np.ndarray, b: np.ndarray) -> None:
    """Both factors of each term lie within half of 2^-10 of theirs, and are rounded: errors cancel."""
    assert_near(found, a, b, 1.1e-3)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert 1e-4 < error_of(found, exact) < 4e-4


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("kernel", range(4))
def test_tiles_of_tf32(tf32: Callable[[int, int], None], kernel: int, parts: int) -> None:
    tf32(kernel, parts)
    for m, n, k in ((136, 72, 860), (132, 259, 512)):
        a, b = drawn(0, m, k * SCALE), drawn(1, k * SCALE, n)
        assert_tf32(laid_out(a, "n") @ laid_out(b, "t"), a, b)


def test_tf32_is_multiplied_by_wgmma(tf32: Callable[[int, int], None]) -> None:
    """The number of parts, which shows in the last bits, is what its kernels are told."""
    if not cuda.get_device_properties().simulated:
        pytest.skip("a device chooses itself")
    a, b = drawn(0, 136, 512), drawn(1, 512, 136)
    for layout in LAYOUTS:
        found = []
        for parts in (1, 2):
            tf32(3, parts)
            found.append(laid_out(a, layout[0]) @ laid_out(b, layout[1]))
        assert not found[0].equal(found[1])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("m", "n", "k"), [(152, 208, 260), (205, 150, 279)], ids=str)
def test_layouts_of_tf32(tf32: object, layout: str, m: int, n: int, k: int) -> None:
    """wgmma takes what lies along k in rows of whole 16 bytes; of others it gets copies."""
    a, b = drawn(0, m, k * SCALE), drawn(1, k * SCALE, n)
    assert_tf32(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)


def test_batches_of_tf32(tf32: object) -> None:
    k = 260 * SCALE
    a, b, bias = drawn(0, 3, 60, k), drawn(1, 2, 1, k, 188), drawn(2, 188)
    for layout in ("nt", "tn"):
        assert_tf32(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b)
    one = drawn(3, 160, k)
    shared = norch.tensor(one, device="cuda").mT.contiguous().mT.expand(2, 160, k)
    assert_tf32(shared @ laid_out(b[:, 0], "t"), one, b[:, 0])
    found = norch.nn.functional.linear(norch.tensor(a, device="cuda"), laid_out(b[0, 0], "t").mT, laid_out(bias, "n"))
    assert_tf32(found - laid_out(bias, "n"), a, b[0, 0])


# ---- of float64 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(140, 72, 50), (67, 131, 33), (20, 30, 400), (33, 35, 517), (250, 252, 70), (251, 249, 65), (996, 60, 36)],
    ids=str,
)
def test_float64(layout: str, m: int, n: int, k: int) -> None:
    """Of tiles of 64 x 64, the same in parts, of 128 x 128, and of 128 x 64."""
    a, b = drawn(0, m, k).astype(np.float64), drawn(1, k, n).astype(np.float64)
    assert_near(laid_out(a, layout[0]) @ laid_out(b, layout[1]), a, b, 1e-15)


def test_batches_of_float64_with_a_bias() -> None:
    a, b, bias = (drawn(i, *s).astype(np.float64) for i, s in enumerate(((3, 30, 40), (50, 40), (50,))))
    found = norch.nn.functional.linear(*(norch.tensor(x, device="cuda") for x in (a, b, bias)))
    np.testing.assert_allclose(found.cpu().numpy(), a @ b.T + bias, rtol=1e-13, atol=1e-13)


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
