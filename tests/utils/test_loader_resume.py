"""A loader's position: saved, loaded and gone on from, with the same batches as without the break."""

from __future__ import annotations

import io
import time
from itertools import islice

import loader_sets as sets
import pytest
from test_loader_workers import batches, plain

import norch
from norch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler, TensorDataset

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]


def kept(state):
    """A state after it went through a file."""
    file = io.BytesIO()
    norch.save(state, file)
    file.seek(0)
    return norch.load(file)


def broken_off(make, after, seed=None):
    """What an unbroken run of two epochs gives after so many batches; and the state there, with the global stream."""
    if seed is not None:
        norch.manual_seed(seed)
    loader = make()
    iterator = iter(loader)
    for _ in islice(iterator, after):
        pass
    state, stream = loader.state_dict(), norch.get_rng_state()
    return [plain(batch) for batch in iterator] + batches(loader), kept(state), stream


def resumed(make, state, stream):
    norch.manual_seed(99)
    loader = make()
    norch.set_rng_state(stream)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    return batches(loader) + batches(loader)


def shuffled(**options):
    return DataLoader(sets.Drawn(23), batch_size=4, shuffle=True, **options)


@pytest.mark.parametrize("after", [0, 1, 4, 6])
@pytest.mark.parametrize(("workers", "then"), [(0, 0), (2, 2), (0, 2), (3, 0), (2, 1)])
def test_an_epoch_goes_on(after, workers, then):
    for options in ({"seed": 7}, {}):
        rest, state, stream = broken_off(lambda o=options: shuffled(num_workers=workers, **o), after, 3)
        assert resumed(lambda o=options: shuffled(num_workers=then, **o), state, stream) == rest


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_with_their_own_generators(workers):
    def make():
        sampler = RandomSampler(range(23), replacement=True, generator=11)
        return DataLoader(sets.Drawn(23), batch_size=4, sampler=sampler, num_workers=workers, generator=2)

    assert resumed(make, *broken_off(make, 3)[1:]) == broken_off(make, 3)[0]
    tensors = TensorDataset(norch.arange(10))
    rest, state, stream = broken_off(lambda: DataLoader(tensors, 2, shuffle=True, seed=1), 2)
    assert resumed(lambda: DataLoader(tensors, 2, shuffle=True, seed=1, num_workers=workers), state, stream) == rest


@pytest.mark.parametrize("workers", [0, 2])
def test_between_two_epochs(workers):
    loader = shuffled(seed=3, num_workers=workers, persistent_workers=workers > 0)
    batches(loader)
    state = kept(loader.state_dict())
    expected = batches(loader)
    loader = shuffled(seed=3, num_workers=workers)
    loader.load_state_dict(state)
    assert batches(loader) == expected


def test_batches_out_of_order():
    loader = DataLoader(sets.Of(12, sets.slow), num_workers=2, in_order=False, prefetch_factor=4)
    iterator = iter(loader)
    first = [x.item() for x in islice(iterator, 3)]
    assert 0 not in first, "the first is still being made"
    state = kept(loader.state_dict())
    del iterator
    for options in ({"num_workers": 2, "in_order": False}, {"num_workers": 2}, {}):
        loader = DataLoader(sets.Of(12, sets.slow), **options)
        loader.load_state_dict(state)
        rest = [x.item() for x in loader]
        assert sorted(first + rest) == list(range(12)), (first, rest, state)


@pytest.mark.parametrize("after", [1, 3, 5])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_iterable_dataset_is_read_again(workers, after):
    def make():
        return DataLoader(sets.Lines(17), batch_size=3, num_workers=workers, seed=2)

    rest, state, stream = broken_off(make, after)
    assert resumed(make, state, stream) == rest


def test_an_iterable_dataset_whose_worker_has_ended_before_its_last_batch_is_given():
    def make():
        return DataLoader(sets.Lines(17), batch_size=3, num_workers=2, prefetch_factor=4, seed=2)

    iterator = iter(loader := make())
    for _ in range(5):
        time.sleep(0.1)  # so that the workers are ahead by as much as they may be
        next(iterator)
    state, stream, rest = kept(loader.state_dict()), norch.get_rng_state(), [plain(batch) for batch in iterator]
    assert resumed(make, state, stream)[: len(rest)] == rest != []


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_that_knows_where_it_is(workers):
    def make():
        return DataLoader(sets.Counting(7), batch_size=2, num_workers=workers)

    loader = make()
    iterator = iter(loader)
    next(iterator), next(iterator), next(iterator)
    state, rest = kept(loader.state_dict()), [plain(batch) for batch in iterator]
    loader = make()
    loader.load_state_dict(state)
    found = batches(loader)
    assert [batch[:2] for batch in found] == [batch[:2] for batch in rest] != []
    assert found[0][2] != rest[0][2], "what came before is not read again"


class Reader:
    """An iterator that knows where it is, of a data set that does not."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == 9:
            raise StopIteration
        self.at += 1
        return self.at

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Read(norch.utils.data.IterableDataset):
    def __iter__(self):
        return Reader()


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterator_that_knows_where_it_is(workers):
    rest, state, stream = broken_off(lambda: DataLoader(Read(), 2, num_workers=workers), 2)
    assert state["workers"][0]["state"] == {"at": 4}
    assert resumed(lambda: DataLoader(Read(), 2, num_workers=workers), state, stream) == rest


def test_states_that_do_not_fit():
    state = DataLoader(sets.Drawn(4), shuffle=True, seed=1).state_dict()
    with pytest.raises(norch.ArgumentError, match="the state of 2 generators for a loader of 1"):
        DataLoader(sets.Drawn(4)).load_state_dict(state)
    loader = DataLoader(sets.Lines(17), num_workers=2)
    next(iter(loader))
    other = DataLoader(sets.Lines(17))
    other.load_state_dict(loader.state_dict())
    with pytest.raises(norch.ArgumentError, match="in 2 processes cannot be resumed in 1"):
        iter(other)
    state = loader.state_dict()
    state["given"] = state.pop("delivered")  # as earlier versions named it
    with pytest.raises(norch.ArgumentError, match="not the state of a loader of this version: it has .*'given'"):
        other.load_state_dict(state)
    with pytest.raises(norch.ArgumentError, match="not the state of a loader"):
        other.load_state_dict({})


# ---- DistributedSampler ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_shares_of_a_distributed_sampler(torch, size, drop_last):
    options = {"num_replicas": 4, "shuffle": False, "drop_last": drop_last}
    for rank in range(4):
        ours = DistributedSampler(range(size), rank=rank, **options)
        if size:  # PyTorch divides by the size
            theirs = torch.utils.data.DistributedSampler(range(size), rank=rank, **options)
            assert list(ours) == list(theirs) and len(ours) == len(theirs)
            assert (ours.num_samples, ours.total_size) == (theirs.num_samples, theirs.total_size)
        assert len(list(ours)) == len(ours)


def test_a_distributed_sampler_shuffles_alike_everywhere():
    def epoch(number, seed=0):
        samplers = [DistributedSampler(range(10), 3, rank, seed=seed) for rank in range(3)]
        for sampler in samplers:
            sampler.set_epoch(number)
        return [list(sampler) for sampler in samplers]

    first = epoch(0)
    assert sorted(set(sum(first, []))) == list(range(10)) and {len(part) for part in first} == {4}
    assert epoch(0) == first != epoch(1) and epoch(0, seed=1) == epoch(1)
    loader = DataLoader(range(10), 2, sampler=DistributedSampler(range(10), 2, 1), num_workers=1)
    assert isinstance(loader.sampler, Sampler) and len(loader) == 3 and len(batches(loader)) == 3


def test_a_distributed_sampler_without_a_group():
    for options in ({}, {"rank": 0}, {"num_replicas": 2}):
        with pytest.raises(norch.ArgumentError, match="give num_replicas and rank, or initialise"):
            DistributedSampler(range(4), **options)
    for rank in (-1, 2):
        with pytest.raises(ValueError, match=rf"Invalid rank {rank}, rank should be in the interval \[0, 1\]"):
            DistributedSampler(range(4), 2, rank)
