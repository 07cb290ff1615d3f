"""What functions in C read beside their arguments, such as the precision of decimals: norch.capture and norch.compile
compare it, or refuse the function. Also values that are called through a container, and objects of unusual classes."""

import copy
import copyreg
import csv
import dataclasses
import datetime
import decimal
import importlib
import logging
import math
import os
import sys
import time
import weakref
from copyreg import dispatch_table
from decimal import Decimal

import pytest
from conftest import torch_or_skip

import norch

pytestmark = pytest.mark.host

ONE = Decimal(1)
TABLE = {"f": math.sin}
STEPS = [lambda v: 2.0]
MOMENT = datetime.datetime(2000, 1, 1)
LIST = [1]


class Copied:
    def __init__(self, k):
        self.k = k


COPIED, KEPT, PLAIN = Copied(5.0), [], norch.ones(1, requires_grad=True) * 1


def set_precision(digits):
    decimal.getcontext().prec = digits


def set_zone(name):
    os.environ["TZ"] = name
    time.tzset()


def refer(_):
    KEPT.append(weakref.ref(COPIED))


def retain(value):
    if value == 2:
        PLAIN.retain_grad()


WAYS = {
    "decimals by an operator": (lambda x: x * float(ONE / 3), set_precision, 8, 1),
    "decimals by the module": (lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)), set_precision, 8, 1),
    "decimals by import": (lambda x: x * float(__import__("decimal").Decimal(1) / 3), set_precision, 8, 1),
    "time zone": (lambda x: x * (MOMENT.timestamp() % 86400), set_zone, "UTC", "Asia/Tokyo"),
    "time zone of a class": (
        lambda x: x * datetime.datetime.fromtimestamp(0).hour,
        set_zone,
        "UTC",
        "Asia/Tokyo",
    ),
    "csv dialect": (
        lambda x: x * len(next(csv.reader(["a;b|c|d"], "norch"))),
        lambda sign: csv.register_dialect("norch", delimiter=sign),
        ";",
        "|",
    ),
    "csv limit": (lambda x: x * csv.field_size_limit(), csv.field_size_limit, 100, 200),
    "copyreg": (
        lambda x: x * copy.copy(COPIED).k,
        lambda k: copyreg.pickle(Copied, lambda _: (Copied, (k,))),
        2.0,
        3.0,
    ),
    "dict that a module imports": (
        lambda x: x * len(dispatch_table.get(Copied)(1)[1]),
        lambda n: dispatch_table.update({Copied: lambda _: (Copied, (1.0,) * n)}),
        1,
        3,
    ),
    "called entry of a dict": (lambda x: x * TABLE["f"](1.0), lambda f: TABLE.update(f=f), math.sin, math.cos),
    "called entry of a list": (
        lambda x: x * STEPS[0](1.0),
        lambda k: STEPS.__setitem__(0, lambda v: k),
        2.0,
        3.0,
    ),
    "retains_grad": (lambda x: x * (3.0 if PLAIN.retains_grad else 2.0), retain, 1, 2),
    "weak references": (lambda x: x * (1 + weakref.getweakrefcount(COPIED)), refer, 1, 2),
    "size of an object": (lambda x: x * sys.getsizeof(LIST), lambda n: LIST.extend(range(9 * n)), 1, 2),
}


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    zone, limit = os.environ.get("TZ"), csv.field_size_limit()
    with decimal.localcontext():
        yield
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    if hasattr(time, "tzset"):  # Windows has none
        time.tzset()
    csv.field_size_limit(limit)
    dispatch_table.pop(Copied, None)


def compared_or_refused(wrap, function, change, first, second):
    change(first)
    wrapped, x = wrap(function), norch.ones(1)
    try:
        for _ in range(5):
            wrapped(x)
    except norch.CaptureError as error:
        assert os.path.basename(__file__) in str(error)
        return
    before = function(x).tolist()
    change(second)
    assert function(x).tolist() != before
    for _ in range(5):
        assert wrapped(x).tolist() == function(x).tolist()


WRAPS = {"capture": norch.capture, "compile": lambda f: norch.compile(f, fullgraph=True)}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", WAYS)
def test_settings_that_change(name, wrap):
    compared_or_refused(WRAPS[wrap], *WAYS[name])


@pytest.mark.parametrize("wrap", WRAPS)
def test_numpys_handling_of_errors(wrap):
    np = pytest.importorskip("numpy")
    values = np.array([1.0, 0.0])

    def f(x):
        try:
            return x * (2.0 if np.isinf(1 / values).any() else 1.0)
        except FloatingPointError:
            return x * 3

    with np.errstate():
        compared_or_refused(WRAPS[wrap], f, lambda how: np.seterr(divide=how), "ignore", "raise")


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("how", ["item", "tolist", "numpy", "setting", "threads", "argument"])
def test_pytorchs_tensors_and_settings_are_refused(wrap, how):
    torch = torch_or_skip()
    if torch.Tensor is norch.Tensor:
        pytest.skip("torch is norch here")
    t = torch.tensor([2.0])
    function = {
        "item": lambda x: x * t.item(),
        "tolist": lambda x: x * t.tolist()[0],
        "numpy": lambda x: x * float(t.numpy()[0]),
        "setting": lambda x: x * (1 if torch.get_default_dtype() == torch.float32 else 2),
        "threads": lambda x: x * torch.get_num_threads(),
        "argument": lambda x, t=t: x * float(t),
    }[how]
    wrapped = WRAPS[wrap](function)
    with pytest.raises(norch.CaptureError, match=r"a tensor or a setting of PyTorch's(.|\n)*test_capture_settings"):
        for _ in range(3):
            wrapped(norch.ones(1))


@pytest.mark.parametrize("wrap", WRAPS)
def test_other_kinds_of_pytorchs_values(wrap):
    torch = torch_or_skip()
    if torch.Tensor is norch.Tensor:
        pytest.skip("torch is norch here")

    class Mine(torch.Tensor):
        pass

    mine = torch.ones(1).as_subclass(Mine)
    generator, storage = torch.Generator(), torch.ones(1).untyped_storage()
    for function in (lambda x: x * len(mine), lambda x: x * generator.initial_seed(), lambda x: x * storage.nbytes()):
        wrapped = WRAPS[wrap](function)
        with pytest.raises(norch.CaptureError, match="PyTorch|cannot be compared"):
            for _ in range(3):
                wrapped(norch.ones(1))


CONFIG = dataclasses.make_dataclass("Config", [("k", float)])(2.0)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("how", ["class", "logger", "dataclass", "module"])
def test_what_reaches_pytorchs_classes_is_recorded(wrap, how):
    """PyTorch is imported: loggers, copies and sys.modules lead to its classes and functions, which hold no numbers."""
    torch = torch_or_skip()
    importlib.import_module("torch._dynamo")  # which has handlers and ways to copy of its own
    function = {
        "class": lambda x: x * (3 if isinstance(x, torch.nn.Module) else 2),
        "logger": lambda x: x * (2 if logging.getLogger("norch.test").getEffectiveLevel() > 0 else 3),
        "dataclass": lambda x: x * dataclasses.asdict(CONFIG)["k"],
        "module": lambda x: x * (2 if sys.modules["math"].pi > 3 else 3),
    }[how]
    run = WRAPS[wrap](function)
    assert [run(norch.ones(1)).item() for _ in range(5)] == [2.0] * 5
    assert run.recordings() == 1


class Closed:
    def __getattribute__(self, name):
        return {"k": 2.0}[name]


class WithoutClass:
    k = 2.0

    @property
    def __class__(self):
        raise RuntimeError("no class")


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("held", [Closed, WithoutClass])
def test_objects_whose_class_cannot_be_asked_for(wrap, held):
    one = held()
    run = WRAPS[wrap](lambda x: x * one.k)
    assert [run(norch.ones(1)).item() for _ in range(5)] == [2.0] * 5
    taken = WRAPS[wrap](lambda x, one: x * one.k)
    assert [taken(norch.ones(1), one).item() for _ in range(5)] == [2.0] * 5
