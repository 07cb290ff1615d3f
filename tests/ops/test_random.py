"""Random tensors: their distributions, streams that seeds and states fix, and what raises."""

import copy
import math
import pickle

import numpy as np
import pytest
from checks import wait

import norch

COUNT = 20_000


def generator(seed=11):
    return norch.Generator().manual_seed(seed)


def philox(seed, counter, blocks):
    """The words of Philox 4x32-10 (Salmon et al. 2011), four a block, whose numbers in the stream are its counters."""
    lower = np.uint64(0xFFFFFFFF)
    number = np.uint64(counter) + np.arange(blocks, dtype=np.uint64)
    a, b, c, d = number & lower, number >> np.uint64(32), np.zeros_like(number), np.zeros_like(number)
    for step in range(10):
        key0, key1 = (seed + step * 0x9E3779B9) & 0xFFFFFFFF, ((seed >> 32) + step * 0xBB67AE85) & 0xFFFFFFFF
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b = (q >> np.uint64(32)) ^ b ^ np.uint64(key0), q & lower
        c, d = (p >> np.uint64(32)) ^ d ^ np.uint64(key1), p & lower
    return np.stack([a, b, c, d], 1).reshape(-1)


@pytest.mark.kernel
@pytest.mark.parametrize("count", [1, 3, 63, 64, 65, 150, 1000, 20_000])
@pytest.mark.parametrize("counter", [0, 2**32 - 11, 2**40])
def test_the_numbers_are_those_of_philox(count, counter):
    seed = 0xFEDCBA9876543210
    g = norch.Generator()
    g.set_state(norch.tensor(list(np.array([seed, counter], "<u8").tobytes()), dtype=norch.uint8))
    words = philox(seed, counter, count // 4 + 1)[:count]
    wanted = (words >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    np.testing.assert_array_equal(norch.rand(count, generator=g).numpy(), wanted)


def normal_cdf(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


# draw(generator) -> COUNT numbers; the distribution function; the dtypes it takes
CONTINUOUS = {
    "rand": (lambda g, d: norch.rand(COUNT, generator=g, dtype=d), lambda x: x),
    "rand_like": (lambda g, d: norch.rand_like(norch.zeros(COUNT, dtype=d), generator=g), lambda x: x),
    "randn": (lambda g, d: norch.randn(COUNT, generator=g, dtype=d), normal_cdf),
    "randn_like": (lambda g, d: norch.randn_like(norch.zeros(COUNT, dtype=d), generator=g), normal_cdf),
    "normal": (lambda g, d: norch.normal(2.0, 3.0, (COUNT,), generator=g, dtype=d), lambda x: normal_cdf((x - 2) / 3)),
    "normal of means": (
        lambda g, d: norch.normal(norch.full((COUNT,), 2.0, dtype=d), 0.5, generator=g),
        lambda x: normal_cdf((x - 2) / 0.5),
    ),
    "normal of deviations": (
        lambda g, d: norch.normal(-1.0, norch.full((COUNT,), 2.0, dtype=d), generator=g),
        lambda x: normal_cdf((x + 1) / 2),
    ),
    "normal of both": (
        lambda g, d: norch.normal(norch.full((1,), 3.0, dtype=d), norch.full((COUNT,), 2.0, dtype=d), generator=g),
        lambda x: normal_cdf((x - 3) / 2),
    ),
    "uniform_": (lambda g, d: norch.empty(COUNT, dtype=d).uniform_(-2, 6, generator=g), lambda x: (x + 2) / 8),
    "normal_": (lambda g, d: norch.empty(COUNT, dtype=d).normal_(1, 2, generator=g), lambda x: normal_cdf((x - 1) / 2)),
    "log_normal_": (
        lambda g, d: norch.empty(COUNT, dtype=d).log_normal_(0.5, 0.75, generator=g),
        lambda x: normal_cdf((np.log(x) - 0.5) / 0.75),
    ),
    "exponential_": (
        lambda g, d: norch.empty(COUNT, dtype=d).exponential_(1.5, generator=g),
        lambda x: -np.expm1(-1.5 * x),
    ),
    "cauchy_": (
        lambda g, d: norch.empty(COUNT, dtype=d).cauchy_(1, 2, generator=g),
        lambda x: 0.5 + np.arctan((x - 1) / 2) / math.pi,
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name, dtype):
    """Kolmogorov's and Smirnov's distance from the distribution function, at a level of about 1e-4."""
    draw, cdf = CONTINUOUS[name]
    x = draw(generator(), getattr(norch, dtype))
    assert x.dtype is getattr(norch, dtype) and x.shape == (COUNT,)
    values = np.sort(x.double().numpy())
    assert np.isfinite(values).all()
    levels = cdf(values)
    places = np.arange(COUNT + 1) / COUNT
    distance = max(np.abs(levels - places[1:]).max(), np.abs(levels - places[:-1]).max())
    assert distance < 2.2 / math.sqrt(COUNT) + (1e-2 if dtype == "float16" else 0)
    again = draw(generator(), getattr(norch, dtype))
    assert bool((x == again).all())
    assert not bool((x == draw(generator(12), getattr(norch, dtype))).all())


def frequencies(x, count):
    return np.bincount(x.long().numpy(), minlength=count) / x.numel()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_integers(dtype):
    kind = getattr(norch, dtype)
    for x in (
        norch.randint(3, 8, (COUNT,), generator=generator(), dtype=kind),
        norch.randint_like(norch.zeros(COUNT, dtype=kind), 3, 8, generator=generator()),
        norch.zeros(COUNT, dtype=kind).random_(3, 8, generator=generator()),
    ):
        assert x.dtype is kind
        found = frequencies(x, 8)
        np.testing.assert_allclose(found[3:], 0.2, atol=0.015)
        assert found[:3].sum() == 0
    x = norch.zeros(COUNT, dtype=kind).random_(generator=generator())
    info = np.iinfo(dtype) if "int" in dtype else None
    most = info.max if info else {"float32": 2**24, "float64": 2**53}[dtype]
    assert 0 <= x.min().item() and 0.99 * most < x.max().item() <= most
    assert norch.zeros(COUNT, dtype=kind).random_(5, generator=generator()).max().item() == 4


def test_forms_of_randint():
    for x in (
        norch.randint(10, (2, 3)),
        norch.randint(10, size=(2, 3)),
        norch.randint(0, 10, (2, 3)),
        norch.randint(low=0, high=10, size=(2, 3)),
        norch.randint(high=10, size=(2, 3)),
        norch.randint_like(norch.zeros(2, 3, dtype=norch.int64), 10),
    ):
        assert x.shape == (2, 3) and x.dtype is norch.int64 and 0 <= x.min().item() <= x.max().item() < 10
    assert norch.rand(size=(2, 3)).shape == norch.randn((2, 3)).shape == norch.rand([2, 3]).shape == (2, 3)


def test_bools():
    for x in (
        norch.zeros(COUNT, dtype=norch.bool).random_(generator=generator()),
        norch.randint(2, (COUNT,), dtype=norch.bool, generator=generator()),
    ):
        assert x.dtype is norch.bool and abs(x.float().mean().item() - 0.5) < 0.02


def test_random_without_an_upper_bound():
    low = norch.zeros(COUNT, dtype=norch.int8).random_(-128, None, generator=generator())
    assert low.min().item() == -128 and low.max().item() == 127
    assert norch.zeros(COUNT).random_(to=3, generator=generator()).unique().tolist() == [0, 1, 2]


def test_bernoulli():
    chances = norch.linspace(0, 1, 5).unsqueeze(1).expand(5, COUNT)
    for x in (
        norch.bernoulli(chances, generator=generator()),
        norch.zeros(5, COUNT).bernoulli_(chances, generator=generator()),
        norch.zeros(5, COUNT, dtype=norch.int64).bernoulli_(chances[:, :1], generator=generator()),
    ):
        np.testing.assert_allclose(x.double().mean(1).numpy(), [0, 0.25, 0.5, 0.75, 1], atol=0.015)
    for x in (
        norch.zeros(COUNT).bernoulli_(0.3, generator=generator()),
        norch.bernoulli(norch.zeros(COUNT), 0.3, generator=generator()),
        norch.bernoulli(norch.zeros(COUNT, dtype=norch.int32), p=0.3, generator=generator()),
        norch.zeros(COUNT, dtype=norch.bool).bernoulli_(0.3, generator=generator()),
    ):
        assert abs(x.double().mean().item() - 0.3) < 0.015
    assert norch.bernoulli(norch.zeros(2, dtype=norch.int32), 1.0).tolist() == [1, 1]


def test_geometric():
    for dtype in (norch.float32, norch.int64):
        x = norch.zeros(COUNT, dtype=dtype).geometric_(0.4, generator=generator())
        assert x.dtype is dtype
        found = frequencies(x, 40)
        np.testing.assert_allclose(found[1:8], 0.4 * 0.6 ** np.arange(7), atol=0.015)
        assert found[0] == 0


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement):
    weights = norch.tensor([[0.0, 1.0, 3.0, 0.0, 4.0], [2.0, 0.0, 0.0, 2.0, 4.0]])
    made = norch.Generator().manual_seed(5)
    draws = norch.stack([weights.multinomial(3, replacement, generator=made) for _ in range(4000)])
    assert draws.dtype is norch.int64 and draws.shape == (4000, 2, 3)
    first = norch.stack([(draws[..., 0] == k).double().mean(0) for k in range(5)], 1)
    assert ((first - weights / 8).abs() < 0.03).all() and (norch.where(weights == 0, first, 0) == 0).all()
    repeated = [len(set(row)) < 3 for row in draws.view(-1, 3).tolist()]
    assert any(repeated) is replacement
    assert norch.multinomial(weights[0], 2, replacement).shape == (2,)
    assert norch.multinomial(norch.tensor([0.0, 0.0, 1e-300], dtype=norch.float64), 1, replacement).tolist() == [2]
    again = [weights.multinomial(3, generator=norch.Generator().manual_seed(1)).tolist() for _ in range(2)]
    assert again[0] == again[1]


BAD_WEIGHTS = (
    (lambda m: m.multinomial(m.ones(3), 4), "cannot draw 4 of 3"),
    (lambda m: m.multinomial(m.ones(3), 0), "cannot draw 0 of 3"),
    (lambda m: m.multinomial(m.ones(2, 2, 2), 1), r"1 or 2 dimensions, got float32 \(2, 2, 2\)"),
    (lambda m: m.multinomial(m.ones(2, dtype=m.int64), 1), "floating dtype"),
    (lambda m: m.multinomial(m.tensor([1.0, -1.0]), 1), "negative"),
    (lambda m: m.multinomial(m.tensor([1.0, float("nan")]), 1), "NaN"),
    (lambda m: m.multinomial(m.zeros(2), 1, True), "too few weights"),
    (lambda m: m.multinomial(m.tensor([0.0, 1.0, 0.0]), 2), "too few weights that are not 0 for 2 samples"),
)


@pytest.mark.parametrize(("call", "message"), BAD_WEIGHTS)
def test_bad_weights(torch, call, message):
    with pytest.raises(norch.ArgumentError, match="multinomial: .*" + message):
        call(norch)
    if "not 0 for" not in message:  # where PyTorch draws what has no weight
        with pytest.raises(RuntimeError):
            call(torch)


def test_randperm():
    for n in (0, 1, 7, 1000):
        x = norch.randperm(n, generator=generator())
        assert x.dtype is norch.int64 and sorted(x.tolist()) == list(range(n))
    assert norch.randperm(4, dtype=norch.int32).dtype is norch.int32
    for dtype, most in ((norch.float16, 2049), (norch.bfloat16, 257), (norch.uint8, 256)):
        assert norch.randperm(most, dtype=dtype).double().unique().numel() == most
        with pytest.raises(ValueError):  # numbers would repeat
            norch.randperm(most + 1, dtype=dtype)
        with pytest.raises(ValueError):
            norch.randperm(most + 1, out=norch.empty(0, dtype=dtype))
    for dtype in (norch.bool, norch.complex64):
        with pytest.raises(norch.errors.DTypeError):
            norch.randperm(2, dtype=dtype)
    places = np.zeros((4, 4))
    stream = generator()
    for _ in range(2000):
        places[np.arange(4), norch.randperm(4, generator=stream).numpy()] += 1
    np.testing.assert_allclose(places / 2000, 0.25, atol=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multinomial_with_replacement(dtype):
    weights = norch.tensor([[1.0, 0.0, 3.0, 4.0, 0.0], [0.0, 0.0, 0.0, 2.0, 0.0]], dtype=getattr(norch, dtype))
    x = norch.multinomial(weights, COUNT, replacement=True, generator=generator())
    assert x.dtype is norch.int64 and x.shape == (2, COUNT)
    np.testing.assert_allclose(frequencies(x[0], 5), [0.125, 0, 0.375, 0.5, 0], atol=0.015)
    assert (x[1] == 3).all()
    assert weights[0].multinomial(3, True).shape == (3,)


def test_multinomial_without_replacement():
    """The first index has the weights' law; the second that law without the first."""
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    x = norch.multinomial(norch.tensor(weights).expand(COUNT, 4), 2, generator=generator()).numpy()
    chances = weights / weights.sum()
    np.testing.assert_allclose(np.bincount(x[:, 0], minlength=4) / COUNT, chances, atol=0.015)
    for first in (0, 2, 3):
        rest = np.where(np.arange(4) == first, 0, weights)
        found = np.bincount(x[x[:, 0] == first, 1], minlength=4)
        np.testing.assert_allclose(found / found.sum(), rest / rest.sum(), atol=0.04)
    x = norch.multinomial(norch.ones(30, 7), 7, generator=generator())
    assert (np.sort(x.numpy(), 1) == np.arange(7)).all()
    assert norch.multinomial(norch.ones(0, 3), 2).shape == (0, 2)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.7, 1.0, 3.5, 9.5, 20.0, 300.0, 12345.6, 1e9])
def test_poisson(rate):
    x = norch.poisson(norch.full((COUNT,), rate, dtype=norch.float64), generator=generator())
    values = x.numpy()
    assert x.dtype is norch.float64 and (values == np.floor(values)).all() and (values >= 0).all()
    assert abs(values.mean() - rate) <= 4.5 * math.sqrt(rate / COUNT)
    assert abs(values.var() - rate) <= 6 * rate * math.sqrt((2 + 1 / max(rate, 1e-9)) / COUNT)
    if 0 < rate < 30:
        outcomes = np.arange(60)
        chances = np.exp(outcomes * math.log(rate) - rate - np.vectorize(math.lgamma)(outcomes + 1.0))
        np.testing.assert_allclose(frequencies(x, 60), chances, atol=0.015)
    rates = norch.tensor([[0.0, 5.0], [100.0, 0.5]])
    assert norch.poisson(rates).shape == (2, 2) and norch.poisson(rates)[0, 0].item() == 0


# ---- streams --------------------------------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda g: norch.rand(5, generator=g),
    "randn": lambda g: norch.randn(5, generator=g),
    "randint": lambda g: norch.randint(0, 1000, (5,), generator=g),
    "randperm": lambda g: norch.randperm(20, generator=g),
    "normal": lambda g: norch.normal(norch.zeros(5), 1.0, generator=g),
    "bernoulli": lambda g: norch.bernoulli(norch.full((64,), 0.5), generator=g),
    "uniform_": lambda g: norch.zeros(5).uniform_(generator=g),
    "normal_": lambda g: norch.zeros(5).normal_(generator=g),
    "exponential_": lambda g: norch.zeros(5).exponential_(generator=g),
    "geometric_": lambda g: norch.zeros(64).geometric_(0.3, generator=g),
    "cauchy_": lambda g: norch.zeros(5).cauchy_(generator=g),
    "log_normal_": lambda g: norch.zeros(5).log_normal_(generator=g),
    "random_": lambda g: norch.zeros(5).random_(1000, generator=g),
    "bernoulli_": lambda g: norch.zeros(64).bernoulli_(generator=g),
    "multinomial": lambda g: norch.multinomial(norch.ones(50), 10, generator=g),
    "multinomial again": lambda g: norch.multinomial(norch.ones(50), 10, True, generator=g),
    "poisson": lambda g: norch.poisson(norch.full((20,), 30.0), generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_and_states(name):
    draw = DRAWS[name]
    g = generator(5)
    first, second = draw(g).tolist(), draw(g).tolist()
    assert first != second
    assert draw(generator(5)).tolist() == first
    state = g.get_state()
    third = draw(g).tolist()
    g.set_state(state)
    assert draw(g).tolist() == third
    # the default stream gives the same numbers, and streams do not disturb each other
    norch.manual_seed(5)
    assert draw(None).tolist() == first
    draw(g)
    assert draw(None).tolist() == second
    state = norch.get_rng_state()
    third = draw(None).tolist()
    norch.set_rng_state(state)
    assert draw(None).tolist() == third


def test_generator():
    g = norch.Generator()
    assert norch.Generator().initial_seed() != g.initial_seed()
    assert g.manual_seed(3) is g and g.initial_seed() == 3 and g.device.type == "cpu"
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed() != 3
    state = g.get_state()
    assert state.dtype is norch.uint8 and state.shape == (16,)
    wanted = norch.rand(3, generator=g).tolist()
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        other.set_state(state)
        assert norch.rand(3, generator=other).tolist() == wanted
    fresh = norch.Generator()
    fresh.set_state(state)
    assert norch.rand(3, generator=fresh).tolist() == wanted
    for bad in (norch.zeros(16), norch.zeros(3, dtype=norch.uint8)):
        with pytest.raises(norch.ArgumentError):
            g.set_state(bad)
    with pytest.raises(TypeError):
        g.set_state((1, 2))
    with pytest.raises(TypeError):
        g.manual_seed("a")
    with pytest.raises(OverflowError):
        g.manual_seed(2**64)
    with pytest.raises(TypeError):
        norch.rand(3, generator=7)


def test_default_generator():
    assert norch.manual_seed(9) is norch.default_generator
    assert norch.initial_seed() == 9
    assert norch.seed() == norch.initial_seed() != 9
    norch.manual_seed(9)
    with norch.random.fork_rng():
        norch.rand(3)
        norch.manual_seed(1)
    inside = norch.rand(3)
    norch.manual_seed(9)
    assert inside.tolist() == norch.rand(3).tolist()


WRONG = {
    "rand of ints": lambda m: m.rand(2, dtype=m.int64),
    "rand_like of ints": lambda m: m.rand_like(m.arange(2)),
    "rand negative": lambda m: m.rand(-1),
    "randint empty": lambda m: m.randint(5, 5, (2,)),
    "randint no size": lambda m: m.randint(5),
    "randint of bools": lambda m: m.randint(0, 3, (2,), dtype=m.bool),
    "random_ of bools": lambda m: m.zeros(2, dtype=m.bool).random_(0, 3),
    "randint range": lambda m: m.randint(0, 300, (2,), dtype=m.uint8),
    "randperm": lambda m: m.randperm(-1),
    "normal": lambda m: m.normal(0.0, -1.0, (2,)),
    "normal of deviations": lambda m: m.normal(m.zeros(2), m.tensor([1.0, -1.0])),
    "normal of shapes": lambda m: m.normal(m.zeros(2), m.ones(3)),
    "normal no size": lambda m: m.normal(0.0, 1.0),
    "bernoulli": lambda m: m.bernoulli(m.tensor([0.5, 1.5])),
    "bernoulli NaN": lambda m: m.bernoulli(m.tensor([math.nan])),
    "bernoulli of ints": lambda m: m.bernoulli(m.arange(2)),
    "bernoulli p": lambda m: m.bernoulli(m.zeros(2), 1.5),
    "multinomial": lambda m: m.multinomial(m.ones(3), 4),
    "multinomial none": lambda m: m.multinomial(m.ones(3), 0),
    "multinomial zeros": lambda m: m.multinomial(m.zeros(3), 1),
    "multinomial negative": lambda m: m.multinomial(m.tensor([1.0, -1.0]), 1),
    "multinomial NaN": lambda m: m.multinomial(m.tensor([1.0, math.nan]), 1, True),
    "multinomial of ints": lambda m: m.multinomial(m.tensor([1, 2]), 1),
    "multinomial of a cube": lambda m: m.multinomial(m.ones(2, 2, 2), 1),
    "poisson": lambda m: m.poisson(m.tensor([-1.0])),
    "poisson of ints": lambda m: m.poisson(m.arange(3)),
    "bernoulli number": lambda m: m.bernoulli(0.5),
}
FILLS = {
    "uniform_": lambda m, x: x.uniform_(2, 1),
    "normal_": lambda m, x: x.normal_(0, -1),
    "log_normal_": lambda m, x: x.log_normal_(0, -1),
    "cauchy_": lambda m, x: x.cauchy_(0, -1),
    "exponential_": lambda m, x: x.exponential_(-1),
    "geometric_": lambda m, x: x.geometric_(1.5),
    "bernoulli_": lambda m, x: x.bernoulli_(-0.5),
    "bernoulli_ of a tensor": lambda m, x: x.bernoulli_(m.ones(3)),
    "random_": lambda m, x: x.random_(3, 3),
    "leaf": lambda m, x: x.requires_grad_().uniform_(),
    "leaf normal_": lambda m, x: x.requires_grad_().normal_(),
    "expanded": lambda m, x: x[:1].expand(2).uniform_(),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_raises_in_torch_raises_here(torch, name):
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        WRONG[name](torch)
    with pytest.raises((norch.Error, TypeError, ValueError)):
        WRONG[name](norch)
        wait()


@pytest.mark.parametrize("name", FILLS)
def test_fills_that_raise_leave_the_tensor(torch, name):
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        FILLS[name](torch, torch.ones(2))
    x = norch.ones(2)
    with pytest.raises((norch.Error, TypeError, ValueError)):
        FILLS[name](norch, x)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "randint_like"])
def test_a_refused_format_draws_nothing(name):
    norch.manual_seed(3)
    state = norch.get_rng_state()
    with pytest.raises(TypeError, match=f"{name}: memory_format"):
        getattr(norch, name)(norch.ones(2), *[9] * (name == "randint_like"), memory_format="a")
    assert norch.equal(state, norch.get_rng_state())


@pytest.mark.parametrize("name", ["uniform_", "normal_", "log_normal_", "cauchy_", "exponential_"])
def test_floats_are_not_drawn_into_integers(name):
    x = norch.ones(2, dtype=norch.int64)
    with pytest.raises(norch.DTypeError, match=name):
        getattr(x, name)()
    assert x.tolist() == [1, 1]


def test_fills_write_through_views_and_cut_history():
    x = norch.zeros(3, 4)
    x[1, ::2].uniform_(2, 3)
    assert (x[1, ::2] >= 2).all() and x.sum().item() == x[1, ::2].sum().item()
    w = norch.ones(3, requires_grad=True)
    y = w * 2
    y[:1].normal_()
    y.sum().backward()
    assert w.grad.tolist() == [0, 2, 2]


def test_bounds_by_keyword():
    x = norch.zeros(50)
    assert norch.randint_like(x, high=2).unique().tolist() == [0, 1]
    assert norch.randint_like(x, low=3, high=4).unique().tolist() == [3]
    with pytest.raises(TypeError, match="randint_like"):
        norch.randint_like(x)


def test_a_generator_without_a_device():
    assert norch.Generator(device=None).device == norch.device("cpu")


@pytest.mark.parametrize("given", ["mean", "std", "mean std"])
def test_the_parameters_of_normal_have_gradients_of_0(torch, given):
    found = []
    for library in (norch, torch):
        mean, std = library.ones(2, 1, requires_grad="mean" in given), library.ones(3, requires_grad="std" in given)
        library.normal(mean, std).sum().backward()
        found.append([None if x.grad is None else x.grad.tolist() for x in (mean, std)])
    assert found[0] == found[1]


@pytest.mark.parametrize("draw", ["bernoulli", "poisson"])
def test_chances_and_rates_have_gradients_of_0(torch, draw):
    for library in (norch, torch):
        x = library.full((3,), 0.5, requires_grad=True)
        getattr(library, draw)(x).sum().backward()
        assert x.grad.tolist() == [0, 0, 0]
