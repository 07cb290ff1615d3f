"""norch in place of PyTorch: `import torch` imports norch.

Child processes of a program run by `python -m norch` find this package. It is all of the distribution torch
2.13.0+norch; `pip uninstall torch` removes it.
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
