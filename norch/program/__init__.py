"""``norch.capture`` and ``norch.compile``: the library calls of a function are recorded, and replayed without Python.

captured.py traces a function, that is, calls it while trace.py and C take notes (csrc/python/capture/recording.c). This
gives a recording: a program, the calls and their memory (csrc/program/, listing.py), and guards, the conditions of a
replay:

    frames.py      the Python code that ran; trusted.py: code and objects that are not examined
    bytecode.py    what this code can read; stack.py: which instruction takes a value
    guards.py      finds these values; walk.py: the values that they hold; containers.py: entries of containers;
                   settings.py: settings of libraries; values.py: questions about single values
    conditions.py  the rows that compare them (csrc/python/capture/guards.c); fields.py: where CPython keeps some
    written.py     the objects that the function writes to, and the tensors that it stores

compiled.py and joint.py do so in two parts, forward and backward; module_compile.py has Module.compile(). tree.py has
nested arguments and results, picture.py draws a recording.
"""

from .captured import CapturedFunction, capture
from .compiled import CompiledFunction, OptimizedModule, compile
from .listing import Program

__all__ = ["CapturedFunction", "CompiledFunction", "OptimizedModule", "Program", "capture", "compile"]
