"""Gradient clipping, parameter vectors, sequences of different lengths, parametrizations and pruning. This file only
collects names.
"""

from ..._exports import lazy as _lazy
from ..._left_out import nothing_more as _nothing_more
from . import rnn as rnn
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names only

_LAZY = {".": "parametrize parametrizations prune"}
_LAZY |= {"..extras.hooked_norms": "weight_norm spectral_norm remove_weight_norm remove_spectral_norm"}
__getattr__ = _lazy(globals(), _LAZY, _nothing_more(__name__))
