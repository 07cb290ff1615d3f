"""GradScaler beside PyTorch's: scales, clipping, its state in files, what it refuses, capture."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import norch
from norch import amp, optim


def _scaled(t: Any, gradients: list[float], **options: Any) -> list[Any]:
    """Steps with these gradients: the weight, the scale and the state after each."""
    w = t.ones(2, requires_grad=True)
    optimizer = t.optim.SGD([w], lr=0.5)
    scaler = t.amp.GradScaler("cpu", **options)
    seen: list[Any] = []
    for factor in gradients:
        optimizer.zero_grad()
        scaler.scale((w * t.tensor([1.0, factor])).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen += [w.tolist(), scaler.get_scale(), scaler.state_dict()]
    return seen


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"init_scale": 3.0, "growth_interval": 2, "growth_factor": 1.7, "backoff_factor": 0.3},
        {"init_scale": 2.0**126, "growth_interval": 1, "growth_factor": 8.0},
        {"enabled": False},
    ],
)
def test_scales_are_those_of_pytorch(torch: Any, options: dict[str, Any]) -> None:
    inf = float("inf")
    gradients = [1.0, 0.5, 0.25, inf, 1.0, -inf, 0.0, float("nan"), 2.0, 1.0, 1.0]
    if "enabled" in options:
        gradients = [1.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_equal(_scaled(norch, gradients, **options), _scaled(torch, gradients, **options))


def test_a_gradient_is_checked_in_its_own_dtype(torch: Any) -> None:
    """1e40, of a float64 parameter, is finite, though it is not in float32."""

    def run(t: Any, gradient: float) -> list[Any]:
        w = t.zeros(2, dtype=t.float64, requires_grad=True)
        optimizer, scaler = t.optim.SGD([w], lr=1e-40), t.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale((w * gradient).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return [*w.tolist(), scaler.get_scale()]

    for gradient in (1e40, -1e40, float("inf")):
        np.testing.assert_allclose(run(norch, gradient), run(torch, gradient), rtol=1e-6)
    assert run(norch, 1e40) == pytest.approx([-1, -1, 4])


def test_unscaled_gradients_can_be_clipped(torch: Any) -> None:
    def run(t: Any) -> list[Any]:
        w = t.ones(2, requires_grad=True)
        optimizer, scaler = t.optim.SGD([w], lr=0.5), t.amp.GradScaler("cpu")
        scaler.scale([(w * 30).sum(), w.sum()])[0].backward()
        scaler.unscale_(optimizer)
        before = w.grad.tolist()
        t.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update(new_scale=4.0)
        return [before, *w.tolist(), scaler.get_scale()]

    np.testing.assert_allclose(np.hstack(run(norch)), np.hstack(run(torch)), rtol=1e-6)


def test_the_state_goes_on_in_pytorch_and_back(torch: Any) -> None:
    ours, theirs = norch.amp.GradScaler("cpu", init_scale=8.0), torch.amp.GradScaler("cpu")
    theirs.load_state_dict(ours.state_dict())
    assert theirs.get_scale() == 8.0 and theirs.state_dict() == ours.state_dict()
    theirs = torch.amp.GradScaler("cpu", init_scale=32.0, growth_interval=7)
    ours.load_state_dict(theirs.state_dict())
    ours.scale(norch.ones(1))
    assert ours.state_dict() == theirs.state_dict()
    assert pickle.loads(pickle.dumps(ours)).state_dict() == copy.deepcopy(ours).state_dict() == ours.state_dict()


def test_a_state_is_loaded_before_the_first_iteration_and_after_it() -> None:
    state = amp.GradScaler("cpu", init_scale=32.0, growth_interval=2).state_dict() | {"_growth_tracker": 1}
    for scaled in (False, True):
        scaler = amp.GradScaler("cpu", init_scale=8.0)
        if scaled:
            scaler.scale(norch.ones(1))
        scaler.load_state_dict(state)
        assert scaler.state_dict() == state and scaler.scale(norch.ones(1)).item() == 32.0
    scaler = amp.GradScaler("cpu", enabled=False)
    for loaded in ({}, state):
        scaler.load_state_dict(loaded)
        assert scaler.state_dict() == {} and scaler.get_scale() == 1.0
        assert scaler._get_growth_tracker() == 0
    w = norch.ones(1, requires_grad=True)
    w.sum().backward()
    scaler.unscale_(optim.SGD([w], lr=0.5))
    assert w.grad.tolist() == [1.0]


def test_what_a_scaler_refuses() -> None:
    w = norch.ones(2, requires_grad=True)
    optimizer, scaler = optim.SGD([w], lr=0.5), amp.GradScaler("cpu")
    with pytest.raises(norch.Error, match="nothing was scaled yet"):
        scaler.step(optimizer)
    scaler.scale(w.sum())
    with pytest.raises(norch.Error, match="no parameter of this optimizer has a gradient"):
        scaler.step(optimizer)
    with pytest.raises(norch.Error, match="no gradient was checked"):
        scaler.update()
    scaler = amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(norch.Error, match="unscale_.. has been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(norch.Error, match="after update"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    for again in (scaler.step, scaler.unscale_):
        with pytest.raises(norch.Error, match="step.. has been called"):
            again(optimizer)
    with pytest.raises(norch.Error, match="closure"):
        scaler.step(optimizer, closure=lambda: 1.0)
    with pytest.raises(norch.Error, match="is empty"):
        scaler.load_state_dict({})
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(norch.ArgumentError, match="growth_factor must be above 1 and backoff_factor below"):
            amp.GradScaler("cpu", **wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not amp.GradScaler("cuda", enabled=False).is_enabled()  # without a device, too
    with pytest.raises(TypeError, match="an iterable of tensors, not float"):
        scaler.scale(1.0)
    half = norch.ones(2, dtype=norch.float16, requires_grad=True)
    half.sum().backward()
    with pytest.raises(norch.DTypeError, match="float16 cannot be unscaled"):
        scaler.unscale_(optim.SGD([half], lr=0.5))


def test_a_recorded_step_through_a_scaler_is_refused_by_name() -> None:
    w = norch.ones(2, requires_grad=True)
    optimizer, scaler = optim.SGD([w], lr=0.5), amp.GradScaler("cpu")

    @norch.capture
    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    step()
    with pytest.raises(norch.CaptureError, match="Python reads"):
        step()


# ---- without PyTorch -------------------------------------------------------------------------------------------------


def test_a_scale_grows_after_an_interval_and_shrinks_after_an_overflow() -> None:
    options: Any = {"init_scale": 8.0, "growth_interval": 2, "growth_factor": 4.0, "backoff_factor": 0.5}
    seen = _scaled(norch, [1.0, 1.0, 1.0, float("inf"), 1.0, 1.0], **options)
    assert seen[1::3] == [8.0, 32.0, 32.0, 16.0, 16.0, 64.0]
    assert [state["_growth_tracker"] for state in seen[2::3]] == [1, 0, 1, 0, 1, 0]
    assert [w[0] for w in seen[::3]] == [0.5, 0.0, -0.5, -0.5, -1.0, -1.5]  # the overflow is no step


def test_tensors_in_containers_are_scaled() -> None:
    x, scaler = norch.ones(1), norch.GradScaler("cpu", init_scale=4.0)
    for container in ([x, x], (x, (x,))):
        scaled: Any = scaler.scale(container)
        assert type(scaled) is type(container) and scaled[0].item() == 4.0
    assert type(scaled[1]) is tuple and scaled[1][0].item() == 4.0
    assert [y.item() for y in scaler.scale(iter((x, x)))] == [4.0, 4.0]


def test_gradients_without_elements_overflow_in_no_step() -> None:
    w, empty = norch.ones(1, requires_grad=True), norch.ones(0, requires_grad=True)
    optimizer, scaler = optim.SGD([{"params": [w]}, {"params": [empty]}], lr=0.5), norch.GradScaler("cpu")
    scaler.scale(empty.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.state_dict()["_growth_tracker"] == 1 and w.grad is None


def test_float16_gradients_are_unscaled_where_a_subclass_allows_them() -> None:
    w = norch.ones(2, dtype=norch.float16, requires_grad=True)
    w.grad = norch.full((2,), 8.0, dtype=norch.float16)
    optimizer, scaler = optim.SGD([w], lr=0.5), norch.GradScaler("cpu")
    inverse, none_found = norch.tensor(0.25), norch.tensor(0.0)
    assert [x.item() for x in scaler._unscale_grads_(optimizer, inverse, none_found, True).values()] == [0.0]
    assert w.grad.tolist() == [2.0, 2.0]
    with pytest.raises(norch.DTypeError, match="float16"):
        scaler._unscale_grads_(optimizer, inverse, none_found, False)
