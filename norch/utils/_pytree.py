"""``norch.utils._pytree`` at the path that scripts import it by; compat/pytree.py holds it."""

import sys

from ..compat import pytree
from ..compat.pytree import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = pytree
