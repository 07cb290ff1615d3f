"""Random programs of views, writes in place and other operations: what backward() gives against finite differences."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from budget import SEED, cases

import norch

pytestmark = pytest.mark.host

Step = tuple[str, int, int, int]

VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a.t(),
    lambda a: a[0],
    lambda a: a[..., 1:],
    lambda a: a[..., ::2],
    lambda a: a[::-1],
    lambda a: a.reshape(-1),
    lambda a: a.view(-1),
    lambda a: a.unsqueeze(0),
    lambda a: a.diagonal(),
    lambda a: a.narrow(-1, 0, 2),
    lambda a: a.expand(2, *a.shape),
    lambda a: a.chunk(2, -1)[-1],
    lambda a: a.unbind(0)[-1],
]
NEW: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a * b,
    lambda a, b: a - b,
    lambda a, b: (a / 2).tanh(),
    lambda a, b: a.sin() + b.cos(),
    lambda a, b: a.softmax(-1),
    lambda a, b: norch.where(a > 0, a, b),
    lambda a, b: norch.stack([a + b, b * 2])[1],
    lambda a, b: norch.cat([a + b, a], -1),
    lambda a, b: a.square().mean(-1, True) + b,
    lambda a, b: a @ a.mT,
    lambda a, b: a.cumsum(-1),
    lambda a, b: a.clone(),
    lambda a, b: a[[0, -1]],
]
WRITES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a.mul_(b),
    lambda a, b: a.add_(b, alpha=0.5),
    lambda a, b: a.sin_(),
    lambda a, b: a.tanh_(),
    lambda a, b: a.zero_(),
    lambda a, b: a.copy_(b),
    lambda a, b: a.addcmul_(a, b, value=0.25),
    lambda a, b: a.__setitem__(0, b.sum() / 8),
    lambda a, b: a.__setitem__(a > 0.5, 0.25),
    lambda a, b: a.masked_fill_(a < -0.5, 0.125),
    lambda a, b: a.t_(),
    lambda a, b: a.unsqueeze_(-1),
    lambda a, b: a[1:].mul_(a[:-1]),
    lambda a, b: a.index_fill_(0, norch.tensor([0]), 0.5),
]
KINDS = {"view": VIEWS, "new": NEW, "write": WRITES}


def drawn(pick: random.Random) -> list[Step]:
    kinds = [pick.choice(list(KINDS)) for _ in range(pick.randrange(1, 14))]
    return [(kind, pick.randrange(len(KINDS[kind])), pick.randrange(99), pick.randrange(99)) for kind in kinds]


def value(steps: list[Step], x: Any, y: Any) -> Any:
    """The number that a program makes of x and y. A step that is refused is left out, and leaves all as it was."""
    pool = [x * 1, y * 1]
    for kind, which, first, second in steps:
        a, b = pool[first % len(pool)], pool[second % len(pool)]
        try:
            b = b if b.shape == a.shape else b.mean()
            made: Any = KINDS[kind][which](*(a,) if kind == "view" else (a, b))
        except (norch.Error, TypeError):  # a write to an expanded view, an axis that is not there
            continue
        if kind != "write":
            pool.append(made)
    total = norch.zeros((), dtype=norch.float64)
    for i, part in enumerate(pool):
        try:
            total = total + (part * (0.5 + i)).cos().sum()
        except norch.Error as error:
            assert "lost its history" in str(error), error  # a view of what has another shape since
    return total


def difference(steps: list[Step], x: Any, y: Any, v: Any, w: Any, step: float) -> float:
    """The derivative in the direction of v and w."""
    moved = ([(x + v * h).requires_grad_(), (y + w * h).requires_grad_()] for h in (step, -step))
    above, below = (value(steps, *leaves).item() for leaves in moved)
    return (above - below) / (2 * step)


def checked(seed: str) -> bool:
    """Whether a program ran to its end; an AssertionError where its derivative is wrong."""
    steps = drawn(random.Random(seed))
    torn = norch.Generator().manual_seed(random.Random(seed).randrange(1 << 30))
    x, y, v, w = (norch.randn(3, 4, dtype=norch.float64, generator=torn) for _ in range(4))
    leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    out = value(steps, *leaves)
    if not out.requires_grad:
        return False
    try:
        out.backward()
    except norch.Error as error:
        assert "in place" in str(error), f"{seed}: {steps}: {error}"
        return False
    slope = sum((leaf.grad * d).sum().item() for leaf, d in zip(leaves, (v, w), strict=True) if leaf.grad is not None)
    found = [difference(steps, x, y, v, w, step) for step in (1e-5, 1e-6)]
    if not abs(found[0] - found[1]) <= 1e-4 * (1 + abs(found[0])):
        return False  # a jump, or the mean of nothing: differences say nothing
    assert abs(slope - found[1]) <= 2e-3 * (1 + abs(slope)), f"{seed}: {steps}: {slope}, by differences {found[1]}"
    return True


def test_derivatives_of_random_programs() -> None:
    done = [checked(f"{SEED}/{number}") for number in cases(1500, 0.1)]
    assert sum(done) > len(done) / 2
