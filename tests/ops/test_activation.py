"""Activation layers and what functional's activations take beyond the cases: repr, inplace, parameters, noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn
from norch.nn import functional as F
from norch.testing import assert_close, gradcheck

# (class, arguments, what PyTorch's repr says)
LAYERS: list[tuple[str, dict[str, Any], str]] = [
    ("ReLU", {}, "ReLU()"),
    ("ReLU", {"inplace": True}, "ReLU(inplace=True)"),
    ("ReLU6", {"inplace": True}, "ReLU6(inplace=True)"),
    ("LeakyReLU", {}, "LeakyReLU(negative_slope=0.01)"),
    ("LeakyReLU", {"negative_slope": 0.2, "inplace": True}, "LeakyReLU(negative_slope=0.2, inplace=True)"),
    ("ELU", {}, "ELU(alpha=1.0)"),
    ("ELU", {"alpha": 2.0, "inplace": True}, "ELU(alpha=2.0, inplace=True)"),
    ("CELU", {"alpha": 0.5}, "CELU(alpha=0.5)"),
    ("SELU", {"inplace": True}, "SELU(inplace=True)"),
    ("SiLU", {}, "SiLU()"),
    ("SiLU", {"inplace": True}, "SiLU(inplace=True)"),
    ("Mish", {"inplace": True}, "Mish(inplace=True)"),
    ("GELU", {"approximate": "tanh"}, "GELU(approximate='tanh')"),
    ("Softplus", {"beta": 2.0}, "Softplus(beta=2.0, threshold=20.0)"),
    ("Hardtanh", {}, "Hardtanh(min_val=-1.0, max_val=1.0)"),
    ("Hardtanh", {"min_value": -2, "max_value": 2, "inplace": True}, "Hardtanh(min_val=-2, max_val=2, inplace=True)"),
    ("Hardsigmoid", {"inplace": True}, "Hardsigmoid()"),
    ("Hardswish", {"inplace": True}, "Hardswish()"),
    ("Hardshrink", {}, "Hardshrink(0.5)"),
    ("Softshrink", {"lambd": 0.25}, "Softshrink(0.25)"),
    ("Softsign", {}, "Softsign()"),
    ("Tanhshrink", {}, "Tanhshrink()"),
    ("LogSigmoid", {}, "LogSigmoid()"),
    ("Threshold", {"threshold": 0.5, "value": 2, "inplace": True}, "Threshold(threshold=0.5, value=2, inplace=True)"),
    ("GLU", {"dim": 1}, "GLU(dim=1)"),
    ("PReLU", {"num_parameters": 4, "init": 0.1}, "PReLU(num_parameters=4)"),
    ("Softmin", {"dim": 1}, "Softmin(dim=1)"),
    ("Softmax2d", {}, "Softmax2d()"),
    ("RReLU", {}, "RReLU(lower=0.125, upper=0.3333333333333333)"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), LAYERS, ids=[text for _, _, text in LAYERS])
def test_layers(name: str, arguments: dict[str, Any], text: str) -> None:
    layer = getattr(nn, name)(**arguments).eval()
    assert repr(layer) == text
    values = np.random.default_rng(4).normal(0, 2, (2, 4, 3, 4)).astype(np.float32)
    x = norch.tensor(values)
    found = layer(x)
    assert (found is x) == bool(arguments.get("inplace"))
    if not arguments.get("inplace"):
        assert_close(x, values)  # the input stays


@pytest.mark.parametrize(("name", "arguments", "text"), LAYERS, ids=[text for _, _, text in LAYERS])
def test_layers_like_torch(torch: Any, name: str, arguments: dict[str, Any], text: str) -> None:
    values = np.random.default_rng(5).normal(0, 2, (2, 4, 3, 4))
    ours, theirs = getattr(nn, name)(**arguments).eval().double(), getattr(torch.nn, name)(**arguments).eval().double()
    x, y = norch.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    found, wanted = ours(x * 1), theirs(y * 1)
    assert_close(found, wanted.detach().numpy(), rtol=1e-13, atol=1e-14)
    found.square().sum().backward()
    wanted.square().sum().backward()
    slack = 1e-7 if name == "Hardsigmoid" else 1e-12  # its 1/6 is of float32 there
    assert x.grad is not None
    assert_close(x.grad, y.grad.numpy(), rtol=slack, atol=slack)
    for ours_too, theirs_too in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(ours_too.grad, theirs_too.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.relu(x, inplace=True),
        lambda x: F.leaky_relu(x, 0.2, inplace=True),
        lambda x: F.elu(x, 0.7, inplace=True),
        lambda x: F.hardtanh(x, -0.5, 0.7, inplace=True),
        lambda x: F.hardswish(x, inplace=True),
        lambda x: F.hardsigmoid(x, inplace=True),
        lambda x: F.mish(x, inplace=True),
        lambda x: F.silu(x, inplace=True),
        lambda x: F.threshold(x, 0.1, 3.0, inplace=True),
        lambda x: F.rrelu(x, inplace=True),
        lambda x: F.celu_(x, 1.5),
    ],
)
def test_written_activations_have_gradients(call: Any) -> None:
    x = norch.tensor([-2.0, -0.3, 0.4, 1.7], dtype=norch.float64, requires_grad=True)
    assert gradcheck(lambda x: call(x * 1), x)
    with pytest.raises(norch.Error, match="leaf"):
        call(x)


def test_prelu_learns() -> None:
    layer = nn.PReLU(3, init=0.5)
    assert list(layer.state_dict()) == ["weight"] and layer.weight.tolist() == [0.5] * 3
    layer(norch.tensor([[-1.0, 2.0, -3.0]])).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.tolist() == [-1.0, 0.0, -3.0]
    assert nn.PReLU(dtype=norch.float64).weight.dtype is norch.float64


def test_rrelu_draws_slopes() -> None:
    norch.manual_seed(1)
    x = norch.full((1000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.25, 0.5, training=True)
    assert -0.5 < float(y.min()) < -0.48 and -0.27 < float(y.max()) <= -0.25
    y.sum().backward()
    assert_close(x.grad, -y.detach())
    assert F.rrelu(norch.ones(3), training=True).tolist() == [1.0] * 3
    assert nn.RReLU(0.5, 0.5).train()(norch.tensor([-2.0])).item() == -1.0


def test_gumbel_softmax() -> None:
    norch.manual_seed(2)
    logits = norch.tensor([[0.0, 1.0, 2.0]]).expand(4000, 3).clone().requires_grad_()
    soft = F.gumbel_softmax(logits, tau=0.5)
    assert_close(soft.sum(-1), norch.ones(4000), rtol=1e-5, atol=0)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(hard.detach().flatten().tolist()) == {0.0, 1.0} and (hard.sum(-1) == 1).all()
    share = hard.detach().mean(0).numpy()
    np.testing.assert_allclose(share, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.03)
    (hard * norch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad is not None and float(logits.grad.abs().sum()) > 0


def test_far_out() -> None:
    """Values and slopes where exponentials overflow: finite where the function is."""
    ends = [-1e4, -100.0, 100.0, 1e4]
    for dtype in (norch.float32, norch.float64):
        x = norch.tensor(ends, dtype=dtype, requires_grad=True)
        wanted = {
            "softplus": ([0.0, 0.0, 100.0, 1e4], [0.0, 0.0, 1.0, 1.0]),
            "mish": ([0.0, 0.0, 100.0, 1e4], [0.0, 0.0, 1.0, 1.0]),
            "elu": ([-1.0, -1.0, 100.0, 1e4], [0.0, 0.0, 1.0, 1.0]),
            "logsigmoid": ([-1e4, -100.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]),
            "tanhshrink": ([-9999.0, -99.0, 99.0, 9999.0], [1.0] * 4),
        }
        for name, (values, slopes) in wanted.items():
            y = getattr(F, name)(x)
            assert_close(y, np.array(values, dtype.name), rtol=1e-6, atol=1e-6)
            (g,) = norch.autograd.grad(y.sum(), x, create_graph=True)
            assert_close(g, np.array(slopes, dtype.name), rtol=1e-6, atol=1e-6)
            if g.requires_grad:
                (h,) = norch.autograd.grad(g.sum(), x)
                assert all(math.isfinite(one) for one in h.tolist()), name
        y = F.gelu(x, approximate="tanh")
        assert_close(y, np.array([0.0, 0.0, 100.0, 1e4], dtype.name), rtol=1e-6, atol=1e-6)
        assert_close(
            norch.autograd.grad(y.sum(), x)[0], np.array([0.0, 0.0, 1.0, 1.0], dtype.name), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_second_derivatives_at_the_corner(torch, name):
    found = []
    for module in (torch, norch):
        x = module.tensor([0.0, -0.0, 1.0, -1.0, math.nan, -math.inf], dtype=module.float64, requires_grad=True)
        (g,) = module.autograd.grad(getattr(module.nn.functional, name)(x).sum(), x, create_graph=True)
        found.append((g.tolist(), module.autograd.grad(g.sum(), x)[0].tolist()))
    for theirs, ours in zip(*found):
        assert ours[:-2] == pytest.approx(theirs[:-2]) and ours[-1] == theirs[-1] == 0


@pytest.mark.parametrize("threshold", [2, 2.5, -0.5, -3.0])
def test_thresholds_of_integers_are_fractions_too(threshold: float) -> None:
    x = norch.arange(-4, 5, dtype=norch.int32)
    wanted = norch.where(x > threshold, x, 7)
    for function in (norch.threshold, F.threshold, F.threshold_):
        assert function(x.clone(), threshold, 7.0).dtype is norch.int32
        assert norch.equal(function(x.clone(), threshold, 7.0), wanted)
    with pytest.raises(ValueError, match="threshold: inf and a value of 1 for dtype int32"):
        norch.threshold(x, math.inf, 1)


# (name, arguments, the slope at NaN of PyTorch's formula for one element: its loops over vectors have others)
AT_NAN: list[tuple[str, tuple[float, ...], float]] = [
    ("relu", (), 1.0),
    ("relu6", (), 1.0),
    ("hardtanh", (), 1.0),
    ("hardtanh", (-2.0, 1.0), 1.0),
    ("hardtanh", (-1, 3), 1.0),
    ("hardshrink", (), 1.0),
    ("softshrink", (), 1.0),
    ("threshold", (0.5, 7.0), 1.0),
    ("elu", (0.5,), 1.0),
    ("celu", (2.0,), 1.0),
    ("selu", (), 1.0507009873554805),
    ("hardswish", (), 1.0),
    ("hardsigmoid", (), 0.0),
    ("leaky_relu", (0.25,), 0.25),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), AT_NAN)
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.bfloat16], ids=str)
def test_slopes_at_nan(torch: Any, name: str, arguments: Any, wanted: float, dtype: Any) -> None:
    for size in (1, 70):
        x = norch.full((size,), math.nan, dtype=dtype, requires_grad=True)
        y = getattr(F, name)(x, *arguments)
        y.backward(norch.full_like(y, 1.5))
        assert y.isnan().all() and x.grad is not None
        assert x.grad.tolist() == pytest.approx([1.5 * wanted] * size, rel=norch.finfo(dtype).eps)
    theirs = torch.full((1,), math.nan, requires_grad=True)
    getattr(torch.nn.functional, name)(theirs, *arguments).backward(torch.full((1,), 1.5))
    assert theirs.grad.item() == pytest.approx(1.5 * wanted)


SMOOTH: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in "sigmoid tanh silu gelu mish softsign logsigmoid tanhshrink softplus selu".split()),
    *((name, {}) for name in "elu celu hardswish hardsigmoid".split()),
    ("gelu", {"approximate": "tanh"}),
    ("glu", {"dim": 0}),
]


@pytest.mark.parametrize(("name", "arguments"), SMOOTH)
def test_derivatives_of_large_gradients(name: str, arguments: Any) -> None:
    """Of the first and second order, beside float64: no product is larger on the way than what comes."""
    points = [0.0, 0.5, -0.5, 2.0, -2.0, 20.0, -20.0, 60.0, -60.0, 1e10, -1e19, 1e25, 3e38, -3e38]
    for size, other in ((1.0, 1.0), (1e38, 1.0), (1e38, 1e-3), (1e19, 1e19), (1.0, 1e38)):
        found = []
        for dtype in (norch.float32, norch.float64):
            x = norch.tensor(points, dtype=dtype)
            if name == "glu":
                x = norch.stack((x.sign() * (1e38 / size / max(other, 1.0)), x))
            x.requires_grad_()
            y = getattr(F, name)(x, **arguments)
            a = norch.full_like(y, size).requires_grad_()
            (slope,) = norch.autograd.grad(y, x, a, create_graph=True)
            results = [
                slope,
                *norch.autograd.grad(
                    slope, [x, a] if slope.grad_fn else [a], norch.full_like(x, other), allow_unused=True
                ),
            ]
            found.append([one.detach().double() for one in results if one is not None])
        for ours, exact in zip(*found):
            fits = exact.abs() < 3.4e38
            assert (
                ((ours - exact).abs() <= 1e-4 * exact.abs() + 1e-7 * (1e38 if name == "glu" else size * max(other, 1)))
                .where(fits, True)
                .all()
            )
