"""norch.utils.checkpoint: gradients are those without it, and what is saved is the arguments."""

from __future__ import annotations

import contextlib
import gc
import importlib
from functools import partial
from typing import Any

import pytest

import norch
from norch import nn
from norch._binding.library import lib
from norch.errors import Error
from norch.testing import assert_close, gradcheck, gradgradcheck
from norch.utils.checkpoint import checkpoint, checkpoint_sequential


def test_gradients_of_arguments_and_of_what_is_used_beside() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))
    for requires_grad in (True, False):
        grads = []
        for call in (lambda f, x: f(x), lambda f, x: checkpoint(f, x, use_reentrant=False)):
            norch.manual_seed(0)
            x = norch.ones(4, 3, requires_grad=requires_grad)
            net.zero_grad()
            (call(net, x * 2) if requires_grad else call(net, x)).square().sum().backward()
            grads.append([x.grad, *(p.grad for p in net.parameters()), norch.rand(1)])
        for a, b in zip(*grads):
            assert (a is None) == (b is None)
            if a is not None:
                assert_close(a, b, rtol=0, atol=0)
    (wanted,) = norch.autograd.grad(checkpoint(net.eval(), x).sum(), net[0].weight)
    assert wanted.abs().sum() > 0 and net[0].weight.grad is not wanted


def test_several_results_and_second_derivatives() -> None:
    def pair(x: Any, y: Any, scale: float = 1.0) -> Any:
        return x.exp() * y, 3, (x * y).sin() * scale, x.detach()

    def run(x: Any, y: Any) -> Any:
        a, three, b, still = checkpoint(pair, x, y, scale=2.0)
        assert three == 3 and not still.requires_grad
        return a + b * three

    x, y = (norch.tensor(v, dtype=norch.float64, requires_grad=True) for v in ([0.3, -1.0], [0.7, 0.2]))
    assert gradcheck(run, (x, y)) and gradgradcheck(run, (x, y))
    assert gradcheck(lambda x, y: checkpoint(pair, x, y)[2], (x, y))
    assert gradcheck(lambda x, y: checkpoint(lambda z: checkpoint(run, z, y) * z, x * 2), (x, y))
    (got,) = checkpoint(lambda x: (x,), x)  # the argument itself
    assert got is x
    with norch.no_grad():
        assert not checkpoint(norch.sin, x).requires_grad


def test_walks_and_hooks() -> None:
    x = norch.tensor([1.0, 2.0], requires_grad=True)
    calls, seen = [], []

    def square(x: Any) -> Any:
        calls.append(norch.is_grad_enabled())
        return x * x * x

    x.register_hook(lambda g: seen.append(g.tolist()))
    out = checkpoint(square, x)
    assert out.grad_fn.name() == "CheckpointBackward" and calls == [True]
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    assert x.grad.tolist() == [6, 24] and len(calls) == 3 and seen == [[3, 12], [3, 12]]
    with pytest.raises(norch.Error, match="second time"):
        out.sum().backward()


CHANGED: dict[str, Any] = {
    "leaf": lambda run, x, h, constant: run(lambda t: t.sin(), x),
    "computed": lambda run, x, h, constant: run(lambda t: t.sin(), h),
    "base of a view": lambda run, x, h, constant: run(lambda t: t.sin(), h[:2]),
    "constant": lambda run, x, h, constant: run(lambda t, u: t * u, x, constant),
    "in a dict": lambda run, x, h, constant: run(lambda d: d["t"].sin(), {"t": h}),
    "by the function": lambda run, x, h, constant: run(lambda t: t.mul_(2).sin(), h),
}


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("name", CHANGED)
def test_an_argument_that_was_changed_is_refused(torch: Any, name: str, use_reentrant: bool) -> None:
    """Computed again of other numbers, its gradient would be wrong. PyTorch does not look into containers."""
    for m in (norch,) if name == "in a dict" or (name == "by the function" and use_reentrant) else (norch, torch):
        x, constant = m.ones(3, requires_grad=True), m.ones(3)
        h = x * 1
        out = CHANGED[name](partial(m.utils.checkpoint.checkpoint, use_reentrant=use_reentrant), x, h, constant)
        if name != "by the function":
            with m.no_grad():
                {"leaf": x, "constant": constant}.get(name, h).mul_(2)
        with pytest.raises(RuntimeError, match="in ?place"):
            out.sum().backward()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_constant_that_pytorch_does_not_check_may_change(torch: Any, use_reentrant: bool) -> None:
    def count(t: Any, kept: Any) -> Any:
        steps = kept["steps"] if isinstance(kept, dict) else kept
        steps.add_(1)
        return t.sin()

    def gradient(m: Any, container: Any, **options: Any) -> list[float]:
        x, steps = m.ones(3, requires_grad=True), m.zeros(())
        m.utils.checkpoint.checkpoint(count, x, container(steps), **options).sum().backward()
        assert steps == 2
        return x.grad.tolist()

    for container in [lambda x: {"steps": x}, *([lambda x: x] if use_reentrant else [])]:
        got, wanted = (gradient(m, container, use_reentrant=use_reentrant) for m in (norch, torch))
        assert got == pytest.approx(wanted)
    x, steps = norch.ones(3, requires_grad=True), norch.zeros(())
    checkpoint(count, x, kept=steps, use_reentrant=use_reentrant).sum().backward()  # PyTorch: False alone takes names
    assert steps == 2


def test_keeps_the_arguments_only() -> None:
    x = norch.randn(1000, requires_grad=True)

    def deep(x: Any) -> Any:
        for _ in range(9):
            x = x.sin()
        return x

    gc.collect()
    before = lib.norch_live_bytes()
    out = checkpoint(deep, x)
    assert lib.norch_live_bytes() - before <= 4096 + 256, "the result"
    kept = deep(x)
    assert lib.norch_live_bytes() - before > 9 * 4000
    del kept
    out.sum().backward()
    del out
    x.grad = None
    assert lib.norch_live_bytes() - before <= 256


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(segments: int) -> None:
    net = nn.Sequential(*(nn.Linear(3, 3) for _ in range(5)))
    x = norch.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    wanted, x.grad = x.grad, None
    checkpoint_sequential(net, segments, x, use_reentrant=False).sum().backward()
    assert_close(x.grad, wanted, rtol=0, atol=0)


OTHERS = {
    "fewer": (lambda x: x.exp().exp(), lambda x: x.sin()),
    "another shape": (lambda x: (x[:2] * 2).exp(), lambda x: (x * 2).exp()),
    "another dtype": (lambda x: x.exp(), lambda x: x.double().exp()),
}


@pytest.mark.parametrize("options", [{}, {"determinism_check": "none"}, {"use_reentrant": True}])
@pytest.mark.parametrize("name", OTHERS)
def test_a_function_that_does_something_else_the_second_time(torch: Any, name: str, options: dict[str, Any]) -> None:
    """Its gradient would be that of another function; PyTorch raises by the tensors that are saved, too."""
    for m in (torch, norch):
        module: Any = importlib.import_module(f"{m.__name__}.utils.checkpoint")
        x, functions = m.ones(3, requires_grad=True), list(OTHERS[name])
        y = module.checkpoint(lambda x, left=functions: left.pop(0)(x), x, **{"use_reentrant": False, **options})
        if m is norch and options:  # as before the check
            if name == "fewer":
                y.sum().backward()
                assert x.grad.tolist() == m.cos(m.ones(3)).tolist()
        elif not options:
            with pytest.raises(module.CheckpointError):
                y.sum().backward()


def test_another_operation_that_saves_the_same() -> None:
    functions = [norch.sin, norch.cos]
    y = checkpoint(lambda x: functions.pop(0)(x), norch.ones(3, requires_grad=True))
    with pytest.raises(Error, match=r"tensor 0 for SinBackward of shape \(3,\), norch.float32, then for CosBackward"):
        y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check is 'default' or 'none'"):
        checkpoint(norch.sin, norch.ones(3), determinism_check="some")


def test_the_same_function_in_other_circumstances() -> None:
    """A cast that autocast had already, recordings that begin meanwhile, hooks of saved tensors in one of the calls."""
    layer = nn.Linear(3, 3)
    compiled = norch.compile(nn.Sequential(layer, nn.ReLU(), nn.Dropout(0.5)))
    for _ in range(6):
        x = norch.ones(2, 3, requires_grad=True)
        checkpoint(compiled, x).sum().backward()
        assert x.grad is not None
    assert compiled.forward.recordings() == 1
    x = norch.ones(2, 3, requires_grad=True)
    with norch.autocast("cpu"):
        y = checkpoint(lambda x: layer(layer(x)), checkpoint(layer, layer(x)))
    y.float().sum().backward()
    for forward, backward in ((True, False), (False, True)):
        hooks = norch.autograd.graph.save_on_cpu
        with hooks() if forward else contextlib.nullcontext():
            y = checkpoint(lambda x: layer(x).exp(), x)
        with hooks() if backward else contextlib.nullcontext():
            y.sum().backward()
