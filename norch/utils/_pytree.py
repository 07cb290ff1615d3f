"""``norch.utils._pytree`` at the path that scripts import; implemented in compat/pytree.py."""

import sys

from ..compat import pytree
from ..compat.pytree import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = pytree
