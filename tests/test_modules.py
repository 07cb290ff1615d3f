"""What hangs on modules and holds parameters: backward hooks, lists and dictionaries, vectors, look-ups."""

import numpy as np
import pytest

import norch
from norch import nn


def gradients(lib, watch):
    """What the hooks of watch(module, seen) see, and the gradients of the leaves, in a small net."""

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = lib.nn.Linear(3, 2)

        def forward(self, x, y, name=None):
            return self.inner(x) * y, x.sum()

    net = Net()
    with lib.no_grad():
        net.inner.weight.copy_(lib.arange(6.0).reshape(2, 3))
        net.inner.bias.fill_(1.0)
    seen = []
    handles = watch(net, seen)
    x, y = lib.ones(3, requires_grad=True), lib.tensor([2.0, 3.0], requires_grad=True)
    a, b = net(x, y, name="other")
    (a.sum() * 2 + b).backward()
    plain = [tuple(None if g is None else g.tolist() for g in grads) for grads in seen]
    for handle in handles:
        handle.remove()
    net(x, y)[0].sum().backward()
    assert len(seen) == len(plain)
    return plain, x.grad.tolist(), net.inner.weight.grad.tolist()


def test_backward_hooks_match_torch(torch):
    def watch(net, seen):
        return [
            net.register_full_backward_hook(lambda module, inner, outer: seen.extend((inner, outer))),
            net.inner.register_full_backward_hook(lambda module, inner, outer: (inner[0] * 10,)),
            net.inner.register_full_backward_pre_hook(lambda module, outer: seen.append(outer) or (outer[0] * 3,)),
            net.inner.register_full_backward_pre_hook(lambda module, outer: seen.append(outer)),
        ]

    assert gradients(norch, watch) == gradients(torch, watch)


def test_backward_hooks_of_a_layer_whose_inputs_need_no_gradient():
    net = nn.Linear(2, 1)
    seen = []
    with net.register_full_backward_hook(lambda module, inner, outer: seen.append((inner, outer[0].tolist()))):
        net(norch.ones(3, 2)).sum().backward()
        with norch.no_grad():
            net(norch.ones(3, 2))
    assert seen == [((None,), [[1.0]] * 3)] and net.weight.grad.tolist() == [[3.0, 3.0]]
    net(norch.ones(3, 2)).sum().backward()
    assert len(seen) == 1


def test_parameter_lists_and_dicts():
    scale = nn.Parameter(norch.ones(2))
    many = nn.ParameterList([scale, norch.zeros(3)])
    many += [norch.ones(1)]
    assert many[0] is scale and isinstance(many[1], nn.Parameter) and len(many) == 3 and len(many[1:]) == 2
    many[1] = norch.ones(2, 3)
    assert [p.shape for p in many] == [(2,), (2, 3), (1,)] and list(many.state_dict()) == ["0", "1", "2"]
    assert "(1): Parameter containing: [norch.float32 of size 2x3]" in repr(many)
    named = nn.ParameterDict({"a": scale})
    named["b"] = norch.zeros(1)
    assert list(named) == list(named.keys()) == ["a", "b"] and "a" in named and dict(named.items())["a"] is scale
    del named["a"]
    assert list(named.state_dict()) == ["b"] and len(named) == 1 and len(list(named.values())) == 1
    with pytest.raises(KeyError):
        del named["a"]
    with pytest.raises(TypeError, match="Parameter"):
        many.append(3)


def test_members_by_path():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert net.get_parameter("0.weight") is net[0].weight and net.get_buffer("1.running_mean") is net[1].running_mean
    for path in ("0.running_mean", "weight", "7.weight", ""):
        with pytest.raises(AttributeError):
            net.get_parameter(path)
    both = net + nn.Sequential(nn.ReLU())
    assert len(both) == 3 and both.pop(-1).__class__ is nn.ReLU and len(both) == 2 and both[0] is net[0]


def test_parameters_as_one_vector():
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.tolist() == net.weight.flatten().tolist() + net.bias.tolist() and vector.requires_grad
    nn.utils.vector_to_parameters(norch.arange(8.0), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and net.bias.tolist() == [6, 7]
    assert isinstance(net.weight, nn.Parameter) and net.weight.requires_grad
    with pytest.raises(norch.ShapeError, match="8 elements"):
        nn.utils.vector_to_parameters(norch.ones(7), net.parameters())


def test_further_initial_values():
    x = nn.init.trunc_normal_(norch.empty(20000), mean=0.5, std=2.0, a=-1.0, b=2.0)
    assert x.min() >= -1 and x.max() <= 2
    assert abs(x.mean().item() - 0.5) < 0.02 and np.histogram(x.numpy(), 3)[0].min() > 6000
    narrow = nn.init.trunc_normal_(nn.Parameter(norch.empty(20000)), std=0.02)
    assert abs(narrow.std().item() - 0.02) < 1e-3
    assert nn.init.eye_(norch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(norch.ShapeError, match="eye_"):
        nn.init.eye_(norch.empty(2))
    with pytest.warns(UserWarning, match="mean"):
        nn.init.trunc_normal_(norch.empty(2), mean=9.0)
