"""Stochastic gradient descent with momentum, as PyTorch defines it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._handle import bump_all
from .._lib import address, lib
from ..ops.create import empty_like
from ..tensor import Tensor
from .optimizer import Elementwise, Params, at_least_0, with_gradients


class SGD(Elementwise):
    """For each parameter p with gradient g: g += weight_decay * p; with momentum, buf = momentum * buf +
    (1 - dampening) * g (buf = g at first) and g = buf, or with nesterov g += momentum * buf; p -= lr * g.
    `maximize` turns the sign of the gradient.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.SGD([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if not at_least_0(group["momentum"]):
            raise ValueError(f"invalid momentum value: {group['momentum']!r}")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; gives the closure's result, if there is one."""
        loss = self._loss(closure)
        for group, hyper in self._groups():
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            hyper[0] = group["lr"]
            hyper[1] = momentum = group["momentum"]
            hyper[2] = group["dampening"]
            hyper[3] = group["weight_decay"]
            hyper[4] = group["nesterov"]
            hyper[5] = group["maximize"]
            if momentum == 0:
                _step(params, grads, None, hyper, False)
            else:
                self._step_with_momentum(params, grads, hyper)
        return loss

    def _step_with_momentum(self, params: list[Tensor], grads: list[Tensor], hyper: Any) -> None:
        state = self.state
        try:
            momenta = [state[param]["momentum_buffer"] for param in params]
        except KeyError:
            pass
        else:
            _step(params, grads, momenta, hyper, False)
            return
        # Some parameters step for the first time: they go in a call of their own, which sets their momenta.
        old: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        new: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        for param, grad in zip(params, grads, strict=True):
            momentum = state.get(param, {}).get("momentum_buffer")
            row = (param, grad, empty_like(param) if momentum is None else momentum)
            for column, value in zip(new if momentum is None else old, row, strict=True):
                column.append(value)
        _step(*new, hyper, True)
        for param, momentum in zip(new[0], new[2], strict=True):
            state[param] = {"momentum_buffer": momentum}
        if old[0]:
            _step(*old, hyper, False)


def _step(params: list[Tensor], grads: list[Tensor], momenta: list[Tensor] | None, hyper: Any, first: bool) -> None:
    lib.norch_sgd_step((params, grads, momenta), address(hyper), first)
    bump_all(params)
