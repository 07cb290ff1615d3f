"""Batch normalisation in eval mode, folded into the convolution or the linear layer before it.

Its output is (y - mean) / sqrt(var + eps) * weight + bias of y = W x + b, which is W' x + b' with W' = W weight /
sqrt(var + eps).
"""

from __future__ import annotations

import copy
from typing import Any

from ..._package.exports import publish
from ...errors import ArgumentError
from ...tensor import Tensor
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


class FusionError(ArgumentError, AssertionError):
    """Layers that are not ready to be fused; PyTorch raises an AssertionError."""


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """(weight, bias) of the convolution that equals batch normalisation after a convolution with conv_w and conv_b.

    bn_rm, bn_rv: the running mean and variance, bn_w and bn_b its weight and bias; None means ones or zeros. transpose:
    for a transposed convolution, whose output channels are the second axis of the weight.

    >>> mean, var = norch.tensor([1.0]), norch.tensor([4.0])
    >>> weight, bias = norch.nn.utils.fuse_conv_bn_weights(norch.ones(1, 1, 1, 1), None, mean, var, 0.0, None, None)
    >>> weight.item(), bias.item()
    (0.5, -0.5)
    """
    scale = (bn_rv + bn_eps).rsqrt()
    scale = scale if bn_w is None else scale * bn_w
    shift = -bn_rm * scale if conv_b is None else (conv_b - bn_rm) * scale
    shift = shift if bn_b is None else shift + bn_b
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    trained = conv_w.requires_grad, conv_b is None or conv_b.requires_grad
    return Parameter(weight.detach(), trained[0]), Parameter(shift.detach(), trained[1])


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """fuse_conv_bn_weights() of a linear layer.

    >>> mean, var = norch.tensor([1.0]), norch.tensor([4.0])
    >>> weight, bias = norch.nn.utils.fuse_linear_bn_weights(norch.ones(1, 2), None, mean, var, 0.0, None, None)
    >>> weight.tolist(), bias.tolist()
    ([[0.5, 0.5]], [-0.5])
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(name: str, layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise FusionError(f"{name}: fusion is only for eval mode, in which the statistics are fixed")
    if bn.running_mean is None:
        raise FusionError(f"{name}: the batch normalisation has no running statistics")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """One convolution that computes bn(conv(x)) in eval mode: a copy of conv with the statistics of bn in its weights.

    ArgumentError in training mode. transpose: for a transposed convolution of one group.

    >>> conv, bn = norch.nn.Conv2d(3, 4, 3).eval(), norch.nn.BatchNorm2d(4).eval()
    >>> fused, x = norch.nn.utils.fuse_conv_bn_eval(conv, bn), norch.ones(1, 3, 5, 5)
    >>> norch.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """One linear layer that computes bn(linear(x)) in eval mode; as fuse_conv_bn_eval().

    bn must have as many features as linear, or one feature.

    >>> layer, norm = norch.nn.Linear(3, 2).eval(), norch.nn.BatchNorm1d(2).eval()
    >>> x = norch.ones(1, 3)
    >>> norch.allclose(norch.nn.utils.fuse_linear_bn_eval(layer, norm)(x), norm(layer(x)))
    True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise FusionError(f"fuse_linear_bn_eval: {bn.num_features} features after {linear.out_features}")
    return _fused("fuse_linear_bn_eval", linear, bn, False)


publish(globals())
