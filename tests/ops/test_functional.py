"""norch.func and norch.autograd.functional: against closed forms and PyTorch, nested, and with bad arguments."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import norch
from norch import func
from norch.autograd import functional, transforms
from norch.autograd.transforms import leaves
from norch.testing import assert_close

VALUES = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6]])


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), dtype=norch.float64)


def smooth(m: Any, x: Any) -> Any:
    """Two numbers from each column, which depend on all of x."""
    return m.sin(x) * m.exp(x).sum() + x**3


def mixed(m: Any, x: Any, y: Any) -> Any:
    return m.tanh(x) @ y, (x * x).sum()


# ---- against PyTorch ------------------------------------------------------------------------------------------------


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert isinstance(found, (tuple, list)) and len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    assert not found.requires_grad and found.shape == tuple(wanted.shape)
    assert_close(found, of(wanted.detach().numpy()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian"])
def test_jacobians_like_torch(torch: Any, name: str) -> None:
    x, y = VALUES, VALUES[0]
    ours, theirs = getattr(func, name), getattr(torch.func, name)
    same(ours(lambda x: smooth(norch, x))(of(x)), theirs(lambda x: smooth(torch, x))(torch.tensor(x)))
    for argnums in (0, 1, (0, 1), (1,)):
        found = ours(lambda x, y: mixed(norch, x, y), argnums)(of(x), of(y))
        same(found, theirs(lambda x, y: mixed(torch, x, y), argnums)(torch.tensor(x), torch.tensor(y)))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_functional_like_torch(torch: Any, strategy: str) -> None:
    x, y = VALUES, VALUES[0]
    ours, theirs = (of(x), of(y)), (torch.tensor(x), torch.tensor(y))

    def both(name: str, call: Any, *more: Any, **named: Any) -> None:
        found = getattr(functional, name)(lambda *xs: call(norch, *xs), ours, *map(given(of), more), **named)
        wanted = getattr(torch.autograd.functional, name)(
            lambda *xs: call(torch, *xs), theirs, *map(given(torch.tensor), more)
        )
        same(found, wanted)

    def given(make: Any) -> Any:
        return lambda v: tuple(map(make, v))

    def loss(m: Any, x: Any, y: Any) -> Any:
        return (m.sin(x) @ y).sum() * y.sum()

    both("jacobian", mixed, strategy=strategy)
    both("hessian", loss, outer_jacobian_strategy=strategy)
    both("vjp", mixed, (y[:2], 0.5))
    both("jvp", mixed, (x, y))
    both("vhp", loss, (x, y))
    both("hvp", loss, (x, y))
    for found, wanted in (
        (functional.jacobian(norch.exp, of(y), strategy=strategy), torch.diag(torch.exp(torch.tensor(y)))),
        (functional.jacobian(lambda x: (x, 2 * x), of(y))[1], 2 * torch.eye(3, dtype=torch.float64)),
        (functional.jacobian(lambda x: x, (of(y),))[0], torch.eye(3, dtype=torch.float64)),
        (functional.jacobian(lambda x: x[:0], of(y), strategy=strategy), torch.zeros(0, 3)),
        (
            functional.jacobian(lambda x: x.sum() + norch.ones(2).double(), of(y)[:0], strategy=strategy),
            torch.zeros(2, 0),
        ),
    ):
        same(found, wanted)


# ---- gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}], ids=["rows", "vmap", "jvp"]
)
def test_jacobians_of_two_inputs_and_of_no_element(options: dict[str, Any]) -> None:
    x, y = of([1.0, 2.0]), of([3.0, 4.0, 5.0])
    by_x, by_y = functional.jacobian(lambda x, y: (x[:, None] * y).sum(0), (x, y), **options)
    assert by_x.tolist() == [[3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]
    assert by_y.tolist() == [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]
    assert functional.jacobian(lambda x: x[:0] * 2, x, **options).shape == (0, 2)


@pytest.mark.parametrize(("chunk", "walks"), [(None, 1), (1, 4), (2, 2), (3, 2), (4, 1), (5, 1)])
def test_rows_of_a_jacobian_in_chunks(chunk: int | None, walks: int) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: seen.append(g))
        return y * y

    assert func.jacrev(f, chunk_size=chunk)(norch.arange(4.0)).tolist() == (norch.arange(4.0) * 8).diag().tolist()
    assert len(seen) == walks


def test_gradients_of_gradients() -> None:
    x = of(0.7)
    derivative: Any = norch.sin
    for wanted in (x.cos(), -x.sin(), -x.cos(), x.sin()):
        derivative = func.grad(derivative)
        found = derivative(x)
        assert_close(found, wanted)
        assert not found.requires_grad


def test_argnums_and_aux() -> None:
    def loss(w: Any, x: Any, factor: float = 1.0) -> Any:
        y = w * x
        return (y * y).sum() * factor, {"y": y, "name": "loss"}

    w, x = of([1.0, 2.0]), of([3.0, 4.0])
    (dw, dx), aux = func.grad(loss, argnums=(0, 1), has_aux=True)(w, x, factor=0.5)
    assert dw.tolist() == [9, 32] and dx.tolist() == [3, 16]
    assert aux["y"].tolist() == [3, 8] and not aux["y"].requires_grad and aux["name"] == "loss"
    (value, aux), dx = func.value_and_grad(loss, argnums=-1, has_aux=True)(w, x)
    assert value.item() == 73 and dx.tolist() == [6, 32] and aux["y"].tolist() == [3, 8]
    dw, (value, _) = func.grad_and_value(loss, has_aux=True)(w, x)
    assert dw.tolist() == [18, 64] and not value.requires_grad
    assert w.grad is None and x.grad is None and not w.requires_grad


Pair = namedtuple("Pair", "w b")


@pytest.mark.parametrize("make", [Pair, lambda w, b: {"w": w, "b": b}, lambda w, b: [w, (b,)]])
def test_trees(make: Any) -> None:
    def loss(parameters: Any, x: Any) -> Any:
        if isinstance(parameters, dict):
            w, b = parameters["w"], parameters["b"]
        else:
            w, b = parameters
        return (w * x + (b[0] if isinstance(b, tuple) else b)).sum()

    parameters = make(of([1.0, 2.0]), of([0.0, 0.0]))
    found = func.grad(loss)(parameters, of([5.0, 6.0]))
    assert type(found) is type(parameters)
    assert leaves(found)[0].tolist() == [5, 6] and leaves(found)[1].tolist() == [1, 1]
    blocks = func.jacrev(lambda p: {"out": leaves(p)[0] * 2})(parameters)
    assert leaves(blocks["out"])[0].tolist() == [[2, 0], [0, 2]]


def test_closures_and_outer_graphs() -> None:
    """What func knows beside its arguments keeps its own graph; nothing else does."""
    w, x = of(2.0).requires_grad_(), of(3.0)
    g = func.grad(lambda x: w * x * x)(x)
    assert g.requires_grad
    g.backward()
    assert w.grad.item() == 6  # d/dw of 2 w x
    assert func.grad(lambda w: func.grad(lambda x: w * x**3)(x))(of(1.0)).item() == 27
    with norch.no_grad():
        g = func.grad(lambda x: w * x * x)(x)
        assert not g.requires_grad and g.item() == 12
    g = func.grad(lambda v: v**3)(w)  # w requires grad: the derivative goes on to it
    assert norch.autograd.grad(g, w)[0].item() == 12
    assert functional.jacobian(lambda v: v**3, w, create_graph=True).requires_grad
    assert not functional.jacobian(lambda v: v**3, w).requires_grad


def test_inner_variables_do_not_keep_the_graph() -> None:
    """Inner transforms by what the function closes over: their variables are leaves, but not the user's."""
    x, y = norch.tensor([1.0, 2.0]), norch.tensor([0.5, 0.3])

    def f(x: Any, y: Any) -> Any:
        return (x * y).sin().sum()

    found = [
        func.grad(lambda x: func.grad(f, argnums=1)(x, y).sum())(x),
        func.grad(lambda x: func.vjp(lambda y: f(x, y), y)[1](norch.tensor(1.0))[0].sum())(x),
        func.jacrev(lambda x: func.jvp(f, (x, y), (x * 2, y))[1])(x),
        norch.vmap(func.grad(lambda x: func.grad(f, argnums=1)(x, y).sum()))(norch.stack([x, x])),
    ]
    assert [g.requires_grad for g in found] == [False] * 4
    assert_close(found[0], (x * y).cos() - x * y * (x * y).sin())
    y.requires_grad_()  # but this one is the user's
    (of_y,) = norch.autograd.grad(func.grad(lambda x: func.grad(f, argnums=1)(x, y).sum())(x).sum(), y)
    assert_close(of_y, -2 * x * (x * y).sin() - x * x * y * (x * y).cos())


def test_products_with_jacobians() -> None:
    x, y = of([1.0, 2.0]), of([3.0, 4.0])
    out, pull_back = func.vjp(lambda x, y: {"sum": (x * y).sum(), "x": x}, x, y)
    assert out["sum"].item() == 11 and not out["sum"].requires_grad
    for _ in range(2):  # as often as one likes
        dx, dy = pull_back({"sum": of(2.0), "x": of([1.0, 0.0])})
        assert dx.tolist() == [7, 8] and dy.tolist() == [2, 4]
    out, along = func.jvp(lambda x, y: (x * y, y), (x, y), (of([1.0, 0.0]), of([0.0, 1.0])))
    assert along[0].tolist() == [3, 2] and along[1].tolist() == [0, 1]
    out, along, aux = func.jvp(lambda x: (x * x, "aux"), (x,), (of([1.0, 1.0]),), has_aux=True)
    assert out.tolist() == [1, 4] and along.tolist() == [2, 4] and aux == "aux"
    assert func.jvp(lambda x: of([5.0]), (x,), (x,))[1].tolist() == [0]
    assert func.vjp(lambda x: (x, 1), x, has_aux=True)[2] == 1
    pull_back = func.vjp(lambda x: [x * 2, (x * 3,)], x)[1]
    assert pull_back((x, [x]), retain_graph=False)[0].tolist() == [5, 10]  # lists and tuples are alike
    of_v = of([1.0, 1.0]).requires_grad_()
    for create_graph in (None, True, False):
        found = func.vjp(lambda x: x * x, x)[1](cotangents=of_v, create_graph=create_graph)[0]
        assert found.requires_grad is (create_graph is not False)
    # the double-vjp way, derived once more: d/dx (2 x . t) . t
    second = func.grad(lambda x: func.jvp(lambda x: (x**2).sum(), (x,), (of([1.0, 3.0]),))[1])(x)
    assert second.tolist() == [2, 6]
    assert func.grad(lambda t: func.jvp(lambda x: (x**2).sum(), (x,), (t,))[1])(x).tolist() == [2, 4]


@pytest.mark.parametrize("registered", [False, True])
def test_cotangents_are_nested_as_the_output(registered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same before and after norch.utils._pytree registers the classes of containers."""
    import norch.utils._pytree as pytree

    monkeypatch.setattr(transforms, "nodes", dict(pytree.SUPPORTED_NODES) if registered else {})
    x = of([1.0, 2.0])
    alike = func.vjp(lambda x: {"a": [x * 2, (x * 3,)], "b": x}, x)[1]
    expected = [6, 6]
    assert alike({"a": [x / x, (x / x,)], "b": x / x})[0].tolist() == expected
    assert alike(OrderedDict(a=(x / x, [x / x]), b=x / x))[0].tolist() == expected
    for other in ({"b": x, "a": [x, (x,)]}, {"a": [x, x], "b": x}, [x, x, x], {"a": [x, (x,)], "c": x}):
        with pytest.raises(norch.Error, match="nested as the output"):
            alike(other)


def test_functional_call() -> None:
    nn = norch.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}
    x, y = of([[1.0, 2.0], [0.5, -1.0]]), of([[1.0], [0.0]])

    def loss(parameters: Any, x: Any) -> Any:
        return (func.functional_call(model, parameters, x) - y).square().mean()

    found = func.grad(loss)(parameters, x)
    (model(x) - y).square().mean().backward()
    for name, p in model.named_parameters():
        assert_close(found[name], p.grad)
    before = model[0].weight
    assert func.functional_call(model, {"0.weight": parameters["0.weight"] * 0}, (x,)).shape == (2, 1)
    assert model[0].weight is before is dict(model.named_parameters())["0.weight"]
    with pytest.raises(norch.errors.Error, match="missing names: 0.bias"):
        func.functional_call(model, {"0.weight": x}, x, strict=True)
    with pytest.raises(norch.errors.Error, match="unknown names: 1.weight"):
        func.functional_call(model, {**parameters, "1.weight": x}, x, strict=True)
    with pytest.raises(AttributeError, match="9"):
        func.functional_call(model, {"9.weight": x}, x)
    with pytest.raises(norch.ShapeError):  # what fails leaves the module as it was
        func.functional_call(model, ({"0.weight": x.T[:1]}, {}), x)
    assert model[0].weight is before
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).double()
    tied[1].weight = tied[0].weight
    zeros = {"0.weight": of([[0.0, 0.0]] * 2), "0.bias": of([0.0, 0.0]), "1.bias": of([0.0, 0.0])}
    assert not func.functional_call(tied, zeros, x).any()
    assert func.functional_call(tied, {"0.bias": of([5.0, 5.0]), **zeros}, x, tie_weights=False).shape == (2, 2)
    tied_zeros = {**zeros, "1.weight": zeros["0.weight"]}
    assert not func.functional_call(tied, zeros, x, strict=True).any()
    assert not func.functional_call(tied, tied_zeros, x).any()
    with pytest.raises(ValueError, match="are one tensor"):
        func.functional_call(tied, {**zeros, "1.weight": x}, x)
    with pytest.raises(ValueError, match="two of the dicts have 0.bias"):
        func.functional_call(tied, (zeros, {"0.bias": x[0]}), x)
    with pytest.raises(ValueError, match="expected a dict"):
        func.functional_call(tied, x, x)


class Scaled(norch.nn.Module):
    """A module with a plain tensor and a parameter that is None."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.layer = of([2.0]), norch.nn.Linear(2, 1, bias=False).double()

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale, getattr(self, "extra", None)


def test_functional_call_of_attributes() -> None:
    """Names of no parameter or buffer are attributes for the time of the call, as in PyTorch; so dicts of tensors of a
    larger model can be passed on."""
    model, x = Scaled(), of([[1.0, 2.0]])
    given = {"layer.weight": of([[1.0, 1.0]]), "layer.bias": of([1.0]), "scale": of([10.0]), "extra": x}
    out, extra = func.functional_call(model, given, x)
    assert out.tolist() == [[40]]
    assert extra is x
    assert model.scale.tolist() == [2]
    assert model.layer.bias is None
    assert not hasattr(model, "extra")
    assert given["scale"].tolist() == [10]
    with pytest.raises(TypeError, match="layer"):
        func.functional_call(model, {"layer": x}, x)
    with pytest.raises(TypeError, match="float"):
        func.functional_call(model, {"layer.weight": 1.0}, x)
    assert model.layer.weight.shape == (1, 2)
    model.layer.whole = model  # a name leads around
    given = {"layer.whole.layer.weight": of([[1.0, 1.0]])}
    assert func.functional_call(model, given, x, tie_weights=False)[0].tolist() == [[6]]


MAPS: Any = {  # name: (what is mapped, shapes of its arguments, how)
    "sum": (lambda m: lambda x: x.sum(), [(3, 2)], {}),
    "axes": (lambda m: lambda x, y: x @ y, [(2, 3, 4), (4, 3)], {"in_dims": (1, -1), "out_dims": -1}),
    "one whole": (lambda m: m.dot, [(3, 2), (2,)], {"in_dims": (0, None)}),
    "two outputs": (lambda m: lambda x: (x, {"a": x * 2}), [(3, 2)], {"out_dims": (1, {"a": 0})}),
    "nested": (lambda m: m.func.vmap(lambda x: x.prod()), [(2, 3, 4)], {"in_dims": 2}),
    "of gradients": (lambda m: m.func.grad(lambda w, x: m.sin(w * x).sum()), [(2,), (3, 2)], {"in_dims": (None, 0)}),
    "of Jacobians": (lambda m: m.func.jacrev(m.sin), [(3, 2)], {}),
    "tree": (lambda m: lambda d, k: d["x"] * k, [{"x": (3, 2)}, (3,)], {"in_dims": ({"x": 0}, 0)}),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_over_a_batch_axis_like_torch(torch: Any, name: str) -> None:
    call, shapes, how = MAPS[name]
    rng = np.random.default_rng(0)
    arrays = [
        rng.normal(size=s) if isinstance(s, tuple) else {k: rng.normal(size=t) for k, t in s.items()} for s in shapes
    ]

    def on(tensor: Any) -> list[Any]:
        return [tensor(a) if not isinstance(a, dict) else {k: tensor(b) for k, b in a.items()} for a in arrays]

    found, wanted = norch.vmap(call(norch), **how)(*on(of)), torch.vmap(call(torch), **how)(*on(torch.tensor))
    if name == "two outputs":
        found, wanted = (found[0], found[1]["a"]), (wanted[0], wanted[1]["a"])
    same(found, wanted)


def test_maps_pass_keyword_arguments_whole(torch: Any) -> None:
    for s in ([1.0, 2.0], [1.0, 2.0, 3.0], 4.0):
        found, wanted = (
            m.func.vmap(lambda x, s, text: x * s.sum(), in_dims=1)(one(VALUES), s=one(s), text="any")
            for m, one in ((norch, of), (torch, torch.tensor))
        )
        same(found, wanted)
    x, s = of(VALUES), of([1.0, 2.0])
    jacobians = func.vmap(func.jacrev(lambda x, s: x * s.sum()))(x, s=s)
    assert_close(jacobians, norch.eye(3).double().mul(3).expand(2, 3, 3))


def test_maps_are_derived_through_and_take_modules() -> None:
    x = of(VALUES).requires_grad_()
    func.vmap(lambda row, k: (row * row).sum() * k)(x, of([1.0, 10.0])).sum().backward()
    assert_close(x.grad, of(VALUES * 2 * [[1.0], [10.0]]))
    models = [norch.nn.Linear(3, 2).double() for _ in range(4)]
    state = func.stack_module_state(models)
    assert state[0]["weight"].requires_grad and state[0]["weight"].is_leaf
    for model in models:
        model.bias.requires_grad_(False)
    stacks = func.stack_module_state(models)[0]
    assert stacks["weight"].requires_grad and not stacks["bias"].requires_grad
    outputs = func.vmap(lambda p, b, x: func.functional_call(models[0], (p, b), x), in_dims=(0, 0, None))(
        *state, of(VALUES)
    )
    assert_close(outputs, norch.stack([model(of(VALUES)) for model in models]))
    assert norch.vmap(lambda x: norch.rand(1), randomness="different")(of(VALUES)).unique().numel() == 2


def test_newton() -> None:
    """A use of it all: two steps to the minimum of a quadratic function and a little more."""
    a = of([[3.0, 1.0], [1.0, 2.0]])

    def bowl(x: Any) -> Any:
        return 0.5 * (x @ a @ x) - x.sum() + 0.1 * (x**4).sum()

    x = of([0.0, 0.0])
    for _ in range(6):
        step = np.linalg.solve(func.hessian(bowl)(x).numpy(), func.grad(bowl)(x).numpy())
        x = x - of(step)
    assert func.grad(bowl)(x).abs().max().item() < 1e-12


# ---- bad arguments --------------------------------------------------------------------------------------------------

X = norch.ones(2)
PAIRS = func.vjp(lambda x: {"a": x, "b": 2 * x}, X)
LAYERS = [norch.nn.Linear(2, 2) for _ in range(3)]
LAYERS[1].eval().requires_grad_(False)
LAYERS[2].requires_grad_(False)
BAD: Any = [
    (lambda: func.grad(norch.sin)(X), ValueError, r"grad: the function must give a tensor of no dimension.*\(2,\)"),
    (lambda: func.grad(lambda x: 1.0)(X), TypeError, "grad: the function gives float"),
    (lambda: func.grad(norch.sum, argnums=1)(X), ValueError, "grad: argnums 1 for 1 positional arguments"),
    (lambda: func.grad(norch.sum)(3.0), TypeError, "grad: argument 0 holds no tensor"),
    (lambda: func.grad(norch.sum)(norch.arange(3)), norch.DTypeError, "only floats and complex numbers have gradients"),
    (lambda: func.grad(norch.sum, has_aux=True)(X), TypeError, "grad: with has_aux"),
    (lambda: func.jvp(norch.sin, X, X), TypeError, "jvp: primals and tangents are tuples"),
    (
        lambda: func.jvp(norch.sin, (X,), (norch.ones(3),)),
        ValueError,
        "a tangent has shape .* for a primal",
    ),
    (lambda: func.vjp(norch.sin, X)[1](norch.ones(3)), ValueError, "a cotangent has shape"),
    (lambda: func.vjp(norch.sin, X)[1]((X, X)), ValueError, "a cotangent holds 2 tensors for an output of 1"),
    (lambda: PAIRS[1]({"b": X, "a": X}), ValueError, "cotangents must be nested as the output"),
    (lambda: PAIRS[1]([X, X]), ValueError, "cotangents must be nested as the output"),
    (lambda: PAIRS[1]({"a": [X], "b": X}), ValueError, "cotangents must be nested as the output"),
    (
        lambda: func.jvp(lambda d: d["a"] - d["b"], ({"a": X, "b": X},), ({"b": X, "a": X},)),
        ValueError,
        "tangents must be nested as the primals, with the keys of dicts in the same order",
    ),
    (lambda: func.grad(norch.dot, argnums=(0, -2))(X, X), ValueError, r"argnums \(0, -2\) must name .* none twice"),
    (lambda: func.jacrev(norch.mul, argnums=(1, 1))(X, X), ValueError, r"argnums \(1, 1\) must name"),
    (lambda: func.jacfwd(norch.mul, argnums=())(X, X), ValueError, r"argnums \(\) must name an argument"),
    (lambda: func.grad(lambda x: (x * 1j).sum())(X), norch.DTypeError, "must give a real number .* not complex64"),
    (lambda: func.value_and_grad(lambda x: (x * 1j).sum())(X), norch.DTypeError, "must give a real number"),
    (lambda: norch.vmap(norch.sin, in_dims=1)(X), IndexError, r"vmap: in_dims 1 for a tensor of shape \(2,\)"),
    (lambda: norch.vmap(norch.add)(X, norch.ones(3)), ValueError, r"vmap: expected one size .* got \[2, 3\]"),
    (lambda: norch.vmap(norch.add)(1, 2), ValueError, "vmap: no tensor to map over: got int, int, with in_dims=0"),
    (lambda: norch.vmap(norch.sin)(), ValueError, "vmap: no tensor to map over: got no argument"),
    (
        lambda: norch.vmap(norch.sin, in_dims=None)(X),
        ValueError,
        "no tensor to map over: got a tensor, with in_dims=None",
    ),
    (lambda: norch.vmap(lambda x: x[0], in_dims=({"a": 0},))([X]), ValueError, "in_dims {'a': 0} does not fit a list"),
    (lambda: norch.vmap(norch.sin, in_dims=1.0)(X), ValueError, "in_dims holds axes, .* not 1.0"),
    (lambda: norch.vmap(norch.sin, chunk_size="a"), TypeError, "vmap: chunk_size must be an integer, not str"),
    (lambda: func.jacrev(norch.sin, chunk_size=1.5), TypeError, "jacrev: chunk_size must be an integer, not float"),
    (lambda: func.jacfwd(norch.sin, randomness="no"), ValueError, "jacfwd: randomness is 'error', .* not 'no'"),
    (lambda: norch.vmap(norch.add, in_dims=(0,))(X, X), ValueError, r"vmap: in_dims \(0,\) does not fit a tuple of 2"),
    (lambda: norch.vmap(norch.sin, out_dims=(0, 0))(X), ValueError, r"vmap: out_dims \(0, 0\) does not fit a tensor"),
    (lambda: norch.vmap(lambda x: 1)(X), ValueError, "vmap: the function gives int"),
    (lambda: norch.vmap(norch.sin, randomness="other"), ValueError, "randomness is .error., .different. or .same."),
    (lambda: func.stack_module_state([]), ValueError, "stack_module_state: expected models"),
    (lambda: func.stack_module_state(LAYERS[:2]), ValueError, "some models are in training mode, others are not"),
    (lambda: func.stack_module_state(LAYERS[::2]), ValueError, "weight requires grad in some of the models, not in"),
    (lambda: functional.vjp(norch.sin, X), ValueError, "vjp: v may be omitted only for an output of a single number"),
    (lambda: functional.vjp(norch.sin, X, norch.ones(3)), ValueError, r"vjp: v has shape \(3,\) for an output 0"),
    (lambda: functional.vjp(norch.sin, X, (X, X)), ValueError, "vjp: v holds 2 tensors for an output of 1"),
    (lambda: functional.jvp(norch.sin, 1.0), TypeError, "jvp: inputs must be a tensor or a tuple"),
    (lambda: functional.jacobian(lambda x: 1, X), TypeError, "jacobian: what the function gives must be a tensor"),
    (lambda: functional.jacobian(norch.sin, X, strategy="sideways"), ValueError, "'sideways'"),
    (lambda: functional.hessian(norch.sin, X), ValueError, "hessian: the function must give a tensor of one number"),
    (lambda: functional.hessian(lambda x: (x.sum(),), X), ValueError, "hessian: the function must give a tensor"),
    (lambda: functional.hvp(norch.sin, X, X), ValueError, "hvp: the function must give a tensor of one number"),
    (
        lambda: functional.jacobian(lambda x: norch.ones(1), X, strict=True),
        norch.Error,
        "jacobian: an output depends on no input, which",
    ),
    (
        lambda: functional.jacobian(lambda x: norch.ones(1), X, strict=True, strategy="forward-mode"),
        norch.Error,
        "jacobian: an output depends on no input",
    ),
    (lambda: functional.vjp(lambda x: norch.ones(1), X, strict=True), norch.Error, "vjp: an output depends on no"),
    (lambda: functional.jvp(lambda x: (x, norch.ones(1)), X, X, strict=True), norch.Error, "jvp: an output depends on"),
    (lambda: functional.vjp(lambda x, y: x.sum(), (X, X), strict=True), norch.Error, "does not depend on input 1"),
    (
        lambda: functional.jvp(lambda x: 2 * x, X, X, create_graph=True, strict=True),
        norch.Error,
        "the derivative of an output depends on no input",
    ),
    (lambda: functional.hvp(norch.sum, X, X, strict=True), norch.Error, "derivative by input 0 depends on no input"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[one[2] for one in BAD])
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert not X.requires_grad and X.grad is None
