"""Imports the heart of the package without the collector of cycles: all that is made here stays, so that its walks over
it, a tenth of the time of an import, would find nothing.
"""

import gc

_collecting = gc.isenabled()
gc.disable()
try:
    from .tensor import Tensor as Tensor
finally:
    if _collecting:
        if gc.get_freeze_count() == 0:  # there and back: all is old at once, without a walk
            gc.freeze()
            gc.unfreeze()
        gc.enable()
