"""Settings and contexts of norch in which a captured function is called: the default device, TorchFunctionMode, classes
that override nothing, cached parametrizations. A replay does what the function does in them, or it is recorded again.
Results that are more than plain tensors are refused."""

import contextlib
import ctypes
import subprocess
import sys

import pytest

import norch
from norch import nn
from norch.nn.utils import parametrizations, parametrize
from norch.overrides import DisableTorchFunctionSubclass, TorchFunctionMode
from norch.program.conditions import ClassUnchanged
from norch.program.fields import TAG

pytestmark = pytest.mark.host


class Doubled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func.__name__ == "exp" else result


class Other(norch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            return result * 2 if func.__name__ == "exp" else result


@contextlib.contextmanager
def changed_inside(layer):
    """A context of cached() in which the layer is read, and then changes."""
    with parametrize.cached():
        layer.weight  # noqa: B018
        with norch.no_grad():
            layer.parametrizations.weight.original0.mul_(2)
        yield


def plain():
    return lambda x: x.exp() + 1, Doubled, norch.ones(3)


def of_a_class():
    return lambda x: x.exp() + 1, DisableTorchFunctionSubclass, norch.ones(3).as_subclass(Other)


def parametrized():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    return lambda x: layer(x).detach(), lambda: changed_inside(layer), norch.ones(3)


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("inside", [(4, 5, 8), (0, 1, 2, 3, 4, 7), range(5, 14)])
@pytest.mark.parametrize("make", [plain, of_a_class, parametrized])
def test_a_context_that_begins_and_ends(make, inside, how):
    def run(wrap):
        norch.manual_seed(0)
        function, context, x = make()
        function, found = wrap(function), []
        for i in range(14):
            with context() if i in inside else contextlib.nullcontext():
                found.append(function(x).tolist())
        return found

    made = []
    wanted = run(lambda f: f)
    assert run(lambda f: made.append(getattr(norch, how)(f)) or made[-1]) == wanted
    assert made[0].recordings() >= 1


def hooked():
    return norch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


@pytest.mark.parametrize("mode", [Doubled, norch.overrides.DisableTorchFunction, hooked])
def test_after_a_mode_replays_are_as_fast_as_before(mode):
    captured = norch.capture(lambda x: x.exp())
    for _ in range(4):
        captured(norch.ones(2))
    captured._call_slow_path = None  # is not called
    captured(norch.ones(2))
    with mode(), pytest.raises(TypeError):
        captured(norch.ones(2))
    captured(norch.ones(2))


@pytest.mark.parametrize("how", ["capture", "compile"])
def test_the_default_device(how):
    function = getattr(norch, how)(lambda x: norch.zeros(3) + x)
    for _ in range(5):
        assert function(1.0).device.type == "cpu"
    try:
        norch.set_default_device("meta")
        if how == "capture":
            with pytest.raises(norch.CaptureError, match="meta"):
                function(1.0)
        else:
            with pytest.warns(UserWarning, match="meta"):
                assert function(1.0).device.type == "meta"
    finally:
        norch.set_default_device(None)
    assert function(1.0).tolist() == [1.0] * 3


def with_grad(x):
    y = (x * 2).requires_grad_()
    (y * y).sum().backward()
    return y


def with_name(x):
    y = x * 2
    y.name = "y"
    return y


UNFIT = {
    "of class Other": lambda x: (x * 2).as_subclass(Other),
    "of class Parameter": lambda x: nn.Parameter(x * 2),
    "requires grad": lambda x: (x * 2).requires_grad_(),
    "requires grad;": with_grad,
    r"has an attribute \(name\)": with_name,
}


@pytest.mark.parametrize("match", UNFIT)
def test_results_that_are_more_than_plain_tensors_are_refused(match):
    captured = norch.capture(UNFIT[match])
    captured(norch.ones(2))
    with pytest.raises(norch.CaptureError, match=match):
        captured(norch.ones(2))


@pytest.mark.native("guards read versions of classes by 64 bits; without them they look each time")
def test_a_recording_of_another_function_does_not_slow_down_replays(monkeypatch):
    def made():
        model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
        captured = norch.capture(lambda x: model(x).detach())
        for _ in range(5):
            captured(norch.ones(1, 2))
        return captured

    calls, check = [], ClassUnchanged.__call__
    monkeypatch.setattr(ClassUnchanged, "__call__", lambda self: calls.append(self) or check(self))
    first, _ = made(), made()
    for _ in range(3):
        first(norch.ones(1, 2))
    assert calls
    calls.clear()
    first(norch.ones(1, 2))
    assert not calls  # classes have versions again


@pytest.mark.skipif(not TAG, reason="this Python keeps versions of classes elsewhere")
def test_recordings_do_not_change_the_classes_of_modules():
    """Python 3.13 gives a class at most 1000 versions; without one its guards are compared in Python at each call."""

    def version():
        return ctypes.c_uint32.from_address(id(nn.Linear) + TAG).value

    layer = nn.Linear(2, 3)
    captured = norch.capture(lambda x: layer(x).detach())
    captured(norch.ones(2, 2))
    before = version()
    for rows in (2, 3, 4):  # a recording each
        for _ in range(4):
            captured(norch.ones(rows, 2))
    assert version() == before != 0


def test_the_first_use_of_a_method_discards_no_recording():
    """norch imports the modules of less used methods then, and they replace what stands for them in the class."""
    code = """
import norch
captured = norch.capture(lambda x: x * 2)
for _ in range(4):
    captured(norch.ones(3))
names = [name for name, value in vars(norch.Tensor).items() if isinstance(value, norch.ops._deferred.DeferredMethod)]
assert {"exp_", "kthvalue", "erf"} <= {*names}
for name in names:
    getattr(norch.Tensor, name)
captured.replay(1, norch.ones(3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
