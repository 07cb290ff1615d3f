"""The public API as text, api.txt: a line a name, with its signature. `make api` writes it; test_api.py compares.

What a program may rely on are the modules below, which are PyTorch's or are named in docs/. Where norch keeps what
they hand on is its own matter, and so are annotations: a line tells names, order, kinds and defaults of parameters.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

STORED = Path(__file__).with_name("api.txt")

# Of a module all that completion shows, or where the colon says so these names: the rest is of the standard library.
PUBLIC = """
norch
norch.array_api
norch.array_api.linalg
norch.autograd
norch.autograd.function
norch.autograd.functional
norch.autograd.grad_mode
norch.autograd.graph
norch.backends
norch.compiler
norch.cuda
norch.distributed
norch.distributed.checkpoint
norch.distributed.optim
norch.distributions
norch.distributions.constraints
norch.distributions.distribution
norch.distributions.kl
norch.errors
norch.fft
norch.func
norch.fx
norch.hub
norch.jit
norch.linalg
norch.memory
norch.multiprocessing: ProcessContext get_all_sharing_strategies get_sharing_strategy set_sharing_strategy spawn
norch.nn
norch.nn.functional
norch.nn.init
norch.nn.parallel
norch.nn.parameter
norch.nn.utils
norch.nn.utils.clip_grad
norch.nn.utils.convert_parameters
norch.nn.utils.parametrizations
norch.nn.utils.parametrize
norch.nn.utils.prune
norch.nn.utils.rnn
norch.onnx
norch.optim
norch.optim.lr_scheduler
norch.optim.optimizer
norch.optim.swa_utils
norch.profiler
norch.random
norch.serialization
norch.sparse
norch.special
norch.storage
norch.testing
norch.utils
norch.utils._pytree
norch.utils.checkpoint
norch.utils.data
norch.utils.data.dataloader
norch.utils.data.dataset
norch.utils.data.sampler
norch.utils.safetensors
norch.utils.tensorboard
"""
LINES = PUBLIC.strip().replace("\n ", " ").splitlines()
MODULES = {path: names.split() for path, _, names in (line.partition(":") for line in LINES)}
# What nodes carry for the engine.
INTERNAL = re.compile(
    r"norch\.autograd\.(Function\.(propagate|release)|graph\.Node($|\.(?!name|next_functions|register_)))"
)


def signature(thing: Any) -> str:
    """(a, b=1): without annotations, and without what has no fixed text."""
    if isinstance(thing, type) and issubclass(
        thing, (BaseException, Enum)
    ):  # each version of Python says something else
        return "(...)"
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # a builtin says nothing
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    bare = [p.replace(default=Unnamed()) if "<" in repr(p.default) and p.default is not p.empty else p for p in bare]
    return str(inspect.Signature(bare))


class Unnamed:
    """A default whose text would be its address."""

    def __repr__(self) -> str:
        return "..."


def described(thing: Any) -> str:
    """What follows a name."""
    if isinstance(thing, ModuleType):
        return ": module"
    if callable(thing):
        return signature(thing)
    if inspect.isdatadescriptor(thing):
        return ": attribute"
    return f" = {thing!r}" if "<" not in repr(thing) and len(repr(thing)) < 60 else f": {type(thing).__name__}"


def public_names(path: str, module: ModuleType) -> list[str]:
    """What a module hands on."""
    return MODULES[path] or dir(module)


def members(cls: type, public: set[type]) -> list[str]:
    """Names of a class, and of those of its bases that no public class has brought along."""
    others = [base for base in cls.__mro__[1:] if base in public]
    bases = [base for base in cls.__mro__ if base.__module__.startswith("norch")]
    own = [base for base in bases if not any(issubclass(other, base) for other in others)]
    return sorted({name for base in own for name in vars(base) if name[0] != "_" and hasattr(cls, name)})


def find(path: str) -> Any:
    """A name of a module, or a member of a class there; AttributeError where it is missing."""
    module = max((name for name in MODULES if path.startswith(name + ".")), key=len)
    return reduce(getattr, path[len(module) + 1 :].split("."), importlib.import_module(module))


def lines() -> Iterator[str]:
    """Module by module; the members of a class where it is first met."""
    modules = {name: importlib.import_module(name) for name in MODULES}
    found = [
        (f"{path}.{name}", getattr(modules[path], name))
        for path in modules
        for name in public_names(path, modules[path])
    ]
    classes = {thing for _, thing in found if isinstance(thing, type)}
    seen: set[type] = set()
    for path, thing in found:
        inside: list[str] = []
        if isinstance(thing, type) and thing not in seen and thing.__module__.startswith("norch"):
            seen.add(thing)
            inside = [f"{path}.{name}" for name in members(thing, classes)]
        yield from (name + described(find(name)) for name in [path, *inside] if not INTERNAL.match(name))


if __name__ == "__main__":
    STORED.write_text("".join(f"{line}\n" for line in lines()))
