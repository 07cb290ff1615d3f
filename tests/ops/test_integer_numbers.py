"""Python numbers beside tensors of integers: each acts by its value or is refused, and none is wrapped."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch.nn import functional as F  # noqa: N812

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
REFUSALS = (norch.Error, OverflowError, TypeError, ZeroDivisionError)


def held(name: str) -> tuple[int, int]:
    """The least and the largest number of a dtype."""
    limits = norch.iinfo(getattr(norch, name))
    return limits.min, limits.max


def around(name: str) -> list[int]:
    """Numbers in the range of a dtype, just beyond it and far beyond it."""
    least, most = held(name)
    far = (-(10**400), -(1 << 63) - 1, -(1 << 63), -(1 << 32), (1 << 32), 1 << 40, (1 << 63) - 1, 1 << 63, 10**400)
    near = (least - 1, least, least + 1, -1, 0, 1, 2, 5, most - 1, most, most + 1, 2 * most + 2, 2 * most + 7)
    return sorted({*far, *near, -2 * most - 2, most - least + 1})


def elements(name: str) -> list[int]:
    least, most = held(name)
    return sorted({least, least + 1, least // 2, max(-7, least), 0, 1, 2, 7, most // 2, most})


def wrapped(value: int, name: str) -> int:
    least, most = held(name)
    return (value - least) % (most - least + 1) + least


def shifted_left(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


def shifted_right(a: int, b: int) -> int:
    return a >> b if 0 <= b < 64 else -(a < 0)


def quotient(a: int, b: int) -> int:
    return (a // b) if (a < 0) == (b < 0) else -(-a // b)


def power(a: int, b: int) -> int:
    return pow(a, b, 1 << 64) if b >= 0 else 1 // 0


# What an operation gives of an element and a number; it wraps where both are in range, as PyTorch's.
ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "x + n": (operator.add, operator.add),
    "n + x": (lambda x, n: n + x, operator.add),
    "x - n": (operator.sub, operator.sub),
    "n - x": (lambda x, n: n - x, lambda x, n: n - x),
    "x * n": (operator.mul, operator.mul),
    "x // n": (operator.floordiv, operator.floordiv),
    "n // x": (lambda x, n: n // x, lambda x, n: n // x),
    "x % n": (operator.mod, operator.mod),
    "n % x": (lambda x, n: n % x, lambda x, n: n % x),
    "fmod": (norch.fmod, lambda x, n: x - n * quotient(x, n)),
    "fmod of n": (lambda x, n: norch.fmod(n, x), lambda x, n: n - x * quotient(n, x)),
    "div trunc": (lambda x, n: norch.div(x, n, rounding_mode="trunc"), quotient),
    "x & n": (operator.and_, operator.and_),
    "n & x": (lambda x, n: n & x, operator.and_),
    "x | n": (operator.or_, operator.or_),
    "x ^ n": (operator.xor, operator.xor),
    "rsub": (norch.rsub, lambda x, n: n - x),
    "x += n": (lambda x, n: operator.iadd(x.clone(), n), operator.add),
    "x -= n": (lambda x, n: operator.isub(x.clone(), n), operator.sub),
    "x *= n": (lambda x, n: operator.imul(x.clone(), n), operator.mul),
    "x //= n": (lambda x, n: operator.ifloordiv(x.clone(), n), operator.floordiv),
    "x %= n": (lambda x, n: operator.imod(x.clone(), n), operator.mod),
    "x &= n": (lambda x, n: operator.iand(x.clone(), n), operator.and_),
    "x |= n": (lambda x, n: operator.ior(x.clone(), n), operator.or_),
    "x ^= n": (lambda x, n: operator.ixor(x.clone(), n), operator.xor),
    "where": (lambda x, n: norch.where(x > 1, n, x), lambda x, n: n if x > 1 else x),
    "x.where": (lambda x, n: x.where(x > 1, n), lambda x, n: x if x > 1 else n),
    "masked_fill": (lambda x, n: x.masked_fill(x > 1, n), lambda x, n: n if x > 1 else x),
    "masked_fill_": (lambda x, n: x.clone().masked_fill_(x > 1, n), lambda x, n: n if x > 1 else x),
    "threshold": (lambda x, n: F.threshold(x, 1, n), lambda x, n: x if x > 1 else n),
    "addcmul of n": (lambda x, n: norch.ops.pointwise._addcmul(x, x, n), lambda x, n: x + n * x),
}

# Factors of uint8 may be negative.
FACTORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "add alpha": (lambda x, n: x.add(x, alpha=n), lambda x, n: x + n * x),
    "sub alpha": (lambda x, n: x.sub(x, alpha=n), lambda x, n: x - n * x),
    "addcmul": (lambda x, n: x.addcmul(x, x, value=n), lambda x, n: x + n * x * x),
}

# What an operation gives where its results are in range for each element: then it must not be refused.
BY_VALUE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], Any]]] = {
    **{
        compare.__name__: (compare, compare)
        for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    },
    "n < x": (lambda x, n: n < x, lambda x, n: n < x),
    "logical_and": (norch.logical_and, lambda x, n: bool(x and n)),
    "logical_xor": (norch.logical_xor, lambda x, n: bool(x) != bool(n)),
    "isin": (norch.isin, operator.eq),
    "isin of n": (lambda x, n: norch.isin(n, x).expand(x.shape), lambda x, n: n in elements_of_x),
    "in": (lambda x, n: (x == x) & (n in x), lambda x, n: n in elements_of_x),
    "searchsorted": (
        lambda x, n: norch.searchsorted(x, n).expand(x.shape),
        lambda x, n: sum(each < n for each in elements_of_x),
    ),
    "maximum": (norch.maximum, max),
    "minimum": (norch.minimum, min),
    "n maximum": (lambda x, n: norch.maximum(n, x), max),
    "fmax": (norch.fmax, max),
    "fmin": (norch.fmin, min),
    "clamp min": (lambda x, n: x.clamp(min=n), max),
    "clamp max": (lambda x, n: x.clamp(max=n), min),
    "clamp_ max": (lambda x, n: x.clone().clamp_(max=n), min),
    "clamp_min": (norch.clamp_min, max),
    "clamp_max_": (lambda x, n: x.clone().clamp_max_(n), min),
    "clip to 2": (lambda x, n: x.clip(n, 2), lambda x, n: min(max(x, n), 2)),
    "clip from 2": (lambda x, n: x.clip(2, n), lambda x, n: min(max(x, 2), n)),
    "clip to itself": (lambda x, n: x.clip(n, x), lambda x, n: min(max(x, n), x)),
    "clip from itself": (lambda x, n: x.clip(x, n), min),
}
elements_of_x: list[int] = []

# Where these are not refused, their results wrap, as those of larger numbers that are in range do.
MODULO: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "x << n": (operator.lshift, shifted_left),
    "x <<= n": (lambda x, n: operator.ilshift(x.clone(), n), shifted_left),
    "x >> n": (operator.rshift, shifted_right),
    "x ** n": (operator.pow, power),
    "x **= n": (lambda x, n: operator.ipow(x.clone(), n), power),
    **FACTORS,
}


def check(
    name: str, call: Callable[[Any, Any], Any], exact: Callable[[int, int], Any], must: bool, modulo: bool
) -> None:
    least, most = held(name)
    given = elements(name)
    elements_of_x[:] = given
    for number in around(name):
        in_range = least <= number <= most
        wanted: list[Any] = []
        kept = []
        for each in given:
            try:
                wanted.append(exact(each, number))
                kept.append(each)
            except (ZeroDivisionError, ValueError):
                pass
        kept = given if must else kept
        x = norch.tensor(kept, dtype=name)
        try:
            ours = call(x, number)
        except REFUSALS:
            assert x.tolist() == kept
            fit = all(least <= each <= most or isinstance(each, bool) for each in wanted)
            assert not (must and fit and -(1 << 63) <= number < 1 << 63), f"{number} is refused, though results fit"
            assert not (in_range and kept and number), f"{number} is in range, and refused"
            continue
        if ours.dtype is not norch.bool and (in_range or modulo):
            wanted = [wrapped(each, name) if not isinstance(each, bool) else each for each in wanted]
        assert ours.tolist() == wanted, f"{name}, {number}"
        assert x.tolist() == kept and (ours.dtype in (x.dtype, norch.bool) or call is BY_VALUE["searchsorted"][0])


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic_with_a_number(name: str, operation: str) -> None:
    check(name, *ARITHMETIC[operation], must=False, modulo=False)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", MODULO)
def test_shifts_and_powers_by_a_number(name: str, operation: str) -> None:
    check(name, *MODULO[operation], must=False, modulo=True)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", BY_VALUE)
def test_comparisons_and_bounds_act_by_value(name: str, operation: str) -> None:
    check(name, *BY_VALUE[operation], must=True, modulo=False)


@pytest.mark.parametrize("name", INTEGERS[:4])
@pytest.mark.parametrize("wrap", ["capture", "vmap"])
def test_captured_and_batched_calls_give_the_same(name: str, wrap: str) -> None:
    least, most = held(name)
    x = norch.tensor(elements(name), dtype=name)
    for number in (least - 1, most + 1, 2 * most + 7, 1 << 40, -1):
        for operation in {**ARITHMETIC, **BY_VALUE, **MODULO}:
            call = {**ARITHMETIC, **BY_VALUE, **MODULO}[operation][0]
            if operation.startswith(("in", "isin of")):  # read by Python
                continue

            def fixed(x: Any, call: Any = call, number: int = number) -> Any:
                return call(x, number)

            try:
                plain = fixed(x).tolist()
            except REFUSALS as error:
                with pytest.raises(type(error)):
                    norch.capture(fixed)(x) if wrap == "capture" else norch.vmap(fixed)(x[None])
                continue
            if wrap == "vmap":
                assert norch.vmap(fixed)(x[None])[0].tolist() == plain, operation
                continue
            captured = norch.capture(fixed)
            try:
                found = [captured(x).tolist() for _ in range(5)]
            except norch.CaptureError as error:  # of those that copy the number to the device
                assert DEVICE != "cpu" and "from the host" in str(error), operation
            else:
                assert found == [plain] * 5, operation


STORED: dict[str, Callable[[str, Any], Any]] = {
    "tensor": lambda d, n: norch.tensor([n], dtype=d),
    "tensor of two": lambda d, n: norch.tensor([0, n], dtype=d)[1:],
    "tensor of a scalar": lambda d, n: norch.tensor(n, dtype=d),
    "full": lambda d, n: norch.full((1,), n, dtype=d),
    "full_like": lambda d, n: norch.full_like(norch.zeros(1, dtype=d), n),
    "new_full": lambda d, n: norch.zeros(1, dtype=d).new_full((1,), n),
    "new_tensor": lambda d, n: norch.zeros(1, dtype=d).new_tensor([n]),
    "scalar_tensor": lambda d, n: norch.scalar_tensor(n, dtype=d),
    "fill_": lambda d, n: norch.zeros(1, dtype=d).fill_(n),
    "fill": lambda d, n: norch.fill(norch.zeros(1, dtype=d), n),
    "copy_": lambda d, n: norch.zeros(1, dtype=d).copy_(n),
    "masked_fill_": lambda d, n: norch.zeros(1, dtype=d).masked_fill_(norch.tensor([True]), n),
    "index_fill": lambda d, n: norch.zeros(1, dtype=d).index_fill(0, norch.tensor([0]), n),
    "index_fill_": lambda d, n: norch.zeros(1, dtype=d).index_fill_(0, norch.tensor([0]), n),
    "scatter": lambda d, n: norch.zeros(1, dtype=d).scatter(0, norch.tensor([0]), n),
    "scatter_ value": lambda d, n: norch.zeros(1, dtype=d).scatter_(0, norch.tensor([0]), value=n),
    "scatter add": lambda d, n: norch.zeros(1, dtype=d).scatter(0, norch.tensor([0]), n, reduce="add"),
    "index_put_": lambda d, n: norch.zeros(1, dtype=d).index_put_((norch.tensor([0]),), norch.tensor(n, dtype=d)),
    "put_": lambda d, n: norch.zeros(1, dtype=d).put_(norch.tensor([0]), norch.tensor([n], dtype=d)),
    "fill_diagonal_": lambda d, n: norch.zeros(1, 1, dtype=d).fill_diagonal_(n)[0],
    "pad": lambda d, n: F.pad(norch.zeros(1, dtype=d), (1, 0), value=n)[:1],
    "constant_": lambda d, n: norch.nn.init.constant_(norch.zeros(1, dtype=d), n),
    "linspace": lambda d, n: norch.linspace(n, n, 1, dtype=d),
    "linspace to n": lambda d, n: norch.linspace(0, n, 2, dtype=d)[1:],
    "linspace of 5": lambda d, n: norch.linspace(0, n, 5, dtype=d)[4:],
    "arange from": lambda d, n: norch.arange(n, n + 1, dtype=d),
    "arange to": lambda d, n: norch.arange(n - 3, n + 1, dtype=d)[3:],
    "arange by": lambda d, n: norch.arange(0, n + (n > 0) - (n < 0), n, dtype=d)[1:] if n else norch.zeros(1, dtype=d),
}


def assigned(key: Any) -> Callable[[str, Any], Any]:
    def assign(d: str, n: Any) -> Any:
        x = norch.zeros(1, dtype=d)
        x[key] = n
        return x

    return assign


KEYS = (0, slice(None), ..., [0], [True], (None, 0))
STORED.update({f"x[{key}] =": assigned(norch.tensor(key) if isinstance(key, list) else key) for key in KEYS})


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("way", STORED)
def test_what_is_stored_fits(name: str, way: str) -> None:
    least, most = held(name)
    for number in around(name):
        try:
            stored = STORED[way](name, number)
        except (ValueError, OverflowError) as error:
            assert not least + 3 <= number <= most - 1, f"{number} fits, and is refused"
            assert "does not fit" in str(error) or isinstance(error, OverflowError)
        else:
            assert stored.reshape(-1).tolist() == [number] and stored.dtype is getattr(norch, name)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 1e30, -1e30, 300.0])
@pytest.mark.parametrize("way", [way for way in STORED if not way.startswith("arange")])
def test_floats_stored_among_integers(way: str, number: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        STORED[way]("uint8", number)


def test_ranges_do_not_wrap() -> None:
    for make in (
        lambda: norch.arange(2**63 - 1, 2**63 + 2),
        lambda: norch.arange(300, dtype=norch.uint8),
        lambda: norch.arange(1e30, 2e30, 5e29, dtype=norch.int8),
        lambda: norch.linspace(0, 300, 4, dtype=norch.uint8),
        lambda: norch.linspace(0, 2**63, 3, dtype=norch.int64),
        lambda: norch.logspace(0, 3, 4, dtype=norch.uint8),
        lambda: norch.logspace(0, 400, 4, dtype=norch.int64),
        lambda: norch.randperm(300, dtype=norch.uint8),
        lambda: norch.randint(0, 300, (2,), dtype=norch.uint8),
        lambda: norch.zeros(2, dtype=norch.int8).random_(0, 200),
        lambda: norch.tril_indices(300, 2, dtype=norch.uint8),
    ):
        with pytest.raises(ValueError, match="fit|out of range"):
            make()
    assert norch.arange(256, dtype=norch.uint8)[-1] == 255 and norch.arange(0, dtype=norch.uint8).shape == (0,)
    assert norch.arange(0, 300, 255, dtype=norch.uint8).tolist() == [0, 255]
    assert norch.randperm(256, dtype=norch.uint8).sort().values.tolist() == list(range(256))
    ends = norch.linspace(-(2**63), 2**63 - 1, 3, dtype=norch.int64).tolist()
    assert ends == [-(2**63), 0, 2**63 - 1]
    assert norch.linspace(2**62 + 1, 2**62 + 3, 3, dtype=norch.int64).tolist() == [2**62 + 1, 2**62 + 2, 2**62 + 3]


def test_floats_beside_integers_promote(torch: Any) -> None:
    for name in INTEGERS:
        ours, theirs = norch.tensor([3, 100], dtype=name), torch.tensor([3, 100], dtype=getattr(torch, name))
        for call in (
            lambda x: x.clamp(max=2.5), lambda x: x.clamp(300.5, 1e10), lambda x: x + 300.5, lambda x: x > 300.5,
            lambda x: x * 1e30, lambda x: x < math.inf, lambda x: x.clamp(max=math.inf), lambda x: x / 300,
        ):  # fmt: skip
            assert call(ours).tolist() == call(theirs).tolist() and call(ours).dtype.name == str(call(theirs).dtype)[6:]
    true = norch.tensor([True, False])
    assert (true + 300).tolist() == [301, 300] and (true == 300).tolist() == [False, False]
    assert norch.where(true, 300, true).tolist() == [300, 0] and true.clamp(max=300).tolist() == [1, 0]


def test_numpy_integers_are_numbers() -> None:
    x = norch.tensor([1, 44], dtype=norch.uint8)
    assert (x == np.int64(300)).tolist() == [False, False] and (x + np.int16(1)).dtype is norch.uint8
    assert (norch.tensor(1, dtype=norch.uint8) + np.int64(1)).dtype is norch.uint8
    for call, name in (
        (lambda n: x + n, "add"), (lambda n: x.clone().fill_(n), "fill_"),
        (lambda n: x.masked_fill(x > 1, n), "masked_fill"), (lambda n: x.scatter(0, x.long() * 0, n), "scatter"),
        (lambda n: x.index_fill(0, norch.tensor([0]), n), "index_fill"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name}: 300 does not fit uint8"):
            call(np.int64(300))


def test_tensors_still_wrap() -> None:
    x = norch.tensor([200], dtype=norch.uint8)
    assert (x + x).tolist() == [144] and (x + 100).tolist() == [44] and (x * x).tolist() == [64]
    assert norch.tensor([300, -1]).to(norch.uint8).tolist() == [44, 255]


def test_a_negative_factor_of_unsigned_numbers_subtracts() -> None:
    x, y = norch.tensor([5, 9], dtype=norch.uint8), norch.tensor([2, 3], dtype=norch.uint8)
    assert x.add(y, alpha=-1).tolist() == [3, 6] and x.sub(y, alpha=-2).tolist() == [9, 15]
    assert x.add_(y, alpha=-2).tolist() == [1, 3] and x.dtype is norch.uint8


def test_hardtanh_of_integers_acts_by_value() -> None:
    x = norch.tensor([5, -5, 127], dtype=norch.int8)
    assert F.hardtanh(x, -200, 200).tolist() == [5, -5, 127] and F.relu6(x).tolist() == [5, 0, 6]
    with pytest.raises(ValueError, match="hardtanh: 200 does not fit int8"):
        F.hardtanh(x, 200, 300)


@pytest.mark.parametrize("name", ["float16", "uint8"])
def test_a_number_before_a_parameter_or_a_sample_is_a_number(torch: Any, name: str) -> None:
    x = norch.tensor([1, 2], dtype=name)
    parameter = norch.nn.Parameter(x[0], requires_grad=x.is_floating_point())
    for number in (2, 2.0) if x.is_floating_point() else (2,):
        assert norch.sub(number, parameter).dtype is norch.vmap(lambda x, n=number: norch.sub(n, x))(x).dtype is x.dtype


def test_linspace_of_complex_numbers(torch: Any) -> None:
    for arguments, more in (
        ((1j, 2, 3), {}), ((0, 1, 3), {"dtype": "complex64"}), ((1j, 2, 1), {"dtype": "complex128"}),
        ((1 - 1j, 2, 4), {}), ((1j, 2, 0), {}),
    ):  # fmt: skip
        options = [{key: getattr(m, name) for key, name in more.items()} for m in (norch, torch)]
        for function in ("linspace", "logspace"):
            ours, theirs = (
                getattr(norch, function)(*arguments, **options[0]),
                getattr(torch, function)(*arguments, **options[1]),
            )
            assert ours.dtype.name == str(theirs.dtype)[6:]
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    for dtype in (norch.float32, norch.int32):
        with pytest.raises(norch.DTypeError, match="linspace: not defined for dtype .* of complex numbers"):
            norch.linspace(1j, 2, 3, dtype=dtype)


@pytest.mark.parametrize("name", INTEGERS[:4])
@pytest.mark.parametrize("captured", [False, True])
def test_tensors_without_dimensions_are_compared_and_bound_by_value(name: str, captured: bool) -> None:
    """They have no part in promotion, and PyTorch wraps them to the dtype of the others."""
    least, most = held(name)
    x = norch.tensor(elements(name), dtype=name)
    for number in (least - 1, most + 1, 2 * most + 7, most, least, 2):
        scalar = norch.tensor(number)
        for call, exact in (
            (operator.lt, operator.lt), (operator.eq, operator.eq), (norch.ge, operator.ge),
            (lambda x, n: n > x, lambda x, n: n > x), (lambda x, n: x.clamp(max=n), min),
            (norch.maximum, max), (lambda x, n: x.clamp(n, most), lambda x, n: min(max(x, n), most)),
        ):  # fmt: skip
            wanted = [exact(each, number) for each in x.tolist()]
            bounds = not all(isinstance(each, bool) for each in wanted)
            if bounds and not (least <= min(wanted) <= max(wanted) <= most):
                continue
            if captured and bounds and name != "int64":  # a replay could not refuse what does not fit
                function = norch.capture(call)
                with pytest.raises(norch.CaptureError, match="a 0-d tensor is read"):
                    for _ in range(3):
                        function(x, scalar)
                continue
            function = norch.capture(call) if captured else call
            for _ in range(5 if captured else 1):
                found = function(x, scalar)
                assert found.tolist() == wanted and found.dtype in (x.dtype, norch.bool)


def test_comparisons_with_numbers_beyond_64_bits() -> None:
    for name in INTEGERS:
        x = norch.tensor(held(name), dtype=name)
        for number in (1 << 63, -(1 << 63) - 1, 10**400, -(10**400)):
            for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
                assert compare(x, number).tolist() == [compare(each, number) for each in held(name)]
                assert compare(number, x).tolist() == [compare(number, each) for each in held(name)]
    with pytest.raises(OverflowError, match="lt: .* does not fit 64 bits"):
        norch.ones(1) < 10**400  # noqa: B015


def test_functions_of_several_calls_take_no_number_beyond_the_dtype() -> None:
    x = norch.tensor([0, 5, 250], dtype=norch.uint8)
    for name in ("gcd", "lcm", "heaviside"):
        with pytest.raises(ValueError, match=f"{name}: 300 does not fit uint8"):
            getattr(norch, name)(x, 300)
    with pytest.raises(ValueError, match="tensor: 300 does not fit uint8"):
        norch.tensor(np.int64(300), dtype=norch.uint8)


# Calls that store a 0-d tensor, or may give it.
OF_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    "fill_": lambda x, n: x.clone().fill_(n),
    "masked_fill": lambda x, n: x.masked_fill(x == x, n),
    "masked_fill_": lambda x, n: x.clone().masked_fill_(x == x, n),
    "index_fill": lambda x, n: x.index_fill(0, norch.arange(len(x)), n),
    "index_fill_": lambda x, n: x.clone().index_fill_(0, norch.arange(len(x)), n),
    "where": lambda x, n: norch.where(x == x, n, x),
    "where not": lambda x, n: norch.where(x != x, x, n),
    **{f"x[{key}] =": lambda x, n, key=key: _assigned(x.clone(), key, n) for key in (slice(None), ..., [0, 1, 2])},
    "x[mask] =": lambda x, n: _assigned(x.clone(), x == x, n),
    "maximum": lambda x, n: norch.maximum(x - x, n).minimum(n),
    "clamp": lambda x, n: x.clamp(n, n),
}


def _assigned(x: Any, key: Any, n: Any) -> Any:
    x[key] = n
    return x


@pytest.mark.skipif(DEVICE != "cpu", reason="elsewhere what is stored wraps")
@pytest.mark.parametrize("name", INTEGERS[:4])
@pytest.mark.parametrize("way", OF_SCALARS)
def test_tensors_without_dimensions_are_stored_by_value(name: str, way: str) -> None:
    least, most = held(name)
    x = norch.tensor([0, 1, 2], dtype=name)
    for number in (least - 1, most + 1, 2 * most + 46, 1 << 40, least, most, 2):
        scalar = norch.tensor(number)
        if least <= number <= most:
            found = OF_SCALARS[way](x, scalar)
            if way != "maximum" or number >= 0:
                assert found.tolist() == [number] * 3 and found.dtype is x.dtype
        elif way == "maximum" and number < 0:
            with pytest.raises(ValueError, match=f"minimum: {number} does not fit {name}"):
                norch.minimum(x, scalar)
        else:
            with pytest.raises(ValueError, match=f"{number} does not fit {name}"):
                OF_SCALARS[way](x, scalar)
    captured = norch.capture(OF_SCALARS[way])
    with pytest.raises(norch.CaptureError):
        for _ in range(3):
            captured(x, norch.tensor(2))
    assert x.tolist() == [0, 1, 2]
    assert (x + norch.tensor(most + 1)).tolist() == [least, least + 1, least + 2]  # arithmetic wraps


def test_searches_for_any_kind_of_number() -> None:
    line = norch.tensor([1, 200], dtype=norch.uint8)
    for number in (300, np.int64(300), norch.tensor(300), norch.tensor(300, dtype=norch.int16)):
        assert norch.searchsorted(line, number).item() == norch.bucketize(number, line).item() == 2
    for number in (-1, np.int8(-1), norch.tensor(-1)):
        assert norch.searchsorted(line, number).item() == norch.bucketize(number, line).item() == 0


ROWS = (
    "maximum minimum fmax fmin eq ne lt le gt ge add sub mul true_divide floor_divide remainder fmod pow atan2 "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_xor"
).split()
OF_SAMPLES = {
    **{name: lambda x, k, name=name: getattr(norch, name)(x, k) for name in ROWS},
    "clamp": lambda x, k: x.clamp(k, k + 1),
    "clamp_max": lambda x, k: x.clamp(max=k),
    "where": lambda x, k: norch.where(x > 1, x, k),
    "masked_fill": lambda x, k: x.masked_fill(x > 1, k),
}


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("way", OF_SAMPLES)
def test_samples_of_vmap_are_0_d_tensors(way: str, name: str) -> None:
    x = norch.tensor([1, 100, 3], dtype=getattr(norch, name))

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            found = call()
        except REFUSALS:
            return "refused"
        return found.dtype, found.tolist()

    each = norch.vmap(OF_SAMPLES[way], in_dims=(None, 0))
    for number in (2, 300, -300, 70_000):
        wanted = outcome(lambda n=number: OF_SAMPLES[way](x, norch.tensor(n)))
        found = outcome(lambda n=number: each(x, norch.tensor([n, n]))[1])
        assert found == wanted, number


@pytest.mark.host  # elsewhere reading the number would wait for the device
@pytest.mark.parametrize("name", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("number", [1e30, -1e30, math.inf, math.nan])
@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.masked_fill(x > 1, v),
        lambda x, v: x.masked_fill_(x > 1, v),
        lambda x, v: x.fill_(v),
        lambda x, v: x.index_fill(0, norch.tensor([0]), v),
        lambda x, v: x.__setitem__(0, v),
        lambda x, v: x.__setitem__(x > 1, v),
    ],
)
def test_0_d_floats_that_integers_do_not_hold_are_refused(write: Any, number: float, name: str) -> None:
    x = norch.tensor([1, 2], dtype=getattr(norch, name))
    with pytest.raises(norch.ArgumentError, match=f"does not fit {name}"):
        write(x, norch.tensor(number))
    assert x.tolist() == [1, 2]
