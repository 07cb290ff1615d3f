"""norch.profiler: what it notes of calls, modules, lines and memory, and that nothing stays behind."""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading

import pytest

import norch
from norch import nn
from norch._binding.library import lib
from norch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

pytestmark = pytest.mark.host

CPU = {"activities": [ProfilerActivity.CPU]}


def names(prof, kind="operation"):
    return [event.name for event in prof.events() if event.kind == kind]


def line_of(text):
    """The number of the line of this file that ends with a mark."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


# ---- what is noted ---------------------------------------------------------------------------------------------------


def test_calls_with_shapes_bytes_and_operations():
    a, b = norch.ones(3, 4), norch.ones(4, 5)
    with profile(record_shapes=True, with_flops=True, **CPU) as prof:
        c = a @ b
        c.add_(1)
        c.T.contiguous()
    product, add, copy = prof.events()
    assert (product.name, product.shapes, product.bytes, product.flops) == ("matmul", ((3, 4), (4, 5)), 60, 120)
    assert (add.name, add.shapes[0], add.bytes, add.flops) == ("add", (3, 5), 0, 0)
    assert (copy.name, copy.shapes, copy.bytes) == ("copy", ((5, 3),), 60)
    assert product.end > product.start and product.end <= add.start and prof.is_complete
    assert product.device == "cpu" and product.self_time == product.end - product.start


@pytest.mark.parametrize(
    ("compute", "flops"),
    [
        (
            lambda: nn.functional.conv2d(norch.ones(2, 4, 8, 8), norch.ones(6, 2, 3, 3), groups=2),
            2 * 2 * 6 * 36 * 2 * 9,
        ),
        (lambda: norch.ones(5, 3, 4) @ norch.ones(4, 2), 2 * 5 * 3 * 4 * 2),
        (
            lambda: nn.functional.scaled_dot_product_attention(*[norch.ones(2, 3, 7, 4)] * 3),
            2 * 2 * 3 * 7 * 7 * (4 + 4),
        ),
        (lambda: norch.ones(5) + 1, 0),
    ],
)
def test_operations_are_counted_as_the_formula_says(compute, flops):
    with profile(with_flops=True, **CPU) as prof:
        compute()
    assert sum(event.flops for event in prof.events()) == flops


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.last = nn.Sequential(nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x):
        return self.last(self.first(x)).exp()


def test_modules_and_lines_forward_and_backward():
    net, x = Net(), norch.ones(3, 4)
    with profile(with_modules=True, with_stack=True, **CPU) as prof:
        y = net(x)
        loss = y.square().sum()  # loss
        loss.backward()
    calls = [event for event in prof.events() if event.kind == "operation"]
    forward = [(event.name, event.module) for event in calls if not event.node]
    assert ("matmul", "Net.first") in forward and ("tanh", "Net.last.0") in forward
    assert ("matmul", "Net.last.1") in forward and ("exp", "Net") in forward and ("square", "") in forward
    backward = {(event.node, event.name, event.module) for event in calls if event.node}
    assert {
        ("ExpBackward", "mul", "Net"),
        ("LinearBackward", "matmul", "Net.first"),
        ("LinearBackward", "matmul", "Net.last.1"),
        ("TanhBackward", "tanh_backward", "Net.last.0"),
    } <= backward
    lines = {event.stack for event in calls if event.node == "SquareBackward"}
    assert lines == {f"test_profiler.py:{line_of('loss')}"}
    modules = [event for event in prof.events() if event.kind == "module"]
    assert [event.name for event in modules] == [
        *("Net", "Net.first (Linear)", "Net.last (Sequential)", "Net.last.0 (Tanh)", "Net.last.1 (Linear)")
    ]
    net_event = modules[0]
    assert [child.name for child in net_event.children] == ["Net.first (Linear)", "Net.last (Sequential)", "exp"]
    inner = sum(child.end - child.start for child in net_event.children)
    assert net_event.self_time == net_event.end - net_event.start - inner > 0


def test_without_modules_a_model_runs_as_ever():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    x = norch.ones(1, 2)
    with profile(**CPU) as prof:
        model(x)
    assert names(prof) == ["matmul, relu"]  # fused
    assert not [event for event in prof.events() if event.module or event.stack]


def test_a_module_that_no_tree_holds_has_the_name_of_its_class():
    class Maker(nn.Module):
        def forward(self, x):
            return nn.Tanh()(x)

    with profile(with_modules=True, **CPU) as prof:
        Maker()(norch.ones(2))
    assert [event.module for event in prof.events() if event.name == "tanh"] == ["Maker.Tanh"]


def test_recomputed_calls_of_a_checkpoint_are_those_of_their_module():
    from norch.utils.checkpoint import checkpoint

    layer, x = nn.Tanh(), norch.ones(2, requires_grad=True)
    with profile(with_modules=True, **CPU) as prof:
        checkpoint(layer, x).sum().backward()
    assert [event.module for event in prof.events() if event.name == "tanh"] == ["Tanh", "Tanh"]


def test_ranges_nest_and_add_up():
    with profile(**CPU) as prof:
        with record_function("outer"):
            x = norch.ones(4) * 2
            with record_function("inner"):
                x.exp()
    outer, inner = (event for event in prof.events() if event.kind == "range")
    assert outer.name == "outer" and inner in outer.children and inner.children[0].name == "exp"
    assert outer.bytes >= inner.bytes == 16 and outer.end - outer.start > inner.end - inner.start

    @record_function("twice")
    def twice(x):
        return x + x

    assert twice(norch.ones(1)).tolist() == [2.0] and twice.__name__ == "twice"  # outside of profiles
    with profile(**CPU) as prof:
        twice(norch.ones(1))
    assert names(prof, "range") == ["twice"]


def test_memory_that_comes_and_goes(tmp_path):
    with profile(profile_memory=True, **CPU) as prof:
        x = norch.ones(1000)
        del x
    changes = [size for _, size, *_ in prof._recorded.memory]
    assert changes == [4000, -4000]
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    counters = [one["args"]["bytes"] for one in json.loads(path.read_text())["traceEvents"] if one["ph"] == "C"]
    assert counters == [4000, 0]


def test_copies_of_bytes():
    x = norch.ones(4)
    with profile(**CPU) as prof:
        x.tolist()
    (event,) = prof.events()
    assert (event.name, event.bytes) == ("copy to host", 16)


# ---- exceptions, threads, other observers ----------------------------------------------------------------------------


def test_nothing_is_lost_by_an_exception():
    values, indices = norch.ones(3), norch.tensor([7])
    call = nn.Module.__call__
    with pytest.raises(KeyError), profile(with_stack=True, with_modules=True, **CPU) as prof:
        values.exp()
        with pytest.raises(IndexError):
            values[indices]
        with pytest.raises(norch.ShapeError):
            values + norch.ones(2)  # refused before there is a call
        with record_function("raises"):
            values.log()
            raise KeyError
    assert [(event.name, event.failed) for event in prof.events() if event.kind == "operation"] == [
        *(("exp", False), ("index gather", True), ("copy", False), ("log", False))
    ]
    assert names(prof, "range") == ["raises"]
    assert not lib.norch_recording()
    assert nn.Module.__call__ is call
    with profile(**CPU) as again:
        values.exp()
    assert names(again) == ["exp"]


def test_a_module_that_raises_is_noted():
    class Fails(nn.Module):
        def forward(self, x):
            x.exp()
            raise ValueError

    x = norch.ones(1)
    with profile(with_modules=True, **CPU) as prof:
        with pytest.raises(ValueError):
            Fails()(x)
        x.log()
    assert names(prof, "module") == ["Fails"]
    assert [event.module for event in prof.events() if event.kind == "operation"] == ["Fails", ""]


def test_threads_are_told_apart():
    net, x = Net(), norch.ones(3, 4)

    def work():
        with record_function("work"):
            net(x).exp()

    with profile(with_modules=True, **CPU) as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x.log()
    here = threading.get_ident()
    elsewhere = [event for event in prof.events() if event.thread != here]
    assert names(prof).count("exp") == 2 and [event.name for event in elsewhere][:2] == ["work", "Net"]
    assert [event.name for event in prof.events() if event.thread == here] == ["log"]


def test_nobody_knows_whose_node_it_is_where_threads_record_at_once():
    x, there = norch.ones(2, requires_grad=True), norch.ones(2)
    with profile(with_modules=True, with_stack=True, **CPU) as prof:
        x.exp()
        y = x.select(0, 0)  # its node comes between calls of two threads
        thread = threading.Thread(target=there.log)
        thread.start()
        thread.join()
        (y * 2).backward()
    stacks = {event.node: event.stack for event in prof.events() if event.node}
    assert stacks["MulBackward"] and stacks["RegionBackward"] == ""


def test_one_profile_at_a_time():
    with profile(**CPU) as prof:
        with pytest.raises(norch.Error, match="profile: another profile is running; stop it first"):
            profile(**CPU).start()
        norch.ones(1).exp()
    assert "exp" in names(prof)
    prof.stop()  # a second time does nothing
    assert "exp" in names(prof)


def test_captured_functions_run_as_they_are():
    f = norch.capture(lambda x: x + x)
    x = norch.ones(2)
    for _ in range(4):
        f(x)
    with profile(**CPU) as prof:
        assert f(x).tolist() == [2.0, 2.0]
    assert names(prof) == ["add"] or names(prof) == ["add", "copy to host"]
    assert f.recordings() == 1 and f(x).tolist() == [2.0, 2.0]


def test_storages_outlive_a_profile():
    before = lib.norch_live_storages()
    with profile(profile_memory=True, **CPU):
        kept = [norch.ones(3) for _ in range(200)]
    del kept
    with profile(profile_memory=True, **CPU) as prof:
        norch.ones(3)
    assert lib.norch_live_storages() == before
    assert [size for _, size, *_ in prof._recorded.memory] == [12, -12]


def test_an_interrupt_stops_the_call_before_it_runs(monkeypatch):
    from norch.profiler.session import Session

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "_place", interrupted)
    x = norch.ones(2)
    with profile(with_stack=True, **CPU), pytest.raises(KeyboardInterrupt):
        x.add_(1)
    assert x.tolist() == [1.0, 1.0]


def test_without_memory_for_the_notes_the_program_goes_on():
    x = norch.ones(2)
    x.exp()
    try:
        for n in range(3):
            with profile(profile_memory=True, **CPU) as prof:
                lib.norch_fail_allocation(n)
                with contextlib.suppress(MemoryError):
                    x.exp()
                lib.norch_fail_allocation(-1)
                x.log()
            assert "log" in names(prof)
            if not prof.is_complete:
                break
        else:
            raise AssertionError("no allocation was one of the profile's")
    finally:
        lib.norch_fail_allocation(-1)
    with profile(**CPU) as prof:
        x.exp()
    assert prof.is_complete and names(prof) == ["exp"]


def test_a_forked_child_may_go_on():
    with profile(profile_memory=True, **CPU) as prof:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                norch.ones(3).exp()
                prof.stop()
                status = 0 if "exp" in names(prof) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        norch.ones(3).log()
    assert "log" in names(prof) and "exp" not in names(prof)


# ---- schedules -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize("plan", [(1, 1, 2, 0, 0), (0, 0, 1, 0, 0), (2, 0, 3, 2, 1), (0, 2, 1, 1, 3)])
def test_schedules_are_pytorchs(torch, plan):
    options = dict(zip(("wait", "warmup", "active", "repeat", "skip_first"), plan))
    ours, theirs = schedule(**options), torch.profiler.schedule(**options)
    assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)]


def test_steps_are_recorded_as_the_schedule_says():
    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)

    def ready(prof):
        seen.append((prof.step_num, names(prof), names(prof, "range")))

    with profile(schedule=plan, on_trace_ready=ready, **CPU) as prof:
        for i in range(9):
            norch.full((1,), float(i)).exp()
            prof.step()
    assert [(step, ranges) for step, _, ranges in seen] == [
        *((4, ["ProfilerStep#2", "ProfilerStep#3"]), (8, ["ProfilerStep#6", "ProfilerStep#7"]))
    ]
    assert all(calls.count("exp") == 2 for _, calls, _ in seen)


def test_a_stretch_that_is_cut_short_is_ready_too():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=0, active=5), on_trace_ready=seen.append, **CPU) as prof:
        norch.ones(1).exp()
    assert seen == [prof] and "exp" in names(prof)


# ---- tables and files ------------------------------------------------------------------------------------------------


def test_averages_and_their_table():
    with profile(record_shapes=True, profile_memory=True, with_stack=True, **CPU) as prof:
        for size in (2, 2, 3):
            norch.ones(size).exp()
        x = norch.ones(1)
    del x
    rows = {row.key: row for row in prof.key_averages()}
    exp = rows["exp"]
    assert (exp.count, exp.self_cpu_memory_usage) == (3, 28) and exp.cpu_time * 3 == pytest.approx(exp.cpu_time_total)
    by_shape = [(row.key, row.input_shapes, row.count) for row in prof.key_averages(group_by_input_shape=True)]
    assert ("exp", [[2]], 2) in by_shape and ("exp", [[3]], 1) in by_shape
    table = prof.key_averages().table(sort_by="count", row_limit=1)
    lines = table.splitlines()
    assert lines[1].split("  ")[0] == "Name" and lines[3].startswith(("exp", "copy"))
    assert any("rows more" in line for line in lines) and "CPU Mem" in lines[1] and "CUDA" not in table
    by_line = prof.key_averages(group_by_stack_n=1).table(header="here")
    assert by_line.startswith("here\n") and "test_profiler.py:" in by_line
    assert str(prof.key_averages()) == prof.key_averages().table()


def test_sorting_is_by_pytorchs_names():
    with profile(**CPU) as prof:
        norch.ones(1000).exp()
        norch.ones(2).log()
    averages = prof.key_averages()
    for key in (
        "cpu_time",
        "cpu_time_total",
        "self_cpu_time_total",
        "cuda_time_total",
        "self_cpu_memory_usage",
        "count",
    ):
        shown = averages.table(sort_by=key).splitlines()
        values = {row.key: getattr(row, key.replace("cuda", "device")) for row in averages}
        order = [values[line.split()[0]] for line in shown[3 : 3 + len(averages)]]
        assert order == sorted(order, reverse=True)
    with pytest.raises(norch.ArgumentError, match="table: sort_by must be one of cpu_time, .*, not 'time'"):
        averages.table(sort_by="time")


def test_the_trace_file(tmp_path):
    with profile(record_shapes=True, with_modules=True, with_stack=True, **CPU) as prof:
        Net()(norch.ones(3, 4)).sum().backward()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    prof.export_chrome_trace(str(path) + ".gz")
    trace = json.loads(path.read_text())
    assert json.loads(gzip.open(str(path) + ".gz").read()) == trace
    entries = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    assert len(entries) == len(prof.events())
    for entry, event in zip(entries, prof.events()):
        assert entry["name"] == event.name and entry["tid"] == 1 and entry["dur"] >= 0
        assert entry["dur"] == pytest.approx((event.end - event.start) / 1e3)
    product = next(entry for entry in entries if entry["name"] == "matmul")
    assert product["args"]["Module"] == "Net.first" and product["args"]["Input Dims"][0] == [3, 4]
    norch.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "me")(prof)
    (name,) = os.listdir(tmp_path / "runs")
    assert name.startswith("me.") and name.endswith(".pt.trace.json")


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_messages():
    with pytest.raises(norch.ArgumentError, match="profile: unavailable activities: none"):
        profile(activities=[])
    if not norch.cuda.is_available():
        with pytest.raises(norch.ArgumentError, match="profile: unavailable activities: ProfilerActivity.CUDA"):
            profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(norch.Error, match="key_averages: no recording has ended yet"):
        profile(**CPU).key_averages()
    with pytest.raises(norch.ArgumentError, match="schedule: wait -1, warmup 0, active 1"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.raises(TypeError, match="record_function: the name must be a str, not int"):
        record_function(1)
    assert schedule(wait=0, warmup=0, active=1)(0) is ProfilerAction.RECORD_AND_SAVE


# ---- NORCH_TRACE -----------------------------------------------------------------------------------------------------


def traced(code, value="1"):
    environment = {**os.environ, "NORCH_TRACE": value}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def test_a_trace_tells_each_operation_as_it_runs():
    done = traced("import norch\nx = norch.ones(2, 3)\n(x @ x.T).exp()\nprint('done')")
    fill, product, exp = done.stderr.splitlines()
    assert done.stdout == "done\n"
    assert "matmul float32 (2, 3), (3, 2)  <string>:3" in product and "16 B" in product and " us" in product
    assert "exp float32 (2, 2)" in exp and "24 B" in fill


@pytest.mark.host
def test_calls_of_lapack_and_of_the_fourier_transforms_are_noted():
    pytest.importorskip("numpy")
    A, b = norch.eye(3, requires_grad=True), norch.ones(3, 2)

    class Solver(nn.Module):
        def forward(self, b):
            return norch.linalg.solve(A, b)

    with profile(with_modules=True, with_stack=True, record_shapes=True, **CPU) as prof:
        solution = Solver()(b)
        solution.sum().backward()  # backward
        with pytest.raises(norch.LinAlgError):
            norch.linalg.inv(norch.zeros(2, 2))
        norch.fft.fft(solution.detach())
    calls = [event for event in prof.events() if event.name in ("solve", "inv", "fft")]
    assert [(event.name, event.failed, event.shapes) for event in calls] == [
        ("solve", False, ((3, 3), (3, 2))),
        ("solve", False, ((3, 3), (3, 2))),
        ("inv", True, ((2, 2),)),
        ("fft", False, ((3, 2),)),
    ]
    forward, backward, _, last = calls
    assert forward.module == backward.module == "Solver" and backward.node == "SolveBackward" and not forward.node
    assert forward.bytes == 3 * 2 * 4 and last.bytes == 3 * 2 * 8 and 0 < forward.self_time < 10**9
    assert forward.kind == "operation" and "solve" in prof.key_averages().table()
    with profile(**CPU) as after:
        pass
    norch.linalg.inv(norch.eye(2))
    assert not after.events()
    pytest.importorskip("scipy")
    done = traced("import norch\nx = norch.eye(2)\nnorch.linalg.inv(x)")
    assert "16 B  inv float32 (2, 2)  <string>:3" in done.stderr.splitlines()[-1]


def test_no_trace_without_the_variable_and_none_for_a_closed_stderr():
    assert traced("import norch; norch.ones(2).exp()", "0").stderr == ""
    assert (
        traced("import norch, sys; sys.stderr = None; print(norch.ones(2).exp().shape)").stdout == "norch.Size([2])\n"
    )


def test_a_trace_and_a_profile_go_together_in_all_threads():
    done = traced(
        "import norch, threading\nfrom norch.profiler import profile\nwith profile() as p:\n"
        "    t = threading.Thread(target=lambda: norch.ones(2).exp()); t.start(); t.join()\n"
        "print([e.name for e in p.events()]); norch.ones(1).log()"
    )
    assert done.stdout == "['copy', 'exp']\n" and done.stderr.count("\n") == 4 and "log" in done.stderr
