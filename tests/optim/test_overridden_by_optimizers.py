"""Methods of optimizers, schedules and gradient scalers reach those that a subclass overrides where PyTorch's do."""

from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch.optim import lr_scheduler
from norch.testing import assert_close


def parameter() -> Any:
    return norch.nn.Parameter(norch.ones(2, device=DEVICE))


class Older(norch.optim.SGD):
    """Fills in an option that older files lack, in __setstate__()."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["warmed"] = True


def test_load_state_dict_calls_setstate() -> None:
    optimizer = Older([parameter()], lr=0.5, momentum=0.9)
    called = []
    optimizer.register_load_state_dict_post_hook(lambda o: called.append(o.param_groups[0]["warmed"]))
    group = optimizer.param_groups[0]
    for _ in range(2):  # the hooks stay
        optimizer.load_state_dict(norch.optim.SGD([parameter()], lr=0.25, momentum=0.9).state_dict())
    assert called == [True, True] and optimizer.param_groups[0] is group and group["lr"] == 0.25


class Halves(lr_scheduler.StepLR):
    def get_lr(self) -> list[float]:
        return [group["lr"] / 2 for group in self.optimizer.param_groups]


class Doubles(lr_scheduler.CosineAnnealingWarmRestarts):
    def get_lr(self) -> list[float]:
        return [2 * rate for rate in super().get_lr()]


@pytest.mark.filterwarnings("ignore:the argument epoch")
def test_closed_forms_and_get_lr() -> None:
    halves = Halves(norch.optim.SGD([parameter()], lr=1.0), 10)
    halves.optimizer.step()
    halves.step()
    assert halves.get_last_lr() == [0.25]
    halves.step(2)  # StepLR has a closed form
    assert halves.get_last_lr() == [1.0]
    doubles = Doubles(norch.optim.SGD([parameter()], lr=1.0), 4)
    assert doubles.get_last_lr() == [2.0]
    doubles.step(2)  # these have none
    assert_close(doubles.get_last_lr()[0], 1.0)


class Saved(lr_scheduler.ExponentialLR):
    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.last_epoch = state_dict["epoch"]


@pytest.mark.parametrize("joint", ["chained", "sequential"])
def test_joint_schedules_load_their_parts(joint: str) -> None:
    def schedule() -> Any:
        optimizer = norch.optim.SGD([parameter()], lr=1.0)
        parts = [Saved(optimizer, 0.5), Saved(optimizer, 0.5)]
        if joint == "chained":
            return lr_scheduler.ChainedScheduler(parts)
        return lr_scheduler.SequentialLR(optimizer, parts, [1])

    first, second = schedule(), schedule()
    for _ in range(3):
        first.optimizer.step()
        first.step()
    second.load_state_dict(first.state_dict())
    for one, other in zip(first._schedulers, second._schedulers, strict=True):
        assert one.last_epoch == other.last_epoch
    for one in (first, second):
        one.optimizer.step()
        one.step()
    assert first.get_last_lr() == second.get_last_lr()


class Falling(lr_scheduler.ReduceLROnPlateau):
    """Any loss below 1 is an improvement, and momentum falls with the rate."""

    def _is_better(self, a: float, best: float) -> bool:
        return a < 1

    def _reduce_lr(self, epoch: int) -> None:
        super()._reduce_lr(epoch)
        self.optimizer.param_groups[0]["momentum"] /= 2

    def _reset(self) -> None:
        super()._reset()
        self.resets = getattr(self, "resets", 0) + 1


def test_plateaus() -> None:
    schedule = Falling(norch.optim.SGD([parameter()], lr=1.0, momentum=0.5), factor=0.5, patience=1)
    assert schedule.resets == 1
    for loss in (0.5, 0.75, 0.9, 0.95):
        schedule.step(loss)
    assert schedule.get_last_lr() == [1.0]
    for loss in (2.0, 2.0):
        schedule.step(loss)
    assert schedule.get_last_lr() == [0.5] and schedule.optimizer.param_groups[0]["momentum"] == 0.25
    schedule.step(0.5)
    schedule._reset()
    assert schedule.num_bad_epochs == 0 and schedule.best == float("inf")


class Clipping(norch.amp.GradScaler):
    """Replaces gradients that overflowed by zeros, and steps always."""

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> Any:
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
        return found

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: Any, *args: Any, **kwargs: Any) -> Any:
        assert optimizer_state is self._per_optimizer_states[id(optimizer)]
        return optimizer.step(*args, **kwargs)


def test_gradient_scalers() -> None:
    w = parameter()
    optimizer = norch.optim.SGD([w], lr=1.0)
    scaler = Clipping(w.device.type, init_scale=4.0)
    w.grad = scaler.scale(norch.tensor([0.25, float("inf")], device=DEVICE))
    scaler.step(optimizer)
    scaler.update()
    assert_close(w.detach(), norch.tensor([0.75, 1.0], device=DEVICE))
    assert scaler.get_scale() == 2.0  # the overflow counts
