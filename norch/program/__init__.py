"""``norch.capture`` and ``norch.compile``: the library calls of a function are recorded, and replayed without Python.

captured.py traces a function, that is, calls it while trace.py and C take notes (csrc/python/recording.c). This gives a
recording: a program, the calls and their memory (csrc/program/, listing.py), and guards, the conditions of a replay:
frames.py has the code of Python that ran, bytecode.py what that can read, guards.py finds its values, conditions.py
compares them (csrc/python/recording_guards.c), fields.py knows where CPython keeps some.
compiled.py and joint.py do so in two parts, forward and backward. tree.py has nested arguments and results.
"""

from .captured import CapturedFunction, capture
from .compiled import CompiledFunction, OptimizedModule, compile
from .listing import Program

__all__ = ["CapturedFunction", "CompiledFunction", "OptimizedModule", "Program", "capture", "compile"]
