"""Averages of weights and their schedule: against PyTorch, and against the means that they are."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn, optim
from norch.optim import swa_utils as ours
from norch.testing import assert_close

AVERAGES: Any = {
    "mean": lambda m: {},
    "mean fn": lambda m: {"avg_fn": m.get_swa_avg_fn()},
    "mean of lists": lambda m: {"multi_avg_fn": m.get_swa_multi_avg_fn()},
    "decay": lambda m: {"avg_fn": m.get_ema_avg_fn(0.9)},
    "decay of lists": lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.9), "use_buffers": True},
}


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_like_torch(torch: Any, name: str) -> None:
    from torch.optim import swa_utils as theirs

    results = []
    for lib, utils, to in ((norch, ours, norch.tensor), (torch, theirs, torch.tensor)):
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
        average = utils.AveragedModel(model, **AVERAGES[name](utils))
        rng = np.random.default_rng(0)
        for _ in range(3):
            with lib.no_grad():
                for param in model.parameters():
                    param.copy_(to(rng.normal(size=tuple(param.shape))))
            model(to(rng.normal(size=(4, 2))).float())
            average.update_parameters(model)
        results.append({key: np.asarray(value.cpu().numpy()) for key, value in average.state_dict().items()})
        assert average.n_averaged.item() == 3
    assert list(results[0]) == list(results[1])
    for key in results[0]:
        np.testing.assert_allclose(results[0][key], results[1][key], rtol=1e-5, atol=1e-6, err_msg=key)


def test_the_mean_is_one() -> None:
    model = nn.Linear(3, 1, device=DEVICE)
    average, seen = ours.AveragedModel(model), []
    for _ in range(4):
        model.reset_parameters()
        average.update_parameters(model)
        seen.append(model.weight.detach().clone())
    assert_close(average.module.weight.detach(), norch.stack(seen).mean(0))
    x = norch.ones(3, device=DEVICE)
    assert norch.equal(average(x), average.module(x)) and average.module is not model
    again = ours.AveragedModel(model)
    again.load_state_dict(average.state_dict())
    assert again.n_averaged.item() == 4


def test_later_updates_read_no_count(monkeypatch: Any) -> None:
    model = nn.Linear(3, 1, device=DEVICE)
    average = ours.AveragedModel(model, avg_fn=ours.get_ema_avg_fn(0.5))
    begun = average.state_dict()["n_averaged"].clone()
    average.update_parameters(model)
    reads = []
    read = norch.Tensor.__int__
    monkeypatch.setattr(norch.Tensor, "__int__", lambda x: reads.append(x) or read(x))
    for copied in (average, copy.deepcopy(average)):
        nn.init.constant_(model.weight, 1.0)
        copied.update_parameters(model)
        before = copied.module.weight.detach().clone()
        nn.init.constant_(model.weight, 3.0)
        copied.update_parameters(model)
        assert_close(copied.module.weight.detach(), (before + 3) / 2)
    assert len(reads) <= 1  # the copy may have to
    average.n_averaged.copy_(begun)  # an average that begins anew
    average.update_parameters(model)
    assert norch.equal(average.module.weight, model.weight) and average.n_averaged.item() == 1


def test_statistics_of_batches_are_taken_anew() -> None:
    model = nn.Sequential(nn.BatchNorm1d(1), nn.BatchNorm1d(1, momentum=0.3)).eval()
    x = norch.tensor([[1.0], [3.0]])
    ours.update_bn([(x.cpu(), "label"), (x.cpu() + 4, "label")], model, device=DEVICE)
    assert model[0].running_mean.item() == 4 and model[0].num_batches_tracked.item() == 2
    assert model[1].momentum == 0.3 and not model.training
    ours.update_bn([], nn.Linear(1, 1))


SCHEDULES: Any = [
    {"swa_lr": 0.05},
    {"swa_lr": [0.5, 0.01], "anneal_epochs": 3, "anneal_strategy": "linear"},
    {"swa_lr": 0.2, "anneal_epochs": 0},
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", SCHEDULES, ids=str)
def test_schedule_like_torch(torch: Any, options: Any) -> None:
    from torch.optim import swa_utils as theirs

    rates: list[Any] = []
    for lib, utils in ((norch, ours), (torch, theirs)):
        groups = [{"params": [lib.nn.Parameter(lib.ones(1))], "lr": lr} for lr in (0.1, 1.0)]
        opt = lib.optim.SGD(groups, lr=1.0)
        other = lib.optim.lr_scheduler.ExponentialLR(opt, 0.5)
        schedule = utils.SWALR(opt, **options)
        rates.append([])
        for epoch in range(14):
            opt.step()
            (other if epoch < min(2, options.get("anneal_epochs", 2)) else schedule).step()
            rates[-1] += [group["lr"] for group in opt.param_groups]
            if epoch == 5:
                again = utils.SWALR(opt, **options)
                again.load_state_dict(schedule.state_dict())
                schedule = again
    assert rates[0] == pytest.approx(rates[1])


def test_a_later_write_to_the_tensor_of_a_rate_changes_no_schedule() -> None:
    opt = optim.SGD([nn.Parameter(norch.ones(1))], lr=0.1)
    schedule = ours.SWALR(opt, swa_lr=(rate := norch.tensor(0.05)), anneal_epochs=1)
    rate.fill_(9.0)
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.05])
    assert float(opt.param_groups[0]["swa_lr"]) == pytest.approx(0.05)


def _anneals(rate: float, epochs: int, strategy: str, last_epoch: int = -1) -> Any:
    parameters = {"params": [nn.Parameter(norch.ones(1))], "initial_lr": 1.0}
    return ours.SWALR(optim.SGD([parameters], lr=rate), 0.2, epochs, strategy, last_epoch)


@pytest.mark.parametrize("strategy", ["linear", "cos"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_rates_go_to_their_end(epochs: int, strategy: str) -> None:
    def rate(epoch: int) -> float:
        way = min(1.0, epoch / epochs) if epochs else 1.0
        return 0.2 + 0.8 * (1 - way if strategy == "linear" else (1 + math.cos(math.pi * way)) / 2)

    schedule = _anneals(1.0, epochs, strategy)
    schedule.optimizer.step()
    for epoch in range(7):
        assert schedule.get_last_lr() == pytest.approx([rate(epoch)])
        schedule.step()
    schedule.optimizer.param_groups[0]["lr"] = 0.7  # of another schedule: at the end it is overwritten
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.2])
    for found, wanted in ((rate(2), rate(3)), (rate(3), rate(3)), (0.9, 0.9)):
        assert _anneals(found, epochs, strategy, last_epoch=2).get_last_lr() == pytest.approx([wanted])


def test_errors() -> None:
    model = nn.Linear(1, 1)
    opt = optim.SGD(model.parameters(), lr=1.0)
    for call, message in (
        (lambda: ours.get_ema_avg_fn(1.5), r"decay must be in \[0, 1\], not 1.5"),
        (lambda: ours.get_ema_multi_avg_fn(-1), r"decay must be in \[0, 1\], not -1"),
        (lambda: ours.AveragedModel(model, None, max, max), "avg_fn or multi_avg_fn, not both"),
        (lambda: ours.SWALR(opt, 0.1, anneal_strategy="sin"), "'cos' or 'linear', not 'sin'"),
        (lambda: ours.SWALR(opt, 0.1, anneal_epochs=-1), "anneal_epochs must be an integer >= 0, not -1"),
        (lambda: ours.SWALR(opt, [0.1, 0.2]), "expected 1 values, one per group, got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
