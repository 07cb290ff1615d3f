"""Writes between forward and backward: a tensor that a wanted gradient reads is refused, and only such a one.

Each input and the result are written to while one input, all others, or all require a gradient. backward() then gives
the gradients of the values that were there, or raises, and it does not raise where PyTorch's does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from case import Case, draw, source
from cases import CASES
from checks import listed
from test_derivatives import variables

import norch
from norch.autograd.outlive import outliving


def outcome(library: Any, call: Any, arrays: Any, wanted: list[int], written: int | None) -> str:
    """What backward() does after a write to an input, or (None) to the result: right, wrong, refused ..."""

    def forward() -> tuple[list[Any], list[Any]]:
        given = [library.tensor(x) for x in arrays]
        for i in wanted:
            given[i].requires_grad_()
        results = [x for x in listed(call(library, *given)) if isinstance(x, library.Tensor)]
        return given, [x for x in results if x.is_floating_point() and x.requires_grad]

    def gradients(given: list[Any], results: list[Any]) -> Any:
        weights = [library.ones_like(x) for x in results]
        return library.autograd.grad(results, [given[i] for i in wanted], weights, allow_unused=True)

    given, results = forward()
    if not results:
        return "no gradient"
    before = gradients(given, results)
    given, results = forward()
    try:
        with library.no_grad():
            (results[0] if written is None else given[written]).add_(0.25)
    except (RuntimeError, TypeError):
        return "not written"
    try:
        after = gradients(given, results)
    except RuntimeError as error:
        assert any(part in str(error) for part in ("in-place", "inplace", "in place", "needs for its gradient")), error
        return "refused"
    same = all(
        (a is None) == (b is None) and (a is None or np.allclose(a.numpy(), b.numpy(), equal_nan=True))
        for a, b in zip(before, after)
    )
    return "right" if same else "wrong"


def pairs(chosen: list[int], count: int) -> Iterator[tuple[list[int], int | None]]:
    """The inputs with a gradient, and the input that is written to, or None."""
    for written in range(count):
        others = [i for i in chosen if i != written]
        yield from ((wanted, written) for wanted in (others, chosen) if wanted)
        yield from (([i], written) for i in chosen if [i] not in (others, chosen))
    yield from (([i], None) for i in chosen)


def check(torch: Any, name: str, call: Any, torch_call: Any, arrays: Any, chosen: list[int]) -> None:
    for wanted, written in pairs(chosen, len(arrays)):
        found = outcome(norch, call, arrays, wanted, written)
        about = f"{name}: the gradients of {wanted} after a write to {'the result' if written is None else written}"
        assert found != "wrong", about
        if found == "refused":
            try:
                theirs = outcome(torch, torch_call, arrays, wanted, written)
            except (RuntimeError, AssertionError):
                continue  # PyTorch has no such derivative
            assert theirs in ("refused", "wrong"), about


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [case for case in CASES if case.grad and case.torch is not False], ids=str)
def test_cases(torch: Any, case: Case) -> None:
    rng = source(case.name + "needs")
    samples = [draw(case, shapes, "float64", rng) for shapes in case.shapes if max(map(np.prod, shapes)) <= 60]
    for arrays in [arrays for arrays in samples if all(x.size for x in arrays)][:1]:
        chosen = variables(case, [norch.tensor(x) for x in arrays])
        # What the other tests compare hardsigmoid with is composed, and saves less.
        theirs = functional("hardsigmoid") if case.row == "hardsigmoid" else case.torch_call()
        check(torch, case.row or case.name, case.call, theirs, arrays, chosen)


def functional(name: str, *arguments: Any, **options: Any) -> Callable[..., Any]:
    return lambda m, *given: getattr(m.nn.functional, name)(*given, *arguments, **options)


def attribute(name: str, *arguments: Any, **options: Any) -> Callable[..., Any]:
    def call(m: Any, *given: Any) -> Any:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        return function(*given, *arguments, **options)

    return call


# A function of tensors, and their shapes.
LAYERS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    **{
        f"{name} {shapes}": (attribute("matmul"), shapes)
        for name, shapes in (
            ("dot", ((3,), (3,))), ("mv", ((2, 3), (3,))), ("vm", ((2,), (2, 3))), ("mm", ((2, 3), (3, 4))),
            ("bmm", ((5, 2, 3), (5, 3, 4))), ("batch and vector", ((5, 2, 3), (3,))),
            ("vector and batch", ((3,), (5, 3, 4))), ("batch on the right", ((2, 3), (5, 3, 4))),
        )
    },
    "dot": (attribute("dot"), ((3,), (3,))),
    "vdot": (attribute("vdot"), ((3,), (3,))),
    "mv": (attribute("mv"), ((2, 3), (3,))),
    "addmv": (attribute("addmv"), ((2,), (2, 3), (3,))),
    "addmm": (attribute("addmm"), ((2, 4), (2, 3), (3, 4))),
    "linear": (functional("linear"), ((2, 3), (4, 3), (4,))),
    "bilinear": (functional("bilinear"), ((2, 3), (2, 3), (4, 3, 3), (4,))),
    "conv1d": (functional("conv1d"), ((1, 2, 5), (3, 2, 2), (3,))),
    "conv2d": (functional("conv2d"), ((1, 2, 5, 5), (3, 2, 2, 2), (3,))),
    "conv_transpose2d": (functional("conv_transpose2d"), ((1, 2, 3, 3), (2, 3, 2, 2), (3,))),
    "batch_norm": (lambda m, x, w, b: m.nn.functional.batch_norm(x, None, None, w, b, True), ((4, 3), (3,), (3,))),
    "layer_norm": (lambda m, x, w, b: m.nn.functional.layer_norm(x, (4,), w, b), ((2, 4), (4,), (4,))),
    "group_norm": (lambda m, x, w, b: m.nn.functional.group_norm(x, 2, w, b), ((2, 4, 3), (4,), (4,))),
    "instance_norm": (
        lambda m, x, w, b: m.nn.functional.instance_norm(x, weight=w, bias=b), ((2, 4, 3), (4,), (4,))
    ),
    "rms_norm": (lambda m, x, w: m.nn.functional.rms_norm(x, (4,), w), ((2, 4), (4,))),
    "prelu": (functional("prelu"), ((2, 4), (4,))),
    **{name: (functional(name), ((3,), (3,))) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")},
    "kl_div": (lambda m, x, y: m.nn.functional.kl_div(x, y.exp(), reduction="sum"), ((3,), (3,))),
    "cross_entropy": (functional("cross_entropy"), ((2, 3), (2, 3))),
    **{
        f"cross_entropy of classes, {reduction} {smoothing}": (
            lambda m, x, r=reduction, s=smoothing: m.nn.functional.cross_entropy(
                x, m.tensor([0, 2, -100]), reduction=r, label_smoothing=s
            ),
            ((3, 4),),
        )
        for reduction in ("none", "sum", "mean") for smoothing in (0.0, 0.1)
    },
    "cross_entropy of planes": (
        lambda m, x: m.nn.functional.cross_entropy(x, m.tensor([[0, 1], [2, 1]])), ((2, 3, 2),)
    ),
    "nll_loss": (lambda m, x: m.nn.functional.nll_loss(x, m.tensor([0, 2])), ((2, 3),)),
    "1 / x": (lambda m, x: 1 / x, ((3,),)),
    "-2.5 / x": (lambda m, x: -2.5 / x, ((3,),)),
    **{f"x ** {p}": (lambda m, x, p=p: x.abs() ** p, ((3,),)) for p in (-2, -1, 0, 0.5, 1, 2, 3)},
    "2 ** x": (lambda m, x: 2 ** x, ((3,),)),
    "ndtri": (lambda m, x: m.special.ndtri(x.sigmoid()), ((3,),)),
    "embedding_bag": (
        lambda m, w: m.nn.functional.embedding_bag(m.tensor([[1, 2, 1]]), w, mode="max"), ((4, 3),)
    ),
    "masked attention": (functional("scaled_dot_product_attention"), ((2, 2, 3, 2),) * 3 + ((3, 3),)),
    "bce with logits": (functional("binary_cross_entropy_with_logits"), ((3,), (3,))),
    "triplet_margin_loss": (functional("triplet_margin_loss"), ((2, 3), (2, 3), (2, 3))),
    "pairwise_distance": (functional("pairwise_distance"), ((2, 3), (2, 3))),
    "attention": (functional("scaled_dot_product_attention"), ((1, 3, 2), (1, 3, 2), (1, 3, 2))),
    "max_pool2d": (functional("max_pool2d", 2), ((1, 1, 4, 4),)),
    "glu": (functional("glu"), ((2, 4),)),
    "grid_sample": (functional("grid_sample", align_corners=False), ((1, 1, 3, 3), (1, 2, 2, 2))),
    "solve": (attribute("linalg.solve"), ((3, 3), (3,))),
    "inv": (attribute("linalg.inv"), ((3, 3),)),
    "multi_dot": (lambda m, *xs: m.linalg.multi_dot(list(xs)), ((2, 3), (3, 4), (4, 2))),
    "cross": (attribute("linalg.cross"), ((2, 3), (2, 3))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_layers(torch: Any, name: str) -> None:
    call, shapes = LAYERS[name]
    arrays = [source(name).standard_normal(shape) for shape in shapes]
    check(torch, name, call, call, arrays, list(range(len(arrays))))


def test_gradients_of_values_and_scales_do_not_read_them() -> None:
    """Of attention's value, of a norm's weight: their places are taken by tensors without elements."""
    q, k, v = (norch.randn(1, 3, 2, dtype=norch.float64) for _ in range(3))
    v.requires_grad_()
    attention = norch.nn.functional.scaled_dot_product_attention
    (plain,) = norch.autograd.grad(attention(q, k, v).square().sum(), v)
    (recorded,) = norch.autograd.grad(attention(q, k, v).square().sum(), v, create_graph=True)
    assert norch.allclose(plain, recorded) and recorded.requires_grad
    x, w, b = norch.randn(4, 3), norch.ones(3, requires_grad=True), norch.zeros(3, requires_grad=True)
    for scale, shift in ((w, b), (w, b.detach()), (w.detach(), b)):
        wanted = [one for one in (scale, shift) if one.requires_grad]
        loss = norch.nn.functional.layer_norm(x, (3,), scale, shift).square().sum()
        plains = norch.autograd.grad(loss, wanted, retain_graph=True)
        recorded = norch.autograd.grad(loss, wanted, create_graph=True)
        assert all(norch.allclose(p, r) for p, r in zip(plains, recorded))


def test_copies_are_made_of_what_is_written_alone() -> None:
    """Of views and bases, once and after other writes; for gradients of gradients; and forgotten with the graph."""
    targets = norch.tensor([0, 2])

    def loss(x: Any) -> Any:
        return norch.nn.functional.cross_entropy(x, targets)

    start = norch.randn(2, 3, dtype=norch.float64)
    leaf = start.clone().requires_grad_()
    first = norch.autograd.grad(loss(leaf), leaf, create_graph=True)[0]
    (second,) = norch.autograd.grad(first.square().sum(), leaf)
    for write in (lambda x: x.add_(1), lambda x: x[0].zero_(), lambda x: x.view(-1)[1:3].mul_(2), lambda x: x.t_()):
        x = start.clone().requires_grad_()
        y = x * 1
        out = loss(y)
        write(y)
        write(y)
        (slope,) = norch.autograd.grad(out, x, create_graph=True)
        assert norch.allclose(slope, first)
        assert norch.allclose(norch.autograd.grad(slope.square().sum(), x)[0], second)
    x = start.clone().requires_grad_()
    y = x * 1
    early = loss(y)
    y.mul_(2)
    late = loss(y)  # of what is there now
    y.mul_(3)
    wanted = start.clone().requires_grad_()
    both = norch.autograd.grad(loss(wanted) + loss(wanted * 2), wanted)[0]
    assert norch.allclose(norch.autograd.grad(early + late, x)[0], both)
    del early, late, out, slope
    assert not outliving
    with norch.no_grad():
        loss(start)
    assert not outliving


def test_captured() -> None:
    def step(x: Any, targets: Any) -> Any:
        y = x * 1
        loss = norch.nn.functional.cross_entropy(y, targets) + (1 / y).sum()
        y.add_(1)
        return norch.autograd.grad(loss, x)[0]

    captured, targets = norch.capture(step), norch.tensor([0, 2])
    for _ in range(4):
        x = norch.randn(2, 3, requires_grad=True)
        assert norch.equal(captured(x, targets), step(x, targets))
