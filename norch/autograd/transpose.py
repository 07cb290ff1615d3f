"""Walks that compute the exact transpose of a function's derivative, for Jacobian-vector products.

Some declared gradients differ from it on purpose: a padding row of embedding() gets none, values that a later write
replaced get the gradient of what replaced them, and hooks change gradients. transforms.py differentiates a walk to get
a Jacobian-vector product, so in such a walk these gradients are exact, and hooks are not called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from .._package.typing import Any


class _Walk(threading.local):
    """exact: whether this thread is in transposed()."""

    exact = False


walking = _Walk()


def transposed(walk: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """walk(*arguments), a reverse walk whose results are the exact transpose of the derivative."""
    before, walking.exact = walking.exact, True
    try:
        return walk(*arguments, **options)
    finally:
        walking.exact = before
