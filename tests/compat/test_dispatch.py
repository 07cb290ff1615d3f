"""Counters of operations beside PyTorch: TorchDispatchMode, FlopCounterMode, ModuleTracker, hooks on several tensors,
and the operators torch.ops.aten.NAME that they name."""

from __future__ import annotations

import copy
import importlib
import pickle
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch.compat.dispatch import TorchDispatchMode
from norch.overrides import TorchFunctionMode, get_testing_overrides


def mode_of(lib: Any) -> Any:
    base = importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode

    class Seen(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[Any] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = [tuple(x.shape) for x in args if hasattr(x, "shape")]
            out = func(*args, **(kwargs or {}))
            first = out[0] if isinstance(out, (tuple, list)) else out
            self.calls.append((str(func), given, tuple(first.shape)))
            return out

    return Seen()


def _net(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Dropout(0.5),
        nn.Linear(144, 6), nn.LayerNorm(6), nn.Softmax(-1),
    ).eval()  # fmt: skip


CALLS = {
    "linear": lambda lib, F, x: F.linear(x(2, 3, 4), x(5, 4), x(5)), "dot": lambda lib, F, x: x(4) @ x(4),
    "no bias": lambda lib, F, x: F.linear(x(3, 4), x(5, 4)), "mm": lambda lib, F, x: x(3, 4) @ x(4, 5),
    "mv": lambda lib, F, x: x(3, 4) @ x(4), "vm": lambda lib, F, x: x(4) @ x(4, 3),
    "folded": lambda lib, F, x: x(2, 3, 4) @ x(4, 5), "bmm": lambda lib, F, x: x(2, 1, 3, 4) @ x(6, 4, 5),
    "conv1d": lambda lib, F, x: F.conv1d(x(2, 4, 8), x(6, 2, 3), groups=2, padding=1),
    "unbatched": lambda lib, F, x: F.conv2d(x(4, 8, 8), x(6, 4, 3, 3)),
    "same": lambda lib, F, x: F.conv2d(x(1, 4, 5, 5), x(6, 4, 2, 3), padding="same"),
    "transposed": lambda lib, F, x: F.conv_transpose2d(x(1, 4, 5, 5), x(4, 3, 2, 2), stride=2),
    "attention": lambda lib, F, x: F.scaled_dot_product_attention(x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 5)),
    "masked": lambda lib, F, x: F.scaled_dot_product_attention(x(2, 4, 5), x(2, 6, 5), x(2, 6, 5), x(4, 6)),
    "pointwise": lambda lib, F, x: (x(2) + 1) * x(2) - x(2) / 2 + x(2) ** 2, "compared": lambda lib, F, x: x(2) > 1,
    "views": lambda lib, F, x: x(2, 3).view(3, 2).permute(1, 0).transpose(0, 1).unsqueeze(0).expand(2, 3, 2),
    "read": lambda lib, F, x: x(2, 3)[0][1:], "cast": lambda lib, F, x: x(2).double().double(),
    "addmm": lambda lib, F, x: lib.addmm(x(5), x(3, 4), x(4, 5)), "in place": lambda lib, F, x: x(2).add_(1),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_dispatch_mode_gets_the_operators_of_pytorch(call: Any) -> None:
    torch = torch_or_skip()
    mine, theirs = (operators(lib, lambda lib=lib: call(lib, lib.nn.functional, lib.zeros)) for lib in (norch, torch))
    assert mine == theirs


HIDDEN = [[True, False, True], [False, False, False]]
VALUES = {
    "even kernel": lambda F, x: F.conv2d(x(1, 2, 5, 6), x(3, 2, 2, 4), x(3), padding="same"),
    "odd dilation": lambda F, x: F.conv1d(x(2, 6), x(3, 2, 2), padding="same", dilation=3),
    "row without a key": lambda F, x: F.scaled_dot_product_attention(
        x(2, 2, 4), x(2, 3, 4), x(2, 3, 4), norch.tensor(HIDDEN)
    ),
    "negative scale": lambda F, x: F.scaled_dot_product_attention(x(2, 2, 4), x(2, 3, 4), x(2, 3, 4), scale=-0.3),
}


@pytest.mark.parametrize("call", VALUES.values(), ids=VALUES)
def test_operators_of_a_dispatch_mode_compute_what_the_function_does(call: Any) -> None:
    results = []
    for mode in (nullcontext(), mode_of(norch)):
        inputs: list[Any] = []

        def x(*shape: int, inputs: list[Any] = inputs) -> Any:
            inputs.append(norch.linspace(-1, 1, int(np.prod(shape))).reshape(shape).requires_grad_())
            return inputs[-1]

        with mode:
            out = call(norch.nn.functional, x)
        out.square().sum().backward()
        results.append((out, *(x.grad for x in inputs)))
    for wanted, found in zip(*results, strict=True):
        norch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, x: F.conv1d(x(1, 2, 6), x(3, 2, 3), padding="same", stride=2),
        lambda F, x: F.conv1d(x(1, 2, 6), x(3, 2, 3), padding="full"),
        lambda F, x: F.scaled_dot_product_attention(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), x(3, 3), is_causal=True),
    ],
)
def test_a_dispatch_mode_refuses_what_the_function_does(call: Any) -> None:
    with pytest.raises(norch.ArgumentError) as plain:
        call(norch.nn.functional, norch.ones)
    with pytest.raises(norch.ArgumentError) as within, mode_of(norch):
        call(norch.nn.functional, norch.ones)
    assert str(plain.value) == str(within.value)


def test_a_dispatch_mode_gets_the_operators_of_layers() -> None:
    torch = torch_or_skip()
    found = []
    for lib in (norch, torch):
        net, x = _net(lib), lib.ones(2, 3, 8, 8)
        found.append(operators(lib, lambda net=net, x=x: net(x)))
    assert found[0] == found[1] and len(found[0]) == 9


# What PyTorch calls otherwise: views of new memory, products with numbers.
SAME = {"_unsafe_view": "view", "mul.Scalar": "mul.Tensor", "squeeze_": "squeeze"}
_MADE = ("aten.zeros", "aten.ones", "aten.empty", "aten.detach")


def operators(lib: Any, call: Any) -> list[Any]:
    """The operators of a call, without those that make tensors, and views of the same shape."""
    with lib.no_grad(), mode_of(lib) as seen:
        call()
    found = []
    for name, given, out in seen.calls:
        for theirs, ours in SAME.items():
            name = name.replace(theirs, ours)
        if not name.startswith(_MADE) and (name not in _VIEWS or given[:1] != [out]):
            found.append((name, given, out))
    return found


_VIEWS = ("aten.view.default", "aten.expand.default", "aten.clone.default")


def test_what_a_dispatch_mode_returns_is_the_result_and_has_gradients() -> None:
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is not None and func._overloadpacket == norch.ops.aten.exp else out

    x = norch.zeros(2, requires_grad=True)
    with Doubled():
        y = x.exp()
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [2.0, 2.0]
    with pytest.warns(RuntimeWarning, match=r"Doubled: norch shows no operators of backward\(\)"), Doubled():
        (x * 1).sum().backward()
    with (
        pytest.raises(NotImplementedError, match="TorchDispatchMode defines no __torch_dispatch__"),
        TorchDispatchMode(),
    ):
        x.exp()
    assert not norch.overrides.has_torch_function((x,))


def test_outer_modes_get_the_operators_too() -> None:
    names: list[str] = []

    class Names(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    outer, inner = mode_of(norch), mode_of(norch)
    with Names(), outer, inner:
        norch.nn.functional.linear(norch.ones(2, 3), norch.ones(4, 3))
    assert [c[0] for c in outer.calls] == [c[0] for c in inner.calls] and "mm" in names


def _drawn(lib: Any, rng: Any, *shape: int) -> Any:
    return lib.tensor(rng.standard_normal(shape), dtype=lib.float64)


@pytest.mark.parametrize(
    "name, make",
    [
        ("convolution", lambda x: (x(2, 4, 6), x(6, 2, 3), None, [1], [1], [1], False, [0], 2)),
        ("convolution", lambda x: (x(1, 4, 6, 6), x(4, 3, 2, 2), x(3), [2, 2], [0, 0], [1, 1], True, [1, 1], 1)),
        ("native_layer_norm", lambda x: (x(3, 4), [4], x(4), None, 1e-5)),
        ("native_group_norm", lambda x: (x(2, 4, 5), x(4), x(4), 2, 4, 5, 2, 1e-5)),
        ("native_group_norm", lambda x: (x(0, 4, 5), x(4), x(4), 0, 4, 5, 2, 1e-5)),
        ("native_batch_norm", lambda x: (x(5, 3), x(3), None, None, None, True, 0.1, 1e-5)),
        ("_scaled_dot_product_flash_attention_for_cpu", lambda x: (*(x(2, 3, 4, 5) for _ in range(3)), 0.0, True)),
        ("_softmax", lambda x: (x(3, 4), -1, False)), ("_log_softmax", lambda x: (x(3, 4), 0, False)),
        ("view", lambda x: (x(3, 4), [2, 6])), ("mm", lambda x: (x(3, 4), x(4, 2))),
    ],
)  # fmt: skip
def test_operators_called_by_name(name: str, make: Any) -> None:
    torch = torch_or_skip()
    found = []
    for lib in (norch, torch):
        rng = np.random.default_rng(0)
        out = getattr(lib.ops.aten, name)(*make(partial(_drawn, lib, rng)))
        found.append([x.numpy() for x in (out if isinstance(out, tuple) else (out,)) if isinstance(x, lib.Tensor)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine.reshape(theirs.shape), theirs, rtol=1e-10, atol=1e-12)


def test_gradients_of_all_results_of_native_group_norm(torch: Any) -> None:
    found = []
    for lib in (norch, torch):
        x = _drawn(lib, np.random.default_rng(0), 2, 4, 5).requires_grad_()
        results = lib.ops.aten.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5)
        sum((result * result.detach().cos()).sum() for result in results).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_names_of_operators() -> None:
    aten = norch.ops.aten
    for op, text in ((aten.add, "aten.add"), (aten.add.Tensor, "aten.add.Tensor")):
        assert str(op) == text and copy.deepcopy({op: 1}) == {op: 1} and pickle.loads(pickle.dumps(op)) == op
    assert aten.add.Tensor.overloadpacket == aten.add.Tensor._overloadpacket == aten.add != aten.add.Tensor
    assert aten.add.Tensor.name() == "aten::add.Tensor" and aten.mm.default.name() == "aten::mm"
    assert aten.add_.Tensor._schema.is_mutable and aten.mm._schema.name == "aten::mm"
    with pytest.raises(AttributeError):
        aten.add._overloadpacket  # noqa: B018


def test_flops_have_the_names_of_pytorch_and_formulas_of_programs() -> None:
    torch = torch_or_skip()

    def formula(shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
        return 7

    found = []
    for lib in (norch, torch):
        counter = importlib.import_module(f"{lib.__name__}.utils.flop_counter").FlopCounterMode
        net = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 3), lib.nn.ReLU(), lib.nn.Flatten(), lib.nn.Linear(144, 6))
        x = lib.ones(2, 3, 8, 8, requires_grad=True)
        with counter(display=False) as plain:
            (net(x).sum() + (lib.ones(2, 3, 4, requires_grad=True) @ lib.ones(2, 4, 5)).sum()).backward()
        with counter(display=False, custom_mapping={lib.ops.aten.relu: formula, lib.ops.aten.addmm: formula}) as own:
            net(x)
        for one in (plain, own):
            found.append({k: {str(op): n for op, n in of.items()} for k, of in one.get_flop_counts().items()})
        with counter(display=False) as nothing:
            lib.ones(2) + 1
        found.append(nothing.get_flop_counts())
    assert found[:3] == found[3:]


def test_hooks_on_several_gradients() -> None:
    torch = torch_or_skip()
    seen: dict[str, list[Any]] = {}
    for lib in (norch, torch):
        said = seen[lib.__name__] = []
        register = importlib.import_module(f"{lib.__name__}.autograd.graph").register_multi_grad_hook
        a, b, apart = (lib.ones(2, 3, requires_grad=True) for _ in range(3))
        c, d = a * b, a * b * apart

        def note(grads: Any, said: Any = said) -> None:
            said.append([g is not None for g in grads] if isinstance(grads, list) else tuple(grads.shape))

        handles = [register((a, b, c, d, apart), note), register((a, b, c, d), note, mode="any")]
        c.sum().backward(retain_graph=True)
        c.sum().backward(inputs=(a,), retain_graph=True)
        for _ in range(2):
            (c.sum() + d.sum()).backward(retain_graph=True)
        handles[0].remove()
        d.sum().backward()
        handles[1].remove()
        (a * b).sum().backward()
        y = a * 2
        register((y, z := y * 3), lambda grads, said=said: said.append([g.tolist() for g in grads]))
        z.sum().backward()
        with pytest.raises(ValueError):
            register((a,), note, mode="some")
    assert seen["norch"] == seen["torch"] and len(seen["norch"]) == 10


def test_the_modules_that_run() -> None:
    torch = torch_or_skip()
    seen: dict[str, list[Any]] = {}
    for lib in (norch, torch):
        said = seen[lib.__name__] = []

        class Note(lib.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx: Any, x: Any, note: Any) -> Any:
                ctx.note = note
                note()
                return x.clone()

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                ctx.note()
                return g, None

        class Block(lib.nn.Module):  # type: ignore[name-defined, misc]
            made = lib.nn.Linear

            def __init__(self) -> None:
                super().__init__()
                self.line = type(self).made(2, 2)

            def forward(self, x: Any) -> Any:
                return Note.apply(self.line(x), note)

        net = lib.nn.Sequential(Block(), lib.nn.Sequential(Block(), lib.nn.ReLU()))
        with importlib.import_module(f"{lib.__name__}.utils.module_tracker").ModuleTracker() as tracker:

            def note(said: Any = said, tracker: Any = tracker) -> None:
                said.append((sorted(tracker.parents), tracker.is_bw))

            for requires in (True, False):
                y = net(lib.ones(1, 2, requires_grad=requires))
                Note.apply(y, note).sum().backward()
                note()
    assert seen["norch"] == seen["torch"] and len(seen["norch"]) == 14


def test_dummies_of_functions_that_can_be_overridden() -> None:
    import inspect

    dummies = get_testing_overrides()
    assert dummies[norch.add](1, 2) == dummies[norch.Tensor.exp](0) == -1 and len(dummies) > 500
    assert list(inspect.signature(dummies[norch.nn.functional.linear]).parameters) == ["input", "weight", "bias"]
