"""The first step of `import norch`: refuses a Python that the library was not built for, and imports Tensor.

The garbage collector is disabled meanwhile: it would take a tenth of the time and free nothing.
"""

import gc
import os
import sys


def _check_python() -> None:
    """Refuses interpreters whose objects have another layout than csrc/python/abi.h describes."""
    flags = getattr(sys, "abiflags", "")
    if "t" in flags or not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError("norch: this Python runs without a global lock (free-threaded); norch needs one that has it")
    if "d" in flags or hasattr(sys, "gettotalrefcount"):
        raise ImportError("norch: this is a debug build of Python; norch needs a release build")


_check_python()
is_traced = os.environ.get("NORCH_TRACE", "") not in ("", "0")
_collecting = gc.isenabled()
gc.disable()
try:
    from ..tensor import Tensor as Tensor
finally:
    if _collecting:
        if gc.get_freeze_count() == 0:  # moves all objects to the oldest generation without a collection
            gc.freeze()
            gc.unfreeze()
        gc.enable()
