"""Tensors that a captured function puts somewhere: after each call they are there, those of this call, whatever other
recordings, eager calls and the user have put there since."""

import collections
import contextvars
import functools
import types
import warnings

import pytest

import norch
from norch import nn

pytestmark = pytest.mark.host

PLACES = {}


def place(make):
    """Registers make(): a function of a tensor, and one that gives what this has put somewhere, twice its argument."""
    PLACES[make.__name__] = make
    return make


class Slots:
    __slots__ = ("a",)


class Holder:
    """An object with a property and an entry over others."""

    def __init__(self):
        self.d = {}

    def __setitem__(self, key, value):
        self.d[key] = value

    @property
    def under(self):
        return self._under

    @under.setter
    def under(self, value):
        self._under = value


def attribute_of(owner):
    def f(x):
        owner.a = x * 2
        return x.sum()

    return f, lambda: owner.a


def entry_of(held, key, value=lambda x: x * 2, get=lambda found: found):
    def f(x):
        held[key] = value(x)
        return x.sum()

    return f, lambda: get(held[key])


OWNERS = {
    "object": Holder, "slot": Slots, "class": lambda: type("C", (), {}), "namespace": types.SimpleNamespace,
    "module of Python": lambda: types.ModuleType("m"), "tensor": lambda: norch.zeros(1), "function": lambda: lambda: 0,
}  # fmt: skip
PLACES |= {f"attribute of a {name}": lambda make=make: attribute_of(make()) for name, make in OWNERS.items()}
HELD = {
    "dict": (dict, "a"), "list": (lambda: [None], 0), "defaultdict": (lambda: collections.defaultdict(list), "a"),
    "ordered dict": (collections.OrderedDict, "a"),
}  # fmt: skip
PLACES |= {f"entry of a {name}": lambda make=make, key=key: entry_of(make(), key) for name, (make, key) in HELD.items()}
VALUES = {
    "tuple": (lambda x: (x * 2, x * 3), lambda found: found[0]),
    "list": (lambda x: [x * 2], lambda found: found[0]),
    "dict": (lambda x: {"a": x * 2}, lambda found: found["a"]),
    "object": (lambda x: types.SimpleNamespace(a=x * 2), lambda found: found.a),
    "view": (lambda x: (x * 2).view(1, -1), lambda found: found[0]),
    "argument": (lambda x: x, lambda found: found * 2),
    "view of the argument": (lambda x: x[None, 1:], lambda found: norch.cat([found[0, :1], found[0]]) * 2),
    "tuple with the argument": (
        lambda x: (x, x * 2),
        lambda found: found[1] if (found[1] == found[0] * 2).all() else 0,
    ),
}
PLACES |= {f"{name} in a dict": lambda pair=pair: entry_of({}, "a", *pair) for name, pair in VALUES.items()}


@place
def closure():
    a = None

    def f(x):
        nonlocal a
        a = x * 2
        return x.sum()

    return f, lambda: a


@place
def global_variable():
    def f(x):
        global put
        put = x * 2
        return x.sum()

    return f, lambda: put


put = None


@place
def result():
    d = {}

    def f(x):
        d["a"] = y = x * 2
        return y

    return f, lambda: d["a"]


@place
def read_again():
    class Keeps(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return self.last.sum()

    made = Keeps()
    return made, lambda: made.last


@place
def read_again_and_returned():
    o = Holder()

    def f(x):
        o.a = x * 2
        return o.a, o.a.sum()

    return f, lambda: o.a


@place
def two_places():
    d, o = {}, Holder()

    def f(x):
        o.a = d["a"] = x * 2
        return x.sum()

    return f, lambda: (o.a + d["a"]) / 2


@place
def entry_of_an_object():
    o = Holder()
    return entry_of(o, "a")[0], lambda: o.d["a"]


@place
def entry_of_an_attribute():
    o = Holder()

    def f(x):
        o.d["a"] = x * 2
        return x.sum()

    return f, lambda: o.d["a"]


@place
def setter():
    o = Holder()

    def f(x):
        o.under = x * 2
        return x.sum()

    return f, lambda: o.under


@place
def module():
    class Keeps(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return x.sum()

    made = Keeps()
    return made, lambda: made.last


@place
def forward_hook():
    layer, d = nn.Tanh(), {}

    def hook(module, args, output):
        d["a"] = args[0] * 2

    layer.register_forward_hook(hook)
    return lambda x: layer(x).sum(), lambda: d["a"]


@place
def backward_of_a_function():
    d, w = {}, norch.ones(1, requires_grad=True)

    class Puts(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            d["a"] = ctx.saved_tensors[0] * 2
            return g

    def f(x):
        w.grad = None
        with norch.enable_grad():
            Puts.apply(w * x).sum().backward()
        return x.sum()

    return f, lambda: d["a"]


@place
def one_of_two_parameters():
    w, d = [norch.full((4,), 2.0), norch.full((3,), 2.0)], {}

    def f(x):
        d["a"], d["x"] = w[0] if len(x) == 4 else w[1], x
        return x.sum()

    return f, lambda: d["a"] * d["x"]


X = norch.full((4,), 7.0)
# Calls: the size of the argument; "eager": of the function itself; "off": under no_grad(); "same": with one tensor.
CALLS = {
    "shapes": [4] * 5 + [3] * 5 + [4] * 2,
    "turns": [4, 3] * 8,
    "modes": [4, "off"] * 6 + [4] * 2,
    "eager": [4] * 5 + ["eager"] + [4] * 2,
    "same": ["same"] * 5 + [4] * 3 + ["same"] * 2 + [4],
}

# Where the function reads the place too, or has an object of its own there, the tensor is that of the recording.
COMPARED = ["object in a dict", "attribute of a namespace", "attribute of a function"]
COMPARED += ["read_again", "read_again_and_returned"]


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("order", CALLS)
@pytest.mark.parametrize("name", PLACES)
def test_what_the_function_puts_somewhere(name, order, how):
    f, found = PLACES[name]()
    called, kept = norch.capture(f) if how == "capture" else norch.compile(f), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name in ("object in a dict", "attribute of a namespace", "attribute of a function"):  # a guard; an effect
            warnings.simplefilter("ignore")
        if order == "turns" and name.startswith("read_again"):  # it is a condition of each recording, and not replayed
            warnings.simplefilter("ignore")
        for i, what in enumerate(CALLS[order]):
            x = X if what == "same" else norch.full((what if type(what) is int else 4,), float(i))
            with norch.set_grad_enabled(what != "off"):
                (f if what == "eager" else called)(x)
            kept.append((found(), (x * 2).tolist()))
            for value, wanted in kept if name not in COMPARED else kept[-1:]:
                assert value.tolist() == wanted, i
    globals()["put"] = None


@pytest.mark.parametrize("other", [None, norch.zeros(4), 1])
def test_what_the_user_puts_there(other):
    d = {}
    step, _ = entry_of(d, "a")
    captured = norch.capture(step)
    for i in range(9):
        captured(norch.full((4,), float(i)))
        assert d["a"].tolist() == [2.0 * i] * 4
        if i in (5, 7):
            d["a"] = other
    assert captured.recordings() == 1
    captured.replay(2, norch.full((4,), 0.0))


def test_what_is_put_in_a_variable_of_the_context_is_refused():
    variable = contextvars.ContextVar("variable")

    @norch.capture
    def step(x):
        variable.set(x * 2)
        return x.sum()

    def calls():
        with pytest.raises(norch.CaptureError, match="changes a value"):
            for _ in range(6):
                step(norch.ones(2))

    contextvars.copy_context().run(calls)


# {name: what a function stores of its result x}
PARTS = {
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
    "part": lambda x: x.detach()[1:],
    "step": lambda x: x.detach()[::2],
    "list": lambda x: [x.detach(), x.detach().view(3, 1)],
    "expanded": lambda x: x.detach().expand(2, 3),
    "bits": lambda x: x.detach().view(norch.int32),
    "view with a graph": lambda x: x[1:],
    "result and part": lambda x: [x, x.detach()],
}
RETURNS = {
    "it": lambda x: x,
    "it and a part": lambda x: (x, x[1:]),
    "it in a dict": lambda x: {"x": x},
    "a part": lambda x: x[1:],
    "an inner part": lambda x: x[1:2],
    "transposed": lambda x: x.view(3, 1).t(),
    "its square": lambda x: x * x,
}


def parts_of(value):
    return list(value.values()) if type(value) is dict else list(value) if type(value) in (list, tuple) else [value]


def held(value):
    return [x.tolist() for x in parts_of(value)]


@pytest.mark.parametrize("calls", [1, 2], ids=["one call", "two calls"])
@pytest.mark.parametrize("how", ["compile", "capture"])
@pytest.mark.parametrize("returned", RETURNS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore:compile")
def test_what_is_stored_of_a_result_is_that_of_the_call(part, returned, how, calls):
    def run(wrap):
        kept, p = {}, norch.ones(3, requires_grad=how == "compile")

        @wrap
        def f(x):
            y = x * p
            kept["y"] = PARTS[part](y)
            return RETURNS[returned](y)

        seen = []
        for i in range(7):
            outs = [f(norch.arange(3.0) + i + 10 * k) for k in range(calls)]
            seen.append(held(kept["y"]))
            if how == "compile":
                sum(x.sum() for out in outs for x in parts_of(out)).backward()
                seen.append((held(kept["y"]), p.grad.tolist()))
        return seen

    assert run(norch.compile if how == "compile" else norch.capture) == run(lambda f: f)


def test_a_replay_stores_the_memory_of_its_result():
    kept, p = {}, norch.ones(3, requires_grad=True)

    @norch.compile
    def f(x):
        y = (x * p).exp()
        kept["y"] = y.detach()
        return y

    for i in range(6):
        result = f(norch.arange(3.0))
        assert kept["y"].untyped_storage().data_ptr() == result.untyped_storage().data_ptr()
        assert not kept["y"].requires_grad and not kept["y"]._is_view()
        if i == 4:
            kept["y"].mul_(2)
            with pytest.raises(norch.Error, match="changed in place"):
                result.sum().backward()
        else:
            result.sum().backward()
    assert f.recordings() == 1


def test_an_argument_is_stored_with_the_dtype_of_the_call():
    kept = {}

    def f(x):
        kept["x"] = x.view(norch.int32)
        return x * 2

    captured = norch.capture(f)
    with pytest.raises(norch.CaptureError, match="the memory of another dtype"):
        for _ in range(4):
            captured(norch.ones(2))
    loose = norch.capture(f, strict=False)
    with pytest.warns(UserWarning, match="the memory of another dtype"):
        for i in range(5):
            x = norch.full((2,), float(i))
            loose(x)
            assert kept["x"].tolist() == x.view(norch.int32).tolist()


# ---- by attributes that the code does not name ----------------------------------------------------------------------

set_attribute, NAMES = object.__setattr__, {"first": "a", "list": ["a"]}


def slots_with(value):
    holder = Slots()
    holder.a = value
    return holder


def written_by_partial(y, holder):
    holder.put(y)


def with_partial():
    holder = Holder()
    holder.put = functools.partial(setattr, holder, "a")
    return holder


# {name: (what makes the holder, a function that puts y there, where it is then)}
WRITERS = {
    "entry of a dict in a slot": (lambda: slots_with({}), lambda y, o: o.a.update(y=y), lambda o: o.a["y"]),
    "item of a list in a slot": (lambda: slots_with([0]), lambda y, o: o.a.__setitem__(0, y), lambda o: o.a[0]),
    "object's setattr": (Holder, lambda y, o: object.__setattr__(o, "a", y), lambda o: o.a),
    "object's setattr in a variable": (Holder, lambda y, o: set_attribute(o, "a", y), lambda o: o.a),
    "object's setattr, name computed": (Holder, lambda y, o: object.__setattr__(o, NAMES["list"][0], y), lambda o: o.a),
    "setattr, name computed": (Holder, lambda y, o: setattr(o, NAMES["first"], y), lambda o: o.a),
    "partial of setattr": (with_partial, written_by_partial, lambda o: o.a),
}


def put_in_a_slot(y, holder):
    holder.a["y"] = y


WRITERS["entry of a dict in a slot, by index"] = (lambda: slots_with({}), put_in_a_slot, lambda o: o.a["y"])


@pytest.mark.parametrize("of", [lambda y: y, lambda y: y.detach()], ids=["result", "detached"])
@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore:compile")
def test_what_is_put_where_the_code_names_no_attribute(name, how, of):
    make, put, found = WRITERS[name]
    holder, p = make(), norch.full((3,), 2.0, requires_grad=how == "compile")

    def f(x):
        y = x * p
        put(of(y), holder)
        return y

    called = norch.capture(f) if how == "capture" else norch.compile(f)
    for i in range(7):
        y = called(norch.full((3,), float(i)))
        if how == "compile":
            y.sum().backward()
        assert found(holder).tolist() == [2.0 * i] * 3


@pytest.mark.parametrize("holder", [Slots(), types.ModuleType("counts")], ids=["slot", "module"])
def test_counters_in_slots_and_modules_are_warned_of(holder):
    holder.a = {"n": 0}

    @norch.capture
    def f(x):
        holder.a["n"] += 1
        return x * 2

    with pytest.warns(UserWarning, match="changes Python's objects, which replays do not: 'a'"):
        for _ in range(4):
            f(norch.ones(2))
