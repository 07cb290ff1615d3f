"""Hooks on the tensors that nodes save for backward(): packed, unpacked, nested, refused; gradients stay the same."""

import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.autograd import graph
from norch.testing import assert_close


class Cube(norch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = x**3
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, out = ctx.saved_tensors
        return 3 * out / x * g


def model() -> Any:
    norch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4), nn.Softmax(1)
    )
    return layers.to(DEVICE)


def gradients(hooks: Any) -> tuple[list[Any], list[Any]]:
    layers, x = (
        model(),
        norch.tensor(np.random.default_rng(0).normal(size=(2, 2, 4, 4)), dtype=norch.float32, device=DEVICE),
    )
    x.requires_grad_()
    with hooks:
        y = (Cube.apply(layers(x) + 1) * x.mean().exp()).square().sum()
    wanted = [x, *layers.parameters()]
    first = norch.autograd.grad(y, wanted, create_graph=True)
    total = sum((g.square().sum() for g in first), norch.zeros((), device=DEVICE))
    return [g.detach() for g in first], list(norch.autograd.grad(total, wanted))


class Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...


def test_gradients_are_the_same_through_hooks() -> None:
    kept: list[Any] = []

    def pack(x: Any) -> int:
        assert not x.requires_grad
        kept.append(x.cpu().numpy().copy())
        return len(kept) - 1

    def unpack(i: int) -> Any:
        return norch.tensor(kept[i], device=DEVICE)

    plain = gradients(Nothing())
    for hooks in (graph.saved_tensors_hooks(pack, unpack), graph.save_on_cpu(pin_memory=True)):
        for wanted, found in zip(plain, gradients(hooks), strict=True):
            for a, b in zip(wanted, found, strict=True):
                assert_close(b, a)
    assert len(kept) > 8
    count = len(kept)
    norch.ones(2, requires_grad=True).exp()  # outside
    assert len(kept) == count


def test_what_hooks_change_reaches_the_gradient(torch: Any) -> None:
    found = []
    for m in (norch, torch):
        x = m.tensor([1.0, 2.0], requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda x: x + 1, lambda x: x * 10):
            with m.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x * 2):
                y = x * x
            z = x.exp()
        found.append([g.tolist() for g in (*m.autograd.grad(y.sum(), x), *m.autograd.grad(z.sum(), x))])
    np.testing.assert_allclose(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


def test_hooks_do_not_see_numbers(torch: Any) -> None:
    """Whose tensors all calls share: what a hook writes to one would change the number for the process."""
    counts = []
    for m in (norch, torch):
        seen: list[Any] = []
        x = m.tensor([1.0, 2.0], requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda x: seen.append(x) or x, lambda x: x):  # noqa: B023
            results = [x * 7.25, 7.25 * x, x / 7.25, x**7.25, 7.25 / x, m.lerp(x, x, 7.25)]
        assert all(tuple(one.shape) == (2,) for one in seen)
        counts.append([len(seen), *(m.autograd.grad(y.sum(), x)[0].tolist() for y in results)])
    np.testing.assert_allclose(counts[0][1:], counts[1][1:], rtol=1e-6)
    assert counts[0][0] == counts[1][0]


def test_hooks_are_refused() -> None:
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(norch.Error, match="^not here$"):
        with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass
    with graph.saved_tensors_hooks(lambda x: x, lambda x: 3):
        y = norch.ones(2, requires_grad=True).exp()
        with pytest.raises(norch.Error, match="inside"), graph.disable_saved_tensors_hooks("inside"):
            pass
    with pytest.raises(TypeError, match="unpack_hook returned int, not a tensor"):
        y.sum().backward()


@pytest.mark.parametrize("wrap", [norch.capture, norch.compile])
def test_recordings_are_not_replayed_within_hooks(wrap: Any) -> None:
    x, kept = norch.full((3,), 2.0, requires_grad=True), []

    def step() -> Any:
        y = (x * x).exp()
        y.sum().backward()
        return y.detach()

    replayed = wrap(step)
    for call in range(8):
        x.grad = None
        if call in (5, 7):
            with norch.autograd.graph.saved_tensors_hooks(
                lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i] * 0 + 1
            ):
                replayed()
            assert kept, "no hook was called"
            assert x.grad.tolist() == [2.0] * 3  # 1 stands for each saved tensor
        else:
            replayed()
            assert x.grad[0].item() == pytest.approx(4 * math.exp(4))
        kept.clear()


def test_a_graph_that_was_freed_says_so_under_hooks():
    x = norch.ones(2, requires_grad=True)
    with norch.autograd.graph.saved_tensors_hooks(lambda saved: saved * 1, lambda saved: saved):
        y = x.exp().sum()
    y.backward()
    with pytest.raises(norch.Error, match="second time|freed"):
        y.backward()
    assert x.grad.tolist() == x.exp().tolist()


def test_a_pack_hook_that_writes_is_refused() -> None:
    x, weight = norch.ones(2, requires_grad=True), norch.ones(2)

    def pack(x: Any) -> Any:
        return x.add_(1)

    with graph.saved_tensors_hooks(pack, lambda x: x), pytest.raises(norch.errors.Error, match="in place"):
        x * weight
    with graph.saved_tensors_hooks(lambda x: pack(x.clone()), lambda x: x - 1):
        y = x * weight
    assert norch.autograd.grad(y.sum(), x)[0].tolist() == weight.tolist()
