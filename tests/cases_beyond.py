"""The cases of what is not pointwise: reductions, products, joining, views, indexing. See case.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import ALL_NAMES, FLOAT_NAMES, NUMBER_NAMES, PAIR, SPREAD_OUT, WHOLE_NAMES, Array, Shape, add, wide

# ---- reductions -----------------------------------------------------------------------------------------------------

# (name, arguments of norch and PyTorch, NumPy's axis and keepdims, shapes)
ROWS_3D: tuple[tuple[Shape, ...], ...] = (((2, 3, 4),), ((5, 1, 67),), ((3, 0, 2),))
ONE_AXIS: tuple[tuple[str, dict[str, Any], tuple[Any, bool], tuple[tuple[Shape, ...], ...]], ...] = (
    ("dim=0", {"dim": 0}, (0, False), (((3, 5),), ((67, 4),), ((2, 3, 4),), ((7,),), ((3, 0),))),
    ("dim=-1", {"dim": -1}, (-1, False), (((3, 5),), ((4, 67),), ((2, 3, 4),), ((1037,),), ((0, 3),))),
    ("dim=1 keepdim", {"dim": 1, "keepdim": True}, (1, True), (((3, 5),), ((2, 3, 4),), ((5, 67, 1),))),
)
ALL_AXES = (("all", {}, (None, False), (((3, 5),), ((),), ((2, 3, 4),), ((1037,),), ((40, 67),))),)
MANY_AXES = (
    ("dim=(0, 2)", {"dim": (0, 2)}, ((0, 2), False), ROWS_3D),
    ("dim=(1, -1) keepdim", {"dim": (1, -1), "keepdim": True}, ((1, 2), True), ROWS_3D),
)


def reduction(name: str, reference: Any, forms: Any, torch: Any = None, **more: Any) -> None:
    """A REDUCE row: one case a choice of axes. reference(x, axis, keepdims)."""
    row = more.pop("row", name)
    only = more.pop("arguments", {})
    for form, arguments, (axis, keepdims), shapes in forms:
        given = {**arguments, **only}
        add(
            f"{name} {form}",
            row,
            lambda m, x, given=given: getattr(m, row)(x, **given),
            lambda x, axis=axis, keepdims=keepdims: reference(x, axis, keepdims),
            shapes=shapes,
            torch=None if torch is None else lambda t, x, given=given: torch(t, x, **given),
            scaled=True,
            **more,
        )


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    result = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return result if keepdims else np.squeeze(result, axis=axis)


def _total(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind != "f" else np.float64)


def _product(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind != "f" else np.float64)


def _spread(root: bool, correction: float) -> Callable[..., Any]:
    def reference(x: Array, axis: Any, keepdims: bool) -> Array:
        centre = np.mean(x, axis=axis, keepdims=True)
        total = np.sum((x - centre) ** 2, axis=axis, keepdims=keepdims)
        count = x.size / max(total.size, 1)
        variance = total / max(count - correction, 0)
        return np.sqrt(variance) if root else variance

    return reference


EVERY = (*ALL_AXES, *ONE_AXIS, *MANY_AXES)
FILLED = tuple(  # for what has no value over no elements
    (form, arguments, axes, tuple(s for s in shapes if 0 not in s[0])) for form, arguments, axes, shapes in EVERY
)
FILLED_ONE = FILLED[: len(ALL_AXES) + len(ONE_AXIS)]
F_ONLY: dict[str, Any] = {"dtypes": FLOAT_NAMES}

reduction("sum", _total, EVERY, result="sum", grad=2)
reduction("mean", lambda x, a, k: np.mean(x, axis=a, keepdims=k), EVERY, grad=2, **F_ONLY)
add(
    "mean of squares",
    "mean_square",
    lambda m, x: m.nn.functional.mse_loss(x, m.zeros_like(x)),
    lambda x: np.mean(x * x),
    shapes=(((4, 37),), ((1037,),), ((1,),)),
    grad=2,
    **F_ONLY,
)
reduction(
    "prod",
    _product,
    (*ALL_AXES, *ONE_AXIS),
    result="sum",
    grad=2,
    domains=wide(-1.5, 1.5),
    slack=40,
    torch_edges="inf * 0 comes and goes with the order",
)
reduction(
    "amax",
    lambda x, a, k: np.max(x, axis=a, keepdims=k),
    FILLED,
    torch_edges="its derivative is NaN everywhere beside a NaN",
    grad=2,
)
reduction(
    "amin",
    lambda x, a, k: np.min(x, axis=a, keepdims=k),
    FILLED,
    torch_edges="its derivative is NaN everywhere beside a NaN",
    grad=2,
)
reduction("any", lambda x, a, k: np.any(x != 0, axis=a, keepdims=k), EVERY, result="bool")
reduction("all", lambda x, a, k: np.all(x != 0, axis=a, keepdims=k), EVERY, result="bool")
reduction("argmax", lambda x, a, k: np.argmax(x, axis=a, keepdims=k), FILLED_ONE, result="index")
reduction("argmin", lambda x, a, k: np.argmin(x, axis=a, keepdims=k), FILLED_ONE, result="index")
reduction("var", _spread(False, 1), EVERY, grad=2, slack=4, **F_ONLY)
reduction("std", _spread(True, 1), EVERY, grad=2, slack=4, **F_ONLY)
reduction(
    "logsumexp",
    _logsumexp,
    FILLED,
    torch=lambda t, x, dim=None, keepdim=False: t.logsumexp(x, tuple(range(x.ndim)) if dim is None else dim, keepdim),
    result="float",
    grad=2,
)
for _name, _root in (("var", False), ("std", True)):
    for _label, _given in (
        ("correction=0", {"correction": 0}),
        ("unbiased=False", {"unbiased": False}),
        ("correction=1.5", {"correction": 1.5}),
    ):
        _correction = _given.get("correction", 0)
        add(
            f"{_name} {_label}",
            _name,
            lambda m, x, name=_name, given=_given: getattr(m, name)(x, dim=-1, **given),
            lambda x, r=_root, c=_correction: _spread(r, c)(x, -1, False),
            shapes=(((3, 5),), ((4, 67),)),
            dtypes=FLOAT_NAMES,
            grad=2,
            scaled=True,
            slack=4,
        )
for _name in ("max", "min"):
    _value = {"max": np.max, "min": np.min}[_name]
    _arg = {"max": np.argmax, "min": np.argmin}[_name]
    _pair = {"max": np.maximum, "min": np.minimum}[_name]
    add(
        f"{_name} all",
        _name,
        lambda m, x, n=_name: getattr(m, n)(x),
        lambda x, f=_value: f(x),
        shapes=(((3, 5),), ((),), ((4, 67),)),
        grad=2,
    )
    for _dim, _keep in ((0, False), (-1, True)):
        add(
            f"{_name} dim={_dim}{' keepdim' if _keep else ''}",
            _name,
            lambda m, x, n=_name, d=_dim, k=_keep: tuple(getattr(m, n)(x, dim=d, keepdim=k)),
            lambda x, f=_value, g=_arg, d=_dim, k=_keep: (
                (f(x, axis=d, keepdims=k), g(x, axis=d, keepdims=k)) if x.ndim else (x, np.zeros((), np.int64))
            ),
            shapes=(((3, 5),), ((2, 3, 4),), ((),), ((67, 33),)),
            result="same index",
            grad=2,
        )
    add(
        f"{_name} pair",
        _name,
        lambda m, a, b, n=_name: getattr(m, n)(a, b),
        _pair,
        domains=SPREAD_OUT,
        shapes=PAIR,
        grad=2,
    )


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _softmax(x: Array, axis: int) -> Array:
    return np.exp(_log_softmax(x, axis))


for _dim in (0, -1):
    _shapes = (((3, 5),), ((4, 67),), ((2, 3, 4),), ((1,),))
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
add(
    "sum dtype",
    "",
    lambda m, x: m.sum(x, 0, dtype=m.float64),
    lambda x: x.sum(0, dtype=float),
    result="float64",
    grad=2,
    scaled=True,
)
add(
    "sum to int32",
    "",
    lambda m, x: m.sum(x, dtype=m.int32),
    lambda x: x.sum(dtype=np.int64),
    result="int32",
    dtypes=WHOLE_NAMES,
)
add(
    "mean dtype",
    "",
    lambda m, x: m.mean(x, 0, dtype=m.float64),
    lambda x: x.mean(0, dtype=float),
    result="float64",
    grad=2,
    scaled=True,
)
add(
    "prod dtype",
    "",
    lambda m, x: m.prod(x, dtype=m.float64),
    lambda x: x.prod(dtype=float),
    result="float64",
    grad=2,
    torch_edges="inf * 0 comes and goes with the order",
    slack=40,
    scaled=True,
)

# ---- products -------------------------------------------------------------------------------------------------------

MATRICES: tuple[tuple[Shape, ...], ...] = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 2)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((1, 1), (1, 1)),
    ((33, 65), (65, 37)),
    ((130, 70), (70, 129)),
    ((300,), (300,)),
)
NOT_BOOL: dict[str, Any] = {"dtypes": NUMBER_NAMES, "scaled": True, "slack": 8}


def product_case(name: str, call: Any, reference: Any, shapes: Any, count: int, **more: Any) -> None:
    """A product of count operands, whose row is the first word of its name."""
    add(
        name,
        more.pop("row", name.split()[0]),
        call,
        reference,
        domains=((-3.0, 3.0),) * count,
        shapes=shapes,
        **{**NOT_BOOL, "grad": 2, **more},
    )


product_case("matmul", lambda m, a, b: m.matmul(a, b), np.matmul, MATRICES, 2)
product_case("matmul operator", lambda m, a, b: a @ b, np.matmul, MATRICES[:4], 2)
product_case("matmul of itself", lambda m, a: a @ a.mT, lambda a: a @ a.swapaxes(-1, -2), (((3, 4),), ((2, 3, 4),)), 1)
product_case("mm", lambda m, a, b: m.mm(a, b), np.matmul, MATRICES[:1], 2)
product_case("bmm", lambda m, a, b: m.bmm(a, b), np.matmul, MATRICES[4:5], 2)
product_case("mv", lambda m, a, b: m.mv(a, b), np.matmul, MATRICES[3:4], 2)
product_case("dot", lambda m, a, b: m.dot(a, b), np.matmul, MATRICES[1:2], 2)
LAYERS = (
    ((4, 3), (2, 3), (2,)),
    ((3,), (2, 3), (2,)),
    ((2, 2, 3), (4, 3), (4,)),
    ((0, 3), (2, 3), (2,)),
    ((70, 67), (33, 67), (33,)),
)
product_case("linear", lambda m, x, w, b: m.nn.functional.linear(x, w, b), lambda x, w, b: x @ w.T + b, LAYERS, 3)
product_case(
    "linear without bias",
    lambda m, x, w: m.nn.functional.linear(x, w),
    lambda x, w: x @ w.T,
    tuple(shapes[:2] for shapes in LAYERS),
    2,
)

# ---- joining, copies and casts --------------------------------------------------------------------------------------

JOINED: tuple[tuple[Shape, ...], ...] = (((2, 3), (2, 3)), ((1, 3), (4, 3)), ((0, 3), (2, 3)))


def _copying(name: str, row: str, call: Any, reference: Any, shapes: Any, **more: Any) -> None:
    more = {"grad": 2, **more}
    add(name, row, call, reference, domains=((-3.0, 3.0),) * len(shapes[0]), shapes=shapes, **more)


_copying("cat", "cat", lambda m, a, b: m.cat([a, b]), lambda a, b: np.concatenate([a, b]), JOINED)
_copying(
    "cat dim=-1",
    "cat",
    lambda m, a, b: m.cat((a, b, a), dim=-1),
    lambda a, b: np.concatenate([a, b, a], -1),
    JOINED[:1],
)
_copying(
    "cat dim=1",
    "cat",
    lambda m, a, b: m.cat([a, b], 1),
    lambda a, b: np.concatenate([a, b], 1),
    (((2, 3, 2), (2, 1, 2)), ((2, 0), (2, 5))),
)
_copying(
    "stack",
    "stack",
    lambda m, a, b: m.stack([a, b]),
    lambda a, b: np.stack([a, b]),
    (((2, 3), (2, 3)), ((), ()), ((0,), (0,))),
)
_copying(
    "stack dim=-1",
    "stack",
    lambda m, a, b: m.stack([a, b], dim=-1),
    lambda a, b: np.stack([a, b], -1),
    (((2, 3), (2, 3)),),
)
COPIED: tuple[tuple[Shape, ...], ...] = (((3, 5),), ((),), ((0, 2),), ((2, 3, 4),), ((130, 67),))
_copying("clone", "clone", lambda m, x: m.clone(x), lambda x: x, COPIED)
_copying("contiguous", "", lambda m, x: x.contiguous(), lambda x: x, COPIED)
_copying("copy", "", lambda m, x: x.to(x.dtype, copy=True), lambda x: x, COPIED)
for _to in ALL_NAMES:
    add(
        f"cast to {_to}",
        "",
        lambda m, x, to=_to: x.to(getattr(m, to)),
        lambda x, to=_to: (x != 0) if to == "bool" else np.trunc(x) if to not in FLOAT_NAMES else x,
        shapes=COPIED,
        domains=((0.0, 120.0),) if _to == "uint8" else ((-120.0, 120.0),),
        result=_to,
        grad=2 if _to == "float64" else 0,
        edges=False,
    )
add(
    "copy_",
    "",
    lambda m, a, b: m.zeros_like(a).copy_(b) if b is not None else a,
    lambda a, b: np.broadcast_to(b, a.shape),
    domains=SPREAD_OUT,
    shapes=(((3, 5), (3, 5)), ((2, 3), (3,)), ((2, 3), ())),
    grad=2,
    inputs=(1,),
)

# ---- views ----------------------------------------------------------------------------------------------------------


def view(name: str, row: str, call: Any, reference: Any, *shapes: Shape, **more: Any) -> None:
    """A view of one input."""
    add(name, row, call, reference, shapes=tuple((shape,) for shape in shapes), **{"grad": 2, **more})


view("reshape", "reshape", lambda m, x: m.reshape(x, (3, -1)), lambda x: x.reshape(3, -1), (3, 5), (2, 3, 4), (6,))
view("reshape to one", "", lambda m, x: x.reshape(-1), lambda x: x.reshape(-1), (3, 5), (), (0, 2))
view("view", "", lambda m, x: x.contiguous().view(-1, 2), lambda x: x.reshape(-1, 2), (2, 3), (4,))
view("view number", "", lambda m, x: x.view(1, 1), lambda x: x.reshape(1, 1), (1,), ())
view("ravel", "", lambda m, x: x.ravel(), lambda x: x.ravel(), (2, 3), ())
view("permute", "permute", lambda m, x: m.permute(x, (2, 0, -2)), lambda x: x.transpose(2, 0, 1), (2, 3, 4), (0, 1, 2))
view("transpose", "transpose", lambda m, x: m.transpose(x, 0, -1), lambda x: x.swapaxes(0, -1), (2, 3), (2, 3, 4), (5,))
view("t", "t", lambda m, x: m.t(x), lambda x: x.T, (2, 3), (4,), ())
view("T", "", lambda m, x: x.T, lambda x: x.T, (2, 3))
view("mT", "", lambda m, x: x.mT, lambda x: x.swapaxes(-1, -2), (2, 3), (2, 3, 4))
view(
    "broadcast_to",
    "broadcast_to",
    lambda m, x: m.broadcast_to(x, (4, 2, 3)),
    lambda x: np.broadcast_to(x, (4, 2, 3)),
    (2, 3),
    (1, 3),
    (3,),
    (),
    (4, 1, 1),
)
view("expand", "", lambda m, x: x.expand(2, -1, 3), lambda x: np.broadcast_to(x, (2, *x.shape[:1], 3)), (4, 1), (4, 3))
view("squeeze", "squeeze", lambda m, x: m.squeeze(x), np.squeeze, (1, 3, 1), (2, 3), (), (1, 1))
view(
    "squeeze dim", "", lambda m, x: m.squeeze(x, 1), lambda x: x.squeeze(1) if x.shape[1] == 1 else x, (2, 1, 3), (2, 3)
)
view("unsqueeze", "unsqueeze", lambda m, x: m.unsqueeze(x, -1), lambda x: x[..., None], (2, 3), (), (0, 2))
view("flatten", "flatten", lambda m, x: m.flatten(x, 1), lambda x: x.reshape(x.shape[0], -1), (2, 3, 4), (2, 3))
view("flatten all", "", lambda m, x: m.flatten(x), np.ravel, (2, 3, 4), (), (0, 2))
view("select", "select", lambda m, x: m.select(x, 1, -2), lambda x: x[:, -2], (2, 3), (2, 3, 4))
view("narrow", "narrow", lambda m, x: m.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], (2, 3), (2, 5, 2))
view("narrow empty", "", lambda m, x: m.narrow(x, 0, 2, 0), lambda x: x[2:2], (2, 3), (5,))
view("slice", "", lambda m, x: x[1:, ::2], lambda x: x[1:, ::2], (3, 5), (2, 1), (1, 3))
view("index", "", lambda m, x: x[..., None, -1], lambda x: x[..., None, -1], (3, 5), (4,))
view("diagonal", "diagonal", lambda m, x: m.diagonal(x), lambda x: np.diagonal(x), (3, 3), (2, 5), (5, 2))
view("diagonal above", "", lambda m, x: m.diagonal(x, 1, -1, 0), lambda x: np.diagonal(x, 1, -1, 0), (3, 4), (2, 3, 4))
view(
    "unfold",
    "",
    lambda m, x: x.unfold(-1, 3, 2),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, -1)[..., ::2, :],
    (2, 7),
    (5,),
    (3, 3),
)
view("unbind", "", lambda m, x: x.unbind(0), lambda x: tuple(x), (2, 3), (3,), result="same same")

# ---- indexing -------------------------------------------------------------------------------------------------------


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
        name.split()[0],
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
