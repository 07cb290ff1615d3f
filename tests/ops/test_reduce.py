"""Reductions over runs of every length: what a kernel does with whole blocks, and with what is left over."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch._binding.library import lib

LENGTHS = [*range(1, 150), 191, 192, 255, 256, 257, 1000]


def _rows(values: np.ndarray, layout: str) -> norch.Tensor:
    """The matrix, whose rows are dense or every second number of what is in memory."""
    if layout == "dense":
        return norch.tensor(values)
    return norch.tensor(np.repeat(values, 2, axis=1))[:, ::2]


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_runs_of_every_length(dtype, layout):
    random = np.random.default_rng(0)
    for n in LENGTHS:
        values = random.integers(0, 2 if dtype == "bool" else 50, (1 + n % 19, n)).astype(dtype)
        x = _rows(values, layout)
        assert np.array_equal(x.sum(1).numpy(), values.sum(1)), n
        assert np.array_equal(x.amax(1).numpy(), values.max(1)), n
        assert np.array_equal(x.amin(1).numpy(), values.min(1)), n
        assert np.array_equal(x.argmax(1).numpy(), values.argmax(1)), n  # the first of equal ones
        assert np.array_equal(x.any(1).numpy(), values.any(1)), n
        if dtype in ("float32", "float64"):
            tolerance = 1e-5 if dtype == "float32" else 1e-13
            np.testing.assert_allclose(x.var(1, correction=0).numpy(), values.var(1), rtol=tolerance, atol=tolerance)
            top = values.max(1, keepdims=True)
            expected = np.log(np.exp(values - top).sum(1)) + top[:, 0]
            np.testing.assert_allclose(x.logsumexp(1).numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-13)])
def test_products_of_pieces(dtype, tolerance, layout):
    random = np.random.default_rng(0)
    for shape in [(2047,), (2048,), (2049,), (3, 5000), (2, 70_000)]:
        values = np.exp(random.normal(0, 0.01, shape)).astype(dtype)
        product = np.log(values.astype(float)).sum(-1)
        found = _rows(np.atleast_2d(values), layout).prod(1).numpy()
        np.testing.assert_allclose(np.log(found.astype(float)), np.atleast_1d(product), atol=10 * tolerance)


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_a_nan_is_found_wherever_it_stands(layout):
    for n in (3, 8, 13, 40, 64, 77, 130, 200):
        values = np.random.default_rng(n).uniform(-1, 1, (n, n)).astype("float32")
        np.fill_diagonal(values, np.nan)
        x = _rows(values, layout)
        assert np.array_equal(x.argmax(1).numpy(), np.arange(n))
        assert np.array_equal(x.argmin(1).numpy(), np.arange(n))
        assert all(norch.isnan(y).all() for y in (x.sum(1), x.amax(1), x.amin(1), x.var(1), x.logsumexp(1)))


@pytest.mark.parametrize("shape", [(8, 64, 7, 7), (3, 70, 14, 14), (2, 3, 100, 60), (40, 2, 3, 3)])
def test_runs_over_several_axes(shape):
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.float32)
    for dtype in (norch.float32, norch.bfloat16, norch.int64):
        t = norch.tensor(x).to(dtype)
        for dims in ((0, 2, 3), (1, 3), (0, 3)):
            assert (t.sum(dims, dtype=norch.float32).numpy() == x.sum(dims)).all() or dtype is norch.bfloat16
            assert (t.amax(dims).to(norch.float32).numpy() == x.max(dims)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_columns_of_narrow_matrices(dtype):
    """Several rows are reduced as one, from some hundred rows on."""
    random = np.random.default_rng(0)
    for columns in (2, 3, 5, 7, 8, 10, 31, 32, 33, 63, 64, 65):
        for rows in (128 // columns * 8 - 1, 128 // columns * 8, 1000, 1009, 70000 // columns):
            values = random.integers(0, 2 if dtype == "bool" else 50, (rows, columns)).astype(dtype)
            x = norch.tensor(values)
            assert np.array_equal(x.sum(0).numpy(), values.sum(0)), (rows, columns)
            assert np.array_equal(x.amax(0).numpy(), values.max(0)), (rows, columns)
            assert np.array_equal(x.all(0).numpy(), values.all(0)), (rows, columns)
            assert np.array_equal(x.argmax(0).numpy(), values.argmax(0)), (rows, columns)
            if dtype in ("float32", "float64"):
                tolerance = 1e-5 if dtype == "float32" else 1e-13
                exact = values.astype("float64").var(0)
                np.testing.assert_allclose(x.var(0, correction=0).numpy(), exact, rtol=tolerance)
                values[rows // 2, columns // 2] = np.nan
                lost = norch.isnan(norch.tensor(values).amax(0)).tolist()
                assert lost == [column == columns // 2 for column in range(columns)]


def test_best_of_one():
    x = norch.tensor([[2.0], [float("nan")]])
    assert x.argmax(1).tolist() == [0, 0] and x.argmin(1, keepdim=True).tolist() == [[0], [0]]
    assert norch.zeros(0, 1).argmax(1).shape == (0,) and norch.tensor(3).argmax().item() == 0


def test_results_with_names() -> None:
    x = norch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    found = x.max(1)
    values, indices = found
    assert found.values is values is found[0] and found.indices is indices and found._fields == ("values", "indices")
    assert found._replace(values=None)._asdict() == {"values": None, "indices": indices}
    assert repr(found) == f"max_result(values={values!r}, indices={indices!r})"
    for again in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found)), type(found)(*found)):
        assert type(again) is type(found) and again.values.tolist() == [5, 6] and again.indices.tolist() == [1, 2]
    assert isinstance(x.aminmax(), tuple) and x.aminmax().min.item() == 1 and x.aminmax().max.item() == 6


@pytest.mark.parametrize(
    ("dtype", "big"), [("float32", 5e37), ("float32", 3e38), ("float64", 1e308), ("bfloat16", 2e38)]
)
@pytest.mark.skipif(DEVICE != "cpu", reason="sums of other devices overflow")
def test_means_whose_sum_overflows(dtype, big):
    x = norch.full((4, 300, 40), big, dtype=dtype)
    one = x[0, 0, 0].item()
    for mean in (
        x.mean(),
        norch.var_mean(x)[1],
        norch.std_mean(x)[1],
        x[::2, ::3].mean(),
        norch.capture(norch.mean)(x),
    ):
        assert mean.item() == pytest.approx(one, rel=2 * norch.finfo(x.dtype).eps)
    for axes in (0, 1, 2, (0, 1), (0, 2), (1, 2)):
        for part in (x.mean(axes), x.transpose(0, 2).mean(axes)):
            assert set(part.flatten().tolist()) == {one}
    x[0, 0, 0], x[1, 0, 0], x[2, 0, 0], x[2, 0, 1] = math.inf, math.nan, math.inf, -math.inf
    found = x.mean((1, 2)).tolist()
    assert found[0] == math.inf and math.isnan(found[1]) and math.isnan(found[2]) and found[3] == one


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("p", [-3, -2, -1, -0.5, 0.3, 0.5, 3])
def test_norms_of_extreme_elements(dtype, p):
    far = {"float16": 1e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e200}[dtype]
    for values in (
        [far, 1 / far],
        [1 / far, 2 / far],
        [3.0, 4.0, 0.0],
        [math.inf, math.inf],
        [1.0, math.nan],
        [0.1, 5.0],
    ):
        x = norch.tensor(values, dtype=dtype, requires_grad=True)
        wide = np.abs(np.array(x.tolist(), dtype=np.longdouble))
        with np.errstate(all="ignore"):
            wanted = (wide**p).sum() ** (np.longdouble(1) / p)
        out = norch.linalg.vector_norm(x, p)
        rows = norch.linalg.vector_norm(norch.stack([x, x], 1), p, 0)
        np.testing.assert_allclose(out.item(), float(wanted), rtol=8 * norch.finfo(x.dtype).eps)
        np.testing.assert_allclose(rows.tolist(), [float(wanted)] * 2, rtol=8 * norch.finfo(x.dtype).eps)
        if 0 < p < 1 and values[-1] == 0:  # the second derivative by the others is finite
            (slope,) = norch.autograd.grad(out, x, create_graph=True)
            assert norch.autograd.grad(slope[:2].sum(), x)[0].isfinite().all()
        if p < 0 and values[0] == far:
            out.backward()
            assert x.grad.tolist() == pytest.approx([0.0, 1.0], abs=2e-3)  # of the smallest, nearly alone


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_truth_of_many_floats(dtype: str) -> None:
    """Of many elements any() and all() are those of bools."""
    values = np.random.default_rng(0).choice([0.0, -0.0, 1.0, np.nan, np.inf, 6e-8], (60, 100)).astype(dtype)
    values[:, :3], values[7], values[8], values[:, 3] = 1, 0, 1, 0
    x = norch.tensor(values)
    for axes in (None, 0, 1):
        np.testing.assert_array_equal(x.any(axes).numpy(), values.any(axes))
        np.testing.assert_array_equal(x.all(axes).numpy(), values.all(axes))
        np.testing.assert_array_equal(x.T.all(axes, keepdim=True).numpy(), values.T.all(axes, keepdims=True))


@pytest.mark.host
def test_truth_of_an_expanded_tensor_copies_nothing() -> None:
    """Its elements as bools may take more memory than there is."""
    allocations = []
    for x in (norch.zeros(5000), norch.zeros(1).expand(5000)):
        for _ in range(2):  # the second time, what is kept for reuse is there
            lib.norch_fail_allocation(-1)
            assert not x.any()
            count = lib.norch_fail_allocation(-1)
        allocations.append(count)
    assert allocations[1] < allocations[0]
