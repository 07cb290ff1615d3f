"""What hangs on modules and holds parameters: backward hooks, lists and dictionaries, vectors, look-ups."""

import copy
import pickle
import re
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE, torch_or_skip

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
    with pytest.raises(TypeError, match="an iterable of items, not a Parameter"):
        many += scale
    many[1] = norch.ones(2, 3)
    assert [p.shape for p in many] == [(2,), (2, 3), (1,)] and list(many.state_dict()) == ["0", "1", "2"]
    assert "(1): Parameter containing: [norch.float32 of size 2x3]" in repr(many)
    assert "(1): Object of type: int" in repr(nn.ParameterList([scale, 3]))
    named = nn.ParameterDict({"a": scale})
    named["b"] = norch.zeros(1)
    assert list(named) == list(named.keys()) == ["a", "b"] and "a" in named and dict(named.items())["a"] is scale
    del named["a"]
    assert list(named.state_dict()) == ["b"] and len(named) == 1 and len(list(named.values())) == 1
    with pytest.raises(KeyError):
        del named["a"]


def test_parameter_lists_hold_lists_and_other_values(torch):
    for m in (norch, torch):
        many = m.nn.ParameterList([m.nn.ParameterList([m.zeros(2), m.ones(1)]), 3, m.zeros(4)])
        many[1] = m.ones(2)
        many.append("name")
        assert len(many) == 4 and many[3] == "name" and len(many[0]) == 2 and len(many[1:3]) == 2
        assert sorted(name for name, _ in many.named_parameters()) == ["0.0", "0.1", "1", "2"]


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
    net.weight.requires_grad_(False)
    with pytest.raises(norch.Error, match="vector_to_parameters: parameters that require grad cannot become int64"):
        nn.utils.vector_to_parameters(norch.arange(8), net.parameters())
    assert net.weight.dtype is net.bias.dtype is norch.float32


def test_further_initial_values():
    x = nn.init.trunc_normal_(norch.empty(20000), mean=0.5, std=2.0, a=-1.0, b=2.0)
    assert x.min() >= -1 and x.max() <= 2
    assert abs(x.mean().item() - 0.5) < 0.02 and np.histogram(x.numpy(), 3)[0].min() > 6000
    narrow = nn.init.trunc_normal_(nn.Parameter(norch.empty(20000)), std=0.02)
    assert abs(narrow.std().item() - 0.02) < 1e-3
    norch.manual_seed(842)  # one of the uniform numbers is -1
    assert nn.init.trunc_normal_(norch.empty(20000), std=0.02).abs().max() < 0.12
    assert nn.init.eye_(norch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(norch.ShapeError, match="eye_"):
        nn.init.eye_(norch.empty(2))
    with pytest.warns(UserWarning, match="mean"):
        nn.init.trunc_normal_(norch.empty(2), mean=9.0)


# ---- hooks around forward and the state -----------------------------------------------------------------------------


def net_of(library: Any) -> Any:
    """A module with a child that has extra state, and takes a keyword."""

    class Counter(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0
            self.weight = library.nn.Parameter(library.ones(2))

        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            self.count += 1
            if scale == 0:
                raise ZeroDivisionError("scale")
            return x * self.weight * scale

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    class Net(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Counter()
            self.register_buffer("mean", library.zeros(2))

        def forward(self, x: Any) -> Any:
            return self.inner(x, scale=2.0) + self.mean

    return Net()


def forward_hooks(library: Any) -> list[Any]:
    told: list[Any] = []
    net = net_of(library)
    inner, x = net.inner, library.ones(2)

    def note(name: str, gives: Any = None) -> Any:
        def hook(module: Any, *arguments: Any) -> Any:
            told.append((name, module is inner, [type(one).__name__ for one in arguments]))
            return gives

        return hook

    inner.register_forward_pre_hook(note("second"))
    inner.register_forward_pre_hook(note("first", x * 3), prepend=True)
    inner.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": kwargs["scale"] + 1}), with_kwargs=True)
    inner.register_forward_hook(note("after"))
    inner.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["scale"], with_kwargs=True, prepend=True)
    always = inner.register_forward_hook(note("always"), always_call=True)
    told.append(net(x).tolist())
    for scale in (-1.0, 1.0):
        try:
            told.append(inner(x, scale=scale).tolist())
        except ZeroDivisionError:
            told.append("raised")
    always.remove()
    try:
        inner(x, scale=-1.0)
    except ZeroDivisionError:
        told.append("raised")
    return told


def state_hooks(library: Any) -> list[Any]:
    told: list[Any] = []
    a, b = net_of(library), net_of(library)
    a(library.ones(2))
    a.register_state_dict_pre_hook(lambda m, prefix, keep: told.append(("save", m is a, prefix, keep)))
    a.inner.register_state_dict_pre_hook(lambda m, prefix, keep: told.append(("save", m is a, prefix, keep)))
    a.register_state_dict_post_hook(lambda m, state, prefix, meta: told.append(state.pop(prefix + "mean").tolist()))
    a.inner.register_state_dict_post_hook(lambda m, state, prefix, meta: told.append((prefix, list(state))))
    state = a.state_dict()
    told.append(list(state))
    told.append(list(a.state_dict(prefix="x.", destination={"y": 1}, keep_vars=True)))

    def loads(module: Any, state: Any, prefix: str, meta: Any, strict: bool, *lists: Any) -> None:
        told.append((module is b.inner, list(state), prefix, strict, [list(one) for one in lists]))
        if "inner.old" in state:
            state["inner.weight"] = state.pop("inner.old")

    b.inner.register_load_state_dict_pre_hook(loads)
    state["inner.old"] = state.pop("inner.weight") * 5
    told.append([list(keys) for keys in b.load_state_dict(state, strict=False)])
    told.append((b.inner.count, b.inner.weight.tolist(), "inner.old" in state))
    try:
        b.load_state_dict(state)
    except RuntimeError as error:
        told.append("mean" in str(error))
    b.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    told.append([list(keys) for keys in b.load_state_dict(state)])
    own, mean = b.inner.weight, library.ones(2, dtype=library.float64)
    fresh = {**b.state_dict(), "mean": mean, "inner.weight": library.zeros(2, dtype=library.float64)}
    b.inner.weight.requires_grad_(False)
    b.load_state_dict(fresh, assign=True)
    told += [b.mean is mean, b.inner.weight is own, b.inner.weight.requires_grad, str(b.inner.weight.dtype)[6:]]
    told += [
        isinstance(b.inner.weight, library.nn.Parameter),
        b.inner.weight.data_ptr() == fresh["inner.weight"].data_ptr(),
    ]
    return told


def held_hooks(library: Any) -> list[Any]:
    """The dicts hold the hooks themselves, and others the numbers of those with an option; programs go through them,
    delete from them and replace them."""
    told: list[Any] = []
    layer, x = library.nn.ReLU(), library.ones(2)

    def hook(*given: Any) -> None:
        told.append([type(one).__name__ for one in given])

    def other(*given: Any) -> None:
        told.append(len(given))

    def tell() -> None:
        layer(x)
        for kind in ("forward", "forward_pre", "backward", "backward_pre"):
            told.append([one is hook for one in getattr(layer, f"_{kind}_hooks").values()])
        for option in ("forward_hooks_with_kwargs", "forward_hooks_always_called", "forward_pre_hooks_with_kwargs"):
            kept, hooks = getattr(layer, f"_{option}"), getattr(layer, f"_{option.partition('hooks')[0]}hooks")
            told.append([kept.get(number, False) for number in hooks])

    before = layer.register_forward_pre_hook(hook, with_kwargs=True)
    layer.register_forward_pre_hook(other)
    after = layer.register_forward_hook(hook, with_kwargs=True)
    layer.register_forward_hook(hook, always_call=True, prepend=True)
    layer.register_full_backward_hook(other)
    layer.register_full_backward_pre_hook(hook)
    tell()
    for hooks in (layer._forward_hooks, layer._forward_pre_hooks):
        for number, one in list(hooks.items()):
            if one is hook:
                del hooks[number]  # as pruning does, and the removal of weight norm
    layer.register_forward_hook(hook)
    layer.register_forward_pre_hook(hook, prepend=True)
    tell()
    before.remove()  # of hooks that are there no more
    after.remove()
    tell()
    layer._forward_hooks = OrderedDict()
    layer._forward_pre_hooks.clear()
    layer._forward_pre_hooks[-1] = other
    gone = layer.register_forward_hook(hook)
    layer._forward_hooks.clear()
    layer.register_forward_hook(hook)
    gone.remove()
    tell()
    again = copy.deepcopy(layer)
    told.append([again._forward_hooks is layer._forward_hooks, list(again._forward_pre_hooks.values()) == [other]])
    return told


@pytest.mark.parametrize("story", [forward_hooks, held_hooks, state_hooks])
def test_hooks_like_torch(torch: Any, story: Any) -> None:
    wanted = story(torch)
    found = story(norch)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert one == other or str(one).replace("norch", "torch") == str(other)


def test_hooks_of_modules_saved_with_their_options() -> None:
    """Modules that norch 0.2 pickled have a tuple of each hook; a class may set its own state."""

    class Own(nn.ReLU):
        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__ = dict(state)

    told: list[int] = []

    def hook(*given: Any) -> None:
        told.append(len(given))

    for kind in (nn.ReLU, Own):
        state = {name: value for name, value in vars(kind()).items() if "hooks_" not in name}
        state["_forward_hooks"] = {0: (hook, True, False), 2: (hook, False, True)}
        state["_forward_pre_hooks"] = {1: (hook, True), 3: (hook, False)}
        old = kind.__new__(kind)
        old.__setstate__(state)
        old(norch.ones(1))
        assert told == [3, 2, 4, 3] and vars(old).keys() == vars(kind()).keys()
        assert old._forward_hooks_always_called == {2: True} and list(old._forward_hooks.values()) == [hook, hook]
        assert copy.copy(old)._forward_hooks is old._forward_hooks
        told.clear()


def test_hooks_that_give_the_wrong_thing() -> None:
    net = net_of(norch)
    handle = net.inner.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(norch.Error, match=r"returns None or \(args, kwargs\)"):
        net(norch.ones(2))
    handle.remove()
    with pytest.raises(norch.Error, match="no extra state"):
        net.get_extra_state()
    with pytest.raises(norch.Error, match="no extra state"):
        net.set_extra_state(1)


def test_type_of_a_module() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).type(norch.float64)
    assert net[0].weight.dtype is norch.float64 and net[1].num_batches_tracked.dtype is norch.float64
    assert isinstance(net[0].weight, nn.Parameter) and net[0].weight.requires_grad


def test_to_empty_keeps_the_parameters_and_not_what_they_hold() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    net.own = nn.Parameter(norch.ones(2))
    weight, mean, own, places = net[0].weight, net[1].running_mean, net.own, [p.data_ptr() for p in net.parameters()]
    assert net.to_empty(device=DEVICE) is net
    assert net[0].weight is weight and weight.requires_grad and weight.shape == (3, 2)
    assert net[1].running_mean is not mean and net[1].running_mean.shape == (3,)
    assert all(p.data_ptr() != place for p, place in zip(net.parameters(), places, strict=True))
    place, places = own.data_ptr(), [p.data_ptr() for p in net[0].parameters()]
    net.to_empty(device=None, recurse=False)
    assert own.data_ptr() != place and [p.data_ptr() for p in net[0].parameters()] == places


@pytest.mark.parametrize(
    "kind", ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook", "backward_hook"]
)
def test_each_kind_of_hook_alone(kind: str) -> None:
    seen: list[Any] = []
    layer = nn.Tanh()
    with getattr(layer, f"register_{kind}")(lambda module, *tensors: seen.append((module, tensors[-1]))):
        layer(norch.zeros(2, requires_grad=True)).sum().backward()
    layer(norch.zeros(2, requires_grad=True)).sum().backward()
    assert [module for module, _ in seen] == [layer]
    assert "backward" not in kind or seen[0][1][0].tolist() == [1.0, 1.0]


def test_set_submodule() -> None:
    net = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Linear(1, 1))
    net.set_submodule("0.0", nn.ReLU())
    net.set_submodule("0.more", nn.Tanh())
    assert repr(net[0][0]) == "ReLU()" and repr(net[0].more) == "Tanh()"
    for error, arguments in (
        (ValueError, ("", nn.ReLU())),
        (ValueError, ("0.0", 3)),
        (AttributeError, ("0.9.1", nn.ReLU())),
        (AttributeError, ("0.9", nn.ReLU(), True)),
        (AttributeError, ("1.weight", nn.ReLU())),
    ):
        with pytest.raises(error):
            net.set_submodule(*arguments)


# ---- sequences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("first", [True, False])
def test_pad_sequence(torch: Any, first: bool, side: str) -> None:
    arrays = [np.arange(2.0 * n).reshape(n, 2) + 1 for n in (3, 1, 4)]
    ours = [norch.tensor(a, requires_grad=True) for a in arrays]
    padded = nn.utils.rnn.pad_sequence(ours, first, -1.0, side)
    theirs = torch.nn.utils.rnn.pad_sequence([torch.tensor(a) for a in arrays], first, -1.0, side)
    np.testing.assert_array_equal(padded.detach().numpy(), theirs.numpy())
    padded.sum().backward()
    assert ours[1].grad.tolist() == [[1.0, 1.0]]
    if side == "right":
        for part, a in zip(nn.utils.rnn.unpad_sequence(padded, norch.tensor([3, 1, 4]), first), arrays, strict=True):
            np.testing.assert_array_equal(part.detach().numpy(), a)
    assert nn.utils.rnn.pad_sequence(norch.ones(2, 3), True).tolist() == norch.ones(2, 3).tolist()
    with pytest.raises(norch.ShapeError, match="pad_sequence"):
        nn.utils.rnn.pad_sequence([norch.ones(2, 3), norch.ones(2, 4)])
    with pytest.raises(norch.ArgumentError, match="padding_side is"):
        nn.utils.rnn.pad_sequence(ours, padding_side="top")


def test_backward_hooks_in_a_second_derivative():
    """The hook is for the walk that comes from the outputs; one that only passes the inputs is none of its business."""
    x, square, calls = norch.rand(1, requires_grad=True), nn.MSELoss(), []
    square.register_full_backward_hook(lambda module, inputs, outputs: calls.append(outputs))
    (slope,) = norch.autograd.grad(square(x, norch.zeros(1)), x, create_graph=True)
    assert norch.autograd.grad(slope, x)[0].tolist() == [2] and len(calls) == 1


def test_what_is_no_tensor_is_told_by_the_layer() -> None:
    for layer, name in (
        (nn.ReLU(), "relu"),
        (nn.Sigmoid(), "sigmoid"),
        (nn.Tanh(), "tanh"),
        (nn.Softmax2d(), "Softmax2d"),
        (nn.InstanceNorm1d(3), "InstanceNorm1d"),
        (nn.TransformerEncoderLayer(4, 2, 8), "MultiheadAttention"),
    ):
        with pytest.raises(TypeError, match=f"{name}: expected a tensor"):
            layer("text")


def test_backward_hooks_that_give_another_number_of_gradients():
    for given in ((), (norch.ones(2, 2), norch.ones(2, 2))):
        module = nn.Sigmoid()
        module.register_full_backward_hook(lambda module, inputs, outputs, given=given: given)
        with pytest.raises(norch.Error, match=f"returned {len(given)} gradients, expected 1"):
            module(norch.rand(2, 2, requires_grad=True)).sum().backward()


def test_sequential_is_repeated_once_or_more():
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert len(net * 2) == len(2 * net) == 4 and len(net * True) == 2
    for times, error in ((0, ValueError), (-1, ValueError), ("a", TypeError), (1.5, TypeError)):
        for repeated in (lambda times=times: net * times, lambda times=times: net.__imul__(times)):
            with pytest.raises(error, match="Sequential: repeated"):
                repeated()
    again = net
    again *= 3
    assert again is net and len(net) == 6 and net[4] is net[0]


def test_what_programs_write_into_registries_is_an_attribute(torch):
    for m in (norch, torch):
        net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3), m.nn.Linear(3, 1))
        other = m.nn.Identity()
        net._modules["1"] = other
        assert net[1] is other and net._modules.pop("2") is not None and len(net) == 2
        assert net._modules.pop("2", 5) == 5
        with pytest.raises(KeyError, match="2"):
            net._modules.pop("2")
        both = m.nn.Bilinear(1, 1, 1)
        assert both._parameters.popitem()[0] == "bias" and not hasattr(both, "bias") and hasattr(both, "weight")
        both._parameters.clear()
        with pytest.raises(KeyError, match="empty"):
            both._parameters.popitem()
        linear, weight = net[0], m.nn.Parameter(m.zeros(3, 2))
        linear._parameters["weight"] = weight
        assert linear.weight is weight and linear(m.ones(1, 2)).tolist() == [linear.bias.tolist()]
        del linear._parameters["weight"]
        assert not hasattr(linear, "weight")
        linear.weight = weight * 2  # which is no parameter
        assert [name for name, _ in linear.named_parameters()] == ["bias"]
        linear._buffers.update(scale=m.ones(1))
        assert linear.scale.item() == 1 and "scale" in linear.state_dict()
        linear._parameters.clear()
        assert not hasattr(linear, "bias")


def test_copies_of_modules_have_registries_of_their_own():
    net = nn.Linear(2, 2)
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(net.__reduce_ex__(4)) is tuple and copied.weight is copied._parameters["weight"]
        copied._parameters["weight"] = None
        assert copied.weight is None and net.weight is not None
    known = weakref.ref(net)
    del net, copied
    assert known() is None  # the registries make no cycle


def test_a_dict_in_the_place_of_a_registry():
    net = nn.Linear(2, 2)
    weight = net.weight
    del net.weight
    object.__setattr__(net, "_parameters", {"weight": weight, "bias": net.bias})
    assert net.weight is weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wieght'"):
        _ = net.wieght


def as_a_dict(lib):
    p = lib.nn.ParameterDict({"a": lib.ones(1), "b": lib.zeros(2)})
    a = p["a"]
    said = [p.get("c"), p.get("c", 3), p.get("a") is a, p.setdefault("a", lib.ones(3)) is a]
    said += [p.setdefault("d", lib.ones(3)).requires_grad, list(reversed(p)), p.popitem()[0], list(p)]
    copied, filled = p.copy(), p.fromkeys(["x", "y"], lib.ones(1))
    said += [copied["a"] is a, type(copied) is type(p), sorted(filled), filled["x"].requires_grad]
    both = p | {"z": lib.ones(1)}
    p |= {"b": lib.ones(4)}
    said += [list(both), type(both) is type(p), list(({"z": a}) | p), p["b"].shape[0], both["b"].shape[0]]
    said += [type({"z": a} | p) is dict, filled["x"] is filled["y"], len(list(filled.parameters()))]
    p.update({"z": lib.ones(1), "n": 3, "k": "text", "e": None})
    p["m"] = lib.nn.Linear(1, 2)
    for value in (4, None, lib.nn.Linear(1, 1)):
        p["swapped"] = value
        p["swapped"] = lib.ones(1)
        said += [type(p.pop("swapped")).__name__]
    said += [
        list(p),
        [v for v in p.values() if not isinstance(v, (lib.Tensor, lib.nn.Module))],
        p.pop("n"),
        [name for name, _ in p.named_parameters()],
    ]
    p.update(OrderedDict(zz=lib.ones(1), za=lib.ones(1)))
    said += [list(p), len(p), "n" in p, list(lib.nn.ParameterDict([("q", 1), ("b", lib.ones(1))]))]
    loaded = pickle.loads(pickle.dumps(p))
    said += [list(loaded), loaded["k"], loaded["zz"].shape[0], list(copy.deepcopy(p)), list(p.state_dict())]
    said += [re.findall(r"\((.*?)\): (Object of type: \w+|Parameter)", repr(p))]
    del p["m"]
    p.clear()
    with pytest.raises(KeyError):
        p.popitem()
    return said


def test_dictionaries_of_parameters_are_like_dicts():
    assert as_a_dict(norch) == as_a_dict(torch_or_skip())


def test_a_deep_copy_of_a_model_begins_without_gradients(torch):
    for m in (norch, torch):
        model = m.nn.Linear(2, 1)
        leaf = m.ones(2, requires_grad=True)
        model(leaf).backward()
        copied, (also, of_leaf) = copy.deepcopy(model), copy.deepcopy([model.weight, leaf])
        assert copied.weight.grad is None and also.grad is None
        assert of_leaf.grad.tolist() == leaf.grad.tolist()
        copied(m.ones(2)).backward()
        assert copied.weight.grad.tolist() == [[1, 1]]


def test_to_a_complex_dtype_converts_floats_and_complex_numbers() -> None:
    layer = nn.Linear(3, 2)
    weight = layer.weight.detach().clone()
    assert layer.to(norch.complex64).weight.dtype is norch.complex64
    assert layer.to(norch.complex128).weight.dtype is norch.complex128
    assert (layer.weight.real == weight).all()
    assert layer.double().weight.dtype is norch.complex128  # as in PyTorch, double() is of floats
    with pytest.raises(norch.DTypeError):
        layer.to(norch.float32)  # nothing is dropped in silence
    assert layer.weight.dtype is norch.complex128
    with pytest.raises(norch.DTypeError, match="floating point or complex"):
        layer.to(norch.int64)
