"""Derivatives of derivatives as PyTorch's: which first gradients have a history, and what comes out of it.

A gradient that does not change with an input may still count as a function of it, so that a walk through it gives
zeros and no error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import Case, draw, source
from cases import CASES
from checks import assert_same, each, listed, scale_of
from test_derivatives import beside_pytorch

import norch

# Cases where norch has a history, and so zeros, and PyTorch has none. Samples that are empty are left out too.
RECORDED_HERE = {
    *("prod all", "var all", "var_mean: all"),  # of a 0-d tensor
    "repeat none",  # nothing is repeated
}


def second_order(library: Any, call: Any, tensors: list[Any], chosen: list[int], weighted: bool) -> list[Any]:
    """The first gradients, and those of their sum; with weighted the gradient that came in is a variable too."""
    outs = [x for x in listed(call(library, *tensors)) if x.is_floating_point() and x.requires_grad]
    leaves = [tensors[i] for i in chosen]
    if not outs:
        return []
    weights = [library.ones_like(x, requires_grad=weighted) for x in outs]
    first = library.autograd.grad(outs, leaves, weights, create_graph=True, allow_unused=True)
    recorded = [g.sum() for g in first if g is not None and g.requires_grad]
    if not recorded:
        return [first, [None] * (len(leaves) + weighted * len(weights))]
    into = [*leaves, *(weights if weighted else [])]
    return [first, library.autograd.grad(recorded, into, allow_unused=True)]


@each(
    [
        case
        for case in CASES
        if case.grad and case.torch is not False and case.torch_grad is True and case.name not in RECORDED_HERE
    ]
)
def test_second_derivatives_like_torch(torch: Any, case: Case) -> None:
    rng = source(case.name + "of gradients")
    samples = [draw(case, shapes, "float64", rng) for shapes in case.shapes if sum(np.prod(s) for s in shapes) < 200]
    samples = [arrays for arrays in samples if all(x.size for x in arrays)]
    for arrays in samples[:2]:
        for weighted in (False, True):
            ours, theirs, chosen = beside_pytorch(torch, case, arrays)
            try:
                wanted = second_order(torch, case.torch_call(), theirs, chosen, weighted)
            except RuntimeError as error:
                pytest.skip(f"PyTorch has no second derivative: {str(error)[:60]}")
            found = second_order(norch, case.call, ours, chosen, weighted)
            assert len(found) == len(wanted)
            if not found:
                continue
            about = f"{case} of {[x.shape for x in arrays]}"
            for i, (g, h) in enumerate(zip(found[0], wanted[0])):
                if g is not None and h is not None:
                    assert g.requires_grad == h.requires_grad, f"{about}: gradient {i}, weighted {weighted}"
            scale = max(scale_of(case, arrays), 1.0)
            for i, (g, h) in enumerate(zip(found[1], wanted[1])):
                assert (g is None) == (h is None), f"{about}: second derivative {i}: {g}, PyTorch's {h}"
                if g is not None:
                    assert_same(g, h.numpy(force=True), "float64", 1e-9 * case.slack, scale, about)


@each([case for case in CASES if case.grad])
def test_gradients_are_the_same_with_create_graph(case: Case) -> None:
    """Of halved whole numbers, which meet bounds, ends and each other."""
    rng = source(case.name + "with a graph")
    for shapes in case.shapes[:2]:
        arrays = [np.round(2 * x) / 2 if x.dtype.kind == "f" else x for x in draw(case, shapes, "float64", rng)]
        found = []
        for create_graph in (False, True):
            given = [norch.tensor(x) for x in arrays]
            leaves = [x.requires_grad_() for x in given if x.is_floating_point()]
            outs = [x for x in listed(case.call(norch, *given)) if x.is_floating_point() and x.requires_grad]
            if outs:
                weights = [norch.ones_like(x) for x in outs]
                found.append(norch.autograd.grad(outs, leaves, weights, create_graph=create_graph, allow_unused=True))
        for g, h in zip(*found):
            assert (g is None) == (h is None)
            if g is not None:
                assert np.allclose(g.numpy(), h.detach().numpy(), rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", ["batch_norm", "batch_norm of running", "instance_norm", "group_norm", "cdist 0"])
def test_flat_gradients_have_a_history(torch: Any, name: str) -> None:
    """Those of parameters that an output is only shifted or scaled by, and of counts."""
    rng = source(name)
    x, w, b = (rng.standard_normal(shape) for shape in ((4, 3, 5), 3, 3))

    def call(m: Any, x: Any, w: Any, b: Any) -> Any:
        f = m.nn.functional
        if name == "group_norm":
            return f.group_norm(x, 3, w, b)
        if name == "instance_norm":
            return f.instance_norm(x, None, None, w, b)
        if name == "cdist 0":
            return m.cdist(x, x + 1, 0)
        training = name == "batch_norm"
        running = (None, None) if training else (m.zeros(3, dtype=m.float64), m.ones(3, dtype=m.float64))
        return f.batch_norm(x, *running, w, b, training)

    for chosen in ([0, 1, 2], [0], [1], [0, 2], [1, 2]):
        found = []
        for m in (norch, torch):
            inputs = [m.tensor(a, requires_grad=i in chosen) for i, a in enumerate((x, w, b))]
            out = call(m, *inputs)
            if out.requires_grad:
                leaves = [inputs[i] for i in chosen]
                first = m.autograd.grad(out.sum(), leaves, create_graph=True, allow_unused=True)
                found.append([g is not None and g.requires_grad for g in first])
        assert all(ours or not theirs for ours, theirs in zip(*found, strict=True)) if found else name == "cdist 0"


KERNELS = ["attention", "attention of itself", "layer_norm", "rms_norm", "group_norm", "batch_norm", "cross_entropy"]


@pytest.mark.parametrize("name", [*KERNELS, "gru"])
def test_recorded_gradients_are_those_of_the_kernel(name: str) -> None:
    """A kernel's rule stands in C; recorded gradients are taken from the formula of the operation."""
    rng = source(name)
    leaves = [norch.tensor(rng.standard_normal(s), requires_grad=True) for s in ((2, 4, 6), (2, 4, 6), (2, 4, 6), 6, 6)]
    x, y, z, weight, bias = leaves
    f = norch.nn.functional
    out = {
        "attention": lambda: f.scaled_dot_product_attention(x, y, z, is_causal=True),
        "attention of itself": lambda: f.scaled_dot_product_attention(x, x, x),
        "layer_norm": lambda: f.layer_norm(x, (6,), weight, bias),
        "rms_norm": lambda: f.rms_norm(x, (4, 6), None),
        "group_norm": lambda: f.group_norm(x, 2, weight[:4], bias[:4]),
        "batch_norm": lambda: f.batch_norm(x, None, None, weight[:4], bias[:4], True),
        "cross_entropy": lambda: f.cross_entropy(x[0], norch.tensor([3, 0, -100, 5]), label_smoothing=0.1),
        "gru": lambda: norch.nn.recurrent.recurrent(x, y[0, :, :2], None, z[0, :2].reshape(6, 2), weight)[0],
    }[name]()
    g = norch.tensor(rng.standard_normal(out.shape))
    plain = norch.autograd.grad(out, leaves, g, retain_graph=True, allow_unused=True)
    recorded = norch.autograd.grad(out, leaves, g, create_graph=True, allow_unused=True)
    for one, other in zip(plain, recorded, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            norch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)
            assert other.requires_grad and other.grad_fn is not None
