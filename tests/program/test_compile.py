"""norch.compile: results and gradients are those of the function itself, bit for bit."""

import copy
import warnings

import pytest

import norch
from norch import nn, optim

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


@pytest.mark.parametrize("join", [lambda a, b: a + b, lambda a, b: a + b.t(), lambda a, b: norch.cat([a, b]).sum(0)])
def test_gradients_from_one_tensor_are_written_to_apart(join) -> None:
    found = []
    for wrap in (lambda f: f, norch.compile):
        function, grads = wrap(lambda a, b: join(a, b) * 1.5), []
        a, b = (norch.ones(3, 3).requires_grad_() for _ in range(2))
        for i in range(7):
            if i % 3 == 1:
                a.grad = b.grad = None
            function(a, b).sum().backward()
            a.grad.mul_(10)
            grads.append([a.grad.tolist(), b.grad.tolist()])
        found.append(grads)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "f", [lambda w: w.sum() * 2, lambda w: w[:1].sum(1) * 2, lambda w: norch.cat([w, w * 0]).sum()]
)
def test_gradients_that_are_expanded_or_parts_are_added_to(f) -> None:
    found = []
    for wrap in (lambda f: f, norch.compile):
        function, grads, w = wrap(f), [], norch.ones(2, 3).requires_grad_()
        for i in range(8):
            if i % 3 == 1:
                w.grad = None
            function(w).sum().backward()
            grads.append((w.grad.tolist(), w.grad.stride()))
        found.append(grads)
    assert found[0] == found[1]


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
