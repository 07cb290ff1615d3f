"""Elementwise operations beyond the walk over cases.py: names, arguments, writes, errors, accuracy of the formulas."""

from __future__ import annotations

import math
import operator
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch.testing import assert_close, gradcheck

ALIASES = {
    "absolute": "abs", "negative": "neg", "fix": "trunc", "clip": "clamp", "arctan2": "atan2",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "subtract": "sub", "multiply": "mul", "divide": "div", "not_equal": "ne", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge",
}  # fmt: skip


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias: str) -> None:
    name = ALIASES[alias]
    assert getattr(norch, alias) is getattr(norch, name)
    assert getattr(norch.Tensor, alias) is getattr(norch.Tensor, name)
    if hasattr(norch.Tensor, name + "_"):
        assert getattr(norch.Tensor, alias + "_") is getattr(norch.Tensor, name + "_")


def test_pytorch_names_of_arguments() -> None:
    a, b = norch.tensor([1.0, -2.0]), norch.tensor([3.0, 0.5])
    assert_close(norch.exp(input=a), norch.exp(a))
    assert_close(norch.atan2(input=a, other=b), a.atan2(other=b))
    assert_close(norch.pow(input=b, exponent=2), b.pow(exponent=2))
    assert_close(norch.clamp(input=a, min=0, max=None), a.clamp_min(min=0))
    assert_close(norch.clamp_max(input=a, max=0), a.clone().clamp_max_(max=0))
    assert_close(norch.lerp(input=a, end=b, weight=0.25), a.lerp(end=b, weight=0.25))
    assert_close(norch.addcmul(input=a, tensor1=a, tensor2=b, value=2), a + 2 * a * b)
    assert_close(norch.nan_to_num(input=a, nan=1.0, posinf=2.0, neginf=3.0), a)
    assert_close(norch.polygamma(n=1, input=b), b.polygamma(n=1))
    assert_close(norch.nn.functional.leaky_relu(input=a, negative_slope=0.5, inplace=False), [1.0, -1.0])
    assert_close(norch.nn.functional.softplus(input=a, beta=1, threshold=20), a.exp().log1p())


def test_functions_that_write() -> None:
    x = norch.tensor([1.0, 4.0])
    assert norch.sqrt_(x) is x and x.tolist() == [1.0, 2.0]
    assert norch.fill_(x, 3) is x and norch.neg_(x) is x and x.tolist() == [-3.0, -3.0]
    assert norch.zero_(norch.clamp_(x, min=1)).tolist() == [0.0, 0.0]
    assert norch.celu_(norch.threshold_(x, 1, -1)) is x
    assert_close(x, [math.expm1(-1)] * 2)


# ---- numbers and modes ----------------------------------------------------------------------------------------------


def test_alpha() -> None:
    whole, real = norch.tensor([1, 2]), norch.tensor([0.5, 1.5], dtype=norch.float64)
    assert norch.add(whole, whole, alpha=3).tolist() == [4, 8]
    assert norch.sub(whole, 2, alpha=2).tolist() == [-3, -2]
    assert_close(norch.add(real, whole, alpha=0.1), np.array([0.6, 1.7]), rtol=1e-15, atol=0)
    assert_close(norch.rsub(real, 1, alpha=2), [0.0, -2.0])
    assert_close(norch.addcmul(real, whole, whole, value=0.1), np.array([0.6, 1.9]), rtol=1e-15, atol=0)
    for wrong in (
        lambda: norch.add(whole, whole, alpha=1.5),
        lambda: norch.rsub(whole, whole, alpha=0.5),
        lambda: norch.addcmul(whole, whole, whole, value=0.5),
        lambda: whole.add_(whole, alpha=0.5),
        lambda: norch.sub(norch.tensor([True]), norch.tensor([True])),
        lambda: norch.addcdiv(whole, whole, whole),
        lambda: norch.lerp(whole, whole, 0.5),
    ):
        with pytest.raises(norch.DTypeError):
            wrong()
    assert whole.tolist() == [1, 2]


def test_factors_are_multiplied_in_the_dtype_of_the_sum() -> None:
    byte = norch.tensor([200], dtype=norch.uint8)
    half, most = norch.tensor([300.0], dtype=norch.float16), norch.tensor([-60000.0], dtype=norch.float16)
    real = norch.zeros(1)
    for sum_, wanted in (
        (norch.add(real, byte, alpha=3), 600),
        (norch.sub(real, byte, alpha=3), -600),
        (norch.rsub(byte, real, alpha=3), -600),
        (norch.zeros(1).add_(byte, alpha=3), 600),
        (norch.zeros(1).sub_(byte, alpha=3), -600),
        (norch.add(norch.zeros(1, dtype=norch.int16), byte, alpha=3), 600),
        (norch.addcmul(real, byte, byte, value=3), 120000),
        (norch.addcmul(real, half, half, value=1000), 9e7),
        (norch.addcdiv(real, byte, byte.int(), value=3), 3),
        (norch.zeros(1).addcmul_(byte, byte, value=3), 120000),
        (norch.add(real, half, alpha=1000), 300000),
        (norch.add(most, half, alpha=300), 30000),  # a half is rounded once, at the end
        (most.clone().add_(half, alpha=300), 30000),
        (norch.addcmul(most, half, half), 30000),
        (norch.addcmul(most, half, half / 300, value=300), 30000),
    ):
        assert sum_.item() == wanted
    assert norch.add(most, half, alpha=2).dtype == norch.addcmul(most, half, half, value=2).dtype == norch.float16
    x, y = norch.tensor([1.0], dtype=norch.float16, requires_grad=True), norch.ones(1, requires_grad=True)
    norch.add(x, y.half(), alpha=3).backward()
    assert x.grad.tolist() == [1.0] and x.grad.dtype == norch.float16 and y.grad.tolist() == [3.0]
    with pytest.raises(norch.ArgumentError, match="add: 300 does not fit uint8"):
        norch.add(byte, byte, alpha=300)
    with pytest.raises(norch.DTypeError, match="sub: a factor of integers is an integer"):
        norch.sub(byte, byte, alpha=norch.tensor(0.5))


def test_alpha_of_bools() -> None:
    """The sum has the dtype that it has without a factor."""
    true, whole = norch.ones(2, dtype=norch.bool), norch.ones(2, dtype=norch.int32)
    for sum, dtype, expected in (
        (norch.add(true, true, alpha=0), norch.bool, [True, True]),
        (norch.add(~true, true, alpha=2), norch.bool, [True, True]),
        (norch.add(whole, true, alpha=3), norch.int32, [4, 4]),
        (norch.add(norch.ones(2), true, alpha=2.5), norch.float32, [3.5, 3.5]),
    ):
        assert sum.dtype is dtype and sum.tolist() == expected


@pytest.mark.parametrize("name", "add sub mul truediv floordiv mod pow and or xor lshift rshift".split())
def test_strangers_may_take_the_operator(name: str) -> None:
    class Stranger:
        pass

    setattr(Stranger, f"__r{name}__", lambda self, other: (self, other))
    x, stranger = norch.ones(2, dtype=norch.int64), Stranger()
    assert getattr(x, f"__{name}__")(stranger) is NotImplemented
    assert getattr(operator, f"i{name}")(x, stranger) == (stranger, x)
    with pytest.raises(TypeError, match="expected a tensor or a number, not object"):
        x.add_(object())


def test_rounding_modes() -> None:
    a, b = norch.tensor([7, -7, 7, -7]), norch.tensor([2, 2, -2, -2])
    assert norch.div(a, b, rounding_mode="floor").tolist() == [3, -4, -4, 3]
    assert norch.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert a.clone().div_(b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    with pytest.raises(norch.DTypeError):
        a.clone().div_(b)
    for mode in ("floor", "trunc"):
        with pytest.raises(ZeroDivisionError):
            norch.div(a, 0, rounding_mode=mode)
        x = norch.tensor([5.0], requires_grad=True)
        norch.div(x, 2, rounding_mode=mode).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0.0]
    with pytest.raises(ValueError, match="rounding_mode"):
        norch.div(a, b, rounding_mode="up")
    assert norch.fmod(a, 3).tolist() == [1, -1, 1, -1]
    with pytest.raises(ZeroDivisionError):
        norch.fmod(a, norch.tensor([1, 0, 1, 1]))


def test_numbers_alone() -> None:
    """Two numbers give a tensor that promotes like any other; within a derivative they keep their precision."""
    assert norch.add(1, 2).dtype is norch.int64 and norch.mul(1.0, 2).dtype is norch.float32
    assert norch.pow(2, norch.tensor([3])).tolist() == [8]
    assert (norch.add(1.0, 2.0) + norch.zeros((), dtype=norch.float16)).dtype is norch.float32
    x = norch.tensor([2.0, 3.0], dtype=norch.float64, requires_grad=True)
    (x**0.3).sum().backward()
    assert x.grad is not None
    assert_close(x.grad, 0.3 * x.detach() ** -0.7, rtol=1e-15, atol=0)
    half = norch.tensor(2.0, dtype=norch.float16, requires_grad=True)
    (half**3).backward()
    assert half.grad is not None and half.grad.dtype is norch.float16 and half.grad.item() == 12


def test_shifts() -> None:
    x = norch.tensor([1, -8, 3])
    assert (x << 2).tolist() == [4, -32, 12] and (x >> 1).tolist() == [0, -4, 1]
    assert (1 << norch.tensor([0, 3])).tolist() == [1, 8] and (-16 >> norch.tensor([1, 2])).tolist() == [-8, -4]
    x <<= 1
    x >>= norch.tensor([1, 1, 2])
    assert x.tolist() == [1, -8, 1]
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):  # counts that the type does not have shift all out
        info = norch.iinfo(getattr(norch, dtype))
        ends = norch.tensor([info.min, info.max], dtype=dtype)
        assert (ends << info.bits).tolist() == [0, 0]
        assert (ends >> info.bits).tolist() == [-1 if info.min else 0, 0]
    for wrong in (lambda: x << 1.0, lambda: norch.ones(1) >> 1, lambda: norch.tensor([True]) << norch.tensor([True])):
        with pytest.raises(norch.DTypeError):
            wrong()


def test_equal() -> None:
    x = norch.tensor([1.0, 2.0])
    assert norch.equal(x, norch.tensor([1, 2])) and x.equal(x)
    assert not norch.equal(x, x[:1]) and not norch.equal(x, x + 1) and not norch.equal(x, norch.tensor([1.0, math.nan]))
    assert norch.equal(norch.zeros(0), norch.zeros(0))
    for shape in ((10_000,), (100, 100), (1, 10_000), (10_000, 1)):  # whose first part is compared first
        x = norch.arange(10_000.0).view(shape)
        for at in (0, 5_000, 9_999):
            y = x.clone()
            y.view(-1)[at] += 1
            assert not norch.equal(x, y) and not norch.equal(x.T, y.T) and norch.equal(y.T, y.clone().T)
    for wrong in (1, None, [1.0]):
        with pytest.raises(TypeError, match="equal"):
            norch.equal(x, wrong)


def test_nan_to_num_takes_the_limits_of_the_dtype() -> None:
    for dtype in (norch.float16, norch.bfloat16, norch.float32, norch.float64):
        limits = norch.finfo(dtype)
        found = norch.nan_to_num(norch.tensor([math.nan, math.inf, -math.inf, 1.5], dtype=dtype))
        assert found.dtype is dtype and found.tolist() == [0.0, limits.max, limits.min, 1.5]


@pytest.mark.parametrize("low", [math.inf, math.nan, 1e39, -1e39, 5.0])
def test_nan_to_num_writes_any_number_for_minus_infinity(torch: Any, low: float) -> None:
    values = [math.nan, math.inf, -math.inf, 1.5]
    for name in ("float16", "float32"):
        found, wanted = (
            m.nan_to_num(m.tensor(values, dtype=getattr(m, name)), posinf=1.0, neginf=low) for m in (norch, torch)
        )
        assert_close(found, norch.tensor(wanted.tolist(), dtype=found.dtype), equal_nan=True)


def test_wrong_arguments() -> None:
    x, whole = norch.ones(4), norch.ones(4, dtype=norch.int64)
    for wrong in (
        lambda: norch.polygamma(-1, x),
        lambda: norch.mvlgamma(x, 0),
        lambda: norch.isclose(x, x, rtol=-1),
        lambda: norch.nn.functional.softshrink(x, -0.1),
        lambda: norch.nn.functional.hardtanh(x, 2, 1),
        lambda: norch.nn.functional.rrelu(x, 0.5, 0.25),
        lambda: norch.nn.functional.prelu(norch.ones(2, 3), x),
        lambda: norch.nn.functional.glu(norch.ones(3)),
        lambda: norch.nn.functional.glu(norch.ones(())),
        lambda: norch.clamp(x),
        lambda: norch.nn.Softmax2d()(x),
    ):
        with pytest.raises(ValueError):
            wrong()
    for name in "frac frexp hypot logaddexp".split():
        with pytest.raises(norch.DTypeError, match=name):
            getattr(norch, name)(*[whole] * (1 + (name in ("hypot", "logaddexp"))))
    for name in "elu celu selu leaky_relu rrelu softplus hardsigmoid softshrink glu mish gelu".split():
        with pytest.raises(norch.DTypeError):
            getattr(norch.nn.functional, name)(whole)
    for call in (norch.positive, norch.neg, norch.abs, norch.frac):
        with pytest.raises(norch.DTypeError):
            call(norch.tensor([True]))
    for call in (norch.frac, norch.logit, norch.deg2rad, norch.round, norch.nan_to_num, norch.exp):
        with pytest.raises(TypeError):
            call(None)
    with pytest.raises(TypeError, match="polygamma: n must be an integer"):
        norch.polygamma(1.5, x)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        norch.nn.functional.celu(x, 0)


# ---- in place -------------------------------------------------------------------------------------------------------

WRITES = {
    "addcmul_": lambda x, a: x.addcmul_(a, a, value=2),
    "addcdiv_": lambda x, a: x.addcdiv_(a, a + 2, value=0.5),
    "lerp_": lambda x, a: x.lerp_(a, 0.3),
    "clamp_": lambda x, a: x.clamp_(a - 1, a + 0.1),
    "round_": lambda x, a: x.round_(decimals=1),
    "logit_": lambda x, a: x.mul_(0.1).add_(0.5).logit_(eps=0.1),
    "nan_to_num_": lambda x, a: x.nan_to_num_(posinf=1.0),
    "polygamma_": lambda x, a: x.mul_(0.2).add_(2).polygamma_(2),
    "mvlgamma_": lambda x, a: x.mul_(0.2).add_(3).mvlgamma_(2),
    "float_power_": lambda x, a: x.square_().float_power_(1.5),
    "pow_": lambda x, a: x.pow_(3),
    "elu_": lambda x, a: norch.nn.functional.elu_(x, 0.5),
    "selu": lambda x, a: norch.nn.functional.selu(x, inplace=True),
    "hypot_": lambda x, a: x.hypot_(a),
    "copysign_": lambda x, a: x.copysign_(a),
    "itself": lambda x, a: x.addcmul_(x, x),
    "view": lambda x, a: x[1:].lerp_(a[1:], a[:-1]),
}


@pytest.mark.parametrize("name", WRITES)
def test_in_place_forms_have_gradients(name: str) -> None:
    values = np.random.default_rng(3).uniform(0.2, 2, (2, 4)) * np.array([[1.0], [-1.0]])

    def written(x: Any, a: Any) -> Any:
        y = x.clone()
        out = WRITES[name](y, a)
        assert out.data_ptr() in (y.data_ptr(), y[1:].data_ptr())
        return y

    x, a = (norch.tensor(row, requires_grad=True) for row in values)
    assert gradcheck(written, (x, a))


def test_in_place_leaves_all_as_it_was_on_failure() -> None:
    x, whole = norch.ones(3), norch.ones(3, dtype=norch.int64)
    with pytest.raises(norch.ShapeError):
        x.addcmul_(norch.ones(2, 3), norch.ones(3))
    with pytest.raises(norch.ShapeError):
        x.clamp_(0, norch.ones(5))
    for wrong in (lambda: whole.lerp_(x, 0.5), lambda: whole.addcmul_(x, x), lambda: x.float_power_(2)):
        with pytest.raises(norch.DTypeError):
            wrong()
    with pytest.raises(ValueError):
        whole.pow_(-1)
    leaf = norch.ones(3, requires_grad=True)
    for write in (lambda y: y.addcmul_(x, x), lambda y: y.round_(decimals=1), lambda y: y.sinc_()):
        with pytest.raises(norch.Error, match="leaf"):
            write(leaf)
        with pytest.raises(norch.Error):
            write(norch.ones(1).expand(3))
    assert leaf.tolist() == x.tolist() == [1.0] * 3 and whole.tolist() == [1] * 3


def test_comparisons_in_place_keep_the_dtype() -> None:
    x = norch.tensor([1.0, 2.0])
    assert x.gt_(norch.tensor([1, 1])).dtype is norch.float32 and x.tolist() == [0.0, 1.0]
    assert x.logical_not_().tolist() == [1.0, 0.0]
    flags = norch.tensor([True, False])
    assert flags.logical_xor_(norch.tensor([2, 3])).tolist() == [False, True]


# ---- derivatives ----------------------------------------------------------------------------------------------------


def test_slopes_at_corners() -> None:
    """What PyTorch picks: a number at a bound of clamp is inside, at one of hardtanh outside."""

    def slopes(call: Any, *values: float) -> list[float]:
        x = norch.tensor(values, requires_grad=True)
        call(x).sum().backward()
        assert x.grad is not None
        return x.grad.tolist()

    nan, f = math.nan, norch.nn.functional
    assert slopes(norch.abs, nan, 0.0, -0.0, -2.0) == [0.0, 0.0, 0.0, -1.0]
    assert slopes(lambda x: x.clamp(-1, 1), -1.0, 1.0, 2.0, nan) == [1.0, 1.0, 0.0, 0.0]
    assert slopes(f.hardtanh, -1.0, 1.0, 0.5, nan) == [0.0, 0.0, 1.0, 1.0]
    assert slopes(f.relu6, 0.0, 6.0, 3.0) == [0.0, 0.0, 1.0]
    assert slopes(f.hardshrink, 0.5, -0.5, 0.6, nan) == [0.0, 0.0, 1.0, 1.0]
    assert slopes(f.softshrink, 0.5, -0.5, 0.6, nan) == [0.0, 0.0, 1.0, 1.0]
    assert slopes(f.leaky_relu, 0.0, -0.0) == pytest.approx([0.01, 0.01])
    assert slopes(lambda x: f.threshold(x, 0.5, 7.0), 0.5, 0.6, nan) == [0.0, 1.0, 1.0]
    assert slopes(f.hardswish, -3.0, 3.0) == [0.0, 1.0]
    assert slopes(lambda x: norch.fmax(x, x.detach()), 1.0, nan) == [1.0, 1.0]
    assert slopes(norch.sinc, 0.0) == [0.0] and slopes(norch.frac, 1.5) == [1.0]
    assert slopes(lambda x: norch.dist(x, x.detach()), 1.0, 2.0) == [0.0, 0.0]
    assert norch.tensor([nan]).sign().item() == 0.0


def test_higher_derivatives_of_lgamma() -> None:
    x = norch.tensor([0.7, 2.5, -1.3], dtype=norch.float64, requires_grad=True)
    y = norch.lgamma(x)
    for n in range(4):
        (y,) = norch.autograd.grad(y.sum(), x, create_graph=True)
        assert_close(y, norch.polygamma(n, x.detach()), rtol=1e-12, atol=0)


SHORT_ROWS = [(1, 5000), (700, 7), (4097, 2), (63, 100), (9, 511), (8, 513), (3, 40, 50), (2, 5, 30, 20)]


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.int32, norch.uint8, norch.float16])
@pytest.mark.parametrize("shape", SHORT_ROWS, ids=str)
def test_rows_beside_one_that_all_of_them_meet(shape: tuple[int, ...], dtype: norch.dtype) -> None:
    x, row = (norch.arange(math.prod(size)).remainder(97).to(dtype).reshape(size) for size in (shape, shape[-1:]))
    truths, steps = row.remainder(2) == 0, norch.stack([x, x], 1)[:, 1]  # these rows lie apart
    a, b = x.double().numpy(), row.double().numpy()
    for one in (x, steps):
        assert_close((one + row).double(), norch.tensor(a + b))
        assert_close((row - one.to(norch.int64)).double(), norch.tensor(b - a))
        assert_close(one > row, norch.tensor(a > b))
        assert_close(norch.where(truths, one, row).double(), norch.tensor(np.where(b % 2 == 0, a, b)))
        assert_close(
            norch.where(truths, one, norch.tensor(5, dtype=dtype)).double(), norch.tensor(np.where(b % 2 == 0, a, 5))
        )
        assert_close((one.clone().add_(row)).double(), norch.tensor(a + b))
        written = one.clone()
        written += written.reshape(-1, shape[-1])[1 % written.reshape(-1, shape[-1]).shape[0]]
        assert_close(written.double(), norch.tensor(a + a.reshape(-1, shape[-1])[1 % (a.size // shape[-1])]))


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.int32, norch.bool, norch.float16])
@pytest.mark.parametrize("shape", SHORT_ROWS, ids=str)
def test_rows_beside_a_number_each(shape: tuple[int, ...], dtype: norch.dtype) -> None:
    x, row = (norch.arange(math.prod(size)).remainder(7).to(dtype).reshape(size) for size in (shape, shape[-1:]))
    column = norch.arange(math.prod(shape[:-1])).remainder(5).to(dtype).reshape(*shape[:-1], 1)
    a, b, c = x.double().numpy(), column.double().numpy(), row.double().numpy()
    for one, beside in ((x, column), (norch.stack([x, x], 1)[:, 1], norch.stack([column, column], -2)[..., 0, :])):
        assert_close((one * beside).double(), norch.tensor(a * b))
        assert_close(beside >= one, norch.tensor(b >= a))
        assert_close(norch.where(beside > 2, one, row).double(), norch.tensor(np.where(b > 2, a, c)))
        assert_close(norch.where(one > 2, beside, row).double(), norch.tensor(np.where(a > 2, b, c)))
        if dtype is not norch.bool:
            assert_close(norch.addcmul(one, beside, row).double(), norch.tensor(a + b * c))
            assert_close((one.clone().sub_(one[..., :1])).double(), norch.tensor(a - a[..., :1]))


def test_quotients_of_all_sizes() -> None:
    """The rest of a quotient that double does not hold goes another way than the others beside it."""
    ends = np.array([0.0, -0.0, 1, -3, 0.5, 1e-40, -1e30, 3e38, np.inf, -np.inf, np.nan, 7, 2.0**28, -(2.0**29)])
    a, b = (part.ravel().astype(np.float32) for part in np.meshgrid(ends, ends))
    rng = np.random.default_rng(0)
    easy = [rng.standard_normal(1000).astype(np.float32) * size for size in (1000, 1)]
    for x, y in ((a, b), easy, [np.concatenate(parts) for parts in zip((a, b), easy, strict=True)]):
        wide = x.astype(np.float64), y.astype(np.float64)
        for name in ("remainder", "fmod", "floor_divide"):
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(*wide).astype(np.float32)
            found = getattr(norch, name)(norch.tensor(x), norch.tensor(y)).numpy()
            ulps = int(DEVICE != "cpu" and name == "floor_divide")  # there as PyTorch's, in float32 throughout
            np.testing.assert_allclose(found, expected, rtol=ulps * 2.0**-23, atol=0, err_msg=name)


# ---- accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", [[], ["-march=native"]], ids=["baseline", "native"])
def test_the_formulas_are_as_accurate_as_math_h_says(tmp_path: Path, target: list[str]) -> None:
    """On random arguments, and on every 40,009th float; NORCH_EVERY_FLOAT=1 takes them all, as .ci/long does."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C compiler")
    source, program = Path(__file__).resolve().parents[1] / "native" / "math_accuracy.c", tmp_path / "accuracy"
    flags = "-std=gnu11 -O2 -Wall -Wextra -Werror -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off".split()
    flags.append(f"-I{Path(__file__).resolve().parents[2]}/build/core")  # opcodes.inc
    made = subprocess.run([compiler, *flags, *target, source, "-o", program, "-lm"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for arguments in (["30"], ["every", "1" if os.environ.get("NORCH_EVERY_FLOAT") else "40009"]):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", "exp log log2 log10 sin cos tan asin acos atan sinh cosh atanh erfc erfinv".split())
def test_a_result_does_not_depend_on_its_neighbours(name: str, dtype: str) -> None:
    """Quick formulas serve pieces whose arguments are all moderate: one that is not changes no other, and gives
    what it gives alone, in any layout."""
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 1e-310, 88.9, -104.5, 710.1, 1e6, 3e8, -1e30]
    x = norch.tensor(np.random.default_rng(0).uniform(-0.9, 0.9, 400).astype(dtype))
    f, quick = getattr(norch, name), getattr(norch, name)(x)
    mixed, at = x.clone(), list(range(5, 400, 25))[: len(edges)]
    mixed[at] = norch.tensor(np.array(edges).astype(dtype))
    kept = norch.ones(400, dtype=norch.bool)
    kept[at] = False
    found = f(mixed)
    np.testing.assert_array_equal(found[kept].numpy(), quick[kept].numpy())
    np.testing.assert_array_equal(found[at].numpy(), np.array([f(mixed[i : i + 1]).item() for i in at], dtype))
    np.testing.assert_array_equal(f(mixed.reshape(20, 20).T).T.flatten().numpy(), found.numpy())
    with np.errstate(all="ignore"):
        reference = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atanh": "arctanh"}.get(name, name)
        if hasattr(np, reference):
            wide = getattr(np, reference)(mixed.numpy().astype(np.float64)).astype(dtype)
            np.testing.assert_allclose(found.numpy(), wide, rtol=2.0 * np.finfo(dtype).eps, atol=1e-45)


LAID = {
    "transposed": lambda x: x.transpose(0, 2),
    "channels last": lambda x: x.permute(1, 2, 0),
    "rows apart": lambda x: x[:, :2],
    "every second": lambda x: x.transpose(0, 1)[:, ::2],
    "one row again": lambda x: x[:1].expand(4, -1, -1).transpose(0, 2),
    "sizes of 1": lambda x: x[:, :1].transpose(0, 2),
}
KEEPING = {
    "unary": lambda m, x: x.abs(),
    "a number": lambda m, x: x + 1,
    "two": lambda m, x: x * x,
    "a row": lambda m, x: x - x[:1, :1, :],
    "choice": lambda m, x: m.where(x > 0, x, x + 1),
    "comparison": lambda m, x: x == x,
    "cast": lambda m, x: x.to(m.float64),
}


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("layout", LAID)
def test_results_lie_as_what_they_are_made_of(torch: Any, layout: str, name: str) -> None:
    """Dense inputs in another order than C's give results in that order, as in PyTorch; all others C-ordered ones."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 9
    x, y = LAID[layout](norch.tensor(array)), LAID[layout](torch.tensor(array))
    ours, theirs = KEEPING[name](norch, x), KEEPING[name](torch, y)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    kept = layout in ("transposed", "channels last")
    assert ours.stride() == theirs.stride() == x.stride() if kept else ours.is_contiguous()


def test_inputs_that_lie_differently_give_a_c_ordered_result() -> None:
    x, y = norch.randn(3, 4).T, norch.randn(4, 3)
    assert (x + y).is_contiguous() and (y + x).is_contiguous()
    assert (x + x).stride() == (1, 4) and (x + norch.ones(3)).stride() == (1, 4)
    assert norch.nonzero(x > 0).shape == norch.nonzero((x > 0).contiguous()).shape
    assert_close(x.double().softmax(0), x.contiguous().double().softmax(0))
    assert_close(x.int().softmax(0), x.contiguous().int().softmax(0))
    assert norch.nonzero(x.bool()).tolist() == norch.nonzero(x.contiguous().bool()).tolist()


def test_the_gradient_of_frexp_needs_the_exponents_that_it_returns() -> None:
    x = norch.tensor([3.0, 0.5], requires_grad=True)
    mantissa, exponent = norch.frexp(x)
    mantissa.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [0.25, 1]
    exponent.add_(1)
    with pytest.raises(norch.Error, match="changed in place"):  # as in PyTorch
        mantissa.sum().backward()


def test_where_takes_a_mask_of_bytes_like_torch(torch: Any) -> None:
    for lib in (norch, torch):
        mask, x = lib.tensor([1, 0, 2], dtype=lib.uint8), lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        for call in (lambda lib=lib, m=mask, x=x: lib.where(m, x, -x), lambda m=mask, x=x: x.where(m, -x)):
            x.grad = None
            call().sum().backward()
            assert call().tolist() == [1, -2, 3] and x.grad.tolist() == [1, -1, 1]
        assert lib.where(mask, 1, 0).tolist() == [1, 0, 1]
        with pytest.raises(RuntimeError):
            lib.where(mask.to(lib.int32), x, -x)


@pytest.mark.kernel
@pytest.mark.parametrize("name", "exp exp2 log log2 log10 sin cos tan erfinv".split())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_do_not_change_a_result(name: str, dtype: str) -> None:
    """Pieces of easy arguments have a formula of their own: the results are those of the general one, bit for bit."""
    x = np.random.default_rng(0).uniform(0.05, 0.95, 1000).astype(dtype)
    alone = np.array([getattr(norch.tensor([one]), name)().item() for one in x], dtype)
    hard = [np.inf, -np.inf, np.nan, 1e-45, 1e30, -2000.0]
    for places in ([], [300], [100, 200, 300, 900], [*range(0, 1000, 128)]):
        mixed = x.copy()
        mixed[places] = [hard[i % len(hard)] for i in range(len(places))]
        wanted = alone.copy()
        wanted[places] = [getattr(norch.tensor(mixed[i : i + 1]), name)().item() for i in places]
        given = norch.tensor(mixed)
        np.testing.assert_array_equal(getattr(given, name)().numpy(), wanted)
        np.testing.assert_array_equal(getattr(given.clone(), name + "_")().numpy(), wanted)
        apart = norch.stack([given, given], 1)[:, 0]
        np.testing.assert_array_equal(getattr(apart, name)().numpy(), wanted)


@pytest.mark.kernel
def test_square_roots_are_rounded_correctly() -> None:
    """AVX-512 refines an estimate (pointwise_isa.c): every 4,099th float, of all signs and exponents, and every 16th of
    1 to 4, whose mantissas are those of all numbers. A double's root, rounded to float, is the float's."""
    some = np.arange(0, 1 << 32, 4099, dtype=np.uint32).view(np.float32)
    mantissas = np.arange(0x3F800000, 0x40800000, 16, dtype=np.uint32).view(np.float32)
    for x in (some, mantissas, mantissas[:1003], mantissas[::3], mantissas * np.float32(2.0**-95)):
        with np.errstate(invalid="ignore"):
            wanted = np.sqrt(x.astype(np.float64)).astype(np.float32)
        given = norch.tensor(x)
        np.testing.assert_array_equal(given.sqrt().numpy(), wanted)
        np.testing.assert_array_equal(given.sqrt_().numpy(), wanted)


SECOND_PASSES: dict[str, Any] = {
    "addcmul": lambda x, y: x.addcmul(y, x, value=3.0),
    "addcdiv": lambda x, y: x.addcdiv(y, x, value=3.0),
    "nan_to_num": lambda x, y: x.nan_to_num(1.0, 2.0, -3.0),
    "logit": lambda x, y: x.logit(0.3),
}


@pytest.mark.parametrize("name", SECOND_PASSES)
def test_a_second_pass_over_the_first_result_changes_no_input(torch: Any, name: str) -> None:
    """A call of two passes writes the second over the result of the first, where nothing is recorded or broadcast."""
    call = SECOND_PASSES[name]
    values = np.array([[0.25, 0.5, np.inf], [-np.inf, np.nan, 0.9]], np.float32).repeat(6000, 1)
    for of in (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0]):
        for recorded in (False, True):
            ours, theirs = norch.tensor(values), torch.tensor(values)
            out, wanted = (
                call(of(x.requires_grad_(recorded)), of(x) if of(x).ndim == 1 else of(x)[:1]) for x in (ours, theirs)
            )
            same = call(of(ours), of(ours).detach())
            assert_close(same, call(of(theirs), of(theirs).detach()).detach().numpy(), equal_nan=True)
            assert_close(out, wanted.detach().numpy(), equal_nan=True)
            assert out.requires_grad is same.requires_grad is recorded
            np.testing.assert_array_equal(ours.detach().numpy(), values)


@pytest.mark.parametrize("decimals", [400, -400, 309, -309, 308, -308])
def test_round_to_more_decimals_than_a_number_has(torch: Any, decimals: int) -> None:
    ours, theirs = (m.round(m.tensor([12.5, 0.0]), decimals=decimals).tolist() for m in (norch, torch))
    assert np.array_equal(ours, theirs, equal_nan=True)


def test_logit_of_halves_does_not_round_its_bounds() -> None:
    x = norch.tensor([1.0, 0.0], dtype=norch.bfloat16)
    assert norch.equal(x.logit(1e-3), x.float().logit(1e-3).bfloat16())
