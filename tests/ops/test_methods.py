"""Methods and operators that are rows of ops.def, which C calls without a function of Python: they take what that
function takes, which does the call where a mode, a subclass or a number needs it."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn, overrides
from norch.autograd.grad_mode import mode

ROWS = [name for name, thing in vars(norch.Tensor).items() if type(thing).__name__ == "Method"]


def test_they_look_like_functions() -> None:
    if sys.version_info >= (3, 11):  # where C can call a function in the least time
        assert {"exp", "__add__", "__neg__", "__eq__", "maximum", "exp_", "mul_", "__iadd__"} <= {*ROWS}
    x = norch.tensor([1.0, -2.0])
    for name in ROWS:
        function = getattr(norch.Tensor, name)
        assert type(function) is FunctionType
        assert getattr(norch.Tensor, name) is function
        bound = getattr(x, name)
        assert type(bound) is MethodType and bound.__func__ is function and bound.__self__ is x
        assert inspect.signature(function).parameters.keys() <= {"input", "self", "other"}
    assert norch.Tensor.exp(x).tolist() == x.exp().tolist() == (lambda f: f())(x.exp).tolist()
    assert pickle.loads(pickle.dumps(x)).exp().tolist() == copy.copy(x).exp().tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.exp(1), TypeError, r"takes 1 positional argument but 2 were given"),
        (lambda x: x.maximum(), TypeError, "missing 1 required positional argument: 'other'"),
        (lambda x: x.maximum(x, dim=0), TypeError, "unexpected keyword argument 'dim'"),
        (lambda x: x.maximum("a"), TypeError, "maximum: expected a tensor or a number, not str"),
        (lambda x: x + "a", TypeError, "unsupported operand"),
        (lambda x: x < object(), TypeError, "not supported between"),
        (lambda x: x + norch.ones(3), norch.ShapeError, "add"),
        (lambda x: ~x, norch.DTypeError, "bitwise_not"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    x = norch.tensor([1.0, -2.0])
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == [1.0, -2.0]


def test_their_class_is_not_called() -> None:
    for name in ROWS[:1]:
        made = type(vars(norch.Tensor)[name])
        for make in (made, lambda made=made: object.__new__(made)):
            with pytest.raises(TypeError):
                make()


def test_operands_that_are_no_plain_tensors() -> None:
    x, p = norch.tensor([1.0, -2.0]), nn.Parameter(norch.tensor([3.0, 4.0]))
    for found in (x + 1, 1 + x, x + True, x.maximum(other=0), x == 1, x + np.float64(2), x + np.ones(2), -x + -0.0):
        assert type(found) is norch.Tensor
    for found in (p + x, x + p, p * 2, -p, p.exp(), p.maximum(x)):
        assert type(found) is norch.Tensor and found.requires_grad
    (p * x).sum().backward()
    assert p.grad is not None and p.grad.tolist() == [1.0, -2.0]

    class Kept(norch.Tensor):
        pass

    class Plain(nn.Parameter):
        pass

    y = norch.ones(2).as_subclass(Kept)
    assert {type(found) for found in (y + x, x + y, p + y, p - y, p > y, p**y, -y, y.exp(), x.maximum(y))} == {Kept}
    assert type(nn.Parameter(norch.ones(2, 2)) @ norch.ones(2, 2).as_subclass(Kept)) is Kept
    assert type(Plain(norch.ones(2)) + p) is norch.Tensor


def test_modes_of_the_thread() -> None:
    seen: list[str] = []

    class Log(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert not mode.overridden or len(overrides.state.modes) == 1
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x, p, longer = norch.ones(2), nn.Parameter(norch.ones(2)), norch.ones(3)
    with Log():
        assert mode.overridden
        x + p, -x, x.exp(), p.exp(), x > 0
        other = threading.Thread(target=lambda: seen.append(f"apart {mode.overridden} {(x + x).tolist()}"))
        other.start(), other.join()
        with overrides.DisableTorchFunction():
            assert not mode.overridden
            x + x
        with Log():
            x * x
        with pytest.raises(norch.ShapeError):
            x + longer
    assert seen == ["add", "neg", "exp", "exp", "gt", "apart False [2.0, 2.0]", "mul", "mul", "add"]
    assert not mode.overridden
    x + x
    assert len(seen) == 9
    with norch.autocast("cpu"):
        assert (x + x).dtype is norch.float32 and x.atan2(x).dtype is norch.float32
    assert norch.vmap(lambda a: (-a + a.exp()) * p[0])(norch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_recordings_do_not_depend_on_an_override_mode() -> None:
    captured = norch.capture(lambda x: (x + x).exp() * 0.5)
    x = norch.ones(2)
    for _ in range(3):
        plain = captured(x).tolist()
    with overrides.BaseTorchFunctionMode():
        assert captured(x).tolist() == plain
    assert captured(x).tolist() == plain and captured.recordings() == 1
