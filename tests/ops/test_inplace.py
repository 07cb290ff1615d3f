"""Writes in place, through views too: values and gradients against PyTorch, and the errors."""

from typing import Any

import numpy as np
import pytest
from functions import leaf
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

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


def _write_through_a_view(m, y):
    y[0:2].mul_(3)
    return (y * y).sum(), None


def _write_twice(m, y):
    y[0:2].mul_(3)
    y[1:3].mul_(2)
    return (y * y).sum(), None


def _write_a_number(m, y):
    y[0] = 5.0
    return (y * y).sum(), None


def _write_the_retained_view(m, y):
    v = y[0:2]
    v.retain_grad()
    v.mul_(3)
    return (v * v).sum(), v


def _write_the_retained_view_and_use_the_base(m, y):
    v = y[0:2]
    v.retain_grad()
    v.mul_(3)
    return (y * y).sum(), v


def _write_the_base_of_a_retained_view(m, y):
    v = y[0:2]
    v.retain_grad()
    y.mul_(3)
    return (v * v).sum(), v


@pytest.mark.parametrize(
    "write",
    [
        _write_through_a_view,
        _write_twice,
        _write_a_number,
        _write_the_retained_view,
        _write_the_retained_view_and_use_the_base,
        _write_the_base_of_a_retained_view,
    ],
)
def test_retained_gradients_are_of_what_was_written(torch, write):
    """retain_grad() asks for the gradient of the tensor as it is after the writes."""

    def gradients(m):
        x = m.ones(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        out, view = write(m, y)
        out.backward()
        return [None if t is None or t.grad is None else t.grad.tolist() for t in (x, y, view)]

    assert gradients(norch) == gradients(torch)


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


@settings(max_examples=examples(150), deadline=None)
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


# ---- shapes in place ----------------------------------------------------------------------------------------------

TURNS: dict[str, Any] = {
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.squeeze_(),
    "squeeze_ dim": lambda x: x.squeeze_(dim=0),
    "transpose_": lambda x: x.transpose_(0, 2),
    "swapaxes_": lambda x: x.swapaxes_(1, 2),
    "t_": lambda x: x.squeeze_(0).t_(),
    "as_strided_": lambda x: x.as_strided_((2, 2), (1, 1)),
}


@pytest.mark.parametrize("through_view", [False, True])
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_shapes_in_place(torch: Any, turn: Any, through_view: bool) -> None:
    found = []
    for m in (norch, torch):
        x = m.arange(12.0, dtype=m.float64).reshape(2, 1, 2, 3).requires_grad_()
        y = x * x
        z = y[1] if through_view else (x * x)[1].clone()
        assert turn(z) is z
        if z.numel() == 6:  # no windows that overlap
            z.mul_(3)  # of a view this is seen in the base
        (y * 3).sum().backward(retain_graph=True)
        (z * z).sum().backward()
        found.append((tuple(z.shape), z.stride(), z.tolist(), y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_shapes_in_place_and_the_graph() -> None:
    x = norch.ones(2, requires_grad=True)
    with pytest.raises(norch.Error, match="unsqueeze_: a leaf"):
        x.unsqueeze_(0)
    with norch.no_grad():
        assert x.unsqueeze_(0).shape == (1, 2) and x.is_leaf
    y = x * 2
    y.retain_grad()
    z = y * y
    y.t_()
    with pytest.raises(norch.Error, match="changed in place"):
        z.sum().backward()
    y = x * 2
    part = y[:, 0]
    y.t_()
    assert part.shape == (1,) and y.shape == (2, 1)
    assert norch.autograd.grad(part.sum(), x)[0].tolist() == [[2.0, 0.0]]
    plain = norch.arange(6).reshape(2, 3)
    assert norch.t_(plain) is plain and not plain.is_contiguous() and plain.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_what_is_overwritten_has_a_gradient_of_0() -> None:
    for write in (lambda y: y.zero_(), lambda y: y.fill_(3.0), lambda y: y[0].zero_() + y[1:].fill_(2.0).sum()):
        x = norch.ones(2, requires_grad=True)
        y = x * 2
        write(y)
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0, 0]


def test_values_that_were_replaced_have_the_gradient_0() -> None:
    """As PyTorch says, and not none."""
    for write in (lambda y, z: y.copy_(z), lambda y, z: y.zero_(), lambda y, z: y.view(-1).copy_(z)):
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x * 2
        write(y, z)
        (y.sum() + z.sum()).backward()
        assert x.grad.tolist() == [0, 0] and z.grad[0].item() in (1, 2)
