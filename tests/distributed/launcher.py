"""Starts programs on several processes of this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
ALONE = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "WORLD_SIZE", "OMPI_", "PMI"))}
with_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec: norch-dl[mpi]"
)


def launch(*program: object, ranks: int, **env: str) -> subprocess.CompletedProcess[str]:
    """python with these arguments on `ranks` processes, more of them than cores if need be."""
    options = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "NORCH_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *map(str, program)]
    return subprocess.run(
        command, cwd=ROOT, env={**ALONE, **options, **env}, capture_output=True, text=True, timeout=300
    )


def run(
    name: str, ranks: int, *arguments: object, file: str = "programs.py", **env: str
) -> subprocess.CompletedProcess[str]:
    """A function of programs.py, or of another file beside it, on each rank."""
    return launch(Path(__file__).with_name(file), name, *arguments, ranks=ranks, **env)
