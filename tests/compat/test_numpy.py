"""Tensors from NumPy arrays and arrays from tensors: what is shared, what is copied, who keeps it alive."""

import array
import gc
import math

import numpy as np
import pytest

import norch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def storages():
    return norch._binding.library.lib.norch_live_storages()


# ---- from and to NumPy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4)])
def test_arrays(shape, dtype):
    source = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    x = norch.tensor(source)
    assert x.dtype.name == dtype and tuple(x.shape) == shape
    np.testing.assert_array_equal(x.numpy(), source)
    assert x.numpy().dtype == source.dtype
    assert x.tolist() == source.tolist()
    shared = norch.from_numpy(source)
    assert shared.dtype.name == dtype and tuple(shared.shape) == shape
    np.testing.assert_array_equal(np.asarray(shared), source)


LONG = f"int{8 * array.array('l').itemsize}"  # 32 bits on Windows
LONG_DOUBLE = ["G"] if np.dtype("G") != np.dtype("D") else []  # a double there


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", *LONG_DOUBLE, "S3", "O", ">f4"])
def test_arrays_of_other_dtypes_raise(dtype):
    for make in (norch.tensor, norch.from_numpy):
        with pytest.raises(TypeError):
            make(np.zeros(2, dtype))


@pytest.mark.host  # no array shares memory with a device
def test_arrays_in_any_layout():
    source = np.arange(24.0).reshape(2, 3, 4)
    for view in (
        source.T,
        source[:, ::2],
        source[..., 1:3],
        np.asfortranarray(source),
        source[::-1],
        source[:, ::-2, ::-1],
        source[:, :, None],
        source[0, 0],
    ):
        np.testing.assert_array_equal(norch.tensor(view).numpy(), view)
        shared = norch.from_numpy(view)
        np.testing.assert_array_equal(shared.numpy(), view)
        assert shared.numpy().strides == view.strides or view.size == 0
        assert (shared * 2).tolist() == (view * 2).tolist()
        assert shared.sum().item() == view.sum()
    backward = norch.from_numpy(source[::-1])
    backward[0] = -1
    assert (source[1] == -1).all() and backward.storage_offset() == 12
    assert norch.as_tensor(source[::-1]).data_ptr() == backward.data_ptr()


def test_from_numpy_shares_memory_both_ways():
    source = np.zeros((2, 3), "float32")
    x = norch.from_numpy(source)
    source[0, 1] = 5
    assert x[0, 1].item() == 5
    x[1] = 7
    assert source.tolist() == [[0, 5, 0], [7, 7, 7]]
    x.numpy()[0, 0] = 9
    assert source[0, 0] == 9
    assert x.data_ptr() == source.ctypes.data


def test_shared_memory_lives_as_long_as_either_side():
    start = storages()
    source = np.arange(100000.0)
    x = norch.from_numpy(source)
    view = x[10:20]
    del source, x
    gc.collect()
    np.full(100000, -1.0)
    assert view.tolist() == list(range(10, 20))
    out = view.numpy()
    del view
    gc.collect()
    np.full(100000, -1.0)
    assert out.tolist() == list(range(10, 20))
    del out
    assert storages() == start

    x = norch.arange(5)
    out = x.numpy()[1:3]
    del x
    gc.collect()
    norch.zeros(5, dtype=norch.int64)
    assert out.tolist() == [1, 2]
    del out
    assert storages() == start


def test_from_numpy_frees_the_array():
    import weakref

    source = np.zeros(5)
    gone = weakref.ref(source)
    x = norch.from_numpy(source)
    del source
    assert gone() is not None
    del x
    assert gone() is None
    source = np.frombuffer(bytearray(41), "uint8")[1:].view("float64")
    gone = weakref.ref(source)
    with pytest.raises(ValueError):
        norch.from_numpy(source)
    del source
    gc.collect()
    assert gone() is None, "a failed from_numpy kept its array"


def test_from_numpy_refuses():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        assert norch.from_numpy(fixed).tolist() == [0, 0, 0]
    assert norch.tensor(fixed).tolist() == [0, 0, 0]
    with pytest.warns(UserWarning, match="as_tensor: this array is read-only"):
        assert norch.as_tensor(fixed).tolist() == [0, 0, 0]
    with pytest.raises(TypeError):
        norch.from_numpy([1, 2])
    crooked = np.frombuffer(bytearray(17), "uint8")[1:].view("float64")
    with pytest.raises(ValueError):
        norch.from_numpy(crooked)
    assert norch.tensor(crooked).tolist() == [0.0, 0.0]
    packed = np.zeros(3, dtype=[("a", "u1"), ("b", "<f8")])["b"]
    with pytest.raises(ValueError):
        norch.from_numpy(packed)
    with pytest.raises(norch.Error):
        norch.from_numpy(np.zeros([1] * 20))


def test_numpy_refuses_what_would_lose_the_gradient():
    x = norch.ones(2, requires_grad=True)
    for y in (x, x * 2):
        with pytest.raises(norch.Error, match="detach"):
            y.numpy()
        with pytest.raises(norch.Error, match="detach"):
            np.asarray(y)
        assert y.detach().numpy().shape == (2,)
    assert x.numpy(force=True).tolist() == [1, 1]


@pytest.mark.host
def test_array_protocol():
    x = norch.tensor([1.5, 2.5])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert np.asarray(x, dtype="int64").tolist() == [1, 2]
    np.asarray(x)[0] = 7
    assert x[0].item() == 7
    copied = np.array(x)
    copied[0] = 0
    assert x[0].item() == 7
    assert np.concatenate([x, x]).tolist() == [7, 2.5, 7, 2.5]
    assert np.array([norch.tensor(1.0), norch.tensor(2.0)]).astype(float).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "code, dtype", [("B", "uint8"), ("i", "int32"), ("q", "int64"), ("l", LONG), ("f", "float32"), ("d", "float64")]
)
def test_buffers(code, dtype):
    source = array.array(code, [1, 2, 3])
    x = norch.tensor(source)
    assert x.dtype.name == dtype and x.tolist() == [1, 2, 3]
    source[0] = 9
    assert x.tolist() == [1, 2, 3]


def test_buffers_of_several_dimensions():
    source = memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))
    assert norch.tensor(source).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert norch.tensor(memoryview(array.array("i", range(6)))[::2]).tolist() == [0, 2, 4]
    assert norch.tensor(bytearray(b"\x01\x02")).tolist() == [1, 2]
    assert norch.tensor(array.array("d")).shape == (0,)
    assert norch.tensor(array.array("h", [1, -2])).dtype is norch.int16
    with pytest.raises(TypeError):
        norch.tensor(array.array("I", [1]))


def test_functions_of_numpy() -> None:
    x = norch.tensor([[1.0, -2.0], [3.0, 4.0]])
    for f in (np.sum, np.mean, np.prod, np.max, np.min, np.argmax):
        assert isinstance(f(x), norch.Tensor) and f(x).item() == f(x.numpy())
    assert (
        np.sum(x, axis=1, keepdims=True).tolist() == [[-1.0], [7.0]] and np.any(x).item() and not np.all(x > 0).item()
    )
    assert np.cumsum(x, axis=0).tolist() == [[1.0, -2.0], [4.0, 2.0]] and np.argmax(x, axis=1).tolist() == [0, 1]
    for y in (np.exp(x), np.add(x, 1), np.multiply(x.numpy(), x), np.isnan(x)):
        assert isinstance(y, norch.Tensor)
    assert isinstance(np.emath.sqrt(x), np.ndarray)  # complex
    with pytest.raises(RuntimeError, match="requires grad"):
        np.exp(x.requires_grad_())


def test_fill_values_that_are_scalars_of_numpy_make_what_python_s_make() -> None:
    for value, wanted in (
        (np.float64(1.5), norch.float32),
        (np.float32(1.5), norch.float32),
        (np.int64(2), norch.int64),
    ):
        assert norch.full((2,), value).dtype is wanted and norch.full((2,), value).tolist() == [value] * 2
    assert norch.tensor(np.float64(1.5)).dtype is norch.float64  # as in PyTorch, an array of no axis


SCALARS = [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8, np.bool_]


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("make", [norch.as_tensor, norch.asarray, norch.tensor, norch.utils.data.default_convert])
def test_a_scalar_of_numpy_is_copied(make, kind):
    made = [make(kind(k)) for k in range(8)]
    assert [x.item() for x in made] == [kind(k).item() for k in range(8)]
    assert all(x.shape == () and x.numpy().dtype == kind for x in made)


def test_scalars_of_numpy_in_loaders_and_distributions():
    samples = np.arange(8, dtype=np.float32)
    assert [x.item() for x in norch.utils.data.DataLoader(samples, batch_size=None)] == list(range(8))
    drawn_from = norch.distributions.Normal(np.float32(1), np.float32(1.5))
    assert (drawn_from.mean.item(), drawn_from.stddev.item()) == (1, 1.5)


def test_from_numpy_takes_arrays_only():
    class Pointing:  # at memory that it does not keep
        __array_interface__ = np.zeros(2).__array_interface__

    for bad in (np.float32(1), np.int64(1), Pointing(), array.array("d", [1.0]), memoryview(b"ab")):
        with pytest.raises(TypeError, match=f"expected a NumPy array, not {type(bad).__name__}"):
            norch.from_numpy(bad)
    with pytest.raises(ValueError, match="without a copy"):
        norch.asarray(np.float32(1), copy=False)
    assert norch.from_numpy(np.array(2.5)).item() == 2.5  # an array of no axis


def test_arrays_that_are_more_than_their_bytes() -> None:
    masked = np.ma.array([1, 0, 1], mask=[0, 1, 0], dtype="i8")
    assert norch.tensor(masked).tolist() == norch.as_tensor(masked).tolist() == [1, 0, 1]

    class Interface:
        """What has the interface alone."""

        array = np.arange(3.0)
        __array_interface__ = array.__array_interface__

    assert norch.tensor(Interface()).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(norch.DTypeError, match=r"tensor: elements of type datetime64\[D\] have no dtype"):
        norch.tensor(np.array(["2020"], dtype="M8[D]"))
