"""norch in the place of PyTorch: `import torch` gives norch. This is no build of PyTorch.

It is found by processes that a program run by `python -m norch` starts, and it is all that the distribution
torch 2.13.0+norch holds. To undo that: pip uninstall torch.
"""

import importlib
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if os.path.exists(os.path.join(_here, "version.py")) or os.path.exists(os.path.join(_here, "lib")):
    raise ImportError(
        f"{_here}: norch's package torch lies over the files of PyTorch's; uninstall torch, remove what is left of "
        "this folder, and install the one that you want"
    )
try:
    importlib.import_module("norch")
except ImportError as error:
    _root = os.path.abspath(os.path.join(_here, *[os.pardir] * 4))  # of the checkout or environment that this is in
    if not os.path.exists(os.path.join(_root, "norch", "__init__.py")):
        raise ImportError(f"torch: this is norch in the place of PyTorch, and norch is missing: {error}") from error
    sys.path.append(_root)
importlib.import_module("norch.compat.door").open_door(sys.modules[__name__])
