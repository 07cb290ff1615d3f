"""``norch.nn.utils.fusion``: batch normalisation in evaluation as part of the layer before it.

Its output is (y - mean) / sqrt(var + eps) * weight + bias of y = W x + b, which is W' x + b' with W' = W weight /
sqrt(var + eps).
"""

from __future__ import annotations

import copy
from typing import Any

from ..._exports import publish
from ...ops.create import ones_like, zeros_like
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution, or of a layer with weights (out, in, ...), and the normalisation."""
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * (bn_rv + bn_eps).rsqrt()
    bias = (zeros_like(bn_rm) if bn_b is None else bn_b) + (conv_b - bn_rm) * scale
    shape = (1, -1, *[1] * (conv_w.ndim - 2)) if transpose else (-1, *[1] * (conv_w.ndim - 1))
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    grad = conv_w.requires_grad
    return Parameter(weight.detach(), requires_grad=grad), Parameter(bias.detach(), requires_grad=grad)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """The same for a Linear."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a layer that does what it and a batch normalisation behind it do, both in evaluation.

    >>> from norch.nn.utils.fusion import fuse_conv_bn_eval
    >>> conv, bn = norch.nn.Conv2d(3, 8, 3).eval(), norch.nn.BatchNorm2d(8).eval()
    >>> x = norch.ones(1, 3, 4, 4)
    >>> norch.allclose(fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    if conv.training or bn.training:
        raise AssertionError("fuse_conv_bn_eval: the layer and the normalisation have to be in evaluation: call eval()")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """The same for a Linear; ValueError where the normalisation is not over its features."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise ValueError(f"fuse_linear_bn_eval: {linear.out_features} features and a norm of {bn.num_features}")
    return fuse_conv_bn_eval(linear, bn)


publish(globals())
