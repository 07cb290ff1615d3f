"""``norch.nn.parallel`` at the path that scripts import; implemented in compat/parallel.py."""

import sys

from ..compat import parallel
from ..compat.parallel import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = parallel
