"""norch.linalg's decompositions, solvers, inverses: values against their definitions and PyTorch, derivatives of both
orders by finite differences and against PyTorch, batches, empty and singular matrices, bad input."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    """Positive definite, well apart from singular."""
    a = normal(*shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])


def symmetric(a):
    return (a + a.mT) / 2


def product(found):
    """U Vh of an SVD, which does not depend on the signs of their columns."""
    return found[0] @ found[2], found[1]


# name: (function of the module and tensors, lists of inputs)
CASES = {
    "cholesky": (lambda m, a: m.linalg.cholesky(symmetric(a)), [positive(3, 3)], [positive(2, 4, 4)]),
    "cholesky upper": (lambda m, a: m.linalg.cholesky(symmetric(a), upper=True), [positive(3, 3)]),
    "cholesky_ex": (lambda m, a: m.linalg.cholesky_ex(symmetric(a))[0], [positive(3, 3)]),
    "solve": (
        lambda m, a, b: m.linalg.solve(a, b),
        *([normal(3, 3), normal(3, 2)], [normal(2, 3, 3), normal(3, 2)], [normal(3, 3), normal(3)]),
        *([normal(4, 3, 3), normal(4, 3)], [normal(3, 3), normal(2, 3, 1)]),
    ),
    "solve from the right": (lambda m, a, b: m.linalg.solve(a, b, left=False), [normal(3, 3), normal(2, 3)]),
    "solve_ex": (lambda m, a, b: m.linalg.solve_ex(a, b)[0], [normal(3, 3), normal(3, 2)]),
    "solve_triangular upper": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=True),
        *([positive(3, 3), normal(3, 2)], [positive(2, 3, 3), normal(3, 2)]),
    ),
    "solve_triangular lower": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
        [positive(3, 3), normal(4, 3, 2)],
    ),
    "solve_triangular of unit diagonal": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [positive(3, 3), normal(2, 3)],
    ),
    "inv": (lambda m, a: m.linalg.inv(a), [normal(3, 3)], [normal(2, 2, 3, 3)]),
    "inv_ex": (lambda m, a: m.linalg.inv_ex(a)[0], [normal(3, 3)]),
    "tensorinv": (lambda m, a: m.linalg.tensorinv(a, ind=1), [normal(6, 2, 3)]),
    "tensorsolve": (lambda m, a, b: m.linalg.tensorsolve(a, b), [normal(2, 3, 6), normal(2, 3)]),
    "det": (lambda m, a: m.linalg.det(a), [normal(3, 3)], [normal(2, 4, 4)], [normal(1, 1)]),
    "det of a singular matrix": (lambda m, a: m.linalg.det(a), [np.array([[1.0, 2, 3], [4, 5, 6], [5, 7, 9]])]),
    "slogdet": (lambda m, a: m.linalg.slogdet(a)[1], [normal(3, 3)], [normal(2, 4, 4)]),
    "logdet": (lambda m, a: m.logdet(a), [positive(3, 3)]),
    "qr": (lambda m, a: m.linalg.qr(a), [normal(3, 3)], [normal(5, 3)], [normal(3, 5)], [normal(2, 4, 3)]),
    "qr complete": (lambda m, a: m.linalg.qr(a, mode="complete"), [normal(3, 3)], [normal(3, 5)]),
    "R of qr": (lambda m, a: m.linalg.qr(a)[1], [normal(5, 3)], [normal(3, 5)]),
    "svd": (
        lambda m, a: product(m.linalg.svd(a, full_matrices=False)),
        *([normal(3, 3)], [normal(5, 3)], [normal(3, 5)], [normal(2, 4, 3)]),
    ),
    "vectors of svd": (lambda m, a: abs(m.linalg.svd(a, full_matrices=False)[2]), [normal(5, 3)], [normal(3, 5)]),
    "svdvals": (lambda m, a: m.linalg.svdvals(a), [normal(3, 3)], [normal(2, 5, 3)], [normal(3, 5)]),
    "eigh": (lambda m, a: tuple(map(abs, m.linalg.eigh(symmetric(a)))), [normal(3, 3)], [normal(2, 4, 4)]),
    "eigvalsh": (lambda m, a: m.linalg.eigvalsh(symmetric(a), UPLO="U"), [normal(3, 3)]),
    "pinv": (lambda m, a: m.linalg.pinv(a), [normal(3, 3)], [normal(5, 3)], [normal(2, 3, 5)]),
    "pinv of symmetric": (lambda m, a: m.linalg.pinv(symmetric(a), hermitian=True), [normal(3, 3)]),
    "lstsq": (
        lambda m, a, b: m.linalg.lstsq(a, b)[0],
        *([normal(5, 3), normal(5, 2)], [normal(2, 3, 5), normal(2, 3, 1)], [normal(4, 4), normal(4, 2)]),
    ),
    "residuals": (lambda m, a, b: m.linalg.lstsq(a, b, driver="gelsd")[1], [normal(5, 3), normal(5, 2)]),
    "matrix_exp": (lambda m, a: m.linalg.matrix_exp(a), [normal(3, 3)], [normal(2, 2, 2)]),
    "lu": (lambda m, a: m.linalg.lu(a)[1:], [normal(3, 3)], [normal(5, 3)], [normal(3, 5)], [normal(2, 4, 3)]),
    "lu_factor": (lambda m, a: m.linalg.lu_factor(a)[0], [normal(3, 3)], [normal(5, 3)], [normal(3, 5)]),
    "lu_solve": (
        lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b),
        *([normal(3, 3), normal(3, 2)], [normal(2, 3, 3), normal(2, 3, 2)]),
    ),
    "lu_solve transposed": (
        lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b, left=False, adjoint=True),
        [normal(3, 3), normal(2, 3)],
    ),
    "cholesky_solve": (
        lambda m, b, a: m.cholesky_solve(b, m.cholesky(symmetric(a), upper=True), upper=True),
        [normal(3, 2), positive(3, 3)],
    ),
    "cholesky_inverse": (lambda m, a: m.cholesky_inverse(m.cholesky(symmetric(a))), [positive(3, 3)]),
    "cond": (lambda m, a: m.linalg.cond(a), [normal(3, 3)], [normal(2, 4, 3)]),
    "norm 2": (lambda m, a: m.linalg.matrix_norm(a, 2), [normal(3, 4)], [normal(2, 3, 3)]),
    "norm -2": (lambda m, a: m.linalg.matrix_norm(a, -2, dim=(0, 2), keepdim=True), [normal(3, 2, 4)]),
    "norm 2.5, no axes": (lambda m, a: m.linalg.vector_norm(a, 2.5, dim=()), [normal(3, 4)]),
    "nuclear norm": (lambda m, a: m.linalg.norm(a, "nuc"), [normal(3, 4)]),
    "nuclear norm along two axes": (lambda m, a: m.norm(a, "nuc", dim=(0, -1)), [normal(3, 2, 4)]),
    "nuclear norm, axes kept": (lambda m, a: m.norm(a, "nuc", keepdim=True), [normal(3, 4)]),
    "matrix_power": (lambda m, a: m.linalg.matrix_power(a, -2), [normal(3, 3)]),
}
ROWS = [(name, k) for name, (_, *inputs) in CASES.items() for k in range(len(inputs))]


def outputs(function, *tensors):
    found = function(*tensors)
    return tuple(found) if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("name", "k"), ROWS)
def test_derivatives_by_finite_differences(name, k):
    function, *inputs = CASES[name]
    xs = [norch.tensor(a, requires_grad=True) for a in inputs[k]]
    assert gradcheck(lambda *xs: outputs(function, norch, *xs), xs, eps=1e-6, atol=1e-5)
    assert gradgradcheck(lambda *xs: outputs(function, norch, *xs), xs, eps=1e-6, atol=1e-4)


@pytest.mark.parametrize(("name", "k"), ROWS)
def test_values_and_gradients_are_pytorchs(name, k):
    torch = torch_or_skip()
    function, *inputs = CASES[name]
    found = []
    for m in (norch, torch):
        xs = [m.tensor(a, requires_grad=True) for a in inputs[k]]
        outs = outputs(function, m, *xs)
        whole = sum((out * m.tensor(np.cos(np.arange(out.numel())).reshape(tuple(out.shape)))).sum() for out in outs)
        grads = m.autograd.grad(whole, xs, create_graph=True)  # without it PyTorch's of a singular det is 0
        found.append([x.detach().numpy() for x in (*outs, *grads)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (2, 0, 0), (0, 0)])
@pytest.mark.parametrize(
    "function",
    "inv det slogdet svdvals eigvalsh matrix_exp pinv lu qr eigh svd cond matrix_rank lu_factor_ex inv_ex cholesky_ex"
    "".split(),
)
def test_shapes_and_dtypes_are_pytorchs(function, shape, dtype):
    torch = torch_or_skip()
    a = positive(*shape).astype(dtype)
    ours, theirs = (outputs(getattr(m.linalg, function), m.tensor(a)) for m in (norch, torch))
    for x, y in zip(ours, theirs, strict=True):
        assert (tuple(x.shape), x.dtype.name) == (tuple(y.shape), str(y.dtype).removeprefix("torch."))
        if function not in ("qr", "eigh", "svd"):  # whose signs are LAPACK's to choose
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-6)


def test_factors_multiply_to_the_matrix():
    for shape in ((3, 3), (5, 3), (3, 5), (2, 4, 3)):
        a = norch.tensor(normal(*shape))
        P, L, U = norch.linalg.lu(a)
        Q, R = norch.linalg.qr(a, mode="complete")
        u, s, vh = norch.linalg.svd(a, full_matrices=False)
        for whole in (P @ L @ U, Q @ R, (u * s[..., None, :]) @ vh):
            norch.testing.assert_close(whole, a)
        assert norch.linalg.qr(a, mode="r")[0].numel() == 0
        norch.testing.assert_close(norch.lu_unpack(*norch.lu(a))[1], L)
        norch.testing.assert_close(norch.svd(a).V.mT, vh)


@pytest.mark.parametrize("name", CASES)
def test_results_have_memory_of_their_own(name):
    """What is written to them changes no input."""
    function, *inputs = CASES[name]
    for given in inputs:
        tensors = [norch.tensor(x) for x in given]
        found = function(norch, *tensors)
        for out in found if isinstance(found, tuple) else (found,):
            if isinstance(out, norch.Tensor):
                out.fill_(7)
        for x, before in zip(tensors, given, strict=True):
            np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 3), (0, 2, 2), (2, 0, 0)])
def test_values_without_vectors_are_those_beside_vectors(shape):
    """eigvalsh() and svdvals() leave vectors out where no gradient is recorded."""
    a = norch.tensor(normal(*shape))
    for function, whole in ((norch.linalg.eigvalsh, norch.linalg.eigh), (norch.linalg.svdvals, norch.linalg.svd)):
        expected = whole(a)[function is norch.linalg.svdvals]
        for x in (a, a.clone().requires_grad_()):
            norch.testing.assert_close(function(x).detach(), expected)
        with norch.no_grad():
            norch.testing.assert_close(function(a.clone().requires_grad_()), expected)
        with pytest.raises(norch.errors.Error, match=whole.__name__):
            function(norch.full((2, 2), float("nan")))


def test_degenerate_cases():
    singular = norch.ones(2, 2)
    assert norch.linalg.det(singular).item() == 0
    assert norch.linalg.slogdet(singular) == (0, -float("inf"))
    assert norch.linalg.cond(singular, 1).item() == float("inf")
    assert norch.linalg.cond(singular, "nuc").item() > 1e6
    assert norch.linalg.matrix_rank(singular).item() == 1
    both = norch.stack([norch.eye(2), singular])
    inverse, info = norch.linalg.inv_ex(both)
    assert info.tolist() == [0, 2] and inverse[0].equal(norch.eye(2)) and inverse[1].isnan().all()
    factor, info = norch.linalg.cholesky_ex(norch.stack([norch.eye(2), -singular]))
    assert info.tolist() == [0, 1] and factor[0].equal(norch.eye(2)) and factor[1].isnan().all()
    nans = norch.full((2, 2), float("nan"))
    factor, info = norch.linalg.cholesky_ex(norch.stack([norch.eye(2), nans]))
    assert info.tolist() == [0, 1] and factor[0].equal(norch.eye(2)) and factor[1].isnan().all()
    assert norch.linalg.cholesky_ex(norch.tensor([[1.0, 0.0], [float("nan"), 1.0]])).info.item() == 2
    assert norch.linalg.cholesky(norch.zeros(2, 0, 0)).shape == (2, 0, 0)
    assert norch.logdet(-norch.eye(3)).isnan() and norch.logdet(singular).item() == -float("inf")
    nan = norch.tensor([[float("nan"), 1], [1, 1]])
    assert norch.linalg.inv(nan).isnan().all() and norch.linalg.det(nan).isnan()
    assert norch.linalg.solve_triangular(norch.zeros(1, 1), norch.ones(1, 1), upper=True).item() == float("inf")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
@pytest.mark.parametrize("dtype", [norch.float64, norch.complex128])
def test_numbers_that_overflow_give_no_warning(dtype, value):
    x = norch.full((3, 3), value, dtype=dtype)
    for function in ("det", "slogdet", "inv", "svdvals", "eigvals", "qr", "lu"):
        try:
            getattr(norch.linalg, function)(x)
        except norch.LinAlgError:
            pass


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_gradients_of_large_exponentials_keep_their_digits(scale):
    """Of tr(exp(A)^2), which is tr exp(2A) for symmetric A; PyTorch's lose theirs."""
    values, V = np.linalg.eigh(positive(2, 4, 4) * scale)
    x = norch.tensor((V * values[:, None]) @ V.swapaxes(-1, -2), requires_grad=True)
    (grad,) = norch.autograd.grad(norch.linalg.matrix_exp(x).square().sum(), x, create_graph=True)
    (second,) = norch.autograd.grad(grad.square().sum(), x)
    for found, power, factor in ((grad, 2, 2), (second, 4, 16)):
        expected = (V * factor * np.exp(power * values)[:, None]) @ V.swapaxes(-1, -2)
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-10 * abs(expected).max())
    x = norch.zeros(2, 0, 0, requires_grad=True)
    norch.linalg.matrix_exp(x).sum().backward()
    assert x.grad.shape == x.shape


def test_a_gradient_of_equal_eigenvalues():
    """The values have one where the vectors have none."""
    x = norch.eye(3).requires_grad_()
    norch.linalg.eigvalsh(x).sum().backward()
    assert x.grad.equal(norch.eye(3))
    x.grad = None
    norch.linalg.svdvals(x).sum().backward()
    assert x.grad.allclose(norch.eye(3))


def solve_by_pivots(pivots):
    kind = np.float64 if isinstance(pivots[0], float) else np.int32
    norch.linalg.lu_solve(norch.eye(2), norch.tensor(np.array(pivots, kind)), norch.ones(2, 1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: norch.linalg.inv(norch.ones(2, 3)), ValueError, r"inv: expected square matrices, got shape \(2, 3\)"),
        (lambda: norch.linalg.inv(norch.ones(3)), ValueError, "inv: needs at least 2 dimensions"),
        (lambda: norch.linalg.det([[1.0]]), TypeError, "det: expected a tensor, not list"),
        (lambda: norch.linalg.svd(norch.ones(2, 2, dtype=norch.int64)), TypeError, "svd: not defined for dtype int64"),
        (lambda: norch.linalg.qr(norch.ones(2, 2).half()), TypeError, "qr: not defined for dtype float16"),
        (lambda: norch.linalg.qr(norch.ones(2, 2), mode="full"), ValueError, "qr: mode is"),
        (
            lambda: norch.linalg.solve(norch.eye(2), norch.ones(3, 1)),
            ValueError,
            r"\(2, 2\) does not fit B of \(3, 1\)",
        ),
        (lambda: norch.linalg.solve(norch.eye(2), norch.ones(2).double()), TypeError, "solve: expected one dtype"),
        (
            lambda: norch.linalg.solve(norch.zeros(2, 2, 2), norch.ones(2, 2, 2)),
            norch.linalg.LinAlgError,
            "matrix 0 of",
        ),
        (lambda: norch.linalg.inv(norch.ones(2, 2)), RuntimeError, "inv: the matrix is singular"),
        (lambda: norch.linalg.cholesky(-norch.eye(2)), norch.linalg.LinAlgError, "leading minor of order 1"),
        (lambda: norch.linalg.cholesky(norch.tensor([[float("nan")]])), norch.LinAlgError, "leading minor of order 1"),
        (lambda: solve_by_pivots([0, 2]), ValueError, "lu_solve: pivots lie from 1 to 2, got 0 to 2"),
        (lambda: solve_by_pivots([1, 7]), ValueError, "lu_solve: pivots lie from 1 to 2, got 1 to 7"),
        (lambda: solve_by_pivots([1]), ValueError, r"lu_solve: pivots of \(1,\) do not fit LU of \(2, 2\)"),
        (lambda: solve_by_pivots([1.0, 2.0]), TypeError, "lu_solve: the pivots must be int32, got float64"),
        (lambda: norch.linalg.svd(norch.tensor([[float("nan")]])), norch.linalg.LinAlgError, "svd: "),
        (lambda: norch.linalg.lu_factor(norch.ones(2, 2)), norch.linalg.LinAlgError, r"U\[1, 1\] is zero"),
        (lambda: norch.linalg.eigh(norch.eye(2), UPLO="X"), ValueError, "UPLO"),
        (lambda: norch.linalg.lstsq(norch.eye(2), norch.ones(3, 1)), ValueError, "lstsq: A of"),
        (lambda: norch.linalg.lstsq(norch.eye(2), norch.ones(2, 1), driver="x"), ValueError, "lstsq: driver"),
        (lambda: norch.linalg.lstsq(norch.eye(2), norch.ones(2, 1), float("nan")), ValueError, "rcond must be finite"),
        (
            lambda: norch.linalg.svdvals(norch.tensor([[float("inf"), 1.0], [1.0, 1.0]])),
            RuntimeError,
            "svd: the matrices hold",
        ),
        (lambda: norch.linalg.eigvalsh(norch.eye(2) / 0), RuntimeError, "eigh: the matrices hold NaN or infinities"),
        (lambda: norch.linalg.lstsq(norch.eye(2) / 0, norch.ones(2, 1), driver="gelsd"), RuntimeError, "hold NaN or"),
        (lambda: norch.linalg.ldl_factor, AttributeError, "linear algebra"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_of_no_right_side_print_nothing(driver, capfd):
    found = norch.linalg.lstsq(norch.ones(3, 2), norch.ones(3, 0), driver=driver)
    assert found.solution.shape == (2, 0) and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)], ids=str)
def test_factors_of_nothing_print_nothing(shape, capfd):
    """LAPACK is not called, whenever the matrix has become empty."""
    A, k = norch.ones(shape), min(shape[-2:])
    lu, pivots = norch.linalg.lu_factor(A)
    a, tau = norch.geqrf(A)
    assert lu.shape == a.shape == shape and pivots.shape == tau.shape == (*shape[:-2], k)
    assert lu.dtype is a.dtype is tau.dtype is norch.float32 and pivots.dtype is norch.int32
    assert capfd.readouterr() == ("", "")


def test_what_has_no_derivative():
    x = norch.tensor(normal(5, 3), requires_grad=True)
    with pytest.raises(ValueError, match="no derivative for 5 x 3"):
        norch.linalg.qr(x, mode="complete")[0].sum().backward()
    with pytest.raises(ValueError, match="full_matrices=False"):
        norch.linalg.svd(x)[0].sum().backward()
    with pytest.raises(ValueError, match="mode='r'"):
        norch.linalg.qr(x, mode="r")


def test_numpy_is_imported_by_the_call():
    program = """
import sys, norch
norch.linalg.solve
assert "numpy" not in sys.modules and "norch.ops.linalg.solve" in sys.modules
sys.modules["scipy"] = sys.modules["numpy"] = None
for call in (norch.linalg.inv, norch.Tensor.det, norch.linalg.lu):
    try:
        call(norch.eye(2))
    except ImportError as error:
        assert "norch-dl[linalg]" in str(error), error
    else:
        raise AssertionError(call)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("atol", [[0.1, 5.0], [0.1, 0.0]])
@pytest.mark.parametrize("rtol", [None, [0.1, 1.0]])
def test_tolerances_of_each_matrix(torch, atol, rtol):
    found = []
    for m in (norch, torch):
        a, r = m.tensor(atol), None if rtol is None else m.tensor(rtol)
        found.append(m.linalg.matrix_rank(m.ones(2, 3, 3), atol=a, rtol=r).tolist())
        found[-1].append(m.linalg.matrix_rank(m.ones(0, 3, 3), atol=m.ones(0)).tolist())
        several = m.tensor([0.5, 4.0])  # which broadcast over the batch
        found[-1].append(m.linalg.matrix_rank(m.ones(3, 2, 3, 3), atol=several).tolist())
        found[-1].append(m.linalg.pinv(m.ones(3, 2, 3, 3), rcond=several).round(decimals=5).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("order", [1, 2, np.inf, "nuc", "fro"])
@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0, 0), (2, 2, 0)])
def test_norms_of_empty_matrices_are_those_of_pytorch(torch, shape, order):
    for keepdim in (False, True):
        found, wanted = (m.linalg.matrix_norm(m.ones(*shape), order, keepdim=keepdim) for m in (norch, torch))
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("shape", [(2, 2), (2, 3, 3)])
def test_the_power_of_0_has_a_gradient_of_0(shape):
    x = norch.full(shape, norch.nan, requires_grad=True)
    y = norch.linalg.matrix_power(x, 0)
    y.sum().backward()
    assert y.sum() == y.numel() / shape[-1] and not x.grad.any()


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_equal_singular_values_share_the_gradient_of_a_norm(torch, order):
    """As PyTorch has it: of a weight that is an identity."""
    ours, theirs = norch.eye(3, requires_grad=True), torch.eye(3, requires_grad=True)
    norch.linalg.matrix_norm(ours, order).backward()
    torch.linalg.matrix_norm(theirs, order).backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-6)
