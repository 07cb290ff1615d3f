"""Methods of data sets that a subclass overrides, where PyTorch's data loaders reach them."""

from typing import Any

import pytest

import norch
from norch.utils.data import DataLoader, Subset, TensorDataset


class Shifted(Subset[Any]):
    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index)[0] + 100


class ShiftedTogether(Shifted):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in indices]


def test_a_subset_overrides_both_ways_to_read() -> None:
    data = TensorDataset(norch.arange(4))
    with pytest.raises(NotImplementedError, match="Shifted overrides __getitem__: it must override __getitems__"):
        Shifted(data, [1, 2])
    (batch,) = DataLoader(ShiftedTogether(data, [1, 2]), batch_size=2)
    assert batch.tolist() == [101, 102]
