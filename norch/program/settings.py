"""Process settings that code in C reads besides its arguments. The settings of decimal and NumPy are compared if a
recorded function reaches a value that may read them. PyTorch's tensors are refused."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from .containers import HOLD, Containers, Place, Refused
from .fields import is_a
from .trusted import PYTORCH, is_pytorch
from .values import IN_C


def _of_decimal(decimal: ModuleType) -> tuple[Any, ...]:
    return (repr(decimal.getcontext()),)


def _of_numpy(numpy: ModuleType) -> tuple[Any, ...]:
    return (*numpy.geterr().values(), numpy.geterrcall())


# {top-level module of a value: the module of its settings, and the function that reads them}
_SETTINGS = {
    "decimal": ("decimal", _of_decimal),
    "_decimal": ("decimal", _of_decimal),
    "numpy": ("numpy", _of_numpy),
    "scipy": ("numpy", _of_numpy),
}


class Settings(Containers):
    def __init__(self) -> None:
        super().__init__()
        self._settings: set[str] = set()  # modules whose settings are compared

    def _note_settings(self, x: Any, place: Place | None) -> None:
        """Guards the settings that a value may read, such as decimal's precision."""
        top = _module_of(x).partition(".")[0]
        if is_pytorch("torch") and is_a(x, sys.modules["torch"].Tensor):
            raise Refused(f"{PYTORCH}; {HOLD}", place)
        name, take = _SETTINGS.get(top, ("", None))
        if take is not None and name not in self._settings and name in sys.modules:
            self._settings.add(name)
            self._unchanged(take, sys.modules[name], place)


def _module_of(x: Any) -> str:
    """The module of a module, function or class, else of x's class; runs no code of the program."""
    if is_a(x, ModuleType):
        return str(ModuleType.__getattribute__(x, "__dict__").get("__name__"))
    if type(x) is FunctionType or type(x) in IN_C:
        return str(getattr(x, "__module__", None))
    return str(type.__getattribute__(x if is_a(x, type) else type(x), "__module__"))
