"""cat and stack on a device: many tensors a launch, against NumPy; and in captured programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated import SIMULATION, launches

import norch

pytestmark = pytest.mark.skipif(not norch.cuda.is_available(), reason="no CUDA device")


def drawn(seed: int, *shape: int, dtype: str = "float32") -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 100).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("width", [1, 3, 8, 32])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cat_of_what_lies_anyhow(axis: int, width: int, dtype: str) -> None:
    """Dense ones, rows of a matrix, from where no 16 bytes begin, every second column, transposed, one row for all."""
    arrays = [drawn(i, 4, 6, 2 * width + 1, dtype=dtype) for i in range(9)]
    found = [norch.tensor(one).cuda() for one in arrays]
    how: list[Any] = [
        lambda x: x[:, :, :width],
        lambda x: x[:, :, 1 : width + 1],
        lambda x: x[:, 2:, : 2 * width : 2].reshape(4, 4, width),
        lambda x: x[:, :4, ::2][:, :, :width],
        lambda x: x[:, :, :width].reshape(6, 4, width).swapaxes(0, 1),
    ]
    for each in how:
        pieces = [each(one) for one in found]
        wanted = np.concatenate([each(one) for one in arrays], axis)
        np.testing.assert_array_equal(norch.cat(pieces, axis).numpy(force=True), wanted)
        stacked = np.stack([each(one) for one in arrays], axis)
        np.testing.assert_array_equal(norch.stack(pieces, axis).numpy(force=True), stacked)
    mixed = [each(one) for each, one in zip(how[:2] + how[4:], found)] + [found[0][:1, :, :width].expand(4, 6, width)]
    wanted = [each(one) for each, one in zip(how[:2] + how[4:], arrays)]
    wanted.append(np.broadcast_to(arrays[0][:1, :, :width], (4, 6, width)))
    np.testing.assert_array_equal(norch.cat(mixed, axis).numpy(force=True), np.concatenate(wanted, axis))


def test_sizes_and_dtypes() -> None:
    x = norch.tensor(drawn(0, 5, 3)).cuda()
    empty = norch.empty(0, device="cuda")
    assert norch.equal(norch.cat([empty, x, x[:0], x[1:2]]), norch.tensor(drawn(0, 5, 3)).cuda()[[0, 1, 2, 3, 4, 1]])
    assert norch.cat([x, x.long()]).tolist() == x.tolist() + [[float(int(a)) for a in row] for row in x.tolist()]
    assert norch.stack([x[0, 0], x[2, 1], x[1, 1]]).tolist() == [x[0, 0].item(), x[2, 1].item(), x[1, 1].item()]
    z = norch.complex(x, -x)
    assert norch.cat([z, z], 1).tolist() == [2 * row for row in z.tolist()]
    blocks = [norch.tensor(drawn(i, 1 + 701 * i)).cuda() for i in range(6)]  # of several blocks of a launch each
    np.testing.assert_array_equal(
        norch.cat(blocks).cpu().numpy(), np.concatenate([one.cpu().numpy() for one in blocks])
    )


@pytest.mark.skipif(not SIMULATION, reason="the simulation counts launches")
def test_one_launch_for_many() -> None:
    many = [norch.tensor(drawn(i, 7, 5)).cuda() for i in range(130)]
    for join, of in (
        (norch.cat, many[:1]),
        (norch.stack, many[:2]),
        (norch.hstack, many[:64]),
        (norch.vstack, many[:64]),
    ):
        assert launches(lambda join=join, of=of: join(of)) == (1, 0)
    assert launches(lambda: norch.cat(many, 1)) == (3, 0)
    assert launches(lambda: norch.stack(many, 2)) == (3, 0)
    assert launches(lambda: norch.cat([*many[:9], many[0].double(), many[1].T.reshape(5, 7).T])) > (1, 0)
    leaves = [one.clone().requires_grad_() for one in many[:20]]
    joined, g = norch.stack(leaves, 1), norch.ones(7, 20, 5, device="cuda")
    assert norch.equal(norch.autograd.grad(joined, leaves, g)[3], norch.ones(7, 5, device="cuda"))


def test_captured() -> None:
    """Its addresses are those of other arguments in each replay, and of memory that the program shares out."""

    def step(*xs: Any) -> Any:
        return norch.cat([x * 2 for x in xs], 1).sum(1), norch.stack(xs, 1)

    captured = norch.capture(step)
    for seed in range(6):
        xs = [norch.tensor(drawn(100 * seed + i, 3, 4 + i)[:, :4]).cuda() for i in range(70)]
        found, wanted = captured(*xs), step(*xs)
        assert all(norch.equal(a, b) for a, b in zip(found, wanted))
    assert captured.recordings() == 1 and captured.program.graphs()
    assert "join" in str(captured.program)
    if SIMULATION:
        assert launches(lambda: captured(*xs))[1] == 1
