"""Helpers around training: the face of the folder, which defines nothing."""

from typing import Any as _Any

from ..._left_out import nothing_more as _nothing_more
from . import rnn as rnn
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]

# Imported when they are first asked for.
_LATER = {"parametrize": "", "parametrizations": ""}
_LATER |= dict.fromkeys(("weight_norm", "spectral_norm", "remove_weight_norm", "remove_spectral_norm"), "older_norms")
_missing = _nothing_more(__name__)


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        return _missing(name)
    from importlib import import_module

    module = import_module(f".{_LATER[name] or name}", __name__)
    return getattr(module, name) if _LATER[name] else module
