"""norch.fx: graphs of modules and functions, beside PyTorch's; the code that they become, and changes of graphs."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import pytest

import norch
from norch import fx


def make(lib: Any) -> Any:
    """A module that uses submodules, parameters, buffers, functions, methods, operators and attributes."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
            self.w = nn.Parameter(lib.full((4, 1, 1), 0.5))
            self.register_buffer("b", lib.ones(1))
            self.seq = nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 1))
            self.fc = nn.Linear(4, 2)

        def forward(self, x, scale=2.0):  # type: ignore[no-untyped-def]
            y = self.bn(self.conv(x)) * self.w + self.b
            y = lib.relu(y) + lib.ones(1)
            first, second = self.seq(y).chunk(2, 1)
            y = lib.cat([first, second], dim=1).mean([2, 3])
            y = y.view(y.size(0), -1)[:, 0:4] + x.shape[0] * scale
            return {"out": self.fc(y), "pair": (y, -y)}

    return Net().eval()


def test_code_like_torch(torch: Any) -> None:
    ours, theirs = fx.symbolic_trace(make(norch)), torch.fx.symbolic_trace(make(torch))
    assert ours.code == theirs.code.replace("torch.", "norch.")
    assert str(ours.graph).strip() == str(theirs.graph).strip().replace("torch.", "norch.")


def test_annotations_of_arguments() -> None:
    def scaled(x, by: float = 2.0):  # type: ignore[no-untyped-def]
        return x * by

    scaled.__annotations__["by"] = float
    forward = fx.symbolic_trace(scaled).forward
    assert forward(norch.ones(1)).item() == 2 and forward.__annotations__ == {"by": float}


def test_names_of_nodes_like_torch(torch: Any) -> None:
    """In lower case, with _ where a capital follows a small letter, as programs look for them."""

    def traced(lib: Any) -> list[str]:
        class Net(lib.nn.Module):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.Conv, self.fooBar2D, self.act_2, self.Abs = (lib.nn.ReLU() for _ in range(4))

            def forward(self, xIn, Max=1):  # type: ignore[no-untyped-def]
                y = self.fooBar2D(self.Conv(xIn)) + Max
                return self.Abs(self.act_2(y)).T.softmax(-1)

        graph = lib.fx.symbolic_trace(Net()).graph
        return [*(node.name for node in graph.nodes), graph.python_code("self").src]

    assert traced(norch) == traced(torch)


def same(a: Any, b: Any, x: Any) -> None:
    found, wanted = a(x), b(x)
    assert norch.equal(found["out"], wanted["out"])
    assert norch.equal(found["pair"][1], wanted["pair"][1])


@pytest.mark.parametrize(
    "way",
    [
        lambda g: g,
        copy.deepcopy,
        copy.copy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: fx.Transformer(g).transform(),
        lambda g: lambda x: fx.Interpreter(g).run(x),
        lambda g: lambda x: fx.GraphModule(g, copy.deepcopy(g.graph))(x),
    ],
)
def test_computes_the_same(way: Any) -> None:
    net, x = make(norch), norch.randn(2, 3, 5, 5)
    traced = fx.symbolic_trace(net)
    same(way(traced), net, x)
    assert set(net.state_dict()) <= set(traced.state_dict())
    assert traced.w is net.w
    traced.load_state_dict(traced.state_dict())


def test_gradients_reach_the_parameters() -> None:
    net = make(norch)
    traced = fx.symbolic_trace(net)
    traced(norch.randn(2, 3, 5, 5))["out"].sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_tracing_leaves_no_trace() -> None:
    net, call = make(norch), norch.nn.Module.__call__
    fx.symbolic_trace(net)
    assert norch.nn.Module.__call__ is call
    assert isinstance(net.w, norch.nn.Parameter)
    assert net.__dict__["w"] is net.w
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x > 0 else 2)
    assert norch.nn.Module.__call__ is call


def pairs_of(x: Any) -> Any:
    return [a + b for a, b in x]


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda x: [y + 1 for y in x], "cannot be iterated"),
        (pairs_of, "cannot be iterated"),
        (lambda x: x.__len__(), "'len' is not supported"),
        (lambda x: bool(x), "control flow"),
        (lambda x: range(x), "index"),
        (lambda x: 3 in x, "contains"),
    ],
)
def test_values_are_refused(function: Any, match: str) -> None:
    with pytest.raises((fx.proxy.TraceError, RuntimeError), match=match):
        fx.symbolic_trace(function)


def test_arguments() -> None:
    def function(x: Any, y: Any = 3, *, flag: bool = True) -> Any:
        return x + y if flag else x

    traced = fx.symbolic_trace(function, {"flag": False})
    assert traced(norch.ones(1), flag=False).tolist() == [1.0]
    with pytest.raises(AssertionError, match="flag has been specialized to have value False"):
        traced(norch.ones(1), flag=True)
    named = fx.symbolic_trace(lambda input: input.exp() + math.inf)  # the names of builtins
    assert "input_1 = input" in named.code
    assert named(norch.zeros(1)).item() == math.inf


def kept(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


fx.wrap("kept")
fx.wrap("len")


def test_unpacked_proxies() -> None:
    def function(x: Any) -> Any:
        a, (b, *c) = x.chunk(2)[0], (x, x)
        first, second = x.split(2)
        return a + b[:2] + c[0][:2] + first * second

    x = norch.arange(4.0)
    assert norch.equal(fx.symbolic_trace(function)(x), function(x))


def test_wrapped_functions() -> None:
    traced = fx.symbolic_trace(lambda x: kept(x) + len(x) + math.floor(2.5))
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"][:2] == [kept, len]
    assert traced(norch.ones(3)).tolist() == [7.0, 7.0, 7.0]
    assert kept(norch.ones(1)).item() == 2.0
    with pytest.raises(TypeError, match="wrap: expected a function"):
        fx.wrap(3)
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("kept")


def test_tracers() -> None:
    class Whole(norch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = make(norch)

        def forward(self, x: Any) -> Any:
            return self.net(x)["out"]

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return module_qualified_name == "net"

    whole = Whole()
    graph = Leaves().trace(whole)
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "call_function", "output"]
    assert fx.GraphModule(whole, graph)(norch.ones(1, 3, 5, 5)).shape == (1, 2)
    assert "self.net.seq" in fx.symbolic_trace(whole).code
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(lambda x: norch.nn.Linear(1, 1)(x))


def graph_of_two() -> Any:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(norch.sin, (x,))
    z = graph.call_function(operator.add, (y, 1))
    graph.output(z)
    return graph, x, y, z


def test_graphs_change() -> None:
    graph, x, y, z = graph_of_two()
    graph.lint()
    module = fx.GraphModule({}, graph)
    with graph.inserting_before(z):
        cos = graph.call_function(norch.cos, (x,))
        neg = graph.call_method("neg", (cos,))
    z.replace_input_with(y, neg)
    assert (list(y.users), cos.users, z.all_input_nodes) == ([], {neg: None}, [neg])
    assert graph.eliminate_dead_code()
    assert not graph.eliminate_dead_code()
    module.recompile()
    assert norch.allclose(module(norch.ones(1)), 1 - norch.ones(1).cos())
    with graph.inserting_after(z):
        twice = graph.call_function(operator.mul, (z, 2))
    assert z.replace_all_uses_with(twice, lambda user: user is not twice) == [graph.output_node()]
    module.recompile()
    assert norch.allclose(module(norch.ones(1)), 2 - 2 * norch.ones(1).cos())
    assert [node.name for node in graph.nodes] == ["x", "cos", "neg", "add", "mul", "output"]
    assert [node.name for node in reversed(graph.nodes)][0] == "output"
    assert len(graph.nodes) == 6
    assert graph.find_nodes(op="call_function", target=norch.cos) == [cos]
    assert (x.next, z.prev) == (cos, neg)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(cos)
    x.append(z)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    with pytest.raises(ValueError, match="has to be callable"):
        graph.call_function("sin", (x,))
    with pytest.raises(ValueError, match="is not one of placeholder"):
        graph.create_node("calls", "x")


def test_dead_code_keeps_effects() -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        y.add_(1)
        x.exp()
        norch._assert(x.sum() > 0, "positive")
        return y

    traced = fx.symbolic_trace(function)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert "exp" not in traced.code
    assert traced(norch.ones(1)).tolist() == [2.0]
    with pytest.raises(AssertionError, match="positive"):
        traced(-norch.ones(1))


def test_copies_between_graphs() -> None:
    graph, x, *_ = graph_of_two()
    other = fx.Graph()
    start = other.placeholder("start")
    other.output(other.graph_copy(graph, {x: start}))
    assert norch.allclose(fx.GraphModule({}, other)(norch.ones(1)), norch.ones(1).sin() + 1)


def test_graph_modules() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("inner.layer", (graph.call_function(operator.mul, (x, graph.get_attr("scale"))),)))
    layer, scale = norch.nn.Linear(2, 2), norch.full((1,), 3.0)
    module = fx.GraphModule({"inner.layer": layer, "scale": scale}, graph, "Named")
    assert type(module).__name__ == "Named"
    assert norch.equal(module(norch.ones(1, 2)), layer(3 * norch.ones(1, 2)))
    assert sorted(module.state_dict()) == ["inner.layer.bias", "inner.layer.weight", "scale"]
    assert module.add_submodule("inner.more", norch.nn.ReLU())
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "inner", "inner.layer"]
    assert not module.delete_submodule("inner.more")
    assert "class Named" in module.print_readable(print_output=False)
    with pytest.raises(RuntimeError, match="was not provided"):
        fx.GraphModule({}, graph)


def test_errors_name_the_node(capsys: Any) -> None:
    traced = fx.symbolic_trace(lambda x: x.reshape(7) + 1)
    with pytest.raises(norch.ShapeError, match="While executing %reshape"):
        fx.Interpreter(traced).run(norch.ones(3))
    traced.graph.print_tabular()
    assert "call_method" in capsys.readouterr().out


def test_proxies_of_a_graph() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output(norch.stack([x, norch.relu(x)]).sum().node)
    assert fx.GraphModule({}, graph)(norch.tensor([-1.0, 2.0])).item() == 3.0


def test_replaced_patterns() -> None:
    traced = fx.symbolic_trace(lambda x, y: norch.relu(x + y) + norch.relu(y + x) + x)
    found = fx.replace_pattern(traced, lambda a, b: norch.relu(a + b), lambda a, b: norch.maximum(a, b))
    assert len(found) == 2
    assert traced(norch.ones(1), 3 * norch.ones(1)).item() == 7.0
    assert "relu" not in traced.code
    used = fx.symbolic_trace(lambda x: (y := x + 1) * norch.relu(y))
    assert fx.replace_pattern(used, lambda x: norch.relu(x + 1), lambda x: x) == []


# ---- passes ----------------------------------------------------------------------------------------------------------


def test_shapes_of_nodes(torch: Any) -> None:
    def shapes(lib: Any, propagation: Any) -> list[Any]:
        traced = lib.fx.symbolic_trace(make(lib))
        propagation(traced).propagate(lib.ones(2, 3, 6, 6))
        metas = [(node.name, node.meta.get("tensor_meta")) for node in traced.graph.nodes]
        return [(name, tuple(m.shape), m.stride, m.requires_grad) for name, m in metas if hasattr(m, "shape")]

    from torch.fx.passes.shape_prop import ShapeProp as Theirs

    from norch.compat.fx_passes import ShapeProp

    assert shapes(norch, ShapeProp) == shapes(torch, Theirs)
    assert norch.fx.passes.shape_prop.ShapeProp is ShapeProp


def test_batch_norms_are_fused() -> None:
    from norch.compat.fx_passes import fuse, remove_dropout

    nn = norch.nn
    inner = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.9))
    model = nn.Sequential(nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), inner)
    x = norch.randn(8, 2, 5, 5)
    for _ in range(3):
        model(x)
    model.eval()
    expected, fused = model(x), fuse(model)
    norch.testing.assert_close(fused(x), expected, rtol=1e-4, atol=1e-5)
    kinds = [type(module).__name__ for module in fused.modules()]
    assert not [kind for kind in kinds if kind.startswith("BatchNorm")] and "BatchNorm2d" in map(_kind, model.modules())
    assert fuse(model, inplace=True) is not model and isinstance(model[0].bias, norch.nn.Parameter)
    trained = remove_dropout(inner.train())
    assert "Dropout" not in map(_kind, trained.modules()) and trained(norch.randn(4, 4)).shape == (4, 3)


def _kind(module: Any) -> str:
    return type(module).__name__


def test_a_function_with_stars() -> None:
    """One proxy stands for all of *args, and one for all of **kwargs; their parts become nodes."""

    class Scaled(norch.nn.Module):
        def forward(self, x: Any, /, y: Any = 1, *rest: Any, k: Any = 2, **named: Any) -> Any:
            return x * y + rest[0] * k + named["z"], rest[1]

    x, others = norch.tensor([1.0, 2.0]), (3.0, norch.ones(2), 5.0)
    traced, module = fx.symbolic_trace(Scaled()), Scaled()
    for named in ({"z": x}, {"k": 4.0, "z": x}):
        assert norch.equal(traced(x, *others, **named)[0], module(x, *others, **named)[0])
    assert traced(x, *others, z=x)[1] == 5.0
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda *several: norch.cat([*several]))
