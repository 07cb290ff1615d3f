"""``norch.capture`` and ``norch.compile``: record the library calls of a function and replay them without Python.

captured.py traces a function: it calls the function while trace.py and C record it (csrc/python/capture/recording.c).
The result is a recording: a program, which is the calls and their memory (csrc/program/, listing.py), and guards, which
are the conditions of a replay:

    frames.py      the Python code that ran; trusted.py: code and objects that are not examined
    bytecode.py    what this code can read; stack.py: which instruction takes a value
    guards.py      finds these values; walk.py: the values that they hold; containers.py: entries of containers;
                   settings.py: settings of libraries; values.py: properties of single values
    conditions.py  the rows that compare them (csrc/python/capture/guards.c); fields.py: where CPython keeps some
    written.py     the objects that the function writes to, and the tensors that it stores

compiled.py and joint.py record in two parts, forward and backward; module_compile.py has Module.compile(). tree.py
flattens nested arguments and results, picture.py draws a recording.
"""

from .captured import CapturedFunction, capture
from .compiled import CompiledFunction, OptimizedModule, compile
from .listing import Program

__all__ = ["CapturedFunction", "CompiledFunction", "OptimizedModule", "Program", "capture", "compile"]
