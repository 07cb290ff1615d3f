"""What all tests share: the check that nothing leaks, PyTorch where it is installed, dtypes and layouts.

NORCH_TEST_TORCH=0 leaves out what needs PyTorch, as if it were not installed; the end of a run says how much that
was. NORCH_TEST_DEVICE=cuda makes every tensor that names no device on that device: so `make test-cudasim` runs the
suite on the simulated backend. What a test reads as a NumPy array is copied to the CPU then; tests marked `host` are
about the CPU, and are left out. NORCH_TEST_PART=sampled, or fast, runs what parts.py says.
"""

from __future__ import annotations

import functools
import gc
import os
import re
from collections.abc import Iterator
from typing import Any

import parts
import pytest

import norch
from norch._binding.library import lib
from norch.nn.extras import antialias
from norch.nn.functional import _vision
from norch.ops import _operand
from norch.ops.composed import diagonal

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
FLOATS = ("float32", "float64")
LAYOUTS = ("contiguous", "transposed", "strided", "offset", "flipped", "expanded")

DEVICE = os.environ.get("NORCH_TEST_DEVICE", "cpu")

NO_TORCH = "needs PyTorch"

_failed = pytest.StashKey[bool]()


# Where the public functions that make tensors put them. Tests of operations see only that: what norch itself makes
# on the way must find the right device. Tests of what holds tensors (modules ...) get a default device instead, and
# those of devices (test_cuda*) neither.
_CREATORS = (
    *"tensor as_tensor asarray scalar_tensor from_numpy empty empty_strided zeros ones full arange linspace".split(),
    *"logspace eye rand randn randint randperm tril_indices triu_indices".split(),
)
_OPERATIONS = re.compile(
    r"test_(attention|derivatives|einsum|inplace|losses|narrow|ops|pointwise|pool|products|random|reduce|scan_sort|second"
    r"|shapes|statistics|views)"
)
_placed = False


def _on_device(make: Any) -> Any:
    @functools.wraps(make)
    def made(*arguments: Any, **options: Any) -> Any:
        if _placed and options.get("device") is None:
            if make.__name__ == "from_numpy":
                return make(*arguments).to(DEVICE)
            options["device"] = DEVICE
        return make(*arguments, **options)

    return made


def _stand_on_device() -> None:
    """Lets creators look where to put what they make, and NumPy see what is there."""
    for name in _CREATORS:
        setattr(norch, name, _on_device(getattr(norch, name)))
    numpy = norch.Tensor.numpy

    def copied(self: Any, *, force: bool = False) -> Any:
        if self.requires_grad and not force:
            return numpy(self)  # raises
        return numpy(self.detach().cpu())

    norch.Tensor.numpy = copied  # type: ignore[method-assign]


if DEVICE != "cpu":
    os.environ.setdefault("NORCH_CUDASIM_DEVICES", "2")  # read when the simulation is loaded
    _stand_on_device()


@pytest.fixture(autouse=True)
def on_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test's tensors on the device that is tested."""
    global _placed
    if DEVICE == "cpu":
        yield
        return
    _placed = _OPERATIONS.match(request.node.path.name) is not None
    if not _placed and not request.node.path.name.startswith("test_cuda"):
        norch.set_default_device(DEVICE)
    try:
        yield
        norch.cuda.synchronize()  # an error that a device has yet to tell is of this test
        if norch.cuda.memory_reserved() > 32 << 20:  # by which the simulation takes time, whenever it waits
            norch.cuda.empty_cache()
    finally:
        _placed = False
        norch.set_default_device(None)


def pytest_configure(config: pytest.Config) -> None:
    if parts.PART != "all":
        config.pluginmanager.register(parts.Chosen())


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: Any) -> Any:
    """Says at the end how much of the suite PyTorch would add."""
    result = yield
    left_out = sum(report.longrepr[2].endswith(NO_TORCH) for report in terminalreporter.stats.get("skipped", ()))
    if left_out:
        terminalreporter.write_line(f"{left_out} tests were left out, as they compare with PyTorch (pip install torch)")
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked long, unless -m names that mark: `-m "not slow"` does not bring it back."""
    if "long" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    if DEVICE != "cpu":
        for item in items:
            if item.get_closest_marker("host"):
                item.add_marker(pytest.mark.skip(reason="about the CPU"))


def load_torch() -> Any:
    """The module torch on one thread, or None."""
    if os.environ.get("NORCH_TEST_TORCH") == "0":
        return None
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def torch_or_skip() -> Any:
    """The module torch; where there is none, the test is skipped, or the file that calls this at its top."""
    module = load_torch()
    if module is None:
        pytest.skip(NO_TORCH, allow_module_level=True)
    return module


@pytest.fixture(scope="session")
def torch() -> Any:
    """The yardstick."""
    return torch_or_skip()


def is_older(torch: Any) -> bool:
    """Whether this PyTorch lacks what the one has that the tests were written beside, which is 2.13."""
    return tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test gives back each storage that it made, and leaves the global settings as they were."""
    gc.freeze()  # collections during the test walk over what it made, not over tens of thousands of other tests
    before = live_storages()
    threads, default = norch.get_num_threads(), norch.get_default_dtype()
    yield
    assert norch.is_grad_enabled(), "the test left grad mode off"
    assert norch.get_default_dtype() is default, "the test left another default dtype"
    if norch.get_num_threads() != threads:
        norch.set_num_threads(threads)
    if request.node.stash.get(_failed, False):
        return  # the traceback of a failed test keeps its tensors
    after = live_storages()
    if after != before:
        gc.collect()
        after = live_storages()
    if request.session.testsfailed and after < before:
        return  # what earlier failures held was given back now
    assert after == before, f"{after - before} more storages are alive than before the test"


def drop_numbers() -> None:
    """Drops the tensors of Python numbers that norch keeps for the next time they are used."""
    for numbers in _operand._numbers.values():  # C keeps these dicts: they are emptied, not replaced
        numbers.clear()


def live_storages() -> int:
    """Storages alive, without the numbers and masks that norch keeps for the next time they are used."""
    drop_numbers()
    diagonal._cached_mask.cache_clear()
    _vision._cached_sources.cache_clear()
    antialias._cached_taps.cache_clear()
    return lib.norch_live_storages()


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> norch.dtype:
    """Each dtype in turn."""
    return getattr(norch, request.param)


@pytest.fixture(params=FLOATS)
def float_dtype(request: pytest.FixtureRequest) -> norch.dtype:
    """Each floating dtype in turn."""
    return getattr(norch, request.param)


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    """Each layout that laid_out() of cases.py knows, in turn."""
    return request.param
