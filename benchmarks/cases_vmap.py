"""vmap: per-sample gradients, ensembles, Jacobians and Hessians by torch.func's names, which both libraries have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import models
from .library import Case, Library, Run, Setup

BATCH = 512


def perceptron(lib: Library) -> Any:
    """64-128-64-10."""
    nn = lib.module.nn
    return models.draw(
        lib, nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10))
    )


def convolutions(side: int) -> Callable[[Library], Any]:
    """Two convolutions and a linear layer, for images of side x side."""

    def make(lib: Library) -> Any:
        nn = lib.module.nn
        first = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return models.draw(lib, nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(16 * (side // 4) ** 2, 10)))

    return make


def constants(model: Any) -> dict[str, Any]:
    """The parameters by name, outside any graph."""
    return {name: p.detach() for name, p in model.named_parameters()}


def per_sample_gradients(make: Callable[[Library], Any], *shape: int) -> Setup:
    def setup(lib: Library) -> Run:
        m, model = lib.module, make(lib)
        parameters, x, target = constants(model), lib.random(BATCH, *shape), lib.integers(BATCH, 10)

        def loss(parameters: Any, x: Any, target: Any) -> Any:
            out = m.func.functional_call(model, parameters, (x.unsqueeze(0),))
            return m.nn.functional.cross_entropy(out, target.unsqueeze(0))

        gradients = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))
        return lambda: tuple(gradients(parameters, x, target).values())

    return setup


def ensemble(trained: bool) -> Setup:
    def setup(lib: Library) -> Run:
        m, members = lib.module, [perceptron(lib) for _ in range(8)]
        parameters, buffers = m.func.stack_module_state(members)
        if not trained:
            parameters = {name: p.detach() for name, p in parameters.items()}
        x = lib.random(256, 64)
        run = m.func.vmap(lambda p, b, x: m.func.functional_call(members[0], (p, b), (x,)), in_dims=(0, 0, None))

        def step() -> Any:
            for p in parameters.values():
                p.grad = None
            run(parameters, buffers, x).pow(2).mean().backward()
            return tuple(p.grad for p in parameters.values())

        return step if trained else lambda: run(parameters, buffers, x)

    return setup


def derived(transform: Callable[..., Any], *shape: int, scalar: bool = False) -> Setup:
    """A transform of a perceptron, as a function of its input."""

    def setup(lib: Library) -> Run:
        m, model = lib.module, perceptron(lib)
        parameters, x = constants(model), lib.random(*shape, 64)

        def function(x: Any) -> Any:
            out = m.func.functional_call(model, parameters, (x,))
            return out.pow(2).sum() if scalar else out

        run = transform(m.func, function)
        return lambda: run(x)

    return setup


def of_parameters(lib: Library) -> Run:
    """The Jacobian of the outputs for 16 inputs by all parameters."""
    m, model = lib.module, perceptron(lib)
    parameters, x = constants(model), lib.random(16, 64)
    run = m.func.jacrev(lambda p: m.func.functional_call(model, p, (x,)))
    return lambda: tuple(run(parameters).values())


def dots(lib: Library) -> Run:
    a, b, run = lib.random(1000, 100), lib.random(1000, 100), lib.module.func.vmap(lib.module.dot)
    return lambda: run(a, b)


SETUPS: dict[str, Setup] = {
    f"per-sample gradients, MLP, B = {BATCH}": per_sample_gradients(perceptron, 64),
    f"per-sample gradients, CNN 8 x 8, B = {BATCH}": per_sample_gradients(convolutions(8), 1, 8, 8),
    f"per-sample gradients, CNN 28 x 28, B = {BATCH}": per_sample_gradients(convolutions(28), 1, 28, 28),
    "ensemble of 8 MLPs, forward": ensemble(False),
    "ensemble of 8 MLPs, forward and backward": ensemble(True),
    "jacrev of an MLP": derived(lambda f, function: f.jacrev(function)),
    "jacfwd of an MLP": derived(lambda f, function: f.jacfwd(function)),
    "vmap of jacrev, B = 64": derived(lambda f, function: f.vmap(f.jacrev(function)), 64),
    "vmap of jacfwd, B = 64": derived(lambda f, function: f.vmap(f.jacfwd(function)), 64),
    "jacrev by the parameters": of_parameters,
    "hessian of an MLP": derived(lambda f, function: f.hessian(function), scalar=True),
    "vmap of hessian, B = 64": derived(lambda f, function: f.vmap(f.hessian(function)), 64, scalar=True),
    "vmap of dot, B = 1000": dots,
}

CASES = [Case("vmap", name, setup, None) for name, setup in SETUPS.items()]
