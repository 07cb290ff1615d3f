"""The fused epilogue of linear products: results and graph equal those of two calls (norch/ops/matmul.py)."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch._binding.library import lib
from norch.ops.activation import gelu, gelu_tanh, silu
from norch.ops.matmul import linear_with_epilogue

# (M, K, N) for each way of csrc/cpu/gemm.h: one row, dot products, one column, tiles in place, packed panels, blocks in
# two parts of k; one number to sum, nothing, and nothing at all.
SHAPES: Any = [
    (1, 8, 5), (3, 700, 6), (40, 9, 1), (7, 20, 33), (200, 30, 100), (130, 800, 300), (90, 1, 40),
    (4, 0, 3), (0, 3, 4), (2, 3, 0),
]  # fmt: skip
if DEVICE != "cpu":  # whose kernel has one way, and which may be simulated
    SHAPES = [shape for shape in SHAPES if math.prod(shape) < 20_000]
FUNCTIONS: Any = [norch.relu, norch.tanh, norch.sigmoid, silu, gelu, gelu_tanh]
ACTIVATIONS = [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.SiLU(), nn.GELU(), nn.GELU("tanh"), nn.ReLU(inplace=True)]


def random(*shape: int, dtype: Any = None) -> norch.Tensor:
    source = norch.Generator().manual_seed(sum(shape))
    return norch.randn(shape, generator=source).to(DEVICE, dtype)


@pytest.mark.kernel
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.float16], ids=str)
@pytest.mark.parametrize("with_bias", [True, False])
def test_the_same_numbers(shape: Any, dtype: Any, with_bias: bool) -> None:
    m, k, n = shape
    x, weight = random(m, k, dtype=dtype), random(n, k, dtype=dtype)
    bias = random(n, dtype=dtype) if with_bias else None
    for function in FUNCTIONS[: len(FUNCTIONS) if DEVICE != "cpu" else 2]:
        for rows in (x, x.expand(2, m, k), x.expand(2, m, k).transpose(0, 1)):
            wanted = function(nn.functional.linear(rows, weight, bias))
            with norch.no_grad():  # so that no derivative needs the product
                assert linear_with_epilogue(function, rows, weight, bias).equal(wanted)


# Products that CUDA's simulated device gives to tensor cores, in tiles of each kind and in parts, with edges.
@pytest.mark.kernel
@pytest.mark.skipif(DEVICE != "cuda", reason="of CUDA's kernels")
@pytest.mark.parametrize("shape", [(130, 800, 100), (33, 3200, 68), (4, 3000, 1), (70, 33, 131)])
@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(norch.float32, "none"), (norch.float32, "tf32"), (norch.float64, "none"), (norch.bfloat16, "none")],
    ids=str,
)
def test_the_same_numbers_by_every_kernel(shape: Any, dtype: Any, precision: str) -> None:
    from simulated import SIMULATION, launches

    m, k, n = shape
    x, weight, bias = random(m, k, dtype=dtype), random(n, k, dtype=dtype), random(n, dtype=dtype)
    x[0, 0], x[m - 1, 0] = float("nan"), float("-inf")
    norch.backends.cuda.matmul.fp32_precision = precision
    try:
        sums = nn.functional.linear(x, weight, bias)
        of_product = launches(lambda: nn.functional.linear(x, weight, bias)) if SIMULATION else None
        for function in FUNCTIONS:
            with norch.no_grad():
                found, wanted = linear_with_epilogue(function, x, weight, bias), function(sums)
                if SIMULATION:
                    fused = functools.partial(linear_with_epilogue, function, x, weight, bias)
                    assert launches(fused) == of_product
            assert norch.equal(found.isnan(), wanted.isnan()) and found.isnan()[0].all()
            assert norch.equal(found.nan_to_num(), wanted.nan_to_num())
    finally:
        norch.backends.cuda.matmul.fp32_precision = "none"


# (M, K, N) for plain tiles, parts, tensor cores with edges and without, vectors from either side, and no terms.
ADDED: Any = [(5, 7, 6), (64, 256, 128), (66, 520, 68), (4, 600, 1), (1, 300, 5), (3, 0, 4)]


def laid_out(x: Any, layout: str) -> Any:
    """x, its last two axes dense in the other order, or with gaps."""
    if layout == "dense":
        return x
    return x.mT.contiguous().mT if layout == "turned" else norch.stack([x, x], -1)[..., 1]


@pytest.mark.kernel
@pytest.mark.skipif(DEVICE != "cuda", reason="of CUDA's kernels")
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64, norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", ["dense", "turned", "gaps"])
def test_a_residual_is_added_by_the_product(dtype: Any, layout: str) -> None:
    from simulated import SIMULATION, launches

    eps = norch.finfo(dtype).eps
    for m, k, n in ADDED:
        for beta, alpha, batch in ((1, 1, ()), (0.5, -2, (2,))):
            x = random(*batch, m, n, dtype=dtype)
            a, b = (laid_out(random(*batch, *shape, dtype=dtype), layout) for shape in ((m, k), (k, n)))
            add = functools.partial(norch.baddbmm if batch else norch.addmm, x, a, b, beta=beta, alpha=alpha)
            found = add()
            if eps < 1e-4:
                assert found.equal(x * beta + (a @ b) * alpha)
            else:  # rounded once
                wide = x.float() * beta + (a.float() @ b.float()) * alpha
                assert ((found.float() - wide).abs() <= wide.abs() * eps * 0.51 + 1e-5 * (k + 1) ** 0.5).all()
            if SIMULATION and norch.cuda.get_device_capability() >= (8, 0):  # halves have kernels
                assert launches(add) == launches(functools.partial(norch.matmul, a, b))
            if k < 10:
                assert add.func(laid_out(x, layout), a, b, beta=beta, alpha=alpha).equal(found)


def plainly(x: Any, a: Any, b: Any) -> Any:
    return 0.5 * x - 2 * (a @ b)


@pytest.mark.parametrize(("name", "batch"), [("addmm", ()), ("baddbmm", (2,))])
def test_gradients_of_a_residual(name: str, batch: Any) -> None:
    x, a, b = (random(*batch, *shape, dtype=norch.float64).requires_grad_() for shape in ((3, 4), (3, 5), (5, 4)))
    add = functools.partial(getattr(norch, name), beta=0.5, alpha=-2)
    results = []
    for function in (add, plainly):
        y = function(x, a, b)
        slopes = norch.autograd.grad(y.square().sum(), [x, a, b], create_graph=True)
        results.append([y, *slopes, *norch.autograd.grad(sum(g.square().sum() for g in slopes), [x, a, b])])
    for found, wanted in zip(*results, strict=True):
        assert norch.allclose(found, wanted)


@pytest.mark.parametrize(
    "mapped", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0), (0, None, 0)], ids=str
)
def test_maps_of_a_residual(mapped: Any) -> None:
    all_of = [random(2, *shape) for shape in ((3, 4), (3, 5), (5, 4))]
    given = [x if axis == 0 else x[0] for x, axis in zip(all_of, mapped, strict=True)]
    add = functools.partial(norch.addmm, beta=0.5, alpha=-2)
    wanted = [plainly(*(x[i] if axis == 0 else x for x, axis in zip(given, mapped, strict=True))) for i in range(2)]
    assert norch.allclose(norch.vmap(add, mapped)(*given), norch.stack(wanted), atol=1e-5)


def test_a_residual_in_a_captured_function() -> None:
    a, b = random(3, 5), random(5, 4)
    add = norch.capture(lambda x: norch.addmm(x, a, b, beta=2, alpha=0.5).tanh())
    for row in range(3):
        x = random(3, 4) * (row + 1)
        assert norch.allclose(add(x), (2 * x + 0.5 * (a @ b)).tanh(), atol=1e-6)


def test_what_a_residual_has_no_kernel_for() -> None:
    x = norch.ones(2, 2, device=DEVICE)
    assert norch.addmm(norch.ones(1, device=DEVICE), x, x, beta=2).tolist() == [[4, 4], [4, 4]]
    assert norch.addmm(norch.full((2, 2), math.nan, device=DEVICE), x, x, beta=0).tolist() == [[2, 2], [2, 2]]
    assert norch.addmm(x.long(), x.long(), x.long(), beta=3).tolist() == [[5, 5], [5, 5]]
    for wrong in (x.double(), norch.ones(3, 2, device=DEVICE)):
        with pytest.raises((norch.DTypeError, norch.ShapeError), match="addmm"):
            norch.addmm(wrong, x, x)
    with pytest.raises(norch.ShapeError, match="addmm"):
        norch.addmm(x, x, norch.ones(3, 2, device=DEVICE))


@pytest.mark.host
@pytest.mark.kernel
def test_any_number_of_threads() -> None:
    x, weight, bias = random(500, 300), random(700, 300), random(700)
    before, results = norch.get_num_threads(), []
    for threads in (1, 3):
        norch.set_num_threads(threads)
        try:
            results.append([linear_with_epilogue(norch.tanh, rows, weight, bias) for rows in (x, x[:60])])
        finally:
            norch.set_num_threads(before)
    assert all(a.equal(b) for a, b in zip(*results, strict=True))
    assert results[0][0].equal(norch.tanh(nn.functional.linear(x, weight, bias)))


def test_integers_and_vectors() -> None:
    x, weight = norch.arange(-6, 6, device=DEVICE).view(4, 3), norch.arange(6, device=DEVICE).view(2, 3)
    product = nn.functional.linear(x, weight)
    assert linear_with_epilogue(norch.relu, x, weight, None).equal(product.relu())
    assert linear_with_epilogue(norch.tanh, x, weight, None).equal(product.tanh())  # of floats, so not in the same pass
    isnan: Any = norch.isnan
    assert lib.norch_linear(x.float(), weight.float(), None, isnan.opcode).dtype == norch.bool
    assert linear_with_epilogue(norch.relu, x.float()[0], weight.float(), None).equal(product[0].relu().float())
    assert linear_with_epilogue(norch.relu, x.float(), weight.float()[0], None).equal(product[:, 0].relu().float())


def test_wrong_opcodes() -> None:
    x = norch.ones(2, 3, device=DEVICE)
    with pytest.raises(norch.ArgumentError, match="opcode 100000"):
        lib.norch_linear(x, x, None, 100000)
    with pytest.raises(norch.ArgumentError, match="opcode -7"):
        lib.norch_linear(x, x, None, -7)
    with pytest.raises(norch.ShapeError, match="linear: sizes 3 and 4"):
        linear_with_epilogue(norch.relu, x, norch.ones(5, 4, device=DEVICE), None)


def one_by_one(model: nn.Sequential, x: Any) -> Any:
    for module in model:
        x = module(x)
    return x


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_sequential_gives_what_its_modules_give(activation: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(3, 4), activation, nn.Linear(4, 4), activation, nn.Linear(4, 2)).to(DEVICE)
    x, results = random(5, 3).requires_grad_(), []
    for run in (model, lambda x: one_by_one(model, x)):
        y = run(x)
        slopes = norch.autograd.grad(y.square().sum(), [x, *model.parameters()], create_graph=True)
        curved = norch.autograd.grad(slopes[0].square().sum(), list(model.parameters())[:-1])
        with norch.no_grad():
            results.append([y.detach(), run(x), *slopes, *curved])
    assert all(a.equal(b) for a, b in zip(*results, strict=True))


def test_the_graph_is_the_same() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).to(DEVICE)
    nn.init.ones_(model[0].bias)
    nn.init.zeros_(model[0].weight)  # so that no output is dead
    names = []
    for y in (model(random(2, 3)), one_by_one(model, random(2, 3))):
        inner = y.grad_fn.next_functions[0][0]
        names.append([y.grad_fn.name(), inner.name(), *(f and f.name() for f, _ in inner.next_functions)])
    assert names[0] == names[1]
    with norch.autograd.detect_anomaly(), pytest.raises(norch.Error, match="ReluBackward"):
        model(random(2, 3)).backward(norch.full((2, 4), norch.nan, device=DEVICE))


def calls_in_turn(model: nn.Module) -> Any:
    """What passes each module, as hooks see it."""
    seen: list[str] = []
    for module in model.modules():
        if module is not model:
            module.register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
    return seen


def test_hooks_are_called() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
    for index in (0, 1):
        doubled = model[index].register_forward_hook(lambda module, args, out: out * 2)
        x = norch.ones(2, 3)
        assert model(x).equal(one_by_one(model, x))
        doubled.remove()
    seen = calls_in_turn(model)
    model(norch.ones(2, 3))
    assert seen == ["Linear", "ReLU", "Linear", "Tanh"]


def test_what_is_not_norchs_own_is_called() -> None:
    class Loud(nn.ReLU):
        def forward(self, input: norch.Tensor) -> norch.Tensor:
            return super().forward(input) + 100

    class Shifted(nn.Linear):
        def forward(self, input: norch.Tensor) -> norch.Tensor:
            return super().forward(input) - 100

    x = norch.ones(1, 2)
    assert (nn.Sequential(nn.Linear(2, 3), Loud())(x) >= 100).all()
    assert nn.Sequential(Shifted(2, 3), nn.ReLU())(x).tolist() == [[0, 0, 0]]
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    model[1].forward = lambda input: input * 0 + 7
    assert model(x).tolist() == [[7, 7, 7]]
    with pytest.raises(norch.ArgumentError, match="approximate"):
        nn.Sequential(nn.Linear(2, 3), nn.GELU("foo"))(x)
    model[0].weight = None
    with pytest.raises(TypeError, match="linear"):
        nn.Sequential(model[0], nn.ReLU())(x)
    assert nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))(x).shape == (1, 1)
    assert nn.Sequential()(x) is x


@pytest.mark.parametrize(("owner", "name"), [(nn.ReLU, "forward"), (nn.Linear, "forward"), (nn.Module, "__call__")])
def test_what_is_put_in_the_place_of_norchs_is_called(monkeypatch: Any, owner: Any, name: str) -> None:
    model, calls, known = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), [], getattr(owner, name)

    def noted(self: Any, *args: Any) -> Any:
        calls.append(type(self).__name__)
        return known(self, *args)

    monkeypatch.setattr(owner, name, noted)
    model(norch.ones(1, 2))
    wanted = [owner.__name__] if name == "forward" else ["Sequential", "Linear", "ReLU"]
    assert calls == wanted


@pytest.mark.parametrize("shape", [(1,), (), (1, 4), (3, 1), (3, 4)])
def test_biases_that_broadcast(torch: Any, shape: Any) -> None:
    results = []
    for m in (norch, torch):
        x, weight = (m.arange(n * 2.0).view(n, 2).requires_grad_() for n in (3, 4))
        bias = m.full(shape, 0.5, requires_grad=True)
        y = m.nn.functional.linear(x, weight, bias)
        y.sum().backward()
        results.append([y.tolist(), *(t.grad.tolist() for t in (x, weight, bias))])
    assert results[0] == results[1]
    x, weight = norch.ones(3, 2), norch.ones(4, 2)
    assert linear_with_epilogue(norch.relu, x, weight, norch.ones(shape)).tolist() == [[3.0] * 4] * 3
    for wrong in ((5,), (2, 3, 4), (2, 1)):
        with pytest.raises(norch.ShapeError):
            nn.functional.linear(x, weight, norch.ones(wrong))
