"""Errors: their kinds and messages, and what they leave unchanged. Memory that runs out: test_out_of_memory.py."""

import math

import numpy as np
import pytest
from checks import wait
from conftest import drop_numbers

import norch
from norch._binding.library import lib
from norch.nn import functional as F

# ---- kinds and names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (IndexError, lambda: norch.zeros(2)[2]),
        (IndexError, lambda: norch.zeros(2, 2).gather(1, norch.tensor([[23]]))),
        (IndexError, lambda: norch.zeros(2).narrow(0, 1, 2)),
        (IndexError, lambda: norch.tensor(1).unbind()),
        (IndexError, lambda: norch.tensor(1).roll(0, 0)),
        (ZeroDivisionError, lambda: norch.tensor(1) // 0),
        (ZeroDivisionError, lambda: F.celu(norch.zeros(1), alpha=0)),
        (MemoryError, lambda: norch.empty(1 << 58)),
        (ValueError, lambda: bool(norch.zeros(2))),
        (ValueError, lambda: norch.zeros(2).item()),
        (ValueError, lambda: norch.arange(0, 1, 0)),
        (ValueError, lambda: F.gelu(norch.zeros(2), approximate="some")),
        (ValueError, lambda: F.conv1d(norch.zeros(1, 1, 4), norch.zeros(1, 1, 2), stride=-1)),
        (ValueError, lambda: F.avg_pool1d(norch.zeros(1, 1, 9), 2, padding=-1)),
        (ValueError, lambda: F.group_norm(norch.zeros(2, 7, 4), 2)),
        (ValueError, lambda: F.batch_norm(norch.ones(2, 1), None, None, training=True, eps=-1.0)),
        (ValueError, lambda: F.cross_entropy(norch.ones(2), norch.ones(2), ignore_index=1)),
    ],
)
def test_errors_are_what_python_and_pytorch_raise(kind, call):
    with pytest.raises(kind) as caught:
        call()
        wait()
    assert isinstance(caught.value, norch.Error) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cross_entropy", lambda x: F.cross_entropy(x, norch.tensor([0, 1]), weight=norch.ones(2))),
        ("mse_loss", lambda x: F.mse_loss(x, norch.ones(2))),
        ("l1_loss", lambda x: F.l1_loss(x, norch.ones(2))),
        ("binary_cross_entropy_with_logits", lambda x: F.binary_cross_entropy_with_logits(x, x[0])),
        ("addmm", lambda x: norch.addmm(x, x, x)),
        ("hstack", lambda x: norch.hstack([x, x[:1]])),
        ("cosine_similarity", lambda x: norch.cosine_similarity(x, x, dim=9)),
        ("expand_as", lambda x: x.expand_as(norch.ones(5))),
        ("dist", lambda x: norch.dist(x, norch.ones(5))),
        ("conv1d", lambda x: F.conv1d(x, norch.ones(1, 9, 1))),
        ("avg_pool1d", lambda x: F.avg_pool1d(x.bool(), 1)),
        ("group_norm", lambda x: F.group_norm(x.bool(), 1)),
        ("nanmean", lambda x: x.nanmean(5)),
        ("diff", lambda x: x.diff(dim=5)),
        ("mode", lambda x: x.mode(5)),
        ("median", lambda x: x.median(5)),
        ("topk", lambda x: x.topk(1, 5)),
        ("unique", lambda x: x.unique(dim=5)),
        ("scatter_reduce", lambda x: x.scatter_reduce(5, x.long(), x, "sum")),
    ],
)
def test_errors_name_what_was_called(name, call):
    with pytest.raises(norch.Error, match=rf"^{name}: "):
        call(norch.ones(2, 3))


@pytest.mark.host  # a CUDA device says it when it is waited for, of the kernel's family
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cross_entropy", lambda x: F.cross_entropy(x, norch.tensor([0, 9]))),
        ("cross_entropy", lambda x: F.cross_entropy(x, norch.tensor([0, 9]), weight=norch.ones(3))),
        ("nll_loss", lambda x: F.nll_loss(x, norch.tensor([0, 9]))),
    ],
)
def test_classes_out_of_range(name, call):
    with pytest.raises(norch.Error, match=rf"^{name}: "):
        call(norch.ones(2, 3))


# ---- common mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums_with_a_factor_are_named(name):
    with pytest.raises(norch.ShapeError, match=f"^{name}: "):
        getattr(norch, name)(norch.ones(2), norch.ones(3), alpha=2)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "eq", "atan2"])
def test_shapes_that_do_not_broadcast(name):
    a, b = norch.zeros(2, 3, 5), norch.zeros(3, 2)
    with pytest.raises(norch.ShapeError, match=rf"{name}: sizes 5 and 2 at dimension 2"):
        getattr(norch, name)(a, b)
    with pytest.raises(ValueError):
        getattr(norch, name)(a, b)
    with pytest.raises(RuntimeError):
        getattr(norch, name)(a, b)


def test_shapes_that_do_not_multiply():
    for a, b in [((2, 3), (2, 3)), ((3,), (2,)), ((2, 2, 3), (3, 3, 2)), ((), (2,)), ((2,), ()), ((2, 3), (4,))]:
        with pytest.raises(norch.ShapeError, match="matmul"):
            norch.zeros(a) @ norch.zeros(b)


def test_bad_reshapes():
    with pytest.raises(norch.ShapeError, match="reshape"):
        norch.zeros(2, 3).reshape(4, 2)
    with pytest.raises(norch.ShapeError):
        norch.zeros(2, 3).reshape(-1, -1)
    with pytest.raises(norch.ShapeError):
        norch.zeros(2, 3).reshape(-1, 4)
    with pytest.raises(norch.ShapeError):
        norch.zeros(0).reshape(-1, 0)


def test_indices_out_of_range():
    x = norch.zeros(2, 3)
    for bad in (2, -3, (0, 3), (0, -4), (0, 0, 0), 2**62, -(2**62)):
        with pytest.raises(IndexError):
            x[bad]
        with pytest.raises(IndexError):
            x[bad] = 1
    for dim in (2, -3):
        for call in (x.sum, x.argmax, x.softmax, x.squeeze, x.size, x.logsumexp):
            with pytest.raises(IndexError):
                call(dim)
    for call in (
        lambda: x.gather(0, norch.tensor([[2]])),
        lambda: x.index_select(1, norch.tensor([0, -1 - 3])),
        lambda: F.cross_entropy(x, norch.tensor([0, 3])),
    ):
        with pytest.raises(IndexError):
            call()
            wait()


def test_ragged_lists():
    with pytest.raises(norch.ShapeError, match="ragged"):
        norch.tensor([[1, 2], [3]])


@pytest.mark.parametrize("bad", ["float31", "banana", 3, object(), np.uint16, np.dtype("S3"), str, None])
def test_unknown_dtypes(bad):
    if bad is not None:
        with pytest.raises(norch.DTypeError, match="dtype"):
            norch.zeros(2, dtype=bad)
        with pytest.raises(norch.DTypeError):
            norch.tensor([1], dtype=bad)
    with pytest.raises(TypeError):
        norch.promote_types(bad, norch.int64)


@pytest.mark.parametrize("good", ["float64", np.float64, np.dtype("float64"), norch.float64, "norch.float64"])
def test_known_dtypes(good):
    assert norch.zeros(2, dtype=good).dtype is norch.float64


def test_integers_that_require_grad():
    with pytest.raises(norch.DTypeError, match="requires_grad"):
        norch.tensor([1, 2], requires_grad=True)


def test_backward_on_what_is_no_scalar():
    x = norch.zeros(3, requires_grad=True)
    with pytest.raises(norch.ShapeError, match="backward"):
        (x * 2).backward()


def test_devices():
    x = norch.zeros(2, device="cpu")
    with pytest.raises(norch.DeviceError, match="CUDA|cuda"):
        x.to("cuda:99")
    with pytest.raises(norch.DeviceError):
        norch.zeros(2, device="cuda:99")
    for bad in ("banana", "cpu:x", "cuda:-1", "", "mps"):
        with pytest.raises((norch.DeviceError, ValueError)):
            x.to(bad)
    assert x.to("cpu") is x and x.to("cpu:0") is x and x.to("cpu:3") is x
    third = norch.device("cpu", 3)
    assert third.index == 3 and str(third) == "cpu:3" and third not in (norch.device("cpu"), norch.device("cpu", 1))
    with third:
        tensors = norch.ones(2), norch.ones(2, device="cpu:1"), norch.arange(2, device=norch.device(third)), x.cpu()
    assert [y.device for y in tensors] == [norch.device("cpu")] * 4
    assert norch.ones(2, device=norch.device("meta", 2)).device == norch.device("meta")


def test_operations_that_a_dtype_lacks():
    for call in (
        lambda: -norch.tensor(True),
        lambda: ~norch.zeros(2),
        lambda: norch.zeros(2) & 1,
        lambda: norch.tensor([1, 2]).mean(),
        lambda: norch.tensor([1, 2]).std(),
        lambda: norch.tensor([True]) - norch.tensor([True]),
    ):
        with pytest.raises(TypeError):
            call()


def test_divisors_are_those_that_are_used():
    x = norch.tensor([1, -1], dtype=norch.int8)
    assert (x // 256).tolist() == [0, -1], "which is no 0 of int8"
    with pytest.raises(ZeroDivisionError, match="floor_divide: integer division by zero"):
        x // 0


def test_a_zero_among_divisors_leaves_the_tensor_as_it_was():
    x, divisor = norch.ones(300, 70, dtype=norch.int16), norch.ones(300, 1, dtype=norch.int16)
    divisor[299] = 0
    before = x.clone()
    with pytest.raises(ZeroDivisionError, match="remainder_: integer division by zero"):
        x %= divisor
    with pytest.raises(ZeroDivisionError, match="fmod: integer division by zero"):
        norch.fmod(x.T, divisor.T)
    assert norch.equal(x, before)


@pytest.mark.host  # a device tells later
def test_the_first_of_indices_out_of_range_is_named():
    x, index = norch.zeros(5), norch.zeros(100_000, dtype=norch.int64)
    index[70_000], index[99_999] = -6, 5
    for at in (index, index.to(norch.int32)):
        reads = (lambda: x[at], lambda: x.take(at), lambda: x.gather(0, at))  # noqa: B023
        for call in (*reads, lambda: x.index_put_((at,), norch.ones(()))):  # noqa: B023
            with pytest.raises(IndexError, match="index -6 is out of range for size 5 at dimension 0"):
                call()
    square = norch.zeros(5, 5)
    with pytest.raises(IndexError, match="index 5 is out of range for size 5 at dimension 1"):
        square[index[:5] + 4, index[-5:]] = 1.0
    assert not x.any() and not square.any()


def test_integer_division_by_zero():
    for dtype in (norch.uint8, norch.int32, norch.int64):
        x, zero = norch.ones(3, dtype=dtype), norch.zeros(3, dtype=dtype)
        for call in (lambda: x // zero, lambda: x % zero, lambda: x // 0, lambda: 1 // zero, lambda: x % 0):  # noqa: B023
            with pytest.raises(ZeroDivisionError):
                call()
        nothing = norch.zeros(0, 3, dtype=dtype)
        for call in (lambda: nothing // zero[:1], lambda: nothing % 0, lambda: nothing.floor_divide_(zero)):  # noqa: B023
            assert call().shape == (0, 3)
    assert norch.tensor([-(2**31)], dtype=norch.int32).floor_divide(-1).dtype is norch.int32
    assert (norch.tensor([-(2**63)]) // -1).numel() == 1 and (norch.tensor([-(2**63)]) % -1).item() == 0
    assert math.isinf((norch.tensor([1.0]) / 0).item()) and math.isnan((norch.tensor([0.0]) // 0).item())


def test_powers_of_bools():
    x = norch.tensor([False, True])
    assert (x**True).tolist() == [False, True] and (x**False).tolist() == [True, True] == x.pow_(False).tolist()
    with pytest.raises(norch.DTypeError, match="pow: not defined for dtype bool"):
        x**x


def test_reductions_of_nothing():
    empty = norch.zeros(0)
    for name in ("max", "min", "amax", "amin", "argmax", "argmin"):
        with pytest.raises((ValueError, IndexError, RuntimeError)):
            getattr(empty, name)()
        with pytest.raises((ValueError, IndexError, RuntimeError)):
            getattr(norch.zeros(3, 0), name)(1)
        getattr(norch.zeros(3, 0), name)(0)
    assert empty.sum().item() == 0 and empty.prod().item() == 1 and math.isnan(empty.mean().item())
    assert empty.any().item() is False and empty.all().item() is True


def test_the_kinds_of_errors():
    assert issubclass(norch.Error, RuntimeError)
    assert issubclass(norch.ShapeError, norch.Error) and issubclass(norch.ShapeError, ValueError)
    assert issubclass(norch.DTypeError, norch.Error) and issubclass(norch.DTypeError, TypeError)
    assert issubclass(norch.DeviceError, norch.Error)
    assert issubclass(norch.ArgumentError, norch.Error) and issubclass(norch.ArgumentError, ValueError)


def test_errors_of_python_itself():
    """Those that docs/differences.md leaves out of norch.Error; and bools, of which two are not subtracted."""
    p = norch.ones(1, requires_grad=True)
    for kind, call in (
        (TypeError, lambda: norch.add("a", p)),
        (OverflowError, lambda: norch.zeros(2**64)),
        (ValueError, lambda: norch.optim.SGD([p], lr=-1)),
        (ValueError, lambda: norch.nn.Dropout(2)),
        (ValueError, lambda: norch.utils.data.TensorDataset()),
        (KeyError, lambda: norch.nn.ModuleDict()["a"]),
        (IndexError, lambda: norch.nn.ModuleList()[0]),
        (NotImplementedError, lambda: norch.nn.Module()(1)),
        (AttributeError, lambda: norch.hspmm),
        (RuntimeError, lambda: norch.utils.data.default_collate([[1], [1, 2]])),
    ):
        with pytest.raises(kind) as raised:
            call()
        assert not isinstance(raised.value, norch.Error), kind
    b = norch.tensor([True])
    assert (b - 1).tolist() == [0] and (b - norch.ones(1)).tolist() == [0.0]
    with pytest.raises(norch.DTypeError, match="sub: not defined for dtype bool"):
        b - b


# ---- numbers that are too large ---------------------------------------------------------------

HUGE = [2**64 + 3, 2**63, -(2**63) - 1, 2**200]


@pytest.mark.parametrize("huge", HUGE)
def test_integers_beyond_64_bits_raise_and_do_not_wrap(huge):
    x = norch.arange(24).view(2, 3, 4)
    f = norch.zeros(2, 3, 4)
    calls = [
        lambda: norch.zeros(huge),
        lambda: norch.zeros(2, huge),
        lambda: norch.empty(huge),
        lambda: norch.full((huge,), 1),
        lambda: norch.full((2,), huge),
        lambda: norch.Tensor(huge),
        lambda: norch.arange(huge) if huge > 0 else norch.zeros(huge),
        lambda: norch.rand(huge),
        lambda: norch.randn(2, huge),
        lambda: norch.randint(0, huge, (2,)) if huge > 0 else norch.randint(huge, 0, (2,)),
        lambda: norch.randperm(huge),
        lambda: norch.eye(huge),
        lambda: x.view(huge),
        lambda: x.reshape(huge, -1),
        lambda: x.expand(huge, 2, 3, 4),
        lambda: x.permute(0, 1, huge),
        lambda: x.transpose(0, huge),
        lambda: x.squeeze(huge),
        lambda: x.unsqueeze(huge),
        lambda: x.flatten(huge),
        lambda: x.select(huge, 0),
        lambda: x.select(0, huge),
        lambda: x.narrow(0, huge, 1),
        lambda: x.narrow(0, 0, huge),
        lambda: x.diagonal(huge),
        lambda: x.diagonal(0, huge, 1),
        lambda: x.unfold(0, huge, 1),
        lambda: x.unfold(0, 1, huge),
        lambda: x.unfold(huge, 1, 1),
        lambda: x[huge],
        lambda: x[0, huge],
        lambda: x.sum(huge),
        lambda: x.sum((0, huge)),
        lambda: x.argmax(huge),
        lambda: f.softmax(huge),
        lambda: x.gather(huge, norch.zeros(1, 1, 1, dtype=norch.int64)),
        lambda: x.index_select(huge, norch.tensor([0])),
        lambda: norch.cat([x, x], huge),
        lambda: norch.stack([x, x], huge),
        lambda: x + huge,
        lambda: x.fill_(huge),
        lambda: x.__setitem__(0, huge),
        lambda: norch.tensor(huge),
        lambda: norch.set_num_threads(huge),
        lambda: x.unbind(huge),
        lambda: x.size(huge),
    ]
    for position, call in enumerate(calls):
        try:
            result = call()
        except (OverflowError, IndexError, ValueError, norch.Error, MemoryError):
            continue
        pytest.fail(f"call {position} gave {result!r:.200}")
    assert x.tolist() == np.arange(24).reshape(2, 3, 4).tolist()


@pytest.mark.parametrize(
    "shape", [(2**62, 2), (2**32, 2**32), (2**31, 2**31, 2), (2**63 - 1, 2), (2**21,) * 3, (2**61,)]
)
def test_sizes_whose_product_overflows(shape):
    one = norch.ones(1)
    for call in (
        lambda: norch.zeros(shape),
        lambda: norch.empty(shape),
        lambda: norch.empty(*shape, dtype=norch.float64),
        lambda: norch.rand(shape),
        lambda: norch.full(shape, 1),
        lambda: one.expand(shape).clone(),
        lambda: one.expand(shape) + 1,
        lambda: one.view(shape),
    ):
        with pytest.raises((norch.ShapeError, MemoryError)):
            call()
    with pytest.raises((norch.ShapeError, MemoryError)):
        one.expand(*shape, 4).contiguous()


def test_sizes_that_memory_cannot_hold():
    start = lib.norch_live_storages()
    for call in (
        lambda: norch.empty(2**50),
        lambda: norch.zeros(2**55, dtype=norch.uint8),
        lambda: norch.ones(1).expand(2**48).clone(),
        lambda: norch.ones(2**24, 1)[:1].expand(2**24, 2**24) + 1,
        lambda: norch.arange(2**50),
        lambda: norch.ones(1).expand(2**48).tolist(),
    ):
        with pytest.raises((MemoryError, OverflowError)):
            call()
    drop_numbers()
    assert lib.norch_live_storages() <= start
    assert norch.ones(1).expand(2**40).shape == (2**40,)
    assert norch.ones(1).expand(2**40)[2**39].item() == 1


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (-(2**62), 2)])
def test_negative_sizes(shape):
    for call in (norch.zeros, norch.ones, norch.empty, norch.rand, norch.randn, norch.Tensor):
        with pytest.raises((norch.ShapeError, ValueError)):
            call(*shape)
    with pytest.raises(ValueError):
        norch.full(shape, 0)


def test_empty_sizes_with_huge_ones():
    for shape in [(0, 2**62), (2**40, 0, 2**20)]:
        try:
            x = norch.zeros(shape)
        except norch.ShapeError:
            continue
        assert x.numel() == 0 and x.shape == shape


@pytest.mark.parametrize("bad", [1.5, "2", None, [2], 2j, norch.float32])
def test_sizes_and_axes_that_are_no_integers(bad):
    x = norch.zeros(2, 3)
    for call in (
        lambda: norch.zeros(2, bad),
        lambda: x.reshape(bad, 2),
        lambda: x.transpose(0, bad),
        lambda: x.permute(1, bad),
        lambda: x.expand(2, bad),
        lambda: x.unsqueeze(bad),
        lambda: x.select(0, bad),
        lambda: norch.cat([x], bad),
    ):
        with pytest.raises(TypeError):
            call()


def test_too_many_dimensions():
    x = norch.zeros([1] * 16)
    for call in (lambda: norch.zeros([1] * 17), lambda: x.unsqueeze(0), lambda: x[None], lambda: x.reshape([1] * 17)):
        with pytest.raises(norch.ShapeError):
            call()
    with pytest.raises(norch.ShapeError):
        norch.stack([x, x])
    with pytest.raises(norch.ShapeError):
        x.expand([2] + [1] * 16)
    nested = 1.0
    for _ in range(17):
        nested = [nested]
    with pytest.raises(norch.ShapeError):
        norch.tensor(nested)


def test_lists_that_contain_themselves():
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError):
        norch.tensor(loop)
