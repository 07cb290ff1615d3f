"""Schedules of the learning rate that resume, by last_epoch and by state, ours and PyTorch's; groups that are added
later, rates that are tensors, schedules within schedules, warnings and checks."""

import copy
import warnings

import pytest
from conftest import torch_or_skip

import norch
from norch import optim
from norch.optim.schedule import next_rates

S = optim.lr_scheduler

MADE = {
    "step": lambda m, opt, **k: m.StepLR(opt, 5, 0.5, **k),
    "steps": lambda m, opt, **k: m.MultiStepLR(opt, [2, 5, 5, 9], 0.5, **k),
    "exponential": lambda m, opt, **k: m.ExponentialLR(opt, 0.9, **k),
    "linear": lambda m, opt, **k: m.LinearLR(opt, 0.1, 1.0, 8, **k),
    "constant": lambda m, opt, **k: m.ConstantLR(opt, 0.5, 5, **k),
    "polynomial": lambda m, opt, **k: m.PolynomialLR(opt, 10, 2.0, **k),
    "cosine": lambda m, opt, **k: m.CosineAnnealingLR(opt, 4, 0.01, **k),
    "restarts": lambda m, opt, **k: m.CosineAnnealingWarmRestarts(opt, 2, 2, 0.01, **k),
    "lambda": lambda m, opt, **k: m.LambdaLR(opt, lambda epoch: 0.9**epoch, **k),
    "factors": lambda m, opt, **k: m.MultiplicativeLR(opt, lambda epoch: 1 - 1 / (epoch + 2), **k),
    "one cycle": lambda m, opt, **k: m.OneCycleLR(opt, [2.0, 1.0], 20, **k),
    "three phases": lambda m, opt, **k: m.OneCycleLR(
        opt, 2.0, 20, three_phase=True, anneal_strategy="linear", base_momentum=[0.5, 0.6], **k
    ),
    "triangles": lambda m, opt, **k: m.CyclicLR(opt, 0.1, 0.7, 2, mode="triangular2", **k),
    "shrinking": lambda m, opt, **k: m.CyclicLR(opt, [0.1, 0.2], 0.7, 2, 3, mode="exp_range", gamma=0.9, **k),
    "own shape": lambda m, opt, **k: m.CyclicLR(opt, 0.1, 0.7, 2, scale_fn=lambda cycle: 1 / cycle, **k),
}
JOINT = {
    "both": lambda m, opt: m.ChainedScheduler([MADE["constant"](m, opt), MADE["exponential"](m, opt)]),
    "in turns": lambda m, opt: m.SequentialLR(opt, [MADE["linear"](m, opt), MADE["factors"](m, opt)], [3]),
    "cycles in turns": lambda m, opt: m.SequentialLR(opt, [MADE["constant"](m, opt), MADE["one cycle"](m, opt)], [3]),
}
NESTED = {
    "chain first": lambda m, opt: m.SequentialLR(opt, [JOINT["both"](m, opt), MADE["step"](m, opt)], [4]),
    "chain later": lambda m, opt: m.SequentialLR(opt, [MADE["step"](m, opt), JOINT["both"](m, opt)], [4]),
    "turns in turns": lambda m, opt: m.SequentialLR(opt, [JOINT["in turns"](m, opt), JOINT["in turns"](m, opt)], [5]),
    "turns in a chain": lambda m, opt: m.ChainedScheduler([JOINT["in turns"](m, opt), MADE["exponential"](m, opt)]),
    "a chain of chains": lambda m, opt: m.ChainedScheduler([JOINT["both"](m, opt), JOINT["both"](m, opt)]),
}
PLATEAU = {"plateau": lambda m, opt: m.ReduceLROnPlateau(opt, factor=0.3, patience=1, min_lr=[0.01, 0.1])}
ALL = MADE | JOINT | NESTED | PLATEAU


def optimizer(lib=norch, kind="SGD", rate=1.0):
    def p():
        return lib.nn.Parameter(lib.ones(1))

    more = {"momentum": 0.5} if kind == "SGD" else {}
    return getattr(lib.optim, kind)([{"params": [p()]}, {"params": [p()], "lr": 0.3}], lr=rate, **more)


def options(opt):
    """The rates and momenta of all groups."""
    return [float(x) for g in opt.param_groups for x in (g["lr"], g["momentum"] if "momentum" in g else g["betas"][0])]


def run(opt, schedule, steps):
    found = []
    for _ in range(steps):
        opt.step()
        schedule.step(*([1.0] if "Plateau" in type(schedule).__name__ else []))
        found.append(options(opt))
    return found


def close(a, b, rel=1e-9):
    assert len(a) == len(b)
    for one, other in zip(a, b):
        assert one == pytest.approx(other, rel=rel, abs=1e-12)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", [*MADE, "both"])
def test_last_epoch_resumes_at_any_epoch(name, kind):
    def made(opt, **k):
        if name == "both":
            return S.ChainedScheduler([MADE["cosine"](S, opt, **k), MADE["constant"](S, opt, **k)])
        return MADE[name](S, opt, **k)

    opt = optimizer(kind=kind)
    schedule = made(opt)
    for epoch in range(1, 13):
        now = run(opt, schedule, 1)[0]
        again = optimizer(kind=kind)
        again.load_state_dict(copy.deepcopy(opt.state_dict()))
        resumed = made(again, last_epoch=epoch - 1)
        assert options(again) == pytest.approx(now, rel=1e-12)
        assert resumed.get_last_lr() == pytest.approx(schedule.get_last_lr(), rel=1e-12)
        whole = optimizer(kind=kind)
        straight = made(whole)
        run(whole, straight, epoch)
        close(run(again, resumed, 5), run(whole, straight, 5))


SWA = {
    "averaged": lambda m, opt, **k: swa_utils(m).SWALR(opt, 0.05, 4, **k),
    "averaged at once": lambda m, opt, **k: swa_utils(m).SWALR(opt, [0.05, 0.1], 0, "linear", **k),
}
RESUMED = {
    "constant and exponential": ("constant", "exponential"),
    "exponential and steps": ("exponential", "steps"),
    "cosine and averaged": ("cosine", "averaged"),
    "polynomial, factors and step": ("polynomial", "factors", "step"),
}


def chain(names):
    return lambda m, opt, **k: m.ChainedScheduler([(MADE | SWA)[name](m, opt, **k) for name in names])


def swa_utils(schedules):
    return (norch if schedules is S else torch_or_skip()).optim.swa_utils


@pytest.mark.parametrize("size", ["number", "tensor"])
@pytest.mark.parametrize("saved", ["before step()", "after step()"])
@pytest.mark.parametrize("name", [*MADE, *SWA, *RESUMED])
def test_a_resumed_epoch_has_the_rate_of_the_uninterrupted_run(name, saved, size):
    """last_epoch is the last epoch that was trained; the state was saved before step() wrote the rate of the next one,
    as PyTorch's recurrences want it, or after."""
    make = chain(RESUMED[name]) if name in RESUMED else (MADE | SWA)[name]
    rate = (lambda: norch.tensor(1.0)) if size == "tensor" else (lambda: 1.0)
    opt = optimizer(rate=rate())
    schedule = make(S, opt)
    rates = [options(opt), *run(opt, schedule, 18)]
    for last in range(13):
        opt = optimizer(rate=rate())
        schedule = make(S, opt)
        run(opt, schedule, last + (saved == "after step()"))
        again = optimizer(rate=rate())
        again.load_state_dict(copy.deepcopy(opt.state_dict()))
        resumed = make(S, again, last_epoch=last)
        assert name in RESUMED or resumed.last_epoch == last + 1
        assert resumed.get_last_lr() == pytest.approx(options(again)[::2])
        close([options(again), *run(again, resumed, 4)], rates[last + 1 : last + 6], 1e-5 if size == "tensor" else 1e-9)


@pytest.mark.parametrize("name", ["step", "steps", "constant", "lambda", "triangles"])
def test_a_state_saved_before_the_step_resumes_as_in_torch(torch, name):
    """Of these schedules; PyTorch's recurrences of the others keep the rate that they find."""

    def rates(lib, last):
        opt = optimizer(lib)
        run(opt, MADE[name](lib.optim.lr_scheduler, opt), last)
        again = optimizer(lib)
        again.load_state_dict(opt.state_dict())
        resumed = MADE[name](lib.optim.lr_scheduler, again, last_epoch=last)
        return [options(again), *run(again, resumed, 4)]

    for last in range(13):
        close(rates(norch, last), rates(torch, last))


@pytest.mark.parametrize(
    ("found", "before", "now", "rate"),
    [
        (1.0, 1.0, 0.5, 0.5), (0.5, 1.0, 0.5, 0.5), (0.9, 1.0, 0.5, 0.9), (0.0, 0.0, 0.1, 0.1),
        (1 + 5e-7, 1.0, 0.5, 0.5), (1.0, 1.0 + 4e-7, 1.0 + 1e-7, 1.0), (norch.tensor(0.1), 0.1, 0.05, 0.05),
        (0.75, 1.0, 0.5, 0.75),
    ],
)  # fmt: skip
def test_the_next_rate_follows_that_of_the_epoch_before(found, before, now, rate):
    assert next_rates([found], [before], [now]) == [rate]
    with pytest.raises(ValueError, match="shorter|longer"):
        next_rates([found], [before], [])


def test_a_rate_that_the_user_has_changed_is_kept():
    opt = optimizer()
    schedule = MADE["step"](S, opt)
    run(opt, schedule, 4)
    opt.param_groups[0]["lr"] = 0.75
    MADE["step"](S, opt, last_epoch=4)
    assert [group["lr"] for group in opt.param_groups] == [0.75, 0.15]


@pytest.mark.parametrize("name", ["in turns", "cycles in turns", "chain first", "chain later", "turns in turns"])
def test_schedules_in_turn_resume_by_last_epoch(name):
    made = (JOINT | NESTED)[name]
    for epoch in range(1, 12):
        opt = optimizer()
        schedule = made(S, opt)
        run(opt, schedule, epoch)
        again = optimizer()
        again.load_state_dict(copy.deepcopy(opt.state_dict()))
        parts = made(S, again)
        resumed = S.SequentialLR(again, parts._schedulers, parts._milestones, last_epoch=epoch - 1)
        assert resumed.last_epoch == epoch
        close([options(again), *run(again, resumed, 4)], [options(opt), *run(opt, schedule, 4)])
        jumped = made(S, again)
        with pytest.warns(UserWarning, match="epoch"):
            jumped.step(epoch)
        assert jumped.last_epoch == epoch and not norch.optim.Optimizer._opt_called


@pytest.mark.parametrize("order", ["optimizer last", "optimizer first", "optimizer before the constructor"])
@pytest.mark.parametrize("name", ALL)
def test_states_resume_at_any_epoch(name, order):
    for epoch in (1, 4, 5, 8):
        opt = optimizer()
        schedule = ALL[name](S, opt)
        run(opt, schedule, epoch)
        states = copy.deepcopy([opt.state_dict(), schedule.state_dict()])
        again = optimizer()
        if order == "optimizer before the constructor":
            again.load_state_dict(states[0])
        resumed = ALL[name](S, again)
        if order == "optimizer first":
            again.load_state_dict(states[0])
        resumed.load_state_dict(states[1])
        if order == "optimizer last":
            again.load_state_dict(states[0])
        close([options(again), *run(again, resumed, 5)], [options(opt), *run(opt, schedule, 5)])


@pytest.mark.parametrize("towards", ["ours", "theirs"])
@pytest.mark.parametrize("name", [*MADE, *JOINT, *PLATEAU])
def test_states_go_between_norch_and_torch(torch, name, towards):
    there, here = (torch, norch) if towards == "ours" else (norch, torch)
    for epoch in (1, 4, 7):
        opt, again = optimizer(there), optimizer(here)
        schedule = ALL[name](there.optim.lr_scheduler, opt)
        resumed = ALL[name](here.optim.lr_scheduler, again)
        run(opt, schedule, epoch)
        again.load_state_dict({"state": {}, "param_groups": opt.state_dict()["param_groups"]})
        resumed.load_state_dict(schedule.state_dict())
        close([options(again), *run(again, resumed, 5)], [options(opt), *run(opt, schedule, 5)])


def test_two_cycles_of_one_optimizer_keep_their_bounds():
    opt = optimizer()
    schedule = S.SequentialLR(opt, [S.OneCycleLR(opt, top, 4, pct_start=0.5) for top in (2.0, 1.0)], [4])
    first = [opt.param_groups[0]["lr"]] + [rates[0] for rates in run(opt, schedule, 7)]
    assert first[1] == pytest.approx(2.0) and first[5] == pytest.approx(1.0)


CHAINS = ["step", "steps", "exponential", "linear", "constant", "polynomial", "cosine"]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("epoch", [0, 3, 4, 6])
def test_a_group_that_is_added_goes_on_from_its_rate(torch, name, epoch):
    if (name, epoch) == ("cosine", 4):
        pytest.skip("PyTorch raises where the cosine turns")

    def rates(lib):
        opt = optimizer(lib)
        schedule = MADE[name](lib.optim.lr_scheduler, opt)
        run(opt, schedule, epoch)
        opt.add_param_group({"params": [lib.nn.Parameter(lib.ones(1))], "lr": 0.25})
        return run(opt, schedule, 1 if name == "cosine" else 6)

    close(rates(norch), rates(torch))


@pytest.mark.parametrize("name", [name for name in MADE if name not in CHAINS])
def test_a_group_that_is_added_raises_where_each_has_its_options(name):
    opt = optimizer()
    schedule = MADE[name](S, opt)
    run(opt, schedule, 2)
    opt.add_param_group({"params": [norch.nn.Parameter(norch.ones(1))], "lr": 0.25})
    before, state = options(opt), copy.deepcopy(schedule.state_dict().get("T_cur"))
    with pytest.raises(ValueError, match="(was made for 2 parameter groups, and the optimizer has 3|argument 2)"):
        schedule.step()
    assert options(opt) == before and schedule.last_epoch == 2
    assert schedule.state_dict().get("T_cur") == state


def test_a_joint_schedule_takes_in_a_group():
    opt = optimizer()
    schedule = NESTED["chain first"](S, opt)
    run(opt, schedule, 1)
    opt.add_param_group({"params": [norch.nn.Parameter(norch.ones(1))], "lr": 0.5})
    run(opt, schedule, 1)
    assert opt.param_groups[2]["lr"] == pytest.approx(0.45) and len(schedule.get_last_lr()) == 3


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", ALL)
def test_a_rate_that_is_a_tensor_is_filled_in_place(name, kind):
    rate = norch.tensor(1.0)
    opt, plain = optimizer(kind=kind, rate=rate), optimizer(kind=kind)
    schedule, other = ALL[name](S, opt), ALL[name](S, plain)
    assert opt.param_groups[0]["lr"] is rate
    for _ in range(10):
        close(run(opt, schedule, 1), run(plain, other, 1), rel=1e-6)
        assert opt.param_groups[0]["lr"] is rate and rate.item() == schedule.get_last_lr()[0].item()
    last = schedule.get_last_lr()[0]
    run(opt, schedule, 1)
    assert last is not schedule.get_last_lr()[0] and last is not rate
    again = optimizer(kind=kind, rate=norch.tensor(1.0))
    resumed = ALL[name](S, again)
    resumed.load_state_dict(schedule.state_dict())
    again.load_state_dict(opt.state_dict())
    run(again, resumed, 3)
    assert rate.item() == schedule.get_last_lr()[0].item()  # the two share no tensor


def test_groups_share_a_tensor_while_their_rates_agree():
    rate = norch.tensor(1.0)
    groups = [{"params": [norch.ones(1, requires_grad=True)]} for _ in range(2)]
    opt = optim.SGD(groups, lr=rate, momentum=0.9)
    run(opt, S.ExponentialLR(opt, 0.5), 1)
    assert opt.param_groups[1]["lr"] is rate and rate.item() == 0.5
    run(opt, S.OneCycleLR(opt, [2.0, 1.0], 9), 2)
    assert opt.param_groups[0]["lr"].item() == pytest.approx(2 * opt.param_groups[1]["lr"].item(), rel=1e-6)


@pytest.mark.parametrize("name", ["turns in a chain", "a chain of chains"])
def test_chains_of_joint_schedules_match_torch(torch, name):
    found = [run(opt, ALL[name](lib.optim.lr_scheduler, opt), 9) for lib in (norch, torch) for opt in [optimizer(lib)]]
    close(*found)


def test_joint_schedules_within_a_sequence():
    """Worked out by hand: a schedule starts at its epoch 0 from the initial rate, the parts of a chain one after the
    other. PyTorch counts the first epoch twice, and cannot begin a chain later."""

    def rates(name):
        opt = optimizer()
        schedule = NESTED[name](S, opt)
        return [opt.param_groups[0]["lr"]] + [now[0] for now in run(opt, schedule, 8)]

    chain = [(0.5 if epoch < 5 else 1) * 0.9**epoch for epoch in range(9)]
    assert rates("chain first") == pytest.approx(chain[:4] + [1.0] * 5)
    assert rates("chain later") == pytest.approx([1.0] * 4 + chain[:5])
    turns = [0.1, 0.2125, 0.325]
    turns += [turns[-1] / 2, turns[-1] / 2 * 2 / 3]
    assert rates("turns in turns") == pytest.approx([*turns, *turns[:4]])


@pytest.mark.parametrize("name", MADE)
def test_an_order_that_skips_a_rate_warns_as_in_torch(torch, name):
    def warned(lib):
        opt = optimizer(lib)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            schedule = MADE[name](lib.optim.lr_scheduler, opt)
            schedule.step()
            opt.step()
            schedule.step()
        return len(found)

    assert warned(norch) == warned(torch) == (name != "restarts")


def test_no_order_that_is_right_warns():
    class Own(optim.Optimizer):
        def step(self, closure=None):
            pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (optim.SGD, optim.Adam, optim.LBFGS, optim.ASGD, optim.RMSprop, lambda p: Own(p, {"lr": 1.0})):
            opt = kind([norch.ones(1, requires_grad=True)])
            schedule = S.ExponentialLR(opt, 0.9)
            opt.step(lambda: norch.zeros(1))
            schedule.step()


def test_a_captured_step_reads_the_rate_of_the_schedule():
    for rate in (1.0, norch.tensor(1.0)):
        w = norch.ones(1, requires_grad=True)
        opt = optim.SGD([w], lr=rate)
        schedule = S.ExponentialLR(opt, 0.5)

        @norch.capture(strict=False)
        def step(opt=opt, w=w):
            opt.zero_grad()
            w.sum().backward()
            opt.step()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "capture: step is not recorded")  # of a tensor Python reads the element
            for epoch in range(6):
                before = w.item()
                step()
                assert before - w.item() == 0.5**epoch
                schedule.step()


@pytest.mark.parametrize("name", [*CHAINS, "lambda"])
def test_step_to_an_epoch_takes_the_closed_form(torch, name):
    def rates(lib):
        opt = optimizer(lib)
        schedule = MADE[name](lib.optim.lr_scheduler, opt)
        for epoch in (3, 7, 2, None, None):
            opt.step()
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                schedule.step(epoch)
            yield [len(found), *options(opt)]

    close(list(rates(norch)), list(rates(torch)))


def test_restarts_take_parts_of_epochs(torch):
    def rates(lib):
        opt = optimizer(lib)
        schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 2, 2)
        for epoch in (0.25, 0.75, 1.5, 2.5, None, None, 7.5, None, 1):
            schedule.step(epoch)
            yield [schedule.last_epoch, *options(opt)]

    close(list(rates(norch)), list(rates(torch)))
    opt = optimizer()
    schedule = S.CosineAnnealingWarmRestarts(opt, 1, 3)
    schedule.step(121)  # the sixth cycle begins; PyTorch's logarithm rounds it into the fifth
    assert opt.param_groups[0]["lr"] == 1.0
    with pytest.raises(norch.ArgumentError, match="epoch -1 is negative"):
        schedule.step(-1)


def test_a_step_that_raises_changes_nothing():
    opt = optimizer()
    schedule = S.OneCycleLR(opt, 1.0, 3)
    run(opt, schedule, 3)
    before = options(opt)
    for _ in range(2):
        with pytest.raises(norch.ArgumentError, match="OneCycleLR: step 4 of 3"):
            schedule.step()
    assert options(opt) == before and (schedule.last_epoch, schedule._step_count) == (3, 4)


@pytest.mark.parametrize(
    ("error", "match", "make"),
    [
        (ValueError, "different optimizers", lambda o, q: S.SequentialLR(o, [S.StepLR(o, 2), S.StepLR(q, 2)], [1])),
        (ValueError, "different optimizers", lambda o, q: S.SequentialLR(q, [S.StepLR(o, 2)], [])),
        (ValueError, "different optimizers", lambda o, q: S.ChainedScheduler([S.StepLR(o, 2)], optimizer=q)),
        (ValueError, "ReduceLROnPlateau", lambda o, q: S.ChainedScheduler([S.StepLR(o, 2), S.ReduceLROnPlateau(o)])),
        (ValueError, "ReduceLROnPlateau", lambda o, q: S.SequentialLR(o, [S.ReduceLROnPlateau(o)], [])),
        (TypeError, "number 0 is int", lambda o, q: S.SequentialLR(o, [1], [])),
        (TypeError, "number 0 is SGD", lambda o, q: S.ChainedScheduler([o])),
        (ValueError, "at least one", lambda o, q: S.SequentialLR(o, [], [])),
        (ValueError, "2 schedules and 0 milestones", lambda o, q: S.SequentialLR(o, [S.StepLR(o, 2)] * 2, [])),
        (
            ValueError,
            r"milestones \[3, 1\] must not decrease",
            lambda o, q: S.SequentialLR(o, [S.StepLR(o, 2)] * 3, [3, 1]),
        ),
        (ValueError, "step_size 0", lambda o, q: S.StepLR(o, 0)),
        (ValueError, "T_max 0", lambda o, q: S.CosineAnnealingLR(o, 0)),
        (ValueError, "total_iters 0", lambda o, q: S.PolynomialLR(o, 0)),
        (ValueError, "step_size_up 0", lambda o, q: S.CyclicLR(o, 0.1, 1.0, 0)),
        (ValueError, "total_steps 0", lambda o, q: S.OneCycleLR(o, 1.0, 0)),
        (ValueError, "no momentum", lambda o, q: S.OneCycleLR(optim.Adagrad([norch.ones(1)]), 1.0, 9)),
        (TypeError, "lr_lambda must be a function, not float", lambda o, q: S.LambdaLR(o, 0.5)),
        (TypeError, "expected an optimizer", lambda o, q: S.OneCycleLR(None, 1.0, 9)),
        (TypeError, "expected an optimizer", lambda o, q: S.CyclicLR(None, 0.1, 1.0)),
    ],
)
def test_what_cannot_be_scheduled_raises(error, match, make):
    opt = optimizer()
    before = options(opt)
    with pytest.raises(error, match=match):
        make(opt, optimizer())
    assert options(opt) == before


def test_get_lr_outside_a_step_warns():
    schedule = S.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
