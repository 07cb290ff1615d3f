"""Variances and norms of numbers far from 0, and of any size, beside their values in float64 or longer: along rows,
down columns and of all elements, in shapes that the loops cut differently; NaN and infinity are kept."""

import functools
import math

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch.nn import functional as F

SHAPES = [(7, 5), (3, 64), (40, 130), (1000, 33), (5, 20_000), (20_000, 5)]
OFFSETS = [0.0, 1e4, 1e6, 1e7, -1e9]
SCALES = [1e-30, 1e-19, 1.0, 1e18, 1e30]
AXES = [None, 0, 1]
REDUCTIONS = {
    "var": lambda x, axis: x.var(axis),
    "std": lambda x, axis: x.std(axis),
    "var_mean": lambda x, axis: norch.var_mean(x, axis)[0],
    "std_mean": lambda x, axis: norch.std_mean(x, axis)[0],
    "norm": lambda x, axis: x.norm(2, axis),
}
EXACT = {
    "var": lambda x, axis: x.var(axis, ddof=1),
    "std": lambda x, axis: x.std(axis, ddof=1),
    "norm": lambda x, axis: np.sqrt((x * x).sum(axis)),
}
EXACT |= {"var_mean": EXACT["var"], "std_mean": EXACT["std"]}
by_products = functools.partial(norch.cdist, compute_mode="use_mm_for_euclid_dist")


def numbers(shape, dtype, offset=0.0, scale=1.0):
    x = np.random.default_rng(1).standard_normal(shape) * scale + offset
    return norch.tensor(x).to(dtype)


def near(out, wanted, dtype, count):
    """Whether out is within 2 ulp of dtype times log2(count) of wanted, float64; beyond dtype's range infinite or 0."""
    limits = norch.finfo(dtype)
    with np.errstate(over="ignore"):
        bound = 2 * limits.eps * max(math.log2(count), 1) * np.abs(wanted) + limits.tiny
    out = out.double().numpy()
    beyond = np.abs(wanted) > limits.max * (1 + limits.eps / 4)  # less is rounded to the largest
    assert np.all(np.where(beyond, out == np.inf, np.abs(out - wanted) <= bound)), (out, wanted)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_far_from_0(name, shape, axis):
    for dtype in (norch.float32, norch.float64):
        for offset in OFFSETS:
            x = numbers(shape, dtype, offset)
            exact = x.double().numpy().astype(np.longdouble)
            wanted = EXACT[name](exact, axis).astype(np.float64)
            near(REDUCTIONS[name](x, axis), wanted, dtype, 4 if dtype is norch.float32 else 1 << 16)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_of_any_size(name, axis):
    for shape in SHAPES:
        for scale in SCALES:
            x = numbers(shape, norch.float32, 0.0, scale)
            wanted = EXACT[name](x.double().numpy(), axis)
            near(REDUCTIONS[name](x, axis), wanted, norch.float32, 2)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_16_bits_are_rounded_once(name, axis, dtype):
    for shape in SHAPES:
        for offset, scale in ((0.0, 1.0), (300.0, 1.0), (0.0, 1e-4), (0.0, 1e4)):
            x = numbers(shape, dtype, offset, scale)
            wanted = EXACT[name](x.double().numpy(), axis)
            near(REDUCTIONS[name](x, axis), wanted, dtype, 2)


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64], ids=str)
def test_of_equal_elements(dtype):
    for value in (0.1, 1e7 / 3, -1e30):
        for shape in SHAPES:
            x = norch.full(shape, value, dtype=dtype)
            for axis in AXES:
                assert not x.var(axis).any() and not x.std(axis).any()


@pytest.mark.parametrize("name", ["var", "std", "norm"])
def test_nan_and_infinity(name):
    for shape in SHAPES[:4]:
        for at in (0, 1, shape[1] // 2, shape[1] - 1):
            for value in (math.nan, math.inf, -math.inf):
                x = numbers(shape, norch.float32, 5.0)
                x[0, at] = value
                out = REDUCTIONS[name](x, 1)
                is_infinite = name == "norm" and not math.isnan(value)
                assert math.isinf(out[0]) if is_infinite else math.isnan(out[0])
                assert bool(out[1:].isfinite().all())


def test_what_overflows_is_infinite():
    for x in ([3e38, 3e38, -3e38], [0.0, 2e38], [-3e38] * 40 + [3e38] * 90):
        assert norch.tensor(x).var().item() == math.inf
    assert norch.tensor([1e300, -1e300, 0.0] * 50, dtype=norch.float64).var().item() == math.inf
    for x in ([-1.7e308] + [1.7e308] * 40, [1e308] * 300 + [-1e308] * 300, [-1.7e308] * 3 + [1.7e308] * 40_000):
        x = norch.tensor(x, dtype=norch.float64)
        assert x.var().item() == x.std().item() == math.inf
        x[1] = math.inf
        assert math.isnan(x.var().item())
    assert norch.tensor([1e20, -1e20]).std().item() == pytest.approx(math.sqrt(2) * 1e20)


def test_an_origin_far_from_the_rest():
    for dtype, digits in ((norch.float32, 1e-6), (norch.float64, 1e-10)):
        x = norch.cat([norch.tensor([1e6], dtype=dtype), numbers((99_999,), dtype)])
        assert x.var().item() == pytest.approx(x.double().numpy().astype(np.longdouble).var(ddof=1), rel=digits)


NORMALIZATIONS = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:], eps=1e-12), (1, 2)),
    "group_norm": (lambda x: F.group_norm(x, 1, eps=1e-12), (1, 2)),
    "instance_norm": (lambda x: F.instance_norm(x, eps=1e-12), (2,)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True, eps=1e-12), (0, 2)),
}


@pytest.mark.parametrize("shape", [(6, 3, 40), (64, 20, 7), (3, 2, 700)], ids=str)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalization_far_from_0_and_of_any_size(name, shape):
    call, axes = NORMALIZATIONS[name]
    for offset, scale in [(0, 1), (1e4, 1), (1e6, 1), (1e7, 1), (0, 1e-4), (0, 1e20), (0, 1e30), (3e30, 1e28)]:
        x = numbers(shape, norch.float32, offset, scale).requires_grad_()
        wide = x.detach().double().requires_grad_()
        exact = wide.detach().numpy()
        wanted = (exact - exact.mean(axes, keepdims=True)) / np.sqrt(exact.var(axes, keepdims=True) + 1e-12)
        out = call(x)
        assert np.abs(out.detach().numpy() - wanted).max() < 2e-6, (offset, scale)
        g = (norch.arange(x.numel()) * 0.7).sin().reshape(shape)
        out.backward(g)
        call(wide).backward(g.double())
        most = np.abs(wide.grad.numpy()).max()
        assert np.abs(x.grad.double().numpy() - wide.grad.numpy()).max() < 4e-6 * most, (offset, scale)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_distances_and_angles_of_any_size(scale):
    x, y = numbers((8, 30), norch.float32, 0.0, scale), numbers((8, 30), norch.float32, 0.5 * scale, scale)
    for call in (
        lambda a, b: norch.cosine_similarity(a, b, eps=1e-38),
        lambda a, b: F.pairwise_distance(a, b, eps=0.0),
        lambda a, b: F.normalize(a, eps=1e-38),
        lambda a, b: F.normalize(a, 3.0, eps=1e-38),
        lambda a, b: norch.linalg.vector_norm(a, 4, 1),
        lambda a, b: norch.corrcoef(a),
        lambda a, b: norch.hypot(a, b),
        lambda a, b: norch.complex(a, b).abs() if DEVICE == "cpu" else a,  # has no kernel elsewhere
        lambda a, b: norch.linalg.vector_norm(norch.complex(a, b), dim=1) if DEVICE == "cpu" else a,
    ):
        found, wanted = call(x, y).double(), call(x.double(), y.double())
        assert bool(((found - wanted).abs() <= 1e-6 * wanted.abs().max()).all())


def test_distances_far_from_0():
    for offset in (0.0, 1e4, 1e6):
        x = numbers((40, 8), norch.float32, offset)
        wanted = norch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
        for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", None):
            found = norch.cdist(x, x.clone(), compute_mode=mode)
            off_diagonal = (found.double() - wanted).abs() * (1 - norch.eye(40, dtype=norch.float64))
            assert off_diagonal.max() < 1e-5
            a, wide = (y.detach().clone().requires_grad_() for y in (x, x.double()))
            slopes = (norch.arange(1600) * 0.7).sin().reshape(40, 40)
            norch.cdist(a, x, compute_mode=mode).backward(slopes)
            norch.cdist(wide, x.double(), compute_mode="donot_use_mm_for_euclid_dist").backward(slopes.double())
            assert (a.grad - wide.grad).abs().max() < 2e-5
        exact = x.double().numpy()[:6]
        assert np.abs(norch.cov(x[:6]).numpy() - np.cov(exact)).max() < 2e-6
        assert np.abs(norch.corrcoef(x[:6]).numpy() - np.corrcoef(exact)).max() < 2e-6


@pytest.mark.parametrize("name", ["var", "std", "norm"])
def test_captured(name):
    x = numbers((300, 70), norch.float32, 1e6)
    call = norch.capture(lambda x: REDUCTIONS[name](x * 1.5 + 1.0, 1) * 2.0)
    for _ in range(3):
        assert norch.equal(call(x), REDUCTIONS[name](x * 1.5 + 1.0, 1) * 2.0)


@pytest.mark.parametrize("axes", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_gradients_of_moments_far_from_0(name, axes):
    wide = norch.randn(64, 48, dtype=norch.float64) + 1e6
    x = wide.float().requires_grad_()
    wide = x.detach().double().requires_grad_()
    for given in (x, wide):
        out = getattr(norch, name)(given, axes)
        (out[0] if "mean" in name else out).sum().backward()
    scale = wide.grad.abs().amax().item()
    assert (x.grad.double() - wide.grad).abs().amax().item() < 1e-3 * scale


@pytest.mark.parametrize("size", [1e20, 1e-25])
def test_distances_by_products_of_large_and_small_rows(size):
    a, b = norch.randn(2, 30, 3) * norch.tensor([size, 1.0])[:, None, None], norch.randn(2, 40, 3)
    b = b * norch.tensor([size, 1.0])[:, None, None]
    wanted = norch.cdist(a.double(), b.double(), compute_mode="donot_use_mm_for_euclid_dist")
    assert ((by_products(a, b).double() - wanted).abs() <= 1e-3 * wanted.amax((1, 2), True)).all()


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, 1e30, 1e10])
@pytest.mark.parametrize("of_a", [True, False])
def test_a_row_far_away_spoils_no_other_distance(bad, of_a):
    a, b = numbers((60, 8), norch.float32, 0.0), numbers((50, 8), norch.float32, 0.5)
    (a if of_a else b)[17, 2] = bad
    wanted = norch.cdist(a.double(), b.double(), compute_mode="donot_use_mm_for_euclid_dist")
    others = norch.arange(60 if of_a else 50) != 17
    found, wanted = (x if of_a else x.mT for x in (by_products(a, b), wanted))
    assert (found - wanted)[others].abs().max() < 1e-5
    far = wanted[17] if bad < 1e19 else norch.full_like(wanted[17], math.nan if math.isnan(bad) else math.inf)
    assert norch.allclose(found[17].double(), far, equal_nan=True)


@pytest.mark.parametrize("size", [1.5e19, 1e25])
def test_distances_of_two_rows_far_away_are_not_0(size):
    a = numbers((60, 8), norch.float32, 0.0)
    a[17, 2] = a[18, 2] = size
    found = by_products(a, a.clone())
    assert (found[17:19, :17] > 1e18).all() and not found.isnan().any()


@pytest.mark.parametrize("rows", [(0, 30), (30, 0), (0, 0)])
def test_gradients_of_no_distances_are_0(rows):
    a, b = (norch.ones(n, 3, requires_grad=True) for n in rows)
    norch.cdist(a, b, compute_mode="use_mm_for_euclid_dist").sum().backward()
    assert not a.grad.any() and not b.grad.any()


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_renorm_leaves_rows_with_a_nan(p):
    x = norch.tensor([[1.0, math.nan], [3.0, 4.0]])
    found = norch.renorm(x, p, 0, 1.0)
    assert found[0, 0].item() == 1.0 and found[0, 1].isnan() and found[1].norm(p).item() == pytest.approx(1)


NORMS = {
    "vector_norm": lambda x: norch.linalg.vector_norm(x),
    "vector_norm of rows": lambda x: norch.linalg.vector_norm(x, dim=1),
    "vector_norm of columns": lambda x: norch.linalg.vector_norm(x, dim=0),
    "norm": lambda x: x.norm(2, 1, True),
    "matrix_norm": lambda x: norch.linalg.matrix_norm(x),
    "strided": lambda x: x[:, ::3].t().norm(2, 0),
    "dist": lambda x: norch.dist(x, x.flip(0)),
    "cdist": lambda x: norch.cdist(x[:4], x[:6].flip(0)),
    "cdist by products": lambda x: by_products(x[:30], x[:30].flip(0)),
    "pdist": lambda x: F.pdist(x[:9]),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x.flip(0), eps=0.0),
    "renorm": lambda x: norch.renorm(x, 2, 0, x.detach().abs().max().item()),
    "normalize": lambda x: F.normalize(x, eps=0.0) * x.detach().abs().max(),
}


@pytest.mark.parametrize("shape", [(9, 5), (40, 130), (70, 700)], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_float64_of_any_size(name, shape):
    """A power of two in front of the elements is one in front of the norm, and none in front of the gradient."""
    start = norch.randn(shape, dtype=norch.float64, generator=norch.Generator().manual_seed(2))

    def answers(scale):
        x = (start * scale).requires_grad_()
        out = NORMS[name](x)
        return out.detach() / scale, norch.autograd.grad(out.sum(), x)[0]

    wanted, slope = answers(1.0)
    for exponent in (520, 600, 1000) if name == "renorm" else (-1000, -600, -520, 520, 600, 1000):
        found, found_slope = answers(2.0**exponent)
        tolerance = 1e-6 if name == "renorm" else 1e-12  # which adds 1e-7 to norms
        assert norch.allclose(found, wanted, rtol=tolerance, atol=0), exponent
        assert norch.allclose(found_slope, slope, rtol=100 * tolerance, atol=tolerance), exponent


def test_norms_of_float64_beside_zeros_nan_and_infinity():
    x = norch.tensor([[0.0, 0.0], [1e-320, 0.0], [math.inf, 1e200], [math.nan, 1e200], [-math.inf, math.nan]]).double()
    x[1, 0] = 1e-320
    found = norch.linalg.vector_norm(x, dim=1).tolist()
    assert found[0] == 0 and found[2] == math.inf and math.isnan(found[3]) and math.isnan(found[4])
    assert found[1] == 1e-320
    assert norch.linalg.vector_norm(norch.empty(0, dtype=norch.float64)).item() == 0
    assert norch.linalg.vector_norm(norch.full((3,), 1.7e308, dtype=norch.float64)).item() == math.inf


def test_clip_grad_norm_of_large_gradients():
    p = norch.nn.Parameter(norch.zeros(2, dtype=norch.float64))
    p.grad = norch.tensor([3e200, 4e200], dtype=norch.float64)
    assert norch.nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(5e200)
    assert p.grad.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("count", [3, 40_000, 100_001])
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.bfloat16], ids=str)
def test_captured_sums_that_overflow(dtype, count):
    """Of all elements, which a chain reduces leaf by leaf: the same bits as without capture."""
    top = norch.finfo(dtype).max / 4
    for x in (
        norch.full((count,), top, dtype=dtype),
        norch.linspace(top / 2, top, count, dtype=norch.float64).to(dtype),
    ):
        x[0] = 1

        def step(x):
            y = x * 1.0
            return y.mean(), norch.linalg.vector_norm(y * 2.0**-20), (y - y).mean()

        captured = norch.capture(step)
        for _ in range(3):
            found = captured(x)
        assert [a.item() for a in found] == [a.item() for a in step(x)]
        assert found[0].isfinite()


@pytest.mark.parametrize("dtype", [norch.float32, norch.bfloat16], ids=str)
def test_gradients_of_large_deviations(dtype):
    """The product of a deviation and the number of elements overflows."""
    x = (norch.tensor([3.0, -1.0, 0.2, 0.0, *[0.1] * 60]).double() * 1e38).to(dtype).requires_grad_()
    exact = x.detach().double().requires_grad_()
    found, wanted = (norch.autograd.grad(one.std(), one)[0].double() for one in (x, exact))
    assert norch.allclose(found, wanted, rtol=8 * norch.finfo(dtype).eps + 1e-4, atol=0)


@pytest.mark.parametrize("offset", [0.0, 2.0**17, -(2.0**23)])
def test_logarithms_of_sums_far_from_0(offset):
    """Label smoothing, and gradients of running sums, depend on the differences of their inputs alone."""
    start = norch.tensor([[1.0, 0.0, 2.0, -3.0], [1.0, 4.0, 1.0, 1.0]])
    x, exact = (start + offset).requires_grad_(), start.double().requires_grad_()
    weights, targets = norch.tensor([[2.0, -1.0, 0.5, 1.0]] * 2), norch.tensor([2, 0])
    found, wanted = (norch.autograd.grad(y.logcumsumexp(1), y, weights.to(y.dtype))[0].double() for y in (x, exact))
    assert norch.allclose(found, wanted, rtol=1e-5, atol=1e-6)
    found, wanted = (F.cross_entropy(y, targets, label_smoothing=0.3).item() for y in (x, exact))
    assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_means_whose_sums_overflow(dtype, axis):
    top = norch.finfo(dtype).max / 2
    x = norch.full((30, 40), top, dtype=dtype)
    x[3, 5] = x[4, 5] = -top
    close = 2 * norch.finfo(dtype).eps
    assert norch.allclose(x.mean(axis) / top, (x / top).mean(axis), rtol=close, atol=0)
    x[::3, ::2] = math.nan
    x.requires_grad_()
    found = x.nanmean(axis)
    assert norch.allclose(found / top, (x / top).nanmean(axis), rtol=close, atol=0)
    slopes = norch.autograd.grad(found.double().sum(), x)[0]
    count = x.isnan().logical_not().sum(axis, keepdim=True) if axis is not None else x.isfinite().sum()
    wanted = (1 / count.double()).expand(30, 40).where(x.isfinite(), 0)
    assert norch.allclose(slopes.double(), wanted, rtol=2 * close, atol=0)
    assert norch.tensor([math.inf, 1.0, math.nan]).nanmean().item() == math.inf
    assert math.isnan(norch.tensor([math.nan] * 3).nanmean().item())


@pytest.mark.parametrize("shape", [(6, 3, 40), (64, 20, 7), (300, 3), (3, 2, 700)], ids=str)
@pytest.mark.parametrize("size", [1e20, 1e-15])
@pytest.mark.parametrize("name", ["batch_norm", "evaluation", "group_norm", "layer_norm"])
def test_normalization_by_small_and_large_weights(name, size, shape):
    """Of numbers of a size, times a weight of 1 / size, or less: float32 does not hold weight / sigma."""
    channels = shape[1]
    calls = {
        "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=1e-38),
        "evaluation": lambda x, w, b: F.batch_norm(x, *moments.to(x.dtype), w, b, eps=1e-38),
        "group_norm": lambda x, w, b: F.group_norm(x, 1, w, b, eps=1e-38),
        "layer_norm": lambda x, w, b: F.layer_norm(
            x, x.shape[1:], w.reshape(-1, *[1] * (x.ndim - 2)).expand(x.shape[1:]).contiguous(), eps=1e-38
        ),
    }
    x = numbers(shape, norch.float32, 0.0, size)
    wide_x = x.double().transpose(0, 1).flatten(1)
    mean, variance = wide_x.mean(1), wide_x.var(1, correction=0)
    moments = norch.stack((mean, variance if size < 1 else variance.clamp(max=1e38)))
    weight = norch.linspace(1, 2, channels) / (size * 1e-3 if size < 1 else size)
    weight[0] = 1e-24 / size if size > 1 else 1e37
    bias = norch.zeros(channels)
    g = (norch.arange(x.numel()) * 0.7).sin().reshape(shape) * (1e20 if size > 1 else 1e-20)
    results = []
    for dtype in (norch.float32, norch.float64):
        given = [one.to(dtype).requires_grad_() for one in (x, weight, bias)]
        out = calls[name](*given)
        results.append([out, *norch.autograd.grad(out, given[:2], g.to(dtype))])
    for found, wanted in zip(*results):
        off = (found.double() - wanted).abs()
        dims = [d for d in range(found.ndim) if d != 1] if found.ndim > 1 else [0]
        assert bool((off <= 2e-5 * wanted.abs().amax(dims, keepdim=True) + 1e-44).all()), off.max()


def test_gradients_near_0():
    tiny = norch.tensor([5e-324, -1e-320, 0.0], dtype=norch.float64, requires_grad=True)
    for function in (norch.special.i1, norch.special.i1e):
        assert norch.autograd.grad(function(tiny).sum(), tiny)[0].tolist() == [0.5] * 3
