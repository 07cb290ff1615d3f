"""``norch.jit`` at the path that scripts import it by; compat/jit.py holds it."""

import sys

from .compat import jit
from .compat.jit import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = jit
