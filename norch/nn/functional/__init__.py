"""The functions behind the layers, with PyTorch's names and argument order: `import norch.nn.functional as F`.

This file only collects names. Convolution, pooling, padding, attention and batch, layer and group normalization are
operations, from norch/ops. The functions of the other files here are composed of recorded operations, so that gradients
of any order exist without further code. Functions that few programs use come from nn/extras when they are first read.
Arguments that PyTorch places behind its deprecated `size_average` and `reduce` are keyword-only.
"""

from __future__ import annotations

from typing import Any

from ..._package.exports import publish
from ...ops._public import function_of, is_operation, publish_operations
from ...ops.attention import scaled_dot_product_attention
from ...ops.composed.adaptive_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from ...ops.composed.distance import cosine_similarity, pairwise_distance, pdist
from ...ops.composed.pad import pad
from ...ops.composed.products import bilinear
from ...ops.conv import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from ...ops.conv3d import conv3d, conv_transpose3d
from ...ops.matmul import linear
from ...ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from ...ops.op import METHODS
from ...ops.pool import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from ...tensor import Tensor
from . import _activation, _cross_entropy, _dropout, _embedding, _loss, _normalize, _pool, _vision
from ._activation import *  # noqa: F403
from ._cross_entropy import *  # noqa: F403
from ._dropout import *  # noqa: F403
from ._embedding import *  # noqa: F403
from ._loss import *  # noqa: F403
from ._normalize import *  # noqa: F403
from ._pool import *  # noqa: F403
from ._vision import *  # noqa: F403

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "group_norm",
    "instance_norm", "layer_norm", "linear", "max_pool1d", "max_pool2d", "max_pool3d", "pad", "pairwise_distance",
    "pdist", "rms_norm", "scaled_dot_product_attention",
]  # fmt: skip
for _file in (_activation, _cross_entropy, _dropout, _embedding, _loss, _normalize, _pool, _vision):
    __all__ += _file.__all__

# These notice objects with __torch_function__ themselves: a call within a call would take longer.
_PUBLIC = {"gelu", "linear", "relu", "scaled_dot_product_attention"}
_operations = [name for name in __all__ if name not in _PUBLIC and is_operation(globals()[name], METHODS)]
publish_operations(globals(), _operations, without_out=_operations)


def _missing(name: str) -> Any:
    """In-place functions call methods of Tensor; norch leaves out any other name."""
    if name.endswith("_") and name[0] != "_" and hasattr(Tensor, name):
        return function_of(getattr(Tensor, name))
    from ..._package.left_out import lookup

    return lookup(__name__, name)


_LAZY = {"..extras.ctc_loss": "ctc_loss", "..extras.embedding_bag": "embedding_bag"}
_LAZY |= {"..extras.grid_sample": "affine_grid grid_sample"}
_LAZY |= {"..attention": "multi_head_attention_forward"}
_LAZY |= {"..extras.unpool": "max_unpool1d max_unpool2d max_unpool3d"}
_LAZY |= {"..extras.fractional_pool": "fractional_max_pool2d fractional_max_pool3d"}
__all__ += " ".join(_LAZY.values()).split()
_OF_OVERRIDES = "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic"
publish(globals(), {**_LAZY, "...overrides": _OF_OVERRIDES}, _missing)
