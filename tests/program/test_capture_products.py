"""Products of captured inference (csrc/program/products.c, csrc/cpu/gemm_packed.h): a weight is packed once, and again
after writes. Results have the bits of the function itself, for any size, activation and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE
from layered import captured, inference, same_bits

import norch
import norch.nn.functional as F
from norch import nn, optim

pytestmark = [pytest.mark.kernel, pytest.mark.host]


@pytest.fixture
def threads():
    before = norch.get_num_threads()
    yield norch.set_num_threads
    norch.set_num_threads(before)


def layers_of(f):
    return len(f.program.layers()) if DEVICE == "cpu" else 1


# rows, columns, terms
SIZES = [
    (128, 384, 384), (29, 33, 16), (100, 17, 300), (43, 64, 5), (15, 200, 128), (128, 96, 1536), (300, 48, 1030),
    (57, 2, 40), (50, 31, 1), (70, 70, 70), (400, 400, 400), (1000, 16, 64), (128, 40, 2049),
    (2, 16, 64), (3, 32, 1000), (7, 36, 600), (13, 49, 1030), (20, 70, 2100), (32, 96, 512), (70, 40, 1120),
]  # fmt: skip


@pytest.mark.parametrize("rows, columns, terms", SIZES)
@pytest.mark.parametrize("transposed", [True, False])
def test_each_size(threads, rows, columns, terms, transposed):
    norch.manual_seed(0)
    weight = norch.randn(columns, terms) if transposed else norch.randn(terms, columns)
    bias = norch.randn(columns)

    @norch.no_grad()
    def run(x):
        if transposed:
            return F.linear(x, weight, bias), F.linear(x, weight)
        return x @ weight + bias, x @ weight

    threads(1)
    f = captured(run, norch.randn(rows, terms))
    for count in (1, 2, 3):
        threads(count)
        x = norch.randn(rows, terms)
        assert all(same_bits(a, b) for a, b in zip(f(x), run(x), strict=True))
        x = norch.randn(terms, rows).t()
        x[rows // 2, terms // 2] = float("inf")
        assert all(same_bits(a, b) for a, b in zip(f(x), run(x), strict=True))
    as_it_is = terms >= 16 * rows if transposed else rows <= 32  # dot products without AVX-512, and few rows
    assert layers_of(f) or as_it_is or terms == 1 or min(columns, terms) < 5


# columns, terms of a single row
ROWS = [(16, 16), (1024, 256), (33, 100), (18, 17), (67, 1024), (39, 1500), (500, 1600), (64, 2048), (1030, 1000)]


@pytest.mark.parametrize("columns, terms", ROWS)
def test_single_rows(threads, columns, terms):
    norch.manual_seed(5)
    weight, bias = norch.randn(columns, terms), norch.randn(columns)
    act = nn.Sequential(nn.Linear(terms, columns), nn.GELU())

    @norch.no_grad()
    def run(x):
        return F.linear(x, weight, bias), F.linear(x, weight), act(x), weight @ x[0]

    threads(1)
    f = captured(run, norch.randn(1, terms))
    assert DEVICE != "cpu" or len(f.program.layers()) == 3  # not the column, whose weight is on the left
    x, across = norch.randn(1, terms), norch.randn(terms, 2).t()[:1]
    infinite = norch.randn(1, terms)
    infinite[0, -1] = float("inf")
    for count in (1, 2, 3):
        threads(count)
        for given in (x, -x * 1e-30, infinite, norch.zeros(1, terms)):
            assert all(same_bits(a, b) for a, b in zip(f(given), run(given), strict=True))
    g = captured(run, across)
    assert all(same_bits(a, b) for a, b in zip(g(across), run(across), strict=True))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch, size", [(1, 32), (1, 70), (3, 32)])
def test_recurrent_layers(kind, batch, size):
    norch.manual_seed(6)
    layer = kind(20, size, num_layers=2, bidirectional=True)
    run, x = inference(lambda x: layer(x)[0]), norch.randn(9, batch, 20)
    f = captured(run, x)
    for write in (lambda p: p.mul_(2), lambda p: p.normal_(), lambda p: p.detach().numpy().fill(0.1)):
        assert same_bits(f(x), run(x)) and same_bits(f(x), run(x))
        with norch.no_grad():
            write(layer.weight_hh_l1_reverse)
            write(layer.weight_ih_l1)
        x = norch.randn(9, batch, 20)
        assert same_bits(f(x), run(x))


@pytest.mark.skipif(DEVICE != "cpu", reason="layers are the CPU's")
def test_single_rows_of_large_weights_are_read_where_they_lie():
    large = nn.Sequential(nn.Linear(1200, 1000), nn.Linear(1000, 1200))
    f = captured(inference(large), norch.randn(1, 1200))
    assert f.program.layers() == []
    f = captured(inference(large), norch.randn(400, 1200))
    assert len(f.program.layers()) == 2


@pytest.mark.parametrize("act", [nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid])
def test_networks_with_activations(threads, act):
    norch.manual_seed(1)
    model = nn.Sequential(nn.Linear(40, 70), act(), nn.Linear(70, 70), act(), nn.LayerNorm(70), nn.Linear(70, 33))
    run = inference(model)
    for shape in ((64, 40), (3, 5, 20, 40), (1, 40), (2, 40)):
        f = captured(run, norch.randn(shape))
        for count in (2, 1):
            threads(count)
            x = norch.randn(shape)
            assert same_bits(f(x), run(x))


@pytest.mark.skipif(DEVICE != "cpu", reason="layers are the CPU's")
def test_which_products_are_layers():
    norch.manual_seed(2)
    linear, x = nn.Linear(64, 64), norch.randn(60, 64)
    f = captured(inference(linear), x)
    assert f.program.layers() == [[0]] and "matmul, a layer" in str(f.program)
    with norch.no_grad():
        scaled = captured(lambda x: F.linear(x, linear.weight * 2), x)  # a weight that the program computes
        given = captured(lambda x, w: F.linear(x, w), x, norch.randn(64, 64))
        batched = captured(lambda x: x @ norch.stack((linear.weight, linear.bias.diag())), norch.randn(2, 60, 64))
        narrow = captured(lambda x: x @ linear.weight.to(norch.float64), x.to(norch.float64))
    assert not any(g.program.layers() for g in (scaled, given, batched, narrow))
    optimizer = optim.SGD(linear.parameters(), lr=0.1)

    @norch.capture
    def step(x):
        loss = linear(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step(x)
    assert step.program.layers() == []  # it writes to the weight
    assert same_bits(f(x), inference(linear)(x))


WRITES = {
    "mul_": lambda p: p.mul_(2), "item": lambda p: p.__setitem__((3, 5), 3.0),
    "view": lambda p: p.view(-1)[70:].zero_(),
    "transposed": lambda p: p.t().mul_(2), "numpy": lambda p: np.multiply(p.numpy(), 2, out=p.numpy()),
    "dlpack": lambda p: norch.from_dlpack(p).mul_(2), "out": lambda p: norch.mul(p, 2.0, out=p),
    "product": lambda p: norch.matmul(norch.ones(70, 2), norch.ones(2, 40), out=p), "draw": lambda p: p.normal_(),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_noticed(name):
    norch.manual_seed(3)
    model = nn.Sequential(nn.Linear(40, 70), nn.ReLU(), nn.Linear(70, 33))
    run, x = inference(model), norch.randn(64, 40)
    f = captured(run, x)
    g = captured(run, norch.randn(50, 40))  # shares the packed weights
    before = f(x)
    for _ in range(2):
        with norch.no_grad():
            WRITES[name](model[0].weight.data)
        for _ in range(3):  # as it is, packed, and as it was packed
            assert same_bits(f(x), run(x)) and same_bits(g(x[:50].contiguous()), run(x[:50]))
    assert not same_bits(f(x), before)
    f.reset()
    model[2].weight.data.mul_(2)
    assert same_bits(g(x[:50].contiguous()), run(x[:50]))


def test_one_weight_packed_in_two_ways():
    norch.manual_seed(4)
    weight, kernel = norch.randn(48, 48), norch.randn(48, 48, 1, 1)

    @norch.no_grad()
    def run(x):
        image = x.view(1, 48, 6, 10)
        y = F.conv2d(F.conv2d(image, kernel), kernel).view(48, 60).t()
        return F.linear(y, weight) + y @ weight, y @ kernel.view(48, 48), F.linear(y[:, :32], weight[5:40, 7:39])

    f = captured(run, norch.randn(2880))
    for written in (weight, kernel, weight[8:9], kernel):
        written.mul_(1.5)
        x = norch.randn(2880)
        for _ in range(2):
            assert all(same_bits(a, b) for a, b in zip(f(x), run(x), strict=True))
