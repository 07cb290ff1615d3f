"""dtypes: which one comes out when two meet, as tensors, 0-d tensors and Python numbers; and the casts themselves."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case import ALL_NAMES, FLOAT_NAMES, NUMBER_NAMES, WHOLE_NAMES

import norch
from norch.dtype import DTYPES
from norch.testing import assert_close

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # PyTorch rounds a number that stands beside a half first, or not
KINDS = ("tensor", "number", "scalar")  # with axes, 0-d, and Python's
RANK = {name: 0 if name == "bool" else 2 if name in FLOAT_NAMES else 1 for name in ALL_NAMES}

# Written out, so that a slip in the rule itself shows: row and column in the order of ALL_NAMES.
PROMOTED = """
    bool     uint8    int8     int16    int32    int64    float32  float64  float16  bfloat16
    uint8    uint8    int16    int16    int32    int64    float32  float64  float16  bfloat16
    int8     int16    int8     int16    int32    int64    float32  float64  float16  bfloat16
    int16    int16    int16    int16    int32    int64    float32  float64  float16  bfloat16
    int32    int32    int32    int32    int32    int64    float32  float64  float16  bfloat16
    int64    int64    int64    int64    int64    int64    float32  float64  float16  bfloat16
    float32  float32  float32  float32  float32  float32  float32  float64  float32  float32
    float64  float64  float64  float64  float64  float64  float64  float64  float64  float64
    float16  float16  float16  float16  float16  float16  float32  float64  float16  float32
    bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32  float64  float32  bfloat16
"""
TABLE = {
    (a, b): name
    for a, line in zip(ALL_NAMES, PROMOTED.strip().splitlines())
    for b, name in zip(ALL_NAMES, line.split())
}


def test_promote_types() -> None:
    for (a, b), wanted in TABLE.items():
        assert norch.promote_types(getattr(norch, a), getattr(norch, b)) is getattr(norch, wanted), (a, b)


def test_promote_types_like_torch(torch: Any) -> None:
    for (a, b), wanted in TABLE.items():
        assert torch.promote_types(getattr(torch, a), getattr(torch, b)) is getattr(torch, wanted)


def expected(left: tuple[str, str], right: tuple[str, str]) -> str:
    """PyTorch's rule for two operands, (dtype, kind): the weaker kind counts only when its dtype is of a higher one."""
    (a, kind_a), (b, kind_b) = left, right
    if kind_a == kind_b:
        return TABLE[a, b]
    if KINDS.index(kind_a) > KINDS.index(kind_b):
        a, b = b, a
    return a if RANK[b] <= RANK[a] else b


def values(dtype: str, kind: str) -> Any:
    """Three numbers that every dtype holds (bool: their truth), or one of them."""
    if kind == "scalar":
        return {0: True, 1: 3, 2: 1.5}[RANK[dtype]]
    numbers = np.array([1, 2, 5] if kind == "tensor" else 3)
    return numbers.astype(dtype if dtype != "bfloat16" else "float32") + (0.25 if dtype in FLOAT_NAMES else 0), dtype


def operand(module: Any, value: Any) -> Any:
    """A Python number as it is, and a tensor of what values() gave."""
    if not isinstance(value, tuple):
        return value
    array, dtype = value
    return module.tensor(array.tolist(), dtype=getattr(module, dtype))


def pairs() -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    scalars = [(name, "scalar") for name in ("bool", "int64", "float32")]
    operands = [(name, kind) for kind in KINDS[:2] for name in ALL_NAMES] + scalars
    for left, right in itertools.product(operands, repeat=2):
        if "scalar" not in (left[1], right[1]) or left[1] != right[1]:
            yield left, right


def named_function(name: str) -> Any:
    operators = {
        "add": lambda m, a, b: a + b,
        "mul": lambda m, a, b: a * b,
        "div": lambda m, a, b: a / b,
        "sub": lambda m, a, b: a - b,
        "floor_divide": lambda m, a, b: a // b,
        "remainder": lambda m, a, b: a % b,
        "lt": lambda m, a, b: a < b,
        "eq": lambda m, a, b: a == b,
        "pow": lambda m, a, b: a**b,
        "where": lambda m, a, b: m.where(m.tensor([True, False, True]), a, b),
        "bitwise_and": lambda m, a, b: a & b,
    }
    return operators[name]


def result_of(name: str, left: tuple[str, str], right: tuple[str, str]) -> str | None:
    """The dtype of an operation on two operands, None where it is refused."""
    dtype = expected(left, right)
    if name in ("lt", "eq"):
        return "bool"
    if name == "pow" and right == ("bool", "scalar"):
        return dtype
    if name == "div":
        return dtype if dtype in FLOAT_NAMES else "float32"
    refused = {
        "sub": ("bool",),
        "floor_divide": ("bool",),
        "remainder": ("bool",),
        "pow": ("bool",),
        "bitwise_and": FLOAT_NAMES,
    }
    return None if dtype in refused.get(name, ()) else dtype


NAMES = "add mul div sub floor_divide remainder lt eq pow where bitwise_and".split()


@pytest.mark.parametrize("name", NAMES)
def test_promotion(name: str) -> None:
    for left, right in pairs():
        a, b = operand(norch, values(*left)), operand(norch, values(*right))
        wanted = result_of(name, left, right)
        if wanted is None:
            with pytest.raises(norch.DTypeError):
                named_function(name)(norch, a, b)
            continue
        found = named_function(name)(norch, a, b)
        assert found.dtype.name == wanted, f"{left} {name} {right}: {found.dtype}, expected {wanted}"


@pytest.mark.parametrize("name", NAMES)
def test_promotion_like_torch(torch: Any, name: str) -> None:
    for left, right in pairs():
        a, b = values(*left), values(*right)
        try:
            theirs = named_function(name)(torch, operand(torch, a), operand(torch, b))
        except (RuntimeError, TypeError):
            continue
        if result_of(name, left, right) is None:
            continue  # PyTorch raises bools to powers
        ours = named_function(name)(norch, operand(norch, a), operand(norch, b))
        assert str(theirs.dtype) == f"torch.{ours.dtype.name}", f"{left} {name} {right}"
        tolerance = EPSILON.get(ours.dtype.name, 1e-6)
        assert ours.double().tolist() == pytest.approx(theirs.double().tolist(), rel=tolerance), (
            f"{left} {name} {right}"
        )


@pytest.mark.parametrize("name", ["add", "mul", "div", "lt", "pow"])
def test_numbers_take_part_by_their_value(name: str) -> None:
    """A Python number is exact in the dtype of the result: not first rounded to float32, nor cut to int32."""
    cases = [
        (np.array([1.0, 2.0]), 0.1),
        (np.array([1.0, 2.0]), 2**40 + 1),
        (np.array([1, 2]), 2**40 + 1 if name != "pow" else 20),
        (np.array([1.0, 2.0], np.float32), 0.1),
    ]
    for array, number in cases:
        found = named_function(name)(norch, norch.tensor(array), number)
        with np.errstate(over="ignore"):
            wanted = named_function(name)(np, array, number)
        if name == "div" and array.dtype == np.int64:
            wanted = wanted.astype(np.float32)  # PyTorch's default
        assert found.dtype.name == wanted.dtype.name
        np.testing.assert_allclose(found.numpy(), wanted, rtol=3e-7 if wanted.dtype == np.float32 else 1e-15)
    reflected = norch.tensor([2.0], dtype=norch.float64)
    assert (0.1 - reflected).item() == 0.1 - 2.0
    assert (0.1**reflected).item() == 0.1**2.0


def test_default_dtype_is_that_of_numbers() -> None:
    whole = norch.arange(3)
    try:
        norch.set_default_dtype(norch.float64)
        assert norch.tensor(0.1).item() == 0.1
        assert (whole * 0.1).dtype is norch.float64 and (whole * 0.1)[1].item() == 0.1
        assert (whole / 2).dtype is norch.float64
        assert whole.sqrt().dtype is norch.float64 and abs(whole.exp()[1].item() - math.e) < 1e-15
        assert norch.zeros(1).dtype is norch.float64 and norch.rand(1).dtype is norch.float64
        assert (norch.ones(2, dtype=norch.float32) * 0.1).dtype is norch.float32
        assert norch.Tensor([1, 2]).dtype is norch.float64
    finally:
        norch.set_default_dtype(norch.float32)
    assert (whole * 0.1).dtype is norch.float32
    for wrong in (norch.int32, norch.bool):
        with pytest.raises(norch.DTypeError):
            norch.set_default_dtype(wrong)


# ---- the dtypes themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL_NAMES if name != "bfloat16"])
def test_properties(name: str) -> None:
    dtype, numpy_dtype = getattr(norch, name), np.dtype(name)
    assert dtype.itemsize == numpy_dtype.itemsize
    assert dtype.is_floating_point == (numpy_dtype.kind == "f")
    assert dtype.is_signed == (numpy_dtype.kind in "if")
    assert repr(dtype) == f"norch.{name}"
    assert norch.tensor(np.zeros(2, name)).dtype is dtype
    assert norch.zeros(2, dtype=name).dtype is dtype
    assert norch.zeros(2, dtype=dtype).numpy().dtype == numpy_dtype


@pytest.mark.parametrize("wrong", ["float31", "complex32", type(None), object(), 3, np.clongdouble])
def test_unknown_dtypes(wrong: Any) -> None:
    with pytest.raises(norch.DTypeError, match="dtype"):
        norch.zeros(2, dtype=wrong)
    with pytest.raises((norch.DTypeError, norch.DeviceError)):
        norch.zeros(2).to(dtype=wrong)


def test_dtypes_of_values() -> None:
    assert norch.tensor([1, 2]).dtype is norch.int64
    assert norch.tensor([1, 2.0]).dtype is norch.float32
    assert norch.tensor([True, False]).dtype is norch.bool
    assert norch.tensor([True, 2]).dtype is norch.int64
    assert norch.tensor([]).dtype is norch.float32
    assert norch.full((2,), 1.5).dtype is norch.float32
    assert norch.full((2,), 7).dtype is norch.int64
    assert norch.full((2,), True).dtype is norch.bool
    assert norch.arange(3).dtype is norch.int64
    assert norch.arange(3.0).dtype is norch.float32
    assert norch.Tensor([[1, 2], [3, 4]]).dtype is norch.float32


@pytest.mark.parametrize("name", WHOLE_NAMES)
def test_whole_numbers_have_no_gradient(name: str) -> None:
    with pytest.raises(norch.DTypeError):
        norch.ones(2, dtype=name).requires_grad_()
    with pytest.raises(norch.DTypeError):
        norch.ones(2, dtype=name, requires_grad=True)


@pytest.mark.parametrize("name", NUMBER_NAMES)
def test_named_casts(name: str) -> None:
    x = norch.tensor([0, 1, 77], dtype=name)
    casts = {"bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64"}
    casts |= {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}
    for method, wanted in casts.items():
        found = getattr(x, method)()
        assert found.dtype.name == wanted
        assert found.tolist() == ([False, True, True] if wanted == "bool" else [0, 1, 77])
        assert (found is x) == (wanted == name)
    assert x.type_as(norch.zeros(1, dtype=norch.int32)).dtype is norch.int32
    assert x.to(getattr(norch, name)) is x and x.to(dtype=name) is x


# ---- in place: the dtype stays --------------------------------------------------------------------------------------


def test_in_place_keeps_the_dtype() -> None:
    """What fits the kind is cast into the tensor, what does not is refused and changes nothing."""
    for a, b in itertools.product(ALL_NAMES, repeat=2):
        x, y = norch.tensor([1, 0, 1], dtype=a), norch.tensor([1, 1, 0], dtype=b)
        old, place = x.clone(), x.data_ptr()
        result = x + y
        if RANK[result.dtype.name] > RANK[a]:
            with pytest.raises(norch.DTypeError):
                x += y
            assert_close(x, old)
        else:
            x += y
            assert x.dtype.name == a and x.data_ptr() == place
            assert_close(x, result.to(dtype=a))


def test_in_place_like_torch(torch: Any) -> None:
    for a, b in itertools.product(ALL_NAMES, repeat=2):
        for kind in KINDS:
            if kind == "scalar" and b not in ("bool", "int64", "float32"):
                continue
            for method in ("add_", "mul_", "div_", "copy_"):
                if method == "copy_" and kind == "scalar":
                    continue
                theirs, ours = operand(torch, values(a, "tensor")), operand(norch, values(a, "tensor"))
                right = values(b, kind)
                try:
                    getattr(theirs, method)(operand(torch, right))
                except RuntimeError:
                    with pytest.raises(norch.DTypeError):
                        getattr(ours, method)(operand(norch, right))
                    continue
                getattr(ours, method)(operand(norch, right))
                tolerance = EPSILON.get(a, 1e-6)
                wanted = pytest.approx(theirs.double().tolist(), rel=tolerance)
                assert ours.double().tolist() == wanted, f"{a} {method} {b} {kind}"


def test_integers_wrap() -> None:
    most = np.iinfo(np.int64).max
    x = norch.tensor([most])
    assert (x + 1).item() == np.iinfo(np.int64).min
    assert (x * 2).item() == -2
    assert (-norch.tensor([np.iinfo(np.int64).min])).item() == np.iinfo(np.int64).min
    assert norch.tensor([np.iinfo(np.int64).min]).abs().item() == np.iinfo(np.int64).min
    assert (norch.tensor([np.iinfo(np.int64).min]) // -1).item() == np.iinfo(np.int64).min
    assert (norch.tensor([np.iinfo(np.int32).min], dtype=norch.int32) % -1).item() == 0
    assert (norch.tensor([250], dtype=norch.uint8) + 10).item() == 4
    assert norch.tensor([250, 10], dtype=norch.uint8).sum().item() == 260
    assert norch.tensor([300, -1, 256]).to(norch.uint8).tolist() == [44, 255, 0]
    assert norch.tensor([2**40 + 5]).to(norch.int32).item() == 5


def test_numbers_that_fit_nowhere() -> None:
    with pytest.raises(OverflowError):
        norch.ones(2) + (1 << 64)
    with pytest.raises(OverflowError):
        norch.tensor([1 << 64])
    with pytest.raises(OverflowError):
        norch.full((2,), 1 << 70)


def test_there_is_one_object_for_each_dtype():
    for code, one in enumerate(DTYPES):
        assert norch.dtype(code) is one and copy.deepcopy(one) is one and pickle.loads(pickle.dumps(one)) is one
    for wrong in (-1, len(DTYPES), True, "int64", None):
        with pytest.raises(norch.DTypeError, match="dtype: .* is not the number of a dtype; there are norch.bool"):
            norch.dtype(wrong)
