"""Arrays of NumPy over the memory of tensors, and back: dtypes, layouts, lifetimes, refusals."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from checks import says_read_only

import norch
from norch._binding.library import lib
from norch.storage import Memory

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "part": lambda x: x[1:, ::2],
    "one number": lambda x: x[1, 2],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_shared_both_ways(dtype: str, layout: str) -> None:
    """Shape, strides and elements agree; a write on one side is seen on the other. By both ways to make an array."""
    x = norch.arange(12).reshape(3, 4).to(getattr(norch, dtype))
    view = LAYOUTS[layout](x)
    for array in (view.numpy(), np.asarray(Memory(view))):
        assert (array.shape, array.dtype.name) == (tuple(view.shape), dtype) and array.tolist() == view.tolist()
        assert array.size == 0 or array.strides == tuple(step * x.itemsize for step in view.stride())
        back = norch.from_numpy(array)
        assert back.dtype is view.dtype and back.tolist() == view.tolist()
        if array.size:
            array[...] = 0
            assert not view.any() and not back.any()
            view.fill_(1)
            assert array.all() and back.all()


def test_memory_outlives_its_owner() -> None:
    """An array keeps the memory of a tensor whose data are replaced, and a tensor the array that it sees."""
    x = norch.ones(1000)
    array = x.numpy()
    x.data = norch.zeros(1000)
    del x
    gc.collect()
    assert array.sum() == 1000
    before = lib.norch_live_storages()
    owner: Any = np.ones(1000).view(type("Watched", (np.ndarray,), {}))
    seen = weakref.ref(owner)
    tensor = norch.from_numpy(owner)
    del owner
    gc.collect()
    assert seen() is not None and tensor.sum().item() == 1000
    del tensor
    gc.collect()
    assert seen() is None and lib.norch_live_storages() == before


def test_read_only() -> None:
    """What sees one element many times is read-only as an array; a read-only array is taken with a warning."""
    assert not norch.ones(1).expand(3).numpy().flags.writeable and norch.ones(3).numpy().flags.writeable
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        norch.from_numpy(array)


@pytest.mark.parametrize(
    "array",
    [
        np.ones(3, ">f4"),
        np.ones(3, "M8[s]"),
        np.ones(3, "u4"),
        np.ones((1,) * 32),
        np.zeros(2, "i4,f8")["f1"],
        3.0,
        [1],
    ],
    ids=["order", "dates", "uint32", "axes", "strides", "number", "list"],
)
def test_refusals(array: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="from_numpy|elements|dimensions"):
        norch.from_numpy(array)


def test_within_vmap() -> None:
    with pytest.raises(norch.errors.Error, match="vmap"):
        norch.vmap(lambda row: norch.from_numpy(row.numpy()))(norch.ones(2, 3))


def test_gradients_and_dtypes_are_refused() -> None:
    x = norch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with pytest.raises(TypeError, match="bfloat16"):
        x.detach().bfloat16().numpy()
    assert x.numpy(force=True).tolist() == [1, 1]


@pytest.mark.parametrize(
    "again",
    [
        lambda x: norch.from_numpy(x.numpy()),
        lambda x: norch.as_tensor(x.numpy()[:]),
        lambda x: norch.from_dlpack(x),
        lambda x: norch.from_dlpack(norch.utils.dlpack.to_dlpack(x)),
    ],
)
def test_to_and_fro_holds_the_memory_itself(again: Any) -> None:
    x = first = norch.arange(4.0)[1:]
    before = lib.norch_live_storages()
    for _ in range(100):
        x = again(x)
    assert lib.norch_live_storages() == before and x.data_ptr() == first.data_ptr() and x.storage_offset() == 1
    x.mul_(2)
    assert first.tolist() == [2, 4, 6] and again(x.reshape(3, 1).t()).stride() == (1, 1)


@pytest.mark.host  # of which NumPy sees the memory
def test_arrays_over_a_tensor_whose_elements_lie_elsewhere() -> None:
    """Of another dtype, and shifted by a part of an element; such memory may begin there, too."""
    memory = np.zeros(17, "float32")
    first = next(i for i in (0, 1) if (memory.ctypes.data + 4 * i) % 8)
    x = norch.from_numpy(memory[first : first + 16])
    y = norch.from_numpy(x.numpy()[1:15].view("float64"))  # 4 bytes from where the storage begins
    y.fill_(1.5)
    assert x.numpy()[1:15].view("float64").tolist() == [1.5] * 7 and x[0].item() == x[15].item() == 0
    assert norch.from_numpy(x.numpy()[2:4].view("uint8")).shape == (8,)
    with pytest.raises(norch.ArgumentError, match="not aligned"):
        norch.from_numpy(x.numpy().view("uint8")[1:9].view("float32"))


@says_read_only
@pytest.mark.host
def test_a_long_chain_of_owners_ends() -> None:
    x = norch.ones(2)
    for _ in range(200_000):
        x = norch.from_dlpack(np.from_dlpack(x))
    assert x.tolist() == [1, 1]
    del x
