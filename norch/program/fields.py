"""Where CPython's objects keep what no dict holds: slots, and the code and the defaults of functions."""

from __future__ import annotations

import ctypes
from types import MemberDescriptorType
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_void_p)
CLASS = _WORD  # the offset of an object's class


def offset_of(slot: MemberDescriptorType) -> int:
    """The offset of a slot in the instances of its class (PyMemberDescrObject, PyMemberDef)."""
    definition = ctypes.c_void_p.from_address(id(slot) + 5 * _WORD).value
    assert definition is not None
    return ctypes.c_ssize_t.from_address(definition + 2 * _WORD).value


def _offsets_in_functions() -> tuple[int, int, int]:
    """Offsets of the code, the defaults and the keyword-only defaults of a function, found in one."""

    def sample(a: Any = object, *, b: Any = object) -> None: ...

    words = [ctypes.c_void_p.from_address(id(sample) + i).value for i in range(0, type(sample).__basicsize__, _WORD)]
    values = (sample.__code__, sample.__defaults__, sample.__kwdefaults__)
    code, defaults, keywords = (words.index(id(value)) * _WORD for value in values)
    return code, defaults, keywords


CODE, DEFAULTS, KEYWORDS = _offsets_in_functions()
