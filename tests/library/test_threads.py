"""Worker threads, Python threads, forks, and the GIL. `host`: about the threads of the CPU, and forks, after which CUDA
does not work."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from checks import busy_threads

import norch
from norch._binding.library import lib
from norch.nn import functional


def large_work():
    """Work of each kind that is cut into chunks, as numbers to compare."""
    a = norch.arange(400_000, dtype=norch.float32).view(400, 1000) / 1e5
    b = a.T.contiguous()
    return [
        (a + a * 2).exp().sum().item(),
        a.sum(0).tolist()[:5],
        a.sum(1).tolist()[:5],
        a.T.sum(1).tolist()[:5],
        (a @ b).sum().item(),
        (a.double() @ b.double()).diagonal().tolist()[:3],
        a.var().item(),
        a.argmax().item(),
        a.max(0)[1].tolist()[:5],
        a.softmax(1).logsumexp(0).tolist()[:5],
        a.T.clone().view(-1)[:10].tolist(),
        norch.randn(100_000, generator=norch.Generator().manual_seed(3)).sum().item(),
        a.to(norch.int32).sum().item(),
        a.prod(1).tolist()[:3],
        (a > 1).any(1).tolist()[:3],
        *large_layers(),
    ]


def large_layers():
    """A convolution, attention, and products that are strided, transposed, slender or many, with their gradients."""
    torn = norch.Generator().manual_seed(5)

    def drawn(*shape):
        return norch.randn(*shape, generator=torn).requires_grad_()

    found = []
    for function, inputs in [
        (functional.conv2d, (drawn(6, 5, 40, 40), drawn(7, 5, 3, 3), drawn(7))),
        (lambda x, w: functional.conv2d(x, w, groups=40, padding=1), (drawn(6, 40, 30, 30), drawn(40, 1, 3, 3))),
        (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), [drawn(1, 300, 40)] * 3),
        (functional.scaled_dot_product_attention, [drawn(3, 4, 130, 16) for _ in range(3)]),
        (functional.linear, (drawn(700, 300), drawn(90, 300), drawn(90))),
        (norch.matmul, (drawn(12, 64, 4, 32).transpose(1, 2), drawn(12, 64, 4, 32).permute(0, 2, 3, 1))),
        (norch.matmul, (drawn(2000, 1500), drawn(1500, 3))),
        (norch.matmul, (drawn(350, 1300), drawn(1300, 330))),  # packed, in several blocks of k
        (norch.matmul, (drawn(3, 1500), drawn(1500, 900))),
        (norch.matmul, (drawn(90, 300), drawn(300, 700))),  # groups of panels
        (norch.matmul, (drawn(1024, 200).T, drawn(1024, 90))),
    ]:
        out = function(*inputs)
        grads = norch.autograd.grad(out, inputs, norch.ones_like(out))
        found += [part.detach().numpy().tobytes() for part in (out, *grads)]
    return found


@pytest.mark.host
def test_results_do_not_depend_on_the_number_of_threads():
    found = []
    for threads in (1, 2, 3, 8, 1):
        norch.set_num_threads(threads)
        assert norch.get_num_threads() == threads
        found.append(large_work())
    for other in found[1:]:
        assert other == found[0]


@pytest.mark.host
@pytest.mark.parametrize("bad", [0, -1, 257, 2**40, 2**64 + 3])
def test_numbers_of_threads_that_cannot_be(bad):
    before = norch.get_num_threads()
    with pytest.raises((ValueError, OverflowError)):
        norch.set_num_threads(bad)
    with pytest.raises(TypeError):
        norch.set_num_threads("two")
    assert norch.get_num_threads() == before


@pytest.mark.host
@pytest.mark.parametrize(
    "text, count",
    [("3", 3), ("1", 1), ("junk", 0), ("3x", 0), ("0", 0), ("00", 0), ("-5", 0), ("", None), ("100000", 256)],
)
def test_the_environment_sets_the_number_of_threads(text, count):
    env = dict(os.environ, NORCH_NUM_THREADS=text, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)))
    program = "import norch; print(norch.get_num_threads())"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    if count == 0:
        assert done.stderr.splitlines()[-1].startswith(f"ImportError: norch: NORCH_NUM_THREADS={text} is not a number")
        return
    out = done.stdout
    cores = min(256, len(os.sched_getaffinity(0)))
    assert 1 <= int(out) <= cores if count is None else int(out) == count  # a container may grant fewer


@pytest.mark.host
def test_threads_are_as_many_as_the_cores_that_the_process_may_use():
    core = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, [{core}]); import norch; print(norch.get_num_threads())"
    env = {name: value for name, value in os.environ.items() if name != "NORCH_NUM_THREADS"}
    env["PYTHONPATH"] = os.path.dirname(os.path.dirname(norch.__file__))
    assert subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True).stdout == "1\n"


@pytest.mark.host
def test_threads_that_are_wanted_no_more_sleep():
    program = """if True:
        import resource, norch
        x = norch.ones(300_000)
        norch.set_num_threads(64)
        x.exp()
        norch.set_num_threads(2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        for _ in range(500):
            x.exp()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)"""
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)))
    switches = int(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True).stdout)
    assert switches < 15_000  # were all 63 woken for each job, 30,000 and more


def test_many_python_threads_at_once():
    """Small operations, large ones, and each with its own errors: every result is right."""
    norch.set_num_threads(2)
    wrong = []
    small = norch.arange(10, dtype=norch.float64)
    large = norch.arange(200_000, dtype=norch.float64)
    expected = float(np.arange(200_000.0).sum())

    def work(seed):
        for i in range(60):
            x = small + seed
            if (x * i).tolist() != [(k + seed) * i for k in range(10)]:
                wrong.append("small")
            if i % 6 == 0 and (large + seed).sum().item() != expected + 200_000 * seed:
                wrong.append("large")
            try:
                x.view(seed + 11)
                wrong.append("view")
            except norch.ShapeError as error:
                if str(seed + 11) not in str(error):
                    wrong.append(str(error))
            y = norch.full((3, 3), float(seed), requires_grad=True)
            (y @ y).sum().backward()
            if y.grad.tolist() != [[6.0 * seed] * 3] * 3:
                wrong.append("grad")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_share_a_tensor():
    base = norch.zeros(1000)
    before = lib.norch_live_storages()

    def work():
        for _ in range(300):
            v = base[10:20].view(2, 5).T
            v.clone()
            del v

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lib.norch_live_storages() == before


@pytest.mark.host
def test_the_gil_is_free_during_long_work():
    norch.set_num_threads(1)
    x = norch.ones(1400, 1400, dtype=norch.float64)
    started, stop, ticks = threading.Event(), threading.Event(), []

    def tick():
        started.set()
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    started.wait()
    begin = time.perf_counter()
    x @ x
    end = time.perf_counter()
    stop.set()
    thread.join()
    during = sum(begin < moment < end for moment in ticks)
    assert during >= 3, f"{during} ticks within {end - begin:.3f} s"


@pytest.mark.host
@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="under a sanitizer every call releases the lock")
def test_short_work_keeps_the_gil():
    """Beside a busy Python thread, a small operation does not wait for its turn each time."""
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        x = norch.ones(10)
        begin = time.perf_counter()
        for _ in range(2000):
            x + x
        taken = time.perf_counter() - begin
    finally:
        stop.set()
        thread.join()
    assert taken < 2  # 10 s if each call gave the GIL away


# ---- forks ------------------------------------------------------------------------------------


def in_a_child(work, seconds=20):
    """Runs work in a forked child; its exit status, or -9 when it hung."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -9


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_computes():
    norch.set_num_threads(4)
    expected = large_work()  # the workers run now
    for _ in range(3):
        assert in_a_child(lambda: large_work() == expected) == 0
    assert large_work() == expected
    assert in_a_child(lambda: in_a_child(lambda: large_work() == expected) == 0) == 0


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_workers_work():
    norch.set_num_threads(3)
    expected = large_work()
    with busy_threads():
        for _ in range(5):
            assert in_a_child(lambda: large_work() == expected) == 0
    assert large_work() == expected


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_fork_beside_a_long_call_frees_what_it_replaces():
    norch.set_num_threads(1)
    a, stop = norch.rand(700, 700), threading.Event()

    def busy():
        while not stop.is_set():
            a @ a

    def replaces():
        x = norch.zeros(1000)
        before = lib.norch_live_storages()
        for _ in range(10):
            x.data = norch.ones(1000)
        alone = lib.norch_live_storages() - before
        norch.ones(300_000).sum()  # a long call, after which nothing waits
        return alone == 0 and lib.norch_live_storages() == before

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        assert [in_a_child(replaces) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        thread.join()


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_trains():
    norch.set_num_threads(2)
    model = norch.nn.Linear(300, 300)
    x = norch.randn(300, 300)

    def train():
        optimizer = norch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return True

    train()
    assert in_a_child(train) == 0
    model.zero_grad()


def doubled_sum(x):
    return (norch.tensor(x) * 2 + norch.zeros(100_000)).sum().item()


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_pool_of_forked_processes():
    norch.set_num_threads(2)
    large_work()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(doubled_sum, [0.5, 1.0, 2.0]).get(timeout=30) == [1e5, 2e5, 4e5]


def test_tensors_go_through_a_queue():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    x = norch.arange(6).view(2, 3).T
    queue.put(x)
    got = queue.get(timeout=30)
    assert got.tolist() == x.tolist() and got.dtype is x.dtype
    queue.close()
    queue.join_thread()


def test_threads_add_to_one_large_gradient():
    """The sum runs without the GIL, so two of them must not meet."""
    norch.set_num_threads(1)
    x = norch.zeros(2_000_000, requires_grad=True)
    weight = norch.ones(2_000_000)

    def work():
        for _ in range(6):
            (x * weight).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.min().item() == x.grad.max().item() == 24


@pytest.mark.host
def test_an_index_that_another_thread_writes_is_checked_as_it_is_used():
    index, beyond = norch.zeros(100_000, dtype=norch.int64), norch.full((100_000,), 2**40, dtype=norch.int64)
    source, done = norch.zeros(10), threading.Event()

    def write():
        while not done.is_set():
            index.copy_(beyond)
            index.zero_()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for read in [lambda: source[index], lambda: source.index_select(0, index)] * 20:
            try:
                assert read().sum().item() == 0
            except IndexError:
                pass
    finally:
        done.set()
        writer.join()


@pytest.mark.host
def test_memory_that_a_tensor_lets_go_of_stays_while_another_thread_works_on_it():
    norch.set_num_threads(1)
    for _ in range(60):
        x = norch.zeros(2_000_000)
        other = threading.Thread(target=x.add_, args=(1,))
        other.start()
        time.sleep(0.0002)
        x.data = norch.zeros(1)
        y = norch.full((2_000_000,), 5.0)  # would take the block that the thread writes to
        other.join()
        assert (y == 5).all()


@pytest.mark.host
@pytest.mark.parametrize("name", ["nonzero", "__rmatmul__", "exp"])
def test_a_call_of_the_library_sees_data_whole_or_not_at_all(name):
    """x.data is one of two tensors, of other shapes and strides, while a call reads it without the GIL."""
    norch.set_num_threads(1)
    torn = norch.Generator().manual_seed(0)
    both = norch.rand(600, 500, generator=torn) + 0.1, norch.rand(400, 600, generator=torn).T + 0.1
    x, done = both[0].clone(), threading.Event()
    arguments = {"__rmatmul__": (norch.rand(100, 600, generator=torn),)}

    def outcome(of):
        out = getattr(of, name)(*arguments.get(name, ()))
        parts = out if isinstance(out, tuple) else (out,)
        return [(tuple(part.shape), part.numpy().tobytes()) for part in parts]

    expected = [outcome(each) for each in both]

    def replace():
        while not done.is_set():
            for each in both:
                x.data = each
                time.sleep(0)

    other = threading.Thread(target=replace)
    other.start()
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert outcome(x) in expected
    finally:
        done.set()
        other.join()
