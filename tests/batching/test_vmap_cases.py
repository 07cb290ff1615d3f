"""Every case of the table under norch.vmap, against a loop over the samples: values, gradients, and how many batch."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from case import as_tensor, draw, source
from cases import CASES
from vmap_checks import slices

import norch
from norch.autograd.transforms import leaves
from norch.testing import assert_close

SIZE = 3


def dtype_of(case: Any) -> str:
    """The dtype that a case is tried in."""
    return next(dtype for dtype in ("float64", "float32", "int64", "bool", *case.dtypes) if dtype in case.dtypes)


def samples_of(case: Any) -> list[list[Any]]:
    """Inputs of each sample."""
    dtype, rng = dtype_of(case), source(f"vmap {case.name}")
    drawn = [draw(case, case.shapes[0], dtype, rng) for _ in range(SIZE)]
    return [[as_tensor(array, dtype) for array in arrays] for arrays in drawn]


def loop(call: Any, rows: list[list[Any]]) -> list[Any]:
    """What call gives for each sample, stacked."""
    made = [leaves(call(*row)) for row in rows]
    return [norch.stack(column) for column in zip(*made, strict=True)]


def arranged(rows: list[list[Any]], dims: list[int | None]) -> tuple[list[list[Any]], list[Any]]:
    """(inputs of each sample, inputs of vmap); with None as its axis an input is that of the first sample for all."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    for i, dim in enumerate(dims):
        if dim is None:
            columns[i] = [columns[i][0]] * SIZE
    given = [column[0] if dim is None else norch.stack(column, dim) for column, dim in zip(columns, dims, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)], given


def layouts(count: int) -> list[list[int | None]]:
    """Axes of the samples for so many inputs."""
    found: list[list[int | None]] = [[0] * count, [-1] * count]
    if count > 1:
        found += [[None if j == i else 0 for j in range(count)] for i in range(count)]
        found.append([1 if i % 2 else 0 for i in range(count)])
    return found


# What vmap refuses: the shape of the result, or whether the call is right, depends on the elements of each sample.
DATA_DEPENDENT = {
    "masked_select", "nonzero", "argwhere", "nonzero as_tuple", "where alone", "bincount", "bincount weights", "unique",
    "unique_consecutive", "unique dim=1",
}  # fmt: skip
# Writes into their first input: it cannot be that of all samples while another one is not.
WRITES = {"copy_"}

BATCHED: dict[str, bool] = {}  # whether a case ran without running sample by sample


def cases(*but: str) -> Any:
    return pytest.mark.parametrize("case", [case for case in CASES if case.name not in but], ids=str)


def arrangements(case: Any, rows: list[list[Any]]) -> list[list[int | None]]:
    """Axes of the samples that the inputs of a case have."""
    found = []
    for dims in layouts(len(rows[0])):
        fits = all(dim != 1 or x.ndim for dim, x in zip(dims, rows[0], strict=True))
        if fits and not (case.name in WRITES and dims[0] is None):
            found.append(dims)
    return found


def compare(case: Any, call: Any, rows: list[list[Any]], dims: list[int | None]) -> None:
    """vmap of call is what a loop gives."""
    each, given = arranged(rows, dims)
    wanted = loop(call, each)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = leaves(norch.vmap(lambda *x: leaves(call(*x)), tuple(dims))(*given))
    BATCHED[case.name] = not any("no batching rule" in str(one.message) for one in told) and BATCHED.get(
        case.name, True
    )
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype is theirs.dtype, dims
        assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


@cases(*DATA_DEPENDENT)
def test_like_a_loop(case: Any) -> None:
    rows = samples_of(case)
    for dims in arrangements(case, rows):
        compare(case, lambda *inputs: case.call(norch, *inputs), rows, dims)


@cases(*DATA_DEPENDENT)
def test_no_samples(case: Any) -> None:
    rows = samples_of(case)
    _, given = arranged(rows, [0] * len(rows[0]))
    call = norch.vmap(lambda *inputs: leaves(case.call(norch, *inputs)))
    for some, none in zip(call(*given), call(*(x[:0] for x in given)), strict=True):
        assert none.dtype is some.dtype and none.shape == (0, *some.shape[1:])
    if case.grad:
        norch.vmap(differentiated(case, 1))(*(x[:0] for x in given))


@cases(*(case.name for case in CASES if case.name not in DATA_DEPENDENT))
def test_what_depends_on_elements_is_refused(case: Any) -> None:
    rows = samples_of(case)
    _, given = arranged(rows, [0] * len(rows[0]))
    with pytest.raises(norch.Error, match="vmap batches"):
        norch.vmap(lambda *inputs: leaves(case.call(norch, *inputs)))(*given)


def differentiated(case: Any, order: int) -> Any:
    """A function of the inputs of a case: the gradients, of this order, of a number that is made of its results."""

    def value(*inputs: Any) -> Any:
        made = [x for x in leaves(case.call(norch, *inputs)) if x.dtype.is_floating_point]
        return sum(((x + 0.3) * x.detach().cos()).sum() for x in made)

    def gradients(*inputs: Any) -> Any:
        positions = case.inputs or range(len(inputs))
        wanted = tuple(i for i in positions if inputs[i].dtype.is_floating_point)
        first = norch.func.grad(value, wanted)
        if order == 1:
            return first(*inputs)
        return norch.func.grad(
            lambda *x: sum((g * g.detach().cos() * x[wanted[0]].sum()).sum() for g in first(*x)), wanted
        )(*inputs)

    return gradients


@cases(*DATA_DEPENDENT, *(case.name for case in CASES if not case.grad), *WRITES)
def test_gradients_like_a_loop(case: Any) -> None:
    rows = samples_of(case)
    for order in range(1, min(case.grad, 2) + 1):
        for dims in arrangements(case, rows):
            compare(case, differentiated(case, order), rows, dims)


@cases(*DATA_DEPENDENT, *(case.name for case in CASES if not case.grad), *WRITES)
def test_gradients_through_the_map(case: Any) -> None:
    """Walks from outside of vmap: what all samples share gets the sum."""
    rows = samples_of(case)
    for dims in arrangements(case, rows):
        _, given = arranged(rows, dims)
        wanted = [i for i in case.inputs or range(len(given)) if given[i].dtype.is_floating_point]
        results = []
        for run in (by_vmap, by_loop):
            inputs = [x.detach().requires_grad_(i in wanted) for i, x in enumerate(given)]
            total = sum(((x + 0.3) * x.detach().cos()).sum() for x in run(case, inputs, dims))
            results.append(norch.autograd.grad(total, [inputs[i] for i in wanted], materialize_grads=True))
        for ours, theirs in zip(*results, strict=True):
            assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


@cases(*DATA_DEPENDENT, *WRITES)
def test_two_levels_like_loops(case: Any) -> None:
    """The inner map batches one input, the outer one all others, or the same one where there are no others."""
    call = differentiated(case, 1) if case.grad else lambda *inputs: case.call(norch, *inputs)
    rows = samples_of(case)
    count = len(rows[0])
    _, given = arranged(rows, [0] * count)
    if count == 1:
        given = [norch.stack([given[0], given[0].flip(0)])]
    for k in range(count):
        inner = tuple(0 if i == k else None for i in range(count))
        outer = tuple(None if i == k and count > 1 else 0 for i in range(count))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "vmap: there is no batching rule")
            found = norch.vmap(norch.vmap(lambda *x: leaves(call(*x)), inner), outer)(*given)
        samples = [[slices(slices(given, outer, i), inner, j) for j in range(SIZE)] for i in range(len(found[0]))]
        wanted = zip(*(loop(call, row) for row in samples), strict=True)
        for ours, theirs in zip(found, wanted, strict=True):
            assert_close(ours, norch.stack(list(theirs)), rtol=1e-5, atol=1e-6, equal_nan=True)


@cases(*DATA_DEPENDENT, *(case.name for case in CASES if not case.grad), *WRITES)
def test_jacobians_of_samples(case: Any) -> None:
    """Walks that are batched, of a function that is batched at an outer level."""
    rows = samples_of(case)
    _, given = arranged(rows, [0] * len(rows[0]))
    positions = case.inputs or range(len(given))
    wanted = tuple(i for i in positions if given[i].dtype.is_floating_point)
    call = norch.func.jacrev(lambda *x: floats_of(case, *x)[0], wanted)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: there is no batching rule")
        found = leaves(norch.vmap(call)(*given))
        for ours, theirs in zip(found, loop(call, rows), strict=True):
            assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


def floats_of(case: Any, *inputs: Any) -> list[Any]:
    """The results of a case that have gradients."""
    return [out for out in leaves(case.call(norch, *inputs)) if out.dtype.is_floating_point]


def by_vmap(case: Any, inputs: Any, dims: list[int | None]) -> list[Any]:
    """Results of all samples."""
    return norch.vmap(functools.partial(floats_of, case), tuple(dims))(*inputs)


def by_loop(case: Any, inputs: Any, dims: list[int | None]) -> list[Any]:
    """The same by slices."""
    rows = [[x if dim is None else x.select(dim, i) for x, dim in zip(inputs, dims, strict=True)] for i in range(SIZE)]
    return loop(functools.partial(floats_of, case), rows)


def test_most_cases_batch() -> None:
    """Of those that the tests above have run."""
    if not BATCHED:
        pytest.skip("only with the cases")
    unbatched = sorted(name for name, batched in BATCHED.items() if not batched)
    assert len(unbatched) + len(DATA_DEPENDENT) <= 0.1 * len(CASES), unbatched
