"""norch.optim: every option of the optimizers against PyTorch where it is installed, single steps against
closed forms, groups, saved state and errors. Schedules: test_lr_scheduler.py."""

import copy
import gc
import inspect
import math

import numpy as np
import pytest

import norch
from norch import nn, optim
from norch._binding.library import lib


def parameter(values, grad=None, dtype=None):
    p = nn.Parameter(norch.tensor(values, dtype=dtype))
    if grad is not None:
        p.grad = norch.tensor(grad, dtype=dtype)
    return p


def close(ours, theirs, tolerance=1e-6):
    theirs = theirs.detach().numpy() if hasattr(theirs, "detach") else theirs
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=tolerance, atol=tolerance)


CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"maximize": True, "eps": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.8, "centered": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.3, "rho": 0.5, "eps": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.7)}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99)}),  # corrected from the sixth step
    ("RAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1, "betas": (0.5, 0.8)}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
]
NAMES = list(dict.fromkeys(name for name, _ in CASES))


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matches_torch(torch, name, options, dtype):
    """Six steps over several shapes; one parameter misses a gradient at times, the rate changes midway."""
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal(shape).astype(dtype) for shape in [(3, 4), (), (0, 2), (37,)]]
    ours = [nn.Parameter(norch.tensor(start)) for start in starts]
    theirs = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
    a, b = getattr(optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    exact = 1e-12 if name not in ("ASGD", "NAdam") else 1e-7  # PyTorch keeps a factor of theirs in float32
    for step in range(6):
        for index, start in enumerate(starts):
            grad = rng.standard_normal(start.shape).astype(dtype)
            skip = index == 0 and step in (0, 3)
            ours[index].grad = None if skip else norch.tensor(grad)
            theirs[index].grad = None if skip else torch.tensor(grad)
        if step == 4:
            a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = 0.01
        a.step()
        b.step()
        for p, q in zip(ours, theirs, strict=True):
            close(p, q, 1e-5 if dtype == "float32" else exact)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_complex_parameter_is_stepped_as_a_pair_of_real_ones(name, options):
    rng = np.random.default_rng(0)
    pair = nn.Parameter(norch.tensor(rng.standard_normal((3, 2))))
    whole = nn.Parameter(norch.view_as_complex(pair.detach().clone()))
    a, b = getattr(optim, name)([whole], **options), getattr(optim, name)([pair], **options)
    for _ in range(4):
        pair.grad = norch.tensor(rng.standard_normal((3, 2)))
        whole.grad = norch.view_as_complex(pair.grad.clone())
        a.step()
        b.step()
        close(norch.view_as_real(whole.detach()), pair, 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_torch(torch, name):
    """Their names, their order and their values in the groups, and how they print."""
    ours = getattr(optim, name)([parameter([1.0])])
    theirs = getattr(torch.optim, name)([torch.ones(1, requires_grad=True)])
    assert repr(ours) == repr(theirs)
    given = list(inspect.signature(type(ours)).parameters.values())
    wanted = list(inspect.signature(type(theirs)).parameters.values())
    assert [(p.name, p.kind, p.default) for p in given] == [(p.name, p.kind, p.default) for p in wanted]
    with pytest.raises(NotImplementedError, match=f"{name}: steps are not differentiable"):
        getattr(optim, name)([parameter([1.0])], differentiable=True)


def test_names_and_rates_in_tensors(torch):
    """named_parameters(), and a learning rate in a tensor."""
    told = []
    for library in (norch, torch):
        net = library.nn.Linear(2, 1)
        library.nn.init.ones_(net.weight)
        opt = library.optim.Adam(net.named_parameters(), lr=library.tensor(0.5))
        net.weight.sum().backward()
        opt.step()
        state = opt.state_dict()["param_groups"][0]
        with pytest.raises(ValueError, match="name|lr"):
            opt.add_param_group({"params": [library.ones(1, requires_grad=True)]})
        with pytest.raises(ValueError, match="name|lr"):
            library.optim.SGD([("a", library.ones(1, requires_grad=True)), library.ones(2, requires_grad=True)])
        with pytest.raises(ValueError, match="name|lr"):
            library.optim.SGD(net.parameters(), lr=library.tensor([0.1, 0.2]))
        told.append((net.weight.tolist()[0], list(state)[:2], state["params"], state.get("param_names")))
    assert told[0][2:] == told[1][2:] == ([0, 1], ["weight", "bias"]) and told[0][0] == pytest.approx(told[1][0])


def hooked(library, p):
    """What the hooks of an optimizer are told, in what order."""
    told = []
    opt = library.optim.SGD([p], lr=0.5)
    handles = [
        opt.register_step_post_hook(lambda o, args, kwargs: told.append(("after", o is opt, len(args), list(kwargs)))),
        opt.register_step_pre_hook(lambda o, args, kwargs: told.append(("before", o is opt, len(args), list(kwargs)))),
        opt.register_state_dict_pre_hook(lambda o: told.append("saves")),
        opt.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}),
        opt.register_state_dict_post_hook(lambda o, state: told.append(sorted(state)), prepend=True),
        opt.register_load_state_dict_pre_hook(lambda o, state: told.append(sorted(state))),
        opt.register_load_state_dict_post_hook(lambda o: told.append("loaded")),
    ]
    opt.step()
    opt.step(lambda: told.append("loss"))
    opt.step(closure=lambda: told.append("loss"))
    opt.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: told.append("given")), kwargs))
    opt.step()
    opt.load_state_dict(opt.state_dict())
    copy.deepcopy(opt).step()
    for handle in handles:
        handle.remove()
    opt.step()
    opt.state_dict()
    return told


def test_hooks_like_torch(torch):
    p, q = parameter([1.0, 2.0], [1.0, 1.0]), torch.ones(2, requires_grad=True)
    q.grad = torch.ones(2)
    told = hooked(norch, p)
    assert told == hooked(torch, q) and len(told) == 16, told
    for wrong in (1, ((), {}, 1)):
        opt = optim.SGD([p])
        opt.register_step_pre_hook(lambda *_, wrong=wrong: wrong)
        with pytest.raises(norch.Error, match="step pre-hook"):
            opt.step()


def test_sgd_by_hand():
    p = parameter([1.0, 2.0], [1.0, -1.0], norch.float64)
    opt = optim.SGD([p], lr=0.1, momentum=0.5, weight_decay=1.0)
    opt.step()  # g = (2, 1), buf = g
    close(p, [0.8, 1.9], 1e-12)
    p.grad = norch.zeros(2, dtype=norch.float64)
    opt.step()  # g = p, buf = 0.5 * buf + g = (1.8, 2.4)
    close(p, [0.62, 1.66], 1e-12)
    close(opt.state[p]["momentum_buffer"], [1.8, 2.4], 1e-12)


def test_adam_by_hand():
    for name, decay in (("Adam", 0.0), ("AdamW", 0.1)):
        p = parameter([1.0, 2.0], [3.0, -4.0], norch.float64)
        opt = getattr(optim, name)([p], lr=0.1, weight_decay=decay, eps=0.0)
        opt.step()
        close(p, [1 * (1 - 0.1 * decay) - 0.1, 2 * (1 - 0.1 * decay) + 0.1], 1e-12)
        assert opt.state[p]["step"] == 1


def test_mixed_dtypes_and_strided_tensors_in_one_group():
    momentum = {"lr": 0.5, "momentum": 0.9}
    kinds = {"SGD": momentum, "Adam": {"lr": 0.5, "amsgrad": True}, "RMSprop": momentum, "Adagrad": {"lr": 0.5}}
    for name, options in kinds.items():
        single = parameter([[1.0, 2.0], [3.0, 4.0]], dtype=norch.float32)
        double = parameter([[1.0, 2.0], [3.0, 4.0]], dtype=norch.float64)
        strided = nn.Parameter(norch.tensor([[1.0, 3.0], [2.0, 4.0]]).T)
        opt = getattr(optim, name)([single, double, strided], **options)
        for _ in range(3):
            opt.zero_grad()
            for p in (single, double, strided):
                # The gradient of sum(p.T * w) comes transposed.
                (p.T * norch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
            opt.step()
        close(single, double.detach().numpy(), 1e-5)
        close(strided, double.detach().numpy(), 1e-5)
        assert single.dtype == norch.float32 and double.dtype == norch.float64


def test_step_trains_in_place_and_counts_as_a_write():
    p = parameter([1.0, 2.0])
    address = p.data_ptr()
    opt = optim.SGD([p], lr=0.1)
    loss = (p * p).sum()
    p.grad = norch.ones(2)
    opt.step()
    assert p.data_ptr() == address and p.is_leaf and p.requires_grad
    with pytest.raises(RuntimeError, match=r"(?i)in.?place"):
        loss.backward()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_step_counts_as_a_write_to_parameters_and_their_state(name, options):
    """In each step, also in those that make the state of a parameter or find it made."""
    p, late, w = parameter([1.0, 2.0], [0.5, 0.5]), parameter([1.0, 2.0]), parameter([3.0, 4.0])
    opt = getattr(optim, name)([p, late], **options)
    for step in range(3):
        if step == 1:
            late.grad = norch.ones(2)  # its state is made beside that of p, which is written
        written = [x for x in (p, late) if x.grad is not None]
        states = [x for p in written for x in opt.state[p].values() if isinstance(x, norch.Tensor) and x.ndim]
        losses = [(w * x).sum() for x in (*written, *states)]
        opt.step()
        for loss in losses:
            with pytest.raises(RuntimeError, match=r"(?i)in.?place"):
                loss.backward()


def test_groups_have_their_own_options():
    a, b, c = (parameter([1.0], [1.0]) for _ in range(3))
    opt = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    opt.add_param_group({"params": [c], "lr": 1.0, "momentum": 0.9})
    opt.step()
    close(norch.stack([a.detach(), b.detach(), c.detach()]).flatten(), [0.9, 0.5, 0.0])
    assert [group["lr"] for group in opt.param_groups] == [0.1, 0.5, 1.0]
    assert b in opt.param_groups[1]["params"] or opt.param_groups[1]["params"][0] is b
    assert list(opt.state) == [c] or len(opt.state) == 1
    text = repr(opt)
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n") and text.endswith(
        "\n)"
    )
    assert text.count("\n\nParameter Group") == 2


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_options_changed_between_steps(name):
    a, b, c = (parameter([1.0], [1.0]) for _ in range(3))
    opt = getattr(optim, name)([a, b], lr=0.5)
    opt.step()
    first, opt.param_groups[0]["lr"] = opt.param_groups[0], 0.25
    opt.param_groups.append({**first, "params": [c], "lr": 0.5})
    opt.step()
    assert a.item() == b.item() < c.item() < 1 and len(opt.param_groups) == 2
    opt.param_groups.pop(0)
    before = a.item(), c.item()
    opt.step()
    assert a.item() == before[0] and c.item() < before[1]
    opt.param_groups = [first, {**first, "params": [c]}]
    opt.step()
    after = a.item(), c.item()
    assert after[0] < before[0]
    for rate in ("a", None, [0.1]):  # said before any group has moved
        opt.param_groups[1]["lr"] = rate
        with pytest.raises(TypeError, match=f"{name}: lr must be a number, not"):
            opt.step()
        assert after == (a.item(), c.item())


def test_zero_grad_and_closure():
    p = parameter([2.0])
    opt = optim.SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with norch.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 4.0
    assert p.tolist() == [1.0]
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    opt.zero_grad()
    assert p.grad is None
    assert opt.step() is None
    assert p.tolist() == [1.0]


@pytest.mark.parametrize("name", NAMES)
def test_saved_state_resumes_exactly(name):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    rng = np.random.default_rng(0)
    grads = [rng.standard_normal(3).astype(np.float32) for _ in range(6)]

    def advance(p, opt, grads):
        for grad in grads:
            p.grad = norch.tensor(grad)
            opt.step()

    p = parameter([1.0, 2.0, 3.0])
    opt = getattr(optim, name)([p], **options)
    advance(p, opt, grads[:3])
    opt.param_groups[0]["lr"] = 0.05
    saved = copy.deepcopy(opt.state_dict())
    q = parameter(p.tolist())
    other = getattr(optim, name)([q], **options)
    group = other.param_groups[0]
    other.load_state_dict(saved)
    assert other.param_groups[0] is group and group["lr"] == 0.05 and group["params"][0] is q
    advance(p, opt, grads[3:])
    advance(q, other, grads[3:])
    assert p.tolist() == q.tolist()
    double = parameter(p.tolist(), dtype=norch.float64)
    third = getattr(optim, name)([double], **options)
    third.load_state_dict(saved)
    assert all(v.dtype == norch.float64 for v in third.state[double].values() if norch.is_tensor(v))


@pytest.mark.parametrize("kind", [set, frozenset])
def test_the_parameters_of_a_group_come_in_an_order(kind):
    with pytest.raises(TypeError, match="not as a set"):
        optim.SGD([{"params": kind([nn.Parameter(norch.ones(1))])}], lr=0.1)


def test_load_state_dict_errors_change_nothing():
    p = parameter([1.0, 2.0], [1.0, 1.0])
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    opt.step()
    good = opt.state_dict()
    assert good["param_groups"][0]["params"] == [0]
    for bad in (
        {**good, "param_groups": good["param_groups"] * 2},
        {**good, "param_groups": [{**good["param_groups"][0], "params": [0, 1]}]},
        {**good, "param_groups": [{**good["param_groups"][0], "lr": -1.0}]},
        {**good, "state": {7: {}}},
        None,
        [*good.items()],
        {**good, "state": {0: {"momentum_buffer": norch.zeros(3)}}},
    ):
        with pytest.raises(ValueError):
            opt.load_state_dict(bad)
        assert opt.param_groups[0]["lr"] == 0.1
        assert opt.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_bad_arguments_raise():
    p = parameter([1.0])
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([], lr=0.1)
    with pytest.warns(UserWarning, match="holds a parameter twice"):
        optim.SGD([p, p], lr=0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([p * 2], lr=0.1)
    with pytest.raises(TypeError, match="iterable"):
        optim.SGD(p, lr=0.1)
    with pytest.raises(TypeError, match="takes Tensors"):
        optim.SGD([1.0], lr=0.1)
    with pytest.raises(TypeError, match="int64"):
        optim.SGD([norch.arange(2)], lr=0.1)
    with pytest.raises(ValueError, match="params"):
        optim.SGD([{"lr": 0.1}])
    for options in (
        {"lr": -1.0},
        {"lr": math.nan},
        {"lr": "a"},
        {"lr": None},
        {"weight_decay": -1.0},
        {"momentum": -1.0},
        {"nesterov": True},
    ):
        with pytest.raises(ValueError):
            optim.SGD([p], **{"lr": 0.1, **options})
    with pytest.raises(ValueError):
        optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.1, nesterov=True)
    for options in ({"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}, {"eps": -1.0}, {"lr": -1.0}):
        with pytest.raises(ValueError):
            optim.Adam([p], **options)
    for etas in ((0.0, 1.2), (0.5, 1.0), (1.0, 1.2)):
        with pytest.raises(ValueError, match="invalid etas"):
            optim.Rprop([p], etas=etas)
    for rate in (-1.0, "a", None):
        with pytest.raises(ValueError, match="invalid lr value"):
            optim.LBFGS([p], lr=rate)
    with pytest.raises(NotImplementedError):
        optim.Optimizer([p], {}).step()


@pytest.mark.parametrize(("name", "option"), [("Adam", "amsgrad"), ("RMSprop", "centered")])
def test_options_that_need_more_state_may_be_set_later(name, option):
    p, late = parameter([1.0, 2.0], [0.5, -1.0]), parameter([3.0])
    opt = getattr(optim, name)([p, late], lr=0.1)
    opt.step()
    opt.param_groups[0][option] = True
    before, late.grad = p.tolist(), norch.ones(1)  # late has no state, p has some of it
    opt.step()
    assert before != p.tolist() and late.item() < 3
    assert [entry["step"] for entry in opt.state.values()] == [2, 1]
    assert len(opt.state[p]) == len(opt.state[late])


@pytest.mark.parametrize("name", NAMES)
def test_ways_to_compute_the_same(name):
    p = parameter([1.0])
    opt = getattr(optim, name)([p], lr=0.1, foreach=True)
    p.square().sum().backward()
    opt.step()
    assert p.item() < 1


def test_an_optimizer_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        @norch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["step"] = state.get("step", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"] / state["step"])

    p = parameter([3.0, -3.0])
    opt = Sign([p])
    for _ in range(2):
        opt.zero_grad()
        p.square().sum().backward()
        opt.step()
    assert p.tolist() == [2.25, -2.25] and opt.state_dict()["state"] == {0: {"step": 2}}


def test_training_fits_a_line_and_frees_everything():
    def run():
        norch.manual_seed(0)
        x = norch.arange(20).to(norch.float32).reshape(20, 1) / 10
        y = x * 3 - 1
        net = nn.Linear(1, 1)
        opt = optim.Adam(net.parameters(), lr=0.1)
        for _ in range(300):
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            opt.step()
        return net.weight.item(), net.bias.item()

    assert run() == pytest.approx((3.0, -1.0), abs=1e-2)
    gc.collect()
    gc.disable()
    try:
        before = lib.norch_live_storages()
        run()
        assert lib.norch_live_storages() == before
    finally:
        gc.enable()


def test_optimizers_can_be_pickled():
    import pickle

    param = norch.nn.Parameter(norch.ones(2))
    optimizer = norch.optim.Adam([param], lr=0.1)
    param.sum().backward()
    optimizer.step()
    again = pickle.loads(pickle.dumps(optimizer))
    assert again.param_groups[0]["lr"] == 0.1
    [param] = again.param_groups[0]["params"]
    param.grad = norch.ones_like(param)
    again.step()


def test_adagrad_has_its_state_before_the_first_step(torch):
    for m in (norch, torch):
        p = m.nn.Parameter(m.zeros(2))
        opt = m.optim.Adagrad([p], initial_accumulator_value=0.5)
        assert opt.state[p]["step"] == 0 and opt.state[p]["sum"].tolist() == [0.5, 0.5]
