"""``norch.as_torch``: the function, and the pytest plugin that calls it, `pytest -p norch.as_torch`."""

from __future__ import annotations

import sys
from types import ModuleType

from .._package.typing import Any
from .door import Door, open_door


def as_torch() -> Door:
    """Makes `import torch` import norch, in this process and in those that it starts. `import torch.nn` and PyTorch's
    other modules follow, and importlib.metadata.version("torch") is the version that norch follows.

    Call it before anything imports PyTorch: otherwise a RuntimeError says what was imported from where. An installed
    PyTorch is not touched. close() of the result, or the end of a with statement, undoes it. `python -m norch
    script.py` does the same for a program, `pytest -p norch.as_torch` for tests.

    >>> with norch.as_torch():  # doctest: +SKIP
    ...     import torch
    ...     torch.nn.Linear is norch.nn.Linear, torch.float32
    (True, torch.float32)
    """
    return open_door()


class _Callable(ModuleType):
    """Keeps norch.as_torch callable after `import norch.as_torch`, which pytest does."""

    def __call__(self) -> Door:
        return open_door()


def pytest_addoption(parser: Any) -> None:
    """Opens the door. It is the first hook that pytest calls after importing the plugin."""
    open_door()


sys.modules[__name__].__class__ = _Callable
