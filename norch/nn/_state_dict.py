"""state_dict() and load_state_dict(): parameters, persistent buffers and extra state by dotted name, and hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd import no_grad
from ..autograd.hooks import RemovableHandle, add_hook
from ..errors import Error
from ..tensor import Tensor
from .parameter import Parameter, is_lazy

_EXTRA = "_extra_state"  # the key of the result of get_extra_state()


class IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict(..., strict=False)` skipped; both lists are empty if all keys matched."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _WithoutModule(NamedTuple):
    """Calls a hook without the module, which comes first."""

    hook: Callable[..., Any]

    def __call__(self, module: Any, *arguments: Any) -> Any:
        return self.hook(*arguments)


def _kept(value: Any, target: Any, written: set[Any]) -> Any:
    """The value. If it is a tensor of the module itself, loaded under another key, a copy, because it may be
    overwritten before it is read."""
    if (
        not isinstance(value, Tensor)
        or is_lazy(value)
        or value._in_coordinates
        or value.untyped_storage() not in written
    ):
        return value
    is_there = value.data_ptr() == target.data_ptr() and value.stride() == target.stride()
    return value if is_there else value.clone()


def _in_place_of(target: Tensor, value: Any) -> Any:
    """The tensor that replaces a tensor of a module: for a Parameter a Parameter, possibly value itself."""
    if not isinstance(target, Parameter):
        return value
    is_one = isinstance(value, Parameter) and value.requires_grad == target.requires_grad
    return value if is_one else Parameter(value, target.requires_grad)


class StateDict:
    """The part of Module that saves and loads."""

    _version: int = 1  # of the entries of the class; it changes when their names or meaning change
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    if TYPE_CHECKING:

        def named_modules(self, *, remove_duplicate: bool = True) -> Iterator[tuple[str, StateDict]]: ...

    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters and persistent buffers of this module, without submodules."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                yield name, value

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name. The tensors are detached and share memory with those of
        the module: clone them for a snapshot. keep_vars: the tensors themselves. prefix: put before every name.
        destination: a dict to fill and return.

        The attribute `_metadata` of the result holds `{"version": module._version}` by the dotted name of each module;
        load_state_dict() passes it to the module's _load_from_state_dict() as local_metadata.

        >>> list(norch.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        state: Any = destination
        if state is None:
            state = OrderedDict()
            state._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix[:-1]] = local_metadata
        self._call_state_hooks("_state_dict_pre_hooks", prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            replacement = hook(self, state, prefix, local_metadata)
            if replacement is not None:
                state = replacement
        return state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Puts the tensors and the extra state of this module, without submodules, into destination; keys begin with
        prefix. Subclasses may override it together with _load_from_state_dict()."""
        for name, value in self._own_tensors():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
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
        """Finds the entries of this module, without submodules, in state_dict; keys begin with prefix. They are noted
        in local_metadata["found"], and copied after all modules have found their entries without an error.

        local_metadata has the "version" of the module that was saved, unless state_dict is a dict without _metadata.
        """
        found, local_metadata["default"] = local_metadata["found"], True
        for name, target in self._own_tensors():
            if (key := prefix + name) not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            found[key] = self, name, target, value
            if not isinstance(value, Tensor):
                error_msgs.append(f"not a tensor for {key}: got {type(value).__name__}.")
            elif not is_lazy(target) and tuple(value.shape) != tuple(target.shape):
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from "
                    f"checkpoint, the shape in current model is {tuple(target.shape)}."
                )
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if (key := prefix + _EXTRA) in state_dict:
                found[key] = self, _EXTRA, None, state_dict[key]
            else:
                missing_keys.append(key)

    def get_extra_state(self) -> Any:
        """What state_dict() stores in addition to the tensors, under the key `_extra_state`. A subclass overrides this
        and set_extra_state().
        """
        raise Error(f"{type(self).__name__} has no extra state; define get_extra_state() and set_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restores what get_extra_state() returned; load_state_dict() calls it."""
        raise Error(f"{type(self).__name__} has no extra state; define get_extra_state() and set_extra_state()")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before state_dict() reads this module."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after state_dict() has added this module and its
        submodules; it may change state_dict and local_metadata, a dict with the "version"."""
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """register_state_dict_post_hook() in an older form. If state_dict() was called on this module, and the hook
        does not return None, that is its result.
        """
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)`
        before load_state_dict() reads this module. It may change the lists and state_dict, a copy of the entries of
        prefix."""
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """The same; without with_module the module is no argument of hook."""
        return add_hook(self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` at the end of load_state_dict(); it may change the lists."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _call_state_hooks(self, when: str, *arguments: Any) -> None:
        for hook in list(getattr(self, when).values()):
            hook(self, *arguments)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of `state_dict` into the tensors of the module, cast to their dtypes. With assign, the
        tensors of state_dict replace the tensors of the module instead, also in other modules that share them; if a
        tensor has several keys, the last counts.

        One Error lists every missing or unexpected key and every wrong shape; then nothing has changed. With
        `strict=False` missing and unexpected keys are ignored; shapes must still match.

        >>> a, b = norch.nn.Linear(3, 2), norch.nn.Linear(3, 2)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"expected state_dict to be a mapping, got {type(state_dict).__name__}")
        state, keys = dict(state_dict), IncompatibleKeys([], [])
        found: dict[str, tuple[Any, str, Any, Any]] = {}  # key: module, name, tensor of the module, saved value
        errors: list[str] = []
        versions = getattr(state_dict, "_metadata", None) or {}
        modules = [(f"{path}." if path else "", child) for path, child in self.named_modules(remove_duplicate=False)]
        for prefix, module in modules:
            part, load = state, type(module)._load_from_state_dict
            if module._load_state_dict_pre_hooks or load is not StateDict._load_from_state_dict:  # may change it
                part = {name: state.pop(name) for name in list(state) if name.startswith(prefix)}
            metadata = {**versions.get(prefix[:-1], {}), "found": found, "default": False}
            module._call_state_hooks("_load_state_dict_pre_hooks", part, prefix, metadata, True, *keys, errors)
            load(module, part, prefix, metadata, strict, *keys, errors)
            if not metadata["default"]:  # an override has read the entries of this module
                part = {key: part[key] for key in part if key[len(prefix) :].partition(".")[0] in module._modules}
            if part is not state:
                state.update(part)
        keys.unexpected_keys.extend(name for name in state if name not in found)
        # Hooks after loading may remove keys from the lists, so that these are no errors.
        deferred = any(module._load_state_dict_post_hooks for _, module in modules)
        self._raise_errors(errors, keys if strict and not deferred else None)
        replaced: dict[int, tuple[Any, Any]] = {}  # id of a tensor of the module: that tensor and its replacement
        copied = [] if assign else [target for _, name, target, _ in found.values() if name != _EXTRA]
        written = {target.untyped_storage() for target in copied if not (is_lazy(target) or target._in_coordinates)}
        with no_grad():
            if written:
                found = {key: (*to, _kept(value, to[-1], written)) for key, (*to, value) in found.items()}
            for module, name, target, value in found.values():
                if name == _EXTRA:
                    module.set_extra_state(value)
                elif not assign or is_lazy(value):
                    target.copy_(value)
                else:
                    replaced[id(target)] = target, _in_place_of(target, value)
        places = [(module, name, target) for module, name, target, _ in found.values()]
        for _, module in modules if replaced else ():  # and modules without a key that share a tensor
            places += [(module, name, x) for kept in (module._parameters, module._buffers) for name, x in kept.items()]
        for module, name, target in places:
            if id(target) in replaced:
                setattr(module, name, replaced[id(target)][1])
        for _, module in reversed(modules):
            module._call_state_hooks("_load_state_dict_post_hooks", keys)
        self._raise_errors([], keys if strict else None)
        return keys

    def _raise_errors(self, errors: list[str], keys: IncompatibleKeys | None) -> None:
        """Raises one Error for all errors and, unless None, all keys. Does nothing if there are none."""
        for kind, names in zip(("Missing", "Unexpected"), keys or (), strict=False):
            if names:
                quoted = ", ".join(f'"{name}"' for name in names)
                errors.append(f"{kind} key(s) in state_dict: {quoted}.")
        if errors:
            raise Error(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
