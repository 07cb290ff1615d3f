"""norch.utils.data: how samples become a batch."""

from collections import OrderedDict, UserDict, UserList, deque, namedtuple
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import pytest

import norch
from norch.utils.data import DataLoader, default_collate


def test_default_collate():
    x = default_collate([norch.ones(2), norch.zeros(2)])
    assert x.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert default_collate([1, 2]).dtype == norch.int64
    assert default_collate([1.5, 2.5]).dtype == norch.float64
    assert default_collate([True, False]).dtype == norch.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]
    array = default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)])
    assert array.dtype == norch.float32 and array.shape == (2, 2)
    assert default_collate([np.float32(1), np.float32(2)]).dtype == norch.float32
    assert default_collate([np.float64(1), np.float64(2)]).dtype == norch.float64
    assert default_collate([np.int64(1)]).tolist() == [1]
    batch = default_collate([{"x": norch.ones(1), "n": (1, "a")}, {"x": norch.zeros(1), "n": (2, "b")}])
    assert batch["x"].shape == (2, 1)
    assert batch["n"][0].tolist() == [1, 2] and batch["n"][1] == ["a", "b"]
    Point = namedtuple("Point", "x y")
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert type(point) is Point and point.y.tolist() == [2, 4]
    assert default_collate([[1, 2], [3, 4]])[1].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match=r"sample 0 has \['a'\], sample 1 \['b'\]"):
        default_collate([{"a": 1}, {"b": 2}])
    with pytest.raises(RuntimeError, match=r"sample 0 has \['a'\], sample 2 \['a', 'b'\]"):
        default_collate([{"a": 1}, {"a": 2}, {"a": 3, "b": 2}])
    with pytest.raises(RuntimeError, match="sample 1 int"):
        default_collate([{"a": 1}, 2])
    with pytest.raises(TypeError, match="object"):
        default_collate([object()])
    with pytest.raises(TypeError, match="numbers"):
        default_collate([np.array("a")])
    with pytest.raises(ValueError):
        default_collate([norch.ones(2), norch.ones(3)])


class Fields(UserDict):
    """A mapping with an attribute."""

    def __init__(self, *entries, **named):
        super().__init__(*entries, **named)
        self.source = "a"


class Numbers(list):
    source = "b"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("batch_size", [2, None])
@pytest.mark.parametrize(
    "sample",
    [
        Fields(x=1.5, n=np.ones(2)),
        OrderedDict(x=np.ones(2), b=Fields(y=np.ones(1))),
        MappingProxyType({"x": np.ones(2)}),
        Numbers([np.ones(2), 2]),
        deque([np.ones(2), 2], 2),
        UserList([Numbers([np.ones(1)])]),
        [Fields(x=1), (1, 2)],
    ],
    ids=lambda sample: type(sample).__name__,
)
def test_batches_keep_the_class_of_their_samples(torch, sample, batch_size, workers):
    if workers and isinstance(sample, MappingProxyType):
        pytest.skip("cannot be pickled")
    ours = next(iter(DataLoader([sample] * 2, batch_size=batch_size, num_workers=workers, pin_memory=True)))
    theirs = next(iter(torch.utils.data.DataLoader([sample] * 2, batch_size=batch_size)))

    def compared(a, b):
        if isinstance(b, torch.Tensor):
            assert a.dtype.name == str(b.dtype)[6:] and a.tolist() == b.tolist()
            return
        assert type(a) is type(b) and getattr(a, "source", 0) == getattr(b, "source", 0)
        if isinstance(b, Mapping):
            assert list(a) == list(b)
            a, b = a.values(), b.values()
        for one, other in zip(a, b, strict=True) if isinstance(b, Iterable) else ():
            compared(one, other)

    compared(ours, theirs)


def test_arrays_of_texts_stay_arrays():
    texts = np.array(["a", "b"])
    assert next(iter(DataLoader([{"t": texts}], batch_size=None)))["t"] is texts
