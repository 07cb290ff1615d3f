"""out=: every function that takes it in PyTorch, with the cases of cases.py; shapes, dtypes, overlaps, refusals."""

from __future__ import annotations

import inspect
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import cases  # noqa: F401  (fills CASES)
import numpy as np
import pytest
from case import CASES, Case, as_tensor, draw, source
from conftest import DEVICE

import norch
from norch._binding.library import lib

TAKERS = {name: getattr(norch, name) for name in norch.__all__ if hasattr(getattr(norch, name), "takes_out")}
# What makes tensors, or needs arguments of its own: how it is called.
CALLS: dict[str, Any] = {
    "arange": lambda m: m.arange(2, 9, 3),
    "bernoulli": lambda m: m.bernoulli(m.tensor([0.0, 1.0])),
    "empty": lambda m: m.empty(0, 3),
    "eye": lambda m: m.eye(2, 3),
    "full": lambda m: m.full((2, 3), 4.0),
    "linspace": lambda m: m.linspace(0, 1, 5),
    "logspace": lambda m: m.logspace(0, 1, 5),
    "multinomial": lambda m: m.multinomial(m.tensor([0.0, 1.0]), 1),
    "normal": lambda m: m.normal(m.tensor([2.0, 3.0]), m.tensor([0.0, 0.0])),
    "ones": lambda m: m.ones(2, 3),
    "rand": lambda m: m.rand(0, 3),
    "randint": lambda m: m.randint(3, 4, (2, 3)),
    "randn": lambda m: m.randn(0, 3),
    "randperm": lambda m: m.randperm(1),
    "zeros": lambda m: m.zeros(2, 3),
    "complex": lambda m: m.complex(m.tensor([1.0]), m.tensor([2.0])),
    "polar": lambda m: m.polar(m.tensor([1.0]), m.tensor([2.0])),
    "angle": lambda m: m.angle(m.tensor([-1.0, 2.0])),
    "conj_physical": lambda m: m.conj_physical(m.tensor([1 + 2j])),
    "sgn": lambda m: m.sgn(m.tensor([-3.0, 2.0])),
    "isin": lambda m: m.isin(m.tensor([1, 2]), m.tensor([2, 3])),
    "aminmax": lambda m: m.aminmax(m.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1),
    "lu_unpack": lambda m: m.lu_unpack(*m.linalg.lu_factor(square(m))),
    "lu_solve": lambda m: m.lu_solve(square(m), *m.linalg.lu_factor(square(m))),
    "inverse": lambda m: m.inverse(square(m)),
    "geqrf": lambda m: m.geqrf(square(m)),
    "orgqr": lambda m: m.orgqr(square(m), m.ones(2, dtype=m.float64)),
    "ormqr": lambda m: m.ormqr(square(m), m.ones(2, dtype=m.float64), square(m)),
    "cholesky": lambda m: m.cholesky(square(m) @ square(m).mT),
    "cholesky_inverse": lambda m: m.cholesky_inverse(square(m).tril()),
    "cholesky_solve": lambda m: m.cholesky_solve(square(m), square(m).tril()),
    "qr": lambda m: m.qr(square(m)),
    "svd": lambda m: m.svd(square(m)),
    "triangular_solve": lambda m: m.triangular_solve(square(m), square(m).triu()),
    "where": lambda m: m.where(m.tensor([True, False]), m.tensor([1.0, 2.0]), m.tensor([3.0, 4.0])),
    "nonzero": lambda m: m.nonzero(m.tensor([[0.0, 1.0], [2.0, 0.0]])),
    "negative": lambda m: m.negative(m.tensor([1.0])),
}


def square(m: Any) -> Any:
    return m.tensor([[3.0, 1.0], [0.5, 2.0]], dtype=m.float64)


class Asking:
    """A module whose functions of one name are called with out=."""

    def __init__(self, module: Any, name: str, out: Any):
        self._module, self._name, self._out = module, name, out

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return partial(found, out=self._out) if name == self._name else found


class Listening(Asking):
    """One that notes whether the function is called, and what it gives."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)

        def noted(*arguments: Any, **named: Any) -> Any:
            self._out.append(result := found(*arguments, **named))
            return result

        return noted if name == self._name else found


def tensors_of(result: Any) -> tuple[Any, ...]:
    return (result,) if norch.is_tensor(result) else tuple(result)


def room_for(result: Any) -> Any:
    """Tensors of the shapes and dtypes of a result, with something else in them."""
    made = tuple(norch.ones_like(x) if x.dtype is norch.bool else norch.full_like(x, 77) for x in tensors_of(result))
    return made[0] if norch.is_tensor(result) else made


def equal(x: Any, y: Any) -> bool:
    return (
        x.dtype is y.dtype
        and x.shape == y.shape
        and x.device == y.device
        and np.array_equal(
            *(np.asarray((z.float() if z.dtype is norch.bfloat16 else z).cpu().numpy()) for z in (x, y)),
            equal_nan=x.dtype.kind in "fc",
        )
    )


def ways() -> Iterator[tuple[str, Any]]:
    """(name, call) of each function and each case that calls it once."""
    for name in TAKERS:
        if name in CALLS:
            yield name, CALLS[name]
            continue
        found = 0
        for case in CASES:
            call = partial(of_case, case)
            if name in (case.row, case.name.split()[0]) and calls_once(call, name):
                found += 1
                yield name, call
        if not found:
            yield name, partial(of_alias, name)


def of_case(case: Case, m: Any) -> Any:
    shapes = case.shapes[0]
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[-1]
    arrays = draw(case, shapes, dtype, source(case.name + "out"))
    return case.call(m, *(as_tensor(x, dtype).to(DEVICE) for x in arrays))


def calls_once(call: Any, name: str) -> bool:
    results: list[Any] = []
    call(Listening(norch, name, results))
    return len(results) == 1 and all(map(norch.is_tensor, tensors_of(results[0])))


def of_alias(name: str, m: Any) -> Any:
    """For names without a case: one, two or three matrices, or what it names is another name of."""
    x, y = norch.tensor([[0.25, 0.5], [0.75, 0.375]]), norch.tensor([[0.5, 0.75], [0.25, 0.625]])
    function = getattr(m, name)
    if name in ("concat", "concatenate", "row_stack"):
        return function([x, y])
    if name in ("arccosh", "clip"):
        return function(x + 1, *([1.5] if name == "clip" else []))
    plain = inspect.unwrap(TAKERS[name])
    count = sum(p.default is p.empty for p in inspect.signature(plain).parameters.values())
    return function(*(x, y)[:count])


WAYS = list(ways())


COMPLEX = {"angle", "complex", "conj_physical", "polar"}  # without kernels on CUDA


@pytest.mark.parametrize(("name", "call"), WAYS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(WAYS)])
def test_the_result_is_written_and_given_back(name: str, call: Any) -> None:
    if DEVICE != "cpu" and name in COMPLEX:
        pytest.skip("no kernel for complex numbers on CUDA")
    heard: list[Any] = []
    call(Listening(norch, name, heard))
    wanted = heard[0]
    out = room_for(wanted)
    before = [x._version for x in tensors_of(out)]
    heard.clear()
    call(Listening(Asking(norch, name, out), name, heard))
    (found,) = heard
    for given, one, value in zip(tensors_of(out), tensors_of(found), tensors_of(wanted), strict=True):
        assert one is given
        assert equal(one, value), f"{name}: {one} instead of {value}"
    assert all(x._version > version for x, version in zip(tensors_of(out), before, strict=True)), "a write unseen"
    assert type(found) is type(wanted)


def test_takers_are_those_of_torch(torch: Any) -> None:
    """Each name is one that PyTorch lets take out=, and no other of PyTorch's that norch has is missing."""
    for name in TAKERS:
        assert name in CALLS or refusal(getattr(torch, name)) != "unexpected", name
    documented = {n for n in dir(torch) if hasattr(norch, n) and "out (Tensor" in str(getattr(torch, n).__doc__)}
    missing = {n for n in documented if not hasattr(getattr(norch, n), "takes_out")}
    missing -= {"std_mean", "var_mean"}  # these refuse it all the same
    assert not missing, missing


def refusal(function: Any) -> str:
    try:
        function(out="text")
    except TypeError as error:
        return "unexpected" if "unexpected keyword argument 'out'" in str(error) else "other"
    return "none"


# ---- shapes, dtypes, overlaps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_makes_tensors_computes_in_the_dtype_of_out(torch: Any, dtype: str) -> None:
    def made(t: Any) -> Iterator[Any]:
        kind = getattr(t, dtype)
        low, high = t.tensor(0.1, dtype=kind), t.tensor(0.7, dtype=kind)
        between = (partial(t.linspace, low, high, 7), partial(t.logspace, low, high, 7))
        for call in (*between, partial(t.arange, low, 3, 0.3)):
            out = t.empty(0, dtype=kind)
            call(out=out)
            yield out.numpy()

    for found, wanted in zip(made(norch), made(torch), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("call", "value", "dtype", "of_out"),
    [
        ("sum", 1e38, "float32", "float64"),  # infinite in float32
        ("cumsum", 1e38, "float32", "float64"),
        ("sum", 5e4, "float16", "float32"),
        ("sum", True, "bool", "bool"),
        ("prod", 100, "int8", "int8"),
        ("sum", 3, "int64", "float32"),
    ],
)
def test_sums_compute_in_the_dtype_of_out(call: str, value: Any, dtype: str, of_out: str) -> None:
    values = np.full((3, 10), value, dtype)
    wanted = getattr(np, call)(values, 1, dtype=of_out)
    found = getattr(norch, call)(norch.tensor(values), 1, out=norch.empty(wanted.shape, dtype=of_out))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("zeros", (2,)), ("full", ((2,), 3)), ("arange", (2,)), ("eye", (2,)), ("linspace", (0, 9, 4))],
)
def test_a_dtype_and_a_device_of_none_are_those_of_out(torch: Any, name: str, arguments: Any) -> None:
    for m in (norch, torch):
        out = m.empty(0, dtype=m.int16)
        getattr(m, name)(*arguments, dtype=None, device=None, out=out)
        assert out.numel() and out.tolist() == getattr(m, name)(*arguments).tolist()
        on_meta = m.empty(0, device="meta")
        assert getattr(m, name)(*arguments, dtype=None, device=None, out=on_meta) is on_meta


def test_an_empty_tensor_takes_the_shape_silently() -> None:
    out = norch.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert norch.add(norch.ones(2, 3), 1, out=out) is out
    assert out.tolist() == [[2.0] * 3] * 2
    assert norch.exp(norch.zeros(4), out=norch.empty(0)).tolist() == [1.0] * 4


@pytest.mark.parametrize("call", ["exp", "sum", "cat"])
def test_another_shape_is_resized_with_a_warning(torch: Any, call: str) -> None:
    for m in (norch, torch):
        out, x = m.ones(3), m.zeros(2, 2)
        with pytest.warns(UserWarning, match="resized"):
            getattr(m, call)([x] if call == "cat" else x, *([0] if call == "sum" else []), out=out)
        assert (
            out.tolist() == {"exp": [[1.0, 1.0], [1.0, 1.0]], "sum": [0.0, 0.0], "cat": [[0.0, 0.0], [0.0, 0.0]]}[call]
        )


@pytest.mark.parametrize("call", ["exp", "add", "sum", "cumsum", "cat", "all", "any of bytes"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
def test_dtypes_of_out_like_torch(torch: Any, call: str, dtype: str) -> None:
    calls = {
        "exp": lambda m, x, out: m.exp(x, out=out),
        "add": lambda m, x, out: m.add(x, x, out=out),
        "sum": lambda m, x, out: m.sum(x, 0, out=out),
        "cumsum": lambda m, x, out: m.cumsum(x, 0, out=out),
        "cat": lambda m, x, out: m.cat([x[None]], out=out),
        "all": lambda m, x, out: m.all(x, 0, out=out),
        "any of bytes": lambda m, x, out: m.any(x.to(m.uint8), 0, out=out),
    }
    results = []
    for m in (norch, torch):
        x = m.tensor([[1.0, 2.0]])
        shape = {"cat": (1, 1, 2), "exp": (1, 2), "add": (1, 2), "cumsum": (1, 2)}.get(call, (2,))
        out = m.zeros(shape, dtype=getattr(m, dtype))
        try:
            results.append(calls[call](m, x, out).tolist())
        except (RuntimeError, TypeError) as error:
            results.append("refused")
            assert m is torch or "cannot be written into out of dtype" in str(error)
    if results[1] == "refused":
        assert results[0] == "refused" or call == "cumsum"  # into float64, where PyTorch wants float32
    else:
        assert results[0] == results[1]


def test_integers_into_floats_and_factories(torch: Any) -> None:
    for m in (norch, torch):
        assert m.add(m.tensor([1]), m.tensor([2]), out=m.zeros(1)).tolist() == [3.0]
        out = m.zeros(3, dtype=m.float64)
        assert m.arange(3, out=out) is out
        assert out.dtype is m.float64
        third = m.linspace(0, 1, 4, out=m.zeros(4, dtype=m.float64))[1].item()
        assert abs(third - 1 / 3) < 1e-15  # computed in float64
        assert m.full((2,), 3, out=m.zeros(2)).tolist() == [3.0, 3.0]
        assert m.zeros(2, out=m.ones(2), requires_grad=True).requires_grad


def test_out_may_be_an_input_or_overlap_one() -> None:
    x = norch.arange(6.0)
    norch.add(x[:-1], x[1:], out=x[1:])
    assert x.tolist() == [0, 1, 3, 5, 7, 9]
    x = norch.arange(4.0).reshape(2, 2)
    norch.exp(x.T, out=x)
    assert x.tolist() == norch.arange(4.0).reshape(2, 2).T.exp().tolist()
    x = norch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert norch.matmul(x, x, out=x) is x
    assert x.tolist() == [[7.0, 10.0], [15.0, 22.0]]
    x = norch.tensor([3.0, 1.0, 2.0])
    norch.sort(x, out=(x, norch.empty(3, dtype=norch.int64)))
    assert x.tolist() == [1.0, 2.0, 3.0]
    x = norch.arange(4.0)
    norch.cat([x[2:], x[:2]], out=x)
    assert x.tolist() == [2, 3, 0, 1]


def test_a_view_is_written_through() -> None:
    x = norch.zeros(2, 3)
    norch.add(norch.ones(3), 1, out=x[1])
    norch.sum(norch.ones(4, 2), 0, out=x[0, ::2])
    assert x.tolist() == [[4, 0, 4], [2, 2, 2]]
    y = norch.zeros(3, 2)
    norch.mul(norch.ones(2, 3), norch.arange(3.0), out=y.T)
    assert y.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_names_of_the_elements() -> None:
    x = norch.tensor([[1.0, 5.0], [7.0, 2.0]])
    values, indices = norch.empty(0), norch.empty(0, dtype=norch.int64)
    for call in (
        partial(norch.max, x, 1),
        partial(norch.min, x, dim=1),
        partial(norch.sort, x, dim=1),
        partial(norch.topk, x, 1),
        partial(norch.kthvalue, x, 1),
        partial(norch.median, x, 1),
        partial(norch.mode, x),
        partial(norch.cummax, x, 0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(out=(values, indices))
        assert found.values is values
        assert found.indices is indices
        assert found.values.tolist() == call().values.tolist()
        assert found.indices.tolist() == call().indices.tolist()


# ---- refusals -----------------------------------------------------------------------------------------------------


def test_what_requires_grad_is_refused() -> None:
    w, x = norch.ones(2, requires_grad=True), norch.ones(2)
    for call in (
        lambda: norch.add(w, x, out=norch.zeros(2)),
        lambda: norch.add(x, x, out=w),
        lambda: norch.exp(w, out=norch.zeros(2)),
        lambda: norch.cat([x, w], out=norch.zeros(4)),
        lambda: norch.sum(w, 0, out=norch.zeros(())),
    ):
        with pytest.raises(RuntimeError, match=r"out=... arguments don't support automatic differentiation"):
            call()
    with norch.no_grad():
        assert norch.add(w, x, out=w) is w
    assert w.tolist() == [2.0, 2.0]
    assert norch.eq(w, 2, out=norch.zeros(2, dtype=norch.bool)).tolist() == [True, True]  # it has no derivative


def test_errors_leave_out_as_it_was() -> None:
    out, x = norch.full((2,), 5.0), norch.ones(2)
    for call, error, message in (
        (lambda: norch.add(x, norch.ones(3), out=out), norch.ShapeError, "add: sizes 2 and 3"),
        (lambda: norch.exp(x, out=[1, 2]), TypeError, "exp: out must be a tensor, or a tuple of them, not list"),
        (lambda: norch.zeros(2, out=[out]), TypeError, "zeros: the result is 1 tensors, out a list of 1"),
        (lambda: norch.rand(2, out=(out, x)), TypeError, "rand: the result is 1 tensors, out a tuple of 2"),
        (lambda: norch.exp(x, out="out"), TypeError, "exp: out must be a tensor, or a tuple of them, not str"),
        (lambda: norch.max(x, 0, out=out), TypeError, "max: the result is 2 tensors, out 1"),
        (lambda: norch.sum(x, out=(out, out)), TypeError, "sum: the result is 1 tensors, out a tuple of 2"),
        (lambda: norch.sum(x, 0, out=(out,)), TypeError, "sum: the result is 1 tensors, out a tuple of 1"),
        (
            lambda: norch.max(x[None], 0, out=(out, norch.zeros(2, dtype=norch.bool))),
            norch.DTypeError,
            "max: a result of dtype int64 cannot be written into out of dtype bool",
        ),
        (
            lambda: norch.exp(x, out=norch.zeros(2, dtype=norch.int64)),
            norch.DTypeError,
            "exp: a result of dtype float32 cannot be written into out of dtype int64",
        ),
        (
            lambda: norch.floor_divide(norch.ones(2).long(), norch.zeros(2).long(), out=out),
            ZeroDivisionError,
            "floor_divide",
        ),
        (lambda: norch.add(x, x, out=norch.zeros(1).expand(2)), norch.Error, "overlap|same element|expand"),
    ):
        with pytest.raises(error, match=message):
            call()
        assert out.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("name", ["exp", "mul", "lerp", "div", "add"])
def test_out_is_given_by_its_name_alone(name: str) -> None:
    """Also where Python would take it by position, and what is no argument is refused with or without it."""
    x, out, function = norch.ones(2), norch.full((2,), 7.0), getattr(norch, name)
    count = {"exp": 1, "mul": 2, "lerp": 3, "div": 2, "add": 3}[name]
    for more in ((out,), (None,), (out, out), (out, None, out)):
        with pytest.raises(TypeError, match=rf"{name}\(\) takes .* positional arguments? but \d"):
            function(*[x] * count, *more)
        with pytest.raises(TypeError, match=rf"{name}\(\) takes .* positional arguments? but \d"):
            function(*[x] * count, more[0], out=out)
    for named in ({"unknown": 1}, {"unknown": 1, "out": out}):
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'unknown'"):
            function(*[x] * count, **named)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing 1 required positional argument"):
        function(*[x] * (1 if name == "add" else count - 1), out=out)
    assert out.tolist() == [7.0, 7.0]


def test_keyword_only_arguments_go_with_it() -> None:
    x, y = norch.tensor([3.0, -3.0]), norch.tensor([2.0, 2.0])
    assert norch.div(x, y, rounding_mode="floor").tolist() == [1.0, -2.0]
    assert norch.div(x, y, rounding_mode="trunc", out=norch.empty(0)).tolist() == [1.0, -1.0]
    assert norch.div(x, y, rounding_mode=None, out=None).tolist() == [1.5, -1.5]
    assert norch.add(x, y, alpha=2, out=norch.empty(0)).tolist() == [7.0, 1.0]
    assert norch.add(input=x, other=y, out=norch.empty(0)).tolist() == [5.0, -1.0]
    assert norch.cat([x, y], axis=0, out=norch.empty(0)).tolist() == [3.0, -3.0, 2.0, 2.0]


def test_methods_take_none() -> None:
    with pytest.raises(TypeError, match="out"):
        norch.ones(2).add(1, out=norch.zeros(2))


# ---- history, captures, and what else looks at functions -------------------------------------------------------------


def test_a_write_is_noticed_by_autograd() -> None:
    w = norch.ones(2, requires_grad=True)
    saved = norch.full((2,), 3.0)
    y = (w * saved).sum()
    norch.exp(norch.zeros(2), out=saved)
    with pytest.raises(norch.Error, match="changed in place"):
        y.backward()


def test_captured_functions_write_out_again() -> None:
    out, total = norch.zeros(3), norch.zeros(())

    @norch.capture
    def step(x: Any) -> Any:
        norch.exp(x, out=out)
        norch.sum(out, out=total)
        norch.add(out, 1, out=out)
        return out * 2

    for k in range(5):
        x = norch.tensor([0.0, 1.0, 2.0]) + k
        assert np.allclose(step(x).cpu().numpy(), (x.exp() + 1).cpu().numpy() * 2)
        assert math.isclose(total.item(), x.exp().sum().item(), rel_tol=1e-6)
        assert np.allclose(out.cpu().numpy(), x.exp().cpu().numpy() + 1)


def test_a_capture_that_would_resize_is_refused() -> None:
    @norch.capture
    def step(x: Any) -> Any:
        return norch.exp(x, out=norch.empty(0)) + 1

    with pytest.raises(norch.CaptureError, match=r"exp: out has shape \(0,\), the result \(3,\)"):
        for _ in range(4):
            step(norch.zeros(3))


def test_pickles_and_signatures() -> None:
    several = [getattr(m, name) for m in (norch.linalg, norch.fft, norch.special) for name in m.__all__]
    for function in [*TAKERS.values(), *(one for one in several if hasattr(one, "takes_out"))]:
        assert pickle.loads(pickle.dumps(function)) is function
        assert list(inspect.signature(function).parameters)[-1] == "out"
        assert function.__doc__ == inspect.unwrap(function).__doc__
    assert norch.absolute is norch.abs
    assert norch.add(norch.ones(1), 1, out=None).tolist() == [2.0]


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_other_modules(torch: Any, module: str) -> None:
    if DEVICE != "cpu" and module == "fft":
        pytest.skip("no kernel for complex numbers on CUDA")
    ours, theirs = getattr(norch, module), getattr(torch, module)
    takers = [name for name in ours.__all__ if hasattr(getattr(ours, name), "takes_out")]
    documented = [n for n in ours.__all__ if "out (" in (getattr(theirs, n).__doc__ or "")]
    assert not {*documented} - {*takers}
    x = square(norch) @ square(norch).mT
    for name in takers:
        given = {"lu_solve": (*ours.lu_factor(x), x), "tensorinv": (x, 1)} if module == "linalg" else {}
        given["householder_product"] = (x, x[0])
        given |= {
            "fftfreq": (4,),
            "rfftfreq": (4,),
            "multi_dot": ([x, x],),
            "matrix_power": (x, 2),
            "polygamma": (1, x),
        }
        given |= dict.fromkeys(("cross",), (x @ norch.ones(2, 3, dtype=x.dtype),) * 2)
        given |= dict.fromkeys(("multigammaln", "logsumexp", "softmax"), (x, 1))
        given |= dict.fromkeys(("solve", "solve_ex", "matmul", "vecdot", "lstsq"), (x, x))
        given |= dict.fromkeys(("gammainc", "gammaincc", "xlogy", "xlog1py", "zeta"), (x + 1, x))
        named = {"upper": False} if name == "solve_triangular" else {}
        given |= {"solve_triangular": (x.tril(), x), "tensorsolve": (norch.eye(4).double().reshape(2, 2, 2, 2), x)}
        function = getattr(ours, name)
        wanted = function(*given.get(name, (x,)), **named)
        out = room_for(wanted)
        found = function(*given.get(name, (x,)), **named, out=out)
        for given_, one, value in zip(tensors_of(out), tensors_of(found), tensors_of(wanted), strict=True):
            assert one is given_, name
            assert equal(one, value), name


def test_a_failure_of_the_device_is_not_computed_again(monkeypatch):
    def fail(*_):
        raise norch.DeviceError("cuda: an illegal address")

    monkeypatch.setattr(lib, "norch_unary_into", fail)
    with pytest.raises(norch.DeviceError, match="illegal address"):
        norch.exp(norch.ones(2), out=norch.ones(2))


@pytest.mark.parametrize(("wants", "error"), [(True, norch.errors.DTypeError), (3, TypeError)])
def test_out_that_cannot_require_grad_is_not_written(wants, error):
    out = norch.full((2, 2), 7, dtype=norch.int8)
    with pytest.raises(error, match="gradients, not int8|requires_grad"):
        norch.eye(2, out=out, requires_grad=wants)
    assert out.tolist() == [[7, 7], [7, 7]]


WRAPPED = """
import sys
from pathlib import Path
import norch
x, F = norch.ones(3, 3), norch.nn.functional
for text in CALLS:
    call, frames = eval("lambda: " + text), []
    call()  # which imports what it needs
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code.co_filename) if event == "call" else None)
    call()
    sys.setprofile(None)
    wrappers = [Path(name).name in ("_entry.py", "_out.py", "_public.py") for name in frames[1:]]
    print(wrappers.index(False), text)
"""
ONCE = [
    "norch.cross(x, x)", "norch.diff(x, dim=0)", "norch.nan_to_num(x, 0.0)", "norch.movedim(x, 0, 1)",
    "norch.hsplit(x, 3)", "x.movedim(source=0, destination=1)", "norch.addmm(x, x, x)",
]  # fmt: skip


def test_one_wrapper_is_before_the_body() -> None:
    """Each costs a call as much as a small operation. In a process of its own: objects with __torch_function__ give
    functions a further frame for the rest of a process."""
    code = f"CALLS = {ONCE!r}\n" + WRAPPED
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(ONCE) and all(line[0] in "01" for line in lines), lines


def test_makers_with_out_check_the_layout():
    out = norch.ones(2)
    assert norch.zeros(2, out=out, layout=norch.strided) is out and out.tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="norch has strided tensors alone"):
        norch.ones(2, out=out, layout="torch.sparse_coo")
    assert out.tolist() == [0.0, 0.0]
