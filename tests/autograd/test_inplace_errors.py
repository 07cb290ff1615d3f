"""Writes in place that autograd forbids, and what they leave behind."""

import numpy as np
import pytest

import norch
from norch.nn import functional as F  # noqa: N812

START = np.linspace(0.5, 2.0, 12).reshape(3, 4)

# ---- errors --------------------------------------------------------------------------------------------------------

CHANGED = {
    "mul saves its factors": lambda x, y: ((y * y), y.add_(1)),
    "exp saves its result": lambda x, y: ((z := y.exp()), z.add_(1)),
    "sigmoid saves its result": lambda x, y: ((z := y.sigmoid()), z.mul_(2)),
    "log saves its input": lambda x, y: (y.log(), y.zero_()),
    "a view of it is written to": lambda x, y: (y.sin(), y[0].zero_()),
    "its base is written to": lambda x, y: (y[0].sin(), y.zero_()),
    "a sibling view is written to": lambda x, y: (y[0].sin(), y[:, 0].zero_()),
    "through detach": lambda x, y: (y.sin(), y.detach().zero_()),
    "under no_grad": lambda x, y: (y.sin(), no_grad_zero(y)),
    "a leaf changed by hand": lambda x, y: (x.sin(), no_grad_zero(x)),
    "matmul saves both": lambda x, y: (y @ y.T, y.add_(1)),
    "prod saves its input": lambda x, y: (y.prod(), y.add_(1)),
    "pow": lambda x, y: (y**3, y.add_(1)),
    "div": lambda x, y: (x / y, y.add_(1)),
    "setitem": lambda x, y: (y.cos(), y.__setitem__(0, 1.0)),
    "layer_norm, which has one gradient function": lambda x, y: (F.layer_norm(y, (4,)), y.zero_()),
    "conv1d saves its weight": lambda x, y: (F.conv1d(x[None], y[None, :, :2]), y.zero_()),
    "cdist saves both": lambda x, y: (norch.cdist(y, y * 2), y.zero_()),
    "by another operation": lambda x, y: (y.cos(), y.exp_()),
}


def no_grad_zero(x):
    with norch.no_grad():
        x.zero_()


@pytest.mark.parametrize("name", CHANGED)
def test_a_saved_tensor_that_was_changed_raises(name):
    x = norch.tensor(START, requires_grad=True)
    out = CHANGED[name](x, x * 1.5)[0]
    with pytest.raises(norch.Error, match="in place"):
        out.sum().backward()


UNNEEDED = {
    "add": lambda x, y: (y + 1, y.mul_(2)),
    "sum": lambda x, y: (y.sum(), y.mul_(2)),
    "mul by a number": lambda x, y: (y * 3, y.mul_(2)),
    "mul by a constant": lambda x, y: (y * norch.ones(4, dtype=norch.float64), y.mul_(2)),
    "exp input": lambda x, y: (y.exp(), y.mul_(2)),
    "mean": lambda x, y: (y.mean(), y.zero_()),
    "view": lambda x, y: (y.T.reshape(2, 6) + 0, y.mul_(2)),
    "result of mul": lambda x, y: (z := y * y, z.add_(1)),
    "neg": lambda x, y: (-y, y.mul_(2)),
    "matmul by a constant": lambda x, y: (y @ norch.ones(4, 2, dtype=norch.float64), y.mul_(2)),
    "cat": lambda x, y: (norch.cat([y, y]), y.mul_(2)),
    "cast": lambda x, y: (y.float(), y.mul_(2)),
    "clone": lambda x, y: (y.clone(), y.mul_(2)),
    "data": lambda x, y: (y.sin(), y.data.mul_(2)),
    "other memory": lambda x, y: (y.sin(), y.clone().mul_(2)),
    "bias of batch_norm": lambda x, y: (F.batch_norm(x, None, None, None, b := y[0] * 1, True), b.add_(1)),
    "bias of group_norm": lambda x, y: (F.group_norm(x, 2, None, b := y[0] * 1), b.add_(1)),
    "bias of instance_norm": lambda x, y: (F.instance_norm(x[None], None, None, None, b := y[:, 0] * 1), b.add_(1)),
    "bias of layer_norm": lambda x, y: (F.layer_norm(x, (4,), None, b := y[0] * 1), b.add_(1)),
}


@pytest.mark.parametrize("name", UNNEEDED)
def test_a_change_of_what_is_not_needed_is_no_error(name):
    x = norch.tensor(START, requires_grad=True)
    out = UNNEEDED[name](x, x * 1.5)[0]
    out.sum().backward(create_graph=True)
    assert x.grad is not None


@pytest.mark.parametrize("deeper", [False, True])
def test_writing_into_a_view_of_a_leaf_that_is_a_view_raises(deeper):
    """The leaf would be one no longer, and keep its old .grad."""
    whole = norch.ones(2, 3)
    leaf = whole[:, 0].requires_grad_()
    view = leaf[:][0] if deeper else leaf[0]
    for write in (
        lambda: view.mul_(2),
        lambda: view.copy_(norch.tensor(3.0)),
        lambda: norch.neg(norch.ones(()), out=view),
        lambda: leaf.__setitem__(0, 5.0),
        lambda: view.mul_(leaf.sum()),
    ):
        with pytest.raises(norch.Error, match="leaf|requires grad"):
            write()
    assert whole.tolist() == [[1, 1, 1], [1, 1, 1]] and leaf.is_leaf and not whole.requires_grad
    with norch.no_grad():
        view.mul_(2)
    whole[:, 1].mul_(3)
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [4, 2]


def test_writing_into_a_leaf_raises():
    x = norch.tensor(START, requires_grad=True)
    for write in (
        lambda: x.add_(1),
        lambda: x.zero_(),
        lambda: x.copy_(norch.zeros(3, 4)),
        lambda: x[0].add_(1),
        lambda: x.T.exp_(),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__((slice(None), 0), norch.zeros(3)),
        lambda: x.fill_(1),
        lambda: x.clamp_(0, 1),
        lambda: x.view(-1)[0].zero_(),
    ):
        with pytest.raises(norch.Error, match="leaf"):
            write()
    assert (x.detach().numpy() == START).all()
    with norch.no_grad():
        x[0] += 1
        x.mul_(2)
    assert x.is_leaf and x.requires_grad and x[1, 0].item() == 2 * START[1, 0]
    x.data.zero_()
    assert x.sum().item() == 0


def test_a_view_taken_under_no_grad(torch):
    """PyTorch refuses to record a write through it; silently losing the gradient would be worse."""
    y = norch.ones(3, requires_grad=True) * 2
    with norch.no_grad():
        v = y[0]
    with pytest.raises(norch.Error):
        v.mul_(norch.ones((), requires_grad=True) * 3)


RECORDED_WRITES = {
    "add_": lambda v, w: v.add_(w),
    "iadd": lambda v, w: v.__iadd__(w),
    "copy_": lambda v, w: v.copy_(w),
    "setitem": lambda v, w: v.__setitem__(0, w[0]),
    "setitem of all": lambda v, w: v.__setitem__(slice(None), w),
    "index_put_": lambda v, w: v.__setitem__(norch.tensor([0, 1]), w),
    "masked_fill_": lambda v, w: v.masked_fill_(v == 0, w[0]),
    "scatter_add_": lambda v, w: v.scatter_add_(0, norch.tensor([1, 0]), w),
    "put_": lambda v, w: v.put_(norch.tensor([1, 0]), w),
    "lerp_": lambda v, w: v.lerp_(w, 0.5),
    "a view of the view": lambda v, w: v[:1].add_(w[:1]),
}


@pytest.mark.parametrize("name", RECORDED_WRITES)
def test_the_base_of_a_view_taken_under_no_grad_loses_no_gradient(name):
    base, w = norch.zeros(3, 2), norch.ones(2, requires_grad=True)
    with norch.no_grad():
        v = base[0]
    with pytest.raises(norch.Error, match="view taken under no_grad"):
        RECORDED_WRITES[name](v, w)
    assert base.sum().item() == 0 and not base.requires_grad
    RECORDED_WRITES[name](v, w.detach())  # which needs no gradient
    with norch.no_grad():
        RECORDED_WRITES[name](v, w)
    RECORDED_WRITES[name](base[0], w)
    assert base.requires_grad and base[0].sum().item() > 0


def test_views_that_functions_return_from_under_no_grad_may_be_written_to():
    class Halves(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 1).view(2, 2)

        @staticmethod
        def backward(ctx, g):
            return g.reshape(4)

    x, w = (norch.ones(n, requires_grad=True) for n in (4, 2))
    y = Halves.apply(x)
    y[0].mul_(w * 3)
    y.t_()
    (y * y).sum().backward()
    assert y.tolist() == [[3, 1], [3, 1]] and x.grad.tolist() == [18, 18, 2, 2] and w.grad.tolist() == [18, 18]


def test_failed_writes_change_nothing():
    x = norch.tensor(START, requires_grad=True)
    y = x * 2
    before, node, version = y.tolist(), y.grad_fn, y._version
    for write in (
        lambda: y.add_(norch.zeros(5, dtype=norch.float64)),
        lambda: y.copy_(norch.zeros(2, 4)),
        lambda: y.__setitem__(0, norch.zeros(3)),
        lambda: y[0].mul_(norch.zeros(3)),
        lambda: y.add_("a"),
    ):
        with pytest.raises((ValueError, TypeError)):
            write()
    assert y.tolist() == before and y.grad_fn is node and y._version == version
    (y * y).sum().backward()


def test_integers_in_place():
    x = norch.arange(5)
    x += 2
    x //= 2
    x[1:3] = 9
    assert x.tolist() == [1, 9, 9, 2, 3]
    with pytest.raises(ZeroDivisionError):
        x //= 0
    with pytest.raises(ZeroDivisionError):
        x %= norch.tensor([1, 1, 0, 1, 1])
    assert x.tolist() == [1, 9, 9, 2, 3]


def test_mixed_dtypes_in_place(torch):
    for left in ("uint8", "int32", "int64", "float32", "float64", "bool"):
        for right in ("uint8", "int32", "int64", "float32", "float64", "bool"):
            ours, theirs = norch.ones(2, dtype=getattr(norch, left)), torch.ones(2, dtype=getattr(torch, left))
            try:
                theirs.mul_(torch.ones(2, dtype=getattr(torch, right)))
            except RuntimeError:
                with pytest.raises(TypeError):
                    ours.mul_(norch.ones(2, dtype=getattr(norch, right)))
            else:
                ours.mul_(norch.ones(2, dtype=getattr(norch, right)))
                assert ours.tolist() == theirs.tolist() and ours.dtype.name == left


def test_a_gradient_is_not_shared_with_what_is_written_to():
    x = norch.ones(3, requires_grad=True)
    y = norch.ones(3, requires_grad=True)
    given = norch.tensor([1.0, 2.0, 3.0])
    (x + y).backward(given)
    x.grad.mul_(10)
    assert y.grad.tolist() == [1, 2, 3] and given.tolist() == [1, 2, 3]
    z = norch.ones(3, requires_grad=True)
    z.backward(given)
    z.grad.zero_()
    assert given.tolist() == [1, 2, 3]
    z.grad = None
    (z.view(3, 1) * 1).sum().backward()
    w = norch.ones(2, 2, requires_grad=True)
    w.T.backward(g := norch.ones(2, 2))
    w.grad.zero_()
    assert g.sum().item() == 4


def test_accumulation_reuses_the_memory_of_grad():
    x = norch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    place, kept = x.grad.data_ptr(), x.grad
    (x * 2).sum().backward()
    assert x.grad.data_ptr() == place and x.grad is kept and kept.tolist() == [4, 4, 4]


def test_assignment_drops_leading_ones():
    x = norch.zeros(2, requires_grad=True)
    one, row = norch.ones(1, requires_grad=True), norch.ones(1, 4, requires_grad=True)
    b = x * 1
    b[0] = one * 1
    b.sum().backward()
    assert x.grad.tolist() == [0, 1] and one.grad.tolist() == [1]
    c = norch.zeros(2, 4)
    c[0] = row
    (c * 3).sum().backward()
    assert row.grad.tolist() == [[3, 3, 3, 3]]
    with pytest.raises(norch.ShapeError):
        norch.zeros(4).copy_(row.detach())


def test_a_result_saved_by_a_write_through_a_view_has_second_derivatives():
    a = norch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=norch.float64, requires_grad=True)
    b = a * 1
    b.t().sigmoid_()
    (g,) = norch.autograd.grad((b * b).sum(), a, create_graph=True)
    (second,) = norch.autograd.grad((g * g).sum(), a)
    (h,) = norch.autograd.grad((a.sigmoid() ** 2).sum(), a, create_graph=True)
    (wanted,) = norch.autograd.grad((h * h).sum(), a)
    assert norch.allclose(second, wanted)


def test_a_recorded_write_through_overlapping_windows_raises():
    x = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = x * 1
    with pytest.raises(norch.Error, match="overlapping elements"):
        b.unfold(0, 2, 1).mul_(3.0)
    assert b.tolist() == [1, 2, 3]
    b.unfold(0, 1, 2).mul_(3.0)
    b.sum().backward()
    assert b.tolist() == [3, 2, 9] and x.grad.tolist() == [3, 1, 3]


def test_a_retained_gradient_is_that_of_the_tensor_as_it_is():
    x = norch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [6.0, 6.0]
