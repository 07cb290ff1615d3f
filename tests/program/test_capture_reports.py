"""What loggers, warnings and exceptions do where a captured function can see it, names of modules, the identity of
numbers, released memory: norch.capture and norch.compile compare what decides it, or refuse the function."""

import inspect
import io
import logging
import sys
import traceback
import types
import warnings

import pytest

import norch
from norch.ops import _instead
from norch.program import trusted

pytestmark = pytest.mark.host

WRAPS = {"capture": norch.capture, "compile": lambda f: norch.compile(f, fullgraph=True)}
SEEN = [1.0]


class Sees(logging.Handler):
    def emit(self, record):
        SEEN[0] = 2.0


class Rejects(logging.Filter):
    def filter(self, record):
        return False


def reports(call):
    """A function of a logger's effect, and the logger."""
    logger = logging.getLogger("norch.test.reports")
    logger.setLevel(logging.INFO)
    logger.addHandler(Sees())

    def f(x):
        SEEN[0] = 1.0
        call(logger)
        return x * SEEN[0]

    return f, logger


def by_level(logger):
    logger.setLevel(logging.ERROR)


def by_parent(logger):
    logger.setLevel(logging.NOTSET)
    logging.getLogger("norch.test").setLevel(logging.ERROR)


def by_handler_level(logger):
    logger.handlers[0].setLevel(logging.ERROR)


def by_handler_filter(logger):
    logger.handlers[0].addFilter(Rejects())


CALLS = {
    "info": lambda logger: logger.info("a"),
    "adapter": lambda logger: logging.LoggerAdapter(logger, {}).info("a"),
    "log": lambda logger: logger.log(logging.INFO, "a"),
}
CHANGES = {
    "level": by_level, "parent": by_parent, "handler's level": by_handler_level, "handler's filter": by_handler_filter,
    "filter": lambda logger: logger.addFilter(Rejects()), "handlers": lambda logger: logger.handlers.clear(),
    "disabled": lambda logger: setattr(logger, "disabled", True), "all": lambda _: logging.disable(logging.CRITICAL),
}  # fmt: skip


@pytest.fixture(autouse=True)
def settings():
    root = logging.root
    loggers = [logging.getLogger(name) for name in ("norch.test.reports", "norch.test")]
    with warnings.catch_warnings():
        yield
    logging.disable(logging.NOTSET)
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
        logger.disabled = False
        logger.handlers.clear()
        logger.filters.clear()
    root.handlers[:] = [one for one in root.handlers if type(one) is not Sees]


def gives(wrap, f, change, first, second):
    """Calls give the first number up to a change, and the second one from there on."""
    wrapped, found = wrap(f), []
    for i in range(9):
        if i == 5:
            change()
        found.append(wrapped(norch.ones(1)).item())
    assert found == [first] * 5 + [second] * 4


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_handler_whose_stream_has_no_buffer(wrap, monkeypatch, tmp_path):
    """As stderr with PYTHONUNBUFFERED. The code computes a name, which may be one of the stream's attributes."""
    with io.TextIOWrapper(io.FileIO(tmp_path / "log", "w"), write_through=True) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        logger = logging.getLogger("norch.test.reports")
        logger.addHandler(logging.StreamHandler())
        held = types.SimpleNamespace(k=2.0)

        def f(x, name="k"):
            logger.warning("a")
            return x * getattr(held, name)

        gives(WRAPS[wrap], f, lambda: setattr(held, "k", 3.0), 2.0, 3.0)


@pytest.mark.filterwarnings("ignore:capture")
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", CALLS)
def test_loggers(call, change, wrap):
    f, logger = reports(CALLS[call])
    gives(WRAPS[wrap], f, lambda: CHANGES[change](logger), 2.0, 1.0)


@pytest.mark.filterwarnings("ignore:capture")
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_handler_that_is_added_to_the_root(wrap):
    def f(x):
        SEEN[0] = 1.0
        logging.error("a")
        return x * SEEN[0]

    gives(WRAPS[wrap], f, lambda: logging.root.addHandler(Sees()), 1.0, 2.0)


def warned(x):
    try:
        warnings.warn("a", stacklevel=1)
    except UserWarning:
        return x * 3.0
    return x * 2.0


def counted(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.warn("a", stacklevel=1)
    return x * (1.0 + len(found))


def shown(x):
    seen = []
    with warnings.catch_warnings():
        warnings.showwarning = lambda *args: seen.append("a")
        warnings.warn("a", stacklevel=1)
    return x * (1.0 + len(seen))


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("f", "first", "second", "numbers"),
    [
        (warned, "ignore", "error", (2.0, 3.0)),
        (counted, "always", "ignore", (2.0, 1.0)),
        (shown, "always", "ignore", (2.0, 1.0)),
    ],
    ids=["error", "recorded", "shown"],
)
def test_filters_of_warnings(f, first, second, numbers, wrap):
    warnings.simplefilter(first, UserWarning)
    gives(WRAPS[wrap], f, lambda: warnings.simplefilter(second, UserWarning), *numbers)


def handled(x):
    error = sys.exc_info()[1]
    return x * (error.args[0] if error else 1.0)


def handles_its_own(x):
    try:
        raise ValueError(2.0)
    except ValueError:
        return x * sys.exc_info()[1].args[0]


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_exception_that_the_caller_handles(wrap):
    wrapped, own, x = WRAPS[wrap](handled), WRAPS[wrap](handles_its_own), norch.ones(1)
    for _ in range(5):
        assert wrapped(x).item() == 1.0
    with pytest.raises(norch.CaptureError, match=r"(?s)exception that its caller handles.*test_capture_reports.py:\d+"):
        try:
            raise ValueError(3.0)
        except ValueError:
            wrapped(x)
    try:
        raise ValueError(3.0)
    except ValueError:
        for _ in range(5):
            assert own(x).item() == 2.0
    assert own.recordings() == 1


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("read", [traceback.extract_stack, traceback.format_stack])
def test_the_functions_that_call_it(read, wrap):
    with pytest.raises(norch.CaptureError, match=r"(?s)which functions call it.*test_capture_reports.py:\d+"):
        wrapped = WRAPS[wrap](lambda x: x * len(read()))
        for _ in range(3):
            wrapped(norch.ones(1))


@pytest.mark.parametrize("wrap", WRAPS)
def test_names_of_a_module(wrap):
    module = types.ModuleType("norch_test_names")
    count = len(dir(module))
    gives(WRAPS[wrap], lambda x: x * len(dir(module)), lambda: setattr(module, "extra", 1), count, count + 1)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("equal", [1000.5, 100_000, "a b", (1.5, 2.5)])
def test_identity_of_equal_values(equal, wrap):
    holder = types.SimpleNamespace(a=equal, b=equal)
    again = float("1000.5") if type(equal) is float else int("100000") if type(equal) is int else None
    again = "".join(["a", " b"]) if type(equal) is str else again or (float("1.5"), 2.5)
    f = lambda x: x * (2.0 if holder.a is holder.b else 3.0)  # noqa: E731
    gives(WRAPS[wrap], f, lambda: setattr(holder, "b", again), 2.0, 3.0)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("storage", [lambda x: x.untyped_storage(), lambda x: x.storage()], ids=["untyped", "typed"])
def test_the_address_of_a_storage_is_refused(storage, wrap):
    wrapped = WRAPS[wrap](lambda x: x * (2.0 if storage(x).data_ptr() % 4096 < 2048 else 3.0))
    with pytest.raises(norch.CaptureError, match="address of a tensor"):
        for _ in range(3):
            wrapped(norch.ones(2))


@pytest.mark.parametrize("wrap", WRAPS)
def test_memory_that_is_released(wrap):
    view = memoryview(bytearray(b"\2"))

    def f(x):
        try:
            return x * float(view[0])
        except ValueError:
            return x * 9.0

    gives(WRAPS[wrap], f, view.release, 2.0, 9.0)


def test_files_that_are_known_by_their_names_are_named_as_the_system_does() -> None:
    """Code of norch's layers and of Python's library that is known by its file: on Windows it has backslashes."""
    for functions, files in (
        ((logging.info, traceback.format_exc), trusted.REPORTING_FILES),
        ((norch.nn.Linear.forward, norch.optim.lr_scheduler.StepLR.get_lr), trusted.LAYERS_FILES),
        ((norch.nn.functional.mse_loss, norch.fft.fft), _instead._FUNCTIONS),
    ):
        for function in functions:
            assert inspect.unwrap(function).__code__.co_filename.startswith(files), function


@pytest.mark.parametrize("name", ["__doc__", "__module__"])
def test_texts_of_a_function(name):
    def other():
        "Two."

    captured = norch.capture(lambda x: x * len((other.__doc__ if name == "__doc__" else other.__module__) or ""))
    for text in ("ab", "abc"):
        setattr(other, name, text)
        for _ in range(4):
            assert captured(norch.ones(1)).item() == len(text)


@pytest.mark.parametrize("wrap", WRAPS)
def test_subclasses_of_the_class_of_an_object(wrap):
    class Base:
        pass

    class Unrelated(type):  # the function names type, but asks another class for its subclasses
        __subclasses__ = iter(())

    thing, kept = Base(), [Unrelated]
    wrapped = WRAPS[wrap](lambda x: x * len(type(thing).__subclasses__()))
    for count in range(3):
        for _ in range(4):
            assert wrapped(norch.ones(1)).item() == count
        kept.append(type("Derived", (Base,), {}))
