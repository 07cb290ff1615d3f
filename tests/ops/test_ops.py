"""Every case over dtypes, layouts and edge values: values, refusals, the table, accuracy, threads. See cases.py."""

from __future__ import annotations

import inspect
from typing import Any

import cases
import numpy as np
import pytest
from case import (
    ALL_NAMES,
    FLOAT_NAMES,
    INTEGER_NAMES,
    NARROW_NAMES,
    Case,
    as_numpy,
    as_tensor,
    draw,
    edge_values,
    numpy_values,
    source,
)
from cases import CASES
from checks import (
    OTHER_LAYOUTS,
    assert_same,
    check,
    each,
    legal,
    listed,
    scale_of,
    some_edges,
    tolerance_of,
    torch_results,
    traps_torch,
    wait,
    with_dtypes,
)
from conftest import DEVICE, is_older

import norch
from norch._binding.library import lib
from norch.ops._rows import OPCODES
from norch.testing import assert_close

pytestmark = [
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
    pytest.mark.filterwarnings("ignore:(var|std)\\(\\)"),
]

# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.kernel
@with_dtypes(CASES)
def test_values(case: Case, dtype: str) -> None:
    rng = source(case.name + dtype)
    for k, shapes in enumerate(case.shapes):
        arrays = draw(case, shapes, dtype, rng)
        check(case, arrays, dtype, ["contiguous"] * len(shapes))
        for i in range(len(OTHER_LAYOUTS)) if dtype not in NARROW_NAMES else [k % len(OTHER_LAYOUTS)]:
            check(case, arrays, dtype, [OTHER_LAYOUTS[(i + k * j) % len(OTHER_LAYOUTS)] for j in range(len(shapes))])


@pytest.mark.kernel
@with_dtypes([case for case in CASES if case.edges])
def test_edge_values(case: Case, dtype: str) -> None:
    for arrays in some_edges(case, dtype):
        arrays = legal(case, arrays)
        check(case, arrays, dtype, ["contiguous"] * len(arrays))
        check(case, arrays, dtype, ["offset"] * len(arrays))
        if arrays[0].ndim:
            check(case, arrays, dtype, ["strided"] * len(arrays))


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize(
    "name",
    [
        *"neg abs sqrt reciprocal square expm1 log1p erf floor ceil round trunc".split(),
        *"sin tan asin atan sinh tanh asinh atanh".split(),
    ],
)
def test_zero_keeps_its_sign(name: str, dtype: str) -> None:
    values = numpy_values([0.0, -0.0, np.inf, -np.inf, -0.3] * 5, dtype)
    with np.errstate(all="ignore"):
        wanted = np.asarray(cases.BY_NAME[name].reference(values.astype(float)))
    found = getattr(norch, name)(as_tensor(values, dtype)).double().numpy()
    at = ~np.isnan(wanted)
    assert (np.signbit(found) == np.signbit(wanted))[at].all(), (found, wanted)


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", ALL_NAMES)
def test_casts_at_the_edges(dtype: str) -> None:
    """What fits is converted as NumPy does; what does not is defined, and the same in every layout."""
    values = edge_values(dtype)
    for to in ALL_NAMES:
        x = as_tensor(values, dtype)
        found = as_numpy(x.to(getattr(norch, to)))
        with np.errstate(all="ignore"):
            wide = values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64)
            if to in FLOAT_NAMES or to == "bool" or values.dtype.kind != "f":
                fits = np.full(values.shape, True)
            else:
                info = np.iinfo(to)
                fits = (wide >= info.min) & (wide < float(info.max) + (to != "int64")) & np.isfinite(wide)
            wanted = numpy_values(values, to)
        np.testing.assert_array_equal(found[fits], wanted[fits])
        repeated = as_numpy(as_tensor(np.repeat(values, 2), dtype)[::2].to(getattr(norch, to)))
        np.testing.assert_array_equal(repeated, found)


# ---- against PyTorch ------------------------------------------------------------------------------------------------


@with_dtypes([case for case in CASES if case.torch is not False])
def test_like_torch(torch: Any, case: Case, dtype: str) -> None:
    rng = source(case.name + dtype + "torch")
    samples = [draw(case, shapes, dtype, rng) for shapes in case.shapes]
    if dtype in NARROW_NAMES:
        samples = samples[:2]
    elif case.edges and case.torch_edges is True and not traps_torch(case, samples[0]):
        samples += [legal(case, arrays) for arrays in some_edges(case, dtype)]
    for k, arrays in enumerate(samples):
        wanted = torch_results(torch, case, arrays, dtype)
        if wanted is None:
            known = is_older(torch) and case.name == "isclose equal_nan"  # it did not broadcast
            assert known or dtype != "float64", f"PyTorch refuses this case: {[x.shape for x in arrays]}"
            continue
        found = listed(case.call(norch, *[as_tensor(x, dtype) for x in arrays]))
        assert len(found) == len(wanted)
        for one, value in zip(found, wanted):
            name = str(value.dtype).removeprefix("torch.")
            value = value.float() if name == "bfloat16" else value
            tolerance = tolerance_of(case, name) * 4
            scale = scale_of(case, arrays)
            assert_same(one, value.numpy(), name, tolerance, scale, f"{case}, sample {k}, against PyTorch")


@each([case for case in CASES if case.row and len(case.dtypes) < len(ALL_NAMES)])
def test_other_dtypes_are_refused(case: Case) -> None:
    for dtype in ALL_NAMES:
        if dtype in case.dtypes:
            continue
        arrays = draw(case, case.shapes[0], dtype, source(case.name))
        tensors = [as_tensor(x, dtype) for x in arrays]
        before = [x.clone() for x in tensors]
        with pytest.raises(norch.DTypeError):
            case.call(norch, *tensors)
        for x, old in zip(tensors, before):
            assert_close(x, old, equal_nan=True)
        if case.in_place is not None:
            with pytest.raises(norch.DTypeError):
                case.write(*tensors)
            assert_close(tensors[0], before[0], equal_nan=True)


# ---- refusals -------------------------------------------------------------------------------------------------------

TWO = [
    case
    for case in CASES
    if case.row in OPCODES and lib.norch_op_form(OPCODES[case.row]) == b"binary" and len(case.domains) == 2
]


@each(TWO)
def test_shapes_that_do_not_broadcast(case: Case) -> None:
    dtype = "float64" if "float64" in case.dtypes else "int64"
    for shapes in (((2, 3), (2,)), ((2, 3), (4, 3)), ((0,), (2,))):
        arrays = draw(case, shapes, dtype, source(case.name))
        with pytest.raises(norch.ShapeError, match="broadcast"):
            case.call(norch, *[norch.tensor(x) for x in arrays])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: norch.where(x > 0, x, norch.zeros(5)),
        lambda x: norch.clamp(x, norch.zeros(5), norch.zeros(3)),
        lambda x: x @ norch.zeros(4, 2),
        lambda x: x @ norch.zeros(2),
        lambda x: x @ norch.tensor(1.0),
        lambda x: norch.zeros(2, 2, 3) @ norch.zeros(3, 3, 4),
        lambda x: norch.mm(x, norch.zeros(3)),
        lambda x: norch.bmm(x, x),
        lambda x: norch.mv(x, x),
        lambda x: norch.dot(norch.zeros(2), norch.zeros(3)),
        lambda x: norch.nn.functional.linear(x, norch.zeros(2, 4)),
        lambda x: norch.nn.functional.linear(x, norch.zeros(4, 3), norch.zeros(3)),
        lambda x: norch.cat([x, norch.zeros(2, 4)]),
        lambda x: norch.stack([x, norch.zeros(3, 2)]),
        lambda x: x.reshape(4, 2),
        lambda x: x.reshape(-1, 4),
        lambda x: x.reshape(-1, -1),
        lambda x: x.T.view(6),
        lambda x: x.expand(2, 4),
        lambda x: x.expand(3),
        lambda x: x.permute(0, 0),
        lambda x: x.permute(0),
        lambda x: x[0].mT,
        lambda x: norch.zeros(2, 2, 2).t(),
        lambda x: x.copy_(norch.zeros(4)),
        lambda x: x.gather(0, norch.zeros(1, dtype=norch.int64)),
        lambda x: x.gather(0, norch.zeros(2, 4, dtype=norch.int64)),
        lambda x: x.scatter_add(0, norch.zeros(3, 3, dtype=norch.int64), x),
        lambda x: x.index_select(0, norch.zeros(1, 1, dtype=norch.int64)),
        lambda x: x.index_add(0, norch.zeros(2, dtype=norch.int64), norch.zeros(2, 2)),
        lambda x: x.scatter_(0, norch.zeros(1, dtype=norch.int64), x),
        lambda x: x.scatter_reduce_(0, norch.zeros(3, 3, dtype=norch.int64), x, "sum"),
        lambda x: x.index_copy_(0, norch.zeros(2, dtype=norch.int64), norch.zeros(1, 3)),
        lambda x: x.index_fill_(0, norch.zeros(1, dtype=norch.int64), norch.zeros(1)),
        lambda x: x.masked_fill_(norch.ones(2, dtype=norch.bool), 2),
        lambda x: x.masked_fill_(x > 0, norch.zeros(1)),
        lambda x: x.masked_select(norch.ones(2, dtype=norch.bool)),
        lambda x: x.masked_scatter_(x > 0, norch.zeros(5)),
        lambda x: x.put_(norch.zeros(2, dtype=norch.int64), norch.zeros(3)),
        lambda x: x.take_along_dim(norch.zeros(2, dtype=norch.int64), 0),
        lambda x: x.index_put_((norch.zeros(2, dtype=norch.int64),), norch.zeros(2, 2)),
    ],
)
def test_wrong_shapes(call: Any) -> None:
    x = norch.ones(2, 3)
    with pytest.raises((norch.ShapeError, norch.ArgumentError)) as caught:
        call(x)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, norch.Error)
    assert_close(x, np.ones((2, 3), np.float32))


@pytest.mark.parametrize("bad", [2, -3, 1 << 40])
@pytest.mark.parametrize(
    "call",
    [
        *[lambda x, d, n=n: getattr(norch, n)(x, d) for n in "sum mean prod amax amin argmax argmin any all".split()],
        *[lambda x, d, n=n: getattr(norch, n)(x, d) for n in "var std logsumexp max min softmax log_softmax".split()],
        lambda x, d: x.sum((0, d)),
        lambda x, d: x.transpose(0, d),
        lambda x, d: x.permute(0, d),
        lambda x, d: x.squeeze(d),
        lambda x, d: x.unsqueeze(d * 2),
        lambda x, d: x.select(d, 0),
        lambda x, d: x.select(0, d * 2),
        lambda x, d: x.narrow(d, 0, 1),
        lambda x, d: x.flatten(0, d),
        lambda x, d: x.diagonal(0, 0, d),
        lambda x, d: x.unfold(d, 1, 1),
        lambda x, d: norch.cat([x, x], d),
        lambda x, d: norch.stack([x, x], d * 2),
        lambda x, d: x.gather(d, norch.zeros(1, 1, dtype=norch.int64)),
        lambda x, d: x.scatter_add(d, norch.zeros(1, 1, dtype=norch.int64), x),
        lambda x, d: x.index_select(d, norch.zeros(1, dtype=norch.int64)),
        lambda x, d: x.index_add(d, norch.zeros(1, dtype=norch.int64), x[:1]),
        lambda x, d: x.gather(0, norch.full((1, 1), d * 2)),
        lambda x, d: x.scatter_add(1, norch.full((1, 1), d * 2), x),
        lambda x, d: x.index_select(1, norch.full((1,), d * 2)),
        lambda x, d: x.index_add(1, norch.full((1,), d * 2), x[:, :1]),
        lambda x, d: x.scatter_(d, norch.zeros(1, 1, dtype=norch.int64), 0),
        lambda x, d: x.scatter_(1, norch.full((1, 1), d * 2), 0),
        lambda x, d: x.scatter_reduce_(1, norch.full((1, 1), d * 2), x, "amax"),
        lambda x, d: x.index_copy_(d, norch.zeros(1, dtype=norch.int64), x[:1]),
        lambda x, d: x.index_copy_(1, norch.full((1,), d * 2), x[:, :1]),
        lambda x, d: x.index_fill_(d, norch.zeros(1, dtype=norch.int64), 0),
        lambda x, d: x.index_fill_(1, norch.full((1,), d * 2), 0),
        lambda x, d: x.index_put_((norch.tensor([0, d]), norch.tensor([0, 0])), norch.zeros(2)),
        lambda x, d: x.take(norch.tensor([0, d * 4])),
        lambda x, d: x.put_(norch.tensor([0, d * 4]), norch.zeros(2)),
        lambda x, d: x.take_along_dim(norch.full((1, 1), d * 2), 1),
        lambda x, d: x.take_along_dim(norch.zeros(1, 1, dtype=norch.int64), d),
        lambda x, d: x[[d * 2]],
        lambda x, d: x.__setitem__((0, [0, d * 2]), 5),
        lambda x, d: x.size(d),
        lambda x, d: x[d * 2],
        lambda x, d: x.unbind(d),
    ],
)
def test_wrong_dims_and_indices(call: Any, bad: int) -> None:
    x = norch.ones(2, 3)
    with pytest.raises(IndexError):
        call(x, bad)
        wait()
    if DEVICE == "cpu":  # a kernel of a CUDA device has written what was in range
        assert_close(x, np.ones((2, 3), np.float32))


@pytest.mark.parametrize("dtype", INTEGER_NAMES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_integer_division_by_zero(name: str, dtype: str) -> None:
    x = norch.tensor([1, 2, 3], dtype=dtype)
    divisor = norch.tensor([1, 0, 2], dtype=dtype)
    for wrong in (
        lambda: getattr(norch, name)(x, divisor),
        lambda: getattr(norch, name)(x, 0),
        lambda: x.remainder_(0),
    ):
        with pytest.raises(ZeroDivisionError):
            wrong()
    with pytest.raises(ZeroDivisionError):
        x.floor_divide_(divisor)
    with pytest.raises(ZeroDivisionError):
        5 % divisor
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max", "min"])
def test_extremes_of_nothing(name: str) -> None:
    function = getattr(norch, name)
    with pytest.raises((IndexError, norch.Error)):
        function(norch.zeros(0))
    with pytest.raises((IndexError, norch.Error)):
        function(norch.zeros(3, 0), dim=1)
    found = function(norch.zeros(3, 0), dim=0)
    for one in listed(found):
        assert tuple(one.shape) == (0,)


# ---- the table ------------------------------------------------------------------------------------------------------


def table() -> list[tuple[int, str, str]]:
    rows = []
    while (name := lib.norch_op_name(len(rows))) is not None:
        rows.append((len(rows), name.decode(), lib.norch_op_form(len(rows)).decode()))
    return rows


def test_every_row_and_function_has_a_case() -> None:
    covered = {case.row for case in CASES} | {case.in_place for case in CASES}
    covered |= cases.COMPLEX | cases.PARTS_OF_FUNCTIONS
    same = {id(getattr(norch, name)) for name in covered if name and hasattr(norch, name)}
    covered |= {name for name, thing in vars(norch).items() if id(thing) in same}  # other names of theirs
    assert [name for _, name, _ in table() if name not in covered] == []
    lazy = " ".join(norch._LAZY.values()).split()  # of other modules; those that were read are here too
    functions = {
        name
        for name, thing in vars(norch).items()
        if not name.startswith("_")
        and name not in lazy
        and callable(thing)
        and not isinstance(thing, norch.dtype)
        and not inspect.ismodule(thing)
    }
    assert functions - covered - cases.NO_OPERATIONS == set()


@pytest.mark.kernel
@pytest.mark.parametrize(("op", "name", "form"), table(), ids=[name for _, name, _ in table()])
def test_kernels_are_those_that_the_table_declares(op: int, name: str, form: str) -> None:
    """Each dtype that a row takes has a kernel; each that it does not is refused, or becomes a float first."""
    results = {case.result for case in CASES if case.row == name}
    for dtype in [getattr(norch, one) for one in ALL_NAMES]:
        x = norch.ones(3, 5, dtype=dtype)
        condition = norch.ones(5, dtype=norch.bool)

        def run(x: Any = x, condition: Any = condition) -> Any:
            if form == "unary":
                return lib.norch_unary(op, x)
            if form == "binary":
                return lib.norch_binary(op, x, x)
            if form in ("choice", "ternary"):
                return lib.norch_ternary(op, (condition if form == "choice" else x), x, x)
            return lib.norch_reduce(op, x, None, False, -1, 0.0)

        try:
            ran = run() is not None
        except norch.DTypeError:
            ran = False
        takes = bool(lib.norch_op_takes(op, dtype.code)) or (results == {"float"} and not dtype.is_floating_point)
        assert ran == takes, f"{name} of {dtype}: the table says {takes}, the call {ran}"


# ---- accuracy and threads -------------------------------------------------------------------------------------------


@pytest.mark.kernel
@pytest.mark.slow
def test_sum_of_many_ones() -> None:
    x = norch.ones(1 << 25)
    assert abs(x.sum().item() / (1 << 25) - 1) < 1e-6
    assert abs(x.mean().item() - 1) < 1e-6
    assert abs(x.view(-1, 4).sum(0)[0].item() / (1 << 23) - 1) < 1e-6


@pytest.mark.kernel
def test_sums_of_mixed_sizes() -> None:
    values = source("sums").normal(0, 1, (7, 50_021)).astype(np.float32) + np.float32(0.1)
    x = norch.tensor(values)
    exact = values.astype(np.float64)
    assert_close(x.sum(1).double(), exact.sum(1), rtol=1e-5, atol=0)
    assert_close(x.T.sum(0).double(), exact.sum(1), rtol=1e-5, atol=0)
    assert_close(x.mean().double(), exact.mean(), rtol=1e-5, atol=0)
    assert_close(x.var(1).double(), exact.var(1, ddof=1), rtol=1e-5, atol=0)
    shifted = norch.tensor(values + np.float32(1000))
    assert_close(shifted.std(1).double(), (values + np.float32(1000)).astype(float).std(1, ddof=1), rtol=1e-4, atol=0)
    assert_close(x.logsumexp(1).double(), np.log(np.exp(exact).sum(1)), rtol=1e-6, atol=0)


def many(dtype: Any = None) -> list[Any]:
    made = norch.Generator().manual_seed(3)
    return [norch.randn(411, 1003, generator=made, dtype=dtype) for _ in range(2)]


LARGE_WORK = {
    "add": lambda a, b: a + b,
    "exp": lambda a, b: a.exp(),
    "transposed mul": lambda a, b: a.T * b.T.contiguous(),
    "broadcast": lambda a, b: a + b[0],
    "where": lambda a, b: norch.where(a > b, a, b),
    "sum": lambda a, b: a.sum(),
    "sum 0": lambda a, b: a.sum(0),
    "sum 1": lambda a, b: a.sum(1),
    "mean of a view": lambda a, b: a[::2, 1:].mean(),
    "prod": lambda a, b: (a * 0.001 + 1).prod(),
    "amax": lambda a, b: a.amax(),
    "argmax": lambda a, b: a.argmax(),
    "var": lambda a, b: a.var(),
    "std 0": lambda a, b: a.std(0),
    "logsumexp": lambda a, b: a.logsumexp((0, 1)),
    "softmax": lambda a, b: a.softmax(1),
    "softmax of columns": lambda a, b: a.softmax(0),
    "log_softmax of short rows": lambda a, b: a[:, :17].contiguous().log_softmax(1),
    "cumsum": lambda a, b: a.cumsum(1) + a.cumsum(0),
    "cummax": lambda a, b: a.cummax(1).indices + a.cummax(0).indices,
    "sort": lambda a, b: a.sort(1).indices + a.sort(0).indices,
    "topk": lambda a, b: a.topk(5).indices,
    "searchsorted": lambda a, b: norch.searchsorted(a[0].sort().values, b),
    "matmul": lambda a, b: a @ b.T,
    "matmul of few rows": lambda a, b: a[:5] @ b.T,
    "matmul with a long inner axis": lambda a, b: a.T[:20] @ b[:, :20],
    "matrix by vector": lambda a, b: a @ b[0],
    "batched": lambda a, b: a[:400].view(20, 20, -1) @ b[:400].view(20, 20, -1).mT,
    "linear": lambda a, b: norch.nn.functional.linear(a, b[:64], b[0, :64]),
    "cast": lambda a, b: a.double(),
    "cat": lambda a, b: norch.cat([a, b], 1),
    "index_select": lambda a, b: a.index_select(1, norch.arange(1002, -1, -3)),
    "index_add": lambda a, b: a.index_add(0, norch.arange(411) % 7, b),
    "gather": lambda a, b: a.gather(1, norch.arange(411 * 1003).view(411, 1003) % 1003),
    "rand": lambda a, b: norch.rand(500_001, generator=norch.Generator().manual_seed(1)),
    "randn": lambda a, b: norch.randn(500_001, generator=norch.Generator().manual_seed(1)),
    "randint": lambda a, b: norch.randint(0, 1000, (500_001,), generator=norch.Generator().manual_seed(1)),
    "randperm": lambda a, b: norch.randperm(100_001, generator=norch.Generator().manual_seed(1)),
    "bernoulli": lambda a, b: norch.bernoulli(a.sigmoid(), generator=norch.Generator().manual_seed(1)),
}


@pytest.mark.kernel
@pytest.mark.host
@pytest.mark.parametrize("name", LARGE_WORK)
def test_threads_change_no_bit(name: str) -> None:
    a, b = many()
    results = []
    for threads in (1, 2, 3):
        norch.set_num_threads(threads)
        results.append(LARGE_WORK[name](a, b).numpy().tobytes())
    assert results[0] == results[1] == results[2]
