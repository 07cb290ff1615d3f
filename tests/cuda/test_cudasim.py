"""The simulation of CUDA catches what kernels do wrong; and what becomes of a training step when the device refuses
memory, a launch or everything: an exception each time, nothing leaked, and the next step works or says why not. These
tests run where the simulation is the device: in make test-cudasim."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import norch
import norch.nn.functional as F
from norch import cuda, nn, optim

LIBRARY = os.environ.get("NORCH_CUDA_LIBRARY", "")
pytestmark = pytest.mark.skipif("cudasim" not in LIBRARY, reason="the device is not the simulation")

ALLOCATION, LAUNCH, KERNEL = range(3)


@pytest.fixture
def simulation() -> Iterator[ctypes.CDLL]:
    """The simulation that norch uses; no fault is left in it."""
    assert cuda.get_device_properties().simulated
    library = ctypes.CDLL(LIBRARY)
    library.cudasim_fail_many.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    library.cudasim_fail_many.restype = ctypes.c_int64
    yield library
    for kind in (ALLOCATION, LAUNCH, KERNEL):
        library.cudasim_fail_many(kind, -1, 0)
    library.cudasim_mend()


# ---- what kernels do wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (2, r"divergent barrier at .*faulty\.cu:\d+: thread \d+ waits, thread \d+ has ended"),
        (3, r"divergent barrier at .*faulty\.cu:\d+: thread \d+ waits, thread \d+ waits elsewhere \(line \d+\)"),
        (4, r"a kernel wrote \d+ bytes past a block of 1024 bytes"),
        (5, r"missing warp lane at .*faulty\.cu:\d+"),
        (6, r"a kernel is given 0x[0-9a-f]+, an address of the host"),
    ],
    ids=["barrier for some", "two barriers", "past the end", "lane missing", "host pointer"],
)
def test_mistakes_end_the_device(kind: int, said: str) -> None:
    wrong, message = tried(kind)
    assert wrong == -1
    assert_matches(said, message)


def test_a_missing_barrier_gives_wrong_results() -> None:
    for _ in range(5):  # threads run in another order each time
        assert tried(0) == (0, "no error")
        wrong, message = tried(1)
        assert wrong >= 128 and message == "no error"  # of each pair, the first to run


def tried(kind: int) -> tuple[int, str]:
    faulty = ctypes.CDLL(str(Path(LIBRARY).with_name("libfaulty.so")))
    message = ctypes.create_string_buffer(400)
    return faulty.faulty_try(kind, message, ctypes.c_size_t(len(message))), message.value.decode()


def assert_matches(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(text)


# ---- chance ---------------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_order_of_threads(simulation: ctypes.CDLL) -> None:
    source = norch.Generator().manual_seed(0)

    def drawn(*shape: int) -> norch.Tensor:
        return norch.randn(shape, generator=source, device="cuda")

    x, table, image, kernel = drawn(300, 40), drawn(5, 40), drawn(2, 3, 20, 20), drawn(4, 3, 3, 3)
    rows, cells = norch.arange(300, device="cuda") % 5, (x * 10).to(norch.int64) % 5
    windows = image.clone().requires_grad_()
    pooled = F.max_pool2d(windows, 3, 1)
    calls: list[Callable[[], norch.Tensor]] = [
        lambda: x.sum(),
        lambda: x.softmax(0),
        lambda: x @ x.T @ x,
        lambda: table.index_add(0, rows, x),
        lambda: table.scatter_add(0, cells.clamp(min=0), x),
        lambda: table.index_put((rows,), x),
        lambda: norch.autograd.grad(F.conv2d(image, kernel.requires_grad_()).square().sum(), kernel)[0],
        lambda: norch.autograd.grad(pooled, windows, norch.ones_like(pooled), retain_graph=True)[0],
        lambda: x.flatten().cumsum(0),
        lambda: x.cumsum(0).cumsum(1),
        lambda: x.flatten()[:9].outer(x.flatten()[:1100]).cumsum(1).T.logcumsumexp(0),
        lambda: x.flatten().sort().values,
        lambda: x.flatten().argsort(descending=True),
        lambda: x.flatten().topk(100).indices,
        lambda: x[x > 0],
    ]
    for number, call in enumerate(calls):
        found = set()
        for seed in (1, 2, 3):
            simulation.cudasim_seed(ctypes.c_uint64(seed))
            found.add(call().cpu().numpy().tobytes())
        assert len(found) == 1, number


# ---- a training step, with a fault at each place in turn -----------------------------------------------------------


def mlp() -> Callable[[], float]:
    norch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 4)).to("cuda")
    x, y = norch.randn(10, 6, device="cuda"), norch.arange(10, device="cuda") % 4
    return step_of(model, optim.AdamW(model.parameters(), lr=0.1), x, y)


def cnn() -> Callable[[], float]:
    norch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 3),
    ).to("cuda")
    x, y = norch.randn(3, 1, 8, 8, device="cuda"), norch.arange(3, device="cuda")
    return step_of(model, optim.SGD(model.parameters(), lr=0.1, momentum=0.9), x, y)


def step_of(model: nn.Module, optimizer: optim.Optimizer, x: norch.Tensor, y: norch.Tensor) -> Callable[[], float]:
    def step() -> float:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


programs = pytest.mark.parametrize("program", [mlp, cnn])


def in_use() -> int:
    gc.collect()
    return cuda.memory_allocated()


@programs
def test_out_of_memory_at_each_allocation(program: Callable[[], Callable[[], float]], simulation: ctypes.CDLL) -> None:
    step = program()
    step()
    cuda.empty_cache()
    before = in_use()
    simulation.cudasim_fail_many(ALLOCATION, -1, 0)
    step()
    count = simulation.cudasim_fail_many(ALLOCATION, -1, 0)
    assert count > 5
    refused = 0
    for n in range(count):
        cuda.empty_cache()  # else blocks that wait for their next use are taken
        simulation.cudasim_fail_many(ALLOCATION, n, 2)  # this one and the second try, after waiting blocks are released
        try:
            step()
        except MemoryError as error:
            refused += 1
            assert "out of memory for" in str(error) and "on cuda:0: tensors hold" in str(error)
            del error
        simulation.cudasim_fail_many(ALLOCATION, -1, 0)
        assert in_use() <= before
        step()
    assert refused > count // 2
    assert in_use() == before


def test_no_memory_to_pin(simulation: ctypes.CDLL) -> None:
    def step() -> list[float]:
        batches = [norch.full((n,), 2.0).pin_memory() for n in (10, 3000)]
        moved = [x.to("cuda", non_blocking=True) for x in batches]
        del batches
        return [x.sum().item() for x in moved]

    for kind in ("of CUDA", "of the host"):
        refused = 0
        for n in range(30):
            cuda.empty_cache()
            if kind == "of CUDA":
                simulation.cudasim_fail_many(ALLOCATION, n, 2)  # and again after what waits has been given back
            else:
                norch._binding.library.lib.norch_fail_allocation(n)
            try:
                assert step() == [20, 6000]
            except MemoryError as error:
                refused += "pin_memory: out of memory for" in str(error)
                del error
            finally:
                simulation.cudasim_fail_many(ALLOCATION, -1, 0)
                norch._binding.library.lib.norch_fail_allocation(-1)
            assert step() == [20, 6000] and cuda.host_memory_stats()["active_bytes.current"] == 0
        assert refused >= 2
    held = norch.ones(4).pin_memory().to("cuda", non_blocking=True)  # its memory is given back when some is missing
    simulation.cudasim_fail_many(ALLOCATION, 0, 1)
    assert norch.ones(99999).pin_memory().is_pinned() and held.sum().item() == 4
    assert cuda.host_memory_stats()["allocated_bytes.current"] < 1 << 20


@programs
def test_a_failure_of_each_launch(program: Callable[[], Callable[[], float]], simulation: ctypes.CDLL) -> None:
    step = program()
    step()
    before = in_use()
    simulation.cudasim_fail_many(LAUNCH, -1, 0)
    step()
    count = simulation.cudasim_fail_many(LAUNCH, -1, 0)
    assert count > 15
    for n in range(count):
        simulation.cudasim_fail_many(LAUNCH, n, 1)
        with pytest.raises(norch.DeviceError, match=r"^[a-z0-9_ ]+: failed on the CUDA device: invalid configuration"):
            step()
        simulation.cudasim_fail_many(LAUNCH, -1, 0)
        assert in_use() <= before
    step()
    assert in_use() == before


@pytest.mark.parametrize("whole", [False, True])
def test_a_product_whose_launch_fails_is_not_computed_again(whole: bool, simulation: ctypes.CDLL) -> None:
    x, a = norch.ones(8, 8, device="cuda"), norch.ones(8, 8, device="cuda")
    x = x if whole else x[0]
    simulation.cudasim_fail_many(LAUNCH, 0, 1)
    with pytest.raises(norch.DeviceError, match="failed on the CUDA device: invalid configuration"):
        norch.addmm(x, a, a)
    simulation.cudasim_fail_many(LAUNCH, -1, 0)
    assert (norch.addmm(x, a, a) == 9).all()


@pytest.mark.parametrize("on", range(3))
@pytest.mark.parametrize("name, ranks", [("addmm", (2, 2, 2)), ("addmv", (1, 2, 1)), ("baddbmm", (3, 3, 3))])
def test_sums_of_products_name_what_has_two_devices(name: str, ranks: tuple[int, ...], on: int) -> None:
    given = [norch.ones(*[8] * rank, device="cpu" if i == on else "cuda") for i, rank in enumerate(ranks)]
    with pytest.raises(norch.DeviceError, match=rf"^{name}: .*(cpu.*cuda|cuda.*cpu)"):
        getattr(norch, name)(*given)


@programs
def test_a_fault_of_each_kernel_ends_the_device(
    program: Callable[[], Callable[[], float]], simulation: ctypes.CDLL
) -> None:
    step = program()
    step()
    simulation.cudasim_fail_many(KERNEL, -1, 0)
    step()
    count = simulation.cudasim_fail_many(KERNEL, -1, 0)
    lost = r"an earlier operation, or this one, failed on the CUDA device: .*What the device held is lost"
    for n in range(0, count, 4):
        before = in_use()
        simulation.cudasim_fail_many(KERNEL, n, 1)
        with pytest.raises(norch.DeviceError, match=lost):
            step()
        for other in (step, lambda: norch.ones(3, device="cuda"), cuda.synchronize, lambda: norch.ones(2).to("cuda")):
            with pytest.raises(norch.DeviceError, match=lost):
                other()
        assert norch.ones(3, device="cpu").sum().item() == 3  # the CPU goes on
        simulation.cudasim_fail_many(KERNEL, -1, 0)
        simulation.cudasim_mend()  # a new process, on a GPU
        assert in_use() <= before
        step = program()
        step()
