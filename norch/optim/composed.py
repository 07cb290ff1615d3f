"""Adadelta, Adamax, NAdam, RAdam and Rprop, composed of tensor operations: a formula an optimizer, no kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd import no_grad
from ..ops.create import full_like, ones_like, zeros_like
from ..tensor import Tensor
from .optimizer import Elementwise, Params


class _Composed(Elementwise):
    """A subclass gives move(), which changes one parameter, and names the tensors that it remembers, zeros at first."""

    remembers: tuple[str, ...] = ()

    def first(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """What is remembered of a parameter before its first step."""
        return {"step": 0, **{name: zeros_like(param.detach()) for name in self.remembers}}

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter; entry is what is remembered of it, its step counted already."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group in self._groups():
            decay = group.get("weight_decay", 0)
            for param in group["params"]:
                if param.grad is None:
                    continue
                g = -param.grad if group["maximize"] else param.grad
                if decay and group.get("decoupled_weight_decay"):
                    param.mul_(1 - group["lr"] * decay)
                elif decay:
                    g = g + param * decay
                entry = self.state[param] = self.state.get(param) or self.first(param, group)
                entry["step"] += 1
                self.move(param, g, entry, group)
        return loss


def _averages(g: Tensor, entry: dict[str, Any], betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """The running averages of g and of its square, brought up to date."""
    average: Tensor = entry["exp_avg"].lerp_(g, 1 - betas[0])
    square: Tensor = entry["exp_avg_sq"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    return average, square


class Adadelta(_Composed):
    """delta = sqrt(moved + eps) / sqrt(square + eps) * g, p -= lr * delta, where square and moved are the running
    averages of g^2 and delta^2 with the factor rho (Zeiler 2012).

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adadelta([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> bool((p < 1).all())
    True
    """

    remembers = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"invalid rho value: {group['rho']!r}")

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        square = entry["square_avg"].mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = (entry["acc_delta"] + eps).sqrt_().div_((square + eps).sqrt_()).mul_(g)
        entry["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.sub_(delta * group["lr"])


class Adamax(_Composed):
    """p -= lr / (1 - beta1^step) * average / largest, where average is g's with the factor beta1, and largest the
    maximum of |g| + eps and beta2 times the one before (Kingma and Ba 2014, section 7).

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.Adamax([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    remembers = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        entry["exp_avg"].lerp_(g, 1 - beta1)
        entry["exp_inf"].copy_((entry["exp_inf"] * beta2).maximum(g.abs() + group["eps"]))
        rate = group["lr"] / (1 - beta1 ** entry["step"])
        param.addcdiv_(entry["exp_avg"], entry["exp_inf"], value=-rate)


class NAdam(_Composed):
    """Adam with Nesterov's momentum (Dozat 2016): the moment's factor mu = beta1 (1 - 0.96^(step momentum_decay) / 2)
    grows, and p takes the share 1 - mu of g and the next mu of the moment.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.NAdam([p])
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item() < 1
    True
    """

    remembers = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def first(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super().first(param, group), "mu_product": 1.0}

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), step, rate = group["betas"], entry["step"], group["lr"]
        average, square = _averages(g, entry, group["betas"])
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (step, step + 1))
        entry["mu_product"] *= mu
        width = (square / (1 - beta2**step)).sqrt_().add_(group["eps"])
        param.addcdiv_(g, width, value=-rate * (1 - mu) / (1 - entry["mu_product"]))
        param.addcdiv_(average, width, value=-rate * following / (1 - entry["mu_product"] * following))


class RAdam(_Composed):
    """Adam whose first steps, in which the running square says little yet, do without it; later it counts by a factor
    that grows to 1 (Liu et al. 2019).

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.RAdam([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    remembers = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), step = group["betas"], entry["step"]
        average, square = _averages(g, entry, group["betas"])
        rate, rest = group["lr"] / (1 - beta1**step), 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * beta2**step / rest  # of the average, in steps
        if length <= 5:
            param.sub_(average * rate)
            return
        trust = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        param.addcdiv_(average, square.sqrt().add_(group["eps"]), value=-rate * trust * math.sqrt(rest))


class Rprop(_Composed):
    """p -= sign(g) * size, where size, lr at first, grows by etas[1] while g keeps its sign and shrinks by etas[0] when
    it changes, within step_sizes; then the step is left out (Riedmiller and Braun 1993).

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.Rprop([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    remembers = ("prev",)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"invalid etas: {etas!r}")
        super().__init__(params, locals())

    def first(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super().first(param, group), "step_size": full_like(param.detach(), group["lr"])}

    def move(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        agree = g * entry["prev"]
        shrink, grow = group["etas"]
        factor = ones_like(agree).masked_fill_(agree > 0, grow).masked_fill_(agree < 0, shrink)
        size = entry["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        g = g.masked_fill(agree < 0, 0)
        param.sub_(g.sign() * size)
        entry["prev"].copy_(g)
