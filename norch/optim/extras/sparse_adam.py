"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._package.options import options
from ...autograd import no_grad
from ...errors import Error
from ...ops.create import zeros_like
from ..optimizer import Elementwise


@options
class SparseAdam(Elementwise):
    """Adam for sparse gradients (Kingma and Ba 2015). A step changes only the elements that the gradient has, and their
    averages. Error for a dense gradient, ValueError for a sparse parameter. Optimizer describes the other options.

    >>> table = norch.nn.Embedding(3, 2, sparse=True)
    >>> opt = norch.optim.SparseAdam(table.parameters(), lr=0.5)
    >>> before = table.weight.detach().clone()
    >>> table(norch.tensor([2])).sum().backward()
    >>> opt.step()
    >>> (before - table.weight.detach())[1:]
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000]])
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    maximize: bool = False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        if any(param.is_sparse for param in self.param_groups[-1]["params"]):
            raise ValueError("SparseAdam requires dense parameter tensors")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient. Returns the closure's result, or None without a closure."""
        loss = None if closure is None else self._loss(closure)
        with no_grad():
            for group in self._groups():
                for param in group["params"]:
                    if param.grad is not None:
                        self._advance(param, param.grad, group)
        return loss

    def _advance(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise Error("SparseAdam does not support dense gradients, please consider Adam instead")
        entry = self.state[param]
        if not entry:
            entry.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        entry["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        if grad._nnz() == 0:
            return
        at, g = tuple(grad.indices()), grad.values()
        (first, second), step = group["betas"], entry["step"]
        mean, square = entry["exp_avg"][at].lerp(g, 1 - first), entry["exp_avg_sq"][at].lerp(g * g, 1 - second)
        entry["exp_avg"][at], entry["exp_avg_sq"][at] = mean, square
        size = float(group["lr"]) * (1 - second**step) ** 0.5 / (1 - first**step)
        param.index_put_(at, mean / (square.sqrt() + group["eps"]) * -size, accumulate=True)
