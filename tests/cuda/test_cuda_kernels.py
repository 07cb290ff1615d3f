"""Which CUDA kernel a shape gets: layouts, widths and addresses that lead to each, against the CPU. They run where
there is a CUDA device: in make test-cudasim."""

from __future__ import annotations

import pytest

import norch
from norch import cuda, nn

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.float16, norch.int64, norch.uint8])
def test_broadcasting_in_runs_and_one_by_one(dtype: norch.dtype) -> None:
    """Rows whose length 16 bytes divide are taken in runs, where each operand begins at the right places."""
    norch.manual_seed(0)
    for width in (16, 17):
        x = norch.randint(0, 9, (6, 5, width)).to(dtype)
        beside = [x[0, 0], x[:1], x[:, :1], x[..., :1], x[0, 0, 0], x.flip(2), x[:, ::2][:, :1]]
        beside += [norch.cat([x, x], 2)[..., start : start + width] for start in (0, 1, 8)]
        for y in beside:
            for call in (lambda x, y: x * y, lambda x, y: y + x, lambda x, y: norch.where(x > 3, y, x), norch.maximum):
                there = call(x.cuda(), y.cuda())
                assert there.dtype is call(x, y).dtype and norch.equal(there.cpu(), call(x, y))
        whole = x.cuda()
        whole[:, 1:3] *= x[0, 0].cuda()
        assert norch.equal(whole[:, 1:3].cpu(), x[:, 1:3] * x[0, 0]) and norch.equal(whole[:, 3:].cpu(), x[:, 3:])


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((3, 5000), 1),
        ((5000, 3), 0),
        ((5000, 40), 0),
        ((2, 20000), 1),
        ((40000,), 0),
        ((300, 64), 1),
        ((16400, 128), 1),
    ],
)
def test_reductions_of_any_shape(shape: tuple[int, ...], dim: int) -> None:
    """Teams of a warp, of a block, across; in one part and in several."""
    norch.manual_seed(0)
    x = norch.randint(-50, 50, shape)
    there = x.cuda()
    calls = (norch.sum, norch.amax, norch.argmin, norch.any)
    for call in calls if x.numel() < 1 << 20 else calls[:1]:
        assert norch.equal(call(there, dim).cpu(), call(x, dim))
    for call in (norch.sum, norch.var, norch.logsumexp) if x.numel() < 1 << 20 else ():
        norch.testing.assert_close(call(there.float(), dim).cpu(), call(x.float(), dim), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16, norch.int16])
def test_dtypes_of_two_bytes_go_eight_at_a_time(dtype: norch.dtype) -> None:
    """Of any number, from any address on, beside numbers and bools."""
    x, y = ((norch.arange(2100) * k % 23 - 11).to(dtype) for k in (5, 7))
    there, other = x.cuda(), y.cuda()
    for at, count in ((0, 2100), (0, 2048), (8, 2047), (1, 2040), (4, 5), (3, 0)):
        a, b, moved = x[at : at + count], y[:count], there[at : at + count]
        for call in (lambda a, b: a * b, norch.maximum, lambda a, b: a > b, lambda a, b: norch.where(a > b, b, a)):
            assert norch.equal(call(moved, other[:count]).cpu(), call(a, b))
        assert norch.equal((moved * 3 - moved.abs()).cpu(), a * 3 - a.abs())
        whole = there.clone()
        whole[at : at + count].add_(other[:count])
        assert norch.equal(whole[at : at + count].cpu(), a + b)
        assert norch.equal(whole[:at].cpu(), x[:at]) and norch.equal(whole[at + count :].cpu(), x[at + count :])


@pytest.mark.parametrize("dtype", [norch.float32, norch.float16, norch.int64, norch.uint8])
def test_rows_are_copied_in_words(dtype: norch.dtype) -> None:
    """In the largest that sizes, strides and addresses allow."""
    for width in (1, 2, 3, 4, 6, 8, 12, 16, 32):
        for at in (0, 1, 2, 4, 16):
            x = (norch.arange(5 * 3 * 56) % 119).to(dtype).view(5, 3, 56)
            part, there = x[:, 1:, at : at + width], x.cuda()[:, 1:, at : at + width]
            assert norch.equal(there.clone().cpu(), part)
            assert norch.equal(norch.cat([there, there + 1], 2).cpu(), norch.cat([part, part + 1], 2))
            target = x.cuda()
            target[::2, ::2, at : at + width] = there[::2, :1].expand(-1, 2, -1)
            expected = x.clone()
            expected[::2, ::2, at : at + width] = part[::2, :1].expand(-1, 2, -1)
            assert norch.equal(target.cpu(), expected)


@pytest.mark.parametrize("width", [16, 24, 27])
def test_sums_of_rows_at_indices(width: int) -> None:
    """Four columns at a time where rows and addresses allow it; runs of equal indices, cut and whole."""
    norch.manual_seed(0)
    index = norch.cat([norch.full((1300,), 3), norch.randint(0, 40, (500,))])
    rows, wide = norch.randint(-9, 9, (1800, width + 4)).float(), norch.randint(-9, 9, (40, 2, width + 4)).float()
    for at in (0, 1, 4):
        source, into = rows[:, at : at + width], wide[:, 1, at : at + width]
        there = into.cuda().index_add(0, index.cuda(), rows.cuda()[:, at : at + width])
        assert norch.equal(there.cpu(), into.index_add(0, index, source))
        apart = wide.cuda()
        apart[:, 1, at : at + width].index_add_(0, index.cuda(), source.cuda())
        assert norch.equal(apart[:, 1, at : at + width], there) and norch.equal(apart[:, 0].cpu(), wide[:, 0])
    planes = norch.randint(-9, 9, (3, 1800, width)).float()
    found = norch.zeros(3, 40, width, device="cuda").index_add(1, index.cuda(), planes.cuda())
    assert norch.equal(found.cpu(), norch.zeros(3, 40, width).index_add(1, index, planes))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int16", "uint8", "bool"])
def test_reductions_of_narrow_rows_and_of_columns(dtype: str) -> None:
    """Short rows that lie side by side, columns that are taken 16 bytes at a time, in one part and in several; and the
    same where an address or a gap does not allow it."""
    norch.manual_seed(0)
    narrow: list[tuple[tuple[int, ...], int]] = [((700, 10), 1), ((3, 5, 64), 2), ((300, 1, 17), 2), ((515, 33), 1)]
    columns: list[tuple[tuple[int, ...], int]] = [((700, 16), 0), ((3, 70, 48), 1), ((9000, 8), 0), ((2, 3, 264), 1)]
    for shape, dim in narrow + columns:
        whole = norch.randint(-3, 4, (*shape[:-1], shape[-1] + 1))
        whole = (whole + 3 if dtype in ("uint8", "bool") else whole).to(getattr(norch, dtype))
        apart = whole.cuda()
        beside = whole[..., 1:].contiguous()
        moved = norch.cat([beside.flatten()[:1], beside.flatten()]).cuda()[1:].view(shape)  # from an odd address on
        for x, there in ((beside, beside.cuda()), (beside, moved), (beside, apart[..., 1:])):
            for call in (norch.sum, norch.amax, norch.argmax, norch.all):
                assert norch.equal(call(there, dim).cpu(), call(x, dim)), (call, shape)
            if x.is_floating_point():
                for call in (norch.var, norch.mean):
                    norch.testing.assert_close(call(there, dim).cpu(), call(x, dim), rtol=1e-2, atol=1e-2)


def test_reductions_of_what_is_no_number() -> None:
    """The first NaN is the largest, the first of equals too; the moments of large and of infinite numbers."""
    inf, nan = float("inf"), float("nan")
    rows = norch.zeros(8, 2048)
    rows[0, 700] = rows[0, 900] = rows[1, 5] = nan
    rows[1, 3] = rows[2, 40] = inf
    rows[3] = -inf
    rows[4] = 3e38
    rows[5, 1999] = rows[5, 77] = 4
    rows[6] = 1e6 + norch.arange(2048) % 2
    for x, dim in ((rows, 1), (rows.t().contiguous(), 0), (rows[:, 650:714].contiguous(), 1)):
        there = x.cuda()
        for call in (norch.argmax, norch.argmin):
            assert norch.equal(call(there, dim).cpu(), call(x, dim))
        variance = there.var(dim).cpu()
        assert variance[4].item() == 0 == variance[7].item() and variance[0].isnan() and variance[3].isnan()
        expected = rows[6].double().var() if x.numel() == rows.numel() else x[6].double().var()
        assert abs(variance[6].item() - expected.item()) < 1e-5 * expected.item()


@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [(64, 132, 136, 20), (64, 130, 135, 17), (32, 68, 72, 36), (32, 66, 67, 33), (1, 12, 8, 40), (1, 40, 36, 2000)],
)
def test_products_in_tiles_of_every_size_and_way(batch: int, m: int, n: int, k: int) -> None:
    """Large, middle and small tiles, 16 bytes an access along either side of a matrix, or one number; K in parts."""
    norch.manual_seed(0)
    a, b = norch.randint(-8, 9, (batch, m, k)).float(), norch.randint(-8, 9, (batch, k, n)).float()
    expected = a @ b  # whole numbers: exact in any order
    turned_a, turned_b = a.mT.contiguous().cuda().mT, b.mT.contiguous().cuda().mT
    for x in (a.cuda(), turned_a):
        for y in (b.cuda(), turned_b):
            assert norch.equal((x @ y).cpu(), expected)
    x, y = a.cuda(), norch.arange(2 * n, dtype=norch.float32, device="cuda")[::2]
    assert norch.equal(nn.functional.linear(x[0], turned_b[0].mT, y).cpu(), expected[0] + y.cpu())


@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
@pytest.mark.parametrize(
    ("images", "channels", "side", "out", "kernel"),
    [(8, 3, 45, 130, 3), (16, 3, 32, 64, 3), (17, 7, 31, 24, 2), (8, 1, 32, 6, 5), (4, 2, 9, 40, 1), (5, 8, 60, 70, 2)],
)
def test_convolutions_of_few_terms(
    images: int, channels: int, side: int, out: int, kernel: int, dtype: norch.dtype
) -> None:
    """First layers, in tiles of every size; rows of positions that 16 bytes divide or not; at most 32 terms a sum."""
    norch.manual_seed(0)
    x = norch.randint(-8, 9, (images, channels, side, side)).to(dtype)
    w, b = norch.randint(-8, 9, (out, channels, kernel, kernel)).to(dtype), norch.arange(out).to(dtype)
    for bias, options in ((None, {"padding": kernel // 2}), (b, {"stride": 2})):
        expected = nn.functional.conv2d(x, w, bias, **options)  # whole numbers: exact in any order
        there = nn.functional.conv2d(x.cuda(), w.cuda(), None if bias is None else bias.cuda(), **options)
        assert norch.equal(there.cpu(), expected)
