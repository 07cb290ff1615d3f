"""Anomaly mode: which operation made a NaN, and where it was recorded; nothing of it when it is off."""

from __future__ import annotations

import gc
import random
import re
import signal
import time
import traceback
from typing import Any

import pytest
from functions import leaf

import norch
from norch.autograd import anomaly, detect_anomaly, set_detect_anomaly
from norch.errors import PACKAGE

NAN = float("nan")


@pytest.fixture(autouse=True)
def left_off() -> Any:
    yield
    assert not anomaly.is_anomaly_enabled() and not _stacks_are_kept()


def _stacks_are_kept() -> bool:
    return hasattr((leaf(1.0) * 2).grad_fn, "_stack")


def test_names_the_operation_and_the_place() -> None:
    x = leaf(0.0, 4.0)
    with detect_anomaly():
        root = (x * 0).sqrt()  # the place
        out = (root * 3).sum()
        with pytest.raises(norch.Error, match=r"Function 'SqrtBackward' returned nan values in its 0th output") as info:
            (out * 0).backward()
    text = str(info.value)
    assert "2 in shape (2,)" in text and "root = (x * 0).sqrt()  # the place" in text
    places = re.findall(r'File "([^"]+)"', text)
    assert places[-1] == __file__ and not places[-1].startswith(PACKAGE)
    assert x.grad is None
    (x.sum() * 1).backward()
    assert x.grad.tolist() == [1, 1]


def test_recorded_before_the_mode() -> None:
    x = leaf(0.0)
    out = x / x
    with detect_anomaly(), pytest.raises(norch.Error, match="'DivBackward'.*recorded while the mode was off"):
        out.sum().backward()


def test_the_second_input_and_functions() -> None:
    class Bad(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b, a - b

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g, h * NAN

    a, b = leaf(1.0), leaf(2.0)
    with detect_anomaly(), pytest.raises(norch.Error, match="'BadBackward' returned nan values in its 1th output"):
        Bad.apply(a, b)[0].sum().backward()


@pytest.mark.parametrize("part", [lambda x, y: x[0], lambda x, y: y[0]])
def test_parts_that_are_added_in_place(part: Any) -> None:
    """The gradients of slices may be added into one that is there already, where nobody would look at them."""
    x = leaf(1.0, 2.0)
    x.grad = norch.ones_like(x)
    y = x * 1
    outs = [part(x, y), y[1], y[0]]  # the youngest makes the gradient of y that the others are added to
    weights = [x.new_tensor(NAN), x.new_ones(()), x.new_ones(())]
    with detect_anomaly(), pytest.raises(norch.Error, match="'RegionBackward' returned nan values in its 0th output"):
        norch.autograd.backward(outs, weights)
    assert x.grad.tolist() == [1, 1]


def test_second_derivatives() -> None:
    x = leaf(0.0)
    with detect_anomaly():
        (g,) = norch.autograd.grad((x**1.5).sum(), x, create_graph=True)
        assert g.item() == 0
        with pytest.raises(norch.Error, match="nan values"):
            (g * x.sqrt() * 0 / x).sum().backward()


def test_switches() -> None:
    x = leaf(0.0)
    assert not norch.is_anomaly_enabled()
    set_detect_anomaly(True)
    assert norch.is_anomaly_enabled() and norch.is_anomaly_check_nan_enabled()
    with set_detect_anomaly(False):
        assert not norch.is_anomaly_enabled()
        (x / x).sum().backward()
    assert norch.is_anomaly_enabled()
    with detect_anomaly(check_nan=False):
        assert norch.is_anomaly_enabled() and not norch.is_anomaly_check_nan_enabled()
        (x / x).sum().backward()
    mode = detect_anomaly()
    for _ in range(2):
        with mode, pytest.raises(norch.Error, match="nan"):
            (x / x).sum().backward()
    norch.set_anomaly_enabled(False)
    assert not _stacks_are_kept()


def test_stacks_die_with_their_nodes() -> None:
    with detect_anomaly():
        y = leaf(2.0) * 2
        assert y.grad_fn._stack[-1].filename == __file__
        y.sum().backward()
        del y
        gc.collect()
        assert not [one for one in gc.get_objects() if type(one) is traceback.StackSummary]


def test_every_node_has_the_stack_of_its_call() -> None:
    """Whichever way it is made: a row, a view, a write, a sequence, a Function."""

    class Same(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with detect_anomaly():
        x = leaf(1.0, 2.0)
        made = [x * 2, x[:1], x.sum(), norch.cat((x, x)), x.softmax(0), Same.apply(x), (x * 1).exp_()]
        written = x * 1
        written[0] = x.sum()
        nodes = [one.grad_fn for one in (*made, written)]
    assert [node.name() for node in nodes if node._stack[-1].filename != __file__] == []


def test_a_stack_that_cannot_be_taken_leaves_no_node(monkeypatch: Any) -> None:
    x = leaf(1.0, 2.0)

    def fails(*_: Any) -> Any:
        raise KeyboardInterrupt

    with detect_anomaly():
        monkeypatch.setattr(anomaly, "frame_of_user", fails)
        before = norch._binding.library.lib.norch_live_storages()
        for call in (x.exp, lambda: x[:1], lambda: x + x):
            with pytest.raises(KeyboardInterrupt):
                call()
        gc.collect()
        assert norch._binding.library.lib.norch_live_storages() == before


class _Interrupt(Exception):
    pass


def _state() -> Any:
    return norch.is_grad_enabled(), norch.is_anomaly_enabled(), _stacks_are_kept()


def _anomaly(x: Any) -> None:
    with norch.autograd.detect_anomaly():
        x * 2


def _within(x: Any) -> Any:
    for _ in range(60):  # the timer is coarse
        with norch.no_grad():
            x * 2


@norch.no_grad()
def _decorated(x: Any) -> Any:
    return x * 2


def _cached(x: Any) -> Any:
    with norch.nn.utils.parametrize.cached():
        return norch.ldexp(x, 2)  # of @differentiable, which computes without recording


@pytest.mark.parametrize("work", [_anomaly, _within, _decorated, _cached])
def test_an_asynchronous_exception_leaves_no_mode_on(work: Any) -> None:
    x, before = norch.ones(2, requires_grad=True), _state()
    left: list[Any] = []
    frames: Any = []

    def interrupt(*_: Any) -> None:
        raise _Interrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    rng, interrupted = random.Random(0), 0

    def seconds() -> float:
        began = time.perf_counter()
        work(x)
        return time.perf_counter() - began

    took = min(seconds() for _ in range(5))  # a busy machine stretches single ones
    until = time.monotonic() + 0.5
    try:
        while time.monotonic() < until or interrupted <= 20:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, took))
                work(x)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except _Interrupt as error:
                interrupted += 1
                frames = traceback.extract_tb(error.__traceback__)
            if _state() != before or norch.nn.utils.parametrize._cache is not None:
                left.append(frames)
                set_detect_anomaly(False)
                norch.set_grad_enabled(True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert not left
