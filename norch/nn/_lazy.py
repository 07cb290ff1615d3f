"""Names of a package that are imported when they are first read: those that few programs use (extras/)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def lazy(namespace: dict[str, Any], modules: dict[str, str], missing: Callable[[str], Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a package with these globals().

    modules: relative names of modules, each with the names that it defines, or "." with names of submodules.
    missing(name): for all other names; raises AttributeError.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in module_of:
            return missing(name)
        from importlib import import_module

        if (module := module_of[name]) == ".":
            namespace[name] = import_module(f".{name}", namespace["__name__"])
        else:
            namespace[name] = getattr(import_module(module, namespace["__name__"]), name)
        return namespace[name]

    return __getattr__
