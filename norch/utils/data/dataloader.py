"""DataLoader: the batches of a data set, loaded in this process or in workers (workers.py)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from ..._package.exports import publish
from ...errors import ArgumentError, Error, stacklevel_of_user
from .collate import default_collate as default_collate  # where PyTorch has it
from .collate import pinned
from .dataset import Dataset, IterableDataset
from .fetch import Recipe, Stream
from .position import Position, generators_of, restore, states_of
from .sampler import BatchSampler, RandomSampler, SequentialSampler, Source, as_generator, positive
from .seeding import mixed, seed_all, streams_kept
from .worker import get_worker_info as get_worker_info  # where PyTorch has it

T_co = TypeVar("T_co", covariant=True)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class Samples(Protocol[T_co]):
    """An object with samples by index: a Dataset, a list."""

    def __getitem__(self, index: int, /) -> T_co: ...


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a data set, one epoch per iteration. collate_fn makes a batch from a list of
    samples.

    dataset is an object with `len` and indices from 0, or an IterableDataset. A batch has batch_size samples; the last
    one may be shorter, or is dropped with drop_last. batch_size=None yields samples. shuffle draws a new order for each
    epoch; seed, or generator (a Generator or a seed), makes the orders reproducible. sampler yields indices,
    batch_sampler lists of indices. pin_memory copies batches to pinned memory. ArgumentError for options that exclude
    each other, TypeError for another type of dataset or shuffle.

    num_workers processes make the batches, each up to prefetch_factor (2) ahead, and pass them through shared memory;
    with 0 this process makes them. They start in a multiprocessing_context ("fork", "spawn", "forkserver"), call
    worker_init_fn(id), and last for an epoch, or with persistent_workers as long as the loader. Batches come in order,
    or with in_order=False when they are ready. Error if a worker died, or after timeout seconds without a batch (0:
    never); a worker's exception is raised here, with its traceback. docs/data.md has the details.

    Before a batch is made, the global streams of norch, random and NumPy are seeded by the epoch's seed and the batch's
    number: one seed gives the same batches for any num_workers. state_dict() saves the loader's position.

    A TensorDataset or its Subset makes a batch in one call unless there is a collate_fn; a data set with
    `__getitems__(indices)` returns the list of samples in one call.

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
        _check_types(dataset, shuffle, seed, generator)
        if not num_workers >= 0 or not timeout >= 0:
            raise ArgumentError(f"num_workers and timeout must not be negative, but are {num_workers} and {timeout}")
        if num_workers == 0:
            _check_no_workers(prefetch_factor, persistent_workers, multiprocessing_context)
        elif multiprocessing_context is not None:
            from .workers import context_of  # lazy import, as of multiprocessing

            multiprocessing_context = context_of(multiprocessing_context)
        _check_order(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        items: Any = dataset
        self.generator = as_generator(generator if seed is None else seed)
        if isinstance(dataset, IterableDataset):
            sampler = items  # yields samples instead of indices
        elif sampler is None:
            sampler = RandomSampler(items, generator=self.generator) if shuffle else SequentialSampler(items)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
            batch_size = batch_sampler.batch_size
        self.dataset: Any = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler: Any = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        if num_workers:
            prefetch_factor = positive(2 if prefetch_factor is None else prefetch_factor, "prefetch_factor")
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._pool: Any = None
        self._position: Position | None = None
        self._resumed: dict[str, Any] | None = None
        self._reported: int | None = None  # the length of an IterableDataset, once len() of the loader was asked for

    def __setattr__(self, name: str, value: Any) -> None:
        # subclasses may set options before __init__(), which sets _reported last
        if name in _FIXED and "_reported" in self.__dict__:
            raise ValueError(f"DataLoader: {name} cannot be changed after the loader is made; make another one")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def _recipe(self) -> Recipe:
        iterable = isinstance(self.dataset, IterableDataset)
        return Recipe(self.dataset, iterable, self._auto_collation, self.batch_size, self.drop_last, self.collate_fn)

    def __iter__(self) -> Iterator[Any]:
        position = self._position = Position(self, self._resumed)
        self._resumed = None
        if self.num_workers == 0:
            return _Batches(self, position)
        from .workers import Epoch, Pool

        pool, keep = self._pool, self.persistent_workers
        if pool is None or not pool.close.alive:
            pool = Pool(self, position.seed)
            self._pool = pool if keep else None
        elif pool.busy:  # by another iteration over this loader
            pool, keep = Pool(self, position.seed), False
        return Epoch(self, pool, position, keep)

    def _ended(self, position: Position) -> None:
        """Called after the last batch of an epoch."""
        if self._position is position:
            self._position = None

    def state_dict(self) -> dict[str, Any]:
        """The loader's position. A loader with the same options that loads it yields the batches that this one would,
        with any num_workers unless the dataset is iterable. The program itself saves the default generator's state
        (norch.get_rng_state()).

        >>> loader = norch.utils.data.DataLoader(range(6), batch_size=2, shuffle=True, seed=0)
        >>> batches = iter(loader)
        >>> first, state = next(batches), loader.state_dict()
        >>> loader.load_state_dict(state)
        >>> [x.tolist() for x in loader] == [x.tolist() for x in batches]
        True
        """
        if self._resumed is not None:
            return self._resumed
        if self._position is not None:
            return self._position.state_dict()
        return {"generators": states_of(generators_of(self)), "delivered": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues at the position where state_dict() was called. ArgumentError for another loader's state."""
        if not {"generators", "delivered"} <= state_dict.keys():
            raise ArgumentError(f"DataLoader: not the state of a loader of this version: it has {[*state_dict]}")
        seeded, states = generators_of(self)[1:], state_dict["generators"]
        if len(states) != len(seeded) + 1:
            raise ArgumentError(f"DataLoader: the state of {len(states)} generators for a loader of {len(seeded) + 1}")
        self._position = self._resumed = None
        if state_dict["delivered"] is None:  # between two epochs
            restore(seeded, states[1:])
        else:
            self._resumed = state_dict

    def __len__(self) -> int:
        """The number of batches in an epoch, or of samples if batch_size is None."""
        if isinstance(self.dataset, IterableDataset):
            self._reported = len(self.dataset)
        return len(self._index_sampler)

    def _warn_of_length(self, yielded: int) -> None:
        kind = type(self.dataset).__name__
        replicas = "; each of several workers iterates over a replica of it" if self.num_workers else ""
        warnings.warn(
            f"DataLoader: the length of the {kind} was reported as {self._reported}, but {yielded} samples or batches "
            f"have been fetched{replicas}",
            stacklevel=stacklevel_of_user(),
        )


def _check_types(dataset: Any, shuffle: Any, seed: Any, generator: Any) -> None:
    if not (isinstance(dataset, Dataset) or hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")):
        raise TypeError(
            "DataLoader: a dataset must have len() and indices, or be an IterableDataset; "
            f"got an object of type {type(dataset).__name__}"
        )
    if shuffle is not None and not isinstance(shuffle, bool):
        raise TypeError(f"DataLoader: shuffle must be a bool or None, not {type(shuffle).__name__}")
    if seed is not None and generator is not None:
        raise ArgumentError("DataLoader: seed and generator exclude each other")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise TypeError(f"DataLoader: seed must be an int or None, not {type(seed).__name__}")


def _check_no_workers(prefetch_factor: Any, persistent_workers: Any, multiprocessing_context: Any) -> None:
    of_workers = {
        "prefetch_factor": prefetch_factor,
        "persistent_workers": persistent_workers or None,
        "multiprocessing_context": multiprocessing_context,
    }
    for name, value in of_workers.items():
        if value is not None:
            raise ArgumentError(f"DataLoader: {name} is about workers, but num_workers is 0")


def _check_order(
    dataset: Any, batch_size: int | None, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if isinstance(dataset, IterableDataset) and (shuffle or sampler is not None or batch_sampler is not None):
        raise ArgumentError("an IterableDataset gives its samples in its own order: no shuffle, no sampler")
    if sampler is not None and shuffle:
        raise ArgumentError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ArgumentError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_size is None and drop_last:
        raise ArgumentError("drop_last needs batches, but batch_size is None")


class _Batches:
    """The batches of an epoch that this process makes. After an exception, which a sample may raise, the next batch
    follows."""

    def __init__(self, loader: DataLoader[Any], position: Position) -> None:
        self.loader, self.position, self.recipe = loader, position, loader._recipe
        self.tasks = position.numbered()
        self.stream: Stream | None = None
        self.make = None if self.recipe.iterable else self.recipe.maker()

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        try:
            number, batch = self._streamed() if self.make is None else self._made(self.make)
        except StopIteration:
            self.loader._ended(self.position)
            raise
        self.position.note(number)
        return pinned(batch) if self.loader.pin_memory else batch

    def _made(self, make: Callable[[Any], Any]) -> tuple[int, Any]:
        number, indices = next(self.tasks)
        if self.recipe.taker:  # which draws nothing
            return number, make(indices)
        with streams_kept():
            seed_all(mixed(self.position.seed, number))
            try:
                return number, make(indices)
            except StopIteration as error:  # which would end the epoch
                raise Error("DataLoader: a sample or collate_fn raised StopIteration") from error

    def _streamed(self) -> tuple[int, Any]:
        position, (past,) = self.position, self.position.workers
        with streams_kept():
            if self.stream is None:
                self.stream = Stream(self.recipe, position.seed, 0, 1, past["delivered"], past["state"])
                position.stream = self.stream
            seed_all(mixed(position.seed, past["delivered"]))
            return past["delivered"], self.stream.next_batch()


publish(globals())
