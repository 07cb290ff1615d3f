"""The cases of ops/composed/: statistics, distance, histogram, numeric and type_properties. See case.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import ALL_NAMES, FLOAT_NAMES, INTEGER_NAMES, NUMBER_NAMES, Array, add

NO_EDGES: dict[str, Any] = {"edges": False, "scaled": True, "slack": 40}
SIGNED = [name for name in NUMBER_NAMES if name != "uint8"]  # where differences are not negative
WHOLE_TOO: dict[str, Any] = {**NO_EDGES, "dtypes": NUMBER_NAMES, "result": "float", "grad": 2}
FLOATS: dict[str, Any] = {**NO_EDGES, "dtypes": FLOAT_NAMES, "grad": 2}


def _rows(a: Array, b: Array, p: float) -> Array:
    return np.linalg.norm(np.expand_dims(a, -2) - np.expand_dims(b, -3), p, -1)


for p in (2.0, 1.0, 3.0, np.inf):
    shapes = (((2, 3), (3, 3)), ((2, 2, 3), (1, 2, 3)))
    add(
        f"cdist p={p}",
        "cdist",
        lambda m, a, b, p=p: m.cdist(a, b, p=p),
        lambda a, b, p=p: _rows(a, b, p),
        domains=((-3.0, 3.0),) * 2,
        shapes=shapes,
        torch=False if p == np.inf else None,  # its gradient differs where distances are equal
        **{**FLOATS, "grad": 2 if p == 2 else 1, "slack": 1e4 if p == 3 else 40},
    )
    add(
        f"pdist p={p}",
        "pdist",
        lambda m, x, p=p: m.pdist(x, p),
        lambda x, p=p: _rows(x, x, p)[np.triu_indices(len(x), 1)],
        domains=((-3.0, 3.0),),
        shapes=(((4, 3),), ((1, 3),)),
        torch=False if p == np.inf else None,
        **{**FLOATS, "grad": 2 if p == 2 else 1, "slack": 1e4 if p == 3 else 40},
    )
add(
    "pairwise_distance",
    "pairwise_distance",
    lambda m, a, b: m.pairwise_distance(a, b),
    lambda a, b: np.linalg.norm(a - b + 1e-6, 2, -1),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((2, 3), (2, 3)), ((3,), (2, 3))),
    torch=lambda t, a, b: t.pairwise_distance(*(x if x.is_floating_point() else x.float() for x in (a, b))),
    **{**WHOLE_TOO, "slack": 4000},  # 1e-6 is not the same number in float32
)
add(
    "cosine_similarity",
    "cosine_similarity",
    lambda m, a, b: m.cosine_similarity(a, b, dim=-1),
    lambda a, b: (a * b).sum(-1) / np.linalg.norm(a, 2, -1) / np.linalg.norm(b, 2, -1),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((2, 3), (2, 3)), ((3,), (2, 3))),
    **FLOATS,
)
add(
    "cosine_similarity, axes of both",
    "",
    lambda m, a, b: m.cosine_similarity(a, b, dim=-2),
    lambda a, b: (a * b).sum(-2) / np.sqrt((a * a + 0 * b).sum(-2) * (b * b + 0 * a).sum(-2)),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((3, 2, 3), (2, 3)), ((1, 2, 3), (2, 1, 3)), ((3,), (2, 3))),
    **FLOATS,
)
add("cov", "cov", lambda m, x: m.cov(x), np.cov, shapes=(((3, 5),), ((4,),)), **WHOLE_TOO)
add(
    "cov uncorrected",
    "cov",
    lambda m, x: m.cov(x, correction=0),
    lambda x: np.cov(x, ddof=0),
    shapes=(((3, 5),),),
    **WHOLE_TOO,
)
add(
    "cov weighted",
    "",
    lambda m, x: m.cov(x, fweights=m.tensor([1, 3, 2]), aweights=m.tensor([0.5, 2.0, 1.0], dtype=x.dtype)),
    lambda x: np.cov(x, fweights=[1, 3, 2], aweights=[0.5, 2.0, 1.0]),
    shapes=(((2, 3),),),
    **FLOATS,
)
add("corrcoef", "corrcoef", lambda m, x: m.corrcoef(x), np.corrcoef, shapes=(((3, 5),),), **{**WHOLE_TOO, "grad": 1})
add(
    "renorm",
    "renorm",
    lambda m, x: m.renorm(x, 2, 1, 2.0),
    lambda x: x * np.minimum(1, 2 / np.linalg.norm(x, 2, 0)),
    shapes=(((3, 5),), ((0, 3),), ((3, 0),)),
    **{**FLOATS, "slack": 1e8, "torch_edges": False},  # over the norm and 1e-7, as PyTorch has it
)
for name, reference in (
    ("trapezoid", lambda y, **more: np.trapezoid(y, **more)),
    ("trapz", lambda y, **more: np.trapezoid(y, **more)),
    (
        "cumulative_trapezoid",
        lambda y, dx=1.0, axis=-1: dx * np.cumsum((np.delete(y, 0, axis) + np.delete(y, -1, axis)) / 2, axis),
    ),
):
    add(
        f"{name} dx",
        name,
        lambda m, y, name=name: getattr(m, name)(y, dx=0.5, dim=0),
        lambda y, reference=reference: reference(y, dx=0.5, axis=0),
        shapes=(((3, 5),), ((4,),), ((1, 2),)),
        **WHOLE_TOO,
    )
add(
    "trapezoid x",
    "",
    lambda m, y, x: m.trapezoid(y, x),
    lambda y, x: np.trapezoid(y, x),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((2, 3), (3,)), ((2, 3), (2, 3))),
    **{**WHOLE_TOO, "dtypes": SIGNED},
)
add(
    "isin",
    "",
    lambda m, x, y: m.isin(x, y),
    lambda x, y: np.isin(x, y),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((3, 5), (4,)), ((), (2, 2)), ((3,), (0,))),
    result="bool",
    dtypes=[d for d in NUMBER_NAMES if d not in ("float16", "bfloat16")],
    edges=False,
)
add(
    "unravel_index",
    "unravel_index",
    lambda m, x: m.unravel_index(x, (3, 5)),
    lambda x: np.unravel_index(x, (3, 5)),
    domains=("index",),
    index_below=15,
    shapes=(((4,),), ((2, 2),)),
    result="index index",
    dtypes=ALL_NAMES,
    edges=False,
)

# ---- histograms, numeric.py -----------------------------------------------------------------------------------------

add(
    "histc",
    "histc",
    lambda m, x: m.histc(x, 4, -2, 2),
    lambda x: np.histogram(x, 4, (-2, 2))[0],
    shapes=(((3, 5),), ((),), ((0,),)),
    dtypes=FLOAT_NAMES,
    torch=lambda t, x: t.histc(x.double(), 4, -2, 2).to(x.dtype),
    edges=False,
)
add(
    "histogram",
    "histogram",
    lambda m, x: m.histogram(x, 4, range=(-2.0, 2.0)),
    lambda x: np.histogram(x, 4, (-2, 2)),
    shapes=(((3, 5),), ((),), ((0,),)),
    result="same same",
    dtypes=FLOAT_NAMES,
    torch=lambda t, x: tuple(y.to(x.dtype) for y in t.histogram(x.double(), 4, range=(-2.0, 2.0))),
    edges=False,
)
add(
    "gradient",
    "gradient",
    lambda m, x: m.gradient(x, spacing=0.5, dim=0)[0],
    lambda x: np.gradient(x.astype(float), 0.5, axis=0),
    shapes=(((3, 5),), ((4,),)),
    torch=lambda t, x: t.gradient(x if x.is_floating_point() else x.float(), spacing=0.5, dim=0)[0],
    **WHOLE_TOO,
)
for name in ("gcd", "lcm"):
    add(
        name,
        name,
        lambda m, a, b, name=name: getattr(m, name)(a, b),
        getattr(np, name),
        domains=((-11.0, 11.0),) * 2,
        shapes=(((3, 5), (3, 5)), ((3, 1), (5,))),
        dtypes=INTEGER_NAMES,
        in_place=f"{name}_",
        edges=False,
    )
add(
    "heaviside",
    "heaviside",
    lambda m, x, y: m.heaviside(x, y),
    lambda x, y: np.where(x == 0, y, x > 0),
    domains=((-3.0, 3.0),) * 2,
    shapes=(((3, 5), (3, 5)), ((3, 1), (5,))),
    in_place="heaviside_",
    edges=False,
)
add(
    "nextafter",
    "",
    lambda m, x, y: m.nextafter(x, y),
    np.nextafter,
    domains=((-3.0, 3.0),) * 2,
    shapes=(((3, 5), (3, 5)), ((3, 1), (5,))),
    dtypes=("float32", "float64"),  # the reference steps in float64
    in_place="nextafter_",
    edges=False,
)
