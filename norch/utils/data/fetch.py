"""Fetchers, which make a batch from indices, or from the next samples of an IterableDataset, in any process."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from .collate import default_collate, default_convert
from .dataset import samples_of, taker
from .seeding import mixed, seed_all


class Recipe(NamedTuple):
    """How a loader makes its batches. batch_size None: samples instead of batches."""

    dataset: Any
    iterable: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    collate_fn: Callable[[Any], Any] | None

    @property
    def taker(self) -> Callable[[Any], Any] | None:
        """A function that makes a batch in one call without user code, or None."""
        return taker(self.dataset) if self.batched and not self.iterable and self.collate_fn is None else None

    def maker(self) -> Callable[[Any], Any]:
        """A function that makes the batch of indices, or the sample of one index."""
        dataset = self.dataset
        if not self.batched:
            convert = self.collate_fn or default_convert
            return lambda index: convert(dataset[index])
        if take := self.taker:
            return take
        collate = self.collate_fn or default_collate
        return lambda indices: collate(samples_of(dataset, indices))


class Stream:
    """The batches of one iteration over an IterableDataset, in one process or in one of several.

    The k-th batch of worker w of n is seeded by the number k * n + w. done: how many batches to skip; state: that of
    the dataset or its iterator after them. Without a state the skipped batches are made and dropped.
    """

    def __init__(self, recipe: Recipe, seed: int, worker: int = 0, workers: int = 1, done: int = 0, state: Any = None):
        self.recipe = recipe
        dataset = recipe.dataset
        seed_all(mixed(seed, -1 - worker))
        at_dataset = state is not None and hasattr(dataset, "state_dict")
        if at_dataset:
            dataset.load_state_dict(state)
        self.samples: Any = iter(dataset)
        if state is None:
            for k in range(done):
                seed_all(mixed(seed, k * workers + worker))
                self.next_batch()
        elif not at_dataset:
            self.samples.load_state_dict(state)

    def next_batch(self) -> Any:
        """The next batch, or sample; StopIteration at the end."""
        recipe = self.recipe
        if not recipe.batched:
            return (recipe.collate_fn or default_convert)(next(self.samples))
        samples = list(islice(self.samples, recipe.batch_size))
        if not samples or (recipe.drop_last and len(samples) < (recipe.batch_size or 0)):
            raise StopIteration
        return (recipe.collate_fn or default_collate)(samples)

    def state_dict(self) -> Any:
        """The state of the dataset, or of its iterator; None if neither has one."""
        for holder in (self.recipe.dataset, self.samples):
            if hasattr(holder, "state_dict"):
                return holder.state_dict()
        return None
