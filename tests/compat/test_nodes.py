"""The graph of grad_fn behind the door (norch/compat/nodes.py), beside PyTorch's: classes, inputs and their order."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from conftest import torch_or_skip
from test_door import door

import norch
from norch.compat.nodes import Shown, shown

pytestmark = pytest.mark.host


def walked(node: Any) -> str:
    """Classes of a graph, * where it ends in a leaf, . where no gradient goes."""
    if node is None:
        return "."
    name = type(node).__name__
    inputs = " ".join(walked(each) for each, _ in node.next_functions)
    return "*" if name == "AccumulateGrad" else f"{name}({inputs})"


def given(lib: Any, *shape: int) -> Any:
    return lib.full(shape, 0.5).requires_grad_()


def mlp(lib: Any, nn: Any) -> Any:
    layers = nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.LayerNorm(4), nn.Linear(4, 3, bias=False), nn.GELU()
    return nn.functional.cross_entropy(nn.Sequential(*layers)(given(lib, 2, 3)), lib.tensor([0, 1]))


def cnn(lib: Any, nn: Any) -> Any:
    layers = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2), nn.GroupNorm(2, 4)
    head = nn.ConvTranspose2d(4, 2, 2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3)
    return nn.Sequential(*layers, *head)(lib.ones(2, 2, 8, 8))


def attention(lib: Any, nn: Any) -> Any:
    x = nn.Embedding(5, 4)(lib.tensor([[0, 1, 2]]))
    q, k, v = (nn.Linear(4, 4)(x).view(1, 3, 2, 2).transpose(1, 2) for _ in range(3))
    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    return nn.functional.log_softmax(nn.RMSNorm(4, eps=1e-6)(x + nn.Linear(4, 4)(y)), -1)


def convolutions(lib: Any, nn: Any) -> Any:
    x = nn.Conv1d(2, 3, 3, padding=1, padding_mode="reflect")(given(lib, 1, 2, 6))
    x = nn.functional.interpolate(nn.MaxPool1d(2)(nn.ConvTranspose1d(3, 2, 2)(x)), scale_factor=2, mode="linear")
    return nn.functional.interpolate(nn.PReLU()(nn.InstanceNorm1d(2)(x)), scale_factor=2)


def losses(lib: Any, nn: Any) -> Any:
    F, x, y = nn.functional, given(lib, 2, 3), lib.full((2, 3), 0.25)
    names = "mse_loss l1_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div"
    found = [getattr(F, name)(x, y, reduction="sum") for name in names.split()]
    return lib.stack([*found, F.nll_loss(x, lib.tensor([0, 1]))])


def operators(lib: Any, nn: Any) -> Any:
    x, y = given(lib, 2, 3), given(lib, 2, 3)
    z = x**2 + x**1.5 + 2**x + x**y - 1 / x + (x / y) * 3 + x % 2 + x.clamp(0, 1) + lib.log1p(x).masked_fill(x > 1, 0.0)
    return (z.sum(1, keepdim=True) + z.mean() + z.var(0) + z.prod(1, keepdim=True) + z.max() + z.norm()).double()


def views(lib: Any, nn: Any) -> Any:
    x = given(lib, 2, 3, 4)
    parts = (
        x[0, :, 1],
        x.select(0, 0)[:, 1],
        x.permute(2, 1, 0)[1:2].squeeze()[:, 0],
        x.unsqueeze(1).squeeze(1)[0, ..., 0],
    )
    more = (
        x.flatten()[:3],
        x.chunk(2)[0].squeeze(0)[:, 0],
        x[:, None][0, 0, :, 0],
        x[lib.tensor([0])].squeeze((0,))[:, 0],
    )
    return lib.cat([lib.stack(parts), lib.stack([each.expand(3) for each in more])])


def products(lib: Any, nn: Any) -> Any:
    x, y, w, v = given(lib, 2, 3, 4), given(lib, 2, 4, 3), given(lib, 4, 3), given(lib, 3)
    square = x[0] @ w + lib.eye(3)
    return (lib.bmm(x, y) @ v + (x @ w).sum(-1) + square @ v + v @ v).sum() + lib.linalg.inv(square)


def writes(lib: Any, nn: Any) -> Any:
    x = given(lib, 3, 3) * 1
    x[0] = given(lib, 3)
    x[1].add_(given(lib, 3))
    return x.relu_()


PROGRAMS = mlp, cnn, attention, convolutions, losses, operators, views, products, writes


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_graphs_are_those_of_pytorch(program: Any) -> None:
    torch = torch_or_skip()
    assert walked(shown(program(norch, norch.nn).grad_fn)) == walked(program(torch, torch.nn).grad_fn)


def test_a_node_is_one_object_and_has_what_norch_s_has() -> None:
    x = norch.ones(2, 3, requires_grad=True)
    y = norch.nn.Linear(3, 2)(x) * 2
    node = shown(y.grad_fn)
    assert node is shown(y.grad_fn) and node.next_functions[0][0] is node.next_functions[0][0]
    assert repr(node).startswith("<MulBackward0 object at 0x") and node.name() == "MulBackward0" and node.metadata == {}
    assert node._saved_other.item() == 2 and "_saved_other" in dir(node) and not hasattr(node, "_saved_weight")
    inner = node.next_functions[0][0].next_functions
    assert inner[1][0].variable is x and type(inner[2][0]).__name__ == "TBackward0"


def test_hooks_get_gradients_in_the_order_of_pytorch() -> None:
    torch = torch_or_skip()
    seen: list[Any] = []
    for lib, look in ((norch, shown), (torch, lambda node: node)):
        layer = lib.nn.Linear(3, 2)
        lib.nn.init.constant_(layer.weight, 0.5)
        x = lib.ones(4, 3, requires_grad=True)
        y = layer(x)

        def hook(inputs: Any, outputs: Any, seen: Any = seen) -> Any:
            seen.append([[*each.shape] for each in (*inputs, *outputs)])
            return tuple(2 * each for each in inputs)

        look(y.grad_fn).register_hook(hook)
        look(y.grad_fn).register_prehook(lambda outputs: (outputs[0] * 3,))
        y.sum().backward()
        seen.append([layer.weight.grad.tolist(), layer.bias.grad.tolist(), x.grad.tolist()])
    assert seen[:2] == seen[2:]


def test_hooks_on_what_is_several_nodes_refuse() -> None:
    y = norch.nn.Conv1d(1, 1, 2)(norch.ones(1, 1, 4, requires_grad=True))
    with pytest.raises(NotImplementedError, match="ConvolutionBackward0: norch computes it in the node"):
        shown(y.grad_fn).register_hook(print)
    turned = shown(norch.nn.Linear(2, 2)(norch.ones(1, 2)).grad_fn).next_functions[2][0]
    for refused in (turned.register_hook, turned.register_prehook):
        with pytest.raises(NotImplementedError, match="TBackward0"):
            refused(print)


def test_results_of_functions_are_numbered() -> None:
    class Both(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.kept = 3
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, *grads):  # type: ignore[no-untyped-def]
            return 2 * grads[0] + 3 * grads[1]

    a, b = Both.apply(norch.ones(2, requires_grad=True))
    node = shown((a + b).grad_fn)
    assert [number for _, number in node.next_functions] == [0, 1]
    assert node.next_functions[0][0] is node.next_functions[1][0] is shown(a.grad_fn)
    assert type(shown(b.grad_fn)).__name__ == "BothBackward" and shown(a.grad_fn).kept == 3


def test_nodes_do_not_outlive_their_tensor() -> None:
    y = norch.ones(2, requires_grad=True) * 2
    node = shown(y.grad_fn)
    assert isinstance(node, Shown)
    import weakref

    gone = weakref.ref(node._real)
    del y, node
    assert gone() is None


def hooked(lib: Any, of: Any) -> Any:
    """What hooks of a node are given, and the gradient where they double all that arrives and leaves."""
    x = lib.tensor([[2.0, 4.0], [1.0, 5.0]], requires_grad=True)
    calls: list[Any] = []

    def doubled(*gradients: Any) -> Any:
        calls.append([[None if g is None else g.tolist() for g in each] for each in gradients])
        return tuple(None if g is None else 2 * g for g in gradients[0])

    y = of(lib, x)
    node = shown(y.grad_fn) if lib is norch else y.grad_fn
    node.register_hook(doubled)
    node.register_prehook(doubled)
    y.sum().backward()
    return calls, x.grad.tolist()


def two_results(lib: Any, x: Any) -> Any:
    class Two(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            return g[0] + 2 * g[1]

    return Two.apply(x)[1]


@pytest.mark.parametrize(
    "of",
    [
        lambda lib, x: x / x,
        lambda lib, x: lib.nn.functional.linear(x, x),
        lambda lib, x: lib.where(x > 2, x, x),
        two_results,
        lambda lib, x: lib.linalg.qr(x)[1],
        lambda lib, x: lib.linalg.svd(x)[1],
    ],
    ids="div linear where function qr svd".split(),
)
def test_hooks_are_given_what_those_of_pytorch_are(torch: Any, of: Any) -> None:
    """An input that is given twice has two gradients, and a node of several results a gradient for each."""
    (before, after), gradient = hooked(norch, of)
    (before_there, after_there), gradient_there = hooked(torch, of)
    assert str(before) == str(before_there) and len(after) == len(after_there) == 2
    for ours, theirs in zip((*after[0], gradient), (*after_there[0], gradient_there), strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
    assert str(after[1]) == str(after_there[1])


CHOICES = (
    "x.max(0)[0] x.min(0)[0] x.max() x.min() x.sort()[0] x.topk(1)[0] x.median(0)[0] x.median() x.nanmedian(0)[0] "
    "x.mode()[0] x.kthvalue(1)[0] x.cummax(0)[0] x.cummin(0)[0] x.t() x.T x.gather(0,(x*0).long())"
)


@pytest.mark.parametrize("call", CHOICES.split())
def test_what_chooses_elements_has_its_own_name(torch: Any, call: str) -> None:
    ours, theirs = (eval(call, {"x": given(lib, 2, 3)}).grad_fn for lib in (norch, torch))
    assert walked(shown(ours)) == walked(theirs)


def test_metadata_is_kept_as_long_as_the_graph() -> None:
    y = norch.nn.functional.linear(norch.ones(1, 2), norch.ones(2, 2, requires_grad=True))
    shown(y.grad_fn).metadata["of"] = "a layer"
    shown(y.grad_fn).next_functions[1][0].metadata["of"] = "its weight"
    assert shown(y.grad_fn).metadata == {"of": "a layer"}
    assert shown(y.grad_fn).next_functions[1][0].metadata == {"of": "its weight"}
    assert shown((y * 2).grad_fn).metadata == {}


def test_nodes_are_not_copied() -> None:
    with pytest.raises(TypeError, match="cannot pickle 'MulBackward0' object"):
        copy.copy(shown((given(norch, 2) * 2).grad_fn))


def test_the_door_gives_them() -> None:
    door("""
import torch
x = torch.ones(2, requires_grad=True)
y = x * 2
assert str(y) == "tensor([2., 2.], grad_fn=<MulBackward0>)", str(y)
assert isinstance(y.grad_fn, torch.autograd.graph.Node) and not isinstance(y, torch.autograd.graph.Node)
assert type(y.grad_fn).__module__ == "builtins" and x.grad_fn is None
edge = torch.autograd.graph.GradientEdge(y.grad_fn, 0)
assert torch.autograd.grad(edge, x, torch.ones(2))[0].tolist() == [2, 2]
assert torch.autograd.grad(y.sum(), torch.autograd.graph.get_gradient_edge(y))[0].tolist() == [1, 1]
assert torch.autograd.graph.get_gradient_edge(y).node is y.grad_fn
linear = torch.nn.functional.linear(torch.ones(2), torch.eye(2, requires_grad=True)).grad_fn
inner = [torch.autograd.graph.GradientEdge(node, at) for node, at in linear.next_functions if node is not None]
assert [edge.node.name() for edge in inner] == ["MmBackward0"]
assert inner[0].node.next_functions[1][0].name() == "TBackward0"
for use in (
    lambda edge: torch.autograd.grad(y.sum(), [edge], allow_unused=True),
    lambda edge: torch.autograd.backward(edge, torch.ones(2)),
):
    try:
        use(inner[0])
    except NotImplementedError as error:
        assert "norch computes MmBackward0 in one node with others" in str(error)
    else:
        raise AssertionError("an edge that is not there was taken")
print("good")
""")
    assert str(norch.ones(1, requires_grad=True) * 2) == "tensor([2.], grad_fn=<MulBackward>)"
