"""norch's exceptions (docs/differences.md). Arguments of a wrong type raise Python's TypeError.

Each error is both a ``norch.Error`` and the built-in that Python programs expect, so that
``except ValueError`` works as well as ``except norch.Error``, or PyTorch's ``except RuntimeError``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from ._package.exports import publish
from ._package.typing import Any

__all__ = [
    "ArgumentError", "BoundsError", "CaptureError", "DTypeError", "DeviceError", "DivisionError", "Error",
    "LinAlgError", "MetaError", "OutOfMemoryError", "ShapeError",
]  # fmt: skip


class Error(RuntimeError):
    """Base class of norch's own errors; a RuntimeError, which is what PyTorch raises in most places."""


class ShapeError(Error, ValueError):
    """Shapes that do not fit each other or the operation."""


class DTypeError(Error, TypeError):
    """An operation that is not defined for a dtype."""


class DeviceError(Error):
    """A device that does not exist, or tensors on different ones."""


class ArgumentError(Error, ValueError):
    """An argument whose value the operation cannot take."""


class BoundsError(Error, IndexError):
    """An index or an axis that is out of range."""


class DivisionError(Error, ZeroDivisionError):
    """An integer divided by zero."""


class CaptureError(Error):
    """A function that norch.capture cannot record."""


class MetaError(DeviceError, NotImplementedError):
    """A call needs elements of a tensor on the device "meta", which has none."""


class LinAlgError(Error, ArithmeticError):
    """A decomposition or a system that has no answer: a singular matrix, one that is not positive definite."""


class OutOfMemoryError(Error, MemoryError):
    """A call needs more memory than there is."""


REFUSALS = (ArgumentError, DTypeError, ShapeError, TypeError)  # errors about the arguments


def one_of(argument: str, value: Any, choices: Iterable[Any]) -> None:
    """ArgumentError unless value is one of the choices. argument: with its operation, "gelu: approximate"."""
    if value not in (listed := list(choices)):
        *others, last = map(repr, listed)
        raise ArgumentError(f"{argument} is {', '.join(others)} or {last}, not {value!r}")


def rename_error(error: Error | TypeError | OverflowError, name: str) -> None:
    """Makes error name the operation that the user called instead of the inner operation that raised it."""
    inner, colon, rest = str(error).partition(": ")
    # those of the device itself stay, and Python's own, of missing arguments
    if not inner.startswith(("cuda", f"{name}() ")):
        error.args = (f"{name}: {rest if colon and ' ' not in inner else error}",)


PACKAGE: str = os.path.dirname(os.path.abspath(__file__)) + os.sep


def frame_of_user(frame: Any) -> Any:
    """The innermost frame outside this package, from frame outwards, or None."""
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def stacklevel_of_user() -> int:
    """The stacklevel with which warnings.warn(), in the function that calls this one, cites the innermost line outside
    this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


publish(globals())
