"""einsum: products of tensors by labels of their axes, lowered to views and the batched matrix product.

The equation, the sizes and the strides of the operands make a plan: a list of steps, which is cached for the next call.
  1. Axes of one operand with the same label become their diagonal. Axes of size 1, which broadcast, are dropped.
  2. A label that only one operand has, and the output has not, is summed.
  3. Operands are contracted in pairs, in the order of the fewest multiplications: for up to five operands the best of
     all orders, for more the pair that shrinks most first (the greedy path of Smith and Gray, opt_einsum, 2018).
  4. The labels of a pair are of four kinds: in both and needed later (batch), in both and summed (inner), in one (rows,
     columns). A pair without inner labels is multiplied by broadcasting. Else each operand is permuted and reshaped to
     (batch, rows, inner) or its transpose, which the matrix product reads in place: it is copied only where the strides
     of a group of axes do not merge into one, in any order that suits both operands.
  5. The result is permuted, and gets its axes of size 1.
Each step is a recorded operation, so einsum needs no derivative of its own. benchmarks/cases_einsum.py times the plans.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

from ...errors import ArgumentError, Error, ShapeError, rename_error
from .._operand import as_operand, on_one_device
from ..matmul import product
from ..pointwise import mul
from ..reduce import sum as sum_
from ..view import diagonal, permute, reshape

Labels = tuple[int, ...]  # letters by their code; axes of an ellipsis as -1 for the last, -2 for the one before ...
Step = tuple[Any, int, int, tuple[Any, ...]]  # function, slot, second slot or -1, further arguments
Plan = tuple[list[Step], int, bool]  # the steps, the slot of the result, whether a 0-d factor is multiplied

_EXHAUSTIVE = 5  # up to so many operands, all orders are compared
_MIN_ROWS = 16  # of each product in a batch over rows that do not merge; with fewer the operand is copied
_BATCH_AXES = 8  # more batch axes are merged into one, to stay below the limit of axes

_TERM = re.compile(r"([A-Za-z]*)(?:(\.\.\.)([A-Za-z]*))?")


def einsum(equation: Any, *operands: Any) -> Any:
    """The product of the operands' elements, summed over all labels that the output lacks.

    The equation labels the axes of each operand with letters, and those of the output after "->". Without "->" the
    output has the labels that occur once, in alphabetical order. A label that an operand has twice takes the diagonal.
    "..." stands for any number of further axes, which broadcast; they come first in an output that is not written.
    Spaces are ignored. einsum(a, [0, 1], b, [1, 2], [0, 2]) takes numbers from 0 to 51 in place of letters.
    ShapeError, ArgumentError or DTypeError, which name the equation and the operand, for operands that do not match it;
    DeviceError for operands on two devices, except for numbers (0-d tensors of the CPU).

    >>> a, b = norch.arange(6.0).view(2, 3), norch.ones(3, 4)
    >>> norch.einsum("ij,jk->ik", a, b)
    tensor([[ 3.,  3.,  3.,  3.],
            [12., 12., 12., 12.]])
    >>> norch.einsum("ii", norch.eye(3))
    tensor(3.)
    """
    if not isinstance(equation, str):
        equation, operands = _from_sublists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ArgumentError(f"einsum({equation!r}): needs at least one operand")
    tensors = [as_operand(x, "einsum") for x in operands]
    shapes = tuple([x.shape for x in tensors])
    plan = _plan_of(equation, shapes, tuple([x.stride() for x in tensors]))
    return _run(f"einsum({equation!r})", plan, tensors)


def contract(name: str, tensors: Sequence[Any], inputs: tuple[Labels, ...], output: Labels) -> Any:
    """einsum() with labels given as numbers; name is that of the caller, for errors."""
    shapes, strides = tuple([x.shape for x in tensors]), tuple([x.stride() for x in tensors])
    return _run(name, _plan(name, inputs, output, shapes, strides), list(tensors))


def _run(name: str, plan: Plan, work: list[Any]) -> Any:
    steps, result, numbers = plan
    if numbers:  # a 0-d tensor is accepted on any device, the operand that it came from is not
        arrays = [x for x in work if x.ndim]
        for x in arrays[1:]:
            on_one_device(name, arrays[0], x)
    try:
        for function, i, j, arguments in steps:
            if j < 0:
                work[i] = function(work[i], *arguments)
            else:
                work[i], work[j] = function(work[i], work[j], *arguments), None
    except Error as error:
        rename_error(error, name)
        raise
    return work[result]


def _sum_same_dtype(x: Any, dims: tuple[int, ...]) -> Any:
    return sum_(x, dims, dtype=x.dtype)  # sum() would make int64 of integers


# ---- the equation -----------------------------------------------------------------------------------------------


def _from_sublists(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of operands that alternate with lists of numbers."""

    def term(labels: Any) -> str:
        if not isinstance(labels, (list, tuple)):
            raise TypeError(f"einsum: expected an equation, or a list of labels after each operand, not {labels!r}")
        text = ""
        for label in labels:
            if label is Ellipsis:
                text += "..."
            elif not hasattr(label, "__index__") or not 0 <= (number := label.__index__()) < 52:
                raise ArgumentError(f"einsum: a label in a list is ... or a number from 0 to 51, not {label!r}")
            else:
                text += chr(ord("A") + number if number < 26 else ord("a") + number - 26)
        return text

    operands = given[: len(given) // 2 * 2 : 2]
    equation = ",".join(term(labels) for labels in given[1::2])
    return equation + ("->" + term(given[-1]) if len(given) % 2 else ""), operands


@lru_cache(maxsize=512)
def _plan_of(equation: str, shapes: tuple[Any, ...], strides: tuple[Any, ...]) -> Plan:
    name = f"einsum({equation!r})"
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ArgumentError(f"{name}: the equation has {len(terms)} operands, but {len(shapes)} were given")
    inputs, hidden = [], 0
    for k, (text, shape) in enumerate(zip(terms, shapes, strict=True)):
        before, dots, after = _split(name, text, f"operand {k}")
        extra = len(shape) - len(before + after)
        if extra < 0 or (extra and not dots):
            raise ShapeError(
                f"{name}: operand {k} has shape {tuple(shape)}, but {'at least ' if dots else ''}"
                f"{len(before + after)} dimensions are labelled {text!r}"
            )
        inputs.append((*map(ord, before), *range(-extra, 0), *map(ord, after)))
        hidden = max(hidden, extra)
    letters = re.sub(r"\W", "", left)
    if not arrow:
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        return _plan(name, tuple(inputs), (*range(-hidden, 0), *map(ord, once)), shapes, strides)
    before, dots, after = _split(name, right, "the output")
    for letter in before + after:
        if (before + after).count(letter) > 1:
            raise ArgumentError(f"{name}: label {letter!r} appears more than once in the output")
        if letter not in letters:
            raise ArgumentError(f"{name}: label {letter!r} of the output appears in no operand")
    output = (*map(ord, before), *(range(-hidden, 0) if dots else ()), *map(ord, after))
    return _plan(name, tuple(inputs), output, shapes, strides)


def _split(name: str, text: str, where: str) -> tuple[str, str, str]:
    """The labels before an ellipsis, the ellipsis, and those after it."""
    found = _TERM.fullmatch(text)
    if found is None:
        raise ArgumentError(f"{name}: {where} is {text!r}; labels are letters, with at most one ... among them")
    return found[1], found[2] or "", found[3] or ""


# ---- the plan ---------------------------------------------------------------------------------------------------


class _Operand:
    """A tensor during planning: its slot, its labels in order with their strides, and the shape that it has.

    An axis of that shape may be several labels merged, or of size 1 and without a label.
    """

    def __init__(self, slot: int, labels: list[int], strides: dict[int, int], shape: tuple[int, ...]):
        self.slot, self.labels, self.strides, self.shape = slot, labels, strides, shape


@lru_cache(maxsize=512)
def _plan(
    name: str, inputs: tuple[Labels, ...], output: Labels, shapes: tuple[Any, ...], strides: tuple[Any, ...]
) -> Plan:
    planner = _Planner()
    result = planner.run(name, inputs, output, shapes, strides)
    return planner.steps, result, planner.numbers


class _Planner:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.sizes: dict[int, int] = {}
        self.numbers = False

    def run(self, name: str, inputs: Any, output: Labels, shapes: Any, strides: Any) -> int:
        """Fills steps and returns the slot of the result."""
        self.sizes = _sizes(name, inputs, shapes)
        operands = [self._operand(*given) for given in zip(range(len(inputs)), inputs, shapes, strides, strict=True)]
        final = [label for label in output if self.sizes[label] != 1]
        for x in operands:
            others = {label for y in operands if y is not x for label in y.labels}
            alone = [label for label in x.labels if label not in others and label not in final]
            if alone:
                self._sum(x, alone, sum_ if len(operands) == 1 else _sum_same_dtype)
        for i, j in _order([frozenset(x.labels) for x in operands], frozenset(final), self.sizes):
            a, b = operands[i], operands[j]
            operands = [x for x in operands if x is not a and x is not b]
            needed = {label for x in operands for label in x.labels}.union(final)
            operands.append(self._contract(a, b, needed, [] if operands else final))
        result = operands[0]
        self._arrange(result, final, tuple(self.sizes[label] for label in output))
        if not self.steps:
            self._step(permute, result, tuple(range(len(output))))  # a view, not the operand itself
        return result.slot

    def _step(self, function: Any, x: _Operand, *arguments: Any) -> None:
        self.steps.append((function, x.slot, -1, arguments))

    def _size(self, labels: Sequence[int]) -> int:
        return math.prod(self.sizes[label] for label in labels)

    def _operand(self, slot: int, labels: Labels, shape: tuple[int, ...], strides: tuple[int, ...]) -> _Operand:
        """An operand after its diagonals are taken, without labels of size 1."""
        rest, steps, sizes = list(labels), list(strides), list(shape)
        for label in dict.fromkeys(labels):
            while rest.count(label) > 1:
                first = rest.index(label)
                second = rest.index(label, first + 1)
                self.steps.append((diagonal, slot, -1, (0, first, second)))
                for values, last in ((rest, label), (steps, steps[first] + steps[second]), (sizes, sizes[first])):
                    del values[second], values[first]
                    values.append(last)
        kept = [k for k, size in enumerate(sizes) if size != 1]
        return _Operand(slot, [rest[k] for k in kept], {rest[k]: steps[k] for k in kept}, tuple(sizes))

    def _result(self, slot: int, labels: Sequence[int], shape: tuple[int, ...]) -> _Operand:
        """What an operation gives: a contiguous tensor."""
        strides, step = {}, 1
        for label in reversed(labels):
            strides[label] = step
            step *= self.sizes[label]
        return _Operand(slot, list(labels), strides, shape)

    def _arrange(self, x: _Operand, order: Sequence[int], shape: tuple[int, ...]) -> None:
        """Permutes the labels of x into an order, and reshapes x."""
        if list(order) != x.labels:
            self._split(x)
            self._step(permute, x, tuple(x.labels.index(label) for label in order))
            x.labels = list(order)
            x.shape = tuple(self.sizes[label] for label in order)
        if x.shape != shape:
            self._step(reshape, x, shape)
            x.shape = shape

    def _split(self, x: _Operand) -> None:
        """Reshapes x to one axis for each label."""
        shape = tuple(self.sizes[label] for label in x.labels)
        if x.shape != shape:
            self._step(reshape, x, shape)
            x.shape = shape

    def _sum(self, x: _Operand, summed: list[int], function: Any) -> None:
        self._split(x)
        self._step(function, x, tuple(x.labels.index(label) for label in summed))
        kept = [label for label in x.labels if label not in summed]
        result = self._result(x.slot, kept, tuple(self.sizes[label] for label in kept))
        x.labels, x.strides, x.shape = result.labels, result.strides, result.shape

    # ---- two operands ---------------------------------------------------------------------------------------

    def _contract(self, a: _Operand, b: _Operand, needed: set[int], final: list[int]) -> _Operand:
        """The product of two operands, summed over the labels that both have and that are not needed later.

        final: the order of the labels in the output, where this is the last product.
        """
        inner = [label for label in a.labels if label in b.strides and label not in needed]
        if final and (ends := [label for label in final if (label in a.strides) != (label in b.strides)]):
            if ends[0] in b.strides:
                a, b = b, a  # the result then has the order of the output
        order = final or [*a.labels, *(label for label in b.labels if label not in a.strides)]
        if not inner:
            return self._multiply(a, b, order)
        batch = [label for label in order if label in a.strides and label in b.strides and label in needed]
        rows = [label for label in order if label in a.strides and label not in b.strides]
        columns = [label for label in order if label in b.strides and label not in a.strides]

        inner = min(
            (sorted(inner, key=lambda label: -x.strides[label]) for x in (a, b)),
            key=lambda k: sum(self._copied_elements(x, k, free) for x, free in ((a, rows), (b, columns))),
        )
        row_batch, rows = self._batched(a, rows, inner, self._size(columns))
        column_batch: list[int] = []
        if not row_batch:
            column_batch, columns = self._batched(b, columns, inner, self._size(rows))
        transposed_a = self._as_matrix(a, row_batch, batch, rows, inner)
        transposed_b = self._as_matrix(b, column_batch, batch, columns, inner)
        self.steps.append((product, a.slot, b.slot, (transposed_a, not transposed_b)))
        lead_batch = [*row_batch, *column_batch]
        shape = [self.sizes[label] for label in lead_batch] + self._batch_shape(batch)
        shape += [self._size(rows)] if rows or row_batch or batch else []  # a vector has no axis of rows
        shape += [self._size(columns)] if columns or column_batch or batch else []
        return self._result(a.slot, [*lead_batch, *batch, *rows, *columns], tuple(shape))

    def _multiply(self, a: _Operand, b: _Operand, order: list[int]) -> _Operand:
        self.numbers |= not a.labels or not b.labels
        for x in (a, b):
            shape = [self.sizes[label] if label in x.strides else 1 for label in order]
            first = next((k for k, label in enumerate(order) if label in x.strides), len(order))
            self._arrange(x, [label for label in order if label in x.strides], tuple(shape[first:]))
        self.steps.append((mul, a.slot, b.slot, ()))
        return self._result(a.slot, order, tuple(self.sizes[label] for label in order))

    def _merges(self, x: _Operand, group: Sequence[int]) -> bool:
        """Whether the labels of a group, in this order, merge into one axis of x without a copy."""
        return all(x.strides[a] == x.strides[b] * self.sizes[b] for a, b in pairwise(group))

    def _merged_order(self, x: _Operand, group: list[int]) -> list[int]:
        """The labels of a group in the given order if they merge so, else by descending strides."""
        return group if self._merges(x, group) else sorted(group, key=lambda label: -x.strides[label])

    def _copied_elements(self, x: _Operand, inner: list[int], free: list[int]) -> int:
        """The number of elements that are copied to make a matrix of x."""
        if self._merges(x, inner) and self._merges(x, self._merged_order(x, free)):
            return 0
        return self._size(x.labels)

    def _batched(self, x: _Operand, free: list[int], inner: list[int], across: int) -> tuple[list[int], list[int]]:
        """(labels that become a batch, the other ones) of rows that do not merge, where a batch is better than a copy:
        where its products are not tiny, and the gradient of the other operand is no larger than the copy."""
        free = self._merged_order(x, free)
        if self._merges(x, free) or not self._merges(x, inner):
            return [], free
        cut = next(k for k in range(len(free)) if self._merges(x, free[k:]))
        size = self._size(free[cut:])
        return (free[:cut], free[cut:]) if size >= max(_MIN_ROWS, across) else ([], free)

    def _batch_shape(self, batch: list[int]) -> list[int]:
        return [self.sizes[label] for label in batch] if len(batch) <= _BATCH_AXES else [self._size(batch)]

    def _as_matrix(
        self, x: _Operand, lead_batch: list[int], batch: list[int], free: list[int], inner: list[int]
    ) -> bool:
        """Arranges x as (batch, free, inner), or as (batch, inner, free) if it is so already: then True."""
        lead = [*lead_batch, *batch]
        transposed = x.labels == [*lead, *inner, *free] and bool(free)
        groups = (inner, free) if transposed else (free, inner)
        shape = [self.sizes[label] for label in lead_batch] + self._batch_shape(batch)
        shape += [self._size(group) for group in groups if group or lead]
        self._arrange(x, [*lead, *groups[0], *groups[1]], tuple(shape))
        return transposed


def _sizes(name: str, inputs: tuple[Labels, ...], shapes: tuple[Any, ...]) -> dict[int, int]:
    """The size of each label; ShapeError where operands have different ones other than 1."""
    sizes: dict[int, int] = {}
    owner: dict[int, int] = {}
    for k, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        own: dict[int, int] = {}
        for label, size in zip(labels, shape, strict=True):
            what = f"label {chr(label)!r}" if label >= 0 else f"dimension {label} of the ellipsis"
            if own.setdefault(label, size) != size:
                raise ShapeError(f"{name}: {what} has sizes {own[label]} and {size} in operand {k}")
            if sizes.get(label, 1) == 1:
                sizes[label], owner[label] = size, k
            elif size not in (1, sizes[label]):
                raise ShapeError(
                    f"{name}: {what} has size {sizes[label]} in operand {owner[label]} and size {size} in operand {k}"
                )
    return sizes


# ---- the order --------------------------------------------------------------------------------------------------


def _order(sets: list[frozenset[int]], final: frozenset[int], sizes: dict[int, int]) -> list[tuple[int, int]]:
    """The pairs to contract, as positions in a list: both are removed from it, and the product is appended."""

    def volume(labels: frozenset[int]) -> int:
        return math.prod(sizes[label] for label in labels)

    def after(left: list[frozenset[int]], i: int, j: int) -> tuple[frozenset[int], list[frozenset[int]]]:
        others = [x for k, x in enumerate(left) if k not in (i, j)]
        both = left[i] | left[j]
        return both, [*others, both & final.union(*others)]

    def best(left: list[frozenset[int]], limit: float) -> tuple[float, list[tuple[int, int]]]:
        found: tuple[float, list[tuple[int, int]]] = (limit, [])
        for i, j in combinations(range(len(left)), 2):
            both, rest = after(left, i, j)
            cost: float = volume(both)
            if cost >= found[0]:
                continue
            tail: list[tuple[int, int]] = []
            if len(rest) > 1:
                further, tail = best(rest, found[0] - cost)
                cost += further
            if cost < found[0] and (tail or len(rest) == 1):
                found = (cost, [(i, j), *tail])
        return found

    if len(sets) <= _EXHAUSTIVE:
        return best(sets, math.inf)[1]
    pairs, left = [], sets
    while len(left) > 1:

        def growth(pair: tuple[int, int]) -> tuple[int, int]:
            both, rest = after(left, *pair)  # noqa: B023  (called at once)
            return volume(rest[-1]) - volume(left[pair[0]]) - volume(left[pair[1]]), volume(both)  # noqa: B023

        pairs.append(min(combinations(range(len(left)), 2), key=growth))
        left = after(left, *pairs[-1])[1]
    return pairs
