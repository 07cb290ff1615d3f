"""Gradient clipping, parameter vectors, sequences of different lengths, parametrizations, pruning and fusion. This
file only collects names.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._package.exports import publish as _publish
from . import rnn as rnn
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters

if _TYPE_CHECKING:
    from ..extras.hooked_norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
    from . import parametrizations, parametrize, prune
    from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
    from .init import skip_init

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_conv_bn_weights",
    "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init",
    "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip

_LAZY = {".": "parametrize parametrizations prune"}
_LAZY |= {"..extras.hooked_norms": "weight_norm spectral_norm remove_weight_norm remove_spectral_norm"}
_LAZY |= {".fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"}
_LAZY |= {".init": "skip_init"}
_publish(globals(), _LAZY)
