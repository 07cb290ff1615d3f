"""What the machine and its containers grant: memory for one block, processors for threads."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="control groups are Linux's"),
]

ROOT = Path(__file__).resolve().parents[2]
NONE = 2**63 - 1
MIB = 1 << 20
SECOND, FIRST = "0::/jobs/one\n", "4:memory:/jobs/one\n3:cpuset:/\n1:cpu,cpuacct:/jobs/one\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The library's file, compiled with a program that prints what it finds below another root."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    made = tmp_path_factory.mktemp("limits") / "limits"
    sources = [ROOT / name for name in ("tests/native/limits.c", "csrc/cpu/limits.c", "csrc/core/platform.c")]
    subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", made, *sources], check=True)
    return made


@pytest.mark.parametrize(
    "groups, files, memory, processors",
    [
        ("", {}, NONE, NONE),
        (SECOND, {}, NONE, NONE),
        (SECOND, {"jobs/one/memory.max": "max", "jobs/one/cpu.max": "max 100000"}, NONE, NONE),
        (SECOND, {"jobs/one/memory.max": str(64 * MIB), "jobs/one/cpu.max": "150000 100000"}, 64 * MIB, 2),
        (SECOND, {"jobs/one/memory.max": "max", "jobs/memory.max": str(3 * MIB)}, 3 * MIB, NONE),  # of the group around
        (
            SECOND,
            {"memory.max": str(5 * MIB), "cpu.max": "1000 100000"},
            5 * MIB,
            1,
        ),  # of a container, seen from inside
        ("0::/\n", {"memory.max": str(5 * MIB), "cpu.max": "400000 100000"}, 5 * MIB, 4),
        (SECOND, {"jobs/one/memory.max": "junk", "jobs/one/cpu.max": "junk"}, NONE, NONE),
        (SECOND, {"jobs/one/cpu.max": "100000 0"}, NONE, NONE),
        (
            FIRST,
            {
                "memory/jobs/one/memory.limit_in_bytes": str(7 * MIB),
                "memory/memory.limit_in_bytes": "9223372036854771712",
                "cpu/jobs/one/cpu.cfs_quota_us": "250000",
                "cpu/jobs/one/cpu.cfs_period_us": "100000",
            },
            7 * MIB,
            3,
        ),
        (FIRST, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, NONE, NONE),
        (FIRST, {"memory/memory.limit_in_bytes": str(9 * MIB)}, 9 * MIB, NONE),
        ("0::/" + "x" * 5000 + "\n", {"memory.max": str(MIB)}, MIB, NONE),
        ("4:memory\nno line\n:::\n", {}, NONE, NONE),
    ],
)
def test_limits_of_containers(program, tmp_path, groups, files, memory, processors):
    for name, content in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{k}": v for k, v in files.items()}}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    found = subprocess.run([program, tmp_path], capture_output=True, text=True, check=True).stdout.split()
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert int(found[1]) == processors
    assert int(found[0]) >= machine if memory == NONE else memory <= int(found[0]) <= memory + swap()


def swap():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("SwapTotal"))


SMALL_MACHINE = """
#include <string.h>
#include <sys/sysinfo.h>
int sysinfo(struct sysinfo *machine) {
    memset(machine, 0, sizeof *machine);
    machine->totalram = 200, machine->totalswap = 56, machine->mem_unit = 1 << 20;
    return 0;
}
"""
ASKS = """
import norch
norch.empty(256 << 20, dtype=norch.int8)
for count in ((256 << 20) + 1, 2**45):
    try:
        norch.empty(count, dtype=norch.int8)
        print("got it")
    except norch.OutOfMemoryError as error:
        print(error)
"""


def test_a_block_beyond_memory_and_swap_is_refused(tmp_path):
    """Where the system grants it nevertheless, who fills it is killed."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    source, preload = tmp_path / "small.c", tmp_path / "small.so"
    source.write_text(SMALL_MACHINE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", preload, source], check=True)
    env = {**os.environ, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {preload}".strip()}
    said = subprocess.run([sys.executable, "-c", ASKS], env=env, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"empty: out of memory for {count} bytes on cpu" for count in ((256 << 20) + 1, 2**45)]


def test_threads_are_as_many_as_a_container_grants(program):
    granted = int(subprocess.run([program, ""], capture_output=True, text=True, check=True).stdout.split()[1])
    env = {name: value for name, value in os.environ.items() if name != "NORCH_NUM_THREADS"}
    asked = [sys.executable, "-c", "import norch; print(norch.get_num_threads())"]
    count = subprocess.run(asked, env=env, capture_output=True, check=True).stdout
    assert int(count) == min(256, granted, len(os.sched_getaffinity(0)))
