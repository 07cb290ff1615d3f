"""svd_lowrank and pca_lowrank: of matrices of low rank exact, batched, complex, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import norch
from norch.testing import assert_close, gradcheck

pytest.importorskip("scipy")


def product(*shape: int, rank: int, dtype: str = "float64") -> norch.Tensor:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((*shape[:-1], rank)), rng.standard_normal((*shape[:-2], rank, shape[-1]))
    return norch.tensor(left @ right).to(getattr(norch, dtype))


@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (2, 3, 7, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_matrices_of_low_rank(shape: tuple[int, ...], dtype: str) -> None:
    norch.manual_seed(0)
    A = product(*shape, rank=3, dtype=dtype)
    A = A * (1 + 2j) if A.is_complex() else A
    U, S, V = norch.svd_lowrank(A, q=4)
    assert U.shape == (*shape[:-1], 4) and V.shape == (*shape[:-2], shape[-1], 4)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    assert_close((U * S.unsqueeze(-2)) @ V.mH, A, rtol=tolerance, atol=tolerance)
    assert_close(S[..., :3], norch.linalg.svdvals(A)[..., :3], rtol=tolerance, atol=tolerance)
    M = A.mean(-2, keepdim=True)
    assert_close(norch.svd_lowrank(A, 3, 2, M).S, norch.svd_lowrank(A - M, 3).S, rtol=tolerance, atol=tolerance)


def test_principal_components(torch) -> None:
    A = product(20, 6, rank=6)
    ours, theirs = norch.pca_lowrank(A, q=6), torch.pca_lowrank(torch.tensor(A.numpy()), q=6)
    assert_close(ours.S, norch.tensor(theirs[1].numpy()), rtol=1e-9, atol=1e-9)
    assert_close(ours.V.abs(), norch.tensor(theirs[2].numpy()).abs(), rtol=1e-7, atol=1e-7)
    assert norch.pca_lowrank(A).S.shape == (6,) and norch.pca_lowrank(A[:, :2], center=False).V.shape == (2, 2)


def test_derivative() -> None:
    def values(A: norch.Tensor) -> norch.Tensor:
        norch.manual_seed(0)
        return norch.svd_lowrank(A, 3).S

    assert gradcheck(values, (product(5, 4, rank=3).requires_grad_(),))


def test_errors() -> None:
    with pytest.raises(norch.ArgumentError, match=r"svd_lowrank: q 5 and niter 2 for matrices of shape \(6, 4\)"):
        norch.svd_lowrank(norch.ones(6, 4), q=5)
    with pytest.raises(norch.ShapeError, match="svd_lowrank: needs at least 2 dimensions"):
        norch.svd_lowrank(norch.ones(6))
