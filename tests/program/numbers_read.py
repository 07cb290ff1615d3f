"""Ways to read a number in a captured function: variables, functions, the process (test_capture_reads.py)."""

import builtins
import contextvars
import functools
import itertools
import os
import sys
import threading
import types
import warnings

import pytest
from numbers_held import WAYS, Plain, of_attribute, way

import norch
from norch import optim

# ---- variables ------------------------------------------------------------------------------------------------------

NUMBER = 2.0


@way
def global_variable():
    globals()["NUMBER"] = 2.0
    return (lambda x: x * NUMBER), lambda value: globals().__setitem__("NUMBER", value)


@way
def global_bound_later():
    globals().pop("BOUND_LATER", None)

    def f(x):
        try:
            return x * BOUND_LATER  # noqa: F821
        except NameError:
            return x * 2.0

    return f, lambda value: globals().__setitem__("BOUND_LATER", value)


@way
def builtin_shadowed_later():
    globals().pop("round", None)
    return (lambda x: x * float(round(2.2))), lambda value: globals().__setitem__("round", lambda _: value)


@way
def builtin_replaced():
    builtins.norch_number = 2.0
    return (lambda x: x * norch_number), lambda v: setattr(builtins, "norch_number", v)  # noqa: F821


@way
def global_by_text():
    globals()["NUMBER"] = 2.0
    return (lambda x: x * globals()["NUMBER"]), lambda value: globals().__setitem__("NUMBER", value)


@way
def evaluated_text():
    globals()["NUMBER"] = 2.0
    return (lambda x: x * eval("NUMBER")), lambda value: globals().__setitem__("NUMBER", value)


@way
def closure():
    number = 2.0

    def change(value):
        nonlocal number
        number = value

    return (lambda x: x * number), change


@way
def closure_in_comprehension():
    number = 2.0

    def change(value):
        nonlocal number
        number = value

    return (lambda x: sum([x * number for _ in range(1)])), change


@way
def closure_of_inner_function():
    number = 2.0

    def f(x):
        def inner():
            return (lambda: number)()

        return x * inner()

    def change(value):
        nonlocal number
        number = value

    return f, change


@way
def closure_unbound_at_first():
    def f(x):
        try:
            return x * number
        except NameError:
            return x * 2.0

    def change(value):
        nonlocal number
        number = value

    if not WAYS:
        number = 0.0
    return f, change


@way
def helper_redefined():
    globals()["helper"] = lambda x: x * 2.0
    return (lambda x: helper(x)), lambda value: globals().__setitem__("helper", lambda x: x * value)  # noqa: F821


@way
def helper_code_replaced():
    def helper(x):
        return x * 2.0

    def change(value):
        helper.__code__ = (
            (lambda x: x * 3.0 if len(x) else x).__code__ if value == 3.0 else (lambda x: x * 5.0).__code__
        )

    return (lambda x: helper(x)), change


@way
def helper_global():
    module = fresh_module("k = 2.0\ndef helper(x): return x * k")
    helper = module.helper
    return of_attribute(module, lambda x: helper(x))


@way
def helper_called_by_builtin():
    number = 2.0

    def change(value):
        nonlocal number
        number = value

    return (lambda x: functools.reduce(lambda y, _: y * number, [x, x])), change


@way
def recursive_helper():
    holder = Plain()

    def helper(x, depth):
        return helper(x, depth - 1) if depth else x * holder.k

    return of_attribute(holder, lambda x: helper(x, 3))


@way
def module_variable():
    cfg = fresh_module("k = 2.0")
    return of_attribute(cfg, lambda x: x * cfg.k)


@way
def module_variable_added():
    cfg = fresh_module("")
    return of_attribute(cfg, lambda x: x * getattr(cfg, "k", 2.0))


@way
def module_imported_in_function():
    module = sys.modules["norch_test_cfg"] = fresh_module("k = 2.0")

    def f(x):
        import norch_test_cfg

        return x * norch_test_cfg.k

    return of_attribute(module, f)


@way
def name_imported_in_function():
    module = sys.modules["norch_test_cfg"] = fresh_module("k = 2.0")

    def f(x):
        from norch_test_cfg import k

        return x * k

    return of_attribute(module, f)


@way
def module_in_sys_modules():
    module = sys.modules["norch_test_cfg"] = fresh_module("k = 2.0")
    return of_attribute(module, lambda x: x * sys.modules["norch_test_cfg"].k)


def fresh_module(text):
    module = types.ModuleType("norch_test_cfg")
    exec(text, module.__dict__)
    return module


# ---- functions ------------------------------------------------------------------------------------------------------


@way
def defaults():
    def f(x, k=2.0):
        return x * k

    return f, lambda value: setattr(f, "__defaults__", (value,))


@way
def list_in_defaults():
    def f(x, k=[2.0]):  # noqa: B006
        return x * k[0]

    return f, lambda value: f.__defaults__[0].__setitem__(0, value)


@way
def keyword_defaults():
    def f(x, *, k=2.0):
        return x * k

    return f, lambda value: f.__kwdefaults__.__setitem__("k", value)


@way
def helper_defaults():
    def helper(x, k=2.0):
        return x * k

    return (lambda x: helper(x)), lambda value: setattr(helper, "__defaults__", (value,))


@way
def helper_keyword_defaults():
    def helper(x, *, k=2.0):
        return x * k

    return (lambda x: helper(x)), lambda value: setattr(helper, "__kwdefaults__", {"k": value})


@way
def method_defaults():
    def scale(self, x, k=2.0):
        return x * k

    holder = type("Holder", (), {"scale": scale})()
    return (lambda x: holder.scale(x)), lambda value: setattr(scale, "__defaults__", (value,))


@way
def function_attribute():
    def f(x):
        return x * f.k

    f.k = 2.0
    return of_attribute(f, f)


@way
def partial_list():
    numbers = [2.0]
    return functools.partial(lambda k, x: x * k[0], numbers), lambda value: numbers.__setitem__(0, value)


@way
def partial_keyword():
    f = functools.partial(lambda x, k: x * k, k=2.0)
    return f, lambda value: f.keywords.__setitem__("k", value)


@way
def partial_in_closure():
    part = functools.partial(lambda k, x: x * k.k, Plain())
    return of_attribute(part.args[0], lambda x: part(x))


@way
def lambda_in_list():
    holder = [lambda x: x * 2.0]
    return (lambda x: holder[0](x)), lambda value: holder.__setitem__(0, lambda x: x * value)


@way
def decorated():
    holder = Plain()

    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * holder.k

        return wrapper

    return of_attribute(holder, twice(lambda x: x))


@way
def decorated_by_norch():
    holder = Plain()
    return of_attribute(holder, norch.enable_grad()(lambda x: x * holder.k))


@way
def cached_function():
    holder = Plain()
    number = functools.lru_cache(lambda: holder)
    return of_attribute(holder, lambda x: x * number().k)


@way
def cached_function_cleared():
    holder = Plain()
    number = functools.lru_cache(lambda: holder.k)

    def change(value):
        holder.k = value
        number.cache_clear()

    return (lambda x: x * number()), change


@way
def single_dispatch():
    number = functools.singledispatch(lambda x: 2.0)
    return (lambda x: x * number(x)), lambda value: number.register(norch.Tensor, lambda x: value)


@way
def captured_function():
    holder = Plain()
    inner = norch.compile(lambda x: x * holder.k)
    return of_attribute(holder, lambda x: inner(x))


# ---- what cannot be compared ----------------------------------------------------------------------------------------


@way
def iterator():
    numbers = itertools.chain([2.0] * 4, itertools.count(3.0))
    return (lambda x: x * next(numbers)), lambda value: None


@way
def cycle():
    numbers = itertools.cycle([2.0, 3.0])
    return (lambda x: x * next(numbers)), lambda value: None


@way
def generator():
    holder = Plain()

    def numbers():
        while True:
            yield holder.k

    given = numbers()
    return of_attribute(holder, lambda x: x * next(given))


@way
def random_number():
    import random

    return (lambda x: x * random.random()), lambda value: None


@way
def random_number_of_numpy():
    numpy = pytest.importorskip("numpy")
    return (lambda x: x * float(numpy.random.rand())), lambda value: None


@way
def clock():
    import time

    return (lambda x: x * float(time.perf_counter())), lambda value: None


@way
def file_contents():
    path = __file__
    return (lambda x: x * float(len(open(path).read()))), lambda value: None  # noqa: SIM115


@way
def counting_in_the_function():
    holder = types.SimpleNamespace(calls=0)

    def f(x):
        holder.calls += 1
        return x * (2.0 if holder.calls < 9 else 3.0)

    return f, lambda value: None


@way
def toggling_in_the_function():
    holder = types.SimpleNamespace(flag=False)

    def f(x):
        holder.flag = not holder.flag
        return x * (2.0 if holder.flag else 3.0)

    return f, lambda value: None


@way
def stack_in_the_function():
    numbers = [2.0] * 5 + [3.0] * 30

    return (lambda x: x * numbers.pop(0)), lambda value: None


# ---- the process ----------------------------------------------------------------------------------------------------


@way
def context_variable():
    number = contextvars.ContextVar("number", default=2.0)
    return (lambda x: x * number.get()), number.set


@way
def thread_local():
    local = threading.local()
    local.k = 2.0
    return of_attribute(local, lambda x: x * local.k)


@way
def environment():
    os.environ["NORCH_TEST_NUMBER"] = "2.0"
    return (lambda x: x * float(os.environ["NORCH_TEST_NUMBER"])), lambda v: os.environ.__setitem__(
        "NORCH_TEST_NUMBER", str(v)
    )


@way
def environment_by_getenv():
    os.environ.pop("NORCH_TEST_NUMBER", None)
    return (lambda x: x * float(os.getenv("NORCH_TEST_NUMBER", "2.0"))), lambda v: os.environ.__setitem__(
        "NORCH_TEST_NUMBER", str(v)
    )


# ---- optimizers -----------------------------------------------------------------------------------------------------


@way
def learning_rate():
    optimizer = optim.SGD([norch.ones(1)], lr=2.0)
    return (lambda x: x * optimizer.param_groups[0]["lr"]), lambda v: optimizer.param_groups[0].__setitem__("lr", v)


@way
def schedule():
    optimizer = optim.SGD([norch.ones(1)], lr=2.0)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0 + 0.5 * epoch)

    def change(value):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schedule.step()

    return (lambda x: x * schedule.get_last_lr()[0]), change
