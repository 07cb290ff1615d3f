"""``norch.hub`` at the path that scripts import it by; compat/hub.py holds it."""

import sys

from .compat import hub
from .compat.hub import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = hub
