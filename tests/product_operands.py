"""Operands for tests of matrix products: each layout, and views at odd places."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any


def operands_of_layouts(drawn: Callable[..., Any], m: int, k: int, n: int) -> Iterator[tuple[Any, Any]]:
    """a (m, k) and b (k, n), each as it is and transposed, alone and in batches of 3. drawn(*shape): new numbers."""
    for of_a, of_b, batch in itertools.product((False, True), (False, True), ((), (3,))):
        a = drawn(*batch, k, m).mT if of_a else drawn(*batch, m, k)
        b = drawn(*batch, n, k).mT if of_b else drawn(*batch, k, n)
        yield a, b


def operands_at_odd_places(a: Any, b: Any, row: Any) -> Iterator[tuple[Any, Any]]:
    """Parts of a (m, k), b (k, n) and a strided row (k) that begin at odd addresses, with strides, and expanded."""
    yield a[:, 1:], b[1:]
    yield a[1::2, :-1:3], b[:-1:3, 1::2]
    yield row, b
    yield a, row
    yield row[None].expand(20, -1), b
