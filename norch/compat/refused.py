"""Names of PyTorch that can be imported, but raise NotImplementedError with the reason when they are called."""

from __future__ import annotations

from typing import Any


def refused(module: str, why: str, names: str) -> Any:
    """The names of a module, each a function, or where it begins with a capital a class, that raises
    NotImplementedError when it is called. No instance of such a class exists, so that isinstance() is False."""
    return tuple(_refused(f"{module}.{name}", name, why) for name in names.split())


def _refused(path: str, name: str, why: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{path}: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__, refuse.__doc__ = path.rpartition(".")[0], f"Raises NotImplementedError: {why}."
    if not name[0].isupper():
        return refuse
    return type(name, (), {"__new__": refuse, "__doc__": refuse.__doc__, "__module__": refuse.__module__})
