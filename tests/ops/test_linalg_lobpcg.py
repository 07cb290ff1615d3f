"""lobpcg: eigenvalues and vectors at both ends of the spectrum, against PyTorch, eigh and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import norch
from norch.testing import assert_close, gradcheck, gradgradcheck

pytest.importorskip("scipy")
RNG = np.random.default_rng(4)


def positive(*shape: int) -> np.ndarray:
    """Symmetric positive definite, of eigenvalues well apart."""
    q = np.linalg.qr(RNG.standard_normal(shape))[0]
    return (q * np.arange(1.0, shape[-1] + 1) ** 2) @ q.swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("generalised", [False, True])
@pytest.mark.parametrize("shape", [(12, 12), (2, 3, 12, 12)])
def test_values_and_vectors_are_pytorchs(torch, dtype: str, largest, generalised: bool, shape) -> None:
    a, b = positive(*shape).astype(dtype), (positive(*shape) if generalised else None)
    b = None if b is None else (np.eye(12) * 50 + b).astype(dtype)
    x = RNG.standard_normal((*shape[:-1], 3)).astype(dtype)
    found = []
    for m in (norch, torch):
        B = None if b is None else m.tensor(b)
        found.append(m.lobpcg(m.tensor(a), k=2, B=B, X=m.tensor(x), largest=largest, method="ortho"))
    (E, X), (theirs, vectors) = found
    tolerance = 1e-2 if dtype == "float32" else 1e-4
    assert E.shape == (*shape[:-2], 2) and X.shape == (*shape[:-2], 12, 2) and X.dtype.name == E.dtype.name == dtype
    assert_close(E, norch.tensor(theirs.numpy()), rtol=tolerance, atol=tolerance)
    assert_close(X.abs(), norch.tensor(vectors.numpy()).abs(), rtol=tolerance, atol=tolerance)
    left = X.mT if b is None else X.mT @ norch.tensor(b)
    assert_close(left @ X, norch.eye(2, dtype=X.dtype).expand(*shape[:-2], 2, 2), rtol=1e-3, atol=1e-3)


def test_random_start_and_preconditioner() -> None:
    norch.manual_seed(0)
    A = norch.tensor(positive(30, 30))
    values = norch.linalg.eigvalsh(A)
    assert_close(norch.lobpcg(A)[0], values[-1:], rtol=1e-6, atol=1e-6)
    assert_close(norch.lobpcg(A, k=2, n=4, largest=False, niter=-1)[0], values[:2], rtol=1e-6, atol=1e-6)
    start = norch.randn(30, 1, dtype=norch.float64)
    (E, _), (worse, _) = (
        norch.lobpcg(A, X=start, iK=iK, largest=False, niter=3, tol=1e-12) for iK in (norch.linalg.inv(A), None)
    )
    assert abs(E - values[0]).item() < 0.1 * abs(worse - values[0]).item()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape", [(7, 7), (2, 6, 6)])
def test_derivatives_by_finite_differences(largest: bool, shape) -> None:
    A = norch.tensor(positive(*shape), requires_grad=True)
    start = norch.tensor(np.linalg.eigh(A.detach().numpy())[1][..., [-1, -2] if largest else [0, 1]])

    def pairs(A: norch.Tensor):
        E, X = norch.lobpcg((A + A.mT) / 2, X=start, tol=1e-13, largest=largest)
        return E, X * (X * start).sum(-2, keepdim=True).sign()

    assert gradcheck(pairs, (A,), eps=1e-5, atol=1e-4)
    assert gradgradcheck(pairs, (A,), eps=1e-5, atol=1e-3)


def test_gradients_are_pytorchs(torch) -> None:
    a, found = positive(9, 9), []
    x, weight = RNG.standard_normal((9, 2)), RNG.standard_normal((9, 2))
    for m in (norch, torch):
        A = m.tensor(a, requires_grad=True)
        E, X = m.lobpcg(A, X=m.tensor(x), tol=1e-10)
        ((X * m.tensor(weight)).sum(0).square().sum() + (E * E).sum()).backward()
        found.append(A.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


def test_bad_input() -> None:
    A = norch.eye(9)
    with pytest.raises(norch.ArgumentError, match="lobpcg: 9 rows are fewer than 3 times the 4 vectors"):
        norch.lobpcg(A, k=4)
    with pytest.raises(norch.ArgumentError, match="lobpcg: k 3 of n 2 vectors in 1000 steps"):
        norch.lobpcg(A, k=3, n=2)
    with pytest.raises(norch.ShapeError, match=r"lobpcg: X of \(8, 2\) does not fit A of \(9, 9\)"):
        norch.lobpcg(A, X=norch.ones(8, 2))
    with pytest.raises(norch.ArgumentError, match="lobpcg: no derivative with B="):
        norch.lobpcg(A.requires_grad_(), B=norch.eye(9))
    A = A.detach()
    with pytest.raises(NotImplementedError, match="lobpcg: SciPy's has no tracker="):
        norch.lobpcg(A, tracker=print)
    with pytest.raises(norch.ArgumentError, match="lobpcg: method is 'ortho' or 'basic', not 'x'"):
        norch.lobpcg(A, method="x")
    with pytest.raises(norch.DTypeError, match="lobpcg: complex64 is not supported"):
        norch.lobpcg(A.to(norch.complex64))
    with pytest.raises(norch.LinAlgError, match="lobpcg: .*NaN"):
        norch.lobpcg(A / 0)
    with pytest.raises(norch.LinAlgError, match="lobpcg: Linearly dependent initial approximations"):
        norch.lobpcg(norch.eye(30), X=norch.zeros(30, 2))
    with pytest.raises(norch.LinAlgError, match="lobpcg: "):
        norch.lobpcg(A, B=-A)
