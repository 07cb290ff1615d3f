"""Every case of cases.py over dtypes, layouts and edge values: values, gradients, in-place twins and refusals."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import cases
import numpy as np
import pytest
from cases import ALL_NAMES, CASES, FLOAT_NAMES, Case, draw, edge_inputs, edge_values, laid_out, source

import norch
from norch._lib import lib
from norch.ops._forms import OPS
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = [
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
    pytest.mark.filterwarnings("ignore:(var|std)\\(\\)"),
]

OTHER_LAYOUTS = ("transposed", "strided", "offset", "expanded")
# Relative error of a few units in the last place; cases multiply it by their slack.
TOLERANCES = {"float32": 5e-7, "float64": 2e-15}
POINTWISE = [case for case in CASES if case.row in OPS and lib.norch_op_form(OPS[case.row]) != b"reduce"]


def with_dtypes(chosen: Sequence[Case], dtypes: Sequence[str] = ALL_NAMES) -> Any:
    """Parametrises over cases and the dtypes that they take."""
    pairs = [(case, dtype) for case in chosen for dtype in case.dtypes if dtype in dtypes]
    return pytest.mark.parametrize(("case", "dtype"), pairs, ids=[f"{case}-{dtype}" for case, dtype in pairs])


def each(chosen: Sequence[Case]) -> Any:
    """Parametrises over cases."""
    return pytest.mark.parametrize("case", chosen, ids=str)


# ---- what must come out ---------------------------------------------------------------------------------------------


def result_dtypes(case: Case, dtype: str) -> list[str]:
    """The dtype of each result."""
    floating = dtype in FLOAT_NAMES
    rules = {
        "same": dtype,
        "float": dtype if floating else "float32",
        "sum": dtype if floating else "int64",
        "index": "int64",
    }
    return [rules.get(rule, rule) for rule in case.result.split()]


def expected(case: Case, arrays: Sequence[Any]) -> list[Any]:
    """The results by NumPy, in float64, int64 or bool."""
    wide = [x if x.dtype == bool else x.astype(np.float64 if x.dtype.kind == "f" else np.int64) for x in arrays]
    if case.result == "float":  # what becomes a float becomes a float32 first
        wide = [x.astype(np.float32).astype(np.float64) if x.dtype.kind != "f" else x for x in wide]
    with np.errstate(all="ignore"):
        found = case.reference(*wide)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def listed(found: Any) -> list[Any]:
    """Results as a list."""
    return list(found) if isinstance(found, (tuple, list)) else [found]


def scale_of(case: Case, arrays: Sequence[Any]) -> float:
    """For results that add many terms: how large the terms, and so the absolute error, may be."""
    if not case.scaled:
        return 0.0
    scale = 1.0
    for x in arrays:
        finite = np.abs(x[np.isfinite(x)].astype(float))
        scale *= max(float(finite.max(initial=0)), 1e-30)
    return scale * max(x.size for x in arrays) ** 0.5


def assert_same(actual: Any, wanted: Any, dtype: str, tolerance: float, scale: float, about: str) -> None:
    """Values, shape and dtype of a tensor (or number) against an array of float64, int64 or bool."""
    found = actual.detach().numpy()
    assert found.shape == wanted.shape, f"{about}: shape {found.shape}, expected {wanted.shape}"
    assert found.dtype.name == dtype, f"{about}: dtype {found.dtype.name}, expected {dtype}"
    with np.errstate(all="ignore"):
        if dtype not in FLOAT_NAMES:
            good = found == wanted.astype(dtype)
        else:
            wanted = wanted.astype(np.float64)
            rounded = wanted.astype(dtype)  # overflows as the operation does
            least = float(np.finfo(dtype).smallest_subnormal)
            off = np.abs(found.astype(np.float64) - wanted)
            good = (off <= tolerance * np.abs(wanted) + tolerance * scale + 2 * least) | (found == rounded)
            good |= np.isnan(found) & np.isnan(wanted)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        raise AssertionError(
            f"{about}: {int((~good).sum())} of {good.size} elements are wrong, the first at {list(at)}: "
            f"{found[at]!r}, expected {wanted[at]!r}"
        )


def check(case: Case, arrays: Sequence[Any], dtype: str, layouts: Sequence[str]) -> list[Any]:
    """One call against NumPy; the tensors that went in."""
    pairs = [laid_out(x, layout) for x, layout in zip(arrays, layouts)]
    tensors, arrays = [tensor for tensor, _ in pairs], [array for _, array in pairs]
    copies = [x.clone() for x in tensors]
    about = f"{case} of {[x.shape for x in arrays]} {list(layouts)}"
    found, wanted = listed(case.call(norch, *tensors)), expected(case, arrays)
    assert len(found) == len(wanted)
    rules = result_dtypes(case, dtype)
    for i, (one, value) in enumerate(zip(found, wanted)):
        name = rules[min(i, len(rules) - 1)]
        assert_same(one, value, name, TOLERANCES.get(name, 0) * case.slack, scale_of(case, arrays), about)
    for x, copy in zip(tensors, copies):
        assert_close(x, copy, rtol=0, atol=0)  # inputs stay
    return tensors


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.kernel
@with_dtypes(CASES)
def test_values(case: Case, dtype: str) -> None:
    rng = source(case.name + dtype)
    for k, shapes in enumerate(case.shapes):
        arrays = draw(case, shapes, dtype, rng)
        check(case, arrays, dtype, ["contiguous"] * len(shapes))
        for i in range(len(OTHER_LAYOUTS)):
            check(case, arrays, dtype, [OTHER_LAYOUTS[(i + k * j) % 4] for j in range(len(shapes))])


def some_edges(case: Case, dtype: str) -> list[list[Any]]:
    """Inputs with edge values: all of them for pointwise cases, strewn over samples for others."""
    if case in POINTWISE:
        return [edge_inputs(case, dtype)]
    rng = source(case.name + dtype + "edges")
    values = edge_values(dtype)
    if dtype in FLOAT_NAMES:  # those that overflow in sums depend on the order of adding
        values = values[~(np.abs(values) >= 88) | np.isinf(values)]
    if dtype in FLOAT_NAMES and case.row == "prod":  # and in products
        values = values[~(np.abs(values) < 1e-9)]
    found = []
    shapes_here = [shapes for shapes in case.shapes if case.row != "prod" or np.prod(shapes[0]) < 99]
    for shapes in shapes_here * (3 if len(shapes_here) > 1 else 8):
        arrays = draw(case, shapes, dtype, rng)
        for x, domain in zip(arrays, case.domains * len(arrays)):
            if isinstance(domain, str) or not x.size:
                continue
            for _ in range(int(rng.integers(1, 4))):
                x.reshape(-1)[rng.integers(0, x.size)] = rng.choice(values)
        found.append(arrays)
    return found


def legal(case: Case, arrays: list[Any]) -> list[Any]:
    """Edge inputs without those that raise: integers divided by 0."""
    if case.row in ("floor_divide", "remainder") and arrays[1].dtype.kind != "f":
        keep = arrays[1] != 0
        return [x[keep] for x in arrays]
    if case.row.endswith("_backward"):  # results of sigmoid and tanh lie in a range
        low = {"sigmoid_backward": 0, "tanh_backward": -1}.get(case.row, -np.inf)
        arrays[1] = np.clip(arrays[1], low, 1 if np.isfinite(low) else None)
    if case.row == "" and arrays[-1].dtype.kind != "f" and re.match(r"div|7 //|7 %", case.name):
        arrays[-1][arrays[-1] == 0] = 1
    return arrays


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
    values = np.array([0.0, -0.0, np.inf, -np.inf, -0.3] * 5, dtype)
    with np.errstate(all="ignore"):
        wanted = np.asarray(cases.BY_NAME[name].reference(values.astype(float)))
    found = getattr(norch, name)(norch.tensor(values)).numpy()
    at = ~np.isnan(wanted)
    assert (np.signbit(found) == np.signbit(wanted))[at].all(), (found, wanted)


@pytest.mark.kernel
@pytest.mark.parametrize("dtype", ALL_NAMES)
def test_casts_at_the_edges(dtype: str) -> None:
    """What fits is converted as NumPy does; what does not is defined, and the same in every layout."""
    values = edge_values(dtype)
    for to in ALL_NAMES:
        x = norch.tensor(values)
        found = x.to(getattr(norch, to)).numpy()
        with np.errstate(all="ignore"):
            wide = values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64)
            if to in FLOAT_NAMES or to == "bool" or values.dtype.kind != "f":
                fits = np.full(values.shape, True)
            else:
                info = np.iinfo(to)
                fits = (wide >= info.min) & (wide < float(info.max) + (to == "int32")) & np.isfinite(wide)
            wanted = values.astype(to)
        np.testing.assert_array_equal(found[fits], wanted[fits])
        repeated = norch.tensor(np.repeat(values, 2))[::2].to(getattr(norch, to)).numpy()
        np.testing.assert_array_equal(repeated, found)


# ---- against PyTorch ------------------------------------------------------------------------------------------------


def torch_results(torch: Any, case: Case, arrays: Sequence[Any]) -> list[Any] | None:
    """What PyTorch gives, None where it refuses."""
    try:
        found = case.torch_call()(torch, *[torch.from_numpy(np.array(x)) for x in arrays])
    except (RuntimeError, TypeError, IndexError):
        return None
    return listed(found)


def traps_torch(case: Case, arrays: Sequence[Any]) -> bool:
    """Whether PyTorch would divide the least integer by -1, which ends the process."""
    return case.row in ("floor_divide", "remainder") and arrays[0].dtype.kind == "i"


@with_dtypes([case for case in CASES if case.torch is not False])
def test_like_torch(torch: Any, case: Case, dtype: str) -> None:
    rng = source(case.name + dtype + "torch")
    samples = [draw(case, shapes, dtype, rng) for shapes in case.shapes]
    if case.edges and case.torch_edges is True and not traps_torch(case, samples[0]):
        samples += [legal(case, arrays) for arrays in some_edges(case, dtype)]
    for k, arrays in enumerate(samples):
        wanted = torch_results(torch, case, arrays)
        if wanted is None:
            assert dtype != "float64", f"PyTorch refuses this case: {[x.shape for x in arrays]}"
            continue
        if case.row in ("any", "all") and dtype == "uint8":
            continue  # there PyTorch gives uint8, for the sake of old programs
        found = listed(case.call(norch, *[norch.tensor(x) for x in arrays]))
        assert len(found) == len(wanted)
        for one, value in zip(found, wanted):
            name = str(value.dtype).removeprefix("torch.")
            tolerance = TOLERANCES.get(name, 0) * case.slack * 4
            scale = scale_of(case, arrays)
            assert_same(one, value.numpy(), name, tolerance, scale, f"{case}, sample {k}, against PyTorch")


@each([case for case in CASES if case.row and len(case.dtypes) < len(ALL_NAMES)])
def test_other_dtypes_are_refused(case: Case) -> None:
    for dtype in ALL_NAMES:
        if dtype in case.dtypes:
            continue
        arrays = draw(case, case.shapes[0], dtype, source(case.name))
        tensors = [norch.tensor(x) for x in arrays]
        before = [x.clone() for x in tensors]
        with pytest.raises(norch.DTypeError):
            case.call(norch, *tensors)
        for x, old in zip(tensors, before):
            assert_close(x, old)
        if case.in_place is not None:
            with pytest.raises(norch.DTypeError):
                getattr(tensors[0], case.in_place)(*tensors[1:])
            assert_close(tensors[0], before[0])


# ---- derivatives ----------------------------------------------------------------------------------------------------

TIED = ("amax", "amin", "max", "min", "std")
DIFFERENTIABLE = [case for case in CASES if case.grad]


def variables(case: Case, tensors: Sequence[Any]) -> list[int]:
    """Which inputs get gradients."""
    chosen = range(len(tensors)) if case.inputs is None else case.inputs
    return [i for i in chosen if tensors[i].is_floating_point()]


def small_samples(case: Case, text: str) -> list[list[Any]]:
    """Inputs to check derivatives on: few elements, and no variance of a single one."""
    rng = source(case.name + text)
    least = 2 if case.row in ("var", "std") else 0
    found = [
        draw(case, shapes, "float64", rng)
        for shapes in case.shapes
        if all(np.prod(s) <= 30 for s in shapes) and not 0 < np.prod(shapes[0]) < least
    ]
    assert found, "a case needs a small sample to check derivatives on"
    return found


def leaves(case: Case, arrays: Sequence[Any], layout: str = "contiguous") -> list[Any]:
    tensors = [laid_out(x, layout)[0] for x in arrays]
    for i in variables(case, tensors):
        tensors[i].requires_grad_()
    return tensors


@each(DIFFERENTIABLE)
def test_gradients(case: Case) -> None:
    for k, arrays in enumerate(small_samples(case, "gradients")):
        for layout in ("contiguous", ("transposed", "strided", "expanded")[k % 3]):
            if layout == "expanded" and case.row in TIED:
                continue  # equal elements have no derivative there
            tensors = leaves(case, arrays, layout)
            assert gradcheck(lambda *xs: case.call(norch, *xs), tensors)


@each([case for case in DIFFERENTIABLE if case.grad > 1])
def test_second_derivatives(case: Case) -> None:
    samples = [arrays for arrays in small_samples(case, "second") if all(x.size for x in arrays)]
    samples.sort(key=lambda arrays: sum(x.size for x in arrays))
    for arrays in samples[:3:2] or samples[:1]:
        assert gradgradcheck(lambda *xs: case.call(norch, *xs), leaves(case, arrays), atol=1e-4)


def backward_of(library: Any, call: Any, tensors: Sequence[Any], weights: Sequence[Any]) -> None:
    """Gradients of all floating results, weighted."""
    results = [x for x in listed(call(library, *tensors)) if x.is_floating_point() and x.requires_grad]
    for k, out in enumerate(results):
        weight = np.broadcast_to(
            np.resize(weights, int(np.prod(tuple(out.shape)))).reshape(tuple(out.shape)), tuple(out.shape)
        )
        make = library.tensor if library is norch else library.from_numpy
        out.backward(make(np.array(weight)).to(out.dtype), retain_graph=k + 1 < len(results))


# What PyTorch can do without derivatives, or only for some shapes.
UNFINISHED_IN_TORCH = (
    "remainder",
    "clamp_min",
    "clamp_max",
    "clamp",
    "gelu_backward",
    "silu_backward",
    "scatter_add",
    "",
)


@with_dtypes([case for case in DIFFERENTIABLE if case.torch is not False], FLOAT_NAMES)
def test_gradients_like_torch(torch: Any, case: Case, dtype: str) -> None:
    """Also where a formula has a kink, a tie or a pole."""
    rng = source(case.name + dtype + "torch gradients")
    samples = [draw(case, shapes, dtype, rng) for shapes in case.shapes if sum(np.prod(s) for s in shapes) < 400]
    samples += [[np.round(x).astype(x.dtype) for x in arrays] for arrays in samples]  # ties and zeros
    if case.edges and case.torch_edges is True:
        samples += [legal(case, arrays) for arrays in some_edges(case, dtype)]
    weights = rng.uniform(0.5, 2, 97)
    for k, arrays in enumerate(samples):
        ours = [norch.tensor(x) for x in arrays]
        theirs = [torch.from_numpy(np.array(x)) for x in arrays]
        chosen = variables(case, ours)
        for i in chosen:
            ours[i].requires_grad_()
            theirs[i].requires_grad_()
        try:
            backward_of(torch, case.torch_call(), theirs, weights)
        except RuntimeError:
            assert case.row in UNFINISHED_IN_TORCH, "PyTorch has no derivative for this case"
            continue
        backward_of(norch, case.call, ours, weights)
        for i in chosen:
            found, wanted = ours[i].grad, theirs[i].grad
            assert (found is None) == (wanted is None), f"{case}, sample {k}, input {i}: {found} and {wanted}"
            if found is not None:
                about = f"{case}, sample {k}, gradient of input {i}, against PyTorch"
                tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype] * case.slack
                assert_same(found, wanted.numpy(), dtype, tolerance, scale_of(case, arrays), about)


@each(DIFFERENTIABLE)
def test_gradients_own_their_memory(case: Case) -> None:
    """No two of the gradients of leaves, nor the one that was given, share an element; each can be written to."""
    for arrays in small_samples(case, "memory"):
        tensors = leaves(case, arrays)
        for out in listed(case.call(norch, *tensors)):
            if not out.is_floating_point() or not out.requires_grad:
                continue
            weight = norch.ones(out.shape, dtype=out.dtype)
            out.backward(weight, retain_graph=True)
            grads = [tensors[i].grad for i in variables(case, tensors) if tensors[i].grad is not None]
            for i, g in enumerate(grads):
                g.add_(1)  # raises where elements share memory
                for other in (*grads[:i], weight, *tensors):
                    assert not lib.norch_overlaps(g._h, other._h), f"{case}: gradients share memory"
            assert_close(weight, norch.ones(out.shape, dtype=out.dtype))


@each([case for case in DIFFERENTIABLE if len(case.domains) > 1 and case.row not in ("linear", "matmul")])
def test_gradients_take_the_dtype_of_their_input(case: Case) -> None:
    if case.row in ("mm", "bmm", "mv", "dot", "scatter_add", "index_add"):
        pytest.skip("takes no mixed dtypes")
    for arrays in small_samples(case, "mixed"):
        exact = leaves(case, arrays)
        chosen = variables(case, exact)
        mixed = [x.detach().clone() for x in exact]
        for k, i in enumerate(chosen):
            mixed[i] = (mixed[i].float() if k % 2 == 0 else mixed[i]).requires_grad_()
            exact[i] = mixed[i].detach().double().requires_grad_()
        weights = source(case.name).uniform(0.5, 2, 97)
        backward_of(norch, case.call, exact, weights)
        backward_of(norch, case.call, mixed, weights)
        for i in chosen:
            if exact[i].grad is None:
                continue
            assert mixed[i].grad.dtype is mixed[i].dtype
            assert_close(mixed[i].grad.double(), exact[i].grad, rtol=1e-4, atol=1e-5)


# ---- in place -------------------------------------------------------------------------------------------------------

IN_PLACE = [case for case in CASES if case.in_place]


@with_dtypes(IN_PLACE)
def test_in_place_like_out_of_place(case: Case, dtype: str) -> None:
    rng = source(case.name + dtype + "in place")
    for shapes in case.shapes:
        arrays = draw(case, shapes, dtype, rng)
        others = [norch.tensor(x) for x in arrays[1:]]
        for layout in ("contiguous", "transposed", "strided", "offset"):
            x, _ = laid_out(arrays[0], layout)
            old, place = x.clone(), x.data_ptr()
            wanted = case.call(norch, x, *others)
            if wanted.shape != x.shape:
                with pytest.raises(norch.ShapeError):
                    getattr(x, case.in_place)(*others)
                assert_close(x, old)
                continue
            if wanted.dtype is not x.dtype:
                with pytest.raises(norch.DTypeError):
                    getattr(x, case.in_place)(*others)
                assert_close(x, old)
                continue
            assert getattr(x, case.in_place)(*others) is x
            assert x.data_ptr() == place
            assert_close(x, wanted, rtol=0, atol=0)


@each([case for case in IN_PLACE if case.grad])
def test_in_place_gradients(case: Case) -> None:
    for arrays in small_samples(case, "in place gradients"):
        if np.broadcast_shapes(*[x.shape for x in arrays]) != arrays[0].shape:
            continue
        plain, written = leaves(case, arrays), leaves(case, arrays)
        weights = source(case.name).uniform(0.5, 2, 97)
        backward_of(norch, case.call, plain, weights)
        backward_of(norch, lambda m, x, *rest: getattr(x.clone(), case.in_place)(*rest), written, weights)
        for x, y in zip(plain, written):
            assert (x.grad is None) == (y.grad is None)
            if x.grad is not None:
                assert_close(y.grad, x.grad)
        if len(arrays) == 2 and arrays[0].shape == arrays[1].shape:  # with itself: x op x
            if case.row in ("remainder", "floor_divide", "pow"):
                continue  # 0 or a tie everywhere
            a, b = plain[0].detach().requires_grad_(), plain[0].detach().requires_grad_()
            backward_of(norch, case.call, [a, a], weights)

            def write(m: Any, x: Any) -> Any:
                y = x.clone()
                return getattr(y, case.in_place)(y)  # noqa: B023

            backward_of(norch, write, [b], weights)
            assert_close(b.grad, a.grad)


@each(IN_PLACE)
def test_in_place_refuses_shared_elements(case: Case) -> None:
    """A tensor that is expanded holds one element many times: none of them can be written to."""
    dtype = "float64" if "float64" in case.dtypes else "int64"
    arrays = draw(case, [(3, 4)] * len(case.domains), dtype, source(case.name))
    x, _ = laid_out(arrays[0], "expanded")
    old = x.clone()
    with pytest.raises(norch.Error):
        getattr(x, case.in_place)(*[norch.tensor(a) for a in arrays[1:]])
    assert_close(x, old)


def test_every_in_place_method_has_a_case() -> None:
    written = {name for name in dir(norch.Tensor) if re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]_", name)}
    elsewhere = {"copy_", "fill_", "zero_", "uniform_", "normal_", "bernoulli_", "requires_grad_", "detach_", "clip_"}
    covered = {case.in_place for case in IN_PLACE}
    assert written - elsewhere - covered == set()


def test_in_place_with_overlapping_inputs() -> None:
    """An input that shares memory with the output in another order is read as it was before."""
    for op in ("add_", "sub_", "mul_"):
        x = norch.arange(40, dtype=norch.float64)
        plain = x.numpy().copy()
        getattr(x[1:], op)(x[:-1])
        wanted = {"add_": np.add, "sub_": np.subtract, "mul_": np.multiply}[op](plain[1:], plain[:-1])
        assert_close(x[1:], wanted)
    square = norch.arange(16, dtype=norch.float64).view(4, 4)
    wanted = square.numpy() + square.numpy().T
    square.add_(square.T)
    assert_close(square, wanted)


# ---- refusals -------------------------------------------------------------------------------------------------------

TWO = [case for case in CASES if case.row in OPS and lib.norch_op_form(OPS[case.row]) == b"binary"]


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
        lambda x, d: x.size(d),
        lambda x, d: x[d * 2],
        lambda x, d: x.unbind(d),
    ],
)
def test_wrong_dims_and_indices(call: Any, bad: int) -> None:
    x = norch.ones(2, 3)
    with pytest.raises(IndexError):
        call(x, bad)
    assert_close(x, np.ones((2, 3), np.float32))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
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
    covered = {case.row for case in CASES}
    assert [name for _, name, _ in table() if name not in covered] == []
    functions = {
        name
        for name, thing in vars(norch).items()
        if not name.startswith("_")
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
                return lib.norch_unary(op, x._h)
            if form == "binary":
                return lib.norch_binary(op, x._h, x._h)
            if form in ("choice", "ternary"):
                return lib.norch_ternary(op, (condition if form == "choice" else x)._h, x._h, x._h)
            return lib.norch_reduce(op, x._h, -1, None, 0, -1, 0.0)

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
@pytest.mark.parametrize("name", LARGE_WORK)
def test_threads_change_no_bit(name: str) -> None:
    a, b = many()
    results = []
    for threads in (1, 2, 3):
        norch.set_num_threads(threads)
        results.append(LARGE_WORK[name](a, b).numpy().tobytes())
    assert results[0] == results[1] == results[2]


# ---- the tools ------------------------------------------------------------------------------------------------------


class _Wrong(norch.autograd.Function):
    """A square whose derivative is off by a thousandth, and whose second derivative is 0."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (x.detach() * 2.01)


def test_gradcheck_finds_faults() -> None:
    x = norch.tensor([0.5, -1.0], dtype=norch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="backward says"):
        gradcheck(_Wrong.apply, x)
    assert gradcheck(_Wrong.apply, x, rtol=0.1)
    with pytest.raises(AssertionError, match="backward says"):
        gradgradcheck(_Wrong.apply, x, rtol=0.1)
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(norch.sin, x.detach())
    with pytest.raises(ValueError, match="float64"):
        gradcheck(norch.sin, norch.ones(1, requires_grad=True))
    pair = norch.tensor([2.0, 3.0], dtype=norch.float64, requires_grad=True)
    assert gradcheck(lambda a, b, n: (a * b, a.sum() * n), (x, pair, 3))
    assert gradgradcheck(lambda a, b: (a * b).sum(), (x, pair))


def test_assert_close_names_the_worst() -> None:
    assert_close(norch.tensor([1.0, float("inf"), float("nan")]), [1.000001, float("inf"), float("nan")])
    with pytest.raises(AssertionError, match=r"2 of 4 elements .* worst at \[1, 0\]: 7.0, expected 3.0"):
        assert_close(norch.tensor([[1.0, 2.5], [7.0, 4.0]]), [[1.0, 2.0], [3.0, 4.0]])
    for wrong in ([float("nan")], [float("inf")], [-1.0]):
        with pytest.raises(AssertionError, match="1 of 1"):
            assert_close(norch.tensor([1.0]), wrong)
    with pytest.raises(AssertionError, match="1 of 1"):
        assert_close(norch.tensor([float("nan")]), [float("nan")], equal_nan=False)
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_close(norch.zeros(2), norch.zeros(1, 2))
    with pytest.raises(AssertionError, match="dtypes differ"):
        assert_close(norch.zeros(2), norch.zeros(2, dtype=norch.float64))
    with pytest.raises(AssertionError, match="must be equal"):
        assert_close(norch.tensor([2**53 + 1]), norch.tensor([2**53]))
    with pytest.raises(ValueError, match="both"):
        assert_close(1.0, 1.0, rtol=0.1)
    assert_close(norch.tensor([5]), norch.tensor([6]), rtol=0, atol=1)
