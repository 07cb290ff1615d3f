"""Distributions of float16 and bfloat16: what they and their transforms compute, and its gradients, is that of float64
rounded once, or as near as PyTorch's and 2 units in the last place, where parameters are kept in 16 bits."""

import itertools
import math

import numpy as np
import pytest
from case import HALF_NAMES
from checks import BACKWARD, FORWARD, units
from conftest import torch_or_skip
from test_more_distributions import ASKED, CASES, VALUES

import norch
from norch import distributions as D  # noqa: N812

torch = torch_or_skip()

MORE = {
    "Normal": ({"loc": "loc", "scale": "scale"}, {}, [0.3]),
    "LogNormal": ({"loc": "loc", "scale": "scale"}, {}, [0.3]),
    "Laplace": ({"loc": "loc", "scale": "scale"}, {}, [0.3]),
    "StudentT": ({"df": "positive", "loc": "loc", "scale": "scale"}, {}, [0.3]),
    "Gamma": ({"concentration": "positive", "rate": "more"}, {}, [[0.3, 1.0, 2.0]]),
    "Chi2": ({"df": "positive"}, {}, [0.3]),
    "Beta": ({"concentration1": "positive", "concentration0": "more"}, {}, [[0.3, 0.5, 0.9]]),
    "Dirichlet": ({"concentration": "weights"}, {}, [[0.2, 0.3, 0.5]]),
    "Exponential": ({"rate": "positive"}, {}, [0.3]),
    "Poisson": ({"rate": "positive"}, {}, [3.0]),
    "Bernoulli": ({"probs": "p"}, {}, [1.0, 0.0, 1.0]),
    "Bernoulli of logits": ({"logits": "logit"}, {}, [1.0, 0.0, 1.0]),
    "Categorical": ({"probs": "weights"}, {}, [1.0, 0.0]),
    "Categorical of logits": ({"logits": "weights"}, {}, [1.0, 0.0]),
}
LINEAR_ALGEBRA = ("Wishart", "LowRankMultivariateNormal")  # has no 16 bits
# The gradient of a sum that is 1 whatever the parameters are: noise.
CONSTANT = {("Multinomial", "mean"), ("Dirichlet", "mean")}


def answers(lib, name, what, half, dtype):
    """The answer of a distribution whose parameters 16 bits hold, and the gradients of its sum."""
    given, others, value = {**CASES, **MORE}[name]

    def number(x):
        return lib.tensor(x, dtype=lib.float64).to(getattr(lib, half)).to(getattr(lib, dtype))

    leaves = [number(VALUES[of]).requires_grad_() for of in given.values()]
    others = {key: number(x) if key == "temperature" else x for key, x in others.items()}
    made = getattr(lib.distributions, name.split()[0])(
        **dict(zip(given, leaves, strict=True)), **others, validate_args=False
    )
    asked = getattr(made, what)
    if callable(asked):
        asked = asked(*{"log_prob": [number(value)], "cdf": [number(value)], "icdf": [number(0.7)]}.get(what, []))
    if not asked.requires_grad:
        return asked, []
    return asked, list(lib.autograd.grad(asked.sum(), leaves, allow_unused=True))


def as_norch(x):
    return norch.tensor(x.detach().double().numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", HALF_NAMES)
@pytest.mark.parametrize("name", [name for name in (*CASES, *MORE) if name not in LINEAR_ALGEBRA])
def test_answers_and_gradients(name, dtype):
    for what in ASKED:
        try:
            wanted = answers(norch, name, what, dtype, "float64")
        except NotImplementedError:
            continue
        found = answers(norch, name, what, dtype, dtype)
        assert found[0].dtype in (getattr(norch, dtype), norch.int64) and len(found[1]) == len(wanted[1])
        try:
            theirs = answers(torch, name, what, dtype, dtype)
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            theirs = None
        assert what != "log_prob" or "Relaxed" in name or units(found[0], wanted[0], dtype) <= 2.5, what
        triples = [(found[0], wanted[0], theirs and theirs[0], FORWARD)]
        if (name, what) not in CONSTANT:
            ours = theirs[1] if theirs and len(theirs[1]) == len(found[1]) else [None] * len(found[1])
            triples += zip(found[1], wanted[1], ours, itertools.repeat(BACKWARD))
        for ours, exact, other, bound in triples:
            assert (ours is None) == (exact is None)
            if ours is None or (error := units(ours, exact, dtype)) <= bound:
                continue
            lost = units(as_norch(other), exact, dtype) if other is not None else 2.0
            assert error <= lost + 2, f"{name}.{what}: {error} units, PyTorch {lost}"


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_divergences(dtype):
    one, other = norch.tensor([0.3, 1.7, 5.0]).to(dtype), norch.tensor([0.4, 1.5, 5.5]).to(dtype)
    for kind in (D.Normal, D.Gamma, D.Beta, D.Laplace, D.Cauchy):
        pairs = ([kind(a, b), kind(b, a)] for a, b in ((one, other), (one.double(), other.double())))
        found, wanted = (D.kl_divergence(*pair) for pair in pairs)
        assert found.dtype is dtype and units(found, wanted, dtype.name) <= FORWARD, kind


TRANSFORMS = {
    "exp": lambda d, half: d.ExpTransform(),
    "sigmoid": lambda d, half: d.SigmoidTransform(),
    "softplus": lambda d, half: d.SoftplusTransform(),
    "tanh": lambda d, half: d.TanhTransform(),
    "power": lambda d, half: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(norch.tensor(0.3).to(half))]),
    "affine": lambda d, half: d.AffineTransform(norch.tensor(0.3).to(half), norch.tensor(3.3).to(half)),
    "stick": lambda d, half: d.StickBreakingTransform(),
    "chain": lambda d, half: d.ComposeTransform([d.AffineTransform(0.1, 1.7), d.TanhTransform(), d.ExpTransform()]),
    "cat": lambda d, half: d.CatTransform([d.ExpTransform(), d.SigmoidTransform()], -1, [1, 2]),
}


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, dtype):
    x = norch.tensor([[-2.3, 0.4, 1.7], [0.1, -0.7, 2.9]]).to(dtype)
    narrow, wide = TRANSFORMS[name](D, dtype), TRANSFORMS[name](D, dtype)
    for one in [wide, *getattr(wide, "parts", [])]:
        one.__dict__.update({key: a.double() for key, a in one.__dict__.items() if isinstance(a, norch.Tensor)})
    y = narrow(x)
    assert y.dtype is dtype and units(y, wide(x.double()), dtype.name) <= FORWARD
    assert units(narrow.inv(y), wide.inv(y.double()), dtype.name) <= FORWARD
    if name != "cat":
        found = narrow.log_abs_det_jacobian(x, y)
        assert units(found, wide.log_abs_det_jacobian(x.double(), y.double()), dtype.name) <= FORWARD


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_draws_are_transformed_before_they_are_rounded(dtype):
    def draws(kind):
        norch.manual_seed(3)
        loc, scale = norch.tensor([2.0, 4.0], dtype=kind, requires_grad=True), norch.tensor(0.5, dtype=kind)
        drawn = D.TransformedDistribution(D.Normal(loc, scale), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)])
        x = drawn.rsample((500,))
        return x, norch.autograd.grad(x.sum(), loc)[0]

    (found, slope), (wanted, wanted_slope) = draws(dtype), draws(norch.float32)
    assert found.dtype is slope.dtype is dtype
    assert units(found, wanted.double(), dtype.name) <= FORWARD
    assert units(slope, wanted_slope.double(), dtype.name) <= 2 * BACKWARD  # a sum in another order
    far = D.LogNormal(norch.tensor(88.0 if dtype is norch.bfloat16 else 11.0, dtype=dtype), 1.0).sample((500,))
    assert bool(far.isfinite().all())
    for part in (D.SigmoidTransform(), D.StickBreakingTransform()):
        wide = D.TransformedDistribution(D.Normal(norch.zeros(3, dtype=dtype), 30.0), part)
        drawn = wide.sample((2000,))
        assert bool((drawn > 0).all()) and bool(wide.log_prob(drawn).isfinite().all())


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_caches_of_transforms(dtype):
    """The inverse of a cached image is the very argument, alone and in a distribution."""
    tanh = D.TanhTransform(cache_size=1)
    x = norch.tensor([3.0, 9.0], dtype=dtype)
    assert tanh.inv(tanh(x)) is x
    squashed = D.TransformedDistribution(D.Normal(norch.full((50,), 6.0, dtype=dtype), 1.0), [tanh])
    assert bool(squashed.log_prob(squashed.rsample()).isfinite().all())


def test_what_stays():
    loc = norch.tensor([1.0, 2.0], dtype=norch.float16, requires_grad=True)
    normal = D.Normal(loc, 2.0)
    assert normal.mean is normal.loc and normal.loc.dtype is norch.float16  # the distribution is as it was
    assert normal.log_prob(norch.tensor([1.0, 2.0])).dtype is norch.float32  # promoted
    assert D.Independent(normal, 1).log_prob(loc).dtype is norch.float16
    assert D.Normal(0.0, 1.0).cdf(norch.tensor(-8.0)).item() == pytest.approx(math.erfc(8 / math.sqrt(2)) / 2)
    coin = D.Bernoulli(logits=norch.zeros(2, dtype=norch.float16, requires_grad=True))
    coin.sample()  # computes its probabilities, under no_grad()
    assert coin.probs.requires_grad
    mixed = D.MixtureSameFamily(
        D.Categorical(norch.tensor([0.3, 0.7], dtype=norch.bfloat16)),
        D.Normal(norch.tensor([0.1, 3.0], dtype=norch.bfloat16), 0.7),
    )
    exact = 0.3 * math.exp(-0.5 * (0.9 / 0.7) ** 2) + 0.7 * math.exp(-0.5 * (2 / 0.7) ** 2)
    exact = math.log(exact / (0.7 * math.sqrt(2 * math.pi)))
    assert mixed.log_prob(norch.tensor(1.0, dtype=norch.bfloat16)).item() == pytest.approx(exact, rel=2e-2)
    assert np.isclose(D.Normal(loc, 2.0).entropy()[0].item(), 0.5 * math.log(2 * math.pi * math.e * 4), rtol=1e-3)
