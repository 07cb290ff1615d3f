"""``norch._foreach_add_`` and its kin for optimizers and weight averaging: one method call for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..linalg import vector_norm
from ..tensor import Tensor


def foreach(name: str) -> Callable[..., Any] | None:
    """The function of this name; None if no method of tensors corresponds.

    >>> norch._foreach_mul([norch.ones(2), norch.ones(1)], [2, 3])
    [tensor([2., 2.]), tensor([3.])]
    """
    operation = name.removeprefix("_foreach_")
    plain = operation.rstrip("_")
    single: Any = (
        vector_norm if operation == "norm" else getattr(Tensor, operation, None) or getattr(Tensor, plain, None)
    )
    if single is None:
        return None

    def function(self: Sequence[Tensor], *others: Any, **options: Any) -> Any:
        if plain == "pow" and isinstance(self, (int, float, complex)):
            return [self**x for x in others[0]]
        if plain in ("addcmul", "addcdiv") and len(others) == 3 and isinstance(others[2], Tensor):
            others = (*others[:2], others[2].tolist())
        for other in others:
            if isinstance(other, (list, tuple)) and len(other) != len(self):
                raise RuntimeError(f"{name}: lists of {len(self)} and {len(other)}")
        results = []
        for i, x in enumerate(self):
            arguments = [other[i] if isinstance(other, (list, tuple)) else other for other in others]
            if plain in ("addcmul", "addcdiv") and len(arguments) == 3:
                options["value"] = arguments.pop()
            results.append(single(x, *arguments, **options))
            if operation != plain and results[i] is not x:  # a function without an in-place form, such as maximum
                x.copy_(results[i])
        return results if operation == plain else self

    return function
