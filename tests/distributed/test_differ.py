"""Ranks that differ, and DistributedDataParallel in orders that are not once forward and once backward: each is
averaged right, or all ranks raise. The programs are in programs_differ.py."""

from __future__ import annotations

import pytest
from launcher import run, with_mpi

pytestmark = pytest.mark.host


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", ["collectives", "begun", "messages", "orders", "sets", "more_backwards"])
def test_ranks_that_differ(name: str, ranks: int) -> None:
    done = run(name, ranks, file="programs_differ.py")
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of {ranks} is done" for i in range(ranks)]
