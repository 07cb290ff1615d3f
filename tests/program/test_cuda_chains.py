"""Chains of norch.capture on a CUDA device: what they take, and that their bits are those of the calls alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples
from simulated import SIMULATION, launches
from test_capture_dependences import check, programs
from test_capture_fusion import KINDS, gelu, layer_norm, machine, softmax
from test_cuda_capture import bits, chains, replayed

import norch
from norch._binding.library import lib
from norch.ops._rows import OPCODES

pytestmark = pytest.mark.skipif(not norch.cuda.is_available(), reason="needs a CUDA device, or the simulated one")

DIVIDES = {"floor_divide", "remainder", "trunc_divide", "fmod"}
SAMPLES = [-130.0, -3.5, -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 300.0, float("inf"), float("-inf"), float("nan")]


def rows_of(dtype):
    """The pointwise rows of ops.def that take a dtype, with their forms; not integer divisions, which no chain has."""
    for name, code in OPCODES.items():
        form = lib.norch_op_form(code).decode()
        if form == "reduce" or not lib.norch_op_takes(code, dtype.code):
            continue
        if dtype.is_floating_point or name not in DIVIDES:
            yield name, code, form


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool"]
)
def test_every_operation_in_a_chain_gives_the_bits_that_it_gives_alone(name):
    dtype = getattr(norch, name)
    values = SAMPLES if dtype.is_floating_point else [0, 1, 2, 3, 5, 100, 127, 1, 0]
    x = norch.tensor(values).to(dtype).to("cuda")
    y, z = x.flip(0).clone(), x.roll(3, 0).clone()
    rows = list(rows_of(dtype))

    def each(x, y, z):
        results = []
        for _, code, form in rows:
            a, b, c = (lib.norch_binary(OPCODES["maximum"], v, v) for v in (x, y, z))  # into registers
            if form == "unary":
                one = lib.norch_unary(code, a)
            elif form == "binary":
                one = lib.norch_binary(code, a, b)
            else:
                one = lib.norch_ternary(code, lib.norch_binary(OPCODES["eq"], a, b) if form == "choice" else a, b, c)
            results += [one, lib.norch_unary(OPCODES["isnan"], one)]
        return results

    captured = replayed(each, x, y, z)
    x, y, z = z, x, y
    for mine, theirs in zip(captured(x, y, z), each(x, y, z), strict=True):
        assert bits(mine) == bits(theirs)
    alone = {name for name, *_ in rows} - set(sum(chains(captured), []))
    assert len(alone) <= 2  # what a full chain leaves over


@settings(max_examples=examples(40), deadline=None)
@given(programs())
def test_random_dependences(drawn):
    n, *others = drawn
    check((n // 8 + 1, *others), device="cuda")  # a block has 256 elements


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([(12, 10), (6, 41), (30, 5), (6, 130)]),
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 7)), min_size=2, max_size=16),
)
def test_random_programs(shape, steps):
    found, taken = [], []
    for wrap in (lambda f: f, norch.capture, lambda f: norch.capture(f, fuse=False)):
        norch.manual_seed(7)
        state, wide, bias = (norch.randn(*shape).to("cuda") for _ in range(3))
        wide, bias = wide.double(), bias[0].clone()
        run = wrap(machine(steps, state, wide, bias))
        with norch.no_grad():
            batches = [[norch.randn(*shape).to("cuda") for _ in range(2)] for _ in range(6)]
            found.append([bits(run(*batch)) for batch in batches] + [bits([state, wide])])
        taken.append(run)
    assert found[0] == found[1] == found[2]
    assert taken[1].recordings() == taken[2].recordings() == 1 and taken[2].program.chains() == []
    copies = sum(x.nbytes for x in batches[0])  # of arguments, where a graph reads them
    assert taken[1].program.memory()["temporary"] <= taken[2].program.memory()["temporary"] + copies


def sums_to_one(x):
    return softmax(gelu(x) + 1), x.exp().mean(-1)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(6, 10), (5, 64), (3, 100), (7, 129), (2, 1000)], ids=str)
@pytest.mark.parametrize("function", [gelu, softmax, layer_norm, sums_to_one])
def test_a_chain_is_one_launch(function, shape, name):
    dtype = getattr(norch, name)
    captured, x = (replayed(function, norch.randn(shape).to(dtype).to("cuda")), norch.randn(shape).to(dtype).to("cuda"))
    assert chains(captured) == [[name for name, *_ in captured.program.calls()]]
    results = captured.program.memory()["temporary"]
    assert results < 2 * x.nbytes + 64 and (function is sums_to_one or results == (x.nbytes + 63) // 64 * 64)
    assert bits(captured(x)) == bits(function(x))
    if SIMULATION:
        assert launches(lambda: captured(x)) == (1, 0)


REDUCTIONS = ["sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "var", "std"]


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "uint8", "int16", "int64", "bool"])
@pytest.mark.parametrize("rows", ["narrow", "wide", "plain", "a part", "strided"])
def test_every_reduction_of_rows_in_a_chain_gives_the_bits_that_it_gives_alone(rows, name):
    """Rows are added in an order that depends on their length, their layout, and their address."""
    dtype = getattr(norch, name)
    shape = {"narrow": (9, 30), "wide": (5, 300), "plain": (4, 301), "a part": (6, 31), "strided": (6, 90)}

    def draw():
        x = norch.randn(*shape[rows])
        x = (x if dtype.is_floating_point else (x * 5).abs() - 1 if name != "bool" else x > -2).to(dtype).to("cuda")
        return x[:, 1:] if rows == "a part" else x[:, ::3] if rows == "strided" else x

    for one in [*REDUCTIONS, "mean_square", "norm"] if dtype.is_floating_point else REDUCTIONS:
        if not dtype.is_floating_point and one in ("mean", "var", "std"):
            continue

        def each(x, one=one):
            y, results = norch.maximum(x, x[0]), []  # in a register, and in memory
            for z in (x, y):
                if one == "norm":
                    row = norch.linalg.vector_norm(z, dim=-1, keepdim=True)
                elif one == "mean_square":
                    row = z.square().mean(-1, keepdim=True)
                else:
                    row = getattr(z, one)(-1, keepdim=True)
                results += [row, norch.maximum(z, row) if row.dtype == dtype else row]
            return results

        captured, x = replayed(each, draw()), draw()
        assert bits(captured(x)) == bits(each(x))
        assert [one for one, *_ in captured.program.calls() if one not in sum(chains(captured), [])] == []


def test_operands_that_are_broadcast():
    def take(x, row, column, scalar):
        y = (x * row - column[:, None]).relu() + row
        return y * scalar, ((column * 2 + 1).sqrt()[:, None] * x).tanh(), (scalar * 3 + 1) * x

    def draw():
        return [norch.rand(*shape).to("cuda") for shape in ((6, 9), (9,), (6,), ())]

    captured, given = replayed(take, *draw()), draw()
    assert bits(captured(*given)) == bits(take(*given))
    assert chains(captured) == [
        ["mul", "sub", "relu", "add", "mul"],
        ["mul", "add", "sqrt", "mul", "tanh"],
        ["mul", "add", "mul"],
    ]


@pytest.mark.parametrize(
    ("function", "shape", "wanted"),
    [
        (lambda x: (x * 2).exp().sum(0), (5, 6), [["mul", "exp"]]),  # over columns
        (lambda x: (x * 2).exp().sum((0, 2)), (3, 5, 6), [["mul", "exp"]]),
        (lambda x: (x * 2).exp().sum(), (5, 6), [["mul", "exp", "sum"]]),  # one row
        (lambda x: (x * 2).exp().sum(), (50, 60), [["mul", "exp"]]),  # which is too long for one block
        (lambda x: (x * 2).exp().amax(-1), (128, 1025), [["mul", "exp", "amax"]]),
        (lambda x: (x * 2).exp().amax(-1), (127, 1025), [["mul", "exp"]]),
        (lambda x: (x * 2).exp().amax(-1), (128, 8193), [["mul", "exp"]]),
        (lambda x: (x.int() * 2).sum(-1) + 1, (5, 6), [["mul", "sum"]]),  # whose sums are int64
    ],
)
def test_which_reductions_belong_to_chains(function, shape, wanted):
    captured, x = replayed(function, norch.randn(*shape).to("cuda")), norch.randn(*shape).to("cuda")
    assert bits(captured(x)) == bits(function(x))
    assert chains(captured) == wanted


def test_rows_that_do_not_fit_into_shared_memory():
    def take(x):
        parts = [x * i for i in range(1, 7)]  # six registers of rows
        total = parts[0].sum(-1, keepdim=True)
        for part in parts[1:]:
            total = total + part.sum(-1, keepdim=True)
        return [part / total for part in parts]

    for columns, several in ((999, False), (1000, True)):
        captured, x = (
            f(norch.randn(4, columns).double().to("cuda")) for f in (lambda x: replayed(take, x), lambda x: x)
        )
        assert bits(captured(x)) == bits(take(x))
        assert (len(chains(captured)[0]) < len(captured.program)) == several


def test_what_belongs_to_no_chain_of_a_device():
    def take(x, n):
        y = (x * 2).exp()
        return y.sum(0), (y.double() * 2 + 1).sin(), (n * 2 + 1) // 3, (x.to("cuda") + n).relu()

    x, n = norch.randn(4, 5).to("cuda"), norch.arange(5, device="cuda")
    captured = replayed(take, x, n)
    # a sum over columns; a cast from what computes on another dtype; an integer division; a row that is broadcast later
    assert chains(captured) == [["mul", "add"], ["mul", "exp"], ["mul", "add", "sin"], ["add", "relu"]]
    names = [name for name, *_ in captured.program.calls()]
    assert sorted(set(names) - set(sum(chains(captured), []))) == ["copy", "floor_divide", "sum"]
    assert bits(captured(x, n)) == bits(take(x, n))


def test_long_chains_are_several():
    def take(x):
        many = [x * i for i in range(12)]  # more than a thread has registers
        total = many[0]
        for one in many[1:]:
            total = total + one
        for i in range(70):
            total = total * 0.5 + i
        return total

    captured, x = replayed(take, norch.randn(6).to("cuda")), norch.randn(6).to("cuda")
    lengths = [len(chain) for chain in chains(captured)]
    assert len(lengths) > 3 and max(lengths) <= 64 and sum(lengths) >= 160
    assert bits(captured(x)) == bits(take(x))
