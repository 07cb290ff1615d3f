"""The position of a loader, which can be saved and resumed: the state at the start of the epoch, and what was
delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...errors import ArgumentError
from ...random import Generator, default_generator
from .seeding import mixed


class Position:
    """An epoch. generators: the states of the loader's generators at its start, the default one first.

    delivered, beyond: the batches with numbers below `delivered`, and those in `beyond`, have been delivered. workers:
    for an IterableDataset, the batches delivered by each worker and the state of its dataset.
    """

    def __init__(self, loader: Any, resumed: dict[str, Any] | None = None):
        sources = generators_of(loader)
        kept = default_generator.__getstate__()
        if resumed is not None:
            restore(sources, resumed["generators"])
        self.generators = states_of(sources)
        self.delivered = resumed["delivered"] if resumed else 0
        self.beyond = set(resumed["beyond"]) if resumed else set()
        count = max(1, loader.num_workers)
        self.workers: list[dict[str, Any]] = [{"delivered": 0, "state": None} for _ in range(count)]
        self.iterable = loader._recipe.iterable
        self.warn_of, self.reported, self.yielded = loader._warn_of_length, loader._reported, 0
        if resumed and self.iterable:
            if len(resumed["workers"]) != count:
                raise ArgumentError(
                    f"DataLoader: the state of an IterableDataset in {len(resumed['workers'])} processes cannot be "
                    f"resumed in {count}"
                )
            self.workers = [{key: worker[key] for key in ("delivered", "state")} for worker in resumed["workers"]]
        self.stream: Any = None  # the Stream of this process; state_dict() asks it for its state
        recipe = loader._recipe
        source = loader.generator or default_generator
        before = source.__getstate__()
        self.tasks: Iterator[Any] = iter(()) if recipe.iterable else iter(loader._index_sampler)
        self.seed = mixed(*before)
        if not recipe.taker and source.__getstate__() == before:  # the sampler has not drawn from it yet
            source._reserve(1)
        deque(islice(self.tasks, self.delivered), maxlen=0)
        if resumed is not None:  # a saved state
            restore([default_generator], [kept])

    def numbered(self) -> Iterator[tuple[int, Any]]:
        """The numbers of the next batches, and their indices."""
        for number, task in enumerate(self.tasks, self.delivered):
            if number >= self.delivered and number not in self.beyond:  # not delivered before the state was saved
                yield number, task

    def note(self, number: int, state: Any = None) -> None:
        """Records that batch `number` was delivered. state: that of the worker's IterableDataset after it."""
        if self.iterable:
            self.yielded += 1
            if self.reported is not None and self.yielded > self.reported:
                self.warn_of(self.yielded)
            worker = self.workers[number % len(self.workers)]
            worker["delivered"] += 1
            worker["state"] = state
            return
        self.beyond.add(number)
        while self.delivered in self.beyond:
            self.beyond.remove(self.delivered)
            self.delivered += 1

    def state_dict(self) -> dict[str, Any]:
        """The state for __init__'s argument resumed."""
        state = {"generators": self.generators, "delivered": self.delivered, "beyond": sorted(self.beyond)}
        if self.iterable:
            if self.stream is not None:
                self.workers[0]["state"] = self.stream.state_dict()
            state["workers"] = [dict(worker) for worker in self.workers]
        return state


def generators_of(loader: Any) -> list[Generator]:
    """The default generator, and those that the loader and its samplers draw from."""
    inner = getattr(loader.batch_sampler, "sampler", None)
    holders = (loader, loader.sampler, loader.batch_sampler, inner)
    generators = [default_generator, *(getattr(holder, "generator", None) for holder in holders)]
    return list(dict.fromkeys(each for each in generators if isinstance(each, Generator)))


def states_of(generators: list[Generator]) -> list[list[int]]:
    """The seed and position of each generator."""
    return [list(generator.__getstate__()) for generator in generators]


def restore(generators: list[Generator], states: Any) -> None:
    """Restores seeds and positions from states_of()."""
    for generator, (seed, position) in zip(generators, states, strict=True):
        generator._state[0], generator._state[1] = seed, position
