"""Which names of a module are public, and how some are imported when they are first read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from .typing import Any

# Called with a module, a name and its value when a lazy name is first read.
watchers: list[Callable[[str, str, Any], None]] = []


def _read(module: str, key: str, value: Any) -> Any:
    for watch in watchers:
        watch(module, key, value)
    return value


def exported(namespace: dict[str, Any], *more: str) -> list[str]:
    """The `__all__` of a package with these globals(): the names that it has imported, except modules and private
    names. more: modules that are public, and lazy names."""
    names = [name for name, value in namespace.items() if name[0] != "_" and type(value) is not ModuleType]
    return sorted({*names, *more})


def publish(
    namespace: dict[str, Any],
    modules: dict[str, str] | None = None,
    missing: Callable[[str], Any] | None = None,
    *,
    public: Callable[[], list[str]] | None = None,
    more: str = "",
    name: str = "",
    wrap: Callable[[str, Any], Any] = lambda key, value: value,
) -> None:
    """Gives the module with these globals() a `__dir__` of its public names alone, and a `__getattr__`.

    Public names are those of `__all__`. Where there is none they are listed on demand: those that
    public() gives or, by default, of the classes, functions and instances that the module defines, and more.

    modules: relative names of modules, each with the names that it defines, or "." with names of submodules; they are
        imported when they are first read.
    missing(name): for all other names; by default a placeholder, or an AttributeError with the reason why norch leaves
        the name out (_package/left_out.py).
    name: of the module for users, if that is not its `__name__`.
    wrap(name, value): replaces a value that another module defines.

    Type checkers do not see the functions set here, so a name that no source defines is an error for them. The names in
    modules are imported under TYPE_CHECKING for them.
    """
    module_of = {lazy: module for module, names in (modules or {}).items() for lazy in names.split()}
    package = namespace["__name__"]  # norch.as_torch() changes that of compat/ modules

    def listed() -> list[str]:
        if "__all__" not in namespace:
            namespace["__all__"] = public() if public is not None else sorted([*_defined(namespace), *more.split()])
        return namespace["__all__"]

    def __getattr__(key: str) -> Any:
        if key == "__all__":
            return listed()
        if key[:2] == "__" and key not in module_of:  # __path__, which every `from module import name` asks for
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {key!r}")
        if key not in module_of:
            if missing is not None:
                return _read(namespace["__name__"], key, missing(key))
            from .left_out import lookup

            return lookup(name or namespace["__name__"], key)
        from importlib import import_module

        if (module := module_of[key]) == ".":
            namespace[key] = import_module(f".{key}", package)
        else:
            namespace[key] = wrap(key, getattr(import_module(module, package), key))
        return _read(namespace["__name__"], key, namespace[key])

    namespace["__dir__"] = lambda: sorted({*listed(), *(key for key in module_of if key[0] != "_")})
    namespace["__getattr__"] = __getattr__


def _defined(namespace: dict[str, Any]) -> list[str]:
    module = namespace["__name__"]
    items = list(namespace.items())  # a copy: another thread may import a lazy name meanwhile
    names = [key for key, value in items if getattr(value, "__module__", "") == module and key[0] != "_"]
    return [key for key in names if type(namespace[key]).__module__ != "typing"]  # no TypeVar


class _Finder:
    """Finds modules of PyTorch for which norch has no file (compat/finder.py). It is the
    last finder that Python asks."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name[:6] != "norch.":
            return None
        from importlib import import_module  # by name: of a package that imports this module

        return import_module("norch.compat.finder").find(name)


sys.meta_path.append(_Finder)
