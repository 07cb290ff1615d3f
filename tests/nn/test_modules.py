"""What hangs on modules and holds parameters: backward hooks, lists and dictionaries, vectors, look-ups."""

import copy
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

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


@pytest.mark.parametrize("story", [forward_hooks, state_hooks])
def test_hooks_like_torch(torch: Any, story: Any) -> None:
    wanted = story(torch)
    found = story(norch)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert one == other or str(one).replace("norch", "torch") == str(other)


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


def state_of(lib: Any) -> tuple[Any, ...]:
    """What a module that says itself what it saves and loads gives in norch and in PyTorch."""

    class Old(lib.nn.Linear):
        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "kernel"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
            state_dict = dict(state_dict)
            if prefix + "kernel" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, *more)

    net, other = (lib.nn.Sequential(Old(2, 2), lib.nn.Linear(2, 1)) for _ in range(2))
    state = net.state_dict()
    return net, other, state


def test_modules_that_save_and_load_themselves(torch: Any) -> None:
    for lib in (norch, torch):
        net, other, state = state_of(lib)
        assert list(state) == ["0.bias", "0.kernel", "1.weight", "1.bias"]
        keys = other.load_state_dict(state, strict=False)
        assert not keys.missing_keys
        assert (other[0].weight == net[0].weight).all() and (other[1].weight == net[1].weight).all()
        state["1.weight"] = lib.zeros(3, 3)
        state["0.kernel"] = lib.zeros(2, 2)
        with pytest.raises(RuntimeError, match="size mismatch for 1.weight"):
            other.load_state_dict(state, strict=False)
    net, other, state = state_of(norch)
    before = other[0].weight.tolist()
    state["1.weight"] = norch.zeros(3, 3)
    with pytest.raises(norch.Error, match="size mismatch"):
        other.load_state_dict(state, strict=False)
    assert other[0].weight.tolist() == before


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


def test_a_module_that_saves_and_loads_by_itself():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.param, self.sub = nn.Parameter(norch.ones(1)), nn.Linear(2, 2)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[prefix + "serialized"] = self.param.detach() + 1

        def _load_from_state_dict(self, state_dict, prefix, *more):
            self.param.data.copy_(state_dict[prefix + "serialized"] - 1)

    first, second = nn.Sequential(Own()), nn.Sequential(Own())
    with norch.no_grad():
        first[0].param.fill_(10)
        first[0].sub.weight.fill_(555)
    state = first.state_dict()
    second.load_state_dict(state)
    assert list(state) == ["0.serialized", "0.sub.weight", "0.sub.bias"]
    assert second[0].param.item() == 10 and second[0].sub.weight[0, 0].item() == 555
    with pytest.raises(norch.Error, match="Unexpected .*0.sub.other"):
        second.load_state_dict({**state, "0.sub.other": norch.ones(1)})


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


# ---- versions ------------------------------------------------------------------------------------------------------


def versions_of(lib: Any) -> tuple[Any, ...]:
    """What state_dict() and load_state_dict() say of versions in norch and in PyTorch."""
    seen: list[Any] = []

    class Third(lib.nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *more: Any) -> None:
            seen.append((prefix, local_metadata.get("version")))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *more)

    net = lib.nn.Sequential(Third(2, 2), lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.ReLU()))
    net[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: seen.append((prefix, dict(metadata))))
    net[0].register_load_state_dict_pre_hook(
        lambda module, state, prefix, metadata, *more: seen.append((prefix, metadata.get("version")))
    )
    state = net.state_dict()
    metadata = {name: dict(versions) for name, versions in state._metadata.items()}
    plain = dict(state)
    net.load_state_dict(state)
    state._metadata["0"]["version"] = 2
    net.load_state_dict(state)
    net.load_state_dict(plain)
    part = net.state_dict(prefix="net.")._metadata
    return (
        type(state).__name__,
        list(metadata.items()),
        seen,
        list(part),
        hasattr(net.state_dict(destination=plain), "_metadata"),
    )


def test_versions_of_modules(torch: Any) -> None:
    ours = versions_of(norch)
    assert ours == versions_of(torch)
    assert ours[1] == [("", {"version": 1}), ("0", {"version": 3}), ("1", {"version": 1})] + [
        ("1.0", {"version": 2}),
        ("1.1", {"version": 1}),
    ]
    assert ours[2][:3] == [("0.", {"version": 3}), ("0.", 3), ("0.", 3)]


@pytest.mark.parametrize("format", ["norch", "torch"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_versions_come_along_in_files(tmp_path: Any, format: str, weights_only: bool) -> None:
    state = nn.Sequential(nn.BatchNorm1d(2)).state_dict()
    norch.save({"net": state}, tmp_path / "x", format=format)
    found = norch.load(tmp_path / "x", weights_only=weights_only)["net"]
    assert found._metadata == state._metadata == {"": {"version": 1}, "0": {"version": 2}}


def test_batches_are_counted_since_version_2(torch: Any) -> None:
    for lib in (norch, torch):
        net = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.BatchNorm1d(2, track_running_stats=False))
        net[0].num_batches_tracked.fill_(5)
        state = net.state_dict()
        del state["0.num_batches_tracked"]
        with pytest.raises(RuntimeError, match="Missing key.*0.num_batches_tracked"):
            net.load_state_dict(state)
        del state._metadata
        net.load_state_dict(state)
        net.load_state_dict(dict(state), assign=True)
        assert net[0].num_batches_tracked == 5


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


@pytest.mark.parametrize("missing", [False, True])
def test_assigned_tensors_stay_shared(missing: bool) -> None:
    """Weights and buffers of two places are one tensor after load_state_dict(assign=True), that of the last key."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("u", norch.ones(2))
            self.register_buffer("v", self.u)

    model = Tied()
    state = {key: value + i for i, (key, value) in enumerate(model.state_dict().items())}
    if missing:
        del state["b.weight"], state["v"]
    model.load_state_dict(state, strict=not missing, assign=True)
    assert model.a.weight is model.b.weight and model.u is model.v and len(list(model.parameters())) == 3
    last = "a.weight" if missing else "b.weight"
    assert model.a.weight.data_ptr() == state[last].data_ptr() and model.a.bias.data_ptr() == state["a.bias"].data_ptr()
    assert model.a.weight.requires_grad and model.u is state["u" if missing else "v"]


def test_tensors_of_the_module_itself_are_loaded_as_they_were() -> None:
    """A state dict sees the memory of its module: entries that change places are all read before one is written to."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    before = [layer.weight.tolist() for layer in net]
    keys = ["0.weight", "1.weight", "2.weight"]
    state = net.state_dict()
    state.update({key: state[of] for key, of in zip(keys, keys[1:] + keys[:1], strict=True)})
    net.load_state_dict(state)
    assert [layer.weight.tolist() for layer in net] == before[1:] + before[:1]
    state = net.state_dict()
    state["0.weight"] = state["0.weight"].T
    net.load_state_dict(state)
    assert net[0].weight.T.tolist() == before[1]


def test_an_assigned_parameter_takes_the_place_itself() -> None:
    net, weight = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Parameter(norch.eye(2))
    state = {**net.state_dict(), "0.weight": weight, "1.weight": weight}
    net.load_state_dict(state, assign=True)
    assert net[0].weight is weight and net[1].weight is weight and len(list(net.parameters())) == 3
    net[0].weight.requires_grad_(False)
    other = nn.Parameter(norch.eye(2))
    net.load_state_dict({**state, "0.weight": other}, assign=True)
    assert not net[0].weight.requires_grad and other.requires_grad


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
    p.clear()
    with pytest.raises(KeyError):
        p.popitem()
    return said


def test_dictionaries_of_parameters_are_like_dicts():
    assert as_a_dict(norch) == as_a_dict(pytest.importorskip("torch"))
