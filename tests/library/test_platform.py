"""What csrc/core/platform.c says of the machine, beside what Python says of it."""

import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import norch
from norch._files import section

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform == "win32":
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("platform") / "platform"
    sources = [ROOT / "tests/native/platform.c", ROOT / "csrc/core/platform.c"]
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([compiler, *flags, "-o", program, *sources, "-lm"], check=True)
    return program


def test_the_machine_is_as_python_sees_it(program):
    before = time.perf_counter_ns()
    clock, processors, cache, memory, swap, aligned = map(int, subprocess.check_output([program]).split())
    assert before < clock < time.perf_counter_ns(), "it is another clock than Python's"
    assert aligned == 1 and cache >= 0 and swap >= 0
    if sys.platform.startswith("linux"):
        assert processors == len(os.sched_getaffinity(0))
        assert memory == pytest.approx(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), rel=0.01)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process to processors")
def test_processors_are_those_that_the_process_may_use(program):
    one = min(os.sched_getaffinity(0))
    bound = subprocess.run([program], stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert bound.stdout.split()[1] == b"1"


def test_any_number_of_threads_does_all_the_work():
    x, before = norch.arange(1_000_000), norch.get_num_threads()
    try:
        for count in (1, 2, 3, 256):
            norch.set_num_threads(count)
            assert norch.get_num_threads() == (1 if sys.platform == "emscripten" else count)
            assert norch.equal((x + x) // 2, x) and (-x).sort()[0][0].item() == -999_999
    finally:
        norch.set_num_threads(before)


@pytest.mark.native("shared memory")
def test_a_section_is_one_memory_however_often_it_is_mapped():
    handle = section.create(10_000)
    first, second = section.view(handle, 10_000), section.view(handle, 10_000)
    assert first != second and section.identity(handle)
    ctypes.memset(first + 9_999, 7, 1)
    assert ctypes.string_at(second + 9_998, 2) == b"\0\x07"
    section.close(handle)
    section.forget(first, 10_000)
    assert ctypes.string_at(second + 9_999, 1) == b"\x07", "what is mapped stays"
    section.forget(second, 10_000)
