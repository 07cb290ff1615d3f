"""monitored_barrier(): all ranks report to the first one, which names the missing ones."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from .._package.recording import unseen
from ..errors import ArgumentError, Error
from .process_group import ProcessGroup
from .watch import seconds_of

_TAG = 32767  # the largest that every MPI has


def meet(group: ProcessGroup, timeout: timedelta | float | None, wait_all_ranks: bool) -> None:
    """Returns on all ranks of the group, or raises an Error on all that called it."""
    name = "monitored_barrier"
    seconds = seconds_of(timeout, name, group.watch.timeout)
    unseen(f"{name} talks to other processes")
    if not hasattr(group.comm, "irecv"):
        raise ArgumentError(f"{name}: the group has no MPI")
    group.meetings += 1
    me, until = group.rank(), time.monotonic() + seconds
    if me != 0:
        report = group.comm.isend(group.meetings, 0, _TAG)
        if _received(group, [0], until):
            raise Error(f"{name}: rank {group.ranks[me]}: rank {group.ranks[0]} did not answer within {seconds:.1f} s")
        report.wait()
        return
    missing = _received(group, range(1, group.size()), until)
    if missing:
        named = [group.ranks[rank] for rank in (missing if wait_all_ranks else missing[:1])]
        raise Error(
            f"{name}: rank{'s' * (len(named) > 1)} {', '.join(map(str, named))} did not come within {seconds:.1f} s"
        )
    for answer in [group.comm.isend(group.meetings, rank, _TAG) for rank in range(1, group.size())]:
        answer.wait()


def _received(group: ProcessGroup, ranks: Any, until: float) -> list[int]:
    """The ranks from which no message of this barrier arrives in time. Messages of earlier, failed barriers are
    dropped."""
    missing = list(ranks)
    while missing:
        for rank in list(missing):
            while rank in missing and group.comm.iprobe(rank, _TAG):
                if group.comm.recv(None, rank, _TAG) == group.meetings:
                    missing.remove(rank)
        if time.monotonic() > until:
            return missing
        time.sleep(0.0005)
    return missing
