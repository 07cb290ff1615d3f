"""The cases of products: einsum, tensordot, addmm and their kin. matmul's are in cases_beyond.py. See case.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import ALL_NAMES, Array
from cases_beyond import MATRICES, NOT_BOOL, product_case

NO_EDGES = {**NOT_BOOL, "edges": False}  # inf * 0 comes and goes with the order
WHOLE_TOO = {**NOT_BOOL, "torch_edges": "inf * 0 comes and goes with the order"}

for equation, shapes in (
    ("ij,jk->ik", MATRICES[:1]),
    ("ij,kj", (((2, 3), (4, 3)),)),
    ("bhqd,bhkd->bhqk", (((2, 1, 3, 4), (2, 1, 2, 4)),)),
    ("qbd,kbd->qkb", (((3, 2, 4), (2, 2, 4)),)),
    ("akb,kn->abn", (((3, 2, 2), (2, 4)), ((3, 5, 17), (5, 9)))),
    ("akb,kcld->dbacl", (((2, 3, 2), (3, 1, 2, 2)),)),
    ("...i,...i", (((2, 3), (3,)), ((2, 1, 3), (2, 3)))),
    ("...ij,...jk", (((2, 2, 3), (3, 2)),)),
    ("i...j,j...->...i", (((2, 2, 3), (3, 1)),)),
    ("ij,ij->", (((2, 3), (2, 3)),)),
    ("i,j", (((2,), (3,)),)),
    ("iij,jk->ik", (((2, 2, 3), (3, 2)),)),
    ("ij,ji->i", (((2, 3), (3, 2)),)),
    ("ij,j->ij", (((2, 3), (3,)), ((2, 3), (1,)), ((0, 3), (3,)))),
):
    product_case(
        f"einsum {equation} {shapes[0][0]}",
        lambda m, a, b, equation=equation: m.einsum(equation, a, b),
        lambda a, b, equation=equation: np.einsum(equation, a, b),
        shapes,
        2,
        **(WHOLE_TOO if equation not in ("i,j", "ij,j->ij") else {**WHOLE_TOO, "dtypes": ALL_NAMES}),
    )
for equation, shapes in (
    ("ij,kl->il", (((2, 3), (2, 4)),)),
    ("ij,jk->ik", (((2, 1), (3, 2)), ((2, 3), (1, 2)))),
):
    product_case(
        f"einsum {equation} summed apart",
        lambda m, a, b, equation=equation: m.einsum(equation, a, b),
        lambda a, b, equation=equation: np.einsum(equation, a, b),
        shapes,
        2,
        row="",
        **{**NO_EDGES, "dtypes": ("float32", "float64", "int64")},  # PyTorch's become int64 now and then
    )
for equation, shape in (("ii", (3, 3)), ("iji->ij", (2, 3, 2)), ("ijk->ki", (2, 3, 4)), ("i...->...", (2, 3))):
    whole = {"dtypes": ("float32", "float64", "int64")}
    product_case(
        f"einsum {equation}",
        lambda m, a, equation=equation: m.einsum(equation, a),
        lambda a, equation=equation: np.einsum(equation, a),
        ((shape,),),
        1,
        row="",
        **{**NOT_BOOL, **whole},
    )
THREE = "bi,oij,bj->bo"
product_case(
    f"einsum {THREE}",
    lambda m, a, b, c: m.einsum(THREE, a, b, c),
    lambda a, b, c: np.einsum(THREE, a, b, c),
    (((2, 3), (2, 3, 2), (2, 2)),),
    3,
    **NO_EDGES,
)
product_case("vdot", lambda m, a, b: m.vdot(a, b), np.vdot, MATRICES[1:2], 2)
product_case("outer", lambda m, a, b: m.outer(a, b), np.outer, (((2,), (3,)), ((0,), (3,))), 2, dtypes=ALL_NAMES)
product_case("ger", lambda m, a, b: m.ger(a, b), np.outer, (((2,), (3,)),), 2, dtypes=ALL_NAMES)
product_case(
    "inner", lambda m, a, b: m.inner(a, b), np.inner, (((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3))), 2, **WHOLE_TOO
)
product_case(
    "kron",
    lambda m, a, b: m.kron(a, b),
    np.kron,
    (((2, 3), (3, 1)), ((2,), (2, 3)), ((0, 2), (2,))),
    2,
    dtypes=ALL_NAMES,
)
product_case(
    "tensordot",
    lambda m, a, b: m.tensordot(a, b, dims=1),
    lambda a, b: np.tensordot(a, b, 1),
    (((2, 3), (3, 2)), ((2, 2, 3), (3, 1, 2)), ((3,), (3,))),
    2,
    **WHOLE_TOO,
)
product_case(
    "tensordot by axes",
    lambda m, a, b: m.tensordot(a, b, dims=([0, -1], [2, 0])),
    lambda a, b: np.tensordot(a, b, ([0, -1], [2, 0])),
    (((2, 2, 3), (3, 1, 2)),),
    2,
    row="tensordot",
    **WHOLE_TOO,
)
product_case(
    "cross",
    lambda m, a, b: m.cross(a, b, dim=1),
    lambda a, b: np.cross(a, b, axis=1),
    (((2, 3), (2, 3)), ((2, 3, 2), (1, 3, 2))),
    2,
)
product_case(
    "linalg.cross", lambda m, a, b: m.linalg.cross(a, b), np.cross, (((2, 3), (2, 3)), ((3,), (3,))), 2, row=""
)
product_case(
    "linalg.vecdot",
    lambda m, a, b: m.linalg.vecdot(a, b),
    lambda a, b: (a * b).sum(-1),
    (((2, 3), (2, 3)), ((2, 1, 3), (2, 3))),
    2,
    row="",
    **{**NOT_BOOL, "dtypes": ("float32", "float64")},
)
POWERS = (((2, 2),), ((2, 3, 3),))
product_case(
    "matrix_power", lambda m, a: m.matrix_power(a, 3), lambda a: a @ a @ a, (((2, 2),), ((2, 3, 3),)), 1, **NO_EDGES
)
product_case(
    "matrix_power of 0",
    lambda m, a: m.linalg.matrix_power(a, 0),
    lambda a: np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape),
    POWERS,
    1,
    row="matrix_power",
    grad=0,
    dtypes=ALL_NAMES,
)
product_case(
    "chain_matmul",
    lambda m, a, b, c: m.chain_matmul(a, b, c),
    lambda a, b, c: a @ b @ c,
    (((2, 3), (3, 1), (1, 4)), ((1, 4), (4, 2), (2, 3))),
    3,
    **WHOLE_TOO,
)
product_case(
    "linalg.multi_dot",
    lambda m, a, b, c: m.linalg.multi_dot([a, b, c]),
    lambda a, b, c: a @ b @ c,
    (((3,), (3, 2), (2,)), ((2, 3), (3, 1), (1, 4))),
    3,
    row="",
    **WHOLE_TOO,
)


def _plus(reference: Any, more: dict[str, Any]) -> Any:
    beta, alpha = more.get("beta", 1), more.get("alpha", 1)

    def added(x: Array, a: Array, b: Array) -> Array:
        product = reference(a, b) if alpha == 1 else alpha * reference(a, b)
        return product if beta == 0 else (x if beta == 1 else beta * x) + product

    return added


A_AND_B = ((2, 3), (3, 4))
ADDED: Any = (
    ("addmm", np.matmul, (((2, 4), *A_AND_B), ((4,), *A_AND_B), ((), *A_AND_B), ((3,), (2, 0), (0, 3)))),
    ("addmv", np.matmul, (((2,), (2, 3), (3,)), ((), (2, 3), (3,)))),
    ("addr", np.outer, (((2, 3), (2,), (3,)), ((3,), (2,), (3,)))),
    ("baddbmm", np.matmul, (((2, 2, 2), (2, 2, 3), (2, 3, 2)), ((2,), (2, 1, 3), (2, 3, 2)))),
    ("addbmm", lambda a, b: (a @ b).sum(0), (((2, 2), (2, 2, 3), (2, 3, 2)), ((2,), (2, 1, 3), (2, 3, 2)))),
)  # fmt: skip
for name, reference, shapes in ADDED:
    for more in ({}, {"beta": 2, "alpha": 3}, {"beta": 0}):
        product_case(
            f"{name} {more}",
            lambda m, x, a, b, name=name, more=more: getattr(m, name)(x, a, b, **more),
            _plus(reference, more),
            shapes if "beta" not in more or more["beta"] else shapes[:1],
            3,
            **({**WHOLE_TOO, "dtypes": ALL_NAMES} if name == "addr" and "alpha" not in more else WHOLE_TOO),
        )


def _bilinear(a: Array, b: Array, weight: Array, bias: Array) -> Array:
    return np.einsum("...i,oij,...j->...o", a, weight, b) + bias


product_case(
    "bilinear",
    lambda m, a, b, weight, bias: m.bilinear(a, b, weight, bias),
    _bilinear,
    (((2, 3), (2, 2), (4, 3, 2), (4,)), ((3,), (2,), (1, 3, 2), (1,))),
    4,
    **NO_EDGES,  # two of the three factors are summed first
)
