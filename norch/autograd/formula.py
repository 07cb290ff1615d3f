"""Recorded gradients of an operation whose kernels compute the result and its gradients in one pass each.

A kernel leaves no history. Where the gradients are to have one (create_graph), they are taken from the definition of
the operation instead, composed of recorded operations: the rule for the gradients stands in the kernel only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._handle import alias
from .derivative import derivative
from .engine import run
from .record import record

_Variable = derivative("variable", grad=lambda g: g, shares_grad=True)


def formula_gradients(
    formula: Callable[..., Any], g: Any, inputs: Sequence[Any], needs_input_grad: Sequence[bool], *others: Any
) -> tuple[Any, ...]:
    """The gradients of formula(*inputs, *others), weighted by g, by those inputs that need one; None for the others.

    They are functions of g and of the inputs, so that the graph continues through both. The walk ends at variables that
    stand for the inputs, as two of these may be the same tensor. None is g itself or shares its elements.
    """
    variables = [record(_Variable, alias(x), (x,)) if need else x for x, need in zip(inputs, needs_input_grad)]
    wanted = [x._node for x, need in zip(variables, needs_input_grad) if need]
    root = formula(*variables, *others)._node
    positions = {node: i for i, node in enumerate(wanted)}
    found = iter(run([(root, g)], True, True, positions, accumulate=False, past=False))
    return tuple([next(found).clone() if need else None for need in needs_input_grad])
