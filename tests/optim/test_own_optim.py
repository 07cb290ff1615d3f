"""Optimizers and schedules of one's own, written as other projects write them."""

import copy
import math

import pytest

import norch
from norch import optim
from norch.optim.lr_scheduler import LRScheduler, _LRScheduler
from norch.optim.optimizer import Optimizer, ParamsT, required


class Factored(Optimizer):
    """State of other shapes than the parameter, a rate that may be None, defaults added when it is loaded."""

    def __init__(self, params: ParamsT, lr=None, decay=required):
        super().__init__(params, {"lr": lr, "decay": decay})

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("later", 1)

    @norch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"] = norch.tensor(0)
                    state["row"] = norch.zeros(p.shape[0])
                    state["parts"] = [norch.zeros(())]
                state["step"] += 1
                state["row"].add_(p.grad.square().mean(dim=-1))
                state["parts"][0] += p.grad.sum()
                p.sub_(0.1 * p.grad / state["row"].sqrt().unsqueeze(-1))


def stepped():
    p = norch.nn.Parameter(norch.ones(2, 3))
    opt = Factored([p], decay=0.5)
    p.square().sum().backward()
    opt.step()
    return p, opt


def test_state_of_any_shape_is_loaded_in_the_dtype_of_the_parameter():
    _, opt = stepped()
    saved = copy.deepcopy(opt.state_dict())
    q = norch.nn.Parameter(norch.ones(2, 3, dtype=norch.float64))
    other = Factored([q], decay=0.5)
    other.load_state_dict(saved)
    state = other.state[q]
    assert state["row"].shape == (2,) and state["row"].dtype == norch.float64
    assert state["parts"][0].dtype == norch.float64 and state["parts"][0].item() == 12.0
    assert state["step"].dtype == norch.int64 and state["step"] is not saved["state"][0]["step"]


def test_a_missing_option_that_is_required_raises():
    with pytest.raises(ValueError, match="required optimization parameter decay"):
        Factored([norch.ones(1, requires_grad=True)])


def test_a_copy_passes_setstate():
    _, opt = stepped()
    assert copy.deepcopy(opt).param_groups[0]["later"] == 1


class Warmup(_LRScheduler):
    def __init__(self, optimizer, steps, last_epoch=-1):
        self.steps = steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self._step_count <= self.steps:
            return [base * self._step_count / self.steps for base in self.base_lrs]
        return [group["lr"] * 0.5 for group in self.optimizer.param_groups]


def sgd(lr=1.0):
    return optim.SGD([norch.ones(1, requires_grad=True)], lr=lr)


def test_a_schedule_gives_get_lr():
    opt = sgd()
    schedule = Warmup(opt, 4)
    rates = [schedule.get_last_lr()]
    for _ in range(5):
        schedule.step()
        rates.append(schedule.get_last_lr())
    assert rates == [[0.25], [0.5], [0.75], [1.0], [0.5], [0.25]]
    other = Warmup(sgd(), 9)
    other.load_state_dict(schedule.state_dict())
    assert (other.steps, other.last_epoch) == (4, 5) and other.get_last_lr() == [0.25]


def test_a_schedule_of_ones_own_takes_its_turn():
    opt = sgd()
    joint = optim.lr_scheduler.SequentialLR(opt, [Warmup(opt, 4), optim.lr_scheduler.ExponentialLR(opt, 0.1)], [2])
    joint.step()
    saved = joint.state_dict()
    joint.step()
    assert joint.get_last_lr() == [1.0]
    joint.step()
    assert joint.get_last_lr() == pytest.approx([0.1])
    joint.load_state_dict(saved)
    assert joint.last_epoch == 1 and joint._schedulers[0].last_epoch == 1


def test_a_schedule_steps_to_an_epoch():
    opt = sgd()
    schedule = optim.lr_scheduler.LambdaLR(opt, lambda epoch: math.cos(epoch))
    schedule.step(7)
    assert schedule.last_epoch == 7 and opt.param_groups[0]["lr"] == math.cos(7)
    assert schedule.state_dict()["lr_lambdas"] == [None]


class Halves(LRScheduler):
    """A schedule with a closed form for any epoch."""

    def get_lr(self):
        return [group["lr"] / 2 for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [rate * 0.5 ** (self.last_epoch + 1) for rate in self.base_lrs]


@pytest.mark.filterwarnings("ignore:the argument epoch")
def test_a_schedule_with_a_closed_form_uses_it_for_an_epoch():
    opt = sgd()
    schedule = Halves(opt)
    opt.step()
    schedule.step(3)
    assert opt.param_groups[0]["lr"] == schedule.base_lrs[0] / 16
    schedule.step()
    assert opt.param_groups[0]["lr"] == schedule.base_lrs[0] / 32


def test_a_lowest_rate_that_is_a_tensor_becomes_a_number():
    (rate,) = optim.lr_scheduler.ReduceLROnPlateau(sgd(), min_lr=norch.tensor(0.25)).min_lrs
    assert type(rate) is float and rate == 0.25


def test_resuming_needs_the_initial_rate():
    with pytest.raises(KeyError, match="initial_lr"):
        optim.lr_scheduler.StepLR(sgd(), 2, last_epoch=3)
    assert issubclass(optim.lr_scheduler.StepLR, LRScheduler)


def test_state_beside_that_of_the_parameters_is_saved():
    p, opt = stepped()
    opt.state["total"] = 7
    opt.state["moments"] = {"mean": norch.ones(1)}
    q = norch.nn.Parameter(norch.ones(2, 3))
    other = Factored([q], decay=0.5)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    assert other.state["total"] == 7 and other.state["moments"]["mean"].tolist() == [1] and "row" in other.state[q]
