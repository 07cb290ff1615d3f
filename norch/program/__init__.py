"""``norch.capture``: records the library calls of a function, and replays them without Python."""

from .captured import CapturedFunction, capture
from .compiled import CompiledFunction, OptimizedModule, compile  # noqa: A004
from .listing import Program

__all__ = ["CapturedFunction", "CompiledFunction", "OptimizedModule", "Program", "capture", "compile"]
