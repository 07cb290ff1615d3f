"""skip_init(), which makes modules whose parameters are not initialized."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...device import get_default_device
from ...errors import Error
from ..module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """`module_cls(*args, **kwargs)` without initial values: it is built on the device "meta", and then given memory on
    the device that kwargs name, or the default one. Error unless the class is one of modules and takes `device`.

    >>> norch.nn.utils.skip_init(norch.nn.Linear, 3, 2).weight.shape
    norch.Size([2, 3])
    """
    kind: Any = module_cls
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        raise Error(f"skip_init: expected a class of modules, not {kind!r}")
    parameters = inspect.signature(kind).parameters
    if "device" not in parameters and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        raise Error(f"skip_init: {kind.__name__} takes no device")
    device = kwargs.pop("device", None)
    device = get_default_device() if device is None else device
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
