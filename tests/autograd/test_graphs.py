"""Graphs: what they keep, for how long, and how they free themselves."""

import gc
import weakref

import numpy as np
import pytest
from conftest import live_storages
from functions import Cube, Exp, Split

import norch
from norch._binding.library import lib
from norch.autograd.levels import zeros_of
from norch.ops import view

# ---- what is kept, and for how long --------------------------------------------------------------------------------

MAKERS = {
    "exp": lambda x: x.exp(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "sqrt": lambda x: x.sqrt(),
    "relu": lambda x: x.relu(),
    "mul": lambda x: x * x,
    "div": lambda x: x / (x + 1),
    "pow": lambda x: x**2.5,
    "sum": lambda x: x.sum(0, keepdim=True),
    "prod": lambda x: x.prod(),
    "max": lambda x: x.max(0)[0],
    "amax": lambda x: x.amax(),
    "logsumexp": lambda x: x.logsumexp(1),
    "std": lambda x: x.std(),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "matmul": lambda x: x @ x.T,
    "cat": lambda x: norch.cat([x, x]),
    "stack": lambda x: norch.stack([x, x]),
    "where": lambda x: norch.where(x > 1, x, x * 2),
    "clamp": lambda x: x.clamp(0.5, 1.5),
    "gather": lambda x: x.gather(0, norch.zeros(1, 3, dtype=norch.int64)),
    "clone": lambda x: x.clone(),
    "cast": lambda x: x.float(),
    "view": lambda x: (x * 1).view(-1)[2:].T,
    "expand": lambda x: x[:, :1].expand(3, 5),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "in place": lambda x: (x * 1).mul_(x).exp_(),
    "through a view": lambda x: (y := x * 1, y[0].mul_(2), y)[2],
    "through views of views": lambda x: (y := x * 1, v := y[1:], v.T[0].exp_(), v)[3],
    "stale view": lambda x: (y := x * 1, v := y[0], y.mul_(x), v)[3],
    "copy into": lambda x: (z := norch.zeros(3, 3, dtype=norch.float64), z[0].copy_(x[1]), z)[2],
    "Function": lambda x: Cube.apply(x),
    "Function saving its output": lambda x: Exp.apply(x),
    "several outputs": lambda x: Split.apply(x, 2.0)[1],
    "hook": lambda x: (y := x * 1, y.register_hook(lambda g: g * 2), y)[2],
    "retain_grad": lambda x: (y := x * 1, y.retain_grad(), y)[2],
    "linear": lambda x: norch.nn.functional.linear(x, x, x[0]),
    "cross_entropy": lambda x: norch.nn.functional.cross_entropy(x, norch.tensor([0, 1, 2])),
    "mse": lambda x: norch.nn.functional.mse_loss(x, x.detach() * 2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_graphs_free_themselves(name):
    """Without the cycle collector: reference counts alone bring everything back, walked or not."""
    make = MAKERS[name]
    x = norch.tensor(np.linspace(0.5, 2.0, 9).reshape(3, 3), requires_grad=True)
    make(x).sum().backward()  # numbers that are kept for reuse are made here
    x.grad = None
    gc.collect()
    gc.disable()
    try:
        before = live_storages()
        for walk in ("no", "backward", "retain", "create_graph"):
            y = make(x)
            gone = weakref.ref(y)
            node = weakref.ref(y.grad_fn)
            if walk == "create_graph":
                (g,) = norch.autograd.grad(y.sum(), [x], create_graph=True)
                del g
            elif walk != "no":
                y.sum().backward(retain_graph=walk == "retain")
                x.grad = None
            del y
            assert gone() is None and node() is None, walk
            assert live_storages() == before, walk
    finally:
        gc.enable()


SIZE = 8 * 1000  # bytes of one tensor in the chains below


@pytest.mark.parametrize(
    "step, kept",
    [
        (lambda y: y + 1, 0),
        (lambda y: y - 2, 0),
        (lambda y: -y, 0),
        (lambda y: y * 3, 0),
        (lambda y: y / 2, 0),
        (lambda y: y.view(10, 100).T.T.reshape(1000), 0),
        (lambda y: y.exp(), 1),
        (lambda y: y.tanh(), 1),
        (lambda y: y.sin(), 1),
        (lambda y: y * y, 1),
        (lambda y: y.relu(), 1),
        (lambda y: y.clone(), 0),
        (lambda y: y + y, 0),
        (lambda y: y**2, 1),
    ],
)
def test_nodes_keep_only_what_the_derivative_needs(step, kept):
    x = norch.full((1000,), 0.1, dtype=norch.float64, requires_grad=True)
    y = step(x * 1)
    before = lib.norch_live_bytes()
    for _ in range(10):
        y = step(y)
    grown = (lib.norch_live_bytes() - before) / SIZE
    assert abs(grown - 10 * kept) < 0.5, f"{grown / 10} tensors a step"


def test_constants_are_not_saved():
    x = norch.ones(1000, dtype=norch.float64, requires_grad=True)
    before = lib.norch_live_bytes()
    y = x * norch.ones(1000, dtype=norch.float64)  # needs the constant, not x
    z = norch.ones(1000, dtype=norch.float64) + x
    assert (lib.norch_live_bytes() - before) / SIZE < 3.1
    del y, z


def test_what_was_saved_goes_as_backward_passes():
    x = norch.ones(1000, dtype=norch.float64, requires_grad=True)
    y = x
    for _ in range(20):
        y = y.exp().tanh()
    loss = y.sum()
    del y
    before = lib.norch_live_bytes()
    loss.backward()
    assert lib.norch_live_bytes() - before < -30 * SIZE
    assert loss.grad_fn is not None


def test_backward_needs_little_memory_at_once():
    """The gradient of each step is freed once it has been handed on."""
    x = norch.ones(1000, dtype=norch.float64, requires_grad=True)
    y = x
    for _ in range(50):
        y = y * 1.01
    most = []
    y.register_hook(lambda g: most.append(lib.norch_live_bytes()))
    z = x * 2
    z.register_hook(lambda g: most.append(lib.norch_live_bytes()))
    (y.sum() + z.sum()).backward()
    assert max(most) - min(most) < 5 * SIZE


def test_parts_cost_no_whole_gradient_each(monkeypatch):
    """The gradients of slices are added into one gradient of the whole, for leaves and for results, and are right."""
    wholes = []
    monkeypatch.setattr(view, "zeros_of", lambda meta, like: wholes.append(meta) or zeros_of(meta, like))
    leaf = norch.zeros(20, 3, requires_grad=True)
    whole = leaf * 2
    sum((whole[i] * float(i + 1)).sum() + leaf[i].sum() for i in range(20)).backward()
    assert leaf.grad[:, 0].tolist() == [2.0 * (i + 1) + 1 for i in range(20)]
    assert len(wholes) == 2
    wholes.clear()
    (found,) = norch.autograd.grad([part.sum() * float(i + 1) for i, part in enumerate(leaf.unbind(0))], leaf)
    assert found[:, 0].tolist() == [float(i + 1) for i in range(20)] and len(wholes) == 1
    x = norch.arange(6.0, requires_grad=True)
    y = x * 1
    y.retain_grad()
    first, second = y.split(3)
    (first * second + y[::2] * y[0]).sum().backward()
    assert y.grad.tolist() == x.grad.tolist() == [9.0, 4.0, 5.0, 0.0, 1.0, 2.0]


def test_a_gradient_that_others_hold_is_not_added_to():
    x = norch.ones(4, requires_grad=True)
    y = x * 1
    seen = []
    z = y.clone()
    z.register_hook(seen.append)
    (z.sum() + y[:2].sum() + y[2:].sum() * 3).backward()
    assert seen[0].tolist() == [1.0] * 4 and x.grad.tolist() == [2.0, 2.0, 4.0, 4.0]
    kept = x.grad
    given = norch.ones(4)
    x.grad = None
    w = x * 1
    norch.autograd.backward([w, w[:2]], [given, norch.ones(2)])
    assert given.tolist() == [1.0] * 4 and x.grad.tolist() == [2.0, 2.0, 1.0, 1.0] and kept.tolist() == [2, 2, 4, 4]


def test_what_does_not_lead_to_an_input_is_not_walked():
    class Closed(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("walked")

    y = norch.ones(1, requires_grad=True)
    closed = Closed.apply(norch.ones(1, requires_grad=True))
    assert norch.autograd.grad(closed, y, allow_unused=True) == (None,)
    assert norch.autograd.grad((closed, y * 2), y, allow_unused=True)[0].tolist() == [2]
    with pytest.raises(norch.Error, match="inputs is empty"):
        norch.autograd.grad(y * 2, ())


def test_retained_gradients_are_counted_once_and_have_memory_of_their_own():
    w, g = norch.ones(2, requires_grad=True), norch.ones(2)
    m = w * 3
    m.retain_grad()
    (m * m).sum().backward(inputs=[m])
    assert m.grad.tolist() == [6, 6] and w.grad is None
    m = w * 3
    k = m + 0
    m.retain_grad()
    k.retain_grad()
    k.sum().backward()
    k.grad.zero_()
    assert m.grad.tolist() == [1, 1]
    m = w * 3
    m.backward(g, inputs=[m])
    m.grad.mul_(5)
    assert m.grad.tolist() == [5, 5] and g.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_save_no_tensor(torch, name):
    for m in (norch, torch):
        for in_place in (False, True):
            x = m.ones(3, 4, requires_grad=True)
            y = getattr(x + 0, name + "_")(1) if in_place else getattr(x, name)(1)
            loss = y.sum()
            loss.backward()
            loss.backward()
            assert x.grad.tolist() == (getattr(m.ones(3, 4), name)(1) * 2).tolist()
        assert getattr(x, name)(-1).grad_fn._saved_diagonal in (-1, 2**64 - 1)
        second = m.func.hessian(lambda x, m=m: (getattr(m, name)(x) ** 3).sum())(m.ones(2, 2))
        assert second.reshape(4, 4).sum().item() == 18
