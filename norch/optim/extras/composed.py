"""ASGD, Adafactor and Muon, composed of tensor operations; they have no kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._package.options import KW_ONLY, options
from ...autograd import no_grad
from ...dtype import finfo
from ...errors import Error
from ...ops.create import zeros_like
from ...tensor import Tensor
from ..optimizer import Elementwise, at_least_0


class Composed(Elementwise):
    """Base of these optimizers. A subclass defines the formula, _update(), and names its state tensors, which start at
    zero. decays=False says that the formula includes the weight decay.
    """

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
        """Updates one parameter and its state. The step count of the state, if there is one, includes this step."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient. Returns the closure's result, or None without a closure."""
        loss = self._loss(closure)
        for group in self._groups():
            decay = group.get("weight_decay", 0) if self._decays else 0
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.is_sparse:
                    raise Error(f"{type(self).__name__} does not support sparse gradients")
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


@options
class ASGD(Composed, states=("ax",)):
    """Averaged SGD (Polyak and Juditsky 1992): a step is p = (1 - lambd * eta) p - eta * g with eta = lr / (1 + lambd *
    lr * step)^alpha. state["ax"] is the average of p over the steps after t0, and p itself before. Optimizer describes
    the other options.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.ASGD([p], lr=0.5, lambd=0.0)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item(), opt.state[p]["ax"].item()
    (0.5, 0.5)
    """

    lr: float = 1e-2
    lambd: float = 1e-4
    alpha: float = 0.75
    t0: float = 1e6
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False
    takes_complex = True
    _any_sign = ("alpha",)

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super()._start(param, group), "eta": float(group["lr"]), "mu": 1.0}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        rate, decay, eta, average = float(group["lr"]), group["lambd"], entry["eta"], entry["ax"]
        param.mul_(1 - decay * eta).sub_(g * eta)
        if entry["mu"] == 1:
            average.copy_(param)
        else:
            average.lerp_(param, entry["mu"])
        entry["eta"] = rate / (1 + decay * rate * entry["step"]) ** group["alpha"]
        entry["mu"] = 1 / max(1, entry["step"] - group["t0"])


def _rms(x: Tensor) -> float:
    """The root mean square of a tensor that is not empty; 1 on the device "meta"."""
    if x.is_meta:
        return 1.0
    return float(x.norm().item()) / math.sqrt(x.numel())


@options
class Adafactor(Composed, decays=False):
    """Adafactor (Shazeer and Stern 2018): a step is p -= max(eps2, RMS(p)) * min(lr, 1 / sqrt(step)) * u / max(1,
    RMS(u) / d) with u = g / sqrt(square). square is the running average of g^2 with the factor 1 - step^beta2_decay.
    For matrices it is not stored, but computed as row_var col_var / mean(row_var) from the averages along the last two
    axes, which are small.

    eps is the pair (eps1, eps2). eps1 is the lower bound of sqrt(square) and mean(row_var), by default the dtype's
    epsilon; the paper adds eps1 to g^2, PyTorch and norch bound the divisor. weight_decay multiplies p by 1 - lr *
    weight_decay before the step. DTypeError for complex parameters. Optimizer describes the other options.

    >>> p = norch.nn.Parameter(norch.ones(2, 3))
    >>> opt = norch.optim.Adafactor([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([[0.5000, 0.5000, 0.5000],
            [0.5000, 0.5000, 0.5000]])
    """

    lr: float = 1e-2
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    d: float = 1.0
    weight_decay: float = 0.0
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    _any_sign = ("eps",)

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        eps, decay, d = group["eps"], group["beta2_decay"], group["d"]
        if not (isinstance(eps, (tuple, list)) and len(eps) == 2 and at_least_0(eps[0] or 0) and at_least_0(eps[1])):
            raise ValueError(f"invalid eps value: {eps!r}")
        if not decay <= 0:
            raise ValueError(f"invalid beta2_decay value: {decay!r} is not <= 0")
        if not d >= 1:
            raise ValueError(f"invalid d value: {d!r} is not >= 1")

    def _state_shape(self, name: str, param: Tensor) -> Sequence[int]:
        sizes = list(param.shape)
        if param.ndim > 1 and name in ("row_var", "col_var"):
            sizes[-1 if name == "row_var" else -2] = 1
        return sizes

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("row_var", "col_var") if param.ndim > 1 else ("variance",)
        state = {name: param.detach().new_zeros(self._state_shape(name, param)) for name in names}
        return {**super()._start(param, group), **state}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        if not param.numel():
            return
        (least, scale), rate, step = group["eps"], float(group["lr"]), entry["step"]
        least = finfo(param.dtype).eps if least is None else least
        rest = step ** group["beta2_decay"]
        size = max(scale, _rms(param)) * min(rate, 1 / math.sqrt(step))
        if group["weight_decay"]:
            param.mul_(1 - rate * group["weight_decay"])
        squares = g.square()
        if param.ndim > 1:
            row = entry["row_var"].lerp_(squares.mean(-1, True), rest)
            column = entry["col_var"].lerp_(squares.mean(-2, True), rest)
            square = row * column / row.mean(-2, True).clamp_(min=least)
        else:
            square = entry["variance"].lerp_(squares, rest)
        update = square.clamp(min=least**2).rsqrt_().mul_(g)
        param.sub_(update * (size / max(1.0, _rms(update) / group["d"])))


def _orthogonal(x: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """U V^T for x = U S V^T, in bfloat16, with singular values between about 0.7 and 1.2 in place of 1. Each step
    applies the polynomial a s + b s^3 + c s^5 to the singular values, which are in [0, 1] for x / |x|.
    """
    a, b, c = coefficients
    wide = x.shape[0] <= x.shape[1]
    y = (x if wide else x.mT).bfloat16()
    y = y / y.norm().clamp(min=eps)
    for _ in range(steps):
        gram = y @ y.mT
        y = y.addmm(gram.addmm(gram, gram, beta=b, alpha=c), y, beta=a)
    return y if wide else y.mT


@options
class Muon(Composed, states=("momentum_buffer",), decays=False):
    """Muon (Jordan et al. 2024; Liu et al. 2025): a step is p = (1 - lr * weight_decay) p - lr * ratio * orthogonal(m).
    m is the running average of g with the factor momentum; nesterov averages it with g once more. orthogonal() brings
    the singular values of m near 1 by ns_steps Newton-Schulz steps in bfloat16 with the polynomial ns_coefficients.

    params are matrices (A, B); ValueError for other shapes. Use another optimizer for biases, norms and embeddings.
    ratio is sqrt(max(1, A / B)), or 0.2 sqrt(max(A, B)) with adjust_lr_fn="match_rms_adamw", which suits the learning
    rates of AdamW. DTypeError for complex parameters.

    >>> p = norch.nn.Parameter(norch.zeros(2, 2))
    >>> opt = norch.optim.Muon([p], lr=1.0)
    >>> (p * norch.tensor([[9.0, 0.0], [0.0, 1.0]])).sum().backward()
    >>> opt.step()
    >>> bool(((p + norch.eye(2)).abs() < 0.4).all())
    True
    """

    lr: float = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str | None = None

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if (ratio := group["adjust_lr_fn"]) not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn must be None, 'original' or 'match_rms_adamw', not {ratio!r}")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError(f"Muon: ns_coefficients must be three numbers, not {group['ns_coefficients']!r}")
        if not 0 <= group["ns_steps"] < 100:
            raise ValueError(f"Muon: ns_steps must be less than 100, but is {group['ns_steps']!r}")
        for param in group["params"]:
            if param.ndim != 2:
                raise ValueError(f"Muon: a parameter of shape {tuple(param.shape)} is not a matrix")

    def _start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(param.detach())}

    def _update(self, param: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        if not param.numel():
            return
        rate, momentum, (a, b) = float(group["lr"]), group["momentum"], param.shape
        average = entry["momentum_buffer"].lerp_(g, 1 - momentum)
        m = g.lerp(average, momentum) if group["nesterov"] else average
        update = _orthogonal(m, group["ns_coefficients"], group["ns_steps"], group["eps"])
        adamw = group["adjust_lr_fn"] == "match_rms_adamw"
        ratio = 0.2 * math.sqrt(max(a, b)) if adamw else math.sqrt(max(1, a / b))
        param.mul_(1 - rate * group["weight_decay"]).sub_(update * (rate * ratio))
