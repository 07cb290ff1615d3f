"""Convolutions of 3 x 3 taps at stride 1 in float32, which multiply factors of tiles: the bound of their errors that
docs/reliability.md states, what is not finite, threads, batches, and recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F

pytestmark = [pytest.mark.host, pytest.mark.kernel]

# batch, channels in and out, rows, columns, padding
SHAPES = [
    (1, 32, 32, 14, 14, 1),
    (2, 37, 50, 15, 17, 1),
    (1, 70, 33, 16, 21, 0),
    (3, 33, 34, 13, 14, 2),
    (1, 40, 72, 31, 9, (3, 4)),
    (1, 100, 32, 57, 60, 1),
    (1, 32, 40, 5, 1201, 1),
]
# images so small that only many of them have tiles enough
SMALL = [(8, 37, 50, 7, 7, 1), (33, 32, 64, 4, 4, 1), (9, 70, 33, 8, 11, 0)]


def drawn(seed: int, *shape: int) -> Any:
    return norch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def inputs(shape: Any) -> tuple[Any, Any, Any, Any]:
    """x, the weight, a bias, and the padding."""
    batch, fan_in, fan_out, rows, columns, padding = shape
    return drawn(0, batch, fan_in, rows, columns), drawn(1, fan_out, fan_in, 3, 3), drawn(2, fan_out), padding


def bound(x: Any, w: Any) -> Any:
    """That of docs/reliability.md, for each output channel of a convolution of x by w."""
    size = w.abs().double().sum((1, 2, 3)) * float(x.abs().amax())
    return (16 * (w.shape[1] + 12) * 2.0**-24 * size).reshape(-1, 1, 1)


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e15])
@pytest.mark.parametrize("shape", [*SHAPES, *SMALL], ids=str)
def test_errors_have_the_bound_that_is_stated(shape: Any, scale: float) -> None:
    x, w, b, padding = inputs(shape)
    x, b = (x * scale).requires_grad_(), b * scale
    exact = x.detach().double().requires_grad_()
    y, wanted = F.conv2d(x, w, b, 1, padding), F.conv2d(exact, w.double(), b.double(), 1, padding)
    g = drawn(3, *y.shape)
    error = (y.double() - wanted).abs()
    assert bool((error <= bound(x.detach(), w) + b.abs().double().reshape(-1, 1, 1) * 2.0**-23).all())
    assert float(error.amax()) <= 2e-6 * float(wanted.detach().abs().amax())
    (mine,) = norch.autograd.grad(y, x, g)
    (theirs,) = norch.autograd.grad(wanted, exact, g.double())
    error = (mine.double() - theirs).abs()
    assert bool((error <= bound(g, w.transpose(0, 1))).all())
    assert float(error.amax()) <= 2e-6 * float(theirs.abs().amax())


@pytest.mark.parametrize("value", [norch.inf, -norch.inf, norch.nan])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (7, 8), (14, 16)])
def test_what_is_not_finite_spreads_over_its_taps_only(row: int, column: int, value: float) -> None:
    x, w, b, padding = inputs(SHAPES[1])
    plain = F.conv2d(x, w, b, 1, padding)
    x[1, 5, row, column] = value
    y = F.conv2d(x, w, b, 1, padding)
    seen = norch.zeros(15, 17, dtype=norch.bool)
    seen[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2] = True
    assert not y[1][:, seen].isfinite().any() and y[0].equal(plain[0])
    assert bool(((y[1] - plain[1])[:, ~seen].abs() < 1e-4).all())
    assert y.isnan().any() == (value != value)


def test_infinite_weights_and_factors_that_overflow() -> None:
    x, w, b, padding = inputs(SHAPES[1])
    w[3, 2, 1, 1] = norch.inf
    y, wanted = F.conv2d(x, w, b, 1, padding), F.conv2d(x.double(), w.double(), b.double(), 1, padding)
    assert y[:, 3].equal(wanted[:, 3].float()) and y[:, :3].isfinite().all() and y[:, 4:].isfinite().all()
    x, w = norch.full((1, 32, 14, 14), 3e38), norch.zeros(32, 32, 3, 3)
    x[0, :, ::2] = -3e38
    w[:, 0, 1, 1] = 1
    assert F.conv2d(x, w, None, 1, 1).equal(x[:, :1].expand(1, 32, 14, 14))


@pytest.mark.host  # these are the host's threads
@pytest.mark.parametrize("shape", [*SHAPES, *SMALL], ids=str)
def test_threads_and_batches_change_nothing(shape: Any) -> None:
    x, w, b, padding = inputs(shape)
    before = norch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            norch.set_num_threads(threads)
            found.append(F.conv2d(x, w, b, 1, padding))
    finally:
        norch.set_num_threads(before)
    if shape in SHAPES:
        found.append(norch.cat([F.conv2d(one, w, b, 1, padding) for one in x.split(1)]))
    assert all(found[0].equal(one) for one in found[1:])


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, *SMALL], ids=str)
def test_recordings_have_the_same_bits(shape: Any, wild: bool) -> None:
    """With what follows the convolution folded in, and after a write to the weight."""
    x, w, b, padding = inputs(shape)
    if wild:
        x[0, 3, -1, 3] = norch.inf
    second = drawn(4, w.shape[0], w.shape[0], 3, 3)

    def function(x: Any) -> Any:
        with norch.no_grad():
            y = F.conv2d(x, w, b, 1, padding).relu()
            return (y + F.conv2d(y, second, None, 1, 1)).relu()

    captured = norch.capture(function)
    for _ in range(2):
        for _ in range(5):
            assert captured(x).equal(function(x)) or wild
            assert captured(x).nan_to_num().equal(function(x).nan_to_num())
        w.mul_(0.5)


def test_recordings_of_two_sizes_share_a_weight() -> None:
    """Few tiles are summed over taps, of the same weight."""
    w = drawn(0, 40, 40, 3, 3)

    @norch.capture
    def function(x: Any) -> Any:
        with norch.no_grad():
            return F.conv2d(x, w, None, 1, 1).relu()

    for size in (12, 20, 12, 20):
        x = drawn(1, 1, 40, size, size)
        for _ in range(4):
            assert function(x).equal(F.conv2d(x, w, None, 1, 1).relu())


def test_training_steps_have_the_same_bits() -> None:
    def trained(wrap: Any) -> list[Any]:
        norch.manual_seed(0)
        model = norch.nn.Sequential(
            norch.nn.Conv2d(32, 40, 3, padding=1), norch.nn.ReLU(), norch.nn.Conv2d(40, 32, 3, padding=1)
        )
        optimizer = norch.optim.SGD(model.parameters(), lr=0.01)

        def step(x: Any) -> Any:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        step = wrap(step)
        for i in range(6):
            step(drawn(i, 2, 32, 16, 15))
        return list(model.parameters())

    for mine, captured in zip(trained(lambda step: step), trained(norch.capture), strict=True):
        assert mine.equal(captured)
