"""For packages that only collect names: which are public, and how some are imported when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from ._typing import Any


def exported(namespace: dict[str, Any], *more: str) -> list[str]:
    """The `__all__` of a package with these globals(): what it has imported, but for modules and private names; more:
    modules that are public, and lazy names."""
    here = [name for name, thing in namespace.items() if name[0] != "_" and type(thing) is not ModuleType]
    return sorted({*here, *more})


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
