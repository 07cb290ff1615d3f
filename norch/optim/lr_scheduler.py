"""Schedules of the learning rate: each `step()`, called once an epoch, writes `group["lr"]`.

The rates are closed forms of the epoch, so that a schedule can be resumed at any epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """Base: a subclass gives `factor(epoch, index)`, by which the first rate of group `index` is multiplied,
    or overrides `rate`. Constructing it sets the rates of epoch 0."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, epoch: int, index: int) -> float:
        """What the initial rate of group `index` is multiplied by in this epoch."""
        raise NotImplementedError

    def rate(self, epoch: int, index: int) -> float:
        """The rate of group `index` in this epoch."""
        return self.base_lrs[index] * self.factor(epoch, index)

    def step(self) -> None:
        """The next epoch begins: writes its rates into the groups."""
        self.last_epoch += 1
        for index, group in enumerate(self.optimizer.param_groups[: len(self.base_lrs)]):
            group["lr"] = self.rate(self.last_epoch, index)

    def get_last_lr(self) -> list[float]:
        """The rates now, one a group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What a schedule needs to go on: the epoch and the initial rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a saved epoch; the optimizer's own state holds the rates."""
        self.last_epoch = state_dict["last_epoch"]
        self.base_lrs = list(state_dict["base_lrs"])


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

    def factor(self, epoch: int, index: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate down to eta_min along half a cosine of T_max epochs, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, epoch: int, index: int) -> float:
        height = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return self.eta_min + (self.base_lrs[index] - self.eta_min) * height


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(epoch); a list gives one function a group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"expected {groups} functions, one a group, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, index: int) -> float:
        return self.lr_lambdas[index](epoch)
