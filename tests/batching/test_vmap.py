"""norch.vmap: against loops and PyTorch; compositions, nesting, transforms, random numbers, in-place writes, errors."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples
from vmap_checks import RNG, check, floats, slices

import norch
from norch import func, nn, vmap
from norch.autograd.transforms import leaves
from norch.nn import functional as F
from norch.testing import assert_close


@pytest.fixture(autouse=True)
def no_sample_by_sample() -> Any:
    """What is tried here batches."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "vmap: there is no batching rule")
        yield


# ---- compositions, nesting, transforms -------------------------------------------------------------------------------

STEPS: Any = {
    "sin": lambda x, y: x.sin(),
    "times": lambda x, y: x * y,
    "row": lambda x, y: x + y[0],
    "column": lambda x, y: x * y[:, :1],
    "transpose": lambda x, y: x.t(),
    "product": lambda x, y: (x @ y) * 0.3,
    "vector": lambda x, y: (x @ y[0]).unsqueeze(1) * y,
    "mean": lambda x, y: x - x.mean(0),
    "std": lambda x, y: x / (x.var(1, keepdim=True) + 1),
    "max": lambda x, y: x.where(x > y, y),
    "softmax": lambda x, y: x.softmax(0),
    "cumsum": lambda x, y: x.cumsum(1) * 0.2,
    "flip": lambda x, y: x.flip(0),
    "cat": lambda x, y: norch.cat([x[:1], y[1:]]),
    "stack": lambda x, y: norch.stack([x, y]).sum(0),
    "gather": lambda x, y: x.gather(0, y.argsort(0)),
    "sort": lambda x, y: x.sort(1).values,
    "index": lambda x, y: x[norch.tensor([2, 0, 1])],
    "rows": lambda x, y: x[y.argmax(0)],
    "write": lambda x, y: x.clone().index_fill_(0, norch.tensor([1]), 0.5),
    "part": lambda x, y: x.clone().narrow(1, 0, 1).mul_(2).expand(3, 3) + x,
    "reshape": lambda x, y: x.reshape(9).view(3, 3),
    "diagonal": lambda x, y: x + x.diagonal(),
    "number": lambda x, y: x * y.sum().tanh(),
    "roll": lambda x, y: x.roll(1, 0),
    "clamp": lambda x, y: x.clamp(-1, 1) + x.abs(),
}


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    st.sampled_from([(0, 0), (1, 0), (-1, 1), (0, None), (None, 2)]),
    st.integers(0, 2),
    st.integers(0, 1000),
)
def test_random_compositions(names: list[str], dims: Any, out_dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def call(x, y):
        return functools.reduce(lambda z, name: STEPS[name](z, y), names, x)

    given_ = [norch.tensor(rng.normal(size=(3, 3) if dim is None else (3, 3, 3))) for dim in dims]
    wanted = norch.stack([call(*slices(given_, dims, i)) for i in range(3)], out_dim)
    assert_close(vmap(call, dims, out_dim)(*given_), wanted, rtol=1e-9, atol=1e-9)
    per_sample = func.grad(lambda x, y: (call(x, y) * y).sum(), (0, 1))
    rows = [per_sample(*slices(given_, dims, i)) for i in range(3)]
    for found, column in zip(vmap(per_sample, dims)(*given_), zip(*rows, strict=True), strict=True):
        assert_close(found, norch.stack(column), rtol=1e-8, atol=1e-9)


def test_maps_of_maps() -> None:
    x, y, z = floats(3, 4), floats(2, 4), floats(5, 4)
    table = vmap(lambda a: vmap(lambda b: vmap(lambda c: (a * b * c).sum())(z))(y))(x)
    assert_close(table, norch.einsum("ik,jk,lk->ijl", x, y, z))
    products = vmap(vmap(norch.dot, (None, 0)), (0, None))(x, y)
    assert_close(products, x @ y.T)
    deep = floats(2, 3, 4, 5)
    assert_close(vmap(vmap(vmap(norch.sin, 1), -1), out_dims=1)(deep), deep.sin().permute(3, 0, 2, 1))
    rows = vmap(lambda a: vmap(func.grad(lambda b, a: (a * b).sin().sum()), (0, None))(y, a))(x)
    assert_close(rows, norch.stack([a * (a * y).cos() for a in x]))


def network(m: Any, w: Any, x: Any) -> Any:
    return m.tanh(x @ w["a"]) @ w["b"]


WEIGHTS = {"a": RNG.normal(size=(3, 4)), "b": RNG.normal(size=(4, 2))}
INPUTS = RNG.normal(size=(5, 3))
TRANSFORMS: Any = {
    "per-sample gradients": lambda m, w, x: m.func.vmap(
        m.func.grad(lambda w, x: (network(m, w, x) ** 2).sum()), (None, 0)
    )(w, x),
    "jacrev": lambda m, w, x: m.func.vmap(m.func.jacrev(lambda x: network(m, w, x)))(x),
    "jacfwd": lambda m, w, x: m.func.vmap(m.func.jacfwd(lambda x: network(m, w, x)))(x),
    "hessian": lambda m, w, x: m.func.vmap(m.func.hessian(lambda x: (network(m, w, x) ** 2).sum()))(x),
    "hessian of weights": lambda m, w, x: m.func.hessian(lambda w: (network(m, w, x) ** 2).mean())(w),
    "vjp": lambda m, w, x: m.func.vmap(lambda x: m.func.vjp(lambda x: network(m, w, x), x)[1](m.ones_like(w["b"][0])))(
        x
    ),
    "map of vjp": lambda m, w, x: m.func.vmap(m.func.vjp(lambda x: network(m, w, x), x)[1])(
        m.stack([network(m, w, x), network(m, w, x) * 2])
    ),
    "jvp": lambda m, w, x: m.func.vmap(lambda x: m.func.jvp(lambda x: network(m, w, x), (x,), (m.ones_like(x),)))(x),
    "jacobian of a map": lambda m, w, x: m.func.jacrev(m.func.vmap(lambda x: network(m, w, x)))(x),
    "gradient of a map of gradients": lambda m, w, x: m.func.grad(
        lambda w: (m.func.vmap(m.func.grad(lambda x: (network(m, w, x) ** 2).sum()))(x) ** 2).sum()
    )(w),
    "laplacian": lambda m, w, x: m.func.vmap(lambda x: m.trace(m.func.hessian(lambda x: network(m, w, x)[0])(x)))(x),
}


def to(m: Any, tree: Any) -> Any:
    return {key: to(m, part) for key, part in tree.items()} if isinstance(tree, dict) else m.tensor(tree)


def arrays(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [array for key in sorted(tree) for array in arrays(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [array for part in tree for array in arrays(part)]
    return [tree.detach().numpy()]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_like_torch(torch: Any, name: str) -> None:
    call = TRANSFORMS[name]
    found = arrays(call(norch, to(norch, WEIGHTS), to(norch, INPUTS)))
    wanted = arrays(call(torch, to(torch, WEIGHTS), to(torch, INPUTS)))
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def small_cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    )


def test_per_sample_gradients_of_a_network() -> None:
    model, x, y = small_cnn().double(), floats(4, 1, 8, 8), norch.tensor([0, 2, 1, 1])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(func.functional_call(model, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))

    for chunk_size in (None, 1, 3):
        found = vmap(func.grad(loss), (None, 0, 0), chunk_size=chunk_size)(parameters, x, y)
        for i in range(4):
            model.zero_grad()
            F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
            for name, p in model.named_parameters():
                assert_close(found[name][i], p.grad, rtol=1e-9, atol=1e-10)
                assert not found[name].requires_grad


def test_ensembles_train() -> None:
    models, x = [small_cnn() for _ in range(3)], norch.randn(5, 1, 8, 8)
    state = func.stack_module_state(models)

    def call(p, b, x):
        return func.functional_call(models[0], (p, b), (x,))

    outs = vmap(call, (0, 0, None))(*state, x)
    assert_close(outs, norch.stack([model(x) for model in models]), rtol=1e-4, atol=1e-5)
    (outs * outs).sum().backward()
    norch.stack([(model(x) ** 2).sum() for model in models]).sum().backward()
    for name, p in state[0].items():
        wanted = norch.stack([dict(model.named_parameters())[name].grad for model in models])
        assert_close(p.grad, wanted, rtol=1e-3, atol=1e-3)


def test_gradients_through_levels_reach_what_is_shared() -> None:
    x, w, c = floats(4, 3).requires_grad_(), floats(3).requires_grad_(), floats(3).requires_grad_()
    inner = func.grad(lambda x, w: ((x * w).sin() * c).sum(), (0, 1))
    gx, gw = vmap(inner, (0, None))(x, w)
    total = (gx**2).sum() + gw.sum(0).pow(2).sum()
    found = norch.autograd.grad(total, (x, w, c), create_graph=True)
    rows = [inner(one, w) for one in x]
    again = norch.stack([a for a, _ in rows]).pow(2).sum() + norch.stack([b for _, b in rows]).sum(0).pow(2).sum()
    wanted = norch.autograd.grad(again, (x, w, c), create_graph=True)
    for ours, theirs in zip(found, wanted, strict=True):
        assert_close(ours, theirs)
    second = [norch.autograd.grad(sum((g * g).sum() for g in one), (x, w, c)) for one in (found, wanted)]
    for ours, theirs in zip(*second, strict=True):
        assert_close(ours, theirs)


def test_batched_walks_give_rows() -> None:
    x = floats(4).requires_grad_()
    y = x.sin() * x.sum()
    weights = floats(6, 4)
    (found,) = norch.autograd.grad(y, x, weights, is_grads_batched=True, retain_graph=True)
    rows = [norch.autograd.grad(y, x, row, retain_graph=True)[0] for row in weights]
    assert_close(found, norch.stack(rows))
    for strategy in ("reverse-mode", "forward-mode"):
        jacobian = norch.autograd.functional.jacobian(lambda x: x.sin() * x.sum(), x, vectorize=True, strategy=strategy)
        assert_close(jacobian, func.jacrev(lambda x: x.sin() * x.sum())(x.detach()))


def test_jacobians_by_chunks() -> None:
    x = floats(5)

    def call(x: Any) -> Any:
        return x.sin() * x.sum(), {"a": x[:2].exp()}

    whole = func.jacrev(call)(x)
    for size in (1, 2, 5, 9):
        for ours, theirs in zip(leaves(func.jacrev(call, chunk_size=size)(x)), leaves(whole), strict=True):
            assert_close(ours, theirs)
    with pytest.raises(ValueError, match="jacrev: chunk_size"):
        func.jacrev(call, chunk_size=0)


def test_captured_steps_map() -> None:
    model = nn.Linear(3, 2)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(p: Any, x: Any) -> Any:
        return func.functional_call(model, p, (x,)).pow(2).sum()

    @norch.capture
    def step(x: Any) -> Any:
        return vmap(func.grad(loss), (None, 0))(parameters, x)["weight"]

    for _ in range(6):
        x = norch.randn(4, 3)
        assert_close(step(x), vmap(func.grad(loss), (None, 0))(parameters, x)["weight"])


def test_captured_and_compiled_functions_are_mapped() -> None:
    layer = nn.Linear(3, 2)
    compiled, captured = norch.compile(layer), norch.capture(lambda x: (x.sin() * 2).sum())
    for _ in range(6):  # some of them recorded, and some replayed where nothing is batched
        x = norch.randn(4, 3)
        assert_close(captured(x[0]), (x[0].sin() * 2).sum())
        assert_close(vmap(captured)(x), (x.sin() * 2).sum(1))
        assert_close(compiled(x), layer(x))
        assert_close(vmap(compiled)(x), layer(x))
        rows = func.jacrev(compiled)(x[0])  # a batched walk through what was replayed
        assert_close(rows, layer.weight.detach())
        found = vmap(func.grad(lambda x: compiled(x).sin().sum()))(x)
        assert_close(found, norch.stack([func.grad(lambda x: layer(x).sin().sum())(row) for row in x]))


def test_functions_of_users_are_mapped() -> None:
    class Cube(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    check(lambda x: Cube.apply(x).sum(), floats(3, 4))


# ---- random numbers --------------------------------------------------------------------------------------------------

DRAWS: Any = {
    "rand": lambda x: norch.rand(2),
    "randn_like": lambda x: norch.randn_like(x),
    "randint": lambda x: norch.randint(0, 1 << 40, (3,)),
    "randperm": lambda x: norch.randperm(50),
    "bernoulli": lambda x: norch.bernoulli(norch.full((60,), 0.5)),
    "bernoulli of samples": lambda x: norch.bernoulli(norch.full((60,), 0.5) + 0 * x[0]),
    "dropout": lambda x: F.dropout(norch.ones(60)),
    "dropout of samples": lambda x: F.dropout(norch.ones(60) + 0 * x[0]),
    "in place": lambda x: (0 * x).normal_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers(name: str) -> None:
    call, x = DRAWS[name], norch.ones(4, 2)
    with pytest.raises(RuntimeError, match="randomness is 'error'"):
        vmap(call)(x)
    norch.manual_seed(1)
    different, same = (vmap(call, randomness=how)(x) for how in ("different", "same"))
    assert different.shape == same.shape and different.shape[0] == 4
    for i in range(1, 4):
        assert not norch.equal(different[0], different[i])
        assert norch.equal(same[0], same[i])
    if name == "dropout of samples":
        assert set(different.flatten().tolist()) == set(same.flatten().tolist()) == {0.0, 2.0}


def test_random_numbers_of_nested_maps() -> None:
    x = norch.ones(3, 2)
    table = vmap(lambda a: vmap(lambda b: norch.rand(()), randomness="different")(a), randomness="same")(x)
    assert norch.equal(table[0], table[1]) and not norch.equal(table[:, 0], table[:, 1])
    table = vmap(lambda a: vmap(lambda b: norch.rand(()), randomness="same")(a), randomness="different")(x)
    assert norch.equal(table[:, 0], table[:, 1]) and not norch.equal(table[0], table[1])


def test_dropout_has_gradients_of_its_mask() -> None:
    x = norch.ones(4, 50)
    gradient, out = vmap(func.grad_and_value(lambda x: F.dropout(x).sum()), randomness="different")(x)
    assert_close(gradient.sum(1), out)


# ---- writes in place -------------------------------------------------------------------------------------------------


def test_same_draws_in_all_chunks() -> None:
    x = norch.zeros(6, 2)
    for chunk_size in (None, 1, 4):
        norch.manual_seed(0)
        rows = vmap(lambda row: row + norch.rand(2), randomness="same", chunk_size=chunk_size)(x)
        after = norch.rand(2)
        norch.manual_seed(0)
        assert rows.equal(norch.rand(2).expand(6, 2)) and after.equal(norch.rand(2))


def test_dimensions_that_samples_lack() -> None:
    numbers = norch.arange(3.0)
    for call in (lambda x: x.squeeze(1), lambda x: x.squeeze(-2), lambda x: norch.stack([x, x], -2)):
        with pytest.raises(IndexError, match=r"out of range \[-1, 0\]"):
            vmap(call)(numbers)
    assert vmap(lambda x: x.squeeze(0))(numbers).shape == vmap(lambda x: x.squeeze(-1))(numbers).shape == (3,)
    assert vmap(lambda x: norch.stack([x, x], -1))(numbers).shape == (3, 2)


def test_writes_in_place() -> None:
    x, y = floats(3, 4), floats(3, 4)

    def written(x: Any, y: Any) -> Any:
        z = x.clone()
        z += y
        z[1] = y.sum()
        z[2:].mul_(y[:2])
        z[z > 1] = 0.25
        return z.sin_()

    check(written, x, y, dims=[0, 0])
    check(written, x, y, dims=[0, None])

    def into_zeros(x: Any) -> Any:
        out = x.new_zeros(2, 4)
        out[0] = x
        out[1].copy_(x.cumsum(0))
        return out

    check(into_zeros, x)
    before = x.clone()
    vmap(lambda x: x.mul_(2))(x)
    assert_close(x, before * 2)
    shared = norch.zeros(4).double()
    with pytest.raises(RuntimeError, match="writes values that vmap batches.* not batched"):
        vmap(lambda x: shared.add_(x))(x)
    assert norch.equal(shared, norch.zeros(4).double())


# ---- arguments and errors --------------------------------------------------------------------------------------------


def test_arguments() -> None:
    x, y = floats(3, 4), floats(4, 3)

    def call(d, k=2.0):
        return {"sum": d["x"] + d["y"] * k, "first": (d["x"],)}

    found = vmap(call, ({"x": 0, "y": 1},), {"sum": 1, "first": (0,)})({"x": x, "y": y}, k=3.0)
    assert_close(found["sum"], (x + y.T * 3).T)
    assert_close(found["first"][0], x)
    assert vmap(lambda x: (x, norch.ones(2)), out_dims=(0, None))(x)[1].shape == (2,)
    assert vmap(lambda x: norch.ones(2))(x).shape == (3, 2)
    assert vmap(lambda x: x.unsqueeze(0), out_dims=-1)(x).shape == (1, 4, 3)
    for size in (1, 2, 3, 5):
        assert_close(vmap(lambda x: x.cos(), out_dims=1, chunk_size=size)(x), x.cos().T)


def test_promotion_is_that_of_one_sample() -> None:
    numbers, x = norch.ones(3, dtype=norch.float64), norch.ones(3, 4)
    assert vmap(norch.mul)(x, numbers).dtype is norch.float32
    assert vmap(norch.mul, (None, 0))(norch.ones(4, dtype=norch.int64), numbers).dtype is norch.float64
    assert vmap(lambda x, n: norch.where(x > 0, x, n))(x, numbers).dtype is norch.float32
    assert vmap(lambda n: n * norch.ones((), dtype=norch.int64))(numbers).dtype is norch.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, "item: asks for the number"),
        (lambda x: float(x[0]), "item: asks for the number"),
        (lambda x: x.tolist(), "vmap batches"),
        (lambda x: x.numpy(), "vmap batches"),
        (lambda x: x[x > 0], "shape depends on the elements"),
        (lambda x: x.nonzero(), "shape depends on the elements"),
        (lambda x: norch.from_dlpack(x), "vmap batches"),
        (lambda x: x.untyped_storage(), "vmap batches"),
    ],
)
def test_what_cannot_be_batched(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        vmap(call)(floats(3, 4))


def test_a_tuple_of_one_axis_is_for_the_one_output(torch: Any) -> None:
    for m in (norch, torch):
        x = m.ones(3, 4)
        assert tuple(m.vmap(lambda x: x, out_dims=(1,))(x).shape) == (4, 3)
        with pytest.raises(ValueError, match="out_dims"):
            m.vmap(lambda x: (x, x), out_dims=(1,))(x)


@pytest.mark.parametrize("shapes", [((0, 1), (0, 4)), ((1, 0), (4, 0)), ((0,), (4, 0)), ((1, 1), (0, 1))])
def test_gradients_of_broadcasts_without_elements_have_the_shapes_of_inputs(shapes: Any) -> None:
    for name in ("add", "mul", "atan2", "maximum"):
        check(getattr(norch, name), *(norch.ones(3, *shape).double() for shape in shapes))


@pytest.mark.parametrize(("size", "step"), [(1, 1), (1, 2), (0, 1)])
def test_windows_of_a_number(size: int, step: int) -> None:
    check(lambda x: x.unfold(0, size, step), floats(3))


@pytest.mark.parametrize("factors", [{}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0.0}])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", [(3,), (3, 4), (4, 3)]),
        ("addmm", [(), (3, 4), (4, 3)]),
        ("addmv", [(), (3, 4), (4,)]),
        ("addr", [(3,), (3,), (3,)]),
        ("baddbmm", [(3, 3), (3, 3, 4), (3, 4, 3)]),
        ("baddbmm", [(3,), (3, 3, 4), (3, 4, 3)]),
        ("addbmm", [(3,), (2, 3, 4), (2, 4, 3)]),
    ],
)
def test_what_is_added_broadcasts_in_each_sample(name: str, shapes: list[tuple[int, ...]], factors: Any) -> None:
    call = functools.partial(getattr(norch, name), **factors)
    every: list[list[int | None]] = [[0, None, None], [0, 0, None], [0, None, 0], [0, 0, 0], [None, 0, 0]]
    for dims in every:  # as many samples as there are rows
        given_ = [floats(*shape) if dim is None else floats(3, *shape) for dim, shape in zip(dims, shapes, strict=True)]
        wanted = norch.stack([call(*slices(given_, dims, i)) for i in range(3)])
        assert_close(vmap(call, tuple(dims))(*given_), wanted, rtol=1e-9, atol=1e-9)
    for dims, outer in itertools.product(every, every):
        levels = [[3] * (d == 0) + [3] * (o == 0) for d, o in zip(dims, outer, strict=True)]
        given_ = [floats(*level, *shape) for level, shape in zip(levels, shapes, strict=True)]
        rows = [[call(*slices(slices(given_, outer, i), dims, j)) for j in range(3)] for i in range(3)]
        found = vmap(vmap(call, tuple(dims)), tuple(outer))(*given_)
        assert_close(found, norch.stack([norch.stack(row) for row in rows]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "shapes"),
    [
        (norch.addmm, [(3, 3, 5), (3, 4), (4, 5)]),
        (lambda x, w: F.layer_norm(x, (3,), w), [(3, 3), (3, 3)]),
        (lambda x, w: F.layer_norm(x, (3,), w), [(3, 3), (1,)]),
        (lambda x, w: F.rms_norm(x, (3,), w), [(3, 3), (1,)]),
        (lambda x, w: F.group_norm(x, 3, w), [(3, 3), (1,)]),
        (F.conv1d, [(3, 3, 5), (3, 3, 3), (1,)]),
        (F.conv1d, [(3, 3, 5), (3, 3, 3), (3, 3)]),
        (norch.searchsorted, [(), (3,)]),
        (lambda x, y: norch.cat([x, y]), [(3,), ()]),
        (lambda x, y: norch.diff(x, append=y), [(3,), ()]),
        (F.linear, [(3, 3), (3, 3), (2,)]),
        (F.linear, [(), (3, 3)]),
    ],
)
def test_shapes_that_one_sample_refuses_are_refused(call: Any, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(norch.ShapeError):
        call(*(floats(*shape) for shape in shapes))
    for dims in [(0,) * len(shapes), (*[None] * (len(shapes) - 1), 0), (0, *[None] * (len(shapes) - 1))]:
        given_ = [floats(*shape) if dim is None else floats(3, *shape) for dim, shape in zip(dims, shapes, strict=True)]
        with pytest.raises(norch.ShapeError):
            vmap(call, dims)(*given_)


def test_errors_name_the_sample() -> None:
    x = floats(3, 4)
    cases: Any = [
        (lambda: vmap(lambda x: x @ floats(5))(x), "matmul"),
        (lambda: vmap(lambda x: x.view(3))(x), r"\(4,\)"),
        (lambda: vmap(lambda x: x.sum(1))(x), "out of range"),
        (lambda: vmap(lambda x: x.expand(2, 3))(x), "expand"),
        (lambda: vmap(lambda x: x.select(0, 9))(x), "index 9 is out of range for dimension 0 of size 4"),
        (lambda: vmap(lambda x: x + norch.ones(5))(x), "add"),
        (lambda: vmap(lambda x: x, out_dims=3)(x), "out_dims 3"),
        (lambda: vmap(lambda x: x, out_dims=None)(x), "out_dims None"),
        (lambda: vmap(lambda x: x, chunk_size=0)(x), "chunk_size"),
        (lambda: vmap(norch.add)(x, norch.ones(2, 4)), r"expected one size along in_dims, got \[2, 3\]"),
    ]
    for call, message in cases:
        with pytest.raises((norch.Error, ValueError, IndexError), match=message):
            call()
    w = norch.ones(4).double().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf that is not batched would collect"):
        vmap(lambda x: (x * w).sum().backward())(x)
    assert w.grad is None


def test_walks_that_know_no_level_do_not_look() -> None:
    from norch.autograd.levels import live_levels

    before, x = set(live_levels), norch.ones(3).requires_grad_()
    y = vmap(lambda x: x * 2)(x)
    assert len(set(live_levels) - before) == 1
    y.sum().backward()
    del y
    assert not set(live_levels) - before


def test_calls_without_a_rule_run_sample_by_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from norch.batching import level

    for name in ("softmax", "softmax_backward", "cat"):
        monkeypatch.delitem(level.RULES, name)
    x, y = floats(3, 4), floats(4)
    call = func.grad(lambda x, y: (norch.cat([x, y]).softmax(0) * norch.cat([y, x])).sum())
    with pytest.warns(UserWarning, match="vmap: there is no batching rule for .*; it runs once for each sample"):
        found = vmap(call, (0, None))(x, y)
    assert_close(found, norch.stack([call(row, y) for row in x]))


def test_gradcheck_compares_batched_walks() -> None:
    x = floats(2, 3).requires_grad_()
    assert norch.testing.gradcheck(lambda x: x.sin().cumsum(1), x, check_batched_grad=True)
    assert norch.testing.gradgradcheck(lambda x: x.sin() * x[0], x, check_batched_grad=True)

    class Odd(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 + (0 if type(g) is norch.Tensor else 1)

    with pytest.raises(norch.testing.GradcheckError, match="another one where vmap batches it"):
        norch.testing.gradcheck(Odd.apply, x, check_batched_grad=True)
