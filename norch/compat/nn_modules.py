"""``norch.nn.modules``: the layers at PyTorch's paths, such as ``from norch.nn.modules.conv import Conv2d``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from .. import nn
from .._package.exports import publish
from .._package.left_out import lookup
from ..nn import *  # noqa: F403
from ..nn import __all__ as __all__
from ..nn.functional._loss import legacy_reduction
from ..nn.loss import _Loss
from ..tensor import Tensor
from .placeholders import placeholder

# {module of PyTorch: the modules of norch.nn that have its names}.
_MODULES = {
    "activation": "activation attention", "adaptive": "extras.adaptive_softmax",
    "batchnorm": "norm .distributed.sync_batch_norm extras.lazy", "channelshuffle": "flatten",
    "container": "container", "conv": "conv extras.lazy", "distance": "distance", "dropout": "dropout",
    "flatten": "flatten", "fold": "resample", "instancenorm": "norm extras.lazy", "lazy": "extras.lazy",
    "linear": "linear distance extras.lazy", "loss": "loss extras.ctc", "module": "module", "normalization": "norm",
    "padding": "pad", "pixelshuffle": "flatten", "pooling": "pool extras.unpool extras.fractional_pool",
    "rnn": "recurrent", "sparse": "embedding extras.embedding_bag", "transformer": "transformer",
    "upsampling": "resample", "utils": "",
}  # fmt: skip
_BASES = {"_ConvNd": "_Conv", "_BatchNorm": "_BatchNorm", "_InstanceNorm": "_InstanceNorm", "_Loss": "_Loss",
          "_NormBase": "_NormWithStatistics", "_ConvTransposeNd": "_ConvTranspose", "_DropoutNd": "_Dropout",
          "_MaxPoolNd": "_MaxPool", "_LPPoolNd": "_LPPool", "_AdaptiveMaxPoolNd": "_AdaptiveMaxPool",
          "_MaxUnpoolNd": "_MaxUnpool", "_ConstantPadNd": "_ConstantPad", "_IncompatibleKeys": "IncompatibleKeys",
          "LazyModuleMixin": "LazyModuleMixin",
          "NonDynamicallyQuantizableLinear": "NonDynamicallyQuantizableLinear"}  # fmt: skip


def _tuple_of(count: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * count


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix, such as "module." from DistributedDataParallel, from the keys of a state dict, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})  # its keys are module paths: the model's has no dot
    for path in list(metadata):
        if path and (path == prefix.replace(".", "") or path.startswith(prefix)):
            metadata[path[len(prefix) :]] = metadata.pop(path)


class _WeightedLoss(_Loss):
    """The base class of losses with a weight for each class, a buffer."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=legacy_reduction(reduction, size_average, reduce))
        self.register_buffer("weight", weight)


def _module(name: str, ours: str) -> ModuleType:
    """A module of PyTorch's name with the names of another module."""
    module = ModuleType(f"norch.nn.modules.{name}", f"Names of norch.nn at the path that PyTorch has for them: {ours}.")
    for source in (import_module(f".{each}", "norch.nn") for each in ours.split()):
        attributes = {
            key: thing for key, thing in list(vars(source).items()) if key in nn.__all__ or key in _BASES.values()
        }
        attributes |= {theirs: attributes[base] for theirs, base in _BASES.items() if base in attributes}
        vars(module).update(attributes, __all__=[key for key in attributes if key[0] != "_"])

    def missing(key: str) -> Any:
        try:
            return placeholder(f"nn.modules.{name}", key)
        except LookupError:
            return lookup("norch.nn", key)

    publish(vars(module), missing=missing)
    return module


for _name, _ours in _MODULES.items():
    globals()[_name] = sys.modules[f"norch.nn.modules.{_name}"] = _module(_name, _ours)
for _count, _name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1):
    setattr(sys.modules["norch.nn.modules.utils"], _name, _tuple_of(_count))
sys.modules["norch.nn.modules.utils"]._ntuple = _tuple_of  # type: ignore[attr-defined]
sys.modules["norch.nn.modules.utils"]._reverse_repeat_tuple = _reverse_repeat_tuple  # type: ignore[attr-defined]
consume_prefix_in_state_dict_if_present.__module__ = "norch.nn.modules.utils"
vars(sys.modules["norch.nn.modules.utils"])["consume_prefix_in_state_dict_if_present"] = (
    consume_prefix_in_state_dict_if_present
)
sys.modules["norch.nn.modules.loss"]._WeightedLoss = _WeightedLoss  # type: ignore[attr-defined]
publish(globals(), name="norch.nn.modules")
