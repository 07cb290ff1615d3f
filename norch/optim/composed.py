"""Adadelta, Adamax, NAdam, RAdam and Rprop: composed of tensor operations, without a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._options import KW_ONLY, options
from ..autograd import no_grad
from ..ops.create import full_like, ones_like, zeros_like
from ..tensor import Tensor
from .optimizer import Elementwise


class Composed(Elementwise):
    """Base. A subclass gives _update(), the formula, and the names of its state tensors, zeros at first. decays=False:
    the formula includes the weight decay."""

    _states: tuple[str, ...] = ()
    _decays = True

    def __init_subclass__(cls, states: tuple[str, ...] | None = None, decays: bool | None = None, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._states = cls._states if states is None else states
        cls._decays = cls._decays if decays is None else decays

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        return {"step": 0, **{name: zeros_like(param.detach()) for name in self._states}}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        """Updates one parameter and its state, whose step count, if it has one, includes this step."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group in self._groups():
            decay = group.get("weight_decay", 0) if self._decays else 0
            for param in group["params"]:
                if param.grad is None:
                    continue
                g = -param.grad if group.get("maximize") else param.grad
                if decay and group.get("decoupled_weight_decay"):
                    param.mul_(1 - group["lr"] * decay)
                elif decay:
                    g = g + param * decay
                entry = self.state[param] = self.state.get(param) or self._start(param, group)
                if "step" in entry:
                    entry["step"] += 1
                self._update(param, g, entry, group)
        return loss


def _averages(g: Tensor, entry: dict[str, Any], betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """The updated running averages of g and of its square."""
    average: Tensor = entry["exp_avg"].lerp_(g, 1 - betas[0])
    square: Tensor = entry["exp_avg_sq"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    return average, square


@options
class Adadelta(Composed, states=("square_avg", "acc_delta")):
    """delta = sqrt(moved + eps) / sqrt(square + eps) * g, p -= lr * delta, where square and moved are the running
    averages of g^2 and delta^2 with the factor rho (Zeiler 2012).

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adadelta([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> bool((p < 1).all())
    True
    """

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    capturable: bool = False
    maximize: bool = False
    differentiable: bool = False

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        square = entry["square_avg"].mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = (entry["acc_delta"] + eps).sqrt_().div_((square + eps).sqrt_()).mul_(g)
        entry["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.sub_(delta * group["lr"])


@options
class Adamax(Composed, states=("exp_avg", "exp_inf")):
    """p -= lr / (1 - beta1^step) * average / largest, where average is the running average of g with the factor beta1,
    and largest the maximum of |g| + eps and beta2 * largest (Kingma and Ba 2014, section 7).

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

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        entry["exp_avg"].lerp_(g, 1 - beta1)
        entry["exp_inf"].copy_((entry["exp_inf"] * beta2).maximum(g.abs() + group["eps"]))
        rate = group["lr"] / (1 - beta1 ** entry["step"])
        param.addcdiv_(entry["exp_avg"], entry["exp_inf"], value=-rate)


@options
class NAdam(Composed, states=("exp_avg", "exp_avg_sq")):
    """Adam with Nesterov's momentum (Dozat 2016): p moves along (1 - mu) g plus the next mu times the running average
    of g, where mu = beta1 (1 - 0.96^(step momentum_decay) / 2) grows with the steps.

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

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super()._start(param, group), "mu_product": 1.0}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), step, rate = group["betas"], entry["step"], group["lr"]
        average, square = _averages(g, entry, group["betas"])
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (step, step + 1))
        entry["mu_product"] *= mu
        divisor = (square / (1 - beta2**step)).sqrt_().add_(group["eps"])
        param.addcdiv_(g, divisor, value=-rate * (1 - mu) / (1 - entry["mu_product"]))
        param.addcdiv_(average, divisor, value=-rate * following / (1 - entry["mu_product"] * following))


@options
class RAdam(Composed, states=("exp_avg", "exp_avg_sq")):
    """Adam without the division by sqrt(square) in the first steps, where the variance of that average is too large; in
    later steps it is scaled by a factor that grows to 1 (Liu et al. 2019).

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

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), step = group["betas"], entry["step"]
        average, square = _averages(g, entry, group["betas"])
        rate, rest = group["lr"] / (1 - beta1**step), 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / rest  # of the average, in steps
        if length <= 5:
            param.sub_(average * rate)
            return
        trust = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        param.addcdiv_(average, square.sqrt().add_(group["eps"]), value=-rate * trust * math.sqrt(rest))


@options
class Rprop(Composed, states=("prev",)):
    """p -= sign(g) * size, where size, lr at first, is multiplied by etas[1] while g keeps its sign and by etas[0] when
    the sign changes, within step_sizes; after a change of sign p stays (Riedmiller and Braun 1993).

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.Rprop([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    lr: float = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50)
    _: KW_ONLY
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if not 0 < group["etas"][0] < 1 < group["etas"][1]:
            raise ValueError(f"invalid etas: {group['etas']!r}")

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super()._start(param, group), "step_size": full_like(param.detach(), group["lr"])}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        agree = g * entry["prev"]
        shrink, grow = group["etas"]
        factor = ones_like(agree).masked_fill_(agree > 0, grow).masked_fill_(agree < 0, shrink)
        size = entry["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        g = g.masked_fill(agree < 0, 0)
        param.sub_(g.sign() * size)
        entry["prev"].copy_(g)
