"""``norch.fx`` at the path that scripts import it by; compat/fx.py holds it."""

import sys

from .compat import fx
from .compat.fx import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = fx
