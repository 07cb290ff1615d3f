"""Functions of the user: forward, backward, and what ctx keeps."""

import gc

import numpy as np
import pytest
from conftest import torch_or_skip
from functions import Cube, Exp, Split, leaf

import norch
from norch._binding.library import lib
from norch.autograd import Function

# ---- Functions -----------------------------------------------------------------------------------------------------


def test_function():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.item() == 8 and y.requires_grad and "CubeBackward" in repr(y.grad_fn)
    y.backward()
    assert x.grad.item() == 12
    with pytest.raises(norch.Error, match="second time"):
        y.backward()
    assert not Cube.apply(norch.ones(2)).requires_grad
    with norch.no_grad():
        assert not Cube.apply(x).requires_grad


def test_function_twice_differentiable():
    x = leaf(2.0)
    (g,) = norch.autograd.grad(Cube.apply(x), [x], create_graph=True)
    (h,) = norch.autograd.grad(g, [x], create_graph=True)
    (t,) = norch.autograd.grad(h, [x])
    assert (g.item(), h.item(), t.item()) == (12, 12, 6)


def test_function_that_saves_its_output():
    x = leaf(0.5)
    y = Exp.apply(x)
    for _ in range(4):
        (y,) = norch.autograd.grad(y, [x], create_graph=True)
        assert abs(y.item() - np.exp(0.5)) < 1e-12
    before = lib.norch_live_storages()
    gc.disable()
    try:
        z = Exp.apply(x)
        del z
        assert lib.norch_live_storages() == before
    finally:
        gc.enable()


def test_function_with_several_outputs():
    x = leaf(1.0, 2.0)
    a, b, signs = Split.apply(x, 5.0, "name")
    assert a.requires_grad and b.requires_grad and not signs.requires_grad
    (a + b).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [7, 9]
    x.grad = None
    b.sum().backward(retain_graph=True)  # the gradients of the others are zeros
    assert x.grad.tolist() == [2, 4] and Split.seen == [0, 0]
    x.grad = None
    (a * b).sum().backward()
    assert x.grad.tolist() == [15, 60]
    with pytest.raises(norch.Error):
        b.sum().backward()
    Split.seen = None


class Pair(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, g1, g2):
        assert ctx.needs_input_grad == (True, True) or g2 is None
        return None if g1 is None else g1 * 2, None if g2 is None else g2 * 3


def test_function_without_materialised_zeros():
    x, y = leaf(1.0), leaf(1.0)
    a, b = Pair.apply(x, y)
    a.backward()
    assert x.grad.item() == 2 and y.grad is None
    assert norch.autograd.grad(Pair.apply(x, y)[1], [x, y], allow_unused=True)[0] is None


def test_function_errors():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0)
    with pytest.raises(norch.Error, match="1 gradients for 2"):
        Wrong.apply(x, x).backward()

    class Raises(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Raises.apply(x).backward()
    assert norch.is_grad_enabled()

    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError):
        Nothing.apply(x)


def test_gradients_of_functions_are_made_to_fit():
    class Given(Function):
        @staticmethod
        def forward(ctx, x, gradient):
            ctx.gradient = gradient
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return ctx.gradient, None

    x = leaf(1.0, 2.0, 3.0)
    Given.apply(x, norch.ones(4, 3)).sum().backward()  # broadcast and of another dtype
    assert x.grad.tolist() == [4, 4, 4] and x.grad.dtype is norch.float64
    x.grad = None
    for bad in (norch.ones(2), norch.ones(3, 1), norch.ones(())):
        with pytest.raises(norch.Error):
            Given.apply(x, bad).sum().backward()
    with pytest.raises(TypeError):
        Given.apply(x, 1.0).sum().backward()
    assert x.grad is None


def test_gradients_from_outside_are_checked():
    x = norch.ones(2, requires_grad=True)
    (x * 2).backward(norch.tensor([1.0, 2.0], dtype=norch.float64))
    assert x.grad.dtype is norch.float32 and x.grad.tolist() == [2, 4]
    y = x * 2
    y.register_hook(lambda g: norch.ones(3))
    with pytest.raises(norch.ShapeError):
        y.sum().backward()
    y = x * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError):
        y.sum().backward()
    with pytest.raises(TypeError):
        (x * 2).backward([1.0, 2.0][0])


def test_function_that_checks_what_it_saved():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(norch.Error, match="in place"):
        z.sum().backward()


def test_function_in_place():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 3
    z = Double.apply(y)
    assert z is y and y.tolist() == [6, 12]
    (y * y).sum().backward()
    assert x.grad.tolist() == [2 * 6 * 6, 2 * 12 * 6]

    with pytest.raises(norch.Error, match="leaf"):
        Double.apply(x)


def test_function_whose_forward_takes_no_ctx():
    class Power(Function):
        @staticmethod
        def forward(x, n):
            return x**n, n * x ** (n - 1)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.n = inputs[1]
            ctx.save_for_backward(inputs[0], output[1], None)

        @staticmethod
        def backward(ctx, g, g_slope):
            x, slope, nothing = ctx.saved_tensors
            assert nothing is None
            return g * slope + g_slope * ctx.n * (ctx.n - 1) * x ** (ctx.n - 2), None

    x = leaf(2.0)
    value, slope = Power.apply(x, 3)
    (value + slope).backward()
    assert (value.item(), slope.item(), x.grad.item()) == (8, 12, 24)
    assert norch.autograd.gradcheck(lambda x: Power.apply(x, 3), leaf(0.5, 2.0))


def test_vjp_is_another_name_of_backward():
    class Tripled(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return 3 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)
            assert ctx.saved_for_forward == inputs

        @staticmethod
        def vjp(ctx, g):
            return 3 * g

        jvp = Function.jvp  # a subclass may take the base's back

    x = leaf(2.0)
    Tripled.apply(x).backward()
    assert x.grad.item() == 3 and norch.func.jvp(Tripled.apply, (x,), (leaf(5.0),))[1].item() == 15
    with pytest.raises(NotImplementedError, match="needs a static jvp"):
        Tripled.jvp(None, x)


def test_function_keeps_tensors_only():
    class Odd(Cube):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x

    with pytest.raises(TypeError, match="save_for_backward: expected tensors, not int"):
        Odd.apply(leaf(1.0))


def test_function_that_returns_its_input():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = leaf(1.0)
    y = x * 2
    z = Scaled.apply(y)
    assert z is not y
    (y + z).backward()
    assert x.grad.item() == 0


def test_function_returning_a_view():
    class Flip(Function):
        @staticmethod
        def forward(ctx, x):
            return x.T

        @staticmethod
        def backward(ctx, g):
            return g.T

    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (Flip.apply(x * 1) * norch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 3], [2, 4]]


def test_a_dirty_input_that_is_saved_frees_itself():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    gc.collect()
    gc.disable()
    try:
        Twice.apply(norch.ones(3, requires_grad=True) * 1)  # makes the numbers 1 and 2, which are kept
        start = lib.norch_live_storages()
        for _ in range(20):
            Twice.apply(norch.ones(3, requires_grad=True) * 1)
        assert lib.norch_live_storages() == start
    finally:
        gc.enable()


def test_a_gradient_of_another_shape_names_the_function() -> None:
    class Doubled(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return norch.ones(3)

    with pytest.raises(norch.ShapeError, match=r"^DoubledBackward: .* shape \(3,\) for an input of shape \(2,\)"):
        Doubled.apply(norch.ones(2, requires_grad=True)).sum().backward()


def test_inputs_among_several_outputs_are_views():
    class Passing(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a, b, a + b

        @staticmethod
        def backward(ctx, ga, gb, gsum):
            return ga + gsum, gb + gsum

    a, b = norch.ones(2, requires_grad=True), norch.ones(2)
    seen = []
    first, second, third = Passing.apply(a, b)
    assert first is not a and first.data_ptr() == a.data_ptr() and second.requires_grad and not b.requires_grad
    for returned in (first, first[0], second):
        with pytest.raises(norch.Error, match="mul_: .* an input that a Function returned, cannot be written to"):
            returned.mul_(5)
    first.register_hook(lambda g: seen.append(g.tolist()))
    (first + third + a).sum().backward()
    assert seen == [[1, 1]] and a.grad.tolist() == [3, 3]


def test_a_saved_output_has_its_history_also_where_nothing_is_recorded():
    torch = torch_or_skip()
    seen = {}
    for root in (norch, torch):
        said = seen[root.__name__] = []

        class Twice(root.autograd.Function):
            @staticmethod
            def forward(ctx, x, said):
                ctx.said, y = said, x * 2
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                for x in ctx.saved_tensors:  # xitorch asks whether an output requires grad
                    ctx.said.append((x.requires_grad, x.is_leaf, x.grad_fn is not None))
                return g * 2, None

        x = root.ones(2, requires_grad=True)
        Twice.apply(x, said).sum().backward()
        Twice.apply(x * 1, said).sum().backward()
        root.autograd.grad(Twice.apply(x, said).sum(), x, create_graph=True)
    assert seen["norch"] == seen["torch"] and len(seen["norch"]) == 6


class TimesOnce(norch.autograd.Function):
    """x * y, whose gradients cannot be differentiated again."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @norch.autograd.function.once_differentiable
    def backward(ctx, g):
        assert not norch.is_grad_enabled()
        x, y = ctx.saved_tensors
        return g * y, g * x


def test_going_backward_twice_through_once_differentiable_is_an_error():
    x, y = norch.tensor(2.0, requires_grad=True), norch.tensor(3.0, requires_grad=True)
    gradient = norch.ones((), requires_grad=True)
    first = norch.autograd.grad(TimesOnce.apply(x, y), (x, y), gradient, create_graph=True)
    assert [g.item() for g in first] == [3.0, 2.0] and all(g.requires_grad for g in first)
    with pytest.raises(norch.Error, match="TimesOnce.*twice.*once_differentiable"):
        (first[0] * x).backward()
    for gradient, create_graph in ((None, False), (None, True), (norch.ones((), requires_grad=True), False)):
        (plain,) = norch.autograd.grad(TimesOnce.apply(x, y), x, gradient, create_graph=create_graph)
        assert plain.item() == 3.0 and not plain.requires_grad


class TimesFactor(Function):
    @staticmethod
    def forward(x, factor=3.0, *, more=1.0):
        return x * factor * more

    @staticmethod
    def setup_context(ctx, inputs, output):
        (_, ctx.factor) = inputs

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def test_setup_context_gets_the_defaults_of_forward():
    for arguments, named, expected in (
        ((), {}, 3.0),
        ((5.0,), {}, 5.0),
        ((), {"factor": 7.0}, 7.0),
        ((2.0,), {"more": 1.0}, 2.0),
    ):
        x = norch.tensor(1.0, requires_grad=True)
        y = TimesFactor.apply(x, *arguments, **named)
        y.backward()
        assert y.item() == x.grad.item() == expected


def test_setup_context_gets_arguments_by_name():
    class Times(TimesFactor):
        @staticmethod
        def forward(x, factor):
            return x * factor

    x = norch.tensor(1.0, requires_grad=True)
    Times.apply(x, factor=4.0).backward()
    assert x.grad.item() == 4.0


def test_a_dirty_input_is_returned():
    class Added(Function):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(y)
            ctx.mark_dirty(x)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, g

    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with pytest.raises(norch.errors.Error, match="must return the inputs that it gave to mark_dirty"):
        Added.apply(x.clone(), y)
    assert Added.apply(x.detach().clone(), y.detach()).tolist() == [4, 6]


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_of_outputs_that_are_not_differentiable(materialize):
    class Largest(Function):
        @staticmethod
        def forward(ctx, x):
            ctx._materialize_non_diff_grads = materialize
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, x * 3, index

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(grads)
            return grads[0] * 2

    x, seen = leaf([1.0, 2.0]), []
    Largest.apply(x)[0].sum().backward()
    assert seen[1].tolist() == [0.0, 0.0] and x.grad.tolist() == [2.0, 2.0]
    assert (seen[2].tolist() == 0) if materialize else (seen[2] is None)
