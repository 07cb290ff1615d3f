"""Layers that PyTorch keeps for old programs: CrossMapLRN2d, NLLLoss2d and Container."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..nn.functional import pad
from ..nn.loss import NLLLoss
from ..nn.module import Module
from ..tensor import Tensor

NLLLoss2d = type("NLLLoss2d", (NLLLoss,), {"__module__": "norch.nn.modules.loss", "__doc__": "NLLLoss() of images."})


class Container(Module):
    """A module with the submodules that the keyword arguments name."""

    def __init__(self, **modules: Any) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


class _CrossMapLRN(Function):
    """Forward and backward as in PyTorch: the windows of the sums of squares keep the first channel, and the windows of
    the gradient begin below a channel at the distance of Torch7's padding, which counts channels from 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
        radius, squares, channels = (size - 1) // 2, x.square(), x.shape[1]
        sums = pad(squares, (0, 0, 0, 0, radius, radius)).unfold(1, 2 * radius + 1, 1).sum(-1)
        first = squares[:, :1].expand(-1, max(channels - radius - 1, 0), -1, -1)
        scale = (sums + pad(first, (0, 0, 0, 0, radius + 1, 0))[:, :channels]) * (alpha / size) + k
        out = x * scale**-beta
        ctx.save_for_backward(x, out, scale)
        ctx.size, ctx.factor, ctx.power = size, 2 * alpha * beta / size, -beta
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, out, scale = ctx.saved_tensors
        below = int(ctx.size - (ctx.size - 1) / 2)
        ratio = pad(g * out / scale, (0, 0, 0, 0, below, ctx.size - 1 - below)).unfold(1, ctx.size, 1).sum(-1)
        return g * scale**ctx.power - ctx.factor * x * ratio, None, None, None, None


class CrossMapLRN2d(Module):
    """LocalResponseNorm() of images (N, C, H, W) as in Torch7: windows of channels c - r to c + r with
    r = (size - 1) // 2."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        return _CrossMapLRN.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
