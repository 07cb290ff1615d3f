"""``norch.capture``: a function is recorded once, call by call at the gate, and then replayed without Python."""

from .captured import CapturedFunction, capture
from .listing import Program

__all__ = ["CapturedFunction", "Program", "capture"]
