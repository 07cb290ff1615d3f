"""The cases of shapes: parts, joins, turns, repetitions, diagonals, padding. See case.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from case import Array, add
from cases_beyond import view

# ---- other views ----------------------------------------------------------------------------------------------------

view("ravel function", "ravel", lambda m, x: m.ravel(x), np.ravel, (2, 3), ())
view(
    "unflatten",
    "unflatten",
    lambda m, x: m.unflatten(x, 1, (2, -1)),
    lambda x: x.reshape(x.shape[0], 2, x.shape[1] // 2, *x.shape[2:]),
    (2, 6),
    (3, 4, 2),
    (0, 2),
)
view("unflatten method", "", lambda m, x: x.unflatten(-1, (1, 5)), lambda x: x[..., None, :], (3, 5), (5,))
view("movedim", "movedim", lambda m, x: m.movedim(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (2, 3), (2, 3, 4), (5,))
view(
    "moveaxis",
    "moveaxis",
    lambda m, x: m.moveaxis(x, (0, -1), (1, 0)),
    lambda x: np.moveaxis(x, (0, -1), (1, 0)),
    (2, 3),
    (2, 3, 4),
)
view("movedim method", "", lambda m, x: x.movedim((2, 0), (0, 2)), lambda x: np.moveaxis(x, (2, 0), (0, 2)), (2, 3, 4))
view("swapaxes", "swapaxes", lambda m, x: m.swapaxes(x, 0, 1), lambda x: x.swapaxes(0, 1), (2, 3), (2, 3, 4))
view("swapdims", "swapdims", lambda m, x: m.swapdims(x, 0, -1), lambda x: x.swapaxes(0, -1), (2, 3), (2, 3, 4))
view("adjoint", "adjoint", lambda m, x: m.adjoint(x), lambda x: x.swapaxes(-1, -2), (2, 3), (2, 3, 4))
view("H", "", lambda m, x: x.H, lambda x: x.T, (2, 3), ())
view("mH", "", lambda m, x: x.mH, lambda x: x.swapaxes(-1, -2), (2, 3), (2, 3, 4))
view(
    "broadcast_to keyword", "", lambda m, x: m.broadcast_to(x, size=(2, 3)), lambda x: np.broadcast_to(x, (2, 3)), (3,)
)
view("permute keyword", "", lambda m, x: x.permute(dims=(1, 0)), lambda x: x.T, (2, 3))
view("atleast_1d", "atleast_1d", lambda m, x: m.atleast_1d(x), np.atleast_1d, (), (3,), (2, 3))
view("atleast_2d", "atleast_2d", lambda m, x: m.atleast_2d(x), np.atleast_2d, (), (3,), (2, 3), (2, 3, 4))
view("atleast_3d", "atleast_3d", lambda m, x: m.atleast_3d(x), np.atleast_3d, (), (3,), (2, 3), (2, 3, 4))
view(
    "as_strided",
    "as_strided",
    lambda m, x: m.as_strided(x.clone(), (2, 3), (1, 2), 1),
    lambda x: np.stack([x.ravel()[1:7:2], x.ravel()[2:8:2]]),
    (3, 5),
    (9,),
)
view(
    "as_strided apart",
    "",
    lambda m, x: x.clone().as_strided((2, 2), (4, 1)),
    lambda x: x.ravel()[[0, 1, 4, 5]].reshape(2, 2),
    (3, 4),
    (6,),
)
view(
    "as_strided of a view",
    "",
    lambda m, x: x.clone()[1:, 1:].as_strided((2, 2), (4, 3)),
    lambda x: x.ravel()[[5, 8, 9, 12]].reshape(2, 2),
    (5, 4),
    grad=0,
)

# ---- parts ----------------------------------------------------------------------------------------------------------

view(
    "split",
    "split",
    lambda m, x: m.split(x, 2),
    lambda x: tuple(np.split(x, range(2, x.shape[0], 2))),
    (5, 3),
    (2, 3),
    (6,),
)
view(
    "split dim",
    "",
    lambda m, x: x.split(2, dim=-1),
    lambda x: tuple(np.split(x, range(2, x.shape[-1], 2), -1)),
    (2, 3),
    (5,),
)
view(
    "split sections",
    "",
    lambda m, x: m.split(x, [1, 0, 2], 1),
    lambda x: (x[:, :1], x[:, 1:1], x[:, 1:]),
    (2, 3),
    (0, 3),
)
view(
    "split_with_sizes",
    "split_with_sizes",
    lambda m, x: m.split_with_sizes(x, (2, 3), -1),
    lambda x: (x[..., :2], x[..., 2:]),
    (2, 5),
    (5,),
)
view(
    "chunk",
    "chunk",
    lambda m, x: m.chunk(x, 3),
    lambda x: tuple(np.split(x, range(-(-x.shape[0] // 3), x.shape[0], -(-x.shape[0] // 3)))),
    (7, 2),
    (4,),
    (2, 3),
)
view("chunk dim", "", lambda m, x: x.chunk(2, 1), lambda x: (x[:, :2], x[:, 2:]), (2, 3))
view(
    "tensor_split",
    "tensor_split",
    lambda m, x: m.tensor_split(x, 3),
    lambda x: tuple(np.array_split(x, 3)),
    (7, 2),
    (2,),
    (0, 3),
)
view(
    "tensor_split at",
    "",
    lambda m, x: x.tensor_split((1, 4, -1), dim=1),
    lambda x: tuple(np.array_split(x, (1, 4, -1), 1)),
    (2, 5),
    (3, 2),
)
view("hsplit", "hsplit", lambda m, x: m.hsplit(x, 2), lambda x: tuple(np.hsplit(x, 2)), (3, 4), (6,), (2, 2, 3))
view("hsplit at", "", lambda m, x: x.hsplit([1]), lambda x: tuple(np.hsplit(x, [1])), (3, 4), (6,))
view("vsplit", "vsplit", lambda m, x: m.vsplit(x, (1, 2)), lambda x: tuple(np.vsplit(x, (1, 2))), (3, 4), (2, 2, 3))
view("dsplit", "dsplit", lambda m, x: m.dsplit(x, 2), lambda x: tuple(np.dsplit(x, 2)), (1, 3, 4))
view("unbind function", "unbind", lambda m, x: m.unbind(x, -1), lambda x: tuple(np.moveaxis(x, -1, 0)), (2, 3), (3,))

# ---- joins ----------------------------------------------------------------------------------------------------------


def joined(name: str, row: str, call: Any, reference: Any, *shapes: Any, **more: Any) -> None:
    """Several inputs into one."""
    add(name, row, call, reference, domains=((-3.0, 3.0),) * len(shapes[0]), shapes=shapes, **{"grad": 2, **more})


joined(
    "concat", "concat", lambda m, a, b: m.concat([a, b], -1), lambda a, b: np.concatenate([a, b], -1), ((2, 3), (2, 1))
)
joined(
    "concatenate",
    "concatenate",
    lambda m, a, b: m.concatenate((a, b)),
    lambda a, b: np.concatenate([a, b]),
    ((2, 3), (1, 3)),
)
joined(
    "hstack",
    "hstack",
    lambda m, a, b: m.hstack([a, b]),
    lambda a, b: np.hstack([a, b]),
    ((2, 3), (2, 1)),
    ((2,), (3,)),
    ((), ()),
    ((2, 1, 2), (2, 3, 2)),
)
joined(
    "vstack",
    "vstack",
    lambda m, a, b: m.vstack((a, b)),
    lambda a, b: np.vstack([a, b]),
    ((2, 3), (1, 3)),
    ((3,), (3,)),
    ((), ()),
    ((3,), (2, 3)),
)
joined("row_stack", "row_stack", lambda m, a, b: m.row_stack((a, b)), lambda a, b: np.vstack([a, b]), ((2, 3), (3,)))
joined(
    "dstack",
    "dstack",
    lambda m, a, b: m.dstack((a, b)),
    lambda a, b: np.dstack([a, b]),
    ((2, 3), (2, 3)),
    ((3,), (3,)),
    ((), ()),
    ((2, 1, 2), (2, 1, 1)),
)
joined(
    "column_stack",
    "column_stack",
    lambda m, a, b: m.column_stack((a, b)),
    lambda a, b: np.column_stack([a, b]),
    ((2, 3), (2,)),
    ((3,), (3,)),
)
joined("column_stack 0-d", "", lambda m, a, b: m.column_stack((a, b)), lambda a, b: np.array([[a, b]]), ((), ()))
joined(
    "broadcast_tensors",
    "broadcast_tensors",
    lambda m, a, b: m.broadcast_tensors(a, b),
    lambda a, b: tuple(np.broadcast_arrays(a, b)),
    ((2, 1), (3,)),
    ((), (2,)),
    ((0, 1), (3,)),
)

joined(
    "meshgrid",
    "meshgrid",
    lambda m, a, b: m.meshgrid(a, b, indexing="xy"),
    lambda a, b: tuple(np.meshgrid(a, b)),
    ((3,), (2,)),
    ((), (2,)),
    ((0,), (2,)),
)
joined(
    "cartesian_prod",
    "cartesian_prod",
    lambda m, a, b: m.cartesian_prod(a, b),
    lambda a, b: np.stack([x.ravel() for x in np.meshgrid(a, b, indexing="ij")], -1),
    ((3,), (2,)),
    ((0,), (2,)),
)
view(
    "combinations",
    "combinations",
    lambda m, x: m.combinations(x),
    lambda x: np.array(list(itertools.combinations(x, 2)), x.dtype).reshape(-1, 2),
    (4,),
    (2,),
    (1,),
)
view(
    "vander",
    "vander",
    lambda m, x: m.vander(x, 4, True),
    lambda x: np.vander(x.astype(np.int64) if x.dtype == bool else x, 4, True),
    (4,),
    (1,),
    result="sum",
    slack=4,
    torch=False,  # its backward fails
)


def _blocks(*xs: Array) -> Array:
    xs = tuple(np.atleast_2d(x) for x in xs)
    out, row, column = np.zeros((sum(len(x) for x in xs), sum(x.shape[1] for x in xs)), xs[0].dtype), 0, 0
    for x in xs:
        out[row : row + len(x), column : column + x.shape[1]] = x
        row, column = row + len(x), column + x.shape[1]
    return out


joined(
    "block_diag",
    "block_diag",
    lambda m, a, b, c: m.block_diag(a, b, c),
    _blocks,
    ((2, 3), (2,), ()),
    ((1, 1), (0, 2), (3, 0)),
)


def replaced(name: str, call: Any, take: Any, *shapes: Any) -> None:
    """A copy of the first input, with a part of it replaced by the second."""

    def reference(x: Array, src: Array) -> Array:
        out = x.reshape(-1).copy()
        out[take(np.arange(x.size).reshape(x.shape)).reshape(-1)] = src.reshape(-1)
        return out.reshape(x.shape)

    joined(name, name.split()[0], call, reference, *shapes)


replaced(
    "select_scatter",
    lambda m, x, s: m.select_scatter(x, s, 1, -1),
    lambda x: x[:, -1],
    ((2, 3), (2,)),
    ((2, 3, 4), (2, 4)),
)
replaced(
    "slice_scatter",
    lambda m, x, s: m.slice_scatter(x, s, 1, 1, None, 2),
    lambda x: x[:, 1::2],
    ((2, 5), (2, 2)),
    ((2, 3, 4), (2, 1, 4)),
)
replaced("slice_scatter all", lambda m, x, s: x.slice_scatter(s), lambda x: x, ((2, 5), (2, 5)))
replaced(
    "diagonal_scatter",
    lambda m, x, s: m.diagonal_scatter(x, s, 1),
    lambda x: x.diagonal(1),
    ((3, 3), (2,)),
    ((2, 3, 4), (4, 2)),
)

# ---- turns and repetitions ------------------------------------------------------------------------------------------

view("flip", "flip", lambda m, x: m.flip(x, (0, -1)), lambda x: np.flip(x, (0, -1)), (2, 3), (2, 3, 4), (0, 2))
view("flip one", "", lambda m, x: x.flip(-1), lambda x: np.flip(x, -1), (2, 3), (5,), (67, 33))
view("flip none", "", lambda m, x: m.flip(x, ()), lambda x: x, (2, 3), ())
view("fliplr", "fliplr", lambda m, x: m.fliplr(x), np.fliplr, (2, 3), (2, 3, 4))
view("flipud", "flipud", lambda m, x: m.flipud(x), np.flipud, (2, 3), (4,))
for _k in (0, 1, 2, 3, -1):
    view(f"rot90 {_k}", "rot90", lambda m, x, k=_k: m.rot90(x, k), lambda x, k=_k: np.rot90(x, k), (2, 3), (2, 3, 4))
view("rot90 axes", "", lambda m, x: x.rot90(1, (2, 0)), lambda x: np.rot90(x, 1, (2, 0)), (2, 3, 4))
view("roll", "roll", lambda m, x: m.roll(x, 2), lambda x: np.roll(x, 2), (3, 5), (4,), (0,), (2, 1, 3))
view(
    "roll dims",
    "",
    lambda m, x: m.roll(x, (1, -7), (0, -1)),
    lambda x: np.roll(x, (1, -7), (0, -1)),
    (3, 5),
    (2, 3, 4),
    (0, 2),
)
view("roll dim", "", lambda m, x: x.roll(shifts=-1, dims=0), lambda x: np.roll(x, -1, 0), (3, 5), (1, 2))
view("repeat", "", lambda m, x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3)), (2, 3), (3,), (1, 2, 2), ())
view("repeat none", "", lambda m, x: x.repeat(0, 2), lambda x: np.tile(x, (0, 2)), (2, 3), (3,))
view("repeat once", "", lambda m, x: x.repeat(1, 1), lambda x: np.tile(x, (1, 1)), (2, 3), (3,))
view("tile", "tile", lambda m, x: m.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (2, 3), (3,), (2, 1, 2), ())
view("tile method", "", lambda m, x: x.tile(2), lambda x: np.tile(x, 2), (2, 3), (0, 3))
view(
    "repeat_interleave",
    "repeat_interleave",
    lambda m, x: m.repeat_interleave(x, 3, 1),
    lambda x: np.repeat(x, 3, 1),
    (2, 3),
    (2, 1, 2),
    (2, 0),
)
view("repeat_interleave all", "", lambda m, x: x.repeat_interleave(2), lambda x: np.repeat(x, 2), (2, 3), (3,), ())
view(
    "repeat_interleave counts",
    "",
    lambda m, x: x.repeat_interleave(m.tensor([2, 0, 1]), dim=-1),
    lambda x: np.repeat(x, [2, 0, 1], -1),
    (2, 3),
    (3,),
)

# ---- diagonals and triangles ----------------------------------------------------------------------------------------


def _diagonals(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


view("diag", "diag", lambda m, x: m.diag(x), lambda x: np.diag(x), (3, 3), (2, 5), (4,), (0,))
view("diag offset", "", lambda m, x: x.diag(-1), lambda x: np.diag(x, -1), (3, 3), (4,), (2, 5))
view("diagflat", "diagflat", lambda m, x: m.diagflat(x, 1), lambda x: np.diagflat(x, 1), (2, 2), (3,), ())
view("diag_embed", "diag_embed", lambda m, x: m.diag_embed(x), lambda x: _diagonals(x, 0, -2, -1), (2, 3), (3,), (0, 2))
view("diag_embed dims", "", lambda m, x: x.diag_embed(-2, 0, 2), lambda x: _diagonals(x, -2, 0, 2), (2, 3), (2, 2, 2))
view(
    "trace",
    "trace",
    lambda m, x: m.trace(x),
    lambda x: np.trace(x, dtype=np.int64 if x.dtype.kind in "biu" else None),
    (3, 3),
    (2, 5),
    (0, 2),
    result="sum",
    scaled=True,
)
for _name in ("tril", "triu"):
    for _k in (0, 1, -1, 9):
        view(
            f"{_name} {_k}",
            _name,
            lambda m, x, n=_name, k=_k: getattr(m, n)(x, k),
            lambda x, n=_name, k=_k: getattr(np, n)(x, k),
            (3, 3),
            (2, 5),
            (2, 4, 3),
            (0, 2),
            in_place=None if _k else _name + "_",
        )

# ---- padding --------------------------------------------------------------------------------------------------------

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(name: str, pads: tuple[int, ...], mode: str, reference: Any, *shapes: Any, **more: Any) -> None:
    arguments = {"mode": mode, **more}
    view(
        f"pad {mode} {name}",
        "constant_pad_nd",
        lambda m, x: m.nn.functional.pad(x, pads, **arguments),
        reference,
        *shapes,
    )


def _widths(pads: tuple[int, ...], ndim: int) -> list[tuple[int, int]]:
    pairs = [(pads[i], pads[i + 1]) for i in range(0, len(pads), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


_pad("one", (1, 2), "constant", lambda x: np.pad(x, _widths((1, 2), x.ndim)), (2, 3), (3,), (0, 0))
_pad(
    "two",
    (1, 2, 0, 3),
    "constant",
    lambda x: np.pad(x, _widths((1, 2, 0, 3), x.ndim), constant_values=2),
    (2, 3),
    (2, 1, 2),
    value=2,
)
_pad(
    "negative",
    (-1, 2, 1, -1),
    "constant",
    lambda x: np.pad(x, _widths((0, 2, 1, 0), x.ndim))[..., :-1, 1:],
    (2, 3),
    (3, 2, 2),
)
view(
    "constant_pad_nd",
    "",
    lambda m, x: m.constant_pad_nd(x, (1, 0), 1),
    lambda x: np.pad(x, _widths((1, 0), x.ndim), constant_values=1),
    (2, 3),
)
for _mode, _numpy in _MODES.items():
    _pad("one", (2, 1), _mode, lambda x, n=_numpy: np.pad(x, _widths((2, 1), x.ndim), n), (2, 3), (2, 2, 4))
    _pad(
        "two",
        (1, 1, 0, 2),
        _mode,
        lambda x, n=_numpy: np.pad(x, _widths((1, 1, 0, 2), x.ndim), n),
        (2, 3, 4),
        (1, 2, 3, 2),
    )
    _pad(
        "three",
        (1, 0, 1, 1, 0, 1),
        _mode,
        lambda x, n=_numpy: np.pad(x, _widths((1, 0, 1, 1, 0, 1), x.ndim), n),
        (2, 2, 3, 2),
    )
_pad("negative", (-2, 3), "replicate", lambda x: np.pad(x, _widths((0, 3), x.ndim), "edge")[..., 2:], (2, 3), (2, 2, 4))
_pad(
    "negative", (-1, 2), "reflect", lambda x: np.pad(x, _widths((0, 2), x.ndim), "reflect")[..., 1:], (2, 3), (2, 2, 4)
)
_pad("negative", (2, -1), "circular", lambda x: np.pad(x[..., :-1], _widths((2, 0), x.ndim), "wrap"), (2, 3), (2, 2, 4))
