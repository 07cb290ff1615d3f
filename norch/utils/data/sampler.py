"""Samplers: the order in which samples are visited, one by one or in batches.

Random samplers draw from a Generator, so that a seed fixes every epoch. An epoch reserves its part of the stream when
it begins, and draws from it in pieces; other draws in between do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from ..._package.exports import publish
from ...dtype import float64
from ...errors import ArgumentError
from ...ops.random import multinomial, randint, randperm
from ...ops.values import as_tensor
from ...random import Generator, default_generator
from ...tensor import Tensor

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)
PIECE = 1 << 14  # indices drawn or converted at once; even, so that pieces give the numbers of a single draw

# The source of a random order: a seed, a Generator, or None for the global stream.
Source = int | Generator | None


def as_generator(source: Source) -> Generator | None:
    """A Generator from a seed; a Generator or None unchanged."""
    if source is None or isinstance(source, Generator):
        return source
    if isinstance(source, bool) or not isinstance(source, int):
        raise TypeError(f"generator must be a seed, a norch.Generator or None, got {type(source).__name__}")
    return Generator().manual_seed(source)


def permutation(size: int, source: Source) -> list[int]:
    """The numbers 0 ... size - 1 in random order."""
    order: list[int] = randperm(size, generator=as_generator(source), device="cpu").tolist()
    return order


def _lists_of(line: Tensor) -> Iterator[list[int]]:
    """Yields the elements of a 1-d tensor as lists. The tensor takes a fifth of the memory of one list."""
    return (line[at : at + PIECE].tolist() for at in range(0, len(line), PIECE))


def _in_pieces(draw: Callable[[int], Tensor], count: int, piece: int = PIECE) -> Iterator[int]:
    """Yields count indices, drawn lazily in pieces by draw(size)."""
    return chain.from_iterable(draw(min(piece, count - at)).tolist() for at in range(0, count, piece))


def positive(value: Any, name: str) -> int:
    """value; ArgumentError unless it is an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{name} should be a positive integer, but got {value}")
    return value


class Sampler(Generic[T_co]):
    """Base: a subclass defines `__iter__`, which yields the indices of one epoch, and `__len__`.

    >>> class Evens(norch.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([0, 2])
    >>> list(norch.utils.data.DataLoader([5, 6, 7, 8], sampler=Evens(), batch_size=None))
    [5, 7]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} defines no __len__()")


class SequentialSampler(Sampler[int]):
    """The indices of a data set in order: 0, 1, 2, ...

    >>> list(norch.utils.data.SequentialSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Every index once, in a new order for each epoch; or only num_samples of them.

    replacement: draws each from all indices, so that some may repeat. generator: a seed or Generator, for reproducible
    orders; None: the global stream. ArgumentError for an empty data_source, unless there is a num_samples.

    >>> sorted(norch.utils.data.RandomSampler(range(4), generator=1))
    [0, 1, 2, 3]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Source = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = None if num_samples is None else positive(num_samples, "num_samples")
        self.generator = as_generator(generator)
        positive(self.num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        """The number of indices in an epoch."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        if size == 0 and count > 0:
            raise ArgumentError(f"RandomSampler: cannot draw {count} samples from an empty data source")
        stream = self.generator or default_generator
        if self.replacement:
            ahead = stream._reserve(count)
            return _in_pieces(lambda few: randint(0, size, (few,), generator=ahead, device="cpu"), count)
        rounds = -(-count // size) if count else 0  # more samples than indices: every index again
        ahead = stream._reserve(rounds * (size + size % 2))
        orders = (randperm(size, generator=ahead, device="cpu") for _ in range(rounds))
        return islice(chain.from_iterable(piece for order in orders for piece in _lists_of(order)), count)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices, in a new order for each epoch.

    >>> sorted(norch.utils.data.SubsetRandomSampler([7, 3], generator=0))
    [3, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Source = None) -> None:
        self.indices = indices
        self.generator = as_generator(generator)

    def __iter__(self) -> Iterator[int]:
        order = randperm(len(self.indices), generator=self.generator, device="cpu")
        return (self.indices[i] for piece in _lists_of(order) for i in piece)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples indices of weights, each drawn with a probability proportional to its weight.

    >>> list(norch.utils.data.WeightedRandomSampler([0.0, 2.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Iterable[float], num_samples: int, replacement: bool = True, generator: Source = None
    ) -> None:
        self.weights = as_tensor(weights if isinstance(weights, Tensor) else list(weights), dtype=float64)
        if self.weights.ndim != 1:
            raise ArgumentError(f"weights should be a 1d sequence, but have shape {tuple(self.weights.shape)}")
        self.num_samples = positive(num_samples, "num_samples")
        self.replacement = replacement
        self.generator = as_generator(generator)

    def __iter__(self) -> Iterator[int]:
        weights, count = self.weights, self.num_samples
        if not self.replacement:
            return chain.from_iterable(_lists_of(multinomial(weights, count, generator=self.generator)))
        ahead = (self.generator or default_generator)._reserve(count)
        piece = PIECE * max(1, -(-len(weights) // PIECE))  # a draw sums all weights
        return _in_pieces(lambda few: multinomial(weights, few, True, generator=ahead), count, piece)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of batch_size indices of another sampler; the last may be shorter, unless drop_last.

    >>> list(norch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = positive(batch_size, "batch_size")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return self._lists(iter(self.sampler))  # the sampler's epoch begins now

    def _lists(self, indices: Iterator[Any]) -> Iterator[list[Any]]:
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


publish(globals())
