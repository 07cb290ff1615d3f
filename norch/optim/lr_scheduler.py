"""Schedules of the learning rate: each `step()`, called once an epoch, writes `group["lr"]`.

A rate is a closed form of the epoch, so that a schedule can be resumed at any epoch. Where another schedule or the user
has written a rate since the last step, a step changes that rate in proportion.

The rates of the first epochs:

>>> from norch.optim.lr_scheduler import *
>>> def rates(schedule, *options):
...     optimizer = norch.optim.SGD([norch.zeros(1)], lr=1.0)
...     schedule, found = schedule(optimizer, *options), []
...     for epoch in range(7):  # of training
...         found.append(round(schedule.get_last_lr()[0], 2))
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
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from .._exports import publish
from .._recording import unseen
from ..errors import ArgumentError, one_of
from .optimizer import Optimizer


class LRScheduler:
    """Base of the schedules. A subclass overrides one of `lr_factor(epoch, index)`, which multiplies the initial rate
    of group `index`, `rate(epoch, index)`, and `get_lr()`, which gives the rates of all groups from `self.last_epoch`,
    `self.base_lrs` and the groups of `self.optimizer`. The constructor sets the rates of epoch 0.

    optimizer: whose groups get the rates. last_epoch: the epoch before the first one; where it is not -1 the training
    resumes, and each group needs an 'initial_lr', as a loaded optimizer has: KeyError otherwise.
    """

    chains = True  # a rate that another schedule wrote is changed in proportion
    eta_min = 0.0  # the rate where the factor is 0

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{index}] when resuming")
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    def lr_factor(self, epoch: int, index: int) -> float:
        """The factor of the initial rate of group `index` in this epoch."""
        raise NotImplementedError

    def rate(self, epoch: int, index: int) -> float:
        """The rate of group `index` in this epoch."""
        return self.eta_min + (self.base_lrs[index] - self.eta_min) * self.lr_factor(epoch, index)

    def _get_closed_form_lr(self) -> list[float]:
        return [self.rate(self.last_epoch, index) for index in range(len(self.base_lrs))]

    def get_lr(self) -> list[float]:
        """The rates of this epoch, one a group."""
        rates = self._get_closed_form_lr()
        for index, group in enumerate(self.optimizer.param_groups if self.chains else ()):
            before = self.rate(self.last_epoch - 1, index) if self.last_epoch > 0 else self.base_lrs[index]
            if group["lr"] != before:
                height, low = before - self.eta_min, self.eta_min
                part = (group["lr"] - low) * ((rates[index] - low) / height) if height else group["lr"] - before
                rates[index] = part + (low if height else rates[index])
        return rates

    def step(self, epoch: int | None = None) -> None:
        """Starts the next epoch, or the one given: writes its rates to the groups."""
        unseen("a schedule of the learning rate takes a step")
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and type(self).get_lr is LRScheduler.get_lr
        for group, rate in zip(self.optimizer.param_groups, self._get_closed_form_lr() if closed else self.get_lr()):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates that the last step wrote, one a group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """The state needed to resume: all attributes except the optimizer.

        >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> norch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5).state_dict()["last_epoch"]
        0
        """
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resumes from a saved epoch; the rates are in the state of the optimizer."""
        vars(self).update(state_dict)


def _one_a_group(optimizer: Optimizer, given: Any) -> list[Any]:
    """One value a group, of a single one or a sequence."""
    groups = len(optimizer.param_groups)
    listed = list(given) if isinstance(given, (list, tuple)) else [given] * groups
    if len(listed) != groups:
        raise ValueError(f"expected {groups} values, one a group, got {len(listed)}")
    return listed


_LRScheduler = LRScheduler  # the name that older subclasses use


class StepLR(LRScheduler):
    """The rate times gamma every step_size epochs.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     opt.step()
    ...     schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.25
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the epochs in milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma ** sum(count for milestone, count in self.milestones.items() if milestone <= epoch)


class ExponentialLR(LRScheduler):
    """The rate times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.gamma**epoch


class LinearLR(LRScheduler):
    """A warm-up: from start_factor times the initial rate to end_factor times it, in total_iters equal steps.
    ArgumentError for factors outside [0, 1]."""

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
        span = self.end_factor - self.start_factor
        return self.start_factor + span * min(epoch, self.total_iters) / self.total_iters


class ConstantLR(LRScheduler):
    """The initial rate times factor, in [0, 1], for total_iters epochs, then the initial rate."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError(f"ConstantLR: factor {factor} is not between 0 and 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


class PolynomialLR(LRScheduler):
    """From the initial rate to 0 in total_iters epochs, as (1 - epoch / total_iters) ** power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return float((1 - min(epoch, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate down to eta_min along half a cosine of T_max epochs, and up again (Loshchilov and Hutter
    2017, equation 5)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down half a cosine to eta_min in T_0 epochs, and again from the initial rate, each time T_mult times as long
    (Loshchilov and Hutter 2017)."""

    chains = False

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: T_0 {T_0} and T_mult {T_mult} start at 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        length = self.T_0
        while epoch >= length:
            epoch -= length
            length *= self.T_mult
        return (1 + math.cos(math.pi * epoch / length)) / 2


class _Cycle(LRScheduler):
    """Base of the schedules by batch whose momentum falls while the rate rises. A subclass gives `_momentum`."""

    chains = False
    cycle_momentum: bool

    def _momentum(self, epoch: int, index: int) -> float:
        """The momentum of group `index` in this step."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        for index, group in enumerate(self.optimizer.param_groups if self.cycle_momentum else ()):
            if "betas" in group:
                group["betas"] = (self._momentum(self.last_epoch, index), *group["betas"][1:])
            elif "momentum" in group:
                group["momentum"] = self._momentum(self.last_epoch, index)


class OneCycleLR(_Cycle):
    """Called each batch: the rate rises from max_lr / div_factor to max_lr in pct_start of total_steps, and falls to
    the initial rate / final_div_factor (Smith and Topin 2017). With cycle_momentum the momentum, or the first of the
    betas, falls from max_momentum to base_momentum while the rate rises, and rises again.

    total_steps may be given as epochs times steps_per_epoch. max_lr: a number, or one a group. anneal_strategy: "cos",
    along half a cosine, or "linear". three_phase: the rate falls to the initial one in as many steps as it rose, and to
    the final one in the rest. ArgumentError for other values, and for a step after total_steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: pct_start {pct_start} is not between 0 and 1")
        one_of("OneCycleLR: anneal_strategy", anneal_strategy, ("cos", "linear"))
        groups = optimizer.param_groups
        self.max_lrs = _one_a_group(optimizer, max_lr)
        self.total_steps, self.top = total_steps, pct_start * total_steps - 1
        self.back = 2 * pct_start * total_steps - 2 if three_phase else None
        self.cosine, self.cycle_momentum = anneal_strategy == "cos", cycle_momentum
        self.momenta = base_momentum, max_momentum
        self.final_div_factor = final_div_factor
        if last_epoch == -1:
            for group, top in zip(groups, self.max_lrs, strict=True):
                group["initial_lr"] = top / div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, top: float, end: float, epoch: int) -> float:
        corners = [(0.0, start), (self.top, top), (self.total_steps - 1, end)]
        if self.back is not None:
            corners.insert(2, (self.back, start))
        i = min(bisect_left([step for step, _ in corners], epoch, lo=1), len(corners) - 1)
        (first, start), (last, end) = corners[i - 1], corners[i]
        part = (epoch - first) / (last - first) if last > first else 1.0
        if self.cosine:
            part = (1 - math.cos(math.pi * part)) / 2
        return start + (end - start) * part

    def rate(self, epoch: int, index: int) -> float:
        if epoch > self.total_steps:
            raise ArgumentError(f"OneCycleLR: step {epoch} of {self.total_steps}")
        first = self.base_lrs[index]
        return self._between(first, self.max_lrs[index], first / self.final_div_factor, epoch)

    def _momentum(self, epoch: int, index: int) -> float:
        low, high = self.momenta
        return self._between(high, low, high, epoch)


class CyclicLR(_Cycle):
    """Called each batch: the rate rises from base_lr to max_lr in step_size_up steps, falls in step_size_down (default
    step_size_up), and so on (Smith 2017). cycle_momentum as in OneCycleLR; ArgumentError if there is no momentum.

    mode: the amplitude is constant ("triangular"), halved each cycle ("triangular2") or gamma ** step ("exp_range").
    scale_fn replaces it by a function of the cycle, counted from 1, or with scale_mode "iterations" of the step.
    base_lr and max_lr, base_momentum and max_momentum: a number, or one a group.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.CyclicLR(opt, 0.5, 1.5, step_size_up=2, cycle_momentum=False)
    >>> schedule.step(), schedule.get_last_lr()
    (None, [1.0])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        one_of("CyclicLR: mode", mode, ("triangular", "triangular2", "exp_range", *[mode] * (scale_fn is not None)))
        groups = optimizer.param_groups
        if cycle_momentum and not all("momentum" in group or "betas" in group for group in groups):
            raise ArgumentError("CyclicLR: the optimizer has no momentum; pass cycle_momentum=False")
        self.total_size = step_size_up + (step_size_up if step_size_down is None else step_size_down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        lowest, self.max_lrs = _one_a_group(optimizer, base_lr), _one_a_group(optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        self.momenta = [*zip(_one_a_group(optimizer, base_momentum), _one_a_group(optimizer, max_momentum))]
        if last_epoch == -1:
            for group, rate in zip(groups, lowest):
                group["lr"] = rate
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def _height(self, epoch: int) -> float:
        """The position of a step between the lower bound, 0, and the upper one, 1."""
        cycle = math.floor(1 + epoch / self.total_size)
        part = 1 + epoch / self.total_size - cycle
        height = part / self.step_ratio if part <= self.step_ratio else (part - 1) / (self.step_ratio - 1)
        if self.scale_fn is not None:
            return height * self.scale_fn(cycle if self.scale_mode == "cycle" else epoch)
        if self.mode == "exp_range":
            return height * self.gamma**epoch
        return height * (0.5 ** (cycle - 1) if self.mode == "triangular2" else 1.0)

    def rate(self, epoch: int, index: int) -> float:
        return self.base_lrs[index] + (self.max_lrs[index] - self.base_lrs[index]) * self._height(epoch)

    def _momentum(self, epoch: int, index: int) -> float:
        low, high = self.momenta[index]
        return high - (high - low) * self._height(epoch)

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "scale_fn"}


class _Several(LRScheduler):
    """Base of the schedules that are made of others."""

    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for schedule, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            schedule.load_state_dict(state)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})


class ChainedScheduler(_Several):
    """Several schedules of one optimizer at once, schedulers: each changes the rate that those before it gave.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> halves = [norch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5) for _ in range(2)]
    >>> schedule = norch.optim.lr_scheduler.ChainedScheduler(halves)
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.25])
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: expected at least one schedule")
        self._schedulers = list(schedulers)
        for schedule in self._schedulers:
            if schedule.optimizer is not (optimizer or self._schedulers[0].optimizer):
                raise ValueError("ChainedScheduler: the schedules are of different optimizers")
        self.optimizer, self.base_lrs = self._schedulers[0].optimizer, self._schedulers[0].base_lrs
        self._last_lr = self._schedulers[-1].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._schedulers[-1].get_last_lr()


class SequentialLR(_Several):
    """The schedules of the list schedulers, one after another: at each epoch in milestones the next one starts, at its
    epoch 0. The first starts from the initial_lr of each group, which another of them may have written (OneCycleLR
    does)."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) != len(milestones) + 1:
            raise ArgumentError(f"SequentialLR: {len(schedulers)} schedules and {len(milestones)} milestones between")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        i = bisect_right(self._milestones, self.last_epoch)
        schedule, within = self._schedulers[i], self.last_epoch - (self._milestones[i - 1] if i else 0)
        if self._step_count == 1 and self.last_epoch == 0:  # the constructor's: no other schedule has started
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"]
            schedule.last_epoch, schedule._step_count = -1, 0
        begins = i > 0 and within == 0
        schedule.step(within if begins or schedule.last_epoch != within - 1 else None)
        self._last_lr = schedule.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """The rate times factor when the metrics given to step() have not improved for more than `patience` epochs.

    mode: "min" or "max", the better metrics. An improvement exceeds threshold, relative to the best (threshold_mode
    "rel") or absolute ("abs"). For `cooldown` epochs after a change no epoch counts as bad; min_lr, a number or one a
    group, bounds the rates; a change of less than eps is not made. ArgumentError for factor >= 1 and other modes.

    >>> opt = norch.optim.SGD([norch.zeros(1)], lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in (0.5, 0.5, 0.5):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

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
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"ReduceLROnPlateau: expected an optimizer, not {type(optimizer).__name__}")
        self.optimizer, self.patience, self.threshold = optimizer, patience, threshold
        self.factor = factor
        self.mode, self.threshold_mode, self.cooldown, self.eps = mode, threshold_mode, cooldown, eps
        self.min_lr = min_lr
        _one_a_group(optimizer, min_lr)  # raises where the length is wrong
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted at present."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Ends an epoch, the next one or the one given, with these metrics, a number."""
        now = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        sign = 1 if self.mode == "min" else -1
        relative = self.threshold_mode == "rel"
        bound = self.best * (1 - sign * self.threshold) if relative else self.best - sign * self.threshold
        if sign * now < sign * bound:
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            for group, least in zip(self.optimizer.param_groups, _one_a_group(self.optimizer, self.min_lr)):
                rate = max(group["lr"] * self.factor, least)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(epoch); a list gives one function a group. The state holds the attributes of a
    lr_lambda that is a callable object, and None for a function."""

    chains = False

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _one_a_group(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, epoch: int, index: int) -> float:
        return self.lr_lambdas[index](epoch)

    def state_dict(self) -> dict[str, Any]:
        kept = [None if isinstance(of, FunctionType) else dict(vars(of)) for of in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for of, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ())):
            if kept is not None:
                vars(of).update(kept)
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class MultiplicativeLR(LambdaLR):
    """The rate of the previous epoch times lr_lambda(epoch); a list gives one function a group."""

    def get_lr(self) -> list[float]:
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        first = self._step_count == 1  # the constructor's step, which keeps the rate
        return [group["lr"] * (1 if first else of(self.last_epoch)) for group, of in pairs]


publish(globals())
