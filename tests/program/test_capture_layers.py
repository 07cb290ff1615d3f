"""Layers of captured programs (csrc/program/lower.c): convolutions, and what is folded into them, on channels in
blocks. Results have the bits of the function itself, for any size, kind of layer and number of threads."""

from __future__ import annotations

import random
import threading

import pytest
from conftest import DEVICE
from layered import Squeezed, captured, drawn, inference, network, same_bits

import norch
import norch.nn.functional as F
from norch import nn

pytestmark = [pytest.mark.kernel, pytest.mark.host]  # the CPU has layers


@pytest.fixture
def one_thread():
    before = norch.get_num_threads()
    yield norch.set_num_threads
    norch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("batch, size", [(1, 64), (3, 47), (2, 96)])
def test_a_network_is_the_same_to_the_bit(one_thread, threads, batch, size):
    norch.manual_seed(0)
    one_thread(threads)
    model = network()
    run = inference(model)
    f = captured(run, norch.randn(batch, 3, size, size))
    assert DEVICE != "cpu" or len(f.program.layers()) >= 9  # of 14, as small products have sums in other orders
    for _ in range(2):
        x = norch.randn(batch, 3, size, size)
        assert same_bits(f(x), run(x))
    one_thread(1)
    assert same_bits(f(x), run(x))  # a recording does not depend on how many threads there were


@pytest.mark.parametrize("capture", [norch.capture, norch.compile])
@pytest.mark.parametrize("mode", [norch.no_grad, norch.inference_mode])
def test_ways_to_infer(capture, mode):
    model = network()
    f = capture(model)
    x = norch.randn(1, 3, 64, 64)
    with mode():
        for _ in range(5):
            y = f(x)
        assert same_bits(y, model(x))
    assert DEVICE != "cpu" or (f.forward if capture is norch.compile else f).program.layers()


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.parametrize("reader", [1, 3, 5])
@pytest.mark.parametrize("shape", [(2, 3, 9, 20), (1, 3, 1, 40)])
def test_a_shortcut_has_another_halo_than_what_it_is_added_to(shape, reader, last, after):
    """The zeros around an image are as wide as its widest reader needs, also where a layer adds it."""
    norch.manual_seed(0)
    first, inner, outer = (nn.Conv2d(n, 32, k, padding=k // 2) for n, k in ((3, 3), (32, reader), (32, last)))
    end = nn.Conv2d(32, 32, after, padding=after // 2) if after else nn.Identity()

    @inference
    def model(x):
        x = first(x)
        return end(F.relu(outer(F.relu(inner(x))) * 0.5 + x))

    f = captured(model, norch.randn(shape))
    x = norch.randn(shape)
    assert same_bits(f(x), model(x))


@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1), (4, 3, 2)])
@pytest.mark.parametrize("batch, size", [(1, 64), (3, 101), (9, 400)])
def test_rows_are_pooled_in_images(batch, size, kernel, stride, padding):
    """max_pool1d() takes the channels of short rows for the rows of a plane, and those of long ones for planes."""
    norch.manual_seed(0)
    first, second = nn.Conv1d(8, 32, 3, padding=1), nn.Conv1d(32, 32, 3, padding=1)
    model = inference(lambda x: second(F.max_pool1d(F.relu(first(x)), kernel, stride, padding)))
    f = captured(model, norch.randn(batch, 8, size))
    assert DEVICE != "cpu" or len(f.program.layers()) >= 3
    x = norch.randn(batch, 8, size)
    x[0, 0, 5] = float("nan")
    assert same_bits(f(x), model(x))
    planes = nn.Conv2d(3, 32, 3, padding=1)
    rows = inference(lambda x: F.max_pool1d(planes(x).flatten(0, 1), kernel, stride, padding))
    f, x = captured(rows, norch.randn(1, 3, 9, 50)), norch.randn(1, 3, 9, 50)
    assert same_bits(f(x), rows(x))


# channels, out, kernel, stride, padding, dilation, groups, rows, columns
CONVOLUTIONS = [
    (40, 40, (1, 9), 2, (0, 4), 1, 1, 1, 333), (32, 40, (1, 3), 1, (0, 1), (1, 2), 1, 1, 200),
    (1, 5, 3, 1, 1, 1, 1, 9, 11), (3, 32, 3, 2, 1, 1, 1, 21, 24), (3, 33, 7, 2, 3, 1, 1, 30, 30),
    (4, 16, 5, 3, 2, 1, 1, 20, 23), (5, 16, 3, 1, 0, 1, 1, 8, 8), (16, 16, 1, 1, 0, 1, 1, 14, 14),
    (17, 24, 1, 1, 0, 1, 1, 7, 7), (96, 24, 1, 1, 0, 1, 1, 13, 5), (300, 40, 1, 1, 0, 1, 1, 19, 3),
    (700, 33, 1, 1, 0, 1, 1, 7, 7), (520, 200, 1, 1, 0, 1, 1, 23, 17), (24, 40, 1, 2, 0, 1, 1, 15, 15),
    (8, 8, 1, 1, 1, 1, 1, 6, 6),
    (64, 64, 3, 1, 1, 1, 1, 28, 28), (130, 40, 3, 1, 1, 1, 1, 7, 7), (130, 40, 3, 2, 1, 1, 1, 14, 14),
    (40, 64, 3, 1, 2, 2, 1, 12, 12), (32, 40, 3, 1, 1, 1, 1, 1, 30), (32, 32, (1, 3), 1, (0, 1), 1, 1, 9, 40),
    (32, 32, 3, (1, 2), (2, 1), (2, 1), 1, 9, 17), (512, 64, 3, 1, 1, 1, 1, 4, 4), (32, 32, 3, 1, 1, 1, 32, 20, 20),
    (33, 33, 3, 2, 1, 1, 33, 20, 21), (48, 48, 5, 1, 2, 1, 48, 9, 9), (48, 48, 5, 2, 2, 1, 48, 15, 18),
    (40, 40, 3, 1, 1, 1, 40, 5, 5), (40, 40, 7, 1, 3, 1, 40, 9, 9), (40, 40, 3, 1, 2, 2, 40, 12, 9),
    (16, 16, 3, 3, 1, 1, 16, 12, 9), (32, 64, 3, 1, 1, 1, 4, 9, 9), (16, 32, 3, 1, 1, 1, 16, 9, 9),
    (64, 64, 3, 2, 0, 1, 1, 9, 9), (16, 24, 2, 1, "same", 1, 1, 9, 9), (32, 40, (3, 4), 1, "same", (2, 1), 1, 9, 12),
    (40, 40, (1, 6), 1, "same", 1, 1, 1, 50), (32, 32, 4, 1, "same", 1, 32, 9, 12), (3, 16, 4, 1, "same", 1, 1, 9, 9),
]  # fmt: skip


@pytest.mark.parametrize("channels, out, kernel, stride, padding, dilation, groups, rows, columns", CONVOLUTIONS)
def test_each_convolution(channels, out, kernel, stride, padding, dilation, groups, rows, columns):
    norch.manual_seed(1)
    for batch, bias in ((1, False), (3, True)):
        conv = nn.Conv2d(channels, out, kernel, stride, padding, dilation, groups, bias=bias)
        model = drawn(
            nn.Sequential(nn.Conv2d(channels, channels, 1), conv, nn.BatchNorm2d(out), nn.ReLU6(), nn.Conv2d(out, 3, 1))
        )
        for run in (inference(conv), inference(model)):
            x = norch.randn(batch, channels, rows, columns)
            f = captured(run, x)
            for _ in range(2):
                x = norch.randn(batch, channels, rows, columns)
                assert same_bits(f(x), run(x))


@pytest.mark.parametrize("reader, padding", [(1, 0), (3, 1)])
@pytest.mark.parametrize("size", [8, 26, 47])
def test_channels_are_scaled_in_pieces_of_many_columns(size, reader, padding):
    """Rows that follow each other without a halo are scaled together, whatever a piece has."""
    model = drawn(nn.Sequential(Squeezed(19), nn.Conv2d(19, 24, reader, 1, padding)))
    f, run = captured(inference(model), norch.randn(2, 19, size, size)), inference(model)
    x = norch.randn(2, 19, size, size)
    assert same_bits(f(x), run(x))
    assert DEVICE != "cpu" or len(f.program.layers()) >= 3


@pytest.mark.parametrize("around", ["x", "y", "operand"])
def test_stages_alone_of_images_of_which_one_has_zeros_around(around):
    """A 3 x 3 convolution needs the zeros; a 1 x 1 convolution reads the others."""
    norch.manual_seed(0)
    first, beside, wide, plain = (nn.Conv2d(n, 32, k, padding=k // 2) for n, k in ((3, 3), (3, 3), (32, 3), (32, 1)))

    @inference
    def model(image):
        x, operand = first(image), beside(image)
        y = F.relu(x * operand)
        read = [wide(image) if image is {"x": x, "y": y, "operand": operand}[around] else plain(image)
                for image in (x, operand, y)]  # fmt: skip
        return read[0] + read[1] + read[2]

    f = captured(model, norch.randn(2, 3, 11, 19))
    layers = f.program.layers()
    assert DEVICE != "cpu" or len(layers) > 4
    for _ in range(2):
        x = norch.randn(2, 3, 11, 19)
        assert same_bits(f(x), model(x))


def test_sums_of_zeros_infinities_and_what_is_no_number():
    model = drawn(
        nn.Sequential(
            nn.Conv2d(20, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 40, 1, bias=False), nn.MaxPool2d(2)
        )
    )
    f, run = captured(inference(model), norch.randn(1, 20, 8, 8)), inference(model)
    for value in (float("nan"), float("inf"), -float("inf"), 1e-44, 3e38):
        x = norch.randn(1, 20, 8, 8)
        x[0, 3, 2, 5] = value
        assert same_bits(f(x), run(x))
    x = -norch.zeros(1, 20, 8, 8)
    with norch.no_grad():
        for p in model.parameters():
            p.zero_()
        assert same_bits(f(x), run(x))
        model[0].weight[0, 0, 0, 0] = float("inf")
        assert same_bits(f(x), run(x))


POINTWISE = {
    "relu": F.relu, "relu6": F.relu6, "silu": F.silu, "hardswish": F.hardswish, "gelu": F.gelu,
    "sigmoid": norch.sigmoid, "clamp": lambda x: x.clamp(-0.3, 0.4), "affine": lambda x: 1 - 2.5 * x,
    "twice": lambda x: x + x, "square": lambda x: x * x, "swish": lambda x: x * norch.sigmoid(x),
    "in place": lambda x: x.relu_().mul_(1.5), "prelu": lambda x: F.leaky_relu(x, 0.2),
    "channels": lambda x: x * x.mean((2, 3), keepdim=True), "softmax": lambda x: x.softmax(1),
    "where": lambda x: norch.where(x > 0, x, -x), "halved": lambda x: x[:, :8] + x[:, 8:16],
    "transposed": lambda x: x.transpose(2, 3) + 1, "flat": lambda x: x.flatten(1).relu().view_as(x),
    "hardtanh in place": lambda x: F.hardtanh_(x, -0.2, 0.3), "copied": lambda x: norch.empty_like(x).copy_(x).relu_(),
    "columns": lambda x: x * x.sum(3, keepdim=True), "rows": lambda x: x + x[:, :, :1],
    "parts": lambda x: norch.cat(x.chunk(2, 1)[::-1], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("batch", [1, 2])
def test_what_follows_a_convolution(name, batch):
    norch.manual_seed(2)
    first, last = drawn(nn.Sequential(nn.Conv2d(6, 20, 3, padding=1), nn.BatchNorm2d(20))), nn.LazyConv2d(7, 3)
    function = POINTWISE[name]

    @norch.no_grad()
    def run(x):
        return last(function(first(x)))

    f = captured(run, norch.randn(batch, 6, 9, 9))
    x = norch.randn(batch, 6, 9, 9)
    assert same_bits(f(x), run(x))


def test_values_that_others_need_too():
    norch.manual_seed(3)
    a, b = nn.Conv2d(8, 20, 3, padding=1), nn.Conv2d(20, 20, 1)
    x, kept = norch.randn(2, 8, 6, 6), []

    @norch.no_grad()
    def run(x):
        y = a(x)
        total = y.sum()
        y += 1  # a later value of the same memory
        z = b(y)
        y.mul_(2)
        w = b(z.relu_())
        z[:, 3] = 7.0  # the rest stays
        u = a(x)
        v = u + 1
        u[:, 2] = 5.0
        return y, z, w + z, total, z.permute(0, 2, 3, 1), b(v), u

    f = captured(run, x)
    for _ in range(2):
        x = norch.randn(2, 8, 6, 6)
        kept.append((f(x), run(x)))
    for replayed, eager in kept:  # results of one replay are not those of the next
        assert all(same_bits(r, e) for r, e in zip(replayed, eager, strict=True))


@pytest.mark.skipif(DEVICE != "cpu", reason="layers are the CPU's")
def test_what_is_folded_is_listed():
    model = drawn(
        nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 1))
    )
    f = captured(inference(model), norch.randn(1, 3, 8, 8))
    assert f.program.layers() == [[0, 1, 2], [3]]
    lines = str(f.program).splitlines()
    assert lines[0].startswith("4 calls, 2 layers, ")
    for line, words in zip(
        lines[1:], ("conv forward, a layer", "batch_norm evaluation, in 1", "relu, in 1", "layer, stored"), strict=True
    ):
        assert words in line
    assert captured(norch.capture(inference(model), fuse=False), norch.randn(1, 3, 8, 8)) is not None


def test_computed_weights_and_arguments():
    norch.manual_seed(9)
    raw, scale = norch.randn(8, 4, 3, 3), norch.rand(8) + 0.5

    @norch.no_grad()
    def run(x, weight, mean):
        y = F.conv2d(x, raw * scale.view(-1, 1, 1, 1))
        y = F.batch_norm(y, mean, scale, scale * 2, None)
        return F.conv2d(F.batch_norm(y, mean, scale, mean, None), weight)

    x, weight, mean = norch.randn(1, 4, 9, 9), norch.randn(3, 8, 1, 1), norch.randn(8)
    f = captured(run, x, weight, mean)
    for _ in range(3):
        x, weight, mean = norch.randn(1, 4, 9, 9), norch.randn(3, 8, 1, 1), norch.randn(8)
        scale.mul_(1.5)
        assert same_bits(f(x, weight, mean), run(x, weight, mean))


def _random_program(draw):
    """Calls drawn at random over images, and the size of the first."""
    shape = (
        draw.choice([1, 1, 2]),
        draw.choice([1, 3, 5, 16, 17, 33]),
        draw.choice([1, 5, 7, 14, 20]),
        draw.choice([3, 7, 14, 31]),
    )
    parts, calls, saved, now = nn.ModuleList(), [], [], shape
    for _ in range(draw.randint(3, 9)):
        kind = draw.choice(["conv", "conv", "conv", "norm", "point", "point", "save", "join", "pool"])
        if kind == "conv":
            kernel, stride = draw.choice([1, 1, 3, 3, 5]), draw.choice([1, 1, 2, 3])
            apart = draw.random() < 0.4
            out = now[1] if apart else draw.choice([1, 8, 17, 32, 40])
            part = nn.Conv2d(
                now[1], out, kernel, stride, kernel // 2, groups=now[1] if apart else 1, bias=draw.random() < 0.5
            )
        elif kind == "norm":
            part = nn.BatchNorm2d(now[1])
        elif kind == "pool":
            part = nn.MaxPool2d(3, draw.choice([1, 2]), 1)
        elif kind == "point":
            function = draw.choice(list(POINTWISE.values())[:14])
            calls.append(lambda x, s, function=function: function(x))
            continue
        else:
            alike = [i for i, other in enumerate(saved) if other == now]
            if kind == "save" or not alike:
                saved.append(now)
                calls.append(lambda x, s: (s.append(x), x)[1])
            else:
                i, turned = draw.choice(alike), draw.random() < 0.5
                calls.append(lambda x, s, i=i, turned=turned: s[i] + x if turned else x - s[i])
            continue
        parts.append(part)
        calls.append(lambda x, s, part=part: part(x))
        now = tuple(part.eval()(norch.zeros(now)).shape)
    return drawn(parts), calls, shape


@pytest.mark.parametrize("seed", range(12))
def test_programs_drawn_at_random(one_thread, seed):
    for turn in range(5):
        draw = random.Random(100 * seed + turn)
        norch.manual_seed(seed)
        parts, calls, shape = _random_program(draw)
        all_of_them = draw.random() < 0.4

        @norch.no_grad()
        def run(x, calls=calls, all_of_them=all_of_them):
            saved = []
            for call in calls:
                x = call(x, saved)
            return (x, *saved) if all_of_them else (x,)

        one_thread(draw.choice([1, 2]))
        f = captured(run, norch.randn(shape))
        for _ in range(2):
            x = norch.randn(shape)
            assert all(same_bits(a, b) for a, b in zip(f(x.clone()), run(x.clone()), strict=True)), 100 * seed + turn
            with norch.no_grad():
                for p in parts.parameters():
                    p.data.mul_(draw.choice([0.5, 1.0, 2.0]))


def test_threads_that_write_and_replay():
    """Replays of two recordings on two threads, while a third one writes weights: afterwards the last ones count."""
    norch.manual_seed(10)
    model = drawn(nn.Sequential(nn.Conv2d(8, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(64, 8, 1)))
    run, inputs = inference(model), [norch.randn(1, 8, 24, 24), norch.randn(2, 8, 16, 16)]
    replayed, stop = [captured(run, x) for x in inputs], threading.Event()

    def replay(f, x):
        while not stop.is_set():
            f(x)

    threads = [threading.Thread(target=replay, args=pair) for pair in zip(replayed, inputs, strict=True)]
    for thread in threads:
        thread.start()
    with norch.no_grad():
        for _ in range(30):
            for p in model.parameters():
                p.mul_(1.01)
    stop.set()
    for thread in threads:
        thread.join()
    for f, x in zip(replayed, inputs, strict=True):
        assert same_bits(f(x), run(x))


def test_memory_that_is_not_there():
    """Recording and replaying raise where an allocation fails, or run without layers; later calls are right."""
    lib, model, x = (
        norch._binding.library.lib,
        drawn(nn.Sequential(nn.Conv2d(4, 20, 3), nn.BatchNorm2d(20), nn.MaxPool2d(2))),
        norch.randn(1, 4, 9, 9),
    )
    run = inference(model)
    expected, right = run(x), 0
    for n in range(0, 400, 7):
        f = norch.capture(run)
        f(x)
        lib.norch_fail_allocation(n)
        try:
            for _ in range(3):
                f(x)
        except (MemoryError, norch.errors.Error):
            pass
        finally:
            lib.norch_fail_allocation(-1)
        for _ in range(3):
            assert same_bits(f(x), expected)
        right += f.recordings()
    assert right
