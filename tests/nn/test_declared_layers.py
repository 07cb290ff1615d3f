"""Layers declared by their options (norch/nn/_layer.py): signatures, printing, inheritance, PyTorch's constructors."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

import norch
from norch import Tensor, nn
from norch.nn._layer import KW_ONLY, Layer, options


@options
class Scaled(Layer, function=lambda input, factor, inplace, weight: input * factor):
    """An input times a factor, for tests."""

    factor: float
    inplace: bool = False
    _: KW_ONLY
    weight: Tensor | None = None


@options
class Shifted(Scaled):
    shift: float = 1.0
    _: KW_ONLY
    name: str = "a"
    _shown = ("factor", "shift", "name")

    def __post_init__(self) -> None:
        self.shift += 1

    def forward(self, input: norch.Tensor) -> norch.Tensor:
        return super().forward(input) + self.shift


def test_arguments_of_the_function() -> None:
    """By position as far as the function has the options in this order, then by name; training is the module's."""

    @options
    class Noted(Layer, function=lambda x, a, training, c, b, *, d: (a, training, c, b, d)):
        a: int
        b: int = 2
        c: int = 3
        _: KW_ONLY
        d: int = 4

    assert Noted(1)(0) == (1, True, 3, 2, 4) and Noted(1, 5, d=6).eval()(0) == (1, False, 3, 5, 6)


def test_signatures() -> None:
    def text(function: Any) -> str:
        return str(inspect.signature(function)).replace("'", "")

    assert text(nn.LeakyReLU) == "(negative_slope: float = 0.01, inplace: bool = False) -> None"
    assert text(nn.LeakyReLU.__init__) == "(self, negative_slope: float = 0.01, inplace: bool = False) -> None"
    assert text(nn.LeakyReLU.forward) == "(self, input: Tensor) -> Tensor"
    assert text(nn.TripletMarginLoss.forward) == "(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor"
    assert text(nn.BCELoss) == "(weight: Tensor | None = None, *, reduction: str = mean) -> None"
    assert text(Shifted).startswith("(factor: float, inplace: bool = False, shift: float = 1.0, *, weight: ")
    assert nn.GLU.__init__.__qualname__ == "GLU.__init__"
    assert not hasattr(nn.LeakyReLU, "negative_slope")  # an attribute of instances


def test_arguments() -> None:
    layer = Shifted(3.0, True, weight=norch.ones(1))
    assert (layer.factor, layer.inplace, layer.shift, layer.name) == (3.0, True, 2.0, "a")
    assert list(layer.state_dict()) == ["weight"]
    assert layer(norch.ones(1)).item() == 5
    for arguments, named, message in (
        ((), {}, r"Scaled.__init__\(\) missing 1 required positional argument: 'factor'"),
        ((1, 2, 3), {}, r"Scaled.__init__\(\) takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"foo": 1}, r"Scaled.__init__\(\) got an unexpected keyword argument 'foo'"),
    ):
        with pytest.raises(TypeError, match=message):
            Scaled(*arguments, **named)
    with pytest.raises(TypeError, match="norch.Tensor or None expected"):
        Scaled(1, weight=2)  # type: ignore[arg-type]


def test_printing() -> None:
    assert repr(Scaled(2.0)) == "Scaled(factor=2.0, weight=None)"
    assert repr(Scaled(2.0, True)) == "Scaled(factor=2.0, weight=None, inplace=True)"
    assert repr(Shifted(2.0)) == "Shifted(factor=2.0, shift=2.0, name=a)"


def test_annotations_of_users_are_no_options() -> None:
    class Mine(nn.LeakyReLU):
        scale: float = 3.0

    class Own(nn.ReLU):
        def __init__(self, width: int) -> None:
            super().__init__(inplace=True)
            self.width = width

    assert Mine.scale == Mine(0.5).scale == 3.0 and str(inspect.signature(Mine)) == str(inspect.signature(nn.LeakyReLU))
    assert list(inspect.signature(Own).parameters) == ["width"] and Own(3).inplace
    assert repr(Mine(0.5)) == "Mine(negative_slope=0.5)"


def test_dataclasses_of_users() -> None:
    @dataclasses.dataclass(eq=False)
    class Mine(nn.Dropout):
        rate: float = 0.25

        def __post_init__(self) -> None:
            super().__init__(self.rate)

    class Named(nn.ReLU):
        def __init_subclass__(cls, title: str = "") -> None:
            cls.title = title

    class Other(Named, title="b"):
        pass

    assert Mine().p == 0.25 and Other().title == "b"


def test_constructors_are_cooperative() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 7

    class Both(nn.ELU, Counted):
        pass

    assert Both(0.5).count == 7 and Both(0.5).alpha == 0.5


def test_copies() -> None:
    for layer in (nn.Softplus(2.0), nn.NLLLoss(norch.ones(3)), nn.ConstantPad1d(1, 2.0), nn.ZeroPad2d(1)):
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert repr(other) == repr(layer) and vars(other).keys() == vars(layer).keys()


def test_layers_are_compiled_when_first_used() -> None:
    code = """
import norch.nn as nn
assert not callable(vars(nn.Softplus)["__init__"]) and not callable(vars(nn.Softplus)["forward"])
nn.Softplus()
assert callable(vars(nn.Softplus)["__init__"]) and not callable(vars(nn.GLU)["__init__"])
"""
    subprocess.run([sys.executable, "-c", code], check=True)


LAYERS = [name for name in nn.__all__ if isinstance(getattr(nn, name), type)]
# The first two have other arguments in PyTorch, and the losses size_average where norch has `reduction`.
DIFFERENT = set("RNN RNNCellBase L1Loss MSELoss SoftMarginLoss".split())


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in DIFFERENT])
def test_constructors_like_torch(torch: Any, name: str) -> None:
    """Positional parameters have PyTorch's names, order and defaults, up to those that norch takes by keyword only."""
    if not hasattr(torch.nn, name):
        pytest.skip("PyTorch has no such layer")
    ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (nn, torch.nn))
    positional = [p for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    wanted = [p for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in positional] == [p.name for p in wanted][: len(positional)]


@pytest.mark.parametrize("pair", ["Dropout2d Dropout", "CELU ELU", "Softmin Softmax", "MaxPool2d MaxPool1d"])
def test_siblings_are_no_subclasses(torch: Any, pair: str) -> None:
    for module in (nn, torch.nn):
        a, b = (getattr(module, name) for name in pair.split())
        assert not issubclass(a, b)
    assert issubclass(nn.ZeroPad2d, nn.ConstantPad2d) and not issubclass(nn.ConstantPad2d, nn.ConstantPad1d)
