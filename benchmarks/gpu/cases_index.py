"""Order, scans, reductions of odd shapes, and what goes by indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..library import Run
from .library import OnDevice, cases_of

CASES, add = cases_of("order and index")


def _of(*shape: int) -> Callable[[Callable[..., Any]], Any]:
    """Wraps a function of the module and a float32 tensor of this shape into a setup. A single size is a count."""

    def wrapped(call: Callable[..., Any]) -> Any:
        def setup(lib: OnDevice) -> Run:
            sizes = [lib.count(shape[0])] if len(shape) == 1 else [lib.fit(size) for size in shape]
            x = lib.random(*sizes)
            return lambda: call(lib.module, x)

        return setup

    return wrapped


def _ordered(*shape: int, largest: int = 0) -> Any:
    """Sorts, or takes the largest. Equal elements may come in any order: indices are compared by what they point at."""

    def call(module: Any, x: Any) -> Any:
        values, index = x.topk(min(largest, x.shape[-1])) if largest else x.sort()
        return values, lambda: x.gather(-1, index)

    return _of(*shape)(call)


def _argmax(module: Any, x: Any) -> Any:
    index = x.argmax(1)
    return lambda: x.gather(1, index.reshape(-1, 1))


def _scatter_add(to: int) -> Any:
    def setup(lib: OnDevice) -> Run:
        targets, count = lib.count(to), lib.count(10_000_000)
        into, index, source = lib.random(targets), lib.integers(count, targets), lib.random(count)
        return lambda: into.scatter_add(0, index, source)

    return setup


def _index_add(lib: OnDevice) -> Run:
    rows, width, count = lib.count(50_000), lib.fit(256), lib.count(100_000)
    into, index, source = lib.random(rows, width), lib.integers(count, rows), lib.random(count, width)
    return lambda: into.index_add(0, index, source)


def _whole(name: str) -> Any:
    """Of a million different whole numbers, and of zeros."""

    def setup(lib: OnDevice) -> Run:
        count = lib.count(10_000_000)
        x = lib.integers(count, lib.count(1_000_000))
        x = x * (x % 2)
        return lambda: getattr(x, name)()

    return setup


def _argsort(module: Any, x: Any) -> Any:
    index = x.argsort()
    return lambda: x.gather(0, index)


def _mask(lib: OnDevice) -> Run:
    x = lib.random(lib.count(10_000_000))
    mask = lib.random(x.numel()) > 0
    return lambda: x[mask]


def _cat(lib: OnDevice) -> Run:
    parts = [lib.random(lib.fit(8192), lib.fit(2048)) for _ in range(4)]
    return lambda: lib.module.cat(parts, 1)


def _gather(lib: OnDevice) -> Run:
    rows, width = lib.fit(8192), lib.fit(1024)
    x, index = lib.random(rows, width), lib.integers(rows * width, width).reshape(rows, width)
    return lambda: x.gather(1, index)


def _index_select(lib: OnDevice) -> Run:
    rows, width = lib.count(1_000_000), lib.fit(64)
    x, index = lib.random(rows, width), lib.integers(rows, rows)
    return lambda: x.index_select(0, index)


add("sort 1e7", _ordered(10_000_000), 1.2, 1.25)
add("sort rows 8192x1024", _ordered(8192, 1024), 1.2, 1.5)
add("topk rows 8192x1024 k10", _ordered(8192, 1024, largest=10))
add("argmax rows 8192x1024", _of(8192, 1024)(_argmax), 0.95)
add("std rows 8192x1024", _of(8192, 1024)(lambda m, x: x.std(1)), 0.95)
add("cumsum 1e7", _of(10_000_000)(lambda m, x: x.cumsum(0)), 0.9)
add("cumsum rows 8192x1024", _of(8192, 1024)(lambda m, x: x.cumsum(1)), 0.9)
add("cumsum rows 1e6x10", _of(1_000_000, 10)(lambda m, x: x.cumsum(1)), 0.9, counted=False)
add("cumsum(0) 16384x512", _of(16384, 512)(lambda m, x: x.cumsum(0)), 0.9, counted=False)
add("sum(0) 1e7x4", _of(10_000_000, 4)(lambda m, x: x.sum(0)), 0.95, tolerance=1e-4)
add("sum(0) 97656x1024", _of(97656, 1024)(lambda m, x: x.sum(0)), 0.95)
add("sum(1) 1e6x10", _of(1_000_000, 10)(lambda m, x: x.sum(1)), 0.95)
add("sum mid 64x512x1024 dim1", _of(64, 512, 1024)(lambda m, x: x.sum(1)), 0.95)
add("scatter_add 1e7->1e6", _scatter_add(1_000_000), 0.35, 0.8)
add("x[mask] 1e7", _mask, 0.95)
add("cat dim1 8192x2048 x4", _cat, 0.95)
add("gather 8192x1024", _gather)
add("index_select 1e6x64", _index_select)
add("argsort 1e7", _of(10_000_000)(_argsort), 1.2, 1.25, counted=False)
add("nonzero 1e7", _whole("nonzero"), 0.95, counted=False)
add("unique 1e7", _whole("unique"), 0.95, counted=False)
add("scatter_add 1e7->10", _scatter_add(10), 0.35, 0.8, tolerance=1e-4, counted=False)
add("index_add 100000x256->50000", _index_add, 0.35, 0.8, counted=False)
