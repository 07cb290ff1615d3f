"""``norch.as_torch``: the function, and the pytest plugin that calls it, `pytest -p norch.as_torch`."""

from __future__ import annotations

import sys
from types import ModuleType

from .._package.typing import Any
from .door import Door, open_door


def as_torch() -> Door:
    """From now on `import torch` gives norch, in this process and in those that it starts; so do `import torch.nn` and
    all other modules of PyTorch, and importlib.metadata.version("torch") is the version that norch follows.

    It has to be called before PyTorch is imported, and before what imports it: a RuntimeError says where that was. A
    PyTorch that is installed is not touched. What as_torch() returns undoes it: by close(), or at the end of a with
    statement. `python -m norch script.py` does the same for a program, `pytest -p norch.as_torch` for tests.

    >>> with norch.as_torch():  # doctest: +SKIP
    ...     import torch
    ...     torch.nn.Linear is norch.nn.Linear, torch.float32
    (True, torch.float32)
    """
    return open_door()


class _Callable(ModuleType):
    """`import norch.as_torch`, as pytest imports it, leaves norch.as_torch a thing to call."""

    def __call__(self) -> Door:
        return open_door()


def pytest_addoption(parser: Any) -> None:
    """Opens the door: pytest calls this hook first, when it has imported the plugin."""
    open_door()


sys.modules[__name__].__class__ = _Callable
