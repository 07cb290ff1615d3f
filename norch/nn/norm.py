"""Normalisation layers. The functions are those of functional.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import dtype as DType
from ..dtype import int64
from ..errors import ShapeError
from ..ops._operand import tensor_of
from ..ops.create import ones, zeros
from ..ops.values import tensor
from ..tensor import Tensor
from . import functional as F  # noqa: N812
from . import init
from .module import Module
from .parameter import Parameter, blank


class _Affine(Module):
    """A weight, ones at first, and a bias, zeros at first; either may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, shape: Sequence[int], weight: bool, bias: bool, device: Any, dtype: DType | None) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            made = blank(self, *shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)  # type: ignore[arg-type]


class LayerNorm(_Affine):
    """The last axes, of sizes normalized_shape, with mean 0 and variance 1; times weight, plus bias.

    weight, bias: of normalized_shape, or None (elementwise_affine, bias).

    >>> norch.nn.LayerNorm(2, eps=0.0)(norch.tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        shown = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{shown}, bias={self.bias is not None}"


class RMSNorm(_Affine):
    """The last axes, of sizes normalized_shape, over the root of their mean square; times weight.

    eps None: the least step of the input's dtype from 1. weight: of normalized_shape, or None.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = blank(self, *self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Input (N, num_channels, ...): the channels of each of num_groups groups with mean 0 and variance 1; times weight,
    plus bias, both (num_channels) or None.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels {num_channels} must be divisible by num_groups {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Input (N, C, ...) over (k + alpha m)^beta, where m is the mean square of size channels around each
    (Krizhevsky et al. 2012, section 3.3).

    >>> norch.nn.LocalResponseNorm(5)(norch.ones(2, 8, 4, 4)).shape
    norch.Size([2, 8, 4, 4])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _Running(_Affine):
    """What batch and instance normalisation share: statistics that move with each batch in training."""

    ranks: tuple[int, ...]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: DType | None,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make((num_features,), affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Back to mean 0 and variance 1, and no batch seen."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Tensor) -> None:
        if tensor_of(input, type(self).__name__).ndim not in self.ranks:
            wanted = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ShapeError(f"{type(self).__name__}: expected {wanted} input (got {input.ndim}D input)")

    def _factor(self) -> float:
        """How far the running statistics move, this batch being counted."""
        if not (self.training and self.track_running_stats) or self.num_batches_tracked is None:
            return self.momentum or 0.0
        self.num_batches_tracked.add_(1)
        return 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        factor = self._factor()
        of_batch = self.training or self.running_mean is None
        used = self.track_running_stats or not self.training  # which may have been changed since
        mean, variance = (self.running_mean, self.running_var) if used else (None, None)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, of_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Input (N, C) or (N, C, L): each channel with mean 0 and variance 1; times weight (C), plus bias (C).

    In training by the statistics of the batch, towards which running_mean and running_var move by momentum (None: they
    are the means over all batches); in eval() by the running ones.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Input (N, C, H, W); otherwise as BatchNorm1d.

    >>> norch.nn.BatchNorm2d(3)(norch.ones(2, 3, 4, 4)).sum()
    tensor(0., grad_fn=<SumBackward>)
    """

    ranks = (4,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        whole = input.unsqueeze(0) if input.ndim == self.ranks[0] else input
        of_input = self.training or not self.track_running_stats
        out = F.instance_norm(
            whole, self.running_mean, self.running_var, self.weight, self.bias, of_input, self.momentum or 0.0, self.eps
        )
        return out.squeeze(0) if whole is not input else out


class InstanceNorm1d(_InstanceNorm):
    """Input (N, C, L) or (C, L): each channel of each sample with mean 0 and variance 1. By default without weight and
    bias, and without running statistics.
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Input (N, C, H, W) or (C, H, W); otherwise as InstanceNorm1d."""

    ranks = (3, 4)
