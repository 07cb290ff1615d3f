"""Checks of integers and bools from users, before they are passed to C.

ctypes keeps only the low 64 bits of an integer, so a call through it takes only what ints() or int64() have checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from .. import errors
from .._package.typing import Any
from .library import constants

_PACK = [struct.Struct(f"{n}q").pack for n in range(constants["MAX_DIMS"] + 1)]


def ints(values: Sequence[int], name: str = "size") -> bytes:
    """Packs up to 16 integers as an int64 array for C; checks their type and range."""
    try:
        return _PACK[len(values)](*values)
    except IndexError:
        limit = constants["MAX_DIMS"]
        raise errors.ShapeError(f"{len(values)} dimensions; at most {limit} are supported") from None
    except struct.error:
        for value in values:
            int64(value, name)
        raise


def int64(value: Any, name: str = "number") -> int:
    """value as an int. TypeError for a bool or another type, OverflowError if it does not fit 64 bits."""
    if value is True or value is False:
        raise TypeError(f"{name} must be an integer, not bool")
    try:
        value = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{name} {value} does not fit 64 bits")
    return value


def flag(value: Any, name: str) -> bool:
    """value, if it is True or False; TypeError otherwise, as in PyTorch."""
    if value is True or value is False:
        return value
    raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
