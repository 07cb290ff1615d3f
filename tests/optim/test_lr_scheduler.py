"""norch.optim.lr_scheduler: every schedule against PyTorch where it is installed, alone, at once, in turn, resumed."""

import math

import pytest
from test_optim import parameter

import norch
from norch import optim


def test_schedules_match_torch(torch):
    pairs = [
        ("StepLR", {"step_size": 3, "gamma": 0.5}),
        ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
        ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
        ("ExponentialLR", {"gamma": 0.7}),
        ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
        ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
        ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
        ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
        ("OneCycleLR", {"max_lr": 2.0, "total_steps": 10, "pct_start": 0.4}),
        ("OneCycleLR", {"max_lr": 2.0, "total_steps": 10, "pct_start": 0.4, "three_phase": True}),
        ("OneCycleLR", {"max_lr": [2.0, 1.0], "epochs": 2, "steps_per_epoch": 6, "anneal_strategy": "linear"}),
        ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
        ("LambdaLR", {"lr_lambda": [lambda epoch: 1 / (epoch + 1), lambda epoch: 2.0]}),
        ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - 1 / (epoch + 1)}),
        ("MultiplicativeLR", {"lr_lambda": [lambda epoch: 0.5, lambda epoch: 0.9]}),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.7, "step_size_up": 2}),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.7, "step_size_up": 2, "step_size_down": 1, "mode": "triangular2"}),
        (
            "CyclicLR",
            {"base_lr": [0.1, 0.2], "max_lr": [0.7, 1.0], "step_size_up": 3, "mode": "exp_range", "gamma": 0.9},
        ),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.7, "step_size_up": 2, "scale_fn": lambda cycle: 1 / cycle}),
    ]
    for name, options in pairs:
        more = {"momentum": 0.5} if name in ("OneCycleLR", "CyclicLR") else {}
        ours = optim.SGD([{"params": parameter([1.0])}, {"params": parameter([1.0]), "lr": 0.3}], lr=1.0, **more)
        q = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        theirs = torch.optim.SGD([{"params": q[0]}, {"params": q[1], "lr": 0.3}], lr=1.0, **more)
        a = getattr(optim.lr_scheduler, name)(ours, **options)
        b = getattr(torch.optim.lr_scheduler, name)(theirs, **options)
        for _ in range(9):
            assert a.get_last_lr() == pytest.approx(b.get_last_lr(), rel=1e-9)
            momenta = [[group["momentum"] for group in one.param_groups] for one in (ours, theirs)]
            assert momenta[0] == pytest.approx(momenta[1], rel=1e-9)
            theirs.step()
            a.step()
            b.step()


def test_schedules_at_once(torch):
    def rates(lib, p):
        opt, schedules = lib.SGD([p], lr=2.0), lib.lr_scheduler
        parts = [schedules.ConstantLR(opt, 0.1, total_iters=2), schedules.ExponentialLR(opt, 0.9)]
        parts += [schedules.MultiplicativeLR(opt, lambda epoch: 0.5 + epoch), schedules.PolynomialLR(opt, 9)]
        schedule = schedules.ChainedScheduler(parts, optimizer=opt)
        for _ in range(7):
            yield schedule.get_last_lr()
            opt.step()
            schedule.step()

    theirs = rates(torch.optim, torch.nn.Parameter(torch.ones(1)))
    for a, b in zip(rates(optim, parameter([1.0])), theirs, strict=True):
        assert a == pytest.approx(b)
    opt, other = (optim.SGD([parameter([1.0])], lr=1.0) for _ in range(2))
    parts = [optim.lr_scheduler.ExponentialLR(opt, 0.5), optim.lr_scheduler.LinearLR(opt)]
    schedule = optim.lr_scheduler.ChainedScheduler(parts)
    schedule.step()
    copy = optim.SGD([parameter([1.0])], lr=1.0)
    again = [optim.lr_scheduler.ExponentialLR(copy, 0.5), optim.lr_scheduler.LinearLR(copy)]
    resumed = optim.lr_scheduler.ChainedScheduler(again)
    resumed.load_state_dict(schedule.state_dict())
    copy.load_state_dict(opt.state_dict())
    schedule.step()
    rates = schedule.get_last_lr()
    resumed.step()
    assert resumed.get_last_lr() == rates
    with pytest.raises(ValueError, match="different optimizers"):
        optim.lr_scheduler.ChainedScheduler([*parts, optim.lr_scheduler.ExponentialLR(other, 0.5)])
    with pytest.raises(ValueError, match="at least one"):
        optim.lr_scheduler.ChainedScheduler([])
    with pytest.raises(norch.ArgumentError, match="CyclicLR: the optimizer has no momentum"):
        optim.lr_scheduler.CyclicLR(optim.Adagrad([parameter([1.0])]), 0.1, 1.0)


SCHEDULES = {
    "step": lambda m, opt: m.StepLR(opt, 2, 0.1),
    "steps": lambda m, opt: m.MultiStepLR(opt, [2, 5, 5], 0.3),
    "exponential": lambda m, opt: m.ExponentialLR(opt, 0.9),
    "linear": lambda m, opt: m.LinearLR(opt, 0.4, total_iters=4),
    "constant": lambda m, opt: m.ConstantLR(opt, 0.1, total_iters=4),
    "cosine": lambda m, opt: m.CosineAnnealingLR(opt, 10, 0.01),
    "lambda": lambda m, opt: m.LambdaLR(opt, lambda epoch: 0.9**epoch),
    "polynomial": lambda m, opt: m.PolynomialLR(opt, 3, 0.9),
}


@pytest.mark.parametrize("first", SCHEDULES)
def test_two_schedules_of_one_optimizer(torch, first):
    """Each goes on from what the other has made of the rate, and from what the user has."""

    def rates(lib, p, second):
        opt = lib.SGD([p], lr=0.5)
        both = [SCHEDULES[one](lib.lr_scheduler, opt) for one in (first, second)]
        for epoch in range(12):
            yield opt.param_groups[0]["lr"]
            opt.step()
            for schedule in both:
                schedule.step()
            if epoch == 7:
                opt.param_groups[0]["lr"] *= 0.7

    for second in SCHEDULES:
        theirs = list(rates(torch.optim, torch.nn.Parameter(torch.ones(1)), second))
        assert list(rates(optim, parameter([1.0]), second)) == pytest.approx(theirs, rel=1e-9, abs=1e-15)


def test_rates_are_those_of_the_formula_to_the_last_bit():
    """Only a rate that somebody else has set is changed by a factor."""
    opt = optim.SGD([parameter([1.0])], lr=0.3)
    schedule = optim.lr_scheduler.LinearLR(opt, total_iters=37)
    for epoch in range(50):
        assert opt.param_groups[0]["lr"] == schedule.rate(epoch, 0)
        opt.step()
        schedule.step()


MORE_SCHEDULES = {
    "restarts": lambda m, opt: m.CosineAnnealingWarmRestarts(opt, 3, 2, 0.01),
    "triangles": lambda m, opt: m.CyclicLR(opt, 0.05, 0.55, 2),
    "one cycle": lambda m, opt: m.OneCycleLR(opt, 0.55, 20),
    "factors": lambda m, opt: m.MultiplicativeLR(opt, lambda epoch: 0.9),
    "plateau": lambda m, opt: m.ReduceLROnPlateau(opt, factor=0.3, patience=1),
    "in turns": lambda m, opt: m.SequentialLR(opt, [m.ConstantLR(opt, 0.1, 2), m.ExponentialLR(opt, 0.9)], [5]),
    "both": lambda m, opt: m.ChainedScheduler([m.ConstantLR(opt, 0.1, 6), m.ExponentialLR(opt, 0.9)]),
}


@pytest.mark.parametrize("name", [*SCHEDULES, *MORE_SCHEDULES])
def test_states_of_torch_go_on_as_there(torch, name):
    def made(lib):
        opt = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5, momentum=0.9)
        return opt, (SCHEDULES | MORE_SCHEDULES)[name](lib.optim.lr_scheduler, opt)

    def steps(opt, schedule):
        for _ in range(4):
            opt.step()
            schedule.step(*([1.0] if name == "plateau" else []))
            yield opt.param_groups[0]["lr"]

    theirs, ours = made(torch), made(norch)
    list(steps(*theirs))
    state = theirs[1].state_dict()
    assert not [key for key in state if callable(getattr(type(ours[1]), key, None))]  # no method is overwritten
    ours[1].load_state_dict(state)
    for key in ("lr", "momentum"):
        ours[0].param_groups[0][key] = theirs[0].param_groups[0][key]
    assert list(steps(*ours)) == pytest.approx(list(steps(*theirs)), rel=1e-9)


def test_state_of_factors_that_are_objects():
    class Power:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    opt = optim.SGD([parameter([1.0])], lr=1.0)
    state = optim.lr_scheduler.LambdaLR(opt, Power(0.5)).state_dict()
    resumed = optim.lr_scheduler.LambdaLR(opt, Power(0.1))
    resumed.load_state_dict(state)
    resumed.step()
    assert state["lr_lambdas"] == [{"base": 0.5}] and resumed.get_last_lr() == [0.5]
    assert optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1.0).state_dict()["lr_lambdas"] == [None]


def test_schedules_one_after_another(torch):
    def rates(lib, p):
        opt = lib.SGD([p], lr=1.0)
        parts = [lib.lr_scheduler.LinearLR(opt, total_iters=3), lib.lr_scheduler.ExponentialLR(opt, 0.5)]
        schedule = lib.lr_scheduler.SequentialLR(opt, parts, milestones=[3])
        for _ in range(7):
            yield schedule.get_last_lr()
            opt.step()
            schedule.step()

    theirs = rates(torch.optim, torch.nn.Parameter(torch.ones(1)))
    for a, b in zip(rates(optim, parameter([1.0])), theirs, strict=True):
        assert a == pytest.approx(b)
    opt = optim.SGD([parameter([1.0])], lr=1.0)
    for name, options in (
        ("SequentialLR", {"schedulers": [], "milestones": []}),
        ("OneCycleLR", {"max_lr": 1.0}),
        ("OneCycleLR", {"max_lr": 1.0, "total_steps": 9, "pct_start": 1.5}),
        ("OneCycleLR", {"max_lr": 1.0, "total_steps": 9, "anneal_strategy": "x"}),
        ("LinearLR", {"start_factor": 0.0}),
        ("LinearLR", {"start_factor": 1.5}),
        ("LinearLR", {"end_factor": 1.5}),
        ("LinearLR", {"end_factor": -0.5}),
        ("ConstantLR", {"factor": 2.0}),
        ("CosineAnnealingWarmRestarts", {"T_0": 0}),
        ("ReduceLROnPlateau", {"mode": "x"}),
        ("ReduceLROnPlateau", {"threshold_mode": "x"}),
        ("ReduceLROnPlateau", {"factor": 1.0}),
    ):
        with pytest.raises(norch.ArgumentError, match=name):
            getattr(optim.lr_scheduler, name)(opt, **options)


def test_the_ends_of_linear_factors():
    opt = optim.SGD([parameter([1.0])], lr=1.0)
    schedule = optim.lr_scheduler.LinearLR(opt, start_factor=1.0, end_factor=0.0, total_iters=2)
    rates = [opt.param_groups[0]["lr"]]
    for _ in range(4):
        opt.step()
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
    assert rates == [1.0, 0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1},
        {"patience": 0, "factor": 0.5, "cooldown": 2, "min_lr": 0.2},
        {"mode": "max", "patience": 0, "threshold": 0.5, "threshold_mode": "abs"},
        {"mode": "max", "patience": 0, "threshold": 0.1, "min_lr": [0.05]},
    ],
)
@pytest.mark.parametrize("shift", [0.0, -2.2])
def test_plateaus_match_torch(torch, options, shift):
    ours, theirs = optim.SGD([parameter([1.0])], lr=1.0), torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    a = optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for step, value in enumerate([3.0, 2.0, 2.0, 2.1, 1.99995, 1.9, 2.5, 2.5, 2.5, math.nan, 1.0, 1.2, 1.3]):
        value += shift
        a.step(norch.tensor(value, dtype=norch.float64) if step % 2 else value)
        b.step(value)
        assert a.get_last_lr() == pytest.approx(b.get_last_lr())
        assert (a.last_epoch, a.in_cooldown, a.best) == (b.last_epoch, b.in_cooldown, b.best)
        other = optim.lr_scheduler.ReduceLROnPlateau(ours)
        other.load_state_dict(a.state_dict())
        a = other
    a.step(0.0, 7)
    assert a.last_epoch == 7
    ours.add_param_group({"params": [parameter([2.0])], "lr": 1.0})
    if isinstance(options.get("min_lr"), list):
        with pytest.raises(ValueError, match="min_lr has 1 values for 2 groups"):
            for _ in range(9):
                a.step(-9.0)
    else:
        before = ours.param_groups[1]["lr"]
        for _ in range(9):
            a.step(9.0 if a.mode == "min" else -9.0)
        assert ours.param_groups[1]["lr"] < before


def test_schedule_resumes():
    opt = optim.SGD([parameter([1.0])], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(opt, 2, 0.1)
    schedule.step()
    saved = schedule.state_dict()
    other = optim.lr_scheduler.StepLR(optim.SGD([parameter([1.0])], lr=1.0), 2, 0.1)
    other.load_state_dict(saved)
    other.step()
    assert other.get_last_lr() == pytest.approx([0.1])
    with pytest.raises(ValueError):
        optim.lr_scheduler.LambdaLR(opt, [abs, abs])


def test_states_of_joint_schedules_have_torchs_names(torch):
    found = []
    for lib in (norch, torch):
        opt = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1)
        parts = [lib.optim.lr_scheduler.ExponentialLR(opt, 0.9) for _ in range(2)]
        joint = lib.optim.lr_scheduler.SequentialLR(opt, parts, [3])
        found.append((set(joint.state_dict()), set(lib.optim.lr_scheduler.ChainedScheduler(parts).state_dict())))
    for ours, theirs in zip(*found, strict=True):
        assert theirs <= ours


TURNS = {
    "factors": lambda s, opt: [s.LinearLR(opt, 0.4, 1.0, 2), s.MultiplicativeLR(opt, lambda epoch: 0.9)],
    "factors twice": lambda s, opt: [s.MultiplicativeLR(opt, lambda e, k=k: 1 / (1 + e + k)) for k in range(2)],
    "factors first": lambda s, opt: [s.MultiplicativeLR(opt, lambda epoch: 0.9), s.LinearLR(opt, 0.4, 1.0, 2)],
    "one cycle": lambda s, opt: [s.LinearLR(opt, 0.4, 1.0, 2), s.OneCycleLR(opt, 0.55, 10)],
    "one cycle first": lambda s, opt: [s.OneCycleLR(opt, 0.55, 10), s.LinearLR(opt, 0.4, 1.0, 2)],
    "triangles": lambda s, opt: [s.LinearLR(opt, 0.4, 1.0, 2), s.CyclicLR(opt, 0.05, 0.55, 2)],
    "cosine": lambda s, opt: [s.ExponentialLR(opt, 0.9), s.CosineAnnealingLR(opt, 5)],
    "a function": lambda s, opt: [s.OneCycleLR(opt, 0.55, 10), s.LambdaLR(opt, lambda epoch: 0.9**epoch)],
}


@pytest.mark.parametrize("name", TURNS)
def test_who_takes_turns_begins_as_in_torch(torch, name):
    def rates(lib):
        opt = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5, momentum=0.9)
        schedules = lib.optim.lr_scheduler
        schedule = schedules.SequentialLR(opt, TURNS[name](schedules, opt), [2])
        for _ in range(7):
            yield opt.param_groups[0]["lr"]
            opt.step()
            schedule.step()

    assert list(rates(norch)) == pytest.approx(list(rates(torch)), rel=1e-9)
