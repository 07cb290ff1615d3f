"""composed/numeric.py and composed/histogram.py against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import norch
from norch.testing import assert_close, gradcheck, gradgradcheck

INTEGERS = np.array([0, 1, -4, 12, 18, 17, -120, 127])


def same(a: norch.Tensor, b: Any) -> None:
    assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
    np.testing.assert_array_equal(a.float().numpy(force=True), b.float().numpy())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors(torch: Any, name: str, dtype: str) -> None:
    numbers = np.abs(INTEGERS) if dtype == "uint8" else INTEGERS
    if name == "lcm" and dtype in ("int8", "int16"):  # products that wrap
        numbers = np.append(numbers, [np.iinfo(dtype).max, np.iinfo(dtype).min])
    a, b = (norch.tensor(numbers.tolist(), dtype=getattr(norch, dtype)) for _ in "ab")
    x, y = (torch.tensor(numbers.tolist(), dtype=getattr(torch, dtype)) for _ in "ab")
    same(getattr(norch, name)(a[:, None], b), getattr(torch, name)(x[:, None], y))
    assert getattr(a.clone(), name + "_")(b).tolist() == getattr(x.clone(), name + "_")(y).tolist()
    assert getattr(norch, name)(a[:0], b[:0]).shape == (0,)
    assert norch.gcd(a, norch.tensor(4)).dtype is a.dtype  # as PyTorch, a 0-d tensor does not promote
    with pytest.raises(norch.DTypeError, match=f"{name}: not defined for dtype float32"):
        getattr(norch, name)(a, norch.ones(8))


def test_heaviside(torch: Any) -> None:
    values = [-2.0, -0.0, 0.0, 3.0, float("nan"), float("inf")]
    same(
        norch.heaviside(norch.tensor(values), norch.tensor(0.5)),
        torch.heaviside(torch.tensor(values), torch.tensor(0.5)),
    )
    ints = norch.tensor([-1, 0, 5])
    same(ints.heaviside(norch.tensor([7, 8, 9])), torch.tensor([0, 8, 1]))
    assert ints.heaviside_(norch.tensor(3)).tolist() == [0, 3, 1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_nextafter(torch: Any, dtype: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 3.25, -7.5, float("inf"), -float("inf"), float("nan"), 1e-40]
    a = norch.tensor(values, dtype=getattr(norch, dtype))
    x = torch.tensor(values, dtype=getattr(torch, dtype))
    got, expected = norch.nextafter(a[:, None], a), torch.nextafter(x[:, None], x)
    np.testing.assert_array_equal(got.double().numpy(force=True), expected.double().numpy())
    np.testing.assert_array_equal(got.signbit().numpy(force=True), expected.signbit().numpy())
    assert (
        a.clone().nextafter_(norch.ones_like(a)).tolist()[:2] == x.clone().nextafter_(torch.ones_like(x)).tolist()[:2]
    )
    with pytest.raises(norch.DTypeError, match="dtypes float32 and float64 differ"):
        norch.nextafter(norch.ones(1), norch.ones(1).double())


def test_gradients_of_nextafter(torch: Any) -> None:
    def gradients(lib: Any) -> list[Any]:
        x = lib.tensor([[1.0, 0.0, -2.0, math.nan], [3.0, 2.0, math.inf, 1.0]], requires_grad=True)
        other = lib.tensor([2.0, 0.0, math.nan, 1.0], requires_grad=True)
        weight = lib.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
        (lib.nextafter(x, other) * weight).sum().backward()
        return [x.grad.tolist(), other.grad.tolist()]

    assert gradients(norch) == gradients(torch)
    x, ones = norch.tensor([3.0, 1.0, 2.0, 1.0]), norch.ones(4)
    assert norch.vmap(norch.func.grad(norch.nextafter))(x, ones).tolist() == [1, 0, 1, 0]
    compiled = norch.compile(norch.nextafter)
    w = x.clone().requires_grad_()
    compiled(w, ones).sum().backward()
    assert w.grad.tolist() == [1, 0, 1, 0]
    assert (w * 1).nextafter_(ones).requires_grad


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(torch: Any, edge_order: int) -> None:
    rng = np.random.default_rng(0)
    values, places = rng.standard_normal((5, 4, 3)), np.cumsum(rng.uniform(0.5, 2, 4))
    a, x = norch.tensor(values), torch.tensor(values)
    results = []
    for lib, t in ((norch, a), (torch, x)):
        found = [*lib.gradient(t, edge_order=edge_order), *lib.gradient(t, spacing=0.5, dim=1, edge_order=edge_order)]
        found += lib.gradient(t, spacing=[2.0, 3.0], dim=(0, -1), edge_order=edge_order)
        found += lib.gradient(t, spacing=(lib.tensor(places),), dim=1, edge_order=edge_order)
        results.append(found)
    for one, other in zip(*results, strict=True):
        assert_close(one, norch.tensor(other.numpy()))
    assert norch.gradient(norch.tensor([0, 1, 4]))[0].tolist() == [1.0, 2.0, 3.0]
    for dtype in ("float16", "float32", "int64"):
        x, at = norch.tensor([0, 1, 4], dtype=getattr(norch, dtype)), norch.tensor([0.0, 1.0, 3.0], dtype=norch.float64)
        assert norch.gradient(x, spacing=[at])[0].dtype is norch.float64
    w = norch.tensor(values[:, 0, 0], requires_grad=True)
    assert gradcheck(lambda w: norch.gradient(w, edge_order=edge_order)[0].square(), (w,))
    assert gradgradcheck(lambda w: norch.gradient(w, edge_order=edge_order)[0].pow(3), (w,))
    at = norch.tensor(places + 0.0, requires_grad=True)
    assert gradcheck(lambda w, at: norch.gradient(w[:4], spacing=[at], edge_order=edge_order)[0].square(), (w, at))


def test_gradient_refuses() -> None:
    x = norch.ones(3)
    with pytest.raises(norch.ArgumentError, match="edge_order is 1 or 2, not 3"):
        norch.gradient(x, edge_order=3)
    with pytest.raises(norch.ShapeError, match="2 samples along axis 0 are not more than edge_order, 2"):
        norch.gradient(x[:2], edge_order=2)
    with pytest.raises(norch.ArgumentError, match="2 spacings for 1 axes"):
        norch.gradient(x, spacing=[1.0, 2.0])
    with pytest.raises(norch.ShapeError, match=r"coordinates of shape \(2,\) for 3 samples"):
        norch.gradient(x, spacing=[norch.ones(2)])
    with pytest.raises(norch.ShapeError, match=r"gradient: an axis appears twice in \(0, -1\)"):
        norch.gradient(x, dim=(0, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc(torch: Any, dtype: str) -> None:
    values = np.random.default_rng(1).standard_normal(500)
    a, x = norch.tensor(values, dtype=getattr(norch, dtype)), torch.tensor(values, dtype=getattr(torch, dtype))
    for bins, low, high in ((10, -2, 2), (7, 0, 0), (1, 0, 1), (100, -5.5, 3.25)):
        same(a.histc(bins, low, high), x.histc(bins, low, high))
    same(norch.histc(norch.full((3,), 2.0), 4), torch.histc(torch.full((3,), 2.0), 4))
    same(norch.histc(norch.ones(0), 3), torch.histc(torch.ones(0), 3))
    assert norch.histc(norch.tensor([0.5, float("nan"), 9.0]), 2, 0, 1).tolist() == [0.0, 1.0]
    for wrong, message in (
        ((0,), "bins must be positive"),
        ((3, 2, 1), "ends before it begins"),
        ((3, 0, np.inf), "finite"),
    ):
        with pytest.raises(norch.ArgumentError, match=message):
            a.histc(*wrong)
    with pytest.raises(norch.DTypeError, match="histc: not defined for dtype int64"):
        norch.histc(norch.ones(2).long())


def test_more_elements_than_float32_counts_one_by_one() -> None:
    x = norch.ones(1).expand(2**24 + 4)
    assert norch.histc(x, 2, 0, 2).tolist() == norch.histogram(x, 2, range=(0.0, 2.0)).hist.tolist() == [0, 2**24 + 4]


def test_histogram(torch: Any) -> None:
    rng = np.random.default_rng(2)
    values, weights = rng.standard_normal((20, 10)), rng.uniform(0, 1, (20, 10))
    results = []
    for lib in (norch, torch):
        x, w = lib.tensor(values), lib.tensor(weights)
        edges = lib.tensor([-1.0, -0.25, 0.5, 2.0]).double()
        found = [*lib.histogram(x, 8), *lib.histogram(x, 5, range=(-1.0, 1.5), weight=w)]
        found += [*x.histogram(edges), lib.histogram(x, edges, weight=w, density=True).hist]
        found += lib.histogram(x, 6, density=True)
        results.append(found)
    for one, other in zip(*results, strict=True):
        assert_close(one, norch.tensor(other.numpy()))
    for wrong, kind, message in (
        (lambda: norch.histogram(norch.ones(2), norch.tensor([1.0, 0.0])), norch.ArgumentError, "must not decrease"),
        (lambda: norch.histogram(norch.ones(2), norch.tensor([1.0])), norch.ArgumentError, "two edges or more"),
        (
            lambda: norch.histogram(norch.ones(2), 2, weight=norch.ones(2).double()),
            norch.DTypeError,
            "weights of float64",
        ),
        (lambda: norch.histogram(norch.ones(2), 2, weight=norch.ones(3)), norch.ShapeError, r"weights of shape \(3,\)"),
    ):
        with pytest.raises(kind, match=message):
            wrong()


NO_SLOPE = {
    "unique": lambda x: norch.unique(x),
    "unique with counts": lambda x: norch.unique(x, return_counts=True)[0],
    "unique of slices": lambda x: norch.unique(x, dim=0),
    "unique_consecutive": lambda x: norch.unique_consecutive(x),
    "histogram": lambda x: norch.histogram(x, 2)[0],
    "edges": lambda x: norch.histogram(x, 2)[1],
    "edges given": lambda x: norch.histogram(norch.ones(3), x)[0],
    "weight": lambda x: norch.histogram(norch.ones(3), 2, weight=x)[0],
    "floor_divide": lambda x: x // 2,
    "floor_divide by": lambda x: norch.floor_divide(3.0, x),
    "floor_divide_": lambda x: x.clone().floor_divide_(2),
    "heaviside": lambda x: norch.heaviside(x, norch.tensor(0.5)),
    "heaviside_": lambda x: x.clone().heaviside_(x),
}


@pytest.mark.parametrize("name", NO_SLOPE)
def test_a_derivative_that_is_missing_raises(name: str) -> None:
    """A result that is detached would drop a part of a loss in silence."""
    x = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = NO_SLOPE[name](x)
    with pytest.raises(NotImplementedError, match=r"\w+: the derivative.* is not implemented"):
        (out.sum() + x.sum()).backward()
    assert not NO_SLOPE[name](x.detach()).requires_grad


def test_derivatives_that_torch_lacks() -> None:
    weights = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    norch.bincount(norch.tensor([0, 2, 2]), weights, minlength=4).square().sum().backward()
    assert weights.grad.tolist() == [2, 10, 10]
    values = norch.tensor([5.0, 6.0], requires_grad=True)
    norch.heaviside(norch.tensor([[0.0, 1.0], [0.0, 0.0]]), values).sum().backward()
    assert values.grad.tolist() == [2, 1]


def test_gradient_takes_none_for_the_spacing(torch):
    x = np.arange(6.0) ** 2
    ours, theirs = (m.gradient(m.tensor(x), spacing=None)[0].tolist() for m in (norch, torch))
    assert ours == theirs


@pytest.mark.parametrize("given", [{}, {"range": (3.0, 3.0)}])
@pytest.mark.parametrize("shape", [(), (3,), (0,)])
def test_the_range_of_a_histogram_of_one_value(torch: Any, shape: Any, given: Any) -> None:
    ours, theirs = (m.histogram(m.full(shape, -8.5), bins=2, **given) for m in (norch, torch))
    assert ours.hist.tolist() == theirs.hist.tolist() and ours.bin_edges.tolist() == theirs.bin_edges.tolist()
    counts = [m.histc(m.full(shape, -8.5), bins=2).tolist() for m in (norch, torch)]
    assert counts[0] == counts[1]


def test_gradient_at_a_sample_does_not_read_it() -> None:
    assert norch.gradient(norch.tensor([1.0, 2.0, math.inf, 5.0]))[0].tolist() == [1.0, math.inf, 1.5, -math.inf]
    assert norch.gradient(norch.tensor([3e38, -3e38, 1e38, 2e38]))[0][1].item() == pytest.approx(-1e38)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_divisors_of_the_least_and_the_largest_integer(dtype: str) -> None:
    bits = np.iinfo(dtype).bits
    numbers = [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max), 0, 1, 6, 1 << (bits - 2)]
    x = norch.tensor(numbers, dtype=getattr(norch, dtype))
    for a in numbers:
        other = norch.tensor(a, dtype=x.dtype)
        for b, divisor, multiple in zip(numbers, norch.gcd(x, other).tolist(), norch.lcm(x, other).tolist()):
            wraps = math.gcd(a, b) == -np.iinfo(dtype).min  # of the least integer alone, which has no opposite
            assert divisor == (-1 if wraps else 1) * math.gcd(a, b), (a, b)
            if math.lcm(a, b) <= np.iinfo(dtype).max:
                assert multiple == math.lcm(a, b), (a, b)
    assert norch.gcd(norch.tensor([1, 6]), norch.tensor(-(2**63))).tolist() == [1, 2]


def test_divisors_of_strided_and_broadcast_integers() -> None:
    a, b = norch.arange(-60, 60).reshape(12, 10)[::2, ::-3], norch.arange(24).reshape(6, 4)[:, 1:2]
    assert norch.gcd(a, b).tolist() == [[math.gcd(x, y) for x in row] for row, (y,) in zip(a.tolist(), b.tolist())]
    assert norch.lcm(a, b).tolist() == [[math.lcm(x, y) for x in row] for row, (y,) in zip(a.tolist(), b.tolist())]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_floats(dtype: str) -> None:
    """nextafter() and frexp() against NumPy, for bits drawn at random, subnormal numbers and the ends."""
    kind = np.dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 1 << 64, 500, "uint64").astype(f"u{kind.itemsize}")
    least = np.finfo(kind).smallest_subnormal
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, least, -least, 3 * least, 1.0, 0.5, np.finfo(kind).max], kind)
    x = np.concatenate([bits.view(kind), ends])
    for towards in ends:
        found = norch.nextafter(norch.tensor(x), norch.tensor(towards)).numpy()
        wanted = np.nextafter(x, towards)
        np.testing.assert_array_equal(found, wanted)
        here = wanted == wanted
        np.testing.assert_array_equal(np.signbit(found)[here], np.signbit(wanted)[here])
    found = norch.frexp(norch.tensor(x))
    mantissa, exponent = np.frexp(x)
    np.testing.assert_array_equal(found.mantissa.numpy(), mantissa)
    finite = np.isfinite(x)  # C leaves the exponent of the others open
    np.testing.assert_array_equal(found.exponent.numpy()[finite], exponent[finite])
    assert not found.exponent.numpy()[~finite].any()
    given = norch.tensor(x[finite], requires_grad=True)
    norch.frexp(given).mantissa.backward(norch.full(given.shape, 0.25, dtype=given.dtype))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(given.grad.numpy(), np.ldexp(kind.type(0.25), -exponent[finite]))
