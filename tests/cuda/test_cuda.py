"""norch.cuda, and tensors that move between devices. They run where there is a CUDA device: in make test-cudasim."""

from __future__ import annotations

import copy
import doctest
import gc
import pickle
from typing import Any

import pytest
from case import as_tensor, draw, source
from cases import CASES
from checks import other_device

import norch
from norch import cuda, nn

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


# ---- what there is --------------------------------------------------------------------------------------------------


def test_what_a_device_is() -> None:
    found = cuda.get_device_properties()
    assert found.name == cuda.get_device_name() == cuda.get_device_name("cuda:0")
    assert found.simulated == ("simulated" in found.name) == ("simulated=True" in repr(found))
    assert found.total_memory > 0 and found.multi_processor_count > 0 and found.driver > 0 and found.runtime > 0
    assert cuda.get_device_capability() == (found.major, found.minor)
    assert cuda.is_initialized() and cuda.why_not() is None
    for wrong in ("cpu", norch.device("cpu")):
        with pytest.raises(norch.ArgumentError, match="expected a CUDA device"):
            cuda.get_device_properties(wrong)


@pytest.mark.parametrize("module", [cuda, cuda._memory, cuda._random, cuda.amp], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_run(module: Any) -> None:
    other_device()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testmod(module, extraglobs={"norch": norch}, optionflags=flags)
    assert found.attempted > 5 and not found.failed


def test_the_current_device() -> None:
    assert cuda.current_device() == 0
    second = other_device()
    with cuda.device(1):
        assert cuda.current_device() == 1
        x = norch.ones(2, device="cuda")
        assert x.device == norch.device(second) and x.get_device() == 1 and norch.ones(2).cuda().device == x.device
        with cuda.device("cuda:0"):
            assert norch.ones(2, device="cuda").get_device() == 0
        assert (x + 1).device == x.device  # an operation is done where its tensors are
    assert cuda.current_device() == 0 and (x + 1).tolist() == [2, 2]
    with pytest.raises(norch.DeviceError), cuda.device(99):
        pass
    cuda.set_device(1)
    try:
        assert norch.ones(2).to("cuda").device == norch.device("cuda", 1)
    finally:
        cuda.set_device(0)


# ---- memory ---------------------------------------------------------------------------------------------------------


def test_memory_is_counted() -> None:
    gc.collect()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == before
    x = norch.empty(1 << 20, device="cuda")
    assert cuda.memory_allocated() - before == 4 << 20
    y = x + 1
    assert cuda.memory_allocated() - before == 8 << 20
    del y
    assert cuda.memory_allocated() - before == 4 << 20 and cuda.max_memory_allocated() - before == 8 << 20
    assert cuda.memory_reserved() >= 4 << 20 and cuda.max_memory_reserved() >= cuda.memory_reserved()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() - before == 4 << 20
    del x
    assert cuda.memory_allocated() == before
    free, total = cuda.mem_get_info()
    assert 0 < free <= total == cuda.get_device_properties().total_memory


def test_attention_needs_little_memory_for_its_scores() -> None:
    if not cuda.get_device_properties().simulated:
        pytest.skip("parts are small in the simulation only")
    q, k, v = (norch.randn(2, 300, 8, device="cuda", requires_grad=True) for _ in range(3))
    cuda.empty_cache()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    assert cuda.max_memory_allocated() - before < 300 * 300 * 4 / 2


def test_what_waits_for_reuse_can_be_given_back() -> None:
    """All but the units of 32 MiB in which a tensor lies: CUDA takes memory by them."""
    kept = [norch.full((1000,), 1.0, device="cuda")]
    many = [norch.empty(1 << 18, device="cuda") for _ in range(96)]  # blocks that norch keeps itself
    kept.append(norch.full((1000,), 2.0, device="cuda"))
    large = norch.empty(16 << 20, device="cuda")
    del many, large
    before, most = cuda.memory_reserved(), cuda.max_memory_reserved()
    assert most >= before >= cuda.memory_allocated() + (160 << 20)
    cuda.empty_cache()
    assert cuda.memory_allocated() <= cuda.memory_reserved() <= before - (96 << 20)
    assert cuda.max_memory_reserved() == most
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_reserved() == cuda.memory_reserved()
    assert [x.sum().item() for x in kept] == [1000, 2000]


# ---- streams and events ---------------------------------------------------------------------------------------------


def test_events_tell_time() -> None:
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query() and start.synchronize() is None and "not recorded" in repr(start)
    with pytest.raises(norch.Error, match="must have been recorded"):
        start.elapsed_time(end)
    start.record()
    x = norch.ones(64, 64, device="cuda")
    for _ in range(3):
        x = x @ x
    end.record()
    end.synchronize()
    assert start.query() and end.query() and start.elapsed_time(end) > 0 >= end.elapsed_time(start)
    assert "cuda:0" in repr(end)
    end.record(cuda.current_stream())  # anew
    cuda.current_stream().synchronize()
    assert end.query()


def test_events_that_cannot_tell() -> None:
    start, end = cuda.Event(), cuda.Event(enable_timing=True)
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(norch.ArgumentError, match="enable_timing"):
        start.elapsed_time(end)
    with pytest.raises(norch.ArgumentError, match="interprocess"):
        cuda.Event(interprocess=True)
    with pytest.raises(norch.Error, match="made on cuda:0, recorded on cuda:1"):
        start.record(cuda.Stream(other_device()))


# ---- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [norch.bool, norch.uint8, norch.int64, norch.float16, norch.bfloat16, norch.float64])
def test_there_and_back(dtype: norch.dtype) -> None:
    x = (norch.arange(24) % 3).to(dtype).view(2, 3, 4)
    for laid in (x, x.transpose(0, 2), x[:, ::2], x[:, :, ::-1], x[0, 0, 0], x[:0], x[:, :1].expand(2, 5, 4)):
        there = laid.to("cuda")
        assert there.device == norch.device("cuda:0") and there.dtype is dtype and there.shape == laid.shape
        assert there.is_contiguous() and there.cpu().tolist() == laid.tolist()
        assert there.to("cuda") is there and there.cuda() is there and laid.cpu() is laid


def test_pinned_memory() -> None:
    x = norch.arange(6.0).view(2, 3)
    pinned = x.t().pin_memory()
    assert pinned.is_pinned() and pinned[0].is_pinned() and not x.is_pinned() and pinned.device == x.device
    assert pinned.tolist() == x.t().tolist() and pinned.pin_memory() is pinned
    assert norch.zeros(0).pin_memory().is_pinned()
    there = pinned.to("cuda", non_blocking=True)
    assert not there.is_pinned() and (there + 1).tolist() == (x.t() + 1).tolist()
    with pytest.raises(norch.DeviceError, match="only tensors on the CPU can be pinned, not those on cuda:0"):
        there.pin_memory()


def test_copies_that_do_not_wait() -> None:
    if not cuda.get_device_properties().simulated:
        pytest.skip("a GPU may have copied before one looks")
    x = norch.ones(4)
    pinned = x.pin_memory()
    later, now = pinned.to("cuda", non_blocking=True), pinned.cuda()
    staged = x.to("cuda", non_blocking=True)
    still = pinned.cuda(non_blocking=True)
    pinned.fill_(2)
    x.fill_(2)
    assert now.tolist() == staged.tolist() == later.tolist() == [1] * 4  # cuda() has waited for what was before it
    assert still.tolist() == [2] * 4
    kept = norch.ones(4).pin_memory().to("cuda", non_blocking=True)  # pinned memory outlives the copies from it
    assert not cuda.current_stream().query()  # freeing it has not waited
    assert kept.tolist() == [1] * 4


def test_pinned_memory_waits_for_what_reads_it() -> None:
    if not cuda.get_device_properties().simulated:
        pytest.skip("a GPU may have copied before one looks")
    cuda.synchronize()
    cuda.empty_cache()
    assert cuda.host_memory_stats()["allocated_bytes.current"] == 0
    before = cuda.host_memory_stats()["num_host_alloc"]
    there = norch.ones(4).pin_memory().to("cuda", non_blocking=True)
    stats = cuda.host_memory_stats()
    assert stats["active_bytes.current"] == 0 and stats["allocated_bytes.current"] == 4096
    other = norch.full((4,), 2.0).pin_memory()  # not in the memory that is still to be read
    assert there.tolist() == [1] * 4 and other.tolist() == [2] * 4
    assert cuda.host_memory_stats()["num_host_alloc"] == before + 2
    for k in range(5):  # as a loader does
        batch = norch.full((4,), float(k)).pin_memory()
        moved = batch.to("cuda", non_blocking=True)
        del batch
        assert moved.sum().item() == 4 * k
    assert cuda.host_memory_stats()["num_host_alloc"] == before + 2
    del other
    cuda.empty_cache()
    assert cuda.host_memory_stats()["allocated_bytes.current"] == 0


def test_pinned_memory_that_two_devices_read() -> None:
    second = other_device()
    cuda.empty_cache()
    x = norch.arange(1000.0)
    pinned = x.pin_memory()
    there, beyond = pinned.to("cuda", non_blocking=True), pinned[500:].to(second, non_blocking=True)
    del pinned
    refilled = [norch.zeros(1000).pin_memory() for _ in range(3)]
    assert there.tolist() == x.tolist() and beyond.tolist() == x[500:].tolist()
    del refilled
    cuda.empty_cache()
    assert cuda.host_memory_stats()["allocated_bytes.current"] == 0


@pytest.mark.parametrize("pinned", [False, True])
def test_large_copies_to_a_device(pinned: bool) -> None:
    """Of several pieces, the last of them not whole; what they are copied from may change at once."""
    cuda.empty_cache()
    x = norch.arange(2_400_001, dtype=norch.float32)
    source = x.pin_memory() if pinned else x.clone()
    there = source.cuda()
    source.fill_(1)
    later = source.to("cuda", non_blocking=True)
    if not pinned:
        source.fill_(2)
    assert norch.equal(there.cpu(), x) and (later == 1).all().item()
    del source
    cuda.empty_cache()
    assert cuda.host_memory_stats()["allocated_bytes.current"] == 0


def test_copies_between_devices() -> None:
    second = other_device()
    x = norch.arange(6.0, device="cuda").view(2, 3).t()
    there = x.to(second)
    assert (
        there.device == norch.device(second) and there.tolist() == x.tolist() and there.to("cuda:0").device == x.device
    )
    y = norch.zeros(3, 2, device=second)
    assert y.copy_(x).tolist() == x.tolist() and y.device == there.device
    y.copy_(norch.ones(2, dtype=norch.int32))
    assert y.sum().item() == 6


def test_what_reads_a_tensor_on_a_device() -> None:
    x = norch.arange(6.0, device="cuda").view(2, 3)
    assert x[1, 2].item() == float(x[1, 2]) == 5 and int(x[0, 1]) == 1 and bool(x[0, 1]) and not x[0, 0]
    assert "device='cuda:0'" in repr(x) and f"{x.sum():.1f}" == "15.0" and len(list(x)) == 2
    assert norch.tensor(x).device == x.device and norch.tensor(x, device="cpu").tolist() == x.tolist()
    assert copy.deepcopy(x).device == x.device and copy.deepcopy(x).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


# ---- mixing devices -------------------------------------------------------------------------------------------------

# Those whose result lies where the first tensor does, whatever the others do, as in PyTorch.
_MAY_MIX = ("copy_", "index_put", "broadcast_tensors", "select_scatter", "slice_scatter", "diagonal_scatter")


# what errors call those that are other operations by another name
_CALLED = {
    "clamp_min": ("clamp",),
    "clamp_max": ("clamp",),
    "div floor": ("floor_divide",),
    "div trunc": ("trunc_divide",),
    "true_divide": ("div",),
    "ger": ("outer",),
    "concat": ("cat",),
    "concatenate": ("cat",),
    "row_stack": ("vstack",),
}


def test_tensors_on_two_devices_do_not_go_together() -> None:
    seen = 0
    for case in CASES:
        shapes = case.shapes[0]
        if len(shapes) < 2 or case.name.split()[0] in _MAY_MIX:
            continue
        dtype = next(name for name in ("float32", "int64", "bool", *case.dtypes) if name in case.dtypes)
        arrays = draw(case, shapes, dtype, source(case.name))
        for moved in range(len(shapes)):
            inputs = [as_tensor(array, dtype) for array in arrays]
            inputs[moved] = inputs[moved].to("cuda")
            if all(x.ndim == 0 for x in inputs if x.is_cpu):
                continue
            with pytest.raises(norch.DeviceError) as caught:
                case.call(norch, *inputs)
            assert "cuda:0" in str(caught.value) and "cpu" in str(caught.value), (case.name, moved)
            name = case.name.split()[0].rpartition(".")[2].rstrip(":,")
            assert str(caught.value).startswith((name, *_CALLED.get(case.name, ()))), (case.name, str(caught.value))
            seen += 1
    assert seen > 300


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b.t(),
        lambda a, b: norch.cat([a, b]),
        lambda a, b: norch.where(a > 0, a, b),
        lambda a, b: a.add_(b),
        lambda a, b: nn.functional.linear(a, b),
        lambda a, b: nn.functional.mse_loss(a, b),
        lambda a, b: nn.functional.cross_entropy(a, b.argmax(1)),
        lambda a, b: a.gather(0, b.long()),
        lambda a, b: norch.einsum("ij,k->ij", a, b[0, :1]),
        lambda a, b: norch.einsum("k,ij,->ij", a[0], b, norch.tensor(2.0)),
        lambda a, b: norch.einsum("k,k,ij->ij", a[0], a[1], b),
    ],
)
def test_both_devices_are_named(call: Any) -> None:
    second = other_device()
    x = norch.rand(3, 3)
    for a, b in ((x.cuda(), x), (x, x.cuda()), (x.cuda(), x.to(second))):
        with pytest.raises(norch.DeviceError) as caught:
            call(a.clone(), b)
        assert str(a.device) in str(caught.value) and str(b.device) in str(caught.value)


def test_a_number_on_the_cpu_goes_with_anything() -> None:
    x, two = norch.arange(4.0, device="cuda"), norch.tensor(2.0)
    for y in (x * two, two * x, norch.add(two, x), norch.where(x > two, x, two), x.clamp(max=two), x.clone().mul_(two)):
        assert y.device == x.device
    assert (x * two).tolist() == [0, 2, 4, 6] and norch.where(x > two, x, two).tolist() == [2, 2, 2, 3]
    assert (x[0] + two).device == x.device and (x + norch.tensor(1)).dtype is norch.float32
    assert x.masked_fill(x > 1, two).tolist() == [0, 1, 2, 2]
    y = x.clone()
    y[0], y[1:3] = two, norch.tensor(7)
    assert y.tolist() == [2, 7, 7, 3]
    assert x[norch.tensor([1, -1])].tolist() == [1, 3]  # indices in brackets go with any device, too
    i = norch.tensor([0, 2], device="cuda")
    for number in (2.0, two):
        assert norch.isin(x, number).tolist() == [False, False, True, False] and norch.isin(number, x).item()
        assert norch.kron(x, number).tolist() == norch.kron(number, x).tolist() == [0, 2, 4, 6]
        assert nn.functional.cosine_similarity(x, number, dim=0).item() == pytest.approx(12 / (4 * 14**0.5))
    assert x.index_put((i,), two).tolist() == [2, 1, 2, 3]
    with pytest.raises(norch.DeviceError):
        norch.ones(3) * x[0]  # a number on a device does not
    with pytest.raises(norch.DeviceError, match="cannot be written into a tensor on cpu"):
        two.add_(x[0])


def test_what_is_no_probability_is_told_at_the_next_wait() -> None:
    for bad in (1.5, -0.5, float("nan")):
        for dtype in (norch.float32, norch.float64, norch.float16):
            drawn = norch.bernoulli(norch.tensor([0.0, bad, 1.0], dtype=dtype, device="cuda"))
            with pytest.raises(norch.ArgumentError, match=r"bernoulli: a probability is not in \[0, 1\] .*cuda:0"):
                cuda.synchronize()
            assert drawn[0].item() == 0 and drawn[2].item() == 1
    with pytest.raises(norch.ArgumentError, match="bernoulli: probability 1.5 is not"):  # of the host, at once
        norch.bernoulli(norch.ones(3, device="cuda"), 1.5)


LATE = {
    "gather": (lambda x, i: x.gather(0, i), [10, 0, 30]),
    "index_select": (lambda x, i: x.index_select(0, i), [10, 0, 30]),
    "take": (lambda x, i: x.take(i), [10, 0, 30]),
    "x[i]": (lambda x, i: x[i], [10, 0, 30]),
    "embedding": (lambda x, i: nn.functional.embedding(i, x.view(3, 1)).view(-1), [10, 0, 30]),
    "scatter": (lambda x, i: x.scatter(0, i, x * 2), [20, 20, 60]),
    "index_add": (lambda x, i: x.index_add(0, i, x), [20, 20, 60]),
    "index_copy": (lambda x, i: x.index_copy(0, i, x * 2), [20, 20, 60]),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), [1, 20, 1]),
    "index_put": (lambda x, i: x.index_put((i,), x * 2), [20, 20, 60]),
    "x[i] = y": (lambda x, i: x.clone().__setitem__(i, x * 2) or x, [10, 20, 30]),
}


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("wait", [lambda x: cuda.synchronize(), lambda x: x.tolist(), lambda x: x.sum().item()])
def test_an_index_out_of_range_is_told_at_the_next_wait(name: str, wait: Any) -> None:
    call, expected = LATE[name]
    x = norch.tensor([10.0, 20.0, 30.0], device="cuda")
    index = norch.tensor([0, 7, 2], device="cuda")
    out = call(x, index)
    after = x + 1  # the device goes on
    with pytest.raises(IndexError, match=r"index 7 is out of range for size 3 .*cuda:0; it was skipped") as caught:
        wait(out)
    assert isinstance(caught.value, norch.BoundsError)
    kept = range(3) if name not in ("gather", "index_select", "take", "x[i]", "embedding") else (0, 2)
    assert [out.tolist()[i] for i in kept] == [expected[i] for i in kept]
    assert after.tolist() == [11, 21, 31] and x.tolist() == [10, 20, 30]  # told once


# ---- autograd -------------------------------------------------------------------------------------------------------


def test_to_is_recorded() -> None:
    leaf = norch.tensor([1.0, 2.0], requires_grad=True)
    there = leaf.to("cuda")
    assert not there.is_leaf and there.requires_grad and leaf.to("cpu") is leaf
    (there * there).sum().backward()
    assert leaf.grad is not None and leaf.grad.device == leaf.device and leaf.grad.tolist() == [2, 4]
    leaf.grad = None
    (leaf.to("cuda", norch.float64) * 3).cpu().sum().backward()
    assert leaf.grad.dtype is norch.float32 and leaf.grad.is_cpu and leaf.grad.tolist() == [3, 3]
    [first] = norch.autograd.grad((leaf.cuda() ** 3).sum(), leaf, create_graph=True)
    first.sum().backward()
    assert leaf.grad.tolist() == [3 + 6, 3 + 12]
    on_device = norch.ones(2, device="cuda", requires_grad=True)
    assert on_device.is_leaf
    (on_device.cpu() * 2).sum().backward()
    assert on_device.grad is not None and on_device.grad.is_cuda and on_device.grad.tolist() == [2, 2]


@pytest.mark.parametrize("shape", [(3,), ()])
def test_gradients_of_a_number_on_the_cpu_come_back_to_it(shape: tuple[int, ...]) -> None:
    number, x = norch.tensor(2.0, requires_grad=True), norch.full(shape, 3.0, device="cuda")
    count = x.numel()

    def copied(x: Any, s: Any) -> Any:
        return x.clone().copy_(s)

    def put(x: Any, s: Any) -> Any:
        y = x.clone().view(-1)
        y[:] = s
        return y

    for call, expected in (
        (lambda x, s: x + s, count),
        (lambda x, s: s / x, count / 3),
        (lambda x, s: norch.where(x > 0, s, x), count),
        (lambda x, s: norch.lerp(x, x * 2, s), 3 * count),
        (lambda x, s: x.clone().mul_(s), 3 * count),
        (lambda x, s: norch.minimum(x, s), count),
        (lambda x, s: x.masked_fill(x > 0, s), count),
        (copied, count),
        (put, count),
    ):
        number.grad = None
        call(x, number).sum().backward()
        assert number.grad is not None and number.grad.is_cpu and number.grad.item() == pytest.approx(expected)
    [first] = norch.autograd.grad((x * number * number).sum(), number, create_graph=True)
    assert first.is_cpu
    number.grad = None
    first.backward()
    assert number.grad.is_cpu and number.grad.item() == 2 * 3 * count


def test_gradients_lie_where_their_tensors_do() -> None:
    p = norch.ones(3, device="cuda", requires_grad=True)
    for call in (
        lambda: p.backward(norch.ones(3)),
        lambda: (p * 2).backward(norch.ones(3)),
        lambda: norch.autograd.grad(p, p, norch.ones(3)),
    ):
        with pytest.raises(norch.DeviceError, match="backward: a gradient on cpu for a tensor on cuda:0"):
            call()
    handle = p.register_hook(lambda g: g.cpu())
    with pytest.raises(norch.DeviceError, match="hook: a gradient on cpu for a tensor on cuda:0"):
        (p * 2).sum().backward()
    handle.remove()
    assert p.grad is None
    p.sum().backward(norch.tensor(3.0))  # a single number is moved
    assert p.grad is not None and p.grad.is_cuda and p.grad.tolist() == [3, 3, 3]


# ---- random numbers -------------------------------------------------------------------------------------------------


def test_devices_draw_the_same() -> None:
    for draw_one in (
        lambda device: norch.rand(100, device=device),
        lambda device: norch.randint(0, 10, (100,), device=device),
        lambda device: norch.randperm(50, device=device),
        lambda device: norch.ones(100, device=device).mul_(0.3).bernoulli(),
    ):
        cuda.manual_seed(5)
        assert cuda.initial_seed() == norch.initial_seed() == 5
        here = draw_one("cpu")
        cuda.manual_seed_all(5)
        assert draw_one("cuda").tolist() == here.tolist()
    weights = norch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    for replacement in (False, True):
        cuda.manual_seed(5)
        drawn = norch.multinomial(weights, 2, replacement)
        cuda.manual_seed(5)
        there = norch.multinomial(weights.cuda(), 2, replacement)
        assert there.is_cuda and there.tolist() == drawn.tolist()
    state = cuda.get_rng_state()
    first = norch.rand(3, device="cuda").tolist()
    cuda.set_rng_state(state)
    assert norch.rand(3, device="cuda").tolist() == first
    cuda.seed()


# ---- memory shared with other libraries ------------------------------------------------------------------------------


def test_dlpack_shares_memory_of_the_device():
    x = norch.arange(6.0, device="cuda").view(2, 3).T
    y = norch.from_dlpack(x)
    assert (y.device, y.stride(), y.data_ptr(), x.__dlpack_device__()) == (x.device, (1, 3), x.data_ptr(), (2, 0))
    y[0, 0] = 9.0
    assert x.tolist() == [[9.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert norch.from_dlpack(x, device="cpu").tolist() == x.tolist()
    with norch.cuda.Stream():
        assert norch.from_dlpack(y * 2).tolist() == [[18.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_dlpack_with_pytorch_on_the_device():
    torch = pytest.importorskip("torch")
    if norch.cuda.get_device_properties().simulated or not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    theirs = torch.arange(6.0, device="cuda") * 2
    ours = norch.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data_ptr()
    assert ours.tolist() == theirs.tolist()
    assert torch.from_dlpack(ours + 1).tolist() == (theirs + 1).tolist()
