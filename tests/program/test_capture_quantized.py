"""Layers of captured programs whose weights norch.quantize stores as integers (csrc/program/lower.c, packed.c): their
floats are computed while they are packed. Results have the bits of the function itself, after any kind of write to the
integers or to the scales."""

from __future__ import annotations

import copy
import ctypes
import threading

import numpy as np
import pytest
from conftest import DEVICE
from layered import Residual, captured, drawn, inference, network, same_bits

import norch
import norch.nn.functional as F
from norch import nn

pytestmark = [pytest.mark.kernel, pytest.mark.host]  # the CPU has layers


def block():
    """Two layers of one image: the first with a bias and batch normalization, the other one depthwise."""
    return drawn(
        nn.Sequential(
            nn.Conv2d(4, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, groups=32, bias=False)
        )
    )


def weights_computed(f):
    """How many weights of integers a replay computes in a call of its own."""
    return sum(name == "quantized weight" for name, *_ in f.program.calls())


def convolutions_alone(f):
    """How many convolutions are no layers, which depends on the processor."""
    inside = {i for layer in f.program.layers() for i in layer}
    return sum(name == "conv forward" and i not in inside for i, (name, *_) in enumerate(f.program.calls()))


def check(f, run, *shape):
    for _ in range(2):
        x = norch.randn(shape)
        assert same_bits(f(x), run(x))


# ---- results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [network, block, lambda: drawn(Residual(3, 32, 2, shortcut_last=True))])
@pytest.mark.parametrize(("batch", "size"), [(1, 64), (3, 47)])
def test_a_network_has_the_layers_that_it_has_in_float32(threads, make, batch, size):
    norch.manual_seed(0)
    before, model = norch.get_num_threads(), make()
    shape = batch, next(model.parameters()).shape[1], size, size
    norch.set_num_threads(threads)
    try:
        exact = captured(inference(model), norch.randn(shape))
        layers = len([layer for layer in exact.program.layers() if exact.program.calls()[layer[0]][0][:4] != "matm"])
        norch.quantize(model)
        f = captured(inference(model), norch.randn(shape))
        check(f, inference(model), *shape)
    finally:
        norch.set_num_threads(before)
    assert len(f.program.layers()) == layers
    assert DEVICE != "cpu" or layers >= 2
    assert weights_computed(f) == convolutions_alone(f)


OPTIONS = [
    (4, 24, 3, {"bias": False}), (32, 32, 3, {"groups": 32, "padding": 1}), (17, 40, 1, {"stride": 2}),
    (8, 32, (1, 5), {"padding": (0, 2)}), (32, 64, 3, {"groups": 4}), (40, 33, 5, {"dilation": 2, "padding": 4}),
    (130, 16, 3, {"stride": 2, "padding": 1}), (5, 16, 3, {"padding_mode": "reflect", "padding": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("channels", "out", "kernel", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_each_convolution(channels, out, kernel, options, dtype):
    norch.manual_seed(1)
    conv = nn.Conv2d(channels, out, kernel, **options)
    model = drawn(nn.Sequential(nn.Conv2d(channels, channels, 1), conv, nn.BatchNorm2d(out), nn.ReLU6()))
    norch.quantize(model, dtype)
    for run in (inference(model[1]), inference(model)):
        check(captured(run, norch.randn(2, channels, 13, 12)), run, 2, channels, 13, 12)


def test_convolutions_of_signals():
    norch.manual_seed(2)
    model = norch.quantize(nn.Sequential(nn.Conv1d(4, 32, 5), nn.ReLU(), nn.Conv1d(32, 16, 3, 2))).eval()
    check(captured(inference(model), norch.randn(2, 4, 50)), inference(model), 2, 4, 50)


@pytest.mark.parametrize("of", [norch.float16, norch.bfloat16, norch.float64])
def test_scales_of_other_floats(of):
    """These are converted in the program, so that the weight is not packed."""
    norch.manual_seed(3)
    model = norch.quantize(block())
    for layer in (model[0], model[3]):
        layer.scale = layer.scale.to(of)
    run = inference(lambda x: F.conv2d(F.conv2d(x, model[0].weight.float()), model[3].weight.float(), groups=32))
    f = captured(run, norch.randn(1, 4, 9, 9))
    check(f, run, 1, 4, 9, 9)
    for layer in (model[0], model[3]):
        layer.scale.mul_(2)
        check(f, run, 1, 4, 9, 9)


def test_a_weight_that_others_read_or_write():
    norch.manual_seed(4)
    conv = norch.quantize(nn.Conv2d(32, 32, 3, padding=1))

    @norch.no_grad()
    def run(x):
        weight = conv.weight
        y = F.conv2d(x, weight, conv.bias, padding=1).relu()
        total = weight.sum()
        other = conv.weight
        z = F.conv2d(y, other, padding=1)
        other.mul_(2)  # a later value of the same memory
        w = F.conv2d(z, other, padding=1)
        third = conv.weight
        third[3] = 1.0  # the rest stays
        read = conv.weight  # as an image, too
        image = F.conv2d(read.relu(), read, padding=1) + F.conv2d(read, read, padding=1) + read
        result = conv.weight
        v = F.conv2d(y, result, padding=1)
        return (
            result,
            v,
            image,
            w,
            total,
            F.conv2d(w, third, padding=1),
            conv.weight,
            F.conv2d(x, conv.weight[:16], padding=1),
        )

    f, kept = captured(run, norch.randn(1, 32, 9, 9)), []
    for _ in range(3):
        x = norch.randn(1, 32, 9, 9)
        kept.append((f(x), run(x)))
        conv.packed[1].fill_(3)
        conv.scale.mul_(1.5)
    for replayed, eager in kept:
        assert all(same_bits(r, e) for r, e in zip(replayed, eager, strict=True))


def test_no_memory_is_left_for_the_floats():
    """The weight takes no part of a replay's memory, where the floats of the largest would be all of it."""
    norch.manual_seed(5)
    model = nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)).eval()
    exact = captured(inference(model), x := norch.randn(1, 128, 14, 14))
    f = captured(inference(norch.quantize(model)), x)
    assert DEVICE != "cpu" or f.program.memory()["temporary"] == exact.program.memory()["temporary"]


# ---- writes -----------------------------------------------------------------------------------------------------


def _by_thread(p):
    thread = threading.Thread(target=lambda: p.copy_(-p))
    thread.start()
    thread.join()


def _by_replay(p):
    write = norch.capture(lambda by: p.copy_(p * by))
    for _ in range(5):
        write(norch.tensor([-1], dtype=p.dtype))


def _by_address(p):
    array = (ctypes.c_char * (p.numel() * p.element_size())).from_address(p.data_ptr())
    array[:] = array[::-1]


def _by_numpy(p):
    p.numpy()[...] = -p.numpy()


WRITES = {
    "copy_": lambda p: p.copy_(-p), "mul_": lambda p: p.mul_(-1), "item": lambda p: p.__setitem__((0, 0), 5),
    "view": lambda p: p.view(-1)[1:].fill_(2), "out": lambda p: norch.neg(p * 1, out=p), "thread": _by_thread,
    "replay": _by_replay, "numpy": _by_numpy, "address": _by_address,
    "dlpack": lambda p: norch.from_dlpack(p).mul_(-1),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("which", ["0.packed", "0.scale", "3.packed", "3.scale", "1.weight", "0.bias"])
def test_writes_are_noticed(name, which):
    norch.manual_seed(6)
    model = norch.quantize(block())
    run, x = inference(model), norch.randn(1, 4, 9, 9)
    f = captured(run, x)
    written, before = model.state_dict()[which], f(x)
    if written.ndim == 1:
        written = written.view(1, -1)
    for _ in range(3):  # memory that others have is written to without a call each time
        with norch.no_grad():
            WRITES[name](written)
        y = f(x)
        assert same_bits(y, run(x))
        before = None if before is not None and not same_bits(y, before) else before
    assert before is None


@pytest.mark.parametrize("which", ["packed", "scale"])
@pytest.mark.parametrize("way", ["assigned", "data", "state dict", "assigned dict"])
def test_replaced_tensors(which, way):
    norch.manual_seed(7)
    model = norch.quantize(block())
    run, x = inference(model), norch.randn(1, 4, 9, 9)
    f = captured(run, x)
    for turn in range(6):
        new = -getattr(model[3], which)
        if way == "assigned":
            setattr(model[3], which, new)
        elif way == "data":
            getattr(model[3], which).data = new
        else:
            state = {**model.state_dict(), f"3.{which}": new}
            model.load_state_dict(state, assign=way == "assigned dict")
        del new
        for _ in range(1 if turn % 2 else 4):
            assert same_bits(f(x), run(x))


@pytest.mark.parametrize("which", ["packed", "scale"])
def test_memory_of_others(which, tmp_path):
    """NumPy's arrays, and a file that is mapped twice, are written to without a call."""
    norch.manual_seed(8)
    model = norch.quantize(block())
    arrays = []
    for i, layer in ((0, model[0]), (1, model[3])):
        array = getattr(layer, which).numpy().copy()
        if i:
            array.tofile(tmp_path / "weight")
            mapped, array = (np.memmap(tmp_path / "weight", array.dtype, "r+", shape=array.shape) for _ in range(2))
            setattr(layer, which, norch.from_numpy(mapped))
        else:
            setattr(layer, which, norch.from_numpy(array))
        arrays.append(array)
    run, x = inference(model), norch.randn(1, 4, 9, 9)
    f = captured(run, x)
    for array in arrays * 2:
        before = f(x)
        array[...] = -array
        assert same_bits(f(x), run(x)) and not same_bits(f(x), before)


def test_files_that_are_mapped(tmp_path):
    norch.manual_seed(9)
    model = norch.quantize(block())
    wanted = inference(model)(x := norch.randn(1, 4, 9, 9))
    norch.save(model.state_dict(), tmp_path / "model")
    with norch.device("meta"):
        other = norch.quantize(block())
    other.load_state_dict(norch.load(tmp_path / "model", mmap=True), assign=True)
    other.eval()
    f = captured(inference(other), x)
    assert same_bits(f(x), wanted)
    other[0].packed.copy_(-other[0].packed)
    assert same_bits(f(x), inference(other)(x)) and not same_bits(f(x), wanted)


def test_shared_weights_and_recordings():
    norch.manual_seed(10)
    first = nn.Conv2d(32, 32, 3, padding=1)
    second = nn.Conv2d(32, 32, 3, padding=1, bias=False)
    second.weight = first.weight
    third = copy.deepcopy(first)
    model = norch.quantize(nn.Sequential(first, nn.ReLU(), second, third, first)).eval()
    assert model[0].packed is model[2].packed
    third = model[3]
    third.scale = model[0].scale  # one of the two storages is the same
    run, shapes = inference(model), [(1, 32, 9, 9), (2, 32, 7, 12)]
    recorded = [captured(run, norch.randn(shape)) for shape in shapes]
    third.packed.copy_(third.packed.flip(0))
    for write in (lambda: model[0].packed[2].fill_(7), lambda: model[0].scale.mul_(0.5), lambda: third.packed.zero_()):
        write()
        for f, shape in zip(recorded, shapes):
            check(f, run, *shape)
    recorded[0].reset()
    model[0].packed.copy_(-model[0].packed)
    check(recorded[1], run, *shapes[1])


def test_integers_and_scales_of_one_storage():
    norch.manual_seed(11)
    conv, memory = norch.quantize(nn.Conv2d(32, 32, 3)), norch.zeros(32 * 288 + 32 * 4, dtype=norch.int8)
    for name, part in (("packed", memory[:9216]), ("scale", memory[9216:].view(norch.float32))):
        part = part.view(32, -1)
        part.copy_(getattr(conv, name))
        setattr(conv, name, part)
    run = inference(nn.Sequential(conv, nn.ReLU(), conv))
    f = captured(run, norch.randn(1, 32, 24, 24))
    assert weights_computed(f) == convolutions_alone(f)
    for part in (conv.packed, conv.scale):
        part.mul_(-1)
        check(f, run, 1, 32, 24, 24)


def test_integers_and_scales_that_are_arguments():
    norch.manual_seed(12)
    model = norch.quantize(block())

    def run(x, packed, scale):
        with norch.no_grad():
            return norch.func.functional_call(model, {"0.packed": packed, "3.scale": scale}, (x,))

    x, packed, scale = norch.randn(1, 4, 9, 9), model[0].packed, model[3].scale
    f = captured(run, x, packed, scale)
    for _ in range(3):
        packed, scale = -packed, scale * 1.5
        assert same_bits(f(x, packed, scale), run(x, packed, scale))


def test_threads_that_write_and_replay():
    """Replays of two recordings on two threads, while a third one writes: afterwards the last numbers count."""
    norch.manual_seed(13)
    model = norch.quantize(block())
    run, inputs = inference(model), [norch.randn(1, 4, 24, 24), norch.randn(2, 4, 16, 16)]
    replayed, stop = [captured(run, x) for x in inputs], threading.Event()

    def replay(f, x):
        while not stop.is_set():
            f(x)

    threads = [threading.Thread(target=replay, args=pair) for pair in zip(replayed, inputs)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        model[0].scale.mul_(1.01)
        model[3].packed.copy_(-model[3].packed)
    stop.set()
    for thread in threads:
        thread.join()
    for f, x in zip(replayed, inputs):
        assert same_bits(f(x), run(x))


def test_memory_that_is_not_there():
    """Recording, packing and replays raise where an allocation fails, or run without layers; later calls are right."""
    norch.manual_seed(14)
    lib, model, x = norch._binding.library.lib, norch.quantize(block()), norch.randn(1, 4, 9, 9)
    run, raised, right = inference(model), 0, 0
    for n in [*range(40), *range(40, 400, 7)]:
        f = norch.capture(run)
        f(x)
        expected = run(x)
        for write in (lambda: None, lambda: model[0].packed.copy_(-model[0].packed), lambda: model[3].scale.mul_(-1)):
            write()
            expected = run(x)
            lib.norch_fail_allocation(n)
            try:
                for _ in range(3):
                    f(x)
            except (MemoryError, norch.errors.Error):
                raised += 1
            finally:
                lib.norch_fail_allocation(-1)
            for _ in range(3):
                assert same_bits(f(x), expected)
        right += f.recordings()
    assert raised and right
