"""What pytest skips in Pyodide: tests marked `native`, and what asks for a package, a process or a thread in vain."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

# {what an exception says: why the test cannot run}
_ABSENT = {
    "numpy": "needs NumPy, which Pyodide's package for Node lacks",
    "This example needs": "needs packages that Pyodide's package for Node lacks",
    "emscripten does not support processes": "needs processes",
    "can't start new thread": "needs threads",
    "function not implemented": "needs processes",  # os.fork()
    "[Errno 28] Invalid argument": "needs a connection to a process",  # socket.socketpair()
    "setitimer": "needs signals",
    "No module named 'resource'": "needs POSIX",
    "from dtype('int64') to dtype('int32')": "NumPy's sizes have 32 bits in Pyodide, and its bincount takes no others",
}
# The end of a test's name: why it cannot run.
_ENDS_PYODIDE = {"[lists in safetensors]": "JSON nested so deep overflows JavaScript's stack, which ends Pyodide"}
_RELEASE = importlib.util.spec_from_file_location("release_tests", Path("release/tests.py"))
_left_out = importlib.util.module_from_spec(_RELEASE)
_RELEASE.loader.exec_module(_left_out)
_LEFT_OUT = re.compile(rf"test_({'|'.join(_left_out.OF_THE_CHECKOUT)}|benchmarks|notebooks|cuda.*)\.py")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "timeout(seconds): what pytest-timeout, which needs signals, would end")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The tests of a checkout, of CUDA and of several processes."""
    return (
        True if _LEFT_OUT.fullmatch(collection_path.name) or collection_path.name in ("distributed", "fuzz") else None
    )


def _reason(said: str) -> str | None:
    return next((why for text, why in _ABSENT.items() if text.lower() in said.lower()), None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    """A file of tests that imports what is not there is skipped whole."""
    report = yield
    missing = re.search(r"ModuleNotFoundError: .*", str(report.longrepr)) if report.failed else None
    if missing and (why := _reason(missing[0])):
        report.outcome, report.longrepr = "skipped", (__file__, 0, f"Skipped: {why}")
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in _left_out.OTHERS_OF_THE_CHECKOUT:
            item.add_marker(pytest.mark.skip(reason="is about the checkout"))
        elif why := next((why for end, why in _ENDS_PYODIDE.items() if item.nodeid.endswith(end)), None):
            item.add_marker(pytest.mark.skip(reason=why))
        elif mark := item.get_closest_marker("native"):
            item.add_marker(pytest.mark.skip(reason=f"not in Pyodide: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Any:
    try:
        return (yield)
    except (ImportError, SystemExit, OSError, RuntimeError, AttributeError, TypeError) as error:
        why = _reason(str(error))
        if why is None:
            raise
    for name in ("last_exc", "last_value", "last_traceback"):  # where pytest left it, with the test's tensors
        vars(sys).pop(name, None)
    pytest.skip(why)
