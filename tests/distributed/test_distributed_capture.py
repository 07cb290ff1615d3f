"""Collectives in functions that norch.capture records: programs_capture.py has what runs on each rank."""

from __future__ import annotations

import pytest
from launcher import run, with_mpi

pytestmark = [pytest.mark.host, pytest.mark.slow, with_mpi]


@pytest.mark.parametrize("name", ["training", "collectives", "refused"])
def test_on_two_ranks(name: str) -> None:
    done = run(name, 2, file="programs_capture.py")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == ["rank 0 is done", "rank 1 is done"]
