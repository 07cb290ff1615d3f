"""The array API: every function of the standard against array_api_strict; and the libraries that are written for it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import array_api as xp

pytestmark = pytest.mark.host

INTEGERS, FLOATS = ["int8", "int16", "int32", "int64", "uint8"], ["float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]
X = np.array([[3, 0, 1, 2], [1, 5, 1, 0], [2, 2, 4, 7]])
Y = np.array([[1, 2, 1, 3], [2, 1, 1, 1], [3, 2, 1, 2]])


@pytest.fixture
def strict() -> Any:
    return pytest.importorskip("array_api_strict")


def of(namespace: Any, array: Any) -> Any:
    return namespace.asarray(np.asarray(array), dtype=getattr(namespace, np.asarray(array).dtype.name))


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if not hasattr(theirs, "dtype"):
        return ours == theirs
    expected = np.asarray(theirs)
    name = expected.dtype.name
    name = "float32" if name == "float64" and ours.dtype.name == "float32" else name
    assert ours.dtype.name == {"uint64": "int64"}.get(name, name), f"{ours.dtype} for {expected.dtype}"
    assert tuple(ours.shape) == expected.shape, f"{ours.shape} for {expected.shape}"
    np.testing.assert_allclose(ours.numpy(), expected, rtol=2e-5, atol=1e-6)
    return True


def agree(strict: Any, call: Any, *arrays: Any) -> None:
    assert same(call(xp, *(of(xp, a) for a in arrays)), call(strict, *(of(strict, a) for a in arrays)))


def test_all_names_of_the_standard_are_there(strict: Any) -> None:
    lacking = set(strict.__all__) - set(xp.__all__) - {"fft", "uint16", "uint32", "uint64"}
    flags = {name for name in lacking if "flags" in name.lower()}
    assert lacking - flags <= {"Device", "__version__", "broadcast_shapes", "linalg"}, lacking
    assert all(hasattr(xp, name) for name in xp.__all__) and dir(xp) == xp.__all__
    assert set(strict.linalg.__all__) - {"eig", "eigvals"} <= set(xp.linalg.__all__)


UNARY = {
    "abs positive negative square sign": INTEGERS + FLOATS,
    "ceil floor trunc round": INTEGERS + FLOATS,
    "isfinite isinf isnan": INTEGERS + FLOATS,
    "bitwise_invert": ["bool", *INTEGERS],
    "logical_not": ["bool"],
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2": FLOATS,
    "reciprocal signbit sin sinh sqrt tan tanh": FLOATS,
}
BINARY = {
    "add subtract multiply maximum minimum floor_divide remainder pow": INTEGERS + FLOATS,
    "less less_equal greater greater_equal": INTEGERS + FLOATS,
    "equal not_equal": DTYPES,
    "bitwise_and bitwise_or bitwise_xor": ["bool", *INTEGERS],
    "bitwise_left_shift bitwise_right_shift": INTEGERS,
    "logical_and logical_or logical_xor": ["bool"],
    "atan2 copysign divide hypot logaddexp nextafter": FLOATS,
}


def cases(table: Any) -> list[tuple[str, str]]:
    return [(name, dtype) for names, dtypes in table.items() for name in names.split() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), cases(UNARY))
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_unary(strict: Any, name: str, dtype: str) -> None:
    x = (X / 8 if dtype in FLOATS else X).astype(dtype)
    x = x + x.dtype.type(1) if name in ("acosh", "reciprocal") else x
    agree(strict, lambda ns, a: getattr(ns, name)(a), x)
    if dtype in FLOATS:
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, 2.5, 0.5, -0.5], dtype)
        agree(strict, lambda ns, a: getattr(ns, name)(a), edges)


@pytest.mark.parametrize(("name", "dtype"), cases(BINARY))
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_binary(strict: Any, name: str, dtype: str) -> None:
    x, y = X.astype(dtype), Y.astype(dtype)
    call = lambda ns, a, b: getattr(ns, name)(a, b)  # noqa: E731
    agree(strict, call, x, y)
    agree(strict, call, x, y[0])
    agree(strict, call, x[:, :1], y[0, 0])
    if name not in ("atan2", "hypot", "logaddexp", "copysign", "nextafter"):
        scalar = bool if dtype == "bool" else float if dtype in FLOATS else int
        agree(strict, lambda ns, a: getattr(ns, name)(a, scalar(2)), x)
        agree(strict, lambda ns, a: getattr(ns, name)(scalar(2), a), y)
    if dtype in FLOATS:
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, 2.5], dtype)
        first, second = (np.ravel(each) for each in np.meshgrid(edges, edges))
        if name not in (
            "floor_divide",
            "remainder",
            "maximum",
            "minimum",
        ):  # of infinities the standard leaves them open
            agree(strict, call, first, second)


@pytest.mark.parametrize("dtypes", [*itertools.product(DTYPES, DTYPES)])
def test_promotion(strict: Any, dtypes: Any) -> None:
    a, b = (np.ones((2, 2), dtype) for dtype in dtypes)
    try:
        expected = strict.result_type(of(strict, a), of(strict, b))
    except TypeError:
        return  # of a kind each: the standard leaves it open
    assert xp.result_type(of(xp, a), of(xp, b)) is getattr(xp, np.dtype(str(expected).partition(".")[2]).name)
    agree(strict, lambda ns, x, y: ns.concat([x, y]), a, b)
    agree(strict, lambda ns, x, y: ns.where(x == y, x, y), a, b[0, 0])
    if dtypes[0] != "bool":
        agree(strict, lambda ns, x, y: ns.add(x, y), a, b[0, 0])
        agree(strict, lambda ns, x, y: ns.add(x, y), a[0, 0], b)


@pytest.mark.parametrize(
    "dtypes", [("float32", "float64"), ("float64", "float32"), ("int8", "int64"), ("uint8", "int8")]
)
def test_products_promote(strict: Any, dtypes: Any) -> None:
    a, b = X[:, :3].astype(dtypes[0]), Y[:, :3].astype(dtypes[1])
    agree(strict, lambda ns, x, y: [ns.matmul(x, y), ns.vecdot(x, y), ns.tensordot(x, y, axes=1)], a, b)
    agree(strict, lambda ns, x, y: [ns.linalg.outer(x[0, :], y[0, :]), ns.linalg.cross(x, y)], a, b)
    if a.dtype.kind == "f":
        agree(strict, lambda ns, x, y: ns.linalg.solve(x, y), a, b)


def test_arguments_as_numpy_has_them() -> None:
    x = xp.asarray([1, 4, 9])
    assert xp.diff(x, 2).tolist() == [2] and xp.expand_dims(x, 1).shape == (3, 1)
    assert xp.where(x > 3)[0].tolist() == [1, 2]


AXES = [None, 0, 1, -1, (0, 1), ()]


REDUCTIONS = {
    "all any count_nonzero": DTYPES,
    "sum prod max min argmax argmin": INTEGERS + FLOATS,
    "mean var std": FLOATS,
}


@pytest.mark.parametrize(("name", "dtype"), cases(REDUCTIONS))
def test_reductions(strict: Any, name: str, dtype: str) -> None:
    x = X.astype(dtype)
    for axis, keepdims in itertools.product(AXES, [False, True]):
        if name.startswith("arg") and isinstance(axis, tuple):
            continue
        agree(strict, lambda ns, a: getattr(ns, name)(a, axis=axis, keepdims=keepdims), x)  # noqa: B023
    agree(strict, lambda ns, a: getattr(ns, name)(a), x[0, 0])
    if name in ("var", "std"):
        agree(strict, lambda ns, a: getattr(ns, name)(a, axis=1, correction=1.0), x)
    if name in ("sum", "prod"):
        agree(strict, lambda ns, a: getattr(ns, name)(a, dtype=ns.float64), x)
    if name in ("sum", "prod", "all", "any", "count_nonzero"):
        agree(strict, lambda ns, a: getattr(ns, name)(a, axis=0), x[:0])


CALLS = {
    "arange": lambda ns: [ns.arange(5), ns.arange(1, 4), ns.arange(5, 0, -2), ns.arange(3, 1), ns.arange(0, 1, 0.25)],
    "linspace": lambda ns: [ns.linspace(0, 1, 5), ns.linspace(0, 1, 5, endpoint=False), ns.linspace(2, 3, 0)],
    "new": lambda ns: [
        ns.zeros((2, 3)),
        ns.ones(3, dtype=ns.int8),
        ns.full((2,), 7),
        ns.full((), 2.5),
        ns.full(2, True),
    ],
    "eye": lambda ns: [ns.eye(3), ns.eye(2, 4, k=1), ns.eye(4, 2, k=-2), ns.eye(2, k=5), ns.eye(0)],
    "like": lambda ns, a: [
        ns.zeros_like(a),
        ns.ones_like(a, dtype=ns.float64),
        ns.full_like(a, 3),
        ns.empty_like(a) * 0,
    ],
    "triangles": lambda ns, a: [ns.tril(a), ns.triu(a, k=1), ns.tril(a, k=-1)],
    "meshgrid": lambda ns, a: ns.meshgrid(a[0, :], a[1, :2]) + ns.meshgrid(a[0, :], a[1, :2], indexing="ij"),
    "broadcast": lambda ns, a: [*ns.broadcast_arrays(a, a[:1, :]), ns.broadcast_to(a[0, :], (2, 4))],
    "astype": lambda ns, a: [ns.astype(a, ns.float32), ns.astype(a, ns.bool), ns.astype(a, a.dtype, copy=False)],
    "can_cast": lambda ns, a: [
        ns.can_cast(ns.int8, ns.int16),
        ns.can_cast(ns.int16, ns.int8),
        ns.can_cast(a, ns.int64),
    ],
    "isdtype": lambda ns: [
        ns.isdtype(dtype, kind)
        for dtype in (ns.bool, ns.int8, ns.uint8, ns.float32)
        for kind in ("bool", "integral", "signed integer", "unsigned integer", "real floating", "numeric", ns.int8)
        + ("complex floating", ("bool", ns.float32))
    ],
    "concat": lambda ns, a: [ns.concat([a, a]), ns.concat((a, a), axis=-1), ns.concat([a, a[0, :1]], axis=None)],
    "stack": lambda ns, a: [ns.stack([a, a]), ns.stack([a, a], axis=-1), *ns.unstack(a), *ns.unstack(a, axis=1)],
    "axes": lambda ns, a: (
        [ns.expand_dims(a, axis=1), ns.expand_dims(a, axis=-1), ns.squeeze(a[:, :1], 1)]
        + [ns.squeeze(a[:1, None, :], (0, 1)), ns.permute_dims(a, (1, 0)), ns.moveaxis(a, 0, -1)]
    ),
    "flip": lambda ns, a: [ns.flip(a), ns.flip(a, axis=0), ns.flip(a, axis=(0, 1)), ns.flip(a[0, 0])],
    "roll": lambda ns, a: [ns.roll(a, 2), ns.roll(a, -1, axis=1), ns.roll(a, (1, 2), axis=(0, 1))],
    "repeat": lambda ns, a: [ns.repeat(a, 2), ns.repeat(a, 2, axis=1), ns.repeat(a, ns.asarray([0, 1, 2]), axis=0)],
    "tile": lambda ns, a: [
        ns.tile(a, (2,)),
        ns.tile(a, (2, 1, 3)),
        ns.reshape(a, (2, -1)),
        ns.reshape(a, (12,), copy=True),
    ],
    "take": lambda ns, a: [ns.take(a, ns.asarray([2, 0, -1]), axis=1), ns.take(a[0, :], ns.asarray([1]))],
    "take_along_axis": lambda ns, a: [ns.take_along_axis(a, ns.argsort(a, axis=0), axis=0)],
    "nonzero": lambda ns, a: [*ns.nonzero(a), *ns.nonzero(a[0, :])],
    "searchsorted": lambda ns, a: [
        ns.searchsorted(ns.asarray([0, 2, 2, 5]), a, side=side) for side in ("left", "right")
    ],
    "sort": lambda ns, a: [
        ns.sort(a),
        ns.sort(a, axis=0, descending=True),
        ns.argsort(a),
        ns.argsort(a, descending=True),
    ],
    "unique_values": lambda ns, a: [ns.sort(ns.unique_values(a))],
    "unique_all": lambda ns, a: ns.unique_all(a),
    "unique_counts": lambda ns, a: [*ns.unique_counts(a), *ns.unique_inverse(a)],
    "unique of nothing": lambda ns, a: ns.unique_all(a[:0, :]),
    "cumulative": lambda ns, a: (
        [ns.cumulative_sum(a, axis=1), ns.cumulative_prod(a, axis=0)]
        + [ns.cumulative_sum(a[0, :], include_initial=True), ns.cumulative_prod(a, axis=1, include_initial=True)]
    ),
    "diff": lambda ns, a: [ns.diff(a), ns.diff(a, axis=0, n=2), ns.diff(a, prepend=a[:, :1], append=a[:, :1])],
    "clip": lambda ns, a: [ns.clip(a, 1, 3), ns.clip(a, min=a[0, :]), ns.clip(a, max=2), ns.clip(a)],
    "tensordot": lambda ns, a: (
        [ns.tensordot(a, a, axes=((1,), (1,))), ns.tensordot(a, a, axes=2), ns.vecdot(a, a)]
        + [ns.vecdot(a, a, axis=-2), ns.matrix_transpose(a), ns.matmul(a, ns.matrix_transpose(a)), a.mT]
    ),
    "indexing": lambda ns, a: [
        a[1, ...],
        a[:, None, ::2],
        a[a > 2],
        a[ns.asarray([0, 2]), ns.asarray([1, 0])],
        a[::-1, :],
    ],
    "operators": lambda ns, a: [a + 1, 2 - a, a @ a.mT, a == 1, -a, abs(a), a // 2, a % 3, a**2, a & 1, a << 1, ~a],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_functions(strict: Any, name: str, dtype: str) -> None:
    call: Any = CALLS[name]
    agree(strict, call, *[X.astype(dtype)] * (call.__code__.co_argcount - 1))


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_values", "sort", "nonzero", "take_along_axis"])
def test_functions_of_floats(strict: Any, name: str) -> None:
    agree(strict, CALLS[name], X / 4)


def test_each_nan_is_a_value_of_its_own(strict: Any) -> None:
    agree(strict, lambda ns, a: ns.unique_counts(a), np.array([np.nan, 1.0, np.nan, 1.0]))


S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
LINALG = {
    "cholesky": lambda ns, a: [ns.linalg.cholesky(a), ns.linalg.cholesky(a, upper=True)],
    "cross": lambda ns, a: [ns.linalg.cross(a, a[:1, :]), ns.linalg.cross(a, a + 1, axis=-2)],
    "det": lambda ns, a: [ns.linalg.det(a), *ns.linalg.slogdet(a), ns.linalg.inv(a), ns.linalg.pinv(a)],
    "diagonal": lambda ns, a: [ns.linalg.diagonal(a), ns.linalg.diagonal(a, offset=-1), ns.linalg.trace(a, offset=1)],
    "eigh": lambda ns, a: [ns.linalg.eigvalsh(a), ns.linalg.eigh(a).eigenvalues, abs(ns.linalg.eigh(a).eigenvectors)],
    "norms": lambda ns, a: [
        ns.linalg.matrix_norm(a, ord=ord, keepdims=keepdims)
        for ord in ("fro", "nuc", 1, 2, ns.inf)
        for keepdims in (False, True)
    ],
    "vector norms": lambda ns, a: [
        ns.linalg.vector_norm(a, axis=axis, ord=ord, keepdims=keepdims)
        for axis in (None, 0, (0, 1))
        for ord in (1, 2, 0, ns.inf)
        for keepdims in (False, True)
    ],
    "powers": lambda ns, a: [ns.linalg.matrix_power(a, 3), ns.linalg.matrix_power(a, -1), ns.linalg.matrix_rank(a)],
    "products": lambda ns, a: [ns.linalg.outer(a[0, :], a[1, :]), ns.linalg.matmul(a, a), ns.linalg.vecdot(a, a)],
    "qr": lambda ns, a: [abs(x) for mode in ("reduced", "complete") for x in ns.linalg.qr(a[:, :2], mode=mode)],
    "solve": lambda ns, a: [ns.linalg.solve(a, a[:, 0]), ns.linalg.solve(ns.stack([a, a + 1]), a)],
    "svd": lambda ns, a: [ns.linalg.svdvals(a), *map(abs, ns.linalg.svd(a[:, :2], full_matrices=False))],
}


@pytest.mark.parametrize("name", LINALG)
@pytest.mark.parametrize("dtype", FLOATS)
def test_linalg(strict: Any, name: str, dtype: str) -> None:
    pytest.importorskip("scipy")
    agree(strict, LINALG[name], S.astype(dtype))


def test_complex_numbers(strict: Any) -> None:
    z = np.array([[1 + 2j, 0, -3j], [2, -1 - 1j, 0.5j]], np.complex64)
    agree(strict, lambda ns, a: [ns.sign(a), ns.real(a), ns.imag(a), ns.conj(a), ns.abs(a), ns.isfinite(a)], z)
    agree(strict, lambda ns, a: [ns.vecdot(a, a), ns.matmul(a, ns.matrix_transpose(a)), ns.sum(a, axis=0), a * 2], z)
    agree(strict, lambda ns, a: [ns.isdtype(a.dtype, kind) for kind in ("complex floating", "numeric", "bool")], z)
    for dtype, expected in (("float32", "complex64"), ("float64", "complex128"), ("int32", "complex64")):
        assert xp.result_type(getattr(xp, dtype), 1j) is getattr(xp, expected)


def test_what_the_namespace_says_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {
        "real floating": norch.float32,
        "complex floating": norch.complex64,
        "integral": norch.int64,
        "indexing": norch.int64,
    }
    assert set(info.dtypes(kind="unsigned integer")) >= {"uint8"} and info.dtypes(kind=("bool",)) == {
        "bool": norch.bool
    }
    assert info.default_device() in info.devices() and info.capabilities()["boolean indexing"]
    x = norch.ones(2, device=DEVICE)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2023.12")
    with pytest.raises(ValueError, match="2030.12"):
        x.__array_namespace__(api_version="2030.12")
    assert x.to_device("cpu").tolist() == [1, 1]
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


def test_what_is_refused() -> None:
    x = norch.arange(6).reshape(2, 3)
    for call, match in (
        (lambda: xp.squeeze(x, 0), "has not size 1"),
        (lambda: xp.reshape(x.T, (6,), copy=False), "takes a copy"),
        (lambda: xp.take(x, x[0]), "axis is needed"),
        (lambda: xp.cumulative_sum(x), "axis is needed"),
        (lambda: xp.nonzero(x[0, 0]), "0-d"),
        (lambda: xp.isdtype(x.dtype, "float"), "no kind of dtype"),
        (lambda: xp.result_type(), "expected an array"),
        (lambda: xp.asarray([1], copy=False), "without a copy"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_gradients_pass() -> None:
    x = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    xp.sum(xp.multiply(x, xp.exp(x))).backward()
    assert norch.allclose(x.grad, (1 + x.detach()) * x.detach().exp())


# ---- libraries -----------------------------------------------------------------------------------------------------


def test_array_api_compat() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = norch.ones(2, 3)
    assert compat.array_namespace(x, 1.0, None) is xp and compat.is_array_api_obj(x)
    assert compat.device(x) == x.device and compat.size(x) == 6 and compat.to_device(x, "cpu") is x


def test_einops() -> None:
    einops = pytest.importorskip("einops.array_api")
    x = norch.arange(24.0).reshape(2, 3, 4)
    assert norch.equal(einops.rearrange(x, "a b c -> c (b a)"), x.permute(2, 1, 0).reshape(4, 6))
    assert norch.equal(einops.reduce(x, "a b c -> a c", "mean"), x.mean(1))
    assert norch.equal(einops.reduce(x, "a (b d) c -> a b c", "max", d=3), x.amax(1, keepdim=True))
    assert norch.equal(einops.repeat(x[0], "b c -> b n c", n=2), x[0].unsqueeze(1).expand(3, 2, 4))
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert packed.shape == (2, 4, 4) and norch.equal(einops.unpack(packed, shapes, "a * c")[1], x[:, 0])
    assert einops.asnumpy(x).shape == (2, 3, 4)


@pytest.mark.parametrize("equation", ["ij,jk,kl->il", "ijk,ikl,lm->jm", "ab,ac,ad->bcd", "ij,ij->", "ii,ij->j"])
def test_opt_einsum(equation: str) -> None:
    contract = pytest.importorskip("opt_einsum").contract
    sizes = dict(zip("abcdijklm", range(2, 11)))
    arrays = [np.random.default_rng(0).random([sizes[i] for i in part]) for part in equation.split("->")[0].split(",")]
    tensors = [norch.from_numpy(a).requires_grad_() for a in arrays]
    found = contract(equation, *tensors)
    assert type(found) is norch.Tensor
    np.testing.assert_allclose(found.detach().numpy(), np.einsum(equation, *arrays))
    found.sum().backward()
    assert tensors[0].grad is not None


def test_names_of_numpy_that_opt_einsum_uses() -> None:
    x = norch.arange(24).reshape(2, 3, 4)
    assert norch.equal(norch.transpose(x, (2, 0, 1)), x.permute(2, 0, 1)) and x.transpose((1, 0, 2)).shape == (3, 2, 4)
    assert norch.tensordot(x, x, axes=([0, 1], [0, 1])).shape == (4, 4)
    with pytest.raises((TypeError, norch.Error)):
        norch.transpose(x, 1)


SKLEARN = """
import sys
import numpy as np, norch, sklearn, warnings
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

x, y = make_classification(120, 6, n_informative=4, random_state=0)
r, t = make_regression(120, 6, noise=1.0, random_state=0)
checks = {
    "PCA": lambda c: PCA(3, svd_solver="full").fit(c(x)).transform(c(x)),
    "PCA random": lambda c: PCA(3, svd_solver="randomized", random_state=0,
                                power_iteration_normalizer="QR").fit_transform(c(x)),
    "Ridge": lambda c: Ridge(1.0, solver="svd").fit(c(r), c(t)).predict(c(r)),
    "LogisticRegression": lambda c: LogisticRegression(tol=1e-9).fit(c(x), c(y)).predict_proba(c(x)),
    "LDA": lambda c: LinearDiscriminantAnalysis().fit(c(x), c(y)).predict_proba(c(x)),
    "scaler": lambda c: MinMaxScaler().fit_transform(c(x)),
    "standard scaler": lambda c: StandardScaler().fit_transform(c(x)),
    "max scaler": lambda c: MaxAbsScaler().fit_transform(c(x)),
    "normalizer": lambda c: Normalizer().fit_transform(c(x)),
    "accuracy": lambda c: accuracy_score(c(y), c(y[::-1].copy())),
    "errors": lambda c: mean_squared_error(c(t), c(t * 2)),
    "roc": lambda c: roc_auc_score(c(y), c(np.abs(x[:, 0]))),
    "r2": lambda c: r2_score(c(t), c(t * 1.1)),
    "distances": lambda c: euclidean_distances(c(x), c(x[:5] + 1)),
    "cosine": lambda c: cosine_similarity(c(x), c(x[:5])),
    "split": lambda c: train_test_split(c(x), c(y), random_state=0)[0],
}
failed = []
for name, check in checks.items():
    expected = check(lambda a: a)
    with sklearn.config_context(array_api_dispatch=True):
        try:
            found = check(lambda a: norch.from_numpy(a.copy()).to(sys.argv[1]))
        except Exception as error:
            import traceback
            failed.append(f"{name}: {type(error).__name__}: {error}\\n{traceback.format_exc()[-900:]}")
            continue
    if isinstance(expected, np.ndarray):
        if type(found) is not norch.Tensor:
            failed.append(f"{name}: {type(found)}")
            continue
        found = found.cpu().numpy()
    if not np.allclose(np.abs(found), np.abs(expected), rtol=1e-5, atol=1e-7):
        failed.append(f"{name}: {found} is not {expected}")
sys.exit("\\n".join(failed) or None)
"""


@pytest.mark.slow
def test_scikit_learn_dispatches() -> None:
    pytest.importorskip("sklearn")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SKLEARN, DEVICE], env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
