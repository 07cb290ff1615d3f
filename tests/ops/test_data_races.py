"""Another thread sets .data of a tensor during an operation: the result is undefined, but no call of the library reads
memory that is not a tensor's. The other thread is a trace function, which comes between two bytecodes, so that a
failure can be repeated; or a finalizer, or what a profiler or a replay calls, in the middle of a call."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from case import Case, as_tensor, draw, source
from cases import CASES

import norch
from norch._binding.library import lib
from norch._package.recording import here

pytestmark = pytest.mark.host

HOME = os.path.dirname(norch.__file__) + os.sep
MOMENTS = int(os.environ.get("MOMENTS", 4))  # of each case, shape and input
SEED = os.environ.get("SEED", "")


def parts(result: Any) -> list[Any]:
    return [p for each in result for p in parts(each)] if isinstance(result, (tuple, list)) else [result]


def survives(compute: Callable[[], Any]) -> None:
    """A result of any value can be read, and an exception be raised."""
    norch.manual_seed(0)
    try:
        found = parts(compute())
    except Exception:
        return
    for p in found:
        repr(p.tolist() if isinstance(p, norch.Tensor) else p)


class At:
    """Calls act before the given bytecode of norch's that runs, and counts them."""

    def __init__(self, number: int, act: Callable[[], Any]):
        self.number, self.act, self.count = number, act, 0

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            if not frame.f_code.co_filename.startswith(HOME):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            if self.count == self.number:
                self.act()
            self.count += 1
        return self.trace

    def run(self, compute: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            return compute()
        finally:
            sys.settrace(before)


CHOSEN = {case.row or case.name: case for case in reversed(CASES)}


@pytest.mark.parametrize("case", CHOSEN.values(), ids=str)
def test_an_operation_survives_other_data_at_any_moment(case: Case) -> None:
    dtype = next(name for name in ("float32", "int64", *case.dtypes) if name in case.dtypes)
    shapes, pick = case.shapes[0], random.Random(zlib.crc32(f"{case.name}{SEED}".encode()))
    rng = source(case.name)
    given = [as_tensor(array, dtype) for array in draw(case, shapes, dtype, rng)]
    for i, shape in enumerate(shapes):
        try:
            new = as_tensor(draw(case, [*shapes[:i], shape[1:], *shapes[i + 1 :]], dtype, rng)[i], dtype)
        except (ValueError, IndexError):
            continue  # no such input of this case

        def called(x: Any, i: int = i) -> Any:
            return case.call(norch, *given[:i], x, *given[i + 1 :])

        check_moments(called, given[i], new, pick)


def check_moments(called: Callable[[Any], Any], x: Any, new: Any, pick: random.Random) -> None:
    """Sets x.data to new at moments of called(x)."""
    bytecodes = At(-1, lambda: None)
    survives(lambda: bytecodes.run(lambda: called(x.clone())))
    for _ in range(MOMENTS):
        here = x.clone().requires_grad_(x.is_floating_point())
        at = At(pick.randrange(max(bytecodes.count, 1)), lambda: lib.norch_set_data(here, new))  # noqa: B023
        survives(lambda: at.run(lambda: called(here)))  # noqa: B023


@pytest.mark.parametrize("case", [case for case in CHOSEN.values() if case.grad and len(case.shapes[0]) > 1], ids=str)
def test_writes_to_what_an_operation_keeps_are_seen(case: Case) -> None:
    """backward() raises after them, or does not need what was written to."""
    shapes, rng = case.shapes[0], source(case.name)
    given = [as_tensor(array, "float32") for array in draw(case, shapes, "float32", rng)]
    for i, x in enumerate(given):
        for j in range(len(given)):
            if i == j or not x.is_floating_point():
                continue

            def gradient(write: bool, i: int = i, j: int = j) -> Any:
                inputs = [one.clone() for one in given]
                inputs[i].requires_grad_()
                out = [one for one in parts(case.call(norch, *inputs)) if one.requires_grad]
                if write:
                    inputs[j].zero_()
                for one in out:
                    one.sum().backward(retain_graph=True)
                return inputs[i].grad

            try:
                found = gradient(True)
            except norch.Error as error:
                assert "changed in place" in str(error)
            else:
                assert repr(found) == repr(gradient(False))


FINALIZER = """
import gc, norch
from norch import nn
F = nn.functional

class Trap:
    def __init__(self, x, new):
        self.x, self.new, self.cycle = x, new, self

    def __del__(self):
        self.x.data = self.new

calls = [
    lambda x: x.sum(1), lambda x: x + x.T, lambda x: x @ x, lambda x: x.cumsum(0), lambda x: x.sort(0)[0],
    lambda x: x[[1, 0]], lambda x: x[x == 0], lambda x: norch.cat([x, x]), lambda x: x.softmax(1),
    lambda x: x.half() @ x.half(), lambda x: F.linear(x, x), lambda x: F.layer_norm(x, (2,)), lambda x: x.tolist(),
    lambda x: norch.tensor(tuple(x.shape)), lambda x: F.conv1d(x.view(1, 2, 2), x.view(2, 2, 1)),
    lambda x: F.avg_pool2d(x.view(1, 2, 2), 2), lambda x: x.argmax(0),
]
gc.freeze()
for call in calls:
    for threshold in range(1, 25):
        gc.disable()
        x = norch.zeros(2, 2)
        Trap(x, norch.ones(300_000, 2))
        gc.set_threshold(threshold)
        gc.enable()
        try:
            call(x)
        except (ValueError, IndexError):
            pass
gc.disable()
print("done")
"""


def test_a_finalizer_that_the_collector_runs_in_a_call_does_not_change_its_tensors() -> None:
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(HOME))}
    done = subprocess.run([sys.executable, "-c", FINALIZER], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]


def test_what_watches_a_call_does_not_change_its_tensors() -> None:
    x, new, others = norch.zeros(2, 2), norch.ones(300_000, 2), []

    def replace() -> None:
        x.data = new

    def place() -> str:
        others.append(threading.Thread(target=replace))
        others[-1].start()
        others[-1].join(0.05)  # waits until the call is over
        with pytest.raises(ValueError, match="in the middle of a call"):
            replace()
        return "here"

    lib.norch_profile_start(0, place)
    try:
        assert x.sum(1).tolist() == [0, 0]
    finally:
        lib.norch_profile_stop()
    for other in others:
        other.join()
    assert tuple(x.shape) == (300_000, 2)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_replay_is_of_the_tensors_that_it_checked(moment: str) -> None:
    """Python that counts steps runs before and after it, and other threads then."""
    x, new, turns = norch.zeros(300_000, 2), norch.ones(2, 2), iter([False, True])

    def replace() -> bool:
        if next(turns):
            lib.norch_set_data(x, new)
        return True

    slots = (replace, None) if moment == "before" else (lambda: True, replace)

    @norch.capture
    def function(x: Any) -> tuple[Any, Any]:
        if here.trace is not None:
            here.trace.on_replay(*slots, None)
        return x.sum(1), x[1:]

    for _ in range(4):
        function(x)
    assert function.recordings() == 1
    sums, view = function(x)
    rows, value = (2, 1) if moment == "before" else (300_000, 0)
    assert tuple(sums.shape) == (rows,) and tuple(view.shape) == (rows - 1, 2)
    assert (sums == 2 * value).all() and (view == value).all() and list(turns) == []
