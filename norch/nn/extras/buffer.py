"""Buffer: a tensor that a Module registers as a buffer when it is assigned as an attribute."""

from __future__ import annotations

from typing import Any

from ...ops.create import empty
from ...tensor import Tensor
from ..parameter import Marked


class Buffer(Tensor, metaclass=Marked):
    """A buffer of a Module: `self.mean = Buffer(data)` is `self.register_buffer("mean", data)`. It is a plain tensor
    that shares the memory of data and has a mark that isinstance() looks for.

    data: a tensor, by default an empty one; TypeError for anything else. persistent: whether state_dict() has it.

    >>> m = norch.nn.Module()
    >>> m.mean = norch.nn.Buffer(norch.zeros(2))
    >>> list(m.state_dict()), isinstance(m.mean, norch.nn.Buffer)
    (['mean'], True)
    """

    __slots__ = ()
    _mark = "_is_buffer"

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Buffer: data must be a norch.Tensor, got {type(data).__name__}")
        return as_buffer(empty(0) if data is None else data.detach().requires_grad_(data.requires_grad), persistent)


def as_buffer(x: Any, persistent: bool) -> Any:
    """x with the mark of a buffer."""
    x.persistent, x._is_buffer = persistent, True
    return x
