"""What a case is, and how its inputs are drawn. The cases stand in cases_*.py, collected by cases.py.

``call(m, *inputs)`` is written once, for m = norch and m = torch; ``reference`` says in NumPy what comes out, over
float64, int64 or bool inputs. Every row of csrc/ops.def and every operation in norch/__init__.py has a case here;
test_ops.py fails otherwise, and walks the cases over dtypes, layouts and edge values.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import norch

HALF_NAMES = ("float16", "bfloat16")
FLOAT_NAMES = ("float32", "float64", *HALF_NAMES)
INTEGER_NAMES = ("uint8", "int8", "int16", "int32", "int64")
NUMBER_NAMES = (*INTEGER_NAMES, *FLOAT_NAMES)
WHOLE_NAMES = ("bool", *INTEGER_NAMES)
ALL_NAMES = ("bool", *NUMBER_NAMES)
NARROW_NAMES = ("int8", "int16", *HALF_NAMES)  # computed in a wider one: fewer layouts and samples will do

Array = Any
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One way to call one operation.

    row          its row in ops.def, or the name of the public function, or "" for more of the same
    domains      the interval that each input is drawn from, or "bool" / "index" for inputs of that fixed kind;
                 "distinct": indices that differ along the first axis
    shapes       of the inputs: several tuples, one shape an input each
    result       dtype of each result: same, float (integers become the default one), bool, sum, index,
                 truth (bool, but uint8 of uint8), or a name
    dtypes       that norch takes
    grad         how many derivatives are checked: 0, 1, 2
    inputs       which inputs have derivatives; None: all that are floats
    in_place     the name of the method that does the same in place; leading, trailing: its arguments around the inputs
    torch        PyTorch's way where it is called otherwise; False where it has none
    slack        multiplies the tolerances
    edges        whether edge values go through it
    torch_edges  whether they are compared with PyTorch too, or else why not
    torch_grad   whether gradients are compared with PyTorch's, or else why not
    index_below  indices are drawn from 0 up to this
    scaled       whether errors are measured against the size of the terms that a result adds up
    """

    name: str
    row: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    domains: tuple[Any, ...] = ((-3.0, 3.0),)
    shapes: tuple[tuple[Shape, ...], ...] = (((3, 5),),)
    result: str = "same"
    dtypes: tuple[str, ...] = ALL_NAMES
    grad: int = 0
    inputs: tuple[int, ...] | None = None
    in_place: str | None = None
    leading: tuple[Any, ...] = ()
    trailing: tuple[Any, ...] = ()
    torch: Any = None
    slack: float = 1.0
    edges: bool = True
    torch_edges: bool | str = True
    torch_grad: bool | str = True
    index_below: int = 0
    scaled: bool = False

    def __str__(self) -> str:
        return self.name

    def write(self, x: Any, *others: Any) -> Any:
        """The same in place."""
        assert self.in_place is not None
        return getattr(x, self.in_place)(*self.leading, *others, *self.trailing)

    def torch_call(self) -> Callable[..., Any]:
        """How PyTorch is asked."""
        return self.call if self.torch is None else self.torch


CASES: list[Case] = []


def add(name: str, row: str, call: Any, reference: Any, **more: Any) -> None:
    """One more case."""
    assert all(name != case.name for case in CASES), f"two cases named {name}"
    CASES.append(Case(name, row, call, reference, **more))


# ---- inputs ---------------------------------------------------------------------------------------------------------


def source(text: str) -> np.random.Generator:
    """Random numbers that depend on text alone."""
    return np.random.default_rng(zlib.crc32(text.encode()))


def draw(case: Case, shapes: Sequence[Shape], dtype: str, rng: np.random.Generator) -> list[Array]:
    """Inputs of the given shapes, from the case's domains; NumPy arrays of the dtype (see numpy_values)."""
    arrays = []
    for position, shape in enumerate(shapes):
        domain = case.domains[min(position, len(case.domains) - 1)]
        if isinstance(domain, str) and domain == "bool":
            arrays.append(rng.random(shape) < 0.5)
        elif isinstance(domain, str) and domain == "distinct":
            order = rng.random((case.index_below, *shape[1:])).argsort(0)
            arrays.append(order[: shape[0]])
        elif isinstance(domain, str):
            arrays.append(rng.integers(0, case.index_below, shape))
        elif dtype == "bool":
            # where 0 lies outside the domain False is left out
            arrays.append(rng.random(shape) < (0.5 if domain[0] <= 0 else 2))
        elif dtype in WHOLE_NAMES:
            low, high = math.ceil(domain[0]), math.floor(domain[1])
            arrays.append(rng.integers(max(low, 0) if dtype == "uint8" else low, max(high, 1) + 1, shape).astype(dtype))
        else:
            arrays.append(numpy_values(rng.uniform(*domain, shape), dtype))
    return arrays


def numpy_values(values: Any, dtype: str) -> Array:
    """An array of a dtype; NumPy has no bfloat16, whose values come as float32."""
    if dtype != "bfloat16":
        return np.asarray(values).astype(dtype)
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)).astype(np.uint32) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(math.nan), rounded.view(np.float32))


def as_tensor(array: Array, dtype: str) -> Any:
    """A tensor of what numpy_values gave for a case of this dtype."""
    return norch.tensor(array, dtype=norch.bfloat16 if is_bfloat16(array, dtype) else None)


def as_numpy(x: Any) -> Array:
    """The array of a tensor, float32 for bfloat16."""
    return (x.float() if x.dtype is norch.bfloat16 else x).detach().numpy()


def is_bfloat16(array: Array, dtype: str) -> bool:
    """Whether array holds values of bfloat16, in a case of the given dtype."""
    return dtype == "bfloat16" and array.dtype == np.float32


def edge_values(dtype: str) -> Array:
    """The values of a dtype at which formulas break."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOAT_NAMES:
        info = norch.finfo(dtype)
        least = info.tiny * info.eps
        values = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-20, -1e-20]
        values += [info.max, -info.max, info.tiny, -info.tiny, least, -least, 1 + info.eps, 1 - info.eps / 2]
        values += [88.0, -88.0, 1e4, -1e4, 16777217.0, 0.49999997]
        with np.errstate(over="ignore"):
            return numpy_values(values, dtype)
    whole = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, whole.max, whole.max - 1, whole.min, whole.min + 1, whole.max // 2}
    return np.array(sorted(values | ({-1, -2, -7} if whole.min else set())), dtype)


def edge_inputs(case: Case, dtype: str) -> list[Array]:
    """Edge values for a pointwise case: all of them, in all pairs, or in many triples."""
    values = edge_values(dtype)
    if len(case.domains) == 1:
        return [np.tile(values, 3)]
    if len(case.domains) == 2:
        pairs = np.array(list(itertools.product(range(len(values)), repeat=2)))
        return [values[pairs[:, 0]], values[pairs[:, 1]]]
    picks = source(case.name + dtype).integers(0, len(values), (3, 400))
    arrays = [values[picks[0]], values[picks[1]], values[picks[2]]]
    if case.domains[0] == "bool":
        arrays[0] = picks[0] % 2 == 0
    return arrays


def laid_out(array: Array, layout: str, dtype: str = "") -> tuple[Any, Array]:
    """A tensor of the values of array, laid out in memory as asked, and those values (expanded ones repeat).

    contiguous; transposed: the axes reversed in memory; strided: every second element of a larger tensor; offset: one
    element into its memory; flipped: every axis backward in memory; expanded: the first axis at stride 0.
    """

    def tensor(values: Array) -> Any:
        return as_tensor(values, dtype)

    if layout == "contiguous" or array.ndim == 0:
        return tensor(array), array
    if layout == "transposed":
        axes = tuple(reversed(range(array.ndim)))
        return tensor(np.ascontiguousarray(array.transpose(axes))).permute(axes), array
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return tensor(wide)[..., ::2], array
    if layout == "offset":
        flat = tensor(np.concatenate([array.reshape(-1)[:1], array.reshape(-1)]))
        return (flat[1:].view(array.shape) if array.size else tensor(array)), array
    if layout == "flipped":
        return tensor(np.flip(array).copy())[(slice(None, None, -1),) * array.ndim], array
    assert layout == "expanded", layout
    if not array.shape[0]:
        return tensor(array), array
    row = np.ascontiguousarray(array[:1])
    return tensor(row).expand(array.shape), np.broadcast_to(row, array.shape)


# ---- domains and shapes that many cases share ---------------------------------------------------------------------

SPREAD_OUT = ((-3.0, 3.0), (-3.0, 3.0))
PAIR: tuple[tuple[Shape, ...], ...] = (((3, 5), (3, 5)), ((2, 1), (4,)), ((), (3,)), ((0, 2), (2,)))


def wide(low: float, high: float) -> tuple[tuple[float, float], ...]:
    """One domain for one input."""
    return ((low, high),)
