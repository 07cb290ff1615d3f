"""Jacobian-vector products of operations whose declared gradient is not the transpose of their derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import norch
from norch.testing import assert_close

WEIGHT = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
VALUES = [[0.5, -1.5, 2.5, 3.5]]


def rows(**options: Any) -> Callable[[Any, Any], Any]:
    return lambda lib, w: lib.nn.functional.embedding(lib.tensor([0, 1, 1, 2, 0, 0]), w, **options)


def unpooled(axes: int) -> Callable[[Any, Any], Any]:
    """max_unpool of axes axes that writes several elements to one place."""

    def function(lib: Any, x: Any) -> Any:
        shape, unpool = (1, *[1] * (axes - 1), 4), getattr(lib.nn.functional, f"max_unpool{axes}d")
        return unpool(x.reshape(shape), lib.tensor([1, 1, 3, 1]).reshape(shape), 2)

    return function


def set_in_view(lib: Any, x: Any) -> Any:
    out = x.new_zeros(4)
    out[1:][lib.tensor([0, 2, 0, 0])] = x[0]
    return out


FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "padding_idx": (rows(padding_idx=1), WEIGHT),
    "scale_grad_by_freq": (rows(scale_grad_by_freq=True), WEIGHT),
    "padding_idx, scale_grad_by_freq": (rows(padding_idx=-3, scale_grad_by_freq=True), WEIGHT),
    "sparse": (rows(padding_idx=0, sparse=True), WEIGHT),
    "max_unpool1d": (unpooled(1), VALUES),
    "max_unpool2d": (unpooled(2), VALUES),
    "max_unpool3d": (unpooled(3), VALUES),
    "scatter": (lambda lib, x: lib.ones(2, 3).to(x).scatter(1, lib.tensor([[2, 0, 2]]), x), VALUES),
    "index_put": (lambda lib, x: lib.ones(3).to(x).index_put((lib.tensor([0, 0, 2, 0]),), x[0]), VALUES),
    "index_put, one value": (lambda lib, x: lib.ones(3).to(x).index_put((lib.tensor([0, 0]),), x.prod()), VALUES),
    "index_copy": (lambda lib, x: lib.ones(1, 3).to(x).index_copy(1, lib.tensor([0, 0, 2, 0]), x), VALUES),
    "put_": (lambda lib, x: lib.ones(3).to(x).put_(lib.tensor([0, 0, 2, 0]), x[0]), VALUES),
    "x[i] = y": (set_in_view, VALUES),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_like_torch_and_differences(torch: Any, name: str) -> None:
    function, values = FUNCTIONS[name]
    found: dict[Any, Any] = {}
    for lib in (norch, torch):
        x = lib.tensor(values, dtype=lib.float64)
        along = lib.linspace(1, 2, x.numel(), dtype=x.dtype).reshape(x.shape)
        of = partial(function, lib)
        out, product = lib.func.jvp(of, (x,), (along,))
        step = 1e-6
        slope = (of(x + step * along) - of(x - step * along)) / (2 * step)
        fwd = lib.autograd.forward_ad
        with fwd.dual_level():
            tangent = fwd.unpack_dual(of(fwd.make_dual(x, along))).tangent
        columns = lib.func.jacfwd(of)(x)
        found[lib] = product.tolist()
        assert_close(norch.tensor(product.tolist()), norch.tensor(slope.tolist()), rtol=1e-6, atol=1e-6)
        assert tangent.tolist() == product.tolist()
        by_columns = (columns * along).flatten(out.ndim).sum(-1)
        assert_close(norch.tensor(by_columns.tolist()), norch.tensor(product.tolist()), rtol=1e-6, atol=1e-6)
    assert found[norch] == found[torch]


def test_gradients_keep_their_rules_after_products(torch: Any) -> None:
    for name in ("padding_idx, scale_grad_by_freq", "max_unpool1d", "index_copy", "x[i] = y"):
        function, values = FUNCTIONS[name]
        grads = []
        for lib in (norch, torch):
            x = lib.tensor(values, requires_grad=True)
            lib.func.jvp(partial(function, lib), (x.detach(),), (x.detach(),))
            out = function(lib, x)
            out.backward(lib.linspace(1, 2, out.numel()).reshape(out.shape))
            grads.append(x.grad.tolist())
        assert_close(norch.tensor(grads[0]), norch.tensor(grads[1]))


def test_samples_have_indices_of_their_own(torch: Any) -> None:
    def product(lib: Any, along: Any, index: Any) -> Any:
        return lib.func.jvp(lambda x: lib.zeros(3).scatter(0, index, x * x), (lib.arange(3.0),), (along,))[1]

    for lib in (norch, torch):
        along, index = lib.arange(1.0, 7.0).reshape(2, 3), lib.tensor([[0, 0, 1], [1, 1, 1]])
        assert lib.vmap(partial(product, lib))(along, index).tolist() == [[4, 12, 0], [0, 24, 0]]


def test_nested_products(torch: Any) -> None:
    def cubes(lib: Any, x: Any) -> Any:
        return set_in_view(lib, x**3)

    found = [
        lib.func.jacfwd(lib.func.jacfwd(partial(cubes, lib)))(lib.tensor(VALUES)).tolist() for lib in (norch, torch)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("of_modules", [False, True])
def test_hooks_do_not_see_products(torch: Any, of_modules: bool) -> None:
    for lib in (norch,) if of_modules else (norch, torch):  # PyTorch has no product through backward hooks of modules
        seen: list[Any] = []

        def hook(g: Any, seen: list[Any] = seen) -> Any:
            seen.append(g)
            return g * 5

        layer = lib.nn.Linear(2, 1, bias=False)
        lib.nn.init.constant_(layer.weight, 2)
        if of_modules:
            layer.register_full_backward_pre_hook(lambda m, grads: (hook(grads[0]),))
            layer.register_full_backward_hook(lambda m, inputs, grads: (hook(inputs[0]),))
        fwd = lib.autograd.forward_ad
        with fwd.dual_level():
            x = lib.tensor([1.0, 2.0], requires_grad=True)
            y = fwd.make_dual(x, lib.ones(2)).square()
            y.register_hook(hook)
            z = layer(y)
            z.retain_grad()
            assert fwd.unpack_dual(z).tangent.tolist() == [12] and not seen and z.grad is None
        z.backward()
        factor = 5 ** len(seen)
        assert len(seen) == (3 if of_modules else 1) and x.grad.tolist() == [4 * factor, 8 * factor]
        assert z.grad.tolist() == [1]
