"""Every value of Python that a recorded function reads is guarded, or the function is refused with the line that reads
it: ways to hold a number, changed between the calls of norch.capture and norch.compile."""

import collections
import json
import os
import re
import sys
import types

import numbers_in_libraries  # noqa: F401
import numbers_named  # noqa: F401
import numbers_patched
import numbers_reached  # noqa: F401
import numbers_read
import pytest
from numbers_held import WAYS

import norch
from norch import nn, optim

pytestmark = pytest.mark.host

FILE = os.path.basename(__file__)


def calls_of(function, change, at):
    """What ten calls give, with the number changed before those in at."""
    found = []
    for i in range(14):
        if i in at:
            change(at[i])
        x = norch.full((1,), 1.0 + i)
        if "compile" in at:
            x.requires_grad_()
        y = function(x)
        if y.requires_grad:
            y.sum().backward()
        found.append((y.tolist(), None if x.grad is None else x.grad.tolist()))
    return found


TIMES = {"later": {7: 3.0, 11: 5.0}, "second": {1: 3.0}, "third": {2: 3.0}, "fourth": {3: 3.0, 5: 5.0}}


@pytest.mark.parametrize("when", TIMES)
@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("name", WAYS)
def test_a_number_that_changes(name, how, when, monkeypatch):
    monkeypatch.setitem(sys.modules, "norch_test_cfg", None)
    at = dict(TIMES[when])
    if how == "compile":
        at["compile"] = True
    eager, change = WAYS[name]()
    with numbers_patched.restored():
        wanted = calls_of(eager, change, at)
    function, change = WAYS[name]()
    wrapped = norch.capture(function) if how == "capture" else norch.compile(function, fullgraph=True)
    try:
        with numbers_patched.restored():
            found = calls_of(wrapped, change, at)
    except norch.CaptureError as error:
        assert re.search(r"at .*numbers_(held|read|named|reached|patched|in_libraries)\.py:\d+", str(error)), error
        assert name in REFUSED, error
        return
    finally:
        numbers_read.__dict__.pop("round", None)
    assert found == wanted


REFUSED = frozenset(
    "weak_reference weak_reference_that_dies iterator cycle generator random_number random_number_of_numpy clock "
    "file_contents counting_in_the_function toggling_in_the_function stack_in_the_function limit_of_the_interpreter "
    "counter_in_a_closure counter_in_a_list counter_in_defaults counter_in_an_attribute counter_in_a_module "
    "global_of_computed_name global_by_get flat_iterator_of_numpy lock_that_is_held error_state_of_numpy text_of_numpy "
    "bytes_of_numpy array_of_numpy file_of_norch tensor_of_norch line_of_a_file lines_of_an_open_file "
    "lines_of_a_text_in_memory number_in_a_thread number_under_a_profiler number_without_profile_function "
    "function_of_a_c_library directory_by_partial lock_without_waiting name_of_a_level counter_by_vars "
    "counter_by_format counter_by_equality counter_by_getter counter_with_a_setter class_in_a_pickle "
    "class_in_a_pickle_by_an_object line_of_a_raw_file data_of_a_loader registered_single_dispatch".split()
)


# ---- arguments ------------------------------------------------------------------------------------------------------

X, Y = norch.ones(2), norch.ones(2)


def with_grad(g):
    x = norch.ones(2)
    x.grad = g
    return x


def with_attribute(k):
    x = norch.ones(2)
    if k is not None:
        x.k = k
    return x


class Text(str):
    k: float


class Number:
    def __init__(self, k):
        self.k = k


def text(k):
    made = Text("a")
    made.k = k
    return made


OBJECTS = [Number(2.0), Number(3.0)]
TEXTS = [text(2.0), text(3.0)]
leaf = lambda: norch.ones(2).requires_grad_()  # noqa: E731

# What a function does with its arguments, and ways to make them, that give other results.
ARGUMENTS = {
    "same object": (lambda a, b: a * (2.0 if a is b else 3.0), lambda: (X, X), lambda: (X, Y), lambda: (X, X.view(2))),
    "last two the same": (lambda a, b, c: a * (2.0 if b is c else 3.0), lambda: (X, Y, Y), lambda: (X, Y, Y.view(2))),
    "class": (
        lambda a: a * (2.0 if isinstance(a, nn.Parameter) else 3.0),
        lambda: (nn.Parameter(norch.ones(2), requires_grad=False),),
        lambda: (norch.ones(2),),
    ),
    "requires_grad": (lambda a: a * (2.0 if a.requires_grad else 3.0), lambda: (leaf(),), lambda: (norch.ones(2),)),
    "is_leaf": (lambda a: a * (2.0 if a.is_leaf else 3.0), lambda: (leaf(),), lambda: (leaf() * 1,)),
    "grad_fn": (
        lambda a: a * float(len(type(a.grad_fn).__name__)),
        lambda: (leaf() * 1,),
        lambda: (leaf().exp(),),
        lambda: (leaf(),),
    ),
    "grad": (
        lambda a: a * (2.0 if a.grad is None else 3.0),
        lambda: (with_grad(None),),
        lambda: (with_grad(norch.ones(2)),),
    ),
    "attribute": (lambda a: a * a.k, lambda: (with_attribute(2.0),), lambda: (with_attribute(3.0),)),
    "attribute added": (
        lambda a: a * getattr(a, "k", 2.0),
        lambda: (with_attribute(None),),
        lambda: (with_attribute(3.0),),
    ),
    "stride": (
        lambda a: a * float(a.stride(0)),
        lambda: (norch.ones(1, 2),),
        lambda: (norch.ones(2, 1).t(),),
        lambda: (norch.ones(2, 2, 2)[:1, 0],),
    ),
    "offset": (
        lambda a: a * float(a.storage_offset() + 1),
        lambda: (norch.ones(4)[:2],),
        lambda: (norch.ones(4)[2:],),
    ),
    "storage": (lambda a: a * float(a.untyped_storage().nbytes()), lambda: (X,), lambda: (norch.ones(4)[:2],)),
    "base": (lambda a: a * (2.0 if a._base is None else 3.0), lambda: (X,), lambda: (norch.ones(4)[:2],)),
    "version": (
        lambda a: a * float(bool(a._version) + 1),
        lambda: (norch.ones(2),),
        lambda: (norch.ones(2).mul_(1),),
    ),
    "order of a dict": (
        lambda d: d["a"] * (2.0 if next(iter(d)) == "a" else 3.0),
        lambda: ({"a": X, "b": Y},),
        lambda: ({"b": Y, "a": X},),
    ),
    "keys of a dict": (
        lambda d: d[1] * float(len(str(next(iter(d))))),
        lambda: ({1: X},),
        lambda: ({1.0: X},),
        lambda: ({True: X},),
    ),
    "object": (lambda a, o: a * o.k, lambda: (X, OBJECTS[0]), lambda: (X, OBJECTS[1])),
    "subclass of str": (lambda a, o: a * o.k, lambda: (X, TEXTS[0]), lambda: (X, TEXTS[1])),
    "type of a number": (
        lambda a, k: a * float(len(type(k).__name__)),
        lambda: (X, 1),
        lambda: (X, 1.0),
        lambda: (X, True),
    ),
    "zero": (lambda a, k: a * float(len(str(k))), lambda: (X, 0.0), lambda: (X, -0.0)),
}


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_read_of_arguments(name, how):
    f, *makes = ARGUMENTS[name]
    given = lambda *args: f(*args).detach()  # noqa: E731
    for order in (makes, makes[::-1]):
        called = norch.capture(given) if how == "capture" else norch.compile(given, fullgraph=True)
        try:
            for make in [make for make in order for _ in range(5)] + order * 4:
                assert called(*make()).tolist() == given(*make()).tolist()
        except norch.CaptureError as error:
            assert name in ("grad", "attribute", "attribute added", "base", "version") and f"{FILE}:" in str(error)


# ---- norch's own state ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize(
    "get, put, values",
    [
        (norch.get_num_threads, norch.set_num_threads, (1, 2)),
        (norch.initial_seed, norch.manual_seed, (1, 2)),
        (norch.are_deterministic_algorithms_enabled, norch.use_deterministic_algorithms, (False, True)),
        (norch.get_default_dtype, norch.set_default_dtype, (norch.float32, norch.float64)),
        (norch.is_grad_enabled, norch.set_grad_enabled, (True, False)),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_settings(get, put, values, how):
    f = lambda x: x * (2.0 if get() == values[0] else 3.0)  # noqa: E731
    before, called = get(), norch.capture(f) if how == "capture" else norch.compile(f, fullgraph=True)
    try:
        for value in (values[0], values[1], values[0], values[1]):
            put(value)
            for _ in range(4):
                assert called(X).tolist() == f(X).tolist()
    finally:
        put(before)


def hooks_of_a_tensor(w, model, optimizer):
    w.register_hook(lambda g: g * 3)


def hooks_after_accumulation(w, model, optimizer):
    w.register_post_accumulate_grad_hook(lambda w: [w.grad.mul_(3)] and None)


def hooks_after_a_step(w, model, optimizer):
    optimizer.register_step_post_hook(lambda *_: w.data.mul_(2))


def hooks_before_a_step(w, model, optimizer):
    optimizer.register_step_pre_hook(lambda *_: [w.grad.mul_(2)] and None)


def hooks_on_the_gradient_of_a_module(w, model, optimizer):
    model.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 3,))


def hooks_before_a_module(w, model, optimizer):
    model.register_forward_pre_hook(lambda module, args: (args[0] * 3,))


@pytest.mark.parametrize(
    "add",
    [
        hooks_of_a_tensor, hooks_after_accumulation, hooks_after_a_step, hooks_before_a_step,
        hooks_on_the_gradient_of_a_module, hooks_before_a_module,
    ],
    ids=lambda add: add.__name__,
)  # fmt: skip
def test_hooks_added_later(add):
    found = []
    for wrap in (lambda f: f, norch.capture):
        w, model = nn.Parameter(norch.ones(2)), nn.Tanh()
        optimizer = optim.SGD([w], lr=0.1)

        @wrap
        def step(x, w=w, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            model(w * x).sum().backward()
            optimizer.step()

        for i in range(18):
            if i in (6, 12):
                add(w, model, optimizer)
            step(norch.full((2,), 0.5))
        found.append(w.tolist())
    assert found[0] == found[1]


class Factor:
    k = 2.0

    def __call__(self, module, args, out=None):
        return args[0] * self.k if out is None else out * self.k


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("register", ["register_module_forward_hook", "register_module_forward_pre_hook"])
def test_hooks_of_all_modules(register, how, monkeypatch):
    monkeypatch.setattr(nn.Module, "__call__", nn.Module.__call__)  # the first such hook replaces it
    layer, factor, found = nn.ReLU(), Factor(), []
    step = norch.capture(layer) if how == "capture" else norch.compile(lambda x: layer(x), fullgraph=True)
    handle = None
    try:
        for i in range(15):
            if i == 5:
                handle = getattr(nn._hooks, register)(factor)
            if i == 10:
                factor.k = 3.0
            found.append(step(norch.ones(1)).item())
    finally:
        handle.remove()
    assert found == [1.0] * 5 + [2.0] * 5 + [3.0] * 5


@pytest.mark.parametrize(
    "make", [dict, lambda **lists: collections.defaultdict(list, **lists)], ids=["dict", "defaultdict"]
)
def test_lists_in_a_dict_that_are_only_appended_to(make):
    metrics, scale = make(loss=[]), json.dumps({"k": 2.0})

    @norch.capture
    def step(x):
        y = x * json.loads(scale)["k"]
        metrics["loss"].append(y.detach())
        return y

    for i in range(6):
        assert step(norch.full((1,), float(i))).item() == 2.0 * i
    assert step.recordings() == 1 and len(metrics["loss"]) == 3

    @norch.capture
    def reads(x):
        metrics["loss"].append(1)
        return x * (1.0 if metrics["loss"] else 2.0)

    with pytest.raises(norch.CaptureError, match=r"(?s)changes a value.*tensor that the function writes.*py:\d+"):
        for _ in range(6):
            reads(norch.ones(1))


def test_modules_that_are_imported_later_change_nothing(monkeypatch):
    step = norch.capture(lambda x: x * sys.modules["math"].pi)
    for _ in range(4):
        step(norch.ones(1))
    program = step.program
    monkeypatch.setitem(sys.modules, "norch_test_other", types.ModuleType("norch_test_other"))
    for _ in range(3):
        step(norch.ones(1))
    assert step.program is program and step.recordings() == 1


def test_an_attribute_that_a_module_lacked(monkeypatch):
    module = types.ModuleType("norch_test_settings")

    def scaled(x):
        try:
            return x * module.k
        except AttributeError:
            return x

    step = norch.capture(scaled)
    assert [step(norch.ones(1)).item() for _ in range(4)] == [1.0] * 4
    module.k = 3.0
    assert step(norch.ones(1)).item() == 3.0


def test_what_is_refused_runs_as_it_is():
    numbers = iter([float(i) for i in range(20)])
    for wrap in (lambda f: norch.capture(f, strict=False), norch.compile):
        called = wrap(lambda x: x * next(numbers))
        with pytest.warns(UserWarning, match=r"(?s)list_iterator.*test_capture_reads.py:\d+"):
            first = called(norch.ones(1)).item()
            assert [called(norch.ones(1)).item() for _ in range(6)] == [first + i for i in range(1, 7)]


def test_the_order_of_two_keys_of_an_ordered_dict():
    factors = collections.OrderedDict(a=2.0, b=3.0)
    step = norch.capture(lambda x: x * next(iter(factors.values())))
    found = []
    for i in range(9):
        if i == 5:
            factors.move_to_end("a")
        found.append(step(norch.ones(1)).item())
    assert found == [2.0] * 5 + [3.0] * 4
