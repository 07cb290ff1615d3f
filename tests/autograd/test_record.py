"""How operations are declared differentiable: autograd/derivative.py and record.py."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import norch
from norch.autograd.derivative import derivative
from norch.autograd.differentiable import differentiable

pytestmark = pytest.mark.host


def test_a_derivative_may_hold_nested_code() -> None:
    """What it saves is said by its parameters, so comprehensions and functions inside it are its own matter."""

    @differentiable(grad=lambda g, x, n: norch.stack([g[i] * n * x[i] ** (n - 1) for i in range(len(x))]))
    def power(x: Any, n: int) -> Any:
        return norch.stack([row**n for row in x])

    x = norch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = power(x, 3)
    assert out.grad_fn._saved[0] is x and out.grad_fn.name() == "PowerBackward"
    out.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0, 27.0]


def test_nothing_but_what_is_named_is_saved() -> None:
    @differentiable(grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)
    def times(a: Any, b: Any) -> Any:
        return a.detach() * b.detach()

    a, b = norch.ones(2, requires_grad=True), norch.ones(2)
    assert times(a, b).grad_fn._saved == (None, b)  # nobody asked for the gradient of b, which needs a


def test_a_gradient_of_no_input_is_refused() -> None:
    with pytest.raises(TypeError, match=r"add: grad_c for inputs \('a', 'b'\)"):
        derivative("add", ("a", "b"), grad_c=lambda g: g)


def test_a_gradient_without_parameters_to_read_is_refused() -> None:
    def scaled(g: Any, factor: float) -> Any:
        return g * factor

    with pytest.raises(TypeError, match="scale: a gradient is a function written with def or lambda.*, not partial"):
        derivative("scale", grad=functools.partial(scaled, factor=2.0))


def test_the_save_plan_is_made_of_the_names_of_parameters() -> None:
    plan = derivative("f", ("x", "y"), grad_x=lambda g, y, dim: g * y, grad_y=lambda g, out, x_meta: g * out).save_plan
    assert plan.needed == [("y", "dim"), ("out", "x_meta")] and plan.saves == ("y", "dim", "out", "x_meta")
    assert plan.others == ("dim",) and plan.frees and plan.out
    plan = derivative("f", ("x", "y"), backward=lambda g, needs_input_grad, dim: (g, g)).save_plan
    assert plan.needed == [("dim",), ("dim",)] and not (plan.frees or plan.out)
