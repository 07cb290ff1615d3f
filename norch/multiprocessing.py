"""``norch.multiprocessing`` at the path that scripts import it by; compat/multiprocessing.py holds it."""

import sys

from .compat import multiprocessing
from .compat.multiprocessing import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = multiprocessing
