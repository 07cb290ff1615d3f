"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

from typing import Any

from .library import Case, Library, Run, same


def add_recorded(lib: Library) -> Run:
    a, b = lib.random(10, grad=True), lib.random(10, grad=True)
    return lambda: a + b


def add(lib: Library) -> Run:
    a, b = lib.random(10), lib.random(10)
    return lambda: a + b


def add_scalar(lib: Library) -> Run:
    a = lib.random(10)
    return lambda: a + 1.5


def forward_backward(lib: Library) -> Run:
    x, b, a = (lib.random(10, grad=True) for _ in range(3))

    def run() -> Any:
        x.grad = b.grad = a.grad = None
        (x * b + a).sum().backward()
        return x.grad, b.grad, a.grad

    return run


def forward_backward_arrays(lib: Library) -> Run:
    x, b, a = (lib.random(10) for _ in range(3))
    ones_like = lib.module.ones_like

    def run() -> Any:
        y = x * b + a
        y.sum()
        g = ones_like(y)
        return g * b, g * x, g

    return run


def small_matmul(lib: Library) -> Run:
    a, b = lib.random(8, 8), lib.random(8, 8)
    return lambda: a @ b


def view(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.view(6, 4)


def view_arrays(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.reshape(6, 4)


def transpose(lib: Library) -> Run:
    x = lib.random(4, 6)
    return lambda: x.T


def take_slice(lib: Library) -> Run:
    x = lib.random(8, 8)
    return lambda: x[1:7:2]


def sgd_step(lib: Library) -> Run:
    parameters = [lib.random(16, grad=True) for _ in range(20)]
    for p in parameters:
        p.grad = lib.random(16)
    step = lib.module.optim.SGD(parameters, lr=1e-3).step

    def run() -> Any:
        step()
        return parameters

    return run


def sgd_step_arrays(lib: Library) -> Run:
    parameters = [lib.random(16) for _ in range(20)]
    grads = [lib.random(16) for _ in range(20)]

    def run() -> Any:
        for p, g in zip(parameters, grads):
            p -= 1e-3 * g
        return parameters

    return run


def item(lib: Library) -> Run:
    x = lib.random(1)
    return lambda: x.item()


CASES = [
    same("overhead", "a + b, 10 elements", add),
    Case("overhead", "a + b, 10 elements, recorded", add_recorded, None),
    same("overhead", "8x8 @ 8x8", small_matmul),
    Case("overhead", "x.view(6, 4)", view, view_arrays),
    same("overhead", "x[1:7:2]", take_slice),
    Case("overhead", "(x*b + a).sum(), backward", forward_backward, forward_backward_arrays),
    Case("overhead", "SGD step, 20 tensors of 16", sgd_step, sgd_step_arrays),
    same("overhead", "a + 1.5, 10 elements", add_scalar, counted=False),
    same("overhead", "x.T", transpose, counted=False),
    same("overhead", "x.item()", item, counted=False),
]
