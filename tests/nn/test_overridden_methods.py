"""Methods of a module go through those that a submodule's class overrides where PyTorch's do, and through no others."""

from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.testing import assert_close


def test_arguments_of_a_module_are_those_of_the_next_class_or_an_error() -> None:
    for args, named in (((1,), {}), ((), {"a": 1})):
        with pytest.raises(TypeError, match="Module"):
            nn.Module(*args, **named)

    class Named:
        def __init__(self, *args: Any, **named: Any) -> None:
            self.got = args, named

    class Both(nn.Module, Named):
        call_super_init = True

    assert Both(1, a=2).got == ((1,), {"a": 2}) and Both().got == ((), {})


def test_a_module_with_look_ups_of_its_own() -> None:
    class Own(nn.Linear):
        def __getattribute__(self, name: str) -> Any:
            return "mine" if name == "own" else super().__getattribute__(name)

    module = Own(2, 1)
    assert module.own == "mine" and module.weight.shape == (1, 2) and not hasattr(module, "other")


class Frozen(nn.Sequential):
    """Layers that stay in evaluation, as the batch norms of a pretrained backbone."""

    def train(self, mode: bool = True) -> "Frozen":
        return super().train(False)


def test_a_submodule_may_stay_in_evaluation() -> None:
    model = nn.Sequential(Frozen(nn.BatchNorm1d(2), nn.Dropout()), nn.Dropout()).to(DEVICE)
    model.train()
    assert model.training and model[1].training
    assert not any(module.training for module in model[0].modules())
    x = norch.ones(4, 2, device=DEVICE)
    model[0](x)
    assert_close(model[0][0].running_mean, norch.zeros(2, device=DEVICE))
    with pytest.raises(ValueError, match="boolean"):
        model.train(1)  # type: ignore[arg-type]


def test_a_sequential_calls_what_it_iterates_over() -> None:
    class Twice(nn.Sequential):
        def __iter__(self) -> Any:
            return (module for module in self._modules.values() for _ in range(2))

    weight = norch.full((2, 2), 2.0, device=DEVICE)
    model = Twice(nn.Linear(2, 2, bias=False), nn.ReLU()).to(DEVICE)
    model[0].weight.data = weight
    assert_close(model(norch.ones(2, device=DEVICE)), norch.full((2,), 16.0, device=DEVICE))


class OfSome(nn.Module):
    """parameters() without arguments, and of some layers."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(2, 1), nn.Linear(2, 2)
        self.register_buffer("count", norch.zeros(1))

    def parameters(self) -> Any:  # type: ignore[override]
        return self.head.parameters()

    def modules(self) -> Any:
        return iter(())


def test_conversions_reach_all_tensors_whatever_parameters_gives() -> None:
    model = OfSome().double()
    assert model.body.weight.dtype == model.head.weight.dtype == model.count.dtype == norch.float64
    model.to(DEVICE).float()
    assert model.body.bias.dtype == norch.float32 and model.body.bias.device.type == norch.device(DEVICE).type
    assert nn.Sequential(OfSome()).half()[0].body.weight.dtype == norch.float16
    twice = nn.ModuleList([model.body, model.body])
    twice.double()
    assert twice[0].weight is twice[1].weight and model.body.weight.dtype == norch.float64


class AtHome(nn.Linear):
    """A layer whose to() and cpu() call each other's base, as gpytorch's search of neighbours."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return self.cpu()

    def cpu(self) -> Any:
        self.was_moved = True
        return super().cpu()


def test_conversions_do_not_call_to() -> None:
    layer = AtHome(1, 1)
    assert layer.to("cpu") is layer and layer.was_moved
    for name in ("half", "double", "float", "bfloat16"):
        assert getattr(layer, name)() is layer


class Named(nn.Linear):
    def _get_name(self) -> str:
        return "Renamed"


class Counted(nn.Module):
    def add_module(self, name: str, module: Any) -> None:
        super().add_module(f"{name}_counted", module)


def test_names() -> None:
    assert repr(nn.Sequential(Named(1, 2))).splitlines()[1].startswith("  (0): Renamed(in_features=1")
    module = Counted()
    module.register_module("a", nn.ReLU())
    assert [name for name, _ in module.named_children()] == ["a_counted"]


class Zeros(nn.MultiheadAttention):
    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


class Slopes(nn.PReLU):
    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, 0.5)


def test_constructors_call_the_methods_that_initialize() -> None:
    assert not any(parameter.any() for parameter in Zeros(4, 2, add_bias_kv=True, device=DEVICE).parameters())
    layer = nn.MultiheadAttention(4, 2, device=DEVICE)
    nn.init.zeros_(layer.in_proj_weight)
    layer.reset_parameters()
    assert layer.in_proj_weight.all()
    assert Slopes(2, device=DEVICE).weight.tolist() == [0.5, 0.5]
