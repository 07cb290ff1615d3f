"""``norch.accelerator`` at the path that scripts import it by; compat/accelerator.py holds it."""

import sys

from .compat import accelerator
from .compat.accelerator import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = accelerator
