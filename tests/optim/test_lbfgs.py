"""norch.optim.LBFGS: steps and line searches against PyTorch, bounded searches, complex parameters, saved state."""

import copy
import math

import pytest

import norch
from norch import nn, optim


def leaf(values):
    return nn.Parameter(norch.tensor(values))


SEARCH = {"line_search_fn": "strong_wolfe"}


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"lr": 0.3, "max_iter": 5, "history_size": 2}, {"max_eval": 4, "lr": 0.1}),
        *(SEARCH, {**SEARCH, "lr": 50.0, "max_iter": 4}, {**SEARCH, "lr": 1e-4, "max_iter": 3, "max_eval": 30}),
    ],
)
def test_lbfgs_matches_torch(torch, options):
    """On a bent valley, with a parameter that has no gradient."""

    def losses(m, dtype):
        x, y, z = (m.nn.Parameter(m.tensor(v, dtype=dtype)) for v in ([-1.0, 0.5], [[1.5]], [1.0]))
        opt = m.optim.LBFGS([x, y, z], **options)

        def closure():
            opt.zero_grad()
            loss = ((1 - x) ** 2).sum() + 3 * (y - x[0] ** 2).square().sum() + x[1] ** 4
            loss.backward()
            return loss

        return [float(opt.step(closure)) for _ in range(4)] + x.tolist() + [opt.state[x]["func_evals"]]

    assert losses(norch, norch.float64) == pytest.approx(losses(torch, torch.float64), rel=1e-6)


@pytest.mark.parametrize("loss_of", ["valley", "line", "hole", "nan"])
def test_line_search_ends(loss_of):
    """In Rosenbrock's valley at its minimum; where there is none, or no number, after a bounded number of calls."""
    p, calls = leaf([-1.2, 1.0]), []

    def closure():
        calls.append(p.tolist())
        opt.zero_grad()
        x, y = p
        loss = {
            "valley": lambda: (1 - x) ** 2 + 100 * (y - x**2) ** 2,
            "line": lambda: x + 2 * y,
            "hole": lambda: (x + 1.2).log1p() + y,
            "nan": lambda: x * math.nan,
        }[loss_of]()
        loss.backward()
        return loss

    opt = optim.LBFGS([p], max_iter=100, max_eval=300, line_search_fn="strong_wolfe")
    opt.step(closure)
    assert len(calls) < 330
    if loss_of == "valley":
        assert p.tolist() == pytest.approx([1.0, 1.0], abs=1e-3)
        assert len(calls) < 80


@pytest.mark.parametrize("options", [{"lr": 0.1}, SEARCH])
def test_lbfgs_steps_complex_parameters_and_loads_their_state(torch, options):
    """The state of complex parameters is real. The state has PyTorch's names, but for what it computes with."""
    seen, states = [], []
    for m in (torch, norch):
        p = m.nn.Parameter(m.tensor([3.0 + 1j, -2.0 + 0.5j], dtype=m.complex128))

        def closure(p=p):
            p.grad = None
            loss = (p.abs() ** 4).sum() + (p - 1).abs().square().sum()
            loss.backward()
            return loss

        opt = m.optim.LBFGS([p], max_iter=3, **options)
        for step in range(4):
            opt.step(closure)
            if len(seen) == 1 and step == 1:
                opt.load_state_dict(copy.deepcopy(opt.state_dict()))
        seen.append(p.tolist())
        states.append(opt.state_dict()["state"][0])
    assert seen[1] == pytest.approx(seen[0], rel=1e-9)
    assert states[0].keys() - {"al"} == states[1].keys() and states[1]["d"].dtype == norch.float64


def test_lbfgs_goes_on_from_saved_state_and_says_what_it_has_not():
    p = leaf([3.0, -2.0])

    def closure():
        p.grad = None
        loss = (p**4).sum()
        loss.backward()
        return loss

    opt = optim.LBFGS([p], lr=0.1, max_iter=3)
    opt.step(closure)
    q, other = leaf(p.tolist()), None
    p, saved, old = q, copy.deepcopy(opt.state_dict()), p
    other = optim.LBFGS([p], lr=0.1, max_iter=3)
    other.load_state_dict(saved)
    other.step(closure)
    p = old
    opt.step(closure)
    assert p.tolist() == pytest.approx(q.tolist(), rel=1e-6)
    with pytest.raises(ValueError, match="line_search_fn is None or 'strong_wolfe', not 'armijo'"):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(ValueError, match="one group"):
        optim.LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match="invalid lr"):
        optim.LBFGS([p], lr=-1)
    with pytest.raises(TypeError, match="closure"):
        opt.step()
