"""norch.compile: what changes between a call and its backward(), in the calls that are recorded and in replays; and one
result that is returned twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import norch
from norch import nn


def eager(f: Any) -> Any:
    return f


class Scaled(norch.autograd.Function):
    """x, whose gradient is multiplied by FACTOR[0] when it is computed."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * FACTOR[0]


FACTOR = [2.0]


@pytest.mark.parametrize(
    ("forward", "backward"),
    [((0, 1, 2, 3, 4), (3,)), ((0, 1, 2, 3, 4), (0, 1)), ((2, 5, 6), (3, 7)), ((), (1, 2, 3)), ((6, 7, 8), (2, 6))],
    ids=str,
)
@pytest.mark.parametrize("make", [lambda: nn.Dropout(0.5), lambda: nn.BatchNorm1d(4)], ids=["dropout", "batch_norm"])
def test_the_mode_of_a_module(make: Callable[[], Any], forward: Any, backward: Any) -> None:
    def run(wrap: Any) -> list[Any]:
        norch.manual_seed(1)
        module = nn.Sequential(nn.Linear(3, 4), make(), nn.Tanh())
        f, seen = wrap(module), []
        for i in range(12):
            module.train(i in forward)
            y = f(norch.full((5, 3), i + 1.0) * norch.arange(5.0)[:, None])
            module.train(i in backward)
            y.sum().backward()
            seen.append([y.tolist(), module[0].weight.grad.tolist(), *(b.tolist() for b in module.buffers())])
        return seen

    assert run(norch.compile) == run(eager)


@pytest.mark.parametrize("changed", [(), (2,), (5, 6), range(1, 4), range(6, 12)], ids=str)
def test_a_number_that_backward_reads(changed: Any) -> None:
    def run(wrap: Any) -> list[Any]:
        w = norch.ones(2, requires_grad=True)
        f, seen = wrap(lambda x: Scaled.apply(x * w)), []
        for i in range(12):
            FACTOR[0] = 2.0
            y = f(norch.ones(2))
            FACTOR[0] = 3.0 if i in changed else 2.0
            y.sum().backward()
            seen.append(w.grad.tolist())
        return seen

    assert run(norch.compile) == run(eager)


@pytest.mark.parametrize("calls", [(1,), (2,), (3,), (6, 7)], ids=str)
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "relu", "sin", "square"])
def test_a_result_that_is_written_to(name: str, calls: tuple[int, ...]) -> None:
    """An error where the gradient needs it, and none where it does not, as without compile."""

    def run(wrap: Any) -> list[str]:
        p = norch.ones(3, requires_grad=True)
        f, seen = wrap(lambda x: (getattr(x * p, name)(), x * p)), []
        for i in range(9):
            y, other = f(norch.ones(3))
            loss = y.sum() if i % 3 else other.sum()
            if i in calls:
                y.detach().add_(1)
            try:
                loss.backward()
                seen.append("done")
            except RuntimeError as error:
                assert "was changed in place" in str(error)
                seen.append("error")
        return seen

    assert run(norch.compile) == run(eager)


@pytest.mark.parametrize("wrap", [norch.capture, norch.compile], ids=["capture", "compile"])
def test_a_result_that_is_returned_twice(wrap: Any) -> None:
    p = norch.ones(2, requires_grad=wrap is norch.compile)

    def f(x: Any) -> Any:
        y = x * p
        return y, {"same": y, "other": x * p, "argument": x, "again": x}

    f = wrap(f)
    for i in range(7):
        x = norch.full((2,), float(i))
        y, named = f(x)
        assert y is named["same"] and y is not named["other"] and x is named["argument"] is named["again"]
        if wrap is norch.compile:
            p.grad = None
            (y * 3 + named["same"] + named["other"]).sum().backward()
            assert p.grad.tolist() == [5.0 * i] * 2
    assert f.recordings() == 1


def test_a_result_whose_gradient_is_lost_does_not_hinder_the_others() -> None:
    w, v = norch.ones(2, requires_grad=True), norch.ones(2, requires_grad=True)

    def f(x: Any) -> Any:
        t = v.tanh()
        t.mul_(t)
        return x * w, t

    called = norch.compile(f)
    with pytest.warns(UserWarning, match="writes into a tensor that a gradient needs"):
        for _ in range(5):
            a, t = called(norch.full((2,), 3.0))
            assert norch.autograd.grad(a.sum() + t.sum(), w)[0].tolist() == [3.0, 3.0]
    with pytest.raises(norch.Error, match="changed in place"):
        called(norch.ones(2))[1].sum().backward()


def test_a_gradient_counts_no_write_of_the_forward_part_again() -> None:
    """What saves running statistics after the forward part may go backward after the gradient."""
    model, x = nn.BatchNorm1d(3), norch.randn(5, 3)
    compiled = norch.compile(model)
    for _ in range(6):
        factor = norch.ones(3, requires_grad=True)
        y = compiled(x)
        z = (model.running_mean * factor).sum()
        y.square().sum().backward()
        z.backward()
        assert factor.grad is not None and factor.grad.equal(model.running_mean)
