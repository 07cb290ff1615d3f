"""The consumer's side of a loader with workers: the processes, the requests to them, and their answers.

Each worker has its own connection; there is no shared lock or queue. So if a worker is killed, the others do not wait
for it, and its closed connection is noticed at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..._files.shared_memory import one_copy, send_tensors_by_sharing
from ...errors import ArgumentError, Error
from .channel import Incoming, Outgoing, interrupts_held
from .collate import pinned
from .position import Position
from .transport import Inbox, receive, send
from .worker import BATCH, ENDED, EPOCH, FAILED, STOP, TASK, Post, run

LOOK = 1.0  # how often the waiting consumer checks whether the workers are alive, in seconds
GRACE = 5.0  # seconds in which workers may exit by themselves


def context_of(context: Any) -> Any:
    """The multiprocessing context for a context, a name, or None (the default one)."""
    import multiprocessing

    if context is None:
        mpi = sys.modules.get("mpi4py.MPI")  # its processes must not be forked
        started = mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized()
        return multiprocessing.get_context("forkserver" if started else None)
    if isinstance(context, multiprocessing.context.BaseContext):
        return context
    methods = multiprocessing.get_all_start_methods()
    if context not in methods:
        raise ArgumentError(
            f"DataLoader: multiprocessing_context must be a context or one of {methods}, not {context!r}"
        )
    return multiprocessing.get_context(context)


class Worker:
    """A process, its connection, and the number of answers that it owes."""

    def __init__(self, context: Any, loader: Any, number: int, seed: int, earlier: list[Worker]):
        self.id, self.owed, self.waiting = number, 0, 0
        self.connection, theirs = context.Pipe()
        self.inbox = Inbox(self.connection)
        forked = context.get_start_method() == "fork"
        copied = [worker.connection for worker in (*earlier, self)] if forked else []
        post = Post(number, loader.num_workers, loader._recipe, loader.worker_init_fn, seed, theirs, copied)
        self.process = context.Process(target=run, args=(post,), daemon=True, name=f"norch-loader-{number}")
        try:
            with interrupts_held():  # until the worker ignores them
                self.process.start()
        finally:
            theirs.close()  # only the worker keeps it
        self.outgoing = Outgoing(self.connection)

    def ask(self, number: int, indices: Any) -> None:
        """Requests a batch, and returns the blocks of earlier ones."""
        self.owed += 1
        self.tell((TASK, number, indices, self.inbox.returned()))

    def tell(self, message: Any) -> None:
        """Sends a message."""
        try:
            send(self.outgoing, message)
        except OSError:
            raise self.lost() from None

    def lost(self) -> Error:
        """The error for a worker that has exited."""
        self.process.join(LOOK)
        code, who = self.process.exitcode, f"DataLoader worker {self.id} (pid {self.process.pid})"
        if code is not None and code < 0:
            hint = "; the system kills so what takes too much memory" if code == -getattr(signal, "SIGKILL", 0) else ""
            return Error(f"{who} is killed by signal: {signal.Signals(-code).name}{hint}")
        return Error(f"{who} exited unexpectedly with exit code {code}")


class Pool:
    """The workers of a loader."""

    def __init__(self, loader: Any, seed: int):
        self.workers: list[Worker] = []
        self.epochs = 0
        self.user: Any = lambda: None  # a weak reference to the last Epoch
        self.owner = os.getpid()
        self.close = weakref.finalize(self, _end, self.workers, self.owner)
        context = context_of(loader.multiprocessing_context)
        send_tensors_by_sharing()
        try:
            with one_copy():
                for number in range(loader.num_workers):
                    self.workers.append(Worker(context, loader, number, seed, self.workers))
        except BaseException:
            self.close()
            raise
        self.incoming = Incoming([worker.connection for worker in self.workers])
        self.of_connection = {worker.connection: worker for worker in self.workers}

    @property
    def busy(self) -> bool:
        """Whether an epoch of these workers is being iterated over."""
        user = self.user()
        return user is not None and not user.closed

    def abort(self) -> None:
        """Terminates the workers."""
        if self.close.alive and self.owner == os.getpid():
            for worker in self.workers:
                worker.process.terminate()
        self.close()

    def begin(self, epoch: Epoch, position: Position) -> int:
        """Starts an epoch, and returns its number."""
        self.user = weakref.ref(epoch)
        self.epochs += 1
        for worker, past in zip(self.workers, position.workers, strict=True):
            worker.waiting = 0
            worker.tell((EPOCH, self.epochs, position.seed, past["delivered"], past["state"]))
        return self.epochs

    def messages(self, seconds: float) -> list[tuple[Worker, Any]]:
        """The workers' messages; waits for the first until the timeout. Error if a worker died."""
        received = []
        ready = self.incoming.wait(seconds)
        for connection in ready:
            worker = self.of_connection[connection]
            try:
                kind, epoch, number, *rest = receive(worker.connection)
                if kind == BATCH:
                    rest = [rest[0], worker.inbox.open(*rest[1:])]
            except (EOFError, OSError):
                raise worker.lost() from None
            worker.owed -= 1
            if epoch == self.epochs:
                received.append((worker, (kind, number, rest)))
        if not ready and seconds:
            for worker in self.workers:
                if not worker.process.is_alive() and not worker.connection.poll():
                    raise worker.lost()
        return received


def _end(workers: list[Worker], owner: int) -> None:
    """Ends the processes. In a forked child of the owner it only closes the connections."""
    is_owner = os.getpid() == owner
    for worker in workers:
        with contextlib.suppress(OSError):  # it has exited
            if is_owner and worker.outgoing.is_free():
                # A message: another process may hold a copy of the connection and keep it open.
                send(worker.outgoing, (STOP,))
        worker.outgoing.close()
    if not is_owner:
        return
    deadline = time.monotonic() + GRACE
    for worker in workers:
        process = worker.process
        if process.pid is None:
            continue
        process.join(max(0.0, deadline - time.monotonic()))
        for force in (process.terminate, process.kill):
            if process.is_alive():
                force()
                process.join(1)
        with contextlib.suppress(ValueError):  # it cannot be killed
            process.close()


class Epoch:
    """The batches of one epoch, as an iterator."""

    closed = True

    def __init__(self, loader: Any, pool: Pool, position: Position, keep: bool):
        self.loader, self.pool, self.position, self.keep = loader, pool, position, keep
        self.iterable, self.in_order = loader._recipe.iterable, loader.in_order
        self.closed = False
        self.results: dict[int, tuple[Worker, Any, Callable[[], Any]]] = {}
        self.waiting = 0  # batches that were requested but not delivered
        self.wanted = 0  # for an IterableDataset, the number of the next batch
        self.asked = [past["delivered"] for past in position.workers]
        self.ended = [False] * len(position.workers)  # for an IterableDataset, whether each worker has finished
        self.tasks = position.numbered()
        self.exhausted = False
        self.pinning = ThreadPoolExecutor(1, "norch-pin-memory") if loader.pin_memory else None
        try:
            self.epoch = pool.begin(self, position)
            self._ask()
        except BaseException:
            self.close(broken=True)
            raise

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        if self.closed:
            raise StopIteration
        try:
            number = self._wait()
        except BaseException:
            self.close(broken=True)
            raise
        if number is None:
            self.close()
            self.loader._ended(self.position)
            raise StopIteration
        worker, state, make = self.results.pop(number)
        worker.waiting -= 1
        self.waiting -= 1
        self.position.note(number, state)
        return make()

    def _wait(self) -> int | None:
        """Waits for the next batch and returns its number; None at the end."""
        timeout = self.loader.timeout
        deadline = time.monotonic() + timeout if timeout else float("inf")
        seconds = 0.0
        while True:
            for worker, message in self.pool.messages(seconds):
                self._accept(worker, *message)
            self._ask()
            number = self._ready()
            if number is not None:
                return number
            if self.exhausted and not self.waiting:
                return None
            seconds = min(LOOK, deadline - time.monotonic())
            if seconds <= 0:
                raise Error(f"DataLoader timed out after {timeout} seconds")

    def _accept(self, worker: Worker, kind: int, number: int, rest: list[Any]) -> None:
        if kind == ENDED:
            self.ended[worker.id] = True
            worker.waiting -= 1
            self.waiting -= 1
            return
        if kind == FAILED:
            self.results[number] = worker, None, lambda: _raise(*rest)
            return
        state, load = rest
        make = load if self.pinning is None else self.pinning.submit(lambda: pinned(load())).result
        self.results[number] = worker, state, make

    def _ready(self) -> int | None:
        """The number of a received batch that may be delivered next."""
        if not self.results:
            return None
        if not self.in_order:
            return next(iter(self.results))
        if not self.iterable:
            self.wanted = self.position.delivered
        while self.iterable and self.wanted not in self.results:
            turn, worker = divmod(self.wanted, len(self.position.workers))
            if turn >= self.position.workers[worker]["delivered"] and not self.ended[worker]:
                break
            self.wanted += 1
        return self.wanted if self.wanted in self.results else None

    def _ask(self) -> None:
        """Requests batches until each worker has prefetch_factor in progress or ready."""
        factor, workers = self.loader.prefetch_factor, self.pool.workers
        if self.iterable:
            for worker in workers:
                while self._has_more(worker) and worker.waiting < factor and worker.outgoing.is_free():
                    self._asked(worker, self.asked[worker.id] * len(workers) + worker.id, None)
                    self.asked[worker.id] += 1
            self.exhausted = not any(map(self._has_more, workers))
        while not self.exhausted and not self.iterable and self.waiting < factor * len(workers):
            worker = min(workers, key=lambda worker: worker.owed)
            if worker.owed >= factor or not worker.outgoing.is_free():
                break  # another write could block
            task = next(self.tasks, None)
            if task is None:
                self.exhausted = True
            else:
                self._asked(worker, *task)

    def _has_more(self, worker: Worker) -> bool:
        return not self.ended[worker.id]

    def _asked(self, worker: Worker, number: int, indices: Any) -> None:
        worker.ask(number, indices)
        worker.waiting += 1
        self.waiting += 1

    def close(self, broken: bool = False) -> None:
        """Ends the workers unless they persist."""
        if self.closed:
            return
        self.closed = True
        self.results.clear()
        if self.pinning is not None:
            self.pinning.shutdown(wait=False, cancel_futures=True)
        if broken:
            self.pool.abort()
        elif not self.keep:
            self.pool.close()

    def __del__(self) -> None:
        self.close()


class _Verbatim(str):
    """A text that KeyError prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _raise(kind: type[Exception], text: str) -> None:
    """Raises an error that a worker sent."""
    error: Exception
    try:
        error = kind(_Verbatim(text))
    except Exception:  # its constructor takes other arguments
        error = kind.__new__(kind, text)
    if text not in str(error) or isinstance(error, StopIteration):  # a StopIteration would end the iteration
        error = Error(text)
    try:
        raise error
    finally:
        del error  # its traceback has this frame
