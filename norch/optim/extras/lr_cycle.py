"""Schedules that rise and fall: CosineAnnealingWarmRestarts, OneCycleLR and CyclicLR. Their attributes and group
options have PyTorch's names, so PyTorch resumes from a state of norch's, and norch from one of PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, one_of
from ..optimizer import Optimizer
from ..schedule import LRScheduler, attributes, check_optimizer, numbers


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the rate along half a cosine to eta_min in T_0 epochs, then restarts from the initial rate (Loshchilov and
    Hutter 2017). Each period is T_mult times as long as the one before. step(epoch) also takes fractions of an epoch;
    ArgumentError for a negative epoch.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=4)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    chains = False
    _takes_epochs = True

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: T_0 {T_0} and T_mult {T_mult} must be at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_cur, self.T_i = self._place(last_epoch)
        super().__init__(optimizer, last_epoch)

    def _place(self, epoch: float) -> tuple[float, int]:
        """The epochs since the last restart, and the length of the period."""
        length = self.T_0
        while epoch >= length and self.T_mult > 1:
            epoch -= length
            length *= self.T_mult
        return epoch % length if epoch > 0 else epoch, length

    def lr_factor(self, epoch: float, index: int) -> float:
        since, length = self._place(epoch)
        return (1 + math.cos(math.pi * since / length)) / 2

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        factor = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]

    def _update_lr(self, epoch: float | None = None) -> None:
        before = self.T_cur, self.T_i
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            self.T_cur += 1  # may have a fraction
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ArgumentError(f"CosineAnnealingWarmRestarts: epoch {epoch} is negative")
            self.T_cur, self.T_i = self._place(epoch)
        try:
            super()._update_lr(None if epoch is None else math.floor(epoch))
        except BaseException:
            self.T_cur, self.T_i = before
            raise

    def _load(self, state: dict[str, Any]) -> None:
        super()._load(state)
        if "T_cur" not in state:
            self.T_cur, self.T_i = self._place(self.last_epoch)


class _Cycle(LRScheduler):
    """Base of the schedules that step after each batch, whose momentum falls while the rate rises. A subclass defines
    `_momentum`.
    """

    chains = False
    cycle_momentum: bool
    base_momentums: list[float]
    max_momentums: list[float]

    def _set_momenta(self, base_momentum: Any, max_momentum: Any) -> None:
        """Sets the momentum bounds of each group if cycle_momentum."""
        self.base_momentums = numbers(self.optimizer, base_momentum)
        self.max_momentums = numbers(self.optimizer, max_momentum)
        if not self.cycle_momentum:
            return
        for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
            if "momentum" not in group and "betas" not in group:
                raise ArgumentError(f"{type(self).__name__}: the optimizer has no momentum; pass cycle_momentum=False")
            group["base_momentum"], group["max_momentum"] = low, high
        self.use_beta1 = "betas" in self.optimizer.param_groups[0]

    def _momentum(self, epoch: int, index: int) -> float:
        """The momentum of group `index` in this step."""
        raise NotImplementedError

    def _write(self, rates: Sequence[Any]) -> None:
        super()._write(rates)
        for index, group in enumerate(self.optimizer.param_groups if self.cycle_momentum else ()):
            momentum = self._momentum(self.last_epoch, index)
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class OneCycleLR(_Cycle):
    """Raises the rate from max_lr / div_factor to max_lr in pct_start of total_steps, then lowers it to the initial
    rate / final_div_factor (Smith and Topin 2017). Call step() after each batch. With cycle_momentum the momentum, or
    the first of betas, falls from max_momentum to base_momentum while the rate rises, then rises again.

    total_steps can be replaced by epochs and steps_per_epoch, whose product it is. max_lr is a number, or one for each
    group. anneal_strategy is "cos", half a cosine, or "linear". With three_phase the rate falls to the initial one in
    as many steps as it rose, and to the final one in the rest. ArgumentError for other values, and for a step after
    total_steps.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=11, cycle_momentum=False)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.96...]
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
        check_optimizer(self, optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps < 1:
            raise ArgumentError(f"OneCycleLR: total_steps {total_steps!r} is not a positive integer")
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: pct_start {pct_start} is not between 0 and 1")
        one_of("OneCycleLR: anneal_strategy", anneal_strategy, ("cos", "linear"))
        self.optimizer, self.total_steps, self._anneal_func_type = optimizer, total_steps, anneal_strategy
        ends: list[tuple[float, str, str]] = [(float(pct_start * total_steps) - 1, "max_lr", "base_momentum")]
        if three_phase:
            ends.append((float(2 * pct_start * total_steps) - 2, "initial_lr", "max_momentum"))
        ends.append((total_steps - 1, "min_lr", "max_momentum"))
        self._schedule_phases: list[dict[str, Any]] = []
        lr, momentum = "initial_lr", "max_momentum"
        for end, to_lr, to_momentum in ends:
            phase = {"end_step": end, "start_lr": lr, "end_lr": to_lr}
            self._schedule_phases.append({**phase, "start_momentum": momentum, "end_momentum": to_momentum})
            lr, momentum = to_lr, to_momentum
        self.cycle_momentum = cycle_momentum
        self._set_momenta(base_momentum, max_momentum)
        self.max_lrs = numbers(optimizer, max_lr)
        self.min_lrs = []
        for group, top in zip(optimizer.param_groups, self.max_lrs):
            first = top / div_factor if last_epoch == -1 else float(group.get("initial_lr", top / div_factor))
            self.min_lrs.append(first / final_div_factor)
            if last_epoch == -1:
                group["initial_lr"] = first
            group["max_lr"], group["min_lr"] = top, self.min_lrs[-1]
        super().__init__(optimizer, last_epoch)

    def _between(self, epoch: int, of: str, values: dict[str, float]) -> float:
        """The "lr" or "momentum" of a step, between the two values that the phase of the step names."""
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if epoch <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (epoch - start) / (phase["end_step"] - start) if phase["end_step"] != start else 1.0
        if self._anneal_func_type == "cos":
            part = (1 - math.cos(math.pi * part)) / 2
        first, last = values[phase[f"start_{of}"]], values[phase[f"end_{of}"]]
        return first + (last - first) * part

    def rate(self, epoch: int, index: int) -> float:
        if epoch > self.total_steps:
            raise ArgumentError(f"OneCycleLR: step {epoch} of {self.total_steps}")
        rates = {"initial_lr": self.base_lrs[index], "max_lr": self.max_lrs[index], "min_lr": self.min_lrs[index]}
        return self._between(epoch, "lr", rates)

    def _momentum(self, epoch: int, index: int) -> float:
        momenta = {"base_momentum": self.base_momentums[index], "max_momentum": self.max_momentums[index]}
        return self._between(epoch, "momentum", momenta)

    def _load(self, state: dict[str, Any]) -> None:
        super()._load(state)
        for key in ("max_lrs", "min_lrs", "base_momentums", "max_momentums"):
            if key not in state:  # PyTorch's state: it reads them from the groups
                kept = zip(self.optimizer.param_groups, getattr(self, key), strict=True)
                setattr(self, key, [group.get(key[:-1], value) for group, value in kept])


class CyclicLR(_Cycle):
    """Raises the rate from base_lr to max_lr in step_size_up steps, lowers it in step_size_down (default step_size_up),
    and starts again (Smith 2017). Call step() after each batch. cycle_momentum acts as in OneCycleLR; ArgumentError if
    the optimizer has no momentum.

    mode gives the amplitude: constant ("triangular"), halved in each cycle ("triangular2") or gamma ** step
    ("exp_range"). scale_fn replaces it by a function of the cycle, counted from 1, or of the step with
    scale_mode="iterations". base_lr, max_lr, base_momentum and max_momentum are numbers, or sequences of one for each
    group.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.lr_scheduler.CyclicLR(opt, 0.5, 1.5, step_size_up=2, cycle_momentum=False)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [1.0]
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
        check_optimizer(self, optimizer)
        one_of("CyclicLR: mode", mode, ("triangular", "triangular2", "exp_range", *[mode] * (scale_fn is not None)))
        one_of("CyclicLR: scale_mode", scale_mode, ("cycle", "iterations"))
        down = step_size_up if step_size_down is None else step_size_down
        if not step_size_up > 0 or not down >= 0:
            raise ArgumentError(f"CyclicLR: step_size_up {step_size_up} and step_size_down {down} are not positive")
        self.optimizer, self.cycle_momentum = optimizer, cycle_momentum
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self._lowest, self.max_lrs = numbers(optimizer, base_lr), numbers(optimizer, max_lr)
        self._set_momenta(base_momentum, max_momentum)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, self._lowest):
                group.setdefault("initial_lr", rate)
        super().__init__(optimizer, last_epoch)

    def _initial_rates(self) -> list[float]:
        return self.__dict__.pop("_lowest")

    def scale_fn(self, x: float) -> float:
        """The amplitude of a cycle, or with scale_mode "iterations" of a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 0.5 ** (x - 1) if self.mode == "triangular2" else 1.0

    def _height(self, epoch: int) -> float:
        """The position of a step between the lower bound, 0, and the upper bound, 1."""
        cycle = math.floor(1 + epoch / self.total_size)
        part = 1 + epoch / self.total_size - cycle
        height = part / self.step_ratio if part <= self.step_ratio else (part - 1) / (self.step_ratio - 1)
        return height * self.scale_fn(cycle if self.scale_mode == "cycle" else epoch)

    def rate(self, epoch: int, index: int) -> float:
        return self.base_lrs[index] + (self.max_lrs[index] - self.base_lrs[index]) * self._height(epoch)

    def _momentum(self, epoch: int, index: int) -> float:
        low, high = self.base_momentums[index], self.max_momentums[index]
        return high - (high - low) * self._height(epoch)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "_scale_fn_custom": self._scale_fn_custom and attributes(self._scale_fn_custom),
        }

    def _load(self, state: dict[str, Any]) -> None:
        function = self._scale_fn_custom
        if function is not None and (kept := state.get("_scale_fn_custom")):
            vars(function).update(kept)
        super()._load({**state, "_scale_fn_custom": function})
