"""The cases of reductions and norms. See case.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import FLOAT_NAMES, PAIR, SPREAD_OUT, WHOLE_NAMES, Array, Shape, add, wide

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
    row, label = more.pop("row", name), more.pop("label", name)
    call = more.pop("call", lambda m, x, **given: getattr(m, row)(x, **given))
    for form, arguments, (axis, keepdims), shapes in forms:
        add(
            f"{label} {form}",
            row,
            lambda m, x, given=arguments: call(m, x, **given),
            lambda x, axis=axis, keepdims=keepdims: reference(x, axis, keepdims),
            shapes=shapes,
            torch=torch and (lambda t, x, given=arguments: torch(t, x, **given)),
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


NO_AXES = (  # of a number, whose only axis is one that it does not have
    ("0-d dim=-1", {"dim": -1}, (None, False), (((),),)),
    ("0-d dim=0 keepdim", {"dim": 0, "keepdim": True}, (None, True), (((),),)),
)
OF_AXES = (*ALL_AXES, *ONE_AXIS, *MANY_AXES)
EVERY = (*OF_AXES, *NO_AXES)
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
    grad=2,
)
reduction(
    "amin",
    lambda x, a, k: np.min(x, axis=a, keepdims=k),
    FILLED,
    grad=2,
)
reduction("any", lambda x, a, k: np.any(x != 0, axis=a, keepdims=k), EVERY, result="truth")
reduction("all", lambda x, a, k: np.all(x != 0, axis=a, keepdims=k), EVERY, result="truth")
reduction("argmax", lambda x, a, k: np.argmax(x, axis=a, keepdims=k), FILLED_ONE, result="index")
reduction("argmin", lambda x, a, k: np.argmin(x, axis=a, keepdims=k), FILLED_ONE, result="index")
for _name, _root in (("var", False), ("std", True)):
    reduction(_name, _spread(_root, 1), OF_AXES, grad=2, slack=4, **F_ONLY)
    reduction(_name, _spread(_root, 1), NO_AXES, slack=4, **F_ONLY)  # NaN, and so are the gradients
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


# ---- composed reductions --------------------------------------------------------------------------------------------


def _present(x: Array) -> Array:
    return np.where(np.isnan(x), 0, x) if x.dtype.kind == "f" else x


reduction("nansum", lambda x, a, k: _total(_present(x), a, k), EVERY, result="sum", grad=2)
reduction(
    "nanmean",
    lambda x, a, k: np.asarray(_total(_present(x), a, k) / _total(~np.isnan(x), a, k)),
    EVERY,
    grad=2,
    slack=4,
    torch_edges="its slope at nothing but NaN is NaN",
    **F_ONLY,
)
for _form, _given, (_axis, _keep), _shapes in EVERY:
    if not _keep:
        add(
            f"count_nonzero {_form}",
            "count_nonzero",
            lambda m, x, given=_given: m.count_nonzero(x, **given),
            lambda x, axis=_axis: np.asarray(np.count_nonzero(x, axis=axis)),
            shapes=_shapes,
            result="index",
        )
for _form, _given, (_axis, _keep), _shapes in FILLED_ONE:
    add(
        f"aminmax {_form}",
        "aminmax",
        lambda m, x, given=_given: tuple(m.aminmax(x, **given)),
        lambda x, axis=_axis, keep=_keep: (x.min(axis=axis, keepdims=keep), x.max(axis=axis, keepdims=keep)),
        shapes=_shapes,
        result="same same",
        grad=2,
    )
for _name, _root in (("var_mean", False), ("std_mean", True)):
    for _form, _given, (_axis, _keep), _shapes in OF_AXES:
        add(
            f"{_name}: {_form}",
            _name,
            lambda m, x, name=_name, given=_given: getattr(m, name)(x, **given),
            lambda x, root=_root, axis=_axis, keep=_keep: (
                _spread(root, 1)(x, axis, keep),
                np.mean(x, axis=axis, keepdims=keep),
            ),
            shapes=_shapes,
            result="same same",
            grad=2,
            slack=4,
            scaled=True,
            torch_edges="its means beside infinities are NaN",
            **F_ONLY,
        )

# ---- norms ----------------------------------------------------------------------------------------------------------


def _vector_norm(order: float) -> Callable[..., Any]:
    def reference(x: Array, axis: Any, keepdims: bool) -> Array:
        size = np.abs(x)
        if order == np.inf:
            return size.max(axis=axis, keepdims=keepdims)
        if order == -np.inf:
            return size.min(axis=axis, keepdims=keepdims)
        if order == 0:
            return (x != 0).sum(axis=axis, keepdims=keepdims).astype(x.dtype)
        return np.asarray((size**order).sum(axis=axis, keepdims=keepdims)) ** (1 / order)

    return reference


for _order in (2, 1, 0, 3, 1.5, 0.5, float("inf"), -float("inf"), -1):
    _forms = EVERY if 0 <= _order <= 3 else FILLED
    reduction(
        "vector_norm",
        _vector_norm(_order),
        tuple((form, {"ord": _order, **given}, axes, shapes) for form, given, axes, shapes in _forms),
        label=f"vector_norm {_order}",
        row="" if _order != 2 else "norm",
        call=lambda m, x, **given: m.linalg.vector_norm(x, **given),
        domains=wide(0.3, 3) if _order < 1 else wide(-3, 3),
        grad=2 if _order else 0,
        slack=20,
        edges=_order in (2, 1, 0),
        torch_edges="the slopes of abs at NaN and of the norm at infinity are its own affair",
        **F_ONLY,
    )
for _p in ("fro", 1, 2.0, float("inf")):
    reduction(
        "norm",
        _vector_norm(2 if _p == "fro" else _p),
        tuple((form, {"p": _p, **given}, axes, shapes) for form, given, axes, shapes in FILLED),
        label=f"norm {_p}",
        grad=2,
        slack=4,
        edges=False,
        **F_ONLY,
    )
for _order in ("fro", 1, -1, float("inf"), -float("inf")):
    for _given in ({}, {"dim": (0, -1), "keepdim": True}, {"dim": (-1, 0)}):
        add(
            f"matrix_norm {_order} {_given}",
            "",
            lambda m, x, order=_order, given=_given: m.linalg.matrix_norm(x, order, **given),
            lambda x, order=_order, given=_given: np.linalg.norm(
                x, order, given.get("dim", (-2, -1)), given.get("keepdim", False)
            ),
            shapes=(((3, 5),), ((2, 3, 4),)),
            grad=2,
            slack=4,
            edges=False,
            **F_ONLY,
        )
for _given, _shape in (
    ({}, (2, 3, 4)),
    ({"ord": 1}, (5,)),
    ({"ord": 1}, (3, 4)),
    ({"ord": float("inf"), "dim": 1}, (3, 4)),
    ({"ord": "fro", "dim": (0, 2)}, (2, 3, 4)),
    ({"dim": (0, 1), "keepdim": True}, (2, 3, 4)),
):
    add(
        f"linalg norm {_given} {_shape}",
        "",
        lambda m, x, given=_given: m.linalg.norm(x, **given),
        lambda x, given=_given: np.linalg.norm(
            x.reshape(-1) if not given else x, given.get("ord"), given.get("dim"), given.get("keepdim", False)
        ),
        shapes=((_shape,),),
        grad=2,
        slack=4,
        edges=False,
        **F_ONLY,
    )
