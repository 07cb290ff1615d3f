"""Reverse-mode automatic differentiation.

function.py (grad modes, nodes, Function), derivatives.py (what each operation does in backward), engine.py (the
walk), inplace.py (views and writes).
"""

from .engine import backward, grad
from .function import Function, enable_grad, is_grad_enabled, no_grad, once_differentiable, set_grad_enabled

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]
