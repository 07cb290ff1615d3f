"""The normalization layers. Each has a weight, initialized to 1, and a bias, initialized to 0; either may be None."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..dtype import dtype as DType
from ..dtype import int64
from ..errors import ShapeError
from ..ops._operand import tensor_of
from ..ops.create import ones, zeros
from ..ops.values import tensor
from ..tensor import Tensor
from . import functional as F
from . import init
from ._layer import Layer, options
from .parameter import Parameter, add_parameters

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "LocalResponseNorm", "RMSNorm",
]  # fmt: skip


class _Affine(Layer):
    """A layer with weight and bias."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(self, shape: Sequence[int], affine: bool, bias: bool, device: Any, dtype: DType | None) -> None:
        weight = shape if affine else None
        add_parameters(self, device, dtype, weight=weight, bias=weight if bias else None)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)  # type: ignore[arg-type]


def _as_shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with the statistics over the last axes, of shape
    normalized_shape (Ba et al. 2016, section 3). Training and eval mode do the same.

    eps: added to the variance, so that it is not 0. weight, bias: of shape normalized_shape; None without
    elementwise_affine, bias also without `bias`. ShapeError for an input whose last axes have other sizes.

    >>> norch.nn.LayerNorm(2, eps=0.0)(norch.tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    _shown, _unnamed = ("normalized_shape", "eps", "elementwise_affine", "bias"), 1

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
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Affine):
    """x / sqrt(mean(x^2) + eps) * weight, with the mean over the last axes, of shape normalized_shape (Zhang and
    Sennrich 2019, section 3).

    eps None: the machine epsilon of the input's dtype. weight: of shape normalized_shape; None without
    elementwise_affine. ShapeError for an input whose last axes have other sizes.

    >>> norch.nn.RMSNorm(2, eps=0.0)(norch.tensor([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    _shown, _unnamed = ("normalized_shape", "eps", "elementwise_affine"), 1

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        add_parameters(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with the statistics of each sample over num_groups groups of
    channels (Wu and He 2018, section 3). Training and eval mode do the same.

    Input: (N, num_channels, ...). weight, bias: (num_channels), None without affine; bias also without `bias`.
    ValueError if num_groups does not divide num_channels.

    >>> norch.nn.GroupNorm(2, 4)(norch.ones(3, 4, 5)).shape
    norch.Size([3, 4, 5])
    """

    _shown, _unnamed = ("num_groups", "num_channels", "eps", "affine", "bias"), 2

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
        self._add_affine((num_channels,), affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


@options
class LocalResponseNorm(Layer, function=F.local_response_norm):
    """x / (k + alpha * mean)^beta, with mean the mean of the squares of `size` neighbouring channels (Krizhevsky et al.
    2012, section 3.3).

    Input: (N, C, ...) of three or more dimensions, ShapeError otherwise. Channels beyond the ends count as 0.

    >>> norch.nn.LocalResponseNorm(5)(norch.ones(2, 8, 4, 4)).shape
    norch.Size([2, 8, 4, 4])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _unnamed = 1


class _NormWithStatistics(_Affine):
    """Base of batch and instance normalization: running statistics that are updated in training."""

    _version = 2  # from this version on there is num_batches_tracked
    _ndims: ClassVar[tuple[int, ...]]  # the numbers of dimensions of an input
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _shown, _unnamed = ("num_features", "eps", "momentum", "affine", "bias", "track_running_stats"), 1

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
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_affine((num_features,), affine, bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the number of batches to 0."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0, and resets the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *lists: Any
    ) -> None:
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def _check_input_dim(self, input: Tensor) -> None:
        if not hasattr(input, "__torch_function__"):
            tensor_of(input, type(self).__name__)
        if input.ndim not in self._ndims:
            wanted = " or ".join(f"{ndim}D" for ndim in self._ndims)
            raise ShapeError(f"{type(self).__name__}: expected {wanted} input (got {input.ndim}D input)")


class _BatchNorm(_NormWithStatistics):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        use_batch = self.training or self.running_mean is None
        use_running = self.track_running_stats or not self.training  # an attribute that users may change
        mean, variance = (self.running_mean, self.running_var) if use_running else (None, None)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, use_batch, self._next_momentum(), self.eps)

    def _next_momentum(self) -> Any:
        """The weight of this batch in the running statistics, a tensor if it depends on the count. Counts the batch."""
        if not (self.training and self.track_running_stats) or self.num_batches_tracked is None:
            return self.momentum or 0.0
        self.num_batches_tracked.add_(1)
        return self.num_batches_tracked.double().reciprocal() if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, for each channel of (N, C) or (N, C, L), with C = num_features
    (Ioffe and Szegedy 2015, section 3).

    In training, mean and biased variance are computed from the batch. running_mean moves towards the mean by
    `momentum`, running_var towards the unbiased variance; with momentum None they are averages over all batches. In
    eval mode the running statistics are used. Without track_running_stats there are none, and both modes use the
    statistics of the batch.

    eps: added to the variance, so that it is not 0. weight, bias: (C), None without affine; bias also without `bias`.
    ShapeError for other numbers of dimensions.

    >>> norch.nn.BatchNorm1d(1)(norch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W); otherwise as BatchNorm1d.

    >>> norch.nn.BatchNorm2d(3)(norch.ones(2, 3, 4, 4)).sum()
    tensor(0., grad_fn=<SumBackward>)
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W); otherwise as BatchNorm1d.

    >>> norch.nn.BatchNorm3d(3)(norch.ones(2, 3, 4, 4, 4)).shape
    norch.Size([2, 3, 4, 4, 4])
    """

    _ndims = (5,)


class _InstanceNorm(_NormWithStatistics):
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
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batch = input.unsqueeze(0) if input.ndim == self._ndims[0] else input
        use_input = self.training or not self.track_running_stats
        mean, variance, momentum = self.running_mean, self.running_var, self.momentum or 0.0
        out = F.instance_norm(batch, mean, variance, self.weight, self.bias, use_input, momentum, self.eps)
        return out.squeeze(0) if batch is not input else out


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(variance + eps) for each channel of each sample of (N, C, L) or (C, L) (Ulyanov et al. 2016).

    By default there are no weight, bias and running statistics; otherwise as BatchNorm1d.

    >>> norch.nn.InstanceNorm1d(2)(norch.tensor([[[1.0, 3.0], [10.0, 20.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W); otherwise as InstanceNorm1d.

    >>> norch.nn.InstanceNorm2d(3)(norch.ones(2, 3, 4, 4)).shape
    norch.Size([2, 3, 4, 4])
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W); otherwise as InstanceNorm1d.

    >>> norch.nn.InstanceNorm3d(3)(norch.ones(2, 3, 4, 4, 4)).shape
    norch.Size([2, 3, 4, 4, 4])
    """

    _ndims = (4, 5)
