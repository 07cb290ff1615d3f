"""Random numbers at the ends of their ranges, where the uniform number below them is 0, or the largest below 1, or is
rounded to 16 bits: within the range, finite, and no number that the distribution does not have."""

import math

import pytest

import norch
from norch import distributions as D
from norch.nn import functional as F

DTYPES = [norch.float16, norch.bfloat16, norch.float32, norch.float64]
MANY = 100_000  # of 16 bits every uniform number is drawn
# In the stream of seed 0: blocks in which a float32 is 0, and 1 - 2^-24
ZERO, ONE = 14883995, 2330056


@pytest.fixture(params=[ZERO, ONE], ids=["zero", "one"])
def end(request):
    """Sets the default generator to a block that holds the end of the range; the tests draw four numbers."""
    norch.random.default_generator.__setstate__((0, request.param))
    return request.param


def test_the_blocks_hold_the_ends():
    for block, wanted in ((ZERO, 0.0), (ONE, 1 - 2.0**-24)):
        norch.random.default_generator.__setstate__((0, block))
        assert wanted in norch.rand(4).tolist()


# name: (fill, the least and the largest number, whether the least is one)
FILLS = {
    "uniform_": (lambda x: x.uniform_(0.5, 1.0), lambda x, wide: (x >= 0.5) & (x < 1)),
    "uniform_ about 0": (lambda x: x.uniform_(-1, 1), lambda x, wide: (x >= -1) & (x < 1)),
    "uniform_ of 0.1": (lambda x: x.uniform_(0.1, 1.1), lambda x, wide: (wide >= 0.1) & (x < 1.1) & (wide < 1.1)),
    "exponential_": (lambda x: x.exponential_(), lambda x, wide: (x > 0) & x.isfinite()),
    "exponential_ of a large rate": (lambda x: x.exponential_(1e6), lambda x, wide: (x > 0) & x.isfinite()),
    "exponential_ of a small rate": (lambda x: x.exponential_(1e-6), lambda x, wide: (x > 0) & x.isfinite()),
    "cauchy_": (lambda x: x.cauchy_(0, 100), lambda x, wide: x.isfinite()),
    "log_normal_": (lambda x: x.log_normal_(2, 4), lambda x, wide: (x > 0) & x.isfinite()),
    "log_normal_ near 0": (lambda x: x.log_normal_(-8, 4), lambda x, wide: (x > 0) & x.isfinite()),
    "normal_": (lambda x: x.normal_(), lambda x, wide: x.isfinite()),
    "geometric_": (lambda x: x.geometric_(1e-4), lambda x, wide: (x >= 1) & x.isfinite()),
    "random_": (lambda x: x.random_(0, 2050), lambda x, wide: (wide >= 0) & (wide < 2050)),
    "trunc_normal_": (lambda x: norch.nn.init.trunc_normal_(x, 0, 1, -30, 30), lambda x, wide: x.abs() < 9),
    "gumbel_softmax": (lambda x: F.gumbel_softmax(x.zero_(), dim=0), lambda x, wide: x >= 0),
    "rrelu": (lambda x: F.rrelu(x.fill_(-1.0), 0.5, 1.0, True), lambda x, wide: (x <= -0.5) & (x > -1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FILLS)
def test_fills(name, dtype, end):
    fill, holds = FILLS[name]
    for count in (4, MANY if dtype.itemsize == 2 else 4):
        x = fill(norch.empty(count, dtype=dtype))
        assert x.dtype is dtype and bool(holds(x, x.double()).all()), x[~holds(x, x.double())][:4]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rand_is_below_1(dtype, end):
    assert bool((norch.rand(MANY if dtype.itemsize == 2 else 4, dtype=dtype) < 1).all())


def distributions(dtype):
    one = norch.ones((), dtype=dtype)
    return [
        D.Uniform(one, 1.5 * one), D.Exponential(one), D.Laplace(one, one), D.Normal(one, one), D.LogNormal(one, one),
        D.Gamma(0.01 * one, one), D.Beta(0.01 * one, 0.01 * one), D.Dirichlet(norch.full((3,), 0.01, dtype=dtype)),
        D.Chi2(0.1 * one), D.StudentT(one),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", range(10))
def test_draws_have_a_density(which, dtype, end):
    d = distributions(dtype)[which]
    x = d.rsample((4,) if dtype.itemsize > 2 else (1000,))
    assert x.dtype is dtype and bool(x.isfinite().all()) and bool(d.log_prob(x).isfinite().all())


@pytest.mark.parametrize("dtype", [norch.int8, norch.int32, norch.int64, norch.uint8], ids=str)
def test_geometric_integers(dtype):
    x = norch.empty(1000, dtype=dtype).geometric_(1e-300)
    assert bool((x >= 1).all()) and x.max() > norch.iinfo(dtype).max * 0.999


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_channels_are_dropped_as_often_as_asked(dtype):
    norch.manual_seed(0)
    x = norch.ones(1, 200_000, 1, dtype=dtype)
    for p in (0.001, 0.3):
        dropped = (F.dropout1d(x, p) == 0).double().mean().item()
        assert abs(dropped - p) < 5 * math.sqrt(p / 200_000)
    assert abs((F.alpha_dropout(x, 0.001, True) < 0).double().mean().item() - 0.001) < 5 * math.sqrt(0.001 / 200_000)


def test_a_weight_near_0_is_drawn_before_a_weight_of_0():
    weights = norch.tensor([0.0, 1e-310, 0.0, 1.0], dtype=norch.float64)
    for _ in range(20):
        assert sorted(norch.multinomial(weights, 2).tolist()) == [1, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: norch.empty(2).uniform_(-3e38, 3e38),
        lambda: norch.empty(2, dtype=norch.float16).uniform_(0, 1e5),
        lambda: norch.empty(2, dtype=norch.float16).random_(0, 100_000),
        lambda: norch.randint(-70_000, 5, (2,), dtype=norch.float16),
    ],
)
def test_a_range_that_the_dtype_does_not_have(call):
    with pytest.raises(norch.ArgumentError, match="float16|float32"):
        call()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [6e4, 1.0, 1e-3, 1e-5, 1e-7])
def test_uniform_numbers_that_end_at_0(dtype, size):
    norch.manual_seed(0)
    above, below = (norch.empty(MANY, dtype=dtype).uniform_(*ends) for ends in ((0.0, size), (-size, 0.0)))
    assert not above.signbit().any() and (above < size).all()
    assert (below < 0).all() and (below >= -size).all()
    assert above.double().mean().item() == pytest.approx(size / 2, rel=0.2)
    assert below.double().mean().item() == pytest.approx(-size / 2, rel=0.25)
