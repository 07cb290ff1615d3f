"""Weights of layers of captured programs: packed ones are packed again after any kind of write to them."""

from __future__ import annotations

import copy
import ctypes
import io
import threading

import numpy as np
import pytest
from layered import captured, drawn, inference, network, same_bits

import norch
import norch.nn.functional as F
from norch import nn, optim

pytestmark = [pytest.mark.kernel, pytest.mark.host]  # the CPU has layers


def _by_numpy(p):
    p.detach().numpy()[...] *= 2


def _by_asarray(p):
    np.asarray(p.detach())[...] *= 2


def _by_memory(p):
    from norch.storage import Memory

    np.array(Memory(p), copy=False)[...] *= 2


def _by_dlpack(p):
    norch.from_dlpack(p.detach()).mul_(2)


def _by_address(p):
    array = (ctypes.c_float * p.numel()).from_address(p.data_ptr())
    array[0] = 5.0


def _by_storage(p):
    array = (ctypes.c_float * p.numel()).from_address(p.untyped_storage().data_ptr())
    array[:] = [2 * x for x in array]


def _by_thread(p):
    thread = threading.Thread(target=lambda: p.data.mul_(2))
    thread.start()
    thread.join()


def _by_step(p):
    p.grad = norch.ones_like(p)
    optim.SGD([p], lr=0.5).step()
    p.grad = None


def _by_adam(p):
    p.grad = norch.ones_like(p)
    optim.Adam([p], lr=0.5).step()
    p.grad = None


def _by_replay(p):
    write = norch.capture(lambda by: p.data.mul_(by))
    for _ in range(4):
        write(norch.full((1,), 1.5))


def _by_captured_step(p):
    optimizer = optim.SGD([p], lr=0.01)

    @norch.capture
    def step(x):
        loss = (p * x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step(norch.ones(1))


def _replaced(p):
    p.data = p.data * 2


WRITES = {
    "mul_": lambda p: p.mul_(2), "data": lambda p: p.data.mul_(2), "item": lambda p: p.data.__setitem__(0, 3.0),
    "detach": lambda p: p.detach().zero_(), "view": lambda p: p.view(-1)[3:].fill_(0.5),
    "transposed": lambda p: p.transpose(0, 1).mul_(2), "copy_": lambda p: p.copy_(p * 2), "replaced": _replaced,
    "draw": lambda p: p.normal_(), "uniform": lambda p: nn.init.uniform_(p), "bernoulli": lambda p: p.bernoulli_(0.5),
    "fill": lambda p: p.fill_(0.1),
    "index_add_": lambda p: p.index_add_(0, norch.tensor([1]), norch.ones_like(p[:1])),
    "scatter_": lambda p: p.scatter_(0, norch.zeros_like(p[:1]).long(), 1.0),
    "masked_fill_": lambda p: p.masked_fill_(p > 0, -1.0), "index_put": lambda p: p.__setitem__(p > 0, 2.0),
    "out": lambda p: norch.mul(p.detach(), 2.0, out=p.data),
    "cumsum": lambda p: norch.cumsum(p.detach() * 1, 0, out=p.data),
    "sort": lambda p: norch.sort(p.detach() * 1, 0, out=(p.data, norch.empty(p.shape, dtype=norch.int64))),
    "softmax": lambda p: p.copy_(p.softmax(0)),
    "product": lambda p: norch.matmul(norch.ones(len(p), 2), norch.ones(2, p[0].numel()), out=p.data.view(len(p), -1)),
    "sum": lambda p: norch.sum(norch.ones(3, *p.shape), 0, out=p.data),
    "foreach": lambda p: norch._foreach_mul_([p.data], 2.0),
    "numpy": _by_numpy, "asarray": _by_asarray, "memory": _by_memory, "dlpack": _by_dlpack,
    "address": _by_address, "storage": _by_storage, "thread": _by_thread, "SGD": _by_step, "Adam": _by_adam,
    "replay": _by_replay, "captured step": _by_captured_step,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("which", ["0.weight", "1.weight", "1.running_var", "3.weight", "3.bias", "4.weight"])
def test_writes_are_noticed(name, which):
    norch.manual_seed(4)
    if name == "sort" and which.startswith("1."):
        name = "data"
    if name in ("transposed", "product") and which not in ("0.weight", "3.weight", "4.weight"):
        name = "mul_"
    write = WRITES[name]
    model = drawn(
        nn.Sequential(
            nn.Conv2d(4, 20, 3, 1, 1, bias=False),
            nn.BatchNorm2d(20),
            nn.ReLU(),
            nn.Conv2d(20, 20, 3, groups=20),
            nn.Conv2d(20, 24, 1),
        )
    )
    run, x = inference(model), norch.randn(1, 4, 9, 9)
    f = captured(run, x)
    before = f(x)
    written = model.state_dict(keep_vars=True)[which]
    for _ in range(3):  # memory that others have is written to without a call each time
        with norch.no_grad():
            if name in ("SGD", "Adam", "captured step"):
                with norch.enable_grad():
                    write(written.requires_grad_())
            else:
                write(written)
        assert same_bits(f(x), run(x))
    assert name in ("bernoulli",) or not same_bits(f(x), before)


def test_arrays_of_weights_that_are_kept():
    """NumPy writes through an array that was taken before the recording, and through one that weights were made of."""
    norch.manual_seed(5)
    given = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 3)).eval()
    model[0].weight = nn.Parameter(norch.from_numpy(given))
    taken = model[1].weight.detach().numpy()
    run, x = inference(model), norch.randn(1, 4, 9, 9)
    f = captured(run, x)
    for array in (given, taken) * 2:
        array *= 1.5
        assert same_bits(f(x), run(x))


def test_views_and_shared_weights():
    norch.manual_seed(6)
    base = norch.randn(2, 16, 16, 3, 3)

    @norch.no_grad()
    def run(x):
        y = F.conv2d(x, base[0], padding=1)
        return F.conv2d(y, base[1], padding=1) + F.conv2d(x, base[0], padding=1)

    f = captured(run, norch.randn(1, 16, 8, 8))
    g = captured(run, norch.randn(2, 16, 10, 8))  # another recording with the same packed weights
    for write in (lambda: base[1].mul_(2), lambda: base.add_(1), lambda: base[0, 3].zero_()):
        write()
        for h, shape in ((f, (1, 16, 8, 8)), (g, (2, 16, 10, 8))):
            x = norch.randn(shape)
            assert same_bits(h(x), run(x))
    f.reset()
    base.mul_(2)
    assert same_bits(g(x), run(x))


def test_state_dicts_modes_and_files():
    norch.manual_seed(7)
    model = network()
    run, x = inference(model), norch.randn(1, 3, 64, 64)
    f = norch.capture(run)
    for _ in range(4):
        f(x)
    state = {name: p * 1.25 if p.is_floating_point() else p for name, p in model.state_dict().items()}
    model.load_state_dict(state)
    assert same_bits(f(x), run(x))
    model.load_state_dict({name: p.clone() for name, p in state.items()}, assign=True)
    for _ in range(4):
        assert same_bits(f(x), run(x))
    model.train()
    for _ in range(4):
        twin = copy.deepcopy(model)
        assert same_bits(f(x), inference(twin)(x))  # training moves the statistics
        assert all(
            same_bits(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True) if a.is_floating_point()
        )
    model.eval()
    for _ in range(4):
        assert same_bits(f(x), run(x))
    file = io.BytesIO()
    norch.save(model.state_dict(), file)
    with norch.no_grad():
        for p in model.parameters():
            p.mul_(0.5)
    assert same_bits(f(x), run(x))


def test_training_between_inferences():
    norch.manual_seed(8)
    model = drawn(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten()))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @norch.capture
    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run, x = inference(model), norch.randn(2, 3, 8, 8)
    f = captured(run, x)
    for _ in range(6):
        model.train()
        step(x)
        model.eval()
        assert same_bits(f(x), run(x))
    assert step.program.layers() == []  # weights that the program writes are no constants


def test_writes_by_a_mask_are_seen_while_weights_are_packed():
    """Packed weights look at every call, those whose results have a shape by value too."""
    weight, x = norch.randn(8, 3, 3, 3), norch.randn(1, 3, 8, 8)

    @norch.capture
    def f(x):
        with norch.inference_mode():
            return nn.functional.conv2d(x, weight).relu()

    for i in range(6):
        f(x)
        mask = weight > 0.1 * i
        assert weight.masked_select(mask).numel() == len(mask.nonzero()) == int(mask.sum())
        weight[mask] = norch.randn(int(mask.sum()))
        assert f(x).equal(nn.functional.conv2d(x, weight).relu())
