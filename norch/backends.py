"""``norch.backends`` at the path that scripts import it by; compat/backends.py holds it."""

import sys

from .compat import backends
from .compat.backends import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = backends
