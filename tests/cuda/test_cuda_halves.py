"""Products of float16 and bfloat16 matrices on a CUDA device: each kernel, over the layouts, edges, batches and parts
that it takes. The simulation is told which kernel it is to take; its second device has tensor cores, but no wgmma."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import norch
from norch import cuda
from norch.nn import functional as F

pytestmark = pytest.mark.skipif(
    not cuda.is_available() or cuda.get_device_capability() < (8, 0), reason="no CUDA device with tensor cores"
)

EPSILON = {norch.float16: 2.0**-11, norch.bfloat16: 2.0**-8}
DTYPES = list(EPSILON)
WGMMA, MMA, ANYHOW = range(4), range(4, 7), 7  # numbers of kernels


@pytest.fixture(autouse=True)
def no_wish() -> Iterator[None]:
    yield
    os.environ.pop("NORCH_MATMUL_16BIT", None)


def wish(kernel: int, parts: int = 1) -> None:
    os.environ["NORCH_MATMUL_16BIT"] = f"{kernel},{parts}"


def drawn(shape: tuple[int, ...], dtype: Any, seed: int, across: bool = False) -> norch.Tensor:
    """Numbers on the device; across: their last two axes lie the other way round."""
    x = norch.randn(shape, generator=norch.Generator().manual_seed(seed)).to(dtype)
    return x.transpose(-1, -2).contiguous().cuda().transpose(-1, -2) if across else x.cuda()


def wide(x: norch.Tensor) -> Any:
    return x.double().numpy(force=True)


def assert_rounded_once(found: norch.Tensor, wanted: Any, terms: int) -> None:
    """Half a unit in the last place of the result, and what float32 sums may lose."""
    allowed = EPSILON[found.dtype] * np.abs(wanted) + 2e-7 * terms + 2.0**-24
    assert not (np.abs(wide(found) - wanted) > allowed * 1.001).any()


def check(m: int, k: int, n: int, dtype: Any, across: tuple[bool, bool], batch: tuple[int, ...] = ()) -> None:
    a, b = drawn((*batch, m, k), dtype, 1, across[0]), drawn((*batch, k, n), dtype, 2, across[1])
    assert_rounded_once(a @ b, wide(a) @ wide(b), k)


LAYOUTS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("across", LAYOUTS)
@pytest.mark.parametrize("kernel", [*WGMMA, *MMA])
def test_tiles(kernel: int, across: tuple[bool, bool]) -> None:
    """Matrices that are a little larger than a tile, of whole chunks of 16 bytes."""
    dtype = DTYPES[(kernel + sum(across)) % 2]
    wish(kernel)
    check(136, 72, 40, dtype, across)
    check(8, 80, 264, dtype, across)
    wish(kernel, 2)
    check(72, 520, 8, dtype, across)


@pytest.mark.parametrize("across", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_sizes(dtype: Any, across: tuple[bool, bool]) -> None:
    wish(ANYHOW)
    check(65, 67, 131, dtype, across)
    check(1, 3, 5, dtype, across)
    wish(ANYHOW, 2)
    check(33, 515, 7, dtype, across)


@pytest.mark.parametrize("across", LAYOUTS)
@pytest.mark.parametrize("kernel", [3, 6])
def test_odd_sizes_by_copies(kernel: int, across: tuple[bool, bool]) -> None:
    """A kernel that reads whole chunks gets copies of what has none, and of large ones a half after the other."""
    dtype = DTYPES[(kernel + sum(across)) % 2]
    wish(kernel)
    check(65, 67, 131, dtype, across)
    check(9, 67, 24, dtype, across, (3, 2))
    check(300, 131, 8, dtype, across)
    check(8, 131, 300, dtype, across)
    x, weight, bias = drawn((8, 131), dtype, 1), drawn((300, 131), dtype, 2), drawn((300,), dtype, 3)
    assert_rounded_once(F.linear(x, weight, bias), wide(x) @ wide(weight).T + wide(bias), 131)
    shared = drawn((17, 131), dtype, 4, across[0]).expand(2, 17, 131)
    batches = drawn((2, 131, 9), dtype, 5, across[1])
    assert_rounded_once(shared @ batches, wide(shared) @ wide(batches), 131)


@pytest.mark.parametrize("kernel", [0, 6, 7])
def test_batches(kernel: int) -> None:
    wish(kernel)
    for dtype in DTYPES:
        check(16, 24, 40, dtype, (False, True), (2, 3))
        heads = drawn((2, 16, 3, 8), dtype, 3).transpose(1, 2)  # as attention has them: batches that are no one loop
        found = heads @ heads.transpose(-1, -2)
        assert_rounded_once(found, wide(heads) @ np.swapaxes(wide(heads), -1, -2), 8)
        one = drawn((8, 24), dtype, 4)
        many = drawn((2, 1, 24, 16), dtype, 5).expand(2, 3, 24, 16)
        assert_rounded_once(one @ many, wide(one) @ wide(many), 24)


@pytest.mark.parametrize("kernel", [0, 3, 5, 6, 7])
@pytest.mark.parametrize("parts", [1, 2])
def test_bias(kernel: int, parts: int) -> None:
    wish(kernel, parts)
    for dtype in DTYPES:
        x, weight, bias = drawn((24, 512), dtype, 1), drawn((40, 512), dtype, 2), drawn((40,), dtype, 3)
        assert_rounded_once(F.linear(x, weight, bias), wide(x) @ wide(weight).T + wide(bias), 512)


def test_parts_of_a_matrix() -> None:
    """Rows that lie apart, from where 16 bytes do not begin, of sizes that 8 does not divide."""
    for dtype in DTYPES:
        x, y = drawn((40, 104), dtype, 1), drawn((24, 104), dtype, 2)
        for a, b in [
            (x[:, :99], y[:, :99]),
            (x[:, 1:], y[:, 1:]),
            (x[:, 8:96], y[:, 8:96]),
            (x[::2, ::3], y[:, ::3]),
            (x[:1].expand(40, 104), y),
            (x[:, :1], y[:, :1]),
        ]:
            assert_rounded_once(a @ b.T, wide(a) @ wide(b).T, a.shape[1])
        assert_rounded_once(x @ y[0], wide(x) @ wide(y[0]), 104)
        assert_rounded_once(x[0] @ y.T, wide(x[0]) @ wide(y).T, 104)
        assert (x[:, :0] @ y[:, :0].T).tolist() == [[0.0] * 24] * 40


def test_gradients() -> None:
    for dtype in DTYPES:
        x, weight, bias = drawn((3, 16, 24), dtype, 1), drawn((8, 24), dtype, 2), drawn((8,), dtype, 3)
        for leaf in (x, weight, bias):
            leaf.requires_grad_()
        g = drawn((3, 16, 8), dtype, 4)
        F.linear(x, weight, bias).backward(g)
        rows, flat = wide(g).reshape(48, 8), wide(x).reshape(48, 24)
        assert x.grad.dtype is weight.grad.dtype is bias.grad.dtype is dtype
        assert_rounded_once(x.grad, (rows @ wide(weight)).reshape(3, 16, 24), 8)
        assert_rounded_once(weight.grad, rows.T @ flat, 48)
        assert_rounded_once(bias.grad, rows.sum(0), 48)


@pytest.mark.parametrize("kernel", [0, 4, 7])
def test_infinities_and_nan(kernel: int) -> None:
    wish(kernel)
    for dtype in DTYPES:
        x, y = norch.ones(16, 16, dtype=dtype), norch.ones(16, 16, dtype=dtype)
        x[3, 5], x[4, 6], x[7, 9], x[8] = float("inf"), float("-inf"), float("nan"), norch.finfo(dtype).max
        y[5, 11] = y[6, 12] = 0.0
        x[4, 5] = float("inf")
        with np.errstate(all="ignore"):
            wanted = x.float().numpy() @ y.float().numpy()
        found = (x.cuda() @ y.cuda()).float().cpu().numpy()
        assert (np.isnan(found) == np.isnan(wanted)).all()
        limit = float(norch.finfo(dtype).max) * (1 + EPSILON[dtype])
        assert (np.isinf(found) == (np.abs(wanted) >= limit)).all() and np.isinf(found[3, 0])


def test_the_second_device() -> None:
    """Of capability 8.0 in the simulation: the same by mma.sync."""
    if cuda.device_count() < 2:
        pytest.skip("one device")
    for dtype in DTYPES:
        a, b = drawn((72, 80), dtype, 1), drawn((80, 72), dtype, 2)
        assert_rounded_once(a.to("cuda:1") @ b.to("cuda:1"), wide(a) @ wide(b), 80)


OLD_CODE = """
import norch
x = norch.randn(9, 8).bfloat16().requires_grad_()
y = x.detach().cuda().requires_grad_()
for one in (x, y):
    (one @ one.T).sum().backward()
assert norch.equal((x @ x.T).float(), (y @ y.T).float().cpu()) and norch.equal(x.grad.float(), y.grad.float().cpu())
"""


def test_code_without_tensor_cores() -> None:
    """Of a plugin that was built for older devices: in float32, as on the CPU."""
    if not cuda.get_device_properties().simulated:
        pytest.skip("this code is as new as the device")
    environment = {**os.environ, "NORCH_CUDASIM_PTX": "75"}
    done = subprocess.run([sys.executable, "-c", OLD_CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_copies_of_the_operands() -> None:
    """The product alone takes memory: not the operands in another dtype."""
    a, b = drawn((256, 512), norch.bfloat16, 1), drawn((512, 256), norch.bfloat16, 2)
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    wish(0)
    product = a @ b
    assert cuda.max_memory_allocated() - before == product.numel() * 2
