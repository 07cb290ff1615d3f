"""norch.compile: hooks, refusals, names, copies, threads and exceptions."""

import copy
import gc
import io
import pickle
import threading
import warnings

import pytest
from test_compile import bits, no_warning, recordings  # noqa: F401  (a fixture)

import norch
from norch import nn, optim
from norch._binding.library import lib
from norch.nn import functional as F

pytestmark = pytest.mark.host


def test_hooks() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    compiled = norch.compile(model, fullgraph=True)
    x, seen = norch.randn(5, 3), []
    handle = model[0].weight.register_hook(lambda g: seen.append(bits(g)) or g * 2)
    for _ in range(5):
        model.zero_grad()
        compiled(x).sum().backward()
        twice = bits(model[0].weight.grad)
    assert len(seen) == 5 and recordings(compiled) == 1
    model.zero_grad()
    model(x).sum().backward()
    assert twice == bits(model[0].weight.grad)
    handle.remove()
    outer, calls = [], []
    compiled.register_forward_hook(lambda module, args, out: outer.append(out))
    for _ in range(4):
        compiled(x)
    assert len(outer) == 4
    model[1].register_full_backward_hook(lambda module, inner, outer: calls.append(1))
    eager = norch.compile(model)
    with pytest.warns(UserWarning, match="compile: Sequential is not recorded, but called as it is: .*hooks"):
        for _ in range(6):
            eager(x).sum().backward()
    assert len(calls) == 6 and recordings(eager) == 0


def heads(x, p, q):
    return (x * p).tanh(), (x + p).exp(), (x * q).sin()


def doubled(x, p, q):
    shared = x + p  # whose node frees nothing
    return shared * 2, shared * 3, q.exp()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("function", [heads, doubled])
@pytest.mark.parametrize(
    "walks", [lambda i: "012", lambda i: "20", lambda i: "0", lambda i: "01" if i % 2 else "1",
              lambda i: "210" if i > 6 else "0", lambda i: "102" if i > 6 else ""],
)  # fmt: skip
def test_results_with_graphs_of_their_own_are_walked_one_by_one(walks, function, strict) -> None:
    found = []
    for wrap in (lambda f: f, lambda f: norch.compile(f, fullgraph=strict)):
        p, q = (nn.Parameter(norch.full((3,), value)) for value in (2.0, 0.5))
        wrapped, grads = wrap(function), []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "compile: .* goes through a call of it twice")
            for i in range(9):
                outs = wrapped(norch.full((3,), 1 + i / 8), p, q)
                for k in walks(i):
                    outs[int(k)].sum().backward()
                grads.append([x.grad if x.grad is None else bits(x.grad) for x in (p, q)])
        found.append(grads)
    assert found[0] == found[1]


def test_a_result_that_is_walked_is_freed() -> None:
    p = nn.Parameter(norch.ones(3))
    compiled = norch.compile(lambda x: ((x * p).tanh(), (x + p).exp()), fullgraph=True)
    for _ in range(7):
        a, b = compiled(norch.ones(3))
        a.sum().backward()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="a second time"):
                a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            b.sum().backward()


def reading(x):
    return x * x.sum().item()


def test_what_cannot_be_recorded_runs_as_it_is_with_one_warning() -> None:
    compiled = norch.compile(reading)
    with pytest.warns(UserWarning, match="reading is not recorded.*Python reads the elements") as seen:
        for i in range(6):
            x = norch.ones(2 + i % 2, requires_grad=True)
            y = compiled(x)
            y.sum().backward()
            assert y.tolist() == [2.0 + i % 2] * (2 + i % 2) and x.grad.tolist() == y.tolist()
    assert len(seen) == 1 and compiled.recordings() == 0
    strict = norch.compile(reading, fullgraph=True)
    strict(norch.ones(2))
    with pytest.raises(norch.CaptureError, match="compile: Python reads the elements.*\n  at .*test_compile_rules.py"):
        strict(norch.ones(2))


def test_other_refusals() -> None:
    kept = []

    class Odd:
        pass

    def keeps(x):
        kept.append(x * 2)
        return x.exp() * kept[-1]

    def writes(x):
        x.mul_(2)
        return x * 3

    def odd(x):
        found = Odd()
        found.x = x * 2
        return found

    def leaf(x):
        return x * norch.ones(2, requires_grad=True)

    made = norch.compile(leaf, fullgraph=True)
    for _ in range(5):
        x = norch.ones(2, requires_grad=True)
        made(x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
    assert made.recordings() == 1
    for function, why in ((keeps, "kept elsewhere"), (odd, "object")):
        compiled = norch.compile(function)
        with pytest.warns(UserWarning, match=why):
            for _ in range(6):
                out = compiled(norch.ones(2, requires_grad=True) * 1)
                if function is not odd:
                    out.sum().backward()
        assert compiled.recordings() == 0
    compiled = norch.compile(writes)
    with pytest.warns(UserWarning, match="writes into an argument"):
        for _ in range(6):
            x = norch.ones(2, requires_grad=True)
            y = x * 1
            compiled(y).sum().backward()
            assert y.tolist() == [2.0, 2.0] and x.grad.tolist() == [6.0, 6.0]


def test_errors_are_those_of_the_function() -> None:
    model = nn.Embedding(4, 2)
    compiled = norch.compile(model, fullgraph=True)
    for _ in range(5):
        compiled(norch.tensor([0, 3])).sum().backward()
    assert recordings(compiled) == 1
    with pytest.raises(IndexError):
        compiled(norch.tensor([0, 4]))
    compiled(norch.tensor([0, 2])).sum().backward()
    with pytest.raises(norch.ShapeError):
        norch.compile(nn.Linear(3, 2))(norch.ones(4))


def test_views_of_arguments_and_arguments_themselves() -> None:
    def function(x, y):
        return x.view(2, 2), y, x * y

    compiled = norch.compile(function, fullgraph=True)
    for _ in range(6):
        x, y = norch.randn(4, requires_grad=True), norch.randn(4, requires_grad=True)
        a, b, c = compiled(x * 1, y)
        assert b is y
        norch.autograd.backward([(a * 2).sum(), c.sum()])
        assert x.grad.tolist() == (2 + y).tolist() and y.grad.tolist() == x.tolist()
    assert compiled.recordings() == 1


def test_nested_and_inside_capture() -> None:
    inner = norch.compile(nn.Linear(3, 3), fullgraph=True)
    outer = norch.compile(nn.Sequential(inner, nn.Tanh(), inner), fullgraph=True)
    x = norch.randn(2, 3)
    for _ in range(8):
        found = []
        for f in (nn.Sequential(inner._orig_mod, nn.Tanh(), inner._orig_mod), outer):
            inner._orig_mod.zero_grad()
            y = f(x)
            y.sum().backward()
            found.append([bits(y), *(bits(p.grad) for p in inner.parameters())])
        assert found[0] == found[1]
    assert recordings(outer) == 1
    model = norch.compile(nn.Linear(3, 1), fullgraph=True)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @norch.capture
    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):  # so that it is recorded in the first call of step
        model(x).sum().backward()
    losses = [step(x).item() for _ in range(8)]
    assert step.recordings() == 1 and losses == sorted(losses, reverse=True)


def test_a_training_step_is_captured() -> None:
    w = norch.ones(3, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)

    @norch.compile(fullgraph=True)
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(norch.ones(3)).item() for _ in range(8)]
    assert losses == sorted(losses, reverse=True) and step.recordings() == 1


def test_state_copies_and_attributes() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.extra = 7
    compiled = norch.compile(model)
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod." + name for name in model.state_dict()]
    assert [name for name, _ in compiled.named_parameters()] == ["_orig_mod." + n for n, _ in model.named_parameters()]
    assert compiled.extra == 7 and len(compiled) == 2 and compiled[0] is model[0] and list(compiled) == list(model)
    compiled.extra = 8
    assert model.extra == 8 and "extra" in dir(compiled)
    del compiled.extra
    assert not hasattr(model, "extra")
    with pytest.raises(AttributeError):
        compiled.nothing  # noqa: B018
    x = norch.randn(5, 3)
    for _ in range(5):
        compiled(x).sum().backward()
    assert compiled.recordings() == 1
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other._orig_mod is not model and bits(other.eval()(x)) == bits(copy.deepcopy(model).eval()(x))
    file = io.BytesIO()
    norch.save(compiled.state_dict(), file)
    file.seek(0)
    compiled.load_state_dict(norch.load(file))
    assert compiled.double() is compiled and compiled(x.double()).dtype is norch.float64


def test_options() -> None:
    assert norch.compile(reading, disable=True) is reading and norch.compile(reading, backend="eager") is reading
    module = norch.compile(nn.Linear(2, 2), disable=True)
    assert isinstance(module, nn.Module) and module(norch.ones(2)).shape == (2,)
    decorated = norch.compile(mode="reduce-overhead", dynamic=True)(reading)
    assert decorated.__name__ == "reading"
    with pytest.raises(RuntimeError, match="Either mode or options"):
        norch.compile(reading, mode="default", options={"a": 1})
    for bad in ({"mode": "fast"}, {"backend": "tvm"}, {"recompile_limit": 0}, {"recompile_limit": 1.5}):
        with pytest.raises(norch.ArgumentError, match="compile: "):
            norch.compile(reading, **bad)
    with pytest.raises(TypeError):
        norch.compile(3)
    few = norch.compile(lambda x: x * 2, recompile_limit=2)
    for n in (1, 2, 3):
        for _ in range(5):
            few(norch.ones(n))
    assert few.recordings() == 2


def test_threads() -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    compiled = norch.compile(model, fullgraph=True)
    xs = [norch.randn(32, 8) for _ in range(4)]
    wanted = [bits(norch.autograd.grad(model(x).sum(), list(model.parameters()))) for x in xs]
    found = {}

    def work(i):
        found[i] = [bits(norch.autograd.grad(compiled(xs[i]).sum(), list(model.parameters()))) for _ in range(40)]

    for _ in range(4):
        norch.autograd.grad(compiled(xs[0]).sum(), list(model.parameters()))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i] == [wanted[i]] * 40 for i in range(4))


def test_memory_is_given_back() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    compiled = norch.compile(model, fullgraph=True)
    x = norch.randn(4, 3)
    counts = []
    for _ in range(12):
        model.zero_grad()
        sum(compiled(x).sum() for _ in range(3)).backward()
        model.zero_grad()
        counts.append(lib.norch_live_storages())
    assert len(set(counts[6:])) == 1
    del compiled
    gc.collect()
    assert lib.norch_live_storages() < counts[-1]


def test_compiler_names() -> None:
    from norch import compiler

    @compiler.disable
    def outside(x):
        assert not compiler.is_exporting()
        return x + 1

    compiled = norch.compile(lambda x: outside(x) * 2)
    with pytest.warns(UserWarning, match="outside"):
        assert [compiled(norch.ones(1)).item() for _ in range(5)] == [4.0] * 5
    seen = []
    looking = norch.compile(lambda x: seen.append(compiler.is_compiling()) or F.relu(x))
    for _ in range(5):
        looking(norch.ones(2))
    assert seen == [False, True, True] and looking.recordings() == 1
    compiler.reset()
    assert looking.recordings() == 0 and compiler.list_backends() == ["inductor"]


def test_profile_is_of_the_functions_own_calls() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh())
    compiled = norch.compile(model, fullgraph=True)
    for _ in range(5):
        compiled(norch.ones(2, 3)).sum().backward()
    text = compiled.forward.profile(norch.ones(2, 3))
    assert "matmul" in text.splitlines()[1] and " us in 2 calls" in text.splitlines()[0]
    print(compiled.forward.program)
    compiled(norch.ones(2, 3)).sum().backward()


@pytest.mark.native("NumPy")
def test_a_tensor_outside_that_gets_a_graph() -> None:
    w, state = norch.ones(2, requires_grad=True), norch.zeros(2)

    def function(x):
        state.add_(w * x)
        return (state * 2).view(2)

    compiled = norch.compile(function)
    with pytest.warns(UserWarning, match="then has a graph"):
        for _ in range(6):
            found = []
            for f in (function, compiled):
                w.grad = None
                state.detach_().zero_()
                y = f(norch.ones(2))
                (y.sum() + state.sum()).backward()
                found.append([bits(y), bits(w.grad)])
            assert found[0] == found[1]
    assert compiled.recordings() == 0


def test_methods_and_nested_arguments() -> None:
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(norch.ones(2))

        @norch.compile(fullgraph=True)
        def forward(self, batch, *, power=1):
            return {"out": (batch["x"] * self.scale) ** power}

    a, b = Scaled(), Scaled()
    for power in (1, 3):
        for i in range(6):
            for model in (a, b):
                model.zero_grad()
                x = norch.tensor([1.0, 2.0 + i])
                out = model({"x": x}, power=power)["out"]
                out.sum().backward()
                assert out.tolist() == (x**power).tolist() and model.scale.grad.tolist() == (power * x**power).tolist()
    assert Scaled.forward.recordings() == 4


class Stumbles(norch.autograd.Function):
    fails = False

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if Stumbles.fails:
            raise KeyboardInterrupt
        return g * 2


def test_exceptions_while_recording() -> None:
    w = norch.ones(2, requires_grad=True)

    @norch.compile(fullgraph=True)
    def function(x):
        return Stumbles.apply(w * x).exp()

    function(norch.ones(2)).sum().backward()
    with pytest.raises(norch.ShapeError):
        function(norch.ones(3))
    Stumbles.fails = True
    with pytest.raises(KeyboardInterrupt):
        function(norch.ones(2)).sum().backward()
    Stumbles.fails = False
    assert not norch.compiler.is_compiling() and function.recordings() == 0
    for i in range(5):
        w.grad = None
        x = norch.ones(2) * i
        function(x).sum().backward()
        assert norch.allclose(w.grad, 2 * x * (2 * x).exp())
    assert function.recordings() == 1
    with pytest.raises(norch.ShapeError):
        function(norch.ones(3))


@pytest.mark.parametrize("others", [0, 5])
def test_a_kind_of_calls_that_is_recorded_in_vain_runs_normally(others):
    """Also if calls of another kind are replayed."""
    factor = [0.0]
    compiled = norch.compile(lambda x: x + 1 if len(x) == 3 else x * factor[0])
    for _ in range(others):
        compiled(norch.ones(3))
    with pytest.warns(UserWarning, match="12 calls in a row were recorded, and none was replayed"):
        for i in range(20):
            factor[0] = float(i)
            assert compiled(norch.ones(2)).tolist() == [i, i]


def test_a_write_to_the_only_tensor_that_backward_needs_is_noticed():
    w = norch.ones(2, requires_grad=True)
    compiled = norch.compile(lambda x: x * w)
    for call in range(6):
        x = norch.ones(2, requires_grad=True)
        out = compiled(x).sum()
        if call < 5:
            out.backward()
            assert x.grad.tolist() == [1, 1]
    with norch.no_grad():
        w.mul_(2)
    with pytest.raises(norch.Error, match="needs for its gradient"):
        out.backward()
