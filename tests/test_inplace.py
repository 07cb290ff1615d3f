"""Writes in place, through views too: values and gradients against PyTorch, and the errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import norch

START = np.linspace(0.5, 2.0, 12).reshape(3, 4)


def run(f, program, shape=(3, 4)):
    """The result of program(f, x, y), where y is computed from the leaf x, and the gradient of x."""
    x = f.tensor(START.copy(), requires_grad=True)
    y = x * 1.5 + 0.25
    out = program(f, x, y)
    out = y if out is None else out
    value = out.detach().numpy().copy()
    if out.requires_grad:
        (out * f.tensor(np.arange(1.0, out.numel() + 1).reshape(tuple(out.shape)))).sum().backward()
    return value, None if x.grad is None else x.grad.numpy().copy()


def copied(f, t):
    """A clone for PyTorch, where it refuses what norch can do."""
    return t if f is norch else t.clone()


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def add_to_a_row(f, x, y):
    y[0] += 1


@program
def multiply_a_row(f, x, y):
    y[0] *= 3


@program
def multiply_by_itself(f, x, y):
    y *= copied(f, y)


@program
def add_itself(f, x, y):
    y += y


@program
def divide_by_itself(f, x, y):
    y /= y.clone() + 1


@program
def shifted_sum(f, x, y):
    y[1:] += copied(f, y[:-1])


@program
def shifted_product(f, x, y):
    y[1:] *= y[:-1].clone()


@program
def stale_view_after_a_write_to_the_base(f, x, y):
    v = y[0]
    y.mul_(2)
    return v * v


@program
def stale_view_and_base(f, x, y):
    v = y[0]
    y.mul_(2)
    return y + v


@program
def base_after_a_write_to_a_view(f, x, y):
    v = y[1]
    v.mul_(x[0])
    return y * y


@program
def sibling_views(f, x, y):
    v, w = y[0], y[:, 1]
    v.mul_(2)
    w.add_(v[0])
    return v.sum() + w


@program
def view_of_a_view(f, x, y):
    v = y[1:]
    w = v[:, ::2]
    w.exp_()
    return v * 2


@program
def view_of_a_view_after_a_write_to_the_base(f, x, y):
    w = y[1:][:, ::2]
    y.mul_(2)
    w.add_(x[1:, ::2])
    return y * w[0, 0]


@program
def transposed(f, x, y):
    y.T[1] *= 5
    y.mT.add_(1)


@program
def reshaped(f, x, y):
    v = y.view(12)
    v[::5] = 0
    y.reshape(2, 6)[1].mul_(v[:6].clone())


@program
def diagonal(f, x, y):
    y.diagonal().mul_(x.diagonal())
    y.diagonal(1).zero_()


@program
def unsqueezed_and_squeezed(f, x, y):
    y.unsqueeze(0)[0, 2].mul_(7)
    y[:1].squeeze(0).add_(1)


@program
def expanded_source(f, x, y):
    y += x[0].expand(3, 4)


@program
def zeroed(f, x, y):
    y.zero_()
    return y + x


@program
def row_zeroed(f, x, y):
    y[1].zero_()


@program
def filled(f, x, y):
    y[:, 0] = 3.0
    y[0].fill_(2.0)


@program
def copied_from_a_leaf(f, x, y):
    y[0].copy_(x[1])
    y[1] = x[2] * 2


@program
def copied_with_broadcast(f, x, y):
    y[...] = x[:, :1]


@program
def copied_from_itself(f, x, y):
    y[0] = y[1]
    y[2] = y[0].clone() * y[1].clone()


@program
def copied_into_a_constant(f, x, y):
    z = f.zeros(3, 4, dtype=f.float64)
    z[0] = x[0]
    z[1].copy_(y[1])
    return z * y


@program
def copied_into_a_view_of_a_constant(f, x, y):
    z = f.zeros(3, 4, dtype=f.float64)
    v = z[1]
    w = v[1:3]
    v.add_(x[0])
    assert w.grad_fn is not None
    w.mul_(2)
    return z + v


@program
def cast_while_copying(f, x, y):
    z = f.zeros(3, 4, dtype=f.float32)
    z.copy_(y)
    z[0] += x[0]
    return z.to(f.float64)


@program
def cut_by_detach(f, x, y):
    y[0] = y[0].detach()


@program
def cut_by_a_detached_view(f, x, y):
    v = y.detach()
    y[1] = v[1]


@program
def written_through_detach(f, x, y):
    y.detach().mul_(2)
    return y + 1


@program
def in_a_loop(f, x, y):
    for i in range(3):
        y[i] *= i + 1
        y[:, i] += x[:, i]


@program
def recurrence(f, x, y):
    for i in range(1, 3):
        y[i] = y[i] + y[i - 1].clone() * x[i]


@program
def unary_in_place(f, x, y):
    z = y.clone()
    y.mul_(2).neg_().sin_().abs_().log_().square_().cos_()
    y.sigmoid_()
    z[0].neg_().abs_()
    z[1:].tanh_()
    return y + z.exp()


@program
def relu_in_place(f, x, y):
    y.sub_(1.5).relu_()


@program
def power_in_place(f, x, y):
    y.pow_(2)
    y **= 1.5


@program
def clamp_in_place(f, x, y):
    y.clamp_(1.0, 2.0)


@program
def two_leaves_of_one(f, x, y):
    a, b = y[0], y[1]
    a.mul_(b.clone())
    b.mul_(2)
    return a + b + y[2]


@program
def view_taken_before_and_after(f, x, y):
    before = y[0]
    y[0] += x[0]
    after = y[0]
    before.mul_(2)
    return before * after


@program
def the_base_of_a_view_is_a_view_of_a_leaf_copy(f, x, y):
    z = x.clone()
    z[0][1:3].mul_(3)
    z.view(-1)[5:7] = y.view(-1)[:2]
    return z


@program
def used_before_the_write_where_no_value_is_needed(f, x, y):
    z = y + 1
    y.mul_(2)
    return z + y


@program
def add_with_alpha(f, x, y):
    y.add_(x, alpha=3)
    y.sub_(x, alpha=0.5)


@program
def integer_mixed(f, x, y):
    y += f.arange(4)
    y *= f.arange(3).unsqueeze(1)


@program
def write_under_no_grad(f, x, y):
    with f.no_grad():
        y.add_(1)
    return y + y


@program
def empty_region(f, x, y):
    y[3:] = 5.0
    y[1:1] += 1


@program
def detached_in_place(f, x, y):
    z = x * 2
    z.detach_()
    z.mul_(y)
    return z


@program
def requires_grad_by_write(f, x, y):
    z = f.ones(4, dtype=f.float64)
    v = z[1:3]
    assert not v.requires_grad
    z.mul_(x[0])
    assert v.requires_grad and z.requires_grad
    return v


@program
def write_a_scalar_tensor(f, x, y):
    y[0, 0] = x[2, 3]
    y[1] = x[0, 0]


@program
def retained_grad(f, x, y):
    y.retain_grad()
    y[0].mul_(2)
    return y * 3


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(torch, program):
    value, gradient = run(norch, program)
    expected_value, expected_gradient = run(torch, program)
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    assert (gradient is None) == (expected_gradient is None)
    if gradient is not None:
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-9)


# ---- programs at random ------------------------------------------------------------------------------------------

REGIONS = [
    lambda t: t,
    lambda t: t[0],
    lambda t: t[-1:],
    lambda t: t[:, 1],
    lambda t: t[1:, ::2],
    lambda t: t.T,
    lambda t: t.view(-1)[2:9:3],
    lambda t: t.diagonal(),
    lambda t: t.reshape(2, 6)[1],
    lambda t: t.unsqueeze(1)[:, 0, 1:],
]
WRITES = [
    lambda f, v, x: v.add_(1.5),
    lambda f, v, x: v.mul_(0.5),
    lambda f, v, x: v.mul_(x.sum() * 0.1),
    lambda f, v, x: v.add_(v.clone() * 0.25),
    lambda f, v, x: v.copy_(v * v * 0.1),
    lambda f, v, x: v.copy_(x[0, 0]),
    lambda f, v, x: v.tanh_(),
    lambda f, v, x: v.sigmoid_(),
    lambda f, v, x: v.zero_(),
    lambda f, v, x: v.div_(2.0),
    lambda f, v, x: v.sub_(x[1, 1]),
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(range(len(REGIONS))),
            st.sampled_from(range(len(WRITES))),
            st.integers(0, 5),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_program(torch, steps):
    def program(f, x, y):
        views, total = [y], 0.0
        for region, write, which, early in steps:
            if early:  # a view taken before later writes, used in the end
                views.append(REGIONS[region](y))
                continue
            target = views[which % len(views)]
            target = REGIONS[region](target) if target.ndim == 2 and tuple(target.shape) == (3, 4) else target
            WRITES[write](f, target, x)
            total = total + target.sum() * 0.5
        for i, v in enumerate(views):
            total = total + (v * (i + 1)).sum()
        return total

    try:
        expected_value, expected_gradient = run(torch, program)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        with pytest.raises(norch.Error, match="in place"):
            run(norch, program)
        return
    value, gradient = run(norch, program)
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    if gradient is None:  # nothing of x is left in the result: PyTorch says so with zeros
        gradient = np.zeros_like(expected_gradient)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-9)


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
}


@pytest.mark.parametrize("name", UNNEEDED)
def test_a_change_of_what_is_not_needed_is_no_error(name):
    x = norch.tensor(START, requires_grad=True)
    UNNEEDED[name](x, x * 1.5)[0].sum().backward()
    assert x.grad is not None


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
    with pytest.raises(norch.Error, match="overlapping windows"):
        b.unfold(0, 2, 1).mul_(3.0)
    assert b.tolist() == [1, 2, 3]
    b.unfold(0, 1, 2).mul_(3.0)
    b.sum().backward()
    assert b.tolist() == [3, 2, 9] and x.grad.tolist() == [3, 1, 3]
