"""``norch.nn.parallel``: DataParallel on one device, and DistributedDataParallel. Functions that drive several devices
from one process raise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .._package.exports import publish
from ..distributed.data_parallel import DistributedDataParallel, check_one_device
from ..nn.module import Module
from .refused import refused

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip
publish(globals(), name="norch.nn.parallel")


class DataParallel(Module):
    """Calls module on the device where it is. State dict keys are PyTorch's: "module.weight".

    device_ids, output_device: one device at most (ArgumentError otherwise); a batch is not divided along dim.

    >>> norch.nn.DataParallel(norch.nn.Linear(2, 1)).state_dict().keys()
    odict_keys(['module.weight', 'module.bias'])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        check_one_device("DataParallel", device_ids)
        self.module, self.dim = module, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """module(*inputs, **module_kwargs), as DataParallel does; inputs: a tuple, or one argument."""
    check_one_device("data_parallel", device_ids)
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


gather, parallel_apply, replicate, scatter = refused(
    "norch.nn.parallel",
    "a process of norch computes on one device; DistributedDataParallel trains in many processes",
    "gather parallel_apply replicate scatter",
)

for _path, _names in {
    "data_parallel": "DataParallel data_parallel", "distributed": "DistributedDataParallel",
    "parallel_apply": "parallel_apply", "replicate": "replicate", "scatter_gather": "gather scatter",
}.items():  # fmt: skip
    _made = sys.modules[f"norch.nn.parallel.{_path}"] = ModuleType(f"norch.nn.parallel.{_path}")
    vars(_made).update({name: globals()[name] for name in _names.split()}, __all__=_names.split())
