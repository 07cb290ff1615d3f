"""Ways to reach a number by a function that takes the name of an attribute, through classes, and in what Python's and
norch's libraries hold (test_capture_reads.py)."""

import argparse
import builtins
import collections
import cProfile
import ctypes
import dataclasses
import decimal
import functools
import io
import linecache
import logging
import os
import re
import sys
import tempfile
import threading
import types
import unittest.mock

import pytest
from numbers_held import WAYS, Plain, of_attribute, way
from numbers_patched import PATCHES

import norch
from norch import nn, optim

get = getattr


def numpy():
    return pytest.importorskip("numpy")


DIRECTORY = tempfile.mkdtemp()


def held():
    holder = Plain()
    holder.k = 2.0
    return holder


def ways(makers, first):
    """Registers a way for each function of (holder, names): a function of a tensor and of nothing else."""
    for name, make in makers.items():

        def one(make=make):
            holder = held()
            return of_attribute(holder, make(holder, ["k"]))

        WAYS[f"{first}_{name}"] = one


# ---- functions that take a name -------------------------------------------------------------------------------------


def by_closure(c, names):
    alias = getattr
    return lambda x: x * alias(c, names[0])


def by_default(c, names):
    def f(x, alias=getattr, name="k"):
        return x * alias(c, name)

    return f


def by_bound(c, names):
    bound = c.__getattribute__
    return lambda x: x * bound("k")


def by_bound_format(c, names):
    bound = "{0.k}".format
    return lambda x: x * float(bound(c))


def by_partial(c, names):
    call = functools.partial(getattr, c, "k")
    return lambda x: x * call()


def by_list(c, names):
    functions = [getattr]
    return lambda x: x * functions[0](c, names[0])


ways(
    {
        "closure": by_closure, "default": by_default, "bound_method": by_bound, "bound_format": by_bound_format,
        "partial": by_partial, "list": by_list,
        "global": lambda c, names: lambda x: x * get(c, names[0]),
        "module": lambda c, names: lambda x: x * builtins.getattr(c, names[0]),
        "map": lambda c, names: lambda x: x * list(map(getattr, [c], names))[0],
        "reduce": lambda c, names: lambda x: x * functools.reduce(getattr, names, c),
    },
    "named_by",
)  # fmt: skip


@way
def class_attribute_of_computed_name():
    cls, names = type("A", (), {"k": 2.0}), ["k"]
    a = cls()
    return of_attribute(cls, lambda x: x * getattr(a, names[0]))


@way
def positional_pattern():
    @dataclasses.dataclass
    class A:
        k: float

    a = A(2.0)

    def f(x):
        match a:
            case A(value):
                return x * value

    return of_attribute(a, f)


@way
def global_of_computed_name():
    globals()["number_2"] = 2.0
    names = ["number_2"]
    return (lambda x: x * globals()[names[0]]), lambda v: globals().__setitem__("number_2", v)


@way
def global_by_get():
    globals()["number_3"] = 2.0
    n = 3
    return (lambda x: x * globals().get(f"number_{n}")), lambda v: globals().__setitem__("number_3", v)


@way
def free_variable_by_locals():
    k = 2.0

    def change(v):
        nonlocal k
        k = v

    def f(x):
        if x is None:
            return k
        return x * locals()["k"]

    return f, change


@way
def slot_by_its_descriptor():
    a = type("A", (), {"__slots__": ("k",)})()
    a.k, descriptor = 2.0, type(a).k
    return of_attribute(a, lambda x: x * descriptor.__get__(a))


@way
def default_of_a_field():
    @dataclasses.dataclass
    class A:
        k: float = dataclasses.field(default=2.0)

    return of_attribute(A.__dataclass_fields__["k"], lambda x: x * dataclasses.fields(A)[0].default, "default")


@way
def length_by_bound_method():
    items = [1, 1]
    length = items.__len__
    return (lambda x: x * float(length())), lambda v: items.append(1)


@way
def items_by_bound_method():
    items = [2.0]
    iterate, has = items.__iter__, items.__contains__
    return (lambda x: x * list(iterate())[0] * (1.0 + has(2.0))), lambda v: items.__setitem__(0, v)


# ---- classes --------------------------------------------------------------------------------------------------------


def of_meta(read, **attributes):
    meta = type("Meta", (type,), {"k": 2.0, **attributes})
    cls = meta("A", (), {})
    return of_attribute(meta, lambda x: x * read(cls))


@way
def metaclass_attribute():
    return of_meta(lambda cls: cls.k)


@way
def metaclass_attribute_of_an_instance():
    return of_meta(lambda cls: type(cls()).k)


@way
def metaclass_call():
    return of_meta(lambda cls: cls(), __call__=lambda cls: cls.k)


@way
def metaclass_getitem():
    return of_meta(lambda cls: cls["k"], __getitem__=lambda cls, name: cls.k)


def of_subclass(base, *args, **kwargs):
    cls = type("A", (base,), {"k": 2.0})
    a = cls(*args, **kwargs)
    return of_attribute(cls, lambda x: x * a.k)


for _base, _args in ((types.ModuleType, ("a",)), (collections.OrderedDict, ()), (functools.partial, (len,)),
                     (collections.defaultdict, (list,)), (nn.Parameter, (norch.ones(1),))):  # fmt: skip
    WAYS[f"subclass_of_{_base.__name__}"] = functools.partial(of_subclass, _base, *_args)


@way
def class_of_a_module():
    module = types.ModuleType("a")
    module.k = 2.0

    def change(v):
        module.__class__ = type("A", (types.ModuleType,), {"k": property(lambda self: v)})

    return (lambda x: x * module.k), change


@way
def dict_replaced():
    a = held()
    return (lambda x: x * a.k), lambda v: setattr(a, "__dict__", {"k": v})


@way
def dict_of_a_layer_replaced():
    layer = nn.LeakyReLU(2.0)
    return (lambda x: layer(-x)), lambda v: setattr(layer, "__dict__", {**layer.__dict__, "negative_slope": v})


@way
def dict_of_a_named_tuple_replaced():
    a = type("A", (collections.namedtuple("B", "z"),), {})(1)
    a.k = 2.0
    return (lambda x: x * a.k), lambda v: setattr(a, "__dict__", {"k": v})


def patched(cls, read, name="norch_number"):
    PATCHES.append(lambda: delattr(cls, name))
    setattr(cls, name, 2.0)
    return of_attribute(cls, read, name)


@way
def patch_of_layers():
    layer = nn.Identity()
    return patched(nn.Module, lambda x: x * layer.norch_number)


@way
def patch_of_tensors():
    return patched(norch.Tensor, lambda x: x * x.norch_number)


@way
def patch_of_pythons_classes():
    names = argparse.Namespace()
    return patched(argparse.Namespace, lambda x: x * names.norch_number)


@way
def patched_forward():
    original = nn.Hardswish.forward
    PATCHES.append(lambda: setattr(nn.Hardswish, "forward", original))
    nn.Hardswish.forward = lambda self, x: x * 2.0
    layer = nn.Hardswish()
    return (lambda x: layer(x)), lambda v: setattr(nn.Hardswish, "forward", lambda self, x: x * v)


@way
def subclasses():
    base, kept = type("A", (), {}), []
    return (lambda x: x * float(2 + len(base.__subclasses__()))), lambda v: kept.append(type("B", (base,), {}))


# ---- what libraries hold --------------------------------------------------------------------------------------------


@way
def list_of_a_module_imported_inside():
    os.norch_numbers = [2.0]

    def f(x):
        import os

        return x * os.norch_numbers[0]

    return f, lambda v: os.norch_numbers.__setitem__(0, v)


@way
def object_imported_inside():
    os.norch_holder = held()

    def f(x):
        from os import norch_holder

        return x * norch_holder.k

    return f, lambda v: setattr(os.norch_holder, "k", v)


@way
def level_of_a_logger():
    logger = logging.getLogger("norch.test")
    logger.setLevel(logging.WARNING)
    return (lambda x: x * (3.0 if logger.isEnabledFor(logging.DEBUG) else 2.0)), lambda v: logger.setLevel(
        logging.DEBUG
    )


@way
def mock():
    return of_attribute(m := unittest.mock.Mock(k=2.0), lambda x: x * m.k)


@way
def lock_that_is_held():
    lock = threading.Lock()
    return (lambda x: x * (3.0 if lock.locked() else 2.0)), lambda v: lock.locked() or lock.acquire()


@way
def precision_of_decimals():
    decimal.getcontext().prec = 28
    a, b = decimal.Decimal(1), decimal.Decimal(7)
    return (lambda x: x * float(a / b)), lambda v: setattr(decimal.getcontext(), "prec", int(v))


@way
def polynomial_of_numpy():
    return of_attribute(p := numpy().polynomial.Polynomial([2.0]), lambda x: x * float(p(1.0)), "coef")


@way
def flat_iterator_of_numpy():
    a = numpy().array([2.0])
    flat = a.flat
    return (lambda x: x * float(flat[0])), lambda v: a.__setitem__(0, v)


@way
def vectorized_function():
    w = numpy().vectorize(lambda a: a * 2.0)
    return (lambda x: x * float(w(1.0))), lambda v: setattr(w, "pyfunc", lambda a: a * v)


@way
def error_state_of_numpy():
    numpy().seterr(divide="warn")
    change = lambda v: numpy().seterr(divide="ignore")  # noqa: E731
    return (lambda x: x * (2.0 if numpy().geterr()["divide"] == "warn" else 3.0)), change


@way
def state_of_an_optimizer():
    optimizer = optim.SGD([norch.ones(1, requires_grad=True)], lr=2.0)
    group = optimizer.param_groups[0]
    return (lambda x: x * optimizer.state_dict()["param_groups"][0]["lr"]), lambda v: group.__setitem__("lr", v)


@way
def state_of_a_schedule():
    schedule = optim.lr_scheduler.StepLR(optim.SGD([norch.ones(1, requires_grad=True)], lr=2.0), 1)
    return (lambda x: x * float(schedule.state_dict()["last_epoch"] + 2)), lambda v: schedule.step()


# ---- files, threads and profilers -----------------------------------------------------------------------------------


def of_file(write, read):
    path = os.path.join(DIRECTORY, "numbers")
    write(path, 2.0)
    return (lambda x: x * read(path)), lambda v: write(path, v)


def write_text(path, value):
    linecache.clearcache()
    with open(path, "w") as file:
        file.write(f"{value}\n")


def write_array(path, value):
    with open(path, "wb") as file:
        numpy().save(file, numpy().array([value]))


for _name, _write, _read in (
    ("text_of_numpy", write_text, lambda path: float(numpy().loadtxt(path))),
    ("bytes_of_numpy", lambda path, v: numpy().array([v]).tofile(path), lambda path: float(numpy().fromfile(path)[0])),
    ("array_of_numpy", write_array, lambda path: float(numpy().load(path)[0])),
    ("file_of_norch", lambda path, v: norch.save({"k": v}, path), lambda path: norch.load(path)["k"]),
    ("tensor_of_norch", lambda path, v: norch.save(norch.tensor([v]), path), lambda path: norch.load(path)),
    ("line_of_a_file", write_text, lambda path: float(linecache.getline(path, 1))),
):
    WAYS[_name] = functools.partial(of_file, _write, _read)


@way
def lines_of_an_open_file():
    path = os.path.join(DIRECTORY, "lines")
    write_text(path, 2.0)
    file = open(path)  # noqa: SIM115

    def f(x):
        file.seek(0)
        return x * float(next(iter(file)))

    return f, functools.partial(write_text, path)


@way
def lines_of_a_text_in_memory():
    text = io.StringIO("2.0\n")

    def f(x):
        text.seek(0)
        return x * float(list(text)[0])

    def change(v):
        text.seek(0)
        text.write(str(v))

    return f, change


@way
def number_in_a_thread():
    holder = held()

    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(holder.k))
        thread.start()
        thread.join()
        return x * found[0]

    return of_attribute(holder, f)


@way
def number_under_a_profiler():
    holder = held()

    def f(x):
        with cProfile.Profile():
            k = (lambda: holder.k)()
        return x * k

    return of_attribute(holder, f)


@way
def number_without_profile_function():
    holder = held()

    def f(x):
        sys.setprofile(None)
        return x * holder.k

    return of_attribute(holder, f)


@way
def function_of_a_c_library():
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    library.setenv(b"NORCH_TEST_NUMBER", b"2.0", 1)
    change = lambda v: library.setenv(b"NORCH_TEST_NUMBER", str(v).encode(), 1)  # noqa: E731
    return (lambda x: x * float(library.getenv(b"NORCH_TEST_NUMBER"))), change


@way
def match_of_a_pattern():
    found = [re.match("(.*)", "2.0")]
    return (lambda x: x * float(found[0].group(1))), lambda v: found.__setitem__(0, re.match("(.*)", str(v)))
