"""as_before(): a context manager that restores a model which was run or trained inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..nn.module import Module
from ..random import fork_rng


@contextmanager
def as_before(model: Module, training: bool | None) -> Iterator[None]:
    """The model in a mode (None: as it is), with copies of its buffers; at the end modes, buffers and the generator of
    random numbers are what they were."""
    modules = list(model.modules())
    modes = [(module, module.training) for module in modules]
    buffers = [(module, dict(module._buffers)) for module in modules]
    copies = {id(b): b.detach().clone() for _, held in buffers for b in held.values() if b is not None}
    try:
        for module, held in buffers:
            for name in [name for name, buffer in held.items() if buffer is not None]:
                module._bind("_buffers", name, copies[id(held[name])])
        if training is not None:
            model.train(training)
        with fork_rng():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        for module, held in buffers:
            for name, buffer in held.items():
                module._bind("_buffers", name, buffer)
