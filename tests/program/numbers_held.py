"""Ways to hold a number that a captured function reads: modules, objects, containers (test_capture_reads.py)."""

import array
import collections
import dataclasses
import enum
import functools
import types
import weakref

import pytest

import norch
from norch import nn

WAYS = {}


def way(make):
    """Registers make(): a function of a tensor, and a function that changes the number 2.0 that it reads to another."""
    WAYS[make.__name__] = make
    return make


def of_attribute(holder, function, name="k"):
    return function, lambda value: setattr(holder, name, value)


class Plain:
    k = 2.0


# ---- modules --------------------------------------------------------------------------------------------------------


class Scaled(nn.Module):
    shared = 2.0

    def __init__(self):
        super().__init__()
        self._scale, self.scale, self.items, self.table, self.held = 2.0, 2.0, [2.0], {"k": [2.0]}, Plain()
        self.held.k = 2.0
        self.register_buffer("one", norch.ones(1))
        self.child = nn.Identity()


def of_module(forward, change):
    module = type("Reader", (Scaled,), {"forward": forward})()
    return module, functools.partial(change, module)


@way
def module_attribute():
    return of_module(lambda self, x: x * self.scale, lambda m, v: setattr(m, "scale", v))


@way
def module_attribute_with_underscore():
    return of_module(lambda self, x: x * self._scale, lambda m, v: setattr(m, "_scale", v))


@way
def module_attribute_added_later():
    return of_module(lambda self, x: x * getattr(self, "extra", 2.0), lambda m, v: setattr(m, "extra", v))


@way
def module_attribute_of_computed_name():
    return of_module(lambda self, x: x * getattr(self, "sc" + "ale"[: len(x) + 2]), lambda m, v: setattr(m, "scale", v))


@way
def module_attribute_shadows_class():
    return of_module(lambda self, x: x * self.shared, lambda m, v: setattr(m, "shared", v))


@way
def module_class_attribute():
    return of_module(lambda self, x: x * self.shared, lambda m, v: setattr(type(m), "shared", v))


@way
def module_base_class_attribute():
    base = type("Base", (Scaled,), {"deep": 2.0})
    module = type("Reader", (base,), {"forward": lambda self, x: x * self.deep})()
    return of_attribute(base, module, "deep")


@way
def module_list():
    return of_module(lambda self, x: x * self.items[0], lambda m, v: m.items.__setitem__(0, v))


@way
def module_nested_list():
    return of_module(lambda self, x: x * self.table["k"][0], lambda m, v: m.table["k"].__setitem__(0, v))


@way
def module_object():
    return of_module(lambda self, x: x * self.held.k, lambda m, v: setattr(m.held, "k", v))


@way
def module_in_vars():
    return of_module(lambda self, x: x * vars(self)["_scale"], lambda m, v: setattr(m, "_scale", v))


@way
def module_property():
    cls = type(
        "Reader", (Scaled,), {"now": property(lambda self: self._scale), "forward": lambda self, x: x * self.now}
    )
    return of_attribute(module := cls(), module, "_scale")


@way
def module_property_replaced():
    cls = type("Reader", (Scaled,), {"now": property(lambda self: 2.0), "forward": lambda self, x: x * self.now})
    return cls(), lambda value: setattr(cls, "now", property(lambda self: value))


@way
def module_method_replaced():
    cls = type("Reader", (Scaled,), {"number": lambda self: 2.0, "forward": lambda self, x: x * self.number()})
    return cls(), lambda value: setattr(cls, "number", lambda self: value)


@way
def module_forward_replaced():
    module = type("Reader", (Scaled,), {"forward": lambda self, x: x * 2.0})()
    return (lambda x: module(x)), lambda value: setattr(module, "forward", lambda x: x * value)


@way
def module_training():
    return of_module(lambda self, x: x * (2.0 if self.training else 3.0), lambda m, v: m.train(v == 2.0))


@way
def module_child_replaced():
    def change(module, value):
        module.child = type("Times", (nn.Module,), {"forward": lambda self, x: x * (value / 2.0)})()

    return of_module(lambda self, x: self.child(x) * 2.0, change)


@way
def module_forward_hook():
    def change(module, value):
        handles.append(module.child.register_forward_hook(lambda m, args, out: out * (value / 2.0)))
        for handle in handles[:-1]:
            handle.remove()

    handles = []
    return of_module(lambda self, x: self.child(x) * 2.0, change)


@way
def module_class_of():
    first = type("First", (Scaled,), {"forward": lambda self, x: x * 2.0})
    return (module := first()), lambda v: setattr(
        module, "__class__", type("Second", (Scaled,), {"forward": lambda self, x: x * v})
    )


@way
def module_buffer_replaced():
    return of_module(lambda self, x: x * (self.one * 2.0), lambda m, v: setattr(m, "one", norch.full((1,), v / 2.0)))


@way
def parameter_requires_grad():
    w = nn.Parameter(norch.ones(1))
    return (lambda x: x * (2.0 if w.requires_grad else 3.0)), lambda value: w.requires_grad_(value == 2.0)


@way
def parameter_shape():
    w = nn.Parameter(norch.ones(2))
    return (lambda x: x * float(w.shape[0])), lambda value: setattr(w, "data", norch.ones(int(value)))


@way
def parameter_gradient():
    w = nn.Parameter(norch.ones(2))
    return (lambda x: x * (2.0 if w.grad is None else 3.0)), lambda v: setattr(
        w, "grad", None if v == 2 else w.detach()
    )


@way
def tensor_attribute():
    w = norch.ones(1)
    w.k = 2.0
    return of_attribute(w, lambda x: x * w.k)


# ---- objects --------------------------------------------------------------------------------------------------------


def of_object(holder, name="k"):
    return of_attribute(holder, lambda x: x * getattr(holder, name), name)


@way
def object_attribute():
    return of_object(Plain())


@way
def object_class_attribute():
    cls = type("Fresh", (Plain,), {})
    holder = cls()
    return of_attribute(cls, lambda x: x * holder.k)


@way
def object_in_object():
    outer = types.SimpleNamespace(inner=types.SimpleNamespace(k=2.0))
    return of_attribute(outer.inner, lambda x: x * outer.inner.k)


@way
def object_without_the_attribute():
    holder = Plain()

    def f(x):
        try:
            return x * holder.later
        except AttributeError:
            return x * 2.0

    return of_attribute(holder, f, "later")


@way
def object_of_class_in_closure():
    cls = type("Config", (), {"k": 2.0})
    return of_attribute(cls, lambda x: x * cls.k)


@way
def object_with_getattr():
    class Config(dict):
        __getattr__ = dict.__getitem__

    config = Config(k=2.0)
    return (lambda x: x * config.k), lambda value: config.__setitem__("k", value)


@way
def object_with_getitem_replaced():
    cls = type("Table", (), {"__getitem__": lambda self, i: 2.0})
    table = cls()
    return (lambda x: x * table[0]), lambda value: setattr(cls, "__getitem__", lambda self, i: value)


@way
def namespace():
    return of_object(types.SimpleNamespace(k=2.0))


@way
def slots():
    cls = type("Slots", (), {"__slots__": ("j", "k")})
    holder = cls()
    holder.k = 2.0
    return of_attribute(holder, lambda x: x * holder.k)


@way
def slot_filled_later():
    holder = type("Slots", (), {"__slots__": ("k",)})()
    return of_attribute(holder, lambda x: x * getattr(holder, "k", 2.0))


@way
def dataclass():
    cls = dataclasses.make_dataclass("Config", [("k", float)])
    return of_object(cls(2.0))


@way
def dataclass_replaced():
    cls = dataclasses.make_dataclass("Config", [("k", float)], frozen=True)
    holder = Plain()
    holder.config = cls(2.0)
    return (lambda x: x * holder.config.k), lambda v: setattr(holder, "config", dataclasses.replace(holder.config, k=v))


@way
def dataclass_as_dict():
    config = dataclasses.make_dataclass("Config", [("k", float)])(2.0)
    return of_attribute(config, lambda x: x * dataclasses.asdict(config)["k"])


@way
def property_of_object():
    cls = type("Config", (), {"k": property(lambda self: self.hidden * 1.0)})
    config = cls()
    config.hidden = 2.0
    return of_attribute(config, lambda x: x * config.k, "hidden")


@way
def cached_property():
    class Config:
        base = 2.0

        @functools.cached_property
        def k(self):
            return self.base

    config = Config()
    return of_attribute(config, lambda x: x * config.k)


@way
def descriptor():
    class Field:
        k = 2.0

        def __get__(self, instance, owner):
            return self.k

    field = Field()
    config = type("Config", (), {"k": field})()
    return of_attribute(field, lambda x: x * config.k)


@way
def bound_method():
    holder = type("Holder", (), {"k": 2.0, "scale": lambda self, x: x * self.k})()
    method = holder.scale
    return of_attribute(holder, lambda x: method(x))


@way
def captured_method():
    holder = type("Holder", (), {"k": 2.0, "scale": lambda self, x: x * self.k})()
    return of_attribute(holder, holder.scale)


@way
def callable_object():
    holder = type("Holder", (), {"k": 2.0, "__call__": lambda self, x: x * self.k})()
    return of_attribute(holder, holder)


@way
def callable_with_slots():
    cls = type("Holder", (), {"__slots__": ("k",), "__call__": lambda self, x: x * self.k})
    holder = cls()
    holder.k = 2.0
    return of_attribute(holder, lambda x: holder(x))


@way
def enum_member():
    mode = enum.Enum("Mode", {"SLOW": 2.0, "FAST": 3.0, "OTHER": 5.0})
    holder = types.SimpleNamespace(mode=mode.SLOW)
    return (lambda x: x * holder.mode.value), lambda value: setattr(holder, "mode", mode(value))


@way
def weak_reference():
    holder = Plain()
    weak = weakref.ref(holder)
    f, change = of_attribute(holder, lambda x: x * weak().k)
    f.holder = holder
    return f, change


@way
def weak_reference_that_dies():
    holder = [Plain()]
    weak = weakref.ref(holder[0])
    return (lambda x: x * (2.0 if weak() is not None else 3.0)), lambda v: holder.clear()


@way
def exception_arguments():
    error = ValueError(2.0)
    return (lambda x: x * error.args[0]), lambda value: setattr(error, "args", (value,))


# ---- containers -----------------------------------------------------------------------------------------------------


def of_container(holder, key, read=None):
    return (read or (lambda x: x * holder[key])), lambda value: holder.__setitem__(key, value)


@way
def list_item():
    return of_container([1.0, 2.0], 1)


@way
def list_length():
    holder = [1, 1]
    return (lambda x: x * float(len(holder))), lambda v: holder.__setitem__(slice(None), [1] * int(v))


@way
def list_in_tuple():
    holder = ([2.0], 1)
    return (lambda x: x * holder[0][0]), lambda value: holder[0].__setitem__(0, value)


@way
def list_in_list_in_dict():
    holder = {"a": [[0.0, [2.0]]]}
    return (lambda x: x * holder["a"][0][1][0]), lambda value: holder["a"][0][1].__setitem__(0, value)


@way
def list_subclass():
    cls = type("Numbers", (list,), {})
    return of_container(cls([2.0]), 0)


@way
def list_subclass_attribute():
    cls = type("Numbers", (list,), {})
    holder = cls([1.0])
    holder.k = 2.0
    return of_attribute(holder, lambda x: x * holder.k)


@way
def object_in_list():
    holder = [Plain()]
    return of_attribute(holder[0], lambda x: x * holder[0].k)


@way
def dict_item():
    return of_container({"k": 2.0}, "k")


@way
def dict_of_key_none():
    return of_container({None: 2.0}, None)


@way
def dict_key_added_later():
    holder = {}
    return (lambda x: x * holder.get("k", 2.0)), lambda value: holder.__setitem__("k", value)


@way
def dict_order():
    holder = {"a": 2.0, "b": 3.0, "c": 5.0}

    def change(value):
        for key in [key for key in list(holder) if holder[key] != value]:
            holder[key] = holder.pop(key)

    return (lambda x: x * next(iter(holder.values()))), change


@way
def dict_subclass():
    return of_container(type("Numbers", (dict,), {})(k=2.0), "k")


@way
def ordered_dict():
    return of_container(collections.OrderedDict(k=2.0), "k")


@way
def ordered_dict_order():
    holder = collections.OrderedDict({2.0: 1, 3.0: 1, 5.0: 1})
    return (lambda x: x * next(iter(holder))), lambda value: holder.move_to_end(value, last=False)


@way
def default_dict():
    return of_container(collections.defaultdict(float, k=2.0), "k")


@way
def default_factory():
    holder = collections.defaultdict(lambda: 2.0)

    def f(x):
        value = holder["k"]
        holder.clear()
        return x * value

    return f, lambda value: setattr(holder, "default_factory", lambda: value)


@way
def counter():
    holder = collections.Counter(k=2)
    return (lambda x: x * float(holder["k"])), lambda value: holder.__setitem__("k", int(value))


@way
def chain_map():
    holder = {"k": 2.0}
    chain = collections.ChainMap({}, holder)
    return (lambda x: x * chain["k"]), lambda value: holder.__setitem__("k", value)


@way
def user_dict():
    return of_container(collections.UserDict(k=2.0), "k")


@way
def mapping_proxy():
    holder = {"k": 2.0}
    proxy = types.MappingProxyType(holder)
    return (lambda x: x * proxy["k"]), lambda value: holder.__setitem__("k", value)


@way
def deque():
    return of_container(collections.deque([2.0]), 0)


@way
def set_members():
    holder = {2.0}
    return (lambda x: x * max(holder)), lambda value: (holder.clear(), holder.add(value))


@way
def frozen_set_rebound():
    holder = Plain()
    holder.k = frozenset((2.0,))
    return (lambda x: x * max(holder.k)), lambda value: setattr(holder, "k", frozenset((value,)))


@way
def named_tuple_replaced():
    holder = types.SimpleNamespace(point=collections.namedtuple("Point", "k")(2.0))
    return (lambda x: x * holder.point.k), lambda v: setattr(holder, "point", holder.point._replace(k=v))


@way
def array_of_numbers():
    return of_container(array.array("d", [2.0]), 0)


@way
def byte_array():
    holder = bytearray([2])
    return (lambda x: x * float(holder[0])), lambda value: holder.__setitem__(0, int(value))


@way
def memory_view():
    memory = bytearray([2])
    view = memoryview(memory)
    return (lambda x: x * float(view[0])), lambda value: memory.__setitem__(0, int(value))


@way
def numpy_array():
    numpy = pytest.importorskip("numpy")
    holder = numpy.full((2, 2), 2.0)
    return (lambda x: x * float(holder[1, 1])), lambda value: holder.__setitem__((1, 1), value)


@way
def numpy_array_of_objects():
    numpy = pytest.importorskip("numpy")
    holder = numpy.array([[2.0], None], dtype=object)
    return (lambda x: x * holder[0][0]), lambda value: holder[0].__setitem__(0, value)


@way
def numpy_scalar():
    numpy = pytest.importorskip("numpy")
    holder = Plain()
    holder.k = numpy.float64(2.0)
    return (lambda x: x * float(holder.k)), lambda value: setattr(holder, "k", numpy.float64(value))
