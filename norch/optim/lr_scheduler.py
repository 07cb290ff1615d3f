"""Learning-rate schedules: each `step()`, called once an epoch, writes `group["lr"]`.

Rates are closed forms of the epoch, so that a schedule can resume at any epoch. If another schedule or the user wrote a
rate since the last step, the next step scales that rate.

The rates of the first epochs:

>>> from norch.optim.lr_scheduler import *
>>> def rates(schedule, *options):
...     optimizer = norch.optim.SGD([norch.zeros(1)], lr=1.0)
...     schedule, found = schedule(optimizer, *options), []
...     for epoch in range(7):  # of training
...         found.append(round(schedule.get_last_lr()[0], 2))
...         optimizer.step()
...         schedule.step()
...     print(*found)
>>> rates(StepLR, 2, 0.5)
1.0 1.0 0.5 0.5 0.25 0.25 0.12
>>> rates(MultiStepLR, [1, 4], 0.5)
1.0 0.5 0.5 0.5 0.25 0.25 0.25
>>> rates(ExponentialLR, 0.5)
1.0 0.5 0.25 0.12 0.06 0.03 0.02
>>> rates(LinearLR, 0.25, 1.0, 3)
0.25 0.5 0.75 1.0 1.0 1.0 1.0
>>> rates(ConstantLR, 0.5, 3)
0.5 0.5 0.5 1.0 1.0 1.0 1.0
>>> rates(PolynomialLR, 4, 2.0)
1.0 0.56 0.25 0.06 0.0 0.0 0.0
>>> rates(CosineAnnealingLR, 4)
1.0 0.85 0.5 0.15 0.0 0.15 0.5
>>> rates(CosineAnnealingWarmRestarts, 2, 2)
1.0 0.5 1.0 0.85 0.5 0.15 1.0
>>> rates(OneCycleLR, 1.0, 7)
0.04 0.98 0.92 0.67 0.36 0.1 0.0
>>> rates(LambdaLR, lambda epoch: 1 / (1 + epoch))
1.0 0.5 0.33 0.25 0.2 0.17 0.14
>>> rates(MultiplicativeLR, lambda epoch: 0.5 if epoch % 2 else 1.0)
1.0 0.5 0.5 0.25 0.25 0.12 0.12
>>> rates(lambda opt: SequentialLR(opt, [ConstantLR(opt), ExponentialLR(opt, 0.5)], [2]))
0.33 0.33 1.0 0.5 0.25 0.12 0.06
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._package.exports import publish
from .._package.recording import unseen
from ..errors import ArgumentError
from .optimizer import Optimizer
from .schedule import EPOCH, attributes, check_optimizer, check_positive, numbers, one_a_group
from .schedule import LRScheduler as LRScheduler

if TYPE_CHECKING:
    from .extras.lr_cycle import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
    from .extras.lr_cycle import CyclicLR as CyclicLR
    from .extras.lr_cycle import OneCycleLR as OneCycleLR
    from .extras.lr_joint import ChainedScheduler as ChainedScheduler
    from .extras.lr_joint import SequentialLR as SequentialLR

_LRScheduler = LRScheduler  # older subclasses use this name


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size epochs.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     opt.step()
    ...     schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.25
    """

    _has_closed_form = True

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        check_positive(self, step_size=step_size)
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each epoch in milestones.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.MultiStepLR(opt, [1, 3])
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.1]
    """

    _has_closed_form = True

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every epoch.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    _has_closed_form = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma**epoch


class LinearLR(LRScheduler):
    """Warms up: the rate goes from start_factor times the initial rate to end_factor times it, in total_iters equal
    steps. ArgumentError for factors outside [0, 1].

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.LinearLR(opt, 0.5, total_iters=4)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    _has_closed_form = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ArgumentError(f"LinearLR: factors {start_factor} and {end_factor} are not between 0 and 1")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        if epoch >= self.total_iters:
            return self.end_factor
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters


class ConstantLR(LRScheduler):
    """Multiplies the initial rate by factor, in [0, 1], during total_iters epochs. After that the rate is the initial
    one.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.ConstantLR(opt, 0.5, total_iters=4)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _has_closed_form = True

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError(f"ConstantLR: factor {factor} is not between 0 and 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


class PolynomialLR(LRScheduler):
    """Lowers the rate from the initial one to 0 in total_iters epochs, as (1 - epoch / total_iters) ** power.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.PolynomialLR(opt, 4)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _has_closed_form = True

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        check_positive(self, total_iters=total_iters)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return float((1 - min(epoch, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate from the initial one to eta_min along half a cosine of T_max epochs, then raises it again
    (Loshchilov and Hutter 2017, equation 5).

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _has_closed_form = True

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        check_positive(self, T_max=T_max)
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class LambdaLR(LRScheduler):
    """Multiplies the initial rate by lr_lambda(epoch). lr_lambda is a function, or a list with one for each group.
    state_dict() has the attributes of callable objects, and None for functions.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    chains = False

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = one_a_group(optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"{type(self).__name__}: lr_lambda must be a function, not {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.lr_lambdas[index](epoch)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": [attributes(function) for function in self.lr_lambdas]}

    def _load(self, state: dict[str, Any]) -> None:
        for function, kept in zip(self.lr_lambdas, state.get("lr_lambdas", ())):
            if kept:
                vars(function).update(kept)
        super()._load({**state, "lr_lambdas": self.lr_lambdas})


class MultiplicativeLR(LambdaLR):
    """Multiplies the previous epoch's rate by lr_lambda(epoch). lr_lambda is a function, or a list with one for each
    group.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def rate(self, epoch: int, index: int) -> float:
        return math.prod(map(self.lr_lambdas[index], range(1, epoch + 1)), start=self.base_lrs[index])

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        groups = self.optimizer.param_groups
        if self._is_initial:
            return self._resumed() if self.last_epoch > 0 else [group["lr"] for group in groups]
        return [float(group["lr"]) * of(self.last_epoch) for group, of in zip(groups, self.lr_lambdas, strict=True)]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by factor when the metric passed to step() has not improved for more than `patience` epochs.

    mode says which metric is better: the smaller one ("min") or the larger one ("max"). An improvement has to exceed
    threshold, relative to the best metric (threshold_mode="rel") or absolute ("abs"). During `cooldown` epochs after a
    change no epoch counts as bad. min_lr, a number or one for each group, is the lower bound of the rates. Changes
    smaller than eps are skipped. ArgumentError for factor >= 1 and other modes.

    >>> opt = norch.optim.SGD([norch.zeros(1)], lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in (0.5, 0.5, 0.5):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    _needs_metrics = True

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or not factor < 1:
            raise ArgumentError(f"ReduceLROnPlateau: mode {mode!r}, factor {factor}, threshold_mode {threshold_mode!r}")
        check_optimizer(self, optimizer)
        self.optimizer, self.patience, self.threshold = optimizer, patience, threshold
        self.factor = factor
        self.mode, self.threshold_mode, self.cooldown, self.eps = mode, threshold_mode, cooldown, eps
        self.min_lrs = numbers(optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else self.min_lrs[0]
        self.last_epoch = 0
        self._last_lr = self._present_rates()
        self._reset()

    def _reset(self) -> None:
        """Forgets the best metrics and the bad epochs."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted at present."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Ends an epoch, which is the next one if epoch is None. metrics is a number."""
        now = float(metrics)
        unseen("a schedule of the learning rate takes a step")
        if epoch is not None:
            warnings.warn(EPOCH, stacklevel=2)
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ValueError(f"ReduceLROnPlateau: min_lr has {len(self.min_lrs)} values for {len(groups)} groups")
            self.min_lrs = [self.default_min_lr] * len(groups)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(now, self.best):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._present_rates()

    def _is_better(self, metrics: float, best: float) -> bool:
        """Whether metrics exceed the best by the threshold."""
        sign = 1 if self.mode == "min" else -1
        relative = self.threshold_mode == "rel"
        bound = best * (1 - sign * self.threshold) if relative else best - sign * self.threshold
        return sign * metrics < sign * bound

    def _reduce_lr(self, epoch: int) -> None:
        """Reduces the rates after too many bad epochs."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for index, least in enumerate(self.min_lrs):
            present = float(rates[index])
            rate = max(present * self.factor, least)
            if present - rate > self.eps:
                rates[index] = rate
        self._write(rates)


publish(
    globals(),
    {
        "..extras.lr_cycle": "CosineAnnealingWarmRestarts CyclicLR OneCycleLR",
        "..extras.lr_joint": "ChainedScheduler SequentialLR",
    },
    more="LRScheduler CosineAnnealingWarmRestarts CyclicLR OneCycleLR ChainedScheduler SequentialLR",
)
