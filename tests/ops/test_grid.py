"""affine_grid() and grid_sample(): against PyTorch, against images that are known, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
import norch.nn.extras.grid_sample as grid_sample
from norch.nn import functional as F
from norch.testing import assert_close, gradcheck, gradgradcheck


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 1, 3), (2, 1, 3, 2, 4)], ids=str)
def test_affine_grid_like_torch(torch: Any, size: Any, align: bool) -> None:
    axes = len(size) - 2
    theta = drawn(size[0], axes, axes + 1)
    x, y = of(theta).requires_grad_(), torch.tensor(theta, requires_grad=True)
    a, b = F.affine_grid(x, size, align), torch.nn.functional.affine_grid(y, size, align)
    assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-10, atol=1e-12)
    a.square().sum().backward()
    b.square().sum().backward()
    assert_close(x.grad, of(y.grad.numpy()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 2, 3, 2, 4)], ids=str)
def test_grid_sample_like_torch(torch: Any, size: Any, mode: str, padding: str, align: bool) -> None:
    axes = len(size) - 2
    if mode == "bicubic" and axes == 3:
        pytest.skip("of images only")
    image, grid = drawn(*size), drawn(size[0], *range(6, 6 + axes), axes) * 1.5
    x, y = ([make(a).requires_grad_() for a in (image, grid)] for make in (of, torch.tensor))
    a, b = (f.grid_sample(*one, mode, padding, align) for f, one in ((F, x), (torch.nn.functional, y)))
    assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-10, atol=1e-12)
    a.square().sum().backward()
    b.square().sum().backward()
    for p, q in zip(x, y, strict=True):
        assert_close(p.grad, of(q.grad.numpy()), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_at_the_edges_and_nowhere_like_torch(torch: Any, mode: str, padding: str, align: bool) -> None:
    image, nan, inf = drawn(1, 2, 3, 4), math.nan, math.inf
    edges = [[-1.0, -1.0], [1.0, 1.0], [0.0, 1.0], [1.0, -1.0], [0.5, 0.5]]
    nowhere = [[nan, 0.0], [0.0, nan], [nan, nan], [inf, 0.0], [0.0, -inf], [nan, 9.0]]
    for places in (edges, nowhere):
        x, y = ([make([[places]]), make(image).requires_grad_()] for make in (lambda a: of(a).double(), torch.tensor))
        y[0] = y[0].double()
        if places is edges or padding == "zeros":  # PyTorch dies of the others
            x[0].requires_grad_()
            y[0].requires_grad_()
        a, b = (f.grid_sample(*one[::-1], mode, padding, align) for f, one in ((F, x), (torch.nn.functional, y)))
        assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-12, atol=1e-12, equal_nan=True)
        if x[0].requires_grad:
            a.sum().backward()
            b.sum().backward()
            for p, q in zip(x, y, strict=True):
                wanted = of(q.grad.numpy())
                found = norch.zeros_like(wanted) if p.grad is None else p.grad
                assert_close(found, wanted, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("align", [False, True])
def test_the_identity_reads_the_image_and_a_mirror_turns_it(align: bool) -> None:
    image = of(drawn(1, 2, 3, 4))
    theta = of([[[1.0, 0, 0], [0, 1, 0]]]).double()
    for mode in ("bilinear", "nearest"):
        assert_close(F.grid_sample(image, F.affine_grid(theta, image.shape, align), mode, align_corners=align), image)
    turned = F.grid_sample(image, F.affine_grid(-theta, image.shape, align), align_corners=align)
    assert_close(turned, image.flip(2, 3))
    beyond = of([[[[5.0, 0.0], [1e30, 0.0]]]]).double()
    assert F.grid_sample(image, beyond, align_corners=align).tolist() == [[[[0.0, 0.0]], [[0.0, 0.0]]]]
    half = F.grid_sample(image.half(), F.affine_grid(theta, image.shape, align).half(), align_corners=align)
    assert half.dtype is norch.float16


WAYS = [
    (mode, padding, align)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for align in (False, True)
]


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize(("mode", "padding", "align"), WAYS)
def test_the_kernel_is_what_is_composed(mode: str, padding: str, align: bool, axes: int) -> None:
    """More channels than a task has, and points of several runs and tasks; images and a grid that are not dense."""
    if mode == "bicubic" and axes == 3:
        pytest.skip("of images only")
    sizes, places = ((7, 5), (23, 27)) if axes == 2 else ((4, 3, 5), (9, 7, 11))
    image = of(drawn(*sizes, 2, 19)).movedim((-2, -1), (0, 1))
    grid = of(drawn(axes, *places, 2) * 1.3).movedim((0, -1), (-1, 0))
    results = []
    for function in (lambda *given: F.grid_sample(*given, mode, padding, align), composed(mode, padding, align)):
        x, points = image.detach().requires_grad_(), grid.detach().requires_grad_()
        out = function(x, points)
        weights = of(drawn(*out.shape))
        results.append([out.detach(), *norch.autograd.grad(out, (x, points), weights, allow_unused=True)])
    for a, b in zip(*results, strict=True):
        assert_close(a, norch.zeros_like(a) if b is None else b, rtol=1e-10, atol=1e-10)


def composed(mode: str, padding: str, align: bool) -> Any:
    return lambda x, points: grid_sample._composed(x, points, mode, padding, align)


@pytest.mark.parametrize(("mode", "padding", "align"), WAYS)
def test_derivatives_of_grid_sample(mode: str, padding: str, align: bool) -> None:
    image, grid = of(drawn(2, 2, 3, 4)).requires_grad_(), of(drawn(2, 2, 3, 2) * 0.7).requires_grad_()
    inputs = (image,) if mode == "nearest" else (image, grid)

    def function(*given: Any) -> Any:
        return F.grid_sample(given[0], given[-1] if len(given) > 1 else grid.detach(), mode, padding, align)

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.host
@pytest.mark.skipif(grid_sample.IN_PAGES, reason="it is composed there")
@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 0, 3, 4), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("points", [(0, 3), (3, 2)], ids=str)
def test_empty_images_and_grids(shape: Any, points: Any) -> None:
    image, grid = of(drawn(*shape)).requires_grad_(), of(drawn(shape[0], *points, 2)).requires_grad_()
    out = F.grid_sample(image, grid, align_corners=False)
    assert out.shape == (*shape[:2], *points)
    out.sum().backward()
    assert image.grad.shape == shape and grid.grad.shape == grid.shape
    if 0 in (*points, shape[1]):
        assert not grid.grad.any() and not image.grad.any()
    meta = F.grid_sample(image.detach().to("meta"), grid.detach().to("meta"), align_corners=False)
    assert meta.shape == out.shape and meta.is_meta


def test_float32_and_a_replay_of_grid_sample() -> None:
    image, grid = of(drawn(2, 3, 9, 8)), of(drawn(2, 40, 33, 2))
    wide = F.grid_sample(image, grid, "bicubic", "reflection", False)
    single = F.grid_sample(image.float(), grid.float(), "bicubic", "reflection", False)
    assert_close(single.double(), wide, rtol=1e-3, atol=1e-4)
    step = norch.capture(lambda x, points: F.grid_sample(x, points, align_corners=True) + 1)
    for k in range(4):
        moved = grid * (1 - k / 8)
        assert_close(step(image, moved), F.grid_sample(image, moved, align_corners=True) + 1, rtol=0, atol=0)


@pytest.mark.host  # these are the host's threads
def test_threads_do_not_change_grid_sample() -> None:
    image, grid = norch.tensor(drawn(3, 40, 30, 31)).float(), norch.tensor(drawn(3, 50, 49, 2)).float()

    def results() -> list[Any]:
        x, points = image.clone().requires_grad_(), grid.clone().requires_grad_()
        out = F.grid_sample(x, points, padding_mode="border", align_corners=False)
        out.square().sum().backward()
        return [out.detach(), x.grad, points.grad]

    norch.set_num_threads(1)
    alone = results()
    norch.set_num_threads(3)
    assert all(a.equal(b) for a, b in zip(alone, results(), strict=True))


X, G = norch.ones(1, 1, 2, 2), norch.zeros(1, 2, 2, 2)
BAD: Any = [
    (lambda: F.grid_sample(X, G[..., :1]), norch.ShapeError, r"got \(1, 1, 2, 2\) and a grid of shape \(1, 2, 2, 1\)"),
    (lambda: F.grid_sample(X[0], G), norch.ShapeError, "grid_sample: expected"),
    (lambda: F.grid_sample(X, G, "cubic"), NotImplementedError, "mode is one of .*, not 'cubic'"),
    (
        lambda: F.grid_sample(norch.ones(1, 1, 2, 2, 2), norch.zeros(1, 2, 2, 2, 3), "bicubic"),
        NotImplementedError,
        r"'bicubic' takes images \(N, C, H, W\)",
    ),
    (
        lambda: F.grid_sample(X, G, padding_mode="ones"),
        ValueError,
        "'zeros', 'border' or 'reflection', not 'ones'",
    ),
    (lambda: F.grid_sample(X.long(), G), TypeError, "expected floats, got norch.int64 and norch.float32"),
    (lambda: F.grid_sample(X, G.double()), norch.DTypeError, "the input's norch.float32, not of norch.float64"),
    (lambda: F.grid_sample(X[..., :0], G), norch.ShapeError, r"expected non-empty images, got shape \(1, 1, 2, 0\)"),
    (lambda: F.affine_grid(G, (1, 1, 2, 2)), norch.ShapeError, r"theta of shape \(1, 2, 2, 2\) for images of size"),
    (lambda: F.affine_grid(norch.ones(1, 2, 3).long(), (1, 1, 2, 2)), TypeError, "affine_grid: expected floats"),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=range(len(BAD)))
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
