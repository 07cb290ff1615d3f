"""Reverse-mode automatic differentiation.

node.py (what a graph is made of), derivatives.py (what each operation does in backward), engine.py (the
walk), inplace.py (views and writes), function.py (operations
of your own), grad_mode.py (no_grad and its kin).
"""

from .engine import backward, grad
from .function import Function, once_differentiable
from .grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

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
