"""``norch.onnx`` at the path that scripts import it by; compat/onnx.py holds it."""

import sys

from .compat import onnx
from .compat.onnx import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = onnx
