"""complex64 and complex128: values, gradients and promotion against NumPy and PyTorch; what is not there refuses."""

import operator
import pickle

import numpy as np
import pytest
from conftest import DEVICE, torch_or_skip

import norch
from norch.testing import gradcheck, gradgradcheck

torch = torch_or_skip()
rng = np.random.default_rng(0)
on_cpu = pytest.mark.skipif(DEVICE != "cpu", reason="kernels of the CPU")


def complex_array(*shape, dtype=np.complex128):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def leaf(array):
    return norch.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)


def close(ours, theirs, **options):
    theirs = theirs.detach().resolve_conj().resolve_neg().numpy() if isinstance(theirs, torch.Tensor) else theirs
    ours = ours.detach().cpu().numpy() if isinstance(ours, norch.Tensor) else np.asarray(ours)
    np.testing.assert_allclose(ours, theirs, **{"rtol": 1e-5, "atol": 1e-6, **options})


# ---- making them, and what they are --------------------------------------------------------------------------------


def test_made_of_numbers_and_arrays():
    x = norch.tensor([1 + 2j, 3, 0.5])
    assert x.dtype is norch.complex64 is norch.cfloat and x.tolist() == [1 + 2j, 3 + 0j, 0.5 + 0j]
    assert norch.tensor([[1, 2j]], dtype=complex).dtype is norch.complex128 is norch.cdouble
    assert norch.tensor(2j).item() == 2j and complex(norch.tensor(2j)) == 2j
    a = complex_array(3, 4)
    for made in (norch.tensor(a), norch.from_numpy(a), norch.asarray(a), norch.as_tensor(a), norch.tensor(a.tolist())):
        close(made, a, rtol=1e-6)
    shared = norch.from_numpy(a)
    shared[0, 0] = 7j
    assert a[0, 0] == 7j and shared.numpy().dtype == np.complex128
    for dtype in (norch.complex64, norch.complex128):
        assert norch.zeros(2, dtype=dtype).tolist() == [0j, 0j] and norch.ones(1, dtype=dtype).item() == 1
        assert norch.full((2,), 1 + 2j, dtype=dtype).tolist() == [1 + 2j] * 2
        assert norch.full((1,), 3, dtype=dtype).item() == 3 and norch.full_like(x, 2j, dtype=dtype)[0].item() == 2j
        assert norch.eye(2, dtype=dtype).sum().item() == 2 and norch.empty(3, dtype=dtype).itemsize == dtype.itemsize
        assert dtype.is_complex and dtype.is_signed and not dtype.is_floating_point and dtype.kind == "c"
        assert norch.finfo(dtype) == norch.finfo(dtype.to_real()) and dtype.to_real().to_complex() is dtype
    assert norch.full((1,), 1j).dtype is norch.complex64
    with pytest.raises(norch.DTypeError, match=r"arange: complex64 is not supported"):
        norch.arange(3, dtype=norch.complex64)


def test_draws_have_variance_one():
    norch.manual_seed(0)
    x = norch.randn(20000, dtype=norch.complex64)
    assert abs(x.mean().item()) < 0.02 and x.var().item() == pytest.approx(1, abs=0.03)
    assert x.real.var().item() == pytest.approx(0.5, abs=0.03)
    u = norch.rand(1000, dtype=norch.complex128)
    assert 0 <= u.real.min().item() and u.imag.max().item() < 1 and abs(u.mean().item() - 0.5 - 0.5j) < 0.05


@pytest.mark.parametrize(
    "array",
    [
        [1 + 2j, -3.5 - 4j],
        [1e10 + 1j, 2j],
        [[1.25 - 1j, 2], [1e-7j, 3]],
        [complex("nan+infj"), complex("-inf-1j"), 1 - 0.5j],
        3j,
        [],
        [[1 + 1j] * 20] * 2,
        np.arange(2000) * (1 - 1j),
    ],
)
def test_prints_as_pytorch(array):
    array = np.asarray(array, np.complex64)
    for dtype in (np.complex64, np.complex128):
        assert repr(norch.tensor(array.astype(dtype))) == repr(torch.tensor(array.astype(dtype))).replace(
            "torch.", "norch."
        )


def test_promotes_as_pytorch():
    names = "bool uint8 int8 int16 int32 int64 float32 float64 complex64 complex128".split()
    for one in names:
        for other in names:
            a, b = getattr(norch, one), getattr(norch, other)
            s, t = getattr(torch, one), getattr(torch, other)
            assert norch.promote_types(a, b).name == str(torch.promote_types(s, t)).removeprefix("torch.")
            assert norch.can_cast(a, b) == torch.can_cast(s, t)
            for p in ((), (1,)):
                for q in ((), (1,)):
                    ours = norch.result_type(norch.zeros(p, dtype=a), norch.zeros(q, dtype=b))
                    theirs = torch.result_type(torch.zeros(p, dtype=s), torch.zeros(q, dtype=t))
                    assert ours.name == str(theirs).removeprefix("torch."), (one, other, p, q)
        for number in (True, 2, 0.5, 1j):
            ours = norch.result_type(norch.zeros(1, dtype=getattr(norch, one)), number)
            theirs = torch.result_type(torch.zeros(1, dtype=getattr(torch, one)), number)
            assert ours.name == str(theirs).removeprefix("torch."), (one, number)
    assert (norch.zeros(1, dtype=norch.float16) * 1j).dtype is norch.complex64  # there is no complex32
    norch.set_default_dtype(norch.float64)
    try:
        assert norch.tensor(1j).dtype is norch.complex128 and (norch.ones(1, dtype=norch.int64) * 1j).itemsize == 16
    finally:
        norch.set_default_dtype(norch.float32)


def test_casts():
    x = norch.tensor([1.5 - 2j, 0j])
    assert x.to(norch.complex128).dtype is norch.complex128 and x.bool().tolist() == [True, False]
    assert norch.tensor([1, 2]).to(norch.complex64).tolist() == [1, 2] and norch.ones(2).to(norch.cdouble)[0] == 1
    for cast in (
        x.float,
        x.int,
        lambda: x.to(norch.float64),
        lambda: norch.zeros(2).copy_(x),
        lambda: norch.zeros(2).add_(x),
    ):
        with pytest.raises(norch.DTypeError, match="complex64"):
            cast()
    y = norch.zeros(2, dtype=norch.complex64)
    assert y.copy_(norch.tensor([1, 2])).tolist() == [1, 2] and (y.fill_(1j), y.add_(2))[1].tolist() == [2 + 1j] * 2
    with pytest.raises(norch.DTypeError, match=r"abs_: complex64 is not supported"):
        y.abs_()


@on_cpu
def test_files_pickles_and_exchange(tmp_path):
    x = norch.from_numpy(complex_array(2, 3)).T
    norch.save({"x": x, "y": x.to(norch.complex64)}, tmp_path / "x.norch")
    found = norch.load(tmp_path / "x.norch")
    assert norch.equal(found["x"], x) and found["y"].dtype is norch.complex64
    assert norch.equal(pickle.loads(pickle.dumps(x)), x) and pickle.loads(pickle.dumps(norch.cfloat)) is norch.cfloat
    torch.save({"x": torch.tensor(x.tolist()), "y": torch.tensor([1j], dtype=torch.complex64)}, tmp_path / "x.pt")
    theirs = norch.load(tmp_path / "x.pt")
    assert theirs["y"].dtype is norch.complex64
    close(theirs["x"], x.numpy(), rtol=1e-6)
    assert norch.equal(norch.from_dlpack(torch.from_dlpack(x)), x) and norch.equal(
        norch.from_dlpack(x.numpy().copy()), x
    )


def test_views_of_parts():
    a = complex_array(3, 4)
    x = norch.tensor(a)
    assert norch.view_as_real(x).shape == (3, 4, 2) and norch.equal(norch.view_as_complex(norch.view_as_real(x)), x)
    close(x.T.real, a.T.real)
    close(x[:, ::2].imag, a[:, ::2].imag)
    x.imag.zero_()
    x.real[0] = 5
    close(x[0], np.full(4, 5 + 0j))
    close(x[1:], a[1:].real + 0j)
    assert norch.ones(2).real.tolist() == [1, 1] and norch.is_complex(x) and not norch.is_complex(x.real)
    assert x.is_conj() is False and x.resolve_conj() is x
    with pytest.raises(norch.DTypeError, match="imag: expected complex numbers, not float32"):
        _ = norch.ones(2).imag
    for bad in (norch.ones(3), norch.ones(2, 2).T, norch.ones(5)[1:3], norch.ones(2, 3)[:, :2], norch.tensor(1.0)):
        with pytest.raises(norch.ShapeError, match="view_as_complex: the last size must be 2"):
            norch.view_as_complex(bad)
    with pytest.raises(norch.DTypeError):
        norch.view_as_real(norch.ones(2))
    with pytest.raises(norch.ShapeError, match="16 dimensions and one more"):
        norch.view_as_real(norch.ones([1] * 16, dtype=norch.cfloat))
    assert x.view(norch.float64).shape == (3, 8) and x.to(norch.complex64).view(norch.int64).shape == (3, 4)


def test_summed_to_a_size_as_pytorch():
    z = np.arange(6).reshape(2, 3) * (1 - 2j)
    assert norch.tensor(z).sum_to_size(1, 3).tolist() == torch.tensor(z).sum_to_size(1, 3).tolist()


def test_from_parts():
    re, im = rng.standard_normal((2, 1, 3)), rng.standard_normal((2, 2, 1))
    close(norch.complex(norch.tensor(re), norch.tensor(im)), re + 1j * im)
    close(norch.polar(norch.tensor(re), norch.tensor(im)), re * np.exp(1j * im))
    with pytest.raises(norch.DTypeError, match="complex: expected float32 or float64 twice"):
        norch.complex(norch.ones(1), norch.ones(1, dtype=norch.float64))


# ---- values ---------------------------------------------------------------------------------------------------------

UNARY = (
    "neg conj abs angle sgn square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh sinc sigmoid isnan isinf isfinite isreal logical_not"
).split()
BINARY = ["add", "sub", "mul", "div", "pow", "eq", "ne", "logical_and", "logical_or", "logical_xor"]
EDGES = np.array(
    [
        complex(re, im)
        for re in (0.0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan)
        for im in (0.0, -0.0, 2, -1, np.inf, np.nan)
    ]
)


@on_cpu
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", UNARY)
def test_functions(name, dtype):
    for array in (
        complex_array(5, 7, dtype=dtype),
        complex_array(4, 9, dtype=dtype).T[::2],
        complex_array(0, dtype=dtype),
        complex_array(dtype=dtype) * np.ones((), dtype),
        complex_array(300, dtype=dtype)[::-1].copy(),
    ):
        array = np.asarray(array)
        close(
            getattr(norch, name)(norch.from_numpy(array.copy())), getattr(torch, name)(torch.tensor(array)), rtol=1e-4
        )


@on_cpu
@pytest.mark.parametrize(
    "name", "neg conj abs square sqrt exp log sin cos sinh cosh tanh atan isnan isinf isfinite".split()
)
def test_edges_are_those_of_the_c_library(name):
    with np.errstate(all="ignore"):
        close(getattr(norch, name)(norch.tensor(EDGES)), getattr(torch, name)(torch.tensor(EDGES)))


@pytest.mark.parametrize("name", BINARY)
def test_operations_of_two(name):
    ours, theirs = getattr(norch, name), getattr(torch, name)
    x, y, row, column = complex_array(5, 6), complex_array(6, 5).T, complex_array(6), complex_array(5, 1)
    real = rng.standard_normal((5, 6))
    for a, b in ((x, y), (x, row), (column, y), (x[::2], y[::2]), (x, real), (real, x), (x[:, :0], y[:, :0])):
        close(ours(norch.tensor(a), norch.tensor(b)), theirs(torch.tensor(a), torch.tensor(b)))
    if not name.startswith("logical"):
        for number in (2, 0.5, 1 - 2j):
            close(ours(norch.tensor(x), number), theirs(torch.tensor(x), number))
            close(getattr(norch.tensor(x), name)(number), theirs(torch.tensor(x), number))


def test_operators_and_places():
    x, y = complex_array(4, 3), complex_array(4, 3)
    a, b = norch.tensor(x), norch.tensor(y)
    for way in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
        close(way(a, b), way(x, y))
        close(way(2j, a), way(2j, x))
        close(way(a, 3), way(x, 3))
    close(-a, -x)
    close(abs(a), abs(x))
    a *= b
    a[:, 1:] += a[:, :-1]
    a.sub_(1j).div_(2)
    x = x * y
    x[:, 1:] += x[:, :-1].copy()
    close(a, (x - 1j) / 2)
    assert norch.allclose(a, a + 1e-9) and not norch.allclose(a, a + 1e-3j) and (1 + 1j) in norch.tensor([1 + 1j])


@pytest.mark.parametrize("name", ["conj_physical", "sgn", "exp", "reciprocal", "neg"])
def test_gradients_in_place(name):
    differentiated(lambda n, x: getattr(x * 1, f"{name}_")(), complex_array(3))


def test_large_quotients_do_not_overflow():
    big = norch.tensor([1e300 + 1e300j, 1e-300 - 1e-300j], dtype=norch.complex128)
    close(big / big, np.ones(2))
    close(norch.reciprocal(big), np.array([0.5e-300 - 0.5e-300j, 0.5e300 + 0.5e300j]), rtol=1e-12, atol=0)


def moves():
    i, mask = [2, 0, 2], [[True, False, True, False]] * 3

    def put(x):
        x = x.clone()
        x[1:, [0, 2]] = 5j
        x[0] = x[1] * 2
        return x

    return {
        "cat": lambda n, x: n.cat((x, x * 2), 1),
        "stack": lambda n, x: n.stack((x, x), -1),
        "clone": lambda n, x: x.T.clone(),
        "contiguous": lambda n, x: x.T.contiguous(),
        "flip": lambda n, x: n.flip(x, (0, 1)),
        "roll": lambda n, x: n.roll(x, 1, 1),
        "pad": lambda n, x: n.nn.functional.pad(x, (1, 2)),
        "index": lambda n, x: x[n.tensor(i)],
        "pair": lambda n, x: x[n.tensor(i), n.tensor([0, 1, 3])],
        "mask": lambda n, x: x[n.tensor(mask)],
        "gather": lambda n, x: n.gather(x, 1, n.tensor([[0, 3], [1, 1], [2, 0]])),
        "select": lambda n, x: n.index_select(x, -1, n.tensor(i)),
        "take": lambda n, x: n.take(x, n.tensor([5, 0, 11])),
        "scatter": lambda n, x: n.scatter(x, 1, n.tensor([[0, 1], [2, 3], [1, 0]]), x * 2),
        "scatter_add": lambda n, x: n.scatter_add(x, 0, n.tensor([[0, 0, 1, 2], [0, 1, 1, 2]]), x * 2),
        "index_add": lambda n, x: n.index_add(x, 0, n.tensor(i), x * 1j),
        "put": lambda n, x: put(x),
        "index_copy": lambda n, x: n.index_copy(x, 1, n.tensor([0, 3]), x[:, 1:3]),
        "masked_fill": lambda n, x: n.masked_fill(x, n.tensor(mask), 1 - 1j),
        "masked_scatter": lambda n, x: x.masked_scatter(n.tensor(mask), x * 2),
        "where": lambda n, x: n.where(n.tensor(mask), x, 2j),
        "tile": lambda n, x: n.tile(x, (2, 2)),
        "expand": lambda n, x: x[:1].expand(5, 4).clone(),
        "unfold": lambda n, x: x.unfold(1, 2, 1).clone(),
        "tril": lambda n, x: n.tril(x),
        "diag": lambda n, x: n.diag(x),
        "diag_embed": lambda n, x: n.diag_embed(x),
        "repeat_interleave": lambda n, x: n.repeat_interleave(x, 2, 0),
        "H": lambda n, x: x.H,
        "mH": lambda n, x: x.mH,
        "nonzero": lambda n, x: n.nonzero(x * n.tensor([0, 1, 0, 1])),
        "movedim": lambda n, x: n.movedim(x, 0, 1) + 0,
    }


def sums():
    return {
        "sum": lambda n, x: x.sum(),
        "sum0": lambda n, x: x.sum(0),
        "sum1k": lambda n, x: x.sum(-1, keepdim=True),
        "mean": lambda n, x: x.mean((0, 1)),
        "mean1": lambda n, x: x.mean(1),
        "prod": lambda n, x: x.prod(),
        "prod1": lambda n, x: x.prod(1, keepdim=True),
        "prod0": lambda n, x: x.prod(0),
        "var": lambda n, x: x.var(),
        "var1": lambda n, x: x.var(1, keepdim=True),
        "std0": lambda n, x: x.std(0),
        "norm": lambda n, x: x.norm(),
        "norm1": lambda n, x: x.norm(1, dim=0),
        "inf": lambda n, x: x.norm(float("inf")),
        "fro": lambda n, x: n.linalg.norm(x),
        "any": lambda n, x: (x * 0).any(1),
        "all": lambda n, x: x.all(),
        "cumsum": lambda n, x: x.cumsum(-1),
        "cumprod": lambda n, x: x.cumprod(0),
        "cumprod1": lambda n, x: x.cumprod(-1),
        "count": lambda n, x: n.count_nonzero(x),
        "sumdtype": lambda n, x: x.real.sum(0, dtype=n.complex128),
        "trace": lambda n, x: x[:, :3].trace(),
    }


def products():
    return {
        "mm": lambda n, x: x @ x.T,
        "mv": lambda n, x: x @ x[0],
        "vm": lambda n, x: x[:, 0] @ x,
        "dot": lambda n, x: n.dot(x[0], x[1]),
        "vdot": lambda n, x: n.vdot(x[0], x[1]),
        "bmm": lambda n, x: n.bmm(x[None] * 2, x.T[None]),
        "outer": lambda n, x: n.outer(x[0], x[1]),
        "batched": lambda n, x: n.matmul(n.stack((x, 1j * x))[:, None], x.T[None]),
        "inner": lambda n, x: n.inner(x, x),
        "linear": lambda n, x: n.nn.functional.linear(x, x * 2, x[:, 0]),
        "einsum": lambda n, x: n.einsum("ij,kj->ik", x, x.conj()),
        "addmm": lambda n, x: n.addmm(x[:, :3], x, x.T, alpha=2, beta=3),
        "tensordot": lambda n, x: n.tensordot(x, x, ([1], [1])),
        "kron": lambda n, x: n.kron(x, x),
        "vecdot": lambda n, x: n.linalg.vecdot(x, x * 2j),
        "cross": lambda n, x: n.linalg.cross(x[:, :3], x[:, 1:]),
        "power": lambda n, x: n.linalg.matrix_power(x[:, :3], 3),
    }


FAMILIES = {f"{family.__name__}-{name}": way for family in (moves, sums, products) for name, way in family().items()}


@pytest.mark.parametrize("name", FAMILIES)
def test_family(name):
    way = FAMILIES[name]
    for dtype in (np.complex64, np.complex128):
        array = complex_array(3, 4, dtype=dtype)
        ours, theirs = way(norch, norch.tensor(array)), way(torch, torch.tensor(array))
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        close(ours, theirs, rtol=1e-4, atol=1e-5)
        strided = np.repeat(array, 2, 1)
        close(way(norch, norch.tensor(strided)[:, ::2]), theirs, rtol=1e-4, atol=1e-5)


def test_products_of_nothing():
    for a, b in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((4, 2, 3), (3,))):
        x, y = complex_array(*a), complex_array(*b)
        close(norch.matmul(norch.tensor(x), norch.tensor(y)), x @ y)
    with pytest.raises(norch.ShapeError, match="matmul: sizes 3 and 2"):
        norch.ones(2, 3, dtype=norch.cfloat) @ norch.ones(2, 3, dtype=norch.cfloat)
    with pytest.raises(norch.DTypeError, match="matmul: expected both to have the same dtype"):
        norch.ones(2, 2, dtype=norch.cfloat) @ norch.ones(2, 2)


# ---- gradients ------------------------------------------------------------------------------------------------------

SMOOTH = (
    "neg conj abs angle sgn square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh sinc sigmoid real imag"
).split()


def differentiated(way, *arrays):
    """Gradients of a real number made of the result, of both."""
    pairs = [leaf(array) for array in arrays]
    ours, theirs = way(norch, *(p[0] for p in pairs)), way(torch, *(p[1] for p in pairs))
    weight = np.cos(np.arange(theirs.numel())).reshape(theirs.shape)
    weight = weight + 1j * np.sin(weight * 3) if theirs.is_complex() else weight
    ours.backward(norch.tensor(weight))
    theirs.backward(torch.tensor(weight))
    for one, other in pairs:
        if other.grad is None:
            assert one.grad is None
            continue
        assert one.grad.dtype is one.dtype
        close(one.grad, other.grad, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_functions(name):
    differentiated(lambda n, x: getattr(n, name)(x), complex_array(3, 4))
    x = norch.tensor(complex_array(3), requires_grad=True)
    assert gradcheck(getattr(norch, name), x) and gradgradcheck(getattr(norch, name), x)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_gradients_of_two(name):
    way = lambda n, a, b: getattr(n, name)(a, b)  # noqa: E731
    x, y, real = complex_array(3, 4), complex_array(4), np.abs(rng.standard_normal((3, 4))) + 0.5
    for pair in ((x, y), (real, x), (x, real), (y, real)):
        differentiated(way, *pair)
    for pair in ((x[0], y[:1]), (real[0], y)):
        a, b = (norch.tensor(one, requires_grad=True) for one in pair)
        assert gradcheck(getattr(norch, name), (a, b)) and gradgradcheck(getattr(norch, name), (a, b))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FAMILIES
        if name.split("-")[1] not in ("any", "all", "count", "nonzero", "scatter", "scatter_add", "sumdtype")
    ],
)
def test_gradients_of_family(name):
    differentiated(FAMILIES[name], complex_array(3, 4))


def test_gradients_through_parts():
    differentiated(lambda n, a, b: n.complex(a, b) ** 2, rng.standard_normal((2, 3)), rng.standard_normal(3))
    differentiated(lambda n, a, b: n.polar(a, b) * 1j, np.abs(rng.standard_normal(3)), rng.standard_normal(3))
    differentiated(lambda n, a: (a * (1 + 2j)).abs(), rng.standard_normal(3))
    differentiated(lambda n, a: a.to(n.complex128) * 1j, rng.standard_normal(3))
    differentiated(lambda n, a: n.view_as_real(a).sum(0), complex_array(3))
    differentiated(lambda n, a: n.view_as_complex(a) ** 3, rng.standard_normal((3, 2)))
    x = norch.tensor(complex_array(2), requires_grad=True)
    y = x * 1
    y.real[0] = 3.0
    y.abs().square().sum().backward()
    assert x.grad[0].real.item() == 0 and x.grad[1].item() == pytest.approx(2 * x[1].item())


def test_backward_of_complex_needs_a_gradient():
    x = norch.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(norch.DTypeError, match=r"backward: of complex64 pass gradient="):
        (x * 2).backward()
    with pytest.raises(norch.DTypeError, match="of dtype float32 for a tensor of dtype complex64"):
        (x * 2j).backward(norch.tensor(1.0))
    (x * 2j).backward(norch.tensor(1 + 0j))
    assert x.grad.item() == -2j
    assert norch.autograd.grad(x * x, x, norch.tensor(1 + 0j))[0].item() == 2 - 4j
    hooked = []
    y = x * 2j
    y.register_hook(lambda g: hooked.append(g.item()))
    (y * 3j).backward(norch.tensor(1 + 0j))
    assert hooked == [-3j]


def test_functions_of_users_get_pytorchs_gradient():
    class Scale(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2j

        @staticmethod
        def backward(ctx, g):
            return g * -2j

    x = norch.tensor(complex_array(3), requires_grad=True)
    assert gradcheck(Scale.apply, x)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizers(name):
    array = complex_array(3)
    (x, t) = leaf(array)
    ours, theirs = getattr(norch.optim, name)([x], lr=0.1), getattr(torch.optim, name)([t], lr=0.1)
    for _ in range(5):
        for p, optimizer in ((x, ours), (t, theirs)):
            optimizer.zero_grad()
            (p - (1 + 1j)).abs().square().sum().backward()
            optimizer.step()
    close(x, t, rtol=1e-5)


def test_assert_close_compares_complex_numbers() -> None:
    x = norch.tensor([1 + 2j, 3 - 1j])
    norch.testing.assert_close(x, x + 1e-7)
    norch.testing.assert_close(x.to(norch.complex128) * (1 + 1e-9j), x.to(norch.complex128))
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        norch.testing.assert_close(x, norch.tensor([1 + 2j, 3 - 1.001j]))


def test_angles_of_real_numbers_are_pytorchs(torch):
    edge = [-1.0, 0.0, -0.0, 2.0, float("inf"), -float("inf"), float("nan")]
    for dtype in ("float32", "float64"):
        x, y = (m.tensor(edge, dtype=getattr(m, dtype), requires_grad=True) for m in (norch, torch))
        np.testing.assert_allclose(norch.angle(x).detach().numpy(), torch.angle(y).detach().numpy(), rtol=1e-6, atol=0)
        norch.angle(x)[:-1].sum().backward()
        assert not x.grad[:-1].any()
    assert norch.angle(norch.tensor([-3, 2])).tolist() == torch.angle(torch.tensor([-3, 2])).tolist()


@on_cpu
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_silu_and_logaddexp_are_pytorchs(dtype):
    x, y = complex_array(3, 4, dtype=dtype), complex_array(4, dtype=dtype)
    functional, theirs = norch.nn.functional, torch.nn.functional
    close(functional.silu(norch.tensor(x)), theirs.silu(torch.tensor(x)), rtol=1e-4)
    close(
        norch.logaddexp(norch.tensor(x), norch.tensor(y)), torch.logaddexp(torch.tensor(x), torch.tensor(y)), rtol=1e-4
    )
    if dtype == np.complex128:  # PyTorch has no derivatives of them
        a, b = (norch.tensor(array, requires_grad=True) for array in (x, y))
        assert gradcheck(functional.silu, a) and gradgradcheck(functional.silu, a)
        assert gradcheck(norch.logaddexp, (a, b)) and gradgradcheck(norch.logaddexp, (a, b))


@on_cpu
def test_logaddexp_of_large_and_infinite_numbers():
    a = np.array([800 + 1j, -800 + 2j, complex(-np.inf, 0), 1 + 3j, complex(np.inf, 0)])
    b = np.array([799 - 1j, 3j, complex(-np.inf, 0), 1 - 3j, complex(1, 0)])
    close(norch.logaddexp(norch.tensor(a), norch.tensor(b)), torch.logaddexp(torch.tensor(a), torch.tensor(b)))


@pytest.mark.parametrize("function", [lambda z: z.abs(), lambda z: z.sgn().real])
def test_derivatives_at_0_do_not_depend_on_the_mode(function):
    modes, x = (norch.func.jacfwd, norch.func.jacrev), norch.zeros(2, dtype=norch.float64)
    for outer in modes:
        assert outer(lambda x: function(norch.complex(x[:1], x[1:])))(x).tolist() == [[0, 0]]
        for inner in modes:
            second = outer(inner(lambda x: function(norch.complex(x[:1], x[1:])).sum()))
            assert second(x).tolist() == [[0, 0], [0, 0]]
