"""The cases of what is not pointwise: products, joining, views, indexing. See case.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import ALL_NAMES, FLOAT_NAMES, NUMBER_NAMES, SPREAD_OUT, Shape, add

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
view("broadcast_to sizes", "", lambda m, x: x.broadcast_to(2, 3), lambda x: np.broadcast_to(x, (2, 3)), (3,), (2, 1))
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
