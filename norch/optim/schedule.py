"""LRScheduler, the base of the schedules: steps, resuming, groups added later, rates as tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from .._package.recording import unseen
from ..autograd import no_grad
from ..errors import ArgumentError
from ..tensor import Tensor
from .optimizer import Optimizer

ORDER = (
    "lr_scheduler.step() was called before optimizer.step(), which skips the first rate of the schedule: call "
    "optimizer.step() first"
)
EPOCH = "the argument epoch of step() is deprecated: call step() once an epoch"


# The rates that schedules found when they resumed, in order.
found_by: WeakKeyDictionary[Any, list[float]] = WeakKeyDictionary()


def next_rates(found: Sequence[Any], before: Sequence[float], now: Sequence[float]) -> list[Any]:
    """The present rates. A rate that was found and differs from the previous one by more than rounding is kept."""
    rates = []
    for present, past, rate in zip(found, before, now, strict=True):
        off = abs(float(present) - past)
        rates.append(rate if off <= 1e-6 * abs(past) and off < abs(float(present) - rate) else present)
    return rates


class LRScheduler:
    """Base of the schedules. A subclass overrides one of lr_factor(epoch, index), the factor of group `index`'s initial
    rate, rate(epoch, index), and get_lr(), which returns the rates of all groups from `self.last_epoch`,
    `self.base_lrs` and the groups of `self.optimizer`. The constructor sets the rates of epoch 0. A rate that is a
    tensor is filled in place.

    optimizer: its groups get the rates. A group added later starts from its own rate; ValueError at the next step if
    the schedule has options per group.

    last_epoch: the last epoch that was trained, or -1. If it is not -1, training resumes at the next epoch: load the
    optimizer's state first. A group gets the next epoch's rate if it has the rate of last_epoch (saved before step())
    or the next epoch's (saved after it); any other rate, set by another schedule or the user, is kept. Each group needs
    an 'initial_lr', as a loaded optimizer has; otherwise KeyError.
    """

    chains = True  # scales a rate that another schedule wrote
    eta_min = 0.0  # the rate for factor 0
    _needs_metrics = False  # whether step() takes an argument
    _takes_epochs = False  # whether step(epoch) is a usual call
    _has_closed_form = False  # whether step(epoch) computes rates without get_lr(), though a subclass overrides it
    _is_initial = False  # whether the constructor is taking its step
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(self, optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{index}] when resuming")
        self.base_lrs = self._initial_rates()
        self.last_epoch = last_epoch
        if last_epoch >= 0:
            found_by[self] = [float(group["lr"]) for group in optimizer.param_groups]
        self._initial_step()

    def _initial_rates(self) -> list[float]:
        return [float(group["initial_lr"]) for group in self.optimizer.param_groups]

    def _initial_step(self) -> None:
        """Writes the first epoch's rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _rewind(self) -> None:
        """Rewinds to before epoch 0, so that its rates are written next."""
        self.last_epoch = -1

    def lr_factor(self, epoch: int, index: int) -> float:
        """The factor of group `index`'s initial rate in this epoch."""
        raise NotImplementedError

    def rate(self, epoch: int, index: int) -> float:
        """The rate of group `index` in this epoch."""
        return self.eta_min + (self.base_lrs[index] - self.eta_min) * self.lr_factor(epoch, index)

    def _get_closed_form_lr(self) -> list[float]:
        return [self.rate(self.last_epoch, index) for index in range(len(self.optimizer.param_groups))]

    def get_lr(self) -> list[float]:
        """The rates of this epoch, one per group, from those of the previous epoch. step() calls it; programs read
        rates by get_last_lr()."""
        self._warn_outside_step()
        if not self.chains:
            return self._get_closed_form_lr()
        if self._is_initial and self.last_epoch > 0:
            return self._resumed()
        return [self._chained(group["lr"], index) for index, group in enumerate(self.optimizer.param_groups)]

    def _resumed(self) -> list[Any]:
        """The rates of the first epoch after resuming. A group with the previous epoch's rate, up to rounding, gets
        this epoch's; others keep theirs."""
        count = range(len(self.optimizer.param_groups))
        before, now = ([self.rate(epoch, index) for index in count] for epoch in (self.last_epoch - 1, self.last_epoch))
        return next_rates([group["lr"] for group in self.optimizer.param_groups], before, now)

    def _chained(self, present: Any, index: int) -> float:
        """This epoch's rate for a group whose rate is `present`."""
        rate = self.rate(self.last_epoch, index)
        before = self.rate(self.last_epoch - 1, index) if self.last_epoch > 0 else self.base_lrs[index]
        if _is_rate(present, before):
            return rate
        height, low = before - self.eta_min, self.eta_min
        if not height:
            return float(present) - before + rate
        return (float(present) - low) * ((rate - low) / height) + low

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn("get_lr() is for step(): get_last_lr() gives the present rates", stacklevel=3)

    def step(self, epoch: int | None = None) -> None:
        """Starts the next epoch, or `epoch`, and writes its rates to the groups. As in PyTorch, UserWarning if the
        optimizer has not stepped before, or if epoch is passed.
        """
        unseen("a schedule of the learning rate takes a step")
        if self._step_count == 1 and not self.optimizer._opt_called and not self._takes_epochs:
            warnings.warn(ORDER, stacklevel=2)
        if epoch is not None and not self._takes_epochs:
            warnings.warn(EPOCH, stacklevel=2)
        self._step_count += 1
        try:
            self._update_lr(epoch)
        except BaseException:
            self._step_count -= 1
            raise

    def _update_lr(self, epoch: int | None = None) -> None:
        self._take_in_groups()
        groups, before = self.optimizer.param_groups, self.last_epoch
        self.last_epoch = before + 1 if epoch is None else epoch
        overridden = type(self).get_lr is not LRScheduler.get_lr
        has_form = self._has_closed_form or type(self)._get_closed_form_lr is not LRScheduler._get_closed_form_lr
        closed = epoch is not None and (has_form or not overridden)
        self._get_lr_called_within_step = True
        try:
            rates = self._get_closed_form_lr() if closed else self.get_lr()
            if len(rates) != len(groups):
                raise ValueError(f"{type(self).__name__}: {len(rates)} rates for {len(groups)} parameter groups")
        except BaseException:
            self.last_epoch = before
            raise
        finally:
            self._get_lr_called_within_step = False
        self._write(rates)

    def _take_in_groups(self) -> None:
        """Records the initial rates of groups that were added since the last step."""
        groups, count = self.optimizer.param_groups, len(self.base_lrs)
        if len(groups) != count and not self.chains:
            raise ValueError(
                f"{type(self).__name__} was made for {count} parameter groups, and the optimizer has {len(groups)}: "
                "make another schedule after add_param_group()"
            )
        for group in groups[count:]:
            self.base_lrs = [*self.base_lrs, float(group.setdefault("initial_lr", _copied(group["lr"])))]

    def _write(self, rates: Sequence[Any]) -> None:
        """Writes the rates, one per group. Groups that share a tensor share it as long as their rates are equal."""
        filled: dict[int, Any] = {}
        for group, rate in zip(self.optimizer.param_groups, rates):
            held = group["lr"]
            if isinstance(held, Tensor):
                if filled.setdefault(id(held), rate) != rate:
                    held = group["lr"] = held.detach().clone()
                with no_grad():
                    held.fill_(float(rate))
            else:
                group["lr"] = rate
        self._last_lr = self._present_rates()

    def _present_rates(self) -> list[Any]:
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates that the last step wrote, one per group; tensors are copied."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """What is needed to resume: all attributes except the optimizer.

        >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> norch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5).state_dict()["last_epoch"]
        0
        """
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resumes from a saved epoch. The optimizer's state has the rates of that epoch too. A group that still has the
        rate that this schedule wrote last, as after construction, gets the saved one.
        """
        untouched = list(map(float, self._present_rates())) == list(map(float, self._last_lr))
        self._load(state_dict)
        if untouched and len(self._last_lr) == len(self.optimizer.param_groups):
            self._restore(self._last_lr)

    def _restore(self, rates: list[Any]) -> None:
        """Writes this epoch's rates again."""
        self._write(rates)

    def _load(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def check_optimizer(schedule: LRScheduler, optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(schedule).__name__}: expected an optimizer, not {type(optimizer).__name__}")


def check_positive(schedule: LRScheduler, **periods: Any) -> None:
    for name, value in periods.items():
        if not value > 0:
            raise ArgumentError(f"{type(schedule).__name__}: {name} {value!r} is not positive")


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _is_rate(present: Any, rate: float) -> bool:
    """Whether a group has this rate; tensors round it to their dtype."""
    return present.item() == present.new_tensor(rate).item() if isinstance(present, Tensor) else present == rate


def one_a_group(optimizer: Optimizer, values: Any) -> list[Any]:
    """One value for each group, from one value for all or a sequence."""
    groups = len(optimizer.param_groups)
    listed = list(values) if isinstance(values, (list, tuple)) else [values] * groups
    if len(listed) != groups:
        raise ValueError(f"expected {groups} values, one per group, got {len(listed)}")
    return listed


def numbers(optimizer: Optimizer, values: Any) -> list[float]:
    """One number for each group."""
    return [float(value) if isinstance(value, Tensor) else value for value in one_a_group(optimizer, values)]


def attributes(function: Any) -> dict[str, Any] | None:
    """The state of a user's function: the attributes of a callable object."""
    return None if isinstance(function, FunctionType) else dict(getattr(function, "__dict__", {}))
