"""Decompositions and solvers of complex matrices, and eigenvalues of general ones, against PyTorch and NumPy."""

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch.testing import gradcheck, gradgradcheck

torch = torch_or_skip()
rng = np.random.default_rng(1)


def complex_array(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


A, T, B = complex_array(2, 3, 3), complex_array(2, 4, 3), complex_array(2, 3, 2)
R = rng.standard_normal((2, 3, 3))
W = T.swapaxes(-1, -2).copy()


def positive(n, a):
    return a @ a.mH + n.eye(3)


def by_values(values, left, right, power):
    return (left * values.to(left.dtype)[..., None, :] ** power) @ right


CASES = {
    "solve": (lambda n, a, b: n.linalg.solve(a, b), A, B),
    "solve from the right": (lambda n, a, b: n.linalg.solve(a, b.mT * 1, left=False), A, B),
    "inv": (lambda n, a: n.linalg.inv(a), A),
    "det": (lambda n, a: n.linalg.det(a), A),
    "det of singular matrices": (lambda n, a: n.linalg.det(a * n.tensor([[1.0], [1.0], [0.0]])), A),
    "sign": (lambda n, a: n.linalg.slogdet(a)[0], A),
    "logabsdet": (lambda n, a: n.linalg.slogdet(a)[1], A),
    "logdet": (lambda n, a: n.logdet(a), A),
    "matrix_exp": (lambda n, a: n.linalg.matrix_exp(a), A),
    "solve_triangular": (lambda n, a, b: n.linalg.solve_triangular(a, b, upper=True), A, B),
    "lu_factor": (lambda n, a: n.linalg.lu_factor(a)[0], A),
    "lu": (lambda n, a: n.linalg.lu(a)[1], A),
    "cholesky": (lambda n, a: n.linalg.cholesky(positive(n, a)), A),
    "cholesky upper": (lambda n, a: n.linalg.cholesky(positive(n, a), upper=True), A),
    "cholesky_ex": (lambda n, a: n.linalg.cholesky_ex(positive(n, a))[0], A),
    "cholesky_solve": (lambda n, a, b: n.cholesky_solve(b, n.linalg.cholesky(positive(n, a))), A, B),
    "cholesky_solve, upper": (
        lambda n, a, b: n.cholesky_solve(b, n.linalg.cholesky(positive(n, a), upper=True), upper=True),
        A,
        B,
    ),
    "cholesky_inverse": (lambda n, a: n.cholesky_inverse(n.linalg.cholesky(positive(n, a))), A),
    "qr, Q": (lambda n, a: n.linalg.qr(a)[0], T),
    "qr, R": (lambda n, a: n.linalg.qr(a)[1], T),
    "qr, wide": (lambda n, a: n.linalg.qr(a)[1], W),
    "pinv": (lambda n, a: n.linalg.pinv(a), T),
    "pinv, Hermitian": (lambda n, a: n.linalg.pinv(a + a.mH, hermitian=True), A),
    "svdvals": (lambda n, a: n.linalg.svdvals(a), T),
    "svd, U": (lambda n, a: (lambda u, s, v: by_values(s, u, u.mH, 2))(*n.linalg.svd(a, full_matrices=False)), T),
    "svd, V": (lambda n, a: (lambda u, s, v: by_values(s, v.mH, v, 3))(*n.linalg.svd(a, full_matrices=False)), T),
    "svd, both": (lambda n, a: (lambda u, s, v: by_values(s, u, v, 3))(*n.linalg.svd(a, full_matrices=False)), W),
    "eigvalsh": (lambda n, a: n.linalg.eigvalsh(a + a.mH), A),
    "eigh": (lambda n, a: (lambda w, v: by_values(w, v, v.mH, 3))(*n.linalg.eigh(a + a.mH)), A),
    "nuclear norm": (lambda n, a: n.linalg.matrix_norm(a, "nuc"), T),
    "spectral norm": (lambda n, a: n.linalg.matrix_norm(a, 2), T),
    "eigvals": (lambda n, a: (n.linalg.eigvals(a) ** 3).sum(-1), A),
    "lu_solve": (lambda n, a, b: n.linalg.lu_solve(*n.linalg.lu_factor(a), b), A, B),
    "lu_solve, adjoint": (lambda n, a, b: n.linalg.lu_solve(*n.linalg.lu_factor(a), b, adjoint=True), A, B),
    "lu_solve from the right": (lambda n, a, b: n.linalg.lu_solve(*n.linalg.lu_factor(a), b.mT * 1, left=False), A, B),
    "lstsq": (lambda n, a, b: n.linalg.lstsq(a, b).solution, T, complex_array(2, 4, 2)),
    "lstsq, residuals": (lambda n, a, b: n.linalg.lstsq(a, b, driver="gels").residuals, T, complex_array(2, 4, 2)),
    "cond": (lambda n, a: n.linalg.cond(a), A),
    "cond in the nuclear norm": (lambda n, a: n.linalg.cond(a, "nuc"), A),
    "eigvals of real ones": (lambda n, a: (n.linalg.eigvals(a) ** 3).sum(-1), R),
    "eig, absolute values": (lambda n, a: n.linalg.eig(a)[0].abs().square().sum(-1), A),
    "eig": (lambda n, a: (lambda w, v: v.abs().square() @ w.abs()[..., None])(*n.linalg.eig(a)), A),
    "eig of real ones": (lambda n, a: (lambda w, v: v.abs().square() @ w.abs()[..., None])(*n.linalg.eig(a)), R),
    "eig, back": (lambda n, a: (lambda w, v: by_values(w, v, n.linalg.inv(v), 2))(*n.linalg.eig(a)), R),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name):
    way, *arrays = CASES[name]
    ours, theirs = ([m.tensor(x, requires_grad=True) for x in arrays] for m in (norch, torch))
    y, t = way(norch, *ours), way(torch, *theirs)
    assert y.dtype.name == str(t.dtype).removeprefix("torch.")
    np.testing.assert_allclose(y.detach().numpy(), t.detach().resolve_conj(), 1e-8, 1e-10)
    weight = np.cos(np.arange(t.numel())).reshape(t.shape) * (1 + 0.5j if t.is_complex() else 1)
    y.backward(norch.tensor(weight))
    t.backward(torch.tensor(weight))
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad.dtype is a.dtype
        np.testing.assert_allclose(a.grad.numpy(), b.grad.resolve_conj(), 1e-7, 1e-8)


@pytest.mark.parametrize(
    "name", ["solve", "inv", "det", "sign", "cholesky", "lstsq", "lu_solve", "eigvals of real ones", "eig"]
)
def test_second_derivatives(name):
    way, *arrays = CASES[name]
    given = [norch.tensor(x[:1], requires_grad=True) for x in arrays]
    function = lambda *xs: way(norch, *xs)  # noqa: E731
    assert gradcheck(function, given) and gradgradcheck(function, given, atol=1e-4)


def test_eig_is_always_complex():
    for a in (A, R, R[:0], np.eye(3), np.zeros((0, 0))):
        for dtype in (np.float32, np.complex64) if a.dtype.kind == "f" else (np.complex64,):
            x = norch.tensor(a.astype(dtype))
            w, v = norch.linalg.eig(x)
            assert w.dtype is v.dtype is norch.complex64 and w.shape == a.shape[:-1] and v.shape == a.shape
            assert norch.allclose(x.to(norch.complex64) @ v, v * w[..., None, :], atol=1e-4)
            assert norch.linalg.eigvals(x).shape == w.shape
    with pytest.raises(norch.LinAlgError, match="eig: the matrices hold NaN"):
        norch.linalg.eig(norch.full((2, 2), float("nan")))
    with pytest.raises(norch.ShapeError, match="eigvals: expected square matrices"):
        norch.linalg.eigvals(norch.ones(2, 3))


ILL_DEFINED = {
    "eigh": (lambda n, a: n.linalg.eigh(a + a.mH)[1].sum().abs(), A),
    "eig": (lambda n, a: n.linalg.eig(a)[1].sum().abs(), A),
    "eig of real ones": (lambda n, a: n.linalg.eig(a)[1].sum().abs(), R),
    "svd, U": (lambda n, a: n.linalg.svd(a, full_matrices=False)[0].sum().abs(), T),
    "svd, V": (lambda n, a: n.linalg.svd(a, full_matrices=False)[2].sum().abs(), T),
    "svd, both": (lambda n, a: (lambda u, s, v: (u.sum() + v.sum()).abs())(*n.linalg.svd(a, full_matrices=False)), T),
}


@pytest.mark.parametrize("name", ILL_DEFINED)
def test_losses_that_depend_on_phases_have_no_gradient(name):
    way, array = ILL_DEFINED[name]
    for n in (norch, torch):
        x = n.tensor(array, requires_grad=True)
        with pytest.raises(RuntimeError, match="ill-defined"):
            way(n, x).backward()
        assert x.grad is None


def test_svd_under_its_old_name():
    U, S, V = norch.svd(norch.tensor(T))
    assert norch.allclose((U * S[..., None, :]) @ V.mH, norch.tensor(T))


def test_rank_and_condition_of_empty_and_singular_matrices():
    for n, x in ((norch, norch.tensor(A)), (torch, torch.tensor(A))):
        assert n.linalg.matrix_rank(x).tolist() == [3, 3]
        assert n.linalg.matrix_rank(x[:, :1].mH @ x[:, :1]).tolist() == [1, 1]
        assert n.linalg.matrix_rank(x + x.mH, hermitian=True).tolist() == [3, 3]
        assert n.linalg.cond(x[:, :0, :0]).dtype is n.float64 and n.linalg.cond(x[:0]).shape == (0,)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    b = complex_array(2, 4, 2)
    ours = norch.linalg.lstsq(norch.tensor(T), norch.tensor(b), driver=driver)
    theirs = torch.linalg.lstsq(torch.tensor(T), torch.tensor(b), driver=driver)
    np.testing.assert_allclose(ours.solution.numpy(), theirs.solution)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype.name == str(b.dtype).removeprefix("torch.")
    assert ours.rank.tolist() == theirs.rank.tolist()
    np.testing.assert_allclose(ours.singular_values.numpy(), theirs.singular_values)
    assert ours.residuals.shape == (2, 2)
    if driver != "gelsy":  # of which PyTorch gives none
        vectors = complex_array(2, 4)
        for m in (torch, norch):
            assert m.linalg.lstsq(m.tensor(T), m.tensor(vectors), driver=driver).residuals.shape == (2, 1)


def test_dtypes_in_messages():
    with pytest.raises(norch.DTypeError, match="inv: not defined for dtype int64, .* complex64 and complex128"):
        norch.linalg.inv(norch.eye(2, dtype=norch.int64))
