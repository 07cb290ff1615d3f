"""How norch.linalg reaches LAPACK: routines on the memory of tensors, NumPy's ufuncs, and what is done without them."""

import subprocess
import sys

import numpy as np
import pytest

import norch
from norch._binding.library import lib
from norch.ops.linalg import lapack

pytest.importorskip("scipy")

DTYPES = [norch.float32, norch.float64, norch.complex64, norch.complex128]
N, K = 5, 2


def drawn(*shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.is_complex else 0)
    return norch.tensor(parts, dtype=dtype)


def positive(x):
    return x @ x.mH + N * norch.eye(N, dtype=x.dtype)


def close(found, wanted, dtype):
    bound = 1e-4 if dtype in (norch.float32, norch.complex64) else 1e-10
    np.testing.assert_allclose(found.numpy(), wanted, bound, bound)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "steps": lambda x: norch.stack([x, x], -1)[..., 0],
    "one matrix": lambda x: x[0],
    "four axes": lambda x: x[None],
    "no matrix": lambda x: x[:0],
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_those_of_numpy_and_inputs_stay(layout, dtype):
    A = LAYOUTS[layout](drawn(3, N, N, dtype=dtype))
    B, spd = (
        LAYOUTS[layout](drawn(3, N, K, dtype=dtype, seed=1)),
        LAYOUTS[layout](positive(drawn(3, N, N, dtype=dtype))),
    )
    before = [x.clone() for x in (A, B, spd)]
    a, b, p = (x.numpy() for x in before)
    LU, pivots = norch.linalg.lu_factor(A)
    L = norch.linalg.cholesky(spd)
    close(L, np.linalg.cholesky(p), dtype)
    close(norch.cholesky_inverse(L), np.linalg.inv(p), dtype)
    close(norch.cholesky_inverse(L.mH, upper=True), np.linalg.inv(p), dtype)
    close(norch.linalg.lu_solve(LU, pivots, B), np.linalg.solve(a, b), dtype)
    adjoint = np.swapaxes(a, -1, -2).conj()
    close(norch.linalg.lu_solve(LU, pivots, B, adjoint=True), np.linalg.solve(adjoint, b), dtype)
    P, lower, upper = norch.linalg.lu(A)
    close(P @ lower @ upper, a, dtype)
    close(norch.linalg.solve_triangular(L, B, upper=False), np.linalg.solve(np.linalg.cholesky(p), b), dtype)
    for tall in (A, B, B.mT):
        for mode in ("reduced", "complete"):
            Q, R = norch.linalg.qr(tall, mode)
            close(Q @ R, tall.numpy(), dtype)
            close(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*tall.shape[:-2], Q.shape[-1], Q.shape[-1])), dtype)
            assert np.count_nonzero(np.tril(R.numpy(), -1)) == 0
    reflections, tau = norch.geqrf(B)
    close(norch.linalg.householder_product(reflections, tau) @ reflections[..., :K, :].triu(), b, dtype)
    close(norch.ormqr(reflections, tau, B, transpose=True)[..., :K, :].triu(), reflections[..., :K, :].triu(), dtype)
    for x, old in zip((A, B, spd), before):
        assert x.equal(old)
    for x in (L, LU, Q, R, P, reflections):
        assert x.is_contiguous()


def test_batches_broadcast_and_their_gradients_are_summed():
    A, B = drawn(N, N, dtype=norch.float64), drawn(3, N, K, dtype=norch.float64, seed=1)
    LU, pivots = norch.linalg.lu_factor(A)
    found = []
    for solve in (
        lambda x: norch.linalg.lu_solve(x, pivots, B),
        lambda x: norch.stack([norch.linalg.lu_solve(x, pivots, b) for b in B]),
    ):
        x = LU.clone().requires_grad_()
        out = solve(x)
        out.square().sum().backward()
        found.append((out, x.grad))
    for one, other in zip(*found):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), 1e-12)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", [norch.float64, norch.complex128], ids=str)
def test_derivatives(dtype, adjoint):
    A, B = drawn(2, 3, 3, dtype=dtype), drawn(2, 3, 2, dtype=dtype, seed=1)
    LU, pivots = norch.linalg.lu_factor(A)
    inputs = [x.clone().requires_grad_() for x in (LU, B)]
    assert norch.autograd.gradcheck(lambda x, b: norch.linalg.lu_solve(x, pivots, b, adjoint=adjoint), inputs)
    assert norch.autograd.gradcheck(lambda x: norch.cholesky_inverse(x.tril()), [inputs[0]])
    reflections, tau = norch.geqrf(A[..., :2])
    inputs = [x.clone().requires_grad_() for x in (reflections, tau)]
    assert norch.autograd.gradcheck(norch.linalg.householder_product, inputs)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_nan_is_not_positive_and_the_place_is_told(shape):
    A = norch.eye(3).expand(shape).clone()
    A.reshape(-1, 3, 3)[-1, 1, 1] = float("nan")
    with pytest.raises(norch.LinAlgError, match="leading minor of order 2"):
        norch.linalg.cholesky(A)
    L, info = norch.linalg.cholesky_ex(A)
    assert info.flatten()[-1] == 2 and L.isnan().any()


def test_what_is_refused():
    LU = norch.eye(3)
    for pivots in ([1, 2, 4], [0, 2, 3]):
        with pytest.raises(ValueError, match="pivots lie from 1 to 3"):
            norch.linalg.lu_solve(LU, norch.tensor(pivots, dtype=norch.int32), norch.ones(3, 1))
    with pytest.raises(norch.LinAlgError, match="element 2 of a diagonal"):
        norch.cholesky_inverse(norch.tensor([[1.0, 0.0], [0.0, 0.0]]))


def test_the_builtin_takes_what_the_signature_says():
    potrf, x, info = lapack._function("potrf", norch.float32.code), norch.eye(2), norch.zeros((), dtype=norch.int32)
    assert lib.norch_lapack(potrf, 1, "U", 2, x, 2, info) is None
    wrong = [
        (),
        (potrf,),
        (3, 1, "U", 2, x, 2, info),
        (potrf, 1, "U", 2, x, 2),
        (potrf, 1, 2, "U", x, 2, info),
        (potrf, 1, "U", 2, info, 2, info),
        (potrf, 1, "U", 2, x, 2, x),
        (potrf, 1, "U", 2, norch.ones(2, 4)[:, ::2], 2, info),
        (potrf, 1, "U", 2, (), 2, info),
        (potrf, 1, "U", 1 << 40, x, 2, info),
        (potrf, "1", "U", 2, x, 2, info),
        (potrf, 1, "U", 2, norch.ones(2, 2, device="meta"), 2, info),
    ]
    for given in wrong:
        with pytest.raises((TypeError, ValueError, IndexError, OverflowError)):
            lib.norch_lapack(*given)


@pytest.fixture
def fresh():
    """What is found once is found again, before and after the test."""
    found = (lapack.ufunc, lapack.has_scipy, lapack.scipy_linalg, lapack._function)
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


CALLS = {
    "cholesky": lambda x: norch.linalg.cholesky(x),
    "qr": lambda x: norch.linalg.qr(x)[1].abs(),
    "eigh": lambda x: norch.linalg.eigh(x)[0],
    "eigvalsh": lambda x: norch.linalg.eigvalsh(x, "U"),
    "svd": lambda x: norch.linalg.svd(x)[1],
    "svdvals": lambda x: norch.linalg.svdvals(x),
    "inv": lambda x: norch.linalg.inv(x),
    "solve": lambda x: norch.linalg.solve(x, x),
    "slogdet": lambda x: norch.linalg.slogdet(x)[1],
    "det": lambda x: norch.linalg.det(x),
    "eigvals": lambda x: norch.linalg.eigvals(x).real.sort().values,
    "pinv": lambda x: norch.linalg.pinv(x),
}


@pytest.mark.parametrize("absent", ["scipy", "ufuncs"])
@pytest.mark.parametrize("name", CALLS)
def test_without_scipy_or_the_ufuncs_numpys_functions_are_called(name, absent, monkeypatch, fresh):
    x = positive(drawn(2, N, N, dtype=norch.float64)).requires_grad_()
    wanted = CALLS[name](x).detach()
    for function in (lapack.ufunc, lapack.has_scipy, lapack.scipy_linalg, lapack._function):
        function.cache_clear()
    if absent == "scipy":
        monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    else:
        monkeypatch.delattr(np.linalg, "_umath_linalg")
    np.testing.assert_allclose(CALLS[name](x).detach().numpy(), wanted.numpy(), 1e-10)


@pytest.mark.parametrize(
    "call", ["linalg.svdvals(x)", "linalg.cholesky(x)", "linalg.lu(x)", "linalg.inv(x)", "fft.fft(x)"]
)
def test_the_first_call_of_a_process(call):
    """NumPy is found by the call itself."""
    program = f"import norch; x = norch.eye(2); norch.{call}"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["inv", "solve"])
def test_singular_matrices_are_named_without_a_warning(name, recwarn):
    A = norch.stack([norch.eye(3), norch.zeros(3, 3)])
    with pytest.raises(norch.LinAlgError, match=r"matrix 1 of the batch is singular"):
        norch.linalg.inv(A) if name == "inv" else norch.linalg.solve(A, A)
    assert not recwarn.list


def test_a_recording_refuses_it():
    call = norch.capture(lambda x: norch.linalg.cholesky(x) + 1)
    with pytest.raises(norch.CaptureError, match="LAPACK reads the elements of a tensor; call it outside"):
        for _ in range(4):
            call(norch.eye(2))


LARGE = [(65, 16), (100, 100), (200, 33), (97, 300)]


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
@pytest.mark.parametrize("n,k", LARGE)
def test_large_systems_are_solved_by_halves(n, k, dtype):
    A, B = drawn(n, n, dtype=dtype) / n**0.5 + 3 * norch.eye(n, dtype=dtype), drawn(n, k, dtype=dtype, seed=1)
    a, b = A.double().numpy(), B.double().numpy()
    for upper in (False, True):
        for unit in (False, True):
            t = np.triu(a) if upper else np.tril(a)
            t[np.diag_indices(n)] = 1 if unit else t.diagonal()
            for given in (A, A.mT.contiguous().mT):
                found = norch.linalg.solve_triangular(given, B, upper=upper, unitriangular=unit)
                close(found, np.linalg.solve(t, b), dtype)
            found = norch.linalg.solve_triangular(A, B.mT, upper=upper, unitriangular=unit, left=False)
            close(found, np.linalg.solve(t.T, b).T, dtype)
    factors, wanted, of_transpose = norch.linalg.lu_factor(A), np.linalg.solve(a, b), np.linalg.solve(a.T, b)
    close(norch.linalg.solve(A, B), wanted, dtype)
    close(norch.linalg.lu_solve(*factors, B), wanted, dtype)
    close(norch.linalg.lu_solve(*factors, B, adjoint=True), of_transpose, dtype)
    close(norch.linalg.lu_solve(*factors, B.mT, left=False), of_transpose.T, dtype)
    close(norch.linalg.inv(A), np.linalg.inv(a), dtype)
    both = norch.vmap(norch.linalg.solve)(norch.stack([A, A.mT]), norch.stack([B, B]))
    close(both, np.stack([wanted, of_transpose]), dtype)


def test_large_singular_systems_and_nan():
    for solve in (lambda x: norch.linalg.solve(x, norch.ones(70, 20, device=x.device)), norch.linalg.inv):
        with pytest.raises(norch.linalg.LinAlgError, match="the matrix is singular"):
            solve(norch.zeros(70, 70))
        broken = norch.eye(70)
        broken[3, 4] = norch.nan
        assert solve(broken).isnan().all()
        assert solve(norch.eye(70, device="meta")).shape[0] == 70
