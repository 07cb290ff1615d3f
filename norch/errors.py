"""What norch raises of its own, beside Python's TypeError for an argument of another type and the like (README.md).

Each error is both a ``norch.Error`` and the built-in that Python programs expect, so that
``except ValueError`` works as well as ``except norch.Error``, or PyTorch's ``except RuntimeError``.
"""

from __future__ import annotations


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


class OutOfMemoryError(Error, MemoryError):
    """Memory that a device has not got."""


def rename_error(error: Error | TypeError | OverflowError, name: str) -> None:
    """Makes error name the operation that the user called, in place of one that it is composed of."""
    inner, colon, rest = str(error).partition(": ")
    # those of the device itself stay, and Python's own, of missing arguments
    if not inner.startswith(("cuda", f"{name}() ")):
        error.args = (f"{name}: {rest if colon and ' ' not in inner else error}",)
