"""DataLoader: the batches of a data set, loaded in this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from ..._exports import publish
from ...errors import ArgumentError
from .collate import default_collate, default_convert, pinned
from .dataset import Dataset, IterableDataset, taker
from .sampler import BatchSampler, RandomSampler, SequentialSampler, Source


def get_worker_info() -> None:
    """None, since no loader has workers: a data set then reads all of its samples.

    >>> norch.utils.data.get_worker_info() is None
    True
    """


T_co = TypeVar("T_co", covariant=True)


class Samples(Protocol[T_co]):
    """What has samples by index: a Dataset, a list."""

    def __getitem__(self, index: int, /) -> T_co: ...


class DataLoader(Generic[T_co]):
    """The batches of a data set. Each iteration is one epoch; collate_fn makes a batch of a list of samples.

    dataset is any object with `len` and indices from 0, or an IterableDataset. A batch has batch_size samples; the last
    one may have fewer, or is dropped with drop_last. batch_size None gives samples instead of batches. shuffle draws a
    new order for each epoch; seed, or generator (a Generator or a seed), makes the orders reproducible. sampler gives
    the indices, batch_sampler lists of indices. pin_memory puts the batches into pinned memory. Data are loaded in this
    process: num_workers only warns, and the options for workers have no effect. ArgumentError for options that exclude
    each other, TypeError for a dataset or a shuffle of another type.

    A TensorDataset, or a Subset of one, gives a batch in one call unless there is a collate_fn; a data set with
    `__getitems__(indices)` gives the list of samples in one call.

    >>> data = norch.utils.data.TensorDataset(norch.arange(10).reshape(5, 2), norch.arange(5))
    >>> loader = norch.utils.data.DataLoader(data, batch_size=2, shuffle=True, seed=0)
    >>> [tuple(x.shape) for x, y in loader]
    [(2, 2), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        dataset: Samples[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Source = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
    ) -> None:
        if not (isinstance(dataset, Dataset) or hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")):
            raise TypeError(
                "DataLoader: a dataset has len() and indices, or is an IterableDataset; "
                f"got an object of type {type(dataset).__name__}"
            )
        if shuffle is not None and not isinstance(shuffle, bool):
            raise TypeError(f"DataLoader: shuffle must be a bool or None, not {type(shuffle).__name__}")
        if seed is not None:
            if generator is not None:
                raise ArgumentError("DataLoader: seed and generator exclude each other")
            if isinstance(seed, bool) or not isinstance(seed, int):
                raise TypeError(f"DataLoader: seed must be an int or None, not {type(seed).__name__}")
            generator = seed
        if not num_workers >= 0 or not timeout >= 0:
            raise ArgumentError(f"num_workers and timeout are not negative, not {num_workers} and {timeout}")
        if num_workers != 0:
            warnings.warn(f"num_workers={num_workers}: norch loads data in this process", stacklevel=2)
        iterable = isinstance(dataset, IterableDataset)
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("an IterableDataset gives its samples in its own order: no shuffle, no sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if batch_size is None and drop_last:
            raise ArgumentError("drop_last wants batches, but batch_size is None")
        items: Any = dataset
        if iterable:
            sampler = items  # of samples instead of indices
        elif sampler is None:
            sampler = RandomSampler(items, generator=generator) if shuffle else SequentialSampler(items)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset: Any = dataset
        self.batch_size = getattr(batch_sampler, "batch_size", None)
        self.drop_last = drop_last
        self.sampler: Any = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return map(pinned, self._batches()) if self.pin_memory else self._batches()

    def _batches(self) -> Iterator[Any]:
        dataset, iterable = self.dataset, self._iterable
        if self.batch_sampler is None:
            convert = self.collate_fn or default_convert
            for index in self.sampler:
                yield convert(index if iterable else dataset[index])
            return
        collate = self.collate_fn or default_collate
        take = taker(dataset) if self.collate_fn is None else None
        several = getattr(dataset, "__getitems__", None) or (lambda indices: [dataset[index] for index in indices])
        for indices in self.batch_sampler:
            if iterable:
                yield collate(indices)
            else:
                yield collate(several(indices)) if take is None else take(indices)

    def __len__(self) -> int:
        """The number of batches in an epoch, or of samples where batch_size is None."""
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


publish(globals())
