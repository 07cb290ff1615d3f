"""``norch._foreach_add_`` and its kin, which optimizers and averages of weights call: a method for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..linalg import vector_norm
from ..tensor import Tensor


def foreach(name: str) -> Callable[..., Any] | None:
    """The function of this name, or None for one that stands for no method of tensors.

    >>> norch._foreach_mul([norch.ones(2), norch.ones(1)], [2, 3])
    [tensor([2., 2.]), tensor([3.])]
    """
    what = name.removeprefix("_foreach_")
    plain = what.rstrip("_")
    one: Any = vector_norm if what == "norm" else getattr(Tensor, what, None) or getattr(Tensor, plain, None)
    if one is None:
        return None

    def function(self: Sequence[Tensor], *others: Any, **options: Any) -> list[Tensor] | None:
        results = []
        for i, x in enumerate(self):
            given = [other[i] if isinstance(other, (list, tuple)) else other for other in others]
            if plain in ("addcmul", "addcdiv") and len(given) == 3:
                options["value"] = given.pop()
            results.append(one(x, *given, **options))
            if what != plain and results[i] is not x:  # has no form in place, as maximum
                x.copy_(results[i])
        return results if what == plain else None

    return function
