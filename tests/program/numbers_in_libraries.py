"""Ways to hold a number in what libraries call or hold for the program: hooks, objects of C and of typing that hold
others; and in modules and classes with the names of a library's (test_capture_reads.py)."""

import contextvars
import datetime
import functools
import importlib.util
import json
import operator
import pathlib
import sys
import tempfile
import textwrap
import typing
import zoneinfo

import pytest
from numbers_held import WAYS, Plain, of_attribute, way

import norch
from norch import nn, optim

# ---- hooks ----------------------------------------------------------------------------------------------------------


class Scale(Plain):
    """Hooks of each kind, as methods: they multiply by k."""

    def gradient(self, g):
        return g * self.k

    def leaf(self, w):
        w.grad.mul_(self.k)

    def node(self, inputs, outputs):
        return tuple(None if g is None else g * self.k for g in inputs)

    def before_node(self, outputs):
        return (outputs[0] * self.k,)

    def forward(self, module, args, out=None):
        return args[0] * self.k if out is None else out * self.k

    def backward(self, module, inputs, outputs=None):
        return tuple(g * self.k for g in inputs)

    def step(self, optimizer, args, kwargs):
        optimizer.param_groups[0]["params"][0].grad.mul_(self.k)


class Called(Plain):
    """A callable object over one of the methods."""

    def __init__(self, method):
        self._method = method

    def __call__(self, *args):
        return getattr(Scale, self._method)(self, *args)


def bound(method):
    holder = Scale()
    holder.k = 2.0
    return holder, getattr(holder, method)


def called(method):
    holder = Called(method)
    holder.k = 2.0
    return holder, holder


def partial(method):
    holder = Scale()
    holder.k = 2.0
    return holder, functools.partial(getattr(Scale, method), holder)


def gradient_of(w, y):
    """A function of x that gives the gradient of y x by w."""

    def f(x):
        w.grad = None
        (y * x.detach()).sum().backward(retain_graph=True)
        return w.grad.detach() * 1

    return f


def leaf(add):
    w = norch.ones(1, requires_grad=True)
    add(w)
    return gradient_of(w, w)


def result(add):
    w = norch.ones(1, requires_grad=True)
    y = w * 3
    add(y)
    return gradient_of(w, y)


def grad_of_leaf(add):
    w = norch.ones(1, requires_grad=True)
    add(w)
    return lambda x: norch.autograd.grad((w * x.detach()).sum(), w)[0]


def step_of(add_to_parameter=None, add_to_optimizer=None):
    layer = nn.Linear(1, 1, bias=False)
    optimizer = optim.SGD(layer.parameters(), lr=1.0)
    if add_to_parameter:
        add_to_parameter(layer.weight)
    if add_to_optimizer:
        add_to_optimizer(optimizer)

    def f(x):
        with norch.no_grad():
            layer.weight.fill_(1.0)
        optimizer.zero_grad()
        layer(x.detach()[None]).sum().backward()
        optimizer.step()
        return layer.weight.detach()[0] * 1

    return f


def module_of(add):
    layer = nn.Tanh()
    add(layer)
    w = norch.ones(1, requires_grad=True)

    def f(x):
        w.grad = None
        layer(w * x.detach()).sum().backward()
        return w.grad.detach() * 1

    return f


HOOKS = {
    "gradient": lambda hook: leaf(lambda w: w.register_hook(hook)),
    "leaf": lambda hook: leaf(lambda w: w.register_post_accumulate_grad_hook(hook)),
    "node": lambda hook: result(lambda y: y.grad_fn.register_hook(hook)),
    "before_node": lambda hook: result(lambda y: y.grad_fn.register_prehook(hook)),
    "gradient of a result": lambda hook: result(lambda y: y.register_hook(hook)),
    "gradient in grad()": lambda hook: grad_of_leaf(lambda w: w.register_hook(hook)),
    "gradient of a parameter": lambda hook: step_of(lambda w: w.register_hook(hook)),
    "leaf of a step": lambda hook: step_of(lambda w: w.register_post_accumulate_grad_hook(hook)),
    "step": lambda hook: step_of(None, lambda optimizer: optimizer.register_step_pre_hook(hook)),
    "forward": lambda hook: module_of(lambda layer: layer.register_forward_hook(hook)),
    "forward before": lambda hook: module_of(lambda layer: layer.register_forward_pre_hook(hook)),
    "backward": lambda hook: module_of(lambda layer: layer.register_full_backward_hook(hook)),
    "backward before": lambda hook: module_of(lambda layer: layer.register_full_backward_pre_hook(hook)),
}


def hooked(add, make, method):
    def one():
        holder, hook = make(method)
        return of_attribute(holder, add(hook))

    return one


for name, add in HOOKS.items():
    for make in (bound, called, partial):
        WAYS[f"hook_{name.replace(' ', '_')}_{make.__name__}"] = hooked(add, make, name.partition(" ")[0])


def hook_on_a_result_added_later():
    w = norch.ones(1, requires_grad=True)
    y = w * 3
    handles = []

    def change(value):
        for handle in handles:
            handle.remove()
        handles[:] = [y.register_hook(lambda g: g * value)]

    change(2.0)
    return gradient_of(w, y), change


WAYS["hook_on_a_result_added_later"] = hook_on_a_result_added_later


# ---- modules and classes of the program with names of a library's -------------------------------------------------

FOLDER = pathlib.Path(tempfile.mkdtemp())


def module_named(name):
    """A new module of the program's, with a class and a list."""
    file = FOLDER / f"{name}.py"
    file.write_text("table = [2.0]\nclass Config:\n    k = 2.0\n    def get(self): return self.k\n")
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(name)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if known is not None:
        sys.modules[name] = known
    return module


def of_list(held, function):
    return function, lambda value: held.__setitem__(0, value)


def in_object(name):
    holder = Plain()
    holder.m = module_named(name)
    return of_list(holder.m.table, lambda x: x * holder.m.table[0])


def object_of_class(name):
    held = module_named(name).Config()
    held.k = 2.0
    return of_attribute(held, lambda x: x * held.k)


def class_of(name):
    cls = module_named(name).Config
    return of_attribute(cls, lambda x: x * cls().get())


NAMES = ["typings_cfg", "warnings_of_mine", "typing", "code", "textwrap", "unittest.case.mine", "re", "decimal"]
for name in NAMES:
    for make in (in_object, object_of_class, class_of):
        WAYS[f"{make.__name__}_{name}"] = functools.partial(make, name)


@way
def class_that_says_it_is_of_a_library():
    cls = type("Decimal", (Plain,), {"__module__": "decimal"})
    held = cls()
    held.k = 2.0
    return of_attribute(held, lambda x: x * held.k)


@way
def attribute_added_to_a_module_of_a_library():
    textwrap.zz = [2.0]
    holder = Plain()
    holder.m = textwrap
    return of_list(textwrap.zz, lambda x: x * holder.m.zz[0])


# ---- objects that hold others ---------------------------------------------------------------------------------------


class Zone(datetime.tzinfo):
    def utcoffset(self, day):
        return datetime.timedelta(hours=int(self.k))


class Index(Plain):
    def __index__(self):
        return int(self.k)


class Reads(Plain):
    def __call__(self, *_):
        return self.k

    def get(self, other):
        return other.k


class Raises(Plain):
    def __call__(self, _):
        raise KeyError(self.k)


def numpy():
    return pytest.importorskip("numpy")


def holds(make, cls=Plain):
    """make(holder) gives a function without arguments that reads the number."""

    def one():
        holder = cls()
        holder.k = 2.0
        read = make(holder)
        return of_attribute(holder, lambda x: x * read())

    return one


def holds_class(make):
    """As holds(), of a class."""

    def one():
        cls = type("Held", (), {"k": 2.0})
        read = make(cls)
        return of_attribute(cls, lambda x: x * read())

    return one


def deleter(holder):
    owner = type("Deletes", (), {"now": property(None, None, holder)})()

    def read():
        try:
            del owner.now
        except KeyError as error:
            return error.args[0]

    return read


def bound(f, *values):
    """f of these values, made once: an object that the function holds."""
    return functools.partial(f, *values)


def row_of_objects(holder):
    row = numpy().array([(holder,)], dtype=[("o", object)])[0]
    return lambda: row["o"].k


def records_of_objects(holder):
    records = numpy().array([(holder, 1.0), (holder, 2.0)], dtype=[("o", object), ("n", "f8")])
    return lambda: records["o"][1].k


def metadata_of_a_dtype(holder):
    dtype = numpy().dtype("f8", metadata={"h": holder})
    return lambda: dtype.metadata["h"].k


def metadata_of_the_dtype_of_an_array(holder):
    held = numpy().zeros(1, dtype=numpy().dtype("f8", metadata={"h": holder}))
    return lambda: held.dtype.metadata["h"].k


def metadata_of_a_field(holder):
    dtype = numpy().dtype([("a", numpy().dtype("f8", metadata={"h": holder}))])
    return lambda: dtype.fields["a"][0].metadata["h"].k


def function_of_numpy(holder):
    up = numpy().frompyfunc(holder, 1, 1)
    return lambda: up(1)


def time_with_zone(holder):
    noon = datetime.time(12, tzinfo=holder)
    return lambda: noon.utcoffset().total_seconds() / 3600


def day_with_zone(holder):
    day = type("Day", (datetime.datetime,), {})(2000, 1, 1, tzinfo=holder)
    return lambda: day.utcoffset().total_seconds() / 3600


HOLDS = {
    "slice": lambda h: bound(lambda s: s.start.k, slice(h, None)),
    "annotated": lambda h: bound(lambda a: a.__metadata__[0].k, typing.Annotated[float, h]),
    "arguments_by_function": lambda h: bound(lambda a: typing.get_args(a)[1].k, typing.Annotated[float, h]),
    "context_variable_default": lambda h: bound(lambda c: c.get().k, contextvars.ContextVar("held", default=h)),
    "row_of_objects": row_of_objects, "records_of_objects": records_of_objects,
    "metadata_of_a_dtype": metadata_of_a_dtype, "metadata_of_a_field": metadata_of_a_field,
    "metadata_of_the_dtype_of_an_array": metadata_of_the_dtype_of_an_array,
}  # fmt: skip
HOLDS_CLASS = {
    "list_of": lambda c: bound(lambda a: a.__args__[0].k, list[c]),
    "union": lambda c: bound(lambda a: a.__args__[1].k, int | c),
    "typing_list": lambda c: bound(lambda a: a.__args__[0].k, typing.List[c]),  # noqa: UP006
    "typing_union": lambda c: bound(lambda a: a.__args__[1].k, typing.Union[int, c]),  # noqa: UP007
    "get_args": lambda c: bound(lambda a: typing.get_args(a)[0].k, dict[c, int]),
    "supertype": lambda c: bound(lambda a: a.__supertype__.k, typing.NewType("New", c)),
    "bound_of_a_variable": lambda c: bound(lambda a: a.__bound__.k, typing.TypeVar("T", bound=c)),
    "constraints": lambda c: bound(lambda a: a.__constraints__[1].k, typing.TypeVar("T", int, c)),
}
HOLDS_CALLED = {
    "hook_of_a_decoder": lambda h: bound(lambda d: d.decode("{}"), json.JSONDecoder(object_hook=h)),
    "float_of_a_decoder": lambda h: bound(lambda d: d.decode("1.5"), json.JSONDecoder(parse_float=h)),
    "default_of_an_encoder": lambda h: bound(lambda e: float(e.encode({1})), json.JSONEncoder(default=h)),
    "function_of_numpy": function_of_numpy,
    "methodcaller": lambda h: bound(lambda m: m(Reads()), operator.methodcaller("get", h)),
}
WAYS |= {f"held_by_{name}": holds(make) for name, make in HOLDS.items()}
WAYS |= {f"held_by_{name}": holds_class(make) for name, make in HOLDS_CLASS.items()}
WAYS |= {f"held_by_{name}": holds(make, Reads) for name, make in HOLDS_CALLED.items()}
WAYS |= {f"held_by_{make.__name__}": holds(make, Zone) for make in (time_with_zone, day_with_zone)}
WAYS["held_by_deleter"] = holds(deleter, Raises)
WAYS["held_by_itemgetter"] = holds(lambda h: bound(operator.itemgetter(h), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), Index)


@way
def slot_of_a_spline():
    interpolate = pytest.importorskip("scipy.interpolate")
    spline = interpolate.PPoly(numpy().array([[2.0]]), numpy().array([0.0, 1.0]))
    return lambda x: x * float(spline(0.5)), lambda value: setattr(spline, "c", numpy().array([[value]]))


@way
def coefficients_of_a_spline():
    interpolate = pytest.importorskip("scipy.interpolate")
    spline = interpolate.CubicSpline(numpy().arange(3.0), numpy().full(3, 2.0))
    return lambda x: x * float(spline(0.0)), lambda value: spline.c.__setitem__((3, 0), value)


@way
def time_zone_of_a_library():
    holder = Plain()
    holder.k, zone = 2.0, datetime.datetime(2000, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC"))
    return of_attribute(holder, lambda x: x * (holder.k + zone.utcoffset().total_seconds()))
