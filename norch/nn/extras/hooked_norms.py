"""nn.utils.weight_norm() and spectral_norm(): forward pre-hooks that compute the weight. PyTorch deprecates them in
favour of nn.utils.parametrizations.
"""

from __future__ import annotations

from typing import Any, ClassVar

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
    """Sets module.<name> to compute_weight(module) before each forward."""

    name: str
    _kind: ClassVar[str]
    _parts: ClassVar[tuple[str, ...]]  # suffixes of the tensors that it reads

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    def compute_weight(self, module: Any) -> Tensor:
        raise NotImplementedError

    def remove(self, module: Any) -> None:
        """Makes module.<name> a parameter again, with its current value."""
        with no_grad():
            weight = self.compute_weight(module)
        for part in self._parts:
            delattr(module, f"{self.name}_{part}")
        delattr(module, self.name)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "compute" in state:  # saved as a _Hook, with a partial() of _rescaled_weight or _normalized_weight
            name, options = state["name"], state["compute"].keywords
            like: _Hook
            if "iterations" in options:
                like = SpectralNorm(name, options["iterations"], options["axis"], options["eps"])
            else:
                like = WeightNorm(name, options["dim"])
            self.__class__, state = type(like), vars(like)
        self.__dict__.update(state)


class WeightNorm(_Hook):
    """The hook of weight_norm()."""

    _kind, _parts = "weight_norm", ("g", "v")

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """weight_norm(), but returns the hook."""
        weight = _weight(module, name, "weight_norm").detach()
        hook = WeightNorm(name, dim)
        _hook(module, hook, {"g": Parameter(norms(weight, dim)), "v": Parameter(weight)}, {})
        hook(module, ())
        return hook

    def compute_weight(self, module: Any) -> Tensor:
        return _rescaled_weight(module, self.name, self.dim)


class SpectralNorm(_Hook):
    """The hook of spectral_norm()."""

    _kind, _parts = "spectral_norm", ("orig", "u", "v")

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """spectral_norm(), but returns the hook."""
        weight = _weight(module, name, "spectral_norm")
        check_spectral_norm(weight, n_power_iterations, dim)
        vectors = random_unit_vectors(as_matrix(weight, dim), eps)
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        _hook(module, hook, {"orig": weight}, dict(zip("uv", vectors, strict=True)))
        setattr(module, name, weight.detach())  # a leaf, so that the module can be copied before its first forward
        return hook

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def compute_weight(self, module: Any, do_power_iteration: bool = False) -> Tensor:
        return _normalized_weight(
            module, self.name, self.dim, self.n_power_iterations if do_power_iteration else 0, self.eps
        )


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


def _remove(module: Any, kind: type[_Hook], name: str) -> Any:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"remove_{kind._kind}: {module._get_name()} has none of {name!r}")


def _rescaled_weight(module: Any, name: str, dim: int) -> Tensor:
    return rescaled(getattr(module, f"{name}_g"), getattr(module, f"{name}_v"), dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """parametrizations.weight_norm() with the parameters <name>_g and <name>_v. Returns module.

    >>> norch.nn.utils.weight_norm(norch.nn.Linear(20, 40)).weight_g.shape
    norch.Size([40, 1])
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes module.<name> a parameter again, with its current value. ValueError if there is no such hook.

    >>> layer = norch.nn.utils.weight_norm(norch.nn.Linear(3, 2))
    >>> norch.nn.utils.remove_weight_norm(layer).weight.shape
    norch.Size([2, 3])
    """
    return _remove(module, WeightNorm, name)


def _normalized_weight(module: Any, name: str, axis: int, iterations: int, eps: float) -> Tensor:
    weight, u, v = (getattr(module, f"{name}_{part}") for part in ("orig", "u", "v"))
    matrix = as_matrix(weight, axis)
    if iterations:
        power_iteration(matrix.mH, v, u, iterations, eps)
    return weight / singular_value(matrix, u, v)


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """parametrizations.spectral_norm() with the parameter <name>_orig and the buffers <name>_u and <name>_v. Until the
    first forward <name> is the original weight, without a gradient. Returns module.

    >>> list(norch.nn.utils.spectral_norm(norch.nn.Linear(2, 3, bias=False)).state_dict())
    ['weight_orig', 'weight_u', 'weight_v']
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_axis(module, dim), eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes module.<name> a parameter again, with its current value. ValueError if there is no such hook.

    >>> layer = norch.nn.utils.spectral_norm(norch.nn.Linear(3, 2))
    >>> norch.nn.utils.remove_spectral_norm(layer).weight.shape
    norch.Size([2, 3])
    """
    return _remove(module, SpectralNorm, name)
