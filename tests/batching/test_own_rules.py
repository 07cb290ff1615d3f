"""Batching rules of programs: vmap of an autograd.Function, and library.register_vmap(). Beside PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import norch
from norch.autograd import Function
from norch.testing import assert_close

_numbers = itertools.count()


def functions(lib: Any) -> Any:
    """Functions that leave the library, so that they need a rule: (sort, cube, product and sum)."""

    class Sort(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            order = np.argsort(x.detach().numpy(), axis=dim)
            return lib.tensor(np.take_along_axis(x.detach().numpy(), order, axis=dim)), lib.tensor(order)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])
            ctx.dim = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return lib.zeros_like(g).scatter(ctx.dim, ctx.saved_tensors[0], g), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int) -> Any:
            assert in_dims[1] is None
            x = x.movedim(in_dims[0], 0)
            return Sort.apply(x, (dim if dim >= 0 else dim + x.dim() - 1) + 1), (0, 0)

    class Cube(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return lib.tensor(x.detach().numpy() ** 3)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:  # whose result has no history
            return lib.tensor(x.detach().numpy() ** 3), in_dims[0]

    class Both(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y, x.sum()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any, of_sum: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y + of_sum, g * x

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            assert info.randomness == "error"
            x, y = (part[..., None] if dim is None else part.movedim(dim, -1) for part, dim in zip((x, y), in_dims))
            return (x * y + info.batch_size, x.sum(0).expand(info.batch_size)), (-1, 0)

    return Sort.apply, Cube.apply, Both.apply


def array(lib: Any, *shape: int) -> Any:
    return lib.tensor(np.cos(np.arange(float(np.prod(shape)))).reshape(shape))


def outcomes(lib: Any) -> list[Any]:
    sort, cube, both = functions(lib)
    vmap, grad = lib.vmap, lib.func.grad
    x, stacked, w = array(lib, 2, 3), array(lib, 2, 4, 3), array(lib, 3)

    def loss(x: Any, y: Any) -> Any:
        product, total = both(x, y)
        return (product**2).sum() + total

    leaf = array(lib, 2, 3).requires_grad_()
    (vmap(lambda x: sort(x, 0)[0])(leaf) * w).sum().backward()
    return [
        *vmap(lambda x: sort(x, 0))(x),
        vmap(lambda x: sort(x, -1)[0], in_dims=1)(x),
        vmap(vmap(lambda x: sort(x, -1)[0]))(stacked),
        vmap(grad(lambda x: (sort(x, 0)[0] * w).sum()))(x),
        grad(lambda x: (vmap(lambda x: sort(x, 0)[0])(x) * w).sum())(x),
        leaf.grad,
        vmap(cube)(x),
        vmap(grad(lambda x: cube(x).sum()))(x),
        vmap(grad(grad(cube)))(x[0]),
        *vmap(both)(x, x + 1),
        *vmap(both, in_dims=(None, 1), out_dims=(1, 0))(x[0], x.T),
        *vmap(grad(loss, argnums=(0, 1)), in_dims=(0, None))(x, w),  # a gradient by w for each sample
        *grad(lambda x, y: vmap(loss, in_dims=(0, None))(x, y).sum(), argnums=(0, 1))(x, w),
    ]


def test_rule_of_a_function(torch: Any) -> None:
    for ours, theirs in zip(outcomes(norch), outcomes(torch), strict=True):
        assert_close(ours.detach(), norch.tensor(theirs.detach().numpy()))


def test_rule_and_generated_rule_exclude_each_other() -> None:
    class Twice(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return 2 * x, in_dims[0]

    assert Twice.apply(norch.ones(2)).tolist() == [2, 2]
    with pytest.raises(norch.Error, match="Twice: a Function with generate_vmap_rule=True has no vmap"):
        norch.vmap(Twice.apply)(norch.ones(2, 2))
    Twice.generate_vmap_rule = False
    assert norch.vmap(Twice.apply)(norch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
    Twice.vmap = staticmethod(lambda info, in_dims, x: 2 * x)  # type: ignore[method-assign]
    with pytest.raises(norch.Error, match="must return two values"):
        norch.vmap(Twice.apply)(norch.ones(2, 2))
    with pytest.raises(NotImplementedError, match="needs a static vmap"):
        Function.vmap(None, ())


def test_what_a_rule_sees(torch: Any) -> None:
    """in_dims, whether random numbers are those of samples, and which gradient counts: the rule's or backward's."""
    for lib in (norch, torch):
        seen: list[Any] = []

        class Scaled(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(x: Any, w: Any) -> Any:
                return x * w

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                seen.append("setup_context")  # noqa: B023

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return 100 * g, None

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
                seen.append((in_dims, lib.rand(1).shape))  # noqa: B023
                return 3 * x * w, 0

        scaled, x, w = Scaled.apply, array(lib, 2, 3), lib.ones(3)
        lib.vmap(scaled, in_dims=(0, None))(x, w)
        assert seen == [((0, None), (1,))]
        by_rule = lib.func.grad(lambda x: lib.vmap(scaled, in_dims=(0, None))(x, w).sum())(x)  # noqa: B023
        assert by_rule.tolist() == [[3] * 3] * 2 and seen == [((0, None), (1,))] * 2
        with pytest.raises(RuntimeError, match="random"):
            lib.vmap(lib.vmap(scaled))(array(lib, 2, 4, 3), array(lib, 2, 4, 3))


def test_a_rule_without_setup_context_has_no_gradient_of_its_own() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return norch.tensor(2 * x.detach().numpy())

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return norch.tensor(2 * x.detach().numpy()), in_dims[0]

    assert not norch.vmap(Doubled.apply)(norch.ones(2, 2, requires_grad=True)).requires_grad


def test_rule_of_a_registered_operation(torch: Any) -> None:
    results: list[list[Any]] = []
    for lib in (norch, torch):

        def mul(x, y):
            return lib.tensor(x.detach().numpy() * y.detach().numpy())  # noqa: B023

        mul.__annotations__ = {"x": lib.Tensor, "y": lib.Tensor, "return": lib.Tensor}
        op = lib.library.custom_op(f"own_rules::mul{next(_numbers)}", mul, mutates_args=())

        def setup(ctx, inputs, output):
            ctx.x, ctx.y = inputs

        op.register_autograd(lambda ctx, g, op=op: (op(g, ctx.y), op(g, ctx.x)), setup_context=setup)

        @op.register_vmap
        def rule(info: Any, in_dims: Any, x: Any, y: Any, op: Any = op) -> Any:
            x, y = (part[..., None] if dim is None else part.movedim(dim, -1) for part, dim in zip((x, y), in_dims))
            return op(x, y).movedim(-1, 0), 0

        x, w, vmap = array(lib, 2, 3).requires_grad_(), array(lib, 3).requires_grad_(), lib.vmap
        vmap(op, in_dims=(0, None))(x, w).sum().backward()
        stacked = array(lib, 2, 4, 3)
        results.append([x.grad, w.grad, vmap(op)(x, x), vmap(vmap(op))(stacked, stacked)])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours.detach(), norch.tensor(theirs.detach().numpy()))
