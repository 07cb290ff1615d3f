"""affine_grid() and grid_sample(): against PyTorch, against images that are known, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch.nn import functional as F
from norch.testing import assert_close


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
