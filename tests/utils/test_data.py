"""norch.utils.data: sets, samplers and the loader."""

import os
from collections import namedtuple
from itertools import islice
from typing import Any

import numpy as np
import pytest
from checks import wait
from conftest import torch_or_skip

import norch
from norch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from norch.utils.data.dataset import taker


class Squares(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return norch.tensor([float(index)]), index**2


def pairs(size):
    return TensorDataset(norch.arange(2 * size).reshape(size, 2), norch.arange(size))


# ---- sets -------------------------------------------------------------------------------------------------


def test_tensor_dataset():
    data = pairs(4)
    assert len(data) == 4
    x, y = data[-1]
    assert x.tolist() == [6, 7] and y.item() == 3
    x, y = data.take([2, 0])
    assert x.tolist() == [[4, 5], [0, 1]] and y.tolist() == [2, 0]
    with pytest.raises(IndexError):
        data[4]
    with pytest.raises(IndexError):
        data.take([4])
        wait()
    with pytest.raises(ValueError, match="size mismatch"):
        TensorDataset(norch.zeros(3), norch.zeros(2))
    with pytest.raises(ValueError):
        TensorDataset(norch.tensor(1.0))
    with pytest.raises(ValueError):
        TensorDataset()
    with pytest.raises(TypeError):
        TensorDataset([1, 2])


def test_sets_with_methods_that_mean_something_else():
    """Tensors and arrays have a take() of their own, and a subclass may change the samples."""

    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(x * 2 for x in super().__getitem__(index))

    class Several(Squares):
        def __getitems__(self, indices):
            return [-index for index in indices]

    assert [b.tolist() for b in DataLoader(norch.arange(3), batch_size=2)] == [[0, 1], [2]]
    assert [b.tolist() for b in DataLoader(np.arange(3), batch_size=2)] == [[0, 1], [2]]
    assert [b.tolist() for b in DataLoader(Subset(norch.arange(3), [2, 0]), batch_size=2)] == [[2, 0]]
    assert [b[0].tolist() for b in DataLoader(Doubled(norch.arange(3)), batch_size=2)] == [[0, 2], [4]]
    assert [b.tolist() for b in DataLoader(Several(3), batch_size=2)] == [[0, -1], [-2]]


def test_subset_and_concat():
    part = Subset(pairs(5), [4, 1])
    assert len(part) == 2 and part[0][1].item() == 4
    assert taker(part)([1, 0])[1].tolist() == [1, 4]
    assert taker(Subset(Squares(3), [0])) is None
    both = pairs(3) + Squares(2)
    assert type(both) is ConcatDataset and len(both) == 5
    assert ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]
    assert [int(both[i][1]) for i in range(5)] == [0, 1, 2, 0, 1]
    assert int(both[-1][1]) == 1
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(ValueError):
        ConcatDataset([])
    with pytest.raises(TypeError, match="use ChainDataset"):
        ConcatDataset([Squares(2), IterableDataset()])


def test_stack_and_chain():
    x, y = TensorDataset(norch.arange(4)), [5, 6, 7, 8]
    assert StackDataset(x, y)[1] == ((norch.tensor(1),), 6) and len(StackDataset(x, y)) == 4
    named = StackDataset(a=y, b=y)
    assert named[3] == {"a": 8, "b": 8} and len(named) == 4
    assert [batch["a"].tolist() for batch in DataLoader(named, 3)] == [[5, 6, 7], [8]]
    for arguments, options in (((), {}), ((y,), {"a": y}), ((y, [1]), {})):
        with pytest.raises(ValueError, match="StackDataset"):
            StackDataset(*arguments, **options)

    class Count(IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

        def __len__(self):
            return self.n

    both = Count(2) + Count(3)
    assert isinstance(both, ChainDataset) and list(both) == [0, 1, 0, 1, 2] and len(both) == 5
    assert [batch.tolist() for batch in DataLoader(both, 2)] == [[0, 1], [0, 1], [2]]
    assert get_worker_info() is None


def test_base_classes_say_what_is_missing():
    with pytest.raises(NotImplementedError, match="Dataset defines no __getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError, match="__len__"):
        len(Dataset())
    with pytest.raises(NotImplementedError):
        iter(Sampler())
    with pytest.raises(TypeError):
        len(Sampler())


def test_random_split():
    parts = random_split(Squares(10), [7, 3], generator=3)
    assert [len(part) for part in parts] == [7, 3]
    indices = [index for part in parts for index in part.indices]
    assert sorted(indices) == list(range(10)) and indices != list(range(10))
    assert [part.indices for part in random_split(range(10), [0.7, 0.3], generator=3)] == [
        indices[:7],
        indices[7:],
    ]
    assert [len(part) for part in random_split(range(100), [0.29, 0.71])] == [29, 71]
    assert [len(part) for part in random_split(range(11), [0.5, 0.5])] == [6, 5]
    assert [len(part) for part in random_split(range(3), [1.0, 0.0])] == [3, 0]
    with pytest.raises(ValueError, match="do not sum"):
        random_split(range(10), [5, 4])
    with pytest.raises(ValueError, match="negative"):
        random_split(range(10), [11, -1])


# ---- samplers ---------------------------------------------------------------------------------------------


def test_samplers():
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    sampler = RandomSampler(range(50), generator=7)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    again = RandomSampler(range(50), generator=7)
    assert [list(again), list(again)] == [first, second]
    assert list(RandomSampler(range(50), generator=8)) != first
    norch.manual_seed(5)
    one = list(RandomSampler(range(50)))
    norch.manual_seed(5)
    assert list(RandomSampler(range(50))) == one
    with pytest.raises(TypeError, match="seed"):
        RandomSampler(range(3), generator="seven")
    assert len(sampler) == 50 and len(SequentialSampler(range(4))) == 4
    batches = BatchSampler(SequentialSampler(range(5)), 2, drop_last=False)
    assert list(batches) == [[0, 1], [2, 3], [4]] and len(batches) == 3
    batches = BatchSampler(SequentialSampler(range(5)), 2, drop_last=True)
    assert list(batches) == [[0, 1], [2, 3]] and len(batches) == 2
    for size in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="batch_size"):
            BatchSampler(range(5), size)


# ---- the loader -------------------------------------------------------------------------------------------


def test_a_loader_whose_sampler_has_no_batch_gives_none():
    """Whatever the samples: no sampler is asked in place of an empty one."""
    assert list(DataLoader(range(3), batch_size=4, drop_last=True)) == []
    assert list(DataLoader({"ab": 1}, batch_size=4, sampler=["ab"], drop_last=True, num_workers=0)) == []
    assert list(DataLoader(["x", "y"], batch_sampler=[])) == []
    assert list(DataLoader({"a": 1, "b": 1}, batch_sampler=[], num_workers=1)) == []


@pytest.mark.parametrize("data", [pairs(10), Squares(10), Subset(pairs(20), range(10)), [(i, i) for i in range(10)]])
def test_loader_visits_all_in_order_or_shuffled(data):
    loader = DataLoader(data, batch_size=4)
    assert len(loader) == 3
    sizes = [len(y) for x, y in loader]
    assert sizes == [4, 4, 2]
    plain = [value for x, y in loader for value in y.tolist()]
    assert plain == [int(data[i][1]) for i in range(10)]
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=1)
    epochs = [[value for x, y in loader for value in y.tolist()] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == plain
    assert epochs[0] != epochs[1] and epochs[0] != plain
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=1)
    assert [[value for x, y in loader for value in y.tolist()] for _ in range(2)] == epochs
    loader = DataLoader(data, batch_size=4, drop_last=True)
    assert len(loader) == 2 and [len(y) for x, y in loader] == [4, 4]


def test_loader_batches_keep_rows_together():
    loader = DataLoader(pairs(100), batch_size=32, shuffle=True)
    for x, y in loader:
        assert x.dtype == norch.int64 and x.shape == (len(y), 2)
        assert x[:, 0].tolist() == [2 * value for value in y.tolist()]
        assert x.is_contiguous()


def test_loader_options():
    data = pairs(6)
    loader = DataLoader(data, batch_size=2, collate_fn=lambda samples: len(samples))
    assert list(loader) == [2, 2, 2]
    loader = DataLoader(data, batch_size=2, sampler=[5, 3, 1])
    assert [y.tolist() for _, y in loader] == [[5, 3], [1]]
    loader = DataLoader(data, batch_sampler=[[0], [1, 2]])
    assert [y.tolist() for _, y in loader] == [[0], [1, 2]] and len(loader) == 2
    generator = norch.Generator().manual_seed(4)
    assert len(list(DataLoader(data, shuffle=True, generator=generator))) == 6
    assert list(DataLoader(TensorDataset(norch.zeros(0, 2)), batch_size=3)) == []
    for wrong in ({"num_workers": -1}, {"timeout": -1}):
        with pytest.raises(ValueError, match="not be negative"):
            DataLoader(data, **wrong)
    for wrong in ({"prefetch_factor": 2}, {"persistent_workers": True}, {"multiprocessing_context": "fork"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is about workers, but num_workers is 0"):
            DataLoader(data, **wrong)
    with pytest.raises(
        ValueError, match="multiprocessing_context must be a context or one of .*'spawn'.*, not 'thread'"
    ):
        DataLoader(data, num_workers=1, multiprocessing_context="thread")
    with pytest.raises(ValueError, match="prefetch_factor should be a positive integer, but got 0"):
        DataLoader(data, num_workers=1, prefetch_factor=0)
    with pytest.raises(ValueError, match="shuffle"):
        DataLoader(data, shuffle=True, sampler=[1])
    with pytest.raises(ValueError, match="batch_sampler"):
        DataLoader(data, batch_size=2, batch_sampler=[[1]])
    with pytest.raises(ValueError, match="batch_size"):
        DataLoader(data, batch_size=0)
    with pytest.raises(ValueError, match="drop_last"):
        DataLoader(data, batch_size=None, drop_last=True)


def test_loader_seed():
    def orders(**options):
        loader = DataLoader(pairs(20), batch_size=5, shuffle=True, **options)
        return [[y.tolist() for _, y in loader] for _ in range(2)]

    assert orders(seed=1) == orders(seed=1) == orders(generator=1) != orders(seed=2)
    with pytest.raises(norch.ArgumentError, match="DataLoader: seed and generator exclude each other"):
        DataLoader(pairs(2), shuffle=True, seed=1, generator=norch.Generator())
    for bad in ("1", True, 1.5):
        with pytest.raises(TypeError, match=f"DataLoader: seed must be an int or None, not {type(bad).__name__}"):
            DataLoader(pairs(2), seed=bad)


@pytest.mark.parametrize("bad", [None, 3, iter([1])])
def test_loader_of_what_is_no_dataset(bad):
    with pytest.raises(
        TypeError, match=f"DataLoader: a dataset must have .* got an object of type {type(bad).__name__}"
    ):
        DataLoader(bad)


@pytest.mark.parametrize("bad", ["yes", 1, norch.ones(1)])
def test_loader_shuffle_is_a_bool(bad):
    with pytest.raises(TypeError, match=f"DataLoader: shuffle must be a bool or None, not {type(bad).__name__}"):
        DataLoader(pairs(2), shuffle=bad)


def test_tensor_dataset_names_what_is_no_tensor():
    for others in ((0,), (norch.ones(3), 0)):
        with pytest.raises(TypeError, match=f"TensorDataset takes tensors; argument {len(others)} is of type int"):
            TensorDataset(norch.ones(2), *others)


def test_loader_of_single_samples_and_of_iterables():
    loader = DataLoader([(np.ones(2), "a", {"x": np.zeros(1)}), 3], batch_size=None)
    first, second = loader
    assert first[0].tolist() == [1, 1] and first[1] == "a" and first[2]["x"].tolist() == [0]
    assert second == 3 and len(loader) == 2

    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [x.tolist() for x in DataLoader(Count(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [x.tolist() for x in DataLoader(Count(), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(), batch_size=None)) == list(range(5))
    with pytest.raises(TypeError):
        len(DataLoader(Count(), batch_size=2))
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Count(), shuffle=True)
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_random_samplers():
    assert sorted(SubsetRandomSampler([5, 3, 9])) == [3, 5, 9]
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    few, many = RandomSampler(range(5), num_samples=2), RandomSampler(range(3), num_samples=7, generator=1)
    assert len(set(few)) == len(few) == 2 and len(list(many)) == 7 and set(list(many)[:3]) == {0, 1, 2}
    weighted = WeightedRandomSampler([0.0, 1.0, 3.0], 400, generator=0)
    drawn = list(weighted)
    assert len(weighted) == 400 and set(drawn) == {1, 2} and 250 < drawn.count(2) < 350
    assert sorted(WeightedRandomSampler(norch.ones(3), 3, replacement=False)) == [0, 1, 2]
    for make in (lambda: RandomSampler([1], num_samples=0), lambda: WeightedRandomSampler([1.0], -1)):
        with pytest.raises(ValueError, match="num_samples"):
            make()


WEIGHTS = [0.0, 1.0, 3.0, 0.5]
ENDLESS = {
    "replacement": lambda count, **seed: RandomSampler(range(1000), replacement=True, num_samples=count, **seed),
    "rounds": lambda count, **seed: RandomSampler(range(1001), num_samples=count, **seed),
    "weighted": lambda count, **seed: WeightedRandomSampler(WEIGHTS, count, **seed),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_random_samplers_draw_when_asked(name):
    make = ENDLESS[name]
    sampler = make(10**10, generator=1)
    assert len(sampler) == 10**10
    assert list(islice(sampler, 40_000)) == list(islice(make(10**12, generator=1), 40_000))
    assert list(islice(BatchSampler(sampler, 3), 2)) != list(islice(BatchSampler(sampler, 3), 2)), "another epoch"


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("count", [1, 10, 1 << 14, 39_999])
def test_an_epoch_in_pieces_is_the_epoch_at_once(name, count):
    def whole(**source):
        if name == "replacement":
            return norch.randint(0, 1000, (count,), **source).tolist()
        if name == "weighted":
            return norch.multinomial(norch.tensor(WEIGHTS, dtype=norch.float64), count, True, **source).tolist()
        return [i for _ in range(-(-count // 1001)) for i in norch.randperm(1001, **source).tolist()][:count]

    seeded = norch.Generator().manual_seed(3)
    sampler, again = ENDLESS[name](count, generator=3), ENDLESS[name](count)
    assert [list(sampler), list(sampler)] == [whole(generator=seeded), whole(generator=seeded)]
    norch.manual_seed(3)
    wanted, after = whole(), norch.rand(3).tolist()
    norch.manual_seed(3)
    indices = iter(again)
    first = [next(indices)]
    assert norch.rand(3).tolist() == after, "an epoch takes its part of the stream when it begins"
    assert first + list(indices) == wanted


def test_samplers_of_nothing():
    for replacement in (False, True):
        with pytest.raises(ValueError, match="cannot draw 3 samples from an empty data source"):
            list(RandomSampler([], replacement, num_samples=3))
        with pytest.raises(ValueError, match="num_samples should be a positive integer, but got 0"):
            RandomSampler([], replacement)
    with pytest.raises(ValueError, match="num_samples should be a positive integer, but got 0"):
        DataLoader([], shuffle=True)  # an epoch of nothing would pass unnoticed
    assert list(SubsetRandomSampler([])) == [] and list(BatchSampler([], 2)) == []
    for weights in ([], [0.0, 0.0]):
        with pytest.raises(ValueError, match="multinomial"):
            list(WeightedRandomSampler(weights, 3))
    with pytest.raises(ValueError, match="1d sequence"):
        WeightedRandomSampler(norch.ones(2, 2), 3)


@pytest.mark.host  # what is to be pinned lies on the CPU
def test_pinned_batches():
    class Odd:
        def pin_memory(self):
            return "pinned"

    Pair = namedtuple("Pair", "x y")
    loader = DataLoader([{"x": Pair(1, "a")}], pin_memory=True)
    (batch,) = loader
    assert (
        batch["x"].x.tolist() == [1]
        and batch["x"].x.is_pinned() == norch.cuda.is_available()
        and batch["x"].y == ["a"]
        and type(batch["x"]) is Pair
    )
    assert list(DataLoader([1], collate_fn=lambda batch: [Odd(), 2], pin_memory=True)) == [["pinned", 2]]


def test_loader_gives_what_torch_gives():
    if os.environ.get("NORCH_TEST_TORCH") == "0":
        pytest.skip("comparisons with PyTorch are off")
    torch = torch_or_skip()
    array, labels = np.arange(14, dtype=np.float32).reshape(7, 2), np.arange(7)
    ours = DataLoader(TensorDataset(norch.tensor(array), norch.tensor(labels)), batch_size=3)
    theirs = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.tensor(array), torch.tensor(labels)), batch_size=3
    )
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert type(a) is type(b) is list
        assert [x.tolist() for x in a] == [x.tolist() for x in b]


def test_a_loader_takes_what_workers_are_told():
    loader = DataLoader(range(3), batch_size=3, pin_memory_device="", in_order=True)
    assert [x.tolist() for x in loader] == [[0, 1, 2]] and norch.utils.data.get_worker_info() is None


class Fails(Dataset):  # type: ignore[type-arg]
    """Its odd samples raise."""

    def __init__(self, error: type[BaseException] = ValueError) -> None:
        self.error = error

    def __getitem__(self, index: int) -> int:
        if index % 2:
            raise self.error(f"sample {index}")
        return index

    def __len__(self) -> int:
        return 4


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_goes_on_after_a_sample_that_raises(workers: int) -> None:
    batches, seen = iter(DataLoader(Fails(), num_workers=workers)), []
    while True:
        try:
            seen.append(next(batches).item())
        except ValueError as error:
            seen.append(str(error).split("\n")[-1][-8:])
        except StopIteration:
            break
    assert [x if isinstance(x, int) else "sample" for x in seen] == [0, "sample", 2, "sample"]


def test_a_stop_iteration_of_a_sample_does_not_end_the_epoch() -> None:
    batches = iter(DataLoader(Fails(StopIteration)))
    assert next(batches).item() == 0
    with pytest.raises(norch.Error, match="raised StopIteration"):
        next(batches)
    assert next(batches).item() == 2


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_options_of_a_loader_cannot_be_changed(name: str) -> None:
    loader = DataLoader(range(4), batch_size=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name} cannot be changed"):
        setattr(loader, name, getattr(loader, name))
    loader.num_workers = 0


def test_a_subclass_sets_what_is_fixed_before_the_loader_is_made() -> None:
    class Own(DataLoader[Any]):
        def __init__(self, size: int) -> None:
            self.dataset, self.drop_last = range(size), True
            super().__init__(self.dataset, batch_size=2, drop_last=self.drop_last)

    loader = Own(5)
    assert len(loader) == len(list(loader)) == 2
    with pytest.raises(ValueError, match="dataset cannot be changed"):
        loader.dataset = range(3)


def test_seeds_of_batches_fit_int64() -> None:
    class Seeds(Dataset):  # type: ignore[type-arg]
        def __getitem__(self, index: int) -> int:
            return norch.initial_seed()

        def __len__(self) -> int:
            return 64

    seeds = [batch.item() for batch in DataLoader(Seeds(), seed=3)]
    assert len(set(seeds)) == 64 and min(seeds) >= 0


def test_samples_by_several_indices_in_one_call() -> None:
    calls: list[list[int]] = []

    class Several(Dataset):  # type: ignore[type-arg]
        def __getitem__(self, index: Any) -> Any:
            return index

        def __getitems__(self, indices: list[int]) -> list[int]:
            calls.append(indices)
            return indices[: 4 - len(calls)]

        def __len__(self) -> int:
            return 9

    subset = Subset(Subset(Several(), range(8, -1, -1)), [0, 2, 4])
    assert [x.tolist() for x in DataLoader(subset, batch_size=3)] == [[8, 6, 4]] and calls == [[8, 6, 4]]
    assert subset[[0, 2]] == [8, 4] and Subset(Subset([5, 6, 7], [2, 1]), [0, 1])[1] == 6
    stacked = StackDataset(Several(), list(range(1, 10)))
    assert stacked.__getitems__([1, 0]) == [(1, 2), (0, 1)]
    assert StackDataset(x=[1, 2], y=[3, 4]).__getitems__([1]) == [{"x": 2, "y": 4}]
    with pytest.raises(ValueError, match="expected 3, got"):
        stacked.__getitems__([1, 0, 2])
