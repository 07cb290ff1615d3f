"""What the array API standard wants of arrays, as methods of Tensor."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12"


def __array_namespace__(self: Any, *, api_version: str | None = None) -> ModuleType:
    """The module norch.array_api, which has the functions of the array API standard. ValueError for later versions of
    the standard than 2024.12."""
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"__array_namespace__: version {api_version!r} of the array API; there are {VERSIONS}")
    return sys.modules["norch.array_api"]


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """This tensor on a device: to(), as the array API standard calls it. stream: None, the current one, alone.

    >>> norch.ones(2).to_device("cpu").device
    device(type='cpu')
    """
    if stream is not None:
        raise ValueError("to_device: norch copies on the current stream; stream has to be None")
    return self.to(device)
