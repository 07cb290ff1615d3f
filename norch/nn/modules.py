"""``norch.nn.modules`` at the path that scripts import it by; compat/nn_modules.py holds it."""

import sys

from ..compat import nn_modules
from ..compat.nn_modules import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = nn_modules
