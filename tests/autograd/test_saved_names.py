"""grad_fn._saved_self and its kin: the names and values of PyTorch's."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import norch

X, W = [[0.25, 0.5, 0.75], [1.5, -2.5, 3.5]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

# Operations of x (2, 3) and w (3, 2), and the names that both have.
CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "mul": (lambda m, x, w: x * x, "self other"),
    "mul by a number": (lambda m, x, w: x * 2, "other self"),
    "div": (lambda m, x, w: x / (x + 9), "self other"),
    "exp": (lambda m, x, w: x.exp(), "result"),
    "log": (lambda m, x, w: x.log(), "self"),
    "tanh": (lambda m, x, w: x.tanh(), "result"),
    "sigmoid": (lambda m, x, w: x.sigmoid(), "result"),
    "relu": (lambda m, x, w: x.relu(), "result"),
    "abs": (lambda m, x, w: x.abs(), "self"),
    "cos": (lambda m, x, w: x.cos(), "self"),
    "reciprocal": (lambda m, x, w: x.reciprocal(), "result"),
    "hypot": (lambda m, x, w: x.hypot(x), "self other result"),
    "atan2": (lambda m, x, w: m.atan2(x, x + 1), "self other"),
    "maximum": (lambda m, x, w: m.maximum(x, x * 2), "self other"),
    "power": (lambda m, x, w: x**2.5, "self exponent"),
    "square": (lambda m, x, w: x.square(), "self exponent"),
    "pow 2": (lambda m, x, w: x.pow(2), "self exponent"),
    "pow 3": (lambda m, x, w: x**3, "self exponent"),
    "clamp": (lambda m, x, w: x.clamp(-1.0, 1.0), "self min max"),
    "where": (lambda m, x, w: m.where(x > 1, x, x * 2), "condition"),
    "lerp": (lambda m, x, w: x.lerp(x * 2, x), "self end weight"),
    "addcmul": (lambda m, x, w: m.addcmul(x, x, x * 2), "tensor1 tensor2"),
    "sum": (lambda m, x, w: x.sum(1, keepdim=True), "self_sym_sizes dim keepdim"),
    "mean": (lambda m, x, w: x.mean(1), "self_sym_sizes dim keepdim"),
    "amax": (lambda m, x, w: x.amax(1), "self result dim keepdim"),
    "prod": (lambda m, x, w: x.prod(), "self result"),
    "var": (lambda m, x, w: x.var(1), "self dim keepdim correction"),
    "std": (lambda m, x, w: x.std(1), "self result dim keepdim correction"),
    "logsumexp": (lambda m, x, w: x.logsumexp(1), "self result keepdim"),
    "softmax": (lambda m, x, w: x.softmax(1), "result"),
    "log_softmax": (lambda m, x, w: x.log_softmax(1), "result"),
    "cumsum": (lambda m, x, w: x.cumsum(1), "dim"),
    "gather": (lambda m, x, w: x.gather(1, m.tensor([[0], [2]])), "index dim"),
    "mm": (lambda m, x, w: x @ w, "self mat2"),
    "bmm": (lambda m, x, w: m.bmm(x[None], w[None]), "self mat2"),
    "view": (lambda m, x, w: x.view(6), "self_sym_sizes"),
    "expand": (lambda m, x, w: x.expand(4, 2, 3), "self_sym_sizes"),
    "gelu": (lambda m, x, w: m.nn.functional.gelu(x), "self"),
    "elu": (lambda m, x, w: m.nn.functional.elu(x, 0.5), "self alpha"),
    "leaky_relu": (lambda m, x, w: m.nn.functional.leaky_relu(x, 0.5), "self negative_slope"),
    "softplus": (lambda m, x, w: m.nn.functional.softplus(x, 2.0, 3.0), "self beta threshold"),
    "layer_norm": (lambda m, x, w: m.nn.functional.layer_norm(x, (3,), x[0]), "input weight"),
    "conv": (lambda m, x, w: m.nn.functional.conv2d(x[None, None], w[None, None, :2, :2]), "input weight"),
    "embedding": (lambda m, x, w: m.nn.functional.embedding(m.tensor([1]), w), "indices"),
}


def plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy(), dtype=float)
    return np.asarray(value, dtype=float) if isinstance(value, (int, float, tuple, list)) else value


@pytest.mark.parametrize("name", CALLS)
def test_names_and_values_like_torch(torch: Any, name: str) -> None:
    call, names = CALLS[name]
    nodes = []
    for m in (norch, torch):
        x, w = (m.tensor(values, requires_grad=True) for values in (X, W))
        nodes.append(call(m, x, w).grad_fn)
    ours, theirs = nodes
    assert {f"_saved_{each}" for each in names.split()} <= {*dir(ours)}
    for each in names.split():
        found, wanted = (getattr(node, f"_saved_{each}") for node in nodes)
        if name == "log_softmax" or found is None or wanted is None:
            assert (found is None) == (wanted is None)
            continue
        if each == "dim" and isinstance(wanted, int) and wanted > 1 << 32:  # a dimension counted from the end
            wanted -= 1 << 64
        found, wanted = plain(found), plain(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-6) if isinstance(wanted, np.ndarray) else None
        assert isinstance(wanted, np.ndarray) or found == wanted


def test_the_tensors_are_those_of_the_graph() -> None:
    x = norch.ones(2, requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x
    z = y.exp()
    result = z.grad_fn._saved_result
    assert result.grad_fn is z.grad_fn
    assert result.requires_grad
    two = (x * 2).grad_fn._saved_other
    two.add_(1)  # a copy: other calls read the tensor of the number
    assert (norch.ones(1) * 2).item() == 2


def test_reading_makes_no_cycle() -> None:
    x = norch.ones(2, requires_grad=True)
    gc.disable()
    try:
        node = (y := x.exp()).grad_fn
        node._saved_result  # noqa: B018
        import weakref

        gone = weakref.ref(node)
        del node, y
        assert gone() is None
    finally:
        gc.enable()


def test_after_backward_it_is_freed(torch: Any) -> None:
    for m in (norch, torch):
        x = m.ones(2, requires_grad=True)
        y = x.exp()
        y.sum().backward(retain_graph=True)
        assert y.grad_fn._saved_result.tolist() == y.tolist()
        y.sum().backward()
        with pytest.raises(RuntimeError, match="freed"):
            y.grad_fn._saved_result  # noqa: B018
        z = x.sum(0)
        z.backward()
        assert tuple(z.grad_fn._saved_dim) == (0,)  # no tensor: it stays


def test_what_was_written_to_raises(torch: Any) -> None:
    for m in (norch, torch):
        x, c = m.ones(2, requires_grad=True), m.ones(2)
        y = x * c
        c.add_(1)
        with pytest.raises(RuntimeError, match=r"in[- ]?place"):
            y.grad_fn._saved_other  # noqa: B018


def test_other_names_raise() -> None:
    node = (norch.ones(2, requires_grad=True) + 1).grad_fn
    assert not [name for name in dir(node) if name.startswith("_saved_")]
    with pytest.raises(AttributeError, match="AddBackward saves no 'self'"):
        node._saved_self  # noqa: B018
    with pytest.raises(AttributeError, match="'Add' object has no attribute 'nothing'"):
        node.nothing  # noqa: B018


def test_nodes_and_tensors_are_read_the_fast_way() -> None:
    """A class with __getattr__ has no specialized attribute look-ups in CPython: 5 % of each backward()."""
    node = (norch.ones(1, requires_grad=True) * 2).grad_fn
    assert not hasattr(type(node), "__getattr__") and not hasattr(norch.Tensor, "__getattr__")
