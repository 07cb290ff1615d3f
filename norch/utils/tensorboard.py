"""``norch.utils.tensorboard`` at the path that scripts import; implemented in compat/tensorboard.py."""

import sys

from ..compat import tensorboard
from ..compat.tensorboard import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = tensorboard
