"""More ways to read a number in a captured function: by names that do not stand in it, and by counting its own calls
(test_capture_reads.py)."""

import abc
import builtins
import collections.abc
import functools
import inspect
import io
import math
import operator
import pathlib
import pickle
import re
import sys
import tempfile
import types
import typing

from numbers_held import WAYS, Plain, of_attribute, way
from numbers_patched import PATCHES
from numbers_read import fresh_module

import norch
from norch import nn

# ---- classes that are registered with abstract ones -----------------------------------------------------------------


def matches(b, base):
    match b:
        case base():
            return True
    return False


def dispatches(b, base):
    number = functools.singledispatch(lambda b: False)
    number.register(base, lambda b: True)
    return lambda: number(b)


is_instance, IN_A_DICT = isinstance, {"f": issubclass}

# {name: function that returns whether b is an instance of base}
ASKS = {
    "isinstance": lambda b, base: lambda: isinstance(b, base),
    "isinstance_by_another_name": lambda b, base: lambda: is_instance(b, base),
    "isinstance_of_builtins": lambda b, base: lambda: builtins.isinstance(b, base),
    "isinstance_by_map": lambda b, base: lambda: any(map(isinstance, [b], [base])),
    "isinstance_by_partial": lambda b, base: functools.partial(functools.partial(isinstance, b), base),
    "isinstance_of_a_union": lambda b, base: lambda: isinstance(b, typing.Optional[base]),  # noqa: UP045
    "issubclass_in_a_dict": lambda b, base: lambda: IN_A_DICT["f"](type(b), base),
    "method_of_the_base": lambda b, base: lambda: base.__instancecheck__(b),
    "match": lambda b, base: lambda: matches(b, base),
    "single_dispatch": dispatches,
}


def registered(ask, base):
    cls = type("B", (), {"__len__": lambda self: 1, "__getitem__": lambda self, i: (0,)[i]})
    asks = ask(cls(), base)
    return (lambda x: x * (3.0 if asks() else 2.0)), lambda value: base.register(cls)


for kind, ask in ASKS.items():

    @way
    def class_that_is_registered(ask=ask):
        return registered(ask, abc.ABCMeta("A", (), {}))

    WAYS[f"registered_{kind}"] = WAYS.pop(class_that_is_registered.__name__)


def is_sequence(b):
    match b:
        case [_]:
            return True
    return False


@way
def registered_pattern_of_sequences():
    return registered(lambda b, base: lambda: is_sequence(b), collections.abc.Sequence)


# ---- modules as values ----------------------------------------------------------------------------------------------


@way
def name_that_a_module_computes():
    module, values = types.ModuleType("computes"), []
    module.__getattr__ = lambda name: 2.0
    values.append(module)

    def read(x):
        held = values[0]
        return x * held.k

    return of_attribute(module, read)


@way
def name_that_a_module_of_the_library_lacks():
    modules = [math]

    def read(x):
        held = modules[0]
        try:
            return x * held.norch_number
        except AttributeError:
            return x * 2.0

    PATCHES.append(lambda: vars(math).pop("norch_number", None))
    return of_attribute(math, read, "norch_number")


# ---- by other names -------------------------------------------------------------------------------------------------


@way
def attribute_getter():
    holder, get = Plain(), operator.attrgetter("k")
    return of_attribute(holder, lambda x: x * get(holder))


@way
def method_caller():
    holder = type("Holder", (), {"k": 2.0, "number": lambda self: self.k})()
    call = operator.methodcaller("number")
    return of_attribute(holder, lambda x: x * call(holder))


@way
def format_of_an_attribute():
    holder = Plain()
    return of_attribute(holder, lambda x: x * float(f"{holder.k}"))


@way
def module_of_computed_name():
    module = sys.modules["norch_test_cfg"] = fresh_module("k = 2.0")
    return of_attribute(module, lambda x: x * sys.modules["norch_test_" + "cfg"[: len(x) + 2]].k)


def imported_by(statement, expression="k"):
    """A function of norch_test_cfg.inner.user with an import of norch_test_cfg.numbers, or of norch_test_cfg.inner."""
    modules = {}
    for name in ("", ".numbers", ".inner", ".inner.numbers", ".inner.user"):
        module = modules[name] = sys.modules["norch_test_cfg" + name] = types.ModuleType("norch_test_cfg" + name)
        module.__package__ = module.__name__ if name in ("", ".inner") else module.__name__.rpartition(".")[0]
        if name:
            parent, _, last = name.rpartition(".")
            setattr(modules[parent], last, module)
    numbers = modules[".inner.numbers" if statement.startswith(("from .n", "from . ")) else ".numbers"]
    numbers.k = 2.0
    text = f"def f(x):\n    {statement}\n    return x * {expression}"
    exec(compile(text, __file__, "exec"), modules[".inner.user"].__dict__)
    return of_attribute(numbers, modules[".inner.user"].f)


@way
def imported_from_the_package():
    return imported_by("from .numbers import k")


@way
def imported_from_the_package_above():
    return imported_by("from ..numbers import k")


@way
def module_of_the_package():
    return imported_by("from . import numbers", "numbers.k")


@way
def module_of_the_package_above():
    return imported_by("from .. import numbers", "numbers.k")


@way
def module_by_its_path():
    return imported_by("import norch_test_cfg.numbers", "norch_test_cfg.numbers.k")


@way
def module_that_replaces_an_attribute_of_the_package():
    function, _ = module_by_its_path()
    package = sys.modules["norch_test_cfg"]
    return function, lambda value: setattr(package, "numbers", types.SimpleNamespace(k=value))


EVALUATED = 2.0


@way
def annotation_that_a_signature_evaluates():
    def f():
        pass

    f.__annotations__ = {"return": "EVALUATED"}
    globals()["EVALUATED"] = 2.0
    return (lambda x: x * inspect.signature(f, eval_str=True).return_annotation), lambda value: globals().update(
        EVALUATED=value
    )


@way
def default_in_a_signature():
    def f(k=2.0):
        pass

    return (lambda x: x * inspect.signature(f).parameters["k"].default), lambda v: setattr(f, "__defaults__", (v,))


@way
def annotations_in_a_signature():
    def f():
        pass

    f.__annotations__ = {"return": 2.0}
    return (lambda x: x * inspect.signature(f).return_annotation), lambda v: setattr(
        f, "__annotations__", {"return": v}
    )


@way
def signature_of_a_function():
    def f(a, b):
        pass

    def change(value):
        names = [inspect.Parameter(f"p{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(int(value))]
        f.__signature__ = inspect.Signature(names)

    return (lambda x: x * float(len(inspect.signature(f).parameters))), change


@way
def signature_of_what_is_wrapped():
    def f(a, b):
        pass

    wrapped = {2: lambda a, b: 0, 3: lambda a, b, c: 0, 5: lambda a, b, c, d, e: 0}
    return (lambda x: x * float(len(inspect.signature(f).parameters))), lambda v: setattr(
        f, "__wrapped__", wrapped[int(v)]
    )


@way
def signature_of_a_callable_object():
    cls = type("Callable", (), {"__call__": lambda self, a, b: 0})
    calls = {2: lambda self, a, b: 0, 3: lambda self, a, b, c: 0, 5: lambda self, a, b, c, d, e: 0}
    held = cls()
    return (lambda x: x * float(len(inspect.signature(held).parameters))), lambda v: setattr(
        cls, "__call__", calls[int(v)]
    )


@way
def method_of_a_pattern():
    holder = Plain()
    holder.k = re.compile("a{2}").search
    return (lambda x: x * float(len(holder.k("aaaaaaa")[0]))), lambda v: setattr(
        holder, "k", re.compile(f"a{{{int(v)}}}").search
    )


@way
def dict_of_a_module():
    module = fresh_module("k = 2.0")
    return of_attribute(module, lambda x: x * module.__dict__["k"])


@way
def name_of_a_class():
    cls = type("AB", (), {})
    return (lambda x: x * float(len(cls.__name__))), lambda value: setattr(cls, "__name__", "A" * int(value))


def named_by_repr(definition):
    definition.__qualname__ = "aa"
    length = len(repr(definition)) - 2  # with the module, and the address of a function
    return (lambda x: x * float(len(repr(definition)) - length)), lambda v: setattr(
        definition, "__qualname__", "a" * int(v)
    )


@way
def class_named_by_repr():
    return named_by_repr(type("Named", (), {}))


@way
def function_named_by_repr():
    return named_by_repr(lambda: None)


@way
def module_of_a_class_by_repr():
    cls = type("Named", (), {"__module__": "aa"})
    length = len(repr(cls)) - 2
    return (lambda x: x * float(len(repr(cls)) - length)), lambda v: setattr(cls, "__module__", "a" * int(v))


class Pickled:
    k = 2.0


@way
def class_in_a_pickle():
    Pickled.k, text = 2.0, pickle.dumps(Pickled)
    return of_attribute(Pickled, lambda x: x * pickle.loads(text).k)


@way
def class_in_a_pickle_by_an_object():
    Pickled.k, text = 2.0, pickle.dumps(Pickled)
    return of_attribute(Pickled, lambda x: x * pickle.Unpickler(io.BytesIO(text)).load().k)


def method_of_a_differentiable_function(name):
    class Scaled(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * (2.0 if name == "forward" else 1.0)

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    w = nn.Parameter(norch.ones(1))

    def f(x):
        w.grad = None
        y = Scaled.apply(w * x.detach())
        y.sum().backward()
        return y.detach() + w.grad

    return f, lambda v: setattr(Scaled, name, staticmethod(lambda ctx, x: x * v))


@way
def forward_of_a_differentiable_function():
    return method_of_a_differentiable_function("forward")


@way
def backward_of_a_differentiable_function():
    return method_of_a_differentiable_function("backward")


def of_file(read):
    path = pathlib.Path(tempfile.mkdtemp()) / "number"
    path.write_text("2.0")
    return (lambda x: x * float(read(str(path)))), lambda v: path.write_text(str(v))


@way
def line_of_a_raw_file():
    return of_file(lambda path: next(iter(io.FileIO(path))))


@way
def data_of_a_loader():
    return of_file(lambda path: __loader__.get_data(path))


@way
def constant_of_a_function():
    def h():
        return 2.0

    def change(value):
        h.__code__ = h.__code__.replace(co_consts=(None, value))

    return (lambda x: x * h.__code__.co_consts[-1]), change


@way
def attribute_in_place_of_another():
    holder = Plain()
    holder.unread = 1

    def f(x):
        try:
            return x * holder.later
        except AttributeError:
            return x * 2.0

    return f, lambda value: (vars(holder).pop("unread", None), setattr(holder, "later", value))


@way
def seed_of_a_generator():
    generator = norch.Generator()
    generator.manual_seed(2)
    return (lambda x: x * float(generator.initial_seed())), lambda value: generator.manual_seed(int(value))


@way
def frozen_parameters():
    layer = nn.Linear(2, 2)
    f = lambda x: x * float(1 + sum(p.requires_grad for p in layer.parameters()))  # noqa: E731
    return f, lambda value: layer.bias.requires_grad_(value == 5.0)


@way
def number_in_the_gradient():
    holder = Plain()
    holder.k = 2.0

    class Scale(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g * holder.k

    return of_attribute(holder, Scale.apply)


@way
def limit_of_the_interpreter():
    return (lambda x: x * float(sys.getrecursionlimit())), lambda value: None


# ---- counted by the function itself ---------------------------------------------------------------------------------


def counted(count):
    return (lambda x: x * (2.0 if count() < 8 else 3.0)), lambda value: None


@way
def counter_in_a_closure():
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return calls

    return counted(count)


@way
def counter_in_a_list():
    calls = []
    return counted(lambda: calls.append(1) or len(calls))


@way
def counter_in_defaults():
    def count(calls=[0]):  # noqa: B006
        calls[0] += 1
        return calls[0]

    return counted(count)


@way
def counter_in_an_attribute():
    def count():
        count.calls = getattr(count, "calls", 0) + 1
        return count.calls

    return counted(count)


@way
def counter_in_a_module():
    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return x * (2.0 if self.calls < 8 else 3.0)

    return type("Counts", (nn.Module,), {"forward": forward})(), lambda value: None
