"""A worker: a process that makes the batches that the consumer requests (workers.py), and its WorkerInfo."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._binding.threads import set_num_threads
from ...errors import Error
from .channel import ignore_interrupts
from .fetch import Recipe, Stream
from .seeding import mixed, seed_all

# Messages of the consumer: (EPOCH, epoch, seed, done, state) begins an epoch, with the last three for Stream; (TASK,
# number, what, blocks) requests a batch and returns blocks; (STOP,) ends the worker. Messages of a worker: (BATCH,
# epoch, number, state, *arguments of Inbox.open), (FAILED, epoch, number, type, text), (ENDED, epoch, number).
EPOCH, TASK, STOP, BATCH, FAILED, ENDED = range(6)

PATIENCE = 5  # seconds after which an idle worker checks whether the consumer is alive


class WorkerInfo:
    """The result of get_worker_info(): id, num_workers, seed (of worker_init_fn), and the dataset of this process."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any):
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo inside a DataLoader's worker, else None. An IterableDataset can use it to split its samples.

    >>> norch.utils.data.get_worker_info() is None
    True
    """
    return _info


class Post(NamedTuple):
    """The arguments of a worker process."""

    id: int
    workers: int
    recipe: Recipe
    init: Callable[[int], Any] | None
    seed: int
    connection: Any
    others: list[Any]  # connections of the consumer that a fork copied; closed in the worker


def run(post: Post) -> None:
    """The worker's main loop, until the consumer closes the connection or ends."""
    # Ctrl-C also reaches the consumer, which ends the workers. As an exception in a finalizer it would be printed and
    # lost.
    ignore_interrupts()
    for other in post.others:
        other.close()
    with contextlib.suppress(EOFError, OSError):  # the consumer is gone
        _Worker(post).serve()


class _Worker:
    def __init__(self, post: Post):
        from .transport import Outbox

        global _info
        consumer = os.getppid()
        set_num_threads(1)
        seed = (post.seed + post.id) % (1 << 64)
        seed_all(seed)
        _info = WorkerInfo(post.id, post.workers, seed, post.recipe.dataset)
        self.post, self.consumer, self.connection = post, consumer, post.connection
        self.outbox = Outbox(post.connection)
        self.make = None if post.recipe.iterable else post.recipe.maker()
        self.failure: tuple[Any, str] | None = None
        try:
            if post.init is not None:
                post.init(post.id)
        except Exception as error:
            self.failure = self.failed(error)  # sent when a batch is requested

    def serve(self) -> None:
        from .transport import receive

        while True:
            while not self.connection.poll(PATIENCE):
                if os.getppid() != self.consumer:
                    return
            kind, *message = receive(self.connection)
            if kind == EPOCH:
                self.epoch, self.seed, *self.resumed = message
                self.stream: Stream | None = None
                self.ended = False
            elif kind == STOP:
                return
            else:
                number, indices, blocks = message
                self.outbox.take_back(blocks)
                self.answer(number, indices)

    def answer(self, number: int, indices: Any) -> None:
        """Makes a batch and sends it."""
        from .transport import send

        failure = self.failure
        if failure is None and not self.ended:
            try:
                self.outbox.send((BATCH, self.epoch, number), *self.batch(number, indices))
            except Exception as error:
                self.outbox.abandon()
                self.ended = self.make is None and isinstance(error, StopIteration)
                failure = None if self.ended else self.failed(error)
        if self.ended:
            send(self.connection, (ENDED, self.epoch, number))
        elif failure:
            send(self.connection, (FAILED, self.epoch, number, *failure))

    def batch(self, number: int, indices: Any) -> tuple[Any, Any]:
        """A batch, and the state of the dataset after it."""
        if self.make is None and self.stream is None:
            self.stream = Stream(self.post.recipe, self.seed, self.post.id, self.post.workers, *self.resumed)
        seed_all(mixed(self.seed, number))
        if self.make is not None:
            return self.make(indices), None
        assert self.stream is not None
        return self.stream.next_batch(), self.stream.state_dict()

    def failed(self, error: Exception) -> tuple[Any, str]:
        """An error as sent to the consumer: its type, and a text with the traceback."""
        import traceback

        kind = type(error)
        text = "".join(traceback.format_exception(kind, error, error.__traceback__))
        try:
            pickle.dumps(kind)
        except Exception:  # such as a class that is defined in a function
            kind = Error
        return kind, f"Caught {type(error).__name__} in DataLoader worker process {self.post.id}.\nOriginal {text}"
