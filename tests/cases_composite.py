"""The cases of elementwise operations that are composed of others, in norch/ops/composed/pointwise.py. See case.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from case import FLOAT_NAMES, INTEGER_NAMES, NUMBER_NAMES, PAIR, SPREAD_OUT, Array, add, wide
from cases_pointwise import FLOAT, NUMBERS, TERNARY_SHAPES, UNARY_SHAPES, also, lgamma, polygamma

import norch


def _rounded(x: Array, decimals: int) -> Array:
    ten = 10.0 ** abs(decimals)
    return np.rint(x * ten) / ten if decimals > 0 else np.rint(x / ten) * ten


def _numbered(x: Array) -> Array:
    return np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3.0)


def composite(name: str, reference: Any, *more_domains: Any, **more: Any) -> None:
    """A public function, and what it does in place."""
    method = name + "_"
    call = more.pop("call", lambda m, *xs: getattr(m, name)(*xs))
    more.setdefault("in_place", method if hasattr(norch.Tensor, method) else None)
    more.setdefault("domains", more_domains or wide(-3.0, 3.0))
    more.setdefault(
        "shapes", TERNARY_SHAPES if len(more["domains"]) == 3 else PAIR if len(more["domains"]) == 2 else UNARY_SHAPES
    )
    add(name, name, call, reference, **more)


THREE = ((-3.0, 3.0),) * 3
composite("positive", lambda x: x, dtypes=NUMBER_NAMES, grad=2)
composite("frac", lambda x: x - np.trunc(x), dtypes=FLOAT_NAMES, grad=2)
composite("deg2rad", np.deg2rad, (-180.0, 180.0), **FLOAT)
composite("rad2deg", np.rad2deg, **FLOAT)
composite("isposinf", np.isposinf, result="bool")
composite("isneginf", np.isneginf, result="bool")
composite("isreal", lambda x: np.ones(x.shape, bool), result="bool")
also(
    "nan_to_num of integers",
    "",
    lambda m, x: m.nan_to_num(x),
    lambda x: np.nan_to_num(x, posinf=math.inf, neginf=-math.inf),  # largest numbers, once rounded
    dtypes=("bool", *INTEGER_NAMES),
    in_place="nan_to_num_",
)
also(
    "nan_to_num given",
    "nan_to_num",
    lambda m, x: m.nan_to_num(x, 1.0, 2.0, -3.0),
    _numbered,
    grad=2,
    domains=wide(-9.0, 9.0),
)
also(
    "round decimals",
    "",
    lambda m, x: m.round(x, decimals=1),
    lambda x: _rounded(x, 1),
    dtypes=("float32", "float64"),
    grad=1,
    edges=False,
)
also(
    "round tens",
    "",
    lambda m, x: x.round(decimals=-1),
    lambda x: _rounded(x, -1),
    dtypes=FLOAT_NAMES,
    grad=1,
    domains=wide(-99.0, 99.0),
)
also(
    "logit eps",
    "",
    lambda m, x: m.logit(x, eps=0.25),
    lambda x: np.log(np.clip(x, 0.25, 0.75) / (1 - np.clip(x, 0.25, 0.75))),
    domains=wide(-0.5, 1.5),
    result="float",
    grad=2,
    scaled=True,
)
for order in (0, 1, 2, 3):
    also(
        f"polygamma {order}",
        "zeta" if order < 3 else "",
        lambda m, x, order=order: m.polygamma(order, x),
        lambda x, order=order: polygamma(order, x),
        domains=wide(0.3, 9.0),
        slack=4,
        edges=False,
        scaled=order == 0,
        torch=None if order != 1 else False,  # of half our precision there
        torch_grad=bool(order) or "of half our precision",
        **FLOAT,
    )
also(
    "polygamma",
    "polygamma",
    lambda m, x: x.polygamma(1),
    lambda x: polygamma(1, x),
    domains=wide(-2.9, -2.1),
    torch=False,
    slack=9,
    edges=False,
    **FLOAT,
)
also(
    "mvlgamma",
    "mvlgamma",
    lambda m, x: m.mvlgamma(x, 3),
    lambda x: 1.5 * math.log(math.pi) + lgamma(x) + lgamma(x - 0.5) + lgamma(x - 1),
    domains=wide(1.2, 9.0),
    edges=False,
    scaled=True,
    **FLOAT,
)
also(
    "frexp",
    "frexp",
    lambda m, x: tuple(m.frexp(x)),
    lambda x: (np.frexp(x)[0], np.where(np.isfinite(x), np.frexp(x)[1], 0)),  # C does not say the exponent of infinity
    dtypes=FLOAT_NAMES,
    result="same int32",
    grad=2,
)
composite("float_power", np.float_power, (0.3, 3.0), (0.0, 3.0), result="float64", grad=2, in_place=None, slack=4)
composite(
    "ldexp",
    lambda a, b: a * 2.0**b,
    *SPREAD_OUT,
    result="float",
    grad=2,
    slack=2,
    edges=False,  # 0 * 2**inf is NaN, but 0 where the power is an integer: test_statistics.py
    torch_grad="it rounds log 2 to float32",
)
composite("rsub", lambda a, b: b - a, *SPREAD_OUT, grad=2, **NUMBERS)
composite(
    "lerp", lambda a, b, c: a + c * (b - a), *THREE, grad=2, dtypes=FLOAT_NAMES, slack=8, edges=False, scaled=True
)
composite("addcmul", lambda a, b, c: a + b * c, *THREE, grad=2, scaled=True, edges=False, **NUMBERS)
composite(
    "addcdiv",
    lambda a, b, c: a + b / c,
    (-3.0, 3.0),
    (-3.0, 3.0),
    (0.5, 3.0),
    grad=2,
    dtypes=FLOAT_NAMES,
    edges=False,  # b / c may overflow
    scaled=True,
)
also(
    "addcmul value",
    "",
    lambda m, a, b, c: m.addcmul(a, b, c, value=-2),
    lambda a, b, c: a - 2 * b * c,
    domains=THREE,
    shapes=TERNARY_SHAPES,
    grad=2,
    edges=False,
    scaled=True,
    **NUMBERS,
)
also(
    "addcdiv value",
    "",
    lambda m, a, b, c: a.addcdiv(b, c, value=0.5),
    lambda a, b, c: a + 0.5 * b / c,
    domains=((-3.0, 3.0), (-3.0, 3.0), (0.5, 3.0)),
    shapes=TERNARY_SHAPES,
    grad=2,
    edges=False,
    dtypes=FLOAT_NAMES,
    scaled=True,
)
also(
    "lerp number",
    "",
    lambda m, a, b: m.lerp(a, b, 0.75),
    lambda a, b: a + 0.75 * (b - a),
    domains=SPREAD_OUT,
    shapes=PAIR,
    grad=2,
    edges=False,
    dtypes=FLOAT_NAMES,
    scaled=True,
)
also(
    "rsub alpha",
    "",
    lambda m, a, b: m.rsub(a, b, alpha=2),
    lambda a, b: b - 2 * a,
    domains=SPREAD_OUT,
    shapes=PAIR,
    grad=2,
    scaled=True,
    **NUMBERS,
)
for power in (0, 1, 2, 3, math.inf):
    also(
        f"dist {power}",
        "dist",
        lambda m, a, b, power=power: m.dist(a, b, power),
        lambda a, b, power=power: np.asarray(np.linalg.norm(np.asarray(a - b).ravel(), power)),
        domains=SPREAD_OUT,
        shapes=(((3, 5), (3, 5)), ((2, 1), (4,))),
        dtypes=FLOAT_NAMES,
        grad=2 if power else 0,
        edges=False,
        slack=8,
    )
also(
    "fill",
    "fill",
    lambda m, x: m.fill(x, 2),
    lambda x: np.full_like(x, 2),
    in_place=None,
    torch_edges=True,
    edges=True,
)
