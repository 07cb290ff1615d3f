"""Finds modules of PyTorch that norch has no file for: those in compat/, and placeholders (placeholders.py).

norch/_package/exports.py asks this finder for modules of norch that nothing else finds.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

from .._package.typing import Any
from . import placeholders

# Modules that are files of compat/.
HELD = {name: name for name in "_C __config__ as_torch futures library torch_version types".split()}
HELD |= {f"utils.data._utils.{name}": "data_utils" for name in ("collate", "pin_memory", "worker")}
HELD |= {"utils.flop_counter": "flop_counter", "utils._python_dispatch": "dispatch"}
HELD |= {"utils.module_tracker": "module_tracker", "signal.windows": "signal_windows"}
HELD |= {"nn.attention.flex_attention": "flex_attention"}


class Found:
    """A loader for a module that make() builds; the importer takes it unchanged."""

    def __init__(self, make: Any):
        self.make = make

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        sys.modules[module.__spec__.name] = self.make()


def spec_of(name: str, make: Any) -> ModuleSpec:
    """The spec of a module that make() builds."""
    loader: Any = Found(make)
    return ModuleSpec(name, loader, is_package=True)


def find(name: str) -> ModuleSpec | None:
    """The spec of norch.NAME, or None if PyTorch has no such module either."""
    path = name[6:]
    if path in HELD:
        return spec_of(name, lambda: import_module(f"norch.compat.{HELD[path]}"))
    if placeholders.is_module(path):
        parent, _, last = name.rpartition(".")
        value = vars(sys.modules[parent]).get(last) if parent in sys.modules else None
        if isinstance(value, SimpleNamespace):  # such as backends.cuda
            return spec_of(name, lambda: value)
        return spec_of(name, lambda: placeholders.module(path))
    return None
