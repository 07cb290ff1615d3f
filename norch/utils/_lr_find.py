"""lr_find(): the learning-rate range test (Smith, Cyclical Learning Rates for Training Neural Networks, 2015,
arXiv:1506.01186, section 3.3), in exponential steps."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf, isfinite, log10
from statistics import linear_regression
from typing import Any

from ..autograd import enable_grad, no_grad
from ..errors import ArgumentError
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from ._restore import as_before

_SKIPPED = 0.1  # skipped at the start: the running mean has few losses there


class LRCurve:
    """The result of lr_find().

    lrs, losses    the learning rates, and the mean over the losses up to each; raw_losses: the losses themselves
    suggestion     the rate at which the mean falls fastest over the logarithm of the rate, by the line through a
                   fifth of the points; None: it never falls
    diverged       whether the test stopped because the loss grew too large
    """

    def __init__(self, lrs: list[float], raw_losses: list[float], losses: list[float], diverged: bool):
        self.lrs, self.raw_losses, self.losses, self.diverged = lrs, raw_losses, losses, diverged
        self.suggestion = self._steepest()

    def _steepest(self) -> float | None:
        x, y = [log10(lr) for lr in self.lrs], self.losses
        finite = [i for i, loss in enumerate(y) if isfinite(loss)]
        if not finite:
            return None
        lowest = min(finite, key=lambda i: y[i])
        reach = max(1, len(y) // 10)
        inner = range(max(reach, int(_SKIPPED * len(y))), min(lowest + 1, len(y) - reach))
        near = {i: slice(i - reach, i + reach + 1) for i in inner}
        slopes = {i: linear_regression(x[points], y[points]).slope for i, points in near.items()}
        best = min(slopes, key=lambda i: slopes[i], default=None)
        return self.lrs[best] if best is not None and slopes[best] < 0 else None

    def plot(self, ax: Any = None) -> Any:
        """Draws the curve, with the suggestion as a point, into matplotlib axes (default: new ones) and returns them.
        ImportError without matplotlib."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise ImportError("plot: needs matplotlib: `pip install 'norch-dl[examples]'` brings it") from error
            ax = pyplot.subplots()[1]
        ax.plot(self.lrs, self.losses)
        if self.suggestion is not None:
            at = self.lrs.index(self.suggestion)
            ax.plot([self.suggestion], [self.losses[at]], "o", label=f"steepest: {self.suggestion:.2e}")
            ax.legend()
        ax.set_xscale("log")
        ax.set_xlabel("learning rate")
        ax.set_ylabel("loss")
        return ax

    def __repr__(self) -> str:
        suggested = "none" if self.suggestion is None else f"{self.suggestion:.2e}"
        return f"<LRCurve of {len(self.lrs)} points, suggestion {suggested}>"


def lr_find(
    model: Module,
    loss_fn: Callable[..., Any],
    optimizer: Optimizer,
    loader: Iterable[Any],
    *,
    start_lr: float = 1e-7,
    end_lr: float = 10.0,
    num_iter: int = 100,
    beta: float = 0.9,
    diverge: float = 4.0,
    device: Any = None,
) -> LRCurve:
    """Trains for num_iter steps while the learning rate grows by a constant factor from start_lr to end_lr. The curve
    of losses shows at which rates training is fast, and where it diverges.

    A batch of loader is a tuple or list (inputs ..., target) with the loss loss_fn(model(*inputs), target); a loader
    that ends starts again. device: where to copy batches. Groups of the optimizer keep the ratios of their rates. beta:
    the weight of the past in the running mean of losses, which has Adam's correction for the start (Kingma and Ba 2014,
    section 3). The test ends early if the mean exceeds diverge times its minimum or is NaN.

    Afterwards, also after an exception, parameters, gradients, buffers, modes, the optimizer's state and options, and
    the random generator are restored. ArgumentError for arguments out of range, an empty loader, and a loss that is not
    a single number; TypeError for other batches.

    >>> model = norch.nn.Linear(2, 1)
    >>> batches = [(norch.ones(4, 2), norch.zeros(4, 1))]
    >>> optimizer = norch.optim.SGD(model.parameters(), lr=1e-3)
    >>> curve = norch.utils.lr_find(model, norch.nn.MSELoss(), optimizer, batches)
    >>> len(curve.lrs) == len(curve.losses) <= 100, optimizer.param_groups[0]["lr"]
    (True, 0.001)
    """
    if not 0 < start_lr < end_lr < inf:
        raise ArgumentError(f"lr_find: 0 < start_lr < end_lr is required, not {start_lr} and {end_lr}")
    if num_iter < 2 or not 0 <= beta < 1 or not diverge > 1:
        raise ArgumentError(
            f"lr_find: num_iter {num_iter} must be above 1, beta {beta} in [0, 1), diverge {diverge} above 1"
        )
    lrs: list[float] = []
    raw: list[float] = []
    losses: list[float] = []
    mean, best, diverged = 0.0, inf, False
    with _restored(model, optimizer), as_before(model, True), enable_grad():
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        largest = max(rates)
        shares = [rate / largest if largest else 1.0 for rate in rates]
        batches = _endless(loader)
        for i in range(num_iter):
            lr = start_lr * (end_lr / start_lr) ** (i / (num_iter - 1))
            for group, share in zip(optimizer.param_groups, shares):
                group["lr"] = lr * share
            *inputs, target = _moved(next(batches), device)
            loss = loss_fn(model(*inputs), target)
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                described = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
                raise ArgumentError(f"lr_find: the loss must be a tensor of one number, not {described}")
            value = loss.item()
            mean = beta * mean + (1 - beta) * value
            smooth = mean / (1 - beta ** (i + 1))
            lrs.append(lr)
            raw.append(value)
            losses.append(smooth)
            diverged = not isfinite(smooth) or (i > 0 and smooth > diverge * best > 0)
            if diverged:
                break
            best = min(best, smooth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return LRCurve(lrs, raw, losses, diverged)


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        count = 0
        for batch in loader:
            count += 1
            yield batch
        if not count:
            raise ArgumentError("lr_find: the loader has no batches")


def _moved(batch: Any, device: Any) -> list[Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        raise TypeError(f"lr_find: a batch must be a tuple or list (inputs ..., target), not {type(batch).__name__}")
    return [x.to(device) if device is not None and isinstance(x, Tensor) else x for x in batch]


@contextmanager
def _restored(model: Module, optimizer: Optimizer) -> Iterator[None]:
    """Restores parameters, gradients, and the optimizer's state and options at the end."""
    params = {id(p): p for p in [*model.parameters(), *(p for g in optimizer.param_groups for p in g["params"])]}
    values = [(p, p.detach().clone(), p.grad) for p in params.values()]
    groups = [dict(group) for group in optimizer.param_groups]
    state = optimizer.state
    try:
        optimizer.state = defaultdict(dict)
        for key, entry in state.items():
            optimizer.state[key] = copy.deepcopy(entry)
        for p, _, _ in values:
            p.grad = None
        yield
    finally:
        optimizer.state = state
        for group, options in zip(optimizer.param_groups, groups):
            group.clear()
            group.update(options)
        with no_grad():
            for p, value, grad in values:
                p.copy_(value)
                p.grad = grad
