"""RMSprop (Hinton 2012) and Adagrad (Duchi, Hazan and Singer 2011)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._handle import bump_all
from .._lib import address, lib
from ..ops.create import full_like, zeros_like
from ..tensor import Tensor
from .optimizer import Elementwise, Params, at_least_0, by_step, with_gradients


class _Adaptive(Elementwise):
    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        for name in ("eps", "momentum", "alpha", "lr_decay", "initial_accumulator_value"):
            if name in group and not at_least_0(group[name]):
                raise ValueError(f"invalid {name} value: {group[name]!r}")


class RMSprop(_Adaptive):
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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group, hyper in self._groups():
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            hyper[0] = group["lr"]
            hyper[1] = group["alpha"]
            hyper[2] = group["eps"]
            hyper[3] = group["weight_decay"]
            hyper[4] = group["momentum"]
            hyper[5] = group["maximize"]
            entries = [self.state.get(param) or self._entry(param, group) for param in params]
            buffers = (
                [entry["square_avg"] for entry in entries],
                [entry["grad_avg"] for entry in entries] if group["centered"] else None,
                [entry["momentum_buffer"] for entry in entries] if group["momentum"] > 0 else None,
            )
            lib.norch_rmsprop_step((params, grads, *buffers), address(hyper))
            bump_all(params)
            for entry in entries:
                entry["step"] += 1
        return loss

    def _entry(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ["square_avg", *["grad_avg"] * group["centered"], *["momentum_buffer"] * (group["momentum"] > 0)]
        entry = {"step": 0, **{name: zeros_like(param.detach()) for name in names}}
        self.state[param] = entry
        return entry


class Adagrad(_Adaptive):
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
        for group in self.param_groups:
            for param in group["params"]:
                self._entry(param, group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group, hyper in self._groups():
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            hyper[0] = group["lr"]
            hyper[1] = group["lr_decay"]
            hyper[2] = group["eps"]
            hyper[3] = group["weight_decay"]
            hyper[4] = group["maximize"]
            entries = [self.state.get(param) or self._entry(param, group) for param in params]
            for some, theirs, states in by_step(params, grads, entries):
                hyper[5] = states[0]["step"] + 1
                lib.norch_adagrad_step((some, theirs, [entry["sum"] for entry in states]), address(hyper))
                bump_all(some)
                for entry in states:
                    entry["step"] += 1
        return loss

    def _entry(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        entry = {"step": 0, "sum": full_like(param.detach(), group["initial_accumulator_value"])}
        self.state[param] = entry
        return entry
