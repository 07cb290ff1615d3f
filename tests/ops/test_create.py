"""Making tensors by a rule: as PyTorch does, argument for argument."""

import itertools
import math

import numpy as np
import pytest

import norch
from norch.testing import gradcheck

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def agree(ours, theirs):
    """Values, shape and dtype like PyTorch's."""
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    a, b = ours.detach().double().numpy(), theirs.detach().double().numpy()
    np.testing.assert_allclose(a, b, rtol=2e-7 if "16" not in str(theirs.dtype) else 1e-2, atol=1e-12)


CALLS = {
    "arange": lambda m: m.arange(5),
    "arange floats": lambda m: m.arange(0.5, 3, 0.3),
    "arange down": lambda m: m.arange(5, -4, -3),
    "arange end": lambda m: m.arange(end=4),
    "arange empty": lambda m: m.arange(3, 3),
    "arange dtype": lambda m: m.arange(3, dtype=m.float64),
    "arange of a tensor": lambda m: m.arange(m.tensor(2), m.tensor(9), 2),
    "arange of NumPy": lambda m: m.arange(np.int64(3)),
    "linspace": lambda m: m.linspace(-1, 2, 7),
    "linspace one": lambda m: m.linspace(3, 9, 1),
    "linspace none": lambda m: m.linspace(3, 9, 0),
    "linspace ints": lambda m: m.linspace(0, 10, 4, dtype=m.int64),
    "linspace of fractions as ints": lambda m: m.linspace(0.9, 9.9, 6, dtype=m.int32),
    "linspace of tensors": lambda m: m.linspace(m.tensor(0.0), m.tensor(1.0), steps=3),
    "linspace double": lambda m: m.linspace(0, 1, 11, dtype=m.float64),
    "logspace": lambda m: m.logspace(-2, 3, 6),
    "logspace base": lambda m: m.logspace(start=0, end=4, steps=5, base=2, dtype=m.float64),
    "logspace ints from floats": lambda m: m.logspace(1.2, 3.9, 3, dtype=m.int64),
    "arange int64 from floats": lambda m: m.arange(0.5, -8.000001, -4.0, dtype=m.int64),
    "arange int32 from floats": lambda m: m.arange(0.5, 3.7, 1.2, dtype=m.int32),
    "logspace ints": lambda m: m.logspace(0, 5, 6, base=2, dtype=m.int64),
    "eye": lambda m: m.eye(3),
    "eye wide": lambda m: m.eye(2, 4, dtype=m.int64),
    "eye none": lambda m: m.eye(0),
    "full": lambda m: m.full((2, 3), 1.5),
    "full ints": lambda m: m.full((2,), 7),
    "full bools": lambda m: m.full((2,), True),
    "full bools of a fraction": lambda m: m.full((2,), 0.5, dtype=m.bool),
    "full_like bools": lambda m: m.full_like(m.zeros(2), float("-inf"), dtype=m.bool),
    "full of a tensor": lambda m: m.full((2,), m.tensor(3)),
    "full dtype": lambda m: m.full(size=(2,), fill_value=3, dtype=m.float64),
    "zeros": lambda m: m.zeros(2, 3),
    "zeros size": lambda m: m.zeros(size=(2, 3), dtype=m.int32),
    "ones of a list": lambda m: m.ones([2, 0]),
    "ones 0-d": lambda m: m.ones(()),
    "scalar_tensor": lambda m: m.scalar_tensor(3),
    "scalar_tensor dtype": lambda m: m.scalar_tensor(3.7, dtype=m.int64),
    "zeros_like": lambda m: m.zeros_like(m.ones(2, 3, dtype=m.int64)),
    "ones_like dtype": lambda m: m.ones_like(m.zeros(2), dtype=m.bool),
    "full_like": lambda m: m.full_like(m.zeros(2, dtype=m.int64), 3.7),
    "full_like keywords": lambda m: m.full_like(input=m.zeros(2), fill_value=3, dtype=m.int64),
    "new_zeros": lambda m: m.ones(2, dtype=m.float64).new_zeros(2, 3),
    "new_zeros size": lambda m: m.ones(2, dtype=m.int64).new_zeros(size=(2,)),
    "new_ones": lambda m: m.ones(2, dtype=m.float64).new_ones((2, 3), dtype=m.int32),
    "new_full": lambda m: m.ones(2, dtype=m.int64).new_full((2, 2), 3.5),
    "new_tensor": lambda m: m.ones(2, dtype=m.float64).new_tensor([1, 2]),
    "new_empty": lambda m: m.ones(2, dtype=m.float64).new_empty(0, 3),
    "tril_indices": lambda m: m.tril_indices(3, 4),
    "tril_indices below": lambda m: m.tril_indices(4, 3, -2),
    "tril_indices above": lambda m: m.tril_indices(3, 3, 5),
    "tril_indices far below": lambda m: m.tril_indices(3, 3, -5),
    "tril_indices dtype": lambda m: m.tril_indices(3, 2, 1, dtype=m.int32),
    "tril_indices none": lambda m: m.tril_indices(0, 3),
    "triu_indices": lambda m: m.triu_indices(3, 4),
    "triu_indices below": lambda m: m.triu_indices(4, 3, -1),
    "triu_indices above": lambda m: m.triu_indices(row=3, col=3, offset=2),
    "triu_indices far": lambda m: m.triu_indices(3, 3, 5),
    "vander": lambda m: m.vander(m.tensor([1.0, 2.0, -3.0])),
    "vander up": lambda m: m.vander(m.tensor([2, 3]), 4, increasing=True),
    "vander one": lambda m: m.vander(m.tensor([2.0, 3.0]), N=1),
    "vander none": lambda m: m.vander(m.tensor([2.0, 3.0]), N=0),
    "linalg.vander": lambda m: m.linalg.vander(m.tensor([[1.0, 2.0], [3.0, -1.0]]), N=4),
    "linalg.vander empty": lambda m: m.linalg.vander(m.zeros(0, 3, dtype=m.float64)),
    "linalg.vander integers": lambda m: m.linalg.vander(m.tensor([2, 3], dtype=m.int32)),
    "meshgrid": lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="ij")[0],
    "meshgrid second": lambda m: m.meshgrid([m.arange(2), m.arange(3), m.arange(2)], indexing="ij")[1],
    "meshgrid xy": lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="xy")[1],
    "meshgrid xyz": lambda m: m.meshgrid(m.arange(2), m.arange(3), m.arange(4), indexing="xy")[0],
    "meshgrid number": lambda m: m.meshgrid(m.tensor(2), m.arange(3), indexing="xy")[0],
    "cartesian_prod": lambda m: m.cartesian_prod(m.tensor([1, 2]), m.tensor([4, 5, 6])),
    "cartesian_prod one": lambda m: m.cartesian_prod(m.tensor([1, 2])),
    "cartesian_prod three": lambda m: m.cartesian_prod(m.arange(2), m.arange(2), m.arange(3)),
    "combinations": lambda m: m.combinations(m.tensor([1.0, 2.0, 3.0, 4.0])),
    "combinations three": lambda m: m.combinations(m.arange(4), r=3),
    "combinations again": lambda m: m.combinations(m.arange(3), with_replacement=True),
    "combinations too many": lambda m: m.combinations(m.arange(2), r=3),
    "combinations none": lambda m: m.combinations(m.arange(2), r=0),
    "one_hot": lambda m: m.nn.functional.one_hot(m.tensor([[0, 2], [1, 1]])),
    "one_hot wide": lambda m: m.nn.functional.one_hot(m.tensor([0, 2]), 5),
    "asarray": lambda m: m.asarray([1, 2], dtype=m.float64),
    "as_tensor": lambda m: m.as_tensor([[1.5]]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_like_torch(torch, name):
    agree(CALLS[name](norch), CALLS[name](torch))


WRONG = {
    "arange step": lambda m: m.arange(0, 3, 0),
    "arange direction": lambda m: m.arange(0, 3, -1),
    "arange infinite": lambda m: m.arange(0, math.inf),
    "arange NaN": lambda m: m.arange(0, math.nan),
    "arange text": lambda m: m.arange("3"),
    "arange nothing": lambda m: m.arange(None),
    "linspace": lambda m: m.linspace(0, 1, -1),
    "linspace float": lambda m: m.linspace(0, 1, 2.5),
    "linspace text": lambda m: m.linspace("0", 1, 2),
    "logspace": lambda m: m.logspace(0, 1, -1),
    "eye": lambda m: m.eye(-1),
    "full": lambda m: m.full((2, -1), 0),
    "full text": lambda m: m.full((2,), "a"),
    "zeros": lambda m: m.zeros(2.5),
    "zeros text": lambda m: m.zeros("2"),
    "zeros nothing": lambda m: m.zeros(None),
    "zeros twice": lambda m: m.zeros(2, size=(2,)),
    "zeros dtype": lambda m: m.zeros(2, dtype="nothing"),
    "requires_grad": lambda m: m.zeros(2, dtype=m.int64, requires_grad=True),
    "zeros_like": lambda m: m.zeros_like(3),
    "full_like": lambda m: m.full_like(None, 1),
    "tril_indices": lambda m: m.tril_indices(-1, 2),
    "triu_indices": lambda m: m.triu_indices(2, 2.5),
    "meshgrid": lambda m: m.meshgrid(m.zeros(2, 2), indexing="ij"),
    "meshgrid dtypes": lambda m: m.meshgrid(m.zeros(2), m.arange(2), indexing="ij"),
    "meshgrid indexing": lambda m: m.meshgrid(m.zeros(2), indexing="ab"),
    "meshgrid number": lambda m: m.meshgrid(3, indexing="ij"),
    "cartesian_prod": lambda m: m.cartesian_prod(m.zeros(2, 2), m.zeros(2)),
    "combinations": lambda m: m.combinations(m.zeros(2, 2)),
    "combinations negative": lambda m: m.combinations(m.zeros(2), r=-1),
    "vander": lambda m: m.vander(m.zeros(2, 2)),
    "vander negative": lambda m: m.vander(m.zeros(2), N=-1),
    "linalg.vander of a number": lambda m: m.linalg.vander(m.tensor(2.0)),
    "empty_strided": lambda m: m.empty_strided((2, 3), (1,)),
    "empty_strided negative": lambda m: m.empty_strided((2,), (-1,)),
    "one_hot": lambda m: m.nn.functional.one_hot(m.tensor([-1, 2])),
    "one_hot few": lambda m: m.nn.functional.one_hot(m.tensor([0, 2]), 2),
    "asarray": lambda m: m.asarray([1, 2], copy=False),
    "new_zeros": lambda m: m.ones(2).new_zeros(-1),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_raises_in_torch_raises_here(torch, name):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, OverflowError)):
        WRONG[name](torch)
    with pytest.raises((norch.Error, TypeError, ValueError, IndexError, OverflowError)):
        WRONG[name](norch)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(torch, dtype):
    ours, theirs = getattr(norch, dtype), getattr(torch, dtype)
    for make in (
        lambda m, d: m.zeros(2, 3, dtype=d),
        lambda m, d: m.ones(2, dtype=d),
        lambda m, d: m.full((2,), 1, dtype=d),
        lambda m, d: m.eye(2, 3, dtype=d),
        lambda m, d: m.zeros(2).new_full((3,), 1, dtype=d),
        lambda m, d: m.ones_like(m.zeros(2), dtype=d),
        lambda m, d: m.linspace(0, 8, 5, dtype=m.int64 if dtype == "bool" else d),
    ):
        agree(make(norch, ours), make(torch, theirs))
    for make in (lambda m, d: m.empty(2, 3, dtype=d), lambda m, d: m.empty_like(m.zeros(2), dtype=d)):
        assert make(norch, ours).dtype is ours and tuple(make(norch, ours).shape) == tuple(make(torch, theirs).shape)


def test_requires_grad_and_device():
    for make in (
        lambda **k: norch.zeros(2, **k),
        lambda **k: norch.ones(2, **k),
        lambda **k: norch.empty(2, **k),
        lambda **k: norch.full((2,), 1.0, **k),
        lambda **k: norch.eye(2, **k),
        lambda **k: norch.arange(2.0, **k),
        lambda **k: norch.linspace(0, 1, 3, **k),
        lambda **k: norch.logspace(0, 1, 3, **k),
        lambda **k: norch.zeros_like(norch.ones(2), **k),
        lambda **k: norch.empty_like(norch.ones(2), **k),
        lambda **k: norch.ones(2).new_ones(3, **k),
        lambda **k: norch.ones(2).new_empty(3, **k),
        lambda **k: norch.ones(2).new_tensor([1.0], **k),
        lambda **k: norch.scalar_tensor(1.0, **k),
        lambda **k: norch.empty_strided((2, 2), (1, 2), **k),
        lambda **k: norch.asarray([1.0], **k),
        lambda **k: norch.rand(2, **k),
        lambda **k: norch.randn(size=(2,), **k),
        lambda **k: norch.rand_like(norch.ones(2), **k),
        lambda **k: norch.randn_like(norch.ones(2), **k),
        lambda **k: norch.normal(0.0, 1.0, (2,), **k),
    ):
        made = make(requires_grad=True, device="cpu")
        assert made.requires_grad and made.is_leaf and made.device.type == "cpu"
        assert not make().requires_grad
        with pytest.raises(norch.DeviceError):
            make(device="cuda:99")


def test_strides_as_asked():
    x = norch.empty_strided((2, 3), (1, 2), dtype=norch.int64)
    assert x.stride() == (1, 2) and x.dtype is norch.int64 and x._base is None
    x.copy_(norch.arange(6).view(2, 3))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert norch.empty_strided((0, 3), (5, 1)).shape == (0, 3)
    assert norch.empty_strided((), ()).shape == ()
    assert norch.ones(2, dtype=norch.int64).new_empty_strided((2,), (3,)).dtype is norch.int64


def test_meshgrid_warns_and_views():
    a = norch.arange(3.0).requires_grad_()
    with pytest.warns(UserWarning, match="indexing"):
        norch.meshgrid(a)
    rows, columns = norch.meshgrid(a, norch.ones(2), indexing="ij")
    assert rows.stride() == (1, 0) and rows.data_ptr() == a.data_ptr()
    (rows * columns * 2).sum().backward()
    assert a.grad.tolist() == [4, 4, 4]


def test_gradients_of_choices():
    x = norch.tensor([1.0, 2.0, 3.0], dtype=norch.float64, requires_grad=True)
    for function in (
        lambda x: norch.combinations(x, 2),
        lambda x: norch.cartesian_prod(x, x * 2),
        lambda x: norch.vander(x, 4),
        lambda x: norch.meshgrid(x, x, indexing="xy")[0],
    ):
        assert gradcheck(lambda x, f=function: f(x).square(), (x,))


@pytest.mark.host
def test_asarray_shares_where_it_can():
    source = np.zeros(3)
    assert norch.asarray(source).data_ptr() == source.ctypes.data
    assert norch.asarray(source, copy=False).data_ptr() == source.ctypes.data
    assert norch.asarray(source, copy=True).data_ptr() != source.ctypes.data
    x = norch.ones(2)
    assert norch.asarray(x) is x
    with pytest.raises(ValueError):
        norch.asarray(source, dtype=norch.float32, copy=False)
    leaf = norch.asarray(source, requires_grad=True)
    assert leaf.requires_grad and leaf.data_ptr() == source.ctypes.data
    y = leaf * 2
    assert norch.asarray(y) is y is norch.asarray(y, requires_grad=True)
    assert norch.asarray(y, copy=True).grad_fn is not None and not norch.asarray(y, requires_grad=False).requires_grad


@pytest.mark.host
def test_asarray_reads_the_bytes_of_a_buffer():
    buffer = bytearray(np.array([1.0, 2.0], np.float32).tobytes())
    x = norch.asarray(buffer, dtype=norch.float32)
    assert x.tolist() == [1.0, 2.0] and norch.asarray(buffer).tolist() == [1.0, 2.0]
    assert norch.asarray(bytes(buffer), dtype=norch.float32).tolist() == [1.0, 2.0]
    assert norch.asarray(memoryview(buffer), dtype=norch.int32).tolist() == [0x3F800000, 0x40000000]
    norch.asarray(buffer, dtype=norch.float32, copy=True)[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    x[0] = 3.0
    assert norch.asarray(buffer, dtype=norch.float32, copy=False).tolist() == [3.0, 2.0]
    for refused in (lambda: norch.asarray(bytes(buffer), copy=False), lambda: norch.asarray(bytearray(3))):
        with pytest.raises(ValueError):
            refused()
    assert norch.asarray(np.float64(2.0)).dtype is norch.float64  # a number of NumPy is a buffer, too


@pytest.mark.host
def test_asarray_takes_capsules_storages_and_objects_with_dlpack():
    x = norch.ones(3)
    norch.asarray(x.__dlpack__())[0] = 4.0
    assert x.tolist() == [4.0, 1.0, 1.0]
    storage = x.untyped_storage()
    norch.asarray(storage, dtype=norch.float32)[1] = 2.0
    assert norch.tensor(storage, dtype=norch.float32).tolist() == [4.0, 2.0, 1.0] == x.tolist()

    class Exporter:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    copied, shared = norch.tensor(Exporter()), norch.asarray(Exporter())
    x[2] = 7.0
    assert copied.tolist() == [4.0, 2.0, 1.0] and shared.tolist() == [4.0, 2.0, 7.0]


LINES = {
    "arange": lambda m, **out: m.arange(6, **out),
    "linspace": lambda m, **out: m.linspace(0, 5, 6, **out),
    "logspace": lambda m, **out: m.logspace(0, 5, 6, 2, **out),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_keeps_the_shape_of_out(torch, name):
    results = []
    for m in (torch, norch):
        base = m.full((2, 6), -1.0)
        out = base[:, ::2]
        assert LINES[name](m, out=out) is out
        turned = LINES[name](m, out=m.zeros(3, 2).t())
        results.append((tuple(out.shape), base.tolist(), tuple(turned.shape), turned.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("call", ["empty(2, {})", "zeros(2, {})", "full((2,), 1, {})", "arange(2, {})", "eye(2, {})",
                                  "sum(m.ones(2), 0, {})", "cumsum(m.ones(2), 0, {})"])  # fmt: skip
def test_a_dtype_other_than_that_of_out_is_refused(torch, call):
    for m, kind in ((torch, RuntimeError), (norch, norch.errors.DTypeError)):
        out = m.zeros(0)
        with pytest.raises(kind):
            eval("m." + call.format("dtype=m.float64, out=out"), {"m": m, "out": out})
        eval("m." + call.format("dtype=m.float32, out=out"), {"m": m, "out": out})


OF_INDICES = (
    "argmax(x, 0, {}); argmin(x, 0, {}); nonzero(x, {}); max(x, 0, {}); sort(x, {}); topk(x, 2, {}); "
    "median(x, 0, {}); cummax(x, 0, {}); kthvalue(x, 2, {})"
)


@pytest.mark.parametrize("call", OF_INDICES.split("; "))
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_out_of_indices_is_int64(torch, call, dtype):
    single = call[:2] in ("ar", "no")
    for m, kind in ((torch, RuntimeError), (norch, norch.errors.DTypeError)):
        x, indices = m.tensor([3.0, 1.0, 2.0]), m.zeros(0, dtype=getattr(m, dtype))
        with pytest.raises(kind):
            eval("m." + call.format("out=out"), {"m": m, "x": x, "out": indices if single else (m.zeros(0), indices)})


def test_linspace_ends_are_exact():
    for steps in (2, 3, 7, 10, 1001):
        x = norch.linspace(0.1, 0.7, steps, dtype=norch.float64)
        assert x[0].item() == 0.1 and x[-1].item() == 0.7 and x.shape == (steps,)


@pytest.mark.parametrize(
    "name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like", "randint_like"]
)
def test_what_is_like_a_dense_tensor_lies_as_it_does(torch, name):
    more = {"full_like": (7,), "randint_like": (9,)}.get(name, ())
    for take in (lambda x: x, lambda x: x.mT, lambda x: x.permute(2, 0, 1), lambda x: x.permute(1, 2, 0)):
        ours, theirs = ((m, take(m.ones(2, 3, 4))) for m in (norch, torch))
        for given in ({}, {"dtype": "float64"}, {"memory_format": "contiguous_format"}):
            found = []
            for m, x in (ours, theirs):
                out = getattr(m, name)(x, *more, **{key: getattr(m, value) for key, value in given.items()})
                found.append((tuple(out.shape), out.stride(), str(out.dtype).split(".")[1]))
            assert found[0] == found[1]
    assert norch.zeros_like(norch.ones(4, 6)[::2].T).is_contiguous(), "of what is not dense, C-ordered"


def test_triangles_of_every_offset_like_torch(torch):
    for row, col in itertools.product((0, 1, 3, 4), repeat=2):
        for offset in (-(2**40), *range(-6, 7), 2**40):
            for name in ("tril_indices", "triu_indices"):
                mask = getattr(torch, name[:4])(torch.ones(row, col), max(-9, min(offset, 9)))
                assert getattr(norch, name)(row, col, offset).tolist() == mask.nonzero().T.tolist()


def test_linspace_refuses_bool_as_pytorch():
    for make in (lambda: norch.linspace(5, 10, 3, dtype=norch.bool), lambda: norch.logspace(0, 1, 3, dtype=norch.bool)):
        with pytest.raises(norch.DTypeError, match=r"^l\w+space: not defined for dtype bool"):
            make()


def test_the_address_of_no_elements_is_0():
    x = norch.ones(4)
    for empty in (norch.empty(0), norch.ones(3, 0), x[4:], x[2:2], norch.empty(0).untyped_storage()):
        assert empty.data_ptr() == 0
    assert x[:0].untyped_storage().data_ptr() == x.data_ptr() != 0
    assert norch.asarray(np.empty(0, np.float32), copy=False).data_ptr() == 0
    assert np.asarray(norch.empty(0, 3)).shape == (0, 3)
