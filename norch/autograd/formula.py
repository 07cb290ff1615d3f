"""Recorded gradients of operations with fused kernels: one for the result, one for all gradients.

A kernel records nothing. With create_graph the gradients are therefore computed from a formula of the operation,
composed of recorded operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.handle import alias
from .derivative import derivative
from .levels import zeros_of
from .record import record
from .region import walk_to

_Variable = derivative("variable", grad=lambda g: g, shares_grad=True)


def placeholder(meta: Any, needed: bool) -> Any:
    """Zeros for an input whose elements no gradient reads, given its meta tensor; None if its own gradient is not
    needed."""
    return zeros_of(meta).requires_grad_() if needed else None


def formula_gradients(
    formula: Callable[..., Any], g: Any, inputs: Sequence[Any], needs_input_grad: Sequence[bool], *others: Any
) -> tuple[Any, ...]:
    """The gradients of formula(*inputs, *others), weighted by g, with respect to each input; None if not needed.

    They are recorded as functions of g and of the inputs. No result shares elements with g.
    """
    # Two inputs may be the same tensor, so the walk ends at a variable for each.
    variables = [record(_Variable, alias(x), (x,)) if need else x for x, need in zip(inputs, needs_input_grad)]
    frontier = [x._node if need else None for x, need in zip(variables, needs_input_grad)]
    grads = walk_to(frontier, [(formula(*variables, *others)._node, g)], True, True)
    return tuple([None if grad is None else grad.clone() for grad in grads])
