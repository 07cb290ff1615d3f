"""Registry: the dict in which a module keeps its parameters, its buffers or its submodules."""

from __future__ import annotations

import functools
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import Any

REGISTRIES = ("_parameters", "_buffers", "_modules")
# The hooks of calls of a module, and for each the dicts whose keys are the numbers of hooks with an option.
CALL_HOOKS = {
    "_forward_hooks": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_forward_pre_hooks": ("_forward_pre_hooks_with_kwargs",),
    "_backward_hooks": (),
    "_backward_pre_hooks": (),
}
_STATE = ("_state_dict_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
HOOKS = (*(name for kind, options in CALL_HOOKS.items() for name in (kind, *options)), *_STATE)


def _no_module() -> None:
    return None


class Registry(dict[str, Any]):
    """Parameters, buffers or submodules by name. Adding an item makes it an attribute of the module, and removing it
    removes the attribute, because programs do this: `net._modules["fc"] = nn.Identity()`. A registry that is
    constructed like a dict belongs to no module. Copies and pickles are dicts.
    """

    __slots__ = ("_module",)

    def __init__(self, *items: Any, **named: Any):
        dict.__init__(self, *items, **named)
        self._module: Callable[[], Any] = _no_module

    @classmethod
    def of(cls, module: Any, items: dict[str, Any]) -> Registry:
        """The registry of a module that has the items as attributes already."""
        registry = cls(items)
        registry._module = weakref.ref(module)
        return registry

    def __setitem__(self, name: str, value: Any) -> None:
        dict.__setitem__(self, name, value)
        if (module := self._module()) is not None:
            module.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        dict.__delitem__(self, name)
        if (module := self._module()) is not None:
            module.__dict__.pop(name, None)

    def __ior__(self, other: Any) -> Registry:  # type: ignore[override, misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def pop(self, name: str, *default: Any) -> Any:  # the method of MutableMapping reads an attribute of its class
        if name not in self and default:
            return default[0]
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        name = next(reversed(self))
        return name, self.pop(name)

    clear = MutableMapping.clear
    update, setdefault = MutableMapping.update, MutableMapping.setdefault


def assignment_error(expected: str, value: object, kind: str, name: str) -> TypeError:
    """The TypeError for a value that is not of the kind of a registry's items."""
    return TypeError(f"cannot assign '{type(value).__name__}' as {kind} {name!r} ({expected} or None expected)")


class RegistryAttribute:
    """The attribute of a module that holds a registry. A dict that a program assigns becomes a registry, so that its
    entries are attributes of the module. There is no __get__, so reading is as fast as that of any attribute."""

    def __init__(self, kind: str):
        self.kind = kind

    def __set__(self, module: Any, items: dict[str, Any]) -> None:
        state = module.__dict__
        for name in state.get(self.kind, ()):
            state.pop(name, None)
        state[self.kind] = registry = Registry.of(module, {})
        registry.update(items)


def restore_registries(module: Any) -> None:
    """Turns the dicts of a copied or loaded module into registries, and their entries into attributes. A shallow copy
    shares the registries of the original."""
    _restore_hooks(module.__dict__)
    for kind in REGISTRIES:
        if (entries := module.__dict__.get(kind)) is not None:
            of_its_own = {kind: Registry.of(module, entries)} if type(entries) is dict else {}
            module.__dict__.update({**entries, **of_its_own})


def restoring(cls: Any) -> None:
    """Wraps the __setstate__ of a program's class, which may set the __dict__ of the module directly, so that
    it leaves registries there."""
    if (set_state := vars(cls).get("__setstate__")) is None:
        return

    @functools.wraps(set_state)
    def __setstate__(self: Any, state: Any) -> None:
        set_state(self, state)
        restore_registries(self)

    cls.__setstate__ = __setstate__


def without_entries(reduced: Any) -> Any:
    """The state in copies and pickles of a module: parameters, buffers and submodules are in the registries alone, not
    also attributes, so that a __setstate__ finds the same state as in PyTorch."""
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    if type(state) is not dict:
        return reduced
    held = {name: x for kind in REGISTRIES for name, x in (state.get(kind) or {}).items()}
    rest = {name: x for name, x in state.items() if name not in held or x is not held[name]}
    return (*reduced[:2], rest, *reduced[3:])


def _restore_hooks(state: dict[str, Any]) -> None:
    """Changes the hooks of a module that was saved when each was a tuple with its options, or when they were in a dict
    or some kinds did not exist."""
    for kind, options in CALL_HOOKS.items():
        if not options or options[0] in state:
            continue
        hooks = state.get(kind, {})
        tuples = {key: hook for key, hook in hooks.items() if type(hook) is tuple}
        state[kind] = {key: hook[0] if key in tuples else hook for key, hook in hooks.items()}
        for at, option in enumerate(options, 1):
            state[option] = {key: True for key, hook in tuples.items() if hook[at]}
    for kind in HOOKS:
        if type(state.get(kind)) is not OrderedDict:
            state[kind] = OrderedDict(state.get(kind) or ())


_OLDER = {"save": "_state_dict_pre_hooks", "saved": "_state_dict_hooks"}
_OLDER |= {"load": "_load_state_dict_pre_hooks", "loaded": "_load_state_dict_post_hooks"}


def _renamed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module that was saved when some attributes had other names."""
    if "_non_persistent" not in state:
        return state
    hooks = state.get("_state_hooks", {})
    kept = {name: value for name, value in state.items() if name not in ("_non_persistent", "_state_hooks")}
    renamed = {new: hooks.get(old, {}) for old, new in _OLDER.items()}
    return {**kept, "_non_persistent_buffers_set": state["_non_persistent"], **renamed}


def set_state(module: Any, state: dict[str, Any]) -> None:
    """__setstate__ of a module."""
    module.__dict__.update(_renamed(state))
    restore_registries(module)


# ---- what Module says of its arguments and annotations -------------------------------------------------------------


def unexpected_arguments(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """The TypeError that Module.__init__() raises for arguments, which it does not take."""
    message = f"takes 1 positional argument but {len(args) + 1} were given"
    message = f"got an unexpected keyword argument {next(iter(kwargs))!r}" if kwargs else message
    return TypeError(f"{type(module).__name__}.__init__() {message}")


def whole_tree(module: Any) -> list[Any]:
    """The module and all modules below it, each once, even if a subclass overrides modules()."""
    found = {id(module): module}
    waiting = [module]
    while waiting:
        for child in waiting.pop()._modules.values():
            if child is not None and id(child) not in found:
                found[id(child)] = child
                waiting.append(child)
    return [*found.values()]


class _Variable:
    """Takes the place of ClassVar in the hints of an instance, where typing refuses ClassVar."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return kind


def names_of_hints(cls: type) -> dict[str, Any]:
    """The names in which the annotations of a class of modules, or of the first base that has some, are looked up."""
    annotated = next(base for base in cls.__mro__ if vars(base).keys() & {"__annotations__", "__annotate_func__"})
    kept = getattr(annotated.__annotations__, "names", None)  # by as_torch(), which renames __module__
    return {**(kept or vars(sys.modules[annotated.__module__])), "ClassVar": _Variable}
