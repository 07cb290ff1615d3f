"""Streams and events of norch.cuda: what runs in which order, and whose memory is used anew when. In the simulation
streams run in any order that events allow, another one each time, so that a missing wait shows."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from checks import other_device

import norch
from norch import cuda, nn, optim
from norch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")

SIMULATED = cuda.is_available() and cuda.get_device_properties().simulated
simulated = pytest.mark.skipif(not SIMULATED, reason="only the simulation shuffles streams")


@pytest.fixture(autouse=True)
def the_default_stream() -> Iterator[None]:
    yield
    cuda.set_stream(cuda.default_stream(0))
    cuda.synchronize()
    assert cuda.current_stream() == cuda.default_stream()


def outcomes(program: Callable[[], list[float]], seeds: int = 20) -> set[tuple[float, ...]]:
    """What a program gives, in different orders of its streams."""
    found = set()
    for seed in range(1, 1 + seeds):
        if SIMULATED:
            ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"]).cudasim_seed(ctypes.c_uint64(seed))
        cuda.synchronize()
        found.add(tuple(program()))
    return found


# ---- which stream is current ----------------------------------------------------------------------------------------


def test_which_stream_is_current() -> None:
    default, one, two = cuda.current_stream(), cuda.Stream(), cuda.Stream(priority=-1)
    assert default == cuda.default_stream("cuda:0") and len({default, one, two}) == 3 and default.stream_id == 0
    assert one.device == norch.device("cuda", 0) and "cuda:0" in repr(one) and one != "one"
    with cuda.stream(one):
        assert cuda.current_stream() == one and cuda.default_stream() == default
        with two, one, cuda.stream(None):
            assert cuda.current_stream() == one
        assert cuda.current_stream() == one
        with pytest.raises(ZeroDivisionError), two:
            1 / 0  # noqa: B018
        assert cuda.current_stream() == one
    cuda.set_stream(two)
    cuda.set_stream(None)
    assert cuda.current_stream() == two
    seen: list[cuda.Stream] = []
    other = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
    other.start()
    other.join()
    assert seen == [default]


def test_two_threads_in_one_stream() -> None:
    """Each comes back to its own stream, whoever leaves first."""
    stream, other, entered, leave = cuda.Stream(), cuda.Stream(), threading.Event(), threading.Event()
    seen: list[cuda.Stream] = []

    def beside() -> None:
        with other:
            with stream:
                entered.set()
                leave.wait(10)
            seen.append(cuda.current_stream())

    thread = threading.Thread(target=beside)
    with stream:
        thread.start()
        entered.wait(10)
    assert cuda.current_stream() == cuda.default_stream()
    leave.set()
    thread.join()
    assert seen == [other] and cuda.current_stream() == cuda.default_stream()


def test_streams_are_few() -> None:
    made = [cuda.Stream() for _ in range(40)] + [cuda.Stream(priority=-1) for _ in range(40)]
    assert len(set(made)) == 62 and cuda.default_stream() not in made
    results = []
    for k, stream in enumerate(made):
        with stream:
            results.append(norch.full((3,), float(k), device="cuda") + 1)
    cuda.synchronize()
    assert [x.sum().item() for x in results] == [3.0 * (k + 1) for k in range(80)]


def test_streams_of_two_devices() -> None:
    second = other_device()
    stream, before = cuda.Stream(second), cuda.current_stream(second)
    with stream:
        assert cuda.current_device() == 1 and cuda.current_stream() == stream
        assert cuda.current_stream(0) == cuda.default_stream(0)
        x = norch.ones(3, device="cuda")
        event = stream.record_event()
    assert cuda.current_device() == 0 and cuda.current_stream(second) == before
    cuda.current_stream(0).wait_event(event)
    stream.synchronize()
    assert x.device == norch.device(second) and x.tolist() == [1, 1, 1] and stream.query()


def test_what_is_refused() -> None:
    for wrong in ("cpu", norch.device("cpu")):
        with pytest.raises(norch.ArgumentError, match="expected a CUDA device"):
            cuda.Stream(wrong)
    with pytest.raises(norch.DeviceError):
        cuda.Stream("cuda:63")
    with pytest.raises(norch.DeviceError, match="record_stream: not supported on cpu"):
        norch.ones(3, device="cpu").record_stream(cuda.current_stream())
    stream = cuda.Stream()
    stream.stream_id = 63
    with pytest.raises(norch.ArgumentError, match="cuda:0 has no stream 63"), stream:
        pass

    @norch.capture
    def step(x: norch.Tensor) -> norch.Tensor:
        with cuda.Stream():
            return x + 1

    with pytest.raises(norch.CaptureError, match="another stream is chosen"):
        for _ in range(4):
            step(norch.ones(3, device="cuda"))


# ---- order ----------------------------------------------------------------------------------------------------------


def produced(stream: cuda.Stream) -> norch.Tensor:
    with stream:
        x = norch.zeros(100, device="cuda")
        for _ in range(5):
            x += 1
    return x


@simulated
def test_a_missing_wait_shows() -> None:
    stream, kept = cuda.Stream(), []

    def program() -> list[float]:
        x = produced(stream)
        kept.append(x)
        return [(x * 1).sum().item()]

    assert len(outcomes(program)) > 1


def test_a_stream_waits_for_another() -> None:
    stream, event, late = cuda.Stream(), cuda.Event(), cuda.Event()

    def with_wait_stream() -> list[float]:
        x = produced(stream)
        cuda.current_stream().wait_stream(stream)
        return [(x * 1).sum().item()]

    def with_wait_event() -> list[float]:
        x = produced(stream)
        cuda.current_stream().wait_event(stream.record_event(event))
        event.record()  # anew, in another stream: what waits for it does not hear of that
        return [(x * 1).sum().item()]

    def with_a_wait_of_the_event() -> list[float]:
        with stream:
            x = produced(stream)
            late.record()
        late.wait()
        late.wait(stream)
        return [(x * 1).sum().item()]

    def with_the_host() -> list[float]:
        x = produced(stream)
        stream.synchronize()
        assert stream.query()
        return [(x * 1).sum().item()]

    def with_an_event_that_the_host_awaits() -> list[float]:
        x = produced(stream)
        done = stream.record_event()
        done.synchronize()
        assert done.query()
        return [(x * 1).sum().item()]

    for program in (
        with_wait_stream,
        with_wait_event,
        with_a_wait_of_the_event,
        with_the_host,
        with_an_event_that_the_host_awaits,
    ):
        assert outcomes(program) == {(500.0,)}, program
    assert cuda.Event().wait() is None  # recorded nowhere


def test_streams_that_wait_for_each_other_in_turns() -> None:
    one, two = cuda.Stream(), cuda.Stream()

    def program() -> list[float]:
        x = norch.ones(64, device="cuda")
        one.wait_stream(cuda.current_stream())
        for _ in range(4):
            with one:
                x *= 3
            two.wait_stream(one)
            with two:
                x -= 1
            one.wait_stream(two)
        cuda.current_stream().wait_stream(one)
        return [x.sum().item()]

    assert outcomes(program) == {(64 * 41.0,)}


def test_times_in_a_stream() -> None:
    stream, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record(stream)
    produced(stream)
    stream.record_event(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0


# ---- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1000, 300_000])  # kept by norch, by CUDA
def test_freed_memory_goes_back_to_its_stream(size: int) -> None:
    stream = cuda.Stream()
    cuda.synchronize()
    gc.collect()
    before = cuda.memory_allocated()

    def program() -> list[float]:
        with stream:
            x = norch.full((size,), 1.0, device="cuda")
            y = x * 2
        del x  # its kernels may be yet to run: nobody else may write there
        z = norch.full((size,), 5.0, device="cuda") + 1
        cuda.current_stream().wait_stream(stream)
        y.record_stream(cuda.current_stream())
        return [y.sum().item(), z.sum().item()]

    assert outcomes(program, 5 if size > 1000 else 20) == {(2.0 * size, 6.0 * size)}
    assert cuda.memory_allocated() == before
    cuda.empty_cache()
    assert cuda.memory_allocated() == before


@pytest.mark.parametrize("size", [1000, 300_000])
@pytest.mark.parametrize("recorded", [True, False])
def test_memory_that_two_streams_use(size: int, recorded: bool) -> None:
    if not recorded and not (SIMULATED and size == 1000):
        pytest.skip("what happens without record_stream() is left to chance")
    stream = cuda.Stream()

    def program() -> list[float]:
        x = norch.full((size,), 1.0, device="cuda")
        stream.wait_stream(cuda.current_stream())
        with stream:
            y = (x * 1).sum()
        if recorded:
            x.record_stream(stream)
            x.record_stream(cuda.current_stream())  # its own: no effect
        del x
        z = norch.full((size,), 7.0, device="cuda")  # in its place, if that is free
        total = z.sum().item()
        stream.synchronize()
        return [y.cpu().item(), total]

    found = outcomes(program, 5 if size > 1000 else 20)
    assert (found == {(1.0 * size, 7.0 * size)}) == recorded


@simulated
def test_memory_of_other_streams_is_found_when_it_is_missing() -> None:
    library, stream = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"]), cuda.Stream()
    library.cudasim_used.restype = ctypes.c_int64
    cuda.empty_cache()
    before = library.cudasim_used()
    with stream:
        many = [norch.empty(1000, device="cuda") for _ in range(20)]
    del many  # waits for its next use in that stream
    assert library.cudasim_used() > before + 80_000
    library.cudasim_fail_many(0, ctypes.c_int64(0), ctypes.c_int64(1))  # the next allocation; what waits is released
    x = norch.empty(1000, device="cuda")
    library.cudasim_fail_many(0, ctypes.c_int64(-1), ctypes.c_int64(0))
    assert x.numel() == 1000 and library.cudasim_used() < before + 10_000


# ---- copies ---------------------------------------------------------------------------------------------------------


def test_pinned_memory_that_several_streams_read() -> None:
    one, two = cuda.Stream(), cuda.Stream()
    cuda.empty_cache()

    def program() -> list[float]:
        source = norch.full((1000,), 3.0).pin_memory()
        with one:
            x = source.to("cuda", non_blocking=True)
        with two:
            y = source.to("cuda", non_blocking=True)
        del source
        other = norch.full((1000,), 4.0).pin_memory()  # not where copies are still to be made from
        for stream in (one, two):
            cuda.current_stream().wait_stream(stream)
        return [x.sum().item(), y.sum().item(), other.sum().item()]

    assert outcomes(program) == {(3000.0, 3000.0, 4000.0)}
    cuda.synchronize()
    cuda.empty_cache()
    assert cuda.host_memory_stats()["allocated_bytes.current"] == 0


def batches_ahead(loader: DataLoader) -> Iterator[tuple[norch.Tensor, ...]]:
    """The batches of a loader on the device, each copied in another stream while the one before is computed with."""
    copies, compute = cuda.Stream(), cuda.current_stream()

    def moved(batch: tuple[norch.Tensor, ...]) -> tuple[norch.Tensor, ...]:
        with copies:
            return tuple(x.to("cuda", non_blocking=True) for x in batch)

    ahead = None
    for batch in loader:
        coming = moved(batch)
        if ahead is not None:
            yield ahead
        compute.wait_stream(copies)
        for x in coming:
            x.record_stream(compute)
        ahead = coming
    if ahead is not None:
        yield ahead


def test_a_loader_that_copies_ahead() -> None:
    norch.manual_seed(0)
    data = TensorDataset(norch.randn(48, 6, device="cpu"), norch.randn(48, 2, device="cpu"))

    def program(ahead: bool) -> list[float]:
        norch.manual_seed(1)
        model = nn.Linear(6, 2, device="cuda")
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data, batch_size=8, pin_memory=ahead)
        losses = []
        for x, y in batches_ahead(loader) if ahead else loader:
            loss = nn.functional.mse_loss(model(x.to("cuda")), y.to("cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return norch.stack(losses).tolist()

    assert outcomes(lambda: program(True)) == {tuple(program(False))}
