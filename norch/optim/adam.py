"""Adam (Kingma and Ba 2015) and its variants AdamW, Adamax, NAdam and RAdam. fused.py runs their steps, which are rows
of csrc/optim.def.
"""

from __future__ import annotations

import math
from typing import Any

from .._package.options import KW_ONLY, options
from ..tensor import Tensor
from .fused import Fused
from .optimizer import Params


@options
class Adam(Fused, row="adam"):
    """Adam (Kingma and Ba 2015): a step is p -= lr * mean / (sqrt(square) + eps). mean and square are the running
    averages of the gradient and its square with the factors betas, corrected for their start at zero. weight_decay * p
    is added to the gradient. amsgrad divides by the largest square so far instead (Reddi et al. 2018). Optimizer
    describes the other options.

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
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): a step subtracts lr * weight_decay * p from p, and
    adds nothing to the gradient. Adam and Optimizer describe the other options.

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


@options
class Adamax(Fused, row="adamax"):
    """Adamax (Kingma and Ba 2015, section 7): a step is p -= lr / (1 - beta1^step) * average / largest. average is the
    running average of the gradient g with the factor beta1; largest is the maximum of |g| + eps and beta2 * largest.
    Optimizer describes the other options.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.Adamax([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    lr: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False


@options
class NAdam(Fused, row="nadam"):
    """Adam with Nesterov's momentum (Dozat 2016): p moves along (1 - mu) g plus the next mu times the running average
    of the gradient g. mu = beta1 (1 - 0.96^(step momentum_decay) / 2) grows with the steps. Optimizer describes the
    other options.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.NAdam([p])
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item() < 1
    True
    """

    lr: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    def _complete(self, entry: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        super()._complete(entry, param, group)
        entry.setdefault("mu_product", 1.0)

    def _momenta(self, entry: dict[str, Any], group: dict[str, Any]) -> tuple[float, float]:
        """mu of the next step and of the one after it."""
        beta, decay, step = group["betas"][0], group["momentum_decay"], entry["step"] + 1
        return beta * (1 - 0.5 * 0.96 ** (step * decay)), beta * (1 - 0.5 * 0.96 ** ((step + 1) * decay))

    def _fill_step(self, hyper: Any, entry: dict[str, Any], group: dict[str, Any]) -> None:
        super()._fill_step(hyper, entry, group)
        mu, following = self._momenta(entry, group)
        product, rate = entry["mu_product"] * mu, float(group["lr"])
        hyper.gain, hyper.ahead = rate * (1 - mu) / (1 - product), rate * following / (1 - product * following)

    def _count(self, entry: dict[str, Any], group: dict[str, Any]) -> None:
        entry["mu_product"] *= self._momenta(entry, group)[0]
        super()._count(entry, group)


@options
class RAdam(Fused, row="radam"):
    """Rectified Adam (Liu et al. 2020, algorithm 2). The average of squared gradients varies too much in the first
    steps, so these do not divide by its root. Later steps are scaled by a factor that grows to 1. Optimizer describes
    the other options.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.RAdam([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    def _fill_step(self, hyper: Any, entry: dict[str, Any], group: dict[str, Any]) -> None:
        super()._fill_step(hyper, entry, group)
        (beta1, beta2), step = group["betas"], entry["step"] + 1
        rest = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / rest  # the average's length in steps
        hyper.rate, hyper.trusted = float(group["lr"]) / (1 - beta1**step), length > 5
        if length > 5:
            trust = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            hyper.rate *= math.sqrt(trust) * math.sqrt(rest)
