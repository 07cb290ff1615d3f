"""Checks of the environment variables that the library reads when it is loaded. The library ignores a wrong value;
`import norch` raises ImportError."""

from __future__ import annotations

import os


def check_environment(builds: list[str]) -> None:
    """builds: the ISA builds of the library that this machine can run."""
    wanted = os.environ.get("NORCH_ISA")
    if wanted and wanted not in builds:
        raise ImportError(
            f"norch: NORCH_ISA={wanted} is not a build that this machine can run; it has {', '.join(builds)}"
        )
    wanted = os.environ.get("NORCH_AMX")
    if wanted and wanted not in ("0", "emulated"):
        raise ImportError(f"norch: NORCH_AMX={wanted} is neither 0 nor emulated")
    wanted = os.environ.get("NORCH_VNNI")
    if wanted and wanted != "0":
        raise ImportError(f"norch: NORCH_VNNI={wanted} is not 0")
    wanted = os.environ.get("NORCH_NUM_THREADS", "").strip()
    if wanted and not (wanted.isascii() and wanted.isdecimal() and wanted.strip("0")):
        raise ImportError(
            f"norch: NORCH_NUM_THREADS={wanted} is not a number of threads, which is an integer of 1 or more"
        )
