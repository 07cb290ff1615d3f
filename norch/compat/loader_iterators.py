"""PyTorch's private iterators over loaders. fastai makes them for its own loader, which has the attributes of
DataLoader that they read."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..utils.data import DataLoader, IterableDataset


class _BaseDatasetFetcher:
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes the next samples, one for each index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = [sample for _, sample in zip(possibly_batched_index, self.dataset_iter, strict=False)]
        self.ended = len(data) < len(possibly_batched_index)
        if not data or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Takes the samples at the indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[i] for i in possibly_batched_index])


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _Stream(IterableDataset):
    """The dataset of such a loader, which may not be an IterableDataset; workers see its attributes."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name == "dataset":  # during unpickling
            raise AttributeError(name)
        return getattr(self.dataset, name)


def _as_loader(loader: Any) -> Any:
    """A DataLoader with the settings of such a loader."""
    if isinstance(loader, DataLoader):
        return loader
    streams = loader._dataset_kind == _DatasetKind.Iterable
    how: dict[str, Any] = {"collate_fn": loader.collate_fn, "num_workers": loader.num_workers}
    how["pin_memory"], how["timeout"] = loader.pin_memory, loader.timeout
    if loader.num_workers:
        context = loader.multiprocessing_context
        how["multiprocessing_context"] = None if isinstance(context, ModuleType) else context
        how["worker_init_fn"], how["prefetch_factor"] = loader.worker_init_fn, loader.prefetch_factor
    if loader._auto_collation:
        how["batch_sampler"] = loader._index_sampler
    else:
        how["batch_size"] = None
        if not streams:
            how["sampler"] = loader._index_sampler
    return DataLoader(_Stream(loader.dataset) if streams else loader.dataset, **how)


class _BaseDataLoaderIter:
    """The batches of one pass over a loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches = iter(_as_loader(loader))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader._index_sampler)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    pass


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    pass
