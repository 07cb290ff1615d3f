"""The distributions that few programs use, transforms to constrained numbers, and divergences: against PyTorch, and
against their own draws and integrals."""

import math
import warnings

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch import distributions as D  # noqa: N812
from norch.distributions import constraints as C  # noqa: N812
from norch.distributions import transforms as F  # noqa: N812

torch = torch_or_skip()
T = torch.distributions

VALUES = {
    "loc": [[-1.0, 0.5, 2.0]], "scale": [[0.5], [2.0]], "positive": [0.5, 1.7, 3.0], "more": [2.3, 1.2, 0.7],
    "p": [[0.2, 0.5, 0.9]], "logit": [[-1.0, 0.01, 2.0]], "weights": [[1.0, 2.0, 0.5], [0.1, 0.1, 4.0]],
    "count": [3.0, 20.0, 7.5], "factor": [[1.0, 0.5], [0.2, -0.3], [0.1, 2.0]], "diagonal": [0.5, 1.0, 2.0],
    "means": [[0.0, 1.0, -2.0]], "covariance": [[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]],
    "df": [5.0, 7.5], "real": [0.3, 0.0, -0.4],
}  # fmt: skip
CORRELATION = [[1.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.0]]
# name: by what of VALUES its parameters are given, other arguments, and values to ask for
CASES = {
    "Cauchy": ({"loc": "loc", "scale": "scale"}, {}, [0.3]),
    "HalfCauchy": ({"scale": "scale"}, {}, [0.3]),
    "HalfNormal": ({"scale": "scale"}, {}, [0.3]),
    "Gumbel": ({"loc": "loc", "scale": "scale"}, {}, [0.3]),
    "Pareto": ({"scale": "positive", "alpha": "more"}, {}, [[3.5, 4.0, 9.0]]),
    "Weibull": ({"scale": "positive", "concentration": "more"}, {}, [[0.3, 1.0, 2.0]]),
    "Kumaraswamy": ({"concentration1": "positive", "concentration0": "more"}, {}, [[0.3, 0.5, 0.9]]),
    "GeneralizedPareto": ({"loc": "loc", "scale": "positive", "concentration": "real"}, {}, [[2.0, 2.5, 2.2]]),
    "Geometric": ({"probs": "p"}, {}, [[0.0, 3.0, 2.0]]),
    "Geometric of logits": ({"logits": "logit"}, {}, [[0.0, 3.0, 2.0]]),
    "NegativeBinomial": ({"total_count": "count", "probs": "p"}, {}, [[0.0, 3.0, 2.0]]),
    "NegativeBinomial of logits": ({"total_count": "count", "logits": "logit"}, {}, [[0.0, 3.0, 2.0]]),
    "InverseGamma": ({"concentration": "positive", "rate": "more"}, {}, [[0.3, 1.0, 2.0]]),
    "FisherSnedecor": ({"df1": "positive", "df2": "count"}, {}, [[0.3, 1.0, 2.0]]),
    "ContinuousBernoulli": ({"probs": "p"}, {}, [[0.3, 0.5, 0.9]]),
    "ContinuousBernoulli of logits": ({"logits": "logit"}, {}, [[0.3, 0.5, 0.9]]),
    "LogisticNormal": ({"loc": "means", "scale": "positive"}, {}, [[0.1, 0.2, 0.3, 0.4]]),
    "Multinomial": ({"probs": "weights"}, {"total_count": 10}, [[2.0, 3.0, 5.0]]),
    "LowRankMultivariateNormal": (
        {"loc": "means", "cov_factor": "factor", "cov_diag": "diagonal"}, {}, [[0.1, 0.2, 0.3]]
    ),
    "LKJCholesky": ({"concentration": "positive"}, {"dim": 3}, np.linalg.cholesky(np.array(CORRELATION)).tolist()),
    "Wishart": ({"df": "df", "covariance_matrix": "covariance"}, {}, VALUES["covariance"]),
    "VonMises": ({"loc": "loc", "concentration": "scale"}, {}, [0.3]),
    "RelaxedBernoulli": ({"probs": "p"}, {"temperature": 0.7}, [[0.3, 0.5, 0.9]]),
    "RelaxedBernoulli of logits": ({"logits": "logit"}, {"temperature": 0.7}, [[0.3, 0.5, 0.9]]),
    "RelaxedOneHotCategorical": ({"probs": "weights"}, {"temperature": 0.7}, [[0.2, 0.3, 0.5]]),
}  # fmt: skip
# What PyTorch gives in float32, to fewer digits, wrongly, or for numbers of one dtype only.
ROUGH = {"VonMises": 1e-6, "Multinomial": 1e-6}
ROUGH_SLOPES = {"VonMises": 1e-6, "ContinuousBernoulli": 1e-4}
OTHERWISE = {
    ("Weibull", "mode"), ("Kumaraswamy", "mode"), ("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf"),
}  # fmt: skip
ASKED = ("mean", "variance", "stddev", "mode", "entropy", "log_prob", "cdf", "icdf")


def made(lib, module, name):
    given, others, _ = CASES[name]
    leaves = [lib.tensor(VALUES[of], dtype=lib.float64, requires_grad=True) for of in given.values()]
    others = {key: lib.tensor(x, dtype=lib.float64) if key == "temperature" else x for key, x in others.items()}
    return getattr(module, name.split()[0])(**dict(zip(given, leaves, strict=True)), **others), leaves


def asked(lib, distribution, name, what):
    """None for what the distribution does not have."""
    try:
        thing = getattr(distribution, what)
        if what in ("log_prob", "cdf"):
            return thing(lib.tensor(CASES[name][2], dtype=lib.float64))
        if what == "icdf":
            return thing(lib.tensor([[0.1, 0.5, 0.7]], dtype=lib.float64))
        return thing() if what == "entropy" else thing
    except (NotImplementedError, AttributeError):
        return None


def numbers(x):
    return x.detach().numpy()


def close(a, b, rtol=1e-9):
    np.testing.assert_allclose(numbers(a), numbers(b), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("what", ASKED)
def test_like_torch(name, what):
    """What it says of itself and of values, and the derivatives by its parameters."""
    kind = name.split()[0]
    if (kind, what) in OTHERWISE:
        return
    (p, x), (q, y) = made(norch, D, name), made(torch, T, name)
    found, wanted = asked(norch, p, name, what), asked(torch, q, name, what)
    if wanted is None:
        return
    close(found, wanted, ROUGH.get(kind, 1e-9))
    if wanted.requires_grad and np.isfinite(numbers(wanted)).all() and (kind, what) != ("InverseGamma", "cdf"):
        found.sum().backward()
        wanted.sum().backward()
        for a, b in zip(x, y, strict=True):
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                close(a.grad, b.grad, ROUGH_SLOPES.get(kind, 1e-7))


@pytest.mark.parametrize("name", CASES)
def test_shapes_draws_and_copies(name):
    (p, x), (q, _) = made(norch, D, name), made(torch, T, name)
    for key in ("batch_shape", "event_shape"):
        assert tuple(getattr(p, key)) == tuple(getattr(q, key))
    for key in ("has_rsample", "has_enumerate_support"):
        assert getattr(p, key) == getattr(q, key)
    norch.manual_seed(0)
    drawn = p.sample((8000,))
    assert tuple(drawn.shape) == (8000, *q.batch_shape, *q.event_shape) and not drawn.requires_grad
    p.log_prob(drawn[:500])  # all of them are in the support
    mean, spread = asked(norch, p, name, "mean"), asked(norch, p, name, "stddev")
    if mean is None:
        torch.manual_seed(0)
        theirs = q.sample((8000,))
        mean, spread = theirs.mean(0), theirs.std(0)
    mean, spread = numbers(mean), numbers(spread)
    finite = np.isfinite(spread)
    if name != "VonMises":
        assert (abs(numbers(drawn).mean(0) - mean)[finite] <= 0.08 * spread[finite] + 1e-9).all()
        heavy = name in ("FisherSnedecor", "Pareto", "GeneralizedPareto", "InverseGamma")
        np.testing.assert_allclose(numbers(drawn).std(0)[finite], spread[finite], rtol=0.5 if heavy else 0.1, atol=0.02)
    wide = p.expand((4, *p.batch_shape))
    assert type(wide) is type(p) and tuple(wide.sample().shape) == (4, *q.batch_shape, *q.event_shape)
    at = norch.tensor(CASES[name][2], dtype=norch.float64)
    close(wide.log_prob(at)[0].flatten(), p.log_prob(at).flatten())
    assert repr(p).startswith(name.split()[0] + "(")
    if p.has_rsample:
        p.rsample((3,)).sum().backward()
        assert all(leaf.grad is not None and bool(leaf.grad.isfinite().all()) for leaf in x if leaf.grad is not None)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16, norch.float32])
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("LKJCholesky", "Wishart", "LogisticNormal")])
def test_draws_of_other_dtypes_are_in_the_support(name, dtype):
    norch.manual_seed(0)
    given, others, _ = CASES[name]
    leaves = {key: norch.tensor(VALUES[of], dtype=dtype) for key, of in given.items()}
    if name == "LowRankMultivariateNormal":
        leaves = {key: x.float() for key, x in leaves.items()}  # linear algebra has no 16 bits
    p = getattr(D, name.split()[0])(**leaves, **others)
    drawn = p.sample((2000,))
    assert drawn.dtype is next(iter(leaves.values())).dtype and bool(drawn.isfinite().all())
    assert bool(p.support.check(drawn).all()) or name == "RelaxedOneHotCategorical"


def test_modes_that_torch_has_not():
    assert D.Weibull(2.0, 0.7).mode.item() == 0
    found = D.Kumaraswamy(norch.tensor(2.0).double(), norch.tensor(3.0).double())
    around = found.log_prob(found.mode + norch.tensor([-1e-4, 0.0, 1e-4]).double())
    assert around.argmax().item() == 1


def test_generalized_pareto_by_its_definition():
    for c in (0.3, 0.0, -0.4):
        p = D.GeneralizedPareto(norch.tensor(1.0).double(), 2.0, c)
        x = norch.tensor([1.0, 1.5, 3.0]).double().requires_grad_()
        z = (numbers(x) - 1) / 2
        expected = 1 - np.exp(-z) if c == 0 else 1 - (1 + c * z) ** (-1 / c)
        np.testing.assert_allclose(numbers(p.cdf(x)), expected, rtol=1e-12)
        np.testing.assert_allclose(numbers(p.icdf(p.cdf(x))), numbers(x), rtol=1e-12)
        (slope,) = norch.autograd.grad(p.cdf(x).sum(), x)
        np.testing.assert_allclose(numbers(p.log_prob(x).exp()), numbers(slope), rtol=1e-12)
        np.testing.assert_allclose(numbers(p.log_survival_function(x)), np.log1p(-expected), rtol=1e-12)


def test_von_mises_draws():
    norch.manual_seed(0)
    for loc, k in ((0.0, 0.01), (2.5, 1.0), (-3.0, 30.0), (1.0, 1e-7)):
        p = D.VonMises(norch.tensor(loc).double(), norch.tensor(k).double())
        x = p.sample((20000,))
        assert (x.abs() <= math.pi).all()
        assert (x - loc).cos().mean().item() == pytest.approx(1 - p.variance.item(), abs=0.02)
        assert (x - loc).sin().mean().item() == pytest.approx(0, abs=0.02)


def test_exponential_families():
    """Entropies and divergences by the derivatives of the normalizer are those of the formulas."""
    base, a, b = D.ExponentialFamily, norch.tensor([0.5, 3.0]).double(), norch.tensor([2.0, 0.7]).double()
    pairs = [
        (D.Normal, (a, b), (b, a)),
        (D.Gamma, (a, b), (b, a)),
        (D.Beta, (a, b), (b, a)),
        (D.Exponential, (a,), (b,)),
    ]
    pairs += [(D.Dirichlet, (a,), (b,)), (D.Bernoulli, (a / 4,), (b / 4,)), (D.ContinuousBernoulli, (a / 4,), (b / 4,))]
    for kind, one, other in pairs:
        p, q = kind(*one), kind(*other)
        assert isinstance(p, base)
        close(base.entropy(p), p.entropy())
        close(D.kl._exponential_families(p, q), D.kl_divergence(p, q))
    with pytest.raises(NotImplementedError, match="no _mean_carrier_measure"):
        D.Poisson(3.0).entropy()
    close(D.kl._exponential_families(D.Poisson(a), D.Poisson(b)), D.kl_divergence(D.Poisson(a), D.Poisson(b)))


ENDS = {  # where a formula divides by 0, or multiplies 0 by the logarithm of 0, beside the number that is taken
    "Geometric of certain logits": ([-1.0, 20.0, 50.0], lambda D, x: D.Geometric(logits=x).log_prob(x * 0)),
    "Geometric of 1": ([0.5, 1.0], lambda D, x: D.Geometric(probs=x).log_prob(x.detach() * 0)),
    "StudentT of df 2": ([0.5, 1.0, 2.0, 3.0], lambda D, x: D.StudentT(x).variance),
    "StudentT of df 2, its deviation": ([0.5, 1.0, 2.0, 3.0], lambda D, x: D.StudentT(x).stddev),
}


@pytest.mark.parametrize("name", ENDS)
def test_gradients_at_the_ends_of_parameters(name):
    values, call = ENDS[name]
    found = []
    for m in (norch, torch):
        x = m.tensor(values, requires_grad=True)
        out = call(m.distributions, x)
        out[~out.isnan()].sum().backward()
        found.append((out.tolist(), x.grad.tolist()))
    np.testing.assert_allclose(*(out for out, _ in found), rtol=1e-6)
    np.testing.assert_allclose(*(grad for _, grad in found), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: D.Geometric(0.0), norch.ArgumentError, "Geometric: probs must be positive"),
        (lambda: D.Multinomial(2.5, norch.ones(2)), NotImplementedError, "total_count must be one int"),
        (lambda: D.Multinomial(-1, norch.ones(2)), norch.ArgumentError, "not be negative, but is -1"),
        (lambda: D.LKJCholesky(1), norch.ArgumentError, "dim is 2 or more, not 1"),
        (lambda: D.Wishart(1.0, norch.eye(3)), norch.ArgumentError, "df must be more than 2"),
        (lambda: D.Wishart(5.0), ValueError, "Wishart: give one of"),
        (lambda: D.Wishart(5.0, norch.ones(2, 3)), norch.ShapeError, "covariance_matrix is "),
        (lambda: D.LowRankMultivariateNormal(*map(norch.ones, ((2,), (3, 1), (2,)))), norch.ShapeError, "loc is"),
        (lambda: D.HalfNormal(1.0).log_prob(norch.tensor(-1.0)), norch.ArgumentError, "must be not negative, but"),
        (lambda: D.Pareto(2.0, 1.0).log_prob(norch.tensor(1.0)), norch.ArgumentError, "must be at least"),
        (lambda: D.NegativeBinomial(-1.0, 0.5), norch.ArgumentError, "total_count of shape .. must be not negative"),
        (lambda: F.ReshapeTransform((2,), (3,)), norch.ShapeError, "have different numbers of elements"),
        (lambda: F.ReshapeTransform((2,), (1, 2))(norch.ones(3)), norch.ShapeError, "events of shape"),
        (lambda: F.AbsTransform().sign, NotImplementedError, "not monotonic"),
        (lambda: F.CatTransform([F.ExpTransform()], lengths=[1, 2]), norch.ArgumentError, "2 lengths for 1 transforms"),
        (lambda: F.CorrCholeskyTransform().forward_shape((4,)), norch.ShapeError, "4 numbers are not n"),
        (lambda: D.transform_to(C.one_hot), NotImplementedError, "one 1 among 0s is registered"),
        (lambda: D.transform_to.register(int, len), TypeError, "a subclass of it, not <class 'int'>"),
        (lambda: C.dependent.check(norch.ones(1)), ValueError, "cannot be checked"),
        (lambda: C.cat([C.real], lengths=[1, 2]), norch.ArgumentError, "2 lengths for 1 constraints"),
    ],
)  # fmt: skip
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


# ---- divergences -----------------------------------------------------------------------------------------------------

A, B = [0.6, 1.7, 3.0], [2.3, 1.2, 0.7]
FAMILIES = {
    "Bernoulli": ([0.2, 0.5, 0.9],), "Beta": (A, B), "Binomial": ([3.0, 3.0, 4.0], [0.2, 0.5, 0.9]), "Cauchy": (B, A),
    "Categorical": ([A, B],), "ContinuousBernoulli": ([0.2, 0.501, 0.9],), "Dirichlet": ([A, B],), "Exponential": (A,),
    "Gamma": (A, B), "Geometric": ([0.2, 0.5, 0.9],), "Gumbel": (A, B), "HalfNormal": (A,), "Laplace": (B, A),
    "LowRankMultivariateNormal": (A, [[1.0, 0.5], [0.2, -0.3], [0.1, 2.0]], B), "Normal": (B, A), "Pareto": (A, B),
    "MultivariateNormal": (A, VALUES["covariance"]), "OneHotCategorical": ([A, B],), "Poisson": (A,),
    "TransformedDistribution": None, "Uniform": ([0.1, 0.2, 0.7], [0.6, 0.9, 0.95]), "HalfCauchy": (A,),
    "InverseGamma": (A, B), "LogisticNormal": (A, B), "Wishart": ([4.0, 5.0, 6.0], VALUES["covariance"]),
}  # fmt: skip
WRONG = {("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli")}  # of PyTorch: inf
PAIRS = sorted({(p.__name__, q.__name__) for p, q in T.kl._KL_REGISTRY} - {("Independent", "Independent")} - WRONG)
PAIRS = [pair for pair in PAIRS if set(pair) <= FAMILIES.keys()]
PAIRS += [(name, name) for name in ("HalfCauchy", "InverseGamma", "LogisticNormal")]


def member(lib, module, name, turned):
    if name == "TransformedDistribution":
        return module.TransformedDistribution(
            module.Gamma(*member_values(lib, "Gamma", turned)), [module.ExpTransform()]
        )
    return getattr(module, name)(*member_values(lib, name, turned))


def member_values(lib, name, turned):
    given = [np.array(x) for x in FAMILIES[name]]
    if turned and name == "Uniform":
        given = [given[0] - 0.05, given[1] + 0.02]
    elif turned and name == "Binomial":
        given = [given[0], given[1][::-1].copy()]
    elif turned and name in ("MultivariateNormal", "LowRankMultivariateNormal", "Wishart"):
        given = [given[0] + 0.5, given[1] * 1.2, *given[2:]]
    elif turned:
        given = [x[::-1].copy() for x in given]
    return [lib.tensor(x, dtype=lib.float64) for x in given]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_divergences_like_torch(one, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = D.kl_divergence(member(norch, D, one, False), member(norch, D, other, True))
        wanted = T.kl_divergence(member(torch, T, one, False), member(torch, T, other, True))
    close(found, wanted, 1e-7)


def test_all_pairs_of_torch_are_there():
    missing = {
        (p.__name__, q.__name__)
        for p, q in T.kl._KL_REGISTRY
        if not any(
            (a, b) in D.kl._FORMULAS for a in getattr(D, p.__name__).__mro__ for b in getattr(D, q.__name__).__mro__
        )
    }
    assert not missing


INTEGRATED = [
    *((name, "Normal") for name in ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Laplace")),
    ("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli"), ("Uniform", "Beta"), ("Uniform", "Gamma"),
    ("Uniform", "Gumbel"), ("Beta", "Gamma"), ("Exponential", "Gumbel"), ("Gamma", "Gumbel"), ("Normal", "Gumbel"),
    ("Normal", "Laplace"), ("Gumbel", "Gumbel"), ("Cauchy", "Cauchy"), ("Beta", "ContinuousBernoulli"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), INTEGRATED)
def test_divergences_are_the_integrals(one, other):
    """Of p (log p - log q), by the trapezoidal rule over s, of which the values are a function."""
    p, q = member(norch, D, one, False), member(norch, D, other, True)
    if other == "Uniform":
        q = D.Uniform(norch.tensor([-0.1, 0.0, -1.0]).double(), norch.tensor([1.0, 1.5, 2.0]).double())
    step, s = 0.002, norch.arange(-20000, 20001, dtype=norch.float64).unsqueeze(-1) * 0.002
    if one in ("Beta", "ContinuousBernoulli", "Uniform"):
        low, high = (p.low, p.high) if one == "Uniform" else (0.0, 1.0)
        part = s.sigmoid().clamp(1e-15, 1 - 1e-15)
        x, slope = low + (high - low) * part, (high - low) * s.sigmoid() * (-s).sigmoid()
    elif one in ("Exponential", "Gamma"):
        x, slope = s.clamp(max=7).exp(), s.exp()
    elif one == "Cauchy":
        x, slope = s.sinh(), s.cosh()
    else:
        x, slope = 3 * s, 3.0
    density = p.log_prob(x).exp() * slope * step
    found = where_positive(density, (p.log_prob(x) - q.log_prob(x)) * density).sum(0)
    np.testing.assert_allclose(numbers(found), numbers(D.kl_divergence(p, q)), rtol=1e-5, atol=1e-5)


def where_positive(density, x):
    return norch.where(density > 1e-300, x, 0.0)


def test_divergence_of_wishart_distributions_is_the_mean():
    """PyTorch's is negative."""
    norch.manual_seed(0)
    p, q = member(norch, D, "Wishart", False), member(norch, D, "Wishart", True)
    x = p.sample((20000,))
    found = (p.log_prob(x) - q.log_prob(x)).mean(0)
    np.testing.assert_allclose(numbers(found), numbers(D.kl_divergence(p, q)), atol=0.03)
    assert D.kl_divergence(p, p).abs().max().item() < 1e-12


probs = norch.tensor([0.2, 0.8])


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Multinomial(3, probs), D.Multinomial(3, probs)),
        (D.Categorical(probs), D.OneHotCategorical(probs)),
        (D.OneHotCategorical(probs), D.Categorical(probs)),
        (D.Multinomial(3, probs), D.Categorical(probs)),
        (D.RelaxedOneHotCategorical(norch.tensor(0.5), probs), D.RelaxedOneHotCategorical(norch.tensor(0.5), probs)),
    ],
    ids=lambda made: type(made).__name__,
)
def test_no_divergence_of_classes_for_other_values(p, q):
    with pytest.raises(NotImplementedError, match="kl_divergence: no formula for"):
        D.kl_divergence(p, q)


@pytest.mark.parametrize("other", ["Gumbel", "Normal", "Exponential", "Beta"])
def test_divergences_of_subclasses(other):
    """Chi2 is a Gamma."""
    chi, gamma = D.Chi2(norch.tensor([2.0, 5.0])), D.Gamma(norch.tensor([1.0, 2.5]), 0.5)
    q = getattr(D, other)(*[norch.tensor([1.0, 2.0])] * (1 if other == "Exponential" else 2))
    close(D.kl_divergence(chi, q), D.kl_divergence(gamma, q))
    uniform = D.Uniform(norch.tensor([0.5, 1.0]), 3.0)
    close(D.kl_divergence(uniform, chi), D.kl_divergence(uniform, gamma))


def test_divergences_of_values_outside():
    p = D.ContinuousBernoulli(norch.tensor([0.3, 0.3]))
    assert D.kl_divergence(p, D.Uniform(norch.tensor([0.0, 0.1]), 1.0)).isinf().tolist() == [False, True]
    assert D.kl_divergence(D.Uniform(norch.tensor([0.0, -0.1]), 1.0), p).isinf().tolist() == [False, True]
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Exponential(norch.ones(3))).isinf().tolist() == [True] * 3


# ---- constraints and transforms --------------------------------------------------------------------------------------

MATRICES = [[[2.0, 0.0], [0.5, 1.0]], [[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.6, 0.8]], [[1.0, 2.0], [2.0, 1.0]]]
NUMBERS = [-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.nan, math.inf]
MATRIX_NAMES = "lower_cholesky lower_triangular corr_cholesky square symmetric positive_definite positive_semidefinite"


def constraint_cases(c):
    yield from (getattr(c, name) for name in "real boolean positive nonnegative unit_interval".split())
    yield from (c.nonnegative_integer, c.positive_integer, c.integer_interval(0, 2), c.interval(-1, 2))
    yield from (c.half_open_interval(0, 2), c.greater_than(0.5), c.greater_than_eq(0.5), c.less_than(1.0))


def test_constraints_like_torch():
    for ours, theirs in zip(constraint_cases(C), constraint_cases(T.constraints), strict=True):
        assert ours.check(norch.tensor(NUMBERS)).tolist() == theirs.check(torch.tensor(NUMBERS)).tolist(), repr(theirs)
        assert repr(ours) == repr(theirs)
        assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
        both = C.independent(ours, 1), T.constraints.independent(theirs, 1)
        assert both[0].check(norch.tensor(NUMBERS)).item() == both[1].check(torch.tensor(NUMBERS)).item()
        assert repr(both[0]) == repr(both[1]) and both[0].event_dim == both[1].event_dim
    for name in MATRIX_NAMES.split():
        ours, theirs = getattr(C, name), getattr(T.constraints, name)
        for x in MATRICES:
            assert ours.check(norch.tensor(x)).item() == theirs.check(torch.tensor(x)).item(), (name, x)
    vectors = [[0.2, 0.8], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0]]
    for make in (lambda c: c.simplex, lambda c: c.one_hot, lambda c: c.multinomial(1), lambda c: c.real_vector):
        found = make(C).check(norch.tensor(vectors)).tolist()
        assert found == make(T.constraints).check(torch.tensor(vectors)).tolist()
    parts = [(c.cat([c.positive, c.real], 0, [2, 2]), c.stack([c.positive, c.boolean], -1)) for c in (C, T.constraints)]
    for ours, theirs in zip(*parts, strict=True):
        assert ours.check(norch.tensor(vectors)).tolist() == theirs.check(torch.tensor(vectors)).tolist()


def test_own_constraints_and_properties():
    class Even(C.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    class Mine(D.Distribution):
        arg_constraints = {"count": Even(), "other": C.dependent}

        def __init__(self, count, validate_args=None):
            self.count, self.other = count, -1
            super().__init__(count.shape, validate_args=validate_args)

        @C.dependent_property(is_discrete=True, event_dim=0)
        def support(self):
            return C.integer_interval(0, self.count)

    assert (
        C.is_dependent(Mine.support) and Mine.support.is_discrete and not C.is_dependent(Mine.arg_constraints["count"])
    )
    assert Mine(norch.tensor([2.0])).support.check(norch.tensor([3.0])).tolist() == [False]
    with pytest.raises(norch.ArgumentError, match="Mine: count of shape .1,. must be Even"):
        Mine(norch.tensor([3.0]))


TARGETS = {
    "real": lambda c: c.real, "positive": lambda c: c.positive, "nonnegative": lambda c: c.nonnegative,
    "greater_than": lambda c: c.greater_than(2.0), "less_than": lambda c: c.less_than(-1.0),
    "unit_interval": lambda c: c.unit_interval, "interval": lambda c: c.interval(-1.0, 3.0),
    "half_open_interval": lambda c: c.half_open_interval(-1.0, 3.0), "simplex": lambda c: c.simplex,
    "corr_cholesky": lambda c: c.corr_cholesky, "lower_cholesky": lambda c: c.lower_cholesky,
    "positive_definite": lambda c: c.positive_definite, "independent": lambda c: c.independent(c.positive, 1),
    "cat": lambda c: c.cat([c.positive, c.unit_interval], -1, [2, 4]),
    "stack": lambda c: c.stack([c.positive, c.real, c.unit_interval, c.real, c.real, c.positive], -1),
}  # fmt: skip


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("target", TARGETS)
def test_transforms_to_constraints(registry, target):
    """Values, inverses, determinants, shapes and derivatives are PyTorch's, and the values satisfy the constraint."""
    shape = (2, 3, 3) if target in ("lower_cholesky", "positive_definite") else (2, 6)
    x = np.random.default_rng(0).normal(size=shape)
    results = []
    for lib, d in ((norch, D), (torch, T)):
        try:
            transform = getattr(d, registry)(TARGETS[target](d.constraints))
        except NotImplementedError:
            results.append(None)
            continue
        leaf = lib.tensor(x, requires_grad=True)
        y = transform(leaf)
        good = TARGETS[target](d.constraints).check(y)
        results.append([tuple(y.shape), bool(good.all()), tuple(transform.forward_shape(shape))])
        results[-1] += [
            tuple(transform.inverse_shape(y.shape)),
            transform.domain.event_dim,
            transform.codomain.event_dim,
        ]
        results[-1] += [transform.bijective, y, transform.inv(y)]
        try:
            results[-1].append(transform.log_abs_det_jacobian(leaf, y))
        except NotImplementedError:
            results[-1].append(None)
        weights = lib.tensor(np.random.default_rng(1).normal(size=tuple(y.shape)))
        results[-1] += lib.autograd.grad((y * weights).sum(), leaf)
    assert (results[0] is None) == (results[1] is None)
    for a, b in zip(*(result or () for result in results), strict=True):
        if hasattr(b, "detach"):
            close(a, b, 1e-7)
        else:
            assert a == b


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f.ComposeTransform([f.AffineTransform(1.0, 2.0), f.StickBreakingTransform()]),
        lambda f: f.ComposeTransform([f.CorrCholeskyTransform(), f.ReshapeTransform((4, 4), (16,))]),
        lambda f: f.IndependentTransform(f.SoftplusTransform(), 1),
        lambda f: f.ReshapeTransform((6,), (2, 3)),
        lambda f: f.SoftplusTransform(),
        lambda f: f.TanhTransform(cache_size=1),
        lambda f: f.ComposeTransform([]),
        lambda f: f.StackTransform([f.ExpTransform(), f.TanhTransform()], 0),
        lambda f: f.CatTransform([f.ExpTransform(), f.AffineTransform(0.0, -2.0)], -1, [2, 4]),
    ],
)
def test_transforms_like_torch(make):
    x, found = np.random.default_rng(0).normal(size=(2, 6)), []
    for lib, f in ((norch, F), (torch, T.transforms)):
        transform = make(f)
        y = transform(lib.tensor(x))
        slope = transform.log_abs_det_jacobian(lib.tensor(x), y)
        found.append([y, transform.inv(y), slope + 0 * y.sum(), tuple(transform.forward_shape((2, 6)))])
        found[-1] += [transform.domain.event_dim, transform.codomain.event_dim]
    assert make(F) == make(F) and make(F).inv.inv == make(F) and make(F).with_cache(1) == make(F)
    for a, b in zip(*found, strict=True):
        if hasattr(b, "detach"):
            close(a, b, 1e-8)
        else:
            assert a == b


def test_a_transformed_distribution_checks_and_widens():
    p = D.TransformedDistribution(D.Normal(norch.zeros(3), 1.0), [F.StickBreakingTransform()])
    q = T.TransformedDistribution(T.Normal(torch.zeros(3), 1.0), [T.StickBreakingTransform()])
    assert tuple(p.event_shape) == tuple(q.event_shape) == (4,) and p.support.event_dim == 1
    x = [[0.1, 0.2, 0.3, 0.4]]
    np.testing.assert_allclose(numbers(p.log_prob(norch.tensor(x))), numbers(q.log_prob(torch.tensor(x))), rtol=1e-5)
    with pytest.raises(norch.ArgumentError, match="must be not negative, with the sum 1"):
        p.log_prob(norch.tensor([[0.1, 0.2, 0.3, 0.5]]))
    wide = D.Normal(0.0, 1.0)
    assert tuple(D.TransformedDistribution(wide, F.AffineTransform(norch.zeros(2), 1.0)).batch_shape) == (2,)


def test_a_subclass_keeps_the_factor_elsewhere():
    """As that of gpytorch: it has a property for the factor, and may be made without a matrix."""

    class Lazy(D.MultivariateNormal):
        def __init__(self, loc, covariance_matrix=None, factor=None):
            self.loc, self.kept = loc, factor
            if factor is None:
                super().__init__(loc, covariance_matrix)
            else:
                super(D.MultivariateNormal, self).__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

        @property
        def _unbroadcasted_scale_tril(self):
            return self.kept

        @_unbroadcasted_scale_tril.setter
        def _unbroadcasted_scale_tril(self, factor):
            self.kept = factor

    covariance = norch.tensor(VALUES["covariance"], dtype=norch.float64)
    loc, factor = norch.zeros(2, 3, dtype=norch.float64), norch.linalg.cholesky(covariance)
    expected = D.MultivariateNormal(loc, covariance)
    for made in (Lazy(loc, covariance), Lazy(loc, factor=factor)):
        close(made.log_prob(loc + 1), expected.log_prob(loc + 1))
        close(made.covariance_matrix, expected.covariance_matrix)
        close(D.kl_divergence(made, expected), norch.zeros(2, dtype=norch.float64))
        assert tuple(made.scale_tril.shape) == (2, 3, 3) and tuple(made.sample((4,)).shape) == (4, 2, 3)


def test_draws_by_their_older_name():
    found = D.MultivariateNormal(norch.zeros(3, 2), norch.eye(2)).sample_n(5)
    assert found.shape == (5, 3, 2) and not found.requires_grad
