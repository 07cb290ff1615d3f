"""norch.special: Bessel and incomplete gamma functions against SciPy and PyTorch over their range; names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import special

pytest.importorskip("scipy")
from scipy import special as reference

BESSEL = ("i0", "i0e", "i1", "i1e")


def ulps(found: Any, wanted: Any) -> Any:
    """The errors in units of the last place of float64; 0 where both are the same infinity or NaN."""
    with np.errstate(all="ignore"):
        off = np.abs(found - wanted) / np.spacing(np.abs(wanted))
    return np.where((found == wanted) | (np.isnan(found) & np.isnan(wanted)), 0, off)


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_over_all_exponents(name: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([10 ** rng.uniform(-12, 2.8, 4000), rng.uniform(0, 20, 4000), [0.0, 8.0, 700.0, 1e300]])
    x = np.concatenate([x, -x])
    found = getattr(special, name)(norch.tensor(x, device=DEVICE)).cpu().numpy()
    assert ulps(found, getattr(reference, name)(x)).max() < 16
    x = x[np.abs(x) < 1e38]
    narrow = getattr(special, name)(norch.tensor(x, device=DEVICE).float()).cpu().numpy()
    with np.errstate(over="ignore"):
        wanted = getattr(reference, name)(x.astype(np.float32).astype(float))
        wanted = np.where(np.abs(wanted) > np.finfo(np.float32).max, np.copysign(np.inf, wanted), wanted)
    assert (ulps(narrow.astype(float), wanted) * 2.0**-29 < 0.51).all()


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_at_the_edges(name: str) -> None:
    x = norch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0], dtype=norch.float64, device=DEVICE)
    wanted = {
        "i0": [math.inf, math.inf, math.nan, 1, 1],
        "i0e": [0, 0, math.nan, 1, 1],
        "i1": [math.inf, -math.inf, math.nan, 0, -0.0],
        "i1e": [0, -0.0, math.nan, 0, -0.0],
    }[name]
    assert str(getattr(special, name)(x).tolist()) == str([float(y) for y in wanted])


TAILS = {
    "erfcx": [
        *np.linspace(-26, 60, 2001),
        4.9999,
        5.0,
        5.0001,
        1e3,
        1e200,
        -30.0,
        -1e15,
        -1e99,
        math.inf,
        -math.inf,
        math.nan,
    ],
    "log_ndtr": [*np.linspace(-60, 8, 2001), -1e5, 30.0, math.inf, -math.inf, math.nan],
    "ndtri": [*np.linspace(0, 1, 2001), *10.0 ** -np.arange(2, 320, 7), 1 - 1e-9, -0.1, 1.1, math.nan],
}


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("beside", [[], [0.5], [-0.5], [-2.4570247]])
def test_lgamma_is_0_without_a_sign_at_1_and_2(dtype: str, beside: list[float]) -> None:
    for x in (norch.tensor([*beside, *[1.0, 2.0] * 20], dtype=getattr(norch, dtype)), norch.tensor([1.0, 2.0])[:1]):
        found = x.lgamma()[x >= 1]
        assert (found == 0).all() and not found.signbit().any()


@pytest.mark.kernel
def test_lgamma_left_of_0_is_rounded_once() -> None:
    """Between its zeros, close to them and to the poles, in place and of every other element."""
    zeros = [-2.4570247, -2.7476826, -3.1435809, -3.9552942, -4.039361, -4.9915447, -9.999999, -30.0, -0.0, -np.inf]
    near = (np.float32(zeros)[:, None].view(np.int32) + np.arange(-40, 40, dtype=np.int32)).view(np.float32).ravel()
    spread = [np.linspace(-40, 3, 50_001), -np.geomspace(1e-40, 1e38, 999)]
    x = np.concatenate([near[~np.isnan(near)], *(points.astype(np.float32) for points in spread)])
    wanted = reference.gammaln(x.astype(np.float64))
    wanted[(x <= 0) & (x == np.floor(x))] = np.inf
    step = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    for found in (
        norch.lgamma(norch.tensor(x)),
        norch.tensor(x).lgamma_(),
        norch.tensor(np.repeat(x, 2))[::2].lgamma(),
    ):
        got = found.numpy().astype(np.float64)
        ends = np.isinf(wanted)
        np.testing.assert_array_equal(got[ends], wanted[ends])
        off = np.abs(got[~ends] - wanted[~ends])
        assert (off <= (0.53 if DEVICE == "cpu" else 8) * step[~ends] + 1e-14).all()


@pytest.mark.parametrize("name", TAILS)
def test_tails_of_the_normal_distribution(torch: Any, name: str) -> None:
    x = np.array(TAILS[name])
    found = getattr(special, name)(norch.tensor(x, device=DEVICE)).cpu().numpy()
    with np.errstate(all="ignore"):
        wanted = getattr(reference, name)(x)
    np.testing.assert_allclose(found, wanted, rtol=2e-13, atol=1e-15)
    if name == "erfcx":  # of which SciPy's has fewer digits for negative numbers
        mpmath = pytest.importorskip("mpmath")
        with mpmath.workdps(40):
            exact = [float(mpmath.erfc(v) * mpmath.exp(mpmath.mpf(v) ** 2)) for v in x[:2001:13]]
        assert ulps(found[:2001:13], np.array(exact)).max() <= 4
    for dtype in (norch.float32, norch.float16, norch.bfloat16):
        some = norch.tensor([0.01, 0.3, 0.5, 0.99], dtype=dtype, device=DEVICE)
        assert (getattr(special, name)(some) == getattr(special, name)(some.double()).to(dtype)).all()
    leaf = norch.tensor([0.1, 0.3, 0.9], dtype=norch.float64, device=DEVICE, requires_grad=True)
    assert norch.autograd.gradcheck(getattr(special, name), (leaf,))
    assert norch.autograd.gradgradcheck(getattr(special, name), (leaf,))
    theirs = getattr(torch.special, name)(torch.tensor([0, 1]))
    assert getattr(special, name)(norch.tensor([0, 1])).tolist() == pytest.approx(theirs.tolist(), rel=1e-6)


def arguments(rng: Any) -> tuple[Any, Any]:
    """Pairs (a, x) of all sizes, near each other and far apart."""
    a = np.concatenate([10 ** rng.uniform(-8, 4, 6000), rng.uniform(0.01, 60, 6000)])
    spread = rng.choice([0.3, 1, 3], len(a)) * np.where(rng.random(len(a)) < 0.5, 2 / np.sqrt(a + 1), 1)
    return a, a * np.exp(rng.normal(size=len(a)) * spread)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name: str) -> None:
    a, x = arguments(np.random.default_rng(1))
    wanted = getattr(reference, name)(a, x)
    found = getattr(special, name)(norch.tensor(a, device=DEVICE), norch.tensor(x, device=DEVICE)).cpu().numpy()
    off = np.abs(found - wanted)
    # in the tails both take powers of e, of which SciPy's are the worse
    assert (off <= 2e-13 * wanted)[wanted > 1e-3].all()
    assert (off <= 2e-10 * wanted + 1e-290).all()
    other = "gammaincc" if name == "gammainc" else "gammainc"
    rest = getattr(special, other)(norch.tensor(a, device=DEVICE), norch.tensor(x, device=DEVICE)).cpu().numpy()
    assert np.abs(found + rest - 1).max() < 1e-14


# P(a, x) and Q(a, x) to 20 digits, from mpmath 1.3 at 90 digits
EXACT = [
    (0.5, 0.25, 0.52049987781304653768, 0.47950012218695346232),
    (1e-10, 2.0, 0.99999999999510994893, 4.8900510715699744121e-12),
    (3.0, 2.5, 0.456186884116670482, 0.543813115883329518),
    (30.0, 25.0, 0.1821039159774551098, 0.8178960840225448902),
    (200.0, 230.0, 0.97966885667116376533, 0.020331143328836234672),
    (5000.0, 4950.0, 0.24047991431602069724, 0.75952008568397930276),
]


@pytest.mark.parametrize(("a", "x", "lower", "upper"), EXACT)
def test_incomplete_gamma_functions_are_exact(a: float, x: float, lower: float, upper: float) -> None:
    given = norch.tensor([a, x], dtype=norch.float64)
    found = [f(*given).item() for f in (norch.igamma, norch.igammac)]
    assert found == [given[0].clone().igamma_(given[1]).item(), given[0].clone().igammac_(given[1]).item()]
    assert found == pytest.approx([lower, upper], rel=5e-15)


def test_incomplete_gamma_functions_at_the_edges(torch: Any) -> None:
    values = [0.0, 1.0, 2.5, math.inf, -1.0, math.nan, 1e-300, 1e300]
    pairs = np.array([(a, x) for a in values for x in values])
    for name in ("igamma", "igammac"):
        found = getattr(norch, name)(*norch.tensor(pairs.T)).numpy()
        wanted = getattr(torch, name)(*torch.tensor(pairs.T)).numpy()
        # PyTorch forgets some NaN, and Q(1e-300, x) is 2.19e-301 at 1, by mpmath, where it has 7.97e-301
        defined = ~np.isnan(pairs).any(1) & (pairs[:, 0] != 1e-300)
        np.testing.assert_allclose(found[defined], wanted[defined], rtol=1e-13)


@pytest.mark.parametrize("name", [*BESSEL, "entr", "ndtr"])
def test_two_derivatives_like_torch(torch: Any, name: str) -> None:
    values = [0.0, 0.3, 1.0, 4.0, 20.0] + [-0.7, -3.0] * (name != "entr")
    results = []
    for m in (norch, torch):
        x = m.tensor(values, dtype=m.float64, requires_grad=True)
        y = getattr(m.special, name)(x)
        (first,) = m.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = m.autograd.grad(first.sum(), x)
        results.append([part.detach().numpy() for part in (y, first, second)])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
def test_zeta_of_large_exponents(dtype: norch.dtype) -> None:
    """Of which one term is left."""
    s = norch.tensor([1e4, 1e19, float(norch.finfo(dtype).max), math.inf], dtype=dtype, device=DEVICE)
    for q, wanted in ((1.0, 1.0), (2.0, 0.0), (300.0, 0.0), (1e30, 0.0), (0.25, math.inf)):
        assert special.zeta(s, norch.tensor(q, dtype=dtype, device=DEVICE)).tolist() == [wanted] * 4


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_the_derivative_by_the_first_argument_is_refused(torch: Any, name: str) -> None:
    for m in (norch, torch):
        a, x = (m.tensor([2.0, 3.0], requires_grad=True) for _ in range(2))
        y = getattr(m.special, name)(a, x).sum()
        with pytest.raises((NotImplementedError, RuntimeError), match="not implemented"):
            y.backward()
    a.requires_grad_(False)
    (slope,) = norch.autograd.grad(
        getattr(special, name)(norch.tensor([2.0]), b := norch.tensor([3.0]).requires_grad_()), b
    )
    wanted = {"gammainc": 3 * math.exp(-3), "gammaincc": -3 * math.exp(-3), "zeta": -2 * (1.2020569 - 1.125)}
    assert slope.item() == pytest.approx(wanted[name])


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_slopes_of_scaled_bessel_functions(name: str) -> None:
    """i0e and i1e cancel in them: beside the difference in float64, and far out beside -i0e / 2x."""
    for dtype, digits in ((norch.float32, 3e-6), (norch.float64, 1e-12)):
        x = 10 ** np.linspace(-3, 2.4 if dtype is norch.float64 else 8, 300)
        given = norch.tensor(x).to(dtype)
        x = given.double().cpu().numpy()
        i0e, i1e = reference.i0e(x), reference.i1e(x)
        with np.errstate(all="ignore"):
            wanted = i1e - i0e if name == "i0e" else i0e - i1e - i1e / x
        wanted = np.where(x > 1e5, -i0e * (0.5 + (0.125 if name == "i0e" else -0.625) / x) / x, wanted)
        for sign in (1, -1):
            at = (given * sign).requires_grad_()
            (slope,) = norch.autograd.grad(getattr(special, name)(at).sum(), at)
            slope = slope.double().cpu().numpy() * (sign if name == "i0e" else 1)
            bound = np.abs(wanted) * (1 if dtype is norch.float32 else 1 + x) + 0.1 * i0e / (1 + x)  # i1e' has a zero
            assert (np.abs(slope - wanted) <= digits * bound).all()
    x = norch.tensor([1e10, 1e100], dtype=norch.float64, requires_grad=True)
    (slope,) = norch.autograd.grad(getattr(special, name)(x).sum(), x)
    np.testing.assert_allclose(slope.cpu().numpy(), -reference.i0e([1e10, 1e100]) / [2e10, 2e100], rtol=1e-9)
    variance = norch.distributions.VonMises(norch.tensor(0.0), norch.tensor([20.0, 1e3, 1e6, 1e20])).variance
    exact = [1 - reference.i1e(20.0) / reference.i0e(20.0), 1 / 2e3 * (1 + 0.25e-3), 1 / 2e6, 1 / 2e20]
    np.testing.assert_allclose(variance.cpu().numpy(), exact, rtol=1e-5)


@pytest.mark.parametrize("other", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_xlog1py_promotes_as_xlogy_does(dtype: str, other: str) -> None:
    """Also beside 0-d tensors, which do not promote; halves are rounded once."""
    x, y = norch.full((2,), 3.0, dtype=getattr(norch, dtype)), norch.ones(2, dtype=getattr(norch, other))
    for a, b in ((x, y), (x[0], y), (x, y[0]), (x[0], y[0])):
        found = special.xlog1py(a, b)
        assert found.dtype is norch.xlogy(a, b).dtype
        assert found.double().max().item() == norch.tensor(3 * math.log(2)).to(found.dtype).double().item() or (
            found.dtype is norch.float64
        )


@pytest.mark.parametrize("name", ["igamma_", "igammac_"])
def test_in_place_like_torch(torch: Any, name: str) -> None:
    results = []
    for m in (norch, torch):
        a, x = m.tensor([[2.0, 3.0], [0.5, 9.0]]), m.tensor([1.5, 4.0], requires_grad=True)
        found = getattr(a, name)(x)
        assert found is a
        found.square().sum().backward()
        results.append((found, x.grad))
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found.detach().cpu().numpy(), wanted.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", special.__all__)
def test_names_are_those_of_torch(torch: Any, name: str) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0.05, 0.95, (2, 4, 5))
    given: dict[str, tuple[Any, ...]] = dict.fromkeys(("gammainc", "gammaincc", "xlog1py", "xlogy"), (y,))
    given |= dict.fromkeys(("logsumexp", "softmax", "log_softmax"), (1,)) | {"multigammaln": (2,)}
    results = []
    for m in (norch, torch):
        first, *others = (
            m.tensor(z) if isinstance(z, np.ndarray) else z
            for z in (x + 2 * (name == "multigammaln"), *given.get(name, ()))
        )
        if name == "polygamma":
            others, first = [first], 2
        if name == "zeta":
            others, first = [first], m.tensor(3.0, dtype=m.float64)
        results.append(getattr(m.special, name)(first, *others).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_other_arguments_are_refused() -> None:
    with pytest.raises(norch.DTypeError, match="i0: "):
        norch.i0(norch.ones(2, dtype=norch.complex64))
    with pytest.raises(TypeError, match="ndtr: expected a tensor"):
        special.ndtr("1")
