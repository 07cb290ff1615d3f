"""Methods whose module is imported at their first call."""

from __future__ import annotations

from collections.abc import Callable

from .._typing import Any


class DeferredMethod:
    """A method whose module is imported at its first use. The function of that module then replaces it."""

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def function(self) -> Callable[..., Any]:
        """The deferred function."""
        from importlib import import_module  # lazy, for the time of `import norch`

        return getattr(import_module(self.module), self.name)

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.function()
        setattr(next(cls for cls in owner.__mro__ if vars(cls).get(self.name) is self), self.name, function)
        return function if instance is None else function.__get__(instance, owner)
