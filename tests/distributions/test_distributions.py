"""Distributions: against PyTorch, against their own draws, and what they refuse."""

import copy
import math
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import distributions as D  # noqa: N812
from norch.testing import assert_close

VALUES: dict[str, Any] = {
    "loc": [[-1.0, 0.5, 2.0]],
    "scale": [[0.5], [2.0]],
    "low": [[-1.0, 0.0, 1.0]],
    "high": [[2.0], [3.0]],
    "rate": [0.5, 1.0, 3.0],
    "p": [[0.2, 0.5, 0.9]],
    "logit": [[-1.0, 0.0, 2.0]],
    "weights": [[1.0, 2.0, 0.5], [0.1, 0.1, 4.0]],
    "counts": [[0.3, 1.5, 40.0]],
    "df": [[3.0, 5.5, 80.0]],
    "trials": [[3.0, 20.0, 1000.0]],
    "same trials": [[7.0, 7.0, 7.0]],
    "means": [[0.0, 1.0, -2.0]],
    "covariance": [[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]],
    "tril": [[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-1.0, 0.3, 0.7]],
}
# name: (class, by what of VALUES its parameters are given, values to ask for)
CASES: dict[str, tuple[str, dict[str, str], Any]] = {
    "Normal": ("Normal", {"loc": "loc", "scale": "scale"}, [0.3]),
    "LogNormal": ("LogNormal", {"loc": "loc", "scale": "scale"}, [0.3, 1.0, 4.0]),
    "Laplace": ("Laplace", {"loc": "loc", "scale": "scale"}, [0.3]),
    "Uniform": ("Uniform", {"low": "low", "high": "high"}, [[1.0, 1.5, 1.9]]),
    "Exponential": ("Exponential", {"rate": "rate"}, [[0.0, 1.0, 2.5]]),
    "Bernoulli": ("Bernoulli", {"probs": "p"}, [[0.0, 1.0, 1.0]]),
    "Bernoulli of logits": ("Bernoulli", {"logits": "logit"}, [[0.0, 1.0, 1.0]]),
    "Categorical": ("Categorical", {"probs": "weights"}, [[0], [1], [2]]),
    "Categorical of logits": ("Categorical", {"logits": "weights"}, [2, 0]),
    "OneHotCategorical": ("OneHotCategorical", {"probs": "weights"}, [[0.0, 1.0, 0.0]]),
    "Gamma": ("Gamma", {"concentration": "counts", "rate": "scale"}, [[0.1, 1.0, 30.0]]),
    "Chi2": ("Chi2", {"df": "df"}, [[0.1, 1.0, 30.0]]),
    "Beta": ("Beta", {"concentration1": "counts", "concentration0": "weights"}, [[0.1, 0.5, 0.99]]),
    "Dirichlet": ("Dirichlet", {"concentration": "weights"}, [[0.2, 0.3, 0.5]]),
    "StudentT": ("StudentT", {"df": "df", "loc": "loc", "scale": "scale"}, [[0.3, -1.0, 9.0]]),
    "Poisson": ("Poisson", {"rate": "rate"}, [[0.0, 1.0, 7.0]]),
    "Binomial": ("Binomial", {"total_count": "trials", "probs": "p"}, [[0.0, 11.0, 900.0]]),
    "Binomial of logits": ("Binomial", {"total_count": "same trials", "logits": "logit"}, [[0.0, 2.0, 7.0]]),
    "MultivariateNormal": (
        "MultivariateNormal",
        {"loc": "means", "covariance_matrix": "covariance"},
        [[0.3, 0.2, 1.0]],
    ),
    "of a precision": ("MultivariateNormal", {"loc": "means", "precision_matrix": "covariance"}, [[0.3, 0.2, 1.0]]),
    "of a factor": ("MultivariateNormal", {"loc": "means", "scale_tril": "tril"}, [[0.3, 0.2, 1.0]]),
    "OneHot of logits": ("OneHotCategoricalStraightThrough", {"logits": "weights"}, [[0.0, 1.0, 0.0]]),
}
NO_CDF = {"Gamma", "Chi2", "Beta", "Dirichlet", "StudentT", "Poisson", "MultivariateNormal"}
NO_ENTROPY = {"Poisson", "Binomial"}  # of batches with different counts of trials
ATTRIBUTES = ("mean", "variance", "stddev", "mode", "batch_shape", "event_shape", "param_shape", "has_rsample")


def made(lib: Any, name: str, make: Any) -> tuple[Any, list[Any]]:
    kind, given, _ = CASES[name]
    leaves = {key: make(VALUES[of]) for key, of in given.items()}
    return getattr(lib, kind)(**leaves), list(leaves.values())


def ours(values: Any) -> Any:
    return norch.tensor(values, dtype=norch.float64, device=DEVICE, requires_grad=True)


def same(a: Any, b: Any, rtol: float = 1e-9) -> None:
    if hasattr(b, "detach"):
        a = a.detach()
        assert_close(a, norch.tensor(b.detach().numpy(), device=a.device), rtol=rtol, atol=1e-12, equal_nan=True)
    else:
        assert a == b


@pytest.mark.parametrize("name", CASES)
def test_like_torch(torch: Any, name: str) -> None:
    """What it says of itself, of values, and all derivatives by its parameters."""
    (p, x), (q, y) = (
        made(D, name, ours),
        made(torch.distributions, name, lambda v: torch.tensor(v, dtype=torch.float64, requires_grad=True)),
    )
    for key in ATTRIBUTES:
        if hasattr(q, key):
            same(getattr(p, key), getattr(q, key))
    value = CASES[name][2]
    found, wanted = [], []
    for dist, to, results in ((p, norch.tensor, found), (q, torch.tensor, wanted)):
        at = to(value, device=DEVICE) if to is norch.tensor else to(value)
        at = at.double() if at.is_floating_point() else at
        results += [dist.log_prob(at), dist.mean]
        wide = dist.expand((4, 2, 3) if dist.batch_shape[-1] == 3 else (3, 2) if dist.batch_shape[-1] == 2 else (3, 1))
        results += [wide.log_prob(at), wide.mean]
        if name not in NO_ENTROPY:
            results += [dist.entropy(), dist.perplexity(), wide.entropy()]
        if name in NO_ENTROPY or CASES[name][0] in NO_CDF:
            pass
        elif not dist.has_enumerate_support:
            results += [dist.cdf(at), dist.icdf(to([[0.1, 0.5, 0.7]]).double().to(at.device))]
            results += [dist.icdf(dist.cdf(at))]
        else:
            results += [dist.enumerate_support(), dist.enumerate_support(False), dist.probs, dist.logits]
        assert tuple(wide.sample((5,)).shape) == (5, *wide.batch_shape, *wide.event_shape)
    for a, b in zip(found, wanted, strict=True):
        same(a, b)
    for results in (found, wanted):
        for number, one in enumerate(results):
            if one.requires_grad and not bool(one.isnan().any()):
                (one * (number + 1)).sum().backward(retain_graph=True)
    for a, b in zip(x, y, strict=True):
        if b.grad is not None:  # a count of trials has none in PyTorch
            same(a.grad, b.grad, 1e-7)  # PyTorch's trigamma has 8 digits


def test_each_stands_where_programs_import_it_from(torch: Any) -> None:
    for name in D.__all__:
        assert getattr(D, name).__module__ == getattr(torch.distributions, name).__module__.replace("torch", "norch")


@pytest.mark.parametrize("name", CASES)
def test_draws_are_distributed_so(name: str) -> None:
    norch.manual_seed(0)
    p, leaves = made(D, name, ours)
    draws = p.sample((20000,))
    assert not draws.requires_grad and tuple(draws.shape) == (20000, *p.batch_shape, *p.event_shape)
    p.log_prob(draws)  # all of them are in the support
    if "Categorical" == CASES[name][0]:
        for k in range(3):
            assert_close((draws == k).double().mean(0), p.probs[..., k].detach(), rtol=0.0, atol=0.02)
    else:
        spread = p.stddev.detach()
        assert bool(((draws.double().mean(0) - p.mean.detach()).abs() < 0.05 * spread + 1e-9).all())
        if name != "LogNormal":  # of which a few draws make most of the variance
            assert_close(draws.double().std(0), spread, rtol=0.05 if CASES[name][0] != "StudentT" else 0.3, atol=0.01)
    if p.has_rsample:
        p.rsample((3,)).sum().backward()
        assert all(leaf.grad is not None for leaf in leaves)
    else:
        with pytest.raises(NotImplementedError, match="its draws have no derivative"):
            p.rsample()


KL = [
    "Normal", "LogNormal", "Laplace", "Exponential", "Bernoulli", "Bernoulli of logits", "Categorical", "Gamma", "Chi2",
    "Beta", "Dirichlet", "Poisson", "MultivariateNormal", "of a precision", "of a factor",
]  # fmt: skip


@pytest.mark.parametrize("name", [*KL, "OneHotCategorical", "Categorical of logits"])
def test_divergences_like_torch(torch: Any, name: str) -> None:
    rng = np.random.default_rng(0)
    kind, given, _ = CASES[name]
    results = []
    arrays = [{key: np.asarray(VALUES[of]) + shift for key, of in given.items()} for shift in (0.0, 0.05)]
    if kind == "MultivariateNormal":
        arrays[1] = {key: np.array(VALUES[of]) * 1.5 for key, of in given.items()}
    elif kind != "Bernoulli":
        arrays[1] = {key: a * rng.uniform(0.5, 1, a.shape) for key, a in arrays[1].items()}
    for lib, make, kl in (
        (D, ours, D.kl_divergence),
        (torch.distributions, lambda a: torch.tensor(a, requires_grad=True), torch.distributions.kl_divergence),
    ):
        leaves = [{key: make(a) for key, a in one.items()} for one in arrays]
        p, q = (getattr(lib, kind)(**one) for one in leaves)
        out = kl(p, q)
        out.sum().backward()
        results.append([out, *(leaf.grad for one in leaves for leaf in one.values())])
        both = [lib.Independent(one, 1) for one in (p, q) if len(one.batch_shape) > 1]
        if both:
            results[-1].append(kl(*both))
    for a, b in zip(*results, strict=True):
        same(a, b, 1e-7)  # PyTorch's trigamma has 8 digits


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 3.0, 30.0, 1e4])
def test_gamma_draws_have_the_derivative_of_their_quantiles(a: float) -> None:
    """Against mpmath's incomplete gamma function, to 10 digits, from one end of the distribution to the other."""
    mpmath = pytest.importorskip("mpmath")
    from norch.distributions.gamma import standard_gamma_slope

    special = pytest.importorskip("scipy.special")
    z = special.gammaincinv(a, np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999999]))
    found = standard_gamma_slope(norch.full((6,), a, dtype=norch.float64), norch.tensor(z)).tolist()
    with mpmath.workdps(30):
        for x, got in zip(z.tolist(), found, strict=True):
            below = mpmath.diff(lambda a, x=x: mpmath.gammainc(a, 0, x, regularized=True), mpmath.mpf(a))
            density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
            assert got == pytest.approx(float(-below / density), rel=1e-8)


@pytest.mark.parametrize("a", [1e-3, 0.02, 0.5])
def test_logarithms_of_small_gamma_draws_have_a_derivative(a: float) -> None:
    """On both sides of where the closed form begins: P(a, z) = z^a / gamma(a + 1) stays as it is while a changes."""
    from norch.distributions import gamma

    class Context:
        saved_tensors = norch.full((3,), a, dtype=norch.float64), norch.tensor([-39.9, -40.1, -900.0]).double()

    log_z = Context.saved_tensors[1]
    expected = (norch.tensor(a + 1.0).double().digamma() - log_z) / a
    same(gamma._LogStandardGamma.backward(Context, norch.ones(3).double()), expected, 1e-7)


def test_beta_draws_of_small_concentrations_lie_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gamma draws are below float64's numbers. The mass between 0.01 and 0.99 is about a log(99): 0.0046."""
    monkeypatch.setitem(sys.modules, "scipy", None)  # which no distribution of a gamma family needs
    norch.manual_seed(0)
    for dtype in (norch.float32, norch.float64):
        ends = D.Beta(norch.full((20000,), 1e-3, dtype=dtype, device=DEVICE), 1e-3)
        draws = ends.sample()
        assert ((draws > 0.01) & (draws < 0.99)).double().mean().item() == pytest.approx(0.0046, abs=0.002)
        assert (draws > 0.5).double().mean().item() == pytest.approx(0.5, abs=0.02)
        assert ends.log_prob(draws).isfinite().all()
    a = norch.full((4000,), 0.01, dtype=norch.float64, device=DEVICE, requires_grad=True)
    D.Beta(a, 1.0).rsample().sum().backward()  # the mean a / (a + 1) has the derivative 1 / (a + 1)^2
    assert a.grad.mean().item() == pytest.approx(1 / 1.01**2, rel=0.25)


def test_binomial_draws_of_many_trials() -> None:
    norch.manual_seed(0)
    for n in (17, 300, 10**8):
        draws = D.Binomial(n, norch.tensor([0.02, 0.5, 1.0], dtype=norch.float64, device=DEVICE)).sample((4000,))
        for k, p in enumerate((0.02, 0.5, 1.0)):
            mean, spread = n * p, math.sqrt(n * p * (1 - p))
            assert abs(draws[:, k].mean().item() - mean) <= 5 * spread / math.sqrt(4000)
            assert draws[:, k].std().item() == pytest.approx(spread, rel=0.06)
    few = D.Binomial(norch.tensor([0.0, 5.0]), 0.5)
    assert few.sample((100,))[:, 0].eq(0).all() and few.sample((100,)).amax() <= 5
    assert D.Binomial(norch.tensor([3.0, 50.0]), math.nan, validate_args=False).sample().isnan().all()


def test_mixtures_like_torch(torch: Any) -> None:
    results = []
    for lib, t in ((D, norch), (torch.distributions, torch)):
        one = lib.MixtureSameFamily(
            lib.Categorical(t.tensor([[1.0, 3.0], [2.0, 2.0]]).double()),
            lib.Normal(t.tensor([[0.0, 4.0], [1.0, -1.0]]).double(), t.tensor([1.0, 0.5]).double()),
        )
        shared = lib.MixtureSameFamily(  # the classes of one row for a batch of three
            lib.Categorical(t.tensor([[[1.0, 3.0]], [[2.0, 2.0]]]).double()),
            lib.Normal(t.arange(12.0).reshape(2, 3, 2).double(), t.tensor([1.0, 0.5]).double()),
        )
        vectors = lib.MixtureSameFamily(
            lib.Categorical(logits=t.zeros(2)), lib.Independent(lib.Normal(t.arange(6.0).reshape(2, 3), 1.0), 1)
        )
        results.append([one.mean, one.variance, one.log_prob(t.tensor([0.5, 1.0]).double()), one.batch_shape])
        results[-1] += [one.cdf(t.tensor([0.5, 1.0]).double()), one.expand((3, 2)).mean, vectors.mean, vectors.variance]
        results[-1] += [vectors.log_prob(t.ones(5, 3)), vectors.event_shape]
        results[-1] += [shared.mean, shared.variance, shared.log_prob(t.ones(4, 2, 3)), shared.cdf(t.ones(2, 3))]
        if lib is D:  # PyTorch draws once for the three
            assert tuple(shared.sample((7,)).shape) == (7, 2, 3) == tuple(shared.expand((7, 2, 3)).sample().shape)
        assert tuple(vectors.sample((7,)).shape) == (7, 3) and tuple(one.sample().shape) == (2,)
    for a, b in zip(*results, strict=True):
        assert_close(a.cpu(), norch.tensor(b.numpy())) if hasattr(a, "cpu") else same(a, b)
    norch.manual_seed(0)
    draws = D.MixtureSameFamily(D.Categorical(norch.tensor([1.0, 3.0])), D.Normal(norch.tensor([0.0, 40.0]), 1.0))
    assert (draws.sample((4000,)) > 20).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_transforms_like_torch(torch: Any) -> None:
    results = []
    for lib, t in ((D, norch), (torch.distributions, torch)):
        x = t.tensor([-0.7, 0.2, 1.5]).double()
        found: list[Any] = []
        affine = lib.AffineTransform(t.tensor(1.0).double(), t.tensor(-2.0).double())
        for one in (
            affine, lib.ExpTransform(), lib.SigmoidTransform(), lib.TanhTransform(), affine.inv,
            lib.ComposeTransform([lib.ExpTransform(), lib.PowerTransform(t.tensor(0.5).double())]),
        ):  # fmt: skip
            y = one(x)
            found += [y, one.inv(y), one.log_abs_det_jacobian(x, y), one.inv.log_abs_det_jacobian(y, x)]
        loc = t.tensor([0.1, -0.5, 0.0], dtype=t.float64, requires_grad=True)
        squashed = lib.TransformedDistribution(lib.Normal(loc, 1.0), [affine, lib.TanhTransform()])
        at = t.tensor([0.1, -0.9, 0.5]).double()
        found += [squashed.log_prob(at), squashed.cdf(at), squashed.icdf(t.tensor(0.3).double()), squashed.batch_shape]
        of_rows = lib.TransformedDistribution(lib.Normal(loc, 1.0), lib.AffineTransform(0.0, 3.0, event_dim=1))
        found += [of_rows.log_prob(x), of_rows.event_shape, of_rows.expand((2,)).log_prob(x)]
        found[-3].backward()
        found += [loc.grad.clone(), affine == lib.AffineTransform(t.tensor(1.0).double(), t.tensor(-2.0).double())]
        found += [affine == lib.ExpTransform(), squashed.has_rsample]
        squashed.rsample((2,)).sum().backward()
        assert not squashed.sample().requires_grad
        results.append(found)
    for a, b in zip(*results, strict=True):
        same(a.cpu() if hasattr(a, "cpu") else a, b)


def test_a_transform_with_a_cache_inverts_what_it_made(torch: Any) -> None:
    """A policy that squashes its actions by tanh needs log_prob() of draws that are rounded to 1."""
    for lib, t in ((D, norch), (torch.distributions, torch)):
        x = t.tensor([30.0, 0.5])
        tanh = lib.TanhTransform(cache_size=1)
        assert tanh.inv(tanh(x)) is x and tanh(x) is tanh(x)
        assert lib.TanhTransform().inv(lib.TanhTransform()(x))[0].isinf()
        squashed = lib.TransformedDistribution(lib.Normal(t.tensor([30.0]), 1.0), [tanh])
        assert squashed.log_prob(squashed.rsample()).isfinite().all()
        assert squashed.log_prob(squashed.sample()).isfinite().all()
        two = lib.AffineTransform(0.0, 2.0, cache_size=1)
        wide = lib.AffineTransform(t.zeros(3), 2.0)
        assert (
            two == wide == two
            and wide != lib.AffineTransform(t.arange(3.0), 2.0)
            and lib.AffineTransform(1.0, 2.0) != wide
        )
        assert two == lib.AffineTransform(0.0, 2.0) and lib.ComposeTransform([two], cache_size=1)(x)[1] == 1

        class Cube(lib.transforms.Transform):
            domain = codomain = lib.constraints.real
            bijective, sign = True, +1

            def __init__(self, cache_size: int = 1) -> None:
                super().__init__(cache_size=cache_size)

            def _call(self, x: Any) -> Any:
                return x**3

        cube = Cube()
        assert cube.inv(cube(x)) is x  # although it has no _inverse
    tanh = D.TanhTransform(cache_size=1)
    tanh(norch.ones(2, requires_grad=True) * 1)  # is no leaf, which cannot be copied
    assert copy.deepcopy(tanh) == pickle.loads(pickle.dumps(tanh)) == tanh == D.TanhTransform()
    with pytest.raises(norch.ArgumentError, match="cache_size is 0 or 1, not 2"):
        D.ExpTransform(2)


def test_transforms_widen_the_base(torch: Any) -> None:
    results = []
    for lib, t in ((D, norch), (torch.distributions, torch)):
        affine = lib.AffineTransform(t.arange(3.0), t.tensor([[1.0], [2.0]]))
        wide = lib.TransformedDistribution(lib.Normal(0.0, 1.0), affine)
        assert tuple(wide.sample((5,)).shape) == (5, 2, 3)
        assert len(set(wide.sample().flatten().tolist())) == 6  # a draw each
        back = lib.TransformedDistribution(lib.Normal(0.0, 1.0), [lib.ExpTransform(), affine.inv])
        power = lib.TransformedDistribution(lib.Uniform(1.0, 2.0), lib.PowerTransform(t.tensor([1.0, 2.0])))
        vectors = lib.Independent(lib.Normal(t.zeros(3), 1.0), 1)
        of_vectors = lib.TransformedDistribution(vectors, lib.AffineTransform(t.zeros(4, 3), 2.0))
        results.append([wide.log_prob(t.ones(2, 3)), wide.batch_shape, back.batch_shape, power.batch_shape])
        results[-1] += [of_vectors.log_prob(t.ones(4, 3)), of_vectors.batch_shape, of_vectors.event_shape]
    for a, b in zip(*results, strict=True):
        same(a.cpu() if hasattr(a, "cpu") else a, b)


def test_divergences_at_the_edges() -> None:
    kl, uniform = D.kl_divergence, D.Uniform
    assert kl(uniform(0.0, 1.0), uniform(0.0, 2.0)).item() == pytest.approx(math.log(2))
    assert kl(uniform(0.0, 3.0), uniform(0.0, 2.0)).item() == math.inf
    sure, even = D.Bernoulli(1.0), D.Bernoulli(0.5)
    assert kl(sure, even).item() == pytest.approx(math.log(2), rel=1e-5) and kl(even, sure).item() == math.inf
    weights = norch.tensor([[0.0, 1.0], [1.0, 1.0]])
    p, q = D.Categorical(weights), D.Categorical(weights.flip(0))
    assert kl(p, q)[0].item() == pytest.approx(math.log(2), rel=1e-5) and kl(p, q)[1].item() == math.inf
    assert kl(p, p).abs().max().item() == 0
    with pytest.raises(NotImplementedError, match="no formula for Normal and StudentT"):
        kl(D.Normal(0.0, 1.0), D.StudentT(3.0))
    with pytest.raises(TypeError, match="register_kl: expected classes, not 'normal'"):
        D.register_kl("normal", D.Normal)
    nested = D.Independent(D.Normal(norch.zeros(2, 2), 1.0), 2)
    with pytest.raises(NotImplementedError, match="events take 2 and 1 axes"):
        kl(nested, D.Independent(D.Normal(norch.zeros(2, 2), 1.0), 1))


def test_independent_sums_over_its_events(torch: Any) -> None:
    results = []
    for lib, t in ((D, norch), (torch.distributions, torch)):
        p = lib.Independent(lib.Normal(t.zeros(2, 3), t.ones(3)), 1)
        wide = p.expand((4, 2))
        results.append([p.log_prob(t.ones(5, 2, 3)), p.entropy(), wide.log_prob(t.ones(2, 3)), p.mean, p.variance])
        results[-1] += [p.batch_shape, p.event_shape, wide.batch_shape, p.has_rsample, p.has_enumerate_support]
        assert tuple(wide.rsample((7,)).shape) == (7, 4, 2, 3) and tuple(p.sample().shape) == (2, 3)
    for a, b in zip(*results, strict=True):
        same(a.cpu(), b) if hasattr(a, "cpu") else same(a, b)


def test_sampling_first_keeps_the_derivatives() -> None:
    """probs are computed in sample() first, where nothing is recorded, and are asked for a derivative later."""
    logits = norch.zeros(3, requires_grad=True)
    policy = D.Categorical(logits=logits)
    policy.sample()
    policy.probs[0].backward()
    assert_close(logits.grad, norch.tensor([2.0, -1.0, -1.0]) / 9)


def test_a_policy_learns_by_its_log_prob() -> None:
    """REINFORCE (Williams 1992) on three arms, of which the last pays."""
    norch.manual_seed(0)
    logits = norch.zeros(3, requires_grad=True)
    optimizer = norch.optim.Adam([logits], lr=0.1)
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        arm = policy.sample((16,))
        loss = -(policy.log_prob(arm) * ((arm == 2).float() - 0.3)).mean() - 0.001 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert policy.probs[2].item() > 0.9


def test_numbers_repr_copies() -> None:
    p = D.Normal(0, 2)
    assert p.loc.dtype is norch.float32 and p.batch_shape == ()
    assert p.log_prob(0.0).item() == pytest.approx(-math.log(2 * math.sqrt(2 * math.pi)))
    wide = D.Normal(norch.zeros(1, dtype=norch.float64), 1.0)
    assert wide.cdf(0.1).item() == pytest.approx(0.539827837277, abs=1e-12)
    assert repr(p) == "Normal(loc: 0.0, scale: 2.0)"
    assert repr(D.Categorical(norch.ones(2, 3))) == "Categorical(probs: norch.Size([2, 3]))"
    assert repr(D.Independent(D.Normal(norch.zeros(2), 1.0), 1)).startswith("Independent(Normal(loc:")
    assert copy.deepcopy(p).mean == 0 and pickle.loads(pickle.dumps(p)).stddev == 2


def test_log_normal_begins_at_0(torch: Any) -> None:
    """cdf() takes the edge of the support, log_prob() does not."""
    for m in (norch, torch):
        p = m.distributions.LogNormal(0.0, 1.0, validate_args=True)  # torch._dynamo leaves checks out
        assert p.cdf(m.tensor([0.0, 1.0])).tolist() == [0.0, 0.5]
        for wrong in (lambda p=p, m=m: p.cdf(m.tensor(-1.0)), lambda p=p, m=m: p.log_prob(m.tensor(0.0))):
            with pytest.raises(ValueError):
                wrong()


def test_checks_can_be_left_out() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(2.0).item() == -math.inf


ONE = norch.ones(3)
BAD: Any = [
    (lambda: D.Gamma(0.0, 1.0), ValueError, "Gamma: concentration .* must be positive, but holds 0.0"),
    (lambda: D.Dirichlet(1.0), norch.ShapeError, "at least 1 dimension"),
    (lambda: D.Poisson(1.0).log_prob(0.5), ValueError, "a whole number, not negative, but holds 0.5"),
    (lambda: D.Binomial(2.5, 0.5), ValueError, "total_count .* must be a whole number"),
    (lambda: D.Binomial(2, 0.5).log_prob(3.0), ValueError, "but holds 3.0"),
    (lambda: D.MultivariateNormal(ONE), ValueError, "give one of covariance_matrix"),
    (lambda: D.MultivariateNormal(ONE, norch.ones(3, 3)), ValueError, "symmetric and positive definite"),
    (lambda: D.MultivariateNormal(ONE, scale_tril=norch.ones(3, 3)), ValueError, "lower triangular"),
    (lambda: D.MultivariateNormal(ONE, norch.eye(2)), norch.ShapeError, "3 means for a matrix of 2 rows"),
    (lambda: D.MixtureSameFamily(D.Normal(0, 1), D.Normal(ONE, 1.0)), TypeError, "expected a Categorical"),
    (lambda: D.MixtureSameFamily(D.Categorical(ONE), D.Normal(0, 1)), norch.ShapeError, "3 classes"),
    (lambda: D.TransformedDistribution(D.Normal(0, 1), [abs]), TypeError, "expected transforms"),
    (lambda: D.Normal(ONE, -ONE), ValueError, r"Normal: scale of shape \(3,\) must be positive, but holds -1\.0"),
    (lambda: D.Normal(ONE * math.nan, 1.0), ValueError, "Normal: loc .* must be a number, but holds nan"),
    (lambda: D.Normal(ONE, norch.ones(2)), norch.ShapeError, r"\(3,\)"),
    (lambda: D.Exponential(0.0), ValueError, "Exponential: rate .* must be positive, but holds 0.0"),
    (lambda: D.Bernoulli(1.5), ValueError, r"probs .* must be in \[0, 1\], but holds 1.5"),
    (lambda: D.Bernoulli(), ValueError, "Bernoulli: give either probs or logits"),
    (lambda: D.Categorical(ONE, ONE), ValueError, "Categorical: give either probs or logits"),
    (lambda: D.Categorical(norch.tensor(1.0)), norch.ShapeError, "probs must have at least 1 dimension"),
    (lambda: D.Categorical([1.0]), TypeError, "expected a tensor as probs, not list"),
    (lambda: D.Categorical(norch.tensor([2.0, -1.0])), ValueError, r"with the sum 1, but holds \[2.0, -1.0\]"),
    (lambda: D.Categorical(ONE).log_prob(norch.tensor(3)), ValueError, r"a whole number in 0 \.\.\. 2, but holds 3"),
    (lambda: D.Categorical(ONE).log_prob(norch.tensor(0.5)), ValueError, "but holds 0.5"),
    (lambda: D.OneHotCategorical(ONE).log_prob(ONE), ValueError, "must be one 1 among 0s"),
    (
        lambda: D.OneHotCategorical(ONE).log_prob(ONE[:2]),
        norch.ShapeError,
        r"\(2,\) does not fit \(3,\) \(batch, event\)",
    ),
    (lambda: D.Bernoulli(ONE / 2).log_prob(ONE / 2), ValueError, "must be 0 or 1, but holds 0.5"),
    (lambda: D.Uniform(0.0, ONE * 0), ValueError, "Uniform: low must be less than high, not 0.0 and 0.0"),
    (lambda: D.Uniform(0.0, 1.0).log_prob(2.0), ValueError, r"a value of shape \(\) must be in \[low, high\]"),
    (lambda: D.Normal(ONE, 1.0).log_prob(norch.ones(2)), norch.ShapeError, r"of shape \(2,\) does not fit \(3,\)"),
    (lambda: D.Independent(D.Normal(ONE, 1.0), 2), ValueError, r"reinterpreted_batch_ndims is 2, but .* \(3,\)"),
    (lambda: D.Normal(0, 1).sample(3), TypeError, r"Normal: sample_shape must be a sequence such as \(3,\), not int"),
    (lambda: D.Normal(ONE.long(), ONE.long()).sample(), norch.DTypeError, "Normal: draws need .* not int64"),
    (lambda: D.Laplace(ONE.long(), ONE).sample(), norch.DTypeError, "Laplace: draws need .* not int64"),
    (lambda: D.Categorical(ONE).cdf(1), NotImplementedError, "Categorical: no cdf in closed form"),
    (lambda: D.Distribution().log_prob(1), NotImplementedError, "Distribution: no log_prob"),
    (lambda: D.Distribution.set_default_validate_args(2), ValueError, "expected a bool, not 2"),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=range(len(BAD)))
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# ---- within vmap -----------------------------------------------------------------------------------------------------

MAPPED: dict[str, Any] = {
    "Normal": lambda D, m, x: D.Normal(m, 1.0).log_prob(x),
    "scale": lambda D, m, x: D.Normal(0.0, m).log_prob(x),
    "Uniform": lambda D, m, x: D.Uniform(-m, m).cdf(x),
    "Categorical": lambda D, m, x: D.Categorical(logits=m * x).entropy(),
    "Dirichlet": lambda D, m, x: D.Dirichlet(m).log_prob(x / x.sum()),
    "Gamma": lambda D, m, x: D.Gamma(m, 2.0).cdf(x),
    "MultivariateNormal": lambda D, m, x: D.MultivariateNormal(m, scale_tril=m.diag()).log_prob(x),
    "kl": lambda D, m, x: D.kl_divergence(D.Normal(x, m), D.Normal(0.0, 1.0)),
    "kl of counts": lambda D, m, x: D.kl_divergence(D.Binomial(3, logits=m), D.Binomial(3, logits=x)),
    "transformed": lambda D, m, x: D.TransformedDistribution(D.Normal(m, 1.0), [D.ExpTransform()]).log_prob(x),
}


@pytest.mark.parametrize("name", MAPPED)
def test_within_vmap(torch: Any, name: str) -> None:
    call = MAPPED[name]
    for lib, dist in ((norch, D), (torch, torch.distributions)):
        m, x = (lib.tensor(v, dtype=lib.float64) for v in ([[1.0, 2.0], [0.5, 3.0], [1.5, 1.0]], [[0.2, 0.4]] * 3))
        loop = lib.stack([call(dist, a, b) for a, b in zip(m, x, strict=True)])
        found = lib.vmap(lambda a, b, dist=dist: call(dist, a, b))(m, x)
        np.testing.assert_allclose(found.numpy(), loop.numpy(), rtol=1e-12)
        if lib is norch:
            ours_found = found.numpy()
    np.testing.assert_allclose(ours_found, loop.numpy(), rtol=1e-9)


def test_within_vmap_all_samples_are_checked() -> None:
    ends = norch.tensor([1.0, -1.0])
    with pytest.raises(ValueError, match="Normal: scale must be positive, and is not in some samples"):
        norch.vmap(lambda s: D.Normal(0.0, s).log_prob(0.0))(ends)
    with pytest.raises(ValueError, match="Uniform: low must be less than high in every sample"):
        norch.vmap(lambda high: D.Uniform(0.0, high).log_prob(0.0))(ends)
    with pytest.raises(ValueError, match="a value must be not negative, and is not in some samples"):
        norch.vmap(norch.vmap(lambda x: D.Exponential(1.0).log_prob(x)))(ends.reshape(1, 2))
    assert norch.vmap(norch.func.grad(lambda m: D.Normal(m, 1.0).log_prob(2.0)))(ends).tolist() == [1.0, 3.0]
    norch.vmap(lambda s: (repr(D.Normal(0.0, s)), s)[1])(ends.abs())


def test_cdf_of_gamma(torch: Any) -> None:
    x = [0.0, 0.1, 1.0, 30.0]
    for call in (lambda D, x: D.Gamma(2.5, 0.5).cdf(x), lambda D, x: D.Chi2(3.0).cdf(x)):
        found, wanted = (
            call(lib.distributions, lib.tensor(x, dtype=lib.float64, requires_grad=True)) for lib in (norch, torch)
        )
        same(found, wanted)
    value = norch.tensor([0.5, 2.0], dtype=norch.float64, requires_grad=True)
    gamma = D.Gamma(2.5, 0.5)
    gamma.cdf(value).sum().backward()
    same(value.grad, gamma.log_prob(value.detach()).exp(), 1e-6)


def test_a_lazy_property_first_read_under_no_grad_has_gradients() -> None:
    class Scaled:
        def __init__(self, scale: norch.Tensor) -> None:
            self.scale = scale

        @norch.distributions.utils.lazy_property
        def precision(self) -> norch.Tensor:
            """The reciprocal."""
            return 1 / self.scale

    scale = norch.tensor(2.0, requires_grad=True)
    scaled = Scaled(scale)
    with norch.no_grad():
        assert scaled.precision.item() == 0.5
    scaled.precision.backward()
    assert scale.grad.item() == -0.25 and Scaled.precision.__doc__ == "The reciprocal."
