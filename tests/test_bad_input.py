"""Arguments of a wrong type or value: a Python exception of a sensible kind, whose message says what is wrong."""

import re

import pytest
from conftest import DEVICE

import norch
from norch import nn, optim
from norch.nn import functional as F


def _nested_in_itself():
    data = []
    data.append(data)
    return norch.tensor(data)


def _set(thing, name, value):
    setattr(thing, name, value)


norch.set_default_device(DEVICE)  # which the tests are run for, and have while they run
x, z = norch.rand(2, 3), norch.zeros(3)
p = nn.Parameter(norch.ones(3))
norch.set_default_device(None)

CALLS = [
    (TypeError, "gather: the index must be a tensor, not NoneType", lambda: x.gather(0, None)),
    (TypeError, "clone: argument 1 must be a tensor, not <class 'int'>", lambda: norch.clone(7)),
    (TypeError, "reshape: argument 1 must be a tensor", lambda: norch.reshape(7, (1,))),
    (TypeError, "flatten: expected a tensor, not int", lambda: norch.flatten(7)),
    (TypeError, "sum: argument 3 must be an integer, not <class 'str'>", lambda: x.sum("a")),
    (norch.ShapeError, "add_: sizes 3 and 2 at dimension 0", lambda: z.add_(norch.ones(2))),
    (norch.DTypeError, "add_: a result of dtype float32", lambda: norch.ones(3, dtype=norch.int64).add_(z)),
    (norch.ShapeError, "17 dimensions; at most 16", lambda: norch.zeros((1,) * 17)),
    (norch.ShapeError, "does one hold itself", _nested_in_itself),
    (TypeError, "full: expected a number, not str", lambda: norch.full((2,), "a")),
    (norch.ArgumentError, "nan does not fit int32", lambda: norch.tensor([float("nan")], dtype=norch.int32)),
    (norch.DeviceError, "-1 is no number of a device", lambda: norch.device("cuda", -1)),
    (TypeError, "in: a tensor holds numbers, not NoneType", lambda: None in z),
    (TypeError, "data: expected a tensor, not NoneType", lambda: _set(z, "data", None)),
    (TypeError, "grad: a gradient is a tensor or None, not int", lambda: _set(p, "grad", 3)),
    (norch.Error, "grad: a gradient of norch.float32 and shape (2,)", lambda: _set(p, "grad", norch.ones(2))),
    (norch.Error, "norch.float64", lambda: _set(p, "grad", norch.ones(3, dtype=norch.float64))),
    (norch.Error, "its own gradient", lambda: _set(p, "grad", p)),
    (TypeError, "grad: expected a tensor, not NoneType", lambda: norch.autograd.grad(None, None)),
    (TypeError, "grad: expected a tensor, not NoneType", lambda: norch.autograd.grad(p.sum(), None)),
    (TypeError, "backward: expected a tensor, not NoneType", lambda: norch.autograd.backward(None)),
    (TypeError, "backward: a gradient is a tensor, not int", lambda: p.sum().backward(3)),
    (TypeError, "register_hook: expected a function", lambda: p.register_hook(None)),
    (TypeError, "no_grad: decorates functions, not int", lambda: norch.no_grad(3)),
    (TypeError, "cross_entropy: expected a tensor, not NoneType", lambda: nn.CrossEntropyLoss()(x, None)),
    (TypeError, "cross_entropy: expected a tensor, not NoneType", lambda: nn.CrossEntropyLoss()(None, x)),
    (TypeError, "linear: argument 2 must be a tensor", lambda: F.linear(x, None)),
    (ValueError, "between 0 and 1, but got 'a'", lambda: nn.Dropout("a")),
    (ValueError, "between 0 and 1, but got None", lambda: F.dropout(x, None)),
    (ValueError, "invalid lr value: 'a'", lambda: optim.SGD([p], lr="a")),
    (ValueError, "invalid momentum value: None", lambda: optim.SGD([p], lr=1, momentum=None)),
    (ValueError, "betas are two numbers, not 3", lambda: optim.Adam([p], betas=3)),
    (ValueError, "invalid beta parameter at index 1", lambda: optim.Adam([p], betas=(0.5, "a"))),
    (ValueError, "expected what state_dict() gave", lambda: optim.SGD([p], lr=1).load_state_dict({})),
    (TypeError, "StepLR: expected an optimizer", lambda: optim.lr_scheduler.StepLR(None, 1)),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_what_is_wrong_is_said(number):
    error, message, call = CALLS[number]
    before = z.tolist(), p.tolist()
    with pytest.raises(error, match=re.escape(message)):
        call()
    assert (z.tolist(), p.tolist()) == before and p.grad is None
