"""What annotations take from `typing`, for the modules that `import norch` loads: importing it, and the `re` and `enum`
that it needs, would take a tenth of that time. Type checkers read the real ones.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import TypeVar as TypeVar
    from typing import cast as cast
else:

    class Any:
        """Stands for any type."""

    def TypeVar(name, **_):
        """Stands for a type variable, which is read by type checkers only."""
        return Any

    def cast(_, value):
        """The value: type checkers take it for one of the type named."""
        return value
