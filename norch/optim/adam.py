"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019, decoupled weight decay)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._handle import bump_all
from .._lib import address, lib
from ..ops.create import zeros_like
from ..tensor import Tensor
from .optimizer import Elementwise, Params, at_least_0, by_step, with_gradients


class Adam(Elementwise):
    """p -= lr * mean / (sqrt(square) + eps), where mean and square are running averages of the gradient and
    of its square with the factors betas, corrected for their start at zero. weight_decay * p is added to the
    gradient, or with decoupled_weight_decay taken from p as AdamW does. amsgrad divides by the largest square so far
    (Reddi, Kale and Kumar 2018).

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adam([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        kinds = {"foreach": foreach, "maximize": maximize, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**options, **kinds, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay})

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if not at_least_0(group["eps"]):
            raise ValueError(f"invalid eps value: {group['eps']!r}")
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise ValueError(f"betas are two numbers, not {group['betas']!r}")
        for index, beta in enumerate(group["betas"]):
            if not (at_least_0(beta) and beta < 1):
                raise ValueError(f"invalid beta parameter at index {index}: {beta}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group, hyper in self._groups():
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            hyper[0] = group["lr"]
            hyper[1], hyper[2] = group["betas"]
            hyper[3] = group["eps"]
            hyper[4] = group["weight_decay"]
            hyper[5] = group["decoupled_weight_decay"]
            hyper[6] = group["maximize"]
            entries = [self.state.get(param) or self._entry(param) for param in params]
            for bucket in by_step(params, grads, entries):
                hyper[7] = bucket[2][0]["step"] + 1
                _step(*bucket, hyper, group["amsgrad"])
        return loss

    def _entry(self, param: Tensor) -> dict[str, Any]:
        like = param.detach()
        entry = {"step": 0, "exp_avg": zeros_like(like), "exp_avg_sq": zeros_like(like)}
        self.state[param] = entry
        return entry


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter itself, p -= lr * weight_decay * p, not on the gradient.

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
        super().__init__(
            *(params, lr, betas, eps, weight_decay, amsgrad),
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def _step(params: list[Tensor], grads: list[Tensor], entries: list[dict[str, Any]], hyper: Any, amsgrad: bool) -> None:
    means = [entry["exp_avg"] for entry in entries]
    squares = [entry["exp_avg_sq"] for entry in entries]
    largest = [_largest(entry) for entry in entries] if amsgrad else None
    lib.norch_adam_step((params, grads, means, squares, largest), address(hyper))
    bump_all(params)
    for entry in entries:
        entry["step"] += 1


def _largest(entry: dict[str, Any]) -> Tensor:
    found: Tensor | None = entry.get("max_exp_avg_sq")
    if found is None:
        found = entry["max_exp_avg_sq"] = zeros_like(entry["exp_avg_sq"])
    return found
