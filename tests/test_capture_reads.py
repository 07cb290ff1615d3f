"""Every value of Python that a recorded function reads is guarded, or the function is refused with the line that reads
it: ways to hold a number, changed between the calls of norch.capture and norch.compile."""

import re
import sys

import numbers_read
import pytest
from numbers_held import WAYS

import norch

pytestmark = pytest.mark.host

# ---- the tests ------------------------------------------------------------------------------------------------------


def calls_of(function, change, at):
    """What ten calls give, with the number changed before those in at."""
    found = []
    for i in range(14):
        if i in at:
            change(at[i])
        x = norch.full((1,), 1.0 + i)
        if "compile" in at:
            x.requires_grad_()
        y = function(x)
        if y.requires_grad:
            y.sum().backward()
        found.append((y.tolist(), None if x.grad is None else x.grad.tolist()))
    return found


TIMES = {"later": {7: 3.0, 11: 5.0}, "second": {1: 3.0}, "third": {2: 3.0}, "fourth": {3: 3.0, 5: 5.0}}


@pytest.mark.parametrize("when", TIMES)
@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("name", WAYS)
def test_a_number_that_changes(name, how, when, monkeypatch):
    monkeypatch.setitem(sys.modules, "norch_test_cfg", None)
    at = dict(TIMES[when])
    if how == "compile":
        at["compile"] = True
    eager, change = WAYS[name]()
    wanted = calls_of(eager, change, at)
    function, change = WAYS[name]()
    wrapped = norch.capture(function) if how == "capture" else norch.compile(function, fullgraph=True)
    try:
        found = calls_of(wrapped, change, at)
    except norch.CaptureError as error:
        assert re.search(r"at .*numbers_(held|read)\.py:\d+", str(error)), error
        assert name in REFUSED, error
        return
    finally:
        numbers_read.__dict__.pop("round", None)
    assert found == wanted


REFUSED = frozenset(
    "weak_reference weak_reference_that_dies iterator cycle generator random_number random_number_of_numpy clock "
    "file_contents counting_in_the_function toggling_in_the_function stack_in_the_function".split()
)
