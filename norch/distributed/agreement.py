"""Agreement: ranks that are about to run different collectives all raise an Error, before a tensor is written.

MPI compares neither shapes nor dtypes nor operations: ranks that differ get wrong elements, part of them, or wait
forever. So each rank sends a number that stands for its call ahead, by a reduction of 16 bytes on a communicator of its
own. The largest and the negated smallest are the same on all ranks; where they are not each other's negative, all ranks
gather what each calls.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from typing import Any

from ..errors import Error
from .watch import Watch, described


def number_of(text: str) -> int:
    """The number that stands for a call."""
    return zlib.crc32(text.encode())


def told(operation: tuple[Any, ...], method: str, arguments: Sequence[Any]) -> str:
    """A call in words, with the sizes of parts that all ranks give."""
    text = described(operation)
    if method == "Allgatherv":
        return f"{text} into parts of {arguments[1][1]} elements"
    if method == "Reduce_scatter":
        return f"{text} from parts of {arguments[2]} elements"
    return text


class Agreement:
    """Compares the calls of the ranks of an MPI communicator. mpi is the communicator's module."""

    def __init__(self, comm: Any, ranks: Sequence[int], watch: Watch, mpi: Any) -> None:
        self.comm, self.ranks, self.watch, self.mpi = comm.Dup(), ranks, watch, mpi

    def check(self, operation: tuple[Any, ...], method: str, arguments: Sequence[Any]) -> None:
        """Waits for the numbers of all ranks. Raises an Error on all of them if the numbers differ."""
        text = told(operation, method, arguments)
        pair = _pair(text)
        self.watch.run(operation, self.comm.Allreduce, self.mpi.IN_PLACE, [pair, self.mpi.INT64_T], self.mpi.MAX)
        self.compare(operation, text, pair)
        if method == "Alltoallv":
            rows = self.watch.run(operation, self.comm.allgather, _counts(arguments))
            self._compare_counts(operation, [count for row in rows for count in row])

    def begin(self, operation: tuple[Any, ...], method: str, arguments: Sequence[Any]) -> Pending:
        """Sends the numbers without waiting."""
        return Pending(self, operation, method, arguments)

    def compare(self, operation: tuple[Any, ...], text: str, pair: Sequence[int]) -> None:
        """Raises an Error if the largest number and the negated smallest show that numbers differ."""
        if pair[0] != -pair[1]:
            self.differ(operation, text)

    def differ(self, operation: tuple[Any, ...], text: str) -> None:
        """The Error of ranks that have learned that they differ."""
        calls = self.watch.run(operation, self.comm.allgather, text)
        each = "; ".join(f"rank {rank}: {call}" for rank, call in zip(self.ranks, calls, strict=True))
        raise Error(f"{operation[0]}: the ranks do not call the same: {each}")

    def _compare_counts(self, operation: tuple[Any, ...], counts: Sequence[int]) -> None:
        """Error unless each rank expects of each other one as many elements as that sends; counts: of all ranks, what
        it sends to each, and expects of each."""
        n = len(self.ranks)
        for i, sender in enumerate(self.ranks):
            for j, receiver in enumerate(self.ranks):
                sent, expected = counts[2 * n * i + j], counts[2 * n * j + n + i]
                if sent != expected:
                    raise Error(
                        f"{operation[0]}: rank {sender} sends {sent} elements to rank {receiver}, which expects "
                        f"{expected}"
                    )

    def free(self) -> None:
        """Frees the communicator."""
        self.comm.Free()


class Pending:
    """A comparison that has begun."""

    def __init__(self, of: Agreement, operation: tuple[Any, ...], method: str, arguments: Sequence[Any]) -> None:
        self.of, self.operation, self.text = of, operation, told(operation, method, arguments)
        mpi, comm, run = of.mpi, of.comm, of.watch.run
        self.pair = _pair(self.text)
        self.requests = [run(operation, comm.Iallreduce, mpi.IN_PLACE, [self.pair, mpi.INT64_T], mpi.MAX)]
        if method == "Alltoallv":
            mine = array("q", _counts(arguments))
            self.counts = array("q", bytes(8 * len(mine) * len(of.ranks)))
            self.mine = mine
            self.requests.append(run(operation, comm.Iallgather, [mine, mpi.INT64_T], [self.counts, mpi.INT64_T]))

    def is_complete(self, waits: bool) -> bool:
        """Whether the numbers have come; Error where they differ."""
        while self.requests:
            request = self.requests[0]
            if waits:
                self.of.watch.run(self.operation, request.Wait)
            elif not self.of.watch.run(self.operation, request.Test):
                return False
            del self.requests[0]
        self.of.compare(self.operation, self.text, self.pair)
        if hasattr(self, "counts"):
            self.of._compare_counts(self.operation, self.counts)
        return True


def _pair(text: str) -> array[int]:
    number = number_of(text)
    return array("q", (number, -number))


def _counts(arguments: Sequence[Any]) -> list[int]:
    """How many elements this rank sends to each, and expects of each."""
    return [*arguments[0][1], *arguments[1][1]]
