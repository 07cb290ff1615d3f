"""Lazy layers and uninitialized parameters, against PyTorch where it is installed."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import norch
from norch import nn
from norch.nn.parameter import UninitializedTensorMixin, is_lazy

LAYERS = [
    ("LazyLinear", (3,), {}, (2, 5)),
    ("LazyLinear", (3, False), {}, (5,)),
    ("LazyConv1d", (4, 3), {"padding": 1}, (2, 3, 7)),
    ("LazyConv2d", (4, (3, 2)), {"stride": 2, "groups": 2, "bias": False}, (2, 6, 7, 5)),
    ("LazyConv3d", (2, 2), {"padding_mode": "replicate", "padding": 1}, (3, 4, 5, 4)),
    ("LazyConvTranspose1d", (4, 3), {"dilation": 2}, (2, 3, 7)),
    ("LazyConvTranspose2d", (4, 3), {"stride": 2, "output_padding": 1}, (3, 4, 5)),
    ("LazyConvTranspose3d", (4, 2), {"groups": 2}, (1, 2, 3, 4, 2)),
    ("LazyBatchNorm1d", (), {}, (4, 3)),
    ("LazyBatchNorm2d", (1e-3, None), {}, (2, 3, 4, 5)),
    ("LazyBatchNorm3d", (), {"affine": False}, (2, 3, 4, 5, 2)),
    ("LazyInstanceNorm1d", (), {}, (2, 3, 4)),
    ("LazyInstanceNorm2d", (), {"track_running_stats": False, "bias": False}, (2, 3, 4, 5)),
    ("LazyInstanceNorm3d", (), {"affine": False}, (2, 3, 4, 5, 2)),
]
NAMES = list(dict.fromkeys(name for name, *_ in LAYERS))


def drawn(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def tensors(module):
    return [*module.parameters(), *module.buffers()]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAYERS, ids=str)
def test_layers_are_torchs(torch, name, arguments, options, shape):
    ours, theirs = (getattr(m.nn, name)(*arguments, **options) for m in (norch, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [is_lazy(x) for x in tensors(ours)] == [torch.nn.parameter.is_lazy(x) for x in tensors(theirs)]
    assert ours.has_uninitialized_params() == theirs.has_uninitialized_params()
    before, x = tensors(ours), drawn(*shape)
    ours(norch.tensor(x)), theirs(torch.tensor(x))
    assert repr(ours) == repr(theirs) and type(ours).__name__ == name.replace("Lazy", "")
    assert [tuple(x.shape) for x in tensors(ours)] == [tuple(x.shape) for x in tensors(theirs)]
    assert all(a is b for a, b in zip(before, tensors(ours), strict=True)), "the same objects"
    assert all(type(p) is nn.Parameter and p.requires_grad for p in ours.parameters())
    assert all(type(b) is norch.Tensor for b in ours.buffers())
    for key, value in ours.state_dict().items():
        value.copy_(norch.tensor(theirs.state_dict()[key].numpy()))
    ours.eval(), theirs.eval()
    found, wanted = ours(norch.tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_torchs(torch, name):
    ours, theirs = (inspect.signature(getattr(m.nn, name)).parameters.values() for m in (norch, torch))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


def test_a_model_of_them_trains():
    """With an optimizer made before the first forward, and moved and cast before it."""
    norch.manual_seed(0)
    net = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1)).double()
    opt = norch.optim.Adam(net.parameters(), lr=0.01)
    x = norch.tensor(drawn(8, 2, 6)).double()
    losses = []
    for _ in range(30):
        opt.zero_grad()
        loss = (net(x) - x.sum((1, 2)).unsqueeze(1)).square().mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and net[0].weight.dtype is norch.float64
    assert [type(m) for m in net] == [nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.Flatten, nn.Linear]
    assert net[1].running_mean.dtype is norch.float64 and net[1].num_batches_tracked.item() == 30


def test_values_are_those_of_the_layer():
    norch.manual_seed(3)
    lazy = nn.LazyLinear(2)
    lazy.initialize_parameters(norch.ones(4, 3))
    norch.manual_seed(3)
    layer = nn.Linear(3, 2)
    assert lazy.weight.tolist() == layer.weight.tolist() and lazy.bias.tolist() == layer.bias.tolist()
    assert type(lazy) is nn.LazyLinear and lazy.in_features == 3 and not lazy.has_uninitialized_params()
    lazy(norch.ones(3))
    assert type(lazy) is nn.Linear and lazy.weight.tolist() == layer.weight.tolist()


@pytest.mark.parametrize("assign", [False, True])
def test_state_dicts_of_either_load(assign):
    whole = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4))
    whole(norch.tensor(drawn(2, 3, 4, 4)))
    lazy = nn.Sequential(nn.LazyConv2d(4, 2), nn.LazyBatchNorm2d())
    assert str(lazy.load_state_dict(lazy.state_dict(), assign=assign)) == "<All keys matched successfully>"
    assert all(is_lazy(p) for p in lazy.parameters()), "what is uninitialized stays so"
    lazy.load_state_dict(whole.state_dict(), assign=assign)
    assert not lazy[0].has_uninitialized_params() and type(lazy[0]) is nn.LazyConv2d
    x = norch.tensor(drawn(1, 3, 4, 4))
    assert lazy.eval()(x).tolist() == whole.eval()(x).tolist()
    assert repr(lazy) == repr(whole)
    with pytest.raises(norch.Error, match="an UninitializedParameter has no shape yet"):
        whole.load_state_dict(nn.Sequential(nn.LazyConv2d(4, 2), nn.LazyBatchNorm2d()).state_dict())


def test_errors_of_loading_leave_it_uninitialized():
    lazy = nn.LazyLinear(2)
    with pytest.raises(norch.Error, match='Missing key.*"bias"'):
        lazy.load_state_dict({"weight": norch.ones(2, 3)})
    assert is_lazy(lazy.weight)
    lazy.load_state_dict({"weight": norch.ones(2, 3)}, strict=False)
    assert not is_lazy(lazy.weight) and is_lazy(lazy.bias)
    assert lazy(norch.ones(3)).shape == (2,) and lazy.weight.tolist() == [[1.0] * 3] * 2


def test_copies():
    lazy = nn.LazyConv1d(2, 3, dtype=norch.float64)
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert repr(other) == repr(lazy) and is_lazy(other.weight) and other.weight is not lazy.weight
        assert other(norch.ones(4, 5, dtype=norch.float64)).shape == (2, 3) and other.weight.shape == (2, 4, 3)
    assert is_lazy(lazy.weight)
    lazy.requires_grad_(False)
    assert copy.deepcopy(lazy.weight).requires_grad is False


def test_uninitialized_parameters(torch):
    for m in (norch, torch):
        weight, buffer = m.nn.UninitializedParameter(dtype=m.float64), m.nn.UninitializedBuffer()
        assert isinstance(weight, m.nn.parameter.UninitializedTensorMixin) and isinstance(weight, m.nn.Parameter)
        assert repr(weight) == "<UninitializedParameter>" and repr(buffer) == "<UninitializedBuffer>"
        assert weight.requires_grad and not buffer.requires_grad and weight.dtype == m.float64
        assert type(buffer.to(m.float64)) is type(buffer) and buffer.half().dtype == m.float16
        with pytest.raises(RuntimeError, match="shape"):
            _ = weight.shape
        for call in (lambda w: w + 1, lambda w: w.sum(), lambda w: w.numel(), lambda w: w[0], lambda w: w.clone()):
            with pytest.raises(ValueError):
                call(weight)  # noqa: B023
        weight.materialize((2, 3))
        buffer.materialize((4,), dtype=m.int64)
        assert type(weight) is m.nn.Parameter and weight.shape == (2, 3) and weight.dtype == m.float64
        assert type(buffer) is m.Tensor and buffer.shape == (4,) and buffer.dtype == m.int64
        (weight * 2).sum().backward()
        assert weight.grad.shape == (2, 3)
    assert issubclass(nn.UninitializedBuffer, UninitializedTensorMixin)


@pytest.mark.parametrize(
    ("make", "x", "error", "message"),
    [
        (lambda: nn.LazyConv2d(3, 2), (2, 2), norch.ShapeError, "LazyConv2d: expected 3 .unbatched. or 4"),
        (lambda: nn.LazyConv2d(4, 2, groups=2), (1, 3, 4, 4), ValueError, "divisible by groups 2"),
        (lambda: nn.LazyBatchNorm2d(), (3, 4), norch.ShapeError, "LazyBatchNorm2d: expected 4D input"),
        (lambda: nn.LazyLinear(2), (), norch.ShapeError, "LazyLinear: expected an input of at least 1"),
    ],
)
def test_bad_input_leaves_it_uninitialized(make, x, error, message):
    layer = make()
    with pytest.raises(error, match=message):
        layer(norch.ones(x))
    assert layer.has_uninitialized_params() and type(layer).__name__.startswith("Lazy")
    layer.reset_parameters()
    with pytest.raises(TypeError, match="expected a tensor"):
        layer(None)


def test_transposed_convolutions_take_an_output_size():
    layer = nn.LazyConvTranspose2d(3, 3, stride=2)
    assert layer(norch.ones(1, 2, 4, 4), output_size=(10, 9)).shape == (1, 3, 10, 9)


class Scale(nn.Module):
    def __init__(self, size: int = 0) -> None:
        super().__init__()
        self.scale = nn.Parameter(norch.ones(size))

    def forward(self, x, plus: float = 0.0):
        return x * self.scale + plus


class LazyScale(nn.modules.lazy.LazyModuleMixin, Scale):
    """A lazy class of a program, which becomes a Scale."""

    cls_to_become = Scale

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.calls = nn.UninitializedParameter(), 0

    def initialize_parameters(self, x, plus: float = 0.0):
        self.calls += 1
        self.scale.materialize(x.shape[-1])
        with norch.no_grad():
            self.scale.fill_(2.0)


class StaysLazy(LazyScale):
    cls_to_become = None


@pytest.mark.parametrize("kind", [LazyScale, StaysLazy])
def test_lazy_classes_of_programs(kind):
    module = kind()
    assert module.has_uninitialized_params()
    optimizer = norch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(2):
        assert module(norch.ones(2, 3), plus=1.0).tolist() == [[3.0] * 3] * 2
    assert type(module) is (Scale if kind is LazyScale else kind) and module.calls == 1
    module(norch.ones(2, 3)).sum().backward()
    optimizer.step()
    assert module.scale.tolist() == [1.0] * 3
    other = kind()
    other.load_state_dict(module.state_dict())
    assert other(norch.ones(3)).tolist() == [1.0] * 3


def test_lazy_classes_that_leave_a_parameter():
    class Forgets(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            """Nothing."""

    class HasNone(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

    with pytest.raises(RuntimeError, match="Forgets: initialize_parameters.. has left parameters without a shape"):
        Forgets()(norch.ones(2))
    with pytest.raises(NotImplementedError, match="HasNone: a lazy module needs an initialize_parameters"):
        HasNone()(norch.ones(2))
