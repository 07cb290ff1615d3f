"""The table of cases and random programs through norch.capture: what they give without it, forward and back."""

import warnings

import pytest
from case import Case, as_tensor, draw, source
from cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch

pytestmark = pytest.mark.host

DTYPES = ("float32", "int64", "bool")


def bits(x):
    """A result, nested or not, as bytes."""
    if isinstance(x, (tuple, list)):
        return [bits(part) for part in x]
    return (tuple(x.shape), str(x.dtype), str(x.detach().tolist())) if isinstance(x, norch.Tensor) else x


def computed(case):
    """The case as a function of its inputs: results, and the gradients of those that have one."""

    def function(*inputs):
        floats = [x.requires_grad_() for x in map(norch.clone, inputs) if x.dtype.is_floating_point and case.grad]
        if not floats:
            return case.call(norch, *inputs)
        them = iter(floats)
        out = case.call(norch, *[next(them) if x.dtype.is_floating_point else x for x in inputs])
        outs = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, norch.Tensor)]
        wanted = [x for x in outs if x.requires_grad]
        if not wanted:
            return out
        grads = norch.autograd.grad([x.double().sum() for x in wanted], floats, allow_unused=True)
        return [x.detach() for x in outs], grads

    return function


# Rows whose shape or way depends on the elements, which are refused. Anything else has to be captured.
REFUSED = set(
    "masked_select masked_scatter nonzero argwhere where bincount unique unique_consecutive repeat_interleave "
    "unravel_index gcd lcm".split()
)


def outcome(case, dtype, shapes):
    """The word equal, or the message of the refusal."""
    rng = source(f"capture {case.name} {dtype}")
    calls = [tuple(as_tensor(x, dtype) for x in draw(case, shapes, dtype, rng)) for _ in range(5)]
    function = computed(case)
    captured = norch.capture(function)
    norch.manual_seed(1)
    wanted = [bits(function(*inputs)) for inputs in calls]
    norch.manual_seed(1)
    try:
        got = [bits(captured(*inputs)) for inputs in calls]
    except norch.CaptureError as error:
        return str(error)
    assert got == wanted
    assert captured.recordings() == 1
    return "equal"


def test_most_cases_are_captured() -> None:
    assert sum(case.name.split()[0].strip("_") in REFUSED for case in CASES) < 0.05 * len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: Case) -> None:
    dtypes = [name for name in DTYPES if name in case.dtypes] or case.dtypes[:1]
    empty = [shapes for shapes in case.shapes[1:] if any(0 in shape for shape in shapes)]
    for dtype, shapes in [(dtype, case.shapes[0]) for dtype in dtypes] + [(dtypes[0], shapes) for shapes in empty]:
        found = outcome(case, dtype, shapes)
        if found != "equal":
            assert case.name.split()[0].strip("_") in REFUSED, found


UNARY = ["exp", "tanh", "neg", "abs", "sigmoid", "relu", "square"]
BINARY = ["add", "sub", "mul", "maximum"]


@st.composite
def programs(draw_from):
    """Steps of a small machine over a stack of tensors of shape (3, 4): names and where they act."""
    kinds = st.sampled_from(
        [*UNARY, *BINARY, "matmul", "sum", "view", "write", "row", "drop", "noise", "number", "cast"]
    )
    return draw_from(st.lists(st.tuples(kinds, st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12))


def machine(steps, state):
    def run(x, y):
        stack = [x * 1, y * 1, state]
        for kind, i, j in steps:
            a, b = stack[i % len(stack)], stack[j % len(stack)]
            if kind in UNARY:
                stack.append(getattr(norch, kind)(a))
            elif kind in BINARY:
                stack.append(getattr(norch, kind)(a, b))
            elif kind == "matmul":
                stack.append(a @ b.T @ b)
            elif kind == "sum":
                stack.append(a - b.sum(j % 2, keepdim=True))
            elif kind == "view":
                stack.append(a.T.contiguous().T)
            elif kind == "write":
                a.mul_(0.5).add_(b)
            elif kind == "row":
                a[i % 3] = b[j % 3] + 1
            elif kind == "drop":
                stack.pop()
                stack.append(a.clone())
            elif kind == "noise":
                stack.append(norch.dropout(a, 0.5, True) + norch.randn(3, 4))
            elif kind == "number":
                stack.append(a * (i + 0.5) - j)
            else:
                stack.append((a > b).to(a.dtype) + b.double().sum(1, keepdim=True).float())
        return stack[-1], sum(one.sum() for one in stack)

    return run


@settings(max_examples=examples(60), deadline=None)
@given(programs())
def test_random_programs(steps):
    found = []
    for wrap in (lambda f: f, norch.capture):
        norch.manual_seed(7)
        state = norch.randn(3, 4)
        run = wrap(machine(steps, state))
        with norch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            found.append([bits(run(norch.randn(3, 4), norch.randn(3, 4))) for _ in range(7)] + [bits(state)])
    assert found[0] == found[1]
    assert run.recordings() == 1
