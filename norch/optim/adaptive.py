"""RMSprop (Hinton 2012) and Adagrad (Duchi, Hazan and Singer 2011), in tensor operations, a parameter at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import no_grad
from ..create import full_like, zeros_like
from ..tensor import Tensor
from .optimizer import Elementwise, Params, at_least_0


class _OneByOne(Elementwise):
    """An optimizer whose step is `_update(param, gradient, state, group)`, for each parameter that has a gradient."""

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        for name in ("eps", "momentum", "alpha", "lr_decay", "initial_accumulator_value"):
            if name in group and not at_least_0(group[name]):
                raise ValueError(f"invalid {name} value: {group[name]!r}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    grad = -param.grad if group["maximize"] else param.grad
                    if group["weight_decay"]:
                        grad = grad + group["weight_decay"] * param
                    self._update(param, grad, self.state[param], group)
        return loss

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError


class RMSprop(_OneByOne):
    """p -= lr * g / (sqrt(square) + eps), where square is the running average of g^2 with the factor alpha; centered
    takes the square of the running average of g away from it. With momentum, buf = momentum * buf + what is above
    without lr, and p -= lr * buf.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.RMSprop([p], lr=0.01)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        kinds = {"capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable}
        super().__init__(params, {**options, "centered": centered, **kinds})

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["step"] = 0
            names = ["square_avg", *["grad_avg"] * group["centered"], *["momentum_buffer"] * (group["momentum"] > 0)]
            state.update((name, zeros_like(param.detach())) for name in names)
        state["step"] += 1
        square = state["square_avg"].mul_(group["alpha"]).addcmul_(grad, grad, value=1 - group["alpha"])
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - group["alpha"])
            square = square.addcmul(mean, mean, value=-1)
        scale = square.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            param.add_(state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale), alpha=-group["lr"])
        else:
            param.addcdiv_(grad, scale, value=-group["lr"])


class Adagrad(_OneByOne):
    """p -= lr / (1 + step * lr_decay) * g / (sqrt(sum) + eps), where sum adds up g^2 from initial_accumulator_value.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adagrad([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        start = {"initial_accumulator_value": initial_accumulator_value}
        kinds = {"foreach": foreach, "maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, **start, **kinds})

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state.update(step=0, sum=full_like(param.detach(), group["initial_accumulator_value"]))
        rate = group["lr"] / (1 + state["step"] * group["lr_decay"])
        state["step"] += 1
        scale = state["sum"].addcmul_(grad, grad, value=1).sqrt().add_(group["eps"])
        param.addcdiv_(grad, scale, value=-rate)
