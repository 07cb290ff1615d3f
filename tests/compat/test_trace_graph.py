"""torch.jit._get_trace_graph, beside PyTorch's tracer: operators, shapes and scopes, which counters read."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import torch_or_skip

import norch

# Operators of both whose arguments and results are compared, as counters of operations do.
COUNTED = (
    "_convolution _convolution_mode linear layer_norm group_norm instance_norm batch_norm embedding einsum lstm gru "
    "addmm bmm"
)


def model(lib: Any) -> Any:
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(True))
            self.group, self.instance = nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True)
            self.up, self.norm = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.LayerNorm(6)
            self.project, self.table = nn.Linear(4, 6), nn.Embedding(5, 6)
            self.lstm, self.gru = nn.LSTM(6, 4, 2, batch_first=True), nn.GRU(4, 3, bidirectional=True)
            self.drop = nn.Dropout(0.1)

        def forward(self, x, index):  # type: ignore[no-untyped-def]
            x = self.instance(self.group(self.conv(x)))
            x = F.conv2d(x, lib.ones(8, 1, 3, 3), padding="same", groups=8)
            x = F.interpolate(self.up(x), size=(6, 6), mode="bilinear", align_corners=False)
            x = F.adaptive_avg_pool2d(x, (3, 3)).flatten(2).transpose(1, 2)
            x = self.norm(self.project(x)) + self.table(index).mean(1, keepdim=True)
            x = self.drop(F.silu(x, inplace=True))
            x, _ = self.gru(self.lstm(x)[0])
            x = lib.einsum("bij,bkj->bik", x, x)
            first, second = x.chunk(2, dim=-1)[0], lib.bmm(x, x)[:, 1:]
            return F.normalize(first), lib.addmm(second[0, :, :8], second[0], x[0][:, :8]), 1 - first

    lib.manual_seed(0)
    return Net().eval()


def traced(lib: Any) -> Any:
    net = model(lib)
    inputs = lib.ones(2, 3, 8, 8), lib.zeros((2, 3), dtype=lib.int64)
    return lib.jit._get_trace_graph(net, inputs)[0], net


def shape(value: Any) -> Any:
    """The sizes of a tensor, of the tensors of a list, or a constant."""
    if value.isCompleteTensor():
        return value.type().sizes()
    if value.node().kind() == "prim::ListConstruct":
        return [shape(x) for x in value.node().inputs()]
    return value.toIValue()


@pytest.mark.filterwarnings("ignore")  # of PyTorch, which reads shapes
def test_operators_their_arguments_and_results_are_those_of_pytorch() -> None:
    torch = torch_or_skip()
    wanted = {f"aten::{name}" for name in COUNTED.split()}
    found = []
    for lib in (norch, torch):
        nodes = [node for node in traced(lib)[0].nodes() if node.kind() in wanted]
        found.append([(n.kind(), [*map(shape, n.inputs())], [*map(shape, n.outputs())]) for n in nodes])
    mine, theirs = found
    assert {name for name, *_ in mine} == wanted
    for one, other in zip(mine, theirs, strict=True):
        assert one[0] == other[0] and one[2] == other[2]
        kept = 3 if one[0] == "aten::addmm" else None  # PyTorch's has beta and alpha, which were not given
        assert one[1][:kept] == other[1][:kept]


def test_composed_functions_layers_and_written_names() -> None:
    graph, net = traced(norch)
    kinds = [node.kind() for node in graph.nodes()]
    for kind in ("aten::hardtanh_", "aten::silu_", "aten::upsample_bilinear2d", "aten::rsub", "prim::ListUnpack"):
        assert kind in kinds
    assert "aten::normalize" not in kinds and "aten::div" in kinds
    first, *rest = graph.inputs()
    assert first.type().sizes() == [2, 3, 8, 8] and len(rest) == 1 + len(net.state_dict())
    assert [shape(x) for x in graph.outputs()] == [[2, 9, 5], [8, 8], [2, 9, 5]]
    assert "aten::_convolution" in str(graph) and str(first.type()).startswith("Float(2, 3, 8, 8, strides=")
    values = {v.debugName() for node in graph.nodes() for v in node.outputs()} | {v.debugName() for v in graph.inputs()}
    assert {v.debugName() for node in graph.nodes() for v in node.inputs()} <= values


def test_scopes_are_what_hooks_push() -> None:
    net = norch.nn.Sequential(norch.nn.Linear(3, 4), norch.nn.LSTM(4, 2))
    state = norch._C._get_tracing_state
    handles = []
    for name, module in net.named_modules():
        handles.append(module.register_forward_pre_hook(lambda module, args, name=name: state().push_scope(name)))
        handles.append(module.register_forward_hook(lambda module, args, result: state().pop_scope()))
    assert state() is None and not norch.jit.is_tracing()
    net.register_forward_hook(lambda *args: seen.append(norch.jit.is_tracing()))
    seen: list[bool] = []
    graph, _ = norch.jit._get_trace_graph(net, norch.ones(5, 1, 3))
    scopes = {node.kind(): node.scopeName() for node in graph.nodes()}
    assert scopes["aten::linear"] == "/0" and scopes["aten::lstm"] == "/1" and seen == [True]
    assert state() is None and not norch.jit.is_tracing()


def test_a_trace_that_fails_ends() -> None:
    def fail(x: Any) -> None:
        raise KeyError(1)

    with pytest.raises(KeyError):
        norch.jit._get_trace_graph(fail, norch.ones(1))
    assert norch._C._get_tracing_state() is None
    assert not norch.nn._hooks.forward_hooks and not norch.overrides.has_torch_function((norch.ones(1),))


CALLS = {
    "new_zeros": lambda lib, x: x.new_zeros(2), "new_full": lambda lib, x: x.new_full((2,), 1.0),
    "new_tensor": lambda lib, x: x.new_tensor([1.0]), "tril": lambda lib, x: x.tril(), "outer": lambda lib, x:
    x[0].outer(x[0]), "addmm": lambda lib, x: x.addmm(x, x), "quantile": lambda lib, x: x.quantile(0.5),
    "fft": lambda lib, x: lib.fft.fft(x), "norm": lambda lib, x: lib.linalg.norm(x), "conv": lambda lib, x:
    lib.nn.functional.conv2d(x[None], x[None, None]), "embedding": lambda lib, x:
    lib.nn.Embedding(2, 3)(lib.tensor([1])), "relu6": lambda lib, x: lib.nn.ReLU6()(x), "hardtanh": lambda lib, x:
    lib.nn.Hardtanh()(x), "einsum": lambda lib, x: lib.einsum("ij,jk", x, x), "init": lambda lib, x:
    lib.nn.init.uniform_(x),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_modes_see_public_functions_under_their_names(call: Any) -> None:
    torch = torch_or_skip()
    found = []
    for lib in (norch, torch):
        names: list[str] = []

        class Mode(lib.overrides.TorchFunctionMode):  # type: ignore[name-defined, misc]
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None, names: Any = names
            ) -> Any:
                names.append(func.__name__.removeprefix("linalg_").removeprefix("fft_"))
                return func(*args, **(kwargs or {}))

        x = lib.ones(2, 2)
        with lib.no_grad(), Mode():
            call(lib, x)
        found.append(
            [name for name in names if name not in ("__getitem__", "__get__", "empty", "normal_", "dim", "tensor")]
        )
    mine, theirs = ([name for name in names if name != "requires_grad_"] for names in found)
    assert mine == theirs and mine
