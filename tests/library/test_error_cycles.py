"""An exception that was caught holds no tensor of the call: no frame of its traceback refers to it, which would be a
cycle, and keep memory until the garbage collector runs."""

import gc
import inspect
import subprocess
import sys
import warnings
import weakref

import pytest

import norch
from norch import nn
from norch.nn import functional as F

CALLS = {
    "addcmul": lambda x: norch.addcmul(x, x, norch.zeros(9)),
    "batch_norm": lambda x: nn.BatchNorm1d(9)(x),
    "conv2d": lambda x: F.conv2d(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, norch.zeros(9, dtype=norch.int64)),
    "dropout": lambda x: F.dropout(x, 5),
    "exp with out=": lambda x: norch.exp(x, out=norch.zeros(2, dtype=norch.int64)),
    "gather": lambda x: x.gather(5, norch.zeros(1, 1, dtype=norch.int64)),
    "layer_norm": lambda x: F.layer_norm(x, (9,)),
    "linear": lambda x: F.linear(x, norch.zeros(4, 4)),
    "matmul": lambda x: x @ norch.zeros(4, 4),
    "module": lambda x: nn.Sequential(nn.Linear(4, 4))(x),
    "softmax": lambda x: norch.softmax(x, 9),
    "sum": lambda x: x.sum(7),
    "topk": lambda x: x.topk(9),
    "where": lambda x: norch.where(x, x, x),
}
SETTINGS = ("set_", "use_", "save", "load", "manual_seed", "seed", "capture", "compile", "as_torch", "hub", "from_file")


def is_freed(call):
    """Whether a tensor that call(x) refuses is freed with the last reference to it; None if it is not refused."""
    x = norch.zeros(3, 3)
    alive = weakref.ref(x)
    refused = False
    try:
        call(x)
    except Exception:
        refused = True
    del x
    return alive() is None if refused else None


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_frees_its_tensors(no_collection, name):
    assert is_freed(CALLS[name])


@pytest.mark.parametrize("module", [norch, F, norch.linalg, norch.fft, norch.special, norch.Tensor])
def test_every_function_that_refuses_frees_its_tensors(no_collection, module):
    names = [name for name in dir(module) if name[0] != "_" and not name.startswith(SETTINGS)]
    functions = {name: getattr(module, name, None) for name in names}
    functions = {name: f for name, f in functions.items() if callable(f) and not inspect.isclass(f)}
    refused, kept = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            for wrong in ("text", 99, norch.zeros(7)):
                freed = is_freed(lambda x, function=function, wrong=wrong: function(x, wrong))
                refused += freed is not None
                if freed is False:
                    kept.append((name, str(wrong)))
    assert refused > len(functions) and not kept


class Foreign:
    """An object that other functions may compute with, and none here does."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise TypeError("not with this")


@pytest.mark.parametrize("name", ["add", "sum", "gather", "matmul"])
def test_an_object_that_refuses_frees_the_tensors(no_collection, name):
    assert is_freed(lambda x: getattr(norch, name)(x, Foreign()))


NOT_ASKED = """
import gc, weakref
import norch

class Foreign:
    __torch_function__ = classmethod(lambda *arguments: 0)

gc.disable()
x = norch.zeros(3)
alive = weakref.ref(x)
try:
    with norch._C.DisableTorchFunction():
        norch.add(x, Foreign())
except TypeError:
    del x
assert alive() is None
"""


def test_an_object_that_is_not_asked_frees_the_tensors():
    """In a process in which no such object was met before."""
    subprocess.run([sys.executable, "-c", NOT_ASKED], check=True)


class Broken(norch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise ValueError(f"no sample {index}")


def test_an_error_of_a_worker_frees_the_tensors_of_the_loop(no_collection):
    def iterate(x):
        for _ in norch.utils.data.DataLoader(Broken(), num_workers=1):
            x.sum()

    assert is_freed(iterate)


def test_an_exception_that_is_raised_again_frees_the_tensors(no_collection):
    def raise_again(x):
        try:
            x.view(7)
        except norch.Error:
            norch.utils.data._utils.ExceptionWrapper(where="here").reraise()

    assert is_freed(raise_again)
