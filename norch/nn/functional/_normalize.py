"""normalize() and local_response_norm() of nn.functional; the other normalizations are norch/ops."""

from __future__ import annotations

from ...errors import ArgumentError
from ...ops._checks import at_least, real_of
from ...ops._entry import composed
from ...ops._operand import tensor_of
from ...ops._out import written
from ...ops.composed.pad import pad
from ...tensor import Tensor

__all__ = ["local_response_norm", "normalize"]


@composed
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | tuple[int, ...] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """input / max(norm, eps), where norm is the p-norm along dim. The result is written into out unless that is None.

    >>> norch.nn.functional.normalize(norch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if out is not None:
        return written(normalize, (input, p, dim, eps), {}, out)
    return tensor_of(input, "normalize") / input.norm(p, dim, keepdim=True).clamp(min=eps)


@composed
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean)^beta, with mean the mean of the squares of `size` neighbouring channels
    (Krizhevsky et al. 2012, section 3.3).

    input: (N, C, ...) of 3 or more dimensions, ShapeError otherwise; channels beyond the ends count as 0.

    >>> norch.nn.functional.local_response_norm(norch.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """
    x = at_least(3, real_of(input, "local_response_norm"), "local_response_norm")
    if size < 1:
        raise ArgumentError(f"local_response_norm: size is positive, not {size}")
    if not x.numel():
        return x.clone()
    squares = pad(x.square(), (0, 0) * (x.ndim - 2) + (size // 2, (size - 1) // 2)).unfold(1, size, 1)
    return x / (k + alpha * squares.mean(-1)) ** beta
