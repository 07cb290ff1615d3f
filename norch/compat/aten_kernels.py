"""torch.ops.aten.NAME for operators whose arguments or results differ from norch's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import norch

from ..nn import functional as F
from ..tensor import Tensor


def convolution(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *of_kernels: Any,
) -> Tensor:  # fmt: skip
    """F.conv2d() and its like, for any number of axes."""
    axes = weight.ndim - 2
    stride, padding, dilation = (
        tuple(x) * (axes if len(x) == 1 else 1) if isinstance(x, (list, tuple)) else x
        for x in (stride, padding, dilation)
    )
    if transposed:
        of = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[axes]
        return of(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes](input, weight, bias, stride, padding, dilation, groups)


def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """(F.layer_norm(), the means, the inverse standard deviations)."""
    dims = tuple(range(-len(normalized_shape), 0))
    mean, scale = _statistics(input.detach(), dims, eps)
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps), mean, scale


def native_group_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,  # noqa: N803
) -> Any:
    """(F.group_norm(), means, inverse standard deviations (N, group)). As in PyTorch, all three are differentiable."""
    mean, scale = _statistics(input.reshape(N, group, C // group * HxW), -1, eps)
    return F.group_norm(input, group, weight, bias, eps), mean.squeeze(-1), scale.squeeze(-1)


def native_batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """F.batch_norm(), and in training the means and inverse standard deviations of the channels."""
    mean = scale = input.new_empty(0)
    if training:
        mean, scale = (x.flatten() for x in _statistics(input.detach(), (0, *range(2, input.ndim)), eps))
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps), mean, scale


def _statistics(x: Tensor, dims: Any, eps: float) -> tuple[Tensor, Tensor]:
    return x.mean(dims, keepdim=True), (x.var(dims, correction=0, keepdim=True) + eps).rsqrt()


def attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    """(F.scaled_dot_product_attention(), the log-sum-exp of the scores)."""
    scores = query.detach() @ key.detach().mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(norch.ones_like(scores, dtype=norch.bool).tril().logical_not(), float("-inf"))
    if attn_mask is not None:
        masked = attn_mask.dtype is norch.bool
        scores = scores.masked_fill(~attn_mask, float("-inf")) if masked else scores + attn_mask
    result = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return result, scores.logsumexp(-1)


def _safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """F.softmax(), with 0 for rows that are all -inf."""
    hidden = (input == float("-inf")).all(dim, keepdim=True)
    return F.softmax(input.masked_fill(hidden, 0.0), dim, dtype=dtype).masked_fill(hidden, 0.0)


def _to_copy(input: Tensor, *, dtype: Any = None, device: Any = None, **of_layout: Any) -> Tensor:
    """Tensor.to() that always copies."""
    return input.to(device or input.device, dtype or input.dtype, copy=True)


KERNELS: dict[str, Callable[..., Any]] = {
    "_convolution": convolution, "convolution": convolution, "native_batch_norm": native_batch_norm,
    "native_group_norm": native_group_norm, "native_layer_norm": native_layer_norm, "_to_copy": _to_copy,
    "_safe_softmax": _safe_softmax,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_log_softmax": lambda input, dim, half_to_float=False: F.log_softmax(input, dim),
    "_softmax": lambda input, dim, half_to_float=False: F.softmax(input, dim),
    "_unsafe_view": lambda input, size: input.reshape(size),
    "view": lambda input, size: input.view(size),
    "embedding": lambda weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False: F.embedding(
        indices, weight, None if padding_idx < 0 else padding_idx, scale_grad_by_freq=scale_grad_by_freq
    ),
}  # fmt: skip
