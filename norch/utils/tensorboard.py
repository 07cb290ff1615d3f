"""``norch.utils.tensorboard`` at the path that scripts import it by; compat/tensorboard.py holds it."""

import sys

from ..compat import tensorboard
from ..compat.tensorboard import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = tensorboard
