"""Elementwise operations on matrices of 1e3, 1e5 and 1e7 float32 elements: the call, the cache, the memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from .library import Case, Library, Run

SHAPES = {"1e3": (25, 40), "1e5": (250, 400), "1e7": (2500, 4000)}

Sized = Callable[[Library, tuple[int, int]], Run]


def unary(find: Callable[[Any], Callable[[Any], Any]], low: float = -4.0) -> Sized:
    """The function that find gets from the library's module, on numbers from low to 4."""

    def setup(lib: Library, shape: tuple[int, int]) -> Run:
        function, x = find(lib.module), lib.random(*shape, low=low, high=4.0)
        return lambda: function(x)

    return setup


def binary(function: Callable[[Any, Any], Any]) -> Sized:
    def setup(lib: Library, shape: tuple[int, int]) -> Run:
        a, b = lib.random(*shape), lib.random(*shape)
        return lambda: function(a, b)

    return setup


def sigmoid_of(np: Any) -> Callable[[Any], Any]:
    exp = np.exp
    return lambda x: 1 / (1 + exp(-x))


def relu_of(np: Any) -> Callable[[Any], Any]:
    maximum = np.maximum
    return lambda x: maximum(x, 0)


def where(lib: Library, shape: tuple[int, int]) -> Run:
    choose, a, b = lib.module.where, lib.random(*shape), lib.random(*shape)
    mask = lib.random(*shape) > 0
    return lambda: choose(mask, a, b)


def bias_add(lib: Library, shape: tuple[int, int]) -> Run:
    x, bias = lib.random(*shape), lib.random(shape[1])
    return lambda: x + bias


def transpose_copy(lib: Library, shape: tuple[int, int]) -> Run:
    x = lib.random(*shape)
    return lambda: x.T.contiguous()


def transpose_copy_arrays(lib: Library, shape: tuple[int, int]) -> Run:
    contiguous, x = lib.module.ascontiguousarray, lib.random(*shape)
    return lambda: contiguous(x.T)


def cast(lib: Library, shape: tuple[int, int]) -> Run:
    x = lib.random(*shape)
    return lambda: x.double()


def cast_arrays(lib: Library, shape: tuple[int, int]) -> Run:
    float64, x = lib.module.float64, lib.random(*shape)
    return lambda: x.astype(float64)


def strided_slices(lib: Library, shape: tuple[int, int]) -> Run:
    x, y = (lib.random(shape[0], 2 * shape[1]) for _ in range(2))
    return lambda: x[:, ::2] + y[:, 1::2]


def _unaries(name: str, low: float = -4.0) -> tuple[str, Sized, Sized]:
    """A function that all three libraries have under this name."""
    setup = unary(operator.attrgetter(name), low)
    return name, setup, setup


OPERATIONS: list[tuple[str, Sized, Sized | None]] = [
    ("add", binary(operator.add), binary(operator.add)),
    ("mul", binary(operator.mul), binary(operator.mul)),
    _unaries("exp"),
    _unaries("log", low=0.1),
    _unaries("tanh"),
    ("sigmoid", unary(operator.attrgetter("sigmoid")), unary(sigmoid_of)),
    ("gelu", unary(operator.attrgetter("nn.functional.gelu")), None),
    ("relu", unary(operator.attrgetter("relu")), unary(relu_of)),
    ("where", where, where),
    ("bias add", bias_add, bias_add),
    ("transpose copy", transpose_copy, transpose_copy_arrays),
    ("cast to float64", cast, cast_arrays),
    ("strided slices", strided_slices, strided_slices),
]


def at_sizes(group: str, operations: list[tuple[str, Sized, Sized | None]]) -> list[Case]:
    """A case for each operation at each size."""
    return [
        Case(group, f"{name}, {size}", partial(tensors, shape=shape), arrays and partial(arrays, shape=shape))
        for name, tensors, arrays in operations
        for size, shape in SHAPES.items()
    ]


CASES = at_sizes("elementwise", OPERATIONS)
