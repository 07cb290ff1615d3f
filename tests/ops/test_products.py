"""Products beyond those of cases.py: norch.linalg, einsum's kin, powers and chains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE
from product_operands import operands_of_layouts

import norch
from norch.testing import assert_close, gradcheck, gradgradcheck


def test_what_linalg_leaves_out() -> None:
    with pytest.raises(AttributeError, match=r"leaves out 'ldl_factor'.*numpy\.linalg and scipy\.linalg"):
        _ = norch.linalg.ldl_factor
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = norch.linalg.nonsense


def test_linalg_diagonal() -> None:
    x = norch.arange(12).view(2, 2, 3)
    assert norch.linalg.diagonal(x).tolist() == [[0, 4], [6, 10]]
    assert norch.linalg.diagonal(x, offset=1, dim1=0, dim2=1).tolist() == [[3], [4], [5]]


IN_PLACE: Any = [
    ("addmm", (2, 4), (2, 3), (3, 4)),
    ("addmv", (2,), (2, 3), (3,)),
    ("addr", (2, 3), (2,), (3,)),
    ("baddbmm", (2, 2, 2), (2, 2, 3), (2, 3, 2)),
    ("addbmm", (2, 2), (2, 2, 3), (2, 3, 2)),
]


@pytest.mark.parametrize(("name", "shape", "a", "b"), IN_PLACE)
def test_in_place(name: str, shape: Any, a: Any, b: Any) -> None:
    source = norch.Generator().manual_seed(0)
    x, a, b = (norch.randn(s, generator=source).requires_grad_() for s in (shape, a, b))
    wanted = getattr(x, name)(a, b, beta=2, alpha=0.5)
    written = x.clone()
    assert getattr(written, name + "_")(a, b, beta=2, alpha=0.5) is written
    assert_close(written, wanted)
    found = norch.autograd.grad(written.square().sum(), [x, a, b])
    for g, expected in zip(found, norch.autograd.grad(wanted.square().sum(), [x, a, b]), strict=True):
        assert_close(g, expected)
    small = norch.zeros(()) if len(shape) == 1 else norch.zeros(shape[1:])
    with pytest.raises(norch.ShapeError):  # broadcasting has no place in place
        getattr(small, name + "_")(a.detach(), b.detach())
    with pytest.raises(norch.Error, match="leaf"):
        getattr(x, name + "_")(a, b)


def test_beta_of_0_reads_nothing() -> None:
    x = norch.full((2, 2), float("nan"), requires_grad=True)
    out = norch.addmm(x, norch.eye(2), norch.eye(2), beta=0)
    assert_close(out, norch.eye(2))
    assert norch.autograd.grad(out.sum(), [x])[0].tolist() == [[0, 0], [0, 0]]
    assert (
        norch.addr(norch.zeros(2, 2, dtype=norch.float64), norch.ones(2), norch.ones(2), beta=0).dtype is norch.float64
    )


def test_addr_multiplies_in_the_dtype_of_the_result() -> None:
    byte, half = (norch.tensor([200.0], dtype=dtype) for dtype in (norch.uint8, norch.float16))
    assert norch.addr(norch.ones(1, 1), byte, byte).item() == 40001
    assert norch.addr(norch.ones(1, 1), half, half * 10, alpha=0.5).item() == 200001
    assert norch.ones(1, 1).addr_(byte, byte, alpha=3).item() == 120001
    assert norch.addr(norch.ones(1, 1, dtype=norch.int32), byte, byte, beta=0).item() == 40000
    assert norch.addr(norch.ones(1, 1), byte, byte, beta=2.5).item() == 40002.5
    for factor in (float("nan"), float("inf")):
        with pytest.raises(norch.ArgumentError, match=f"addmm: a factor of {factor} for dtype uint8"):
            norch.addmm(byte.reshape(1, 1), byte.reshape(1, 1), byte.reshape(1, 1), alpha=factor)
        with pytest.raises(norch.ArgumentError, match=f"linspace: integers from 0 to {factor}"):
            norch.linspace(0, factor, 2, dtype=norch.int32)
    with pytest.raises(norch.DTypeError, match="addr: a factor of integers is an integer, not 2.5"):
        norch.addr(byte.reshape(1, 1), byte, byte, beta=2.5)


def test_factors_of_whole_numbers() -> None:
    """As PyTorch has it: cut to whole numbers."""
    x = norch.ones(2, 2, dtype=norch.int32)
    assert norch.addmm(x, x, x, beta=1.5, alpha=2.9).tolist() == [[5, 5], [5, 5]]
    assert norch.addmm(x, x, x, beta=0.5).tolist() == [[2, 2], [2, 2]]
    with pytest.raises(norch.DTypeError, match="addr: a factor of 2 for dtype bool"):
        norch.addr(x > 0, x[0] > 0, x[0] > 0, beta=2)
    with pytest.raises(norch.DTypeError, match="addr_: a result of dtype float32 cannot be written into"):
        x.addr_(norch.ones(2), norch.ones(2))


@pytest.mark.parametrize(
    ("name", "x", "a", "b"),
    [("addmm", 2, (2, 3), (3, 2)), ("addmv", 2, (2, 3), (3,)), ("addbmm", 2, (1, 2, 3), (1, 3, 2))],
)
def test_what_has_the_factor_0_is_not_read(torch: Any, name: str, x: int, a: Any, b: Any) -> None:
    results = []
    for m in (norch, torch):
        given = [m.ones(x, requires_grad=True), m.full(a, math.nan), m.ones(b, requires_grad=True)]
        for options in ({"alpha": 0}, {"alpha": 0.0, "beta": 2}, {"alpha": 0, "beta": 0}):
            out = getattr(m, name)(*given, **options)
            grads = m.autograd.grad(out.sum(), (given[0], given[2]))
            results.append([out.tolist(), grads[0].tolist(), grads[1].isnan().all().item()])
    assert results[:3] == results[3:]
    assert norch.baddbmm(norch.ones(1), norch.full((1, 1, 1), math.nan), norch.ones(1, 1, 1), alpha=0).isnan().item()


def test_linear_is_one_step_of_addmm() -> None:
    x, bias = norch.ones(2, 3, requires_grad=True), norch.ones(4)
    assert norch.addmm(bias, x, norch.ones(3, 4)).grad_fn.name() == "LinearBackward"


def test_the_order_of_a_chain() -> None:
    """(A @ B) @ C costs a thousand times A @ (B @ C) here: the walk shows which was taken."""
    a, b, c = norch.ones(50, 50, requires_grad=True), norch.ones(50, 50), norch.ones(50, 1)
    node = norch.chain_matmul(a, b, c).grad_fn
    assert node.next_functions[0][0].name() == "AccumulateGrad"  # of a: not of a @ b
    assert norch.chain_matmul(a) is a
    assert norch.linalg.multi_dot([norch.ones(2), norch.ones(2)]).item() == 2


def test_powers() -> None:
    x = norch.tensor([[1.0, 1.0], [0.0, 1.0]])
    for n in (1, 2, 5, 8):
        assert x.matrix_power(n).tolist() == [[1, n], [0, 1]]
    assert norch.matrix_power(x, 1) is not x
    assert norch.matrix_power(x, -2).tolist() == [[1, -2], [0, 1]]


norch.set_default_device(DEVICE)  # which the tests are run for, and have while they run
X, V = norch.ones(2, 3), norch.ones(3)
norch.set_default_device(None)
BAD: Any = [
    (lambda: norch.mm(X, V), "mm: expected 2 dimensions"),
    (lambda: norch.mm(X, X), "mm: sizes 3 and 2 of the inner dimension"),
    (lambda: norch.mv(X, norch.ones(2)), "mv: sizes 3 and 2"),
    (lambda: norch.dot(V, norch.ones(2)), "dot: sizes 3 and 2"),
    (lambda: norch.dot(V, V.double()), "dot: .*float32 and float64"),
    (lambda: norch.vdot(X, V), "vdot: expected 1 dim"),
    (lambda: norch.bmm(X, X), "bmm: expected 3 dim"),
    (lambda: norch.bmm(norch.ones(2, 2, 3), norch.ones(1, 3, 2)), "bmm: batches of 2 and 1"),
    (lambda: norch.outer(X, V), "outer: expected 1 dimension"),
    (lambda: norch.inner(X, norch.ones(2)), r"inner: the last dimensions differ: \(2, 3\) and \(2,\)"),
    (lambda: norch.tensordot(X, X, 3), "tensordot: dims=3 for tensors of 2 and 2 dimensions"),
    (lambda: norch.tensordot(X, X, -1), "tensordot: dims=-1"),
    (lambda: norch.tensordot(X, X, 1), "tensordot: size 3 of dimension 1 of a and 2 of dimension 0 of b"),
    (lambda: norch.tensordot(X, X, ([0, 1], [0])), "tensordot: 2 axes of a and 1 of b"),
    (lambda: norch.tensordot(X, X, ([0, 0], [0, 0])), "tensordot: a dimension appears twice"),
    (lambda: norch.tensordot(X, X.double(), ([0], [0])), "tensordot: .*float32 and float64"),
    (lambda: norch.cross(X, norch.ones(1, 3), dim=0), "cross: expected size 3 along dimension 0"),
    (lambda: norch.cross(norch.ones(2, 2), norch.ones(2, 2)), r"cross: no dimension of size 3 in shape \(2, 2\)"),
    (lambda: norch.linalg.cross(X, V), "cross: 2 and 1 dimensions"),
    (lambda: norch.addmm(norch.ones(3), X, norch.ones(3, 2)), r"addmm: an input of shape \(3,\) does not broadcast"),
    (lambda: norch.addmm(norch.ones(1, 2, 2), X, norch.ones(3, 2)), "addmm: an input of shape"),
    (lambda: norch.addmv(norch.ones(2).double(), X, V), "addmv: expected one dtype"),
    (lambda: norch.matrix_power(X, 2), r"matrix_power: expected square matrices, got shape \(2, 3\)"),
    (lambda: norch.matrix_power(V, 2), "matrix_power: expected square"),
    (lambda: norch.chain_matmul(X, V), "chain_matmul: matrix 1 has shape"),
    (lambda: norch.chain_matmul(X, X), "chain_matmul: tensors 0 and 1 do not match"),
    (lambda: norch.chain_matmul(), "chain_matmul: needs at least one"),
    (lambda: norch.linalg.multi_dot([X]), "multi_dot: expected at least 2"),
    (lambda: norch.linalg.multi_dot([X, V, V]), "multi_dot: tensor 1 has shape"),
    (lambda: norch.bilinear(X, norch.ones(1, 3), norch.ones(1, 3, 3)), "bilinear: expected"),
    (lambda: norch.bilinear(X, X, norch.ones(1, 3, 2)), "bilinear: inner sizes"),
    (lambda: norch.linalg.vecdot(X, X > 0), "vecdot: expected two tensors of one floating or complex dtype"),
    (lambda: norch.matmul(X > 0, V > 0), "matmul: not defined for dtype bool"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[one[1] for one in BAD])
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(norch.Error, match=message):
        call()


@pytest.mark.parametrize("name", "matmul mm bmm mv dot vdot outer inner kron cross tensordot".split())
def test_strangers(name: str) -> None:
    for pair in ((X, None), (None, X), (X, "x"), (object(), V)):
        with pytest.raises(TypeError, match=f"{name}: expected a tensor or a number, not"):
            getattr(norch, name)(*pair)
    with pytest.raises(TypeError, match="dims is a number or two lists"):
        norch.tensordot(X, X, "ij")
    with pytest.raises(IndexError, match="tensordot: dimension 5 is out of range"):
        norch.tensordot(X, X, ([5], [0]))
    with pytest.raises(TypeError, match="n must be an integer, not float"):
        norch.matrix_power(norch.eye(2), 0.5)


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64], ids=str)
def test_products_of_one_column_and_one_row(dtype: Any) -> None:
    for m, n in ((2, 16), (70, 33), (300, 600), (5, 3), (1, 10), (10, 1), (1, 5000), (5000, 1), (1, 1)):
        a, b = (norch.randn(s, dtype=dtype).to(DEVICE) for s in ((3, m, 2), (3, 2, n)))
        a[0, 0, 0], b[0, 0, -1], bias = norch.inf, 0, norch.randn(n, dtype=dtype).to(DEVICE)
        column, row = a[..., :1], b[:, :1]
        assert_close(column @ row, column * row, equal_nan=True, rtol=0, atol=0)
        assert_close(norch.baddbmm(bias, column, row), column * row + bias, equal_nan=True)
        for one in (column[0], column[0].contiguous()):
            assert_close(one @ row[0], one * row[0], equal_nan=True, rtol=0, atol=0)
            assert_close(norch.addmm(bias, one, row[0]), one * row[0] + bias, equal_nan=True)
        sums = norch.nn.functional.linear(column[0], row[0].T.contiguous(), bias)
        assert_close(sums, column[0] * row[0] + bias, equal_nan=True)


def test_linear_with_one_output(torch: Any) -> None:
    """A weight of one dimension is one row, whose axis the result lacks."""
    for m in (norch, torch):
        x, w = m.arange(6.0).reshape(2, 3), m.tensor([1.0, 2.0, 3.0], requires_grad=True)
        linear = m.nn.functional.linear
        y = linear(x, w)
        y.sum().backward()
        assert y.tolist() == [8, 26] and w.grad.tolist() == [3, 5, 7]
    assert norch.nn.functional.linear(norch.ones(2, 3), norch.ones(3), norch.tensor(1.0)).tolist() == [4, 4]
    with pytest.raises(norch.ShapeError):
        norch.nn.functional.linear(norch.ones(2, 3), norch.ones(2))


@pytest.mark.host
@pytest.mark.kernel
@pytest.mark.parametrize("cols", [1, 3])
@pytest.mark.parametrize("stride", [0, 1])
def test_long_sums_of_strided_rows(cols: int, stride: int) -> None:
    """2^25 ones, of one number in memory. A float32 sum that has reached 2^24 would stay there."""
    k = 1 << 25
    rows = norch.ones(1, 1).expand(k, cols) if stride == 0 else norch.ones(1, 3)[:, :cols].expand(k, cols)
    row = norch.ones(1).expand(1, k)
    assert (row @ rows).tolist() == [[k] * cols] and (rows.T @ row.T).tolist() == [[k]] * cols
    assert row[0].dot(rows[:, 0]).item() == k
    bias = norch.tensor([8.0]).expand(cols)
    assert norch.nn.functional.linear(row, rows.T, bias).tolist() == [[k + 8] * cols]


@pytest.mark.host
@pytest.mark.kernel
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64], ids=str)
def test_a_few_rows_and_short_sums_of_a_large_right_operand(dtype: Any) -> None:
    """1 to 9 rows of a B of 1 MB and more, and k so short that C is most of what moves."""
    threads = norch.get_num_threads()
    for m, k, n in [*((m, 259, 1030) for m in (1, 2, 3, 5, 7, 8, 9)), (600, 5, 700), (600, 16, 700), (600, 60, 715)]:
        a, turned = norch.randn(m, k, dtype=dtype), norch.randn(k, m, dtype=dtype).T
        b, bias = norch.randn(k, n, dtype=dtype), norch.randn(n, dtype=dtype)
        for x in (a, turned, a[:, 1:], a[:1].expand(m, k)):
            y = b[b.shape[0] - x.shape[1] :]
            found = []
            for count in (1, 3):
                norch.set_num_threads(count)
                try:
                    found.append((x @ y, norch.addmm(bias, x, y)))
                finally:
                    norch.set_num_threads(threads)
            assert all(norch.equal(*pair) for pair in zip(*found, strict=True))
            wanted = x.double() @ y.double().T.contiguous().T
            assert_close(found[0][0].double(), wanted, rtol=1e-5, atol=1e-4)
            assert_close(found[0][1].double(), wanted + bias.double(), rtol=1e-5, atol=1e-4)


SUMS: Any = {
    "addmm": [
        ((40, 50), (40, 60), (60, 50)),
        ((50,), (40, 60), (60, 50)),
        ((), (3, 300), (300, 2)),
        ((2, 2), (2, 0), (0, 2)),
    ],
    "addmv": [((40,), (40, 60), (60,)), ((1,), (40, 60), (60,)), ((2,), (2, 0), (0,))],
    "addr": [((40, 50), (40,), (50,)), ((50,), (40,), (50,)), ((40, 1), (40,), (50,))],
    "baddbmm": [((3, 20, 30), (3, 20, 40), (3, 40, 30)), ((20, 1), (3, 20, 40), (3, 40, 30))],
}
SUMS["addmm"] += [((300, 270), (300, 310), (310, 270))]  # in blocks


@pytest.mark.parametrize("name", SUMS)
def test_scaled_sums_in_one_pass(name: str) -> None:
    call = getattr(norch, name)
    for shapes in SUMS[name]:
        x, a, b = (norch.randn(shape, dtype=norch.float64) for shape in shapes)
        product = a[:, None] * b if name == "addr" else a @ b
        for beta, alpha in ((1, 1), (2, 3), (0.5, -1.5), (1, 0.25)):
            wanted = beta * x + alpha * product
            assert_close(call(x, a, b, beta=beta, alpha=alpha), wanted)
            single = [y.float() for y in (x, a, b)]
            assert_close(call(*single, beta=beta, alpha=alpha), wanted.float(), rtol=1e-4, atol=1e-4)
            strided = [y.mT.contiguous().mT if y.ndim > 1 else norch.stack([y, y], -1)[..., 0] for y in (x, a, b)]
            assert_close(call(*strided, beta=beta, alpha=alpha), wanted)
        assert_close(call(x * math.nan, a, b, beta=0, alpha=2), 2 * product)  # which is not read
        captured = norch.capture(lambda *given: call(*given, beta=2, alpha=3))
        for _ in range(3):
            assert captured(x, a, b).equal(call(x, a, b, beta=2, alpha=3))


@pytest.mark.parametrize("name", SUMS)
def test_gradients_of_scaled_sums(name: str) -> None:
    for shapes in SUMS[name]:
        given = [norch.randn([min(n, 4) for n in shape], dtype=norch.float64).requires_grad_() for shape in shapes]
        if all(n for shape in shapes for n in shape):
            for factors in ({}, {"beta": 2, "alpha": 3}, {"beta": 0}):
                call = lambda *x, factors=factors: getattr(norch, name)(*x, **factors)  # noqa: E731
                assert gradcheck(call, given) and gradgradcheck(call, given)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16])
def test_scaled_sums_of_halves_are_rounded_once(dtype: Any) -> None:
    x, a, b = (norch.randint(-9, 10, shape).to(dtype) for shape in ((5, 7), (5, 60), (60, 7)))  # whose sums are exact
    wanted = (2 * x.double() + 3 * (a.double() @ b.double())).to(dtype)
    assert_close(norch.addmm(x, a, b, beta=2, alpha=3), wanted, rtol=0, atol=0)


def test_scaled_sums_of_samples() -> None:
    for name, shapes in SUMS.items():
        x, a, b = (norch.randn(2, *shape, dtype=norch.float64) for shape in shapes[0])
        call = lambda *given, name=name: getattr(norch, name)(*given, beta=2, alpha=3)  # noqa: E731
        assert_close(norch.vmap(call)(x, a, b), norch.stack([call(*one) for one in zip(x, a, b, strict=True)]))
        assert_close(
            norch.vmap(call, (None, 0, None))(x[0], a, b[0]), norch.stack([call(x[0], one, b[0]) for one in a])
        )


LARGE_RIGHT = [(2, 300, 1024), (9, 517, 544), (15, 1030, 272), (30, 640, 421), (70, 257, 1056), (100, 1100, 272)]


@pytest.mark.kernel
@pytest.mark.parametrize("sizes", LARGE_RIGHT, ids=str)
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
def test_a_few_rows_by_a_large_operand(sizes: tuple[int, int, int], dtype: Any) -> None:
    """It is read in place or packed, wherever it begins in memory: blocks of k depend on sizes and strides alone."""
    m, k, n = sizes
    a, b, bias = norch.randn(m, k, dtype=dtype), norch.randn(k, n, dtype=dtype), norch.randn(n, dtype=dtype)
    memory = norch.zeros(k * n + 1, dtype=dtype)
    elsewhere = memory[1:].view(k, n).copy_(b)
    wanted = (a.double() @ b.double().mT.contiguous().mT).to(dtype)  # by columns, which are packed
    before, results = norch.get_num_threads(), []
    try:
        for threads in (1, 2):
            norch.set_num_threads(threads)
            results.append(found := a @ b)
            assert_close(found, wanted, atol=k * 1e-6, rtol=0)
            assert (a @ elsewhere).equal(found)
            layer = norch.nn.functional.linear(a, b.T.contiguous(), bias)
            assert_close(layer, wanted + bias, atol=k * 1e-6, rtol=0)
    finally:
        norch.set_num_threads(before)
    assert results[0].equal(results[1])


# m, k, n: groups of panels of the right operand, the last one smaller; short sums; rows of a transposed left operand
# that are whole pages apart, packed by long pieces
@pytest.mark.host
@pytest.mark.kernel
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64], ids=str)
@pytest.mark.parametrize("sizes", [(170, 300, 650), (360, 40, 2100), (1024, 270, 75), (345, 1030, 120)], ids=str)
def test_large_products(sizes: tuple[int, ...], dtype: norch.dtype) -> None:
    rng = np.random.default_rng(0)
    m, k, n = sizes
    for a, b in operands_of_layouts(lambda *shape: norch.tensor(rng.normal(size=shape), dtype=dtype), m, k, n):
        wide_a, wide_b = a.double().numpy(), b.double().numpy()
        error = np.abs((a @ b).double().numpy() - wide_a @ wide_b)
        assert (error <= norch.finfo(dtype).eps * math.sqrt(k) * (np.abs(wide_a) @ np.abs(wide_b))).all()
