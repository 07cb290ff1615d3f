"""Making tensors, and elements as Python and NumPy see them."""

import math
import operator
import pickle
from collections import deque
from copy import copy, deepcopy

import numpy as np
import pytest
from conftest import DEVICE
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def storages():
    return norch._binding.library.lib.norch_live_storages()


# ---- from Python values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        3,
        -7,
        2.5,
        True,
        [],
        [[]],
        [[], []],
        [1, 2, 3],
        [1, 2.5],
        [True, False],
        [True, 2],
        [True, 2.5],
        (1, 2),
        [(1, 2), [3, 4]],
        [[[1.0]], [[2.0]]],
        [2**62, -(2**63)],
        [math.nan, math.inf, -math.inf],
        [1e300, 1e-300],
        [[1, 2], [3, 4.5]],
        range(5),
        [range(2), range(2)],
    ],
)
def test_values_as_torch_reads_them(torch, values):
    ours, theirs = norch.tensor(values), torch.tensor(values)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert ours.is_contiguous()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("values", [3, [0, 1], [[2.5, -0.0]], [True, False], [], [math.nan]])
def test_values_in_a_given_dtype(torch, values, dtype):
    if values == [math.nan] or (isinstance(values, list) and values and values[0] != values[0]):
        if not dtype.startswith("float"):
            pytest.skip("no integer stands for NaN")
    ours = norch.tensor(values, dtype=getattr(norch, dtype))
    theirs = torch.tensor(values, dtype=getattr(torch, dtype))
    assert ours.dtype.name == dtype
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_mixed_nests():
    x = norch.tensor([[np.float32(1.5), norch.tensor(2)], [np.array(3), 4]])
    assert x.tolist() == [[1.5, 2], [3, 4]]
    assert norch.tensor([norch.tensor([1, 2]), norch.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert norch.tensor([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "make",
    [
        lambda f: [np.float64(1.5)],
        lambda f: [np.float32(1.5), 2.0],
        lambda f: [np.int32(1)],
        lambda f: [np.int32(1), 2],
        lambda f: [np.bool_(True)],
        lambda f: [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        lambda f: [f.tensor(1.0, dtype=f.float64)],
        lambda f: np.float64(2.5),
        lambda f: np.int32(2),
        lambda f: [True, np.uint8(3)],
    ],
)
def test_dtypes_of_the_numbers_in_lists(torch, make):
    ours, theirs = norch.tensor(make(norch)), torch.tensor(make(torch))
    assert ours.dtype.name == str(theirs.dtype)[6:] and ours.tolist() == theirs.tolist()


def test_other_kinds_of_numbers():
    from decimal import Decimal
    from fractions import Fraction

    assert norch.tensor([Decimal("1.5"), Fraction(1, 4)]).tolist() == [1.5, 0.25]
    assert norch.tensor([np.int8(3), np.float16(0.5)]).tolist() == [3.0, 0.5]


@pytest.mark.parametrize(
    "ragged", [[[1, 2], [3]], [[1], 2], [1, [2]], [[[1]], [[1, 2]]], [[], [1]], [[1], []], [[[1, 2], [3, 4]], [[5, 6]]]]
)
def test_ragged_lists_raise(ragged):
    for make in (norch.tensor, norch.Tensor):
        with pytest.raises(ValueError, match="ragged"):
            make(ragged)


@pytest.mark.parametrize("bad", ["abc", b"abc", None, [None], ["a"], [1, "a"], object(), {}, {1: 2}, {1, 2}])
def test_no_numbers_raise(bad):
    with pytest.raises((TypeError, norch.DTypeError)):
        norch.tensor(bad)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64 + 3, [2**64]])
def test_integers_beyond_64_bits_raise(value):
    with pytest.raises(OverflowError):
        norch.tensor(value)


def test_tensor_and_its_capital(torch):
    x = norch.Tensor([[1, 2], [3, 4]], requires_grad=True)
    assert x.dtype is norch.float32 and x.requires_grad and x.shape == (2, 2)
    assert norch.Tensor(2, 3).shape == torch.Tensor(2, 3).shape == (2, 3)
    assert norch.Tensor(2).shape == (2,) and norch.Tensor().shape == (0,)
    assert norch.Tensor([2]).tolist() == [2.0] and norch.Tensor([2]).dtype is norch.float32
    assert norch.Tensor(np.array([1, 2])).tolist() == [1.0, 2.0]
    assert norch.Tensor(norch.tensor([1, 2])).dtype is norch.int64
    assert norch.tensor([[1, 2], [3, 4]]).dtype is norch.int64
    with pytest.raises(norch.Error):
        norch.Tensor(-1)
    with pytest.raises((norch.Error, OverflowError)):
        norch.Tensor(2**63)


def test_tensor_of_a_tensor_copies():
    x = norch.tensor([1.0, 2.0], requires_grad=True)
    y = norch.tensor(x * 2)
    y.zero_()
    assert x.tolist() == [1.0, 2.0] and not y.requires_grad and y.is_leaf


def test_default_dtype():
    try:
        norch.set_default_dtype(norch.float64)
        assert norch.tensor(1.5).dtype is norch.float64 and norch.Tensor([1]).dtype is norch.float64
        assert norch.zeros(2).dtype is norch.float64
        assert (norch.tensor([1]) / 2).dtype is norch.float64
        assert (norch.tensor([1]) * 2.5).dtype is norch.float64
        with pytest.raises(norch.DTypeError):
            norch.set_default_dtype(norch.int64)
    finally:
        norch.set_default_dtype(norch.float32)
    assert norch.tensor(1.5).dtype is norch.float32


# ---- elements as Python sees them --------------------------------------------------------------------------------


def test_item():
    assert norch.tensor(3).item() == 3 and type(norch.tensor(3).item()) is int
    assert norch.tensor([[2.5]]).item() == 2.5 and type(norch.tensor(2.5).item()) is float
    assert norch.tensor(True).item() is True
    assert norch.tensor(2**62 + 1).item() == 2**62 + 1
    assert norch.tensor(7, dtype=norch.uint8).item() == 7
    assert math.isnan(norch.tensor(math.nan).item())
    for bad in (norch.zeros(2), norch.zeros(0)):
        with pytest.raises((ValueError, RuntimeError)):
            bad.item()


def test_conversions(torch):
    assert float(norch.tensor(2)) == 2.0 and int(norch.tensor(2.9)) == 2 and int(norch.tensor([-2.9])) == -2
    assert complex(norch.tensor(1.5)) == 1.5
    assert [10, 20, 30][norch.tensor(1)] == 20
    assert list(range(norch.tensor(3))) == [0, 1, 2]
    assert math.sqrt(norch.tensor(4.0)) == 2.0
    for bad in (norch.tensor(1.0), norch.tensor([1, 2])):
        with pytest.raises(TypeError):
            operator.index(bad)
    for convert in (float, int):
        with pytest.raises((ValueError, RuntimeError, TypeError)):
            convert(norch.zeros(2))


def test_bool():
    assert norch.tensor(1) and norch.tensor([0.5]) and not norch.tensor(0.0) and norch.tensor(math.nan)
    assert not norch.tensor([[False]])
    for bad in (norch.zeros(2), norch.zeros(0), norch.ones(1, 2)):
        with pytest.raises((ValueError, RuntimeError)):
            bool(bad)


def test_len_iter_contains():
    x = norch.tensor([[1, 2], [3, 4]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert len(norch.zeros(0, 3)) == 0 and list(norch.zeros(0, 3)) == []
    assert 3 in x and 5 not in x
    for row in x:
        row += 10
    assert x.tolist() == [[11, 12], [13, 14]]
    a, b = x
    assert b.tolist() == [13, 14]
    for call in (len, iter, list):
        with pytest.raises(TypeError):
            call(norch.tensor(1))
    assert [p.tolist() for p in x.unbind(1)] == [[11, 13], [12, 14]]
    assert list(reversed(norch.tensor([1, 2, 3])))[0].item() == 3


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0), (0, 2), (2, 0, 3), (2, 2, 2), (1, 1, 1, 1)])
def test_tolist(shape):
    source = np.arange(math.prod(shape)).reshape(shape)
    for dtype in DTYPES:
        cast = source.astype(dtype)
        assert norch.tensor(cast).tolist() == cast.tolist()
        assert norch.tensor(cast).T.tolist() == cast.T.tolist()


def test_attributes():
    x = norch.zeros(2, 3, dtype=norch.float64)
    assert x.shape == (2, 3) and x.size() == (2, 3) and x.size(1) == 3 and x.size(-1) == 3 and x.shape.numel() == 6
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.storage_offset() == 0
    assert x.ndim == x.dim() == 2 and x.numel() == x.nelement() == 6
    assert x.element_size() == 8 and x.nbytes == 48 and x.is_floating_point()
    assert x.device.type == DEVICE and x.is_cuda == (DEVICE == "cuda") and x.is_cpu != x.is_cuda
    assert x[1:].storage_offset() == 3 and x[1:].data_ptr() == x.data_ptr() + 24
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert norch.is_tensor(x) and not norch.is_tensor(1)
    with pytest.raises(IndexError):
        x.size(2)


def test_equality_and_hash():
    x, y = norch.tensor([1, 2]), norch.tensor([1, 3])
    assert (x == y).tolist() == [True, False] and (x != y).tolist() == [False, True]
    assert hash(x) == hash(x) and len({x, y, x}) == 2
    assert (x == 1).tolist() == [True, False] and (1 == x).tolist() == [True, False]
    assert not (x == "a") and x != "a" and x is not None and not (x == None)  # noqa: E711


# ---- operators ---------------------------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv, operator.mod]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("operate", ARITHMETIC + COMPARE)
def test_operators_with_numbers_and_arrays(torch, operate):
    values = [[1.0, 2.0], [3.0, 4.0]]
    for dtype in ("float32", "int64"):
        x = norch.tensor(values).to(getattr(norch, dtype))
        theirs = torch.tensor(values).to(getattr(torch, dtype))
        source = np.array([2, 3], dtype=dtype)
        for other in (2, 2.5, True, np.float64(2.5), np.int64(3)):
            if other is True and operate is operator.sub:
                continue  # PyTorch refuses
            for ours, expected in (
                (operate(x, other), operate(theirs, other)),
                (operate(other, x), operate(other, theirs)),
            ):
                assert isinstance(ours, norch.Tensor), (dtype, other)
                np.testing.assert_allclose(ours.numpy(), np.asarray(expected), rtol=1e-6)
        for ours, expected in (
            (operate(x, source), operate(theirs, torch.tensor(source))),
            (operate(source, x), operate(torch.tensor(source), theirs)),
        ):
            assert isinstance(ours, norch.Tensor) and ours.dtype.name == str(expected.dtype)[6:]
            np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("operate", [operator.and_, operator.or_, operator.xor])
def test_bitwise_operators(operate):
    a, b = np.array([0b1100, 0b1010]), np.array([0b0110, 0b0110])
    assert operate(norch.tensor(a), norch.tensor(b)).tolist() == operate(a, b).tolist()
    assert operate(norch.tensor(a), 6).tolist() == operate(a, 6).tolist()
    assert operate(6, norch.tensor(a)).tolist() == operate(6, a).tolist()
    assert operate(norch.tensor([True, False]), True).dtype is norch.bool


def test_unary_operators():
    x = norch.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2.0] and (+x).tolist() == x.tolist() and abs(x).tolist() == [1.5, 2.0]
    assert (~norch.tensor([True, False])).tolist() == [False, True]
    assert (~norch.tensor([5])).tolist() == [-6]


@pytest.mark.parametrize(
    "operate",
    [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow, operator.ifloordiv, operator.imod],
)
def test_in_place_operators(torch, operate):
    for other in (2, 2.5, [2.0, 3.0]):
        x, theirs = norch.tensor([5.0, 7.0]), torch.tensor([5.0, 7.0])
        kept, place = x, x.data_ptr()
        given_ours = norch.tensor(other) if isinstance(other, list) else other
        given_theirs = torch.tensor(other) if isinstance(other, list) else other
        x, theirs = operate(x, given_ours), operate(theirs, given_theirs)
        assert x is kept and x.data_ptr() == place
        np.testing.assert_allclose(x.numpy(), theirs.numpy(), rtol=1e-6)
    x = norch.tensor([5.0, 7.0])
    x += np.array([1.0, 2.0])
    assert x.tolist() == [6.0, 9.0] and x.dtype is norch.float32
    whole = norch.tensor([5, 7])
    with pytest.raises(TypeError):
        whole += 1.5
    with pytest.raises(TypeError):
        whole /= 2
    assert whole.tolist() == [5, 7]
    with pytest.raises(ValueError):
        x += norch.zeros(2, 2)
    assert x.shape == (2,)


def test_operators_with_strangers():
    x = norch.tensor([1.0])
    for bad in ("a", None, [1], object(), {}):
        for operate in (operator.add, operator.mul, operator.lt, operator.matmul):
            with pytest.raises(TypeError):
                operate(x, bad)
            with pytest.raises(TypeError):
                operate(bad, x)
    with pytest.raises(TypeError):
        norch.add(x, "a")


def test_matmul_operator():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    assert (norch.tensor(a) @ norch.tensor(b)).tolist() == (a @ b).tolist()
    assert (norch.tensor(a) @ b).tolist() == (a @ b).tolist()
    out = a @ norch.tensor(b)
    assert isinstance(out, norch.Tensor) and out.tolist() == (a @ b).tolist()


# ---- from rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (5,),
        (0,),
        (2, 7),
        (0, 10, 3),
        (10, 0, -3),
        (5, 5),
        (0.5, 3),
        (0, 1, 0.1),
        (1.0,),
        (0, -5, -2),
        (0, 1, 0.3),
        (True,),
    ],
)
def test_arange(torch, arguments):
    ours, theirs = norch.arange(*arguments), torch.arange(*arguments)
    assert ours.dtype.name == str(theirs.dtype)[6:]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments", [(0, 5, 0), (0, 5, -1), (5, 0), (0.0, 1.0, 0.0), (0, math.inf), (0, math.nan), (0, 2**70)]
)
def test_arange_refuses(arguments):
    with pytest.raises((ValueError, OverflowError, MemoryError, norch.Error)):
        norch.arange(*arguments)


def test_rules(torch):
    for ours, theirs in [
        (norch.zeros(2, 3), torch.zeros(2, 3)),
        (norch.ones((2, 3), dtype=norch.int32), torch.ones((2, 3), dtype=torch.int32)),
        (norch.full((2,), 7), torch.full((2,), 7)),
        (norch.full((2,), 1.5), torch.full((2,), 1.5)),
        (norch.full((), True), torch.full((), True)),
        (norch.eye(3), torch.eye(3)),
        (norch.eye(2, 4), torch.eye(2, 4)),
        (norch.linspace(0, 1, 11), torch.linspace(0, 1, 11)),
        (norch.linspace(5, -5, 1), torch.linspace(5, -5, 1)),
        (norch.linspace(0, 1, 0), torch.linspace(0, 1, 0)),
        (norch.zeros_like(norch.ones(2, dtype=norch.int64)), torch.zeros_like(torch.ones(2, dtype=torch.int64))),
        (norch.ones_like(norch.zeros(2), dtype=norch.bool), torch.ones_like(torch.zeros(2), dtype=torch.bool)),
        (norch.full_like(norch.zeros(2), 3), torch.full_like(torch.zeros(2), 3)),
        (norch.zeros(()), torch.zeros(())),
        (norch.zeros(0, 5), torch.zeros(0, 5)),
    ]:
        assert tuple(ours.shape) == tuple(theirs.shape) and ours.dtype.name == str(theirs.dtype)[6:]
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    assert norch.empty(2, 3).shape == (2, 3) and norch.empty_like(norch.zeros(4)).shape == (4,)
    assert norch.zeros(2, requires_grad=True).requires_grad


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_survive(values):
    assert norch.tensor(values, dtype=norch.int64).tolist() == values


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(), max_size=20))
def test_floats_survive(values):
    back = norch.tensor(values, dtype=norch.float64).tolist()
    assert all(a == b or (a != a and b != b) for a, b in zip(values, back)) and len(values) == len(back)
    single = norch.tensor(values, dtype=norch.float32).numpy()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(single, np.array(values, dtype="float64").astype("float32"))


# ---- casts and copies --------------------------------------------------------------------------------------------


def test_casts(torch):
    for source in DTYPES:
        values = np.array([0, 1, 2, 250], "float64").astype(source)
        for target in DTYPES:
            ours = norch.tensor(values).to(getattr(norch, target))
            theirs = torch.tensor(values).to(getattr(torch, target))
            assert ours.dtype.name == target and ours.tolist() == theirs.tolist(), (source, target)
    assert norch.tensor([-1, 300]).byte().tolist() == [255, 44]
    assert norch.tensor([1.9, -1.9]).long().tolist() == [1, -1]
    assert norch.tensor([0.5, 0.0, math.nan]).bool().tolist() == [True, False, True]
    x = norch.zeros(2)
    assert x.to(norch.float32) is x and x.to(DEVICE) is x and x.float() is x and (x.cpu() is x) == x.is_cpu
    assert x.to(norch.float32, copy=True) is not x and x.to(DEVICE, norch.float32, False, True) is not x
    assert x.double(memory_format=norch.contiguous_format).dtype is norch.float64
    assert x.type_as(norch.zeros(1, dtype=norch.int32)).dtype is norch.int32
    assert x.double().dtype is norch.float64 and x.int().dtype is norch.int32 and x.bool().dtype is norch.bool
    for value in (math.nan, math.inf, -math.inf, 1e30, -1e30):  # defined, whatever it is
        for target in (norch.int64, norch.int32, norch.uint8):
            norch.tensor(value).to(target).item()


def test_pickle_copy_and_deepcopy():
    x = norch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for copied in (pickle.loads(pickle.dumps(x)), deepcopy(x)):
        assert copied.tolist() == x.tolist() and copied.requires_grad and copied.is_leaf
        with norch.no_grad():
            copied.zero_()
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert copy(x).tolist() == x.tolist()
    view = norch.arange(10)[2:8:3]
    assert pickle.loads(pickle.dumps(view)).tolist() == [2, 5]
    with pytest.raises(RuntimeError):
        deepcopy(x * 2)
    both = deepcopy([x, x])
    assert both[0] is both[1]
    for dtype in (norch.float32, norch.bool):
        assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_data_can_be_replaced():
    x = norch.tensor([1.0, 2.0], requires_grad=True)
    x.data = norch.tensor([5.0, 6.0, 7.0])
    assert x.tolist() == [5, 6, 7] and x.requires_grad
    x.data.mul_(2)
    assert x.tolist() == [10, 12, 14]
    (x * x).sum().backward()
    assert x.grad.tolist() == [20, 24, 28]


def test_sequences_of_any_kind():
    class Doubled:
        def __len__(self):
            return 3

        def __getitem__(self, at):
            return 2 * at

    assert norch.tensor(Doubled()).tolist() == norch.tensor([[Doubled()]]).tolist()[0][0] == [0, 2, 4]
    assert norch.tensor(deque([1, 2.5])).tolist() == [1, 2.5]
    with pytest.raises(TypeError):
        norch.tensor({0: 1})


def test_tensors_of_one_element_in_lists_are_numbers():
    one = norch.tensor([[1.5]])
    assert norch.tensor([one, 2]).tolist() == [1.5, 2]
    assert norch.tensor([[one[0]], [norch.tensor(3)]]).tolist() == [[1.5], [3]]
    assert norch.tensor([one.expand(1, 2), one.expand(1, 2)]).tolist() == [[[1.5, 1.5]]] * 2
