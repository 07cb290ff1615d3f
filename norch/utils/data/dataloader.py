"""DataLoader: batches of a data set, epoch after epoch, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .collate import default_collate
from .sampler import BatchSampler, RandomSampler, SequentialSampler, Source


class DataLoader:
    """Each iteration goes once over the data set and gives batches, made by collate_fn of lists of samples.

    dataset: anything with `len` and indices 0 ... len - 1. batch_size samples make a batch; the last batch is
    shorter, or dropped with drop_last. shuffle draws a new order each epoch; generator, a seed or a
    Generator, makes these orders the same in every run. sampler gives the indices itself, batch_sampler
    lists of them. num_workers: only 0; options that exclude each other raise a ValueError.

    A data set with `take(indices)` (TensorDataset, and a Subset of one) gives its batches in one call,
    unless there is a collate_fn.

    >>> data = norch.utils.data.TensorDataset(norch.arange(10).reshape(5, 2), norch.arange(5))
    >>> loader = norch.utils.data.DataLoader(data, batch_size=2, shuffle=True, generator=0)
    >>> [tuple(x.shape) for x, y in loader]
    [(2, 2), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        *,
        drop_last: bool = False,
        generator: Source = None,
    ) -> None:
        if num_workers != 0:
            raise ValueError(f"num_workers={num_workers}: norch loads data in this process, so it must be 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if sampler is None:
            sampler = RandomSampler(dataset, generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = getattr(batch_sampler, "batch_size", None)
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn

    def __iter__(self) -> Iterator[Any]:
        dataset = self.dataset
        collate = self.collate_fn or default_collate
        take = getattr(dataset, "take", None) if self.collate_fn is None else None
        for indices in self.batch_sampler:
            yield collate([dataset[index] for index in indices]) if take is None else take(indices)

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self.batch_sampler)  # type: ignore[arg-type]
