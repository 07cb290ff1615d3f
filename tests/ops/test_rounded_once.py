"""float16 and bfloat16 through every case row and the functions of nn.functional that compute: the result is that of
float64, rounded once, and so is the gradient; or else it is as near as PyTorch's and 2 units, where the saved result,
which is rounded, loses more. The unit is one in the last place of 16 bits at the wanted value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import HALF_NAMES, Case, as_tensor, draw, source
from cases import CASES
from checks import BACKWARD, FORWARD, listed, torch_tensor, units, with_dtypes
from conftest import load_torch

import norch

pytestmark = [
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
    pytest.mark.filterwarnings("ignore:(var|std)(_mean)?\\(\\)"),
    pytest.mark.filterwarnings("ignore:Using a target size|.*using a target size"),
    pytest.mark.filterwarnings("ignore:.*deprecated"),
]


def results(m: Any, call: Any, tensors: list[Any], kind: Any, gradient: bool) -> tuple[list[Any], list[Any]]:
    """What call gives of copies of tensors that is of floats, and the gradients of its floats, or none."""
    copies = [x.detach().clone().requires_grad_(gradient and x.is_floating_point()) for x in tensors]
    norch.manual_seed(0)
    floats = [x for x in listed(call(m, *copies)) if m.is_tensor(x) and x.is_floating_point()]
    roots = [x for x in floats if x.requires_grad and x.dtype is kind]
    if not roots:
        return floats, []
    rng = np.random.default_rng(5)
    slopes = [m.tensor(rng.standard_normal(tuple(x.shape)).tolist()).reshape(tuple(x.shape)) for x in roots]
    slopes = [x.to(getattr(m, HALF)).to(kind) for x in slopes]
    leaves = [x for x in copies if x.requires_grad]
    return floats, list(m.autograd.grad(roots, leaves, slopes, allow_unused=True))


HALF = "bfloat16"  # in which gradients are given: what it holds all floats hold, nearly


def compare(call: Any, torch_call: Any, arrays: list[Any], dtype: str, gradient: bool, name: str) -> None:
    kind = getattr(norch, dtype)
    tensors = [as_tensor(x, dtype) for x in arrays]
    wide = [x.double() if x.dtype is kind else x for x in tensors]
    found, wanted = results(norch, call, tensors, kind, gradient), results(norch, call, wide, norch.float64, gradient)
    for what, ours, exact, bound in zip(("result", "gradient"), found, wanted, (FORWARD, BACKWARD), strict=True):
        pairs = [(x, y) for x, y in zip(ours, exact) if x is not None and y is not None and x.dtype is kind]
        errors = [units(x, y, dtype) for x, y in pairs]
        if max(errors, default=0) <= bound:
            continue
        torch = load_torch()
        if torch is None or torch_call is False:
            pytest.skip("needs PyTorch to tell how much may be lost")
        given = [torch_tensor(torch, x, dtype) for x in arrays]
        try:
            theirs = results(torch, torch_call, given, getattr(torch, dtype), gradient)[what == "gradient"]
        except (NotImplementedError, RuntimeError):
            pytest.skip("PyTorch does not take this dtype")
        given = [y for x, y in zip(ours, theirs) if x is not None and y is not None and x.dtype is kind]
        for error, x, (one, y) in zip(errors, given, pairs, strict=True):
            theirs = norch.tensor(x.double().tolist(), dtype=norch.float64).reshape(x.shape)
            lost = units(theirs, y, dtype)
            # Near a zero of the gradient the rounding of what was saved is many units, of either library.
            near = bool((one.double() - y).abs().max() <= (theirs - y).abs().max()) and what == "gradient"
            assert near or error <= max(bound, lost + 2), f"{name}, {what}: {error} units, PyTorch {lost}"


@with_dtypes(CASES, HALF_NAMES)
def test_cases(case: Case, dtype: str) -> None:
    for shapes in case.shapes[:2]:
        arrays = draw(case, shapes, dtype, source(case.name + dtype + "rounded"))
        compare(case.call, case.torch_call(), arrays, dtype, bool(case.grad), case.name)


def F(name: str, *arguments: Any, **named: Any) -> Any:
    """A call of nn.functional with further arguments behind the tensors."""
    return lambda m, *tensors: getattr(m.nn.functional, name)(*tensors, *arguments, **named)


def signs(name: str, **named: Any) -> Any:
    """A loss whose last tensor holds 1 and -1."""
    return lambda m, *x: getattr(m.nn.functional, name)(*x[:-1], x[-1].detach().sign(), **named)


def classes(name: str, **named: Any) -> Any:
    """A loss whose second tensor holds classes."""
    return lambda m, x, y, *w: getattr(m.nn.functional, name)(x, y.detach().abs().long() % 10, *w, **named)


ROWS, HEADS = (4, 10), (2, 2, 6, 8)
CALLS: dict[str, tuple[Any, ...]] = {
    "mse_loss": (F("mse_loss"), ROWS, ROWS),
    "mse_loss sum": (F("mse_loss", reduction="sum"), ROWS, ROWS),
    "l1_loss": (F("l1_loss"), ROWS, ROWS),
    "smooth_l1_loss": (F("smooth_l1_loss"), ROWS, ROWS),
    "huber_loss": (F("huber_loss"), ROWS, ROWS),
    "poisson_nll_loss": (F("poisson_nll_loss"), ROWS, ROWS),
    "soft_margin_loss": (signs("soft_margin_loss"), ROWS, ROWS),
    "hinge_embedding_loss": (signs("hinge_embedding_loss"), ROWS, ROWS),
    "margin_ranking_loss": (signs("margin_ranking_loss", margin=0.3), ROWS, ROWS, ROWS),
    "cosine_embedding_loss": (signs("cosine_embedding_loss"), ROWS, ROWS, (4,)),
    "triplet_margin_loss": (F("triplet_margin_loss"), ROWS, ROWS, ROWS),
    "triplet_margin_loss swap": (F("triplet_margin_loss", p=3.0, swap=True), ROWS, ROWS, ROWS),
    "cross_entropy": (classes("cross_entropy"), ROWS, (4,)),
    "cross_entropy smoothed": (classes("cross_entropy", label_smoothing=0.1), ROWS, (4,)),
    "nll_loss": (classes("nll_loss"), ROWS, (4,), (10,)),
    "multi_margin_loss": (classes("multi_margin_loss"), ROWS, (4,)),
    "cosine_similarity": (F("cosine_similarity"), ROWS, ROWS),
    "pairwise_distance": (F("pairwise_distance"), ROWS, ROWS),
    "pdist": (F("pdist"), ROWS),
    "normalize": (F("normalize"), ROWS),
    "normalize p": (F("normalize", 3.0), ROWS),
    "local_response_norm": (F("local_response_norm", 3), (2, 5, 7)),
    "layer_norm": (lambda m, x, w, b: m.nn.functional.layer_norm(x, (10,), w, b), ROWS, (10,), (10,)),
    "rms_norm": (lambda m, x, w: m.nn.functional.rms_norm(x, (10,), w), ROWS, (10,)),
    "group_norm": (lambda m, x, w, b: m.nn.functional.group_norm(x, 2, w, b), (4, 6, 5), (6,), (6,)),
    "instance_norm": (F("instance_norm"), (4, 6, 5)),
    "batch_norm": (lambda m, x, w, b: m.nn.functional.batch_norm(x, None, None, w, b, True), (8, 6, 5), (6,), (6,)),
    "lp_pool1d": (F("lp_pool1d", 2.0, 3), (2, 3, 9)),
    "lp_pool2d": (F("lp_pool2d", 3.0, 2), (2, 3, 6, 6)),
    "avg_pool2d": (F("avg_pool2d", 2), (2, 3, 6, 6)),
    "adaptive_avg_pool2d": (F("adaptive_avg_pool2d", (2, 3)), (2, 3, 5, 7)),
    "interpolate bilinear": (F("interpolate", scale_factor=1.7, mode="bilinear"), (2, 3, 5, 7)),
    "interpolate bicubic": (F("interpolate", size=(7, 9), mode="bicubic", align_corners=True), (2, 3, 5, 7)),
    "grid_sample": (lambda m, x, g: m.nn.functional.grid_sample(x, g.detach().tanh()), (2, 3, 5, 7), (2, 4, 4, 2)),
    "fold": (F("fold", (5, 5), 2), (2, 12, 16)),
    "unfold": (F("unfold", 2), (2, 3, 5, 5)),
    "glu": (F("glu"), ROWS),
    "selu": (F("selu"), ROWS),
    "celu": (F("celu", 0.7), ROWS),
    "softplus": (F("softplus", 2.0), ROWS),
    "mish": (F("mish"), ROWS),
    "tanhshrink": (F("tanhshrink"), ROWS),
    "hardsigmoid": (F("hardsigmoid"), ROWS),
    "bilinear": (F("bilinear"), (4, 3), (4, 5), (2, 3, 5), (2,)),
    "attention": (F("scaled_dot_product_attention"), HEADS, HEADS, HEADS),
    "attention causal": (F("scaled_dot_product_attention", is_causal=True), HEADS, HEADS, HEADS),
    "attention masked": (F("scaled_dot_product_attention"), HEADS, HEADS, HEADS, (6, 6)),
}


@pytest.mark.parametrize("dtype", HALF_NAMES)
@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str, dtype: str) -> None:
    call, *shapes = CALLS[name]
    for scale in (1.0, 30.0):
        rng = source(name)
        arrays = [rng.standard_normal(shape) * (scale if i == 0 else 1) for i, shape in enumerate(shapes)]
        arrays = [norch.tensor(x.tolist()).to(getattr(norch, dtype)).float().numpy() for x in arrays]
        arrays = arrays if dtype == "bfloat16" else [x.astype(np.float16) for x in arrays]
        compare(call, call, arrays, dtype, True, name)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_squares_that_16_bits_do_not_hold(dtype: Any) -> None:
    for value, size in ((300.0, 4), (16.0, 512), (1e-4, 4)):
        x = norch.full((1, size), value, dtype=dtype)
        assert norch.cosine_similarity(x, x).item() == norch.cosine_similarity(x, norch.ones_like(x)).item() == 1.0
        unit = norch.nn.functional.normalize(x)
        assert unit.tolist()[0] == pytest.approx([size**-0.5] * size, rel=norch.finfo(dtype).eps)
    x = norch.full((1, 4), 1e-3, dtype=dtype, requires_grad=True)
    norch.cosine_similarity(x, norch.tensor([[1.0, 2, 3, 4]], dtype=dtype)).sum().backward()
    assert x.grad[0].tolist() == pytest.approx([-136.9, -45.6, 45.6, 136.9], rel=2e-2)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_weights_of_attention(dtype: Any) -> None:
    norch.manual_seed(1)
    layer = norch.nn.MultiheadAttention(8, 2, batch_first=True).to(dtype)
    wide = norch.nn.MultiheadAttention(8, 2, batch_first=True)
    wide.load_state_dict({name: x.float() for name, x in layer.state_dict().items()})
    x = (norch.randn(2, 5, 8) * 20).to(dtype)
    for average in (True, False):
        found = layer(x, x, x, average_attn_weights=average)[1]
        assert found.dtype is dtype and bool(found.isfinite().all())
        assert bool(((found.float().sum(-1) - 1).abs() < 4 * norch.finfo(dtype).eps).all())


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_captured(dtype: Any) -> None:
    x, y = (norch.randn(6, 10, generator=norch.Generator().manual_seed(s)).to(dtype) for s in (1, 2))

    def step(x: Any, y: Any) -> Any:
        return norch.cosine_similarity(x * 20, y) + norch.nn.functional.mse_loss(x, y) + (x.std(1) * 2)

    captured = norch.capture(step)
    for _ in range(3):
        assert norch.equal(captured(x, y), step(x, y))


def test_what_a_composed_function_keeps() -> None:
    half = norch.ones(2, 3, dtype=norch.float16)
    assert norch.nn.functional.softmin(half, 1, dtype=norch.float32).dtype is norch.float32
    assert norch.cosine_similarity(half, norch.ones(2, 3)).dtype is norch.float32  # promoted
    moments = norch.var_mean(half, 1)
    assert [x.dtype for x in moments] == [norch.float16] * 2
    assert norch.isclose(half, half).dtype is norch.bool
