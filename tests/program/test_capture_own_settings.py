"""Settings of norch that programs read, with and without arguments: a change between calls of a recorded function is
noticed."""

import pytest

import norch
from norch.backends import cudnn

pytestmark = pytest.mark.host

WRAPS = {"capture": norch.capture, "compile": lambda f: norch.compile(f, fullgraph=True)}


def autocast_without_dtype(x):
    with norch.autocast("cpu"):
        return x * 2 if (x @ x).dtype is norch.bfloat16 else x * 3


def cast_product(x):
    with norch.autocast("cpu"):
        return x @ x


def read_in_a_variable(x, of=norch):  # what a local variable holds is followed by the names of attributes alone
    return x * 2 if of.backends.cudnn.benchmark else x * 3


# {name: (what a function reads, how it changes, from what to what)}
WAYS = {
    "dtype of autocast": (autocast_without_dtype, lambda d: norch.set_autocast_dtype("cpu", d), "bfloat16", "float16"),
    "dtype of a product": (cast_product, lambda d: norch.set_autocast_dtype("cpu", d), "bfloat16", "float16"),
    "get_autocast_dtype": (
        lambda x: x * (2 if norch.get_autocast_dtype("cpu") is norch.bfloat16 else 3),
        lambda d: norch.set_autocast_dtype("cpu", d), "bfloat16", "float16",
    ),
    "get_autocast_dtype, of a device that does not cast": (
        lambda x: x * (2 if norch.get_autocast_dtype(device_type="cuda") is norch.bfloat16 else 3),
        lambda d: norch.set_autocast_dtype("cuda", d), "float16", "bfloat16",
    ),
    "is_autocast_enabled": (
        lambda x: x * (2 if norch.is_autocast_enabled("cpu") else 3),
        lambda on: norch.set_autocast_enabled("cpu", on), False, True,
    ),
    "is_autocast_cache_enabled": (
        lambda x: x * (2 if norch.is_autocast_cache_enabled() else 3), norch.set_autocast_cache_enabled, True, False,
    ),
    "property of a setting": (
        lambda x: x * (2 if norch.backends.cuda.matmul.allow_tf32 else 3),
        lambda on: setattr(norch.backends.cuda.matmul, "allow_tf32", on), False, True,
    ),
    "property of an object": (
        lambda x, products=norch.backends.cuda.matmul: x * (2 if products.fp32_precision == "tf32" else 3),
        lambda name: setattr(norch.backends.cuda.matmul, "fp32_precision", name), "none", "tf32",
    ),
    "flag": (
        lambda x: x * (2 if norch.backends.cudnn.benchmark else 3),
        lambda on: setattr(norch.backends.cudnn, "benchmark", on), False, True,
    ),
    "flag of an imported object": (
        lambda x: x * (2 if cudnn.deterministic else 3),
        lambda on: setattr(norch.backends.cudnn, "deterministic", on), True, False,
    ),
    "flag, by a variable": (
        read_in_a_variable, lambda on: setattr(norch.backends.cudnn, "benchmark", on), False, True,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def unset():
    before = dict(vars(cudnn))
    with norch.autograd.autocast.using(norch.autograd.autocast.current()):
        yield
    vars(cudnn).update(before)
    norch.backends.cuda.matmul.fp32_precision = "none"


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", WAYS)
def test_settings_that_change(name, wrap):
    function, change, *values = WAYS[name]
    values = [getattr(norch, value) if value in ("bfloat16", "float16") else value for value in values]
    x, seen = norch.tensor([[1.5]]), set()
    change(values[0])
    recorded = WRAPS[wrap](function)
    for value in (*values, *values):
        change(value)
        for _ in range(5):
            expected, result = function(x), recorded(x)
            assert (result.dtype, result.tolist()) == (expected.dtype, expected.tolist())
        seen.add((expected.dtype, str(expected.tolist())))
    assert len(seen) == 2
    assert recorded.recordings() == 2


@pytest.mark.parametrize("wrap", WRAPS)
def test_functions_replaced_in_a_module_that_a_variable_holds(wrap, monkeypatch):
    recorded = WRAPS[wrap](lambda x, of=norch: of.nn.functional.relu(x))
    x = norch.tensor([-1.0, 2.0])
    assert [recorded(x).tolist() for _ in range(5)] == [[0.0, 2.0]] * 5
    monkeypatch.setattr(norch.nn.functional, "relu", norch.neg)
    assert [recorded(x).tolist() for _ in range(5)] == [[1.0, -2.0]] * 5


def test_setting_that_backward_reads():
    """Between the call and its backward() the setting changes."""

    class Doubled(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * (2 if norch.get_autocast_dtype("cpu") is norch.bfloat16 else 3)

    recorded, x = norch.compile(Doubled.apply), norch.ones(1, requires_grad=True)
    for dtype, factor in ((norch.bfloat16, 2.0), (norch.float16, 3.0), (norch.bfloat16, 2.0)):
        for _ in range(5):
            x.grad = None
            norch.set_autocast_dtype("cpu", norch.bfloat16)
            y = recorded(x)
            norch.set_autocast_dtype("cpu", dtype)
            y.backward()
            assert x.grad.item() == factor
