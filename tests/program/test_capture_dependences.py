"""Programs of reads, writes, views and reductions in any order give the same bits recorded as eager, whatever fusion,
dead call elimination, constant folding and the reuse of memory make of them."""

import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parts import examples
from test_capture_fusion import bits

import norch

pytestmark = pytest.mark.host

TILE, CHUNK = 4096, 16384
SIZES = [1, 2, 1000, TILE - 1, TILE, TILE + 1, 2 * TILE, CHUNK - 1, CHUNK, CHUNK + 1, 20000, 2 * CHUNK + 3]
DTYPES = [norch.float32, norch.float64, norch.int32, norch.float16]
UNARY = ["neg", "abs", "square", "relu", "sign"]
WHOLE = ["sum", "amax", "amin", "argmax", "mean", "count_nonzero"]
KINDS = [
    *UNARY, "add", "sub", "maximum", "where", "number", "sum", "amax", "amin", "argmax", "mean", "count_nonzero", "row",
    "column", "scan", "add_", "mul_", "clamp_", "copy_", "zero_", "fill_", "shift", "scalar_", "scalar", "item",
    "clone", "cast", "view", "drop", "constant", "matmul", "turned",
]  # fmt: skip


def region(x, code):
    """A view of x, and what identifies its shape."""
    n = x.shape[0]
    half = max(1, n // 2)
    if code == 0:
        return x
    if code == 1:
        return x[:half]
    if code == 2:
        return x[n - half :]
    if code == 3:
        return x[::2][:half]
    if code == 4:
        return x[min(1, n - half) :][:half]
    if code == 5:
        return x[: half // 2 * 2].reshape(2, -1) if half > 1 else x
    return x[: half // 2 * 2].reshape(-1, 2).T if half > 1 else x


def plain(x):
    """Keeps integers small, and floats finite."""
    return x % 1000 if x.dtype is norch.int32 else x.clamp(-1000, 1000)


def machine(steps, state, kept):
    def run(x, y):
        pool, numbers = [x * 1, y, state], [x[:1] * 1]
        for kind, i, j, code, other in steps:
            whole = pool[i % len(pool)]
            a, b = region(whole, code), region(pool[j % len(pool)], other)
            if b.shape != a.shape:
                b = region(pool[j % len(pool)], code)
            number = numbers[j % len(numbers)]
            if kind in UNARY:
                pool.append(getattr(pool[j % len(pool)], kind)())
            elif kind in ("add", "sub", "maximum"):
                pool.append(getattr(norch, kind)(whole, pool[j % len(pool)]))
            elif kind == "where":
                pool.append(norch.where(whole > pool[j % len(pool)], whole, pool[0]))
            elif kind == "number":
                pool.append(whole * (j - 3) + code)
            elif kind in WHOLE:
                numbers.append(getattr(b if kind != "mean" or b.dtype is not norch.int32 else b.float(), kind)())
            elif kind == "row" and b.ndim == 2:
                pool.append(plain(whole + b.amax(1, keepdim=True)[0]))
                numbers.append(b.sum(-1)[0])
            elif kind == "column" and b.ndim == 2:
                numbers.append(b.sum(0)[-1])
            elif kind == "scan":
                pool.append(plain(whole.cummax(0)[0]))
            elif kind == "add_":
                a.add_(b)
            elif kind == "mul_":
                a.mul_(b.sign())
            elif kind == "clamp_":
                a.clamp_(-2 - j, 2 + i)
            elif kind == "copy_":
                a.copy_(b)
            elif kind == "zero_":
                a.zero_()
            elif kind == "fill_":
                a.fill_(j)
            elif kind == "shift" and whole.shape[0] > 1:
                whole[1:] += whole[:-1]
                whole.copy_(plain(whole))
            elif kind == "scalar_":
                a.add_(number.to(a.dtype).sign())
            elif kind == "scalar":
                pool.append(whole + number.to(whole.dtype).sign())
            elif kind == "item":
                number += 1
            elif kind == "clone":
                pool.append(whole.clone())
            elif kind == "cast":
                pool.append(whole.to(DTYPES[code % 4]).sign().to(whole.dtype) + whole)
            elif kind == "view":
                pool.append(whole[:])
            elif kind == "drop" and len(pool) > 3:
                del pool[3 + j % (len(pool) - 3)]
            elif kind == "constant":
                numbers.append(norch.zeros(1, device=x.device) + j)
            elif kind == "matmul" and b.ndim == 2 and b.shape[0] == 2:
                numbers.append((b @ b.T)[0, 1])
            elif kind == "turned" and b.ndim == 2:
                pool.append(whole + b.T.contiguous()[0, 0])
            for x_ in pool[3:]:
                if x_.shape != x.shape:
                    raise AssertionError(kind)
        return [pool[i % len(pool)] for i in kept], [numbers[i % len(numbers)] for i in kept], numbers[-1]

    return run


@st.composite
def programs(draw):
    step = st.tuples(st.sampled_from(KINDS), *[st.integers(0, 6)] * 4)
    steps = draw(st.lists(step, min_size=2, max_size=14))
    kept = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    return draw(st.sampled_from(SIZES)), draw(st.sampled_from(DTYPES)), draw(st.integers(0, 2)), steps, kept


def arguments(n, dtype, alias, seed, device):
    norch.manual_seed(seed)
    x, y = ((norch.rand(n) * 20 - 10).to(device, dtype) for _ in range(2))
    return x, x if alias == 1 else y


def on_host(results):
    return [on_host(part) if isinstance(part, (tuple, list)) else part.cpu() for part in results]


def check(drawn, calls=5, device="cpu"):
    n, dtype, alias, steps, kept = drawn
    found = []
    for wrap in (lambda f: f, norch.capture, lambda f: norch.capture(f, fuse=False), norch.compile):
        norch.manual_seed(7)
        state = (norch.rand(n) * 20 - 10).to(device, dtype)
        run, seen = wrap(machine(steps, state, kept)), []
        with norch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            for call in range(calls):
                given = arguments(n, dtype, alias, call, device)
                seen.append(bits(on_host([*run(*given), *given, state])))
        found.append(seen)
    for other in found[1:]:
        assert other == found[0]


@settings(max_examples=examples(40), deadline=None)
@given(programs())
@example((20000, norch.float32, 0, [("sum", 0, 0, 0, 0), ("clamp_", 0, 0, 0, 0)], [0, 1]))
def test_random_programs(drawn):
    check(drawn)
