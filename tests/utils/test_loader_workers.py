"""DataLoader with workers: the same batches as without, errors and deaths, and nothing that is left behind."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import loader_sets as sets
import numpy as np
import pytest
from checks import busy_threads
from leftovers import CONTEXTS, nothing_is_left, servers  # noqa: F401  (fixtures)

import norch
from norch._binding.library import lib
from norch.utils.data import DataLoader, RandomSampler, TensorDataset, get_worker_info
from norch.utils.data.workers import context_of

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks, or is about signals or /proc")


def plain(batch):
    """A batch in which tensors are lists, to compare."""
    if isinstance(batch, norch.Tensor):
        return str(batch.dtype), batch.tolist()
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return [plain(value) for value in batch] if isinstance(batch, (list, tuple)) else batch


def batches(loader):
    return [plain(batch) for batch in loader]


def drawn(workers, size=23, **options):
    return DataLoader(sets.Drawn(size), batch_size=4, shuffle=True, seed=5, num_workers=workers, **options)


# ---- the same batches ------------------------------------------------------------------------------------------------


def test_any_number_of_workers_gives_the_same_batches():
    loader = drawn(0)
    expected = batches(loader), batches(loader)
    assert expected[0] != expected[1] and len({str(batch["x"]) for batch in expected[0]}) == 6
    for workers in (1, 2, 3):
        loader = drawn(workers)
        assert (batches(loader), batches(loader)) == expected, workers
        loader = drawn(workers, persistent_workers=True)
        assert (batches(loader), batches(loader)) == expected, workers


@pytest.mark.parametrize("context", CONTEXTS)
def test_any_context_gives_the_same_batches(context):
    for given in (context, multiprocessing.get_context(context)):
        assert batches(drawn(2, multiprocessing_context=given)) == batches(drawn(0))


@pytest.mark.parametrize("workers", [0, 1])
def test_every_epoch_has_its_seed_and_the_order_of_its_sampler(workers):
    sampler = RandomSampler(range(12), generator=3)
    loader = DataLoader(range(12), 4, shuffle=True, generator=3, num_workers=workers)
    for _ in range(2):
        assert [i for x in loader for i in x.tolist()] == list(sampler)
    loader = DataLoader(sets.Drawn(4), seed=1, num_workers=workers)
    assert batches(loader) != batches(loader), "in order, but with other draws"


@posix
def test_where_mpi_runs_nothing_is_forked(monkeypatch):
    for running in (False, True):
        mpi = SimpleNamespace(Is_initialized=lambda r=running: r, Is_finalized=lambda: False)
        monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
        assert context_of(None).get_start_method() == ("forkserver" if running else "fork")


def test_the_global_seed_seeds_the_batches_too():
    def epoch(workers):
        norch.manual_seed(3)
        return batches(DataLoader(sets.Drawn(9), batch_size=2, num_workers=workers))

    assert epoch(0) == epoch(2) and epoch(0) != batches(DataLoader(sets.Drawn(9), batch_size=2))


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_program_draws_does_not_depend_on_its_loader(workers):
    def draw():
        return norch.rand(1).item(), random.random(), np.random.randn()  # noqa: NPY002

    def epoch(loads):
        norch.manual_seed(1), random.seed(2), np.random.seed(3)  # noqa: NPY002
        loader = DataLoader(sets.Drawn(8), batch_size=2, num_workers=workers, seed=0)
        return [draw() for _ in (loader if loads else range(4))]

    assert epoch(True) == epoch(False)


def test_as_they_are_ready(tmp_path):
    loader = DataLoader(sets.FirstIsLate(str(tmp_path)), num_workers=2, in_order=False)
    found = [x.item() for x in loader]
    assert sorted(found) == list(range(8)) and found[0] != 0
    assert [x.item() for x in DataLoader(sets.Of(8, sets.slow), num_workers=2)] == list(range(8))


def test_without_workers_normal_numbers_of_numpy_come_in_pairs():
    """The second of a pair waits in NumPy's state, which goes from and comes to the program around each batch."""
    loader = DataLoader(sets.Of(9, lambda i: np.random.randn()), batch_size=1, seed=0)  # noqa: NPY002
    for pause in (1, 2, 3):
        np.random.seed(0)  # noqa: NPY002
        expected = np.random.randn(9).tolist()  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        found = []
        for i, _ in enumerate(loader):
            found += [np.random.randn()] if i % pause == 0 else []  # noqa: NPY002
        assert found == expected[: len(found)]
    own = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(1))
        expected = np.random.RandomState(np.random.PCG64(1)).randn(9).tolist()
        assert [np.random.randn() for _ in loader] == expected  # noqa: NPY002
    finally:
        np.random.set_bit_generator(own)


def test_samples_without_batches():
    data = TensorDataset(norch.arange(40).view(10, 4), norch.arange(10))
    found = list(DataLoader(data, batch_size=None, num_workers=2))
    assert plain(found) == plain(list(DataLoader(data, batch_size=None)))
    assert all(x.untyped_storage().nbytes() == 32 for x, y in found), "a row, and not what it is a view of"


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_an_iterable_dataset_is_split(workers):
    loader = DataLoader(sets.Lines(17), batch_size=3, num_workers=workers, seed=1)
    found = batches(loader)
    assert sorted(value for batch in found for value in batch[0][1]) == list(range(17))
    parts = [list(range(first, 17, workers)) for first in range(workers)]
    turns = [[part[i : i + 3] for part in parts if part[i : i + 3]] for i in range(0, 17, 3)]
    assert [batch[0][1] for batch in found] == [rows for turn in turns for rows in turn], "each in its turn"
    assert batches(DataLoader(sets.Lines(17), batch_size=3, num_workers=workers, seed=1)) == found
    dropped = DataLoader(sets.Lines(17), batch_size=3, num_workers=workers, drop_last=True)
    assert {len(batch[0][1]) for batch in batches(dropped)} == {3}


# ---- what a worker knows ---------------------------------------------------------------------------------------------


def test_worker_info():
    loader = DataLoader(sets.Of(8, sets.seeds), batch_size=None, num_workers=2, seed=4, worker_init_fn=sets.remember)
    found = list(loader)
    assert {(i, n, size) for i, n, size, _ in found} <= {(0, 2, 8), (1, 2, 8)} and len({x[3] for x in found}) == 1
    assert get_worker_info() is None
    loader = DataLoader(sets.Of(2, sets.threads), num_workers=1)
    assert [x.item() for x in loader] == [1, 1], "a worker computes with one thread"


def test_persistent_workers_stay():
    loader = DataLoader(sets.Of(6, sets.pid), num_workers=2, persistent_workers=True)
    first, second = ({x.item() for x in loader} for _ in range(2))
    assert len(first | second) <= 2 and os.getpid() not in first
    loader = DataLoader(sets.Of(6, sets.pid), num_workers=2)
    assert len({x.item() for x in loader} | {x.item() for x in loader}) >= 2


def test_epochs_that_are_left_early():
    for options in ({}, {"persistent_workers": True}):
        loader = DataLoader(sets.Of(100, sets.wide), batch_size=2, num_workers=2, **options)
        for wanted in (1, 3):
            assert [x[:, 0].tolist() for x in islice(loader, wanted)] == [[2 * i, 2 * i + 1] for i in range(wanted)]
        assert sum(len(x) for x in loader) == 100


@pytest.mark.parametrize("persistent", [False, True])
def test_iterations_within_each_other(persistent):
    loader = DataLoader(range(5), batch_size=2, num_workers=1, persistent_workers=persistent)
    pairs = [(a.tolist(), b.tolist()) for a in loader for b in loader]
    parts = [[0, 1], [2, 3], [4]]
    assert pairs == [(a, b) for a in parts for b in parts]
    one, other = iter(loader), iter(loader)
    assert [(next(one).tolist(), next(other).tolist()) for _ in range(3)] == [(a, a) for a in parts]


def test_pinned_batches():
    expected = batches(drawn(0))
    assert batches(drawn(2, pin_memory=True)) == expected
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process"):
        list(DataLoader(sets.Of(8, sets.failing), num_workers=2, pin_memory=True))


# ---- shared memory ---------------------------------------------------------------------------------------------------


def test_blocks_are_used_again():
    loader = DataLoader(sets.Of(100, sets.wide), batch_size=4, num_workers=1)
    places = {x.untyped_storage().data_ptr() for x in loader}
    assert 1 < len(places) < 8


@posix
def test_batches_that_are_kept_are_not_written_again():
    kept = list(DataLoader(sets.Of(60, sets.wide), batch_size=2, num_workers=2))
    assert [x[:, -1].tolist() for x in kept] == [[2 * i, 2 * i + 1] for i in range(30)]
    view = kept[7][1, :5]
    del kept
    list(DataLoader(sets.Of(60, sets.wide), batch_size=2, num_workers=2))
    assert view.tolist() == [15.0] * 5
    descriptors = len(os.listdir("/proc/self/fd"))
    kept = list(DataLoader(range(600), batch_size=1, num_workers=2))
    assert len(os.listdir("/proc/self/fd")) == descriptors, "a batch takes no descriptor"
    assert [x.item() for x in kept] == list(range(600))
    with open("/proc/self/maps") as maps:
        assert sum("memfd:norch" in line for line in maps) < 550, "of many blocks, some are copied and given back"


def test_batches_that_a_worker_keeps_are_not_written_again():
    loader = DataLoader(sets.Of(60, sets.wide), batch_size=2, num_workers=1, collate_fn=sets.keeping)
    for i, (batch, firsts) in enumerate(loader):
        assert batch[:, 5].tolist() == [2 * i, 2 * i + 1] and firsts == [2.0 * k for k in range(i + 1)]


def test_batches_without_what_was_collated():
    loader = DataLoader(
        sets.Of(9, lambda i: norch.full((5000 * (i + 1),), float(i))), num_workers=1, collate_fn=sets.means
    )
    assert list(loader) == [float(i) for i in range(9)]


@pytest.mark.parametrize("context", [name for name in CONTEXTS if name != "fork"])
def test_a_data_set_is_copied_once_for_all_workers(context):
    loader = DataLoader(sets.Holding(), batch_size=None, num_workers=2, multiprocessing_context=context)
    found = list(loader)
    assert {worker for worker, _ in found} == {0, 1} and len({file for _, file in found}) == 1


@posix
def test_where_there_is_no_memfd(monkeypatch, tmp_path):
    """As on macOS: a block is a temporary file that is unlinked at once."""
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    loader = iter(DataLoader(sets.Of(60, sets.wide), batch_size=2, num_workers=2))
    assert [next(loader)[:, 9].tolist(), next(loader)[:, 9].tolist()] == [[0, 1], [2, 3]]
    assert sum(len(x) for x in loader) == 56 and list(tmp_path.iterdir()) == []


@posix
def test_a_forked_child_keeps_the_batch_that_it_saw():
    loader = iter(DataLoader(sets.Of(60, sets.wide), batch_size=2, num_workers=1))
    batch = next(loader)
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(reads, 1)
        os._exit(0 if batch[1, 7].item() == 1.0 else 1)
    del batch
    assert sum(len(x) for x in loader) == 58
    os.write(writes, b"x")
    os.close(reads), os.close(writes)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_large_arrays_come_in_one_block():
    loader = DataLoader(sets.Of(20, sets.images), batch_size=5, num_workers=2)
    assert [(x.shape, x[:, 3, 3].tolist()) for x in loader] == [
        ((5, 100, 100), [5.0 * i + k for k in range(5)]) for i in range(4)
    ]


def every_layout(index):
    """Samples of every dtype and layout, as tensors of shapes that change, and what goes beside them."""
    base = norch.arange(24 + index).to(norch.float32)
    shared = norch.arange(6).view(2, 3)
    made = {name: norch.arange(5).to(getattr(norch, name)) for name in DTYPES}
    layouts = [base.flip(0)[:24].view(4, 6).T, base[2::2], base[:4].expand(3, 4), norch.tensor(3.5), norch.zeros(0, 3)]
    rest = {"text": "é" * 3000 * index, "none": None, "big": 2**80, "parameter": norch.nn.Parameter(base.clone())}
    return made, layouts, (shared, shared[0], shared.T), rest


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def test_every_dtype_and_layout():
    loader = DataLoader(sets.Of(12, every_layout), batch_size=None, num_workers=2)
    for index, (made, layouts, shared, rest) in enumerate(loader):
        expected = every_layout(index)
        assert {name: plain(x) for name, x in made.items()} == {name: plain(x) for name, x in expected[0].items()}
        for x, y in zip(layouts, expected[1], strict=True):
            assert x.shape == y.shape and x.tolist() == y.tolist()
        assert shared[0].data_ptr() == shared[2].data_ptr() and shared[2].stride() == (1, 3)
        assert [x.tolist() for x in shared] == [x.tolist() for x in expected[2]]
        assert rest["text"] == expected[3]["text"] and rest["none"] is None and rest["big"] == 2**80
        assert type(rest["parameter"]) is norch.nn.Parameter and rest["parameter"].requires_grad
        made["float32"].add_(1)  # it may be written to


def test_batches_of_many_sizes():
    sizes = [1, 50_000, 3, 200_000, 0, 7, 100_000] * 3
    loader = DataLoader(sets.Of(len(sizes), lambda i: norch.full((sizes[i],), float(i))), None, num_workers=2)
    for i, x in enumerate(loader):
        assert x.shape == (sizes[i],) and (x == i).all()


def test_long_lists_of_indices():
    order = [list(range(start, start + 20_000)) for start in range(0, 60_000, 20_000)]
    loader = DataLoader(range(60_000), batch_sampler=order, num_workers=1, prefetch_factor=3)
    assert [x.tolist() for x in loader] == order


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("value", ValueError), ("key", KeyError)])
def test_an_exception_of_a_worker(monkeypatch, name, kind):
    monkeypatch.setenv("NORCH_TEST_ERROR", name)
    loader = iter(DataLoader(sets.Of(8, sets.failing), batch_size=2, num_workers=2))
    assert [next(loader).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(kind) as caught:
        next(loader)
    text = str(caught.value)
    assert text.startswith(f"Caught {kind.__name__} in DataLoader worker process ")
    assert "Original Traceback" in text and "in failing\n" in text and "sample 5" in text
    assert next(loader).tolist() == [6, 7], "the others go on"
    with pytest.raises(StopIteration):
        next(loader)


def test_exceptions_that_are_hard_to_send():
    with pytest.raises(sets.TwoWords, match="Caught TwoWords in DataLoader worker process 0"):
        list(DataLoader(sets.Of(8, sets.failing_otherwise), num_workers=1))
    with pytest.raises(norch.Error, match="Caught StopIteration in DataLoader worker process 0"):
        list(DataLoader(sets.Of(8, sets.stopping), num_workers=1))
    with pytest.raises(Exception, match="Caught .* in DataLoader worker process 0(.|\n)*pickle"):
        list(DataLoader(range(4), num_workers=1, collate_fn=sets.unpicklable))

    class Local(Exception):
        pass

    def raises(index):
        raise Local("far away")

    with pytest.raises(norch.Error, match="Caught Local in (.|\n)*far away"):
        list(DataLoader(sets.Of(8, raises), num_workers=1))
    with pytest.raises(ValueError, match="Caught ValueError (.|\n)*no worker 0"):
        list(DataLoader(range(4), num_workers=1, worker_init_fn=sets.refuse))


@posix
@pytest.mark.parametrize(
    ("fate", "message"),
    [(sets.killed, r"DataLoader worker \d \(pid \d+\) is killed by signal: SIGKILL"), (sets.exiting, "exit code 3")],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_worker_that_dies(fate, message, persistent):
    loader = DataLoader(sets.Of(40, fate), num_workers=2, persistent_workers=persistent, pin_memory=persistent)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=message):
        list(loader)
    assert time.monotonic() - begin < 20
    with pytest.raises(RuntimeError, match=message):
        list(loader)  # with new workers


@posix
def test_a_worker_that_is_killed_while_it_waits():
    loader = DataLoader(sets.Of(400, sets.pid), num_workers=2)
    iterator = iter(loader)
    os.kill(next(iterator).item(), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="is killed by signal: SIGKILL"):
        list(iterator)
    assert list(iterator) == []


def test_a_timeout():
    loader = DataLoader(sets.Of(4, sets.hanging), num_workers=1, timeout=0.3)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.3 seconds"):
        next(iter(loader))
    assert 0.3 <= time.monotonic() - begin < 5
    assert len(list(DataLoader(sets.Of(4, sets.slow), num_workers=1, timeout=30))) == 4


def run(code, *, wait=None, **options):
    """A program that has loader_sets, in a session of its own; wait: what it prints before it is left alone."""
    root = Path(norch.__file__).resolve().parent.parent
    env = {**os.environ, "PYTHONPATH": f"{root}:{root / 'tests'}"}
    program = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **options,
    )  # fmt: skip
    if wait is not None:
        assert wait in program.stdout.readline()
    return program


# SIGINT is ignored in what a shell runs in the background, and in all that is started there.
LOADS = """if True:
    import os, signal, sys, norch, loader_sets as sets
    from norch.utils.data import DataLoader
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader = DataLoader(sets.Of(10**6, sets.pid), num_workers=2, persistent_workers={persistent})
    for i, batch in enumerate(loader):
        if i == 20:
            print("started", flush=True)
"""


def group_is_gone(number, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL", "SIGTERM"])
def test_a_signal_ends_all_processes(name):
    """Ctrl-C comes to all of them; the others to the program alone, whose workers see that it is gone."""
    number = getattr(signal, name)
    program = run(LOADS.format(persistent=number != signal.SIGINT), wait="started")
    (os.killpg if number == signal.SIGINT else os.kill)(program.pid, number)
    _, errors = program.communicate(timeout=30)
    assert group_is_gone(program.pid), "workers are left"
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors
    else:
        assert errors == "" and program.returncode == -number


@pytest.mark.slow
@posix
def test_a_program_that_ends_while_workers_work():
    program = run(LOADS.format(persistent=True) + "            sys.exit(0)", wait="started")
    _, errors = program.communicate(timeout=30)
    assert program.returncode == 0 and errors == "" and group_is_gone(program.pid)


@posix
def test_workers_need_no_threads_of_the_program():
    """A fork beside busy threads of the library, again and again."""
    norch.set_num_threads(3)
    with busy_threads():
        for _ in range(5):
            assert sum(x[:, 0].sum().item() for x in DataLoader(sets.Of(20, sets.wide), 4, num_workers=2)) == 190


def test_storages_of_batches_are_given_back():
    before = lib.norch_live_storages()
    loader = DataLoader(sets.Of(40, sets.wide), batch_size=4, num_workers=2)
    assert sum(len(x) for x in loader) == 40
    assert lib.norch_live_storages() == before
