"""``norch.nn.modules`` at the path that scripts import; implemented in compat/nn_modules.py."""

import sys

from ..compat import nn_modules
from ..compat.nn_modules import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = nn_modules
