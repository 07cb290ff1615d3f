"""The dtypes that are stored narrow and computed wide (int8, int16 and the halves), casts and limits of all dtypes."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from case import ALL_NAMES, FLOAT_NAMES, HALF_NAMES, INTEGER_NAMES, NARROW_NAMES, as_numpy, numpy_values, source
from conftest import DEVICE

import norch
from norch.testing import assert_close

# ---- conversions ----------------------------------------------------------------------------------------------------

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)


def many_floats() -> Any:
    """Floats of all sizes, and those around which halves are rounded."""
    rng = source("floats")
    bits = rng.integers(0, 1 << 32, 60_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    sizes = (rng.standard_normal(60_000) * 10.0 ** rng.integers(-9, 6, 60_000)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        halves = EVERY_HALF.view(np.float16).astype(np.float32)
    ties = halves[:-1] + (halves[1:] - halves[:-1]) / 2
    return np.concatenate([bits, sizes, ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, -ties)])


@pytest.mark.kernel
def test_every_float16() -> None:
    halves = EVERY_HALF.view(np.float16)
    x = norch.tensor(halves)
    np.testing.assert_array_equal(x.float().numpy(), halves.astype(np.float32))
    np.testing.assert_array_equal(
        x.float().half().numpy().view(np.uint16)[~np.isnan(halves)], EVERY_HALF[~np.isnan(halves)]
    )
    assert x.float().half().isnan().numpy().tolist() == np.isnan(halves).tolist()
    numbers = ~np.isnan(halves)  # a device does not keep the sign of NaN
    np.testing.assert_array_equal(np.signbit(x.double().numpy())[numbers], np.signbit(halves)[numbers])


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:(invalid|overflow)")
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", HALF_NAMES)
def test_floats_round_to_halves(name: str, step: int) -> None:
    floats = many_floats()
    found = norch.tensor(floats)[::step].to(getattr(norch, name))
    np.testing.assert_array_equal(as_numpy(found), numpy_values(floats[::step], name))


def test_integers_and_doubles_become_halves_through_float32(torch: Any) -> None:
    """So a value may be rounded twice, as in PyTorch."""
    doubles = [1 + 2.0**-11 + 2.0**-40, 2049 + 2.0**-30, 65519.999999999, 1e300, 2.0**-25 * (1 + 2.0**-30)]
    for source_dtype, numbers in (("float64", doubles), ("int64", [2049, (1 << 53) + 1, (1 << 60) + 1, 257 << 20])):
        for name in HALF_NAMES:
            ours = norch.tensor(numbers, dtype=source_dtype).to(getattr(norch, name))
            theirs = torch.tensor(numbers, dtype=getattr(torch, source_dtype)).to(getattr(torch, name))
            assert ours.tolist() == theirs.tolist()


EDGES = [0.0, -0.0, 0.1, 1.5, -1.5, 127.9, 128.0, -128.9, -129.0, 255.5, 256.0, 32767.9, 32768.0, -32769.0, 65504.0]
EDGES += [65520.0, 1e5, 2147483648.0, -2147483649.0, 4294967296.0, 1e10, 9.3e18, -9.3e18, 1e30, math.inf, -math.inf]
EDGES += [math.nan, 6e-8, 1e-40, 2049.0, 2051.0, 257.0]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_casts_like_torch(torch: Any, name: str) -> None:
    """Also where C leaves it open: a float that an integer cannot hold becomes what x86 and so PyTorch makes of it."""
    theirs_dtype = getattr(torch, name)
    if name in FLOAT_NAMES:
        theirs = torch.tensor(EDGES, dtype=torch.float64).to(theirs_dtype)
        ours = norch.tensor(EDGES, dtype=name)
    else:
        info = torch.iinfo(theirs_dtype) if name != "bool" else None
        numbers = (
            [0, 1, 2, 100, info.max, info.max - 1, info.min, info.max // 2, info.max // 3] if info else [True, False]
        )
        theirs, ours = torch.tensor(numbers, dtype=theirs_dtype), norch.tensor(numbers, dtype=name)
    np.testing.assert_array_equal(ours.double().numpy(), theirs.double().numpy())
    for to, count in itertools.product(ALL_NAMES, (1, 40)):
        found = norch.cat([ours] * count).to(getattr(norch, to)).double().numpy()
        wanted = theirs.repeat(count).to(getattr(torch, to)).double().numpy()
        np.testing.assert_array_equal(found, wanted, err_msg=f"{name} to {to}")


@pytest.mark.kernel
@pytest.mark.parametrize("name", NARROW_NAMES)
def test_copies_in_every_order(name: str) -> None:
    """Squares larger than those that a transposing copy turns at once, from and to other dtypes too."""
    values = np.arange(70 * 133).reshape(70, 133) % 201 - 100
    x = norch.tensor(values, dtype=name)
    assert (x.T.contiguous().tolist(), x.T.clone().tolist()) == (values.T.tolist(),) * 2
    assert x.T.double().tolist() == values.T.tolist()
    assert norch.tensor(values.astype(np.float64)).T.to(getattr(norch, name)).tolist() == values.T.tolist()
    y = norch.zeros(133, 70, dtype=name)
    y[:, ::2] = x.T[:, ::2].int()
    assert y[:, ::2].tolist() == values.T[:, ::2].tolist() and not y[:, 1::2].any()
    assert norch.ones(1, dtype=name).expand(9, 5000).clone().sum() == 45000
    assert norch.ones(1).expand(9, 5000).to(getattr(norch, name)).eq(1).all()


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_can_cast_like_torch(torch: Any) -> None:
    for a, b in itertools.product(ALL_NAMES, repeat=2):
        assert norch.can_cast(getattr(norch, a), getattr(norch, b)) == torch.can_cast(
            getattr(torch, a), getattr(torch, b)
        )


@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_finfo(torch: Any, name: str) -> None:
    ours, theirs = norch.finfo(getattr(norch, name)), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert repr(ours) == repr(theirs)
    assert ours == norch.finfo(name) and hash(ours) == hash(norch.finfo(name)) and ours != norch.iinfo("int8")


@pytest.mark.parametrize("name", INTEGER_NAMES)
def test_iinfo(torch: Any, name: str) -> None:
    ours, theirs = norch.iinfo(getattr(norch, name)), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.max, ours.min, ours.dtype) == (theirs.bits, theirs.max, theirs.min, theirs.dtype)
    assert ours == norch.iinfo(name) and hash(ours) == hash(norch.iinfo(name)) and ours != norch.finfo("float16")


def test_limits_of_the_other_kind() -> None:
    assert norch.finfo() == norch.finfo(norch.float32)
    for wrong in (norch.int8, norch.bool):
        with pytest.raises(TypeError, match=wrong.name):
            norch.finfo(wrong)
    for other in (norch.float16, norch.bool):
        with pytest.raises(TypeError, match=other.name):
            norch.iinfo(other)


def test_result_type(torch: Any) -> None:
    for a, b in itertools.product(ALL_NAMES, repeat=2):
        for shapes in (((2,), (2,)), ((), (2,)), ((2,), ())):
            ours, theirs = (
                [m.ones(shape, dtype=getattr(m, name)) for shape, name in zip(shapes, (a, b))] for m in (norch, torch)
            )
            assert norch.result_type(*ours).name == str(torch.result_type(*theirs))[6:]
    for number in (True, 2, 2.5):
        for name in ALL_NAMES:
            ours, theirs = norch.ones(2, dtype=name), torch.ones(2, dtype=getattr(torch, name))
            assert norch.result_type(ours, number).name == str(torch.result_type(theirs, number))[6:]
    with pytest.raises(TypeError, match="result_type"):
        norch.result_type(norch.ones(2), "x")
    assert norch.is_floating_point(norch.ones(1).half()) and not norch.is_floating_point(norch.ones(1).char())
    with pytest.raises(TypeError, match="is_floating_point"):
        norch.is_floating_point(2.5)


@pytest.mark.parametrize("name", INTEGER_NAMES)
@pytest.mark.parametrize("number", [300, -1, -256, 127.9, 255.5, -1.0, -129, 40_000, 1e20, math.nan, True, 2.9])
def test_numbers_that_an_integer_dtype_holds(torch: Any, name: str, number: Any) -> None:
    """What is out of range is refused, as in PyTorch, which takes -1 for the largest number of an unsigned dtype."""

    def assigned(m: Any) -> Any:
        x = m.zeros(1, dtype=getattr(m, name))
        x[0] = number
        return x

    for make in (
        lambda m: m.tensor([number], dtype=getattr(m, name)),
        lambda m: m.full((1,), number, dtype=getattr(m, name)),
        lambda m: m.zeros(1, dtype=getattr(m, name)).fill_(number),
        assigned,
    ):
        try:
            wanted = make(torch).tolist()
        except RuntimeError:
            wanted = None
        if wanted is None or (name == "uint8" and number < 0):
            with pytest.raises(norch.ArgumentError, match=name):
                make(norch)
        else:
            assert make(norch).tolist() == wanted


# ---- arithmetic -----------------------------------------------------------------------------------------------------


@pytest.mark.kernel
@pytest.mark.parametrize("name", HALF_NAMES)
def test_sums_are_kept_in_float32(name: str) -> None:
    x = norch.ones(3, 5000, dtype=name)
    assert x.sum(1).tolist() == [numpy_values([5000.0], name)[0]] * 3
    assert x.T.sum(0).tolist() == x.sum(1).tolist()
    assert (x[:1] @ x[0]).item() == x.sum(1)[0].item()
    assert x.mean().item() == 1 and x.var().item() == 0
    assert (
        norch.zeros(1, dtype=name).index_add(0, norch.zeros(5000, dtype=norch.int64), x[0]).item() == x.sum(1)[0].item()
    )
    assert (x * 100).mean(1).tolist() == [100] * 3, "the sum itself is beyond float16"


@pytest.mark.kernel
def test_numbers_beside_a_half_are_not_rounded_to_it() -> None:
    x = norch.tensor([60000.0, 0.001], dtype=norch.float16)
    np.testing.assert_allclose((x / 1e5).tolist(), [0.6, 1e-8], atol=6e-8, rtol=1e-3)
    np.testing.assert_allclose((x[1:] * 1e5).tolist(), [100], rtol=1e-3)
    np.testing.assert_allclose((x[:1] / norch.tensor(1e5, device="cpu")).tolist(), [0.6], rtol=1e-3)
    assert (x == 0.001).tolist() == [False, True], "but a comparison is one of two halves"
    assert not (norch.tensor([44], dtype=norch.int8) == 300).item(), "and one with an integer is one of their values"
    y = norch.ones(70_000, dtype=norch.float16, requires_grad=True)
    y.mean().backward()
    np.testing.assert_allclose(y.grad[0].item(), 1 / 70_000, rtol=5e-3)


@pytest.mark.kernel
@pytest.mark.parametrize("name", NARROW_NAMES)
def test_long_runs(name: str) -> None:
    """More elements than are widened at once, and in any layout."""
    n = 40_000
    x = norch.tensor((np.arange(n) % 100 - 50).astype(np.float32)).to(getattr(norch, name))
    wide = x.long()
    for a, w in (
        (x, wide),
        (x[::3], wide[::3]),
        (x.view(200, 200).T, wide.view(200, 200).T),
        (x[::-1], wide[::-1]),
    ):
        assert ((a + a).long() == w + w).all() and ((a > 3) == (w > 3)).all()
        assert (norch.where(a > 0, a, -a).long() == w.abs()).all() and (a.clamp(-3, 7).long() == w.clamp(-3, 7)).all()
        assert a.amax().item() == w.amax().item() and a.argmin().item() == w.argmin().item()
    assert (x.view(400, 100).amax(0).long() == wide.view(400, 100).amax(0)).all()
    assert (x.view(400, 100).argmax(1) == wide.view(400, 100).argmax(1)).all()
    assert (x.view(400, 100).float().sum(0) == wide.view(400, 100).sum(0)).all()
    total = x.view(200, 200).sum(0)
    assert (total == wide.view(200, 200).sum(0).to(total.dtype)).all()


def test_small_integers_wrap() -> None:
    for name in ("int8", "int16"):
        info = norch.iinfo(name)
        x = norch.tensor([info.min, info.max], dtype=name)
        assert (x + 1).tolist() == [info.min + 1, info.min] and (-x).tolist() == [info.min, info.min + 1]
        assert x.abs().tolist() == [info.min, info.max] and (x // -1).tolist() == [info.min, -info.max]
        assert (x * 3).tolist() == [info.min, info.max - 2] and x.sum().item() == -1 and x.square().tolist() == [0, 1]
        assert (~x).tolist() == [info.max, info.min] and (x % 7).tolist() == [info.min % 7, info.max % 7]
        assert (x.view(2, 1) @ x.view(1, 2)).tolist() == [[0, info.min], [info.min, 1]]
        assert (
            norch.tensor([300, -1, 70_000]).to(dtype=x.dtype).tolist()
            == np.array([300, -1, 70_000]).astype(name).tolist()
        )
        with pytest.raises(ZeroDivisionError):
            x // 0
        with pytest.raises(norch.DTypeError):
            x.requires_grad_()


# ---- elsewhere ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NARROW_NAMES)
def test_elements_go_in_and_out(name: str) -> None:
    x = norch.tensor([[1, -2], [3, 100]], dtype=name)
    assert x.element_size() == x.itemsize == x.dtype.itemsize == (1 if name == "int8" else 2)
    assert x.nbytes == 4 * x.itemsize and x.tolist() == [[1, -2], [3, 100]] and x[1, 1].item() == 100
    assert type(x[0, 0].item()) is (float if name in HALF_NAMES else int) and x.is_floating_point() == (
        name in HALF_NAMES
    )
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is x.dtype and again.tolist() == x.tolist()
    x[0] = norch.tensor([5.0, 6.0])
    x[1, 0] += 1
    assert x.tolist() == [[5, 6], [4, 100]]
    assert x.gather(1, norch.tensor([[1], [0]])).tolist() == [[6], [4]]
    assert x.index_select(0, norch.tensor([1, 1, 0])).tolist() == [[4, 100], [4, 100], [5, 6]]
    assert norch.cat([x, x.double()]).dtype is norch.float64 and norch.stack([x, x]).dtype is x.dtype
    assert norch.arange(5, dtype=name).tolist() == [0, 1, 2, 3, 4] and norch.full((2,), 3, dtype=name).sum().item() == 6
    assert norch.eye(2, dtype=name).tolist() == [[1, 0], [0, 1]] and norch.zeros_like(x).dtype is x.dtype


@pytest.mark.host
def test_bfloat16_and_numpy() -> None:
    x = norch.tensor([1.5, 2.0], dtype=norch.bfloat16)
    for call in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="bfloat16"):
            call()
    assert x.float().numpy().tolist() == [1.5, 2.0]
    shared = np.array([1.0, 2.0], np.float16)
    y = norch.from_numpy(shared)
    y += 1
    assert y.dtype is norch.half and shared.tolist() == [2.0, 3.0] and y.numpy().dtype == np.float16


def test_repr(torch: Any) -> None:
    for name in NARROW_NAMES:
        for numbers in ([1, 2, -3], [[100, 0]], []):
            ours, theirs = norch.tensor(numbers, dtype=name), torch.tensor(numbers, dtype=getattr(torch, name))
            assert repr(ours.cpu()).replace("norch.", "torch.") == repr(theirs)
    for name in HALF_NAMES:
        for values in ([1.5, 2.25, 1e-5], [0.1, 1e4], 0.1, [math.nan, -math.inf, 0.3], [65504.0, 6e-8]):
            ours, theirs = norch.tensor(values, dtype=name), torch.tensor(values, dtype=getattr(torch, name))
            assert repr(ours.cpu()).replace("norch.", "torch.") == repr(theirs)


@pytest.mark.parametrize("name", HALF_NAMES)
def test_draws(name: str) -> None:
    generator = norch.Generator().manual_seed(5)
    uniform = norch.rand(50_000, dtype=name, generator=generator)
    digits = 11 if name == "float16" else 8
    assert uniform.amax().item() == 1 - 2.0**-digits and uniform.amin().item() == 0, "1 is never reached"
    assert abs(uniform.double().mean().item() - 0.5) < 0.01
    normal = norch.randn(50_000, dtype=name, generator=generator).double()
    assert abs(normal.mean().item()) < 0.02 and abs(normal.std().item() - 1) < 0.02
    tossed = norch.bernoulli(norch.full((20_000,), 0.25, dtype=name), generator=generator)
    assert tossed.dtype.name == name and abs(tossed.double().mean().item() - 0.25) < 0.02
    assert norch.randint(3, 9, (500,), dtype=name, generator=generator).double().amax().item() == 8


def test_whole_draws() -> None:
    for name in ("int8", "int16"):
        info = norch.iinfo(name)
        x = norch.randint(info.min, info.max + 1, (100_000,), dtype=name, generator=norch.Generator().manual_seed(1))
        assert x.dtype.name == name and x.amin().item() < info.min * 0.99 and x.amax().item() > info.max * 0.99
        for low, high in ((info.min - 1, 0), (0, info.max + 2)):
            with pytest.raises(norch.ArgumentError, match=name):
                norch.randint(low, high, (2,), dtype=name)


@pytest.mark.parametrize("name", HALF_NAMES)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_optimizers(name: str, optimizer: str) -> None:
    """A step is computed in float32, and stored rounded."""
    more = {"momentum": 0.9} if optimizer == "SGD" else {}
    weights = norch.randn(40, generator=norch.Generator().manual_seed(2)).to(dtype=getattr(norch, name))
    parameters = [weights.clone().requires_grad_(), weights.float().requires_grad_()]
    for parameter in parameters:
        one = getattr(norch.optim, optimizer)([parameter], lr=0.05, **more)
        for _ in range(5):
            one.zero_grad()
            (parameter * parameter).sum().backward()
            one.step()
    assert parameters[0].dtype.name == name
    assert_close(parameters[0].detach().float(), parameters[1].detach(), rtol=0.05, atol=0.05)
    assert (parameters[0] != weights).any()


@pytest.mark.parametrize("name", HALF_NAMES)
def test_layers(name: str) -> None:
    dtype = getattr(norch, name)
    layer = getattr(norch.nn.Linear(5, 3), "half" if name == "float16" else name)().to(DEVICE)
    assert layer.weight.dtype is layer.bias.dtype is dtype
    x = norch.randn(4, 5).to(dtype)
    loss = norch.nn.functional.cross_entropy(layer(x), norch.tensor([0, 1, 2, 0]))
    loss.backward()
    assert loss.dtype is layer.weight.grad.dtype is dtype
    wide = norch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
    assert_close(layer(x).double(), wide, rtol=1e-2, atol=1e-2)
    with pytest.raises(norch.DTypeError):
        layer(x.float())
    layer.weight.grad.fill_(400)
    layer.bias.grad.zero_()
    norm = norch.nn.utils.clip_grad_norm_(layer.parameters(), 15**0.5)
    assert norm.dtype is dtype and norm.item() == pytest.approx(400 * 15**0.5, rel=1e-2)
    assert_close(layer.weight.grad, norch.ones(3, 5, dtype=dtype), rtol=1e-2, atol=0)


def test_a_half_as_the_default_dtype() -> None:
    try:
        norch.set_default_dtype(norch.float16)
        assert (norch.arange(3) / 2).dtype is norch.tensor(0.5).dtype is norch.rand(2).dtype is norch.float16
        assert (norch.arange(3) * 0.5).tolist() == [0, 0.5, 1]
    finally:
        norch.set_default_dtype(norch.float32)
