"""What norch.capture refuses, and what happens to errors, threads, processes and memory."""

import cProfile
import gc
import inspect
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from test_capture_rules import made, trained

import norch
from norch import nn, optim

pytestmark = pytest.mark.host

FILE = os.path.basename(__file__)


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_bad_values_fail_in_a_replay_as_they_do_in_the_function():
    table, total = norch.arange(5.0), norch.zeros(1)

    def f(index, divisor):
        picked = table[index]
        total.add_(picked.sum())
        return picked.sum(), index // divisor

    captured = made(f, (norch.tensor([0, 4]), norch.tensor([1, 1])))
    before = total.item()
    for index in ([0, 5], [-6, 0]):
        with pytest.raises(IndexError, match=f"index: index {index[1] or index[0]}"):
            captured(norch.tensor(index), norch.tensor([1, 1]))
        assert total.item() == before
    with pytest.raises(ZeroDivisionError, match="floor_divide"):
        captured(norch.tensor([0, 1]), norch.tensor([1, 0]))
    assert captured(norch.tensor([-1, 1]), norch.tensor([2, 2]))[0].item() == 5.0
    assert captured.recordings() == 1


def test_a_failing_call_leaves_no_recording():
    captured = norch.capture(lambda x, y: x @ y)
    captured(norch.ones(2, 2), norch.ones(2, 2))
    for _ in range(3):
        with pytest.raises(ValueError, match="matmul"):
            captured(norch.ones(2, 3), norch.ones(2, 3))
    assert captured.recordings() == 0 and not norch._binding.library.lib.norch_recording()
    for _ in range(3):
        assert captured(norch.ones(2, 2), norch.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
    assert captured.recordings() == 1


REFUSED = {
    "item": lambda x: x * x.sum().item(),
    "bool": lambda x: x if x.sum() > 0 else -x,
    "tolist": lambda x: x + norch.tensor(x.tolist()),
    "print": lambda x: str(x) and x,
    "numpy": lambda x: x + float(x.numpy()[0]),
    "float": lambda x: x * float(x[0]),
    "nonzero": lambda x: norch.nonzero(x),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: norch.unique(x),
    "seed": lambda x: norch.manual_seed(0) and x,
    "from_numpy": lambda x: x + norch.from_numpy(pytest.importorskip("numpy").ones(3, dtype="float32")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals_name_the_line_and_what_to_do(what):
    captured = norch.capture(REFUSED[what])
    captured(norch.ones(3))
    for _ in range(2):
        with pytest.raises(norch.CaptureError, match=rf"(?s)capture: .*; .*at .*{FILE}:\d+"):
            captured(norch.ones(3))
    assert captured.recordings() == 0 and not norch._binding.library.lib.norch_recording()


@pytest.mark.parametrize("what", REFUSED)
def test_refused_functions_can_run_as_they_are(what):
    x = norch.ones(3)
    captured = norch.capture(REFUSED[what], strict=False)
    captured(x)
    with pytest.warns(UserWarning, match="is not recorded") as warned:
        wanted = REFUSED[what](x)
        for _ in range(4):
            got = captured(x)
            assert got.tolist() == wanted.tolist()
    assert len(warned) == 1


def test_python_that_changes_from_call_to_call_is_refused():
    state = {"h": norch.zeros(2), "n": 0.0}

    def replaced(x):
        state["h"] = state["h"] * 0.5 + x
        return state["h"]

    def counted(x):
        state["n"] += 1
        return x * state["n"]

    def named(x):
        fresh = object()
        kept.append(fresh)
        return x * float(id(fresh))

    kept = []
    for f, message in ((replaced, "is gone after it"), (named, "did different")):
        captured = norch.capture(f)
        with pytest.raises(norch.CaptureError, match=message):
            for _ in range(10):
                captured(norch.ones(2))
        assert captured.recordings() == 0
    # where what it reads has changed, it is recorded anew, and the user told so
    captured, state["n"] = norch.capture(counted), 0.0
    with pytest.warns(UserWarning, match="20 calls in a row"):
        for i in range(30):
            assert captured(norch.ones(2)).tolist() == [i + 1.0] * 2
    assert captured.recordings() == 0


def test_an_operand_that_is_a_number_is_not_written_to():
    def f(x):
        return norch.positive(2.0).add_(x.sum())

    captured = norch.capture(f)
    captured(norch.ones(2))
    with pytest.raises(norch.CaptureError, match="made of Python's numbers is written to; copy it with clone"):
        captured(norch.ones(2))


def test_global_variables_by_a_constant_name_are_read_as_any_other():
    for f in (
        lambda x: x * len(globals()["FILE"]),
        lambda x: x * len(globals().get("FILE")),
        lambda x: x * len(FILE) if "FILE" in globals() else x,
    ):
        captured = norch.capture(f)
        for _ in range(4):
            assert captured(norch.ones(1)).item() == len(FILE)
        assert captured.recordings() == 1


def test_another_argument_that_requires_a_gradient_in_each_call():
    def slope(x):
        return norch.autograd.grad((x * x).sum(), x)[0]

    captured = norch.capture(slope)
    with pytest.warns(UserWarning, match=r"the same tensor in each call; .* x.detach\(\).requires_grad_\(\) in the"):
        for i in range(30):
            assert captured(norch.full((1,), float(i), requires_grad=True)).item() == 2.0 * i
    assert captured.recordings() == 0
    advised = norch.capture(lambda x: slope(x.detach().requires_grad_()))
    assert [advised(norch.full((1,), float(i), requires_grad=i % 2 > 0)).item() for i in range(5)] == [0, 2, 4, 6, 8]
    assert [advised(norch.full((1,), float(i))).item() for i in range(5)] == [0, 2, 4, 6, 8]
    assert advised.recordings() == 1


def test_a_result_with_a_graph_is_refused():
    w = norch.ones(2, requires_grad=True)
    with pytest.raises(norch.CaptureError, match="requires grad"):
        norch.capture(lambda x: w * x)(norch.ones(2))
    captured = norch.capture(lambda x: w * x, strict=False)
    with pytest.warns(UserWarning, match="requires grad"):
        captured(norch.ones(2)).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


class Signs(optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    @norch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad.sign() * self.param_groups[0]["lr"])


@pytest.mark.parametrize("kind", [Signs, optim.Adafactor, optim.ASGD, optim.LBFGS, optim.Muon])
def test_optimizers_that_compute_in_python_are_refused(kind):
    w = norch.ones(1, 2, requires_grad=True)
    optimizer = kind([w])

    def step(x):
        (w * x).sum().backward()
        optimizer.step(lambda: w.sum())

    captured = norch.capture(step)
    captured(norch.ones(2))
    with pytest.raises(norch.CaptureError, match=f"the step of {kind.__name__} computes with Python's numbers"):
        captured(norch.ones(2))


def test_schedules_inside_are_refused():
    w = norch.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)

    def step(x):
        (w * x).sum().backward()
        optimizer.step()
        schedule.step()

    captured = norch.capture(step)
    captured(norch.ones(2))
    with pytest.raises(norch.CaptureError, match="schedule"):
        captured(norch.ones(2))


def test_a_captured_function_in_another_is_recorded_with_it():
    inner = norch.capture(lambda x: x * 2)
    for _ in range(5):
        inner(norch.ones(2))
    outer = norch.capture(lambda x: inner(x) + 1)
    for i in range(6):
        assert outer(norch.full((2,), float(i))).tolist() == [2.0 * i + 1] * 2
    assert outer.recordings() == 1 and len(outer.program) == 2


# ---- threads, processes, memory -------------------------------------------------------------------------------------


def test_threads_that_replay_at_once():
    w = norch.randn(64, 64)
    captured = norch.capture(lambda x: ((x @ w).tanh() @ w).sum())
    inputs = [norch.randn(256, 64) for _ in range(4)]
    wanted = [((x @ w).tanh() @ w).sum().item() for x in inputs]
    for x in inputs:
        captured(x)
    wrong = []

    def work(k):
        for _ in range(50):
            if captured(inputs[k]).item() != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_other_threads_do_not_disturb_a_recording():
    stop = threading.Event()

    def disturb():
        while not stop.is_set():
            norch.rand(10).sum().item()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            captured = made(lambda x: (x * 2 + 1).sum(), (norch.ones(10),))
            assert captured(norch.ones(10)).item() == 30.0 and len(captured.program) == 3
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_replays():
    captured = made(lambda x: x + 1, (norch.ones(2),))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(captured(norch.full((2,), 4.0)).tolist()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"[5.0, 5.0]"
    os.close(read)
    os.close(write)


def test_recordings_made_and_dropped_leave_no_memory():
    captured = norch.capture(lambda x: (x * 2).sum() + x.mean(), limit=2)
    captured(norch.ones(3))

    def go(count):
        for n in range(1, count):
            x = norch.ones(n)
            for _ in range(3):
                captured(x)

    go(20)
    gc.collect()
    storages, memory = norch._binding.library.lib.norch_live_storages(), norch._binding.library.lib.norch_live_bytes()
    go(600)
    gc.collect()
    assert norch._binding.library.lib.norch_live_storages() <= storages + 4
    assert norch._binding.library.lib.norch_live_bytes() <= memory + 64 * 600
    captured.reset()
    gc.collect()
    assert norch._binding.library.lib.norch_live_storages() < storages


def test_a_function_and_its_model_can_go():
    model = nn.Linear(2, 2)
    gone = weakref.ref(model)
    optimizer = optim.Adam(model.parameters())

    def step(x):
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    model.step = norch.capture(step)  # a cycle
    for _ in range(5):
        model.step(norch.ones(2))
    assert model.step.recordings() == 1
    model = optimizer = step = None
    gc.collect()
    assert gone() is None


def test_references_are_counted_right():
    w = norch.ones(2, requires_grad=True)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    x = norch.ones(2)
    captured = made(step, (x,))
    before = [sys.getrefcount(one) for one in (w, w.grad, x, None)]
    for _ in range(1000):
        captured(x)
    after = [sys.getrefcount(one) for one in (w, w.grad, x, None)]
    assert all(b <= a + 20 for a, b in zip(before, after, strict=True))


def test_the_listing():
    model, optimizer, step = trained()
    captured = made(step, (norch.ones(5, 3),))
    lines = str(captured.program).splitlines()
    assert lines[0].startswith(f"{len(captured.program)} calls, ") and len(lines) == 1 + len(captured.program)
    assert "matmul" in lines[1] and "optimizer sgd" in lines[-1] and lines[-1].endswith(tuple("0123456789"))
    assert all("test_capture_rules.py:" in line for line in lines[1:])
    assert captured.program.calls()[0][1] == "float32"
    assert repr(captured.program) == f"<Program of step: {len(captured.program)} calls>"


def test_the_profile():
    model, optimizer, step = trained()
    captured = made(step, (norch.ones(5, 3),))
    before = model[0].weight.tolist()
    lines = captured.profile(norch.ones(5, 3)).splitlines()
    assert model[0].weight.tolist() != before
    assert len(lines) == 1 + len(captured.program) and all(" us" in line for line in lines)
    with pytest.raises(norch.Error, match="no recording"):
        captured.profile(norch.ones(4, 3))


def test_calls_that_nobody_needs_are_left_out():
    def f(x):
        (x * 3).exp()
        return x + 1

    assert len(made(f, (norch.ones(2),)).program) == 1


@pytest.mark.parametrize("calls", [2, 3, 4])
def test_memory_that_runs_out(calls):
    fail = norch._binding.library.lib.norch_fail_allocation
    x = norch.randn(5, 3)
    try:
        for n in range(1000):
            model, optimizer, step = trained()
            captured = norch.capture(step)
            for _ in range(calls - 1):
                captured(x)
            fail(n)
            failed = None
            try:
                captured(x)
            except (MemoryError, norch.CaptureError) as error:
                failed = error
                assert "out of memory" in str(error)
            reached = fail(-1)
            for _ in range(6):
                captured(x)
            assert captured.recordings() >= 1 and not norch._binding.library.lib.norch_recording()
            if failed is None:
                break
        assert failed is None and reached > 0
    finally:
        fail(-1)


def test_an_interrupt_leaves_no_recording():
    interrupt = [False]

    def f(x):
        if interrupt[0]:
            raise KeyboardInterrupt
        return x + 1

    captured = norch.capture(f)
    captured(norch.ones(2))
    interrupt[0] = True
    with pytest.raises(KeyboardInterrupt):
        captured(norch.ones(2))
    assert not norch._binding.library.lib.norch_recording() and captured.recordings() == 0
    interrupt[0] = False
    for _ in range(4):
        assert captured(norch.ones(2)).tolist() == [2.0, 2.0]
    assert captured.recordings() == 1


def _replaces() -> Any:
    kept = {"h": norch.zeros(2)}

    def f(x: Any) -> Any:
        y = kept["h"] * x  # the line
        kept["h"] = x * 2
        return y

    return f, "write into it with copy_()"


def _steps(cls: Any) -> Callable[[], Any]:
    def make() -> Any:
        p = norch.ones(2, requires_grad=True)
        optimizer = cls([p], lr=norch.tensor(0.1))

        def f(x: Any) -> Any:
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()  # the line
            return x * 2

        return f, "set it to a number"

    return make


def _hooked() -> Any:
    p = norch.ones(2, requires_grad=True)

    def hook(g: Any) -> Any:  # the line
        return g * 2

    def f(x: Any) -> Any:
        y = x * p
        y.register_hook(hook)
        return y * 2

    return f, "register them on its parameters"


_REFUSED = {"replaced": _replaces, "sgd": _steps(norch.optim.SGD), "adam": _steps(norch.optim.Adam), "hook": _hooked}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("verb", "name"),
    [*[("compile", name) for name in _REFUSED], *[("capture", name) for name in _REFUSED if name != "hook"]],
)
def test_a_refusal_gives_line_and_remedy(verb: str, name: str, strict: bool) -> None:
    f, remedy = _REFUSED[name]()
    lines, first = inspect.getsourcelines(_hooked if name == "hook" else f)
    line = first + next(i for i, text in enumerate(lines) if "# the line" in text)
    called = norch.capture(f, strict=strict) if verb == "capture" else norch.compile(f, fullgraph=strict)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            for _ in range(4):
                called(norch.ones(2))
            (message,) = [str(one.message) for one in told]
        except norch.CaptureError as error:
            message = str(error)
    assert message.startswith(f"{verb}: ") and remedy in message
    assert message.endswith(f"\n  at {__file__}:{line}")


@pytest.mark.parametrize("name", ["Adam", "Adadelta", "RMSprop", "Rprop", "Adagrad"])
def test_a_step_count_that_is_a_tensor_is_refused(name):
    p = norch.ones(2, requires_grad=True)
    optimizer = getattr(optim, name)([p], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return x * 2

    step(norch.ones(2))
    optimizer.state[p]["step"] = norch.tensor(5.0)
    captured = norch.capture(step)
    captured(norch.ones(2))
    with pytest.raises(norch.CaptureError, match="a step count of an optimizer is a tensor"):
        captured(norch.ones(2))
    assert captured.recordings() == 0


def test_a_method_in_c_of_a_pytorch_object_is_refused(torch: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    captured = norch.capture(lambda x: x * generator.initial_seed())
    with pytest.raises(norch.CaptureError, match=r"PyTorch.*\(initial_seed\)"):
        for _ in range(3):
            captured(norch.ones(2))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="cProfile sets no profile function")
def test_a_profiler_sees_a_recorded_call_and_goes_on() -> None:
    captured, profiler = norch.capture(lambda x: x * 2), cProfile.Profile()
    with profiler:
        for _ in range(4):
            assert captured(norch.ones(2)).tolist() == [2, 2]
        assert sys.getprofile() is profiler
    assert captured.recordings() == 1


def test_a_profile_function_is_told_of_a_recorded_call() -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    captured, seen, before = norch.capture(doubled), [], sys.getprofile()
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        while not captured.recordings():
            captured(norch.ones(2))
            seen.append("called")
    finally:
        sys.setprofile(before)
    assert seen.count("doubled") == seen.count("called")
