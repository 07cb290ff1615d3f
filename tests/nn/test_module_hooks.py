"""Hooks of all modules, hooks of registrations, and the handles of hooks: as in PyTorch, whose names they have."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from typing import Any

import pytest

import norch
from norch import nn
from norch.nn import _hooks
from norch.utils.hooks import RemovableHandle

Pair = namedtuple("Pair", "a b")


class Pairs(nn.Module):
    def forward(self, x: norch.Tensor) -> Pair:
        return Pair(2 * x, 3 * x)


@pytest.fixture(autouse=True)
def none_is_left() -> Iterator[None]:
    call = nn.Module.__call__
    yield
    assert nn.Module.__call__ is call and not any(_hooks.GLOBAL_HOOKS)


def test_hooks_of_all_modules_come_before_those_of_a_module() -> None:
    seen: list[str] = []
    x = norch.ones(1, requires_grad=True)
    layer = nn.Tanh()
    own = [
        layer.register_forward_pre_hook(lambda *_: seen.append("own pre")),
        layer.register_forward_hook(lambda *_: seen.append("own")),
        layer.register_full_backward_pre_hook(lambda *_: seen.append("own backward pre")),
        layer.register_full_backward_hook(lambda *_: seen.append("own backward")),
    ]
    everywhere = [
        _hooks.register_module_forward_pre_hook(lambda *_: seen.append("pre")),
        _hooks.register_module_forward_hook(lambda *_: seen.append("after")),
        _hooks.register_module_full_backward_pre_hook(lambda *_: seen.append("backward pre")),
        _hooks.register_module_full_backward_hook(lambda *_: seen.append("backward")),
    ]
    layer(x).backward()
    assert seen == ["pre", "own pre", "after", "own", "backward pre", "own backward pre", "backward", "own backward"]
    for handle in (*own, *everywhere):
        handle.remove()
    seen.clear()
    layer(x).backward()
    assert not seen


def test_a_named_tuple_stays_one_under_backward_hooks() -> None:
    module = Pairs()
    gradients: list[Any] = []
    module.register_full_backward_hook(lambda module, inner, outer: gradients.append((inner, outer)))
    out = module(norch.ones(2, requires_grad=True))
    assert type(out) is Pair
    (out.a + out.b).sum().backward()
    ((inner,), outer) = gradients[0]
    assert inner.tolist() == [5.0, 5.0] and [g.tolist() for g in outer] == [[1.0, 1.0], [1.0, 1.0]]


def test_backward_hooks_see_the_output_that_a_forward_hook_puts_in_place() -> None:
    layer, seen = nn.Identity(), []
    layer.register_forward_hook(lambda module, args, out: out * 3)
    layer.register_full_backward_hook(lambda module, inner, outer: seen.append((inner[0].item(), outer[0].item())))
    layer(norch.ones(1, requires_grad=True)).backward()
    assert seen == [(3.0, 1.0)]


def test_forward_hooks_alone_add_no_node() -> None:
    layer = nn.Tanh()
    layer.register_forward_hook(lambda *_: None)
    x = norch.ones(1, requires_grad=True)
    assert type(layer(x).grad_fn) is type(norch.tanh(x).grad_fn)


def test_outputs_that_backward_hooks_cannot_see_warn() -> None:
    class Dicts(nn.Module):
        def forward(self, x: norch.Tensor) -> dict[str, norch.Tensor]:
            return {"x": x}

    module = Dicts()
    module.register_full_backward_hook(lambda *_: pytest.fail("called"))
    with pytest.warns(UserWarning, match="not dict"):
        module(norch.ones(1, requires_grad=True))["x"].backward()


def test_a_hook_of_all_modules_that_is_always_called() -> None:
    class Fails(nn.Module):
        def forward(self, x: norch.Tensor) -> norch.Tensor:
            raise ValueError("no")

    seen: list[Any] = []
    with (
        _hooks.register_module_forward_hook(lambda module, args, out: seen.append(out), always_call=True),
        _hooks.register_module_forward_hook(lambda *_: seen.append("not called")),
        pytest.raises(ValueError, match="no"),
    ):
        Fails()(norch.ones(1))
    assert seen == [None]


def test_hooks_of_registrations() -> None:
    seen: list[tuple[str, str]] = []
    with (
        _hooks.register_module_parameter_registration_hook(lambda module, name, x: seen.append(("parameter", name))),
        _hooks.register_module_buffer_registration_hook(lambda module, name, x: x + 1),
        _hooks.register_module_module_registration_hook(lambda module, name, x: nn.ReLU()),
    ):
        module = nn.Module()
        module.weight = nn.Parameter(norch.ones(1))
        module.register_parameter("bias", nn.Parameter(norch.ones(1)))
        module.register_parameter("absent", None)  # calls no hook
        module.register_buffer("mean", norch.zeros(1))
        module.layer = nn.Tanh()
        module.mean = norch.ones(1)
        module.double()  # is no registration
    assert seen == [("parameter", "weight"), ("parameter", "bias")]
    assert isinstance(module.layer, nn.ReLU) and module.mean.tolist() == [2.0]


def test_a_program_makes_a_handle_for_hooks_of_its_own() -> None:
    hooks: OrderedDict[int, str] = OrderedDict()
    options: OrderedDict[int, bool] = OrderedDict()
    first, second = RemovableHandle(hooks), RemovableHandle(hooks, extra_dict=options)
    hooks[first.id], hooks[second.id], options[second.id] = "a", "b", True
    assert first.hooks_dict_ref() is hooks and first.id < second.id
    with second:
        assert list(hooks.values()) == ["a", "b"]
    second.remove()
    assert list(hooks.values()) == ["a"] and not options


def test_handles_are_copied_and_pickled_with_their_hooks() -> None:
    module = nn.Linear(1, 1)
    handle = module.register_forward_hook(print)
    other, other_handle = copy.deepcopy((module, handle))
    other_handle.remove()
    assert not other._forward_hooks and list(module._forward_hooks) == [handle.id]
    loaded, loaded_handle = pickle.loads(pickle.dumps((module, handle)))
    loaded_handle.remove()
    assert not loaded._forward_hooks and module._forward_hooks


def test_hooks_of_a_module_can_be_reordered() -> None:
    module, seen = nn.Identity(), []
    module.register_forward_hook(lambda *_: seen.append("first"))
    second = module.register_forward_hook(lambda *_: seen.append("second"))
    module._forward_hooks.move_to_end(second.id, last=False)
    module(norch.ones(1))
    assert seen == ["second", "first"]


def test_a_module_that_was_saved_before_some_hooks_existed() -> None:
    module = nn.Linear(1, 1)
    state = {name: value for name, value in module.__dict__.items() if "always_called" not in name}
    state = {name: value for name, value in state.items() if name not in ("_state_dict_pre_hooks", "_backward_hooks")}
    loaded = nn.Linear.__new__(nn.Linear)
    loaded.__setstate__({**state, "_forward_hooks": dict(module._forward_hooks)})
    loaded.register_forward_hook(lambda module, args, out: out * 0, prepend=True)
    assert loaded(norch.ones(1)).item() == 0.0 and list(loaded.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("register", ["full_backward_pre", "full_backward"])
def test_global_backward_hooks_alone(register: str) -> None:
    """Compiled, too: a graph with hooks is not recorded."""
    layer, seen = nn.Tanh(), []
    for call in (layer, norch.compile(lambda x: layer(x))):
        seen.clear()
        with getattr(_hooks, f"register_module_{register}_hook")(lambda *_: seen.append("hook")):
            for _ in range(6):
                call(norch.ones(1, requires_grad=True)).backward()
        assert seen == ["hook"] * 6
        call(norch.ones(1, requires_grad=True)).backward()
        assert len(seen) == 6


def test_a_global_backward_hook_after_a_recording() -> None:
    layer, seen = nn.Tanh(), []
    compiled = norch.compile(lambda x: layer(x))

    def run() -> None:
        for _ in range(6):
            compiled(norch.ones(1, requires_grad=True)).backward()

    run()
    with _hooks.register_module_full_backward_hook(lambda *_: seen.append("hook")):
        run()
    run()
    assert seen == ["hook"] * 6


def test_a_global_hook_sees_every_layer_of_a_sequential() -> None:
    """Linear and Tanh, which are one operation otherwise."""
    net, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    with _hooks.register_module_forward_hook(lambda module, args, out: seen.append(type(module).__name__)):
        net(norch.ones(1, 2))
    assert seen == ["Linear", "Tanh", "Sequential"]
