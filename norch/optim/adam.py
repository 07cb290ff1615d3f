"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019, decoupled weight decay). The step is the row
adam of csrc/optim.def; fused.py calls it."""

from __future__ import annotations

from typing import Any

from .._options import KW_ONLY, options
from .fused import Fused
from .optimizer import Params


@options
class Adam(Fused, row="adam"):
    """p -= lr * mean / (sqrt(square) + eps), where mean and square are running averages of the gradient and
    of its square with the factors betas, corrected for their start at zero (Kingma and Ba 2015). weight_decay * p is
    added to the gradient, or subtracted from p with decoupled_weight_decay. amsgrad divides by the largest square so
    far (Reddi, Kale and Kumar 2018).

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adam([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    amsgrad: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None
    decoupled_weight_decay: bool = False

    def _kept(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None


class AdamW(Adam):
    """Adam with weight decay of the parameter itself, p -= lr * weight_decay * p, not of the gradient (Loshchilov and
    Hutter 2019).

    >>> opt = norch.optim.AdamW(norch.nn.Linear(2, 2).parameters(), lr=1e-3)
    >>> opt.defaults["weight_decay"]
    0.01
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        flags: Any = {"foreach": foreach, "maximize": maximize, "capturable": capturable, "fused": fused}
        flags |= {"differentiable": differentiable, "decoupled_weight_decay": True}
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **flags)
