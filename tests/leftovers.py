"""What processes and shared memory could leave behind, counted around each test that imports the fixture."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

# The contexts of multiprocessing, those that start Python anew as slow tests.
CONTEXTS = [
    name if name == "fork" else pytest.param(name, marks=pytest.mark.slow)
    for name in multiprocessing.get_all_start_methods()
]
OURS = ("norch", "psm_", "pym-", "sem.mp-")  # of norch and of Python's multiprocessing; other programs have files too


def left() -> dict[str, object]:
    """Descriptors, maps, children, files in /dev/shm, threads; of Windows children and threads."""
    found: dict[str, object] = {
        "children": [child.name for child in multiprocessing.active_children()],
        "threads": [thread.name for thread in threading.enumerate() if "norch" in thread.name],
    }
    if sys.platform == "win32":
        return found
    with open("/proc/self/maps") as maps:
        found["maps"] = sum("memfd:norch" in line for line in maps)
    found["descriptors"] = len(os.listdir("/proc/self/fd"))
    found["/dev/shm"] = sorted(name for name in os.listdir("/dev/shm") if name.startswith(OURS))
    return found


@pytest.fixture(scope="session")
def servers() -> None:
    """What multiprocessing starts when it is needed first, and keeps; fork as the default, also in Python 3.14."""
    if sys.platform == "win32":
        return
    from multiprocessing import forkserver, resource_sharer, resource_tracker

    multiprocessing.set_start_method("fork", force=True)
    forkserver.ensure_running()
    resource_tracker.ensure_running()
    sharer = resource_sharer._resource_sharer  # type: ignore[attr-defined]
    if sharer._listener is None:
        sharer._start()


def is_of_others(name: str) -> bool:
    """Whether a process maps the file that is neither this one nor its child, such as that of other tests."""
    ours = {os.getpid(), *(child.pid for child in multiprocessing.active_children())}
    for process in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/maps") as maps:
                if int(process) not in ours and any(f"/dev/shm/{name}" in line for line in maps):
                    return True
        except OSError:  # ended meanwhile, or another user's
            continue
    return False


def difference(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """What changed, but for files in /dev/shm that are gone, which may be of others too."""
    changed = [what for what in before if what != "/dev/shm" and before[what] != after[what]]
    files = set(after.get("/dev/shm", ())) - set(before.get("/dev/shm", ()))  # type: ignore[call-overload]
    return [f"{what}: {before[what]} -> {after[what]}" for what in changed] + [
        f"/dev/shm/{name}" for name in sorted(files) if not is_of_others(name)
    ]


@pytest.fixture(autouse=True)
def nothing_is_left(servers: None) -> Iterator[None]:
    """Each test ends its workers, and gives back what they shared."""
    gc.collect()
    before = left()
    yield
    gc.collect()
    end = time.monotonic() + 30  # threads and workers end a moment later, which is long on a busy machine
    while (changed := difference(before, left())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not changed, changed
