"""Small layers around functions: values, gradients, how they print and what they refuse, as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch

PADDING = [
    (name, axes, padding)
    for name in ("Constant", "Zero", "Reflection", "Replication", "Circular")
    for axes in (1, 2, 3)
    for padding in (1, tuple(range(2 * axes))[::-1] if axes < 3 else (1, 0, 2, 1, 0, 1))
    if not (name == "Circular" and axes == 2 and padding != 1)  # PyTorch wants no more than the size
]


def same(torch: Any, make: Any, shapes: list[tuple[int, ...]]) -> None:
    """A layer of both libraries, with the same parameters, gives the same values, gradients and text."""
    ours, theirs = make(norch), make(torch)
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(0)
    ours.load_state_dict({name: norch.from_numpy(x.numpy()) for name, x in theirs.state_dict().items()})
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    xs = [norch.tensor(x, requires_grad=True) for x in arrays]
    ys = [torch.tensor(y, requires_grad=True) for y in arrays]
    a, b = ours(*xs), theirs(*ys)
    (a * a).sum().backward()
    (b * b).sum().backward()
    pairs = [(a, b), *((x.grad, y.grad) for x, y in zip(xs, ys))]
    pairs += [(p.grad, q.grad) for p, q in zip(ours.parameters(), theirs.parameters())]
    for one, other in pairs:
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "axes", "padding"), PADDING)
def test_padding(torch: Any, name: str, axes: int, padding: Any) -> None:
    more = (0.5,) if name == "Constant" else ()
    same(torch, lambda lib: getattr(lib.nn, f"{name}Pad{axes}d")(padding, *more), [(2, 3, 4, 5, 6)[: axes + 2]])


def test_padding_of_other_sizes() -> None:
    with pytest.raises(norch.ArgumentError, match="ZeroPad2d: padding is 4 sizes or one"):
        norch.nn.ZeroPad2d((1, 2))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda lib: lib.nn.PairwiseDistance(), [(4, 3), (4, 3)]),
        (lambda lib: lib.nn.PairwiseDistance(1.0, keepdim=True), [(4, 3), (4, 3)]),
        (lambda lib: lib.nn.CosineSimilarity(), [(4, 3), (4, 3)]),
        (lambda lib: lib.nn.CosineSimilarity(dim=0), [(4, 3), (4, 3)]),
        (lambda lib: lib.nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)]),
        (lambda lib: lib.nn.Bilinear(2, 3, 4, bias=False), [(5, 6, 2), (5, 6, 3)]),
        (lambda lib: lib.nn.ChannelShuffle(2), [(2, 4, 3, 3)]),
        (lambda lib: lib.nn.TripletMarginWithDistanceLoss(), [(5, 3), (5, 3), (5, 3)]),
        (
            lambda lib: lib.nn.TripletMarginWithDistanceLoss(
                distance_function=lib.nn.PairwiseDistance(1.0), margin=2.0, swap=True, reduction="sum"
            ),
            [(5, 3), (5, 3), (5, 3)],
        ),
    ],
)
def test_of_several_inputs(torch: Any, make: Any, shapes: Any) -> None:
    same(torch, make, shapes)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        norch.nn.Bilinear(0, 3, 4)
    with pytest.raises(ValueError, match="margin must be positive"):
        norch.nn.TripletMarginWithDistanceLoss(margin=0.0)
