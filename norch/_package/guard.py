"""Guard, the base of context managers that restore a setting, as no_grad() does."""

from __future__ import annotations

from collections.abc import Callable

from .._binding.library import lib
from .typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class Guard:
        """__exit__ pops and calls the last function of _restores. It is written in C (csrc/python/guard.c), so that no
        asynchronous exception interrupts it."""

        _restores: list[Callable[[], Any]]

        def __exit__(self, *_: object) -> None: ...
else:
    Guard = lib.norch_guard_class()
