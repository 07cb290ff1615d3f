"""Orthogonal weights as a parametrization: nn.utils.parametrizations.orthogonal()."""

from __future__ import annotations

from typing import Any

from ... import linalg
from ...autograd import no_grad
from ...dtype import finfo
from ...errors import one_of
from ...ops.copy import cat
from ...ops.create import eye
from ...ops.linalg.torch_names import geqrf
from ...ops.random import randn
from ...tensor import Tensor
from ..module import Module
from ..utils.parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.shape[-2:]
    unit = eye(columns, dtype=q.dtype, device=q.device)
    return bool((q.mH @ q).allclose(unit.expand_as(q.mH @ q), atol=10.0 * rows * finfo(q.dtype).eps))


def _orthogonalized(a: Tensor) -> Tensor:
    """The Q of a = QR, where the diagonal of R is not negative. a has no more columns than rows."""
    reflectors, tau = geqrf(a)
    signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return linalg.householder_product(reflectors, tau) * signs


class _Orthogonal(Module):
    """base: with a trivialization, the weight when it was last set; forward() gives base @ map(x)."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal: reflections of Householder are for real weights")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        q = self._of_tall(x.mT if wide else x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _of_tall(self, x: Tensor) -> Tensor:
        rows, columns = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            q = linalg.householder_product(a, 2.0 / (1.0 + (a * a).sum(-2)))
            # 1 or -1 each, which training does not change: without a derivative.
            return q * x.detach().diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)
        x = x.tril()
        if rows != columns:
            x = cat([x, x.new_zeros(*x.shape[:-1], rows - columns)], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(skew)
        else:
            unit = eye(rows, dtype=x.dtype, device=x.device)
            q = linalg.solve(unit - 0.5 * skew, unit + 0.5 * skew)
        return q[..., :columns]

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(f"orthogonal: expected a weight of shape {tuple(self.shape)}, not {tuple(q.shape)}")
        wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if wide else q
        if not hasattr(self, "base"):
            inverse = self._reflectors(tall)
            return inverse.mT if wide else inverse
        rows, columns = tall.shape[-2:]
        if rows != columns:
            more = randn(*tall.shape[:-2], rows, rows - columns, dtype=q.dtype, device=q.device)
            self.base = _orthogonalized(cat([tall, more], -1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _orthogonalized(tall)
        identity = q.new_zeros(q.shape)
        identity.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # of which the product of reflections is the identity
        return identity

    def _reflectors(self, q: Tensor) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal: a weight of {self.orthogonal_map} cannot be set with use_trivialization=False"
            )
        reflectors, tau = geqrf(q)
        diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
        # A reflection with tau = 0 is the identity, but one of unit length in forward().
        diagonal.copy_(diagonal.sign().where(tau != 0, -diagonal.sign()))
        return reflectors


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Parametrizes module.<name>, a matrix or a batch of them, so that its columns are orthonormal, or its rows if it
    has more columns than rows; a complex matrix is unitary. ValueError if there is no such parameter or buffer, or if
    it has one dimension. Returns module.

    orthogonal_map is "matrix_exp" or "cayley" of a skew-symmetric matrix, or "householder", a product of reflections.
    The default is matrix_exp for square and complex weights, householder for others. With use_trivialization the result
    is multiplied by a buffer `base`, the weight when it was last set (Lezcano Casado 2019). At first the weight is the
    module's weight, orthogonalized.

    >>> layer = norch.nn.utils.parametrizations.orthogonal(norch.nn.Linear(20, 40))
    >>> bool((layer.weight.T @ layer.weight).allclose(norch.eye(20), atol=1e-5))
    True
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{module._get_name()} has no parameter or buffer {name!r}")
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: expected a matrix or a batch of matrices, got {weight.ndim} dimensions")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    one_of("orthogonal: orthogonal_map", orthogonal_map, _MAPS)
    norm = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, norm, unsafe=True)
