"""norch.nn: the module tree and the layers, against PyTorch where it is installed and against closed forms. The
losses are in test_losses.py, initial values and clipping in test_nn_init.py."""

import copy
import gc
import math
import pickle
from collections import OrderedDict
from unittest.mock import MagicMock

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib


def close(ours, theirs, tolerance=1e-5):
    if hasattr(theirs, "detach"):
        theirs = theirs.detach().numpy()
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=tolerance, atol=tolerance)


def samples(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(4, 2, bias=False)
        self.register_buffer("scale", norch.ones(2))
        self.register_buffer("scratch", norch.zeros(1), persistent=False)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x))) * self.scale


# ---- the tree ---------------------------------------------------------------------------------------------


def test_registers_by_assignment():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["fc1.weight", "fc1.bias", "fc2.weight"]
    assert [name for name, _ in net.named_buffers()] == ["scale", "scratch"]
    assert [name for name, _ in net.named_children()] == ["fc1", "act", "fc2"]
    assert [name for name, _ in net.named_modules()] == ["", "fc1", "act", "fc2"]
    assert list(net.children()) == [net.fc1, net.act, net.fc2]
    assert list(net.modules())[0] is net
    assert list(net.buffers())[0] is net.scale
    assert list(net.parameters(recurse=False)) == []
    assert net(norch.ones(5, 3)).shape == (5, 2)
    assert net.get_submodule("fc1") is net.fc1
    with pytest.raises(AttributeError, match="nowhere"):
        net.get_submodule("nowhere")


def test_assignment_keeps_registry_and_attribute_equal():
    net = Net()
    weight = nn.Parameter(norch.zeros(4, 3))
    net.fc1.weight = weight
    assert net.fc1._parameters["weight"] is weight is net.fc1.weight
    net.fc1.bias = None
    assert net.fc1.bias is None
    assert [name for name, _ in net.fc1.named_parameters()] == ["weight"]
    assert net.fc1(norch.ones(1, 3)).tolist() == [[0.0] * 4]
    del net.fc2
    assert not hasattr(net, "fc2")
    assert "fc2" not in dict(net.named_children())
    net.scale = norch.zeros(2)
    assert net._buffers["scale"] is net.scale
    net.act = nn.Parameter(norch.ones(1))
    assert "act" not in dict(net.named_children())
    assert "act" in dict(net.named_parameters())
    net.plain = 3
    assert net.plain == 3
    del net.plain
    with pytest.raises(AttributeError):
        del net.plain


def test_an_object_that_says_yes_to_everything_is_an_attribute():
    net = Net()
    net.mock = MagicMock()
    assert len(list(net.buffers())) == 2 and "mock" not in net.state_dict() and net.mock._is_buffer


def test_wrong_assignments_raise():
    net = Net()
    with pytest.raises(TypeError, match="'float' as parameter 'weight'"):
        net.fc1.weight = 1.0
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        net.fc1.weight = norch.zeros(4, 3)
    with pytest.raises(TypeError, match="as buffer 'scale'"):
        net.scale = [1.0, 1.0]
    with pytest.raises(TypeError, match="as child module 'fc1'"):
        net.fc1 = 7
    for name in ("weight", "bias"):
        layer = nn.Linear(2, 2, bias=False)
        with pytest.raises(TypeError, match=f"'Linear' as parameter '{name}'"):
            setattr(layer, name, nn.Linear(2, 2))
        assert list(layer.state_dict()) == ["weight"]
    for name in ("forward", "fc1"):
        with pytest.raises(KeyError, match="already exists"):
            net.register_buffer(name, norch.ones(1))
        with pytest.raises(KeyError, match="already exists"):
            net.register_parameter(name, nn.Parameter(norch.ones(1)))
    with pytest.raises(KeyError, match="already exists"):
        net.fc1.register_module("weight", nn.ReLU())
    with pytest.raises(KeyError, match="dot"):
        net.register_parameter("a.b", nn.Parameter(norch.ones(1)))
    with pytest.raises(TypeError, match="buffer"):
        net.register_buffer("x", 3)
    with pytest.raises(TypeError):
        net.register_module("x", 3)

    class Early(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="__init__"):
        Early()
    with pytest.raises(NotImplementedError, match="Module defines no forward"):
        nn.Module()(1)


def test_shared_parameters_come_once():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    net = nn.Sequential(a, b, a)
    assert len(list(net.parameters())) == 3
    assert list(net.state_dict()) == [f"{i}.{name}" for i in range(3) for name in ("weight", "bias")]
    before = id(a.weight)
    net.double()
    assert id(a.weight) == before
    assert a.weight is b.weight


def test_parameter_is_a_leaf_over_the_same_memory():
    data = norch.ones(3)
    p = nn.Parameter(data)
    assert isinstance(p, norch.Tensor) and p.requires_grad and p.is_leaf
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    data[0] = 5.0
    assert p.tolist() == [5.0, 1.0, 1.0]
    assert repr(p).startswith("Parameter containing:\ntensor([5., 1., 1.]")
    assert type(p * 2) is norch.Tensor
    assert type(p.data) is norch.Tensor
    with pytest.raises(TypeError):
        nn.Parameter([1.0])
    with pytest.raises(Exception, match=r"(?i)float"):
        nn.Parameter(norch.arange(3))
    recorded = p * 2
    assert nn.Parameter(recorded).is_leaf
    assert hash(p) == hash(p)


def test_modes_apply_and_freezing():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())
    with pytest.raises(ValueError):
        net.train("yes")
    seen = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Net"]
    frozen = Net().requires_grad_(False)
    assert not any(p.requires_grad for p in frozen.parameters())


def test_zero_grad():
    net = Net()
    net(norch.ones(1, 3)).sum().backward()
    assert net.fc1.weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.fc1.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.fc1.weight.grad is None


def test_hooks():
    net = nn.Linear(2, 2)
    seen = []
    handle = net.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    net(norch.ones(3, 2))
    handle.remove()
    handle.remove()
    net(norch.ones(4, 2))
    assert seen == [(3, 2)]
    with net.register_forward_pre_hook(lambda module, args: (args[0] * 0,)):
        assert net(norch.ones(1, 2)).tolist() == [net.bias.tolist()]
    with net.register_forward_hook(lambda module, args, out: out * 0):
        assert net(norch.ones(1, 2)).tolist() == [[0.0, 0.0]]
    assert net(norch.ones(1, 2)).tolist() != [[0.0, 0.0]]


def test_to_converts_in_place_and_leaves_integers():
    net = Net()
    net.register_buffer("count", norch.zeros(1, dtype=norch.int64))
    weight = net.fc1.weight
    net(norch.ones(1, 3)).sum().backward()
    assert net.to(norch.float64) is net
    assert net.fc1.weight is weight
    assert weight.dtype == weight.grad.dtype == net.scale.dtype == norch.float64
    assert net.count.dtype == norch.int64
    assert net.float().scale.dtype == norch.float32
    assert net.double()(norch.ones(1, 3, dtype=norch.float64)).dtype == norch.float64
    assert net.to("cpu").to(device="cpu", dtype=norch.float32).scale.dtype == norch.float32
    assert net.to(norch.ones(1, dtype=norch.float64)).scale.dtype == norch.float64
    with pytest.raises(TypeError, match="floating"):
        net.to(norch.int64)
    with pytest.raises(norch.DeviceError):
        net.to("cuda:99")
    with pytest.raises(Exception, match="banana"):
        nn.ReLU().to("banana")
    assert weight.dtype == norch.float64


def test_copies_are_independent():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.fc1.weight is not net.fc1.weight
        assert other.fc1.weight is other.fc1._parameters["weight"]
        assert other.fc1.weight.tolist() == net.fc1.weight.tolist()
        with norch.no_grad():
            other.fc1.weight.zero_()
        assert net.fc1.weight.abs().sum().item() > 0


# ---- saving and loading -----------------------------------------------------------------------------------


def test_state_dict_round_trip():
    a, b = Net(), Net()
    state = a.state_dict()
    assert list(state) == ["scale", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert not any(value.requires_grad for value in state.values())
    keys = b.load_state_dict(state)
    assert repr(keys) == "<All keys matched successfully>"
    assert keys.missing_keys == [] and keys.unexpected_keys == []
    x = norch.ones(2, 3)
    assert a(x).tolist() == b(x).tolist()
    b.double().load_state_dict(state)
    assert b.fc1.weight.dtype == norch.float64


def test_load_state_dict_lists_every_fault_and_changes_nothing():
    net = Net()
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    state = {
        "scale": norch.zeros(2),
        "fc1.weight": norch.zeros(4, 4),
        "fc2.weight": [1.0],
        "fc3.weight": norch.zeros(1),
        "other": norch.zeros(1),
    }
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert "Error(s) in loading state_dict for Net:" in text
    assert 'Missing key(s) in state_dict: "fc1.bias".' in text
    assert 'Unexpected key(s) in state_dict: "fc3.weight", "other".' in text
    assert "size mismatch for fc1.weight" in text and "(4, 4)" in text and "(4, 3)" in text
    assert "not a tensor for fc2.weight" in text
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"fc1.weight": norch.zeros(4, 4)}, strict=False)
    with pytest.raises(TypeError):
        net.load_state_dict([1])
    keys = net.load_state_dict({"scale": norch.zeros(2), "other": norch.zeros(1)}, strict=False)
    assert keys.unexpected_keys == ["other"]
    assert keys.missing_keys == ["fc1.weight", "fc1.bias", "fc2.weight"]
    assert "other" in repr(keys)
    assert net.scale.tolist() == [0.0, 0.0]


# ---- containers and printing ------------------------------------------------------------------------------


def zoo(lib):
    """The same layers from norch and from torch, whose printed trees must agree."""
    return [
        lib.Sequential(lib.Linear(3, 4), lib.ReLU(), lib.Dropout(0.25), lib.Flatten(), lib.Softmax(dim=1)),
        lib.Sequential(OrderedDict([("fc", lib.Linear(1, 2, bias=False)), ("act", lib.GELU())])),
        lib.Sequential(),
        lib.ModuleList([lib.Linear(2, 2) for _ in range(3)] + [lib.Tanh()] + [lib.Sequential(lib.SiLU())] * 2),
        lib.ModuleList(),
        lib.ModuleDict({"a": lib.Sigmoid(), "b": lib.LogSoftmax(dim=-1)}),
        lib.ModuleDict(),
        lib.Sequential(lib.Sequential(lib.Identity(), lib.ReLU(inplace=True)), lib.GELU(approximate="tanh")),
        lib.CrossEntropyLoss(),
        lib.MSELoss(),
        lib.Module(),
    ]


def test_prints_like_torch(torch):
    for ours, theirs in zip(zoo(nn), zoo(torch.nn), strict=True):
        assert repr(ours) == repr(theirs)


def test_prints_a_tree():
    assert repr(Net()) == (
        "Net(\n"
        "  (fc1): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (act): ReLU()\n"
        "  (fc2): Linear(in_features=4, out_features=2, bias=False)\n"
        ")"
    )


def test_sequential():
    layers = [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
    net = nn.Sequential(*layers)
    assert len(net) == 3 and list(net) == layers
    assert net[0] is layers[0] and net[-1] is layers[2]
    assert type(net[1:]) is nn.Sequential and list(net[1:]) == layers[1:]
    assert list(nn.Sequential(OrderedDict(a=layers[0], b=layers[1]))[:1].state_dict()) == [
        "a.weight",
        "a.bias",
    ]
    assert nn.Sequential(OrderedDict(a=layers[0])).a is layers[0]
    net.append(nn.Tanh()).insert(1, nn.Sigmoid())
    assert [type(layer).__name__ for layer in net] == ["Linear", "Sigmoid", "ReLU", "Linear", "Tanh"]
    assert list(net._modules) == ["0", "1", "2", "3", "4"]
    del net[1]
    assert [type(layer).__name__ for layer in net] == ["Linear", "ReLU", "Linear", "Tanh"]
    assert list(net._modules) == ["0", "1", "2", "3"]
    net[1] = nn.GELU()
    assert type(net[1]) is nn.GELU
    del net[2:]
    assert len(net) == 2
    with pytest.raises(IndexError):
        net[2]
    with pytest.raises(TypeError):
        nn.Sequential(nn.ReLU(), 3)
    assert nn.Sequential()(7) == 7


def test_sequential_holds_places():
    """None in place of a module, as in PyTorch: for programs that go over the modules themselves."""
    net = nn.Sequential(nn.Linear(2, 2), None, nn.ReLU())
    assert [module is None for module in net] == [False, True, False] and len(net) == 3
    assert sorted(net.state_dict()) == ["0.bias", "0.weight"] and len(list(net.children())) == 2
    assert repr(net[1:]) == "Sequential(\n  (1): None\n  (2): ReLU()\n)"
    for wrong in (net, nn.Sequential(OrderedDict(act=None)), nn.Sequential(nn.Linear(2, 2), None)):
        with pytest.raises(TypeError, match="None, which cannot be called"):
            wrong(norch.ones(1, 2))
    net[1] = nn.Identity()
    assert net(norch.ones(1, 2)).shape == (1, 2)
    net[2] = None
    assert net[2] is None


def test_sequential_times_a_number():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert list(net * 2) == list(2 * net) == [*net, *net]
    before = net
    net *= 3
    assert net is before and len(net) == 6 and net[4] is net[0]
    with pytest.raises(IndexError, match="position -7 in 6 modules"):
        net.insert(-7, nn.ReLU())
    with pytest.raises(TypeError):
        net * 1.5


def test_module_list_and_dict():
    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
    assert len(list(layers.parameters())) == 6
    layers += [nn.ReLU()]
    layers.extend([nn.Tanh()])
    assert len(layers) == 5 and type(layers[3:]) is nn.ModuleList
    assert type(layers + [nn.ReLU()]) is nn.ModuleList
    with pytest.raises(NotImplementedError):
        layers(1)
    heads = nn.ModuleDict({"a": nn.Linear(1, 2)})
    heads["b"] = nn.ReLU()
    heads.update([("a", nn.Tanh())])
    more = nn.ModuleDict(heads)
    more.update(nn.ModuleDict({"c": nn.ReLU()}))
    assert list(more) == ["a", "b", "c"] and more["b"] is heads["b"]
    assert list(heads) == list(heads.keys()) == ["a", "b"]
    assert [type(head) for head in heads.values()] == [nn.Tanh, nn.ReLU]
    assert dict(heads.items())["b"] is heads["b"] and "b" in heads
    assert type(heads.pop("a")) is nn.Tanh
    with pytest.raises(KeyError):
        del heads["a"]
    heads.clear()
    assert len(heads) == 0


# ---- layers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_matches_torch(torch, shape, bias):
    ours, theirs = nn.Linear(3, 4, bias=bias), torch.nn.Linear(3, 4, bias=bias)
    ours.load_state_dict({k: norch.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    array = samples(*shape)
    x, y = norch.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    a, b = ours(x), theirs(y)
    close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    close(x.grad, y.grad)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad)


def test_linear_initialisation():
    norch.manual_seed(0)
    layer = nn.Linear(100, 200)
    assert layer.weight.shape == (200, 100) and layer.bias.shape == (200,)
    for values in (layer.weight.detach().numpy(), layer.bias.detach().numpy()):
        assert np.abs(values).max() <= 0.1
        assert np.abs(values).max() > 0.09
        assert abs(values.mean()) < 0.02
        assert abs(values.std() - 0.1 / math.sqrt(3)) < 0.005
    norch.manual_seed(0)
    assert nn.Linear(100, 200).weight.tolist() == layer.weight.tolist()
    with pytest.raises(ValueError):
        layer(norch.ones(2, 3))
    assert nn.Linear(2, 2, dtype=norch.float64).weight.dtype == norch.float64
    assert nn.Linear(0, 2)(norch.ones(3, 0)).shape == (3, 2)


ACTIVATIONS = {
    "ReLU": {},
    "Sigmoid": {},
    "Tanh": {},
    "GELU": {},
    "SiLU": {},
    "LogSigmoid": {},
    "Softmax": {"dim": 1},
    "LogSoftmax": {"dim": -1},
    "Identity": {},
    "Flatten": {},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_match_torch(torch, name):
    options = ACTIVATIONS[name]
    array = np.concatenate([samples(3, 8) * 3, [[0.0, -0.0, 30.0, -30.0, 1e4, -1e4, 88.0, -88.0]]]).astype(np.float32)
    x, y = norch.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    a, b = getattr(nn, name)(**options)(x), getattr(torch.nn, name)(**options)(y)
    close(a, b)
    seed = samples(*array.shape, seed=1)
    a.backward(norch.tensor(seed).reshape(*a.shape))
    b.backward(torch.tensor(seed).reshape(b.shape))
    close(x.grad, y.grad)


def test_gelu_tanh_matches_torch(torch):
    array = samples(20) * 3
    close(F.gelu(norch.tensor(array), "tanh"), torch.nn.functional.gelu(torch.tensor(array), approximate="tanh"))
    with pytest.raises(ValueError):
        F.gelu(norch.ones(1), "about")


def test_functional_forms():
    x = norch.tensor([-1.0, 0.0, 2.0])
    assert F.relu(x).tolist() == [0.0, 0.0, 2.0]
    assert F.sigmoid(x).tolist() == nn.Sigmoid()(x).tolist()
    assert F.tanh(x).tolist() == nn.Tanh()(x).tolist()
    assert F.silu(x).tolist() == nn.SiLU()(x).tolist()
    assert F.linear(x, norch.ones(2, 3), norch.ones(2)).tolist() == [2.0, 2.0]
    assert F.softmax(x, 0, dtype=norch.float64).dtype == norch.float64
    assert F.log_softmax(x, 0, dtype=norch.float64).dtype == norch.float64
    for call in (F.softmax, F.softmin, F.log_softmax):
        with pytest.warns(UserWarning, match="implicit dimension") as warned:
            call(x)
        assert warned[0].filename == __file__
    assert nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 0.0, 2.0]
    assert F.one_hot(norch.tensor([[0], [2]])).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    assert F.one_hot(norch.tensor([1]), 4).tolist() == [[0, 1, 0, 0]]
    with pytest.raises(norch.DTypeError, match="one_hot: expected integer classes, got float32"):
        F.one_hot(norch.tensor([1.0]))
    with pytest.raises(ValueError):
        F.one_hot(norch.tensor([4]), 4)
    with pytest.raises(ValueError):
        F.one_hot(norch.tensor([-1]), 4)


def test_softmax_is_stable_and_sums_to_one():
    x = norch.tensor([[1e4, 1e4 + 1], [-1e4, -1e4 - 1]], requires_grad=True)
    y = F.softmax(x, 1)
    low, high = 1 / (1 + math.e), math.e / (1 + math.e)
    close(y, [[low, high], [high, low]])
    close(F.log_softmax(x, 1).exp(), y)
    y[0, 0].backward()
    close(x.grad, [[low * high, -low * high], [0, 0]])


def test_flatten_layers():
    x = norch.arange(24).reshape(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Flatten()(x).data_ptr() == x.data_ptr()
    assert nn.Unflatten(-1, (2, -1))(x).shape == (2, 3, 2, 2)
    assert nn.Unflatten(0, (2, -1))(norch.zeros(8, 0)).shape == (2, 4, 0)
    with pytest.raises(norch.BoundsError, match="dimension 7 is out of range"):
        nn.Unflatten(7, (2, 2))(x)


def test_dropout():
    norch.manual_seed(0)
    x = norch.ones(10000, requires_grad=True)
    layer = nn.Dropout(0.25)
    y = layer(x)
    values = set(np.unique(y.detach().numpy()).tolist())
    assert values == {0.0, np.float32(1 / 0.75).item()}
    kept = (y.detach() != 0).sum().item() / 10000
    assert abs(kept - 0.75) < 0.03
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert layer(x).tolist() != y.tolist()
    norch.manual_seed(0)
    assert layer(norch.ones(10000)).tolist() == y.tolist()
    assert layer.eval()(x) is x
    assert nn.Dropout(0.0)(x).tolist() == x.tolist()
    assert nn.Dropout(1.0)(x).abs().sum().item() == 0
    assert layer.train()(norch.ones(3, dtype=norch.float64)).dtype == norch.float64
    assert F.dropout(x, 0.5, training=False) is x
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError):
            nn.Dropout(p)
        with pytest.raises(ValueError):
            F.dropout(x, p)


def test_training_frees_everything_without_the_cycle_collector():
    def run():
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
        for _ in range(3):
            F.cross_entropy(net(norch.rand(5, 4)), norch.tensor([0, 1, 2, 0, 1])).backward()

    run()
    gc.collect()
    gc.disable()
    try:
        before = lib.norch_live_storages()
        run()
        assert lib.norch_live_storages() == before
    finally:
        gc.enable()


def test_dropout_of_channels() -> None:
    norch.manual_seed(0)
    for layer, shape in ((nn.Dropout1d, (64, 5)), (nn.Dropout2d, (8, 8, 5, 3)), (nn.Dropout3d, (8, 8, 2, 2, 2))):
        y = layer(0.25)(norch.ones(shape)).flatten(2 if len(shape) > 2 else 1)
        assert (y == y[..., :1]).all() and set(y.unique().tolist()) <= {0.0, norch.tensor(4 / 3).item()}
        assert 0.5 < (y > 0).float().mean() < 0.95 and layer().eval()(y) is y
    x = nn.AlphaDropout(0.3)(norch.randn(20000))
    assert abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05 and norch.dropout(x, 0.5, False) is x
