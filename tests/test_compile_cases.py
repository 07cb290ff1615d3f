"""The table of cases through norch.compile: results and gradients are those without it."""

import warnings

import pytest
from case import as_tensor, draw, source
from cases import CASES
from test_capture_cases import DTYPES, bits

import norch

pytestmark = pytest.mark.host


def called(function, inputs):
    """Results of a function and the gradients of its inputs."""
    given = [x.clone().requires_grad_(x.dtype.is_floating_point) for x in inputs]
    out = function(*given)
    outs = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, norch.Tensor)]
    wanted = [x.double().sum() for x in outs if x.requires_grad]
    floats = [x for x in given if x.requires_grad]
    grads = norch.autograd.grad(wanted, floats, allow_unused=True) if wanted else ()
    return bits([outs, [g if g is None else g for g in grads]])


def outcome(case, dtype):
    """The word equal, or why it runs as it is."""
    rng = source(f"compile {case.name} {dtype}")
    calls = [[as_tensor(x, dtype) for x in draw(case, case.shapes[0], dtype, rng)] for _ in range(6)]

    def function(*inputs):
        return case.call(norch, *inputs)

    compiled = norch.compile(function)
    norch.manual_seed(1)
    wanted = [called(function, inputs) for inputs in calls]
    norch.manual_seed(1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = [called(compiled, inputs) for inputs in calls]
    assert got == wanted
    if compiled.recordings() == 1:
        return "equal"
    return str(seen[0].message)


def test_cases() -> None:
    found = {case.name: [outcome(case, t) for t in DTYPES if t in case.dtypes] for case in CASES}
    refused = {name: one for name, ones in found.items() for one in ones if one != "equal"}
    assert len(refused) <= 0.05 * len(CASES), refused
