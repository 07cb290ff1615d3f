"""geqrf, householder_product, orgqr, ormqr: values and derivatives against PyTorch, batches, complex, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch.testing import assert_close, gradcheck, gradgradcheck

pytest.importorskip("scipy")
RNG = np.random.default_rng(3)
# Elementwise operations of complex numbers have no kernels on CUDA.
DTYPES = ["float32", "float64", *(["complex64", "complex128"] if DEVICE == "cpu" else [])]


def normal(*shape: int, dtype: str = "float64") -> np.ndarray:
    found = RNG.standard_normal(shape)
    return (found + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else found).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4, 2), (0, 3, 2), (2, 0, 0), (2, 3, 0)])
def test_geqrf_is_pytorchs(torch, shape: tuple[int, ...], dtype: str) -> None:
    a = normal(*shape, dtype=dtype)
    ours, theirs = norch.geqrf(norch.tensor(a)), torch.geqrf(torch.tensor(a))
    assert_close(ours.a, norch.tensor(theirs.a.numpy()), rtol=1e-4, atol=1e-5)
    assert_close(ours.tau, norch.tensor(theirs.tau.numpy()), rtol=1e-4, atol=1e-5)
    Q, R = norch.linalg.qr(norch.tensor(a))
    if shape[-2] >= shape[-1]:
        assert_close(norch.orgqr(*ours), Q, rtol=1e-4, atol=1e-5)
    assert_close(ours.a.triu()[..., : R.shape[-2], :], R, rtol=1e-4, atol=1e-5)


# Reflections of any factors: Q need not be unitary. PyTorch's gradients take the reflections back by their inverses,
# and lose digits where a factor is near to that of a singular one.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "k"), [((5, 3), 3), ((4, 4), 4), ((2, 5, 3), 2), ((2, 3, 4, 2), 2), ((4, 3), 0), ((0, 3, 2), 2)]
)
def test_householder_product_and_its_gradients_are_pytorchs(torch, shape, k: int, dtype: str) -> None:
    arrays = [normal(*shape, dtype=dtype), normal(*shape[:-2], k, dtype=dtype) / 4]
    weight, found = normal(*shape, dtype=dtype), []
    for m in (norch, torch):
        xs = [m.tensor(array, requires_grad=True) for array in arrays]
        out = m.linalg.householder_product(*xs)
        grads = m.autograd.grad((out * m.tensor(weight)).sum().abs(), xs, allow_unused=True)
        found.append([out.detach().numpy(), *(m.zeros_like(x) if g is None else g for x, g in zip(xs, grads))])
    single = dtype in ("float32", "complex64")
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if single else 1e-8, atol=1e-2 if single else 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_ormqr_and_its_gradients_are_pytorchs(torch, dtype: str, left: bool, transpose: bool, batch) -> None:
    A, tau = normal(*batch, 5, 3, dtype=dtype), normal(*batch, 3, dtype=dtype)
    C = normal(*batch, *((5, 2) if left else (2, 5)), dtype=dtype)
    weight, found = normal(*C.shape, dtype=dtype), []
    for m in (norch, torch):
        xs = [m.tensor(array, requires_grad=True) for array in (A, tau, C)]
        out = m.ormqr(*xs, left, transpose)
        grads = m.autograd.grad((out * m.tensor(weight)).abs().sum(), xs)
        found.append([x.detach().numpy() for x in (out, *grads)])
    single = dtype in ("float32", "complex64")
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if single else 1e-8, atol=1e-2 if single else 1e-8)


@pytest.mark.parametrize("dtype", DTYPES[1::2])
def test_derivatives_by_finite_differences(dtype: str) -> None:
    A, tau = (norch.tensor(normal(*shape, dtype=dtype), requires_grad=True) for shape in ((2, 4, 3), (2, 2)))
    assert gradcheck(norch.linalg.householder_product, (A, tau))
    assert gradgradcheck(norch.linalg.householder_product, (A, tau), atol=1e-4)
    C = norch.tensor(normal(2, 2, 4, dtype=dtype), requires_grad=True)
    for left, transpose in ((True, False), (True, True), (False, True)):
        inputs = (A, tau, C.mT.detach().requires_grad_() if left else C)
        assert gradcheck(lambda a, t, c, left=left, transpose=transpose: norch.ormqr(a, t, c, left, transpose), inputs)
    assert gradgradcheck(lambda a, t, c: norch.ormqr(a, t, c, False, True), (A, tau, C), atol=1e-4)


def test_a_parametrization_by_reflections() -> None:
    """Q stays orthogonal while its reflections are trained, as torch.nn.utils.parametrizations.orthogonal does it."""
    target, A = norch.eye(4)[:, :2].contiguous(), norch.tensor(normal(4, 2, dtype="float32"), requires_grad=True)
    optimizer, losses = norch.optim.SGD([A], 0.05), []
    for _ in range(40):
        lower = A.tril(-1)
        Q = norch.linalg.householder_product(lower, 2 / (1 + (lower * lower).sum(-2)))
        loss = (Q - target).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert_close(Q.mT @ Q, norch.eye(2), rtol=1e-5, atol=1e-5)
    assert losses[-1] < losses[0]


def test_bad_input() -> None:
    a, tau = norch.geqrf(norch.ones(4, 2, requires_grad=True))
    with pytest.raises(NotImplementedError, match=r"geqrf: has no derivative.*qr"):
        a.sum().backward()
    a, tau = a.detach(), tau.detach()
    with pytest.raises(norch.ShapeError, match=r"householder_product: tau of \(3,\) does not fit .* \(4, 2\)"):
        norch.linalg.householder_product(a, norch.ones(3))
    with pytest.raises(norch.ShapeError, match="householder_product: A of .* more columns than rows"):
        norch.linalg.householder_product(norch.ones(2, 4), norch.ones(2))
    with pytest.raises(norch.DTypeError, match="orgqr|householder_product: expected one dtype"):
        norch.orgqr(a, tau.double())
    with pytest.raises(norch.ShapeError, match=r"ormqr: input of \(4, 2\) does not fit other of \(3, 2\)"):
        norch.ormqr(a, tau, norch.ones(3, 2))
    with pytest.raises(norch.DTypeError, match="geqrf: not defined for dtype int64"):
        norch.geqrf(norch.ones(2, 2, dtype=norch.int64))
    with pytest.raises(TypeError, match="ormqr: expected a tensor, not list"):
        a.ormqr(tau, [[1.0]])
