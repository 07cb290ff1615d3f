"""What all tests share: the check that nothing leaks, PyTorch where it is installed, dtypes and layouts.

NORCH_TEST_TORCH=0 leaves out what needs PyTorch, as if it were not installed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

import norch
from norch._lib import lib
from norch.ops import _operand

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
FLOATS = ("float32", "float64")
LAYOUTS = ("contiguous", "transposed", "strided", "offset", "flipped", "expanded")

_failed = pytest.StashKey[bool]()


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


@pytest.fixture(scope="session")
def torch() -> Any:
    """The yardstick; skips where it is not installed."""
    module = load_torch()
    if module is None:
        pytest.skip("needs PyTorch")
    return module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test gives back each storage that it made, and leaves the global settings as they were."""
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


def live_storages() -> int:
    """Storages alive, without the numbers that norch keeps for the next time they are used."""
    _operand._numbers.clear()
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
