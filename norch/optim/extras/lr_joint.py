"""Schedules of schedules: ChainedScheduler and SequentialLR."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from typing import Any

from ...errors import ArgumentError
from ..optimizer import Optimizer
from ..schedule import EPOCH, LRScheduler, found_by, next_rates


class _Several(LRScheduler):
    """Base of the schedules that combine others. A part may be such a schedule too."""

    _schedulers: list[LRScheduler]

    def _check(self, optimizer: Optimizer | None) -> None:
        """Sets the optimizer, which all parts must share."""
        name = type(self).__name__
        if not self._schedulers:
            raise ArgumentError(f"{name}: expected at least one schedule")
        for index, schedule in enumerate(self._schedulers):
            if not isinstance(schedule, LRScheduler):
                raise TypeError(f"{name}: expected LRSchedulers, but number {index} is {type(schedule).__name__}")
            if schedule._needs_metrics:
                its = type(schedule).__name__
                raise ArgumentError(f"{name}: step() of schedule {index}, {its}, needs metrics")
            optimizer = schedule.optimizer if optimizer is None else optimizer
            if schedule.optimizer is not optimizer:
                raise ValueError(f"{name}: the schedules have different optimizers (schedule {index})")
        self.optimizer = optimizer  # type: ignore[assignment]

    def _rewind(self) -> None:
        for schedule in self._schedulers:
            schedule._rewind()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def _load(self, state: dict[str, Any]) -> None:
        for schedule, its in zip(self._schedulers, state["_schedulers"], strict=True):
            if type(schedule).load_state_dict is LRScheduler.load_state_dict:
                schedule._load(its)  # the rates are written once, for all parts
            else:
                schedule.load_state_dict(its)
        super()._load({**state, "_schedulers": self._schedulers})


class ChainedScheduler(_Several):
    """Applies all schedules of the list schedulers at each step. They belong to one optimizer; each changes the rate
    that the schedules before it have set.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> halves = [norch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5) for _ in range(2)]
    >>> schedule = norch.optim.lr_scheduler.ChainedScheduler(halves)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._schedulers = list(schedulers)
        self._check(optimizer)
        if all(not isinstance(schedule, _Several) and schedule._step_count == 1 for schedule in self._schedulers):
            epochs = {schedule.last_epoch for schedule in self._schedulers}
            if len(epochs) == 1 and min(epochs) > 0 and all(schedule in found_by for schedule in self._schedulers):
                self._resume_at(min(epochs))
        self._last_lr = self._present_rates()

    def _resume_at(self, epoch: int) -> None:
        """Resumes each part at this epoch. But a state saved before step() has the product of all rates, which copies
        of the parts compute from epoch 0 on."""
        groups = [{**group, "lr": float(group["initial_lr"])} for group in self.optimizer.param_groups]
        stand_in: Any = object.__new__(type(self.optimizer))
        stand_in.__dict__.update({**self.optimizer.__dict__, "param_groups": groups})
        parts = [copy(schedule) for schedule in self._schedulers]
        now: list[float] = []
        for at in range(epoch + 1):
            before = now
            for part in parts:
                part.optimizer, part.last_epoch, part._get_lr_called_within_step = stand_in, at, True
                part._is_initial = at == 0
                for group, rate in zip(groups, part.get_lr(), strict=True):
                    group["lr"] = float(rate)
            now = [group["lr"] for group in groups]
        first = next(schedule for schedule in found_by if schedule in self._schedulers)
        self._write(next_rates(found_by[first], before, now))

    def step(self) -> None:  # type: ignore[override]
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._present_rates()

    def _restore(self, rates: list[Any]) -> None:
        for schedule in self._schedulers:
            its = schedule._last_lr
            schedule._restore(rates)
            schedule._last_lr = its
        self._last_lr = self._present_rates()

    def _initial_step(self) -> None:
        for schedule in self._schedulers:
            schedule._initial_step()
        self._last_lr = self._present_rates()

    def _update_lr(self, epoch: int | None = None) -> None:
        """Starts after another schedule, as the first part would alone."""
        self._rewind()
        first, *others = self._schedulers
        first._update_lr(0)
        for schedule in others:
            schedule._initial_step()
        self._last_lr = self._present_rates()


class SequentialLR(_Several):
    """Runs the schedules of the list schedulers one after another: at each epoch in milestones the next one starts, at
    its epoch 0. The first starts from each group's initial_lr. Another schedule may have written that value, as
    OneCycleLR does.

    last_epoch is the epoch before the first one; if it is not -1, the constructor takes the steps of all epochs until
    then. ValueError if the schedules have different optimizers, if milestones decrease, or if their number is not one
    less than that of the schedules. ReduceLROnPlateau cannot be one of the schedules.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> warmup = norch.optim.lr_scheduler.LinearLR(opt, 0.5, total_iters=2)
    >>> rest = norch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    >>> schedule = norch.optim.lr_scheduler.SequentialLR(opt, [warmup, rest], milestones=[2])
    >>> for _ in range(3):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self._check(optimizer)
        if len(schedulers) != len(milestones) + 1:
            raise ArgumentError(f"SequentialLR: {len(schedulers)} schedules and {len(milestones)} milestones between")
        if sorted(self._milestones) != self._milestones:
            raise ArgumentError(f"SequentialLR: the milestones {self._milestones} must not decrease")
        self._go_to(last_epoch + 1)

    def _present(self) -> LRScheduler:
        """The schedule that runs in this epoch."""
        return self._schedulers[bisect_right(self._milestones, self.last_epoch)]

    def _go_to(self, epoch: int) -> None:
        """Takes all steps from the start to this epoch. There is no shortcut, since a schedule may change the rate that
        it finds."""
        stepped, self.optimizer._opt_called = self.optimizer._opt_called, True
        try:
            LRScheduler._write(self, [group["initial_lr"] for group in self.optimizer.param_groups])
            self._rewind()
            self._initial_step()
            self._step_to(epoch)
        finally:
            self.optimizer._opt_called = stepped

    def _step_to(self, epoch: int) -> None:
        while self.last_epoch < epoch:
            self.step()

    def _restore(self, rates: list[Any]) -> None:
        self._present()._restore(rates)
        self._last_lr = self._present_rates()

    def _rewind(self) -> None:
        super()._rewind()
        self.last_epoch = -1

    def _initial_step(self) -> None:
        self.last_epoch = 0
        self._present()._initial_step()
        self._last_lr = self._present_rates()

    def _update_lr(self, epoch: int | None = None) -> None:
        """Starts after another schedule."""
        self._rewind()
        self.last_epoch = 0
        self._present()._update_lr(0)
        self._last_lr = self._present_rates()

    def step(self, epoch: int | None = None) -> None:
        if epoch is not None:
            warnings.warn(EPOCH, stacklevel=2)
            return self._go_to(epoch)
        self.last_epoch += 1
        try:
            if self.last_epoch in self._milestones:
                self._present()._update_lr(0)
            else:
                self._present().step()
        except BaseException:
            self.last_epoch -= 1
            raise
        self._last_lr = self._present_rates()
        return None
