"""DistributedSampler: the samples of one of several processes that train together."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from itertools import cycle, islice

from ...errors import ArgumentError
from ...ops.random import randperm
from .sampler import Sampler, as_generator


class DistributedSampler(Sampler[int]):
    """The indices for process `rank` of num_replicas: every num_replicas-th of an order that all processes share.

    The order is 0, 1, 2, ..., or with shuffle a permutation drawn from seed + epoch: call set_epoch(n) before each
    epoch, or all epochs have the same order. Every process gets the same number of indices: the first ones are repeated
    to fill up, or with drop_last the last are dropped. num_replicas and rank: by default those of norch.distributed if
    it is initialised. ArgumentError without either, and for rank >= num_replicas.

    >>> from norch.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            world_size, own_rank = _process_group()
            num_replicas = world_size if num_replicas is None else num_replicas
            rank = own_rank if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed

    @property
    def num_samples(self) -> int:
        """The number of indices of each process."""
        return len(self.dataset) // self.num_replicas if self.drop_last else -(-len(self.dataset) // self.num_replicas)

    @property
    def total_size(self) -> int:
        """The number of indices of all processes."""
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = range(len(self.dataset))
        if self.shuffle:
            order = randperm(len(order), generator=as_generator(self.seed + self.epoch), device="cpu").tolist()
        return islice(cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch whose order the next iteration draws, the same in all processes."""
        self.epoch = epoch


def _process_group() -> tuple[int, int]:
    """World size and rank."""
    from importlib import import_module

    group = import_module("norch.distributed")
    if not group.is_initialized():
        raise ArgumentError(
            "DistributedSampler: give num_replicas and rank, or initialise norch.distributed before: "
            "there is no process group"
        )
    return group.get_world_size(), group.get_rank()
