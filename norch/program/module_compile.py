"""``Module.compile()``."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from .compiled import compile as compiled


def compile(self: Module, *args: Any, **kwargs: Any) -> None:  # PyTorch's name
    """Makes calls of the module go through norch.compile with these options. Hooks of the module are called around
    them. state_dict() does not change.

    >>> model = norch.nn.Linear(2, 1)
    >>> model.compile()
    >>> list(model.state_dict())
    ['weight', 'bias']
    """
    self.__dict__["forward"] = compiled(self.forward, *args, **kwargs)
