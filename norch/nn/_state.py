"""What a module saves and loads: its parameters and persistent buffers by dotted name, what it adds to them, and the
hooks that are called on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd import no_grad
from ..autograd.hooks import RemovableHandle, hook_into
from ..errors import Error
from ..tensor import Tensor
from .parameter import Parameter

_EXTRA = "_extra_state"  # the name of what get_extra_state() gives


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(..., strict=False)` skipped: both lists are empty when all keys matched."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class State:
    """The part of Module that this file is about."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent: set[str]
    _state_hooks: dict[str, dict[int, Callable[..., Any]]]

    if TYPE_CHECKING:

        def named_modules(self, *, remove_duplicate: bool = True) -> Iterator[tuple[str, State]]: ...

    def _saved(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters and persistent buffers of this module alone."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent:
                yield name, value

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name. The tensors are detached and share memory
        with the module's (`keep_vars` gives the very objects); clone them to keep a moment. Names begin with prefix,
        and go into destination, a dict, if there is one.

        >>> list(norch.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        state: dict[str, Any] = {} if destination is None else destination
        self._call_state_hooks("save", prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        self._call_state_hooks("saved", state, prefix, {})
        return state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Puts what this module alone keeps into destination, under names that begin with prefix. For subclasses to
        override, as _load_from_state_dict."""
        for name, value in self._saved():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Looks in state_dict for what this module alone keeps, under names that begin with prefix. What is there is
        noted in local_metadata["found"], and loaded when all modules have looked and nothing is wrong."""
        found, local_metadata["looked"] = local_metadata["found"], True
        for name, ours in self._saved():
            if (key := prefix + name) not in state_dict:
                missing_keys.append(key)
                continue
            theirs = state_dict[key]
            found[key] = self, name, ours, theirs
            if not isinstance(theirs, Tensor):
                error_msgs.append(f"not a tensor for {key}: got {type(theirs).__name__}.")
            elif tuple(theirs.shape) != tuple(ours.shape):
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {tuple(theirs.shape)} from "
                    f"checkpoint, the shape in current model is {tuple(ours.shape)}."
                )
        if type(self).set_extra_state is not State.set_extra_state:
            if (key := prefix + _EXTRA) in state_dict:
                found[key] = self, _EXTRA, None, state_dict[key]
            else:
                missing_keys.append(key)

    def get_extra_state(self) -> Any:
        """What state_dict() keeps of a module beside its tensors, under the name `_extra_state`. A module that
        overrides this overrides set_extra_state() too."""
        raise Error(f"{type(self).__name__} has no extra state; define get_extra_state() and set_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Takes over what get_extra_state() gave; called by load_state_dict()."""
        raise Error(f"{type(self).__name__} has no extra state; define get_extra_state() and set_extra_state()")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before state_dict() takes the names of this module."""
        return hook_into(self._state_hooks.setdefault("save", {}), hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, {})` when the names of this module, and those below, are in
        state_dict, which it may change."""
        return hook_into(self._state_hooks.setdefault("saved", {}), hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, {}, True, missing_keys, unexpected_keys, error_msgs)` before
        load_state_dict() looks at state_dict: a copy of what begins with prefix, which it may change, as the lists."""
        return hook_into(self._state_hooks.setdefault("load", {}), hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after load_state_dict() has loaded; it may change the lists."""
        return hook_into(self._state_hooks.setdefault("loaded", {}), hook)

    def _call_state_hooks(self, when: str, *arguments: Any) -> None:
        for hook in list(self._state_hooks.get(when, {}).values()):
            hook(self, *arguments)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of `state_dict` into the module's own tensors, cast to their dtypes; with assign the
        tensors of state_dict take the place of the module's own.

        Raises one Error that lists every missing, unexpected and misshapen key; nothing has been
        changed then. With `strict=False` only keys present on both sides are loaded, but shapes must agree.

        >>> a, b = norch.nn.Linear(3, 2), norch.nn.Linear(3, 2)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"expected state_dict to be a mapping, got {type(state_dict).__name__}")
        state, keys = dict(state_dict), IncompatibleKeys([], [])
        found: dict[str, tuple[Any, str, Any, Any]] = {}  # by key: the module, its name for it, its own, what was saved
        errors: list[str] = []
        everything = [(f"{path}." if path else "", one) for path, one in self.named_modules(remove_duplicate=False)]
        for prefix, module in everything:
            part, takes = state, type(module)._load_from_state_dict
            if module._state_hooks.get("load") or takes is not State._load_from_state_dict:  # which may change it
                part = {name: state.pop(name) for name in list(state) if name.startswith(prefix)}
            module._call_state_hooks("load", part, prefix, {}, True, *keys, errors)
            about = {"found": found, "looked": False}
            takes(module, part, prefix, about, strict, *keys, errors)
            if not about["looked"]:  # an override took what the module alone keeps, whatever its names
                part = {key: part[key] for key in part if key[len(prefix) :].partition(".")[0] in module._modules}
            if part is not state:
                state.update(part)
        keys.unexpected_keys.extend(name for name in state if name not in found)
        # Hooks that are called after loading may put up with keys that differ.
        late = any(module._state_hooks.get("loaded") for _, module in everything)
        self._refuse(errors, keys if strict and not late else None)
        with no_grad():
            for module, name, ours, theirs in found.values():
                if name == _EXTRA:
                    module.set_extra_state(theirs)
                elif not assign:
                    ours.copy_(theirs)
                elif isinstance(ours, Parameter):
                    setattr(module, name, Parameter(theirs, ours.requires_grad))
                else:
                    setattr(module, name, theirs)
        for _, module in reversed(everything):
            module._call_state_hooks("loaded", keys)
        self._refuse([], keys if strict else None)
        return keys

    def _refuse(self, errors: list[str], keys: IncompatibleKeys | None) -> None:
        for what, names in zip(("Missing", "Unexpected"), keys or (), strict=False):
            if names:
                quoted = ", ".join(f'"{name}"' for name in names)
                errors.append(f"{what} key(s) in state_dict: {quoted}.")
        if errors:
            raise Error(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
