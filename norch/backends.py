"""``norch.backends`` at the path that scripts import it by; compat/backends.py holds it."""

import sys

from .compat import backends

sys.modules[__name__] = backends
