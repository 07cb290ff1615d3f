"""Rare layers against PyTorch's: fractional pooling, adaptive softmax, fused batch norms, and former names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.nn import functional as F  # noqa: N812


def both(torch: Any, array: Any, **options: Any) -> tuple[Any, Any]:
    return norch.tensor(array, **options), torch.tensor(array, **options)


def agree(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(found.detach().cpu().numpy(), wanted.detach().numpy(), tolerance, tolerance)


SIZES: Any = {
    "2d": ((2, 3, 9, 11), (4, 5), (2, 3)),
    "2d, one window": ((2, 3, 9, 11), (1, 1), (3, 3)),
    "2d, all": ((2, 3, 5, 5), (4, 3), (2, 3)),
    "2d, unbatched": ((3, 9, 11), (4, 5), (2, 2)),
    "2d, few windows": ((2, 3, 30, 41), (2, 3), (3, 2)),
    "3d": ((2, 3, 7, 8, 9), (3, 4, 5), (2, 3, 2)),
    "3d, few windows": ((3, 9, 8, 7), (2, 1, 2), (2, 3, 2)),
    "3d, unbatched": ((3, 7, 8, 9), (3, 4, 5), (2, 2, 2)),
}


@pytest.mark.parametrize("name", SIZES)
def test_fractional_pools_like_torch(torch: Any, name: str) -> None:
    shape, counts, kernel = SIZES[name]
    rng, axes = np.random.default_rng(0), len(counts)
    planes = shape[:2] if len(shape) == axes + 2 else (1, shape[0])
    array, samples = rng.normal(size=shape), rng.uniform(size=(*planes, axes))
    array.flat[[7, 8]] = np.nan
    array[..., -2:] = np.nan  # of two in a window PyTorch gives the last
    results = []
    for m, x, drawn in zip((norch, torch), both(torch, array, requires_grad=True), both(torch, samples), strict=True):
        pool = getattr(m.nn, f"FractionalMaxPool{axes}d")
        out, places = pool(kernel, counts, return_indices=True, _random_samples=drawn)(x)
        out.nansum().backward()
        results.append((out, places, x.grad))
    for found, wanted in zip(*results, strict=True):
        assert found.shape == wanted.shape
        agree(found, wanted)


def test_fractional_pools_draw_and_refuse() -> None:
    x = norch.arange(400.0).reshape(1, 4, 10, 10)
    norch.manual_seed(0)
    drawn = [F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.7)) for _ in range(8)]
    assert {tuple(y.shape) for y in drawn} == {(1, 4, 5, 7)}
    assert any(not norch.equal(drawn[0], y) for y in drawn)
    assert all((y[..., -1, -1] == x[..., -1, -1]).all() for y in drawn)  # the last window ends with the axes
    with pytest.raises(norch.ArgumentError, match="give output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(norch.ArgumentError, match="output_ratio must be between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(norch.ShapeError, match=r"\(10, 10\) windows of \(2, 2\) do not fit an input of \(10, 10\)"):
        F.fractional_max_pool2d(x, 2, 10)
    with pytest.raises(norch.ShapeError, match="expected 4 .unbatched. or 5 dimensions"):
        F.fractional_max_pool3d(x[0], 2, 2)
    with pytest.raises(norch.ShapeError, match="_random_samples must have shape"):
        F.fractional_max_pool2d(x, 2, 3, _random_samples=norch.zeros(1, 4, 3))
    with pytest.raises(ValueError, match="give output_size or output_ratio"):
        nn.FractionalMaxPool2d(2, 2, 0.5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(5, 4), (4,)])
def test_multilabel_margin_loss_like_torch(torch: Any, shape: Any, reduction: str) -> None:
    rng = np.random.default_rng(1)
    targets = np.array([[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, 3], [2, 2, -1, -1], [1, -1, -1, 7]])[: len(shape) * 5]
    targets = targets if len(shape) == 2 else targets[0]
    results = []
    for m, x, y in zip(
        (norch, torch), both(torch, rng.normal(size=shape), requires_grad=True), both(torch, targets.clip(-1, 3))
    ):
        loss = m.nn.MultiLabelMarginLoss(reduction=reduction)(x, y)
        loss.sum().backward()
        results.append((loss, x.grad))
    for found, wanted in zip(*results, strict=True):
        assert found.shape == wanted.shape
        agree(found, wanted)


def test_multilabel_margin_loss_refuses() -> None:
    with pytest.raises(norch.ShapeError, match="multilabel_margin_loss: target of shape"):
        F.multilabel_margin_loss(norch.zeros(2, 3), norch.zeros(2, 2).long())
    with pytest.raises(norch.DTypeError, match="multilabel_margin_loss: expected integer"):
        F.multilabel_margin_loss(norch.zeros(2, 3), norch.zeros(2, 3))
    with pytest.raises(IndexError):
        F.multilabel_margin_loss(norch.zeros(3), norch.tensor([3, -1, 0]))
        norch.cuda.synchronize() if DEVICE == "cuda" else None


@pytest.mark.parametrize("bias", [False, True])
def test_adaptive_softmax_like_torch(torch: Any, bias: bool) -> None:
    rng = np.random.default_rng(2)
    ours, theirs = (
        m.nn.AdaptiveLogSoftmaxWithLoss(16, 30, [5, 12], div_value=2.0, head_bias=bias) for m in (norch, torch)
    )
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict({name: torch.tensor(x.cpu().numpy()) for name, x in ours.state_dict().items()})
    x, y = rng.normal(size=(40, 16)).astype("float32"), rng.integers(0, 30, 40)
    results = []
    for m, layer in ((norch, ours), (torch, theirs)):
        given = m.tensor(x, requires_grad=True)
        out = layer(given, m.tensor(y))
        out.loss.backward()
        assert layer.head.weight.grad is not None
        results.append((out.output, out.loss, given.grad, layer.tail[1][0].weight.grad, layer.log_prob(given)))
        results[-1] += (layer.predict(given), layer(given[0], m.tensor(int(y[0]))).output)
    for found, wanted in zip(*results, strict=True):
        assert found.shape == wanted.shape
        agree(found, wanted, 1e-5)
    for cutoffs in ([], [5, 5], [0, 4], [12, 5], [5, 30], [2.5]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 30, cutoffs)
    with pytest.raises(norch.ArgumentError, match=r"target values should be in \[0, 29\]"):
        ours(norch.zeros(1, 16), norch.tensor([30]))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_fused_batch_norms(transpose: bool, bias: bool, affine: bool) -> None:
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 3, bias=bias)
    bn, x = nn.BatchNorm2d(4, affine=affine), norch.randn(5, 3, 8, 8)
    for _ in range(3):
        bn(conv(norch.randn(9, 3, 8, 8) + 2))
    if affine:
        nn.init.normal_(bn.weight)
        nn.init.normal_(bn.bias)
    with pytest.raises(norch.ArgumentError, match="eval mode"):
        nn.utils.fuse_conv_bn_eval(conv, bn)
    conv, bn = conv.eval(), bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    assert norch.allclose(fused(x), bn(conv(x)), atol=1e-5)
    linear, bn = nn.Linear(3, 4, bias=bias).eval(), nn.BatchNorm1d(4, affine=affine).eval()
    bn.running_mean.normal_()
    x = norch.randn(6, 3)
    assert norch.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)


def test_feature_alpha_dropout() -> None:
    norch.manual_seed(0)
    x = norch.randn(64, 50, 20)
    y = nn.FeatureAlphaDropout(0.3)(x)
    dropped = (y == y[..., :1]).all(-1)
    assert 0.2 < dropped.float().mean().item() < 0.4
    assert abs(y.mean().item()) < 0.05
    assert abs(y.var().item() - 1) < 0.05
    assert nn.FeatureAlphaDropout(0.3).eval()(x) is x
    with pytest.raises(norch.ShapeError, match="feature_alpha_dropout"):
        F.feature_alpha_dropout(norch.ones(3), training=True)


def test_former_names_like_torch(torch: Any) -> None:
    x = np.random.default_rng(3).normal(size=(1, 2, 4, 5))
    for name, options in (
        ("upsample", {"scale_factor": 2, "mode": "bilinear", "align_corners": False}),
        ("upsample", {"size": (3, 7)}),
        ("upsample_nearest", {"scale_factor": 2}),
        ("upsample_bilinear", {"size": (3, 7)}),
    ):
        with pytest.warns(UserWarning, match="deprecated"):
            agree(*(getattr(m.nn.functional, name)(z, **options) for m, z in zip((norch, torch), both(torch, x))))
    for axes, shape in ((1, (2, 8)), (2, (2, 8, 8)), (3, (2, 4, 8, 8))):
        x = np.random.default_rng(4).normal(size=(1, *shape))
        for name in (f"max_pool{axes}d_with_indices", f"adaptive_max_pool{axes}d_with_indices"):
            results = [getattr(m.nn.functional, name)(z, 2) for m, z in zip((norch, torch), both(torch, x))]
            for found, wanted in zip(*results, strict=True):
                agree(found, wanted)
