"""nn.utils.weight_norm() and spectral_norm(): forward pre-hooks that compute the weight. PyTorch deprecates them in
favour of nn.utils.parametrizations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...autograd import no_grad
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter
from ..utils.parametrizations import (
    as_matrix,
    check_spectral_norm,
    norms,
    output_axis,
    power_iteration,
    random_unit_vectors,
    rescaled,
    singular_value,
)


class _Hook:
    """Sets module.<name> to compute(module, name) before each forward. parts: suffixes of the tensors that it reads.
    compute is a function of module level, or a partial() of one, so that modules can be pickled."""

    def __init__(self, kind: str, name: str, parts: str, compute: Callable[[Any, str], Tensor]) -> None:
        self.kind, self.name, self.parts, self.compute = kind, name, parts.split(), compute

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, self.name))


def _weight(module: Module, name: str, kind: str) -> Parameter:
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"{kind}: {module._get_name()} has no parameter {name!r}")
    return weight


def _hook(module: Module, hook: _Hook, parameters: dict[str, Parameter], buffers: dict[str, Tensor]) -> None:
    """Replaces module.<name> by parameters and buffers, by suffix, and registers the hook."""
    module._unbind(hook.name)
    for suffix, param in parameters.items():
        module.register_parameter(f"{hook.name}_{suffix}", param)
    for suffix, buffer in buffers.items():
        module.register_buffer(f"{hook.name}_{suffix}", buffer)
    module.register_forward_pre_hook(hook)


def _remove(module: Any, kind: str, name: str) -> Any:
    for key, (hook, _) in module._forward_pre_hooks.items():
        if isinstance(hook, _Hook) and (hook.kind, hook.name) == (kind, name):
            with no_grad():
                weight = hook.compute(module, name)
            del module._forward_pre_hooks[key]
            for part in hook.parts:
                delattr(module, f"{name}_{part}")
            delattr(module, name)
            module.register_parameter(name, Parameter(weight.detach()))
            return module
    raise ValueError(f"remove_{kind}: {module._get_name()} has none of {name!r}")


def _rescaled_weight(module: Any, name: str, dim: int | None) -> Tensor:
    return rescaled(getattr(module, f"{name}_g"), getattr(module, f"{name}_v"), dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """parametrizations.weight_norm() with the parameters <name>_g and <name>_v. Returns module.

    >>> norch.nn.utils.weight_norm(norch.nn.Linear(20, 40)).weight_g.shape
    norch.Size([40, 1])
    """
    weight = _weight(module, name, "weight_norm").detach()
    parameters = {"g": Parameter(norms(weight, dim)), "v": Parameter(weight)}
    hook = _Hook("weight_norm", name, "g v", partial(_rescaled_weight, dim=dim))
    _hook(module, hook, parameters, {})
    hook(module, ())
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes module.<name> a parameter again, with its current value. ValueError if there is no such hook.

    >>> layer = norch.nn.utils.weight_norm(norch.nn.Linear(3, 2))
    >>> norch.nn.utils.remove_weight_norm(layer).weight.shape
    norch.Size([2, 3])
    """
    return _remove(module, "weight_norm", name)


def _normalized_weight(module: Any, name: str, axis: int, iterations: int, eps: float) -> Tensor:
    weight, u, v = (getattr(module, f"{name}_{part}") for part in ("orig", "u", "v"))
    matrix = as_matrix(weight, axis)
    if module.training:
        power_iteration(matrix.mT, v, u, iterations, eps)
    return weight / singular_value(matrix, u, v)


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """parametrizations.spectral_norm() with the parameter <name>_orig and the buffers <name>_u and <name>_v. Until the
    first forward <name> is the original weight, without a gradient. Returns module.

    >>> list(norch.nn.utils.spectral_norm(norch.nn.Linear(2, 3, bias=False)).state_dict())
    ['weight_orig', 'weight_u', 'weight_v']
    """
    axis = output_axis(module, dim)
    weight = _weight(module, name, "spectral_norm")
    check_spectral_norm(weight, n_power_iterations, axis)
    vectors = random_unit_vectors(as_matrix(weight, axis), eps)
    buffers = dict(zip("uv", vectors, strict=True))
    compute = partial(_normalized_weight, axis=axis, iterations=n_power_iterations, eps=eps)
    _hook(module, _Hook("spectral_norm", name, "orig u v", compute), {"orig": weight}, buffers)
    setattr(module, name, weight.detach())  # a leaf, so that the module can be copied before its first forward
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes module.<name> a parameter again, with its current value. ValueError if there is no such hook.

    >>> layer = norch.nn.utils.spectral_norm(norch.nn.Linear(3, 2))
    >>> norch.nn.utils.remove_spectral_norm(layer).weight.shape
    norch.Size([2, 3])
    """
    return _remove(module, "spectral_norm", name)
