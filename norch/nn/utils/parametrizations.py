"""Orthogonal weights, weight and spectral normalization as parametrizations (`norch.nn.utils.parametrize`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..._package.exports import publish
from ...autograd import no_grad
from ...errors import ArgumentError, BoundsError
from ...tensor import Tensor
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..functional import normalize
from ..module import Module
from .parametrize import register_parametrization

if TYPE_CHECKING:
    from ..extras.orthogonal import orthogonal

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norms(v: Tensor, dim: int | None) -> Tensor:
    """The norms of the slices of v along dim, with size 1 in the other axes. dim None or -1: the norm of v."""
    if dim is None or dim == -1:
        return v.norm()
    dim = dim + v.ndim if dim < 0 else dim
    if not 0 <= dim < v.ndim:
        raise BoundsError(f"weight_norm: there is no axis {dim} in shape {tuple(v.shape)}")
    axes = tuple(axis for axis in range(v.ndim) if axis != dim)
    return v.norm(2, axes, keepdim=True) if axes else v.abs()


def rescaled(g: Tensor, v: Tensor, dim: int | None) -> Tensor:
    """v, its slices along dim rescaled to the norms g."""
    return v * (g / norms(v, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return rescaled(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norms(weight, self.dim), weight


def _rename_hooked(name: str, module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Renames the entries that a module with nn.utils.weight_norm() has saved."""
    if all(f"{prefix}{name}_{part}" in state for part in "gv"):
        for number, part in enumerate("gv"):
            state[f"{prefix}parametrizations.{name}.original{number}"] = state.pop(f"{prefix}{name}_{part}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes module.<name> as g v / |v| (Salimans and Kingma 2016, equation 2), with the norms g along dim (one
    norm for None) as `original0` and the directions v as `original1`. Returns module.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape, layer.weight.shape
    (norch.Size([40, 1]), norch.Size([40, 20]))
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(partial(_rename_hooked, name))
    return module


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """weight as a matrix, with axis dim as its rows."""
    return weight.movedim(dim, 0).flatten(1)


@no_grad()
def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Updates u and v in place towards the singular vectors of the largest singular value."""
    for _ in range(times):
        u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))
        v.copy_(normalize(matrix.mH.mv(u), dim=0, eps=eps))


def singular_value(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """u^H matrix v. u and v are copied, because the next forward may update them before backward."""
    return u.clone().vdot(matrix.mv(v.clone()))


def random_unit_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Random unit vectors, one for the rows and one for the columns of matrix."""
    with no_grad():
        u, v = (normalize(matrix.new_empty(size).normal_(), dim=0, eps=eps) for size in matrix.shape)
    return u, v


def check_spectral_norm(weight: Tensor, iterations: int, dim: int) -> None:
    if iterations < 1:
        raise ArgumentError(f"spectral_norm: n_power_iterations is positive, not {iterations}")
    if not -weight.ndim <= dim < weight.ndim:
        raise BoundsError(f"spectral_norm: there is no axis {dim} in shape {tuple(weight.shape)}")


def output_axis(module: Module, dim: int | None) -> int:
    """dim, or by default the axis of the output channels of a weight."""
    return dim if dim is not None else int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        check_spectral_norm(weight, n_power_iterations, dim)
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if weight.ndim > 1:
            matrix = as_matrix(weight, dim)
            for name, vector in zip(("_u", "_v"), random_unit_vectors(matrix, eps), strict=True):
                self.register_buffer(name, vector)
            power_iteration(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return weight / singular_value(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Parametrizes module.<name> as weight / sigma, with sigma its largest singular value, which n_power_iterations of
    the power method track in each forward in training (Miyato et al. 2018, algorithm 1). The weight is a matrix with
    axis dim as its rows: the output channels, axis 1 for transposed convolutions and 0 otherwise, by default. Returns
    module. ValueError if there is no such parameter or buffer.

    >>> layer = norch.nn.utils.parametrizations.spectral_norm(norch.nn.Linear(1, 3, bias=False))
    >>> round(layer.weight.norm().item(), 4)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{module._get_name()} has no parameter or buffer {name!r}")
    norm = _SpectralNorm(weight, n_power_iterations, output_axis(module, dim), eps)
    return register_parametrization(module, name, norm)


publish(globals(), {"...extras.orthogonal": "orthogonal"})
