"""What pytest skips under wine: what asks for something of POSIX in vain, and what wine's C library does otherwise."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

# {what an exception says: why the test cannot run}
_ABSENT = {
    r"has no attribute '(fork|killpg|register_at_fork)'": "needs forks and groups of processes",
    r"has no attribute '(SIGALRM|SIGKILL|setitimer|pthread_sigmask|pthread_kill)'": "needs POSIX's signals",
    r"has no attribute '(sysconf|sched_[gs]etaffinity|mkfifo|getuid|geteuid|memfd_create|O_CLOEXEC)'": "needs POSIX",
    r"has no attribute 'tzset'": "needs POSIX",
    r"No module named '(resource|fcntl)'": "needs POSIX",
    r"'/proc/|\\\\proc\\\\": "needs /proc",
    r"cannot find context for 'fork'": "needs forks",
    r"Can't (get|pickle) local object": "forks: a spawned process takes no local function",
    r"WinError (5|32)\]": "replaces or deletes a file that is mapped",
    r"needs SciPy": "needs SciPy, which is not fetched",
    r"This example needs": "needs packages that are not fetched",
}
# {test: why it cannot run}
_LEFT_OUT = {
    r"test_a_result_does_not_depend_on_its_neighbours\[log2-": "log2(-0.0) of wine and so of NumPy is inf",
    r"test_mapping.py::test_(tensors_lie_in_the_file|the_mapping_ends)": "reads /proc, which is Linux's under wine",
    r"test_edge_values\[frexp-": "NumPy's exponents of inf and nan are any numbers there",
    r"test_norms_of_extreme_elements|test_far_from_0": "NumPy's long double, of the references, is double there",
    r"test_getitem.py::test_(written_)?like_numpy": "NumPy 2.1 takes an index out of range where the result is empty",
    r"test_functions_of_numpy$|test_memory_is_shared_both_ways\[complex64": "NumPy needs crealf, which wine lacks",
    r"test_a_number_that_changes\[function_of_a_c_library": "POSIX's getenv, in a library without a name",
    r"test_ctrl_c_(ends_a_training_loop|during_long_work)": "sends a signal to a process",
    r"test_threads_that_are_wanted_no_more_sleep": "asks POSIX how often threads waited",
    r"test_cuda_errors.py::test_(no_plugin|a_plugin_that_is_named_and|a_file_that_is_no)": "Windows has no plugins",
    r"test_only_the_border_is_exported": "reads the symbols by nm",
    r"test_a_missing_or_broken_library": "loads another library of Linux's",
    r"test_no_loop_leaves_a_with_or_finally_behind": "Python 3.13 guards loops otherwise, on Linux too",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for pattern, why in _LEFT_OUT.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=why))


def _reason(said: str) -> str | None:
    return next((why for pattern, why in _ABSENT.items() if re.search(pattern, said)), None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    """A file of tests that imports what is not there is skipped whole."""
    report = yield
    if report.failed and (why := _reason(str(report.longrepr))):
        report.outcome, report.longrepr = "skipped", (__file__, 0, f"Skipped: {why}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Any:
    try:
        return (yield)
    except (ImportError, SystemExit, OSError, RuntimeError, AttributeError, ValueError) as error:
        why = _reason(str(error))
        if why is None:
            raise
    for name in ("last_exc", "last_value", "last_traceback"):  # where pytest left it, with the test's tensors
        vars(sys).pop(name, None)
    pytest.skip(why)
