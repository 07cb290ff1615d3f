"""A DataLoader of an IterableDataset whose length is wrong warns, once the program has asked for that length."""

import warnings

import pytest

import norch
from norch.utils.data import DataLoader, IterableDataset


class Claims(IterableDataset):
    def __init__(self, claimed, count):
        self.claimed, self.count = claimed, count

    def __len__(self):
        return self.claimed

    def __iter__(self):
        return iter(range(self.count))


def warned(loader):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in loader:
            pass
    return [str(one.message) for one in caught if "the length of the Claims was reported as" in str(one.message)]


@pytest.mark.parametrize("workers", [0, 2])
def test_more_samples_than_were_reported(workers):
    loader = DataLoader(Claims(3, 5), batch_size=None, num_workers=workers)
    assert warned(loader) == []  # nobody relies on the length yet
    assert len(loader) == 3
    found = warned(loader)
    assert len(found) == (2 if workers == 0 else 7)  # each worker has all five
    assert found[0].startswith("DataLoader: the length of the Claims was reported as 3, but 4 samples or batches have")
    assert ("several workers" in found[0]) is (workers > 0)
    assert len(warned(loader)) == len(found)


def test_right_and_smaller_numbers_do_not_warn():
    for loader in (DataLoader(Claims(5, 5)), DataLoader(Claims(5, 3)), DataLoader(Claims(3, 5), batch_size=2)):
        assert len(loader) > 0
        assert warned(loader) == []


def test_as_in_pytorch():
    torch = pytest.importorskip("torch")
    if torch.Tensor is norch.Tensor:
        pytest.skip("torch is norch here")

    class Theirs(torch.utils.data.IterableDataset):
        __init__, __len__, __iter__ = Claims.__init__, Claims.__len__, Claims.__iter__

    for claimed, count, size in ((3, 5, 1), (3, 5, 2), (2, 9, 2), (5, 5, 1), (9, 3, 1)):
        counts = []
        for loader in (
            torch.utils.data.DataLoader(Theirs(claimed, count), size),
            DataLoader(Claims(claimed, count), size),
        ):
            len(loader)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                counts += [(sum(1 for _ in loader), len(caught))]
        assert counts[0] == counts[1]
