"""Interpolation, patches and their layers: against PyTorch, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.nn import functional as F
from norch.ops.resample import IN_PAGES, resampled
from norch.testing import assert_close, gradcheck, gradgradcheck

SHAPES: Any = {"nearest": (2, 3, 4, 5), "nearest-exact": (2, 3, 4, 5), "area": (2, 3, 4, 5), "linear": (2, 3, 5)}
SHAPES |= {"bilinear": (2, 3, 4, 5), "bicubic": (2, 3, 4, 5), "trilinear": (2, 1, 3, 2, 4)}
SIZES: Any = [{"size": 7}, {"size": 2}, {"scale_factor": 1.7}, {"scale_factor": 0.6}, {"scale_factor": 2}]
SIZES += [{"size": 1}, {"scale_factor": 1.3, "recompute_scale_factor": True}]


def both(torch: Any, call: Any, array: Any) -> None:
    """The same result and gradient in float64."""
    x = norch.tensor(array, device=DEVICE, requires_grad=True)
    y = torch.tensor(array, requires_grad=True)
    found, wanted = call(norch, x), call(torch, y)
    assert_close(found.detach(), norch.tensor(wanted.detach().numpy(), device=DEVICE), rtol=1e-10, atol=1e-12)
    found.square().sum().backward()
    wanted.square().sum().backward()
    assert_close(x.grad, norch.tensor(y.grad.numpy(), device=DEVICE), rtol=1e-10, atol=1e-12)


SMOOTH = [{"size": (3, 4)}, {"size": (20, 2)}, {"size": (7, 9)}, {"scale_factor": 0.6}, {"scale_factor": (1.7, 0.3)}]


@pytest.mark.parametrize("how", SMOOTH, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_with_antialias_and_of_bytes_like_torch(torch: Any, mode: str, how: Any) -> None:
    draw = np.random.default_rng(0)
    for align in (False, True) if "size" in how else (False,):
        given = {"mode": mode, "align_corners": align, **how}
        array = draw.normal(size=(2, 3, 7, 9))
        both(torch, lambda m, x, given=given: m.nn.functional.interpolate(x, antialias=True, **given), array)
        for channels in (3, 5):  # PyTorch has a kernel for each
            image = draw.integers(0, 256, (2, channels, 7, 9), dtype=np.uint8)
            for smooth in (False, True):
                x, y = norch.tensor(image, device=DEVICE), torch.tensor(image)
                found = F.interpolate(x, antialias=smooth, **given)
                wanted = torch.nn.functional.interpolate(y, antialias=smooth, **given)
                assert found.dtype is norch.uint8 and found.tolist() == wanted.tolist()


OWN: Any = [
    (lambda m, x: m.nn.functional.unfold(x[:, :1, :1], (1, 3)), "overlapping windows of a row"),
    (lambda m, x: m.nn.functional.unfold(x, (3, 4)), "one window"),
    (lambda m, x: m.nn.functional.pixel_shuffle(x, 1), "pixel_shuffle"),
    (lambda m, x: m.nn.functional.pixel_unshuffle(x, 1), "pixel_unshuffle"),
    (lambda m, x: m.nn.functional.channel_shuffle(x, 1), "channel_shuffle"),
    (lambda m, x: m.nn.functional.interpolate(x, (3, 4), mode="bilinear", antialias=True), "interpolate"),
    (lambda m, x: m.nn.functional.fold(x.flatten(2), (3, 4), 1), "fold"),
]


@pytest.mark.parametrize("call", [call for call, _ in OWN], ids=[name for _, name in OWN])
def test_results_are_no_views_of_the_input(torch: Any, call: Any) -> None:
    found = []
    for m in (norch, torch):
        x = m.arange(24.0).reshape(1, 2, 3, 4)
        y = call(m, x)
        y -= y.mean(1, keepdim=True)  # in place
        found.append((x.tolist(), y.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("how", SIZES, ids=str)
@pytest.mark.parametrize("mode", SHAPES)
def test_interpolate_like_torch(torch: Any, mode: str, how: Any) -> None:
    array = np.random.default_rng(0).normal(size=SHAPES[mode])
    for align in (None, True, False) if "linear" in mode or mode == "bicubic" else (None,):
        given = {"mode": mode, "align_corners": align, **how}
        both(torch, lambda m, x, given=given: m.nn.functional.interpolate(x, **given), array)
    if mode == "nearest":
        for part in (array[..., 0], array[:, :, [0, 1, 2, 3] * 2, None].repeat(2, 3)):
            both(torch, lambda m, x: m.nn.functional.interpolate(x, **how), part)


@pytest.mark.parametrize("scale", [1.1, 1.2])
@pytest.mark.parametrize("mode", [*SHAPES, "nearest of three axes"])
def test_interpolate_where_the_size_of_an_axis_stays(torch: Any, mode: str, scale: float) -> None:
    mode, shape = (mode, SHAPES[mode]) if mode in SHAPES else ("nearest", SHAPES["trilinear"])
    array = np.random.default_rng(0).normal(size=shape)
    found, wanted = (
        m.nn.functional.interpolate(m.tensor(array), scale_factor=scale, mode=mode) for m in (norch, torch)
    )
    assert_close(found, wanted.numpy(), rtol=1e-10, atol=1e-12)
    if mode.endswith("linear") or len(shape) == 4 and mode == "nearest":  # its other gradients are of other elements
        both(torch, lambda m, x: m.nn.functional.interpolate(x, scale_factor=scale, mode=mode), array)


def test_interpolate_takes_a_size_an_axis_and_halves(torch: Any) -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4))
    both(torch, lambda m, x: m.nn.functional.interpolate(x, (6, 3), mode="bilinear"), x)
    both(torch, lambda m, x: m.nn.functional.interpolate(x, scale_factor=(2, 1.5)), x)
    both(torch, lambda m, x: m.nn.functional.interpolate(x, scale_factor=2.3), x)  # 3 to 6, as by 2
    alike = norch.ones(1, 1, 2, 3)
    assert F.interpolate(alike, scale_factor=1.2).data_ptr() != alike.data_ptr()
    half = F.interpolate(norch.ones(1, 1, 2, dtype=norch.float16), scale_factor=2, mode="linear")
    assert half.dtype is norch.float16 and half.tolist() == [[[1, 1, 1, 1]]]


PATCHES: Any = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)},
    {"kernel_size": 2, "dilation": (2, 1), "padding": 1, "stride": 3},
]


@pytest.mark.parametrize("how", PATCHES, ids=str)
def test_patches_like_torch(torch: Any, how: Any) -> None:
    image = np.random.default_rng(0).normal(size=(2, 3, 6, 5))
    for x in (image, image[0]):
        both(torch, lambda m, x: m.nn.functional.unfold(x, **how), x)
        patches = F.unfold(norch.tensor(x), **how).cpu().numpy()
        both(torch, lambda m, x: m.nn.functional.fold(x, (6, 5), **how), patches)
    assert repr(nn.Unfold(**how)) == repr(torch.nn.Unfold(**how))
    assert repr(nn.Fold((6, 5), **how)) == repr(torch.nn.Fold((6, 5), **how))
    x = norch.tensor(image)
    assert norch.equal(nn.Unfold(**how)(x), F.unfold(x, **how))
    assert nn.Fold((6, 5), **how)(nn.Unfold(**how)(x)).shape == (2, 3, 6, 5)


def test_a_convolution_is_a_product_with_patches() -> None:
    x, w = norch.randn(2, 3, 6, 5, dtype=norch.float64), norch.randn(4, 3, 3, 3, dtype=norch.float64)
    wanted = F.conv2d(x, w, padding=1)
    assert_close((w.flatten(1) @ F.unfold(x, 3, padding=1)).view(wanted.shape), wanted)


def test_layers_like_torch(torch: Any) -> None:
    for make in (
        lambda m: m.nn.Upsample(scale_factor=2),
        lambda m: m.nn.Upsample((5, 3), mode="bilinear", align_corners=True),
        lambda m: m.nn.UpsamplingNearest2d(scale_factor=3),
        lambda m: m.nn.UpsamplingBilinear2d(size=4),
    ):
        assert repr(make(norch)) == repr(make(torch))
        both(torch, lambda m, x, make=make: make(m)(x), np.random.default_rng(0).normal(size=(1, 2, 3, 4)))


X = norch.ones(1, 1, 4, 4)
BAD: Any = [
    (lambda: F.interpolate(X), ValueError, "either size or scale_factor"),
    (lambda: F.interpolate(X, 2, 2.0), ValueError, "either size or scale_factor"),
    (lambda: F.interpolate(X, (2, 2, 2)), ValueError, "interpolate: expected one size or 2"),
    (lambda: F.interpolate(X, 2, mode="linear"), NotImplementedError, "takes the modes .*, not 'linear'"),
    (lambda: F.interpolate(X, 2, mode="x"), NotImplementedError, "takes the modes .*, not 'x'"),
    (lambda: F.interpolate(X, 2, align_corners=True), ValueError, "mode 'nearest' has no align_corners"),
    (lambda: F.interpolate(X, 0), ValueError, "sizes must be positive"),
    (lambda: F.interpolate(norch.ones(2, 2), 2), norch.ShapeError, "interpolate: expected"),
    (lambda: F.interpolate(X.long(), 2), norch.DTypeError, "interpolate: expected floats"),
    (lambda: F.interpolate(X, 2, mode="nearest", antialias=True), ValueError, "antialias is of the modes .*, not"),
    (lambda: F.interpolate(X.byte(), 2, mode="area"), norch.DTypeError, "expected floats for mode 'area'"),
    (lambda: F.interpolate([1.0], 2), TypeError, "interpolate: expected a tensor, not list"),
    (lambda: F.unfold(X, 5), norch.ShapeError, r"unfold: a kernel of \(5, 5\) .* does not fit \(4, 4\)"),
    (lambda: F.unfold(X, (2, 2, 2)), ValueError, "unfold: expected one kernel_size or 2"),
    (lambda: F.unfold(X, 2, stride=0), ValueError, "unfold: kernel_size"),
    (lambda: F.unfold(norch.ones(4, 4), 2), norch.ShapeError, "unfold: expected"),
    (lambda: F.fold(X[0], (4, 4), 2), norch.ShapeError, r"fold: expected \(N, C \* 4, 9\), got shape \(1, 4, 4\)"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[one[2] for one in BAD])
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_interpolate_of_bytes_and_of_volumes_is_pytorchs(torch):
    image = (np.arange(2 * 3 * 5 * 7) % 251).astype("uint8").reshape(2, 3, 5, 7)
    volume = np.cos(np.arange(2 * 3 * 4 * 5 * 6.0)).reshape(2, 3, 4, 5, 6)
    found = []
    for m in (norch, torch):
        resample = m.nn.functional.interpolate
        bytes_ = [resample(m.tensor(image), size=(8, 3), mode=mode) for mode in ("nearest", "nearest-exact")]
        assert all(x.dtype is m.uint8 for x in bytes_)
        found.append([*bytes_, resample(m.tensor(volume), size=(3, 2, 4), mode="area")])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_an_infinite_pixel_reaches_what_it_is_part_of(mode: str) -> None:
    x = norch.ones(1, 1, 16, 16)
    x[0, 0, 3, 3] = math.inf
    found = F.interpolate(x, size=(8, 8), mode=mode, antialias=True)
    assert_close(found[0, 0, 5:], norch.ones(3, 8))
    assert not found.isfinite().all()


# ---- the kernel of an axis ------------------------------------------------------------------------------------------


def taps(old: int, new: int, count: int) -> tuple[Any, Any]:
    """Indices, of which some are absent, and weights."""
    draw = np.random.default_rng(old + new)
    index = norch.tensor(draw.integers(-1, old, (count, new)), device=DEVICE)
    return index, norch.tensor(draw.normal(size=(count, new)), device=DEVICE)


@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 70), -1), ((3, 5, 40), 1), ((2, 3, 33, 1), -2), ((40,), 0), ((2, 9, 2), 1)]
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_sums_of_resampled_and_their_derivatives(shape: Any, dim: int, count: int) -> None:
    """Of dense and of strided tensors, what their definition gives; a new size beyond a run of elements."""
    draw = np.random.default_rng(1)
    for new in (1, 3, 67):
        index, weights = taps(shape[dim], new, count)
        for x in (of(draw.normal(size=shape)), of(draw.normal(size=shape[::-1])).permute(*range(len(shape))[::-1])):
            x = x.detach().requires_grad_()
            found = resampled(x, dim, index, weights)
            lines = np.moveaxis(x.detach().cpu().numpy(), dim, -1)
            places, factors = index.cpu().numpy(), weights.cpu().numpy()
            wanted = sum(np.where(p < 0, 0, lines[..., p] * w) for p, w in zip(places, factors, strict=True))
            assert_close(found.detach(), of(np.ascontiguousarray(np.moveaxis(wanted, -1, dim))))
            if new == 3 and x.numel() < 100:
                assert gradcheck(lambda x, i=index, w=weights: resampled(x, dim, i, w), (x,))
                assert gradgradcheck(lambda x, i=index, w=weights: resampled(x, dim, i, w), (x,))


def of(array: Any) -> Any:
    return norch.tensor(array, device=DEVICE)


@pytest.mark.host
@pytest.mark.skipif(IN_PAGES, reason="it is composed there")
def test_resampled_checks_indices_and_shapes() -> None:
    x, index, weights = norch.ones(2, 4), norch.tensor([[0, 3], [1, 4]]), norch.ones(2, 2)
    with pytest.raises(IndexError, match="resample: index 4 is out of range for size 4"):
        resampled(x, 1, index, weights)
    for bad in ((x, 1, index, weights[0]), (x, 1, index.int(), weights), (x, 1, index, weights.double())):
        with pytest.raises(norch.ShapeError, match="resample: shape"):
            resampled(*bad)
    with pytest.raises(IndexError):
        resampled(x, 2, index, weights)
    assert resampled(x[:0], 1, index, weights).shape == (0, 2)
    assert resampled(x, 1, index[:0], weights[:0]).tolist() == [[0, 0], [0, 0]]
    assert resampled(x.to("meta"), 1, index.to("meta"), weights.to("meta")).shape == (2, 2)


@pytest.mark.host  # these are the host's threads
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_threads_and_replays_do_not_change_interpolate(mode: str) -> None:
    image = norch.randn(3, 5, 60, 61)

    def step(x: Any) -> Any:
        return F.interpolate(x, (90, 33), mode=mode), F.interpolate(x, (30, 100), mode=mode, antialias=True)

    def results() -> list[Any]:
        x = image.clone().requires_grad_()
        outs = step(x)
        sum(out.square().sum() for out in outs).backward()
        return [*(out.detach() for out in outs), x.grad]

    norch.set_num_threads(1)
    alone = results()
    norch.set_num_threads(3)
    assert all(a.equal(b) for a, b in zip(alone, results(), strict=True))
    captured = norch.capture(step)
    for k in range(3):
        assert all(a.equal(b) for a, b in zip(captured(image + k), step(image + k), strict=True))


def test_an_infinite_pixel_beyond_the_taps_is_not_read() -> None:
    image = norch.zeros(1, 1, 8, 8, device=DEVICE)
    image[0, 0, 0, 7] = math.inf
    small = F.interpolate(image, (4, 4), mode="bilinear", antialias=True)
    assert small[..., :2].isfinite().all() and not small[0, 0, 0, 3].isfinite()


@pytest.mark.parametrize("mode", ["linear", "nearest-exact"])
def test_the_last_place_of_an_axis_that_float32_rounds_up(mode: str) -> None:
    x = norch.zeros(1, 1, 2**24 + 4)
    x[0, 0, -1] = 7.0
    if mode == "linear":
        assert F.interpolate(x, size=2, mode=mode, align_corners=True).tolist() == [[[0.0, 7.0]]]
    else:
        assert F.interpolate(x, size=2**24 + 4, mode=mode)[0, 0, -1].item() == 7.0
