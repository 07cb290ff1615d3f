"""as_before(): restores a model after it was run or trained inside a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..nn.module import Module
from ..random import fork_rng


@contextmanager
def as_before(model: Module, training: bool | None) -> Iterator[None]:
    """Sets the model's mode (None: unchanged) and copies its buffers. At the end modes, buffers and the random
    generator are restored."""
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
