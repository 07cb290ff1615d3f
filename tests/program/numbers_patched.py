"""Ways to change a number by patching what a library defines, and numbers in objects of C types, loggers and modules
that are looked up (test_capture_reads.py)."""

import argparse
import collections
import contextlib
import fractions
import functools
import logging
import operator
import os
import sys
import threading
import types

import pytest
from numbers_held import WAYS, Plain, of_attribute, way

import norch
from norch import nn


def numpy():
    return pytest.importorskip("numpy")


@contextlib.contextmanager
def restored():
    """Undoes patches."""
    try:
        yield
    finally:
        while PATCHES:
            PATCHES.pop()()


PATCHES = []


def patched(owner, name, make, read):
    """A way: owner.name becomes make(number)."""

    def change(value):
        found = vars(owner).get(name)
        PATCHES.append(
            (lambda: delattr(owner, name)) if name not in vars(owner) else (lambda: setattr(owner, name, found))
        )
        setattr(owner, name, make(value))

    return read, change


def owner_of(cls, name):
    return next(one for one in cls.__mro__ if name in vars(one))


# ---- patches --------------------------------------------------------------------------------------------------------


@way
def classmethod_set_up_anew():
    cls = type("Config", (), {"k": classmethod(lambda cls: 2.0)})
    return lambda x: x * cls.k(), lambda value: vars(cls)["k"].__init__(lambda cls: value)


@way
def staticmethod_set_up_anew():
    cls = type("Config", (), {"k": staticmethod(lambda: 2.0)})
    return lambda x: x * cls.k(), lambda value: vars(cls)["k"].__init__(lambda: value)


@way
def property_set_up_anew():
    config = type("Config", (), {"k": property(lambda self: 2.0)})()
    return lambda x: x * config.k, lambda value: vars(type(config))["k"].__init__(lambda self: value)


def x_times(v):
    """A function of a tensor among its arguments."""
    return lambda *args, **_: next(one for one in args if isinstance(one, norch.Tensor)) * v


def module_times(v):
    """What stands for norch.nn.functional."""
    return types.SimpleNamespace(hardtanh=x_times(v))


LAYERS = {
    "identity": nn.Identity(),
    "hardtanh": nn.Hardtanh(),
    "softplus": nn.Softplus(),
    "linear": nn.Linear(1, 1).requires_grad_(False),
}

for _name, (_owner, _attribute, _read) in {
    "call_of_modules": (nn.Module, "__call__", lambda x: LAYERS["identity"](x)),
    "forward_of_a_layer": (nn.Softplus, "forward", lambda x: LAYERS["softplus"](x)),
    "function_of_a_layers_module": (sys.modules[nn.Linear.__module__], "linear", lambda x: LAYERS["linear"](x)),
    "module_of_a_layers_module": (sys.modules[nn.Hardtanh.__module__], "F", lambda x: LAYERS["hardtanh"](x)),
    "function_of_norch": (norch, "exp", lambda x: norch.exp(x)),
    "functional": (nn.functional, "relu", lambda x: nn.functional.relu(x)),
    "operator_of_tensors": (norch.Tensor, "__sub__", lambda x: x - 1.0),
    "negation_in_the_class_that_has_it": (owner_of(norch.Tensor, "__neg__"), "__neg__", lambda x: -x),
    "method_in_the_class_that_has_it": (owner_of(norch.Tensor, "exp"), "exp", lambda x: x.exp()),
}.items():
    make = module_times if _attribute == "F" else x_times
    WAYS[f"patch_of_{_name}"] = functools.partial(patched, _owner, _attribute, make, _read)

for _name, _made, _attribute, _read in (
    ("fraction", fractions.Fraction(2), "__float__", float),
    ("counter", collections.Counter(), "__missing__", lambda c: 2.0 + c["z"]),
    ("namespace", argparse.Namespace(k=2.0), "__getattribute__", lambda c: c.k),
):
    WAYS[f"special_method_of_a_{_name}"] = functools.partial(
        patched, type(_made), _attribute, lambda v: lambda *_: v, lambda x, c=_made, read=_read: x * read(c)
    )


@way
def function_of_an_object_that_stands_for_a_module():
    module, layer = sys.modules[nn.Softmax2d.__module__], nn.Softmax2d()
    stand_in = types.SimpleNamespace(softmax=x_times(2.0))
    original = module.F
    PATCHES.append(lambda: setattr(module, "F", original))
    module.F = stand_in
    return (lambda x: layer(x.reshape(1, 1, 1)).flatten()), lambda v: setattr(stand_in, "softmax", x_times(v))


@way
def class_of_a_layer():
    model = nn.Sequential(nn.Identity())
    times = lambda v: type("Times", (nn.Identity,), {"forward": lambda self, x: x * v})  # noqa: E731
    return (lambda x: model(x) * 2.0), lambda v: setattr(model[0], "__class__", times(v / 2.0))


@way
def class_of_a_parameter():
    w = nn.Parameter(norch.ones(1), requires_grad=False)
    change = lambda v: setattr(w, "__class__", type("W", (nn.Parameter,), {"k": v}))  # noqa: E731
    return (lambda x: x * getattr(w, "k", 2.0)), change


@way
def getattr_of_a_module():
    module = types.ModuleType("norch_test")
    module.__getattr__ = lambda name: 2.0
    return (lambda x: x * module.k), lambda v: setattr(module, "__getattr__", lambda name: v)


# ---- objects of C types ---------------------------------------------------------------------------------------------


@way
def row_of_a_numpy_array():
    a = numpy().zeros(1, dtype=[("k", float)])
    a["k"] = 2.0
    row = a[0]
    return (lambda x: x * float(row["k"])), lambda v: a["k"].__setitem__(0, v)


@way
def cause_of_an_exception():
    error = ValueError()
    error.__cause__ = ValueError(2.0)
    return (lambda x: x * error.__cause__.args[0]), lambda v: setattr(error, "__cause__", ValueError(v))


@way
def number_of_an_error():
    error = OSError(2, "")
    return of_attribute(error, lambda x: x * float(error.errno), "errno")


@way
def file_that_is_closed():
    file = open(os.devnull, "w")  # noqa: SIM115
    return (lambda x: x * (3.0 if file.closed else 2.0)), lambda v: file.close()


@way
def equal_namespaces():
    a, b = types.SimpleNamespace(k=2.0), types.SimpleNamespace(k=2.0)
    return of_attribute(a, lambda x: x * (2.0 if a == b else 3.0))


@way
def attribute_of_a_tensor_added_later():
    w = norch.ones(1)

    def read(tensor):
        try:
            return tensor.k
        except AttributeError:
            return 2.0

    return of_attribute(w, lambda x: x * read(w))


@way
def attribute_named_as_one_of_tensors():
    holder = types.SimpleNamespace(shape=2.0)

    def read(one):
        return one.shape

    return of_attribute(holder, lambda x: x * read(x)[0] * read(holder), "shape")


def tensor_by(read):
    a, b = norch.ones(1), norch.ones(1)
    held, known = [a], id(a)
    return (lambda x: x * (2.0 if read(held) == known else 3.0)), lambda v: held.__setitem__(0, b if v == 3.0 else a)


@way
def identity_by_a_default():
    def read(held, of=id):
        return of(held[0])

    return tensor_by(read)


@way
def identity_by_map():
    return tensor_by(lambda held: next(map(id, held)))


@way
def directory_by_partial():
    read = functools.partial(os.getcwd)
    return (lambda x: x * float(len(read()))), lambda v: None


@way
def lock_without_waiting():
    lock = threading.Lock()

    def f(x):
        free = lock.acquire(False)
        if free:
            lock.release()
        return x * (2.0 if free else 3.0)

    return f, lambda v: lock.acquire(False)


# ---- loggers and modules that are looked up -------------------------------------------------------------------------


def of_logger(read, name="norch.test.patched"):
    logger = logging.getLogger(name)
    logger.setLevel(2)
    return (lambda x: x * float(read(logger))), lambda v: logger.setLevel(int(v))


for _name, _read in {
    "level": lambda logger: logging.getLogger(logger.name).level,
    "effective": lambda logger: operator.methodcaller("getEffectiveLevel")(logger),
    "child": lambda logger: logger.parent.getChild("patched").level,
    "bound": functools.partial(lambda get, logger: get(), logging.getLogger("norch.test.patched").getEffectiveLevel),
}.items():
    WAYS[f"logger_by_{_name}"] = functools.partial(of_logger, _read)


@way
def level_of_a_handler():
    logger, handler = logging.getLogger("norch.test.handled"), logging.NullHandler(2)
    logger.handlers[:] = [handler]
    return (lambda x: x * float(logger.handlers[0].level)), lambda v: handler.setLevel(int(v))


@way
def name_of_a_level():
    logging.addLevelName(33, "ab")
    return (lambda x: x * float(len(logging.getLevelName(33)))), lambda v: logging.addLevelName(33, "a" * int(v))


@way
def module_that_comes_later():
    def f(x):
        try:
            import norch_test_cfg
        except ImportError:
            return x * 2.0
        return x * norch_test_cfg.k

    def change(v):
        module = types.ModuleType("norch_test_cfg")
        module.k = v
        sys.modules["norch_test_cfg"] = module

    sys.modules.pop("norch_test_cfg", None)
    return f, change


# ---- what a function counts, and reads in another way ---------------------------------------------------------------


def counted(read):
    """Ways to read a number that the function itself counts."""
    holder = types.SimpleNamespace(n=0)

    def f(x):
        holder.n += 1
        return x * (2.0 if read(holder) < 9 else 3.0)

    return f, lambda v: None


for _name, _read in {
    "vars": lambda holder: vars(holder)["n"],
    "format": lambda holder: float("{.n}".format(holder)),  # noqa: UP032
    "equality": lambda holder: 9 if holder == types.SimpleNamespace(n=9) else 0,
    "getter": operator.attrgetter("n"),
}.items():
    WAYS[f"counter_by_{_name}"] = functools.partial(counted, _read)


@way
def counter_with_a_setter():
    seen = [2.0]

    class Counter:
        n = property(lambda self: self.k, lambda self, k: seen.__setitem__(0, 2.0 if k < 9 else 3.0))
        k = 0

    holder = Counter()

    def f(x):
        holder.n += 1
        holder.k += 1
        return x * seen[0]

    return f, lambda v: None


@way
def sum_of_an_own_class():
    seen, number = [2.0], Plain()
    number.k = 2.0
    cls = type("Sum", (), {"__iadd__": lambda self, other: seen.__setitem__(0, number.k) or self})
    holder = types.SimpleNamespace(n=cls())

    def f(x):
        holder.n += 1
        return x * seen[0]

    return of_attribute(number, f)
