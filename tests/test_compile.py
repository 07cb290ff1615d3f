"""norch.compile: results and gradients are those of the function itself, bit for bit."""

import copy
import gc
import io
import pickle
import threading
import warnings

import pytest

import norch
from norch import nn, optim
from norch._lib import lib
from norch.nn import functional as F

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def bits(x):
    if isinstance(x, (tuple, list)):
        return [bits(part) for part in x]
    return (tuple(x.shape), str(x.dtype), x.detach().numpy().tobytes()) if isinstance(x, norch.Tensor) else x


def recordings(compiled):
    return (compiled.forward if isinstance(compiled, nn.Module) else compiled).recordings()


def trained(make, wrap, steps):
    """All that steps of training change: make() gives (module, a function of the step's number that gives inputs)."""
    norch.manual_seed(5)
    model, inputs = make()
    called = wrap(model)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    found = []
    for i in range(steps):
        given = inputs(i)
        out = called(*given)
        loss = sum(part.square().mean() for part in (out if isinstance(out, tuple) else (out,)))
        optimizer.zero_grad()
        loss.backward()
        found.append([bits(x) for x in (loss, *(x.grad for x in given if x.requires_grad))])
        found.append([bits(p.grad) for p in model.parameters()])
        optimizer.step()
        found.append([bits(x) for x in (*model.parameters(), *model.buffers())])
    return [*found, bits(norch.rand(2))], called


def mlp():
    layers = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 3), nn.LogSoftmax(1)
    return nn.Sequential(*layers), lambda i: (norch.randn(8, 6).requires_grad_(i % 2 == 0 and i < 0),)


def mlp_of_inputs():
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh()), lambda i: (norch.randn(8, 6, requires_grad=True),)


def convolution():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))
    return model, lambda i: (norch.randn(2, 1, 8, 8),)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 5)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return out, h, c


def recurrent():
    return Recurrent(), lambda i: (norch.randn(4, 2, 3),)


def transformer():
    model = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True)
    return model, lambda i: (norch.randn(2, 5, 8),)


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 6), nn.LayerNorm(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.norm(self.embedding(tokens)))


def tied():
    return Embedded(), lambda i: (norch.randint(0, 11, (2, 7)),)


@pytest.mark.parametrize("make", [mlp, mlp_of_inputs, convolution, recurrent, transformer, tied])
def test_training_is_that_of_the_module(make) -> None:
    eager, _ = trained(make, lambda model: model, 12)
    found, compiled = trained(make, lambda model: norch.compile(model, fullgraph=True), 12)
    for i, (a, b) in enumerate(zip(eager, found, strict=True)):
        assert a == b, i
    assert recordings(compiled) == 1


@pytest.mark.parametrize("make", [mlp, convolution])
def test_module_compile_works_in_place(make) -> None:
    eager, _ = trained(make, lambda model: model, 8)

    def in_place(model):
        names = list(model.state_dict())
        model.compile(fullgraph=True)
        assert list(model.state_dict()) == names
        return model

    found, model = trained(make, in_place, 8)
    assert eager == found and model.forward.recordings() == 1
    assert bits(copy.deepcopy(model).eval()(norch.ones(2, *((6,) if make is mlp else (1, 8, 8))))) == bits(
        model.eval()(norch.ones(2, *((6,) if make is mlp else (1, 8, 8))))
    )


def function_of_two(x, y):
    return (x * y).sin() + x, {"product": x * y, "count": 2}


def test_functions_nested_results_and_inputs_with_history() -> None:
    compiled = norch.compile(function_of_two, fullgraph=True)
    for i in range(8):
        x = norch.arange(4.0).add(i).requires_grad_()
        found = []
        for f in (function_of_two, compiled):
            a, more = f(x * 2, x.exp())
            assert more["count"] == 2
            grads = norch.autograd.grad(a.sum() + (more["product"] ** 2).sum(), x)
            found.append([bits(a), bits(more["product"]), bits(grads)])
        assert found[0] == found[1]
    assert compiled.recordings() == 1


def test_several_forwards_before_one_backward() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    compiled = norch.compile(model, fullgraph=True)
    for _ in range(8):
        xs = [norch.randn(4, 3) for _ in range(3)]
        found = []
        for f in (model, compiled):
            model.zero_grad()
            outs = [f(x) for x in xs]
            (outs[0].sum() * 2 + outs[2].exp().sum() + outs[1].square().sum()).backward()
            found.append([bits(outs), [bits(p.grad) for p in model.parameters()]])
        assert found[0] == found[1]
    assert recordings(compiled) == 1


def test_a_cell_in_a_loop() -> None:
    cell = nn.LSTMCell(3, 4)
    compiled = norch.compile(cell, fullgraph=True)
    for _ in range(8):
        xs = norch.randn(5, 2, 3)
        found = []
        for f in (cell, compiled):
            cell.zero_grad()
            h = c = norch.zeros(2, 4)
            for x in xs:  # the last c has no gradient
                h, c = f(x, (h, c))
            h.square().sum().backward()
            found.append([bits(h), [bits(p.grad) for p in cell.parameters()]])
        assert found[0] == found[1]
    assert recordings(compiled) >= 1


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x):
        h = self.body(x).relu()
        return self.a(h), self.b(h)


def test_results_without_a_gradient_leave_none() -> None:
    model = TwoHeads()
    compiled = norch.compile(model, fullgraph=True)
    for i in range(24):
        x, which = norch.randn(5, 3), (0, 1, 0, 0, 2)[i % 5]
        found = []
        for f in (model, compiled):
            model.zero_grad()
            a, b = f(x)
            (a.sum() if which == 0 else b.square().sum() if which == 1 else a.sum() + b.sum()).backward()
            found.append([bits(p.grad) for p in model.parameters()])
        assert found[0] == found[1], i
    assert recordings(compiled) == 1


def test_derivatives_of_derivatives_and_second_walks() -> None:
    w = norch.tensor([0.5, -1.5], requires_grad=True)

    def function(x):
        return (w * x).sin() * x

    compiled = norch.compile(function, fullgraph=True)
    for i in range(8):
        found = []
        for f in (function, compiled):
            x = norch.tensor([1.0, 2.0 + i], requires_grad=True)
            y = f(x * 1)
            (dx,) = norch.autograd.grad(y.sum(), x, create_graph=True)
            again = norch.autograd.grad(y.sum(), (x, w), retain_graph=True)
            third = norch.autograd.grad(y.sum(), (x, w), retain_graph=True)
            (ddx,) = norch.autograd.grad(dx.square().sum(), x)
            found.append(bits([y, dx, ddx, *again, *third]))
        assert found[0] == found[1]
    for _ in range(4):
        compiled(x).sum().backward()
    assert compiled.recordings() == 1
    y = compiled(x)
    y.sum().backward()
    with pytest.raises(norch.Error, match="CompiledFunctionBackward.*second time"):
        y.sum().backward()


def test_dropout_and_batch_norm_in_a_second_walk() -> None:
    def results(wrap):
        norch.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
        f, found = wrap(model), []
        for _ in range(6):
            y = f(norch.randn(4, 3))
            for _ in range(2):
                model.zero_grad()
                y.square().sum().backward(retain_graph=True)
                found.append([bits(x.grad) for x in model.parameters()] + [bits(x) for x in model.buffers()])
        return [*found, bits(norch.rand(3))]

    assert results(lambda model: model) == results(lambda model: norch.compile(model, fullgraph=True))


def test_changed_in_place_before_backward() -> None:
    w = norch.ones(3, requires_grad=True)
    compiled = norch.compile(lambda x: w * x, fullgraph=True)
    for _ in range(5):
        x = norch.ones(3)
        compiled(x).sum().backward()
    assert compiled.recordings() == 1
    for changed in (x, w):
        y = compiled(x)
        with norch.no_grad():
            changed.add_(1)
        if changed is w:
            y.sum().backward()  # the gradient of w needs x only
        else:
            with pytest.raises(norch.Error, match="changed in place"):
                y.sum().backward()
    y = compiled(x)
    y.mul_(3)  # a result is the caller's
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == (3 * x).tolist()


def test_modes_have_recordings_of_their_own() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    compiled = norch.compile(model, fullgraph=True)
    x = norch.randn(6, 3)
    for _ in range(5):
        compiled(x).sum().backward()
    for _ in range(5):
        compiled.eval()(x).sum().backward()
    assert not model.training and recordings(compiled) == 2
    with norch.no_grad():
        for _ in range(5):
            y = compiled(x)
            assert not y.requires_grad and bits(y) == bits(model(x))
    assert recordings(compiled) == 3
    compiled.train()
    assert model.training and model[1].training
    for p in model[0].parameters():
        p.requires_grad_(False)
    for _ in range(5):
        model.zero_grad()
        compiled(x).sum().backward()
        assert model[0].weight.grad is None and model[1].weight.grad is not None
    assert recordings(compiled) == 4
    assert bits(compiled(x.double().float()[:3])) is not None


def test_parameters_that_are_replaced() -> None:
    model = nn.Linear(3, 2)
    compiled = norch.compile(model, fullgraph=True)
    x = norch.randn(4, 3)
    for i in range(12):
        if i == 6:
            model.weight.data = norch.randn(2, 3)
        if i == 9:
            model.bias = nn.Parameter(norch.randn(2))
        found = []
        for f in (model, compiled):
            model.zero_grad()
            y = f(x)
            y.exp().sum().backward()
            found.append([bits(y), *(bits(p.grad) for p in model.parameters())])
        assert found[0] == found[1], i


def test_without_backward_a_recording_has_the_function_alone() -> None:
    model = nn.Linear(3, 2)
    compiled = norch.compile(model, fullgraph=True)
    x = norch.randn(4, 3)
    for _ in range(6):
        assert bits(compiled(x)) == bits(model(x))
    assert recordings(compiled) == 1 and len(compiled.forward.program) == 1
    for _ in range(6):
        model.zero_grad()
        compiled(x).sum().backward()
        first = [bits(p.grad) for p in model.parameters()]
        model.zero_grad()
        model(x).sum().backward()
        assert first == [bits(p.grad) for p in model.parameters()]
    assert len(compiled.forward.program) == 3


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
    with pytest.raises(norch.CaptureError, match="compile: Python reads the elements.*\n  at .*test_compile.py"):
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
    for bad in ({"mode": "fast"}, {"backend": "tvm"}, {"recompile_limit": 0}):
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
