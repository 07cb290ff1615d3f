"""norch.utils.lr_find: the curve, the suggestion, and that model and optimizer are afterwards what they were."""

import copy
import math

import pytest

import norch
from norch import nn, optim
from norch.utils import lr_find
from norch.utils._lr_find import LRCurve
from norch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.host


def problem(seed=0):
    norch.manual_seed(seed)
    x = norch.randn(64, 4)
    y = x @ norch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    return DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


def everything(model, optimizer):
    """All that a test may change: values, and which objects they are."""
    tensors = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters() if p.grad is not None)]
    entries = [
        (id(p), {name: value.tolist() if isinstance(value, norch.Tensor) else value for name, value in entry.items()})
        for p, entry in optimizer.state.items()
    ]
    groups = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    return (
        [(id(t), t.tolist()) for t in tensors],
        entries,
        [id(group) for group in optimizer.param_groups],
        copy.deepcopy(groups),
        [m.training for m in model.modules()],
        norch.get_rng_state().tolist(),
    )


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.3, momentum=0.9), lambda p: optim.Adam(p, lr=0.01)])
@pytest.mark.parametrize("steps", [0, 3])
def test_all_is_afterwards_what_it_was(make, steps):
    loader, loss_fn = problem(), nn.MSELoss()
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 1))
    model[2].eval()
    optimizer = make(model.parameters())
    for x, y in list(loader)[:steps]:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    before = everything(model, optimizer)
    curve = lr_find(model, loss_fn, optimizer, loader, num_iter=30)
    assert everything(model, optimizer) == before
    assert len(curve.lrs) > 5 and curve.raw_losses[0] != curve.raw_losses[-1]

    def breaks(out, y):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lr_find(model, breaks, optimizer, loader)
    assert everything(model, optimizer) == before


def test_training_goes_on_as_if_nothing_had_been():
    results = []
    for look in (False, True):
        loader = problem(1)
        model = nn.Linear(4, 1)
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        for epoch in range(2):
            if look and epoch == 1:
                lr_find(model, nn.MSELoss(), optimizer, loader)
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
        results.append([p.tolist() for p in model.parameters()])
    assert results[0] == results[1]


def test_rates_grow_by_one_factor_and_the_mean_is_corrected():
    seen = []
    model = nn.Linear(1, 1)
    optimizer = optim.SGD([{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.01}])
    x = norch.ones(2, 1)

    def loss_fn(out, y):
        seen.append([group["lr"] for group in optimizer.param_groups])
        return (out - y).square().mean()

    curve = lr_find(model, loss_fn, optimizer, [(x, x)], start_lr=1e-5, end_lr=1e-3, num_iter=5, beta=0.5)
    assert curve.lrs == pytest.approx([1e-5, 10**-4.5, 1e-4, 10**-3.5, 1e-3])
    assert [pair[0] for pair in seen] == curve.lrs
    assert [pair[1] for pair in seen] == pytest.approx([0.1 * lr for lr in curve.lrs])
    a, b = curve.raw_losses[:2]
    assert curve.losses[:2] == pytest.approx([a, (0.25 * a + 0.5 * b) / 0.75]) and not curve.diverged
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]


def test_it_stops_where_the_loss_diverges():
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    curve = lr_find(model, nn.MSELoss(), optimizer, problem(), end_lr=1e3, diverge=4)
    assert curve.diverged and len(curve.lrs) < 100
    best = [min(curve.losses[: i + 1]) for i in range(len(curve.losses))]
    large = [loss > 4 * least for loss, least in zip(curve.losses[1:], best)]
    assert large == [False] * (len(large) - 1) + [True]
    # the largest stable rate of gradient descent on this quadratic is 2 / the largest curvature, about 1
    assert 1e-3 < curve.suggestion < 1
    nan = lr_find(model, lambda out, y: out.sum() * math.nan, optimizer, problem())
    assert nan.diverged and len(nan.lrs) == 1 and nan.suggestion is None
    assert model.weight.isfinite().all()


def test_the_suggestion_is_where_the_curve_falls_steepest():
    lrs = [10 ** (-4 + i / 10) for i in range(40)]
    losses = [1 / (1 + math.exp(4 * (math.log10(lr) + 2))) + 10 * max(math.log10(lr) + 1, 0) for lr in lrs]
    curve = LRCurve(lrs, losses, losses, False)
    assert curve.suggestion == pytest.approx(1e-2)
    assert LRCurve(lrs, lrs, lrs, False).suggestion is None
    assert "suggestion 1.00e-02" in repr(curve)


def test_the_plot(monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    lrs = [10.0**i for i in range(-6, 0)]
    curve = LRCurve(lrs, lrs, [6.0, 5.5, 3.0, 2.5, 2.4, 9.0], True)
    ax = curve.plot()
    assert ax.get_xscale() == "log" and list(ax.lines[0].get_xdata()) == lrs
    assert list(ax.lines[1].get_xdata()) == [curve.suggestion] == [1e-5]
    assert curve.plot(ax) is ax
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot: needs matplotlib: `pip install 'norch-dl\[examples\]'`"):
        curve.plot()


@pytest.mark.parametrize(
    ("error", "options", "text"),
    [
        (norch.ArgumentError, {"start_lr": 0.0}, "0 < start_lr < end_lr is required, not 0.0 and 10.0"),
        (norch.ArgumentError, {"start_lr": 2, "end_lr": 1}, "0 < start_lr < end_lr is required, not 2 and 1"),
        (norch.ArgumentError, {"num_iter": 1}, "num_iter 1 must be above 1"),
        (norch.ArgumentError, {"beta": 1.0}, r"beta 1.0 in \[0, 1\)"),
        (norch.ArgumentError, {"loader": []}, "lr_find: the loader has no batches"),
        (TypeError, {"loader": [norch.ones(2, 4)]}, r"a batch must be a tuple or list \(inputs .*\), not Tensor"),
        (norch.ArgumentError, {"loss_fn": lambda out, y: out}, r"a tensor of one number, not shape \(16, 1\)"),
        (norch.ArgumentError, {"loss_fn": lambda out, y: 1.0}, "a tensor of one number, not float"),
    ],
)
def test_messages(error, options, text):
    model = nn.Linear(4, 1)
    given = {"loss_fn": nn.MSELoss(), "loader": problem(), **options}
    with pytest.raises(error, match=text):
        lr_find(model, given.pop("loss_fn"), optim.SGD(model.parameters(), lr=0.1), given.pop("loader"), **given)
