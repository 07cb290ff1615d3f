"""norch.capture and norch.compile notice that a tensor from outside the function has got another shape, strides or
dtype over the same memory."""

import copy

import pytest

import norch
from norch import nn, optim

pytestmark = pytest.mark.host


def square(**options):
    return norch.tensor([[1.0, 2.0], [3.0, 4.0]], **options)


def as_integers(t):
    t.data = t.data.view(norch.int32)


def cut(t):
    t.data = t.data[:1]


def turned(t):
    t.data = t.data.t()


CHANGES = {
    "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(0, 1),
    "swapaxes_": lambda t: t.swapaxes_(0, 1),
    "unsqueeze_": lambda t: t.unsqueeze_(1),
    "as_strided_": lambda t: t.as_strided_((2, 2), (1, 1)),
    "data transposed": turned,
    "data cut": cut,
    "data of another dtype": as_integers,
}


class Holder(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.register_buffer("t", t)

    def forward(self, x):
        return x + self.t


def from_closure(t):
    return lambda x: x + t


def from_list(t):
    held = {"tensors": [t]}
    return lambda x: x + held["tensors"][0]


def from_buffer(t):
    return Holder(t)


def by_shape(t):
    return lambda x: x * t.shape[-1] + len(t)


def by_strides(t):
    return lambda x: x * t.stride(0) + t.ndim


def by_dtype(t):
    return lambda x: x.sum() if t.dtype == norch.int32 else x * 2


@pytest.mark.parametrize("wrap", [norch.capture, norch.compile])
@pytest.mark.parametrize("make", [from_closure, from_list, from_buffer, by_shape, by_strides, by_dtype])
@pytest.mark.parametrize("change", CHANGES)
def test_another_header_over_the_same_memory(wrap, make, change):
    t = square()
    eager = make(t)
    wrapped, x = wrap(eager), norch.ones(1, 2)
    for _ in range(5):
        wrapped(x)
    CHANGES[change](t)
    for _ in range(5):
        result, right = wrapped(x), eager(x)
        assert (result.dtype, result.tolist()) == (right.dtype, right.tolist())


def steps(model, optimizer, between, wrap, accumulate):
    def step(x):
        if not accumulate:
            optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    found, run = [], wrap(step)
    for i in range(12):
        if i == 6:
            between(model, optimizer)
        found.append(run(norch.full((1, 2), 1.0 + i)).item())
        found.append(model.weight.grad.tolist() if model.weight.grad is not None else None)
        found.append(model.weight.tolist())
    return found


def turn_weight(model, optimizer):
    model.weight.data = model.weight.data.t()


def turn_gradient(model, optimizer):
    model.weight.grad.t_()


def replace_gradient(model, optimizer):
    model.weight.grad = model.weight.grad.t()


def turn_state(model, optimizer):
    optimizer.state[model.weight]["exp_avg"].t_()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("between", [turn_weight, turn_gradient, replace_gradient, turn_state])
def test_another_header_in_a_training_step(between, accumulate):
    results = []
    for wrap in (lambda step: step, norch.capture):
        norch.manual_seed(0)
        model = nn.Linear(2, 2, bias=False)
        results.append(steps(model, optim.Adam(model.parameters(), lr=0.1), between, wrap, accumulate))
    assert results[0] == results[1]


def test_another_header_of_a_compiled_models_weight():
    norch.manual_seed(0)
    model = nn.Linear(2, 2, bias=False)
    other = copy.deepcopy(model)
    compiled, x = norch.compile(other), square(requires_grad=True)
    for i in range(10):
        results = []
        for one, run in ((model, model), (other, compiled)):
            if i == 5:
                turn_weight(one, None)
            x.grad = None
            (run(x) ** 2).sum().backward()
            results.append((x.grad.tolist(), one.weight.grad.tolist()))
        assert results[0] == results[1]


@pytest.mark.filterwarnings("ignore:capture. <lambda> changes Python")
def test_a_header_that_comes_back_is_replayed_again():
    t, seen = square(), []
    f = norch.capture(lambda x: seen.append(1) or x @ t)

    for _ in range(3):
        for _ in range(4):
            f(norch.ones(1, 2))
        t.t_()
    calls = len(seen)
    assert f.recordings() == 2
    for _ in range(4):
        assert f(norch.ones(1, 2)).tolist() == (norch.ones(1, 2) @ t).tolist()
        t.t_()
    assert len(seen) == calls


@pytest.mark.filterwarnings("ignore:capture. writing changes Python")
@pytest.mark.parametrize("reads", [True, False])
def test_another_header_of_a_tensor_that_the_last_call_left(reads):
    def reading(x):
        holder["last"] = x * 2
        return holder["last"].sum(0) * holder["last"].shape[0]

    def writing(x):
        holder["last"] = x * 2
        return x.sum(0)

    f = reading if reads else writing
    results = []
    for wrap in (lambda f: f, norch.capture):
        holder = {"last": norch.zeros(2, 1)}
        run, found = wrap(f), []
        for i in range(8):
            found += [run(square()[:, :1] + i).tolist(), holder["last"].tolist()]
            if i == 5:
                holder["last"].t_()
        results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("change", [lambda t: t.t_(), lambda t: t.unsqueeze_(0), turned])
def test_a_view_in_place_of_a_tensor_is_refused(change):
    t = square()

    def f(x):
        change(t)
        return x + t

    captured = norch.capture(f)
    captured(norch.ones(2, 2))
    with pytest.raises(norch.CaptureError, match="another shape or strides.*take a view of it, such as"):
        captured(norch.ones(2, 2))
