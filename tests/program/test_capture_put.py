"""Tensors that a captured function puts somewhere: after each call they are there, those of this call, whatever other
recordings, eager calls and the user have put there since."""

import collections
import contextvars
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
