"""``norch.nn.parallel`` at the path that scripts import it by; compat/parallel.py holds it."""

import sys

from ..compat import parallel
from ..compat.parallel import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = parallel
