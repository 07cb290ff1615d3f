"""Models train on a CUDA device as they do on the CPU: the same losses, to rounding. A simulated one will do."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from test_examples import load

import norch
import norch.nn.functional as F
from norch import cuda, nn, optim

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


def losses_on(device: str, make: Callable[[], nn.Module], x: norch.Tensor, y: norch.Tensor, steps: int) -> list[float]:
    """Those of some steps of Adam; the model and the data are made on the CPU."""
    norch.set_default_device("cpu")
    norch.manual_seed(0)
    model = make().to(device)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    norch.set_default_device(device)
    x, y = x.to(device), y.to(device)
    losses = []
    for _ in range(steps):
        out = model(x)
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.device.type == norch.device(device).type for p in model.parameters())
    return losses


def assert_alike(make: Callable[[], nn.Module], x: norch.Tensor, y: norch.Tensor, steps: int) -> None:
    before = norch.get_default_device()
    try:
        here, there = (losses_on(device, make, x, y, steps) for device in ("cpu", "cuda"))
    finally:
        norch.set_default_device(before)
    assert here[-1] < here[0]
    assert there == pytest.approx(here, rel=2e-4)


def test_the_article() -> None:
    before = norch.get_default_device()
    norch.set_default_device("cuda")
    try:
        _, losses = load("norch_article").train()
    finally:
        norch.set_default_device(before)
    known = [1.7035, 0.7193, 0.3068, 0.1742, 0.1342, 0.1232, 0.1220, 0.1241, 0.1270, 0.1297]
    assert losses == pytest.approx(known, rel=0, abs=2e-4)


def digits(count: int, *shape: int) -> tuple[norch.Tensor, norch.Tensor]:
    found = pytest.importorskip("sklearn.datasets").load_digits()
    x = norch.tensor(found.data[:count] / 16, dtype=norch.float32, device="cpu")
    return x.reshape(count, *shape), norch.tensor(found.target[:count], device="cpu")


def test_the_digits() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

    assert_alike(make, *digits(64, 64), steps=12)


def test_the_convolutional_network() -> None:
    model = load("cnn_digits").make_model
    assert_alike(model, *digits(32, 1, 8, 8), steps=4)


def test_the_small_gpt() -> None:
    gpt = load("tiny_gpt")
    texts = gpt.encode(gpt.lines(6, random.Random(0), held_out=False), "cpu")
    assert_alike(gpt.GPT, texts[:, :-1], texts[:, 1:], steps=3)
