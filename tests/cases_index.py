"""The cases of indexing by tensors: gather, scatter, index_*, masked_*, take, put, nonzero. See case.py.

What ``x[...]`` takes is in test_getitem.py, against NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from case import ALL_NAMES, FLOAT_NAMES, NUMBER_NAMES, Array, add


def _put_along(x: Array, index: Array, src: Array, axis: int) -> Array:
    out = x.copy()
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[axis] = index[place]
        out[tuple(to)] += src[place]
    return out


def _put_rows(x: Array, index: Array, src: Array, axis: int) -> Array:
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(src, axis, 0))
    return out


def indexing(name: str, call: Any, reference: Any, domains: Any, inputs: Any, *shapes: Any, **more: Any) -> None:
    """A case with a tensor of indices below 3."""
    add(
        name,
        more.pop("row", name.split()[0]),
        call,
        reference,
        domains=domains,
        inputs=inputs,
        shapes=shapes,
        grad=2,
        index_below=3,
        edges=False,
        **more,
    )


_VALUES = (-3.0, 3.0)
indexing(
    "gather",
    lambda m, x, i: m.gather(x, 0, i),
    lambda x, i: np.take_along_axis(x[:, : i.shape[1]], i, 0),
    (_VALUES, "index"),
    (0,),
    ((3, 5), (2, 5)),
    ((3, 4), (6, 2)),
    ((3, 2), (0, 2)),
)
indexing(
    "gather dim=-1",
    lambda m, x, i: m.gather(x, -1, i),
    lambda x, i: np.take_along_axis(x[: i.shape[0]], i, -1),
    (_VALUES, "index"),
    (0,),
    ((5, 3), (5, 2)),
    ((4, 3), (2, 8)),
)
indexing(
    "scatter_add",
    lambda m, x, i, s: m.scatter_add(x, 0, i, s),
    lambda x, i, s: _put_along(x, i, s, 0),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (4, 5), (4, 5)),
    ((3, 5), (2, 3), (4, 5)),
    ((3, 2), (0, 2), (0, 2)),
    scaled=True,
    in_place="scatter_add_",
    leading=(0,),
)
indexing(
    "scatter_add dim=1",
    lambda m, x, i, s: m.scatter_add(x, 1, i, s),
    lambda x, i, s: _put_along(x, i, s, 1),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((4, 3), (4, 6), (4, 6)),
    ((2, 3), (2, 4), (2, 4)),
    scaled=True,
)
indexing(
    "index_select",
    lambda m, x, i: m.index_select(x, 0, i),
    lambda x, i: x[i],
    (_VALUES, "index"),
    (0,),
    ((3, 5), (4,)),
    ((3,), (2,)),
    ((3, 2), (0,)),
)
indexing(
    "index_select dim=1",
    lambda m, x, i: m.index_select(x, 1, i),
    lambda x, i: x[:, i],
    (_VALUES, "index"),
    (0,),
    ((2, 3), (4,)),
    ((2, 3, 2), (1,)),
)
indexing(
    "index_add",
    lambda m, x, i, s: m.index_add(x, 0, i, s),
    lambda x, i, s: _put_rows(x, i, s, 0),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (4,), (4, 5)),
    ((3,), (2,), (2,)),
    scaled=True,
    in_place="index_add_",
    leading=(0,),
)
indexing(
    "index_add alpha",
    lambda m, x, i, s: m.index_add(x, 0, i, s, alpha=2),
    lambda x, i, s: _put_rows(x, i, 2 * s, 0),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (4,), (4, 5)),
    row="",
    dtypes=NUMBER_NAMES,
    scaled=True,
)
indexing(
    "index_add dim=1",
    lambda m, x, i, s: m.index_add(x, 1, i, s),
    lambda x, i, s: _put_rows(x, i, s, 1),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((2, 3), (4,), (2, 4)),
    scaled=True,
)


# ---- writes ---------------------------------------------------------------------------------------------------------


def _along(x: Array, index: Array, src: Array, axis: int, combine: Any, include_self: bool = True) -> Array:
    """x with src combined into it, one after the other; combine(what is there or None, element, how many so far)."""
    out, seen = x.copy(), np.full(x.shape, int(include_self))
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[axis] = index[place]
        at = tuple(to)
        out[at] = combine(out[at] if seen[at] else None, src[place], seen[at])
        seen[at] += 1
    return out


def _rows(x: Array, index: Array, src: Array, axis: int, combine: Any) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    return _along(x, np.broadcast_to(index.reshape(shape), src.shape), src, axis, combine)


def _set(old: Any, new: Any, n: int) -> Any:
    return new


def _mean(old: Any, new: Any, n: int) -> Any:
    return new if old is None else (old * n + new) / (n + 1)


def _nan_or(pick: Any) -> Any:
    return lambda old, new, n: new if old is None else pick(old, new)


COMBINE = {
    "sum": lambda old, new, n: new if old is None else old + new,
    "prod": lambda old, new, n: new if old is None else old * new,
    "mean": _mean,
    "amax": _nan_or(np.maximum),
    "amin": _nan_or(np.minimum),
}

indexing(
    "scatter",
    lambda m, x, i, s: m.scatter(x, 0, i, s),
    lambda x, i, s: _along(x, i, s, 0, _set),
    (_VALUES, "distinct", _VALUES),
    (0, 2),
    ((3, 5), (2, 5), (2, 5)),
    ((3, 4), (3, 2), (5, 4)),
    ((3, 2), (0, 2), (0, 2)),
    in_place="scatter_",
    leading=(0,),
)
indexing(
    "scatter value",
    lambda m, x, i: m.scatter(x, 1, i, 2),
    lambda x, i: _along(x, i, np.full(i.shape, 2, x.dtype), 1, _set),
    (_VALUES, "index"),
    (0,),
    ((4, 3), (4, 6)),
    ((2, 3), (1, 2)),
)
for _how, _way in (("add", "sum"), ("multiply", "prod")):
    indexing(
        f"scatter {_how}",
        lambda m, x, i, s, how=_how: m.scatter(x, 0, i, s, reduce=how),
        lambda x, i, s, way=_way: _along(x, i, s, 0, COMBINE[way]),
        (_VALUES, "index", _VALUES),
        (0, 2),
        ((3, 5), (4, 5), (4, 5)),
        scaled=True,
    )
for _way in COMBINE:
    for _with in (True, False):
        indexing(
            f"scatter_reduce {_way}" + ("" if _with else " alone"),
            lambda m, x, i, s, way=_way, w=_with: m.scatter_reduce(x, 0, i, s, way, include_self=w),
            lambda x, i, s, way=_way, w=_with: _along(x, i, s, 0, COMBINE[way], w),
            (_VALUES, "index", _VALUES),
            (0, 2),
            ((3, 5), (4, 5), (4, 5)),
            ((3, 4), (2, 3), (5, 4)),
            ((3, 2), (0, 2), (0, 2)),
            scaled=True,
            slack=4,
            dtypes=FLOAT_NAMES if _way == "mean" else ALL_NAMES,
            in_place="scatter_reduce_" if _way == "amax" and _with else None,
            leading=(0,),
            trailing=("amax",),
            row="" if _way == "mean" else "scatter_reduce",
        )
indexing(
    "index_copy",
    lambda m, x, i, s: m.index_copy(x, 0, i, s),
    lambda x, i, s: _rows(x, i, s, 0, _set),
    (_VALUES, "distinct", _VALUES),
    (0, 2),
    ((3, 5), (2,), (2, 5)),
    ((3,), (3,), (3,)),
    ((3, 2), (0,), (0, 2)),
    in_place="index_copy_",
    leading=(0,),
)
indexing(
    "index_fill",
    lambda m, x, i: m.index_fill(x, -1, i, 1),
    lambda x, i: _rows(x, i, np.ones((*x.shape[:-1], i.size), x.dtype), x.ndim - 1, _set),
    (_VALUES, "index"),
    (0,),
    ((5, 3), (2,)),
    ((3,), (4,)),
)
indexing(
    "index_fill by a tensor",
    lambda m, x, i, v: m.index_fill(x, 0, i, v),
    lambda x, i, v: _rows(x, i, np.full((i.size, *x.shape[1:]), v), 0, _set),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 5), (2,), ()),
    ((3, 5), (4,), ()),
    in_place="index_fill_",
    leading=(0,),
)
for _way in ("prod", "mean", "amax", "amin"):
    indexing(
        f"index_reduce {_way}",
        lambda m, x, i, s, way=_way: m.index_reduce(x, 0, i, s, way),
        lambda x, i, s, way=_way: _rows(x, i, s, 0, COMBINE[way]),
        (_VALUES, "index", _VALUES),
        (0, 2),
        ((3, 5), (4,), (4, 5)),
        scaled=True,
        slack=4,
        dtypes=FLOAT_NAMES if _way == "mean" else ALL_NAMES,
        row="" if _way == "mean" else "index_reduce",
        in_place="index_reduce_" if _way == "amin" else None,
        leading=(0,),
        trailing=("amin",),
    )
indexing(
    "put",
    lambda m, x, i, s: m.put(x, i, s),
    lambda x, i, s: _along(x.reshape(-1), i.reshape(-1), s.reshape(-1), 0, _set).reshape(x.shape),
    (_VALUES, "distinct", _VALUES),
    (0, 2),
    ((2, 4), (3,), (3,)),
    ((3,), (2,), (2,)),
    in_place="put_",
)
indexing(
    "put accumulate",
    lambda m, x, i, s: m.put(x, i, s, True),
    lambda x, i, s: _along(x.reshape(-1), i.reshape(-1), s.reshape(-1), 0, COMBINE["sum"]).reshape(x.shape),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((2, 4), (5, 2), (10,)),
    scaled=True,
)
indexing(
    "index_put",
    lambda m, x, i, s: m.index_put(x, (i,), s),
    lambda x, i, s: _rows(x, i, np.broadcast_to(s, (i.size, *x.shape[1:])), 0, _set),
    (_VALUES, "distinct", _VALUES),
    (0, 2),
    ((3, 5), (2,), (2, 5)),
    ((3, 5), (3,), (5,)),
    ((3,), (2,), ()),
)
indexing(
    "index_put accumulate",
    lambda m, x, i, s: m.index_put(x, (i, i - 1), s, accumulate=True),
    lambda x, i, s: _put_pairs(x, i, s),
    (_VALUES, "index", _VALUES),
    (0, 2),
    ((3, 3, 2), (6,), (6, 2)),
    ((4, 3), (5,), (1,)),
    scaled=True,
)


def _put_pairs(x: Array, i: Array, s: Array) -> Array:
    out = x.copy()
    np.add.at(out, (i, i - 1), s)
    return out


# ---- reads ----------------------------------------------------------------------------------------------------------

indexing(
    "take",
    lambda m, x, i: m.take(x, i),
    lambda x, i: x.reshape(-1)[i],
    (_VALUES, "index"),
    (0,),
    ((2, 5), (4, 2)),
    ((3,), ()),
    ((4,), (0, 3)),
)
indexing(
    "take_along_dim",
    lambda m, x, i: m.take_along_dim(x, i, 1),
    lambda x, i: np.take_along_axis(x, i, 1),
    (_VALUES, "index"),
    (0,),
    ((2, 3), (2, 4)),
    ((1, 3), (4, 2)),
    ((4, 3), (1, 2)),
)
indexing(
    "take_along_dim flat",
    lambda m, x, i: m.take_along_dim(x, i),
    lambda x, i: x.reshape(-1)[i.reshape(-1)],
    (_VALUES, "index"),
    (0,),
    ((2, 3), (2, 4)),
)

# ---- masks ----------------------------------------------------------------------------------------------------------


def masking(name: str, call: Any, reference: Any, domains: Any, inputs: Any, *shapes: Any, **more: Any) -> None:
    """A case with a mask."""
    row = name.split()[0]
    add(name, row, call, reference, domains=domains, inputs=inputs, shapes=shapes, edges=False, **{"grad": 2, **more})


def _filled(x: Array, mask: Array, value: Any) -> Array:
    return np.where(mask, value, x)


def _scattered(x: Array, mask: Array, src: Array) -> Array:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out = np.broadcast_to(x, shape).copy()
    mask = np.broadcast_to(mask, shape)
    out[mask] = src.reshape(-1)[: int(mask.sum())]
    return out


masking(
    "masked_fill",
    lambda m, x, k: m.masked_fill(x, k, 1),
    lambda x, k: _filled(x, k, np.ones((), x.dtype)),
    (_VALUES, "bool"),
    (0,),
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((), ()),
    ((0, 2), (2,)),
)
masking(
    "masked_fill by a tensor",
    lambda m, x, k, v: m.masked_fill(x, k, v),
    _filled,
    (_VALUES, "bool", _VALUES),
    (0, 2),
    ((3, 5), (3, 5), ()),
    ((3, 5), (3, 1), ()),
    ((5,), (3, 5), ()),
    in_place="masked_fill_",
)
masking(
    "masked_select",
    lambda m, x, k: m.masked_select(x, k),
    lambda x, k: np.broadcast_to(x, np.broadcast_shapes(x.shape, k.shape))[
        np.broadcast_to(k, np.broadcast_shapes(x.shape, k.shape))
    ],
    (_VALUES, "bool"),
    (0,),
    ((3, 5), (3, 5)),
    ((3, 1), (4,)),
    ((), (3,)),
    ((), ()),
    ((17, 40), (17, 40)),
)
masking(
    "masked_scatter",
    lambda m, x, k, s: m.masked_scatter(x, k, s),
    _scattered,
    (_VALUES, "bool", _VALUES),
    (0, 2),
    ((3, 5), (3, 5), (4, 4)),
    ((3, 5), (5,), (15,)),
    ((5,), (3, 5), (17,)),
    in_place="masked_scatter_",
)
for _name in ("nonzero", "argwhere"):
    masking(
        _name,
        lambda m, x, name=_name: getattr(m, name)(x),
        lambda x: np.argwhere(x != 0),
        ((-1.0, 1.0),),
        (),
        ((3, 5),),
        ((),),
        ((7,),),
        ((0, 3),),
        ((5, 0),),
        ((3, 300, 5),),
        grad=0,
        result="index",
    )
masking(
    "nonzero as_tuple",
    lambda m, x: m.nonzero(x, as_tuple=True),
    lambda x: np.atleast_1d(x).nonzero(),
    ((-1.0, 1.0),),
    (),
    ((3, 5),),
    ((2, 3, 70),),
    grad=0,
    result="index",
)
masking(
    "where alone",
    lambda m, x: m.where(x),
    lambda x: np.atleast_1d(x).nonzero(),
    ((-1.0, 1.0),),
    (),
    ((3, 5),),
    ((),),
    ((4, 0),),
    grad=0,
    result="index",
)
