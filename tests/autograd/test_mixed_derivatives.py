"""Second derivatives by each pair of directions: reverse or forward over reverse or forward, which must agree with one
another and with differences of gradients. Forward products are walks with the gradient 0 at first, so that a gradient
that is not linear in the one that came in shows here alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case import Case, draw, source
from cases import CASES
from checks import listed
from conftest import DEVICE
from test_derivatives import variables

import norch
from norch import func
from norch.nn import functional as F  # noqa: N812

WAYS: dict[str, Callable[[Any], Any]] = {
    "reverse over reverse": lambda f: func.jacrev(func.grad(f)),
    "forward over reverse": lambda f: func.jacfwd(func.grad(f)),
    "reverse over forward": lambda f: func.jacrev(func.jacfwd(f)),
    "forward over forward": lambda f: func.jacfwd(func.jacfwd(f)),
    "hessian": func.hessian,
    "vectorized": lambda f: lambda x: norch.autograd.functional.hessian(f, x, vectorize=True),
    "row by row": lambda f: lambda x: norch.autograd.functional.hessian(f, x),
}


def differences(f: Any, x: Any, step: float = 1e-5) -> Any:
    """The derivatives of the gradient of f by central differences, in columns."""
    slope = func.grad(f)
    return norch.stack([(slope(x + e) - slope(x - e)) / (2 * step) for e in norch.eye(len(x), dtype=x.dtype) * step], 1)


def weighted(results: Any) -> Any:
    """A number that is not linear in the results, and different in each of them."""
    total: Any = norch.zeros((), dtype=norch.float64)
    for out in listed(results):
        if out.is_floating_point() and out.numel():
            weights = norch.linspace(0.5, 1.7, out.numel(), dtype=out.dtype).reshape(out.shape)
            total = total + (out * weights).sum() + 0.3 * out.square().sum()
    return total


def check(f: Any, x: Any, smooth: bool) -> None:
    found = {way: make(f)(x).detach().numpy() for way, make in WAYS.items()}
    first = found["reverse over reverse"]
    scale = max(1.0, float(np.abs(first).max()))
    for way, other in found.items():
        np.testing.assert_allclose(other, first, rtol=1e-7, atol=1e-10 * scale, err_msg=way)
    if smooth:
        np.testing.assert_allclose(first, differences(f, x).detach().numpy(), rtol=1e-4, atol=1e-4 * scale)


def check_case(case: Case) -> None:
    rng = source(case.name + "mixed")
    least = 2 if case.row in ("var", "std", "var_mean", "std_mean") else 1  # elements
    samples = [draw(case, shapes, "float64", rng) for shapes in case.shapes if max(map(np.prod, shapes)) <= 30]
    samples = [arrays for arrays in samples if arrays[0].size >= least and all(x.size for x in arrays)]
    samples.sort(key=lambda arrays: sum(x.size for x in arrays))
    for arrays in samples[:3:2]:
        given = [norch.tensor(x) for x in arrays]
        chosen = variables(case, given)
        sizes = [given[i].numel() for i in chosen]

        def f(flat: Any, given: Any = given, chosen: Any = chosen, sizes: Any = sizes) -> Any:
            now = list(given)
            for i, part in zip(chosen, flat.split(sizes)):
                now[i] = part.reshape(given[i].shape)
            return weighted(case.call(norch, *now))

        check(f, norch.cat([given[i].reshape(-1) for i in chosen]), case.grad > 1)


DIFFERENTIABLE = [case for case in CASES if case.grad]
ALWAYS = ("logcumsumexp", "cumprod", "max", "sort", "matmul", "where", "pow", "logsumexp")
SAMPLED = [case for case in DIFFERENTIABLE if case.name in ALWAYS or zlib.crc32(case.name.encode()) % 10 == 0]


@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_some_cases(case: Case) -> None:
    check_case(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in DIFFERENTIABLE if case not in SAMPLED], ids=str)
def test_all_other_cases(case: Case) -> None:
    check_case(case)


def of(shape: tuple[int, ...], seed: int = 0) -> Any:
    return norch.tensor(np.random.default_rng(seed).standard_normal(shape))


# A layer or a loss of x, and the shape of x.
LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), (1, 2, 6)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, 1), (1, 1, 3, 4)),
    "max_pool2d to one": (lambda x: F.max_pool2d(x.tanh(), 3), (1, 2, 3, 3)),
    "max_pool3d to one": (lambda x: F.max_pool3d(x, 2), (1, 1, 2, 2, 2)),
    "adaptive_max_pool2d to one": (lambda x: F.adaptive_max_pool2d(x, 1), (1, 2, 3, 3)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x.exp(), 2), (1, 1, 3, 4)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x.exp(), 2), (1, 1, 4, 4)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x.exp(), 2), (1, 1, 2, 2, 3)),
    "lp_pool1d": (lambda x: F.lp_pool1d(x, 2, 2), (1, 1, 6)),
    "lp_pool2d of inf": (lambda x: F.lp_pool2d(x, float("inf"), 2), (1, 1, 4, 4)),
    "fractional_max_pool2d": (
        lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=norch.full((1, 1, 2), 0.3, dtype=x.dtype)),
        (1, 1, 4, 4),
    ),
    "max_unpool1d": (lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), (1, 1, 6)),
    "conv1d": (lambda x: F.conv1d(x[:8].reshape(1, 2, 4), x[8:].reshape(2, 2, 2)), (16,)),
    "conv2d": (lambda x: F.conv2d(x[:9].reshape(1, 1, 3, 3), x[9:].reshape(2, 1, 2, 2), padding=1), (17,)),
    "conv3d": (lambda x: F.conv3d(x[:8].reshape(1, 1, 2, 2, 2), x[8:].reshape(1, 1, 2, 2, 1)), (12,)),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x[:4].reshape(1, 1, 2, 2), x[4:].reshape(1, 1, 2, 2)), (8,)),
    "linear": (lambda x: F.linear(x[:6].reshape(2, 3), x[6:12].reshape(2, 3), x[12:]), (14,)),
    "bilinear": (lambda x: F.bilinear(x[:2], x[2:4], x[4:].reshape(2, 2, 2)), (12,)),
    "batch_norm": (lambda x: F.batch_norm(x[:12].reshape(4, 3), None, None, x[12:15], x[15:], True), (18,)),
    "layer_norm": (lambda x: F.layer_norm(x[:8].reshape(2, 4), (4,), x[8:12], x[12:]), (16,)),
    "group_norm": (lambda x: F.group_norm(x[:16].reshape(2, 4, 2), 2, x[16:20], x[20:]), (24,)),
    "instance_norm": (lambda x: F.instance_norm(x), (2, 2, 4)),
    "rms_norm": (lambda x: F.rms_norm(x[:8].reshape(2, 4), (4,), x[8:]), (12,)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), (1, 4, 3)),
    "normalize": (lambda x: F.normalize(x), (3, 4)),
    "softmax": (lambda x: F.softmax(x, 1), (3, 4)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), (3, 4)),
    "attention": (lambda x: F.scaled_dot_product_attention(*x.reshape(3, 1, 3, 2).unbind(0)), (18,)),
    "causal attention": (
        lambda x: F.scaled_dot_product_attention(*x.reshape(3, 1, 3, 2).unbind(0), is_causal=True), (18,)
    ),
    "embedding": (lambda x: F.embedding(norch.tensor([0, 2, 2]), x), (3, 4)),
    "embedding_bag": (lambda x: F.embedding_bag(norch.tensor([[0, 2], [2, 1]]), x, mode="mean"), (3, 4)),
    "interpolate": (lambda x: F.interpolate(x.exp(), scale_factor=2, mode="bilinear"), (1, 1, 3, 3)),
    "grid_sample": (
        lambda x: F.grid_sample(x[:9].reshape(1, 1, 3, 3), x[9:].reshape(1, 2, 2, 2).tanh(), align_corners=False), (17,)
    ),
    "affine_grid": (lambda x: F.affine_grid(x.reshape(1, 2, 3).exp(), (1, 1, 2, 2), align_corners=False), (6,)),
    "unfold": (lambda x: F.unfold(x.exp(), 2), (1, 1, 3, 3)),
    "fold": (lambda x: F.fold(x.exp(), (3, 3), 2), (1, 4, 4)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x.exp(), 2), (1, 4, 2, 2)),
    "pad": (lambda x: F.pad(x.exp(), (1, 1, 1, 1), mode="reflect"), (1, 1, 3, 3)),
    "glu": (lambda x: F.glu(x), (3, 4)),
    "prelu": (lambda x: F.prelu(x[:8].reshape(2, 4), x[8:]), (12,)),
    "cosine_similarity": (lambda x: F.cosine_similarity(*x.reshape(2, 3, 2).unbind(0)), (12,)),
    "pairwise_distance": (lambda x: F.pairwise_distance(*x.reshape(2, 3, 2).unbind(0)), (12,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, norch.tensor([0, 2, 1])), (3, 4)),
    "cross_entropy smoothed": (lambda x: F.cross_entropy(x, norch.tensor([0, 2, 1]), label_smoothing=0.1), (3, 4)),
    "cross_entropy of pixels": (lambda x: F.cross_entropy(x, norch.tensor([[0, 1]])), (1, 3, 2)),
    "cross_entropy of probabilities": (lambda x: F.cross_entropy(*x.reshape(2, 3, 2).unbind(0)), (12,)),
    "nll_loss": (lambda x: F.nll_loss(x.log_softmax(1), norch.tensor([0, 2, 1])), (3, 4)),
    "mse_loss": (lambda x: F.mse_loss(*x.unbind(0)), (2, 5)),
    "mse_loss weighted": (lambda x: F.mse_loss(x[0], x[1], weight=x[2].exp()), (3, 5)),
    "l1_loss": (lambda x: F.l1_loss(*x.exp().unbind(0)), (2, 5)),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(*x.unbind(0)), (2, 5)),
    "huber_loss": (lambda x: F.huber_loss(*x.unbind(0), delta=0.7), (2, 5)),
    "kl_div": (lambda x: F.kl_div(x[0].log_softmax(0), x[1].softmax(0), reduction="sum"), (2, 5)),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(*x.sigmoid().unbind(0)), (2, 5)),
    "binary_cross_entropy_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x[0], x[1].sigmoid()), (2, 5)),
    "poisson_nll_loss": (lambda x: F.poisson_nll_loss(*x.unbind(0)), (2, 5)),
    "gaussian_nll_loss": (lambda x: F.gaussian_nll_loss(x[0], x[1], x[2].exp()), (3, 5)),
    "hinge_embedding_loss": (lambda x: F.hinge_embedding_loss(x.exp(), norch.tensor([1, -1, 1, -1, 1])), (5,)),
    "margin_ranking_loss": (lambda x: F.margin_ranking_loss(*x.exp().unbind(0), norch.tensor([1, -1, 1])), (2, 3)),
    "triplet_margin_loss": (lambda x: F.triplet_margin_loss(*x.reshape(3, 2, 3).unbind(0)), (18,)),
    "cosine_embedding_loss": (
        lambda x: F.cosine_embedding_loss(*x.reshape(2, 2, 3).unbind(0), norch.tensor([1, -1])), (12,)
    ),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, norch.tensor([0, 2, 1]), p=2), (3, 4)),
    "multilabel_soft_margin_loss": (
        lambda x: F.multilabel_soft_margin_loss(x, norch.tensor([[1.0, 0.0, 1.0]], dtype=x.dtype)), (1, 3)
    ),
    "soft_margin_loss": (lambda x: F.soft_margin_loss(x, norch.tensor([1, -1, 1])), (3,)),
    "ctc_loss": (
        lambda x: F.ctc_loss(x.log_softmax(2), norch.tensor([[1, 2]]), norch.tensor([4]), norch.tensor([2])), (4, 1, 3)
    ),
    "stft": (lambda x: norch.view_as_real(norch.stft(x, 4, return_complex=True)), (8,)),
    "rfft": (lambda x: norch.view_as_real(norch.fft.rfft(x)), (6,)),
    "solve": (lambda x: norch.linalg.solve(x[:9].reshape(3, 3) + 4 * norch.eye(3, dtype=x.dtype), x[9:]), (12,)),
    "inv": (lambda x: norch.linalg.inv(x + 4 * norch.eye(3, dtype=x.dtype)), (3, 3)),
    "slogdet": (lambda x: norch.linalg.slogdet(x + 4 * norch.eye(3, dtype=x.dtype))[1], (3, 3)),
    "cholesky": (lambda x: norch.linalg.cholesky(x @ x.mT + norch.eye(3, dtype=x.dtype)), (3, 3)),
    "eigvalsh": (lambda x: norch.linalg.eigvalsh(x + x.mT), (3, 3)),
    "svdvals": (lambda x: norch.linalg.svdvals(x), (3, 2)),
    "qr": (lambda x: norch.linalg.qr(x)[1], (3, 2)),
    "matrix_exp": (lambda x: norch.linalg.matrix_exp(x * 0.3), (2, 2)),
}  # fmt: skip


def t(value: Any) -> Any:
    return norch.tensor(value, dtype=norch.float64)


# A function of one number, a point where a formula divides by 0 or an operand is 0, and the two derivatives there.
POINTS: list[tuple[Callable[[Any], Any], float, float, float]] = [
    (norch.sinc, 0.0, 0.0, -(np.pi**2) / 3),
    (norch.sinc, 1e-9, -1e-9 * np.pi**2 / 3, -(np.pi**2) / 3),
    (norch.sinc, 1e-3, -(np.pi**2) / 3e3 + np.pi**4 / 30e9, -(np.pi**2) / 3 + np.pi**4 / 10e6),
    (lambda x: x ** t(0.0), 0.0, 0.0, 0.0),
    (lambda x: x ** t(1.0), 0.0, 1.0, 0.0),
    (lambda x: x ** t(2.0), 0.0, 0.0, 2.0),
    (lambda x: x ** t(3.0), 0.0, 0.0, 0.0),
    (lambda x: norch.float_power(x, 0), 0.0, 0.0, 0.0),
    (lambda x: norch.float_power(x, 1), 0.0, 1.0, 0.0),
    (lambda x: t(0.0) ** x, 0.0, 0.0, 0.0),
    (lambda x: t(0.0) ** x, 2.0, 0.0, 0.0),
    (lambda x: 0.0**x, 1.0, 0.0, 0.0),
    (lambda x: 0.7**x, 1.0, 0.7 * np.log(0.7), 0.7 * np.log(0.7) ** 2),  # the number is not rounded to float32
    (lambda x: norch.float_power(0.7, x), 1.0, 0.7 * np.log(0.7), 0.7 * np.log(0.7) ** 2),
    (lambda x: norch.atan2(x, t(0.0)), 0.0, 0.0, 0.0),
    (lambda x: norch.atan2(t(0.0), x), 0.0, 0.0, 0.0),
    (lambda x: norch.copysign(x, t(1.0)), 0.0, 0.0, 0.0),
    (lambda x: norch.special.xlog1py(x, t(2.0)), 0.0, np.log(3), 0.0),
    (lambda x: norch.special.xlog1py(x, t(-1.0)), 0.0, 0.0, 0.0),
    (lambda x: norch.logit(x), 0.0, np.inf, -np.inf),
    (lambda x: norch.logit(x), 1.0, np.inf, np.inf),
    (lambda x: norch.igamma(t(1.0), x), 0.0, 1.0, -1.0),
    (lambda x: norch.igamma(t(2.0), x), 0.0, 0.0, 1.0),
    (lambda x: norch.igamma(t(3.0), x), 0.0, 0.0, 0.0),
    (lambda x: norch.igammac(t(1.0), x), 0.0, -1.0, 1.0),
    (lambda x: F.gelu(x, approximate="tanh"), 1e110, 1.0, 0.0),
    (F.gelu, 1e200, 1.0, 0.0),
    (lambda x: F.softplus(x, 1.0, 2.0), 2.0, 1 / (1 + np.exp(-2)), 0.0),
    (lambda x: F.binary_cross_entropy(x, t(1.0)), 1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("f", "x", "first", "second"), POINTS)
def test_points_where_a_formula_divides_by_zero(f: Any, x: float, first: float, second: float) -> None:
    for make in (func.jacrev, func.jacfwd):
        np.testing.assert_allclose(make(f)(t(x)).item(), first, rtol=1e-10, atol=1e-12)
        for again in (func.jacrev, func.jacfwd):
            np.testing.assert_allclose(again(make(f))(t(x)).item(), second, rtol=1e-9, atol=1e-12)


# The same of several numbers, with the second derivatives of their weighted sum.
MATRICES: list[tuple[Callable[[Any], Any], list[float], list[list[float]]]] = [
    (lambda x: x ** t([2.0, 1.0, 0.0, 3.0]), [0.0, 0.0, 0.5, 0.0], np.diag([2.0, 0.0, 0.0, 0.0]).tolist()),
    (lambda x: x[0] ** x[1], [2.0, 0.0], [[0.0, 0.5], [0.5, np.log(2) ** 2]]),
    (lambda x: x[0] ** x[1], [0.0, 3.0], [[0.0, 0.0], [0.0, 0.0]]),
    (lambda x: norch.special.xlog1py(x[0], x[1]), [0.0, 1.0], [[0.0, 0.5], [0.5, 0.0]]),
    (lambda x: norch.linalg.vector_norm(x, 1.5), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    (lambda x: norch.linalg.vector_norm(x, 3), [0.0, 1.0], [[0.0, 0.0], [0.0, 0.0]]),
    (lambda x: norch.cdist(x[None], t([[1.0, 2.0]]), 1.5), [1.0, 2.0], [[0.0, 0.0], [0.0, 0.0]]),
    (lambda x: norch.atan2(x[0], x[1]), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    (lambda x: norch.linalg.det(x.reshape(2, 2)), [0.0] * 4, np.diag([1.0, -1.0, -1.0, 1.0])[::-1].tolist()),
    (lambda x: norch.linalg.det(x.reshape(3, 3)), [0.0] * 9, np.zeros((9, 9)).tolist()),
    (lambda x: norch.linalg.det(2 * x.diag()), [3.0, 0.0, 0.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 24.0], [0.0, 24.0, 0.0]]),
]


@pytest.mark.parametrize(("f", "x", "second"), MATRICES)
def test_points_of_several_numbers(f: Any, x: Any, second: Any) -> None:
    for way, make in WAYS.items():
        found = make(lambda x: f(x).sum())(t(x)).detach().numpy()
        np.testing.assert_allclose(found, second, rtol=1e-10, atol=1e-12, err_msg=way)


def nested(value: Any) -> list[Any]:
    return [value] if isinstance(value, norch.Tensor) else [x for each in value for x in nested(each)]


@pytest.mark.filterwarnings("ignore:(var|std)\\(\\)", "ignore:reduction")
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    if DEVICE != "cpu" and name in ("stft", "rfft"):
        pytest.skip("complex128 on the CPU only")
    call, shape = LAYERS[name]
    x = of(shape)
    check(lambda flat: weighted(nested(call(flat.reshape(shape)))), x.reshape(-1), True)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "MultiheadAttention"])
def test_modules(name: str) -> None:
    attends = name == "MultiheadAttention"
    layer = getattr(norch.nn, name)(*((4, 2) if attends else (2, 2)), dtype=norch.float64)
    shape = (3, 1, 4) if attends else (3, 1, 2)

    def f(flat: Any) -> Any:
        x = flat.reshape(shape)
        return weighted(nested(layer(x, x, x)[0] if attends else layer(x)))

    check(f, of(shape).reshape(-1), True)
