"""PyTorch's module _tensor_str: reads and temporarily sets how tensors are printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import representation

_NAMES = {
    "precision": "DIGITS", "threshold": "THRESHOLD", "edgeitems": "EDGE", "linewidth": "WIDTH",
    "sci_mode": "SCIENTIFIC",
}  # fmt: skip


class _Options:
    """The options as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(name)
        return getattr(representation, _NAMES[name])

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(representation, _NAMES[name], value)


PRINT_OPTS = _Options()


def get_printoptions() -> dict[str, Any]:
    """The options, by the names of set_printoptions()."""
    return {name: getattr(representation, attribute) for name, attribute in _NAMES.items()}


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Sets options within a with statement."""
    before = get_printoptions()
    representation.set_printoptions(**kwargs)
    try:
        yield
    finally:
        representation.set_printoptions(**before)
