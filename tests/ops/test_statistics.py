"""composed/statistics.py, distance.py and type_properties.py beyond their cases: constants, kinks, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import norch
from norch.ops.composed import distance
from norch.testing import assert_close, gradgradcheck


def test_constants() -> None:
    assert (norch.pi, norch.e, norch.inf) == (math.pi, math.e, math.inf) and norch.nan != norch.nan
    assert norch.ones(3)[norch.newaxis].shape == (1, 3)


def test_questions() -> None:
    x = norch.ones(2, 3)
    assert (
        norch.numel(x) == 6
        and x.ndimension() == 2
        and x.itemsize == 4
        and x.get_device() == (x.device.index if x.is_cuda else -1)
    )
    assert norch.is_same_size(x, norch.zeros(2, 3)) and not x.is_same_size(x.T)
    assert x.is_signed() and not norch.is_signed(x > 0) and norch.is_nonzero(x[0, 0])
    assert not norch.is_complex(x) and not x.is_sparse and norch.conj(x) is x and norch.real(x) is x
    assert norch.typename(x) == "norch.Tensor" and norch.typename(1) == "builtins.int"
    with pytest.raises(ValueError, match="ambiguous"):
        norch.is_nonzero(x)


def test_inference_mode() -> None:
    x = norch.ones(2, requires_grad=True)

    @norch.inference_mode()
    def twice(y: Any) -> Any:
        return y * 2

    @norch.inference_mode
    def thrice(y: Any) -> Any:
        return y * 3

    assert not twice(x).requires_grad and not thrice(x).requires_grad and (x * 2).requires_grad
    with norch.inference_mode(False):
        assert (x * 2).requires_grad
    with norch.no_grad(), norch.inference_mode(mode=False):  # as in PyTorch
        assert (x * 2).requires_grad


def test_retains_grad() -> None:
    x = norch.ones(2, requires_grad=True)
    y = x * 2
    assert not x.retains_grad and not y.retains_grad
    y.retain_grad()
    assert y.retains_grad and not (y * 2).retains_grad


def test_sum_to_size() -> None:
    x = norch.ones(2, 3, 4, requires_grad=True)
    assert x.sum_to_size(3, 1).tolist() == [[8], [8], [8]]
    assert x.sum_to_size((4,)).tolist() == [6] * 4
    x.sum_to_size(1).sum().backward()
    assert_close(x.grad, norch.ones(2, 3, 4))
    with pytest.raises(norch.ShapeError, match=r"sum_to_size: \(5,\) does not broadcast to shape"):
        x.sum_to_size(5)
    small = norch.full((2, 2), 200, dtype=norch.uint8)
    assert small.sum_to_size(1, 2).tolist() == [[400, 400]] and small.sum_to_size(2, 2).dtype is norch.uint8


def test_covariance_of_one_variable() -> None:
    row = norch.tensor([[1.0, 3.0]], dtype=norch.float16)
    assert row.cov().shape == () == norch.corrcoef(row).shape
    assert norch.cov(row, aweights=norch.ones(2)).dtype is norch.float32


def test_correlations_without_observations_are_nan() -> None:
    assert norch.corrcoef(norch.zeros(2, 0)).isnan().all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_ldexp_overflows_only_with_its_result(name: str) -> None:
    dtype = getattr(norch, name)
    limits = norch.finfo(dtype)
    least = limits.tiny * limits.eps  # of the subnormal numbers
    steps = math.frexp(limits.max)[1] - math.frexp(least)[1]
    up = norch.ldexp(norch.tensor([least, -least], dtype=dtype), steps)
    assert up.tolist() == [math.ldexp(least, steps), -math.ldexp(least, steps)]
    assert norch.ldexp(up, norch.tensor(-steps)).tolist() == [least, -least]
    below = norch.tensor([limits.max], dtype=dtype)  # a result is rounded once
    rounded = norch.tensor([math.ldexp(limits.max, 1 - steps)], dtype=dtype)
    assert norch.ldexp(below, 1 - steps).tolist() == rounded.tolist()
    for power, kept in ((9, "int16"), (9000, "int16"), (-(2**63), "int64"), (2**63 - 1, "int64")):
        ends = norch.ldexp(norch.tensor([0.0, math.inf, -math.inf], dtype=dtype), norch.tensor(power, dtype=kept))
        assert ends.tolist() == [0.0, math.inf, -math.inf]
    x = norch.tensor([least], dtype=dtype, requires_grad=True)
    norch.ldexp(x, norch.tensor([[3], [4]])).sum().backward()
    assert x.grad.tolist() == [24.0] and norch.ldexp(norch.tensor(2.0**-100), 140).item() == 2.0**40


def test_ldexp_keeps_the_dtype_of_floats() -> None:
    for dtype in (norch.float16, norch.float64):
        for x in (norch.ones(2, dtype=dtype), norch.ones((), dtype=dtype)):
            assert norch.ldexp(x, norch.tensor([2, 15])).dtype is dtype
    assert norch.ldexp(norch.ones(1, dtype=norch.float64), norch.tensor([200])).item() == 2.0**200
    power = norch.tensor(0.3, dtype=norch.float16)  # 0-d: the result has the dtype of the other, and its digits
    assert norch.ldexp(norch.ones(1, dtype=norch.float64), power).item() == pytest.approx(
        2.0 ** power.item(), rel=1e-14
    )


def test_unravelled_indices_are_long() -> None:
    rows, columns = norch.unravel_index(norch.tensor([5, 3], dtype=norch.uint8), (300, 2))
    assert rows.dtype is columns.dtype is norch.int64 and rows.tolist() == [2, 1]


def test_gradients_of_equal_rows() -> None:
    x = norch.ones(2, 3, requires_grad=True)
    for p in (1, 2, 3, math.inf):
        (g,) = norch.autograd.grad(norch.cdist(x, x, p=p).sum(), [x])
        assert g.tolist() == [[0] * 3] * 2, p


@pytest.mark.parametrize("p", [0, 1, 1.5, 2, 3, math.inf])
def test_distances_of_some_rows_at_a_time(torch: Any, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(distance, "_has_kernel", lambda x: False)  # as on CUDA
    steps: list[int] = []
    row_norm_grad = distance._row_norm_grad
    monkeypatch.setattr(
        distance, "_row_norm_grad", lambda g, x, *rest: steps.append(x.shape[-3]) or row_norm_grad(g, x, *rest)
    )
    for shapes in (((5, 3), (2, 3)), ((2, 7, 3), (1, 3)), ((5, 3), (2, 2, 3)), ((0, 3), (2, 3)), ((5, 3), (0, 3))):
        arrays = [rng.standard_normal(shape) for shape in shapes]
        for wanted in ((True, True), (True, False), (False, True)):
            monkeypatch.setattr(distance, "AT_ONCE", 8)
            ours = [norch.tensor(x, requires_grad=to) for x, to in zip(arrays, wanted, strict=True)]
            theirs = [torch.tensor(x, requires_grad=to) for x, to in zip(arrays, wanted, strict=True)]
            found, exact = (m.cdist(*both, p=p) for m, both in ((norch, ours), (torch, theirs)))
            assert_close(found.detach(), norch.tensor(exact.detach().numpy()))
            weight = rng.standard_normal(exact.shape)
            (found * norch.tensor(weight)).sum().backward()
            (exact * torch.tensor(weight)).sum().backward()
            for x, y, to in zip(ours, theirs, wanted, strict=True):
                assert (x.grad is not None) is to
                if to:
                    assert_close(x.grad, norch.tensor(y.grad.numpy()))
        if p and arrays[0].size and arrays[1].size:
            gradgradcheck(lambda a, b: norch.cdist(a, b, p=p), [norch.tensor(x, requires_grad=True) for x in arrays])
    assert {1, 2} <= set(steps)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_distances_of_many_rows(torch: Any, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((*batch, 30, 16)), rng.standard_normal((40, 16))
    b[:5] = a.reshape(-1, 16)[:5]  # equal rows
    exact = np.linalg.norm(a[..., :, None, :] - b, axis=-1)
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-13)):
        x, y = (norch.tensor(value.astype(dtype), requires_grad=True) for value in (a, b))
        theirs = [torch.tensor(value.astype(dtype), requires_grad=True) for value in (a, b)]
        found = norch.cdist(x, y, compute_mode="use_mm_for_euclid_dist")
        assert_close(found, norch.tensor(exact.astype(dtype)), rtol=tolerance, atol=tolerance)
        assert (found.detach().numpy()[exact == 0] == 0).all()
        weight = rng.standard_normal(exact.shape).astype(dtype)
        (found * norch.tensor(weight)).sum().backward()
        exactly = torch.cdist(*theirs, compute_mode="donot_use_mm_for_euclid_dist")
        (exactly * torch.tensor(weight)).sum().backward()
        for ours, other in zip((x, y), theirs, strict=True):
            assert_close(ours.grad, norch.tensor(other.grad.numpy()), rtol=20 * tolerance, atol=20 * tolerance)
        direct = norch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        assert_close(direct, norch.tensor(exact.astype(dtype)), rtol=tolerance, atol=tolerance)
    with pytest.raises(norch.ArgumentError, match="compute_mode"):
        norch.cdist(x, y, compute_mode="fast")


def test_nothing_to_measure() -> None:
    assert norch.cdist(norch.ones(2, 0), norch.ones(3, 0)).tolist() == [[0] * 3] * 2
    assert norch.trapezoid(norch.ones(0)).item() == 0
    assert norch.isin(norch.ones(2), norch.ones(0), invert=True).tolist() == [True, True]
    assert norch.isin(2, norch.arange(3)).item() is True
    one = norch.cov(norch.ones(2, 1))
    assert bool(one.isnan().all())
    assert norch.unravel_index(norch.tensor(5), 7)[0].item() == 5


def test_types() -> None:
    x = norch.ones(2)
    assert x.type() == "norch.FloatTensor" and x.type(norch.int64).dtype is norch.int64
    assert x.type("torch.HalfTensor").dtype is norch.float16 and (x > 0).type() == "norch.BoolTensor"
    with pytest.raises(norch.DTypeError, match="no dtype"):
        x.type("torch.OddTensor")


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 2), (3, 3, 3), (0, 2), (3, 1)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: Any, wrap: bool) -> None:
    wanted = np.zeros(shape, np.float32)
    if wanted.size:
        np.fill_diagonal(wanted, 5, wrap)
    for x in (norch.zeros(shape), norch.zeros(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))):
        assert x.fill_diagonal_(5, wrap) is x
        assert x.tolist() == wanted.tolist()
    x = norch.ones(2, 2, requires_grad=True)
    (x * 2).fill_diagonal_(7).sum().backward()
    assert x.grad.tolist() == [[0, 2], [2, 0]]
    with pytest.raises(norch.ShapeError, match="fill_diagonal_: expected a matrix"):
        norch.ones(2, 3, 4).fill_diagonal_(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: norch.renorm(x, 0, 0, 1.0), "renorm: p is positive and maxnorm not negative, got 0 and 1.0"),
        (lambda x: norch.renorm(x, -1.0, 0, 1.0), "renorm: p is positive"),
        (lambda x: norch.renorm(x, 2, 0, -1.0), "renorm: p is positive"),
        (lambda x: norch.renorm(x, 2, 0, float("nan")), "renorm: p is positive"),
        (lambda x: norch.cdist(x, x, float("nan")), "cdist: p is not negative, not nan"),
        (lambda x: norch.pdist(x, float("nan")), "pdist: p is not negative, not nan"),
    ],
)
def test_orders_of_distances_that_are_no_norm(call: Any, message: str) -> None:
    with pytest.raises(norch.ArgumentError, match=message):
        call(norch.ones(2, 3))


def test_trapezoids_of_integers_and_halves_do_not_overflow(torch: Any) -> None:
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        most = norch.iinfo(getattr(norch, name)).max
        y = norch.tensor([most, most, 0], dtype=getattr(norch, name))
        assert norch.trapezoid(y).dtype == norch.float32
        assert_close(norch.trapezoid(y), norch.tensor(1.5 * most))
        assert_close(norch.cumulative_trapezoid(y, dx=2), norch.tensor([2.0 * most, 3.0 * most]))
        falling = norch.trapezoid(norch.ones(3), y)  # places that fall
        assert falling.dtype == norch.float32 and falling.item() == norch.tensor(-float(most)).item()
        places = norch.tensor([0, 1, 2], dtype=y.dtype)
        assert_close(norch.trapezoid(y, places), norch.tensor(1.5 * most))
        assert norch.trapezoid(y[:0]).dtype == norch.float32
    start = 1_700_000_000_000_000_000  # a difference that floats would round away
    assert norch.trapezoid(norch.ones(2), norch.tensor([start, start + 100])).item() == 100
    half = norch.tensor([60000.0, 60000.0], dtype=norch.float16, requires_grad=True)
    area = norch.trapezoid(half)
    area.backward()
    assert area.dtype == half.grad.dtype == norch.float16 and area.item() == 60000 and half.grad.tolist() == [0.5, 0.5]
    y, x = ([3, 5, 9], [1, 2, 4])
    for name in ("int16", "float16", "bfloat16", "float64"):
        found, wanted = (
            m.trapezoid(m.tensor(y, dtype=getattr(m, name)), m.tensor(x, dtype=m.float32)) for m in (norch, torch)
        )
        assert str(found.dtype)[6:] == str(wanted.dtype)[6:] and found.item() == wanted.item() == 18


def test_renorm_in_place_and_scatter() -> None:
    x = norch.full((2, 2), 3.0)
    assert_close(x.clone().renorm_(2, 0, 1.0), norch.renorm(x, 2, 0, 1.0))
    x.requires_grad_()
    (x * 1).renorm_(2, 0, 1.0).select(1, 0).sum().backward()
    assert_close(x.grad, norch.autograd.grad(norch.renorm(x, 2, 0, 1.0).select(1, 0).sum(), x)[0])
    x = norch.zeros(4, requires_grad=True)
    src = norch.ones(2, requires_grad=True)
    out = norch.as_strided_scatter(x, src, (2,), (2,), 1)
    assert out.tolist() == [0, 1, 0, 1]
    (out * norch.arange(4)).sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 0] and src.grad.tolist() == [1, 3]


@pytest.mark.host  # what is printed names no device
def test_printoptions() -> None:
    x = norch.arange(2000) / 3
    try:
        norch.set_printoptions(precision=1, threshold=5, edgeitems=1, sci_mode=False)
        assert repr(x) == "tensor([  0.0,  ..., 666.3])"
        norch.set_printoptions(sci_mode=True)
        assert repr(x[1:2]) == "tensor([3.3e-01])"
        norch.set_printoptions(profile="full", linewidth=40)
        assert "..." not in repr(x) and max(map(len, repr(x).splitlines())) <= 40
        with pytest.raises(ValueError, match="profile is one of default, short, full, not 'odd'"):
            norch.set_printoptions(profile="odd")
        before = repr(x)
        for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode"):
            with pytest.raises(TypeError, match=f"set_printoptions: {name} must be"):
                norch.set_printoptions(profile="short", **{name: "a"})
            if name != "sci_mode":
                with pytest.raises(ValueError, match=f"set_printoptions: .*{name}.* -1"):
                    norch.set_printoptions(profile="short", **{name: -1})
        with pytest.raises(ValueError, match="threshold starts at 0, got nan"):
            norch.set_printoptions(threshold=float("nan"))
        assert repr(x) == before
    finally:
        norch.set_printoptions(profile="default")
    assert repr(norch.tensor([0.5])) == "tensor([0.5000])"


X = norch.ones(2, 3)
BAD: Any = [
    (lambda: norch.cdist(X, norch.ones(2, 2)), norch.ShapeError, "cdist: rows of 3 and 2 numbers"),
    (lambda: norch.cdist(X[0], X), norch.ShapeError, r"cdist: needs at least 2 dimensions.*\(3,\)"),
    (lambda: norch.cdist(X, X, p="a"), TypeError, "cdist: p must be a number, not str"),
    (lambda: norch.pdist(X, p=None), TypeError, "pdist: p must be a number, not NoneType"),
    (lambda: norch.cdist(X, X, p=-1), norch.ArgumentError, "cdist: p is not negative, not -1"),
    (lambda: norch.cov(norch.ones(1, 1, 1)), norch.ShapeError, "cov: expected at most 2"),
    (lambda: norch.cov(X > 0), norch.DTypeError, "cov: not defined for dtype bool"),
    (lambda: norch.cov(X, fweights=norch.ones(3)), norch.DTypeError, "cov: fweights of float32"),
    (lambda: norch.cov(X, aweights=norch.ones(2)), norch.ShapeError, r"cov: aweights has shape \(2,\) for 3"),
    (lambda: norch.cov(X, aweights=-norch.ones(3)), norch.ArgumentError, "cov: aweights has negative"),
    (lambda: norch.renorm(X[0], 2, 0, 1), norch.ShapeError, "renorm: needs at least 2"),
    (lambda: norch.trapezoid(X, dim=2), IndexError, "trapezoid: dimension 2"),
    (lambda: norch.trapezoid(X, norch.ones(2)), norch.ShapeError, "trapezoid: 2 places for 3 samples"),
    (lambda: norch.trapezoid(X, X, dx=1), norch.ArgumentError, "trapezoid: give x or dx"),
    (lambda: norch.unravel_index(X, (2,)), norch.DTypeError, "unravel_index: indices are integers"),
    (lambda: norch.unravel_index(norch.tensor([6]), (2, 3)), IndexError, "unravel_index: .* out of range"),
    (lambda: norch.numel(None), TypeError, "numel: expected a tensor"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[one[2] for one in BAD])
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_cosines_of_two_dtypes() -> None:
    whole = norch.tensor([[3, 4]])
    for other in (norch.float32, norch.float64):
        found = norch.cosine_similarity(whole, norch.tensor([[1, 0]], dtype=other))
        assert found.dtype is other and found.tolist() == pytest.approx([0.6])
    with pytest.raises(norch.DTypeError):
        norch.cosine_similarity(whole, whole)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "uint8", "int8", "int16"])
@pytest.mark.parametrize("include_self", [True, False])
def test_means_of_more_elements_than_the_dtype_counts(name: str, include_self: bool) -> None:
    dtype = getattr(norch, name)
    x, source = norch.full((2,), 100, dtype=dtype), norch.full((70_000,), 100, dtype=dtype)
    index = norch.zeros(70_000, dtype=norch.int64)
    for found in (
        x.scatter_reduce(0, index, source, "mean", include_self=include_self),
        x.index_reduce(0, index, source, "mean", include_self=include_self),
        x.clone().scatter_reduce_(0, index, source, "mean", include_self=include_self),
    ):
        assert found.dtype is dtype and found.tolist() == [100, 100]
    if dtype.is_floating_point:
        leaf = source.clone().requires_grad_()
        x.scatter_reduce(0, index, leaf, "mean", include_self=False).sum().backward()
        assert leaf.grad.dtype is dtype and leaf.grad[0].item() == norch.tensor(1 / 70_000).to(dtype).item()
