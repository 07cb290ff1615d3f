"""``norch.capture``: a function is recorded once, call by call at the gate, and then replayed without Python."""

from .captured import CapturedFunction, capture
from .compiled import CompiledFunction, OptimizedModule, compile  # noqa: A004
from .listing import Program

__all__ = ["CapturedFunction", "CompiledFunction", "OptimizedModule", "Program", "capture", "compile"]
