"""Reductions, and what normalises by one, on matrices of 1e3, 1e5 and 1e7 float32 elements."""

from __future__ import annotations

from typing import Any

from .cases_elementwise import Sized, at_sizes
from .library import Library, Run


def _matrix(lib: Library, shape: tuple[int, int]) -> Any:
    return lib.random(*shape, low=-1.0, high=2.0)  # sums and means far from 0, so that comparing them says something


def method(name: str, *arguments: int, **named: int) -> Sized:
    def setup(lib: Library, shape: tuple[int, int]) -> Run:
        x = _matrix(lib, shape)
        return lambda: getattr(x, name)(*arguments, **named)

    return setup


def softmax_arrays(lib: Library, shape: tuple[int, int]) -> Run:
    exp, x = lib.module.exp, _matrix(lib, shape)

    def run() -> Any:
        e = exp(x - x.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        return e

    return run


def log_softmax_arrays(lib: Library, shape: tuple[int, int]) -> Run:
    np, x = lib.module, _matrix(lib, shape)

    def run() -> Any:
        y = x - x.max(1, keepdims=True)
        y -= np.log(np.exp(y).sum(1, keepdims=True))
        return y

    return run


def layer_norm(lib: Library, shape: tuple[int, int]) -> Run:
    function, sizes = lib.module.nn.functional.layer_norm, shape[1:]
    x, weight, bias = _matrix(lib, shape), lib.random(*sizes), lib.random(*sizes)
    return lambda: function(x, sizes, weight, bias)


def layer_norm_arrays(lib: Library, shape: tuple[int, int]) -> Run:
    sqrt = lib.module.sqrt
    x, weight, bias = _matrix(lib, shape), lib.random(shape[1]), lib.random(shape[1])

    def run() -> Any:
        y = x - x.mean(1, keepdims=True)
        y *= weight / sqrt((y * y).mean(1, keepdims=True) + 1e-5)
        y += bias
        return y

    return run


def _same(name: str, setup: Sized) -> tuple[str, Sized, Sized]:
    return name, setup, setup


CASES = at_sizes(
    "reductions",
    [
        _same("sum", method("sum")),
        _same("sum(0)", method("sum", 0)),
        _same("sum(1)", method("sum", 1)),
        _same("mean", method("mean")),
        _same("max", method("max")),
        _same("argmax(1)", method("argmax", 1)),
        ("var", method("var"), method("var", ddof=1)),
        ("softmax(1)", method("softmax", 1), softmax_arrays),
        ("log_softmax(1)", method("log_softmax", 1), log_softmax_arrays),
        ("layer_norm", layer_norm, layer_norm_arrays),
        _same("cumsum(1)", method("cumsum", 1)),
    ],
)
