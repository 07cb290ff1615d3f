"""State dicts of modules: those that save and load themselves, versions, and tensors that are shared or assigned."""

from typing import Any

import pytest

import norch
from norch import nn


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
    base, net = norch.arange(4.0), nn.Module()
    net.register_buffer("last", base[2:])
    net.register_buffer("first", base[:2])
    net.load_state_dict({"last": norch.zeros(2), "first": base[::2]})  # which begins where it is loaded to
    assert base.tolist() == [0, 2, 0, 0]


def test_an_assigned_parameter_takes_the_place_itself() -> None:
    net, weight = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Parameter(norch.eye(2))
    state = {**net.state_dict(), "0.weight": weight, "1.weight": weight}
    net.load_state_dict(state, assign=True)
    assert net[0].weight is weight and net[1].weight is weight and len(list(net.parameters())) == 3
    net[0].weight.requires_grad_(False)
    other = nn.Parameter(norch.eye(2))
    net.load_state_dict({**state, "0.weight": other}, assign=True)
    assert not net[0].weight.requires_grad and other.requires_grad


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
