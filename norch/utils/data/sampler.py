"""Samplers: the order in which samples are visited, one by one or in batches.

The random ones draw from a Generator, so that a seed fixes every epoch, the first and all that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

from ...random import Generator, randperm

# What a random order may come from: a seed, a Generator, or None for the global stream.
Source = int | Generator | None


def as_generator(source: Source) -> Generator | None:
    """A Generator from a seed; a Generator, or None, as it is."""
    if source is None or isinstance(source, Generator):
        return source
    if isinstance(source, bool) or not isinstance(source, int):
        raise TypeError(f"generator must be a seed, a norch.Generator or None, got {type(source).__name__}")
    return Generator().manual_seed(source)


def permutation(size: int, source: Source) -> list[int]:
    """The numbers 0 ... size - 1 in random order."""
    order: list[int] = randperm(size, generator=as_generator(source)).tolist()
    return order


class Sampler:
    """Base: a subclass defines `__iter__`, which gives the indices of one epoch, and `__len__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} defines no __len__()")


class SequentialSampler(Sampler):
    """0, 1, 2, ... in order.

    >>> list(norch.utils.data.SequentialSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Every index once, in an order that differs from epoch to epoch.

    generator: a seed or a Generator, for orders that can be had again; None draws from the global stream.

    >>> sorted(norch.utils.data.RandomSampler(range(4), generator=1))
    [0, 1, 2, 3]
    """

    def __init__(self, data_source: Sized, generator: Source = None) -> None:
        self.data_source = data_source
        self.generator = as_generator(generator)

    def __iter__(self) -> Iterator[int]:
        return iter(permutation(len(self.data_source), self.generator))

    def __len__(self) -> int:
        return len(self.data_source)


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler; the last may be shorter, unless drop_last.

    >>> list(norch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer, but got {batch_size}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
