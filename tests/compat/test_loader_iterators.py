"""PyTorch's private iterators over loaders, on a loader that a library makes itself, as fastai does."""

import importlib
import itertools
from typing import Any

import pytest

import norch
from norch.utils.data import get_worker_info


def of_pytorch(torch: Any) -> Any:
    return importlib.import_module("torch.utils.data.dataloader")


def of_norch() -> Any:
    return importlib.import_module("norch.utils.data.dataloader")


class Fake:
    """What fastai's loader has."""

    _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
    _index_sampler, generator, prefetch_factor = itertools.count(), None, 2
    _get_shared_seed = multiprocessing_context = None
    pin_memory, timeout, persistent_workers, pin_memory_device, worker_init_fn = False, 0, False, "", None

    def __init__(self, lib: Any, count: int, num_workers: int = 0) -> None:
        self.dataset, self.count, self.num_workers, self.first, self.step = self, count, num_workers, 0, 1
        self._dataset_kind = lib._DatasetKind.Iterable

    def collate_fn(self, x: Any) -> Any:
        return x

    def __iter__(self) -> Any:
        return iter(norch.arange(self.count)[self.first :: self.step])


def test_lengths_of_loaders_and_iterators(torch: Any) -> None:
    for data in (importlib.import_module(f"{m.__name__}.utils.data") for m in (norch, torch)):
        given = data.DataLoader(range(10), batch_sampler=data.BatchSampler(range(10), 4, False))
        assert given.batch_size is None and data.DataLoader(range(10), batch_size=4).batch_size == 4
        for loader in (given, data.DataLoader(range(10), batch_size=4, num_workers=1)):
            batches = iter(loader)
            assert [len(batches), len(next(batches)), len(batches)] == [3, 4, 3]


def share(number: int) -> None:
    """Each worker takes its part; it finds the loader's attributes at its dataset."""
    info: Any = get_worker_info()
    info.dataset.first, info.dataset.step = number, info.num_workers
    info.dataset.dataset.first, info.dataset.dataset.step = number, info.num_workers


def test_streams(torch: Any) -> None:
    for lib in (of_norch(), of_pytorch(torch)):
        batches = lib._SingleProcessDataLoaderIter(Fake(lib, 5))
        assert iter(batches) is batches and isinstance(batches, lib._BaseDataLoaderIter)
        assert [int(x) for x in batches] == [0, 1, 2, 3, 4]


def test_streams_of_workers() -> None:
    lib = of_norch()
    fake: Any = Fake(lib, 7, 2)
    fake.worker_init_fn = share
    assert sorted(int(x) for x in lib._MultiProcessingDataLoaderIter(fake)) == list(range(7))


class Indexed(Fake):
    """A loader of batches of indices."""

    _auto_collation, _index_sampler = True, [[0, 1], [3], [2, 0]]  # type: ignore[assignment]

    def __init__(self, lib: Any) -> None:
        super().__init__(lib, 4)
        self.dataset: Any = [0, 10, 20, 30]
        self._dataset_kind = lib._DatasetKind.Map

    def collate_fn(self, x: Any) -> Any:
        return tuple(x)


def test_batches_of_indices(torch: Any) -> None:
    for lib in (of_norch(), of_pytorch(torch)):
        batches = lib._SingleProcessDataLoaderIter(Indexed(lib))
        assert len(batches) == 3 and list(batches) == [(0, 10), (30,), (20, 0)]


class Several(list[int]):
    def __getitems__(self, indices: Any) -> Any:
        return [-self[i] for i in indices]


def fetched(lib: Any) -> list[Any]:
    kind = lib._DatasetKind
    make = kind.create_fetcher
    said = [
        make(kind.Map, [1, 2, 3], True, tuple, False).fetch([2, 0]),
        make(kind.Map, [1, 2], False, str, False).fetch(1),
    ]
    said.append(make(kind.Map, Several([1, 2]), True, tuple, False).fetch([1]))
    for auto, drop in ((True, False), (True, True), (False, False)):
        fetcher = make(kind.Iterable, range(5), auto, str if not auto else tuple, drop)
        for _ in range(4):
            try:
                said.append(fetcher.fetch([0, 0]))
            except StopIteration:
                said.append("ended")
                break
    return said


def test_fetchers(torch: Any) -> None:
    assert fetched(of_norch()) == fetched(of_pytorch(torch))


def test_a_loader_itself() -> None:
    lib = of_norch()
    loader = norch.utils.data.DataLoader(list(range(4)), batch_size=2)
    assert [b.tolist() for b in lib._SingleProcessDataLoaderIter(loader)] == [[0, 1], [2, 3]]
    with pytest.raises(NotImplementedError):
        importlib.import_module("norch.utils.data._utils.fetch")._BaseDatasetFetcher([], False, None, False).fetch(0)
