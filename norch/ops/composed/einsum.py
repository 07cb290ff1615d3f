"""einsum: products of tensors by labels of their axes, rewritten as views and the batched matrix product.

The equation and the sizes of the operands make a plan: a list of steps, which is cached for the next call.
  1. Axes of one operand with the same label become their diagonal. Axes of size 1, which broadcast, are dropped.
  2. A label that only one operand has, and the output has not, is summed, integers in int64.
  3. Operands are contracted in pairs, first the one whose product is smallest beside its operands (the greedy path of
     Smith and Gray, opt_einsum, 2018).
  4. The labels of a pair are of four kinds: in both and needed later (batch), in both and summed (inner), in one (rows,
     columns). A pair without inner labels is multiplied by broadcasting. Else each operand is permuted and reshaped to
     (batch, rows, inner) or its transpose, which the matrix product reads in place: it is copied only where the labels
     of a group are not side by side in memory.
  5. The result is permuted, and gets its axes of size 1.
Each step is a recorded operation, so einsum needs no derivative of its own. benchmarks/cases_einsum.py times the plans.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from ..._binding.library import lib
from ..._package.typing import Any, Tensor
from ..._tensor.handle import Handle
from ...autograd.grad_mode import mode
from ...autograd.outlive import outlive_writes
from ...dtype import int64, promote_types
from ...errors import ArgumentError, Error, ShapeError, rename_error
from .._autocast import in_autocast, policy
from .._checks import on_one_device
from .._entry import composed
from .._operand import as_operand
from ..matmul import product
from ..pointwise import mul
from ..reduce import sum_over
from ..view import alias_of, diagonal, permute, reshape

Labels = tuple[int, ...]  # letters by their code; axes of an ellipsis as -1 for the last, -2 for the one before ...
Step = tuple[Any, int, int, tuple[Any, ...]]  # function, slot, second slot or -1, further arguments
# The steps, the slot of the result, whether a 0-d factor is multiplied, whether integers become int64 as those that are
# added up do, and the name for errors.
Plan = tuple[list[Step], int, bool, bool, str]

_MIN_ROWS = 16  # of the products in a batch that saves a copy
_BATCH_AXES = 8  # more batch axes are merged into one, to stay below the limit of axes


@policy("- lower")
def einsum(equation: Any, *operands: Tensor | Any) -> Tensor:
    """The product of the operands' elements, summed over all labels that the output lacks.

    The equation labels the axes of each operand with letters, and after "->" the axes of the output. Without "->" the
    output has the labels that occur once, in alphabetical order. A label that an operand has twice takes the diagonal.
    "..." means any number of further axes, which broadcast; they come first in an output that is not written. Spaces
    are ignored. einsum(a, [0, 1], b, [1, 2], [0, 2]) has numbers from 0 to 51 instead of letters.

    If operands do not match the equation, ShapeError, ArgumentError or DTypeError name both. DeviceError for operands
    on two devices, except for numbers (0-d tensors of the CPU).

    >>> a, b = norch.arange(6.0).view(2, 3), norch.ones(3, 4)
    >>> norch.einsum("ij,jk->ik", a, b)
    tensor([[ 3.,  3.,  3.,  3.],
            [12., 12., 12., 12.]])
    >>> norch.einsum("ii", norch.eye(3))
    tensor(3.)
    """
    if mode.casting and (out := in_autocast(einsum, equation, *operands)) is not None:
        return out
    if not isinstance(equation, str):
        equation, operands = _from_sublists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ArgumentError(f"einsum({equation!r}): needs at least one operand")
    if len(operands) == 1:  # the result may be a view of it
        tensors = [alias_of(as_operand(operands[0], "einsum"))]
    else:
        tensors = [as_operand(x, "einsum") for x in operands]
    plan = _plan_of(equation, tuple([lib.norch_shape(x) for x in tensors]))
    return _run(plan, tensors) if len(tensors) < 3 else _chain(plan, tensors)


def contract(name: str, tensors: Sequence[Tensor], inputs: tuple[Labels, ...], output: Labels) -> Tensor:
    """einsum() with numbers as labels. Sums keep the dtype. Errors have the name of the caller."""
    shapes = tuple([lib.norch_shape(x) for x in tensors])
    return _run(_plan(name, inputs, output, shapes, _sum_same_dtype), list(tensors))


def _run(plan: Plan, work: list[Any]) -> Tensor:
    steps, result, numbers, widens, name = plan
    if numbers:  # a 0-d tensor is accepted on any device, the operand that it came from is not
        arrays = [x for x in work if x.ndim]
        for x in arrays[1:]:
            on_one_device(name, arrays[0], x)
        kinds = {x.dtype for x in work if not x._weak}
        if len(kinds) > 1:  # a factor promotes as given, though its axes of size 1 are dropped
            kind = functools.reduce(promote_types, kinds)
            work = [x if x._weak else x.to(kind) for x in work]
    if widens and not any(x.dtype.kind in "fc" for x in work):
        work = [x.to(int64) for x in work]
    try:
        for function, i, j, arguments in steps:
            if j < 0:
                work[i] = function(work[i], *arguments)
            else:
                # PyTorch multiplies copies of operands whose axes it moves.
                work[i], work[j] = outlive_writes(function(work[i], work[j], *arguments), work[i], work[j]), None
    except Error as error:
        rename_error(error, name)
        raise
    return work[result]


def _chain(plan: Plan, work: list[Any]) -> Tensor:
    return _run(plan, list(work))


_chain.__name__ = "einsum"  # which errors name
_chain = composed(_chain)  # of two operands a product rounds once, of more each would


def _sum_same_dtype(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return sum_over(x, dims, False, x._dtype)  # without the dtype integers add up in int64


# ---- the equation -----------------------------------------------------------------------------------------------


def _from_sublists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of operands that alternate with lists of numbers."""

    def term(labels: Any) -> str:
        if isinstance(labels, (str, Handle)) or not isinstance(labels, Iterable):
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

    operands = arguments[: len(arguments) // 2 * 2 : 2]
    equation = ",".join(term(labels) for labels in arguments[1::2])
    return equation + ("->" + term(arguments[-1]) if len(arguments) % 2 else ""), operands


@functools.lru_cache(maxsize=512)
def _plan_of(equation: str, shapes: tuple[Any, ...]) -> Plan:
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
    letters = [letter for letter in left if letter.isalpha()]
    if not arrow:
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        return _plan(name, tuple(inputs), (*range(-hidden, 0), *map(ord, once)), shapes)
    before, dots, after = _split(name, right, "the output")
    for letter in before + after:
        if (before + after).count(letter) > 1:
            raise ArgumentError(f"{name}: label {letter!r} appears more than once in the output")
        if letter not in letters:
            raise ArgumentError(f"{name}: label {letter!r} of the output appears in no operand")
    output = (*map(ord, before), *(range(-hidden, 0) if dots else ()), *map(ord, after))
    return _plan(name, tuple(inputs), output, shapes)


def _split(name: str, text: str, where: str) -> tuple[str, str, str]:
    """The labels before an ellipsis, the ellipsis, and those after it."""
    before, dots, after = text.partition("...")
    labels = before + after
    if labels and not (labels.isascii() and labels.isalpha()):
        raise ArgumentError(f"{name}: {where} is {text!r}; labels are letters, with at most one ... among them")
    return before, dots, after


# ---- the plan ---------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=512)
def _plan(
    name: str, inputs: tuple[Labels, ...], output: Labels, shapes: tuple[Any, ...], total: Any = sum_over
) -> Plan:
    planner = _Planner(_sizes(name, inputs, shapes), output, total)
    if len(inputs) == 1:  # its axes of size 1 are summed as others are, for the dtype
        planner.summed = {*inputs[0]}.difference(output)
    for slot, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        planner.add(slot, list(labels), list(shape))
    return planner.steps, planner.run(output), planner.numbers, planner.widens, name


class _Operand:
    """A tensor during planning: the slot that holds it, and the labels of its axes, none of size 1."""

    def __init__(self, slot: int, labels: list[int]) -> None:
        self.slot, self.labels = slot, labels


class _Planner:
    def __init__(self, sizes: dict[int, int], output: Labels, total: Any) -> None:
        self.sizes, self.steps, self.work = sizes, list[Step](), list[_Operand]()
        self.total, self.summed = total, set[int]()
        self.final = [label for label in output if sizes[label] != 1]
        self.numbers = self.widens = False

    def add(self, slot: int, labels: list[int], shape: list[int]) -> None:
        """An operand: its diagonals are taken, and its axes of size 1 dropped."""
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                self._step(diagonal, slot, 0, first, second)
                for values in (labels, shape):
                    values.append(values[first])
                    del values[second], values[first]
        remaining = [x for x, size in zip(labels, shape, strict=True) if size != 1 or x in self.summed]
        if len(remaining) < len(labels):
            self._step(reshape, slot, *self._shape(remaining))
        self.work.append(_Operand(slot, remaining))

    def run(self, output: Labels) -> int:
        """Fills steps and returns the slot of the result."""
        for k, x in enumerate(self.work):
            needed = self._needed(x)
            if alone := [axis for axis, label in enumerate(x.labels) if label not in needed]:
                self.widens = self.total is sum_over and len(self.work) > 1
                self._step(self.total, x.slot, tuple(alone))
                self.work[k] = _Operand(x.slot, [label for label in x.labels if label in needed])
        while len(self.work) > 1:
            a, b = min(combinations(self.work, 2), key=self._growth)
            needed = self._needed(a, b)
            self.work = [x for x in self.work if x is not a and x is not b]
            self.work.append(self._contract(a, b, needed))
        (result,) = self.work
        self._arrange(result, self.final, tuple(self.sizes[label] for label in output))
        return result.slot

    def _step(self, function: Any, slot: int, *arguments: Any) -> None:
        self.steps.append((function, slot, -1, arguments))

    def _shape(self, labels: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[label] for label in labels)

    def _needed(self, *operands: _Operand) -> set[int]:
        """The labels of the output and of the other operands."""
        return {label for x in self.work if x not in operands for label in x.labels}.union(self.final)

    def _growth(self, pair: tuple[_Operand, _Operand]) -> tuple[int, int]:
        """How many elements a product has more than its operands, and the number of multiplications."""
        both = {*pair[0].labels, *pair[1].labels}
        result, *counts = (math.prod(self._shape(x)) for x in (both & self._needed(*pair), *(x.labels for x in pair)))
        return result - sum(counts), math.prod(self._shape(both))

    def _arrange(self, x: _Operand, order: list[int], shape: tuple[int, ...]) -> None:
        """Permutes the axes of x into an order, and reshapes x."""
        if order != x.labels:
            self._step(permute, x.slot, *map(x.labels.index, order))
        if shape != self._shape(order):
            self._step(reshape, x.slot, *shape)

    def _contract(self, a: _Operand, b: _Operand, needed: set[int]) -> _Operand:
        """The product of two operands, summed over the labels that both have and that are not needed later."""
        if self.final and next((x for x in self.final if (x in a.labels) != (x in b.labels)), None) in b.labels:
            a, b = b, a  # the result then has the order of the output
        both = [label for label in a.labels if label in b.labels]
        inner, batch = [x for x in both if x not in needed], [x for x in both if x in needed]
        rows, columns = ([x for x in one.labels if x not in both] for one in (a, b))
        if not inner:
            return self._multiply(a, b, self.final if not self.work else [*a.labels, *columns])
        inner = [x for x in max(a, b, key=lambda one: math.prod(self._shape(one.labels))).labels if x in inner]
        lead_a = self._lead(a, rows, inner, batch, columns)
        lead_b = [] if lead_a else self._lead(b, columns, inner, batch, rows)
        rows, columns = rows[len(lead_a) :], columns[len(lead_b) :]
        transposed_a = self._as_matrix(a, [*lead_a, *batch], rows, inner)
        transposed_b = self._as_matrix(b, [*lead_b, *batch], columns, inner)
        self.steps.append((product, a.slot, b.slot, (transposed_a, not transposed_b)))
        batch = [*lead_a, *lead_b, *batch]
        result = _Operand(a.slot, [*batch, *rows, *columns])
        if self._merged(batch, rows, columns) != self._shape(result.labels):
            self._step(reshape, a.slot, *self._shape(result.labels))
        return result

    def _lead(self, x: _Operand, free: list[int], inner: list[int], batch: list[int], across: list[int]) -> list[int]:
        """Rows that lie before the inner labels, while others lie behind: as a batch they need no copy of x. But the
        products should not be tiny, nor the gradient of the other operand, one for each of the batch, large."""
        cut = next((k for k in range(1, len(free)) if x.labels == [*free[:k], *batch, *inner, *free[k:]]), 0)
        large = math.prod(self._shape(free[cut:])) >= max(_MIN_ROWS, math.prod(self._shape(across)))
        return free[:cut] if large and cut + len(batch) <= _BATCH_AXES else []

    def _merged(self, batch: list[int], *groups: list[int]) -> tuple[int, ...]:
        """The shape with one axis for each group; without a batch an empty group has no axis, as of a vector."""
        sizes = self._shape(batch)
        lead = sizes if len(sizes) <= _BATCH_AXES else (math.prod(sizes),)
        return (*lead, *(math.prod(self._shape(group)) for group in groups if group or batch))

    def _as_matrix(self, x: _Operand, batch: list[int], free: list[int], inner: list[int]) -> bool:
        """Arranges x as (batch, free, inner), or as (batch, inner, free) if it is so already: then True."""
        transposed = bool(free) and x.labels == [*batch, *inner, *free]
        groups = (inner, free) if transposed else (free, inner)
        self._arrange(x, [*batch, *groups[0], *groups[1]], self._merged(batch, *groups))
        return transposed

    def _multiply(self, a: _Operand, b: _Operand, order: list[int]) -> _Operand:
        """The product of two operands that have no label to sum, by broadcasting."""
        self.numbers |= not a.labels or not b.labels
        for x in (a, b):
            shape = tuple(self.sizes[label] if label in x.labels else 1 for label in order)
            first = next((k for k, label in enumerate(order) if label in x.labels), len(order))
            self._arrange(x, [label for label in order if label in x.labels], shape[first:])
        self.steps.append((mul, a.slot, b.slot, ()))
        return _Operand(a.slot, order)


def _sizes(name: str, inputs: tuple[Labels, ...], shapes: tuple[Any, ...]) -> dict[int, int]:
    """The size of each label; ShapeError where operands have different ones other than 1."""
    sizes: dict[int, int] = {}
    owner: dict[int, int] = {}
    for k, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        in_operand: dict[int, int] = {}
        for label, size in zip(labels, shape, strict=True):
            where = f"label {chr(label)!r}" if label >= 0 else f"dimension {label} of the ellipsis"
            if in_operand.setdefault(label, size) != size:
                raise ShapeError(f"{name}: {where} has sizes {in_operand[label]} and {size} in operand {k}")
            if sizes.get(label, 1) == 1:
                sizes[label], owner[label] = size, k
            elif size not in (1, sizes[label]):
                raise ShapeError(
                    f"{name}: {where} has size {sizes[label]} in operand {owner[label]} and size {size} in operand {k}"
                )
    return sizes
