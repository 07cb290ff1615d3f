"""norch.utils.summary: what it counts, and that a model is afterwards as it was."""

import pytest

import norch
from norch import nn
from norch.utils import summary

pytestmark = pytest.mark.host


class Shared(nn.Module):
    """A layer that is called twice, a tied weight, a part that is not called, and a product outside of modules."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.out = nn.Linear(4, 4, bias=False)
        self.out.weight = self.inner.weight
        self.unused = nn.Linear(4, 1)

    def forward(self, x, scale=None):
        x = self.out(self.inner(self.inner(x)))
        x = x if scale is None else x * scale
        return {"scores": x @ x.T, "same": (x, None)}


def rows(found):
    return {f"{row.name} ({row.kind})": row for row in found.rows}


def test_shapes_parameters_and_products():
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
    found = summary(model, (2, 1, 6, 6))
    assert [row.shape for row in found.rows] == [(2, 10), (2, 4, 6, 6), (2, 4, 6, 6), (2, 144), (2, 10)]
    assert [row.params for row in found.rows] == [0, 40, 0, 0, 1450]
    assert [row.multiply_adds for row in found.rows] == [0, 2 * 4 * 36 * 9, 0, 0, 2 * 144 * 10]
    assert found.total_params == found.trainable_params == sum(p.numel() for p in model.parameters()) == 1490
    assert found.total_mult_adds == 2 * 4 * 36 * 9 + 2880 and found.param_bytes == 4 * 1490
    assert (found.input_bytes, found.output_bytes) == (4 * 72, 4 * (288 + 288 + 288 + 20))
    assert 4 * 288 <= found.peak_bytes <= 4 * 4 * 288


def test_shared_recursive_uncalled_and_named():
    model = Shared()
    found = summary(model, {"x": (3, 4), "scale": norch.ones(4)})
    there = rows(found)
    assert there["unused (Linear)"].shape is None and not there["unused (Linear)"].called
    first, second, out = found.rows[1:4]
    assert (first.params, first.note, second.params, second.note) == (20, "", 0, "(recursive)")
    assert (out.params, out.note) == (0, "(shared)")
    assert found.rows[0].shape == {"scores": (3, 3), "same": [(3, 4), None]}
    assert found.rows[0].multiply_adds == 3 * 3 * 4 and found.total_mult_adds == 3 * 48 + 36
    assert found.total_params == 25 == sum(row.params for row in found.rows)
    text = str(found)
    assert "(recursive)" in text and "(shared)" in text and "not called" in text and repr(found) == text
    model.inner.weight.requires_grad_(False)
    assert summary(model, (3, 4)).trainable_params == 9


def test_arguments_of_all_kinds():
    bag = nn.Embedding(5, 3)
    assert summary(bag, (2, 4), dtype=norch.int64).rows[0].shape == (2, 4, 3)
    assert summary(nn.Bilinear(2, 3, 4), [(5, 2), norch.ones(5, 3)]).rows[0].shape == (5, 4)
    attention = nn.MultiheadAttention(8, 2)
    x = norch.ones(3, 1, 8)
    found = summary(attention, [x, x, x], need_weights=False)
    assert found.rows[0].shape == [(3, 1, 8), None]
    assert summary(Shared(), scale=None, x=norch.ones(1, 4)).rows[0].called
    none = summary(bag)
    assert none.total_params == 15 and not none.rows[0].called and "not called" not in str(none)


def test_depth_adds_what_it_hides():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), nn.Linear(2, 1))
    lines = str(summary(model, (1, 2), depth=1)).splitlines()
    assert len([line for line in lines if "Linear" in line]) == 1
    (hidden,) = [line.split() for line in lines if "0 (Sequential)" in line]
    assert hidden[-2:] == ["17", "12"]
    assert "17" not in str(summary(model, (1, 2))).splitlines()[3]


def test_the_model_is_as_before():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 2))
    model[1].eval()
    model.train(True)
    model[1].training = False
    bn = model[0]
    buffers = {name: (b, b.tolist(), b._version_counter) for name, b in model.named_buffers()}
    weight = model[2].weight
    norch.manual_seed(3)
    state = norch.get_rng_state().tolist()
    call = nn.Module.__call__
    for mode in ("eval", "train", "same"):
        summary(model, (4, 3), mode=mode)
    assert [m.training for m in model.modules()] == [True, True, False, True]
    for name, b in model.named_buffers():
        known, values, version = buffers[name]
        assert b is known and b.tolist() == values and b._version_counter == version
    assert bn.running_mean is bn._buffers["running_mean"]
    assert weight is model[2].weight and weight.grad is None and norch.get_rng_state().tolist() == state
    assert nn.Module.__call__ is call


def test_the_mode_of_the_call():
    seen = []

    class Looks(nn.Module):
        def forward(self, x):
            seen.append((self.training, norch.is_grad_enabled()))
            return x

    model = Looks()
    for mode in ("eval", "train", "same"):
        summary(model, (1,), mode=mode)
    assert seen == [(False, False), (True, False), (True, False)] and model.training


def test_a_model_that_raises():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(4)))
    flags = [m.training for m in model.modules()]
    text = r"summary: \w+ in the model \(Sequential\); 1 \(Sequential\); 0 \(BatchNorm1d\): .*done before: 0 \(Linear\)"
    with pytest.raises(norch.Error, match=text):
        summary(model, (5, 2))
    assert [m.training for m in model.modules()] == flags
    assert summary(nn.Linear(2, 3), (5, 2)).rows[0].shape == (5, 3)  # no profile is left running


def test_a_module_that_gives_nothing():
    class Nothing(nn.Module):
        def forward(self, x):
            pass

    model = nn.Sequential(nn.Linear(2, 2))
    model.append(Nothing())
    found = summary(model, (1, 2))
    assert [row.depth for row in found.rows] == [0, 1, 1] and found.rows[2].called


@pytest.mark.parametrize(
    ("error", "call", "text"),
    [
        (TypeError, lambda: summary(3, (1,)), "summary: expected a module, not int"),
        (norch.ArgumentError, lambda: summary(nn.ReLU(), (1,), mode="fast"), "mode must be 'eval', 'train' or 'same'"),
        (norch.ArgumentError, lambda: summary(nn.ReLU(), (1,), depth=-1), "depth must be 0 or more, not -1"),
        (norch.ArgumentError, lambda: summary(nn.ReLU(), (1, -2)), r"of sizes >= 0, not \(1, -2\)"),
        (norch.ArgumentError, lambda: summary(nn.ReLU(), [(1, "a")]), r"a tensor or a shape .* not \(1, 'a'\)"),
        (TypeError, lambda: summary(nn.ReLU(), "x"), "input must be a tensor, a shape, .* not str"),
    ],
)
def test_messages(error, call, text):
    with pytest.raises(error, match=text):
        call()


def test_totals_are_those_of_pytorchs_models(torch):
    """Of a ResNet's block by the formula of the paper's table: products of convolutions and of the last layer."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = (nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(2))
            self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)

        def forward(self, x):
            return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + x).relu()

    found = summary(Block(), (1, 8, 16, 16))
    from torch.utils.flop_counter import FlopCounterMode

    theirs = torch.nn.Conv2d(8, 8, 3, padding=1, bias=False)
    with FlopCounterMode(display=False) as counter:
        theirs(theirs(torch.ones(1, 8, 16, 16)))
    assert 2 * found.total_mult_adds == counter.get_total_flops()
