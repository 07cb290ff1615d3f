"""``torch.utils.module_tracker``: ModuleTracker, which knows whose forward or backward runs."""

from __future__ import annotations

import weakref
from typing import Any

from .._package.exports import publish
from ..nn._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.module import Module
from ..tensor import Tensor
from . import pytree
from .multi_grad import register_multi_grad_hook, walk

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context whose `parents` are "Global" and the paths of the running modules, such as "Net.layer"; in backward, of
    the modules whose gradients are being computed. is_bw: whether this thread runs a backward().

    >>> layer = norch.nn.Linear(2, 2)
    >>> with ModuleTracker() as tracker:
    ...     handle = layer.register_forward_pre_hook(lambda *args: print(sorted(tracker.parents)))
    ...     y = layer(norch.ones(1, 2))
    ['Global', 'Linear']
    """

    def __init__(self) -> None:
        self._parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._walk: Any = None  # identifies the backward() that added parents

    @property
    def parents(self) -> set[str]:
        frame = walk()
        now = None if frame is None else frame.f_locals["gradients"]
        if self._walk is not None and now is not self._walk:  # the earlier backward() has ended
            self._parents = {"Global"}
        self._walk = now
        return self._parents

    @property
    def is_bw(self) -> bool:
        return walk() is not None

    def _get_mod_name(self, module: Module) -> str:
        if module not in self._names:
            name = type(module).__name__
            self._names.update({below: f"{name}.{path}" if path else name for path, below in module.named_modules()})
        return self._names[module]

    def _entered(self, module: Module, args: Any) -> None:
        name = self._get_mod_name(module)
        self.parents.add(name)
        self._at_gradients(args, lambda *_: self.parents.discard(name))

    def _left(self, module: Module, args: Any, result: Any) -> None:
        name = self._get_mod_name(module)
        self.parents.discard(name)
        self._at_gradients(result, lambda *_: self.parents.add(name))

    def _at_gradients(self, values: Any, call: Any) -> None:
        tensors = [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor) and x.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, call))

    def __enter__(self) -> ModuleTracker:
        self._hooks.append(register_module_forward_pre_hook(self._entered))
        self._hooks.append(register_module_forward_hook(self._left))
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()


publish(globals())
