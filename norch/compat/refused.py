"""Names of PyTorch that can be imported, but raise NotImplementedError with the reason when called."""

from __future__ import annotations

from typing import Any


def refused(module: str, why: str, names: str) -> Any:
    """A module's names, which raise NotImplementedError when called: functions, or classes for names with a capital
    letter. The classes have no instances, so that isinstance() is False."""
    return tuple(_refused(f"{module}.{name}", name, why) for name in names.split())


def _refused(path: str, name: str, why: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{path}: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__, refuse.__doc__ = path.rpartition(".")[0], f"Raises NotImplementedError: {why}."
    if not name[0].isupper():
        return refuse
    return type(name, (), {"__new__": refuse, "__doc__": refuse.__doc__, "__module__": refuse.__module__})
