"""``norch.autograd.forward_ad``: dual numbers, which are tensors with a tangent. unpack_dual() computes the
Jacobian-vector product by two backward passes (Townsend, "A new trick for calculating Jacobian vector products", 2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._package.exports import publish
from ..errors import Error, ShapeError
from ..ops.create import zeros_like
from ..tensor import Tensor
from .grad_mode import is_grad_enabled
from .gradients import grad
from .transpose import transposed

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
publish(globals())

_levels: list[list[tuple[Tensor, Tensor]]] = []  # for each entered level its dual inputs and their tangents


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent; None if it depends on no dual number."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enters a level and returns its number. Levels cannot be nested (RuntimeError), as in PyTorch."""
    if _levels:
        raise RuntimeError("enter_dual_level: levels of dual numbers cannot be nested")
    _levels.append([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the level and drops its tangents."""
    if not _levels:
        raise RuntimeError("exit_dual_level: no level is entered")
    _levels.pop()


class dual_level:  # PyTorch's name
    """A context for dual numbers.

    >>> fwd = norch.autograd.forward_ad
    >>> with fwd.dual_level():
    ...     x = fwd.make_dual(norch.tensor([1.0, 2.0]), norch.tensor([1.0, 0.5]))
    ...     fwd.unpack_dual(x.square()).tangent
    tensor([2., 2.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor; the tangent must have the tensor's shape. Error under no_grad(), as operations must be
    recorded."""
    if not _levels:
        raise RuntimeError("make_dual: call it inside dual_level()")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise ShapeError(f"make_dual: tangent of shape {tuple(tangent.shape)}, tensor of {tuple(tensor.shape)}")
    if not is_grad_enabled():
        raise Error("make_dual: tangents need recorded operations; do not use it under no_grad()")
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels[-1].append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor, and its tangent."""
    if not _levels or not _levels[-1] or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    duals = _levels[-1]
    for dual, tangent in duals:
        if dual is tensor:
            return UnpackedDualTensor(tensor, tangent)
    weights = zeros_like(tensor).requires_grad_()
    inputs = [dual for dual, _ in duals]
    grads = transposed(grad, tensor, inputs, weights, create_graph=True, allow_unused=True)
    used = [(g, tangent) for g, (_, tangent) in zip(grads, duals) if g is not None]
    if not used:
        return UnpackedDualTensor(tensor, None)
    along = [(g, tangent) for g, tangent in used if g.requires_grad]
    total: Any = None
    if along:
        (total,) = grad(
            [g for g, _ in along], [weights], [t for _, t in along], create_graph=True, allow_unused=True
        )  # fmt: skip
    total = zeros_like(tensor) if total is None else total
    keeps = any(t.requires_grad for _, t in duals) or any(not dual.is_leaf for dual, _ in duals)
    return UnpackedDualTensor(tensor, total if keeps else total.detach())
