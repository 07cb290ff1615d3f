"""Stochastic gradient descent with momentum, as PyTorch defines it."""

from __future__ import annotations

from typing import Any

from .._binding.library import lib
from .._package.options import KW_ONLY, options
from ..autograd import no_grad
from ..errors import DeviceError, Error
from ..ops.create import empty_like
from ..tensor import Tensor
from .fused import Fused


@options
class SGD(Fused, row="sgd"):
    """Stochastic gradient descent by PyTorch's definition (after Sutskever et al. 2013). For a parameter p with the
    gradient g a step is:

    - g += weight_decay * p
    - with momentum: buf = momentum * buf + (1 - dampening) * g, in the first step buf = g;
      then g = buf, or with nesterov g += momentum * buf
    - p -= lr * g

    A step with a sparse gradient changes only the elements of the gradient, has a sparse momentum, and allows no
    weight_decay. ValueError for nesterov without momentum or with dampening. Optimizer describes the other options.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.SGD([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    lr: float = 1e-3
    momentum: float = 0
    dampening: float = 0
    weight_decay: float = 0
    nesterov: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    differentiable: bool = False
    fused: bool | None = None

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _structure(self, group: dict[str, Any]) -> Any:
        return group["momentum"] != 0

    def _advance(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any], hyper: Any, at: int) -> None:
        momenta = None
        if group["momentum"] != 0:
            state = self.state
            try:
                momenta = [state[param]["momentum_buffer"] for param in params]
            except KeyError:
                self._advance_new(params, grads, hyper, at)
                return
        lib.norch_optim_step(SGD.row.kind, (params, grads, momenta, None, None), at)
        lib.norch_bump(params, momenta)

    def _advance_sparse(self, params: list[Tensor], grads: Any, group: dict[str, Any], hyper: Any, at: int) -> None:
        dense = [i for i, grad in enumerate(grads) if not grad.is_sparse]
        if dense:
            self._advance([params[i] for i in dense], [grads[i] for i in dense], group, hyper, at)
        for param, grad in zip(params, grads):
            if not grad.is_sparse:
                continue
            if group["weight_decay"] != 0:
                raise Error("SGD: weight_decay cannot be used with sparse gradients")
            step = -grad if group["maximize"] else grad
            if (momentum := group["momentum"]) != 0:
                state = self.state[param]
                kept = state.get("momentum_buffer")
                buffer = step.clone() if kept is None else (kept * momentum).add(step, alpha=1 - group["dampening"])
                state["momentum_buffer"] = buffer
                step = step.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            with no_grad():
                param.add_(step, alpha=-float(group["lr"]))

    def _advance_new(self, params: list[Tensor], grads: list[Tensor], hyper: Any, at: int) -> None:
        """Updates parameters that have no momentum yet, in a call that also sets the momentum."""
        has_momentum = ["momentum_buffer" in self.state.get(param, ()) for param in params]
        if any(grad.is_sparse for grad in grads):
            raise DeviceError("sparse")  # raised before the first call; step() handles it
        for old in (True, False):
            chosen = [param for param, is_known in zip(params, has_momentum, strict=True) if is_known is old]
            theirs = [grad for grad, is_known in zip(grads, has_momentum, strict=True) if is_known is old]
            momenta = [self.state[param]["momentum_buffer"] if old else empty_like(param) for param in chosen]
            hyper.first = not old
            lib.norch_optim_step(SGD.row.kind, (chosen, theirs, momenta, None, None), at)
            lib.norch_bump(chosen, momenta)
            for param, momentum in zip(chosen, momenta, strict=True):
                self.state[param] = {"momentum_buffer": momentum}
