"""When norch.capture records, when it replays, and what it refuses."""

import copy
import functools
import gc
import os
import sys
import threading
import weakref

import pytest

import norch
from norch import nn, optim

pytestmark = pytest.mark.host

FILE = os.path.basename(__file__)


def made(function, *calls, **options):
    """function, captured and called with each of these arguments four times."""
    captured = norch.capture(function, **options)
    for arguments in calls:
        for _ in range(4):
            captured(*arguments)
    return captured


class Count:
    """Counts the calls of a function that Python sees."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


# ---- what a recording is for ----------------------------------------------------------------------------------------


def test_three_calls_run_python_and_later_ones_do_not():
    seen = []

    def f(x):
        seen.append(1)
        return x + 1

    captured = norch.capture(f)
    for i in range(7):
        assert captured(norch.full((2,), float(i))).tolist() == [i + 1.0] * 2
    assert len(seen) == 3 and captured.recordings() == 1
    captured.reset()
    assert captured.recordings() == 0 and captured.program is None
    captured(norch.ones(2))
    assert len(seen) == 4


@pytest.mark.parametrize(
    "other",
    [
        (norch.ones(3), 2.0),
        (norch.ones(2, dtype=norch.float64), 2.0),
        (norch.ones(2, 2)[:, 0], 2.0),
        (norch.ones(2), 3.0),
        (norch.ones(2), 2),
        (norch.ones(2), True),
        (norch.ones(2), norch.tensor(2.0)),
        (norch.ones(2, requires_grad=True).detach(), -2.0),
    ],
    ids=repr,
)
def test_arguments_of_another_kind_have_a_recording_of_their_own(other):
    f = lambda x, factor: x * factor + (1 if factor is True else 0)  # noqa: E731
    captured = made(f, (norch.ones(2), 2.0))
    assert captured.recordings() == 1
    for _ in range(4):
        for arguments in ((norch.ones(2) * 3, 2.0), other):
            got, wanted = captured(*arguments), f(*arguments)
            assert got.dtype is wanted.dtype and got.tolist() == wanted.tolist()
    assert captured.recordings() == 2


def test_nested_arguments_and_keywords():
    f = lambda parts, *, scale=1.0, extra=None: parts["a"] * scale + parts["b"][0] + (0 if extra is None else extra)  # noqa: E731
    captured = norch.capture(f)
    for i in range(6):
        parts = {"a": norch.full((2,), float(i)), "b": [norch.ones(2), "text"]}
        assert captured(parts, scale=2.0).tolist() == f(parts, scale=2.0).tolist()
        assert captured(parts).tolist() == f(parts).tolist()
        assert captured({"a": parts["a"], "b": (norch.ones(2), "text")}).tolist() == f(parts).tolist()
    assert captured.recordings() == 3


def test_flat_arguments_do_not_match_nested_ones():
    f = lambda *xs: xs[0] if isinstance(xs[0], norch.Tensor) else xs[0][0] * 2  # noqa: E731
    x, y = norch.ones(2), norch.full((2,), 5.0)
    captured = made(f, ([x], y))
    for _ in range(5):
        assert captured([x], y).tolist() == [2.0, 2.0]
        assert captured(x, y) is x


def test_grad_mode_and_default_dtype():
    w = norch.ones(2, requires_grad=True)

    def f(x):
        y = (w * x).sum() + norch.ones(1).sum()
        if norch.is_grad_enabled():
            w.grad = None
            y.backward()
        return y.detach()

    captured = made(f, (norch.ones(2),))
    with norch.no_grad():
        for _ in range(4):
            w.grad = None
            assert captured(norch.ones(2)).item() == 3.0 and w.grad is None
    assert captured.recordings() == 2
    captured(norch.full((2,), 4.0))
    assert w.grad.tolist() == [4.0, 4.0]
    norch.set_default_dtype(norch.float64)
    try:
        assert captured(norch.ones(2)).dtype is norch.float64
    finally:
        norch.set_default_dtype(norch.float32)


def test_number_of_recordings_is_bounded():
    captured = norch.capture(lambda x: x * 2, limit=3)
    for n in range(1, 9):
        for _ in range(3):
            captured(norch.ones(n))
    assert captured.recordings() == 3
    assert captured(norch.ones(8)).shape == (8,)
    with pytest.raises(ValueError, match="limit"):
        norch.capture(lambda: None, limit=0)
    with pytest.raises(TypeError, match="a function"):
        norch.capture(3)


def test_methods():
    class Trainer:
        def __init__(self, scale):
            self.scale, self.model = scale, nn.Linear(2, 1)

        @norch.capture
        def loss(self, x):
            with norch.no_grad():
                return self.model(x).sum() * self.scale

    one, two = Trainer(1.0), Trainer(2.0)
    x = norch.randn(3, 2)
    for _ in range(5):
        for trainer in (one, two):
            assert trainer.loss(x).item() == (trainer.model(x).sum() * trainer.scale).item()
    one.scale = 5.0
    assert one.loss(x).item() == (one.model(x).sum() * 5.0).item()
    one.model = nn.Linear(2, 1)
    assert one.loss(x).item() == (one.model(x).sum() * 5.0).item()


# ---- what is noticed ------------------------------------------------------------------------------------------------


def trained():
    norch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def replace_data(model, optimizer):
    for p in model.parameters():
        p.data = p.data * 0.5


def load_assigned(model, optimizer):
    model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()}, assign=True)
    optimizer.param_groups[0]["params"][:] = model.parameters()


def load_in_place(model, optimizer):
    model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})


def load_optimizer(model, optimizer):
    optimizer.load_state_dict(optimizer.state_dict())


def convert(model, optimizer):
    model.double().float()


def new_layer(model, optimizer):
    norch.manual_seed(5)
    model[0] = nn.Linear(3, 4)
    optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.5})


def freeze(model, optimizer):
    model[2].weight.requires_grad_(False)
    model[2].weight.grad = None


def no_momentum(model, optimizer):
    optimizer.param_groups[0]["momentum"] = 0


def another_activation(model, optimizer):
    model[1] = nn.Sigmoid()


def hook(model, optimizer):
    model[1].register_forward_hook(lambda module, args, out: out * 2)


def write(model, optimizer):
    with norch.no_grad():
        model[0].weight.mul_(0.5)
        model[2].bias.copy_(norch.ones(1))


def drop_gradients(model, optimizer):
    optimizer.zero_grad()


def other_gradients(model, optimizer):
    for p in model.parameters():
        p.grad = norch.ones_like(p)


def fresh_state(model, optimizer):
    optimizer.state.clear()


CHANGES = [
    replace_data, load_assigned, load_in_place, load_optimizer, convert, new_layer, freeze, no_momentum,
    another_activation, hook, write, drop_gradients, other_gradients, fresh_state,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changes_between_calls_are_noticed(change):
    found = []
    for wrap in (lambda f: f, norch.capture):
        model, optimizer, step = trained()
        step = wrap(step)
        x = [norch.randn(5, 3) for _ in range(3)]
        losses = []
        for i in range(24):
            if i in (8, 16):
                change(model, optimizer)
            losses.append(step(x[i % 3]).item())
        grads = [None if p.grad is None else p.grad.tolist() for p in model.parameters()]
        found.append((losses, [p.tolist() for p in model.parameters()], grads))
    assert found[0] == found[1]


def test_variables_that_the_function_reads():
    factor, model = 2.0, nn.Linear(2, 2)

    def f(x):
        with norch.no_grad():
            return model(x) * factor + sum(SHIFTS)

    captured = made(f, (norch.ones(2),))
    for factor, model in ((3.0, model), (3.0, nn.Linear(2, 2))):  # noqa: B007, B020
        assert captured(norch.ones(2)).tolist() == f(norch.ones(2)).tolist()
    SHIFTS.append(1.0)
    assert captured(norch.ones(2)).tolist() == f(norch.ones(2)).tolist()
    SHIFTS[0] = 7.0
    assert captured(norch.ones(2)).tolist() == f(norch.ones(2)).tolist()


SHIFTS = [0.5]


def test_variables_that_helpers_and_layers_read():
    class Shift(nn.Module):
        def forward(self, x):
            return x + SHIFTS[0]

    table = norch.ones(2)
    helper = lambda x: x * table  # noqa: E731
    layer = Shift()
    f = lambda x: layer(helper(x))  # noqa: E731
    captured = made(f, (norch.ones(2),))
    table = norch.full((2,), 3.0)
    assert captured(norch.ones(2)).tolist() == f(norch.ones(2)).tolist()
    SHIFTS[0] += 1.0
    assert captured(norch.ones(2)).tolist() == f(norch.ones(2)).tolist()


def test_functions_in_decorators_partials_and_modules():
    scale = 2.0

    @norch.no_grad()
    def shifted(x, by):
        return x * scale + by

    layer = nn.Linear(2, 2)
    for f in (functools.partial(shifted, by=1.0), norch.no_grad()(lambda x: shifted(x, 1.0))):
        captured = made(f, (norch.ones(2),))
        assert captured(norch.ones(2)).tolist() == [scale + 1.0] * 2
        scale += 1
        assert captured(norch.ones(2)).tolist() == [scale + 1.0] * 2
    captured = norch.capture(layer)
    with norch.no_grad():
        for i in range(8):
            assert captured(norch.ones(2)).tolist() == layer(norch.ones(2)).tolist()
            if i == 4:
                layer.bias = nn.Parameter(norch.full((2,), 3.0))
    assert captured.recordings() == 2


def test_copies_have_no_recordings():
    captured = made(lambda x: x + 1, (norch.ones(2),))
    other = copy.deepcopy(captured)
    assert captured.recordings() == 1 and other.recordings() == 0 and other(norch.ones(2)).tolist() == [2.0, 2.0]


def test_nan_is_searched_in_the_function_itself():
    w = norch.ones(1, requires_grad=True)

    def f(x):
        w.grad = None
        (w * x).log().sum().backward()

    captured = made(f, (norch.ones(1),))
    with norch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="(?i)nan"):
        captured(norch.full((1,), float("nan")))


def test_arguments_that_share_memory():
    def f(x, y):
        x[1:] += y[:-1]
        return x.sum()

    captured = made(f, (norch.ones(4), norch.ones(4)))
    base, same = norch.arange(4.0), norch.arange(4.0)
    assert captured(base, base).item() == f(same, same).item()  # overlapping: a copy is taken first
    assert base.tolist() == same.tolist()
    for _ in range(4):
        a, b = norch.arange(8.0), norch.arange(8.0)
        captured(a[:4], a[2:6])
        f(b[:4], b[2:6])
        assert a.tolist() == b.tolist()
        a, b = norch.arange(8.0), norch.arange(8.0)
        captured(a[:4], a[3:7])
        f(b[:4], b[3:7])
        assert a.tolist() == b.tolist()


def test_an_argument_that_the_function_also_reaches_otherwise():
    table = norch.arange(6.0)

    def f(x):
        table.add_(1)
        return x * 2

    captured = norch.capture(f)
    for _ in range(6):
        before = table[2:4].tolist()
        assert captured(table[2:4]).tolist() == [2 * (v + 1) for v in before]
    x = norch.tensor([1.0, 2.0])
    for _ in range(6):
        assert captured(x).tolist() == [2.0, 4.0]


def test_arguments_that_require_grad():
    def f(w, x):
        w.grad = None
        (w * x).sum().backward()

    captured = norch.capture(f)
    weights = [norch.ones(3, requires_grad=True) for _ in range(2)]
    for i in range(10):
        w, x = weights[i % 2], norch.full((3,), float(i))
        assert captured(w, x) is None
        assert w.grad.tolist() == [float(i)] * 3


def test_an_argument_is_written_to():
    captured = norch.capture(lambda x: x.mul_(2))
    for i in range(6):
        x = norch.full((3,), float(i))
        assert captured(x) is x and x.tolist() == [2.0 * i] * 3
        y = norch.ones(3, 2)[:, 0]
        captured(y)
        assert y.tolist() == [2.0] * 3


def test_results_stay_unless_asked_otherwise():
    captured = norch.capture(lambda x: x + 1)
    results = [captured(norch.full((2,), float(i))) for i in range(8)]
    assert [r[0].item() for r in results] == [i + 1.0 for i in range(8)]
    shared = norch.capture(lambda x: x + 1, copy=False)
    results = [shared(norch.full((2,), float(i))) for i in range(8)]
    assert [r[0].item() for r in results] == [1.0, 2.0, 3.0, 8.0, 8.0, 8.0, 8.0, 8.0]
    assert shared(results[-1]).tolist() == [9.0, 9.0]  # its own memory as an argument
    assert shared(shared(results[-1])).tolist() == [10.0, 10.0]


def test_a_write_by_a_replay_is_noticed_by_autograd():
    w = norch.ones(2, requires_grad=True)

    def f(x):
        with norch.no_grad():
            w.add_(x)

    captured = made(f, (norch.ones(2),))
    loss = (w * w).sum()
    captured(norch.ones(2))
    with pytest.raises(norch.Error, match="changed in place"):
        loss.backward()


def test_views_of_arguments_are_results_of_their_own():
    captured = norch.capture(lambda x: (x[1], x.T))
    for i in range(6):
        x = norch.arange(4.0).reshape(2, 2) + i
        row, turned = captured(x)
        assert row.tolist() == x[1].tolist() and turned.tolist() == x.T.tolist()


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
    assert captured.recordings() == 0 and not norch._lib.lib.norch_recording()
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
    assert captured.recordings() == 0 and not norch._lib.lib.norch_recording()


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

    class Hidden:  # what methods read is not looked at
        __slots__ = ()

        def replaced(self, x):
            return replaced(x)

        def counted(self, x):
            return counted(x)

    hidden = Hidden()
    for f, message in (
        (lambda x: hidden.replaced(x), "is gone after it"),
        (lambda x: hidden.counted(x), "did different"),
    ):
        captured = norch.capture(f)
        with pytest.raises(norch.CaptureError, match=message):
            for _ in range(10):
                captured(norch.ones(2))
        assert captured.recordings() == 0
    # what the function itself reads is: it is recorded each time, and the user told so
    captured, state["n"] = norch.capture(counted), 0.0
    with pytest.warns(UserWarning, match="20 calls in a row"):
        for i in range(30):
            assert captured(norch.ones(2)).tolist() == [i + 1.0] * 2
    assert captured.recordings() == 0


def test_a_result_with_a_graph_is_refused():
    w = norch.ones(2, requires_grad=True)
    with pytest.raises(norch.CaptureError, match="requires grad"):
        norch.capture(lambda x: w * x)(norch.ones(2))
    captured = norch.capture(lambda x: w * x, strict=False)
    with pytest.warns(UserWarning, match="requires grad"):
        captured(norch.ones(2)).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [optim.Adamax, optim.NAdam, optim.RAdam, optim.Rprop, optim.Adadelta])
def test_optimizers_that_compute_in_python_are_refused(kind):
    w = norch.ones(2, requires_grad=True)
    optimizer = kind([w])

    def step(x):
        (w * x).sum().backward()
        optimizer.step()

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
    storages, memory = norch._lib.lib.norch_live_storages(), norch._lib.lib.norch_live_bytes()
    go(600)
    gc.collect()
    assert norch._lib.lib.norch_live_storages() <= storages + 4
    assert norch._lib.lib.norch_live_bytes() <= memory + 64 * 600
    captured.reset()
    gc.collect()
    assert norch._lib.lib.norch_live_storages() < storages


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
    assert all(FILE in line for line in lines[1:])
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
    fail = norch._lib.lib.norch_fail_allocation
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
            assert captured.recordings() >= 1 and not norch._lib.lib.norch_recording()
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
    assert not norch._lib.lib.norch_recording() and captured.recordings() == 0
    interrupt[0] = False
    for _ in range(4):
        assert captured(norch.ones(2)).tolist() == [2.0, 2.0]
    assert captured.recordings() == 1
