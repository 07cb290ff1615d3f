"""nn.utils.prune against PyTorch where it is installed."""

import importlib
import pickle

import numpy as np
import pytest

import norch
from norch import nn
from norch.nn.utils import prune

SHAPES = {"Linear": (6, 4), "Conv2d": (3, 4, 2)}


def pair(torch, kind):
    """A layer of both, with the same weights, all of different magnitude."""
    importlib.import_module("torch.nn.utils.prune")
    ours, theirs = (getattr(m.nn, kind)(*SHAPES[kind]) for m in (norch, torch))
    rng = np.random.default_rng(0)
    for name, param in ours.named_parameters():
        values = (rng.permutation(param.numel()) + 1.0) * rng.choice([-1, 1], param.numel()) / 10
        values = values.reshape(tuple(param.shape)).astype("float32")
        param.data = norch.tensor(values)
        getattr(theirs, name).data = torch.tensor(values)
    return ours, theirs


def same(ours, theirs):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in ours.state_dict().items():
        assert value.numpy().tolist() == theirs.state_dict()[key].numpy().tolist(), key
    assert ours.weight.tolist() == theirs.weight.tolist()
    kinds = [[type(one).__name__ for one in m._forward_pre_hooks.values()] for m in (ours, theirs)]
    assert kinds[0] == kinds[1]


STEPS = [
    [("l1_unstructured", ("weight", 0.3), {})],
    [
        ("l1_unstructured", ("weight", 5), {}),
        ("l1_unstructured", ("weight", 0.5), {}),
        ("l1_unstructured", ("bias", 1), {}),
    ],
    [("ln_structured", ("weight", 2, 2, 0), {}), ("ln_structured", ("weight", 0.5, 1, 0), {})],
    [("ln_structured", ("weight", 1, float("inf"), -1), {}), ("l1_unstructured", ("weight", 3), {})],
    [
        ("l1_unstructured", ("weight", 0.5), {}),
        ("ln_structured", ("weight", 1, 2, 1), {}),
        ("identity", ("weight",), {}),
    ],
    [
        ("identity", ("bias",), {}),
        ("random_unstructured", ("weight", 0), {}),
        ("random_structured", ("weight", 1.0, 0), {}),
    ],
]


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: "-".join(step[0] for step in steps))
def test_masks_are_torchs(torch, kind, steps):
    ours, theirs = pair(torch, kind)
    x = np.random.default_rng(1).standard_normal((2, 6) if kind == "Linear" else (2, 3, 5, 5)).astype("float32")
    for function, arguments, options in steps:
        assert getattr(prune, function)(ours, *arguments, **options) is ours
        getattr(torch.nn.utils.prune, function)(theirs, *arguments, **options)
        same(ours, theirs)
    a, b = ours(norch.tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
    a.square().sum().backward()
    b.square().sum().backward()
    for (name, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-4, err_msg=name)
    assert prune.is_pruned(nn.Sequential(ours)) and prune.is_pruned(ours)
    orig = getattr(ours, f"{steps[-1][1][0]}_orig")
    for name in dict.fromkeys(step[1][0] for step in steps):
        assert prune.remove(ours, name) is ours
        torch.nn.utils.prune.remove(theirs, name)
        same(ours, theirs)
    assert getattr(ours, name) is orig and not prune.is_pruned(ours) and type(ours.weight) is nn.Parameter


def test_scores_masks_and_all_together(torch):
    (a, b), (c, d) = pair(torch, "Linear"), pair(torch, "Conv2d")
    scores = np.random.default_rng(2).permutation(24).reshape(4, 6).astype("float32")
    for m, one in ((norch, a), (torch, b)):
        m.nn.utils.prune.l1_unstructured(one, "weight", 4, importance_scores=m.tensor(scores))
        m.nn.utils.prune.custom_from_mask(one, "bias", mask=m.tensor([1, 0, 1, 1]))
    same(a, b)
    for m, one, two in ((norch, a, c), (torch, b, d)):
        pairs = [(one, "weight"), (two, "weight")]
        p = m.nn.utils.prune
        p.global_unstructured(pairs, pruning_method=p.L1Unstructured, amount=0.4)
        p.global_unstructured(pairs, p.L1Unstructured, {(one, "weight"): m.tensor(scores)}, amount=5)
    same(a, b)
    same(c, d)


def test_at_random():
    norch.manual_seed(0)
    layer = nn.Conv2d(4, 6, 3)
    prune.random_unstructured(layer, "weight", 0.25)
    assert layer.weight_mask.sum().item() == 162
    prune.random_structured(layer, "weight", 2, dim=1)
    gone = (layer.weight_mask == 0).movedim(1, 0).flatten(1).all(1)
    assert gone.sum().item() == 2
    prune.random_unstructured(layer, "weight", 10)
    assert ((layer.weight_mask == 0).sum().item() >= 54 + 54) and len(
        next(iter(layer._forward_pre_hooks.values()))
    ) == 3


def test_a_method_of_ones_own():
    class EverySecond(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = nn.Linear(4, 1)
    assert isinstance(EverySecond.apply(layer, "weight"), EverySecond)
    assert layer.weight_mask.tolist() == [[0, 1, 0, 1]]
    container = EverySecond.apply(layer, "weight")
    assert isinstance(container, prune.PruningContainer) and len(container) == 2 and container[0] in list(container)
    assert layer.weight_mask.tolist() == [[0, 0, 0, 1]]
    assert prune.L1Unstructured(1).prune(norch.tensor([3.0, -1.0, 2.0])).tolist() == [3.0, 0.0, 2.0]


def test_training_keeps_what_is_pruned_at_zero():
    norch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    prune.l1_unstructured(net[0], "weight", 0.5)
    opt = norch.optim.SGD(net.parameters(), lr=0.1)
    x, before = norch.randn(8, 3), net[0].weight_mask.clone()
    for _ in range(3):
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
    other = nn.Sequential(prune.identity(nn.Linear(3, 4), "weight"), nn.Tanh(), nn.Linear(4, 1))
    other.load_state_dict(net.state_dict())
    assert other(x).tolist() == net(x).tolist() and net[0].weight_mask.tolist() == before.tolist()
    assert (net[0].weight == 0).sum().item() == 6 and isinstance(
        pickle.loads(pickle.dumps(prune.Identity())), prune.Identity
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "amount is an int or a float"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount 1.5"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount -1"),
        (lambda m: prune.l1_unstructured(m, "weight", 13), ValueError, "amount 13 of 12"),
        (lambda m: prune.l1_unstructured(m, "nothing", 1), AttributeError, "nothing"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 1, norch.ones(2)),
            norch.ShapeError,
            "importance_scores of shape",
        ),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), norch.ShapeError, "less than 2 dimensions"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "no axis 2"),
        (lambda m: prune.random_structured(m, "weight", 1, -3), IndexError, "no axis -3"),
        (lambda m: prune.custom_from_mask(m, "weight", norch.ones(3)), norch.ShapeError, "a mask of shape"),
        (lambda m: prune.remove(m, "weight"), ValueError, "'weight' of Linear is not pruned"),
        (lambda m: prune.global_unstructured(3, prune.Identity), TypeError, "pairs of a module and a name"),
        (
            lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=2),
            TypeError,
            "LnStruct",
        ),
        (lambda m: prune.global_unstructured([], prune.Identity, [1]), TypeError, "importance_scores is a dict"),
        (lambda m: prune.PruningContainer().add_pruning_method(3), TypeError, "not a BasePruningMethod"),
        (lambda m: prune.BasePruningMethod(), TypeError, "abstract"),
    ],
)
def test_errors_change_nothing(call, error, message):
    layer = nn.Linear(4, 3)
    before = layer.weight.tolist()
    with pytest.raises(error, match=message):
        call(layer)
    assert list(layer.state_dict()) == ["weight", "bias"] and layer.weight.tolist() == before
    assert not prune.is_pruned(layer)
