"""Numbers written to expanded tensors, which have several elements in one place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import norch


def test_numbers_fill_expanded_tensors(torch: Any) -> None:
    for lib in (norch, torch):
        row = lib.tensor([[1.0], [2.0]])
        wide, windows = row.expand(3, 2, 4), lib.arange(5.0).unfold(0, 3, 1)
        assert wide[:, 1].fill_(7) is not None and row.tolist() == [[1], [7]]
        assert wide.zero_() is wide and row.tolist() == [[0], [0]]
        windows[1:].fill_(9)
        assert windows.tolist() == [[0, 9, 9], [9, 9, 9], [9, 9, 9]]
        version = row._version
        wide.fill_(1)
        assert row._version > version
    with pytest.raises(norch.ArgumentError, match="copy_: an expanded tensor"):
        wide = norch.zeros(1).expand(3)
        wide.copy_(norch.arange(3.0))
    base = norch.ones(1, requires_grad=True) * 2
    with pytest.raises(norch.Error, match="overlapping elements has no defined gradient"):
        base.expand(3).zero_()


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "masked_fill_": lambda lib, x: x.masked_fill_(lib.tensor([[True] * 4, [False] * 4, [False, True] * 2]), 7),
    "mask of few axes": lambda lib, x: x.masked_fill_(lib.tensor([False, True, False, False]), 7),
    "mask of size 1": lambda lib, x: x.masked_fill_(lib.tensor([[False], [True], [False]]), lib.tensor(7.0)),
    "no element": lambda lib, x: x.masked_fill_(lib.zeros(4).bool(), 7),
    "index_fill_": lambda lib, x: x.index_fill_(0, lib.tensor([1, -1]), 7),
    "index_fill_ along the last": lambda lib, x: x.index_fill_(1, lib.tensor([2, 2]), lib.tensor(7.0)),
    "x[mask] = n": lambda lib, x: x.__setitem__(lib.tensor([[True] * 4, [False] * 4, [False] * 4]), 7),
    "x[mask of rows] = n": lambda lib, x: x.__setitem__(lib.tensor([True, False, True]), lib.tensor(7.0)),
    "x[mask] = n in a view": lambda lib, x: x[1:].__setitem__(lib.tensor([True, False]), 7),
    "x[i] = n": lambda lib, x: x.__setitem__(lib.tensor([0, -1]), 7),
    "x[:, i] = n": lambda lib, x: x.__setitem__((slice(None), lib.tensor([0, -1])), lib.tensor([7.0])),
    "index_put_": lambda lib, x: x.index_put_((lib.tensor([0]), lib.tensor([2])), lib.tensor(7.0)),
}
EXPANDED: dict[str, Callable[[Any], Any]] = {
    "rows": lambda base: base[0],
    "columns": lambda base: base[:3, :1],
    "both": lambda base: base[1:2, 1:2],
}


@pytest.mark.parametrize("of", EXPANDED)
@pytest.mark.parametrize("name", WRITES)
def test_numbers_where_an_index_says_like_torch(torch: Any, name: str, of: str) -> None:
    found = []
    for lib in (norch, torch):
        base = lib.arange(16.0).reshape(4, 4)
        version = base._version
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch advises against it
            WRITES[name](lib, EXPANDED[of](base).expand(3, 4))
        assert base._version > version
        found.append(base.tolist())
    assert found[0] == found[1]


def test_writes_that_stay_refused() -> None:
    refused: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
        (lambda x: x.masked_fill_(norch.tensor([True, False]), 7), norch.Error, "masked_fill_: "),
        (lambda x: x.masked_fill_(norch.ones(2, 3, 4).bool(), 7), norch.Error, "masked_fill_: "),
        (lambda x: x.index_fill_(0, norch.tensor([3]), 7), IndexError, "index_fill: "),
        (
            lambda x: x.__setitem__(norch.tensor([0, 1]), norch.tensor([[1.0], [2.0]])),
            norch.Error,
            "an expanded tensor",
        ),
        (lambda x: x.index_put_((norch.tensor([0]),), norch.tensor(1.0), True), norch.Error, "an expanded tensor"),
        (lambda x: x.index_put_((norch.tensor([0]),), norch.tensor(1)), norch.DTypeError, "index_put"),
        (lambda x: x.index_put_((norch.tensor([0]),), norch.ones(1, 1, 1)), norch.Error, "index_put"),
    ]
    for write, error, message in refused:
        base = norch.arange(4.0)
        with pytest.raises(error, match=message):
            write(base.expand(3, 4))
        assert base.tolist() == [0, 1, 2, 3]
    for write in (WRITES["masked_fill_"], WRITES["index_fill_"], WRITES["x[i] = n"]):
        row = norch.ones(4, requires_grad=True) * 2
        with pytest.raises(norch.Error, match="overlapping elements has no defined gradient"):
            write(norch, row.expand(3, 4))
