"""Adafactor and Muon, whose steps see a parameter as a whole, against PyTorch where it is installed. ASGD and what all
optimizers share: test_optim.py."""

import copy
import inspect

import numpy as np
import pytest

import norch
from norch import nn, optim

SHAPES = {"Adafactor": [(3, 4), (), (37,), (2, 1, 3), (1,)], "Muon": [(3, 4), (5, 2), (1, 1), (6, 6)]}
CASES = [
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.3, "beta2_decay": -0.5, "eps": (0.1, 0.5), "d": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"lr": 0.1, "eps": (None, 0.0)}),
    ("Muon", {"lr": 0.1}),
    ("Muon", {"lr": 0.1, "nesterov": False, "weight_decay": 0.5, "momentum": 0.5, "ns_steps": 2}),
    ("Muon", {"lr": 0.1, "ns_coefficients": (2.0, -1.5, 0.5), "eps": 10.0, "adjust_lr_fn": "match_rms_adamw"}),
]


def step_both(torch, name, options, dtype):
    """Pairs of parameters after six steps of both; one parameter misses a gradient at times, the rate changes."""
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal(shape).astype(dtype) for shape in SHAPES[name]]
    ours = [nn.Parameter(norch.tensor(start)) for start in starts]
    theirs = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
    a, b = getattr(optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
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
    return a, b, ours, theirs


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matches_torch(torch, name, options, dtype):
    a, b, ours, theirs = step_both(torch, name, options, dtype)
    tolerance = {"Muon": 2e-2, "Adafactor": 1e-5 if dtype == "float32" else 1e-10}[name]  # Muon's in bfloat16
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
        mine, its = a.state[p], b.state[q]
        assert set(mine) == set(its)
        for key, value in its.items():
            if key == "step":
                assert mine[key] == value.item()
            else:
                np.testing.assert_allclose(mine[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_options_and_states_are_those_of_torch(torch, name):
    a, b, ours, theirs = step_both(torch, name, {}, "float32")
    assert repr(a) == repr(b)
    given, wanted = (list(inspect.signature(type(o)).parameters.values()) for o in (a, b))
    assert [(p.name, p.kind, p.default) for p in given] == [(p.name, p.kind, p.default) for p in wanted]
    state = b.state_dict()
    for entry in state["state"].values():
        entry.update({key: norch.from_numpy(value.numpy()) for key, value in entry.items()})
    fresh = getattr(optim, name)([nn.Parameter(p.detach().clone()) for p in ours], lr=1.0)
    fresh.load_state_dict(state)
    a.load_state_dict(copy.deepcopy(fresh.state_dict()))
    for opt in (a, fresh):
        for p in opt.param_groups[0]["params"]:
            p.grad = norch.ones_like(p)
        opt.step()
    for p, q in zip(ours, fresh.param_groups[0]["params"], strict=True):
        assert p.tolist() == q.tolist()
    wrong = copy.deepcopy(fresh.state_dict())
    key = "row_var" if name == "Adafactor" else "momentum_buffer"
    wrong["state"][0][key] = norch.zeros(3, 3)
    with pytest.raises(norch.ShapeError, match=f"'{key}' has shape"):
        fresh.load_state_dict(wrong)


def test_muon_replaces_singular_values():
    g = norch.tensor([[3.0, 1.0, 0.0], [-1.0, 0.5, 2.0]], dtype=norch.float64)
    p = nn.Parameter(norch.zeros(2, 3, dtype=norch.float64))
    p.grad = g
    optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    u, _, vt = np.linalg.svd(g.numpy(), full_matrices=False)
    found = -(u.T @ p.detach().numpy() @ vt.T)
    assert np.allclose(found, np.diag(np.diag(found)), atol=0.02) and (abs(np.diag(found) - 1) < 0.35).all()


@pytest.mark.parametrize("name", SHAPES)
def test_empty_and_narrow_parameters(name):
    empty, half = nn.Parameter(norch.zeros(0, 2)), nn.Parameter(norch.ones(2, 2, dtype=norch.bfloat16))
    opt = getattr(optim, name)([empty, half], lr=0.5)
    for p in (empty, half):
        p.grad = norch.ones_like(p)
    opt.step()
    assert half.dtype == norch.bfloat16 and half.sum().item() < 4 and empty.shape == (0, 2)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adafactor", {"lr": -1.0}),
        ("Adafactor", {"eps": 0.1}),
        ("Adafactor", {"eps": (-1.0, 0.1)}),
        ("Adafactor", {"eps": (None, -0.1)}),
        ("Adafactor", {"d": 0.5}),
        ("Adafactor", {"beta2_decay": 0.5}),
        ("Adafactor", {"weight_decay": -0.5}),
        ("Muon", {"lr": -1.0}),
        ("Muon", {"momentum": -1.0}),
        ("Muon", {"adjust_lr_fn": "other"}),
        ("Muon", {"ns_steps": 100}),
        ("Muon", {"ns_coefficients": (1.0, 2.0)}),
    ],
)
def test_bad_options_raise(name, options):
    p = nn.Parameter(norch.ones(2, 2))
    with pytest.raises(ValueError, match=next(iter(options))):
        getattr(optim, name)([p], **options)
    with pytest.raises(ValueError, match=r"shape \(2,\) is not a matrix"):
        optim.Muon([nn.Parameter(norch.ones(2))])


def test_hooks_of_the_steps_of_all_optimizers():
    seen = []
    early = norch.optim.SGD([norch.ones(1, requires_grad=True)])
    early.register_step_pre_hook(lambda *_: seen.append("own before"))
    early.register_step_post_hook(lambda *_: seen.append("own after"))
    register = norch.optim.optimizer
    with (
        register.register_optimizer_step_pre_hook(lambda opt, args, kwargs: seen.append("before")),
        register.register_optimizer_step_post_hook(lambda opt, args, kwargs: seen.append("after")),
    ):
        early.step()
        assert seen == ["before", "own before", "own after", "after"]
        late = norch.optim.Adam([norch.ones(1, requires_grad=True)])
        for opt in (late, copy.deepcopy(late)):
            seen.clear()
            opt.step()
            assert seen == ["before", "after"]
    seen.clear()
    late.step()
    early.step()
    assert seen == ["own before", "own after"]


@pytest.mark.parametrize("when", ["pre", "post"])
def test_one_hook_of_the_steps_of_all_optimizers(when):
    seen = []
    with getattr(norch.optim.optimizer, f"register_optimizer_step_{when}_hook")(lambda *_: seen.append(when)):
        norch.optim.SGD([norch.ones(1, requires_grad=True)]).step()
    assert seen == [when]
