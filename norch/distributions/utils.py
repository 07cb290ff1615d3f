"""``norch.distributions.utils``: helpers for user-defined distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..autograd import enable_grad
from ..dtype import finfo
from ..ops.create import tril_indices
from ..ops.random import randn
from ..ops.softmax import softmax
from ..tensor import Tensor
from .distribution import broadcast_all as broadcast_all
from .distribution import sum_rightmost as _sum_rightmost  # noqa: F401  (PyTorch's name)

euler_constant = 0.57721566490153286060


class lazy_property(cached_property[Any]):
    """An attribute that is computed when it is first read. Its gradients are recorded even if the first read is under
    no_grad(), for instance in sample().
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(enable_grad()(wrapped))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return randn(shape, dtype=dtype, device=device)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probs to [eps, 1 - eps]."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The sigmoid of log odds, or without is_binary the softmax of logarithms along the last axis."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The log odds, or the logarithms, of clamp_probs(probs)."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Builds lower triangular matrices (..., n, n) from their elements (..., d), row by row."""
    more = -(1 + 2 * diag)
    n = round((more + (more**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    rows, columns = tril_indices(n, n, diag)
    return vec.new_zeros((*vec.shape[:-1], n, n)).index_put((..., rows, columns), vec)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements (..., d) of the lower triangles of matrices (..., n, n), row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: a diagonal of {diag} is outside a matrix of {n} rows")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]
