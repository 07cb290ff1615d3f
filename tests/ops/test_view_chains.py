"""Views of views of views: memory that does not grow, and the gradients of writes through the last of them."""

import gc

import numpy as np
import pytest

import norch
from norch.autograd import view_history

pytestmark = pytest.mark.host

TURNS = {
    "view": lambda x: x.view(10, 10).view(100),
    "reshape": lambda x: x.reshape(10, 10).reshape(-1),
    "view_as": lambda x: x.view_as(x),
    "reshape_as": lambda x: x.reshape_as(x),
    "slice": lambda x: x[:],
    "ellipsis": lambda x: x[...],
    "reversed": lambda x: x[::-1],
    "new axis": lambda x: x[None][0],
    "unsqueeze": lambda x: x.unsqueeze(0).squeeze(0),
    "flatten": lambda x: x.view(10, 10).flatten(),
    "unflatten": lambda x: x.unflatten(0, (10, 10)).ravel(),
    "transpose": lambda x: x.view(10, 10).T.transpose(0, 1).view(100),
    "permute": lambda x: x.view(2, 5, 10).permute(2, 0, 1).movedim(0, 2).view(100),
    "expand": lambda x: x.expand(2, 100).select(0, 1),
    "narrow": lambda x: x.narrow(0, 0, 100),
    "diagonal": lambda x: x.expand(100, 100).diagonal(),
    "unfold": lambda x: x.unfold(0, 100, 1).squeeze(0),
    "chunk": lambda x: x.chunk(1)[0],
    "split": lambda x: x.split(100)[0],
    "unbind": lambda x: x.unsqueeze(0).unbind()[0],
    "as_strided": lambda x: x.as_strided((100,), (1,)),
    "swapaxes": lambda x: x.view(10, 10).swapaxes(0, 1).adjoint().view(100),
    "complex": lambda x: norch.view_as_real(norch.view_as_complex(x.view(50, 2))).view(100),
    "dtype": lambda x: x.view(norch.int32).view(norch.float32),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "alias": lambda x: x.view_as(x).detach(),
    "contiguous": lambda x: x.contiguous()[:],
    "unsqueeze_": lambda x: x.unsqueeze_(0).squeeze_(0),
    "transpose_": lambda x: x.transpose_(0, 0).t_(),
    "as_strided_": lambda x: x.as_strided_((100,), (1,)),
    "of itself in place": lambda x: x.view(100).unsqueeze_(0).squeeze_(0),
    "write": lambda x: x[:].add_(1),
    "write by index": lambda x: (x.__setitem__(slice(0, 2), 0.0), x[:])[1],
    "leaf": lambda x: x.detach().requires_grad_().detach(),
    "leaf in place": lambda x: x.detach_()[:],
    "Parameter": lambda x: norch.nn.Parameter(x).detach(),
    "real": lambda x: x.real[:],
}


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "no_grad"])
@pytest.mark.parametrize("name", TURNS)
def test_views_of_views_keep_their_memory(name, recorded):
    turn, x = TURNS[name], norch.ones(100)

    def go(turns, x):
        with norch.set_grad_enabled(recorded):
            for _ in range(turns):
                x = turn(x)
        gc.collect()
        return x, len(gc.get_objects())

    x, before = go(100, x)
    x, after = go(1_000, x)
    assert after - before < 100


def test_views_of_a_leaf_that_leave_the_graph_keep_their_memory():
    x = norch.ones(100, requires_grad=True)
    with norch.no_grad():
        y = x
        for _ in range(100):
            y = y.view(10, 10)[:].view(100)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(1000):
            y = y.view(10, 10)[:].view(100)
    z = x
    for _ in range(1000):
        z = z.detach()[:].requires_grad_()
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def test_a_tensor_in_a_loop_of_views_of_complex_numbers():
    x = norch.view_as_real(norch.ones(50, dtype=norch.complex64))
    for _ in range(100):
        x = x.view(100).view(50, 2)
    assert x._view.view_fns[3] <= view_history.MOST_VIEW_FNS and x._base.dtype is norch.complex64


BASES = {
    "contiguous": lambda: norch.arange(24.0).view(2, 3, 4).clone(),
    "transposed": lambda: norch.from_numpy(np.arange(24.0, dtype=np.float32).reshape(4, 3, 2).T),
    "part": lambda: norch.from_numpy(np.arange(96.0, dtype=np.float32).reshape(4, 3, 8)[1:3, :, ::2]),
    "reversed": lambda: norch.from_numpy(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)[::-1, :, ::-1]),
    "of size 1": lambda: norch.from_numpy(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)[:1]),
}
VIEWS = [
    lambda x: x.transpose(0, -1),
    lambda x: x.unsqueeze(1).squeeze(1),
    lambda x: x[::-1],
    lambda x: x[:],
    lambda x: x.permute(*reversed(range(x.ndim))),
    lambda x: x.narrow(0, 0, x.shape[0]),
    lambda x: x.select(0, 0)[None] if x.shape[0] > 1 and x.numel() > 8 else x[:],
    lambda x: x.flatten(1) if x.ndim > 1 and x.is_contiguous() else x[...],
    lambda x: x[..., : max(1, x.shape[-1] - 1)] if x.numel() > 12 else x[:],
]


@pytest.mark.parametrize("most", [1, 2, 3, 32])
@pytest.mark.parametrize("name", BASES)
def test_gradients_of_writes_do_not_depend_on_how_many_steps_are_kept(monkeypatch, name, most):
    def gradients(limit, seed):
        monkeypatch.setattr(view_history, "MOST_VIEW_FNS", limit)
        pick = np.random.default_rng(seed)
        leaf = norch.ones(BASES[name]().shape, requires_grad=True)
        start = BASES[name]()
        base = start if seed % 2 else leaf * 2
        path = pick.integers(0, len(VIEWS), 40)
        views = [base]
        for i in path:
            views.append(VIEWS[i](views[-1]))
        weight = norch.full(views[-1].shape, 3.0, requires_grad=True)
        views[-1].mul_(weight)
        other = views[20]
        other.pow_(2)
        (
            norch.arange(1.0, 1 + base.numel()).view(base.shape) * base + views[10].sum() + views[-1].sum()
        ).sum().backward()
        return weight.grad, leaf.grad, base.detach().clone()

    for seed in range(12):
        for ours, whole in zip(gradients(most, seed), gradients(10**9, seed), strict=True):
            assert (ours is None and whole is None) or norch.equal(ours, whole)


def test_gradients_of_long_chains_match_torch(torch):
    def gradients(lib):
        x = lib.ones(3, 4, requires_grad=True)
        base = x * 2
        y = base
        for _ in range(50):
            y = y.transpose(0, 1).unsqueeze(0)[0].t()[:]
        part = y[1:, 1:3]
        for _ in range(50):
            part = part.transpose(0, 1).view_as(part.transpose(0, 1)).t()
        part.mul_(lib.arange(1.0, 5.0).view(2, 2))
        loss = (base**3).sum() + (y[:2] ** 2).sum()
        (slope,) = lib.autograd.grad(loss, x, create_graph=True)
        return [slope.tolist(), lib.autograd.grad(slope.sum(), x)[0].tolist()]

    assert gradients(norch) == gradients(torch)


def test_a_write_through_a_long_chain_from_a_base_that_has_other_strides_by_now():
    base = norch.arange(6.0).view(2, 3).clone()
    view = base
    for _ in range(40):
        view = view[:]
    base.t_()
    weight = norch.ones(2, 3, requires_grad=True)
    view.mul_(weight)
    (base * norch.arange(6.0).view(3, 2)).sum().backward()
    assert weight.grad.tolist() == [[0.0, 2.0, 8.0], [3.0, 12.0, 25.0]]
