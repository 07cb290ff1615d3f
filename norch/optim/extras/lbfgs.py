"""L-BFGS (Nocedal 1980): steps along the gradient times an inverse Hessian estimated from recent steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import no_grad
from ...errors import one_of
from ...ops.complex import view_as_real
from ...ops.copy import cat
from ...ops.create import zeros_like
from ...tensor import Tensor
from ..optimizer import Optimizer, Params, at_least_0
from .line_search import Point, strong_wolfe


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal 1989). step(closure) makes up to max_iter steps of length lr; the closure computes the
    loss and its gradients. The last history_size steps estimate the inverse Hessian.

    step() stops early if no element of the gradient exceeds tolerance_grad, if the loss or all parameters change by
    less than tolerance_change, or after max_eval calls of the closure (default max_iter * 5 // 4). With
    line_search_fn="strong_wolfe" a line search that starts at lr finds the length of a step. LBFGS takes one group of
    parameters. A complex parameter counts as pairs of real numbers.

    >>> p = norch.nn.Parameter(norch.tensor([3.0, -2.0]))
    >>> opt = norch.optim.LBFGS([p], lr=0.5)
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = (p * p).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure).item()
    13.0
    >>> bool(p.abs().max() < 0.01)
    True
    """

    takes_complex = True

    def __init__(
        self,
        params: Params,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        one_of("LBFGS: line_search_fn", line_search_fn, (None, "strong_wolfe"))
        if not at_least_0(lr):
            raise ValueError(f"invalid lr value: {lr!r}")
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "history_size": history_size}
        limits = {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        super().__init__(params, {**options, **limits, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS: only one group of parameters is allowed")

    def _gradient(self) -> Tensor:
        params = self.param_groups[0]["params"]
        grads = [zeros_like(p) if p.grad is None else p.grad.to_dense() for p in params]
        return cat([_real(grad).reshape(-1) for grad in grads])

    def _move(self, along: Tensor) -> None:
        params = [_real(p) for p in self.param_groups[0]["params"]]
        for p, part in zip(params, along.split([p.numel() for p in params]), strict=True):
            p.add_(part.view(p.shape))

    def _line(self, closure: Callable[[], Any], d: Tensor) -> tuple[Callable[[float], None], Callable[[float], Point]]:
        """Two functions: move_to(t) sets the parameters to their current values plus t * d, and at(t) evaluates the
        closure there.
        """
        params = self.param_groups[0]["params"]
        begin = [p.clone() for p in params]

        def move_to(t: float) -> None:
            for p, x in zip(params, begin, strict=True):
                p.copy_(x)
            self._move(d * t)

        def at(t: float) -> Point:
            move_to(t)
            loss, g = float(self._loss(closure)), self._gradient()
            return Point(t, loss, float(g.dot(d)), g)

        return move_to, at

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes the steps that the class describes. Returns the loss before the first of them."""
        if closure is None:
            raise TypeError("LBFGS: step() needs a closure that computes the loss and its gradients")
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("n_iter", 0)
        state["func_evals"] = state.get("func_evals", 0) + 1
        first, calls = self._loss(closure), 1
        loss, g = float(first), self._gradient()
        for left in range(group["max_iter"] - 1, -1, -1):
            if g.abs().amax() <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            rate = float(group["lr"]) * (1 / max(1.0, float(g.abs().sum())) if state["n_iter"] == 1 else 1)
            before, slope = loss, float(d.dot(g))
            state.update(d=d, t=rate, prev_flat_grad=g, prev_loss=loss)
            if slope > -group["tolerance_change"]:
                break
            reach, evaluations = float(d.abs().amax()), int(left > 0)
            if group["line_search_fn"]:
                move_to, at = self._line(closure, d)
                start, most = Point(0.0, loss, slope, g), group["max_eval"] - calls
                (rate, loss, _, g), evaluations = strong_wolfe(at, start, rate, reach, most)
                move_to(rate)
                state["t"] = rate
            else:
                self._move(d * rate)
                if left:
                    loss, g = float(self._loss(closure)), self._gradient()
            calls += evaluations
            state["func_evals"] += evaluations
            if not left or calls >= group["max_eval"]:
                break
            if reach * rate <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, state: dict[str, Any], g: Tensor, history: int) -> Tensor:
        """-g times the inverse Hessian, by the two-loop recursion over pairs (s, y): a step and its change of
        gradient."""
        if state["n_iter"] == 1:
            state.update(old_stps=[], old_dirs=[], ro=[], H_diag=1.0)
            return -g
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        if (ys := float(y.dot(s))) > 1e-10:
            for name, vector in (("old_stps", s), ("old_dirs", y)):
                state[name] = [*state[name], vector][-history:]
            state["ro"] = [*state.get("ro", ()), 1 / ys][-history:]  # PyTorch reads it from a state dict
            state["H_diag"] = ys / float(y.dot(y))
        pairs = list(zip(state["old_stps"], state["old_dirs"], strict=True))
        q, shares = -g, []
        for s, y in reversed(pairs):
            shares.append(s.dot(q) / y.dot(s))
            q = q - y * shares[-1]
        q = q * state["H_diag"]
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            q = q + s * (share - y.dot(q) / y.dot(s))
        return q


def _real(x: Tensor) -> Tensor:
    """A view of x as real numbers: a complex x as pairs."""
    return view_as_real(x) if x.is_complex() else x
