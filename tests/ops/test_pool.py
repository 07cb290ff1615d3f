"""Pooling: against windows taken one by one in NumPy, against PyTorch where it is installed, and derivatives."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from checks import wait
from conftest import DEVICE

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib
from norch.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel


def drawn(seed: int, *shape: int, dtype: str = "float64") -> Any:
    """Few different numbers, so that there are ties."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def windows(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """For each window over the last two axes: where it stands in the result, and the places that it sees."""
    counts = [(x.shape[d - 2] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)]
    for i in range(counts[0]):
        for j in range(counts[1]):
            rows = [i * stride[0] - padding[0] + r * dilation[0] for r in range(kernel[0])]
            columns = [j * stride[1] - padding[1] + c * dilation[1] for c in range(kernel[1])]
            rows, columns = [r for r in rows if 0 <= r < x.shape[-2]], [c for c in columns if 0 <= c < x.shape[-1]]
            yield (i, j), [r * x.shape[-1] + c for r in rows for c in columns]


# size, kernel, stride, padding, dilation
SHAPES = [
    ((4, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((7, 9), (3, 2), (1, 2), (1, 1), (1, 1)),
    ((9, 30), (3, 5), (3, 1), (0, 2), (2, 1)),
    ((3, 300), (1, 3), (1, 1), (0, 1), (1, 1)),
    ((40, 6), (4, 2), (5, 4), (2, 0), (1, 3)),
    ((15, 28), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((14, 35), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    ((3, 1500), (2, 5), (1, 3), (1, 2), (1, 1)),
    ((2, 1100), (2, 1040), (1, 4), (0, 3), (1, 1)),
    ((20, 57), (9, 13), (10, 21), (0, 0), (1, 1)),
    ((7, 40), (3, 8), (2, 5), (0, 0), (2, 1)),
    ((3, 33), (3, 33), (3, 33), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [8, 11, 16, 37])
def test_wide_windows_of_nans_infinities_and_ties(torch: Any, width: int, dtype: str) -> None:
    x = drawn(3, 6, 5, 2 * width + 1, dtype=dtype)
    x[1], x[2, :, ::3], x[3, 2, [1, width - 1, width + 2]] = -np.inf, np.nan, np.nan
    out, index = F.max_pool2d(norch.tensor(x), (5, width), return_indices=True)
    wanted, places = torch.nn.functional.max_pool2d(torch.tensor(x), (5, width), return_indices=True)
    np.testing.assert_array_equal(out.numpy(), wanted.numpy())
    np.testing.assert_array_equal(index.numpy(), places.numpy())


def test_many_planes_and_nans() -> None:
    """Rows are written a vector at a time, whose surplus must not reach what another thread has written."""
    x = drawn(2, 300, 14, 14, dtype="float32")
    x[::7, 3, 4] = np.nan
    quads = x.reshape(300, 7, 2, 7, 2).swapaxes(2, 3).reshape(300, 7, 7, 4)
    inside = quads.argmax(-1)
    wanted = np.arange(0, 14, 2)[:, None] * 14 + np.arange(0, 14, 2) + inside // 2 * 14 + inside % 2
    for count in (1, 4):
        norch.set_num_threads(count)
        y, index = F.max_pool2d(norch.tensor(x), 2, return_indices=True)
        np.testing.assert_array_equal(index.numpy(), wanted)
        np.testing.assert_array_equal(y.numpy(), quads.max(-1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_windows_one_by_one(shape: Any, dtype: str) -> None:
    size, kernel, stride, padding, dilation = shape
    x = drawn(0, 2, 3, *size, dtype=dtype)
    flat = x.reshape(2, 3, -1)
    leaf = norch.tensor(x, requires_grad=True)
    y, index = F.max_pool2d(leaf, kernel, stride, padding, dilation, return_indices=True)
    mean = F.avg_pool2d(leaf, kernel, stride, padding, count_include_pad=False).detach().numpy()
    largest, places = y.detach().numpy(), index.numpy()
    for (i, j), seen in windows(x, kernel, stride, padding, dilation):
        wanted = np.array(seen)[flat[:, :, seen].argmax(-1)]
        np.testing.assert_array_equal(places[:, :, i, j], wanted)
        np.testing.assert_array_equal(largest[:, :, i, j], flat[:, :, seen].max(-1))
    for (i, j), seen in windows(x, kernel, stride, padding, (1, 1)):
        np.testing.assert_allclose(mean[:, :, i, j], flat[:, :, seen].mean(-1), rtol=1e-6, atol=1e-6)
    g = drawn(1, *y.shape, dtype=dtype)
    y.backward(norch.tensor(g))
    slopes = np.zeros_like(flat)
    for n in range(2):
        for c in range(3):
            np.add.at(slopes[n, c], places[n, c].reshape(-1), g[n, c].reshape(-1))
    assert leaf.grad is not None
    np.testing.assert_array_equal(leaf.grad.numpy(), slopes.reshape(x.shape))


@pytest.mark.parametrize("seed", range(6))
def test_everything_against_torch(torch: Any, seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(30):
        axes = pick.choice([1, 2, 3])
        kernel, stride, dilation = (
            [pick.choice(of) for _ in range(axes)] for of in ([1, 2, 3, 5], [1, 2, 3], [1, 1, 2])
        )
        sizes = [pick.choice([7, 9, 16, 33] if axes < 3 else [5, 6, 9]) for _ in range(axes)]
        kernel = [min(k, 3) for k in kernel] if axes == 3 else kernel
        padding = [pick.randrange(k // 2 + 1) for k in kernel]
        x = drawn(seed, pick.choice([0, 2]), 3, *sizes, dtype="float32")
        if x.size and pick.random() < 0.3:
            x.reshape(-1)[:: pick.randrange(5, 40)] = pick.choice([np.nan, -np.inf])
        options: dict[str, Any] = {"stride": stride, "padding": padding, "ceil_mode": pick.random() < 0.5}
        largest = pick.random() < 0.5
        if largest:
            options |= {"dilation": dilation, "return_indices": True}
        else:
            options |= {"count_include_pad": pick.random() < 0.5}
            if axes > 1 and pick.random() < 0.3:
                options["divisor_override"] = 3
        name = f"{'max' if largest else 'avg'}_pool{axes}d"
        ours, theirs = norch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        a, b = getattr(F, name)(ours, kernel, **options), getattr(torch.nn.functional, name)(theirs, kernel, **options)
        if largest:
            np.testing.assert_array_equal(a[1].numpy(), b[1].numpy())
            a, b = a[0], b[0]
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
        g = drawn(seed + 1, *b.shape, dtype="float32")
        a.backward(norch.tensor(g))
        b.backward(torch.tensor(g))
        assert ours.grad is not None
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-5)


ADAPTIVE: list[tuple[int, Any]] = [
    *((2, wanted) for wanted in [1, (3, 2), (2, 4), (None, 5), (9, 7)]),
    *((3, wanted) for wanted in [1, 2, (3, 2, 4), (2, None, 5), (5, 9, 7)]),
]


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("axes", "wanted"), ADAPTIVE)
def test_adaptive_windows_against_torch(torch: Any, kind: str, axes: int, wanted: Any) -> None:
    name, x = f"adaptive_{kind}_pool{axes}d", drawn(0, 2, 3, *(6, 7, 4)[:axes], dtype="float32")
    ours, theirs = norch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    a, b = getattr(F, name)(ours, wanted), getattr(torch.nn.functional, name)(theirs, wanted)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-6)
    a.square().sum().backward()
    b.square().sum().backward()
    assert ours.grad is not None
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-5)
    if "max" in name:
        indices = getattr(torch.nn.functional, name)(theirs, wanted, True)[1].numpy()
        np.testing.assert_array_equal(getattr(F, name)(ours, wanted, True)[1].numpy(), indices)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_windows_of_no_planes(kind: str, axes: int, size: int) -> None:
    for lead in ((0, 3), (2, 0), (0,)):
        x = norch.zeros(*lead, *(4,) * axes, requires_grad=True)
        out = getattr(F, f"adaptive_{kind}_pool{axes}d")(x, size)
        out.sum().backward()
        assert out.shape == (*lead, *(size,) * axes) and x.grad.shape == x.shape


@pytest.mark.parametrize("name", ["adaptive_avg_pool2d", "adaptive_max_pool2d"])
def test_adaptive_windows_of_more_parts_than_elements(name: str) -> None:
    """Each window on its own, of all sizes."""
    reduce = np.mean if "avg" in name else np.max
    for size in range(1, 6):
        for count in range(1, 24):
            x = drawn(size, 2, size, 3, dtype="float64")
            cuts = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
            rows = np.stack([reduce(x[:, begin:end], axis=1) for begin, end in cuts], axis=1)
            out = getattr(F, name)(norch.tensor(x), (count, 3))
            np.testing.assert_allclose(out.numpy(), rows, rtol=1e-12)
            turned = getattr(F, name)(norch.tensor(x).transpose(1, 2), (3, count))
            np.testing.assert_allclose(turned.numpy(), rows.transpose(0, 2, 1), rtol=1e-12)
    x = norch.tensor([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]], dtype=norch.float64, requires_grad=True)
    assert gradcheck(lambda x: getattr(F, name.replace("2d", "1d"))(x, 11), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("size", "wanted"), [((30, 50), (3, 2)), ((9, 70), (4, 3)), ((80, 7), (3, 5))])
def test_adaptive_windows_of_many_elements(torch: Any, size: Any, wanted: Any, dtype: str) -> None:
    """Wider than vectors: NaN wins, of equal elements the first."""
    x = np.round(drawn(7, 2, 3, *size, dtype=dtype) * 4)  # of few values
    x[0, 1, 5, 3:6] = math.nan
    x[1, 2] = -math.inf
    ours, theirs = norch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    out, index = F.adaptive_max_pool2d(ours, wanted, return_indices=True)
    best, place = torch.nn.functional.adaptive_max_pool2d(theirs, wanted, return_indices=True)
    np.testing.assert_array_equal(out.detach().numpy(), best.detach().numpy())
    np.testing.assert_array_equal(index.numpy(), place.numpy())
    mean = F.adaptive_avg_pool2d(ours.nan_to_num(0, neginf=1), wanted)
    means = torch.nn.functional.adaptive_avg_pool2d(theirs.nan_to_num(0, neginf=1), wanted)
    np.testing.assert_allclose(mean.detach().numpy(), means.detach().numpy(), rtol=1e-5, atol=1e-6)
    mean.square().sum().backward()
    means.square().sum().backward()
    assert ours.grad is not None
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["adaptive_avg_pool1d", "adaptive_max_pool1d"])
def test_adaptive_windows_without_end(name: str) -> None:
    pool = getattr(F, name)
    assert pool(norch.ones(1, 3), 2**20).sum() == 2**20
    for size in (1, 3):
        with pytest.raises(norch.OutOfMemoryError, match=rf"{name}: out of memory for {3 * 2**46 * 4} bytes"):
            pool(norch.zeros(3, size), 2**46)
        with pytest.raises(norch.ShapeError, match=rf"{name}: shape .* needs more than 2\*\*63 bytes"):
            pool(norch.zeros(3, size), 2**62)


def test_adaptive_windows_along_one_axis() -> None:
    x = norch.tensor([[1.0, 2.0, 4.0, 3.0, 0.0]])
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[pytest.approx(7 / 3), pytest.approx(7 / 3)]]
    best, index = F.adaptive_max_pool1d(x, 2, return_indices=True)
    assert best.tolist() == [[4.0, 4.0]] and index.tolist() == [[2, 2]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 2, 1),
        lambda x: F.max_pool2d(x, (3, 2), 2, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 2, 1, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.max_pool1d(x[0], 2),
        lambda x: F.avg_pool1d(x[0], 3, 1, 1),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.adaptive_max_pool2d(x, 2),
        lambda x: F.max_pool3d(x, (1, 2, 2), 1, (0, 0, 1)),
        lambda x: F.avg_pool3d(x, 2, 1, 1, count_include_pad=False),
        lambda x: F.adaptive_avg_pool3d(x, (1, 2, 2)),
        lambda x: F.adaptive_max_pool3d(x, (2, 2, 3)),
    ],
    ids="max max-ceil avg avg-ceil max1 avg1 adaptive-avg adaptive-max max3 avg3 adaptive-avg3 adaptive-max3".split(),
)
def test_derivatives(function: Any) -> None:
    x = norch.tensor(np.random.default_rng(0).permutation(30).reshape(1, 2, 3, 5) / 10.0, requires_grad=True)
    assert gradcheck(function, x)
    assert gradgradcheck(lambda x: function(x) ** 2, x)


@pytest.mark.parametrize("size", [9, 6001])  # of rows that are pooled together, and of others
def test_rows(torch: Any, size: int) -> None:
    x = drawn(0, 2, 3, size)
    ours, theirs = norch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for name in ("max_pool1d", "avg_pool1d"):
        out, wanted = (getattr(m, name)(x, 3, 2, 1) for m, x in ((F, ours), (torch.nn.functional, theirs)))
        np.testing.assert_allclose(out.detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6)
        out.square().sum().backward()
        wanted.square().sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_layouts() -> None:
    x = drawn(0, 5, 6, 3, 2)
    turned = norch.tensor(x).permute(3, 2, 1, 0)
    plain = norch.tensor(np.ascontiguousarray(x.transpose(3, 2, 1, 0)))
    assert F.max_pool2d(turned, 2).tolist() == F.max_pool2d(plain, 2).tolist()
    assert F.avg_pool2d(turned, 2).tolist() == F.avg_pool2d(plain, 2).tolist()


BAD: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x: F.max_pool2d(norch.zeros(1, 1, 1).expand(1, 65536, 65536), 16384),
        norch.ShapeError,
        r"max_pool2d: planes of \(65536, 65536\) have more elements than 2147483647",
    ),
    (lambda x: F.max_pool2d(x, 0), ValueError, "kernel_size 0"),
    (lambda x: F.max_pool2d(x, 2, 0), ValueError, "stride 0"),
    (lambda x: F.max_pool2d(x, 2, padding=2), ValueError, "more than half of kernel size 2"),
    (lambda x: F.max_pool2d(x, 7), norch.ShapeError, "does not fit size 6"),
    (lambda x: F.max_pool2d(x[:, :, :0], 2, padding=1), norch.ShapeError, "does not fit size 0"),  # of padding alone
    (lambda x: F.max_pool2d(x, (1, 2, 3)), norch.ShapeError, "1 or 2 numbers"),
    (lambda x: F.max_pool2d(x, 2.0), TypeError, "integers"),
    (lambda x: F.max_pool2d(x.bool(), 2), norch.DTypeError, "bool"),
    (lambda x: F.max_pool2d(x[0, 0], 2), norch.ShapeError, "3 \\(unbatched\\) or 4"),
    (lambda x: F.max_pool1d(x, 2), norch.ShapeError, "2 \\(unbatched\\) or 3"),
    (lambda x: F.max_pool3d(x, 7), norch.ShapeError, "max_pool3d: .* does not fit size 2"),
    (lambda x: F.max_pool3d(x, (2, 2, 3), padding=(0, 0, 2)), ValueError, "max_pool3d: .*half of kernel size 3"),
    (lambda x: F.max_pool3d(x, (2, 2, 3), padding=(2, 0, 0)), ValueError, "max_pool3d: .*half of kernel size 2"),
    (lambda x: F.avg_pool3d(x[0], 2), norch.ShapeError, "avg_pool3d: expected 4 \\(unbatched\\) or 5"),
    (lambda x: F.avg_pool3d(x, 2, divisor_override=0), ValueError, "avg_pool3d: divisor"),
    (lambda x: F.adaptive_avg_pool3d(x, (1, 2)), norch.ShapeError, "adaptive_avg_pool3d: output_size .* 1 or 3"),
    (lambda x: F.lp_pool3d(x, 0, 2), ValueError, "lp_pool3d: norm_type"),
    (lambda x: F.lp_pool2d(x, 2, (2, 2, 2)), norch.ShapeError, "lp_pool2d: kernel_size takes 1 or 2 numbers"),
    (lambda x: F.max_pool2d(None, 2), TypeError, "NoneType"),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=0), ValueError, "divisor"),
    (lambda x: F.adaptive_avg_pool2d(x[:, :, :0], 2), norch.ShapeError, "none empty"),
    (lambda x: F.adaptive_max_pool2d(x, (1, -1)), ValueError, "negative"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(norch.zeros(1, 2, 6, 6))


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("name", ["max_pool", "adaptive_max_pool"])
def test_places_are_the_callers_own(name: str, axes: int) -> None:
    """Backward keeps its own, of 4 bytes each: that these are changed alters no gradient."""
    x = norch.rand(1, 2, *[6] * axes, requires_grad=True)
    out, places = getattr(F, f"{name}{axes}d")(x, 2, return_indices=True)
    expected = norch.autograd.grad(out.sum(), x, retain_graph=True)[0]
    assert places.dtype == norch.int64
    places.zero_()
    out.sum().backward()
    assert x.grad.equal(expected)


def test_memory_of_pooling() -> None:
    """For backward it keeps 4 bytes an element of the result, and nothing of x."""
    x = norch.rand(8, 16, 32, 32, requires_grad=True)
    before = live()
    y = F.max_pool2d(x, 2)
    assert live() - before <= y.numel() * (4 + 4) * 1.01 + 1024


def live() -> int:
    return norch.cuda.memory_allocated() if DEVICE == "cuda" else lib.norch_live_bytes()


MODULES = [
    ("MaxPool1d", (2,), {}, (2, 3, 9)),
    ("MaxPool2d", (3, 2, 1), {"ceil_mode": True}, (2, 3, 9, 8)),
    ("AvgPool1d", (3,), {"padding": 1}, (2, 3, 9)),
    ("AvgPool2d", ((3, 2),), {"stride": 2, "count_include_pad": False}, (3, 9, 8)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveAvgPool2d", ((4, None),), {}, (2, 3, 9, 8)),
    ("AdaptiveMaxPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveMaxPool2d", (2,), {}, (2, 3, 9, 8)),
    ("MaxPool3d", ((3, 2, 2), 2, 1), {"dilation": (1, 2, 1)}, (2, 3, 5, 6, 7)),
    ("AvgPool3d", (2,), {"padding": (0, 1, 1), "ceil_mode": True}, (3, 5, 6, 7)),
    ("AdaptiveAvgPool3d", ((4, None, 2),), {}, (2, 3, 5, 6, 7)),
    ("AdaptiveMaxPool3d", (2,), {}, (3, 5, 6, 7)),
    ("LPPool3d", (2, (3, 2, 1)), {"stride": 2}, (2, 3, 5, 6, 7)),
    ("LPPool1d", (2, 3), {"ceil_mode": True}, (2, 3, 10)),
    ("LPPool2d", (4, (3, 2)), {"stride": 2}, (2, 3, 9, 8)),
    ("LocalResponseNorm", (3,), {"alpha": 0.5, "k": 2.0}, (2, 5, 4)),
    ("LocalResponseNorm", (4,), {"beta": 0.5}, (2, 5, 4, 3)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), MODULES, ids=str)
def test_modules_are_torchs(torch: Any, name: str, arguments: Any, options: Any, shape: Any) -> None:
    ours, theirs = getattr(nn, name)(*arguments, **options), getattr(torch.nn, name)(*arguments, **options)
    assert repr(ours) == repr(theirs)
    x = drawn(0, *shape, dtype="float32")
    np.testing.assert_allclose(ours(norch.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy(), rtol=1e-6, atol=1e-6)


LOCAL: Any = {
    "lp_pool1d": (lambda f, x: f.lp_pool1d(x.flatten(2), 3, 2), (2, 3, 4, 4)),
    "lp_pool2d": (lambda f, x: f.lp_pool2d(x.relu(), 2, (2, 1), ceil_mode=True), (2, 3, 5, 4)),
    **{
        f"lp_pool{axes}d of {p}": (
            lambda f, x, axes=axes, p=p: getattr(f, f"lp_pool{axes}d")(
                x, p, 2, *([1] if axes == 1 else []), ceil_mode=True
            ),
            (2, 3, *(5, 4, 3)[:axes]),
        )
        for axes in (1, 2, 3)
        for p in (math.inf, -math.inf, 1, 2, 4, -2)
    },
    "sums": (lambda f, x: f.lp_pool2d(x, 1, 2), (3, 4, 4)),
    "local_response_norm": (lambda f, x: f.local_response_norm(x, 3, 2.0, 0.5, 0.1), (2, 6, 4)),
}


@pytest.mark.parametrize("name", LOCAL)
def test_of_neighbours_like_torch(torch: Any, name: str) -> None:
    call, shape = LOCAL[name]
    array = np.abs(drawn(0, *shape)) if name == "lp_pool1d" else drawn(0, *shape)
    x, y = norch.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    a, b = call(F, x), call(torch.nn.functional, y)
    a.square().sum().backward()
    b.square().sum().backward()
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-8, atol=1e-11)


def test_of_neighbours() -> None:
    x = norch.zeros(1, 1, 4, requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[[0.0] * 4]]
    assert F.lp_pool2d(norch.tensor([[[1.0, 3.0]]]), 64.0, (1, 2)).item() == pytest.approx(3, rel=0.02)
    assert F.local_response_norm(norch.ones(3, 0, 2), 3).shape == (3, 0, 2)
    with pytest.raises(norch.ShapeError, match=r"local_response_norm: needs at least 3 .* got shape \(2, 3\)"):
        F.local_response_norm(norch.ones(2, 3), 2)
    with pytest.raises(ValueError, match="local_response_norm: size is positive, not 0"):
        F.local_response_norm(norch.ones(2, 3, 4), 0)
    for call, name in ((F.lp_pool1d, "lp_pool1d"), (F.lp_pool2d, "lp_pool2d")):
        with pytest.raises(ValueError, match=f"{name}: norm_type is not 0"):
            call(x, 0, 2)
        with pytest.raises(TypeError, match=f"{name}: norm_type must be a number, not str"):
            call(x, "a", 2)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_against_torch(torch: Any, axes: int) -> None:
    x = np.random.default_rng(0).permutation(2 * 3 * 6**axes).reshape(2, 3, *[6] * axes).astype("float32")
    found: list[Any] = []
    for m, f in ((norch, F), (torch, torch.nn.functional)):
        for arguments in ((2,), (2, 2, 1), (2, 3)):
            best, places = getattr(f, f"max_pool{axes}d")(m.tensor(x), *arguments, return_indices=True)
            best.requires_grad_()
            layer = getattr(m.nn, f"MaxUnpool{axes}d")(*arguments)
            for out in (layer(best, places, output_size=x.shape), layer(best[0], places[0], [6] * axes)):
                (out * m.arange(out.numel()).reshape(out.shape)).sum().backward()
                found.append([repr(layer), out.tolist(), best.grad.tolist()])
            if arguments == (2,):
                assert layer(best, places).tolist() == found[-2][1]
    assert found[:6] == found[6:]


def test_unpooling() -> None:
    x = norch.tensor(np.random.default_rng(0).standard_normal((2, 2, 3)), requires_grad=True)
    places = norch.tensor([[[0, 3, 5], [15, 9, 11]]] * 2)
    assert gradcheck(lambda x: F.max_unpool2d(x, places, 2), x) and gradgradcheck(
        lambda x: F.max_unpool2d(x, places, 2) ** 2, x
    )
    bad: list[tuple[Any, type[Exception], str]] = [
        (lambda: F.max_unpool2d(x, places[0], 2), norch.ShapeError, "max_unpool2d: expected input and indices of one"),
        (lambda: F.max_unpool2d(x, places + 99, 2), IndexError, "index 99 is out of range for size 24"),
        (lambda: F.max_unpool2d(x, places, 2, output_size=(6, 6)), ValueError, "max_unpool2d: output_size"),
        (lambda: F.max_unpool2d(x, places, 2, output_size=(6,)), ValueError, "max_unpool2d: output_size"),
        (lambda: F.max_unpool3d(x, places, 2), norch.ShapeError, "4 .unbatched. or 5"),
    ]
    for call, error, message in bad:
        with pytest.raises(error, match=message):
            call()
            wait()


def test_sizes_may_be_tensors() -> None:
    """Numbers of a narrow dtype do not wrap."""
    out = norch.nn.functional.adaptive_avg_pool2d(norch.ones(1, 3, 3), norch.tensor(254, dtype=norch.uint8))
    assert out.shape == (1, 254, 254)


def test_max_pool_of_integers_is_pytorchs(torch):
    x = np.arange(-40, 50).reshape(1, 2, 5, 9)
    for dtype in ("uint8", "int32", "int64"):
        ours, theirs = (
            m.nn.functional.max_pool2d(m.tensor(x.astype(dtype)), 2, 2, (1, 0), return_indices=True)
            for m in (norch, torch)
        )
        assert ours[0].dtype is getattr(norch, dtype)
        assert [y.tolist() for y in ours] == [y.tolist() for y in theirs]


def test_sizes_of_windows_are_integers_after_a_call_with_them() -> None:
    x = norch.ones(1, 4, 4)
    assert F.max_pool2d(x, 1).shape == (1, 4, 4)
    for wrong in (1.0, True):
        with pytest.raises(TypeError, match="max_pool2d: kernel_size takes integers"):
            F.max_pool2d(x, wrong)  # type: ignore[arg-type]
    with pytest.raises(norch.ShapeError, match="max_pool2d: a kernel of size 5 does not fit"):
        F.max_pool2d(x, 5)


def test_numbers_that_equal_known_sizes_are_refused() -> None:
    """Checked sizes are kept for later calls; 2.0 == 2, but is no size."""
    x = norch.ones(1, 1, 6, 6)
    for call in (F.avg_pool2d, F.max_pool2d):
        call(x, 2, 2, 0)
        for sizes in ((2.0, 2, 0), (2, 2.0, 0), (2, 2, 0.0), (True, 2, 0)):
            with pytest.raises(TypeError, match="takes integers"):
                call(x, *sizes)
    for mode in ("constant", "reflect"):
        assert F.pad(x[0], (1, 1), mode).shape == (1, 6, 8)
        for pad in ((1.0, 1.0), [1.0, 1]):
            with pytest.raises(TypeError, match="size"):
                F.pad(x[0], pad, mode)
