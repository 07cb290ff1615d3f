"""DLPack: memory shared with NumPy, PyTorch and norch itself, its lifetime, and what is refused."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from checks import says_read_only
from conftest import torch_or_skip

import norch
from norch._binding.library import lib
from norch.utils import dlpack

pytestmark = pytest.mark.host

NAMES = "bool uint8 int8 int16 int32 int64 float16 float32 float64".split()


class Producer:
    """An array that only the protocol is known of; the arguments that norch gives are kept."""

    def __init__(self, array, old=False):
        self.array, self.old, self.options = array, old, None

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.old and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.options = options
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_both_ways(name):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(name)
    x = norch.from_dlpack(array)
    assert x.dtype is getattr(norch, name)
    assert x.tolist() == array.tolist()
    array[1, 1] = 7
    assert x[1, 1].item() == array[1, 1]
    back = np.from_dlpack(x)
    assert back.dtype == array.dtype
    assert np.shares_memory(back, array)


@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a.T,
        lambda a: a[::2, 1:],
        lambda a: a[:, ::-1],
        lambda a: a[0, 0],
        lambda a: a[:0],
        lambda a: a[None, :, None],
        pytest.param(lambda a: np.broadcast_to(a[:1], (3, 4)), marks=says_read_only),
    ],
    ids=["transposed", "strided", "backward", "0-d", "empty", "of size 1", "broadcast"],
)
def test_layouts(cut):
    array = np.arange(12.0).reshape(3, 4)
    part = np.asarray(cut(array))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what NumPy made read-only
        x = norch.from_dlpack(part)
    assert x.shape == part.shape
    assert x.tolist() == part.tolist()
    assert np.from_dlpack(x).tolist() == part.tolist()


BACKWARD = {
    "reversed": lambda: norch.arange(4.0)[::-1],
    "columns": lambda: norch.arange(12.0).view(3, 4)[:, ::-2],
    "diagonal": lambda: norch.arange(9.0).view(3, 3)[::-1].diagonal(),
    "of NumPy": lambda: norch.from_numpy(np.arange(6).reshape(2, 3)[::-1]),
    "integers": lambda: norch.arange(5, dtype=norch.int16)[::-2],
    "broadcast": lambda: norch.arange(3.0)[::-1].expand(2, 3),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_negative_strides_are_copied_for_others(name):
    x = BACKWARD[name]()
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__dlpack__(copy=True), dlpack.to_dlpack(x)):
        y = norch.from_dlpack(capsule)
        assert y.tolist() == x.tolist() and min(y.stride()) >= 0 and y.data_ptr() != x.data_ptr()
    assert np.from_dlpack(x).tolist() == x.tolist()
    with pytest.raises(BufferError, match="copy=False, but the strides"):
        x.__dlpack__(copy=False)


READ = {
    "reversed": lambda: norch.arange(4.0)[::-1],
    "columns": lambda: norch.arange(12.0).view(3, 4)[:, ::-2],
    "stride 0": lambda: norch.arange(3.0).unsqueeze(1).expand(3, 4),
    "overlapping": lambda: norch.arange(4.0).as_strided((2, 2), (1, 1)),
    "offset": lambda: norch.arange(5.0)[2:],
    "0-d": lambda: norch.tensor(3.0),
    "empty": lambda: norch.ones(0, 3)[::-1],
    "size 1": lambda: norch.ones(1, 2)[::-1],
    "bool": lambda: norch.tensor([True, False]),
    "bfloat16": lambda: norch.ones(3, dtype=norch.bfloat16),
    "complex": lambda: norch.tensor([1 + 2j, 3j]).conj(),
}


@pytest.mark.parametrize("name", READ)
def test_torch_reads_every_layout(torch, name):
    x = READ[name]()
    for take in (torch.from_dlpack, torch.asarray, torch.as_tensor):
        y = take(x)
        assert tuple(y.shape) == tuple(x.shape) and y.tolist() == x.tolist() and str(y.dtype)[6:] == str(x.dtype)[6:]
    if name not in ("reversed", "columns"):
        assert torch.from_dlpack(x).data_ptr() == (x.data_ptr() if x.numel() else 0)
    with pytest.raises(BufferError, match="requires grad"):
        torch.from_dlpack(norch.ones(2, requires_grad=True))


@pytest.mark.parametrize("old", [False, True])
def test_what_a_producer_is_asked(old):
    given = Producer(norch.arange(3.0), old)
    assert norch.from_dlpack(given).tolist() == [0.0, 1.0, 2.0]
    assert given.options == ({} if old else {"max_version": (1, 0)})


def test_a_capsule_is_used_once():
    x = norch.arange(3.0)
    for capsule in (dlpack.to_dlpack(x), x.__dlpack__(max_version=(1, 0))):
        y = norch.from_dlpack(capsule)
        assert y.data_ptr() == x.data_ptr()
        with pytest.raises(TypeError, match="capsule that was not used"):
            norch.from_dlpack(capsule)
    with pytest.raises(TypeError, match="expected an array that has __dlpack__, or a DLPack capsule, not list"):
        norch.from_dlpack([1.0])


def test_each_side_keeps_the_memory_alive():
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    x = norch.from_dlpack(array)
    view = x[10:]
    del array, x
    gc.collect()
    assert gone() is not None
    assert view[0].item() == 10.0
    del view
    gc.collect()
    assert gone() is None

    before = lib.norch_live_storages()
    shared = np.from_dlpack(norch.arange(1000.0))
    gc.collect()
    assert lib.norch_live_storages() == before + 1
    assert shared[999] == 999.0
    del shared
    gc.collect()
    assert lib.norch_live_storages() == before


def test_capsules_that_nobody_takes_leak_nothing():
    x = norch.ones(10)
    before = lib.norch_live_storages()
    for version in (None, (1, 0)):
        for _ in range(1000):
            x.__dlpack__(max_version=version)
    del x
    gc.collect()
    assert lib.norch_live_storages() == before - 1


def test_the_last_reference_may_go_in_another_thread():
    before = lib.norch_live_storages()
    shared = [np.from_dlpack(norch.ones(100)) for _ in range(50)]
    threads = [threading.Thread(target=shared.pop) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert lib.norch_live_storages() == before


@says_read_only
def test_read_only_arrays_are_shared_with_a_warning():
    array = np.arange(3.0)
    array.flags.writeable = False
    for take in (norch.from_dlpack, norch.from_numpy, norch.as_tensor, norch.asarray):
        with pytest.warns(UserWarning, match=f"{take.__name__}: this array is read-only") as noted:
            x = take(array)
        assert x.tolist() == [0.0, 1.0, 2.0] and x.data_ptr() == array.ctypes.data
        assert noted[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert norch.from_dlpack(array, copy=True).tolist() == [0.0, 1.0, 2.0]
        for x in (norch.tensor(array), norch.as_tensor(array, dtype=norch.float32), norch.asarray(array, copy=True)):
            assert x.tolist() == [0.0, 1.0, 2.0] and x.data_ptr() != array.ctypes.data


def test_copies_and_devices():
    x = norch.arange(3.0)
    assert x.__dlpack_device__() == (1, 0)
    y = norch.from_dlpack(x, copy=True)
    y[0] = 5.0
    assert x[0].item() == 0.0
    assert norch.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    assert norch.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert norch.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=False)).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="type 10"):
        x.__dlpack__(dl_device=(10, 0))
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(2, 0), copy=False)


def test_what_is_refused():
    with pytest.raises(BufferError, match="detach"):
        norch.ones(3, requires_grad=True).__dlpack__()
    with pytest.raises(norch.errors.DTypeError, match="code 1 with 32 bits"):
        norch.from_dlpack(np.ones(3, "uint32"))
    with pytest.raises(TypeError):
        norch.from_dlpack(3.0)
    crooked = np.frombuffer(bytearray(17), "uint8")[1:].view("float64")
    with pytest.raises(ValueError, match="not aligned"):
        norch.from_dlpack(crooked)


def test_pytorch_both_ways():
    torch = torch_or_skip()
    for name in [*NAMES, "bfloat16"]:
        theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).T
        x = norch.from_dlpack(theirs)
        assert x.dtype is getattr(norch, name)
        assert x.data_ptr() == theirs.data_ptr()
        assert x.stride() == theirs.stride()
        back = torch.from_dlpack(x)
        assert back.dtype is theirs.dtype
        assert back.data_ptr() == theirs.data_ptr()
        assert torch.equal(back, theirs)
    assert torch.utils.dlpack.from_dlpack(dlpack.to_dlpack(norch.ones(2))).tolist() == [1.0, 1.0]


def test_jax_both_ways():
    jax = pytest.importorskip("jax")
    for name in [*NAMES, "bfloat16"]:
        if name in ("int64", "float64"):
            continue  # which JAX has only where it is told to
        theirs = jax.numpy.arange(6).reshape(2, 3).astype(name)
        x = norch.from_dlpack(theirs)
        assert x.dtype is getattr(norch, name)
        assert x.tolist() == theirs.tolist()
        assert x.data_ptr() == theirs.unsafe_buffer_pointer()
        back = jax.dlpack.from_dlpack(norch.from_dlpack(x, copy=True))
        assert back.dtype == theirs.dtype and back.tolist() == theirs.tolist()


class CuPyLike:
    """An array whose protocol is that of DLPack before 1.0: a capsule of the old form, asked for with a stream."""

    def __init__(self, tensor):
        self.tensor, self.stream = tensor, "not asked"

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None):
        self.stream = stream
        return dlpack.to_dlpack(self.tensor)


def test_an_array_as_cupy_has_them():
    x = norch.arange(6.0).view(2, 3).t()
    theirs = CuPyLike(x)
    y = norch.from_dlpack(theirs)
    assert theirs.stream is None and y.stride() == (1, 3) and y.data_ptr() == x.data_ptr()


def test_gradients_flow_into_a_tensor_over_foreign_memory():
    array = np.arange(3.0)
    x = norch.from_dlpack(array).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0]
