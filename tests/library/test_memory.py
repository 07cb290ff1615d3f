"""Memory over long runs, Ctrl-C, and a flat process."""

import gc
import math
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import norch
from norch._binding.library import lib

# Started from a background job, a process would ignore Ctrl-C.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run(program, **options):
    """A Python process that runs program; its output."""
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)))
    return subprocess.Popen(
        [sys.executable, "-u", "-c", LISTEN + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        **options,
    )


def end_of(process):
    """The rest of its output; one that does not end is killed."""
    try:
        return process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Article(norch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = norch.nn.Linear(1, 10)
        self.fc2 = norch.nn.Linear(10, 1)

    def forward(self, x):
        return self.fc2(self.fc1(x).sigmoid())


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")


@pytest.mark.resident
@needs_proc
def test_ten_thousand_steps_of_the_article_take_no_more_memory():
    model, loss_of = Article(), norch.nn.MSELoss()
    optimizer = norch.optim.SGD(model.parameters(), lr=0.001)
    data = [(i * 0.4, math.sin(i * 0.4) ** 2) for i in range(51)]

    def steps(count):
        for step in range(count):
            x, y = data[step % 51]
            loss = loss_of(model(norch.Tensor([[x]])), norch.Tensor([[y]]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss[0].item()

    steps(1000)
    gc.collect()
    gc.disable()
    try:
        before, storages, size = resident(), lib.norch_live_storages(), lib.norch_live_bytes()
        steps(10_000)
        grown = resident() - before
        assert lib.norch_live_storages() - storages <= 4
        assert lib.norch_live_bytes() - size <= 64
    finally:
        gc.enable()
    assert grown < 1 << 20, f"{grown} bytes"


@pytest.mark.resident
@needs_proc
def test_everything_else_takes_no_more_memory_either():
    import numpy as np

    class Twice(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    generator = random.Random(0)
    x = norch.tensor(np.ones((20, 20)), requires_grad=True)

    def step():
        size = generator.randrange(1, 50)
        array = np.ones(size)
        norch.from_numpy(array).mul_(2)
        norch.arange(size).numpy()
        norch.tensor([1.0] * size).tolist()
        a, b = Twice.apply(x)
        y = a * b
        y[0] += 1
        y.T[1] *= y[:, 0].clone()
        y.register_hook(lambda g: g * 1)
        y.retain_grad()
        (g,) = norch.autograd.grad(y.sum(), [x], create_graph=True)
        (g * g).mean().backward()
        x.grad = None
        repr(y)
        for bad in (lambda: x @ norch.ones(3), lambda: x[99], lambda: x.view(7), lambda: x.add_(1)):
            try:
                bad()
            except (IndexError, norch.Error):
                pass

    for _ in range(100):
        step()
    gc.collect()
    before, storages = resident(), lib.norch_live_storages()
    for _ in range(600):
        step()
    assert lib.norch_live_storages() - storages <= 4
    assert resident() - before < 1 << 20


@needs_proc
@pytest.mark.host
@pytest.mark.resident
def test_large_memory_goes_back_to_the_system():
    before = resident()
    x = norch.ones(50_000_000)
    assert resident() - before > 100_000_000
    del x
    lib.norch_empty_cache()
    assert resident() - before < 20_000_000


@pytest.fixture
def own_cache():
    """An empty cache, whose limit is restored afterwards."""
    limit = norch.memory.memory_stats()["cache_limit"]
    norch.memory.empty_cache()
    yield
    norch.memory.set_cache_limit(limit)


@pytest.mark.host
def test_statistics_of_memory_add_up(own_cache):
    caches = _caches()
    start = norch.memory.memory_stats()
    x = norch.empty(1000)  # 4000 bytes take a block of 4096
    now = norch.memory.memory_stats()
    assert now["allocated_bytes"] - start["allocated_bytes"] == 4096
    assert now["fresh_blocks"] - start["fresh_blocks"] == 1
    assert now["reserved_bytes"] == now["allocated_bytes"] + now["cached_bytes"]
    assert x.data_ptr() % 64 == 0
    norch.memory.reset_peak_memory_stats()
    del x
    after = norch.memory.memory_stats()
    assert after["allocated_bytes"] == start["allocated_bytes"] == norch.memory.memory_allocated()
    assert after["cached_bytes"] == (4096 if caches else 0)
    assert norch.memory.max_memory_allocated() == now["allocated_bytes"]
    assert norch.memory.max_memory_reserved() >= norch.memory.memory_reserved()
    x = norch.empty(1001)  # the block that waited, or one of the same size
    again = norch.memory.memory_stats()
    assert again["reused_blocks"] - after["reused_blocks"] == (1 if caches else 0)
    del x
    norch.memory.empty_cache()
    end = norch.memory.memory_stats()
    assert end["cached_bytes"] == 0 == norch.memory.memory_reserved() - norch.memory.memory_allocated()
    assert end["returned_blocks"] - start["returned_blocks"] == end["fresh_blocks"] - start["fresh_blocks"]


def _caches() -> bool:
    """Whether freed blocks wait at all: not where the library is built with a memory checker."""
    norch.empty(16)
    waiting = norch.memory.memory_stats()["cached_bytes"]
    norch.memory.empty_cache()
    return waiting > 0


@pytest.mark.host
def test_the_cap_of_the_cache_is_honoured(own_cache):
    caches = _caches()
    norch.memory.set_cache_limit(10_000)
    xs = [norch.empty(1000) for _ in range(5)]
    del xs
    assert norch.memory.memory_stats()["cached_bytes"] <= 10_000
    x = norch.empty(1_000_000)  # never fits, and goes straight back
    returned = norch.memory.memory_stats()["returned_blocks"]
    del x
    assert norch.memory.memory_stats()["returned_blocks"] == returned + 1
    x = norch.empty(2000)  # 8192 bytes, for which others make room
    del x
    assert norch.memory.memory_stats()["cached_bytes"] == (8192 if caches else 0)
    norch.memory.set_cache_limit(0)
    assert norch.memory.memory_stats()["cached_bytes"] == 0
    for wrong in (-1, 1 << 63, 1.5, None):
        with pytest.raises(norch.ArgumentError, match="set_cache_limit"):
            norch.memory.set_cache_limit(wrong)


def test_the_cache_can_be_emptied():
    xs = [norch.ones(n) for n in (1, 10, 100, 1000, 10_000)]
    del xs
    assert lib.norch_cached_bytes() >= 0
    lib.norch_empty_cache()
    assert lib.norch_cached_bytes() == 0
    assert norch.ones(10).sum().item() == 10


def test_live_bytes_follow_the_tensors():
    before = lib.norch_live_bytes()
    x = norch.zeros(1000, dtype=norch.float64)
    assert lib.norch_live_bytes() - before == 8000
    y, z = x[::2], x.T
    assert lib.norch_live_bytes() - before == 8000
    del x, y
    assert lib.norch_live_bytes() - before == 8000
    del z
    assert lib.norch_live_bytes() == before


def test_a_kept_operand_does_not_leak_numbers():
    x = norch.ones(2)
    x + 0.5
    before = lib.norch_live_storages()
    for i in range(5000):
        x + i
        x * (i + 0.5)
    assert lib.norch_live_storages() - before <= 2000


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------

TRAINING = """
    import norch, sys
    model = norch.nn.Sequential(norch.nn.Linear(20, 30), norch.nn.Tanh(), norch.nn.Linear(30, 1))
    optimizer = norch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = norch.randn(16, 20), norch.randn(16, 1)
    def step():
        loss = norch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
    step()
    print("ready", flush=True)
    try:
        while True:
            step()
    except KeyboardInterrupt:
        assert norch.is_grad_enabled()
        step()
        print("stopped", flush=True)
        %s
"""


@pytest.mark.parametrize("after, code", [("sys.exit(7)", 7), ("raise", -signal.SIGINT)])
def test_ctrl_c_ends_a_training_loop(after, code):
    with run(TRAINING % after) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = end_of(process)
    assert out == "stopped\n"
    assert process.returncode == code
    if after == "raise":
        assert "KeyboardInterrupt" in err
    else:
        assert err == ""


def test_no_ctrl_c_is_lost():
    """Wherever it arrives: also while a tensor is freed, where Python could only print it and go on."""
    model = norch.nn.Sequential(norch.nn.Linear(4, 5), norch.nn.Tanh(), norch.nn.Linear(5, 1))
    optimizer = norch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x, generator, lost, ignored = norch.randn(3, 4), random.Random(0), 0, []

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, ignored.append
    try:
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + generator.random() * 0.002)
                for _ in range(1000):
                    optimizer.zero_grad()
                    model(x).square().mean().backward()
                    optimizer.step()
                lost += 1
            except KeyboardInterrupt:
                assert norch.is_grad_enabled()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
    assert lost == 0 and not ignored


def test_ctrl_c_during_long_work_is_seen_right_after():
    program = """
        import norch
        x = norch.ones(1500, 1500, dtype=norch.float64)
        print("ready", flush=True)
        try:
            while True:
                x @ x
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    with run(program) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = end_of(process)
    assert (out, err, process.returncode) == ("stopped\n", "", 0)


def test_tensors_alive_at_the_end_do_no_harm():
    program = """
        import norch, threading, sys, numpy
        kept = [norch.randn(10, requires_grad=True) for _ in range(10)]
        kept.append((kept[0] * 2).exp())
        kept.append(kept)
        array = norch.from_numpy(numpy.ones(5))
        shared = norch.ones(5).numpy()
        sys.kept = kept
        norch.kept = kept[1].exp().sum()
        class Late:
            def __del__(self):
                kept[1].sum().backward()
        sys.late = Late()
        norch.ones(600, 600) @ norch.ones(600, 600)
        threading.Thread(target=lambda: [norch.ones(10) + 1 for _ in range(1000)], daemon=True).start()
    """
    with run(program) as process:
        out, err = end_of(process)
    assert process.returncode == 0 and out == "" and "Traceback" not in err.replace("Exception ignored", ""), err
