"""Chains of norch.capture: what they compute, bit for bit, what they take, what ends them, and what they save."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch

pytestmark = pytest.mark.host


def bits(x):
    if isinstance(x, (tuple, list)):
        return [bits(part) for part in x]
    plain = x.detach().float() if x.dtype in (norch.float16, norch.bfloat16) else x.detach()
    return tuple(x.shape), str(x.dtype), plain.contiguous().numpy().tobytes()


def made(function, *arguments, **options):
    captured = norch.capture(function, **options)
    for _ in range(4):
        captured(*arguments)
    return captured


def names(captured):
    """The operations of each chain."""
    calls = captured.program.calls()
    return [[calls[i][0] for i in chain] for chain in captured.program.chains()]


def gelu(x):
    return 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x * x * x)).tanh())


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def layer_norm(x):
    centered = x - x.mean(-1, keepdim=True)
    return centered * ((centered * centered).mean(-1, keepdim=True) + 1e-5).rsqrt()


def backward(function):
    def both(x):
        x = x.detach().requires_grad_()
        y = function(x)
        (y * y).sum().backward()
        return y.detach(), x.grad

    return both


def test_complex_calls_are_in_no_chain():
    def f(z):
        w = (z * 2 + 1).exp()
        r = w.abs() * 2 + 1
        return w * w.conj(), r.tanh() - r, (w.real * 2).exp() + 1

    z = norch.complex(norch.randn(100, 200), norch.randn(100, 200))
    captured = made(f, z)
    assert names(captured) == [["mul", "add", "tanh", "sub"], ["mul", "exp", "add"]]
    assert bits(captured(z * 0.5)) == bits(f(z * 0.5))


# ---- random programs ----------------------------------------------------------------------------------------------

UNARY = ["exp", "tanh", "neg", "abs", "sigmoid", "relu", "square"]
BINARY = ["add", "sub", "mul", "maximum"]
REDUCTIONS = ["sum", "mean", "amax", "argmax", "std"]
DTYPES = [norch.float64, norch.float16, norch.bfloat16, norch.int32]
OTHERS = "number where row write half slice turn view cast all column bias clone scalar wide grow count matmul".split()
KINDS = [*UNARY, *BINARY, *REDUCTIONS, *OTHERS]
SHAPES = [(150, 96), (40, 500), (6, 3000), (2500, 5)]  # more than a tile; the last has rows too short for a chain


@st.composite
def programs(draw):
    """A shape, and steps of a small machine over a stack of tensors of this shape: names and where they act."""
    step = st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 7))
    return draw(st.sampled_from(SHAPES)), draw(st.lists(step, min_size=2, max_size=16))


def machine(steps, state, wide, bias):
    def run(x, y):
        stack, extra = [x * 1, y, state], []
        for kind, i, j in steps:
            a, b = stack[i % len(stack)], stack[j % len(stack)]
            if kind in UNARY:
                stack.append(getattr(norch, kind)(a))
            elif kind in BINARY:
                stack.append(getattr(norch, kind)(a, b))
            elif kind in REDUCTIONS:
                row = getattr(norch, kind)(a, -1, keepdim=True)
                stack.append(b - row * 0.5 if j % 2 else b)
                extra.append(row)
            elif kind == "number":
                stack.append(a * (i + 0.5) - j)
            elif kind == "where":
                stack.append(norch.where(a > b, a, b * 0.25))
            elif kind == "row":
                a[i % 6] = b[j % 6] + 1
            elif kind == "write":
                a.mul_(0.5).add_(b)
            elif kind == "half":
                n = a.shape[0] // 2
                a[:n] = b[n : 2 * n] * 2
            elif kind == "slice":
                a[:, ::2] += b[:, ::2]
            elif kind == "turn":
                stack.append((a.T.contiguous() + 1).T)
            elif kind == "view":
                stack.append((a.reshape(-1) * 2).reshape(a.shape))
            elif kind == "cast":
                stack.append((a.to(DTYPES[i % 4]) + b.to(DTYPES[i % 4])).float())
            elif kind == "all":
                extra.append((a * b).sum() if i % 2 else (a - b).amax())
            elif kind == "column":
                stack.append(a + b.sum(0))
            elif kind == "bias":
                stack.append(a * bias)
            elif kind == "clone":
                stack.append(a.clone())
            elif kind == "scalar":
                stack.append(a * b[0, 0].double())
            elif kind == "wide":
                stack.append(a * wide[j % 6, i % 5])
            elif kind == "grow":
                wide.mul_(0.5).add_(b)
            elif kind == "count":
                extra.append((a > 0).sum(-1))
            else:
                stack.append(a @ (b.T @ b * 0.01))
        return sum(stack), *extra

    return run


@settings(max_examples=examples(60), deadline=None)
@given(programs())
def test_random_programs(drawn):
    shape, steps = drawn
    found, captured = [], []
    for wrap in (lambda f: f, norch.capture, lambda f: norch.capture(f, fuse=False)):
        norch.manual_seed(7)
        state, wide, bias = norch.randn(*shape), norch.randn(*shape).double(), norch.randn(shape[1])
        run = wrap(machine(steps, state, wide, bias))
        with norch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            found.append(
                [bits(run(norch.randn(*shape), norch.randn(*shape))) for _ in range(5)] + [bits([state, wide])]
            )
        captured.append(run)
    assert found[0] == found[1] == found[2]
    _, fused, unfused = captured
    assert fused.recordings() == unfused.recordings() == 1 and unfused.program.chains() == []
    assert fused.program.memory()["temporary"] <= unfused.program.memory()["temporary"]
    assert sorted(fused.program.calls()) == sorted(unfused.program.calls())


# ---- what is fused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [gelu, softmax, layer_norm, backward(gelu), backward(softmax), backward(layer_norm)]
)
@pytest.mark.parametrize("shape", [(100, 200), (3000, 100), (5, 16000)], ids=str)
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.bfloat16], ids=str)
def test_written_out(function, shape, dtype):
    fused, unfused = (made(function, norch.randn(*shape).to(dtype), fuse=fuse) for fuse in (True, False))
    x = norch.randn(*shape).to(dtype)
    threads = norch.get_num_threads()
    wanted = bits(function(x))
    try:
        for n in (1, 2):
            norch.set_num_threads(n)
            assert bits(fused(x)) == wanted == bits(unfused(x))
    finally:
        norch.set_num_threads(threads)
    calls = len(fused.program)
    chains = fused.program.chains()
    assert calls == len(unfused.program) and sum(map(len, chains)) >= 0.7 * calls
    assert fused.program.memory()["temporary"] < unfused.program.memory()["temporary"]


def test_adam_written_out():
    beta1, beta2 = 0.9, 0.999

    def start():
        norch.manual_seed(1)
        return [norch.randn(100, 300) for _ in range(2)] + [norch.zeros(100, 300) for _ in range(2)] + [norch.zeros(())]

    def adam(p, g, m, v, t):
        t += 1
        m.mul_(beta1).add_(g * (1 - beta1))
        v.mul_(beta2).add_(g * g * (1 - beta2))
        step = 1e-3 / (1 - beta1**t)
        p.sub_(step * m / ((v / (1 - beta2**t)).sqrt() + 1e-8))

    eager, mine = start(), start()
    captured = norch.capture(adam)
    for _ in range(10):
        adam(*eager)
        captured(*mine)
    assert bits(eager) == bits(mine)
    assert max(map(len, captured.program.chains())) >= 11
    assert captured.program.memory()["temporary"] <= 10 * 64


def test_a_chain_ends_in_sums():
    def losses(x):
        y = (x * 2 - 1).square()
        return y.sum(), y.mean(), (y > 4).sum(), x.amax()

    captured = made(losses, norch.randn(300000))
    x = norch.randn(300000)
    assert bits(captured(x)) == bits(losses(x))
    assert captured.program.memory()["temporary"] == 0  # results are written to memory of their own
    (chain,) = captured.program.chains()
    assert len(chain) == len(captured.program)


def test_loops_of_a_chain_are_split_where_a_call_has_more():
    x, y = norch.randn(100, 200), norch.randn(100, 100)
    for f in (lambda x, y: (x[:, 50:150] * 2 + 1).tanh(), lambda x, y: (y.tanh() + 1) * x[:, 50:150]):
        captured = made(f, x, y)
        assert len(names(captured)) == 1 and len(names(captured)[0]) == 3
        assert bits(captured(y.repeat(1, 2), y)) == bits(f(y.repeat(1, 2), y))


def test_sums_of_rows_and_what_follows_are_in_the_chain_of_their_elements():
    def f(x):
        e = (x * 2).exp()
        return e / e.sum(-1, keepdim=True)

    captured, x = made(f, norch.randn(200, 300)), norch.randn(200, 300)
    assert names(captured) == [["mul", "exp", "sum", "div"]] and bits(captured(x)) == bits(f(x))


def test_a_call_between_does_not_end_a_chain():
    def between(x, w):
        y = x * 2
        s = w @ w
        y = y + 1
        t = (s + 1).sum(0)
        return y * y, t

    captured = made(between, norch.randn(20000), norch.randn(80, 80))
    assert names(captured)[0] == ["mul", "add", "mul"]
    x, w = norch.randn(20000), norch.randn(80, 80)
    assert bits(captured(x, w)) == bits(between(x, w))


@pytest.mark.parametrize(
    ("function", "chains"),
    [
        (lambda x: (x[1:] * 2, x[:-1] + 1), 1),  # nobody writes to x
        (lambda x: x[1:].add_(x[:-1]).mul_(2), 1),  # the copy of x[:-1] stands alone
        (lambda x: (x * 2)[100:] + x[:-100], 0),  # other elements of the results
        (lambda x: (x + 1).cumsum(0) * 2, 0),  # no pointwise call
        (lambda x: (x * 2).sqrt().exp(), 1),
        (lambda x: (x.int() + 1) * (x.int() // 3), 1),  # a division may fail: it is no part of one
    ],
)
def test_what_breaks_a_chain(function, chains):
    captured, x = made(function, norch.rand(10000) + 1), norch.rand(10000) + 1
    other = x.clone()
    assert bits(captured(x)) == bits(function(other)) and bits(x) == bits(other)
    assert len(captured.program.chains()) == chains


def test_writes_before_a_failing_call_have_taken_place():
    def f(x, total, index):
        y = x * 2
        total.add_(y)
        z = x[index]
        total.mul_(2)
        return y + 1, z

    x, total = norch.ones(9000), norch.zeros(9000)
    captured = norch.capture(f)
    for _ in range(4):
        captured(x, total, norch.tensor([0]))
    assert total[0].item() == 60.0
    with pytest.raises(IndexError):
        captured(x, total, norch.tensor([9000]))
    assert total[0].item() == 62.0


def test_a_number_is_read_when_the_chain_runs():
    scale = norch.tensor(3.0, dtype=norch.float64)

    def f(x):
        return (x + 1) * scale - 1

    captured, x = made(f, norch.ones(10000)), norch.ones(10000)
    scale.fill_(5.0)
    assert captured(x)[0].item() == 9.0 and captured.program.chains() != []


def test_arguments_over_the_same_memory_are_noticed():
    np = pytest.importorskip("numpy")

    def f(x, y):
        x.mul_(2)
        return y * 3 + x

    captured = made(f, norch.ones(10000), norch.ones(10000))
    assert captured.program.chains() != []
    memory = np.ones(10001, np.float32)
    x, y = norch.from_numpy(memory[1:]), norch.from_numpy(memory[:-1])
    assert set(captured(x, y)[1:].tolist()) == {8.0}  # y is read once x is written


def test_the_listing_shows_chains():
    captured = made(lambda x: gelu(x).T @ x, norch.randn(100, 100))
    lines = str(captured.program).splitlines()
    assert "1 chain, " in lines[0]
    assert "".join(line[4] for line in lines[1:]) == "/" + "|" * 7 + "\\ "
    plain = captured.program.recorded().splitlines()
    assert len(plain) == len(lines) and all(line[4] == " " for line in plain[1:])
    assert captured.profile(norch.randn(100, 100)).count("|") == 8
