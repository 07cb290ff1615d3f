"""What tests of norch.vmap share: inputs, and the comparison with a loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import norch
from norch import func, vmap
from norch.autograd.transforms import leaves
from norch.testing import assert_close

RNG = np.random.default_rng(5)


def floats(*shape: int) -> Any:
    return norch.tensor(RNG.normal(size=shape))


def positive(*shape: int) -> Any:
    """Symmetric matrices with positive eigenvalues."""
    a = RNG.normal(size=shape)
    return norch.tensor(a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1]))


def slices(inputs: Any, dims: Any, i: int) -> list[Any]:
    return [x if dim is None else x.select(dim, i) for x, dim in zip(inputs, dims, strict=True)]


def check(call: Callable[..., Any], *inputs: Any, grads: bool = True, dims: Any = None) -> None:
    """vmap(call) against a loop, and its gradients from within and from outside, for inputs that are batched or not."""
    size = 3
    patterns = [dims] if dims else [[0] * len(inputs)]
    if not dims and len(inputs) > 1:
        patterns += [[None if j == i else 0 for j in range(len(inputs))] for i in range(len(inputs))]
        patterns += [[0 if j == i else None for j in range(len(inputs))] for i in range(len(inputs))]
    for pattern in patterns:
        given = [x if dim is not None else x[0] for x, dim in zip(inputs, pattern, strict=True)]
        rows = [slices(given, pattern, i) for i in range(size)]

        def agree(run: Callable[..., Any], given: Any = given, rows: Any = rows, pattern: Any = pattern) -> None:
            found = leaves(vmap(run, tuple(pattern))(*given))
            wanted = [norch.stack(column) for column in zip(*(leaves(run(*row)) for row in rows), strict=True)]
            for ours, theirs in zip(found, wanted, strict=True):
                assert_close(ours, theirs, rtol=1e-7, atol=1e-9)

        agree(call)
        if not grads:
            continue
        wanted = tuple(i for i, x in enumerate(given) if x.is_floating_point())

        def number(*x):
            return sum(((out + 0.3) * out.detach().cos()).sum() for out in leaves(call(*x)))

        agree(func.grad(number, wanted))
        results = []
        for run in (vmap(call, tuple(pattern)), functools.partial(by_loop, call, pattern)):
            leaf = [x.detach().requires_grad_(x.is_floating_point()) for x in given]
            total = sum(((out + 0.3) * out.detach().cos()).sum() for out in leaves(run(*leaf)))
            results.append(norch.autograd.grad(total, [leaf[i] for i in wanted], materialize_grads=True))
        for ours, theirs in zip(*results, strict=True):
            assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def check_nested(call: Callable[..., Any], *inputs: Any) -> None:
    """The map of a map of gradients, whose levels batch each of the inputs alone and all others, and of Jacobians."""
    floating = tuple(i for i, x in enumerate(inputs) if x.is_floating_point())

    def number(*x):
        return sum(((out + 0.3) * out.detach().cos()).sum() for out in leaves(call(*x)))

    run = func.grad(number, floating)
    for k in range(len(inputs)):
        inner = tuple(0 if i == k else None for i in range(len(inputs)))
        outer = tuple(None if i == k and len(inputs) > 1 else 0 for i in range(len(inputs)))
        given = [x[:2] if len(inputs) > 1 else norch.stack([x[:2], x[1:3]]) for x in inputs]
        found = leaves(vmap(vmap(run, inner), outer)(*given))
        rows = [leaves(run(*slices(slices(given, outer, i), inner, j))) for i in range(2) for j in range(2)]
        for ours, column in zip(found, zip(*rows, strict=True), strict=True):
            assert_close(ours, norch.stack(column).unflatten(0, (2, 2)), rtol=1e-7, atol=1e-9)
    rows_of = func.jacrev(lambda *x: leaves(call(*x))[0], floating[0])
    found = vmap(rows_of)(*(x[:2] for x in inputs))
    assert_close(found, norch.stack([rows_of(*(x[i] for x in inputs)) for i in range(2)]), rtol=1e-7, atol=1e-9)


def by_loop(call: Any, pattern: Any, *given: Any) -> list[Any]:
    rows = [leaves(call(*slices(given, pattern, i))) for i in range(3)]
    return [norch.stack(column) for column in zip(*rows, strict=True)]
