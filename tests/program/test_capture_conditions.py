"""Conditions of recordings that mutants of one token (tests/mutate.py) got past: each case is compared with the
function itself, over calls in which one operand decides."""

import collections

import pytest

import norch
from norch import nn

pytestmark = pytest.mark.host


def case(function):
    CASES[function.__name__] = function
    return function


CASES = {}  # each is a generator: gets what wraps functions, and yields what is compared


@case
def numbers_are_the_first_memory(wrap):
    """The block of index 0 is a constant that the host has written."""
    step = wrap(lambda: norch.tensor([1.0, 2.0, 3.0]) * 2)
    for _ in range(6):
        norch.full((3,), 9.0)
        yield step().tolist()


@case
def the_first_memory_is_written(wrap):
    """The block of index 0 is a tensor from outside; nodes that saved it see the write of a replay."""
    w, x = norch.zeros(3), norch.ones(3, requires_grad=True)
    step = wrap(lambda: w.add_(1))
    for _ in range(6):
        loss = (x * w).sum()
        step()
        try:
            loss.backward()
        except RuntimeError as error:
            yield "modified" in str(error) or "written" in str(error), w.tolist()
        else:
            yield "no error", w.tolist()


@case
def an_argument_without_elements_is_a_tensor_in_use(wrap):
    def f(x):
        (w * 2).sum().backward()
        return x.grad is None

    w = nn.Parameter(norch.zeros(0))
    step = wrap(f)
    for k in range(8):
        w.grad = None
        yield step(w if k > 5 else norch.zeros(0, requires_grad=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", [norch.capture, norch.compile])
def test_a_recording_does_what_the_function_does(name, how):
    assert list(CASES[name](how)) == list(CASES[name](lambda function: function))


COUNTS = collections.Counter()


def adds_one_of_two(x, flag):
    COUNTS["n"] += 1 if flag else 2
    return x * 2


def test_a_count_by_a_condition_is_recorded_or_refused():
    step = norch.compile(adds_one_of_two)
    COUNTS.clear()
    results = [step(norch.ones(2), k % 2 == 0).tolist() for k in range(6)]
    assert results == [[2.0, 2.0]] * 6
