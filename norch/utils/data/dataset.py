"""Dataset, and data sets of tensors, subsets and other data sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from ..._package.exports import publish
from ...dtype import int64
from ...ops.values import tensor
from ...tensor import Tensor
from .sampler import Source, permutation

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class: a subclass defines `__getitem__(index)`, which returns a sample, and `__len__`.

    >>> class Squares(norch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index, index**2
    >>> Squares()[2]
    (2, 4)
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__()")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} defines no __len__()")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of data sets without indices: a subclass defines `__iter__`, which yields samples.

    >>> class Lines(norch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2, 3])
    >>> list(norch.utils.data.DataLoader(Lines(), batch_size=2))
    [tensor([1, 2]), tensor([3])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[T_co]):
    """Several iterable data sets, one after another, as one.

    >>> class Count(norch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2])
    >>> list(norch.utils.data.ChainDataset([Count(), Count()]))
    [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class StackDataset(Dataset[T_co]):
    """Data sets of equal length in parallel: sample i is the tuple of their i-th samples, or a dict if they are named.

    >>> norch.utils.data.StackDataset(x=[1, 2], y=[3, 4])[1]
    {'x': 2, 'y': 4}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give all sets by position, or all by name")
        self.datasets: Any = args or kwargs
        lengths = [len(each) for each in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: size mismatch between datasets: {lengths}")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples at indices, with one call for each of the data sets that have `__getitems__`. ValueError if one
        returns another number of samples."""
        names = list(self.datasets) if isinstance(self.datasets, dict) else None
        columns = [samples_of(each, indices) for each in (self.datasets.values() if names else self.datasets)]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    f"StackDataset: nested dataset's output size mismatch: expected {len(indices)}, got {len(column)}"
                )
        rows = zip(*columns, strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows] if names else list(rows)

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors (N, ...): sample i is the tuple of their i-th rows. ValueError if their lengths differ.

    >>> data = norch.utils.data.TensorDataset(norch.arange(6).reshape(3, 2), norch.tensor([0, 1, 0]))
    >>> data[1]
    (tensor([2, 3]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset needs at least one tensor")
        for i, each in enumerate(tensors):
            if not isinstance(each, Tensor):
                raise TypeError(f"TensorDataset takes tensors; argument {i} is of type {type(each).__name__}")
        for each in tensors:
            if each.ndim == 0 or each.shape[0] != tensors[0].shape[0]:
                sizes = [tuple(each.shape) for each in tensors]
                raise ValueError(f"size mismatch between tensors: the first sizes of {sizes} must be equal")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def take(self, indices: Sequence[int]) -> list[Tensor]:
        """The rows at indices of each tensor, (len(indices), ...), one call for each tensor."""
        index = tensor(indices, dtype=int64)
        return [each.index_select(0, index.to(each.device)) for each in self.tensors]


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order. A subclass that overrides `__getitem__` must override
    `__getitems__`, which a DataLoader calls; otherwise NotImplementedError.

    >>> part = norch.utils.data.Subset(norch.utils.data.TensorDataset(norch.arange(5)), [4, 0])
    >>> len(part), part[0]
    (2, (tensor(4),))
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(f"{cls.__name__} overrides __getitem__: it must override __getitems__ too")
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        places = [self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]
        sample: T_co = self.dataset[places]
        return sample

    def __getitems__(self, indices: list[int]) -> Any:
        """The samples at indices of this subset: one call of the dataset's `__getitems__` if it has that."""
        return samples_of(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples_of(dataset: Any, indices: Sequence[int]) -> Any:
    """The samples at indices: in one call if the data set has `__getitems__`."""
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if callable(several) else [dataset[index] for index in indices]


def taker(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """A function that makes a batch from indices in one call, if it equals the collated samples; else None."""
    if type(dataset) is TensorDataset:  # a subclass may change the samples
        return dataset.take
    take = taker(dataset.dataset) if type(dataset) is Subset else None
    return None if take is None else lambda indices: take([dataset.indices[index] for index in indices])


class ConcatDataset(Dataset[T_co]):
    """Several data sets, one after another, as one with indices.

    >>> data = norch.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise TypeError("ConcatDataset: an iterable data set has no samples by number; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each of several data sets ends in their concatenation."""
        return list(accumulate(len(each) for each in sequence))

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range for a dataset of {size} samples")
        index %= size
        part = bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[float], generator: Source = None) -> list[Subset[Any]]:
    """Random subsets of these lengths, or of fractions that sum to 1 (samples left over by rounding go to the first
    subsets). generator: a Generator or a seed. ValueError for lengths that do not sum to len(dataset).

    >>> parts = norch.utils.data.random_split(range(10), [0.7, 0.3], generator=0)
    >>> [len(part) for part in parts]
    [7, 3]
    """
    size = len(dataset)
    if any(length < 0 for length in lengths):
        raise ValueError(f"lengths must not be negative, got {list(lengths)}")
    if abs(sum(lengths) - 1) < 1e-6:
        # A fraction such as 0.29 of 100 may be a rounding error below the whole number.
        counts = [int(size * length + 1e-9) for length in lengths]
        for extra in range(size - sum(counts)):
            counts[extra % len(counts)] += 1
    else:
        counts = [int(length) for length in lengths]
    if sum(counts) != size:
        raise ValueError(f"the lengths {list(lengths)} do not sum to the length of the dataset, {size}")
    order = permutation(size, generator)
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends, strict=True)]


publish(globals())
