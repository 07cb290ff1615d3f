"""Functions of complex numbers that are composed of others: values and gradients against PyTorch, and what refuses."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE, torch_or_skip

import norch
from norch.testing import gradcheck, gradgradcheck

torch = torch_or_skip()
pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="kernels of the CPU")
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


X, SMALL, W1, W2 = normal(4, 3), normal(2, 3) * 3, normal(2, 2, 3, 3), normal(4, 1, 2, 2)
B, C, V = normal(2, 3, 2), normal(2, 4, 2), normal(4)
LINE, IMAGE, VOLUME = normal(2, 4, 7), normal(2, 4, 5, 6), normal(4, 3, 4, 4)
INDEX = np.array([[0, 1, 2], [0, 3, 2], [0, 1, 1]])
WEIGHTS = np.array([0.5, 1.0, 2.0])


def functional(name, *options, **named):
    return lambda m, *xs: getattr(m.nn.functional, name)(*xs, *options, **named)


def into(reduce, **options):
    return lambda m, x, src: x.scatter_reduce(0, m.tensor(INDEX), src, reduce, **options)


CASES = {
    "cov": (lambda m, x: m.cov(x), X),
    "cov of one variable": (lambda m, x: m.cov(x), V),
    "cov with weights": (lambda m, x: m.cov(x, correction=0, aweights=m.tensor(WEIGHTS)), X),
    "corrcoef": (lambda m, x: m.corrcoef(x), X),
    "logsumexp": (lambda m, x: x.logsumexp(0), X),
    "logsumexp, kept": (lambda m, x: x.logsumexp((0, 1), True), X * 300),
    "logcumsumexp": (lambda m, x: x.logcumsumexp(0), X),
    "logcumsumexp, large": (lambda m, x: x.logcumsumexp(-1), SMALL * 200),
    "logcumsumexp of a number": (lambda m, x: x.logcumsumexp(0), X[0, 0]),
    "dist": (lambda m, x: x.dist(x * 2j + 1), X),
    "dist 1": (lambda m, x, y: m.dist(x, y, 1), X, X * 1j + 1),
    "dist inf": (lambda m, x, y: m.dist(x, y, float("inf")), X, X * 1j + 1),
    "renorm": (lambda m, x: x.renorm(2, 0, 1.5), X),
    "renorm 1": (lambda m, x: x.renorm(1, 1, 2.0), X),
    "gradient": (lambda m, x: m.gradient(x, spacing=2.0, edge_order=2, dim=1)[0], X),
    "gradient, complex spacing": (lambda m, x: m.gradient(x, spacing=2j)[0], X),
    "gradient, places": (
        lambda m, x: m.gradient(x, spacing=[m.tensor([0.0, 1.0, 4.0, 6.0]).to(x.real.dtype)], dim=0)[0],
        X,
    ),
    "addmm": (lambda m, x, y: m.addmm(x[:, :2], x, y, alpha=2j, beta=1 - 1j), X, normal(3, 2)),
    "addmv": (lambda m, x, y: m.addmv(y, x, x[0], alpha=2j, beta=0.5), X, V),
    "addr": (lambda m, x, y: m.addr(x, y, x[0], alpha=2j, beta=0.5j), X, V),
    "baddbmm": (lambda m, b, c: m.baddbmm(c @ b.mT, c, b.mT, alpha=2j, beta=1j), B, C),
    "addbmm": (lambda m, b, c: m.addbmm(c[0] @ b[0].mT, c, b.mT, alpha=2j), B, C),
    "conv1d": (functional("conv1d", None, 2, 1), LINE, normal(3, 4, 3)),
    "conv1d, bias, no batch": (functional("conv1d", padding="same"), LINE[0], normal(3, 4, 3), normal(3)),
    "conv2d": (functional("conv2d", None, 1, 1, 2), IMAGE, normal(2, 4, 2, 3)),
    "conv2d in groups": (functional("conv2d", groups=4), IMAGE, W2, normal(4)),
    "conv3d": (functional("conv3d", None, 1, 1), VOLUME, normal(2, 4, 2, 2, 2)),
    "conv_transpose1d": (functional("conv_transpose1d", stride=2), LINE, normal(4, 3, 2), normal(3)),
    "conv_transpose2d": (functional("conv_transpose2d", padding=1, groups=2), IMAGE, normal(4, 3, 2, 3)),
    "conv_transpose3d": (functional("conv_transpose3d", stride=2, output_padding=1), VOLUME, normal(4, 1, 2, 2, 2)),
    "scatter_reduce sum": (into("sum", include_self=False), X, normal(3, 3)),
    "scatter_reduce mean": (into("mean"), X, normal(4, 3)),
    "scatter_reduce mean without self": (into("mean", include_self=False), X, normal(3, 3)),
    "scatter_reduce prod": (into("prod"), X, normal(3, 3)),
    "scatter_reduce prod of more": (into("prod", include_self=False), X, normal(4, 5)),
    "index_reduce prod": (lambda m, x, y: x.index_reduce(0, m.tensor([2, 0, 2]), y, "prod"), X, normal(3, 3)),
    "index_reduce mean": (lambda m, x, y: x.index_reduce(1, m.tensor([1, 1]), y, "mean"), X, normal(4, 2)),
    "scatter_reduce, as a product by scatter": (lambda m, x: x.scatter(0, m.tensor(INDEX), 2j, reduce="multiply"), X),
}


@pytest.mark.filterwarnings("ignore:The reduce argument|index_reduce:UserWarning")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name, dtype):
    function, *arrays = CASES[name]
    differentiable = "_reduce" not in name  # PyTorch has no derivative of the others
    found = []
    for m in (norch, torch):
        xs = [m.tensor(np.asarray(a, dtype), requires_grad=differentiable) for a in arrays]
        out = function(m, *xs)
        if differentiable:
            angles = m.tensor(np.linspace(0, 5, out.numel()).reshape(tuple(out.shape)))
            weights = m.polar(m.ones_like(angles), angles)
            (out * (weights if out.is_complex() else weights.real)).real.sum().backward()
        found.append([x.detach().resolve_conj().numpy() for x in (out, *(x.grad for x in xs)) if x is not None])
    # PyTorch's gradient of renorm leaves out the 1e-7 that it adds to norms.
    tolerance = 2e-4 if dtype == "complex64" else 1e-6 if name.startswith("renorm") else 1e-9
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("renorm", "corrcoef", "conv"))])
def test_second_derivatives(name):
    function, *arrays = CASES[name]
    xs = [norch.tensor(a / 10 if abs(a).max() > 100 else a, requires_grad=True) for a in arrays]
    assert gradcheck(lambda *xs: function(norch, *xs), xs, eps=1e-6, atol=1e-4)
    assert gradgradcheck(lambda *xs: function(norch, *xs), xs, eps=1e-6, atol=1e-3)


def test_products_with_zeros():
    """Of a product in which some factors are 0 the gradients are the products of the others."""
    x, src = normal(3), normal(4)
    src[[0, 1]] = 0
    a, b = (norch.tensor(array, requires_grad=True) for array in (x, src))
    out = a.scatter_reduce(0, norch.tensor([0, 1, 1, 1]), b, "prod")
    assert out[1:].tolist() == [0, x[2]]
    assert gradcheck(lambda a, b: a.scatter_reduce(0, norch.tensor([0, 1, 1, 1]), b, "prod"), (a, b))
    b = norch.tensor([2.0, 0.0, 3j, 0.5], dtype=norch.complex128, requires_grad=True)
    assert gradcheck(lambda a, b: a.scatter_reduce(0, norch.tensor([0, 1, 1, 1]), b, "prod"), (a, b))


def test_a_long_product_of_equal_indices():
    index, src = RNG.integers(0, 5, 3000), np.exp(1j * RNG.standard_normal(3000))
    ours, theirs = (
        m.ones(7, dtype=m.complex128).scatter_reduce(0, m.tensor(index), m.tensor(src), "prod") for m in (norch, torch)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10)
    empty = norch.ones(2, dtype=norch.complex64)
    assert empty.scatter_reduce(0, norch.zeros(0, dtype=norch.int64), norch.zeros(0).cfloat(), "prod").equal(empty)


@pytest.mark.parametrize(
    "numbers", [["-inf", "-inf+1j", "2+3j"], ["inf+1j", "1", "inf"], ["nan", "1"], ["1", "nan", "2"], ["4j", "1+4j"]]
)
def test_edges_of_logcumsumexp(numbers):
    array = np.array([complex(x) for x in numbers])
    ours, theirs = (m.tensor(array).logcumsumexp(0).numpy() for m in (norch, torch))
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-12)
    assert (ours.real[~finite & ~np.isnan(theirs)] == theirs.real[~finite & ~np.isnan(theirs)]).all()


def test_draws():
    for m in (norch, torch):
        m.manual_seed(0)
        x = m.zeros(40000, dtype=m.complex64).normal_(1.0, 2.0)
        assert abs(x.mean().item() - (1 + 1j)) < 0.05 and abs(x.var().item() - 4) < 0.1
        assert abs(x.real.var().item() - 2) < 0.1
        y = m.normal(1.0, 2.0, (40000,), dtype=m.complex64)
        assert abs(y.mean().item() - (1 + 1j)) < 0.05
        u = m.zeros(40000, dtype=m.complex64).uniform_(1.0, 3.0)
        assert 1 <= u.real.min().item() and u.imag.max().item() < 3 and abs(u.mean().item() - (2 + 2j)) < 0.05
        c = m.normal(m.full((40000,), 5j), m.ones(40000) * 2)
        assert abs(c.mean().item() - 5j) < 0.05


def test_layers_of_complex_numbers():
    """Modules take a complex dtype, and train."""
    norch.manual_seed(0)
    net = norch.nn.Sequential(
        norch.nn.Conv1d(1, 4, 3, padding=1, dtype=norch.complex64),
        norch.nn.Tanh(),
        norch.nn.Conv1d(4, 1, 1, dtype=norch.complex64),
    )
    x = norch.randn(8, 1, 16, dtype=norch.complex64)
    target, losses = x.roll(1, -1) * 1j, []
    optimizer = norch.optim.Adam(net.parameters(), 0.03)
    for _ in range(60):
        loss = (net(x) - target).abs().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: norch.addmm(x.real, x.real, x.real, alpha=2j), "addmm: a factor of 2j for dtype float32"),
        (
            lambda x: norch.addr(norch.ones(2, dtype=norch.int64), norch.arange(2), norch.arange(2), beta=1j),
            "addr: a factor of integers is an integer, not 1j",
        ),
        (lambda x: norch.nn.functional.conv1d(x[None], x[None].to(norch.complex128)), "conv1d: expected one dtype"),
        (lambda x: norch.nn.functional.conv1d(x[None], x[None].real), "conv"),
        (lambda x: x.scatter_reduce(0, norch.zeros(3, 3, dtype=norch.int64), x, "amax"), "scatter_reduce: complex64"),
        (lambda x: x.normal_(1j), "normal_: mean must be a number, not complex"),
        (lambda x: x.exponential_(), "exponential_: the dtype must be a float, not complex64"),
    ],
)
def test_refuses_what_pytorch_refuses(call, message):
    with pytest.raises(TypeError, match=message):
        call(norch.ones(3, 3, dtype=norch.complex64))


@pytest.mark.parametrize("power", [1, 1.0, 2, 3, 0, 0.5])
def test_powers_by_numbers_are_exact(power):
    """exp(power log(x)) is but near: (3j) ** 1 has a real part, and that of an infinite imaginary part is NaN."""
    x = np.array([3j, -4j, 5 + 12j, -1.0, complex(0, np.inf), 0])
    for way in (lambda m, x: x**power, lambda m, x: m.float_power(x, power)):
        for kind in ("complex64", "complex128"):
            mine, theirs = (way(m, m.tensor(x.tolist(), dtype=getattr(m, kind))) for m in (norch, torch))
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-7 if power == 0.5 else 0)
    assert gradcheck(lambda x: x**power, norch.tensor(x[:3], requires_grad=True))
