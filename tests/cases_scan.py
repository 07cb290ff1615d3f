"""The cases of scans, softmax and order. See case.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import FLOAT_NAMES, NUMBER_NAMES, WHOLE_NAMES, Array, Shape, add, wide

# ---- scans ----------------------------------------------------------------------------------------------------------

LINES: tuple[tuple[Shape, ...], ...] = (((3, 5),), ((2, 3, 4),), ((7,),), ((),), ((4, 67),), ((70, 33),), ((0, 3),))
F_ONLY: dict[str, Any] = {"dtypes": FLOAT_NAMES}


def _along(f: Any) -> Any:
    """f(x, axis) for a 0-d x too."""
    return lambda x, axis: f(x, axis) if x.ndim else f(x.reshape(1), 0).reshape(())


@_along
def _running_sum(x: Array, axis: int) -> Array:
    return np.cumsum(x, axis, dtype=np.float64 if x.dtype.kind == "f" else np.int64)


@_along
def _running_product(x: Array, axis: int) -> Array:
    return np.cumprod(x, axis, dtype=np.float64 if x.dtype.kind == "f" else np.int64)


@_along
def _running_logsumexp(x: Array, axis: int) -> Array:
    return np.logaddexp.accumulate(x, axis)


def _running_places(above: Any) -> Any:
    @_along
    def reference(x: Array, axis: int) -> Array:
        x = np.moveaxis(x, axis, 0)
        places, best = np.zeros(x.shape, np.int64), x[:1].copy()
        at = np.zeros(x.shape[1:], np.int64)
        for i in range(len(x)):
            take = np.isnan(x[i]) | above(x[i], best[0])
            best[0] = np.where(take, x[i], best[0])
            at = np.where(take, i, at)
            places[i] = at
        return np.moveaxis(places, 0, axis)

    return reference


def _gathered(x: Array, places: Array, axis: int) -> Array:
    return np.take_along_axis(x, places, axis) if x.ndim else x


for _dim in (0, -1):
    add(
        f"cumsum dim={_dim}",
        "cumsum",
        lambda m, x, d=_dim: m.cumsum(x, d),
        lambda x, d=_dim: _running_sum(x, d),
        shapes=LINES,
        result="sum",
        grad=2,
        scaled=True,
    )
    add(
        f"cumprod dim={_dim}",
        "cumprod",
        lambda m, x, d=_dim: m.cumprod(x, d),
        lambda x, d=_dim: _running_product(x, d),
        shapes=LINES,
        domains=wide(-1.5, 1.5),
        result="sum",
        grad=2,
        slack=40,
        torch_edges="inf * 0 comes and goes with the order",
    )
    add(
        f"logcumsumexp dim={_dim}",
        "logcumsumexp",
        lambda m, x, d=_dim: m.logcumsumexp(x, d),
        lambda x, d=_dim: _running_logsumexp(x, d),
        shapes=LINES,
        grad=2,
        slack=4,
        scaled=True,
        torch_edges="its derivative is NaN beside infinities",
        **F_ONLY,
    )
    for _name, _places in (("cummax", _running_places(np.greater_equal)), ("cummin", _running_places(np.less_equal))):
        add(
            f"{_name} dim={_dim}",
            _name,
            lambda m, x, d=_dim, n=_name: tuple(getattr(m, n)(x, d)),
            lambda x, d=_dim, f=_places: (_gathered(x, f(x, d), d), f(x, d)),
            shapes=LINES,
            result="same index",
            grad=2,
        )
for _name in ("cumsum", "cumprod"):
    add(
        f"{_name} in float64",
        "",
        lambda m, x, n=_name: getattr(m, n)(x, 0, dtype=m.float64),
        lambda x, n=_name: getattr(np, n)(x, 0, dtype=float),
        domains=wide(-1.5, 1.5),
        result="float64",
        grad=2,
        slack=4,
        scaled=True,
        torch_edges="inf * 0 comes and goes with the order",
    )
    add(
        f"{_name} in int16",
        "",
        lambda m, x, n=_name: getattr(m, n)(x, 1, dtype=m.int16),
        lambda x, n=_name: getattr(np, n)(x, 1, dtype=np.int64),
        result="int16",
        dtypes=WHOLE_NAMES,
    )
    add(
        f"{_name}_",
        "",
        lambda m, x, n=_name: getattr(x.clone(), n + "_")(1),
        lambda x, n=_name: getattr(np, n)(x, 1),
        domains=wide(-1.5, 1.5),
        dtypes=NUMBER_NAMES,
        grad=2,
        slack=40,
        torch_edges="inf * 0 comes and goes with the order",
    )
for _given in ({}, {"n": 2}, {"dim": 0}, {"n": 9}, {"n": 0}):
    add(
        f"diff {_given}",
        "diff",
        lambda m, x, given=_given: m.diff(x, **given),
        lambda x, given=_given: np.diff(x, given.get("n", 1), given.get("dim", -1)),
        shapes=(((3, 5),), ((7,),), ((2, 3, 4),), ((0, 3),)),
        grad=2,
        scaled=True,
    )
add(
    "diff with ends",
    "",
    lambda m, x, a, b: m.diff(x, dim=0, prepend=a, append=b),
    lambda x, a, b: np.diff(x, axis=0, prepend=a, append=b),
    domains=((-3.0, 3.0),) * 3,
    shapes=(((3, 5), (1, 5), (2, 5)),),
    grad=2,
    scaled=True,
)
add(
    "bincount",
    "bincount",
    lambda m, x: m.bincount(x, minlength=4),
    lambda x: np.bincount(x, minlength=4),
    domains=wide(0, 9),
    shapes=(((20,),), ((0,),), ((1,),)),
    result="index",
    dtypes=tuple(name for name in WHOLE_NAMES if name != "bool"),
    edges=False,
)
add(
    "bincount weights",
    "",
    lambda m, x, w: m.bincount(x, w),
    lambda x, w: np.bincount(x, w),
    domains=(("index"), (-3.0, 3.0)),
    shapes=(((20,), (20,)),),
    index_below=5,
    result="same",
    dtypes=("float32", "float64"),
    scaled=True,
    edges=False,
)

# ---- softmax --------------------------------------------------------------------------------------------------------


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - (np.max(x, axis=axis, keepdims=True) if x.ndim and x.size else x)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)) if x.ndim else shifted


def _softmax(x: Array, axis: int) -> Array:
    return np.exp(_log_softmax(x, axis))


for _dim in (0, -1):
    _shapes = (((3, 5),), ((4, 67),), ((2, 3, 4),), ((1,),), ((),), ((70, 33),), ((2, 1030),))
    add(
        f"softmax dim={_dim}",
        "softmax",
        lambda m, x, d=_dim: m.softmax(x, d),
        lambda x, d=_dim: _softmax(x, d),
        shapes=_shapes,
        result="float",
        grad=2,
        slack=4,
        scaled=True,
    )
    add(
        f"log_softmax dim={_dim}",
        "log_softmax",
        lambda m, x, d=_dim: m.log_softmax(x, d),
        lambda x, d=_dim: _log_softmax(x, d),
        shapes=_shapes,
        result="float",
        grad=2,
        slack=4,
        scaled=True,
    )
add(
    "softmax dtype",
    "",
    lambda m, x: m.softmax(x, 0, dtype=m.float64),
    lambda x: _softmax(x.astype(float), 0),
    result="float64",
    grad=2,
    slack=4,
    scaled=True,
)

# ---- order ----------------------------------------------------------------------------------------------------------


def _argsort(x: Array, axis: int, descending: bool = False) -> Array:
    """Stable, NaN the greatest."""
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    flipped = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - flipped


for _dim in (0, -1):
    for _descending in (False, True):
        add(
            f"sort dim={_dim} descending={_descending}",
            "sort",
            lambda m, x, d=_dim, r=_descending: tuple(m.sort(x, dim=d, descending=r, stable=True)),
            lambda x, d=_dim, r=_descending: (_gathered(x, _argsort(x, d, r), d), _argsort(x, d, r)),
            shapes=(*LINES, ((300, 3),)),
            result="same index",
            grad=2,
        )
        add(
            f"argsort dim={_dim} descending={_descending}",
            "argsort",
            lambda m, x, d=_dim, r=_descending: m.argsort(x, dim=d, descending=r, stable=True),
            lambda x, d=_dim, r=_descending: _argsort(x, d, r),
            shapes=LINES,
            result="index",
        )
        for _k in (1, 3):
            add(
                f"topk {_k} dim={_dim} largest={_descending}",
                "topk",
                lambda m, x, k=_k, d=_dim, r=_descending: m.topk(x, k, d, r).values,
                lambda x, k=_k, d=_dim, r=_descending: np.take(_gathered(x, _argsort(x, d, r), d), range(k), d),
                shapes=(((3, 5),), ((5, 67, 3),), ((67, 33),)),
                grad=2,
                torch_edges="equal elements",
            )
add("msort", "msort", lambda m, x: m.msort(x), lambda x: np.sort(x, 0), shapes=(((3, 5),), ((7,),)), grad=2)


def _median(x: Array, axis: int | None, keepdims: bool, ignore: bool) -> Array:
    if axis is None:
        return _median(x.reshape(-1), 0, False, ignore)
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    count = (~nan).sum(axis, keepdims=True) if ignore else np.full(1, x.shape[axis]).reshape([1] * x.ndim)
    place = np.broadcast_to(np.maximum(count - 1, 0) // 2, np.take(x, [0], axis).shape)
    values = np.take_along_axis(np.sort(x, axis), place, axis)
    if not ignore:
        values = np.where(nan.any(axis, keepdims=True), np.nan, values) if nan.any() else values
    return values if keepdims else values.squeeze(axis)


for _name, _ignore in (("median", False), ("nanmedian", True)):
    add(
        f"{_name} all",
        _name,
        lambda m, x, n=_name: getattr(m, n)(x),
        lambda x, i=_ignore: _median(x, None, False, i),
        shapes=(((3, 5),), ((),), ((4, 67),), ((2,),)),
        grad=2,
    )
    for _dim, _keep in ((0, False), (-1, True)):
        add(
            f"{_name} dim={_dim} keepdim={_keep}",
            _name,
            lambda m, x, n=_name, d=_dim, k=_keep: getattr(m, n)(x, d, k).values,
            lambda x, i=_ignore, d=_dim, k=_keep: _median(x, d, k, i),
            shapes=(((3, 5),), ((4, 67),), ((2, 3, 4),)),
            grad=2,
            torch_edges="which of several NaNs takes the gradient is its own affair",
        )


def _quantiles(f: Any) -> Any:
    def reference(x: Array, q: float, axis: Any, keepdims: bool, method: str) -> Array:
        return np.asarray(f(x, q, axis=axis, keepdims=keepdims, method=method))

    return reference


for _name, _quantile in (("quantile", _quantiles(np.quantile)), ("nanquantile", _quantiles(np.nanquantile))):
    for _method, _q in (("linear", 0.3), ("linear", 1.0), ("lower", 0.3), ("higher", 0.6), ("midpoint", 0.4)):
        for _dim, _keep in ((None, False), (0, True), (-1, False)):
            add(
                f"{_name} {_method} {_q} dim={_dim}",
                _name,
                lambda m, x, n=_name, q=_q, d=_dim, k=_keep, i=_method: getattr(m, n)(x, q, d, k, interpolation=i),
                lambda x, f=_quantile, q=_q, d=_dim, k=_keep, i=_method: f(x, q, d, k, i),
                shapes=(((3, 5),), ((2, 3, 4),)),
                dtypes=("float32", "float64"),
                grad=2,
                slack=4,
                scaled=True,
                edges=False,
            )
add(
    "quantile of several",
    "",
    lambda m, x, q: m.quantile(x, q, 1),
    lambda x, q: np.quantile(x, q, 1),
    domains=((-3.0, 3.0), (0.1, 0.9)),
    shapes=(((3, 5), (2,)), ((2, 3, 4), (3,))),
    dtypes=("float32", "float64"),
    grad=2,
    slack=8,
    scaled=True,
    edges=False,
)


def _mode(x: Array, axis: int) -> Array:
    def most(line: Array) -> Any:
        kinds, counts = np.unique(line, return_counts=True)
        return kinds[np.argmax(counts)]

    return np.apply_along_axis(most, axis, x)


for _dim in (0, -1):
    add(
        f"mode dim={_dim}",
        "mode",
        lambda m, x, d=_dim: m.mode(x, d).values,
        lambda x, d=_dim: _mode(x, d),
        shapes=(((3, 5),), ((4, 67),), ((2, 3, 4),)),
        grad=2,
        edges=False,
    )


for _k, _dim in ((1, 0), (2, -1), (3, 1)):
    add(
        f"kthvalue k={_k} dim={_dim}",
        "kthvalue",
        lambda m, x, k=_k, d=_dim: m.kthvalue(x, k, d).values,
        lambda x, k=_k, d=_dim: np.sort(x, d).take(k - 1, d),
        shapes=(((3, 5),), ((4, 67),), ((2, 3, 4),)),
        grad=2,
        edges=False,
    )


def _unique(x: Array) -> Any:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(x.shape), counts


def _consecutive(x: Array) -> Any:
    flat = x.reshape(-1)
    fresh = np.concatenate([flat[:1] == flat[:1], flat[1:] != flat[:-1]]) if flat.size else np.zeros(0, bool)
    fresh[:1] = True
    starts = np.flatnonzero(fresh)
    return flat[starts], (np.cumsum(fresh) - 1).reshape(x.shape), np.diff(np.append(starts, flat.size))


add(
    "unique",
    "unique",
    lambda m, x: m.unique(x, return_inverse=True, return_counts=True),
    _unique,
    shapes=(((3, 5),), ((),), ((4, 67),), ((0,),)),
    result="same index index",
)
add(
    "unique_consecutive",
    "unique_consecutive",
    lambda m, x: m.unique_consecutive(x, return_inverse=True, return_counts=True),
    _consecutive,
    shapes=(((3, 5),), ((),), ((4, 67),), ((0,),)),
    result="same index index",
)
add(
    "unique dim=1",
    "",
    lambda m, x: m.unique(x, dim=1),
    lambda x: np.unique(x, axis=1),
    domains=wide(0, 1.4),
    shapes=(((1, 9),), ((2, 7),), ((2, 5, 2),)),
    edges=False,
)


for _right in (False, True):
    add(
        f"searchsorted right={_right}",
        "searchsorted",
        lambda m, s, x, r=_right: m.searchsorted(s.sort(-1)[0], x, right=r),
        lambda s, x, r=_right: np.searchsorted(np.sort(s), x, "right" if r else "left"),
        domains=((-3.0, 3.0), (-3.0, 3.0)),
        shapes=(((9,), (4, 5)), ((9,), ()), ((0,), (3,)), ((5,), (0,)), ((70,), (2, 700))),
        result="index",
        edges=False,
    )
    add(
        f"bucketize right={_right}",
        "bucketize",
        lambda m, x, s, r=_right: m.bucketize(x, s.sort(-1)[0], right=r),
        lambda x, s, r=_right: np.searchsorted(np.sort(s), x, "right" if r else "left"),
        domains=((-3.0, 3.0), (-3.0, 3.0)),
        shapes=(((4, 5), (9,)), ((), (9,))),
        result="index",
        edges=False,
    )
add(
    "searchsorted of rows",
    "",
    lambda m, s, x: m.searchsorted(s.sort(-1)[0], x),
    lambda s, x: np.stack([np.searchsorted(np.sort(a), b) for a, b in zip(s, x)]),
    domains=((-3.0, 3.0), (-3.0, 3.0)),
    shapes=(((3, 9), (3, 4)),),
    result="index",
    edges=False,
)
