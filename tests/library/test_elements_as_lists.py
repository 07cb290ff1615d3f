"""tolist(): nested lists of the elements, of every dtype, layout and shape, also of those without elements."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import norch

SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 2), (0,), (2, 0), (0, 2), (2, 0, 3), (200,)]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*DTYPES, "complex128"])
def test_as_torch(torch: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """The same numbers, of the same Python types, in C order."""
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 90 * 1.25 - 2
    if dtype in ("bool", "uint8"):
        values = np.abs(values)
    ours, theirs = (m.tensor(values.tolist(), dtype=getattr(m, dtype)).reshape(shape) for m in (norch, torch))
    assert repr(ours.tolist()) == repr(theirs.tolist())
    assert repr(ours.mT.tolist() if ours.ndim > 1 else 0) == repr(theirs.mT.tolist() if theirs.ndim > 1 else 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 5e-324, 2**53 + 2.0])
def test_floats_are_exact(value: float) -> None:
    assert repr(norch.tensor([value], dtype=norch.float64).tolist()) == repr([value])


def test_views_and_graphs() -> None:
    """Of a part of a storage, of a broadcast, of what requires grad."""
    x = norch.arange(6.0).reshape(2, 3).requires_grad_()
    assert x[:, 1].tolist() == [1, 4] and x[::1, 1:].tolist() == [[1, 2], [4, 5]]
    assert norch.ones(1).expand(2, 3).tolist() == [[1.0] * 3] * 2


def test_refusals() -> None:
    """Without elements, within vmap, while recording: exceptions that name the reason."""
    with pytest.raises(NotImplementedError, match="meta"):
        norch.empty(2, device="meta").tolist()
    with pytest.raises(norch.errors.Error, match="vmap"):
        norch.vmap(lambda row: norch.tensor(row.tolist()))(norch.ones(2, 3))


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_shapes_are_sizes(shape: tuple[int, ...]) -> None:
    """A shape is a Size, which is equal to a tuple and has its hash."""
    found: Any = norch.zeros(shape).shape
    assert type(found) is norch.Size and found == shape and hash(found) == hash(shape) and {found: 1}[shape] == 1
    assert norch.zeros(shape).size() == shape and found + (1,) == (*shape, 1)


def test_parts_of_shapes() -> None:
    """Items are integers, by what counts as one, and slices are Sizes, also of pickles; other indices raise."""
    shape = norch.zeros(3, 4, 5).shape
    assert [shape[i] for i in (0, -1, np.int64(1), True)] == [3, 5, 4, 4]
    for part in (slice(1, None), slice(None, None, -1), slice(5, None), slice(None, -1)):
        assert type(shape[part]) is norch.Size and shape[part] == (3, 4, 5)[part]
    assert shape[1:].numel() == 20
    for again in (pickle.loads(pickle.dumps(shape, protocol)) for protocol in range(6)):
        assert type(again) is norch.Size and again == shape and again[1:] == (4, 5)
    for index in (3, -4, 2**70, -(2**70), -(2**63)):
        with pytest.raises(IndexError):
            shape[index]
    for other in ("0", 1.0, None, (0,)):
        with pytest.raises(TypeError):
            shape[other]
