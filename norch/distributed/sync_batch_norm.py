"""SyncBatchNorm: batch normalization over the batches of all ranks together."""

from __future__ import annotations

from typing import Any

from ..autograd import no_grad
from ..autograd.function import Function
from ..errors import ShapeError
from ..nn.module import Module
from ..nn.norm import _BatchNorm
from ..ops._operand import tensor_of
from ..tensor import Tensor
from .collectives import all_reduce
from .process_group import ProcessGroup, group_of, is_initialized


class _Sum(Function):
    """The sum over the ranks. Each rank's result depends on all ranks' inputs, so that gradients are summed, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        out = x.clone()
        all_reduce(out, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return _Sum.apply(g, ctx.group), None


class SyncBatchNorm(_BatchNorm):
    """BatchNorm of (N, C, ...) whose statistics, in training, are computed from the batches of all ranks of
    process_group (None: all ranks). Batches may have different sizes. On one rank, and in eval mode, it is the same as
    BatchNorm1d, which describes the parameters. Error in training before init_process_group().

    >>> model = norch.nn.Sequential(norch.nn.Conv2d(1, 2, 3), norch.nn.BatchNorm2d(2))
    >>> norch.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
    SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: ProcessGroup | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input, of its shape."""
        if not self.training or (is_initialized() and group_of(self.process_group, "SyncBatchNorm").size() == 1):
            return super().forward(input)
        self._check_input_dim(input)
        group = group_of(self.process_group, "SyncBatchNorm")
        axes = [axis for axis in range(input.ndim) if axis != 1]
        x = input if input.dtype.itemsize >= 4 else input.float()
        along = [1, -1] + [1] * (input.ndim - 2)
        count = x.new_full((1,), float(x.numel() // x.shape[1]))
        all_reduce(count, group=group)
        mean = _Sum.apply(x.sum(axes), group) / count
        centred = x - mean.view(along)
        variance = _Sum.apply(centred.square().sum(axes), group) / count
        self._move_statistics(mean, variance * (count / (count - 1).clamp(min=1)))
        out = centred * (variance + self.eps).rsqrt().view(along)
        if self.weight is not None:
            out = out * self.weight.view(along)
        if self.bias is not None:
            out = out + self.bias.view(along)
        return out.to(input.dtype)

    def _check_input_dim(self, input: Tensor) -> None:
        if tensor_of(input, "SyncBatchNorm").ndim < 2:
            raise ShapeError(f"SyncBatchNorm: expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] != self.num_features:
            raise ShapeError(
                f"SyncBatchNorm: {input.shape[1]} channels of shape {tuple(input.shape)} are not {self.num_features}"
            )

    def _move_statistics(self, mean: Tensor, variance: Tensor) -> None:
        momentum = self._next_momentum()
        if self.running_mean is not None and self.running_var is not None:
            with no_grad():
                self.running_mean += (mean - self.running_mean) * momentum
                self.running_var += (variance - self.running_var) * momentum

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: ProcessGroup | None = None) -> Module:
        """module with each BatchNorm replaced by a SyncBatchNorm, over the same parameters and buffers."""
        converted = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            affine = module.weight is not None
            converted = cls(
                module.num_features, module.eps, module.momentum, affine, module.track_running_stats, process_group
            )
            for names in (module._parameters, module._buffers):
                for name, x in names.items():
                    setattr(converted, name, x)
            converted.training = module.training
        for name, child in module.named_children():
            setattr(converted, name, cls.convert_sync_batchnorm(child, process_group))
        return converted
