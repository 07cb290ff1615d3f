"""Formulas written out, which norch.capture makes chains of: the group "fused"."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from . import models
from .library import Case, Library, Run

SCALE = math.sqrt(2 / math.pi)
BETA1, BETA2 = 0.9, 0.999


def gelu(x: Any) -> Any:
    """Gaussian error linear units by their approximation with tanh: eight operations."""
    cube = x * x * x
    return x * 0.5 * (1 + ((x + cube * 0.044715) * SCALE).tanh())


def softmax(x: Any) -> Any:
    """Softmax of each row."""
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def layer_norm(x: Any) -> Any:
    """Each row with mean 0 and variance 1."""
    centered = x - x.mean(-1, keepdim=True)
    return centered * ((centered * centered).mean(-1, keepdim=True) + 1e-5).rsqrt()


def adam(p: Any, g: Any, m: Any, v: Any, t: Any) -> None:
    """A step of Adam: Kingma and Ba (2015), algorithm 1."""
    t += 1
    m.mul_(BETA1).add_(g * (1 - BETA1))
    v.mul_(BETA2).add_(g * g * (1 - BETA2))
    p.sub_(m / (1 - BETA1**t) * 1e-3 / ((v / (1 - BETA2**t)).sqrt() + 1e-8))


def called(lib: Library, function: Any, *arguments: Any) -> Run:
    """function(*arguments) in the way that the library is for."""
    if lib.name == "norch":
        function = lib.module.capture(function)
    elif lib.name == "compiled":
        function = lib.module.compile(function, dynamic=False)
    for _ in range(models.WARM):
        function(*arguments)
    return lambda: function(*arguments)


def of_one(function: Any, shape: tuple[int, ...], lib: Library) -> Run:
    """function of one tensor of this shape."""
    return called(lib, function, lib.random(*shape, low=-3.0, high=3.0))


def adam_step(n: int, lib: Library) -> Run:
    """A step for n parameters."""
    state = [lib.random(n), lib.random(n), lib.random(n) * 0, lib.random(n) * 0, lib.random(1) * 0]
    run = called(lib, adam, *state)
    return lambda: (run(), state[:4])[1]


SIZES = {"1e3": (10, 100), "1e4": (100, 100), "1e5": (1000, 100), "1e6": (1000, 1000), "1e7": (10000, 1000)}


def _case(name: str, size: str, setup: Any) -> Case:
    return Case("fused", f"{name}, {size} elements", setup, None, ways=True)


CASES = [
    *[_case("gelu as 8 operations", n, partial(of_one, gelu, (math.prod(SIZES[n]),))) for n in SIZES],
    *[_case("softmax", n, partial(of_one, softmax, SIZES[n])) for n in ("1e3", "1e5", "1e7")],
    *[_case("layer norm", n, partial(of_one, layer_norm, SIZES[n])) for n in ("1e3", "1e5", "1e7")],
    *[_case("Adam", n, partial(adam_step, math.prod(SIZES[n]))) for n in ("1e3", "1e5", "1e7")],
]
